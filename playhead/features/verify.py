"""Verifying a session: the chain, the parents, the facts' marks, and that the caches say what a full replay says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from playhead.errors import OF_THE_SYSTEM, PlayheadError, StoreDamaged
from playhead.features.live import events_at
from playhead.model import snapshot as snapshots
from playhead.model.codec import FIRST_HASH, HASH_BYTES, body_digest, chain_hash, decode_body
from playhead.model.event import Body, is_fact
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.stores.base import EVENTS_PAGE_MAX, Record, Store
from playhead.stores.records import record_envelope
from playhead.views.fold import Fold

PROBLEMS_MAX = 100
"""A report names so many problems at most; a log that is damaged throughout would name every event."""


_WRONG_KIND = (LookupError, TypeError, ValueError, OverflowError)
"""What a value raises that is of another kind than its column should hold: SQLite keeps any kind in any column."""


UNREADABLE_MAX = 1_000
"""After so many events that cannot be read the rest is given up: a damaged end can name any seq at all."""


class Verified(msgspec.Struct, frozen=True):
    """What was checked. ok: no problem was found. problems: sentences, each with its seq. head_hash: hex of the last
    event's chain hash; kept elsewhere, it also proves that no tail was cut off."""

    session: str
    ok: bool
    problems: tuple[str, ...]
    event_count: int
    redacted_count: int
    snapshot_count: int
    head_hash: str


def verify(store: Store, key: SessionKey) -> Verified:
    """Check one session whole, as it is now. Writes nothing.

    Reads every event once, and the path of each snapshot once more. Others may go on writing meanwhile. Raises
    `SessionNotFound`, `StoreDamaged` where not even the session's row or the end of its log can be read, and what the
    system refuses: `StoreFull`, `StoreReadOnly`, `StoreUnavailable`. Then nothing is known of it.
    """
    try:
        # The caches come first: whoever goes on writing, what they hold is in the log by the time that its end is read.
        indexed_seq, kept = store.text.indexed_seq(key), store.snapshot_seqs(key)
        tip = store.tip(key)
    except PlayheadError:
        raise
    except _WRONG_KIND as error:
        raise StoreDamaged(f"the row of session {key.id!r} holds what no session can have: {error}") from error
    checker = _Checker()
    _read_log(store, key, checker, until=tip.seq)
    if checker.seq != tip.seq:
        checker.problem(f"the log was read up to {checker.seq}, but its end is {tip.seq}")
    _check_facts(store, key, checker)
    _check_snapshots(store, key, kept, checker)
    if indexed_seq > tip.seq:
        checker.problem(f"the text index is said to hold events up to {indexed_seq}, but the log ends at {tip.seq}")
    return Verified(
        session=key.id,
        ok=not checker.problems,
        problems=tuple(checker.problems),
        event_count=checker.count,
        redacted_count=checker.redacted,
        snapshot_count=len(kept),
        head_hash=checker.hash.hex(),
    )


def _read_log(store: Store, key: SessionKey, checker: _Checker, *, until: int) -> None:
    """Show every event up to `until` to the checker, in pages; from one that cannot be read on, one by one."""
    after, limit, unreadable = 0, EVENTS_PAGE_MAX, 0
    while after < until:
        try:
            page = store.records(key, after=after, limit=limit)
        except (StoreDamaged, UnicodeDecodeError) as error:
            if limit == 1:
                after, unreadable = after + 1, unreadable + 1
                checker.pass_over(after, f"cannot be read: {error}")
            if unreadable >= UNREADABLE_MAX:
                return
            limit = 1
            continue
        if not page:
            return
        for record in page:
            if record.seq <= until:
                checker.take(record)
        if page[-1].seq <= after:
            checker.problem(f"what follows event {after} is out of order: the file's own order of rows is damaged")
            return
        after = page[-1].seq


class _Checker:
    """Goes through the records in order and collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.seq = 0
        self.hash = FIRST_HASH
        self.count = 0
        self.redacted = 0
        self.seq_of: dict[str, int] = {}
        self.facts: set[int] = set()
        self._head = 0
        self._on_path: set[int] = set()
        self._passed_over: set[int] = set()
        self._is_sure = True  # False after an event that told neither its hash nor where the head stands.

    def problem(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)

    def take(self, record: Record) -> None:
        if record.seq != self.seq + 1:
            self.problem(f"event {record.seq} follows event {self.seq}: the numbers between are missing")
        if wrong := _wrong_fields(record):
            self.pass_over(record.seq, f"holds what cannot be its {', '.join(wrong)}")
            return
        self._check_chain(record)
        self._check_place(record)
        if record.id in self.seq_of:
            self.problem(f"event {record.seq} has the id of event {self.seq_of[record.id]}")
        self.seq_of[record.id] = record.seq
        self.seq = record.seq
        self.count += 1
        self._is_sure = True

    def pass_over(self, seq: int, why: str) -> None:
        """Name an event of which nothing can be checked, and be lenient with the one after it."""
        self.problem(f"event {seq} {why}")
        self.seq = seq
        self.count += 1
        self._passed_over.add(seq)
        self._is_sure = False

    def _check_chain(self, record: Record) -> None:
        if record.body is None:
            self.redacted += 1
            digest = record.digest or b""
        else:
            digest = body_digest(record.salt or b"", record.body)
        envelope = record_envelope(record)
        if self._is_sure and chain_hash(self.hash, envelope, digest) != record.hash:
            self.problem(f"event {record.seq} does not match its hash: it, or the order, was changed")
        # Going on from the stored hash names each damaged event alone, not all that follow it.
        self.hash = record.hash

    def _check_place(self, record: Record) -> None:
        body = None
        if record.body is not None:
            try:
                body = decode_body(record.body)
            except PlayheadError as error:
                self.problem(f"event {record.seq}: {error}")
        # Of a state_changed only the body tells which it is.
        is_told = body is not None or record.kind != "state_changed"
        if is_told and record.is_fact != is_fact(record.kind, body or {}):
            self.problem(f"event {record.seq} is marked as the wrong one of fact and event on the path")
        if record.kind == "head_moved":
            if record.parent not in self._passed_over:
                self._check_move(record, body)
            self._head = record.parent
        elif self._is_sure and record.parent != self._head:
            self.problem(f"event {record.seq} has parent {record.parent}, but the head stood at {self._head}")
        elif not self._is_sure:
            self._head = record.parent
        if record.is_fact:
            self.facts.add(record.seq)
        else:
            self._on_path.add(record.seq)
            self._head = record.seq

    def _check_move(self, record: Record, body: Body | None) -> None:
        target = record.parent if body is None else self.seq_of.get(str(body.get("to")), 0)
        if record.parent != target:
            self.problem(f"event {record.seq} moves the head to {record.parent}, but names event {target}")
        if record.parent not in self._on_path:
            self.problem(f"event {record.seq} moves the head to {record.parent}, which lies on no path")


def _wrong_fields(record: Record) -> list[str]:
    """Return the names of the columns whose value no event can have."""
    right = {
        "parent": isinstance(record.parent, int) and record.parent >= 0,
        "id": isinstance(record.id, str),
        "at": isinstance(record.at, int | float),
        "kind": isinstance(record.kind, str),
        "agent": isinstance(record.agent, str | None),
        "turn": isinstance(record.turn, str | None),
        "scope": isinstance(record.scope, str | None),
        "body": isinstance(record.body, str | None),
        "salt": isinstance(record.salt, bytes | None),
        "digest": isinstance(record.digest, bytes | None),
        "hash": isinstance(record.hash, bytes) and len(record.hash) == HASH_BYTES,
    }
    return [name for name, is_right in right.items() if not is_right]


def _check_facts(store: Store, key: SessionKey, checker: _Checker) -> None:
    """Compare the facts that the store finds by their mark with those met in the log."""
    try:
        found = {event.seq for event in store.facts(key, until=checker.seq)}
    except OF_THE_SYSTEM:
        raise
    except (PlayheadError, *_WRONG_KIND) as error:
        checker.problem(f"the facts cannot be read: {error}")
        return
    for seq in sorted(found ^ checker.facts):
        checker.problem(f"event {seq} is not told from those on a path by its mark")


def _check_snapshots(store: Store, key: SessionKey, kept: Sequence[int], checker: _Checker) -> None:
    """Compare each snapshot with a full replay of its path, going on from the one before where it extends that."""
    fold, replayed = Fold(), _NOTHING
    for seq in kept:
        try:
            chain = store.tail(key, seq)[0]
            if not chain or chain[-1].seq != seq:
                checker.problem(f"the snapshot at {seq} cannot be used: it, or one that it builds on, is wrong or gone")
                continue
            slots = snapshots.restore(chain)
            path: Ranges = slots.get("path", [])
            more = _beyond(path, replayed)
            if more is None:
                fold, replayed, more = Fold(), _NOTHING, path
            parent = replayed[-1][1] if replayed else 0
            for event in events_at(store, key, more):
                if event.parent != parent:
                    checker.problem(f"the snapshot at {seq} names a path on which {event.seq} follows {parent}")
                fold.apply(event, checker.seq_of)
                parent = event.seq
            if parent != seq:
                checker.problem(f"the snapshot at {seq} names a path that ends at {parent}")
            replayed = path
        except OF_THE_SYSTEM:
            raise
        except (PlayheadError, *_WRONG_KIND) as error:
            checker.problem(f"the snapshot at {seq} cannot be read: {error}")
            fold, replayed = Fold(), _NOTHING
            continue
        if fold.slots != slots:
            wrong = sorted(name for name in {*fold.slots, *slots} if fold.slots.get(name) != slots.get(name))
            checker.problem(f"the snapshot at {seq} differs from a full replay in {', '.join(map(repr, wrong[:5]))}")


def _beyond(path: Ranges, replayed: Ranges) -> Ranges | None:
    """Return the part of `path` after `replayed`, or None where `replayed` is no beginning of it."""
    if not replayed:
        return None
    last = len(replayed) - 1
    if len(path) < len(replayed) or path[:last] != replayed[:last] or path[last][0] != replayed[last][0]:
        return None
    if path[last][1] < replayed[last][1] or (len(path) > len(replayed) and path[last][1] != replayed[last][1]):
        return None
    rest = [] if path[last][1] == replayed[last][1] else [[replayed[last][1] + 1, path[last][1]]]
    return rest + path[last + 1 :]


_NOTHING: Ranges = []
