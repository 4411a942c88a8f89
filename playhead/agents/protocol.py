"""What an agent is to whoever runs it: a name, and a way to answer a prompt within a turn.

Whoever runs an agent begins the turn, which records the prompt, and ends it. The agent records in the turn all that it
does, and gives out the pieces of its answer as they come, each once it is recorded, so that nothing is shown that a
crash could take back. A framework that records by itself only gives out what is to be shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from playhead.aio import AsyncSession, AsyncSessions, AsyncTurn, lent
from playhead.model.body import parts_in
from playhead.model.event import Event
from playhead.model.parts import text_of
from playhead.session import Session, Sessions
from playhead.turn import Parts, Turn

PIECES_MAX = 100
"""So many pieces of a plain function's answer wait for a slow reader; then the function waits."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent is asked, and where. prompt: as the turn has recorded it. session: the one that the turn is in."""

    prompt: str
    sessions: AsyncSessions
    session: AsyncSession


class Agent(Protocol):
    """What answers prompts. One object may answer several at a time, each in a session of its own."""

    @property
    def name(self) -> str:
        """What people call it."""

    def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        """Yield the text of the answer piece by piece. What was yielded is recorded already.

        Cancelling the task, or closing the generator, stops it: what was said stays, and it ends no turn that it did
        not begin. It may end the turn itself where that is the point (a question to a person).
        """


async def answered(
    agent: Agent,
    sessions: AsyncSessions,
    session: AsyncSession,
    prompt: str,
    *,
    on_text: Callable[[str], None],
    label: str = "",
) -> AsyncTurn:
    """Have an agent answer a prompt in a turn of its own, and return the turn, which has ended.

    on_text is given each piece, on the event loop. label: how others are told who is in the turn. The turn ends as
    cancelled where the task is cancelled, and as failed where the agent or `on_text` raises. Raises `SessionBusy`.
    """
    async with await session.turn(prompt, label=label) as turn:
        async with aclosing(agent.answer(Request(prompt, sessions, session), turn)) as pieces:
            async for text in pieces:
                on_text(text)
    return turn


BlockingAnswer = Callable[[Sessions, Session, Turn, str], Generator[str]]
"""Answers a prompt in a turn that a blocking program has open: yields the pieces, and stops where it is closed."""


def for_blocking(agent: Agent) -> BlockingAnswer:
    """Return a function by which a program that holds the blocking `Sessions`, `Session` and `Turn` has it answer.

    It runs an event loop of its own, so it is not for use within one. Ctrl-C while it waits for the agent stops the
    agent, and `KeyboardInterrupt` goes on to the program, whose turn it is to end.
    """

    def answer(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
        with asyncio.Runner() as runner:
            pieces = _lent_to(agent, sessions, session, turn, prompt)
            try:
                while (text := runner.run(_next(pieces))) is not None:
                    yield text
            finally:
                # From the outside in: a loop that ends closes all generators at once, an outer one before its inner.
                runner.run(pieces.aclose())

    return answer


async def _lent_to(agent: Agent, sessions: Sessions, session: Session, turn: Turn, prompt: str) -> AsyncGenerator[str]:
    async with lent(sessions, session, turn) as (its_sessions, its_session, its_turn):
        async with aclosing(agent.answer(Request(prompt, its_sessions, its_session), its_turn)) as pieces:
            async for text in pieces:
                yield text


async def _next(pieces: AsyncGenerator[str]) -> str | None:
    return await anext(pieces, None)


PlainFunction = Callable[[Request, AsyncTurn], Awaitable[None]]
"""Answers by what it does with the turn: `await turn.stream(…)`, `await turn.say(…)`."""


def as_agent(function: PlainFunction, *, name: str | None = None) -> Agent:
    """Return an agent that answers with a plain async function. Its name is the function's unless another is given.

    The texts that the function streams or says in the turn are the pieces of the answer; those of a sub-agent are not.
    """
    return _FunctionAgent(function, name or str(getattr(function, "__name__", "agent")))


@dataclass(frozen=True, slots=True)
class _FunctionAgent:
    """A plain function as an agent."""

    function: PlainFunction
    name: str

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        pieces: asyncio.Queue[str] = asyncio.Queue(PIECES_MAX)
        working = asyncio.ensure_future(self.function(request, _HeardTurn(turn, pieces)))
        try:
            async with aclosing(_until_done(pieces, working)) as heard:
                async for text in heard:
                    yield text
            await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def _until_done(pieces: asyncio.Queue[str], working: asyncio.Future[None]) -> AsyncGenerator[str]:
    """Yield what is put into the queue, until the work is done and the queue is empty."""
    while not (working.done() and pieces.empty()):
        getting = asyncio.ensure_future(pieces.get())
        either: list[asyncio.Future[Any]] = [getting, working]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            # A piece that came with the very end is there only in the loop's next round.
            await asyncio.sleep(0)
            if getting.done():
                yield getting.result()
        finally:
            getting.cancel()


class _HeardTurn(AsyncTurn):
    """A turn whose texts, once recorded, also go into a queue."""

    def __init__(self, turn: AsyncTurn, pieces: asyncio.Queue[str]) -> None:
        super().__init__(turn._turn, turn._worker)
        self._pieces = pieces

    async def stream(self, text: str, *, part: str = "text") -> None:
        await super().stream(text, part=part)
        if part == "text" and text:
            await self._pieces.put(text)

    async def say(self, content: Parts, **details: Any) -> Event:
        event = await super().say(content, **details)
        if text := text_of(parts_in(event.body)):
            await self._pieces.put(text)
        return event
