"""Rewind, seek and fork: moving the head along the log, and beginning a new session from a path.

Nothing is deleted by any of them, and each is one append.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from playhead.errors import ArtifactDamaged, ArtifactNotFound, EventNotFound, TurnNotFound
from playhead.features.live import Live, events_at
from playhead.model.body import text_in
from playhead.model.event import Draft, Event, is_fact
from playhead.model.ids import SessionKey


def event_at(live: Live, seq: int) -> Event:
    """Return one event. Raises `EventNotFound`."""
    found = live.store.events_at(live.key, [[seq, seq]]) if seq >= 1 else []
    if not found:
        raise EventNotFound(live.key.id, seq)
    return found[0]


def path_event_at(live: Live, seq: int) -> Event:
    """Return the event on a path that `seq` means: for a fact, the event at which the head stood after it."""
    event = event_at(live, seq)
    return event_at(live, event.parent) if is_fact(event.kind, event.body) else event


def turn_start(live: Live, turn: int) -> Event:
    """Return the first event of a turn of the current path. Turns count from 1, or from -1 backwards from the last.

    Raises `TurnNotFound`. The last turn is found without reading the path.
    """
    fold = live.shown()
    count = fold.turn_count
    number = count + 1 + turn if turn < 0 else turn
    if not 1 <= number <= count:
        raise TurnNotFound(live.key.id, turn, turn_count=count)
    if number == count:
        return event_at(live, fold.slots["turns"][2])
    seen, last = 0, None
    for event in events_at(live.store, live.key, fold.path):
        if event.turn is not None and event.turn != last:
            seen, last = seen + 1, event.turn
            if seen == number:
                return event
    raise TurnNotFound(live.key.id, turn, turn_count=seen)


def rewind(live: Live, *, turn: int | None = None, to: int | None = None, why: str = "rewind") -> Event:
    """Move the head back: before turn `turn` (it and all after it are hidden), or to event `to`.

    Returns the `head_moved`. Raises `TurnNotFound` or `EventNotFound`; then nothing was written.
    """
    if (turn is None) == (to is None):
        raise ValueError("rewind needs either a turn or an event to go to")
    target = path_event_at(live, to) if to is not None else event_at(live, turn_start(live, turn or 0).parent)
    return live.move_head(target, why=why)


def fork(live: Live, *, at: int | None, key: SessionKey, title: str | None) -> list[Event]:
    """Create session `key` from the path up to and including event `at` (the head by default), in one transaction.

    Events keep their ids, times and bodies (the first one is of now); seq and the chain are new. Facts are not copied,
    but the labels and the title (that of the list where none was set; with `(fork)` behind it) hold on, as they were at
    `at`. Nothing that only another
    path holds is copied. The new session's first event names its parent.
    """
    target = path_event_at(live, live.head if at is None else at)
    if target.seq == live.head:
        ranges = live.shown().path
    else:
        from_live = Live(live.store, live.key, clock=live.clock, entropy=live.entropy)
        from_live._go_to(target.seq)
        ranges = from_live.fold.path
    path = events_at(live.store, live.key, ranges)
    parent = {"app": live.key.app, "user": live.key.user, "session": live.key.id, "event": target.id, "seq": target.seq}
    facts = live.facts(until=at)
    started = {**path[0].body, "app": key.app, "user": key.user, "forked_from": parent}
    first = msgspec.structs.replace(_copy(path[0], started), at=live.clock())
    drafts = [first, *(_copy(event, event.body) for event in path[1:])]
    new_title = title or f"{facts.title or live.summary().title} (fork)"
    changed = {"title": new_title} | ({"labels": list(facts.labels)} if facts.labels else {})
    drafts.append(live.draft("session_changed", changed))
    return live.store.create(key, drafts, artifacts=_artifacts(live, path))


def _artifacts(live: Live, path: Sequence[Event]) -> Iterator[bytes]:
    """Yield the bytes of every artifact of a path. Where this session has lost one, its fork lacks it too."""
    hashes = (text_in(event.body, "hash") for event in path if event.kind == "artifact_saved")
    for hash in dict.fromkeys(hash for hash in hashes if hash):
        with contextlib.suppress(ArtifactNotFound, ArtifactDamaged):
            yield live.store.artifacts.get(live.key, hash)


def _copy(event: Event, body: dict[str, object]) -> Draft:
    return Draft(event.kind, body, event.id, event.at, event.agent, event.turn, event.scope)
