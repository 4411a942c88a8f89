"""The log in SQLite: one session's events, snapshots, listing row and lease, in any database that holds it.

Both embedded stores are this class over different files. Rows of one session are `number * 2^32 + seq`.
"""

from __future__ import annotations

import math
import os
import platform
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import (
    EventConflict,
    EventNotFound,
    InvalidEvent,
    LeaseLost,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StaleWriter,
    StoreDamaged,
    StoreUnavailable,
)
from playhead.model.codec import (
    HASH_BYTES,
    SALT_BYTES,
    body_digest,
    chain_hash,
    decode_body,
    draft_envelope,
    encode_body,
)
from playhead.model.event import Draft, Event, check_draft, is_fact, redacted_body
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.model.snapshot import Snapshot, is_sound, is_usable
from playhead.model.upcast import EVENT_VERSION, upcast
from playhead.stores.base import (
    EVENTS_PAGE_MAX,
    LEASE_S,
    RENEW_S,
    ROWS_PAGE_MAX,
    Durability,
    Lease,
    Record,
    SessionRow,
    Tip,
)
from playhead.stores.oslock import OsLock
from playhead.stores.records import EMPTY_TIP
from playhead.stores.sqlite.connect import Database, NotUtf8, Row

SEQ_BITS = 32
SEQ_MAX = (1 << SEQ_BITS) - 1
NUMBER_MAX = 2**31 - 1
"""Highest number of a session: its rows are SQLite's integers, of 64 bits with a sign."""

NO_KEY = "its key is no text: the file is damaged"
"""The problem of a session whose row cannot name it."""

STRETCH = 1_000
"""So many events of a session that nobody sees are removed in one transaction."""

ACQUIRE_TRIES_MAX = 100
"""So often a lease is tried for on a session that is deleted and made again meanwhile."""

FIRST_FENCE_MAX = 2**40
"""The first fence of a session is drawn below this; it grows by one with each lease."""


class _Known(msgspec.Struct):
    """What this process last saw of a session: enough to append without reading."""

    number: int
    tip: Tip


class SqliteLog:
    """Events of the sessions in one database. Thread-safe, since `Database` is."""

    def __init__(self, database: Database, *, durability: Durability, lock_path: Callable[[int], Path]) -> None:
        self.database = database
        self.durability: Durability = durability
        self._lock_path = lock_path
        self._known: dict[SessionKey, _Known] = {}
        self._locks: dict[SessionKey, tuple[int, OsLock]] = {}
        self._renewed: dict[SessionKey, float] = {}

    # Beginning, appending.

    def create(self, key: SessionKey, drafts: Sequence[Draft]) -> list[Event]:
        """Insert the session's row and its first events in one transaction."""
        if not drafts or drafts[0].kind != "session_started":
            raise InvalidEvent("a session begins with its session_started")
        rows = [(draft, _checked(draft)) for draft in drafts]
        _need_distinct(key, [draft.id for draft in drafts])
        with self.database.write(through_power_loss=self.durability == "power"):
            number, tip = self._new(key)
            events, tip = self._insert(number, tip, rows)
        self._known[key] = _Known(number, tip)
        return events

    def append(
        self, key: SessionKey, drafts: Sequence[Draft], *, expected_seq: int | None, fence: int | None = None
    ) -> list[Event]:
        """Append as `Store.append` promises: first the one-statement way, else with a look at what is in the way."""
        if expected_seq is None and fence is None:
            raise ValueError("an append needs expected_seq or fence")
        if not drafts:
            self.require(key)
            return []
        try:
            rows = [(draft, _checked(draft)) for draft in drafts]
        except InvalidEvent:
            self.require(key)  # A session that is not there is the more useful thing to say.
            raise
        if len(rows) == 1:
            event = self._append_one(key, *rows[0], expected_seq, fence)
            if event is not None:
                return [event]
        return self._append_looking(key, rows, expected_seq=expected_seq, fence=fence)

    def _append_one(
        self, key: SessionKey, draft: Draft, body: str, expected_seq: int | None, fence: int | None
    ) -> Event | None:
        """Append in one statement, without looking first; None where that is not enough."""
        if draft.kind == "head_moved" or (self.durability == "power" and draft.kind == "turn_ended"):
            return None
        if fence is not None and draft.at - self._renewed.get(key, 0.0) >= RENEW_S:
            return None
        with self.database.lock:
            known = self._known.get(key)
            if known is None or (fence is None and expected_seq != known.tip.seq):
                return None
            tip, number = known.tip, known.number
            event, bindings, new_tip = _next(number, tip, draft, body)
            if not self.database.try_insert("append_one", (*bindings, bindings[0] - 1, tip.hash, number, fence)):
                return None
            known.tip = new_tip
            return event

    def _append_looking(
        self, key: SessionKey, rows: Sequence[tuple[Draft, str]], *, expected_seq: int | None, fence: int | None
    ) -> list[Event]:
        through_power_loss = self.durability == "power" and any(draft.kind == "turn_ended" for draft, _ in rows)
        with self.database.write(through_power_loss=through_power_loss):
            number = self.need_number(key)
            stored = self._stored_already(key, number, rows)
            if stored is not None:
                return stored
            tip = self._sound_tip(key, number)
            at = rows[-1][0].at
            if fence is None:
                if any(_moves_path(draft) for draft, _ in rows):
                    self.need_free(key, number)
                if expected_seq != tip.seq:
                    raise StaleWriter(key.id, expected_seq=expected_seq or 0, actual_seq=tip.seq)
            else:
                self._need_fence(key, number, fence)
                self.database.query("renew_lease", {"number": number, "fence": fence, "at": at})
                self._renewed[key] = at
            events, tip = self._insert(number, tip, rows)
        self._known[key] = _Known(number, tip)
        return events

    # Records that come over from elsewhere: `copying.py` says in which order.

    def begin(self, key: SessionKey) -> int:
        """Insert the row of a session without events and return its number. The caller is in a transaction."""
        return self._new(key)[0]

    def insert_records(self, key: SessionKey, number: int, records: Sequence[Record]) -> None:
        """Insert records that were proved under a session's number. Raises `EventConflict`, naming `key`. The caller is
        in a transaction."""
        ids = [record.id for record in records]
        _need_distinct(key, ids)
        if known := self._seq_of(number, ids):
            raise EventConflict(key.id, sorted(known), "other events go by them")
        self.database.query_many("insert_record", [_record_bindings(number, record) for record in records])

    def end_to_go_on(self, key: SessionKey, expected_seq: int) -> Tip:
        """Return where a log ends that may be written to. Raises `StaleWriter` where that is elsewhere, and
        `SessionBusy`."""
        with self.database.write():
            return self._to_go_on(key, expected_seq)[1]

    def is_on_a_path(self, key: SessionKey, seq: int) -> bool:
        with self.database.read():
            return self._is_on_a_path(self.need_number(key), seq)

    def insert_after(self, key: SessionKey, start: Tip, pages: Iterable[Sequence[Record]], *, end: Tip) -> None:
        """Insert records that were proved to follow from `start`, in one transaction. Raises as `end_to_go_on` does
        where the log does not end there any more."""
        with self.database.write(through_power_loss=self.durability == "power"):
            number, tip = self._to_go_on(key, start.seq)
            if tip.hash != start.hash:
                raise StoreUnavailable(f"session {key.id!r} was begun anew while records of it were read; read again")
            for page in pages:
                self.insert_records(key, number, page)
        self._known[key] = _Known(number, end)

    def _new(self, key: SessionKey) -> tuple[int, Tip]:
        """Insert the row of a session that has no event yet, and return its number and where its log ends."""
        if self._number(key) is not None:
            raise SessionExists(key.id)
        first = secrets.randbelow(FIRST_FENCE_MAX)
        found = self.database.row("insert_session", _key(key) | {"event_version": EVENT_VERSION, "fence": first})
        assert found is not None, "RETURNING gives a row or raises"
        return int(found[0]), EMPTY_TIP

    def _to_go_on(self, key: SessionKey, expected_seq: int) -> tuple[int, Tip]:
        """Return the number of a session whose log ends at `expected_seq` and may be written to, and its end."""
        number = self.need_number(key)
        tip = self._sound_tip(key, number)
        self.need_free(key, number)
        if tip.seq != expected_seq:
            raise StaleWriter(key.id, expected_seq=expected_seq, actual_seq=tip.seq)
        return number, tip

    def _insert(self, number: int, tip: Tip, rows: Sequence[tuple[Draft, str]]) -> tuple[list[Event], Tip]:
        events: list[Event] = []
        all_bindings: list[tuple[Any, ...]] = []
        for draft, body in rows:
            if draft.kind == "head_moved":
                self._need_target(number, draft, events)
            event, bindings, tip = _next(number, tip, draft, body)
            events.append(event)
            all_bindings.append(bindings)
        self.database.query_many("insert_event", all_bindings)
        return events, tip

    def _need_target(self, number: int, draft: Draft, earlier: Sequence[Event]) -> None:
        """The head may move to an event on a path only: one that is stored, or stands earlier in the batch."""
        target = draft.parent or 0
        if any(event.seq == target and not is_fact(event.kind, event.body) for event in earlier):
            return
        if not self._is_on_a_path(number, target):
            raise InvalidEvent(f"head_moved to {target}, where the log has no event that lies on a path")

    def _is_on_a_path(self, number: int, seq: int) -> bool:
        row = (number << SEQ_BITS) + seq
        return 1 <= seq <= SEQ_MAX and self.database.row("is_on_a_path", {"row": row}) == (1,)

    def _stored_already(self, key: SessionKey, number: int, rows: Sequence[tuple[Draft, str]]) -> list[Event] | None:
        """Return the stored events where this append is a retry, None where it is new; raise for anything between."""
        ids = [draft.id for draft, _ in rows]
        _need_distinct(key, ids)
        seq_of = self._seq_of(number, ids)
        if not seq_of:
            return None
        if len(seq_of) < len(ids):
            raise EventConflict(key.id, sorted(seq_of), "only a part of the batch was appended before")
        stored = []
        for draft, body in rows:
            seq = seq_of[draft.id]
            record = self.records(key, after=seq - 1, limit=1)[0]
            same = record.kind == draft.kind and (
                record.body == body if record.body is not None else record.digest is not None
            )
            if not same:
                raise EventConflict(key.id, [draft.id], f"event {seq} has other content")
            stored.append(self.events_at(key, [[seq, seq]])[0])
        return stored

    # Reading.

    def tip(self, key: SessionKey) -> Tip:
        with self.database.read():
            number = self.need_number(key)
            tip = self.tip_of(key, number)
        if _is_hash(tip.hash):
            self._known[key] = _Known(number, tip)
        return tip

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
        bindings = {"limit": max(0, min(limit, EVENTS_PAGE_MAX)), "kinds": json_list(kinds)}
        with self.database.read():
            number, version = self._number_and_version(key)
            base = number << SEQ_BITS
            bindings["after"] = base + _bounded(after)
            bindings["until"] = base + (SEQ_MAX if until is None else _bounded(until))
            rows = self.database.query("events_newest_first" if newest_first else "events", bindings)
            self._need_order(key, rows, after=after, until=until)
        return [_event(row, version) for row in rows]

    def events_at(self, key: SessionKey, positions: Ranges) -> list[Event]:
        found: list[Event] = []
        with self.database.read():
            number, version = self._number_and_version(key)
            base = number << SEQ_BITS
            end = self.tip_of(key, number).seq if positions else 0
            for first, last in positions:
                if first > last:
                    continue
                if first < 1 or last > end:
                    raise EventNotFound(key.id, first if first < 1 else last)
                rows = self.database.query("events_range", {"first": base + first, "last": base + last})
                found.extend(_event(row, version) for row in rows)
        return found

    def tail(self, key: SessionKey, head: int) -> tuple[list[Snapshot], list[Event]]:
        with self.database.read():
            number, version = self._number_and_version(key)
            base = number << SEQ_BITS
            if head == 0:
                return [], []
            if not self._is_on_a_path(number, head):
                raise EventNotFound(key.id, head)
            events: list[Event] = []
            anchor, past = head, False
            while anchor:
                rows = self.database.query("path_tail", {"head": base + anchor, "base": base, "past": past})
                events = [_event(row, version) for row in rows] + events
                if (past and not rows) or (events and events[0].parent >= events[0].seq):
                    raise StoreDamaged(f"session {key.id!r} in {self.database.path}: its path breaks off at {anchor}")
                anchor = events[0].parent if events else head
                chain = self._chain(base, anchor) if anchor else []
                if chain:
                    return chain, events
                past = True
        return [], events

    def _chain(self, base: int, seq: int) -> list[Snapshot]:
        """Return the snapshots from a complete one to the one at `seq`, or [] where it cannot be used."""
        try:
            rows = self.database.query("snapshot_chain", {"row": base + seq, "base": base})
            chain = [msgspec.convert(decode_body(row[0]), Snapshot) for row in rows]
        except (InvalidEvent, msgspec.ValidationError, NotUtf8, TypeError):
            return []  # Only a cache: the log says the same.
        return chain if is_usable(chain) and chain[-1].seq == seq and is_sound(chain) else []

    def facts(self, key: SessionKey, *, until: int | None = None) -> list[Event]:
        with self.database.read():
            number, version = self._number_and_version(key)
            base = number << SEQ_BITS
            last = base + (SEQ_MAX if until is None else _bounded(until))
            rows = self.database.query("facts", {"first": base, "until": last})
        return [_event(row, version) for row in rows]

    def seq_of(self, key: SessionKey, ids: Iterable[str]) -> dict[str, int]:
        with self.database.read():
            return self._seq_of(self.need_number(key), list(ids))

    def records(self, key: SessionKey, *, after: int = 0, limit: int = EVENTS_PAGE_MAX) -> list[Record]:
        with self.database.read():
            base = self.need_number(key) << SEQ_BITS
            bindings = {"after": base + _bounded(after), "last": base + SEQ_MAX}
            rows = self.database.query("records", bindings | {"limit": max(0, min(limit, EVENTS_PAGE_MAX))})
            self._need_order(key, rows, after=after, until=None)
        return [_record(row) for row in rows]

    def _need_order(self, key: SessionKey, rows: Sequence[Row], *, after: int, until: int | None) -> None:
        """Whoever pages through a log must come forward: in a damaged file rows may lie outside what was asked for."""
        if rows and not (after < rows[-1][0] and (until is None or rows[-1][0] <= until)):
            raise StoreDamaged(f"the rows of session {key.id!r} in {self.database.path} are out of order")

    # Caches: snapshots and the listing row.

    def snapshot_seqs(self, key: SessionKey) -> list[int]:
        with self.database.read():
            rows = self.database.query("snapshot_seqs", bounds_of(self.need_number(key)))
        return [int(row[0]) for row in rows]

    def save_snapshot(self, key: SessionKey, snapshot: Snapshot) -> None:
        document = encode_body(msgspec.to_builtins(snapshot))
        with self.database.write():
            number = self.need_number(key)
            if not self._is_on_a_path(number, snapshot.seq):
                raise EventNotFound(key.id, snapshot.seq)
            row = (number << SEQ_BITS) + snapshot.seq
            bindings = {"row": row, "base_seq": snapshot.base_seq, "document": document}
            self.database.query("save_snapshot", bindings)

    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        with self.database.write():
            number = self.need_number(key)
            self.database.query("save_summary", {"number": number, "seq": seq, "summary": summary})

    def sessions(
        self, *, app: str | None = None, user: str | None = None, after: SessionKey | None = None, limit: int = 100
    ) -> list[SessionRow]:
        left = max(0, min(limit, ROWS_PAGE_MAX))
        bindings = {
            "app": app,
            "user": user,
            "after_app": after.app if after else None,
            "after_user": after.user if after else None,
            "after_id": after.id if after else None,
        }
        found = []
        with self.database.read():
            if app is None and user is None and (after is None or after.app == ""):
                found = self._nameless_rows(after, limit=left)
                left -= len(found)
            for number, row_app, row_user, row_id, summary, summary_seq in self.database.query(
                "list_sessions", bindings | {"limit": left}
            ):
                key = SessionKey(row_app, row_user, row_id)
                try:
                    tip = self.tip_of(key, sound_number(number, key))
                except StoreDamaged as error:
                    found.append(SessionRow(key, 0, 0.0, problem=str(error)))
                    continue
                if not (isinstance(summary, str) and isinstance(summary_seq, int)):
                    summary, summary_seq = None, 0  # Only a cache.
                found.append(SessionRow(key, tip.seq, tip.at, summary, summary_seq))
        return found

    def only_row(self) -> SessionRow | None:
        """Return the row of the session where a bundle holds that one alone and nothing is wrong with it, by fewer and
        plainer queries than `sessions`; None in any other case."""
        rows = self.database.query("two_sessions")
        if len(rows) != 1:
            return None
        number, app, user, id, summary, summary_seq = rows[0]
        is_sound = isinstance(app, str) and isinstance(user, str) and isinstance(id, str) and (app or user)
        if not is_sound or not isinstance(summary, str) or not isinstance(summary_seq, int):
            return None
        key = SessionKey(app, user, id)
        tip = self.tip_of(key, sound_number(number, key))
        return SessionRow(key, tip.seq, tip.at, summary, summary_seq)

    def _nameless_rows(self, after: SessionKey | None, *, limit: int) -> list[SessionRow]:
        """Return a row for each session whose key cannot be read. They come first: no real app is empty."""
        rows = [
            SessionRow(nameless_key(number), 0, 0.0, problem=NO_KEY)
            for (number,) in self.database.query("list_nameless", {"limit": ROWS_PAGE_MAX})
        ]
        return [row for row in rows if after is None or row.key > after][:limit]

    # The lease.

    def acquire(self, key: SessionKey, *, label: str = "", at: float) -> Lease:
        for _ in range(ACQUIRE_TRIES_MAX):
            number = self.require(key)
            lock = OsLock.take(self._lock_path(number))
            if lock is None:
                row = self.database.row("lease", {"number": number})
                raise SessionBusy(key.id, _holder(row[1] if row else None))
            lease = self._take_lease(key, number, lock, label=label, at=at)
            if lease is not None:
                return lease
        raise StoreUnavailable(f"session {key.id!r} is deleted and made again and again; retry")

    def _take_lease(self, key: SessionKey, number: int, lock: OsLock, *, label: str, at: float) -> Lease | None:
        """Take the lease under the operating system's lock, or give the lock back. None where the session has another
        number by now, by which its lock goes."""
        before = None
        try:
            with self.database.write():
                if self.need_number(key) != number:
                    lock.release()
                    return None
                _, holder, renewed_at = self._lease(number)
                held_by = _holder(holder)
                if holder is not None and not is_this_host(held_by) and at - renewed_at < LEASE_S:
                    raise SessionBusy(key.id, held_by)
                mine = this_process() | {"since": at} | ({"label": label} if label else {})
                taken = self.database.row(
                    "take_lease", {"number": number, "holder": msgspec.json.encode(mine).decode(), "at": at}
                )
                assert taken is not None, "the row was read in this transaction"
                # Before the commit, so that whoever closes this log gives the lock back, and no eviction takes it away.
                before = self._locks.get(key)
                self._locks[key] = (taken[0], lock)
        except BaseException:
            if self._locks.get(key, (0, None))[1] is lock:
                del self._locks[key]
            lock.release()
            if before is not None:
                before[1].release()
            raise
        if before is not None:
            before[1].release()
        self._renewed[key] = at
        return Lease(key=key, fence=taken[0], holder=mine)

    def release(self, lease: Lease) -> None:
        fence, lock = self._locks.get(lease.key, (0, None))
        try:
            with self.database.write():
                number = self._number(lease.key)
                if number is not None:
                    self.database.query("release_lease", {"number": number, "fence": lease.fence})
        finally:
            if lock is not None and fence == lease.fence:
                self._locks.pop(lease.key, None)
                lock.release()

    def holder(self, key: SessionKey) -> dict[str, Any] | None:
        with self.database.read():
            number = self.need_number(key)
            _, holder, _ = self._lease(number)
        if holder is None or self._is_dead(key, number, _holder(holder)):
            return None
        return _holder(holder)

    def _is_dead(self, key: SessionKey, number: int, holder: dict[str, Any]) -> bool:
        """Return True when the holder ran on this host and its lock is free: the system frees it with the process."""
        if key in self._locks or not is_this_host(holder):
            return False
        return not OsLock.is_held(self._lock_path(number))

    def need_free(self, key: SessionKey, number: int) -> None:
        fence, holder, _ = self._lease(number)
        if holder is None:
            return
        if not self._is_dead(key, number, _holder(holder)):
            raise SessionBusy(key.id, _holder(holder))
        self.database.query("release_lease", {"number": number, "fence": fence})

    def _need_fence(self, key: SessionKey, number: int, fence: int) -> None:
        current, holder, _ = self._lease(number)
        if current != fence or holder is None:
            raise LeaseLost(key.id, fence=fence, current_fence=current)

    def _lease(self, number: int) -> Row:
        row = self.database.row("lease", {"number": number})
        assert row is not None, "the session's row was read in this transaction"
        fence, holder, renewed_at = row
        if not isinstance(fence, int):
            raise StoreDamaged(f"the lease of a session in {self.database.path} has no number")
        return fence, holder, renewed_at if isinstance(renewed_at, float) else 0.0

    # Removal.

    def delete_rows(self, key: SessionKey) -> int:
        """Remove every row of the session in one transaction and return its number."""
        with self.database.write():
            number = self.need_number(key)
            self.need_free(key, number)
            self.remove_rows(number)
        self._known.pop(key, None)
        return number

    def remove_rows(self, number: int) -> None:
        """Remove every row of the session with this number. The caller is in a transaction."""
        bounds = bounds_of(number)
        self.database.query("permit", {"reason": "delete"})
        self.unindex(number)
        self.database.query("drop_snapshots", bounds)
        self.database.query("delete_events", bounds)
        self.database.query("delete_session", {"number": number})
        self.database.query("end_permit")

    def remove_stretch(self, key: SessionKey) -> bool:
        """Remove the last `STRETCH` events of a session that nobody sees, or its row where it has none; return False
        once that is gone. Each call is a transaction that nobody waits long for."""
        with self.database.write():
            number = self._number(key)
            if number is None:
                return False
            found = self.database.row("tip", bounds_of(number))
            if found is None:
                self.database.query("delete_session", {"number": number})
                return False
            last = (number << SEQ_BITS) + int(found[0])
            self.database.query("permit", {"reason": "delete"})
            self.database.query("delete_events", {"first": max(number << SEQ_BITS, last - STRETCH + 1), "last": last})
            self.database.query("end_permit")
        return True

    def unindex(self, number: int) -> None:
        """Take the session out of the text index. The caller is in a transaction."""
        if self.database.row("has_text_index") == (1,):
            self.database.query("unindex_session", bounds_of(number))

    def forget(self, key: SessionKey) -> None:
        """Forget what this process saw of a session whose row was changed; it is read again when it is needed."""
        self._known.pop(key, None)

    def close(self) -> None:
        """Give back every lock of this process and close the database."""
        if not self.database.is_own():
            self.database.close()
            return
        with self.database.lock:
            locks = [lock for _, lock in self._locks.values()]
            self._locks.clear()
            self.database.close()
        for lock in locks:
            lock.release()

    def close_idle(self) -> bool:
        """Close the database unless a lease is held or another thread is at it; return whether it is closed."""
        if not self.database.lock.acquire(blocking=False):
            return False
        try:
            if self._locks:
                return False
            self.database.close()
            return True
        finally:
            self.database.lock.release()

    # Looking a session up.

    def is_empty(self) -> bool:
        """Return True where the database holds nothing of any session."""
        return self.database.row("is_empty") == (1,)

    def number_of(self, key: SessionKey) -> int | None:
        """Return the session's number in this database, or None."""
        return self._number(key)

    def _number(self, key: SessionKey) -> int | None:
        row = self.database.row("session_number", _key(key))
        return int(row[0]) if row else None

    def need_number(self, key: SessionKey) -> int:
        return self._number_and_version(key)[0]

    def require(self, key: SessionKey) -> int:
        """Return the session's number. Raises `SessionNotFound`."""
        with self.database.read():
            return self.need_number(key)

    def _number_and_version(self, key: SessionKey) -> tuple[int, int]:
        row = self.database.row("session_number", _key(key))
        if row is None:
            self._known.pop(key, None)
            raise SessionNotFound(key.id, store=self.database.path)
        number, version = row
        if not isinstance(version, int):
            raise StoreDamaged(f"session {key.id!r} in {self.database.path} says no version of its events")
        return sound_number(number, key), version

    def tip_of(self, key: SessionKey, number: int) -> Tip:
        row = self.database.row("tip", bounds_of(number))
        if row is None:
            raise StoreDamaged(f"session {key.id!r} in {self.database.path} has no events")
        seq, parent, at, hash, fact = row
        if not (type(parent) is int and _is_time(at)):
            raise StoreDamaged(f"event {seq} of session {key.id!r} in {self.database.path} is damaged")
        return Tip(seq=seq, head=parent if fact else seq, at=at, hash=hash)

    def _sound_tip(self, key: SessionKey, number: int) -> Tip:
        """Return where the log ends. Raises `StoreDamaged` where nothing could follow."""
        tip = self.tip_of(key, number)
        if not _is_hash(tip.hash):
            raise StoreDamaged(f"event {tip.seq} of session {key.id!r} has no hash that another one could follow")
        return tip

    def _seq_of(self, number: int, ids: Sequence[str]) -> dict[str, int]:
        ids = [id for id in ids if _is_unicode(id)]  # Ids come from bodies too, which may hold anything.
        if not ids:
            return {}
        return dict(self.database.query("seq_of", {"number": number, "ids": json_list(ids)}))


def _checked(draft: Draft) -> str:
    """Return the body's text, once the draft is known to be sound."""
    check_draft(draft)
    return encode_body(draft.body)


def _next(number: int, tip: Tip, draft: Draft, body: str) -> tuple[Event, tuple[Any, ...], Tip]:
    """Return the event that follows `tip`, what to bind for its row, and the tip after it."""
    fact = is_fact(draft.kind, draft.body)
    seq = tip.seq + 1
    parent = draft.parent if fact and draft.parent is not None else tip.head
    salt = os.urandom(SALT_BYTES)
    hash = chain_hash(tip.hash, draft_envelope(draft, seq=seq, parent=parent), body_digest(salt, body))
    id, at, kind, agent, turn, scope = draft.id, float(draft.at) + 0.0, draft.kind, draft.agent, draft.turn, draft.scope
    row = (number << SEQ_BITS) + seq
    bindings = (row, parent, id, at, kind, agent, turn, scope, body, salt, hash, 1 if fact else None)
    event = Event(seq, parent, id, at, kind, agent, turn, scope, draft.body)
    return event, bindings, Tip(seq, parent if fact else seq, at, hash)


def _record_bindings(number: int, record: Record) -> tuple[Any, ...]:
    return (
        (number << SEQ_BITS) + record.seq,
        record.parent,
        record.id,
        record.at,
        record.kind,
        record.agent,
        record.turn,
        record.scope,
        record.body,
        record.salt,
        record.digest,
        record.hash,
        1 if record.is_fact else None,
    )


def _moves_path(draft: Draft) -> bool:
    return draft.kind == "head_moved" or not is_fact(draft.kind, draft.body)


def _event(row: Row, version: int) -> Event:
    _, parent, id, at, kind, agent, turn, scope, body, _ = row
    if not (
        type(parent) is int
        and type(id) is str
        and _is_time(at)
        and type(kind) is str
        and (agent is None or type(agent) is str)
        and (turn is None or type(turn) is str)
        and (scope is None or type(scope) is str)
        and (body is None or type(body) is str)
    ):
        raise StoreDamaged(f"event {row[0]} is damaged: a column of it holds what no event has there")
    body = decode_body(row[8]) if row[8] is not None else redacted_body(row[4], is_fact=row[9] is not None)
    event = Event(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], body)
    return event if version == EVENT_VERSION else upcast(event, version)


def _record(row: Row) -> Record:
    seq, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, fact = row
    return Record(seq, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, bool(fact))


def _is_hash(hash: object) -> bool:
    return isinstance(hash, bytes) and len(hash) == HASH_BYTES


def _is_time(at: object) -> bool:
    return type(at) is float and math.isfinite(at)


def sound_number(number: int, key: SessionKey) -> int:
    """Return a session's number. Raises `StoreDamaged` where rows of that number would leave SQLite's integers."""
    if not 0 < number <= NUMBER_MAX:
        raise StoreDamaged(f"session {key.id!r} has the number {number}, beyond what a database can hold")
    return number


def nameless_key(number: int) -> SessionKey:
    """Return what stands in lists for the key of a session whose row cannot name it."""
    return SessionKey("", "", f"#{number:020d}")


def _need_distinct(key: SessionKey, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        raise EventConflict(key.id, ids, "the batch itself uses one id twice")


def _key(key: SessionKey) -> dict[str, Any]:
    return {"app": key.app, "user": key.user, "id": key.id}


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def bounds_of(number: int) -> dict[str, int]:
    return {"first": number << SEQ_BITS, "last": (number << SEQ_BITS) + SEQ_MAX}


def _bounded(seq: int) -> int:
    return max(0, min(seq, SEQ_MAX))


def json_list(values: Sequence[str] | Sequence[int] | None) -> str | None:
    """Return a JSON array, as the queries take lists; None stays None and means any."""
    return None if values is None else msgspec.json.encode(list(values)).decode()


def _holder(text: str | None) -> dict[str, Any]:
    """Return who holds a lease. One that cannot be read is no host's that we know, so it runs out with time."""
    try:
        holder = msgspec.json.decode(text, type=dict[str, Any]) if isinstance(text, str) else {}
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return holder


@cache
def _host() -> dict[str, str]:
    """Name this machine and, on Linux, this boot: containers that share a kernel share it."""
    host = {"host": platform.node() or "localhost"}
    boot = Path("/proc/sys/kernel/random/boot_id")
    if boot.exists():
        host["boot"] = boot.read_text().strip()
    return host


def this_process() -> dict[str, Any]:
    """Return what a lease says of its holder: host, boot and process id."""
    return _host() | {"pid": os.getpid()}


def is_this_host(holder: dict[str, Any]) -> bool:
    """Return True when a holder ran on this machine, whose locks can be asked."""
    mine = _host()
    return holder.get("host") == mine["host"] or ("boot" in mine and holder.get("boot") == mine["boot"])
