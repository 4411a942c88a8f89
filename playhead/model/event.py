"""Events: the immutable records that a session's log is made of, and the closed list of their kinds.

An event lies on the path, or it is a *fact*: a statement about the session itself (its title, where the head stands,
what was redacted, state shared beyond the session). A fact has no children; it counts for every path and is folded in
`seq` order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

import msgspec

from playhead.errors import InvalidEvent, InvalidName
from playhead.model.body import object_in
from playhead.model.ids import LABEL_CHARS_MAX, check_name

Kind = Literal[
    "session_started",
    "message",
    "turn_started",
    "turn_ended",
    "state_changed",
    "head_moved",
    "compaction",
    "interrupt_requested",
    "interrupt_answered",
    "job_changed",
    "trigger_changed",
    "trigger_fired",
    "channel_message",
    "artifact_saved",
    "session_changed",
    "redacted",
    "note",
]

KINDS: frozenset[str] = frozenset(get_args(Kind))

Body = dict[str, Any]
"""An event's body: a JSON object. `Any`: its shape depends on the kind, and `check_draft` says what must be there."""

FACT_KINDS: frozenset[str] = frozenset({"session_changed", "head_moved", "redacted"})
SHARED_SCOPES: frozenset[str] = frozenset({"user", "app"})
"""State scopes that reach beyond the session. A `state_changed` holds either these or the session's own, never both."""


# gc=False, here and for drafts: bodies are JSON, which holds no cycles, and reading 10,000 events takes half the time
# when the garbage collector need not visit them.
class Event(msgspec.Struct, frozen=True, gc=False):
    """One immutable record of a session's log.

    seq: 1, 2, 3 … within the session, without gaps. The only order there is.
    parent: for an event on the path, the seq of the event before it (0 for the first). For a fact, the seq at which
        the head stands after it; `head_after` says where that is for any event.
    id: unique in the session; appending the same id again is recognised as the same event.
    at: UTC seconds. Informative: clocks go back, `seq` does not.
    kind: one of `KINDS`.
    agent: who wrote it (`user`, `coordinator`, `coordinator/researcher:2`), or None for the session itself.
    turn: id of the turn it belongs to, or None.
    scope: isolation scope, or None for the main conversation.
    body: a JSON object; refers to other events by id. Empty where it was redacted (`redacted_body`).
    """

    seq: int
    parent: int
    id: str
    at: float
    kind: str
    agent: str | None
    turn: str | None
    scope: str | None
    body: Body


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event that is about to be appended: all that the writer decides; the store adds `seq` and `parent`.

    `parent` is left None except in a `head_moved`, where it is the seq that the head moves to.
    """

    kind: str
    body: Body
    id: str
    at: float
    agent: str | None = None
    turn: str | None = None
    scope: str | None = None
    parent: int | None = None


def is_fact(kind: str, body: Mapping[str, Any]) -> bool:
    """Return True when such an event lies on no path."""
    if kind != "state_changed":
        return kind in FACT_KINDS
    return any(not SHARED_SCOPES.isdisjoint(object_in(body, field)) for field in ("delta", "removed"))


def redacted_body(kind: str, *, is_fact: bool) -> Body:
    """Return what an event reads as whose body was redacted: nothing but what tells a fact from an event on the path.

    A `state_changed` is the one kind where only the body tells, so a shared one keeps an empty change of user state.
    """
    return {"delta": {"user": {}}} if kind == "state_changed" and is_fact else {}


def head_after(event: Event) -> int:
    """Return the seq at which the head stands once `event` is in the log."""
    return event.parent if is_fact(event.kind, event.body) else event.seq


def begins_turn(event: Event, last_turn: str | None) -> bool:
    """Return True when a turn begins with this event of a path, where `last_turn` is the one that began before it.

    A turn begins as it is started, or with what is first said in the main conversation. What else names another turn
    (the end of a job that an earlier turn left running, and its result) is a late event of that turn and begins none.
    """
    if event.turn is None or event.turn == last_turn:
        return False
    if event.kind == "message":
        return event.scope is None and event.body.get("role") != "tool"
    return event.kind == "turn_started" or (event.kind == "trigger_fired" and event.scope is None)


_REQUIRED: Mapping[str, tuple[tuple[str, type], ...]] = {
    "session_started": (("app", str), ("user", str)),
    "message": (("role", str), ("parts", list)),
    "turn_started": (("cause", str),),
    "turn_ended": (("status", str),),
    "state_changed": (),
    "head_moved": (("to", str), ("why", str)),
    "compaction": (("from", str), ("to", str), ("summary", str)),
    "interrupt_requested": (("interrupt", str), ("reason", str)),
    "interrupt_answered": (("interrupt", str), ("status", str)),
    "job_changed": (("job", str), ("kind", str), ("status", str)),
    "trigger_changed": (("trigger", str), ("type", str), ("status", str)),
    "trigger_fired": (("trigger", str),),
    "channel_message": (("channel", str), ("sender", str)),
    "artifact_saved": (("name", str), ("hash", str), ("size", int)),
    "session_changed": (),
    "redacted": (("events", list),),
    "note": (("name", str),),
}
"""Fields without which an event of the kind means nothing: texts of at least one character, and lists or numbers.
Everything else in a body is optional and kept as it is."""

_ROLES = frozenset({"system", "user", "assistant", "tool"})


def check_draft(draft: Draft) -> None:
    """Raise `InvalidEvent` unless the draft could become an event. Nothing is changed.

    Whether JSON can hold the body is the codec's to say (`encode_body`).
    """
    required = _REQUIRED.get(draft.kind)
    if required is None:
        raise InvalidEvent(f"unknown kind {draft.kind!r}; anything outside the list is a 'note' with a name")
    if not isinstance(draft.body, dict):
        raise InvalidEvent(f"the body of a {draft.kind} must be a dict, not {type(draft.body).__name__}")
    for field, kind in required:
        value = draft.body.get(field)
        if type(value) is not kind or value == "":
            raise InvalidEvent(f"a {draft.kind} needs {field!r} ({kind.__name__}, not empty); got {value!r}")
    _check_envelope(draft)
    if draft.kind == "message":
        _check_message(draft.body)
    elif draft.kind == "state_changed":
        _check_state(draft.body)


def _check_envelope(draft: Draft) -> None:
    try:
        check_name(draft.id, "an event id")
        _check_writer(draft.agent, draft.turn, draft.scope)
    except (InvalidName, TypeError) as error:
        raise InvalidEvent(str(error)) from error
    if not _is_time(draft.at):
        raise InvalidEvent(f"'at' must be finite UTC seconds, not {draft.at!r}")
    moves = draft.kind == "head_moved"
    if moves and (type(draft.parent) is not int or draft.parent < 1):
        raise InvalidEvent(f"a head_moved needs the seq it moves to as 'parent', not {draft.parent!r}")
    if not moves and draft.parent is not None:
        raise InvalidEvent(f"only a head_moved names its 'parent'; the store places a {draft.kind} after the head")


@lru_cache(maxsize=1_024)  # The same names come again with every event of a turn; an append is timed in microseconds.
def _check_writer(agent: str | None, turn: str | None, scope: str | None) -> None:
    if agent is not None:
        check_name(agent, "an agent", chars_max=LABEL_CHARS_MAX)
    if turn is not None:
        check_name(turn, "a turn id")
    if scope is not None:
        check_name(scope, "a scope", chars_max=LABEL_CHARS_MAX)


def _is_time(at: Any) -> bool:
    try:
        return type(at) in (int, float) and math.isfinite(at)
    except OverflowError:  # An integer that no float can hold.
        return False


def _check_message(body: Body) -> None:
    if body["role"] not in _ROLES:
        raise InvalidEvent(f"role must be one of {', '.join(sorted(_ROLES))}, not {body['role']!r}")
    for part in body["parts"]:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InvalidEvent(f"a part must be an object with a 'type', not {part!r}")


def _check_state(body: Body) -> None:
    delta, removed = body.get("delta", {}), body.get("removed", {})
    if not isinstance(delta, dict) or not isinstance(removed, dict) or not (delta or removed):
        raise InvalidEvent("a state_changed needs 'delta' ({scope: {key: value}}) or 'removed' ({scope: [key]})")
    if any(not isinstance(values, dict) for values in delta.values()):
        raise InvalidEvent("'delta' must be {scope: {key: value}}")
    if any(not isinstance(keys, list) for keys in removed.values()):
        raise InvalidEvent("'removed' must be {scope: [key]}")
    shared = [scope in SHARED_SCOPES for scope in (*delta, *removed)]
    if any(shared) and not all(shared):
        raise InvalidEvent("user and app state is a fact of its own: write it as a second state_changed")
    keys = [key for scope in (*delta.values(), *removed.values()) for key in scope]
    if any(not isinstance(key, str) for key in keys):
        raise InvalidEvent("keys of state are strings")
    if any(key.startswith("temp:") for key in keys):
        raise InvalidEvent("keys that start with 'temp:' are never stored")
