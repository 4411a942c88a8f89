"""Writing what an importer read into a session: in batches, without doubling anything, branches kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from playhead.errors import SessionNotFound
from playhead.features.live import Clock, Entropy, Live
from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey
from playhead.stores.base import Store

BATCH = 500
"""Events per append: one transaction each. A kill between two loses nothing; the next import goes on from there."""

SNAPSHOT_EVERY = 200
"""Events of an import between snapshots."""


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
    is_new = not _exists(store, key)
    if is_new:
        first = Draft("session_started", started, "import-started", at)
        store.create(key, [first])
    live = Live(store, key, clock=clock, entropy=entropy)
    lease = store.acquire(key, label="import", at=clock())
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
            live.save_snapshot()
            live.save_summary()
    finally:
        live.fence = None
        store.release(lease)
    return Ingested(key=key, added_count=added, known_count=known, is_new=is_new)


def _add(live: Live, events: Sequence[SourceEvent]) -> tuple[int, int]:
    before = live.head
    seq_of = dict(_known(live, [event.id for event in events]))
    new = [event for event in events if event.id not in seq_of]
    if not new:
        return 0, len(events)
    end_id = events[events.index(new[0]) - 1].id if events[0] is not new[0] else _imported_end(live)
    continued = end_id is not None and seq_of.get(end_id, _seq(live, end_id)) != before
    if continued and end_id is not None:
        live.move_head(_event(live, end_id), why="import", at=new[0].at)
    batch: list[Draft] = []
    since_snapshot = 0
    placed = end_id
    for event in new:
        if event.after is not None and event.after != placed:
            _flush(live, batch)
            target = live.store.seq_of(live.key, [event.after]).get(event.after)
            if target is not None and target != live.head:
                live.move_head(live.store.events_at(live.key, [[target, target]])[0], why="edit", at=event.at)
        batch.append(Draft(event.kind, event.body, event.id, event.at, event.agent, event.turn, event.scope))
        placed = event.id
        since_snapshot += 1
        if len(batch) >= BATCH or since_snapshot >= SNAPSHOT_EVERY:
            _flush(live, batch)
            if since_snapshot >= SNAPSHOT_EVERY:
                live.save_snapshot()
                since_snapshot = 0
    _flush(live, batch)
    # Facts carry the time of what was imported: an import does not make an old session the one last active.
    live.append_fact(live.draft("session_changed", {"imported_to": placed, "by": "import"}, at=new[-1].at))
    if continued:
        live.save_snapshot()
        live.move_head(live.store.events_at(live.key, [[before, before]])[0], why="import")
    return len(new), len(events) - len(new)


def _flush(live: Live, batch: list[Draft]) -> None:
    if batch:
        live.append(batch)
        batch.clear()


def _known(live: Live, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
    for start in range(0, len(ids), BATCH):
        yield from live.store.seq_of(live.key, ids[start : start + BATCH]).items()


def _imported_end(live: Live) -> str | None:
    """Return the id of the last imported event, as the last import wrote it down; the first event where none did."""
    ends = [fact.body["imported_to"] for fact in live.store.facts(live.key) if "imported_to" in fact.body]
    return str(ends[-1]) if ends else None


def _imported_title(live: Live) -> str | None:
    """Return the title that the last import gave: one that a person set since is left alone."""
    facts = [fact for fact in live.store.facts(live.key) if "title" in fact.body]
    return facts[-1].body["title"] if facts and facts[-1].body.get("by") == "import" else None


def _seq(live: Live, id: str) -> int:
    return live.store.seq_of(live.key, [id]).get(id, 0)


def _event(live: Live, id: str) -> Event:
    seq = _seq(live, id)
    return live.store.events_at(live.key, [[seq, seq]])[0]


def _exists(store: Store, key: SessionKey) -> bool:
    try:
        store.tip(key)
    except SessionNotFound:
        return False
    return True
