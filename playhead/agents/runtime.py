"""A runtime: one agent at work in one open session, for prompts as they come and for triggers as they fire."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from playhead.agents.jobs import STOP_S, BackgroundJob, Jobs
from playhead.agents.protocol import Agent, Request, pieces_of
from playhead.agents.triggers import Look
from playhead.aio import AsyncSession, AsyncSessions, AsyncTurn, finished
from playhead.errors import PlayheadError, SessionBusy, StaleWriter, StoreClosed
from playhead.features.live import Clock
from playhead.features.reading import DEFAULT_AGENT
from playhead.features.triggers import Firing, InForce, Trigger

PROMPTS_MAX = 16
"""So many prompts wait for their turn; `answer` waits before it adds another."""

POLL_S = 1.0
"""So often the session, files and channels are looked at while nothing is to be done. A look at a session that nobody
changed reads where its log ends, and nothing else."""

BUSY_PAUSE_S = 0.5
"""So long a pause is made before a session that another process is in a turn of is tried again."""

PROBLEMS_MAX = 1_000
"""So many problems are remembered, so that each is told once."""

Sleep = Callable[[float], Awaitable[None]]
OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Happening:
    """What happened in a runtime, for whoever shows it to a person. text: a sentence.

    kind: `resumed` (triggers are in force from before), `fired` (a trigger did, and its turn has begun), `ended` (a
    turn, a prompt's as well), `busy` (another process is in a turn; it is tried again), `problem` (a trigger cannot be
    built or looked at, or its answer failed), `job` (one began or ended). details: JSON values.
    """

    kind: Literal["resumed", "fired", "ended", "busy", "problem", "job"]
    text: str
    trigger: str | None = None
    turn: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


OnEvent = Callable[[Happening], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """How a prompt was answered. status: how its turn ended (`completed`, `cancelled` where it was stopped …).
    turn: its id, None where it was stopped before it began."""

    text: str
    status: str
    turn: str | None


@dataclass(slots=True)
class _Work:
    """One thing to answer: a prompt, or the firing of a trigger as found at a revision of the session."""

    prompt: str
    done: asyncio.Future[Answered]
    trigger: str | None = None
    firing: Firing | None = None
    seq: int = 0
    turn: AsyncTurn | None = None
    said: list[str] = field(default_factory=list)


class Runtime:
    """Has an agent answer in a session, one turn at a time. Use it in an `async with` block.

    `answer` has a prompt answered. Between prompts the triggers in force on the path are watched, whoever set them, and
    each firing is answered in a turn of its own. The session has to be opened with the types of its triggers
    (`sessions.resume(id, triggers=trigger_types())`); what came back then goes on here.

    A firing and what the trigger is from then on are one append, together with the beginning of its turn. Killed before
    it, a process leaves the trigger as it was, and it fires when the session is resumed; killed after it, the firing is
    in the conversation and its turn is closed as interrupted like any other. It never fires twice, nor not at all.

    Jobs that the agent starts go on between turns and are cancelled when the block ends.

    on_text: is given each piece of an answer once it is recorded. on_event: is told what happens. Both are called on
    the event loop; what they raise fails the turn. label: how other processes are told who is in a turn.
    """

    def __init__(
        self,
        agent: Agent,
        sessions: AsyncSessions,
        session: AsyncSession,
        *,
        on_text: OnText | None = None,
        on_event: OnEvent | None = None,
        label: str = "",
        clock: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
        poll_s: float = POLL_S,
    ) -> None:
        self.agent = agent
        self.session = session
        self.jobs = Jobs(session, on_job=self._on_job)
        self._sessions = sessions
        self._on_text = on_text
        self._on_event = on_event
        self._label = label
        self._clock = clock
        self._sleep = sleep
        self._poll_s = poll_s
        self._prompts: asyncio.Queue[_Work] = asyncio.Queue(PROMPTS_MAX)
        self._came = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._answering: asyncio.Task[Answered] | None = None
        self._work: _Work | None = None
        self._force = InForce(-1)
        self._looks: dict[str, dict[str, Any]] = {}
        self._told: dict[tuple[str, str], None] = {}
        self._is_closed = False

    # Prompts.

    async def answer(self, prompt: str) -> Answered:
        """Have a prompt answered in a turn of its own, after what waits already, and return how it was.

        While another process is in a turn of the session it waits. Raises what the agent raised; the turn is recorded
        as failed then. Where the caller is cancelled, so is the turn.
        """
        self._need_open()
        work = _Work(prompt, asyncio.get_running_loop().create_future())
        await self._prompts.put(work)
        self._need_open()
        self._came.set()
        try:
            return await asyncio.shield(work.done)
        except asyncio.CancelledError:
            work.done.cancel()  # Before its turn came, that is enough.
            if self._work is work:
                self.stop_turn()
                await asyncio.wait([task for task in [self._answering] if task is not None])
            raise

    def stop_turn(self) -> bool:
        """Stop the answer that is going on: what was said is kept, and its turn ends as cancelled. False for none."""
        if self._answering is None or self._answering.done():
            return False
        self._answering.cancel()
        return True

    @property
    def triggers(self) -> dict[str, Trigger]:
        """The triggers in force when the session was looked at last: id to trigger."""
        return dict(self._force.triggers)

    # The block.

    async def __aenter__(self) -> Self:
        force = await self.session.triggers()
        if force.triggers:
            count = len(force.triggers)
            text = "1 trigger is in force." if count == 1 else f"{count} triggers are in force."
            self._tell(Happening("resumed", text, details={"triggers": sorted(force.triggers)}))
        self._take(force)
        self._loop = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._loop is not None:
                self._loop.cancel()
                await finished(asyncio.wait([self._loop]))
        finally:  # Also where the task that leaves the block is cancelled.
            self._close(StoreClosed("the runtime has ended"))
            await self.jobs.close()
        if self._loop is not None and not self._loop.cancelled() and error is None:
            self._loop.result()

    async def _run(self) -> None:
        """Answer prompts first, then what has fired, then wait; for as long as the block lasts."""
        try:
            while True:
                self._came.clear()
                if not self._prompts.empty():
                    work: _Work | None = self._prompts.get_nowait()
                else:
                    work = await self._fired()
                if work is None:
                    await self._rest()
                elif not work.done.done():
                    await self._do(work)
        except Exception as error:  # A listener raised. Whoever waits is told, and the block raises it at its end.
            self._close(error)
            raise

    def _close(self, error: Exception) -> None:
        """Take no more prompts, and let those who wait know."""
        self._is_closed = True
        while not self._prompts.empty():
            _settle(self._prompts.get_nowait(), error)

    async def _rest(self) -> None:
        """Wait until a prompt comes, or until it is time to look again."""
        now = self._clock()
        due = [at for trigger in self._force.triggers.values() if (at := _due_at(trigger)) is not None]
        pause_s = min([self._poll_s, *(at - now for at in due if at > now)])
        waiting = [asyncio.ensure_future(self._came.wait()), asyncio.ensure_future(self._sleep(pause_s))]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    # Triggers.

    async def _fired(self) -> _Work | None:
        """Look at the session as it is now, and return the first firing that is due."""
        try:
            await self.session.refresh()
            if self._force.seq != self.session.seq:
                self._take(await self.session.triggers())
        except PlayheadError as error:
            self._problem("", f"the session cannot be looked at: {error}")
            return None
        for id, trigger in self._force.triggers.items():
            set_by = self._force.set_by[id]
            looks = self._looks[set_by.id] = self._looks.get(set_by.id, {})
            look = Look(self._clock(), self.session, set_by, DEFAULT_AGENT, looks)
            firing = await self._firing(id, trigger, look)
            if firing is not None:
                return _Work(firing.prompt, asyncio.get_running_loop().create_future(), id, firing, self._force.seq)
        return None

    async def _firing(self, id: str, trigger: Trigger, look: Look) -> Firing | None:
        """Return what a trigger fires for. One that cannot be looked at is a problem to tell, and stops no other."""
        watched = getattr(trigger, "firing", None)
        if watched is None:
            self._problem(id, f"a runtime cannot tell when a {type(trigger).__name__} fires; the program has to")
            return None
        try:
            firing = await watched(look)
        except Exception as error:  # A program's own trigger may raise anything.
            self._problem(id, str(error) if isinstance(error, PlayheadError) else f"{type(error).__name__}: {error}")
            return None
        if firing is not None and not isinstance(firing, Firing):
            self._problem(id, f"it fired a {type(firing).__name__}, which is no Firing")
            return None
        return firing

    def _take(self, force: InForce) -> None:
        self._force = force
        in_force = {event.id for event in force.set_by.values()}
        self._looks = {id: looks for id, looks in self._looks.items() if id in in_force}
        for problem in force.problems:
            self._problem(problem.id, f"it did not come back ({problem.type}): {problem.reason}")

    # Answering.

    async def _do(self, work: _Work) -> None:
        """Do one thing, whatever comes of it; only the end of the block goes through."""
        self._work, self._answering = work, asyncio.ensure_future(self._answered(work))
        try:
            await asyncio.wait([self._answering])
        except asyncio.CancelledError:
            await finished(_stopped(work, self._answering))
            _settle(work, StoreClosed("the runtime has ended"))
            raise
        finally:
            answering, self._work, self._answering = self._answering, None, None
        if answering.cancelled():
            _settle(work, Answered("".join(work.said), "cancelled", work.turn.turn_id if work.turn else None))
        elif (error := answering.exception()) is None:
            _settle(work, answering.result())
        elif work.trigger is None:
            _settle(work, error)
        elif work.turn is not None or not isinstance(error, StaleWriter):
            # Where it was overtaken before its turn began, the next look finds what is still to be answered.
            self._problem(work.trigger, f"its answer failed: {type(error).__name__}: {error}", is_told_again=True)
            if work.turn is None:  # It could not even begin, and is still due.
                await self._sleep(self._poll_s)

    async def _answered(self, work: _Work) -> Answered:
        """Begin the turn once the session is free, have the agent answer in it, and end it."""
        turn = work.turn = await self._begun(work)
        request = Request(work.prompt, self._sessions, self.session, self.jobs, work.firing)
        status = "failed"
        try:
            async with turn:
                if work.firing is not None:
                    self._tell_fired(work, turn)
                async with aclosing(pieces_of(self.agent, request, turn)) as pieces:
                    async for text in pieces:
                        work.said.append(text)
                        if self._on_text is not None:
                            self._on_text(text)
                await self._reply(work, turn)
            # The agent may have ended it itself, as interrupted where it asks a person.
            ended = await self.session.events(kinds=["turn_ended"], newest_first=True, limit=1)
            status = str(ended[0].body.get("status"))
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            details = {"status": status, "cause": work.firing.cause if work.firing else "user"}
            self._tell(Happening("ended", f"The turn has ended: {status}.", work.trigger, turn.turn_id, details))
        return Answered("".join(work.said), status, turn.turn_id)

    async def _begun(self, work: _Work) -> AsyncTurn:
        is_told = False
        while True:
            try:
                if work.trigger is None or work.firing is None:
                    return await self.session.turn(work.prompt, label=self._label)
                return await self.session.fire(work.trigger, work.firing, expected_seq=work.seq, label=self._label)
            except SessionBusy as busy:
                # It waits for as long as somebody alive is in a turn, or until it is stopped.
                if not is_told:
                    self._tell(Happening("busy", f"{busy}.", work.trigger, details=busy.holder))
                is_told = True
                await self._sleep(BUSY_PAUSE_S)

    async def _reply(self, work: _Work, turn: AsyncTurn) -> None:
        """Send the answer on the channel that the trigger names, within the turn: not where the agent has ended it, as
        it does to ask a person, since the answer is still to come then."""
        text = "".join(work.said)
        if work.firing is not None and work.firing.reply is not None and text and turn.is_open:
            reply = work.firing.reply
            await self.session.send(reply.channel, text, sender=turn.agent, reply_to=reply.to, turn=turn.turn_id)

    # Telling.

    def _tell_fired(self, work: _Work, turn: AsyncTurn) -> None:
        assert work.firing is not None, "a trigger fired"
        kind = self._force.set_by[work.trigger or ""].body.get("type")
        details = {"type": kind, "words": work.firing.words, "payload": dict(work.firing.payload)}
        self._tell(Happening("fired", f"The {kind} {work.trigger} fired.", work.trigger, turn.turn_id, details))

    def _on_job(self, job: BackgroundJob) -> None:
        details = {"job": job.id, "name": job.name, "status": job.status, "error": job.error}
        self._tell(Happening("job", f"The job {job.name} is {job.status}.", details=details))

    def _problem(self, trigger: str, reason: str, *, is_told_again: bool = False) -> None:
        """Tell of a problem, once for each reason: a trigger is looked at again and again."""
        key = (trigger, reason)
        if key in self._told and not is_told_again:
            return
        if len(self._told) >= PROBLEMS_MAX:
            self._told.clear()
        self._told[key] = None
        what = f"Trigger {trigger}" if trigger else "Triggers"
        self._tell(Happening("problem", f"{what}: {reason}", trigger or None))

    def _tell(self, happening: Happening) -> None:
        if self._on_event is not None:
            self._on_event(happening)

    def _need_open(self) -> None:
        if self._loop is None or self._is_closed or self._loop.done():
            raise StoreClosed("the runtime is not running; use it in an `async with` block")


def _due_at(trigger: Trigger) -> float | None:
    with contextlib.suppress(Exception):  # A program's own trigger; looking at it tells what is wrong with it.
        due = trigger.due_at()  # type: ignore[attr-defined]
        return float(due) if isinstance(due, int | float) else None
    return None


async def _stopped(work: _Work, answering: asyncio.Task[Answered]) -> None:
    """Stop an answer. Where the agent does not stop within `STOP_S`, its turn ends without it: all that it would still
    record is refused then, and the session is free."""
    answering.cancel()
    await asyncio.wait([answering], timeout=STOP_S)
    if not answering.done():
        answering.add_done_callback(lambda late: late.cancelled() or late.exception())
        if work.turn is not None:
            with contextlib.suppress(PlayheadError):  # The next turn closes what cannot be ended here.
                await work.turn.end("cancelled")


def _settle(work: _Work, outcome: Answered | BaseException) -> None:
    """Let whoever waits for it know."""
    if work.done.done():
        return
    if isinstance(outcome, Answered):
        work.done.set_result(outcome)
    else:
        work.done.set_exception(outcome)
        work.done.exception()  # Nobody may wait for it any more.
