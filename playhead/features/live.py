"""A session as a program holds it: where its log ends and the live fold, kept in step with every append."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from playhead.errors import PlayheadError, StaleWriter, StoreDamaged
from playhead.features.pushing import PUSH_EVENTS, PUSH_S, REST_S, Unpushed
from playhead.model import path as paths, snapshot as snapshots
from playhead.model.event import Draft, Event, is_fact
from playhead.model.ids import SessionKey, time_ordered_id
from playhead.model.path import Ranges
from playhead.model.snapshot import Snapshot
from playhead.stores.base import EVENTS_PAGE_MAX, Store
from playhead.views.facts import Facts, facts
from playhead.views.fold import Fold, references
from playhead.views.summary import Summary, summary, wanted_seqs

Clock = Callable[[], float]
Entropy = Callable[[int], bytes]

PENDING_MAX = 1_000
"""So many appended events wait for the fold at the most."""

FACT_RETRIES_MAX = 20
"""A fact does not depend on what came before it, so a stale append of one is read again and retried so often."""


_WRONG_SHAPE = (LookupError, TypeError, ValueError, AttributeError)
"""What folding on from a snapshot raises that is damaged in a way which only shows when it is used."""


class Position(msgspec.Struct, frozen=True):
    """A fold at a head, and the chain of snapshots that it was read from ([] where the whole path was replayed)."""

    fold: Fold
    chain: list[Snapshot]


def position_at(store: Store, key: SessionKey, head: int) -> Position:
    """Return the fold of the path that ends at `head`.

    Reads the newest snapshot on that path and the events after it: the cost of the tail, whatever the history's length.
    """
    chain, tail = store.tail(key, head)
    ids = references(tail)
    seq_of = store.seq_of(key, ids) if ids else {}
    try:
        return Position(fold=Fold(snapshots.restore(chain)).apply_all(tail, seq_of), chain=chain)
    except _WRONG_SHAPE:
        if not chain:
            raise
        # It is a cache: the log has everything.
        return Position(fold=_replayed(store, key, head), chain=[])


def _replayed(store: Store, key: SessionKey, head: int) -> Fold:
    """Return the fold of a path without any snapshot. Reads the whole log."""
    events = {event.seq: event for event in all_events(store, key)}
    try:
        path = paths.path(events, head)
    except (KeyError, ValueError) as error:
        raise StoreDamaged(f"session {key.id!r}: the path to event {head} is broken: {error}") from error
    return Fold().apply_all(path, {event.id: event.seq for event in events.values()})


def events_at(store: Store, key: SessionKey, positions: Ranges) -> list[Event]:
    """Return the events at these positions; [] reads nothing."""
    return store.events_at(key, positions) if positions else []


def all_events(store: Store, key: SessionKey, *, after: int = 0) -> Iterable[Event]:
    """Yield every event after a seq, in order, a page at a time."""
    while page := store.events(key, after=after):
        yield from page
        after = page[-1].seq
        if len(page) < EVENTS_PAGE_MAX:
            return


class Live:
    """One session, open. Thread-safe: verbs of several threads take turns.

    seq is the revision that this object knows; an append is compared against it. fence, where set, is that of the lease
    which this object's turn holds. jobs: ids of the jobs that this process runs beyond its turns.

    unpushed: where it is given, appends push the row of the list now and then, and it knows whose row is behind.
    Without it, whoever writes saves the row when it is done. is_new: the session was begun just now and has no row.
    """

    def __init__(
        self,
        store: Store,
        key: SessionKey,
        *,
        clock: Clock,
        entropy: Entropy,
        unpushed: Unpushed | None = None,
        is_new: bool = False,
    ) -> None:
        self.store = store
        self.key = key
        self.clock = clock
        self.entropy = entropy
        self.lock = threading.RLock()
        self.fence: int | None = None
        self.jobs: set[str] = set()
        tip = store.tip(key)
        self.seq, self.head, self.last_at = tip.seq, tip.head, tip.at
        self._position: Position | None = position_at(store, key, tip.head)
        self._pending: list[Event] = []
        self._shown: tuple[int, Fold] | None = None
        self._facts: Facts | None = None
        self.unpushed = unpushed
        # A session that is only read has nothing to push, so what it was opened at counts as pushed.
        self._pushed_seq = tip.seq if unpushed is not None and not is_new else 0
        self._pushed_at, self._tried_at = tip.at, 0.0
        self._is_waiting = is_new and unpushed is not None
        if self._is_waiting and unpushed is not None:
            unpushed.add(self)

    @property
    def fold(self) -> Fold:
        """The live fold, to be looked at under `lock`. It is brought up to the head when somebody looks: an append
        itself should cost little, and must not fail for what comes after it."""
        with self.lock:
            return self._at_head().fold

    def shown(self) -> Fold:
        """Return a fold that later appends leave as it is, for readers beside a writer."""
        with self.lock:
            if self._shown is None or self._shown[0] != self.seq:
                self._shown = (self.seq, self.fold.copy())
            return self._shown[1]

    def _at_head(self) -> Position:
        """Return the position at the head: from what is known and the appended events, or read from the store."""
        position, pending = self._position, self._pending
        self._position, self._pending = None, []  # Whatever fails below, the next look reads it all again.
        if position is None:
            position = position_at(self.store, self.key, self.head)
        elif pending:
            ids = references(pending)
            seq_of = self.store.seq_of(self.key, ids) if ids else {}
            try:
                position.fold.apply_all(pending, seq_of)
            except _WRONG_SHAPE:
                position = position_at(self.store, self.key, self.head)
        self._position = position
        return position

    # Writing.

    def draft(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        agent: str | None = None,
        turn: str | None = None,
        scope: str | None = None,
        id: str | None = None,
        at: float | None = None,
        parent: int | None = None,
    ) -> Draft:
        """Return a draft with an id and a time, where none are given."""
        now = self.clock() if at is None else at
        return Draft(kind, body, id or time_ordered_id(now, self.entropy(6)), now, agent, turn, scope, parent)

    def new_id(self, now: float | None = None) -> str:
        return time_ordered_id(self.clock() if now is None else now, self.entropy(6))

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Append and take the events into the fold. Durable on return; one transaction for all of them."""
        with self.lock:
            events = self.store.append(self.key, drafts, expected_seq=self.seq, fence=self.fence)
            self._take_in(events)
            if self.unpushed is not None:
                self._push_where_due(self.unpushed)
            return events

    def append_fact(self, draft: Draft) -> Event:
        """Append a fact, whatever others appended meanwhile."""
        with self.lock:
            for _ in range(FACT_RETRIES_MAX):
                try:
                    return self.append([draft])[0]
                except StaleWriter:
                    self.refresh()
            return self.append([draft])[0]

    def move_head(self, to: Event, *, why: str, at: float | None = None) -> Event:
        """Append the `head_moved` that places the head at `to`."""
        with self.lock:
            body = {"to": to.id, "why": why}
            return self.append([self.draft("head_moved", body, parent=to.seq, at=at)])[0]

    def refresh(self) -> None:
        """Take in what others appended since this object last looked."""
        with self.lock:
            tip = self.store.tip(self.key)
            is_other = tip.seq < self.seq  # A log never gets shorter: somebody deleted it and began another.
            if tip.seq != self.seq:
                self.seq, self.last_at, self._facts = tip.seq, tip.at, None
                self._pushed_seq = 0 if is_other else self._pushed_seq
                if tip.head != self.head or is_other:
                    self._go_to(tip.head)

    def _take_in(self, events: Sequence[Event]) -> None:
        """Follow what was appended. A retry brings back events that are known already."""
        for event in events:
            if event.seq <= self.seq:
                continue
            if event.seq != self.seq + 1:
                self._facts = None  # Others appended facts while this object's turn went on.
            self.seq, self.last_at = event.seq, event.at
            if is_fact(event.kind, event.body):
                self._facts = None
                if event.parent != self.head:
                    self._go_to(event.parent)
            elif event.parent == self.head:
                self._pending.append(event)
                self.head = event.seq
                if len(self._pending) >= PENDING_MAX:
                    with contextlib.suppress(PlayheadError):  # The next look reads what could not be taken in here.
                        self._at_head()
            else:
                self._go_to(event.seq)

    def _go_to(self, head: int) -> None:
        """Stand elsewhere. The fold there is read when somebody looks, so that a failure of that fails no append."""
        self.head, self._position, self._pending, self._shown = head, None, [], None

    # Caches.

    def save_caches(self) -> None:
        """Save a snapshot and the listing row where they are behind, as far as the store lets us.

        A failure is let go: the log has everything, and whoever misses a snapshot or a row works it out again. What was
        recorded must not be reported as failed because a cache of it could not be kept.
        """
        with contextlib.suppress(PlayheadError):
            self.save_snapshot()
        with contextlib.suppress(PlayheadError), self.lock:
            if self._pushed_seq != self.seq:
                self.save_summary()

    def save_snapshot(self) -> None:
        """Save the fold at the head, as a change to the last snapshot on the path where there is one."""
        with self.lock:
            position = self._at_head()
            fold, chain = position.fold, position.chain
            if chain and chain[-1].seq == fold.head:
                return
            saved = snapshots.next_snapshot(chain, fold.slots, seq=fold.head)
            self.store.save_snapshot(self.key, saved)
            self._position = Position(fold=fold, chain=snapshots.extended(chain, saved))

    def save_summary(self) -> Summary:
        """Save and return the listing row."""
        with self.lock:
            if self._facts is None:
                self._facts = self.facts(until=self.seq)
            row = self._row(self._facts)
            self.store.save_summary(self.key, row.seq, msgspec.json.encode(row).decode())
            self._pushed_seq, self._pushed_at = row.seq, self.last_at
            if self._is_waiting and self.unpushed is not None:
                self._is_waiting = False
                self.unpushed.discard(self)
            return row

    def push(self, *, wait_s: float) -> bool:
        """Save the listing row where it is behind. False where another thread was at work here all the while.

        No failure of it is raised: an append that landed must not be reported as failed, and whoever lists works out a
        row that is behind.
        """
        if not self.lock.acquire(timeout=wait_s):
            return False
        try:
            if self._pushed_seq != self.seq:
                with contextlib.suppress(Exception):
                    self.save_summary()
        finally:
            self.lock.release()
        return True

    def _push_where_due(self, unpushed: Unpushed) -> None:
        """Push the row after an append, where enough events or enough time lie since the last time.

        The events' own times are compared, which costs nothing. Only where they say so, the clock is asked, since they
        may be of another year; and a clock that went back must not stop this.
        """
        if not self._is_waiting and self._pushed_seq != self.seq:
            self._is_waiting = True
            unpushed.add(self)
        if self.seq - self._pushed_seq < PUSH_EVENTS and -PUSH_S < self.last_at - self._pushed_at < PUSH_S:
            return
        now = self.clock()
        if abs(now - self._tried_at) >= REST_S:
            self._tried_at = now
            self.push(wait_s=0.0)

    # Reading.

    def facts(self, *, until: int | None = None) -> Facts:
        return facts(self.store.facts(self.key, until=until))

    def summary(self) -> Summary:
        """Return the listing row as it is now."""
        with self.lock:
            return self._row(self.facts())

    def _row(self, facts: Facts) -> Summary:
        """Return the listing row, from the fold itself: a copy of a long one costs more than all else."""
        fold = self.fold
        events = {event.seq: event for event in events_at(self.store, self.key, paths.of_seqs(wanted_seqs(fold)))}
        return summary(fold, facts, events, seq=self.seq, last_at=self.last_at)
