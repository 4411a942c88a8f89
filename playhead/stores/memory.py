"""The store in memory: the model that every other store is held against, and a place for sessions that nobody keeps.

It is the promises of `stores/base.py` in their plainest form: lists and dictionaries under one lock. Its logs are
hash-chained like any other. Nothing outlives `close`, and a lease is held until it is released, since its holder cannot
die alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from playhead.errors import (
    ArtifactDamaged,
    ArtifactNotFound,
    EventConflict,
    EventNotFound,
    InvalidEvent,
    InvalidName,
    LeaseLost,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StaleWriter,
    StoreClosed,
    StoreUnavailable,
    TrashNotFound,
)
from playhead.model import codec, path as paths
from playhead.model.event import Draft, Event, check_draft, is_fact, redacted_body
from playhead.model.ids import SessionKey, check_name
from playhead.model.path import Ranges
from playhead.model.snapshot import Snapshot, is_usable
from playhead.stores.base import (
    EVENTS_PAGE_MAX,
    ROWS_PAGE_MAX,
    ArtifactRef,
    Durability,
    Lease,
    LeftStream,
    Record,
    SessionRow,
    TextFilter,
    TextMatch,
    TextRow,
    Tip,
    TrashedRow,
)
from playhead.stores.memory_listing import MemoryListing
from playhead.stores.named_queries import named_queries
from playhead.stores.names import check_trash_id, trash_key
from playhead.stores.records import EMPTY_TIP, Continuation
from playhead.views.summary import Summary

NOTE_NAME_CHARS_MAX = 8_192
"""Longest topic, name or id of a note; a path of a source file is the longest that there is."""

_Sound = tuple[Draft, str]
"""A draft that can be stored, and the text of its body."""


class MemoryStore:
    """A `Store` whose sessions last as long as it is open. Safe for any thread; calls take turns."""

    def __init__(
        self,
        *,
        url: str = "memory:",
        durability: Durability = "process",
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.url = url
        self.durability: Durability = durability
        self.streams = _Streams(self)
        self.artifacts = _Artifacts(self)
        self.notes = _Notes(self)
        self.text = _TextIndex(self)
        self.listing = MemoryListing(self._opened, lambda: self._sessions)
        self._entropy = entropy
        self._lock = threading.RLock()
        self._is_open = True
        self._sessions: dict[SessionKey, _Session] = {}
        self._trash: dict[str, tuple[SessionKey, float, _Session]] = {}
        # One count for all sessions: a fence given out before a session was deleted is worth nothing in a new one.
        self._fences = itertools.count(1)

    def create(self, key: SessionKey, drafts: Sequence[Draft], *, artifacts: Iterable[bytes] = ()) -> list[Event]:
        sound, kept = [_sound(draft) for draft in drafts], list(artifacts)
        with self._opened():
            if not drafts or drafts[0].kind != "session_started":
                raise InvalidEvent(f"session {key.id!r} must begin with a session_started")
            if key in self._sessions:
                raise SessionExists(key.id)
            session = _Session(key)
            session.stored(sound)
            events = session.take(self._staged(session, sound))
            self._sessions[key] = session
            for data in kept:
                self.artifacts.put(key, data)
            return events

    def append(
        self, key: SessionKey, drafts: Sequence[Draft], *, expected_seq: int | None, fence: int | None = None
    ) -> list[Event]:
        if expected_seq is None and fence is None:
            raise ValueError("an append needs the seq that it expects the log to end at, or the fence of a lease")
        with self._session(key) as session:
            sound = [_sound(draft) for draft in drafts]
            stored = session.stored(sound)
            if stored is not None:
                return stored
            session.check_lease(drafts, fence)
            if fence is None and expected_seq is not None and expected_seq != session.seq:
                raise StaleWriter(key.id, expected_seq=expected_seq, actual_seq=session.seq)
            return session.take(self._staged(session, sound))

    def put_records(
        self, key: SessionKey, records: Iterable[Record], *, expected_seq: int, artifacts: Iterable[bytes] = ()
    ) -> Tip:
        with self._opened():
            session = self._to_go_on(key, expected_seq)
            start = session.tip() if session.records else EMPTY_TIP
        continuation = Continuation(start, is_on_path=session.is_on_path)
        taken = [continuation.take(record) for record in records]
        session.need_new_ids([record.id for record in taken])
        if expected_seq == 0 and not taken:
            raise InvalidEvent(f"session {key.id!r} must begin with a session_started")
        kept = list(artifacts)
        with self._opened():
            now = self._to_go_on(key, expected_seq)
            if expected_seq != 0 and now.tip().hash != start.hash:
                raise StoreUnavailable(f"session {key.id!r} was begun anew while records of it were read; read again")
            session = now
            if taken:
                session.take(taken)
            self._sessions[key] = session
            for data in kept:
                self.artifacts.put(key, data)
            return session.tip()

    def tip(self, key: SessionKey) -> Tip:
        with self._session(key) as session:
            return session.tip()

    def events(
        self,
        key: SessionKey,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = EVENTS_PAGE_MAX,
        kinds: Sequence[str] | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        with self._session(key) as session:
            stretch = session.records[max(after, 0) : session.seq if until is None else max(until, 0)]
            found = [record for record in stretch if kinds is None or record.kind in kinds]
            if newest_first:
                found.reverse()
            return [_event(record) for record in found[: _bounded(limit, EVENTS_PAGE_MAX)]]

    def events_at(self, key: SessionKey, positions: Ranges) -> list[Event]:
        with self._session(key) as session:
            for start, end in positions:
                # Looked at before the ranges are walked, so that a range without end costs nothing.
                if start <= end and (start < 1 or end > session.seq):
                    raise EventNotFound(key.id, start if start < 1 else end)
            return [_event(session.records[seq - 1]) for seq in paths.seqs(positions)]

    def tail(self, key: SessionKey, head: int) -> tuple[list[Snapshot], list[Event]]:
        with self._session(key) as session:
            chain: list[Snapshot] = []
            walked: list[Event] = []
            if head and not session.is_on_path(head):
                raise EventNotFound(key.id, head)
            seq = head
            while seq and not (chain := session.snapshot_chain(seq)):
                record = session.records[seq - 1]
                walked.append(_event(record))
                seq = record.parent
            walked.reverse()
            return chain, walked

    def facts(self, key: SessionKey, *, until: int | None = None) -> list[Event]:
        with self._session(key) as session:
            end = session.seq if until is None else until
            return [_event(record) for record in session.records if record.is_fact and record.seq <= end]

    def seq_of(self, key: SessionKey, ids: Iterable[str]) -> dict[str, int]:
        wanted = list(ids)
        with self._session(key) as session:
            return {id: session.seq_of[id] for id in wanted if id in session.seq_of}

    def records(self, key: SessionKey, *, after: int = 0, limit: int = EVENTS_PAGE_MAX) -> list[Record]:
        with self._session(key) as session:
            return session.records[max(after, 0) :][: _bounded(limit, EVENTS_PAGE_MAX)]

    def snapshot_seqs(self, key: SessionKey) -> list[int]:
        with self._session(key) as session:
            return sorted(session.snapshots)

    def save_snapshot(self, key: SessionKey, snapshot: Snapshot) -> None:
        with self._session(key) as session:
            if not session.is_on_path(snapshot.seq):
                raise EventNotFound(key.id, snapshot.seq)
            session.snapshots[snapshot.seq] = codec.encode_body(msgspec.structs.asdict(snapshot))

    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        with self._session(key) as session:
            if seq >= session.summary_seq:
                session.summary, session.summary_seq = summary, seq

    def sessions(
        self, *, app: str | None = None, user: str | None = None, after: SessionKey | None = None, limit: int = 100
    ) -> list[SessionRow]:
        with self._opened():
            keys = [
                key
                for key in sorted(self._sessions)
                if (app is None or key.app == app)
                and (user is None or key.user == user)
                and (after is None or key > after)
            ]
            return [self._sessions[key].row() for key in keys[: _bounded(limit, ROWS_PAGE_MAX)]]

    def acquire(self, key: SessionKey, *, label: str = "", at: float) -> Lease:
        with self._session(key) as session:
            if session.lease is not None:
                raise SessionBusy(key.id, session.lease.holder)
            holder = {"host": platform.node(), "pid": os.getpid(), "since": at}
            if label:
                holder["label"] = label
            session.fence = next(self._fences)
            session.lease = Lease(key=key, fence=session.fence, holder=holder)
            return Lease(key=key, fence=session.fence, holder=dict(holder))

    def release(self, lease: Lease) -> None:
        with self._opened():
            session = self._sessions.get(lease.key)
            if session is not None and session.lease is not None and session.lease.fence == lease.fence:
                session.lease = None

    def holder(self, key: SessionKey) -> dict[str, Any] | None:
        with self._session(key) as session:
            return None if session.lease is None else dict(session.lease.holder)

    def delete(self, key: SessionKey) -> None:
        with self._session(key) as session:
            if session.lease is not None:
                raise SessionBusy(key.id, session.lease.holder)
            self.text.drop(key)
            self.streams.forget(key)
            self.artifacts.forget(key)
            del self._sessions[key]

    def trash(self, key: SessionKey, *, trash_id: str, at: float) -> None:
        check_trash_id(trash_id)
        with self._session(key) as session:
            if session.lease is not None:
                raise SessionBusy(key.id, session.lease.holder)
            if trash_id in self._trash:
                raise InvalidName(f"the trash holds something by the id {trash_id!r} already")
            self.text.drop(key)
            self._move(key, trash_key(trash_id))
            self._trash[trash_id] = (key, at, self._sessions.pop(key))

    def trashed(self, *, after: str | None = None, limit: int = 100) -> list[TrashedRow]:
        with self._opened():
            ids = [trash_id for trash_id in sorted(self._trash) if after is None or trash_id > after]
            found = [(trash_id, *self._trash[trash_id]) for trash_id in ids[: _bounded(limit, ROWS_PAGE_MAX)]]
            return [TrashedRow(trash_id, key, at, one.seq, one.summary) for trash_id, key, at, one in found]

    def trashed_row(self, trash_id: str) -> TrashedRow:
        with self._opened():
            self._need_trashed(trash_id)
            key, at, one = self._trash[trash_id]
            return TrashedRow(trash_id, key, at, one.seq, one.summary)

    def is_trashed(self, key: SessionKey) -> bool:
        with self._opened():
            return any(of == key for of, _, _ in self._trash.values())

    def restore(self, trash_id: str, key: SessionKey) -> None:
        with self._opened():
            session = self._need_trashed(trash_id)
            if key in self._sessions:
                raise SessionExists(key.id)
            self._move(trash_key(trash_id), key)
            session.key = key
            self._sessions[key] = session
            del self._trash[trash_id]

    def purge(self, trash_id: str) -> None:
        with self._opened():
            self._need_trashed(trash_id)
            self.streams.forget(trash_key(trash_id))
            self.artifacts.forget(trash_key(trash_id))
            del self._trash[trash_id]

    def size_bytes(self) -> int:
        with self._opened():
            return 0

    def close(self) -> None:
        with self._lock:
            self._is_open = False
            self._sessions.clear()
            self._trash.clear()
            self.streams.forget()
            self.artifacts.forget()
            self.notes.forget()
            self.text.close()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        """Hold the store's lock for one call. Raises `StoreClosed`."""
        with self._lock:
            if not self._is_open:
                raise StoreClosed(f"the store {self.url} is closed")
            yield

    @contextlib.contextmanager
    def _session(self, key: SessionKey) -> Iterator[_Session]:
        """Hold the store's lock and hand out a session. Raises `StoreClosed`, `SessionNotFound`."""
        with self._opened():
            session = self._sessions.get(key)
            if session is None:
                raise SessionNotFound(key.id, store=self.url)
            yield session

    def _move(self, source: SessionKey, target: SessionKey) -> None:
        """Give what lies beside a session to another key."""
        self.streams.forget(target)
        self.artifacts.forget(target)
        self.streams.move(source, target)
        self.artifacts.move(source, target)

    def _need_trashed(self, trash_id: str) -> _Session:
        if trash_id not in self._trash:
            raise TrashNotFound(trash_id, store=self.url)
        return self._trash[trash_id][2]

    def _to_go_on(self, key: SessionKey, expected_seq: int) -> _Session:
        """Return the session whose log ends at `expected_seq` and may be written to; a new one for 0."""
        session = self._sessions.get(key)
        if expected_seq == 0:
            if session is not None:
                raise SessionExists(key.id)
            return _Session(key)
        if session is None:
            raise SessionNotFound(key.id, store=self.url)
        if session.lease is not None:
            raise SessionBusy(key.id, session.lease.holder)
        if session.seq != expected_seq:
            raise StaleWriter(key.id, expected_seq=expected_seq, actual_seq=session.seq)
        return session

    def _staged(self, session: _Session, drafts: Sequence[_Sound]) -> list[Record]:
        """Return the records that these drafts become at the end of a log. Nothing is changed, whatever is raised."""
        staged: list[Record] = []
        head, previous = session.head, session.hash
        for seq, (draft, body) in enumerate(drafts, session.seq + 1):
            parent = head if draft.parent is None else draft.parent
            if draft.parent is not None and not session.is_on_path(parent, staged):
                raise InvalidEvent(f"session {session.key.id!r}: the head cannot move to {parent}, no event on a path")
            salt = self._entropy(codec.SALT_BYTES)
            envelope = codec.draft_envelope(draft, seq=seq, parent=parent)
            previous = codec.chain_hash(previous, envelope, codec.body_digest(salt, body))
            staged.append(_record(draft, seq, parent, body, salt, previous))
            head = parent if staged[-1].is_fact else seq
        return staged


class _Session:
    """One log, and what lies beside it. Guarded by the store's lock."""

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.records: list[Record] = []
        self.seq_of: dict[str, int] = {}
        self.head = 0
        self.snapshots: dict[int, str] = {}
        self.summary: str | None = None
        self.summary_seq = 0
        self.kept: tuple[int, Summary | None, str | None] = (0, None, None)
        self.fence = 0
        self.lease: Lease | None = None
        self.indexed_seq = 0

    @property
    def seq(self) -> int:
        return len(self.records)

    @property
    def hash(self) -> bytes:
        return self.records[-1].hash if self.records else codec.FIRST_HASH

    def tip(self) -> Tip:
        last = self.records[-1]
        return Tip(seq=last.seq, head=self.head, at=last.at, hash=last.hash)

    def need_new_ids(self, ids: Sequence[str]) -> None:
        """Raise `EventConflict` for an id that is in the log, or stands here twice."""
        if len(set(ids)) < len(ids):
            raise EventConflict(self.key.id, ids, "an id stands twice in one batch")
        if known := [id for id in ids if id in self.seq_of]:
            raise EventConflict(self.key.id, known, "other events go by them")

    def take(self, records: list[Record]) -> list[Event]:
        """Add records at the end of the log and return them as events."""
        events = [_event(record) for record in records]
        self.records.extend(records)
        self.seq_of.update((record.id, record.seq) for record in records)
        self.head = records[-1].parent if records[-1].is_fact else records[-1].seq
        return events

    def stored(self, drafts: Sequence[_Sound]) -> list[Event] | None:
        """Return the events that an earlier append of these drafts wrote, or None where their ids are all new.

        Raises `EventConflict` for anything in between.
        """
        ids = [draft.id for draft, _ in drafts]
        if len(set(ids)) < len(ids):
            raise EventConflict(self.key.id, ids, "an id stands twice in one batch")
        known = [id for id in ids if id in self.seq_of]
        if drafts and not known:
            return None
        if len(known) < len(ids):
            raise EventConflict(self.key.id, known, "other events of the batch are not")
        records = [self.records[self.seq_of[id] - 1] for id in ids]
        changed = [
            draft.id
            for (draft, body), record in zip(drafts, records, strict=True)
            if (draft.kind, body) != (record.kind, record.body)
        ]
        if changed:
            raise EventConflict(self.key.id, changed, "with another kind or body")
        return [_event(record) for record in records]

    def check_lease(self, drafts: Sequence[Draft], fence: int | None) -> None:
        """Raise `LeaseLost` or `SessionBusy` where the lease forbids appending these."""
        if fence is not None:
            if self.lease is None or self.lease.fence != fence:
                raise LeaseLost(self.key.id, fence=fence, current_fence=self.fence)
        elif self.lease is not None and any(_needs_lease(draft) for draft in drafts):
            raise SessionBusy(self.key.id, self.lease.holder)

    def is_on_path(self, seq: int, staged: Sequence[Record] = ()) -> bool:
        """Return True for an event of the log, or of the records about to follow it, that is no fact."""
        if self.seq < seq <= self.seq + len(staged):
            return not staged[seq - self.seq - 1].is_fact
        return 1 <= seq <= self.seq and not self.records[seq - 1].is_fact

    def snapshot_chain(self, seq: int) -> list[Snapshot]:
        """Return the snapshot at `seq` after those it builds on; `[]` where there is none, or none that can be used."""
        chain: list[Snapshot] = []
        while seq in self.snapshots:
            chain.insert(0, msgspec.convert(codec.decode_body(self.snapshots[seq]), Snapshot))
            if chain[0].base_seq >= seq:
                break
            seq = chain[0].base_seq
        return chain if is_usable(chain) else []

    def row(self) -> SessionRow:
        """Return the session's row in a listing."""
        last = self.records[-1]
        return SessionRow(key=self.key, seq=last.seq, at=last.at, summary=self.summary, summary_seq=self.summary_seq)


class _Streams:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._left: dict[SessionKey, dict[str, tuple[str, list[tuple[str, str]]]]] = {}

    def begin(self, key: SessionKey, id: str, header: dict[str, Any]) -> None:
        with self._store._session(key):
            encoded = codec.encode_body(header)
            self._left.setdefault(key, {})[id] = (encoded, [])

    def add(self, key: SessionKey, id: str, part: str, text: str) -> None:
        with self._store._opened():
            if id not in self._left.get(key, {}):
                raise EventNotFound(key.id, id)
            self._left[key][id][1].append((part, text))

    def end(self, key: SessionKey, id: str) -> None:
        with self._store._opened():
            self._left.get(key, {}).pop(id, None)

    def left(self, key: SessionKey) -> list[LeftStream]:
        with self._store._opened():
            return [
                LeftStream(id=id, header=codec.decode_body(header), chunks=list(chunks))
                for id, (header, chunks) in self._left.get(key, {}).items()
            ]

    def forget(self, key: SessionKey | None = None) -> None:
        """Drop every record of a session, or of all."""
        _forget(self._left, key)

    def move(self, source: SessionKey, target: SessionKey) -> None:
        if source in self._left:
            self._left[target] = self._left.pop(source)


class _Artifacts:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._kept: dict[SessionKey, dict[str, bytes]] = {}

    def put(self, key: SessionKey, data: bytes) -> ArtifactRef:
        with self._store._session(key):
            kept = bytes(data)
            self._kept.setdefault(key, {})[_content_hash(kept)] = kept
            return ArtifactRef(hash=_content_hash(kept), size=len(kept))

    def get(self, key: SessionKey, hash: str) -> bytes:
        with self._store._opened():
            data = self._kept.get(key, {}).get(hash)
            if data is None:
                raise ArtifactNotFound(key.id, hash)
            if _content_hash(data) != hash:
                raise ArtifactDamaged(f"session {key.id!r}: the bytes of {hash} are not those that were kept")
            return data

    def hashes(self, key: SessionKey) -> list[str]:
        with self._store._opened():
            return sorted(self._kept.get(key, {}))

    def total_bytes(self) -> int:
        with self._store._opened():
            return 0

    def forget(self, key: SessionKey | None = None) -> None:
        """Drop the bytes of a session, or of all."""
        _forget(self._kept, key)

    def move(self, source: SessionKey, target: SessionKey) -> None:
        if source in self._kept:
            self._kept[target] = self._kept.pop(source)


class _Notes:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._name_of: dict[str, tuple[str, str]] = {}
        self._ids: dict[tuple[str, str], list[str]] = {}
        self._newest: dict[str, dict[str, str]] = {}

    def put(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        self._put(topic, name, body, id, is_only=False)

    def replace(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        self._put(topic, name, body, id, is_only=True)

    def _put(self, topic: str, name: str, body: dict[str, Any], id: str, *, is_only: bool) -> None:
        for text, what in ((topic, "topic"), (name, "name"), (id, "note id")):
            check_name(text, what, chars_max=NOTE_NAME_CHARS_MAX)
        with self._store._opened():
            encoded = codec.encode_body(body)
            ids = self._ids.setdefault((topic, name), [])
            if id not in self._name_of:
                self._name_of[id] = (topic, name)
                ids.append(id)
                self._newest.setdefault(topic, {})[name] = encoded
            if is_only:
                for earlier in ids[:-1]:
                    del self._name_of[earlier]
                del ids[:-1]

    def get(self, topic: str, name: str) -> dict[str, Any] | None:
        return self.all(topic).get(name)

    def all(self, topic: str) -> dict[str, dict[str, Any]]:
        with self._store._opened():
            return {name: codec.decode_body(body) for name, body in sorted(self._newest.get(topic, {}).items())}

    def forget(self) -> None:
        """Drop every note."""
        self._name_of.clear()
        self._ids.clear()
        self._newest.clear()


class _TextIndex:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._queries: Mapping[str, str] = named_queries("playhead.stores", "memory.sql")
        self._connection: apsw.Connection | None = None
        self._rowids = itertools.count(1)
        self._places: dict[int, tuple[SessionKey, int]] = {}

    def indexed_seq(self, key: SessionKey) -> int:
        with self._store._session(key) as session:
            return session.indexed_seq

    def add(self, key: SessionKey, rows: Sequence[TextRow], *, up_to: int) -> None:
        with self._store._session(key) as session:
            for row in rows:
                if session.indexed_seq < row.seq <= session.seq:
                    rowid = next(self._rowids)
                    self._execute("index_text", (rowid, row.text))
                    self._places[rowid] = (key, row.seq)
            session.indexed_seq = max(session.indexed_seq, up_to)

    def match(
        self, expression: str, *, keys: Sequence[SessionKey] | None = None, where: TextFilter, limit: int
    ) -> list[TextMatch]:
        with self._store._opened():
            try:
                rows = self._execute("match_text", (expression,))
            except apsw.SQLError as error:
                raise ValueError(f"{expression!r} is not an expression of the text index: {error}") from error
            sessions = self._store._sessions
            found = []
            for rowid, score in rows:
                key, seq = self._places[rowid]
                if (keys is None or key in keys) and _satisfies(sessions[key].records[seq - 1], where):
                    found.append(TextMatch(key=key, seq=seq, score=score))
            return found[: max(limit, 0)]

    def drop(self, key: SessionKey | None = None) -> None:
        with self._store._opened() if key is None else self._store._session(key):
            for rowid, (owner, _) in list(self._places.items()):
                if key is None or key == owner:
                    self._execute("unindex_text", (rowid,))
                    del self._places[rowid]
            for owner, session in self._store._sessions.items():
                if key is None or key == owner:
                    session.indexed_seq = 0

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._places.clear()

    def _execute(self, query: str, bindings: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = apsw.Connection(":memory:")
            self._connection.execute(self._queries["make_text_index"])
        return self._connection.execute(self._queries[query], bindings).fetchall()


def _sound(draft: Draft) -> _Sound:
    """Return a draft with the text of its body. Raises `InvalidEvent` unless it can be stored."""
    check_draft(draft)
    return draft, codec.encode_body(draft.body)


def _needs_lease(draft: Draft) -> bool:
    return draft.kind == "head_moved" or not is_fact(draft.kind, draft.body)


def _record(draft: Draft, seq: int, parent: int, body: str, salt: bytes, hash: bytes) -> Record:
    return Record(
        seq=seq,
        parent=parent,
        id=draft.id,
        at=float(draft.at) + 0.0,
        kind=draft.kind,
        agent=draft.agent,
        turn=draft.turn,
        scope=draft.scope,
        body=body,
        salt=salt,
        digest=None,
        hash=hash,
        is_fact=is_fact(draft.kind, draft.body),
    )


def _event(record: Record) -> Event:
    return Event(
        seq=record.seq,
        parent=record.parent,
        id=record.id,
        at=record.at,
        kind=record.kind,
        agent=record.agent,
        turn=record.turn,
        scope=record.scope,
        body=redacted_body(record.kind, is_fact=record.is_fact)
        if record.body is None
        else codec.decode_body(record.body),
    )


def _satisfies(record: Record, where: TextFilter) -> bool:
    return (
        (not where.agents or record.agent in where.agents)
        and (not where.kinds or record.kind in where.kinds)
        and (not where.turns or record.turn in where.turns)
        and (where.since is None or record.at >= where.since)
        and (where.until is None or record.at < where.until)
    )


def _forget(by_key: dict[SessionKey, Any], key: SessionKey | None) -> None:
    if key is None:
        by_key.clear()
    else:
        by_key.pop(key, None)


def _bounded(limit: int, most: int) -> int:
    return max(0, min(limit, most))


def _content_hash(data: bytes) -> str:
    return f"sha256-{hashlib.sha256(data).hexdigest()}"
