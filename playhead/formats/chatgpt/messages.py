"""One message of ChatGPT to the body of one event, and the body back to the message.

Text moves into parts, and `extra.import.content` says which field of the content it came from; everything else of the
message stays under `extra.chatgpt`. An assistant's message to anybody but `all` is a tool call, and what the tool said
answers it. What ChatGPT wrote for itself (hidden messages, system messages, a person's standing instructions) is marked
as injected, and what holds no text at all is a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from playhead.formats.values import mapping, sequence, text
from playhead.model.body import object_in, parts_in, text_in

ORIGIN = "chatgpt"
IMPORT = "import"
USER = "user"
AGENT = "coordinator"
ALL = "all"

_TEXT_FIELDS = ("text", "result", "content")
"""Fields of a content that hold its text, in the order in which they are looked for."""

_CONTEXT_FIELDS = ("user_profile", "user_instructions")
_WRAPPED = "chatgpt.part"
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_JSON_STYLES: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"indent": 2},
    {"indent": 4},
)

_TIMES = (946_684_800, 4_102_444_800)
"""The years 2000 to 2099, in UTC seconds."""

FileId = Callable[[str], str | None]
"""Returns the name under which the store will have an attachment, None for one that the export does not hold."""


class Made(NamedTuple):
    """An event's kind, body and writer. answers: the name of the tool whose call it answers. is_prompt: typed."""

    kind: str
    body: dict[str, Any]
    agent: str | None
    answers: str | None = None
    is_prompt: bool = False


def made(message: dict[str, Any], id: str, file_id: FileId) -> Made:
    """Return the event of a message. id: of the event, which a tool call has as well."""
    role = text(mapping(message.get("author")).get("role")) or "system"
    content = mapping(message.get("content"))
    field = _field(content)
    rest = message
    if field is not None:
        rest = message | {"content": {name: value for name, value in content.items() if name not in _moved(field)}}
    extra: dict[str, Any] = {ORIGIN: rest, IMPORT: {"content": field} if field else {}}
    parts = _parts(content, field, file_id)
    attached = [_attachment(one, file_id) for one in _attachments(message, parts)]
    if field == "recap" or not (attached or any(_says_something(part) for part in parts)):
        return Made("note", _note(message, content, role, field), None)
    recipient = text(message.get("recipient")) or ALL
    if role == "tool":
        return _response(message, content, field, parts, attached, extra)
    body: dict[str, Any] = {"role": role if role in ("user", "assistant") else "system", "parts": [*parts, *attached]}
    if role == "assistant" and recipient != ALL and (call := _call(id, recipient, parts, extra)) is not None:
        body["parts"] = [call, *attached]
    if attached:
        extra[IMPORT]["attached"] = len(attached)
    _describe(body, message, role)
    is_injected = role not in ("user", "assistant") or _is_hidden(message) or field == "context"
    if is_injected:
        body["injected"] = ORIGIN
    body["extra"] = extra
    agent = {"user": USER, "assistant": AGENT}.get(role)
    return Made("message", body, agent, is_prompt=role == "user" and not is_injected)


def seconds_of(at: Any) -> float | None:
    """Return a time stamp as UTC seconds, None for what is no number or no time of this century."""
    is_number = isinstance(at, int | float) and not isinstance(at, bool)
    return float(at) if is_number and _TIMES[0] <= at < _TIMES[1] else None


def restore_message(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the message that a body was made of, equal to the original; None for a body of another origin."""
    extra = object_in(body, "extra")
    if ORIGIN not in extra:
        return None
    message: dict[str, Any] = dict(extra[ORIGIN])
    remarks = object_in(extra, IMPORT)
    field = text_in(remarks, "content")
    if field is None:
        return message
    message["content"] = mapping(message.get("content")) | _content(body, field, remarks)
    return message


# From a content to parts.


def _field(content: dict[str, Any]) -> str | None:
    """Return which field of a content holds what was said, None where none does."""
    if isinstance(content.get("parts"), list):
        return "parts"
    if isinstance(content.get("thoughts"), list):
        return "thoughts"
    if content.get("content_type") == "reasoning_recap" and text(content.get("content")):
        return "recap"
    if any(text(content.get(name)) for name in _CONTEXT_FIELDS):
        return "context"
    return next((name for name in _TEXT_FIELDS if text(content.get(name))), None)


def _moved(field: str | None) -> tuple[str, ...]:
    if field == "context":
        return _CONTEXT_FIELDS
    return ("content",) if field == "recap" else (field,) if field else ()


def _parts(content: dict[str, Any], field: str | None, file_id: FileId) -> list[dict[str, Any]]:
    if field == "parts":
        return [_part(piece, file_id) for piece in content["parts"]]
    if field == "thoughts":
        return [_thought(piece) for piece in content["thoughts"]]
    if field == "context":
        present = [name for name in _CONTEXT_FIELDS if name in content]
        return [_named(name, content[name]) for name in present]
    return [] if field is None else [{"type": "text", "content": content["content" if field == "recap" else field]}]


def _part(piece: Any, file_id: FileId) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "content": piece}
    pointer = text(mapping(piece).get("asset_pointer"))
    if pointer is None:
        spoken = text(mapping(piece).get("text"))
        if spoken is None:
            return {"type": _WRAPPED, "value": piece}
        return {"type": "text", "content": spoken, "extra": {k: v for k, v in piece.items() if k != "text"}}
    part: dict[str, Any] = {"type": "file", "file_id": file_id(pointer.rpartition("/")[2]) or pointer}
    if "image" in str(piece.get("content_type")):
        part["modality"] = "image"
    elif "audio" in str(piece.get("content_type")):
        part["modality"] = "audio"
    return part | {"extra": piece}


def _thought(piece: Any) -> dict[str, Any]:
    written = text(mapping(piece).get("content"))
    if written is None:
        return {"type": _WRAPPED, "value": piece}
    rest = {name: value for name, value in piece.items() if name != "content"}
    return {"type": "reasoning", "content": written, "extra": rest}


def _named(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        return {"type": _WRAPPED, "value": value, "extra": {"field": name}}
    return {"type": "text", "content": value, "extra": {"field": name}}


def _says_something(part: dict[str, Any]) -> bool:
    if part["type"] in ("text", "reasoning"):
        return bool(part["content"].strip())
    return part["type"] == "file" or part.get("value") not in (None, {}, [], "")


def _attachments(message: dict[str, Any], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the files that a message names in its metadata and does not show among its parts."""
    shown = " ".join(str(part["extra"].get("asset_pointer")) for part in parts if part["type"] == "file")
    listed = sequence(mapping(message.get("metadata")).get("attachments"))
    return [one for one in listed if text(mapping(one).get("id")) and one["id"] not in shown]


def _attachment(attachment: dict[str, Any], file_id: FileId) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "file", "file_id": file_id(attachment["id"]) or attachment["id"]}
    mime_type = text(attachment.get("mime_type")) or text(attachment.get("mimeType"))
    if mime_type is not None:
        part["mime_type"] = mime_type
    name = text(attachment.get("name"))
    return part | {"extra": {"name": name}} if name else part


# What becomes no plain message.


def _note(message: dict[str, Any], content: dict[str, Any], role: str, field: str | None) -> dict[str, Any]:
    name = f"{ORIGIN}.{text(content.get('content_type')) or role}"
    if field != "recap":
        return {"name": name, "extra": {ORIGIN: message}}
    rest = {key: value for key, value in content.items() if key != "content"}
    extra = {ORIGIN: message | {"content": rest}, IMPORT: {"content": field}}
    return {"name": name, "text": content["content"], "extra": extra}


def _call(id: str, recipient: str, parts: list[dict[str, Any]], extra: dict[str, Any]) -> dict[str, Any] | None:
    """Return a message as a tool call; None for one that is not a single text."""
    if len(parts) != 1 or parts[0]["type"] != "text" or "extra" in parts[0]:
        return None
    written: str = parts[0]["content"]
    style, arguments = _parsed(written)
    extra[IMPORT]["arguments"] = style
    return {"type": "tool_call", "id": id, "name": recipient, "arguments": arguments}


def _parsed(written: str) -> tuple[int | None, Any]:
    """Return the number of the JSON style that writes a text again, and its value; a text of no style as it is."""
    try:
        value = json.loads(written) if written[:1] in "{[" else None
    except (ValueError, RecursionError):
        return None, written
    if value is not None:
        for number, style in enumerate(_JSON_STYLES):
            if json.dumps(value, ensure_ascii=False, **style) == written:
                return number, value
    return None, written


def _response(
    message: dict[str, Any],
    content: dict[str, Any],
    field: str | None,
    parts: list[dict[str, Any]],
    attached: list[dict[str, Any]],
    extra: dict[str, Any],
) -> Made:
    name = text(mapping(message.get("author")).get("name")) or "tool"
    is_one_text = len(parts) == 1 and parts[0]["type"] == "text" and "extra" not in parts[0]
    part: dict[str, Any] = {"type": "tool_call_response", "name": name}
    part["response"] = parts[0]["content"] if is_one_text else content["parts"] if field == "parts" else parts
    if content.get("content_type") == "system_error":
        part["is_error"] = True
    extra[IMPORT]["response"] = "text" if is_one_text else "parts" if field == "parts" else "made"
    files = [one for one in parts if one["type"] == "file"] if not is_one_text else []
    body = {"role": "tool", "parts": [part, *files, *attached], "extra": extra}
    return Made("message", body, AGENT, answers=name)


def _describe(body: dict[str, Any], message: dict[str, Any], role: str) -> None:
    metadata = mapping(message.get("metadata"))
    if role != "assistant":
        return
    if (model := text(metadata.get("model_slug"))) is not None:
        body["model"] = model
    if (reason := text(mapping(metadata.get("finish_details")).get("type"))) is not None:
        body["finish_reason"] = reason
    if message.get("status") == "in_progress" or body.get("finish_reason") == "interrupted":
        body["interrupted"] = True


def _is_hidden(message: dict[str, Any]) -> bool:
    metadata = mapping(message.get("metadata"))
    return any(metadata.get(name) is True for name in _HIDDEN)


# And back.


def _content(body: dict[str, Any], field: str, remarks: dict[str, Any]) -> dict[str, Any]:
    if field == "recap":
        return {"content": body["text"]}
    parts = parts_in(body)[: len(parts_in(body)) - int(remarks.get("attached") or 0)]
    if "response" in remarks:
        response = parts[0]["response"]
        if remarks["response"] == "parts":
            return {"parts": response}
        parts = [{"type": "text", "content": response}] if remarks["response"] == "text" else response
    elif "arguments" in remarks:
        style, arguments = remarks["arguments"], parts[0]["arguments"]
        written = arguments if style is None else json.dumps(arguments, ensure_ascii=False, **_JSON_STYLES[style])
        parts = [{"type": "text", "content": written}]
    if field == "context":
        return {part["extra"]["field"]: part.get("content", part.get("value")) for part in parts}
    if field in ("parts", "thoughts"):
        return {field: [_piece(part) for part in parts]}
    return {field: parts[0]["content"]}


def _piece(part: dict[str, Any]) -> Any:
    if part["type"] == _WRAPPED:
        return part["value"]
    if part["type"] == "file":
        return part["extra"]
    if part["type"] == "reasoning":
        return part["extra"] | {"content": part["content"]}
    return part["extra"] | {"text": part["content"]} if "extra" in part else part["content"]
