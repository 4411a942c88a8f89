"""Agents that mean no harm and do it: each fails, ends or goes on in a way that nobody waits for. For the tests of a
process of its own, named there as `tests.cli.mean_agents:NAME`."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

from playhead import AsyncTurn
from playhead.agents.protocol import Request


async def blocked(request: Request, turn: AsyncTurn) -> None:
    """Keep the event loop from all else."""
    await turn.stream("It begins.")
    await asyncio.sleep(0.1)
    while True:
        time.sleep(0.1)


async def stubborn(request: Request, turn: AsyncTurn) -> None:
    """Go on, whoever cancels it."""
    await turn.stream("It begins.")
    await _going_on()


async def _going_on() -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


class Stubborn:
    """The same as an object, which yields what it says."""

    name = "stubborn"

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        await turn.stream("It begins.")
        yield "It begins."
        await _going_on()


stubborn_object = Stubborn()


async def exiting(request: Request, turn: AsyncTurn) -> None:
    """End the program, as a script does."""
    await turn.stream("It begins.")
    sys.exit(3)


async def interrupting(request: Request, turn: AsyncTurn) -> None:
    """Raise what Ctrl-C raises."""
    await turn.stream("It begins.")
    raise KeyboardInterrupt


async def threaded(request: Request, turn: AsyncTurn) -> None:
    """Wait for a thread that does not end."""
    await turn.stream("It begins.")
    await asyncio.to_thread(time.sleep, 20)
