"""The turns of a path: where each begins, what began it, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from playhead.model.body import text_in
from playhead.model.event import Event, begins_turn


class TurnSpan(msgspec.Struct, frozen=True):
    """One turn on a path.

    number: counts from 1 along the path. first_seq: where it begins; rewinding the turn moves the head to the event
    before. last_seq: the last event before the next turn. cause: what began it, or None. status: how it ended, or
    `open`. started_at, ended_at: UTC seconds; ended_at is None while it is open.
    """

    number: int
    id: str
    first_seq: int
    last_seq: int
    cause: str | None
    status: str
    started_at: float
    ended_at: float | None = None


def turns(path: Iterable[Event]) -> list[TurnSpan]:
    """Return the turns of a path (events from the first to the head), oldest first.

    A turn that went on after another one had begun is listed twice, under two numbers.
    """
    found: list[TurnSpan] = []
    for event in path:
        if begins_turn(event, found[-1].id if found else None):
            assert event.turn is not None, "a turn that begins has an id"
            cause = text_in(event.body, "cause") if event.kind == "turn_started" else None
            found.append(TurnSpan(len(found) + 1, event.turn, event.seq, event.seq, cause, "open", event.at))
        elif found:
            found[-1] = _continued(found[-1], event)
    return found


def _continued(turn: TurnSpan, event: Event) -> TurnSpan:
    turn = msgspec.structs.replace(turn, last_seq=event.seq)
    if event.turn != turn.id:
        return turn
    if event.kind == "turn_ended":
        status = text_in(event.body, "status") or "completed"
        return msgspec.structs.replace(turn, status=status, ended_at=event.at)
    if event.kind == "turn_started":
        # It was paused and goes on: what began it stays, and it is open again.
        return msgspec.structs.replace(turn, status="open", ended_at=None)
    return turn
