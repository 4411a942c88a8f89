"""The timeline: one line for every event, as a log viewer shows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from playhead.model import path as paths
from playhead.model.body import list_in, object_in, parts_in, text_in, token_count
from playhead.model.event import Event
from playhead.model.parts import call_id, content_of
from playhead.model.path import Ranges
from playhead.views.fold import ENDED

LABEL_CHARS_MAX = 160
"""Longest label of a row; the event itself is one read away."""

_ITEMS_MAX = 4
_DEPTH_MAX = 3

_Key = tuple[str, str | None, str]
"""What is timed: its kind, its scope where ids are of a scope, its id."""


class TimelineRow(msgspec.Struct, frozen=True):
    """One event in a line.

    label: one line of plain text, `LABEL_CHARS_MAX` characters at most. duration_s: seconds since the event that this
    one closes (a tool's call, a job's or a turn's start, a question to a person), 0 where the clock went back between
    them, or None. tokens: output tokens where known. is_on_path: the event lies on the path that was given.
    """

    seq: int
    at: float
    kind: str
    agent: str | None
    turn: str | None
    scope: str | None
    label: str
    is_error: bool
    is_on_path: bool
    duration_s: float | None = None
    tokens: int | None = None


def timeline(events: Iterable[Event], path: Ranges | None = None, *, by_time: bool = False) -> list[TimelineRow]:
    """Return a row for each event, in log order, or by `at` (then seq) where `by_time` is set.

    `path` marks the rows on it; without it every row counts as on the path. Durations are found for pairs that both
    lie in `events`.
    """
    found = list(rows(events, path))
    return sorted(found, key=lambda row: (row.at, row.seq)) if by_time else found


def rows(events: Iterable[Event], path: Ranges | None = None) -> Iterator[TimelineRow]:
    """Yield a row for each event as it comes, in log order. Holds what is open, and no event."""
    opened: dict[_Key, float] = {}
    for event in events:
        yield TimelineRow(
            seq=event.seq,
            at=event.at,
            kind=event.kind,
            agent=event.agent,
            turn=event.turn,
            scope=event.scope,
            label=label(event),
            is_error=is_error(event),
            is_on_path=path is None or paths.lies_on(path, event.seq),
            duration_s=_duration(event, opened),
            tokens=token_count(event.body, "output_tokens"),
        )


def label(event: Event) -> str:
    """Return what happened, in one line of at most `LABEL_CHARS_MAX` characters."""
    if not event.body:
        return "(redacted)"
    describe = _LABELS.get(event.kind)
    return _line(describe(event.body) if describe is not None else event.kind)


def is_error(event: Event) -> bool:
    """Return True when the event reports that something failed or was cut off."""
    body = event.body
    if event.kind in ("job_changed", "turn_ended"):
        return body.get("status") in ("failed", "interrupted")
    if event.kind == "message":
        return bool(body.get("interrupted")) or any(part.get("is_error") for part in parts_in(body))
    return event.kind == "note" and bool(body.get("is_error"))


def _duration(event: Event, opened: dict[_Key, float]) -> float | None:
    """Remember what the event opens; return the seconds since the start of what it closes.

    An id that opens again (some frameworks count calls anew in every turn) is timed from its newest start. A job is
    timed from its first change, by every later one until it has ended.
    """
    opens, closes = _opens_and_closes(event)
    starts = [opened[key] for key in closes if key in opened]
    if event.kind != "job_changed" or not starts:
        opened.update(dict.fromkeys(opens, event.at))
    if event.kind == "job_changed" and text_in(event.body, "status") in ENDED:
        for key in closes:
            opened.pop(key, None)
    return max(event.at - min(starts), 0.0) if starts else None


def _opens_and_closes(event: Event) -> tuple[list[_Key], list[_Key]]:
    """Return the keys of what begins and of what ends with an event; every change of a job may be either."""
    match event.kind:
        case "message":
            return _calls(event, "tool_call"), _calls(event, "tool_call_response")
        case "turn_started":
            return _keys("turn", event.turn), []
        case "turn_ended":
            return [], _keys("turn", event.turn)
        case "interrupt_requested":
            return _keys("interrupt", text_in(event.body, "interrupt")), []
        case "interrupt_answered":
            return [], _keys("interrupt", text_in(event.body, "interrupt"))
        case "job_changed":
            keys = _keys("job", text_in(event.body, "job"))
            return keys, keys
        case _:
            return [], []


def _keys(what: str, id: str | None) -> list[_Key]:
    return [] if id is None else [(what, None, id)]


def _calls(event: Event, type: str) -> list[_Key]:
    ids = [call_id(part) for part in parts_in(event.body) if part.get("type") == type]
    return [("call", event.scope, id) for id in ids if id is not None]


def _line(text: str) -> str:
    # Only so much of a long text is looked at; four times the room leaves enough after white space is taken out.
    line = " ".join(text[: LABEL_CHARS_MAX * 4].split())
    return line if len(line) <= LABEL_CHARS_MAX else line[: LABEL_CHARS_MAX - 1] + "…"


def _message_label(body: Mapping[str, Any]) -> str:
    return " ".join(_part_label(part) for part in parts_in(body)[:_ITEMS_MAX]) or _short(body.get("role"))


def _part_label(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return content_of(part)[: LABEL_CHARS_MAX * 4]
    if kind == "reasoning":
        return f"(thinks) {content_of(part)[: LABEL_CHARS_MAX * 4]}"
    if kind == "tool_call":
        return f"{_short(part.get('name'))}({_short(part.get('arguments'))})"
    if kind == "tool_call_response":
        return f"→ {_short(part.get('response'))}"
    return f"[{_short(part.get('mime_type') or kind)}]"


def _short(value: Any, depth: int = 0) -> str:
    """Return the beginning of a value, without writing out a large one whole; "" for None."""
    if value is None:
        return ""
    if isinstance(value, str) and (value.strip() or not depth):
        return value[:LABEL_CHARS_MAX]
    if not isinstance(value, dict | list) or (not value and depth):
        return json.dumps(value)  # An empty value within another one is shown as what it is: `query=""`, `found=[]`.
    if depth == _DEPTH_MAX:
        return "…"
    if isinstance(value, dict):
        shown = islice(value.items(), _ITEMS_MAX)
        return ", ".join(f"{key[:LABEL_CHARS_MAX]}={_short(item, depth + 1)}" for key, item in shown)
    return ", ".join(_short(item, depth + 1) for item in value[:_ITEMS_MAX])


def _state_label(body: Mapping[str, Any]) -> str:
    changes = [f"{scope}: {_short(values)}" for scope, values in object_in(body, "delta").items()]
    changes += [f"{scope}: without {_short(keys)}" for scope, keys in object_in(body, "removed").items()]
    return "state of " + "; ".join(changes[:_ITEMS_MAX])


_LABELS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "session_started": lambda body: f"session started ({_short(body.get('app'))})",
    "message": _message_label,
    "turn_started": lambda body: f"turn begins ({_short(body.get('cause'))})",
    "turn_ended": lambda body: f"turn ends ({_short(body.get('status'))})",
    "state_changed": _state_label,
    "head_moved": lambda body: f"head moved ({_short(body.get('why'))})",
    "compaction": lambda body: f"compacted: {_short(body.get('summary'))}",
    "interrupt_requested": lambda body: f"asks: {_short(body.get('question') or body.get('reason'))}",
    "interrupt_answered": lambda body: f"answered ({_short(body.get('status'))}): {_short(body.get('answer'))}",
    "job_changed": lambda body: (
        f"{_short(body.get('kind'))} {_short(body.get('name') or body.get('job'))}: {_short(body.get('status'))}"
    ),
    "trigger_changed": lambda body: (
        f"trigger {_short(body.get('trigger'))} ({_short(body.get('type'))}): {_short(body.get('status'))}"
    ),
    "trigger_fired": lambda body: f"trigger {_short(body.get('trigger'))} fired: {_short(body.get('prompt'))}",
    "channel_message": lambda body: (
        f"#{_short(body.get('channel'))} {_short(body.get('sender'))}: {_short(body.get('content'))}"
    ),
    "artifact_saved": lambda body: f"artifact {_short(body.get('name'))} ({_short(body.get('size'))} bytes)",
    "session_changed": lambda body: f"session: {_short(body)}",
    "redacted": lambda body: f"redacted {len(list_in(body, 'events'))} events: {_short(body.get('reason'))}",
    "note": lambda body: _short(body.get("name")),
}
