"""Events to the text index: what of an event is searchable, and bringing a session's index up to its last event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.search.tokenize import analyze
from playhead.stores.base import EVENTS_PAGE_MAX, Store, TextRow

VALUE_CHARS_MAX = 1_000_000
"""Of one tool argument or result so many characters are indexed."""

_OPAQUE_FIELDS = frozenset({"type", "extra", "signature", "encrypted_content", "thoughtSignature"})
"""Fields of a part outside the schema that nobody looks for. What a tool was given or gave back is searched whole."""


def bring_up_to_date(store: Store, key: SessionKey, *, events_max: int | None = None) -> int:
    """Index every event that the text index lacks, and return the seq up to which it now holds.

    events_max: where more than so many are missing, leave them to the next search, which asks without a limit.

    Runs in pages, each its own transaction: an interrupted run goes on where it stopped. Costs nothing when there is
    nothing to do, beyond two look-ups.
    """
    end = store.tip(key).seq
    done = store.text.indexed_seq(key)
    if events_max is not None and end - done > events_max:
        return done
    while done < end:
        events = store.events(key, after=done, limit=EVENTS_PAGE_MAX)
        if not events:
            break
        rows = [TextRow(event.seq, analyze(text)) for event in events if (text := searchable_text(event))]
        done = events[-1].seq
        store.text.add(key, rows, up_to=done)
    return done


def searchable_text(event: Event) -> str:
    """Return all of an event that a person may look for, as plain text; "" where there is nothing.

    Messages with their reasoning, tool calls and results; channel messages, sub-agents' tasks and results, compaction
    summaries, questions and answers, artifact names, titles and notes. Base64 and signatures never.
    """
    describe = _TEXT.get(event.kind)
    return "\n".join(text for text in describe(event.body) if text) if describe else ""


def _message(body: dict[str, Any]) -> Iterator[str]:
    for part in body.get("parts") or ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "reasoning"):
            yield _text(part.get("content"))
        elif kind == "tool_call":
            yield _text(part.get("name"))
            yield _text(part.get("arguments"))
        elif kind == "tool_call_response":
            yield _text(part.get("response"))
        elif kind in ("file", "uri"):
            yield _text(part.get("file_id") or part.get("uri"))
        elif kind not in ("blob", None):
            yield _text({name: value for name, value in part.items() if name not in _OPAQUE_FIELDS})


def _fields(*names: str) -> Any:
    def describe(body: dict[str, Any]) -> Iterator[str]:
        for name in names:
            yield _text(body.get(name))

    return describe


def _note(body: dict[str, Any]) -> Iterator[str]:
    yield _text({name: value for name, value in body.items() if name != "extra"})


_TEXT = {
    "message": _message,
    "compaction": _fields("summary"),
    "interrupt_requested": _fields("question", "choices"),
    "interrupt_answered": _fields("answer"),
    "job_changed": _fields("name", "args", "result", "error"),
    "trigger_fired": _fields("prompt", "payload"),
    "channel_message": _fields("channel", "sender", "content"),
    "artifact_saved": _fields("name"),
    "session_changed": _fields("title", "labels"),
    "state_changed": _fields("delta"),
    "note": _note,
}


def _text(value: Any) -> str:
    """Return a JSON value as text: keys and values in order, `VALUE_CHARS_MAX` characters of it."""
    if isinstance(value, str):
        return value[:VALUE_CHARS_MAX]
    if value is None or isinstance(value, bool):
        return ""
    pieces: list[str] = []
    room = VALUE_CHARS_MAX
    for piece in _pieces(value):
        pieces.append(piece[:room])
        room -= len(piece) + 1
        if room <= 0:
            break
    return "\n".join(pieces)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _pieces(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _pieces(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)
