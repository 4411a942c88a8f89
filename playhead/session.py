"""Sessions, as a program holds them: the blocking half of the public page."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self

from playhead.errors import PlayheadError, SessionBusy, SessionNotFound, StoreReadOnly
from playhead.features import branch, trash
from playhead.features.channels import messages_after
from playhead.features.ingest import Ingested, SourceEvent, ingest
from playhead.features.jobs import abandon_job, begin_job, end_job
from playhead.features.listing import Listed, Page, Wanted, list_sessions, newest_key, refresh_listing
from playhead.features.live import Clock, Entropy, Live, all_events, position_at
from playhead.features.overview import Overview, overview
from playhead.features.pushing import Unpushed
from playhead.features.reading import DEFAULT_AGENT, View
from playhead.features.resume import Output, Resumed, replay, seal
from playhead.features.shared_state import publish, republish
from playhead.features.trash import PURGED as PURGED, Trashed, purged_name as purged_name
from playhead.features.triggers import (
    Firing,
    InForce,
    Trigger,
    TriggerTypes,
    add_trigger,
    firing_drafts,
    in_force,
    pass_over,
    remove_trigger,
)
from playhead.features.verify import Verified, verify
from playhead.model import path as paths
from playhead.model.event import SHARED_SCOPES, Draft, Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey, session_key, time_ordered_id
from playhead.model.path import Branch, Ranges
from playhead.search.find import Found, Narrow, find
from playhead.stores.base import EVENTS_PAGE_MAX, Durability, Record, Store, Tip
from playhead.stores.listing import Progress, Refreshed
from playhead.stores.open import open_store
from playhead.turn import Parts, Turn, state_body
from playhead.views.fold import Fold
from playhead.views.summary import Summary
from playhead.views.timeline import TimelineRow, timeline
from playhead.views.transcript import transcript

LAST = ("@last", "last")
"""What `resume` and `get` take for the app's and user's session that was active last, unless one has that very id."""


def open(
    url: str, *, durability: Durability = "process", clock: Clock = time.time, entropy: Entropy = os.urandom
) -> Sessions:
    """Open the store that `url` names (`bundles:DIR`, `sqlite:FILE`, `memory:`), creating it where it is new.

    durability: `process` makes a returned append survive the death of the process; `power` also a loss of power, at
    each turn's end. Raises `InvalidName` for a URL that names no store, `NewerFormat` for a newer file.
    """
    return Sessions(open_store(url, durability=durability), clock=clock, entropy=entropy)


class Sessions:
    """All sessions of one store. Use it in a `with` block, or close it. Safe for any thread."""

    def __init__(self, store: Store, *, clock: Clock = time.time, entropy: Entropy = os.urandom) -> None:
        self.store = store
        self._clock = clock
        self._entropy = entropy
        self._unpushed = Unpushed()

    @property
    def url(self) -> str:
        """What opens this store again."""
        return self.store.url

    def create(
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
    ) -> Session:
        """Begin a session. Durable on return. Without an id it gets one that sorts by time.

        state: initial values of the state scope `session`. Raises `SessionExists` and `InvalidName`.
        """
        now = self._clock()
        key = session_key(id if id is not None else self._new_id(now), app=app, user=user)
        optional = {"config": config, "cwd": cwd, "origin": origin}
        body: dict[str, Any] = {"app": app, "user": user}
        body |= {name: value for name, value in optional.items() if value is not None}
        if state:
            body["state"] = state_body(state, scope="session")["delta"]
        drafts = [Draft("session_started", body, self._new_id(now), now)]
        changed: dict[str, Any] = {} if title is None else {"title": title}
        if labels:
            changed["labels"] = list(labels)
        if changed:
            drafts.append(Draft("session_changed", changed, self._new_id(now), now))
        self.store.create(key, drafts)
        return self._session(key, triggers, is_new=True)

    def get(
        self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER, triggers: TriggerTypes | None = None
    ) -> Session:
        """Open a session to read it or to append. Writes nothing. Raises `SessionNotFound`.

        The id is matched whole; `@last` is this app's and user's session that was active last.
        """
        return self._session(self._key(id, app, user), triggers)

    def resume(
        self,
        id: str,
        *,
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
        triggers: TriggerTypes | None = None,
        outputs: Sequence[Output] = (),
    ) -> Session:
        """Take a session up where it stopped, also after a crash.

        A message that was streaming comes back as far as it had come, marked `interrupted`; calls and jobs that were
        running are closed as interrupted and the agent is told; triggers come back through `triggers`; each output's
        `on_resume` gets the end of the transcript. What was done is in `session.resumed`.
        Raises `SessionNotFound`, or `SessionBusy` with the holder while somebody alive is in a turn.
        """
        session = self._session(self._key(id, app, user), triggers)
        session._take_up(outputs)
        return session

    def list(
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
        """Return a page of sessions, as they are now. Nothing is written to any session.

        Where looking through the names of a directory takes more than some milliseconds, as with tens of thousands of
        bundles, this process does so in a fifth of its time at the most: a file that was put there by hand may take
        that long to appear, or a refresh.

        query: words that are looked for in title, preview, agents, labels, directory, origin, config, node and group.
        status: also `running` while somebody alive is in a turn, and `unreadable`. since (inclusive) and until
        (exclusive): when it was active last, UTC seconds. sort: `last_active` or `created` begin with the newest,
        `title` with the first, `relevance` with what fits the query best; reverse turns the order around.

        A session that cannot be read is a row that says why. `next_cursor` of the page asks for the next one; it is
        None on the last. A session that is active meanwhile moves to the front of `last_active`, past the cursor; in
        the order of `created` none moves. refresh, full_rescan: see `refresh`. Raises `InvalidName` for an unknown sort
        and for a cursor of another order.
        """
        wanted = Wanted(
            app=app,
            user=user,
            query=query,
            status=status,
            agent=agent,
            cwd=cwd,
            label=label,
            origin=origin,
            config=config,
            config_type=config_type,
            node=node,
            group=group,
            since=since,
            until=until,
        )
        return list_sessions(
            self.store,
            wanted,
            sort=sort,
            is_reversed=reverse,
            limit=limit,
            cursor=cursor,
            refresh=refresh,
            full_rescan=full_rescan,
            clock=self._clock,
            entropy=self._entropy,
        )

    def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        """Compare every session with its row, and read those again that changed; with `full`, read all again.

        A list does not need it: it finds what Playhead wrote, and files that came or went, itself. on_progress is told
        how many of how many were looked at. Raises what is wrong where the store cannot be looked at; no row changed
        then.
        """
        return refresh_listing(self.store, full=full, clock=self._clock, entropy=self._entropy, on_progress=on_progress)

    def overview(self) -> Overview:
        """Return how many sessions there are, of which kinds and ages, and what they take on disk. Opens none, but for
        those in the trash."""
        return overview(self.store, now=self._clock(), clock=self._clock, entropy=self._entropy)

    def search(
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
        """Search every event of every session (or of one), best hits first. Any query is valid.

        The index is brought up to the last event first; the answer says up to which event it holds. since is inclusive,
        until exclusive, both UTC seconds. branch: `all`, or `live` for events on the current paths only.
        """
        keys = None
        if session is not None:
            keys = [self._key(session, app or DEFAULT_APP, user or DEFAULT_USER)]
        narrow = Narrow(agent, kind, role, tool, turn, since, until, branch)
        return find(
            self.store,
            query,
            keys=keys,
            narrow=narrow,
            live_path=self._live_path(),
            now=self._clock(),
            mode=mode,
            app=app,
            user=user,
            k=k,
        )

    def ingest(
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
        """Write what an importer read. Events that the log holds already are left alone: calling it again adds nothing.

        Raises `SessionBusy` while somebody is in a turn of the session.
        """
        key = session_key(id, app=app, user=user)
        body = {**(started or {}), "app": app, "user": user}
        return ingest(
            self.store,
            key,
            started=body,
            at=at,
            events=events,
            title=title,
            labels=labels,
            clock=self._clock,
            entropy=self._entropy,
        )

    def put_records(
        self,
        id: str,
        records: Iterable[Record],
        *,
        expected_seq: int,
        artifacts: Iterable[bytes] = (),
        app: str = DEFAULT_APP,
        user: str = DEFAULT_USER,
    ) -> Tip:
        """Write a log byte for byte as another store had it (`store.records`), and return where it ends then.

        expected_seq: 0 begins the session, else the seq at which its log must end. Every record is proved, hash
        included, a page at a time, so a long log need not be in memory. It is seen whole or not at all, and where
        anything is raised no event was written. While `records` are read nobody waits. Raises `InvalidEvent` with the
        seq that does not hold, `SessionExists`, `StaleWriter`, `SessionBusy` and `EventConflict`.
        """
        key = session_key(id, app=app, user=user)
        return self.store.put_records(key, records, expected_seq=expected_seq, artifacts=artifacts)

    def verify(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> Verified:
        """Check a session's chain, parents and snapshots. Reads all of it and writes nothing."""
        return verify(self.store, self._key(id, app, user))

    def delete(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> None:
        """Remove a session for good, with its artifacts and index. Raises `SessionNotFound` and `SessionBusy`.

        The id is matched whole, and `@last` is no id here. The store remembers that it was deleted, so that an import
        does not bring it back unasked.
        """
        trash.delete(self.store, session_key(id, app=app, user=user), clock=self._clock, entropy=self._entropy)

    # The trash.

    def trash(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> str:
        """Put a session into the trash, with its artifacts, and return the trash id that brings it back.

        It is in no list and no search then, and its id may be used again at once. Its forks stay as they are. An object
        that has it open can append no more (`SessionNotFound`). One that cannot be read can go as well, in a directory
        of bundles. Raises `SessionNotFound`, and `SessionBusy` while somebody alive is in a turn of it.

        The id is matched whole, and `@last` is no id here.
        """
        key = session_key(id, app=app, user=user)
        return trash.trash(self.store, key, clock=self._clock, entropy=self._entropy)

    def trashed(self) -> tuple[Trashed, ...]:
        """Return all that is in the trash, what was put there last first. No other list counts it."""
        return trash.trashed(self.store)

    def restore(self, trash_id: str, *, id: str | None = None) -> SessionKey:
        """Bring a session back as it was, under its own id or another one, and return its key.

        Raises `TrashNotFound`, and `SessionExists` where the id is taken; then it stays in the trash.
        """
        return trash.restore(self.store, trash_id, id=id)

    def purge(self, trash_id: str) -> None:
        """Remove a session of the trash for good. Raises `TrashNotFound`."""
        trash.purge(self.store, trash_id, clock=self._clock, entropy=self._entropy)

    def empty_trash(self, *, before: float | None = None) -> tuple[Trashed, ...]:
        """Remove all that is in the trash for good, or what was put there before a time (UTC seconds).

        Returns what this call removed; what somebody else purged or restored meanwhile is passed over. One after the
        other: killed in between, the rest is in the trash yet. One that cannot be removed keeps no other; what is wrong
        with the first of those is raised when all others are gone, and `trashed` says which are left.
        """
        return trash.empty(self.store, before=before, clock=self._clock, entropy=self._entropy)

    def was_removed(self, id: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> bool:
        """Return True for a session that somebody deleted, or put into the trash: no import brings it back unasked."""
        return trash.was_removed(self.store, session_key(id, app=app, user=user))

    def close(self) -> None:
        """Close every file, after the rows of sessions that appended are saved. Calling it twice is fine."""
        self._unpushed.push_all()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _live_path(self) -> Callable[[SessionKey], Ranges]:
        """Return a look-up of current paths that loads each session once."""

        @cache
        def live_path(key: SessionKey) -> Ranges:
            return position_at(self.store, key, self.store.tip(key).head).fold.path

        return live_path

    def _session(self, key: SessionKey, triggers: TriggerTypes | None, *, is_new: bool = False) -> Session:
        live = Live(self.store, key, clock=self._clock, entropy=self._entropy, unpushed=self._unpushed, is_new=is_new)
        return Session(live, triggers or TriggerTypes())

    def _key(self, id: str, app: str, user: str) -> SessionKey:
        key = session_key(id, app=app, user=user)
        if id not in LAST:
            return key
        with contextlib.suppress(SessionNotFound):
            self.store.tip(key)
            return key
        newest = newest_key(self.store, app=app, user=user, clock=self._clock, entropy=self._entropy)
        if newest is None:
            raise SessionNotFound(id, store=self.store.url)
        return newest

    def _new_id(self, now: float) -> str:
        return time_ordered_id(now, self._entropy(6))


class Session(View):
    """One session, open. Safe for any thread; verbs take turns.

    `seq` is the revision that this object knows. An append that comes after somebody else's raises `StaleWriter`;
    `refresh` and retry. Facts (title, labels, shared state) never conflict.
    """

    def __init__(self, live: Live, triggers: TriggerTypes) -> None:
        super().__init__(live.store, live.key, live.shown(), None)
        self._live = live
        self._trigger_types = triggers
        self.resumed = Resumed()

    @property
    def _fold(self) -> Fold:
        return self._live.shown()

    @property
    def seq(self) -> int:
        """Seq of the last event that this object knows: the session's revision."""
        return self._live.seq

    @property
    def title(self) -> str | None:
        """The title as last set, or None."""
        return self.facts.title

    # Recording.

    def append(
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
        """Append one event and return it. Durable on return; the same id again returns the stored event.

        Raises `StaleWriter`, `SessionBusy` while somebody else is in a turn, `EventConflict` and `InvalidEvent`;
        nothing was written then.
        """
        return self._live.append([self._live.draft(kind, body, agent=agent, turn=turn, scope=scope, id=id, at=at)])[0]

    def append_all(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append events in one transaction: all of them, or none."""
        return self._live.append(drafts)

    def turn(
        self,
        prompt: Parts | None = None,
        *,
        cause: str = "user",
        agent: str = DEFAULT_AGENT,
        id: str | None = None,
        label: str = "",
    ) -> Turn:
        """Begin a turn: take the lease and record the prompt, which is durable on return. Use it in a `with` block.

        cause: `user`, `trigger`, `channel` or `resume`. label: how others are told who is in the turn. What a dead
        holder left open is closed first. Raises `SessionBusy` with the holder.
        """
        return Turn.begin(self._live, prompt, cause=cause, agent=agent, label=label, id=id)

    def fire(
        self, trigger: str, firing: Firing, *, expected_seq: int, agent: str = DEFAULT_AGENT, label: str = ""
    ) -> Turn:
        """Begin the turn of a trigger that fired. Use it in a `with` block.

        The turn's beginning, `trigger_fired` and what the trigger is from now on are one append, so that a crash leaves
        all of them or none: an occasion fires once, never twice and never not at all.

        expected_seq: the revision that the firing was found at. Raises `StaleWriter` where the session has moved on
        from there, and `SessionBusy`; no turn has begun then. `StaleWriter` also comes where a path that was left since
        has this occasion already: the trigger has moved on without a turn, and one looks again.
        """
        live, types = self._live, self._trigger_types
        pass_over(live, trigger, types, firing, expected_seq=expected_seq)

        def first(turn: str) -> list[Draft]:
            return firing_drafts(live, trigger, types, firing, agent=agent, turn=turn)

        return Turn.begin(
            live, None, cause=firing.cause, agent=agent, label=label, first=first, expected_seq=expected_seq
        )

    def begin_job(
        self,
        name: str,
        *,
        args: Any = None,
        kind: str = "background",
        agent: str = DEFAULT_AGENT,
        id: str | None = None,
    ) -> Event:
        """Record that a job began that may outlive the turn, and return the event, for `end_job`.

        While this object has not ended it and its store is open, nobody's turn or resume closes it. A crash closes it
        as interrupted.
        """
        job = id or f"job-{self._live.new_id()}"
        return begin_job(self._live, job, name=name, args=args, kind=kind, agent=agent)

    def end_job(
        self,
        begun: Event,
        status: str,
        *,
        result: Any = None,
        error: str | None = None,
        notice: str | None = None,
        is_awaited: bool = False,
    ) -> Event:
        """Record how a job ended: `completed`, `failed` or `cancelled`. Durable on return.

        notice: what the agent is told of it, in the same append. is_awaited: it has the result already, and is told
        only where another process took the job for dead. Raises `SessionBusy`; nothing was written then.
        """
        return end_job(self._live, begun, status, result=result, error=error, notice=notice, is_awaited=is_awaited)

    def abandon_job(self, begun: Event) -> None:
        """Leave a job whose end cannot be recorded: the next turn or resume closes it as interrupted."""
        abandon_job(self._live, begun)

    def set_state(self, values: Mapping[str, Any], *, scope: str = "session", removed: Sequence[str] = ()) -> Event:
        """Record state: `session` and `agent:NAME` on the path, `user` and `app` for every session they concern.

        Keys that start with `temp:` are left out.
        """
        draft = self._live.draft("state_changed", state_body(values, scope=scope, removed=removed))
        if scope not in SHARED_SCOPES:
            return self._live.append([draft])[0]
        event = self._live.append_fact(draft)
        publish(self._store, self.key, event)
        return event

    def send(
        self, channel: str, content: Any, *, sender: str, reply_to: str | None = None, turn: str | None = None
    ) -> Event:
        """Record a message on a channel."""
        body = {"channel": channel, "sender": sender, "content": content}
        return self.append(
            "channel_message", body | ({"reply_to": reply_to} if reply_to else {}), agent=sender, turn=turn
        )

    def save_artifact(
        self, name: str, data: bytes, *, media_type: str = "application/octet-stream", turn: str | None = None
    ) -> Event:
        """Keep bytes beside the session and record them. The bytes are written first, atomically, under their hash."""
        ref = self._store.artifacts.put(self.key, data)
        seq = self._fold.slots.get(f"art:{name}")
        known = self.event(seq).body.get("version") if seq is not None else None
        version = known + 1 if isinstance(known, int) else 1
        body = {"name": name, "version": version, "media_type": media_type, "size": ref.size, "hash": ref.hash}
        return self.append("artifact_saved", body, turn=turn)

    def add_trigger(self, trigger: Trigger, *, id: str | None = None, prefix: str = "", count_max: int = 0) -> str:
        """Record a trigger, so that `resume` brings it back, and return its id. Its type must be registered.

        One in force under the same id is replaced. prefix: without an id, it gets this and a number that no other in
        force has. Raises `InvalidTrigger` where `count_max` are in force already (0: there is no limit).
        """
        return add_trigger(self._live, self._trigger_types, trigger, id=id, prefix=prefix, count_max=count_max)

    def remove_trigger(self, id: str) -> Event:
        """Record that a trigger is gone. Raises `InvalidName` where none with this id is in force."""
        return remove_trigger(self._live, id)

    def messages(self, channel: str, *, after: str, limit: int = 100) -> list[Event]:
        """Return the first messages of a channel on the path after an event, oldest first, `limit` at most.

        after: the event's id. Where nothing came since, nothing is read. Raises `EventNotFound`.
        """
        return messages_after(self._live, channel, after=after, limit=limit)

    def triggers(self) -> InForce:
        """Return the triggers in force on the path, those that cannot be built again, and at which revision it holds.

        `refresh` first to see what other processes did.
        """
        return in_force(self._live, self._trigger_types)

    # Facts about the session.

    def rename(self, title: str) -> Event:
        """Set the title. It holds on every path, and survives rewinds."""
        return self._change({"title": title})

    def label(self, *labels: str) -> Event:
        """Set the labels, in place of those it had."""
        return self._change({"labels": list(labels)})

    def set_status(self, status: str) -> Event:
        """Set the status that lists show (`open`, `archived`, …)."""
        return self._change({"status": status})

    def _change(self, body: dict[str, Any]) -> Event:
        event = self._live.append_fact(self._live.draft("session_changed", body))
        self._live.save_caches()
        return event

    # Branches and time.

    def rewind(self, *, turn: int | None = None, to: int | None = None, why: str = "rewind") -> Event:
        """Move the head back: `turn=3` hides turn 3 and all after it (-1 is the last one), `to` names an event.

        Nothing is deleted: `seek` to where the head was undoes it. Returns the `head_moved`. Raises `SessionBusy` while
        somebody, this object's own turn included, is in a turn.
        """
        if self._live.fence is not None:
            # The turn would go on under another prompt. Whoever holds it is this very object.
            raise SessionBusy(self.id, self._store.holder(self.key) or {})
        event = branch.rewind(self._live, turn=turn, to=to, why=why)
        self._live.save_caches()
        return event

    def seek(self, seq: int, *, why: str = "switch") -> Event:
        """Move the head to any event of any branch. Returns the `head_moved`."""
        return self.rewind(to=seq, why=why)

    def fork(self, *, at: int | None = None, id: str | None = None, title: str | None = None) -> Session:
        """Begin a new session with a copy of the path up to and including event `at` (the head by default).

        It is created whole, in one transaction, in the same store, app and user. This session does not change.
        """
        key = session_key(id if id is not None else self._live.new_id(), app=self.key.app, user=self.key.user)
        branch.fork(self._live, at=at, key=key, title=title)
        live = Live(
            self._store,
            key,
            clock=self._live.clock,
            entropy=self._live.entropy,
            unpushed=self._live.unpushed,
            is_new=True,
        )
        live.save_caches()
        return Session(live, self._trigger_types)

    def branches(self) -> list[Branch]:
        """Return every branch, the current one first, then the newest first. Reads the whole log."""
        return paths.branches(list(all_events(self._store, self.key)), self.head)

    def at(self, seq: int) -> View:
        """Return the session as of an event: conversation, transcript, state, interrupts and artifacts as they were."""
        event = branch.path_event_at(self._live, seq)
        return View(self._store, self.key, position_at(self._store, self.key, event.seq).fold, seq)

    # Reading.

    def event(self, seq: int) -> Event:
        """Return one event. Raises `EventNotFound`."""
        return branch.event_at(self._live, seq)

    def events(
        self,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = EVENTS_PAGE_MAX,
        kinds: Sequence[str] | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        """Return a page of the log, all branches: events with after < seq <= until, in order (or newest first)."""
        return self._store.events(
            self.key, after=after, until=until, limit=limit, kinds=kinds, newest_first=newest_first
        )

    def timeline(self, *, after: int = 0, limit: int = EVENTS_PAGE_MAX, by_time: bool = False) -> list[TimelineRow]:
        """Return a page of the timeline: a line for every event of the log, marked where it is on the path."""
        return timeline(self.events(after=after, limit=limit), self._fold.path, by_time=by_time)

    def summary(self) -> Summary:
        """Return the listing row."""
        return self._live.summary()

    def search(self, query: str, **options: Any) -> Found:
        """Search this session; see `Sessions.search`."""
        sessions = Sessions(self._store, clock=self._live.clock, entropy=self._live.entropy)
        return sessions.search(query, session=self.id, app=self.key.app, user=self.key.user, **options)

    def verify(self) -> Verified:
        """Check the chain, the parents and the snapshots. Reads the whole log and writes nothing."""
        return verify(self._store, self.key)

    def refresh(self) -> None:
        """Take in what others appended since this object last looked."""
        self._live.refresh()

    def close(self) -> None:
        """Save the listing row and a snapshot where they are behind. The log needs no closing."""
        with contextlib.suppress(StoreReadOnly):
            self._live.refresh()
            self._live.save_caches()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Nothing is lost where this fails, and what the block raised must not be hidden by it.
        with contextlib.suppress(*(() if error is None else (PlayheadError,)), SessionNotFound):
            self.close()

    def _take_up(self, outputs: Sequence[Output]) -> None:
        live = self._live
        with live.lock:
            lease = live.store.acquire(live.key, label="resume", at=live.clock())
            live.fence = lease.fence
            try:
                live.refresh()
                sealed, text, runs = seal(live)
                if sealed:
                    live.save_caches()
            finally:
                live.fence = None
                live.store.release(lease)
            republish(live.store, live.key)
            seqs = sorted(live.fold.named("trig").values())
            triggers, problems = self._trigger_types.restore(self._read(paths.of_seqs(seqs)))
        replay(live, outputs, transcript)
        self.resumed = Resumed(
            sealed=sealed,
            triggers=triggers,
            trigger_problems=tuple(problems),
            sub_agents=runs,
            recovered_text=text,
        )
