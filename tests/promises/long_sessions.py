"""Sessions of any length whose live conversation is always the same: what they cost must not grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from playhead.model.event import Draft
from playhead.session import Session
from playhead.testing.drafts import FIRST_AT

EVENTS_PER_TURN = 8
LIVE_TURNS = 3
"""Turns that a compaction leaves as they are."""

COMPACT_EVERY = 40
"""Turns between compactions."""

SNAPSHOT_EVERY = 8
"""Turns between snapshots: as many as make a long session quick to write."""

LOG_TEXT = "FAILED tests/upload: connection reset by peer, retry 3 of 5. " * 12


def lengthen(session: Session, event_count: int) -> None:
    """Add turns until the log holds at least so many events. The last thing done is a compaction and a snapshot."""
    number = session.turn_count
    while session.seq < event_count:
        number += 1
        session.append_all(list(turn(number)))
        if number % COMPACT_EVERY == 0:
            compact(session, number)
        if number % SNAPSHOT_EVERY == 0:
            session._live.save_snapshot()
    compact(session, number)
    session.close()


def turn(number: int) -> Iterator[Draft]:
    """Yield the events of a turn as an agent records them: about 850 bytes of JSON each, like real ones."""

    def draft(kind: str, body: dict[str, object], step: int, agent: str | None = "coordinator") -> Draft:
        id = f"t{number}-{step}"
        return Draft(kind, body, id, FIRST_AT + number * 10 + step, agent, f"turn-{number}")

    def message(role: str, *parts: Mapping[str, object]) -> dict[str, object]:
        return {"role": role, "parts": list(parts)}

    call = f"call-{number}"
    text = {"type": "text", "content": f"Why does test_upload fail? ({number}) {LOG_TEXT}"}
    asked = {"type": "tool_call", "id": call, "name": "run_tests", "arguments": {"path": LOG_TEXT[:200]}}
    answered = {"type": "tool_call_response", "id": call, "response": {"log": LOG_TEXT * 2}}
    said = {"type": "text", "content": f"The upload test times out. ({number}) {LOG_TEXT}"}
    yield draft("turn_started", {"cause": "user"}, 0)
    yield draft("message", message("user", text), 1, "user")
    yield draft("message", message("assistant", {"type": "reasoning", "content": LOG_TEXT}), 2)
    yield draft("message", message("assistant", asked), 3)
    yield draft("message", message("tool", answered), 4)
    yield draft("state_changed", {"delta": {"session": {"runs": number, "log": LOG_TEXT}}}, 5)
    yield draft("message", message("assistant", said), 6)
    yield draft("turn_ended", {"status": "completed", "usage": {"output_tokens": 100}}, 7)


def compact(session: Session, number: int) -> None:
    """Let a summary stand for all but the last turns."""
    last = f"t{number - LIVE_TURNS}-6"
    session.append("compaction", {"from": "t1-1", "to": last, "summary": "Tests were run, again and again."})
