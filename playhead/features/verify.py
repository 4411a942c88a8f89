"""Verifying a session: the chain, the parents, the facts' marks, and that snapshots say what a full replay says."""

from __future__ import annotations

import msgspec

from playhead.errors import PlayheadError
from playhead.features.live import events_at
from playhead.model import snapshot as snapshots
from playhead.model.codec import FIRST_HASH, body_digest, chain_hash, decode_body, envelope_bytes
from playhead.model.event import is_fact
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.stores.base import Record, Store
from playhead.views.fold import Fold

PROBLEMS_MAX = 100
"""A report names so many problems at most; a log that is damaged throughout would name every event."""


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
    """Check one session whole. Reads every event once, and the path of each snapshot once more; writes nothing."""
    checker = _Checker()
    after = 0
    while page := store.records(key, after=after):
        for record in page:
            checker.take(record)
        after = page[-1].seq
    kept = _check_snapshots(store, key, checker)
    tip = store.tip(key)
    if (tip.seq, tip.hash) != (checker.seq, checker.hash):
        checker.problem(f"the log was read up to {checker.seq}, but its end is {tip.seq}")
    return Verified(
        session=key.id,
        ok=not checker.problems,
        problems=tuple(checker.problems[:PROBLEMS_MAX]),
        event_count=checker.count,
        redacted_count=checker.redacted,
        snapshot_count=kept,
        head_hash=checker.hash.hex(),
    )


class _Checker:
    """Goes through the records in order and collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.seq = 0
        self.hash = FIRST_HASH
        self.count = 0
        self.redacted = 0
        self._head = 0
        self.seq_of: dict[str, int] = {}
        self._on_path: set[int] = set()

    def problem(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)

    def take(self, record: Record) -> None:
        if record.seq != self.seq + 1:
            self.problem(f"event {record.seq} follows event {self.seq}: the numbers between are missing")
        self._check_chain(record)
        self._check_place(record)
        if record.id in self.seq_of:
            self.problem(f"event {record.seq} has the id of event {self.seq_of[record.id]}")
        self.seq_of[record.id] = record.seq
        self.seq = record.seq
        self.count += 1

    def _check_chain(self, record: Record) -> None:
        if record.body is None:
            self.redacted += 1
            digest = record.digest or b""
        else:
            digest = body_digest(record.salt or b"", record.body)
        envelope = envelope_bytes(
            seq=record.seq,
            parent=record.parent,
            at=record.at,
            id=record.id,
            kind=record.kind,
            agent=record.agent,
            turn=record.turn,
            scope=record.scope,
        )
        if chain_hash(self.hash, envelope, digest) != record.hash:
            self.problem(f"event {record.seq} does not match its hash: it, or the order, was changed")
        # Going on from the stored hash names each damaged event alone, not all that follow it.
        self.hash = record.hash

    def _check_place(self, record: Record) -> None:
        body = {}
        if record.body is not None:
            try:
                body = decode_body(record.body)
            except PlayheadError as error:
                self.problem(f"event {record.seq}: {error}")
        if record.body is not None and record.is_fact != is_fact(record.kind, body):
            self.problem(f"event {record.seq} is marked as the wrong one of fact and event on the path")
        if record.kind == "head_moved":
            target = self.seq_of.get(str(body.get("to")), 0)
            if record.body is not None and record.parent != target:
                self.problem(f"event {record.seq} moves the head to {record.parent}, but names event {target}")
            if record.parent not in self._on_path:
                self.problem(f"event {record.seq} moves the head to {record.parent}, which lies on no path")
            self._head = record.parent
        elif record.parent != self._head:
            self.problem(f"event {record.seq} has parent {record.parent}, but the head stood at {self._head}")
        if not record.is_fact:
            self._on_path.add(record.seq)
            self._head = record.seq


def _check_snapshots(store: Store, key: SessionKey, checker: _Checker) -> int:
    """Compare each snapshot with a full replay of its path, going on from the one before where it extends that."""
    kept = store.snapshot_seqs(key)
    fold, replayed = Fold(), _NOTHING
    for seq in kept:
        try:
            slots = snapshots.restore(store.tail(key, seq)[0])
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
        except (PlayheadError, KeyError, IndexError, TypeError, ValueError) as error:
            checker.problem(f"the snapshot at {seq} cannot be read: {error}")
            fold, replayed = Fold(), _NOTHING
            continue
        if fold.slots != slots:
            wrong = sorted(name for name in {*fold.slots, *slots} if fold.slots.get(name) != slots.get(name))
            checker.problem(f"the snapshot at {seq} differs from a full replay in {', '.join(map(repr, wrong[:5]))}")
    return len(kept)


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
