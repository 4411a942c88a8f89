"""One Claude Code record to the body of one event, and the body back to the record.

Nothing is lost and no text is stored twice. What has a place in our schema moves there: the content becomes parts;
model, usage and the like their own fields. The rest of the record stays under `extra.claude_code`. `extra.import` says
where the plain rule does not hold: `content: "text"` (it was a string, not blocks), `result: "response"`
(`toolUseResult` equals what the tool gave back), `base64: n` (the file in it is part n), `uuid: false` (there was none)
and `at` (why the time is not the record's own). So `restore_record` can give the record back from the event alone.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from playhead.formats.claude_code.blocks import blocks_of, content_text, first_result, is_result, parts_of
from playhead.formats.imported import ImportedEvent
from playhead.formats.values import Json, mapping, text

RAW = "claude_code"
IMPORT = "import"
INJECTED = "claude-code"
"""Value of `injected` in messages that the program wrote or recorded; a person's own prompts have none."""

Kind = Literal[
    "typed",
    "command",
    "output",
    "interruption",
    "notification",
    "context",
    "meta",
    "summary",
    "result",
    "mixed",
    "empty",
]
"""What a user record is: what the person typed; a slash command; a local command's output; the mark of an interruption;
news of a background task; the editor's context alone; text of the program (`isMeta`); the summary of a compaction; tool
results; results with words; nothing."""

NOT_TYPED: frozenset[Kind] = frozenset(
    {"command", "output", "interruption", "notification", "context", "meta", "empty"}
)
"""Kinds that are marked as injected, so that listings show and count what a person wrote."""

_FIELDS = (("model", "model"), ("id", "message_id"), ("stop_reason", "finish_reason"))

_NOTE_TEXT: dict[str, tuple[str, ...]] = {
    "system": ("content",),
    "summary": ("summary",),
    "custom-title": ("customTitle",),
    "ai-title": ("aiTitle",),
    "last-prompt": ("lastPrompt",),
    "queue-operation": ("content",),
    "attachment": ("attachment", "content"),
}
"""Where a record that becomes a note keeps what a person would read; it moves to the note's `text`."""

_lone_context = re.compile(r"\s*<(ide_opened_file|ide_selection)>.*</\1>\s*", re.DOTALL)
_OPENINGS: tuple[tuple[str, Kind], ...] = (
    ("[Request interrupted", "interruption"),
    ("<local-command-caveat>", "meta"),
    ("<local-command-stdout>", "output"),
    ("<local-command-stderr>", "output"),
    ("<bash-stdout>", "output"),
    ("<bash-stderr>", "output"),
    ("<bash-input>", "command"),
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<task-notification>", "notification"),
)


def record_type(record: dict[str, Any]) -> str:
    """Return the record's type, or `record` where it has none."""
    return text(record.get("type")) or "record"


def user_kind(record: dict[str, Any], content: Json) -> Kind:
    """Return what a user record is, given its content (a string or blocks)."""
    if record.get("isCompactSummary") is True:
        return "summary"
    results = [is_result(block) for block in content] if isinstance(content, list) else []
    if any(results):
        return "result" if all(results) else "mixed"
    if record.get("isMeta") is True:
        return "meta"
    if not content:
        return "empty"
    written = content_text(content)
    for opening, kind in _OPENINGS:
        if written.startswith(opening):
            return kind
    if mapping(record.get("origin")).get("kind") == "task-notification":
        return "notification"
    return "context" if _lone_context.fullmatch(written) else "typed"


class Found(NamedTuple):
    """Where a record carries a message: the path to its object, the field of its content, and both values."""

    path: tuple[str, ...]
    field: str
    holder: dict[str, Any]
    content: str | list[Json]


def message_of(record: dict[str, Any]) -> Found | None:
    """Return the message that a record carries, or None where it carries none that can be read."""
    place = _message_place(record)
    if place is None:
        return None
    path, field = place
    holder = _dig(record, path)
    content = holder.get(field) if holder is not None else None
    if holder is None or not isinstance(content, str | list):
        return None
    return Found(path, field, holder, content)


def message_body(record: dict[str, Any], role: str) -> dict[str, Any] | None:
    """Return the body of the `message` event of a record, or None where it carries no message."""
    found = message_of(record)
    if found is None:
        return None
    rest = {name: value for name, value in found.holder.items() if name != found.field}
    body: dict[str, Any] = {"role": role, "parts": parts_of(found.content)}
    for name, target in _FIELDS:
        if text(rest.get(name)):
            body[target] = rest.pop(name)
    if isinstance(rest.get("usage"), dict):
        body["usage"] = rest.pop("usage")
    body["extra"] = {RAW: _replaced(record, found.path, rest)}
    if isinstance(found.content, str):
        imported(body)["content"] = "text"
    _leave_out_result(body, found.content)
    return body


def compaction_body(record: dict[str, Any], *, first: str, last: str) -> dict[str, Any] | None:
    """Return the body of the `compaction` event of a summary record, or None where it holds no text."""
    found = message_of(record)
    if found is None or not content_text(found.content):
        return None
    rest = dict(found.holder)
    if isinstance(found.content, str):
        del rest[found.field]
    extra = {RAW: _replaced(record, found.path, rest)}
    return {"from": first, "to": last, "summary": content_text(found.content), "extra": extra}


def note_body(record: dict[str, Any], *, repeated: bool = False) -> dict[str, Any]:
    """Return the body of the `note` event that keeps a record. repeated: it writes an earlier record once more."""
    name = f"claude-code.{record_type(record)}"
    subtype = _subtype(record)
    if subtype:
        name = f"{name}.{subtype}"
    body: dict[str, Any] = {"name": f"{name}.repeated" if repeated else name}
    path = _NOTE_TEXT.get(record_type(record))
    holder = _dig(record, path[:-1]) if path else None
    if path and holder is not None and text(holder.get(path[-1])):
        body["text"] = holder[path[-1]]
        rest = {field: value for field, value in holder.items() if field != path[-1]}
        record = _replaced(record, path[:-1], rest)
    body["extra"] = {RAW: dict(record)}
    return body


def imported(body: dict[str, Any]) -> dict[str, Any]:
    """Return the importer's remarks on an event's body, to be written to."""
    remarks: dict[str, Any] = body["extra"].setdefault(IMPORT, {})
    return remarks


def return_usage(body: dict[str, Any]) -> None:
    """Put the usage of a message back into its record, since another piece of the same reply states it."""
    record = body["extra"][RAW]
    place = _message_place(record)
    holder = _dig(record, place[0]) if place else None
    if holder is not None:
        holder["usage"] = body.pop("usage")


def restore_record(event: ImportedEvent) -> dict[str, Any] | None:
    """Return the record that an event was made of, equal to the original; None for an event that was no record."""
    body = event.body
    raw = mapping(body.get("extra")).get(RAW)
    if raw is None:
        return None
    record: dict[str, Any] = dict(raw)
    remarks = mapping(body["extra"].get(IMPORT))
    if "uuid" not in record and remarks.get("uuid") is not False:
        record["uuid"] = event.id
    if event.kind == "message":
        return _restored_message(record, body, remarks)
    if event.kind == "compaction":
        holder = record["message"]
        return record if "content" in holder else record | {"message": holder | {"content": body["summary"]}}
    if "text" in body:
        path = _NOTE_TEXT[record_type(record)]
        return _replaced(record, path[:-1], (_dig(record, path[:-1]) or {}) | {path[-1]: body["text"]})
    return record


def _restored_message(record: dict[str, Any], body: dict[str, Any], remarks: dict[str, Any]) -> dict[str, Any]:
    place = _message_place(record)
    if place is None:
        return record
    path, field = place
    holder = dict(_dig(record, path) or {})
    parts: list[dict[str, Any]] = body["parts"]
    content: Json = parts[0]["content"] if remarks.get("content") == "text" else blocks_of(parts)
    holder[field] = content
    for name, target in (*_FIELDS, ("usage", "usage")):
        if target in body:
            holder[name] = body[target]
    if remarks.get("result") == "response":
        record["toolUseResult"] = first_result(content)["content"]
    if "base64" in remarks:
        result = record["toolUseResult"]
        data = parts[remarks["base64"]]["content"]
        record["toolUseResult"] = result | {"file": result["file"] | {"base64": data}}
    return _replaced(record, path, holder)


def _message_place(record: dict[str, Any]) -> tuple[tuple[str, ...], str] | None:
    """Return the path to the object that holds the message, and the field of its content."""
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return ("message",), "content"
    if kind == "progress" and mapping(record.get("data")).get("type") == "agent_progress":
        return ("data", "message", "message"), "content"
    if kind == "attachment" and mapping(record.get("attachment")).get("type") == "queued_command":
        return ("attachment",), "prompt"
    return None


def _subtype(record: dict[str, Any]) -> str | None:
    kind = record_type(record)
    if kind == "progress":
        return text(mapping(record.get("data")).get("type"))
    if kind == "attachment":
        return text(mapping(record.get("attachment")).get("type"))
    return text(record.get("operation" if kind == "queue-operation" else "subtype"))


def _leave_out_result(body: dict[str, Any], content: Json) -> None:
    """Drop from the raw record what `toolUseResult` says once more: the whole response, or the bytes of its file."""
    record = body["extra"][RAW]
    result = record.get("toolUseResult")
    if result and isinstance(result, str | list) and first_result(content).get("content") == result:
        del record["toolUseResult"]
        imported(body)["result"] = "response"
        return
    file = mapping(mapping(result).get("file"))
    data = text(file.get("base64"))
    if data is None:
        return
    for index, part in enumerate(body["parts"]):
        if part["type"] == "blob" and part["content"] == data:
            rest = {name: value for name, value in file.items() if name != "base64"}
            record["toolUseResult"] = mapping(result) | {"file": rest}
            imported(body)["base64"] = index
            return


# Walks into a record.


def _dig(record: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    holder: Json = record
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else None


def _replaced(record: dict[str, Any], path: tuple[str, ...], value: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the record with the object at `path` replaced; what lies beside the path is shared."""
    if not path:
        return dict(value)
    return record | {path[0]: _replaced(record[path[0]], path[1:], value)}
