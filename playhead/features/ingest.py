"""Writing what an importer read into a session: in batches, without doubling anything, branches kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from playhead.errors import SessionBusy, SessionExists, SessionNotFound
from playhead.features.live import Clock, Entropy, Live
from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey
from playhead.stores.base import Lease, Store

LABEL = "import"
IMPORT_TRIES_MAX = 200
IMPORT_PAUSE_S = 0.05
"""Two imports of one session take turns: one waits for the other for ten seconds at the most."""

BATCH = 200
"""Events per append and between snapshots. A kill between two loses nothing; the next import goes on from there."""

IDS_MAX = 500
"""So many ids are looked up at a time."""

STARTED_ID = "import-started"
"""Id of the first event of a session that an import began."""


class SourceEvent(Protocol):
    """What an importer yields for each record; see `formats/imported.py`."""

    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...
    @property
    def id(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def agent(self) -> str | None: ...
    @property
    def turn(self) -> str | None: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def after(self) -> str | None: ...


class Ingested(msgspec.Struct, frozen=True):
    """What an import added. known_count: events that the log held already."""

    key: SessionKey
    added_count: int
    known_count: int
    is_new: bool


def ingest(
    store: Store,
    key: SessionKey,
    *,
    started: dict[str, Any],
    at: float,
    events: Sequence[SourceEvent],
    title: str | None,
    labels: Sequence[str],
    clock: Clock,
    entropy: Entropy,
) -> Ingested:
    """Add the events that the log does not hold yet, in the order of the source.

    They are placed after the imported end. Where somebody continued the session locally since, the head goes back to
    where it stood; else it stays at the imported end. An event whose `after` names another event begins a branch there.
    """
    is_new = not _exists(store, key) and _created(store, key, Draft("session_started", started, STARTED_ID, at))
    live = Live(store, key, clock=clock, entropy=entropy)
    lease = _lease(store, key, at=clock())
    live.fence = lease.fence
    try:
        live.refresh()
        added, known = _add(live, events)
        facts = live.facts()
        changed: dict[str, Any] = {}
        if title is not None and facts.title in (None, _imported_title(live)) and title != facts.title:
            changed["title"] = title
        if labels and not facts.labels:
            changed["labels"] = list(labels)
        if changed:
            live.append_fact(live.draft("session_changed", {**changed, "by": "import"}, at=live.last_at))
        if added or is_new or changed:
            live.save_caches()
    finally:
        live.fence = None
        store.release(lease)
    return Ingested(key=key, added_count=added, known_count=known, is_new=is_new)


def _created(store: Store, key: SessionKey, first: Draft) -> bool:
    """Begin the session; False where another import did so just now."""
    try:
        store.create(key, [first])
    except SessionExists:
        return False
    return True


def _lease(store: Store, key: SessionKey, *, at: float) -> Lease:
    """Take the lease, waiting for another import of the same session. Raises `SessionBusy` for any other holder."""
    for _ in range(IMPORT_TRIES_MAX):
        try:
            return store.acquire(key, label=LABEL, at=at)
        except SessionBusy as busy:
            if busy.holder.get("label") != LABEL:
                raise
            time.sleep(IMPORT_PAUSE_S)
    return store.acquire(key, label=LABEL, at=at)


def _add(live: Live, events: Sequence[SourceEvent]) -> tuple[int, int]:
    seq_of = dict(_known(live, [event.id for event in events]))
    new = [event for event in events if event.id not in seq_of]
    if not new:
        return 0, len(events)
    end_id = events[events.index(new[0]) - 1].id if events[0] is not new[0] else _imported_end(live)
    end = None if end_id is None else _event(live, seq_of.get(end_id) or _seq(live, end_id))
    is_continued = end is not None and end.seq != live.head
    placing = _Placing(live, end, back=_event(live, live.head) if is_continued else None)
    placed = end_id
    since_snapshot = 0
    for event in new:
        if event.after is not None and event.after != placed:
            placing.flush()
            placing.branch_at(_seq(live, event.after))
        placing.add(Draft(event.kind, event.body, event.id, event.at, event.agent, event.turn, event.scope))
        placed = event.id
        since_snapshot += 1
        if since_snapshot >= BATCH and event is not new[-1]:
            placing.flush()
            placing.save_snapshot()
            since_snapshot = 0
    # Facts carry the time of what was imported: an import does not make an old session the one last active.
    placing.flush(live.draft("session_changed", {"imported_to": placed, "by": "import"}, at=new[-1].at))
    if is_continued:
        placing.save_snapshot()
    return len(new), len(events) - len(new)


class _Placing:
    """Places events after the imported end, in batches. A batch and the moves of the head that it takes are one append:
    a kill between two of them leaves the head where it belongs.

    end: the imported event after which the next one goes, or None for the head. back: where the head stands again after
    each batch, since the session was continued there; None lets it follow the imported end.
    """

    def __init__(self, live: Live, end: Event | None, *, back: Event | None) -> None:
        self._live = live
        self._end = end
        self._back = back
        self._why = "import"
        self._batch: list[Draft] = []

    def branch_at(self, seq: int) -> None:
        """Let the next event follow another one than the imported end; seq 0 stands for one that is not there."""
        if seq and (self._end is None or seq != self._end.seq):
            self._end, self._why = _event(self._live, seq), "edit"

    def add(self, draft: Draft) -> None:
        self._batch.append(draft)

    def flush(self, *facts: Draft) -> None:
        """Append the batch, and these facts with it."""
        if not self._batch:
            return
        drafts = [*self._batch, *facts]
        if self._end is not None and self._end.seq != self._live.head:
            drafts.insert(0, self._move(self._end, self._why, at=self._batch[0].at))
        if self._back is not None:
            drafts.append(self._move(self._back, "import", at=None))
        last = self._batch[-1].id
        events = self._live.append(drafts)
        self._end = next(event for event in events if event.id == last)
        self._why = "import"
        self._batch = []

    def save_snapshot(self) -> None:
        """Save a snapshot at the imported end."""
        if self._end is not None and self._end.seq != self._live.head:
            there = Live(self._live.store, self._live.key, clock=self._live.clock, entropy=self._live.entropy)
            there._go_to(self._end.seq)
            there.save_snapshot()
        else:
            self._live.save_snapshot()

    def _move(self, to: Event, why: str, *, at: float | None) -> Draft:
        return self._live.draft("head_moved", {"to": to.id, "why": why}, parent=to.seq, at=at)


def _known(live: Live, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
    for start in range(0, len(ids), IDS_MAX):
        yield from live.store.seq_of(live.key, ids[start : start + IDS_MAX]).items()


def _imported_end(live: Live) -> str | None:
    """Return the id of the last imported event, as the last import wrote it down. Where none did, it is the first event
    of a session that an import began, and None for any other."""
    ends = [fact.body["imported_to"] for fact in live.store.facts(live.key) if "imported_to" in fact.body]
    return str(ends[-1]) if ends else STARTED_ID if _seq(live, STARTED_ID) else None


def _imported_title(live: Live) -> str | None:
    """Return the title that the last import gave: one that a person set since is left alone."""
    facts = [fact for fact in live.store.facts(live.key) if "title" in fact.body]
    return facts[-1].body["title"] if facts and facts[-1].body.get("by") == "import" else None


def _seq(live: Live, id: str) -> int:
    return live.store.seq_of(live.key, [id]).get(id, 0)


def _event(live: Live, seq: int) -> Event:
    return live.store.events_at(live.key, [[seq, seq]])[0]


def _exists(store: Store, key: SessionKey) -> bool:
    try:
        store.tip(key)
    except SessionNotFound:
        return False
    return True
