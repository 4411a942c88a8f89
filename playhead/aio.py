"""The async twins: one awaited line per verb, each run on a worker thread, with the same names and arguments.

There are no decisions here; `session.py` and `turn.py` have them all. The verbs of one open session take turns on one
worker thread of its own, so a long search over all sessions never holds up a turn, and nothing blocks the event loop.

What reads the store is awaited here, also where the blocking twin has a property for it.

A cancelled call may still land: its thread goes on. Event ids make a retry harmless. A turn never stays open for it:
one that began for a cancelled call is ended, and one that is left by cancelling ends before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from playhead.features.ingest import Ingested, SourceEvent
from playhead.features.listing import Listed, Page
from playhead.features.live import Clock, Entropy
from playhead.features.overview import Overview
from playhead.features.reading import DEFAULT_AGENT, View
from playhead.features.resume import Output, Resumed
from playhead.features.trash import Trashed
from playhead.features.triggers import Firing, InForce, Trigger, TriggerTypes
from playhead.features.verify import Verified
from playhead.model.event import Draft, Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.model.path import Branch, Ranges
from playhead.search.find import Found
from playhead.session import Session, Sessions
from playhead.stores.base import EVENTS_PAGE_MAX, Durability, Record, Tip
from playhead.stores.listing import Progress, Refreshed
from playhead.stores.open import open_store
from playhead.turn import Job, Parts, Speaker, SubAgent, ToolCall, Turn
from playhead.views.conversation import Message
from playhead.views.facts import Facts
from playhead.views.interrupts import Interrupt
from playhead.views.state import State
from playhead.views.summary import Summary
from playhead.views.timeline import TimelineRow
from playhead.views.transcript import Entry

P = ParamSpec("P")
T = TypeVar("T")


async def open_async(
    url: str, *, durability: Durability = "process", clock: Clock = time.time, entropy: Entropy = os.urandom
) -> AsyncSessions:
    """Open a store for use in an event loop; see `playhead.open`."""
    worker = _Worker()
    store = await worker.run(partial(open_store, durability=durability), url)
    return AsyncSessions(Sessions(store, clock=clock, entropy=entropy), worker)


@asynccontextmanager
async def lent(
    sessions: Sessions, session: Session, turn: Turn
) -> AsyncIterator[tuple[AsyncSessions, AsyncSession, AsyncTurn]]:
    """Lend the async twins of what a blocking program has open, for the length of a block.

    It stays the program's to end and to close. After the block no verb of the session is under way any more.
    """
    store_worker, session_worker = _Worker(), _Worker()
    try:
        yield (
            AsyncSessions(sessions, store_worker),
            AsyncSession(session, session_worker),
            AsyncTurn(turn, session_worker),
        )
    finally:
        # Verbs run in the order of their calls, so that after this one all are done, those that were cancelled too.
        await finished(session_worker.run(session_worker.stop))
        store_worker.stop()


class _Worker:
    """One thread that runs blocking verbs in the order of their calls. It begins with the first, also after `stop`."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, verb: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="playhead")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(verb, *args, **kwargs))

    def stop(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)


class AsyncSessions:
    """The async twin of `Sessions`. Use it in an `async with` block, or close it."""

    def __init__(self, sessions: Sessions, worker: _Worker) -> None:
        self._sessions = sessions
        self._worker = worker

    @property
    def url(self) -> str:
        return self._sessions.url

    async def run(self, function: Callable[Concatenate[Sessions, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the blocking `Sessions` (its first argument) on the worker thread."""
        return await self._worker.run(function, self._sessions, *args, **kwargs)

    async def create(
        self,
        id: str | None = None,
        *,
        title: str | None = None,
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
        config: Mapping[str, Any] | None = None,
        cwd: str | None = None,
        state: Mapping[str, Any] | None = None,
        labels: Sequence[str] = (),
        origin: str | None = None,
        triggers: TriggerTypes | None = None,
    ) -> AsyncSession:
        return AsyncSession(
            await self._worker.run(
                self._sessions.create,
                id,
                title=title,
                app=app,
                user=user,
                config=config,
                cwd=cwd,
                state=state,
                labels=labels,
                origin=origin,
                triggers=triggers,
            ),
            _Worker(),
        )

    async def get(
        self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER, triggers: TriggerTypes | None = None
    ) -> AsyncSession:
        return AsyncSession(
            await self._worker.run(self._sessions.get, id, app=app, user=user, triggers=triggers), _Worker()
        )

    async def resume(
        self,
        id: str,
        *,
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
        triggers: TriggerTypes | None = None,
        outputs: Sequence[Output] = (),
    ) -> AsyncSession:
        return AsyncSession(
            await self._worker.run(self._sessions.resume, id, app=app, user=user, triggers=triggers, outputs=outputs),
            _Worker(),
        )

    async def list(
        self,
        *,
        app: str | None = None,
        user: str | None = None,
        query: str | None = None,
        status: str | None = None,
        agent: str | None = None,
        label: str | None = None,
        cwd: str | None = None,
        origin: str | None = None,
        config: str | None = None,
        config_type: str | None = None,
        node: str | None = None,
        group: str | None = None,
        since: float | None = None,
        until: float | None = None,
        sort: str = "last_active",
        reverse: bool = False,
        limit: int = 50,
        cursor: str | None = None,
        refresh: bool = False,
        full_rescan: bool = False,
    ) -> Page[Listed]:
        return await self._worker.run(
            self._sessions.list,
            app=app,
            user=user,
            query=query,
            status=status,
            agent=agent,
            label=label,
            cwd=cwd,
            origin=origin,
            config=config,
            config_type=config_type,
            node=node,
            group=group,
            since=since,
            until=until,
            sort=sort,
            reverse=reverse,
            limit=limit,
            cursor=cursor,
            refresh=refresh,
            full_rescan=full_rescan,
        )

    async def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        return await self._worker.run(self._sessions.refresh, full=full, on_progress=on_progress)

    async def overview(self) -> Overview:
        return await self._worker.run(self._sessions.overview)

    async def search(
        self,
        query: str,
        *,
        session: str | None = None,
        app: str | None = None,
        user: str | None = None,
        mode: str = "auto",
        agent: str | None = None,
        kind: str | None = None,
        role: str | None = None,
        tool: str | None = None,
        turn: str | None = None,
        since: float | None = None,
        until: float | None = None,
        branch: str = "all",
        k: int = 20,
    ) -> Found:
        return await self._worker.run(
            self._sessions.search,
            query,
            session=session,
            app=app,
            user=user,
            mode=mode,
            agent=agent,
            kind=kind,
            role=role,
            tool=tool,
            turn=turn,
            since=since,
            until=until,
            branch=branch,
            k=k,
        )

    async def ingest(
        self,
        id: str,
        events: Sequence[SourceEvent],
        *,
        at: float,
        started: Mapping[str, Any] | None = None,
        title: str | None = None,
        labels: Sequence[str] = (),
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
    ) -> Ingested:
        return await self._worker.run(
            self._sessions.ingest, id, events, at=at, started=started, title=title, labels=labels, app=app, user=user
        )

    async def put_records(
        self,
        id: str,
        records: Iterable[Record],
        *,
        expected_seq: int,
        artifacts: Iterable[bytes] = (),
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
    ) -> Tip:
        return await self._worker.run(
            self._sessions.put_records,
            id,
            records,
            expected_seq=expected_seq,
            artifacts=artifacts,
            app=app,
            user=user,
        )

    async def verify(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> Verified:
        return await self._worker.run(self._sessions.verify, id, app=app, user=user)

    async def delete(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> None:
        await self._worker.run(self._sessions.delete, id, app=app, user=user)

    async def trash(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> str:
        return await self._worker.run(self._sessions.trash, id, app=app, user=user)

    async def trashed(self) -> tuple[Trashed, ...]:
        return await self._worker.run(self._sessions.trashed)

    async def restore(self, trash_id: str, *, id: str | None = None) -> SessionKey:
        return await self._worker.run(self._sessions.restore, trash_id, id=id)

    async def purge(self, trash_id: str) -> None:
        await self._worker.run(self._sessions.purge, trash_id)

    async def empty_trash(self, *, before: float | None = None) -> tuple[Trashed, ...]:
        return await self._worker.run(self._sessions.empty_trash, before=before)

    async def was_removed(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> bool:
        return await self._worker.run(self._sessions.was_removed, id, app=app, user=user)

    async def close(self) -> None:
        await self._worker.run(self._sessions.close)
        self._worker.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class AsyncView:
    """The async twin of `View`: a session as of one event."""

    def __init__(self, view: View, worker: _Worker) -> None:
        self._view = view
        self._worker = worker

    @property
    def key(self) -> SessionKey:
        return self._view.key

    @property
    def id(self) -> str:
        return self._view.id

    async def head(self) -> int:
        return await self._worker.run(lambda: self._view.head)

    async def turn_count(self) -> int:
        return await self._worker.run(lambda: self._view.turn_count)

    async def facts(self) -> Facts:
        return await self._worker.run(lambda: self._view.facts)

    async def positions(self) -> Ranges:
        return await self._worker.run(lambda: self._view.positions)

    async def path(self) -> list[Event]:
        return await self._worker.run(self._view.path)

    async def newest_events(self, count: int) -> list[Event]:
        return await self._worker.run(self._view.newest_events, count)

    async def conversation(self, agent: str = DEFAULT_AGENT, *, sealed: bool = True) -> list[Message]:
        return await self._worker.run(self._view.conversation, agent, sealed=sealed)

    async def transcript(
        self, agent: str = DEFAULT_AGENT, *, last: int | None = None, before: int | None = None, system: bool = False
    ) -> list[Entry]:
        return await self._worker.run(self._view.transcript, agent, last=last, before=before, system=system)

    async def state(self) -> State:
        return await self._worker.run(lambda: self._view.state)

    async def waiting(self) -> list[Interrupt]:
        return await self._worker.run(lambda: self._view.waiting)

    async def artifacts(self) -> dict[str, dict[str, Any]]:
        return await self._worker.run(self._view.artifacts)

    async def artifact(self, name: str) -> bytes:
        return await self._worker.run(self._view.artifact, name)

    async def channel(self, name: str, *, last: int = 100) -> list[Event]:
        return await self._worker.run(self._view.channel, name, last=last)


class AsyncSession(AsyncView):
    """The async twin of `Session`."""

    def __init__(self, session: Session, worker: _Worker) -> None:
        super().__init__(session, worker)
        self._session = session

    @property
    def resumed(self) -> Resumed:
        return self._session.resumed

    @property
    def seq(self) -> int:
        return self._session.seq

    async def title(self) -> str | None:
        return await self._worker.run(lambda: self._session.title)

    async def append(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        agent: str | None = None,
        turn: str | None = None,
        scope: str | None = None,
        id: str | None = None,
        at: float | None = None,
    ) -> Event:
        return await self._worker.run(
            self._session.append, kind, body, agent=agent, turn=turn, scope=scope, id=id, at=at
        )

    async def append_all(self, drafts: Sequence[Draft]) -> list[Event]:
        return await self._worker.run(self._session.append_all, drafts)

    async def turn(
        self,
        prompt: Parts | None = None,
        *,
        cause: str = "user",
        agent: str = DEFAULT_AGENT,
        id: str | None = None,
        label: str = "",
    ) -> AsyncTurn:
        begun = self._worker.run(self._session.turn, prompt, cause=cause, agent=agent, id=id, label=label)
        return AsyncTurn(await _begun(begun, self._worker), self._worker)

    async def fire(
        self, trigger: str, firing: Firing, *, expected_seq: int, agent: str = DEFAULT_AGENT, label: str = ""
    ) -> AsyncTurn:
        begun = self._worker.run(
            self._session.fire, trigger, firing, expected_seq=expected_seq, agent=agent, label=label
        )
        return AsyncTurn(await _begun(begun, self._worker), self._worker)

    async def begin_job(
        self,
        name: str,
        *,
        args: Any = None,
        kind: str = "background",
        agent: str = DEFAULT_AGENT,
        id: str | None = None,
    ) -> Event:
        return await self._worker.run(self._session.begin_job, name, args=args, kind=kind, agent=agent, id=id)

    async def end_job(
        self,
        begun: Event,
        status: str,
        *,
        result: Any = None,
        error: str | None = None,
        notice: str | None = None,
        is_awaited: bool = False,
    ) -> Event:
        return await self._worker.run(
            self._session.end_job, begun, status, result=result, error=error, notice=notice, is_awaited=is_awaited
        )

    async def abandon_job(self, begun: Event) -> None:
        await self._worker.run(self._session.abandon_job, begun)

    async def set_state(
        self, values: Mapping[str, Any], *, scope: str = "session", removed: Sequence[str] = ()
    ) -> Event:
        return await self._worker.run(self._session.set_state, values, scope=scope, removed=removed)

    async def send(
        self, channel: str, content: Any, *, sender: str, reply_to: str | None = None, turn: str | None = None
    ) -> Event:
        return await self._worker.run(self._session.send, channel, content, sender=sender, reply_to=reply_to, turn=turn)

    async def save_artifact(
        self, name: str, data: bytes, *, media_type: str = "application/octet-stream", turn: str | None = None
    ) -> Event:
        return await self._worker.run(self._session.save_artifact, name, data, media_type=media_type, turn=turn)

    async def add_trigger(
        self, trigger: Trigger, *, id: str | None = None, prefix: str = "", count_max: int = 0
    ) -> str:
        return await self._worker.run(self._session.add_trigger, trigger, id=id, prefix=prefix, count_max=count_max)

    async def remove_trigger(self, id: str) -> Event:
        return await self._worker.run(self._session.remove_trigger, id)

    async def messages(self, channel: str, *, after: str, limit: int = 100) -> list[Event]:
        return await self._worker.run(self._session.messages, channel, after=after, limit=limit)

    async def triggers(self) -> InForce:
        return await self._worker.run(self._session.triggers)

    async def rename(self, title: str) -> Event:
        return await self._worker.run(self._session.rename, title)

    async def label(self, *labels: str) -> Event:
        return await self._worker.run(self._session.label, *labels)

    async def set_status(self, status: str) -> Event:
        return await self._worker.run(self._session.set_status, status)

    async def rewind(self, *, turn: int | None = None, to: int | None = None, why: str = "rewind") -> Event:
        return await self._worker.run(self._session.rewind, turn=turn, to=to, why=why)

    async def seek(self, seq: int, *, why: str = "switch") -> Event:
        return await self._worker.run(self._session.seek, seq, why=why)

    async def fork(self, *, at: int | None = None, id: str | None = None, title: str | None = None) -> AsyncSession:
        return AsyncSession(await self._worker.run(self._session.fork, at=at, id=id, title=title), _Worker())

    async def branches(self) -> list[Branch]:
        return await self._worker.run(self._session.branches)

    async def at(self, seq: int) -> AsyncView:
        return AsyncView(await self._worker.run(self._session.at, seq), self._worker)

    async def event(self, seq: int) -> Event:
        return await self._worker.run(self._session.event, seq)

    async def events(
        self,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = EVENTS_PAGE_MAX,
        kinds: Sequence[str] | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        return await self._worker.run(
            self._session.events, after=after, until=until, limit=limit, kinds=kinds, newest_first=newest_first
        )

    async def timeline(
        self, *, after: int = 0, limit: int = EVENTS_PAGE_MAX, by_time: bool = False
    ) -> list[TimelineRow]:
        return await self._worker.run(self._session.timeline, after=after, limit=limit, by_time=by_time)

    async def summary(self) -> Summary:
        return await self._worker.run(self._session.summary)

    async def search(self, query: str, **options: Any) -> Found:
        return await self._worker.run(self._session.search, query, **options)

    async def verify(self) -> Verified:
        return await self._worker.run(self._session.verify)

    async def refresh(self) -> None:
        await self._worker.run(self._session.refresh)

    async def close(self) -> None:
        await self._worker.run(self._session.close)
        self._worker.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._worker.run(self._session.__exit__, kind, error, traceback)
        self._worker.stop()


class AsyncSpeaker:
    """The async twin of `Speaker`: what a turn and a sub-agent's run have in common."""

    def __init__(self, speaker: Speaker, worker: _Worker) -> None:
        self._speaker = speaker
        self._worker = worker

    @property
    def turn_id(self) -> str:
        return self._speaker.turn_id

    @property
    def agent(self) -> str:
        return self._speaker.agent

    @property
    def scope(self) -> str | None:
        return self._speaker.scope

    @property
    def is_open(self) -> bool:
        return self._speaker.is_open

    async def say(
        self,
        content: Parts,
        *,
        model: str | None = None,
        usage: Mapping[str, Any] | None = None,
        finish_reason: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Event:
        return await self._worker.run(
            self._speaker.say, content, model=model, usage=usage, finish_reason=finish_reason, extra=extra
        )

    async def think(self, text: str) -> Event:
        return await self._worker.run(self._speaker.think, text)

    async def stream(self, text: str, *, part: str = "text") -> None:
        await self._worker.run(self._speaker.stream, text, part=part)

    async def finish_stream(
        self,
        *,
        model: str | None = None,
        usage: Mapping[str, Any] | None = None,
        finish_reason: str | None = None,
        interrupted: bool = False,
        then: Parts = (),
    ) -> Event | None:
        return await self._worker.run(
            self._speaker.finish_stream,
            model=model,
            usage=usage,
            finish_reason=finish_reason,
            interrupted=interrupted,
            then=then,
        )

    async def tool_call(self, name: str, arguments: Any = None, *, id: str | None = None) -> ToolCall:
        return await self._worker.run(self._speaker.tool_call, name, arguments, id=id)

    async def tool_result(
        self, call: ToolCall | str, response: Any, *, is_error: bool = False, extra: Mapping[str, Any] | None = None
    ) -> Event:
        return await self._worker.run(self._speaker.tool_result, call, response, is_error=is_error, extra=extra)

    async def job(self, name: str, args: Any = None, *, kind: str = "background", id: str | None = None) -> AsyncJob:
        return AsyncJob(await self._worker.run(self._speaker.job, name, args, kind=kind, id=id), self._worker)

    async def subagent(self, name: str, task: Parts | None = None) -> AsyncSubAgent:
        return AsyncSubAgent(await self._worker.run(self._speaker.subagent, name, task), self._worker)

    async def system(self, text: str) -> Event:
        return await self._worker.run(self._speaker.system, text)

    async def inject(self, content: Parts, *, source: str, role: str = "user") -> Event:
        return await self._worker.run(self._speaker.inject, content, source=source, role=role)

    async def set_state(
        self, values: Mapping[str, Any], *, scope: str = "session", removed: Sequence[str] = ()
    ) -> Event:
        return await self._worker.run(self._speaker.set_state, values, scope=scope, removed=removed)

    async def fire(self, trigger: str, *, prompt: str | None = None, payload: Any = None) -> Event:
        return await self._worker.run(self._speaker.fire, trigger, prompt=prompt, payload=payload)

    async def note(self, name: str, **fields: Any) -> Event:
        return await self._worker.run(self._speaker.note, name, **fields)


class AsyncTurn(AsyncSpeaker):
    """The async twin of `Turn`. `async with await session.turn(…) as turn:` ends it as `with` does."""

    def __init__(self, turn: Turn, worker: _Worker) -> None:
        super().__init__(turn, worker)
        self._turn = turn

    async def number(self) -> int:
        return await self._worker.run(lambda: self._turn.number)

    async def end(
        self, status: str = "completed", *, usage: Mapping[str, Any] | None = None, error: str | None = None
    ) -> None:
        await self._worker.run(self._turn.end, status, usage=usage, error=error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await finished(self._worker.run(self._turn.__exit__, kind, error, traceback))


class AsyncSubAgent(AsyncSpeaker):
    """The async twin of `SubAgent`."""

    def __init__(self, run: SubAgent, worker: _Worker) -> None:
        super().__init__(run, worker)
        self._run = run

    @property
    def result(self) -> Any:
        return self._run.result

    async def end(self, status: str = "completed", result: Any = None) -> None:
        await self._worker.run(self._run.end, status, result)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await finished(self._worker.run(self._run.__exit__, kind, error, traceback))


class TurnBehind(AsyncTurn):
    """A turn with another behind it, or a sub-agent's run within that one: what it records is recorded there, and it
    ends as that does. What listens to a turn, or stands for one, is built on it."""

    def __init__(self, turn: AsyncTurn, *, run: AsyncSubAgent | None = None) -> None:
        super().__init__(turn._turn, turn._worker)
        self._behind: AsyncTurn | AsyncSubAgent = turn if run is None else run
        self._speaker = self._behind._speaker

    async def end(
        self, status: str = "completed", *, usage: Mapping[str, Any] | None = None, error: str | None = None
    ) -> None:
        if isinstance(self._behind, AsyncSubAgent):
            await self._behind.end(status, error)
        else:
            await self._behind.end(status, usage=usage, error=error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._behind.__aexit__(kind, error, traceback)


class AsyncJob:
    """The async twin of `Job`."""

    def __init__(self, job: Job, worker: _Worker) -> None:
        self._job = job
        self._worker = worker

    @property
    def id(self) -> str:
        return self._job.id

    async def done(self, result: Any = None) -> Event:
        return await self._worker.run(self._job.done, result)

    async def fail(self, error: str) -> Event:
        return await self._worker.run(self._job.fail, error)

    async def cancel(self) -> Event:
        return await self._worker.run(self._job.cancel)


async def _begun(call: Awaitable[Turn], worker: _Worker) -> Turn:
    """Wait for a turn to begin. Where the task is cancelled it may have begun all the same, and ends then: nobody else
    would end it, and its lease would be held as long as this process."""
    beginning = asyncio.ensure_future(call)
    try:
        return await finished(beginning)
    except asyncio.CancelledError:
        if not beginning.cancelled() and beginning.exception() is None:
            await finished(worker.run(beginning.result().end, "cancelled"))
        raise


async def finished(call: Awaitable[T]) -> T:
    """Wait for a call to its end, however often the task is cancelled meanwhile; the cancellation goes on then."""
    task = asyncio.ensure_future(call)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation from (None if task.cancelled() else task.exception())
    return task.result()
