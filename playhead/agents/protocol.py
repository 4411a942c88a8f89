"""What an agent is to whoever runs it: a name, and a way to answer a prompt within a turn.

Whoever runs an agent begins the turn, which records the prompt, and ends it. The agent records in the turn all that it
does, and gives out the pieces of its answer as they come, each once it is recorded, so that nothing is shown that a
crash could take back. A framework that records by itself only gives out what is to be shown.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from playhead.agents.failing import failing_alone
from playhead.agents.jobs import RECORD_S, STOP_S, Jobs
from playhead.aio import AsyncSession, AsyncSessions, AsyncTurn, TurnBehind, lent
from playhead.features.triggers import Firing
from playhead.model.body import parts_in
from playhead.model.event import Event
from playhead.model.parts import text_of
from playhead.session import Session, Sessions
from playhead.turn import Parts, Turn

PIECES_MAX = 100
"""So many pieces of a plain function's answer wait for a slow reader; then the function waits."""


JOBS_PATIENCE_S = 30.0
"""Whoever asks for one answer alone waits so long, after it, for the jobs that it began; then they are cancelled."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an agent is asked, and where. prompt: as the turn has recorded it. session: the one that the turn is in.

    jobs: what starts work that goes on after the turn. firing: what a trigger fired for, None where a person asked.
    """

    prompt: str
    sessions: AsyncSessions
    session: AsyncSession
    jobs: Jobs = None  # type: ignore[assignment]  # Never None: whoever gives none gets those of the session.
    firing: Firing | None = None

    def __post_init__(self) -> None:
        if self.jobs is None:
            object.__setattr__(self, "jobs", Jobs(self.session))


class Agent(Protocol):
    """What answers prompts. One object may answer several at a time, each in a session of its own."""

    @property
    def name(self) -> str:
        """What people call it."""

    def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        """Yield the text of the answer piece by piece. What was yielded is recorded already.

        What came before is `request.session.conversation(turn.agent)`: an agent may also answer as a sub-agent, in a
        conversation of its own.

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

    Jobs that the agent began have ended on return: after the turn they have `JOBS_PATIENCE_S`, then they are cancelled,
    and at once where the turn did not complete.
    """
    request = Request(prompt, sessions, session)
    async with _jobs_of(request), await session.turn(prompt, label=label) as turn:
        async with aclosing(pieces_of(agent, request, turn)) as pieces:
            async for text in pieces:
                on_text(text)
    return turn


async def pieces_of(agent: Agent, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
    """Yield what an agent answers, and close the agent with it. What fails in the agent fails its turn and no more: an
    agent that calls `sys.exit`, or stops itself as if somebody had cancelled it, raises a `RuntimeError` here."""
    with failing_alone():
        async with aclosing(agent.answer(request, turn)) as pieces:
            async for text in pieces:
                yield text


@asynccontextmanager
async def _jobs_of(request: Request) -> AsyncIterator[None]:
    """End a request's jobs with the block: in their own time where it ends well, else at once."""
    patience_s = 0.0
    try:
        yield
        patience_s = JOBS_PATIENCE_S
    finally:
        await request.jobs.close(patience_s=patience_s)


async def run_subagent(agent: Agent, name: str, task: str, request: Request, turn: AsyncTurn) -> str:
    """Have an agent do a task as a sub-agent within a turn, and return its answer.

    What it does is recorded as it does it, under `AGENT/NAME:RUN` and in a scope of its own; the main conversation
    holds none of it. The run ends as the agent does: completed with its answer as result, failed where it raises, which
    goes through, cancelled with the task. A crash closes it as interrupted.
    """
    said: list[str] = []
    async with await turn.subagent(name, task) as run:
        its_request = Request(task, request.sessions, request.session, request.jobs)
        async with aclosing(pieces_of(agent, its_request, TurnBehind(turn, run=run))) as pieces:
            async for text in pieces:
                said.append(text)
        await run.end("completed", "".join(said))
    return "".join(said)


BlockingAnswer = Callable[[Sessions, Session, Turn, str], Generator[str]]
"""Answers a prompt in a turn that a blocking program has open: yields the pieces, and stops where it is closed."""


def for_blocking(agent: Agent) -> BlockingAnswer:
    """Return a function by which a program that holds the blocking `Sessions`, `Session` and `Turn` has it answer.

    It runs an event loop of its own, so it is not for use within one. Ctrl-C while it waits for the agent stops the
    agent, and `KeyboardInterrupt` goes on to the program, whose turn it is to end. Jobs that the agent began end with
    it, still within the turn: after the answer they have `JOBS_PATIENCE_S`, then they are cancelled.

    An agent that does not stop within `STOP_S`, or until a second Ctrl-C, is left where it is: it never goes on.
    """

    def answer(sessions: Sessions, session: Session, turn: Turn, prompt: str) -> Generator[str]:
        # A loop that no other code of the thread comes to see, so that it can be left behind.
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        driven = _Driven(agent, sessions, session, turn, prompt)
        try:
            while (text := runner.run(driven.next())) is not None:
                yield text
        finally:
            try:
                runner.run(driven.stop())
            finally:
                _close(runner.get_loop())

    return answer


class _Driven:
    """An agent's answer for a program without an event loop. It is one task, whatever interrupts the program, and goes
    on only where the program waits for the next piece."""

    def __init__(self, agent: Agent, sessions: Sessions, session: Session, turn: Turn, prompt: str) -> None:
        self._agent = agent
        self._prompt = prompt
        self._lent = partial(lent, sessions, session, turn)
        self._pieces: asyncio.Queue[str] = asyncio.Queue(1)
        self._task: asyncio.Task[None] | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._jobs: Jobs | None = None

    async def next(self) -> str | None:
        """Return the next piece, None at the end. Raises what the agent raised."""
        self._waiting = asyncio.current_task()
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        else:
            self._pieces.task_done()
        getting = asyncio.ensure_future(self._pieces.get())
        either: list[asyncio.Future[Any]] = [getting, self._task]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return getting.result() if getting.done() else self._task.result()
        finally:
            getting.cancel()

    async def stop(self) -> None:
        """Stop it where it has not ended, and all else that runs in the loop, and wait for that; not for ever."""
        if self._waiting is not None:
            self._waiting.cancel()  # It is still there where the loop was broken out of.
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_S)
            if not self._task.done() and self._jobs is not None and self._jobs.running:
                await asyncio.wait([self._task], timeout=STOP_S + RECORD_S)
        others = asyncio.all_tasks() - {asyncio.current_task(), self._task}
        for other in others:
            other.cancel()
        if others:
            await asyncio.wait(others, timeout=STOP_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.get_running_loop().shutdown_asyncgens(), STOP_S)

    async def _work(self) -> None:
        async with self._lent() as (sessions, session, turn):
            request = Request(self._prompt, sessions, session)
            self._jobs = request.jobs
            async with _jobs_of(request), aclosing(pieces_of(self._agent, request, turn)) as pieces:
                async for text in pieces:
                    await self._pieces.put(text)
                    await self._pieces.join()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop, also with tasks in it that do not stop: nothing of them is told, and they are kept, since one that
    is thrown away runs once more. Threads that an agent began are not waited for."""
    left = asyncio.all_tasks(loop)
    if left:
        _LEFT_BEHIND.extend(left)
        loop.set_exception_handler(lambda loop, context: None)
    loop.close()


_LEFT_BEHIND: list[asyncio.Task[Any]] = []
"""Tasks of agents that did not stop."""


PlainFunction = Callable[[Request, AsyncTurn], Awaitable[Any]]
"""Answers by what it does with the turn: `await turn.stream(…)`, `await turn.say(…)`. What it returns is no answer."""


def as_agent(function: PlainFunction, *, name: str | None = None) -> Agent:
    """Return an agent that answers with a plain async function. Its name is the function's unless another is given.

    The texts that the function streams or says in the turn are the pieces of the answer; those of a sub-agent are not.
    A text (or any other result) that it returns and has not said is none: its turn fails with a `TypeError` that says
    so. Raises `TypeError` for what is no such function.
    """
    _check_function(function)
    return _FunctionAgent(function, name or str(getattr(function, "__name__", "agent")))


def _check_function(function: Any) -> None:
    """Raise `TypeError` where a function cannot answer, with what to write instead."""
    name = str(getattr(function, "__name__", type(function).__name__))
    shape = "async def answer(request, turn)"
    if not callable(function):
        raise TypeError(f"an agent's function is such as `{shape}`, not {name}")
    called = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    if inspect.isasyncgenfunction(called):
        raise TypeError(f"{name} yields; an agent's function says what it has to say with `await turn.stream(text)`")
    if not inspect.iscoroutinefunction(called):
        raise TypeError(f"{name} is not async; an agent's function is such as `{shape}`")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise TypeError(f"{name} does not take a request and a turn ({error}); write `{shape}`") from None


@dataclass(frozen=True, slots=True)
class _FunctionAgent:
    """A plain function as an agent."""

    function: PlainFunction
    name: str

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        pieces: asyncio.Queue[str] = asyncio.Queue(PIECES_MAX)
        working = asyncio.ensure_future(self._work(request, _HeardTurn(turn, pieces)))
        try:
            async with aclosing(_until_done(pieces, working)) as heard:
                async for text in heard:
                    yield text
            await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _work(self, request: Request, turn: _HeardTurn) -> None:
        with failing_alone():
            result = await self.function(request, turn)
        # Whoever forgets to say it finds an empty answer, and no reason. An event is what the verbs of a turn return.
        if result is not None and not isinstance(result, Event) and not turn.has_spoken:
            what = "text" if isinstance(result, str) else type(result).__name__
            raise TypeError(
                f"{self.name} returned {what} but said nothing: an answer is what it says, await turn.say(…)"
            )


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


class _HeardTurn(TurnBehind):
    """A turn whose texts, once recorded, also go into a queue. has_spoken: something was streamed or said."""

    def __init__(self, turn: AsyncTurn, pieces: asyncio.Queue[str]) -> None:
        super().__init__(turn)
        self._pieces = pieces
        self.has_spoken = False

    async def stream(self, text: str, *, part: str = "text") -> None:
        await super().stream(text, part=part)
        self.has_spoken = self.has_spoken or bool(text)
        if part == "text" and text:
            await self._pieces.put(text)

    async def say(self, content: Parts, **details: Any) -> Event:
        event = await super().say(content, **details)
        self.has_spoken = True
        if text := text_of(parts_in(event.body)):
            await self._pieces.put(text)
        return event
