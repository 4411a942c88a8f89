"""Time that only a test moves on: a clock, and a sleep that waits on it."""

from __future__ import annotations

import asyncio


class FakeTime:
    """A clock and a sleep for what takes both. `pass_by` moves time on and waits until everything rests again.

    What rests sleeps here: a runtime that has nothing to do. count is how often somebody went to sleep.
    """

    def __init__(self, now: float = 1_767_268_800.0) -> None:
        self.now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Event()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, waking))
        self._slept.set()
        try:
            await waking
        finally:
            self._sleepers = [(at, one) for at, one in self._sleepers if one is not waking]

    async def rests(self) -> None:
        """Wait until somebody goes to sleep, having looked at everything as it is now."""
        self._slept.clear()
        for _, waking in self._sleepers:
            if not waking.done():
                waking.set_result(None)
        await self._slept.wait()

    async def pass_by(self, seconds: float) -> None:
        self.now += seconds
        await self.rests()
