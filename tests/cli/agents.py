"""Agents for the tests of `run`, `chat` and `resume`, named there as `tests.cli.agents:NAME`: each answers in its own
way and records what it says."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress

from playhead import AsyncTurn
from playhead.agents.protocol import Request
from playhead.agents.triggers import Timer
from tests.cli.conftest import ESCAPES

WORDY = "The upload test times out after thirty seconds, so raise the limit to sixty and run it again please."


async def echo(request: Request, turn: AsyncTurn) -> None:
    """Give the prompt back in two pieces."""
    for piece in ("You said: ", request.prompt):
        await turn.stream(piece)


async def asking(request: Request, turn: AsyncTurn) -> None:
    """Ask a person, and end the turn until there is an answer."""
    await turn.say("I need to know one thing.")
    body = {"interrupt": "int-1", "reason": "input_required", "question": "Delete 14 files?"}
    await request.session.append("interrupt_requested", body, agent=turn.agent, turn=turn.turn_id)
    await turn.end("interrupted")


async def failing(request: Request, turn: AsyncTurn) -> None:
    """Fail half-way."""
    await turn.stream("It begins ")
    raise ConnectionError("the model did not answer")


async def giving_up(request: Request, turn: AsyncTurn) -> None:
    """End the turn as failed, and say why."""
    await turn.say("I cannot.")
    await turn.end("failed", error="the model is out of order")


class Interrupted:
    """Is interrupted from the keyboard half-way."""

    name = "interrupted"

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        await turn.stream("It begins ")
        yield "It begins "
        raise KeyboardInterrupt


interrupted = Interrupted()


async def talking(request: Request, turn: AsyncTurn) -> None:
    """Do what the prompt names: answer slowly, not at all, with tools, with escape sequences, or by an echo."""
    match request.prompt.split()[0]:
        case "slow":
            await turn.stream("It begins")
            await asyncio.sleep(60)
        case "stubborn":
            await turn.stream("It begins")
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
        case "fail":
            raise ConnectionError("no answer from the model")
        case "tools":
            await turn.think("I should look first.")
            await turn.stream("I look.")
            call = await turn.tool_call("run_tests", {"path": "tests/upload"})
            await turn.tool_result(call, {"failed": 1})
            async with await turn.subagent("researcher", "Look for earlier timeouts.") as run:
                await run.say("Nothing before March.")
            await turn.stream("It failed.")
        case "hostile":
            call = await turn.tool_call(f"tool {ESCAPES}", {"key": ESCAPES})
            await turn.tool_result(call, ESCAPES, is_error=True)
            await turn.stream(f"Done {ESCAPES}")
        case "timer":
            await request.session.add_trigger(Timer(prompt="tea is ready", at=0.0), id="tea")
            await turn.stream("I will.")
        case _:
            await turn.stream(f"You said: {request.prompt}.")


async def working(request: Request, turn: AsyncTurn) -> None:
    """Say something, use a tool, have a sub-agent look, and say more: long enough to be killed anywhere in it."""
    for number in range(8):
        for word in ("I ", "look ", "at ", f"case {number}. "):
            await turn.stream(word)
            await asyncio.sleep(0.002)
        call = await turn.tool_call("run_tests", {"case": number})
        await asyncio.sleep(0.002)
        await turn.tool_result(call, {"failed": number % 2})
    async with await turn.subagent("researcher", "Look for earlier timeouts.") as run:
        await run.stream("Nothing before March.")
        await asyncio.sleep(0.002)
    await turn.stream("That is all.")


async def leaving_a_job(request: Request, turn: AsyncTurn) -> None:
    """Begin a job that takes a little longer than the answer."""
    await request.jobs.start("thumbnails", asyncio.sleep(0.5))
    await turn.stream("It is begun.")


async def failing_job(request: Request, turn: AsyncTurn) -> None:
    """Begin a job that fails."""
    await request.jobs.start("thumbnails", _fail())
    await turn.stream("It is begun.")


async def _fail() -> None:
    raise ValueError("no picture there")


async def blocking(request: Request, turn: AsyncTurn) -> None:
    """Keep the whole event loop busy."""
    await turn.stream("It begins")
    while True:
        time.sleep(0.1)


async def wordy(request: Request, turn: AsyncTurn) -> None:
    """Say one long line."""
    for word in WORDY.split(" "):
        await turn.stream(f"{word} ")
