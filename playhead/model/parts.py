"""Parts: the pieces of a message, in the OpenTelemetry GenAI message schema.

A part travels as a JSON object with a `type`. The classes here are a typed reading of it; a part of a type that is not
listed becomes `OtherPart` and keeps its whole object, so reading and writing lose nothing.

Source of the field names: OpenTelemetry semantic conventions for generative AI, input and output message schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text", omit_defaults=True):
    """Text that was written or said."""

    content: str
    extra: dict[str, Any] | None = None


class ReasoningPart(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning", omit_defaults=True):
    """Reasoning that the model showed. Opaque signatures travel under `extra`."""

    content: str
    extra: dict[str, Any] | None = None


class ToolCallPart(msgspec.Struct, frozen=True, tag_field="type", tag="tool_call", omit_defaults=True):
    """A tool that the model asked for. `arguments` is the parsed JSON value, or the text where it was not JSON."""

    name: str
    id: str | None = None
    arguments: Any = None
    extra: dict[str, Any] | None = None


class ToolCallResponsePart(msgspec.Struct, frozen=True, tag_field="type", tag="tool_call_response", omit_defaults=True):
    """What a tool gave back for the call `id`. `is_error` marks a failure, whose text is in `response`."""

    response: Any = None
    id: str | None = None
    name: str | None = None
    is_error: bool = False
    extra: dict[str, Any] | None = None


class BlobPart(msgspec.Struct, frozen=True, tag_field="type", tag="blob", omit_defaults=True):
    """Bytes inside the event, as base64 text in `content`."""

    content: str
    mime_type: str | None = None
    modality: str | None = None
    extra: dict[str, Any] | None = None


class FilePart(msgspec.Struct, frozen=True, tag_field="type", tag="file", omit_defaults=True):
    """A file that a provider, or the session's artifacts, hold under `file_id`."""

    file_id: str
    mime_type: str | None = None
    modality: str | None = None
    extra: dict[str, Any] | None = None


class UriPart(msgspec.Struct, frozen=True, tag_field="type", tag="uri", omit_defaults=True):
    """Content that lies elsewhere. Nothing in Playhead fetches it."""

    uri: str
    mime_type: str | None = None
    modality: str | None = None
    extra: dict[str, Any] | None = None


class OtherPart(msgspec.Struct, frozen=True):
    """A part of a type outside the schema, whole."""

    document: dict[str, Any]


Part = TextPart | ReasoningPart | ToolCallPart | ToolCallResponsePart | BlobPart | FilePart | UriPart | OtherPart

_Known = TextPart | ReasoningPart | ToolCallPart | ToolCallResponsePart | BlobPart | FilePart | UriPart


def part_from_document(document: Mapping[str, Any]) -> Part:
    """Return the typed reading of a part's JSON object.

    Whatever is outside the schema (another type, a missing or mistyped field, a field more) becomes an `OtherPart`.
    The way back loses nothing but fields that spelled out their default.
    """
    try:
        known: _Known = msgspec.convert(document, _Known)
    except (msgspec.ValidationError, UnicodeEncodeError):  # The latter for half a surrogate pair as the type.
        return OtherPart(dict(document))
    said = {name for name, value in document.items() if value is not None}
    return known if said <= {"type", *known.__struct_fields__} else OtherPart(dict(document))


def part_to_document(part: Part) -> dict[str, Any]:
    """Return the JSON object of a part, with absent fields left out."""
    if isinstance(part, OtherPart):
        return dict(part.document)
    document: dict[str, Any] = msgspec.to_builtins(part)
    return document


def documents(parts: Iterable[Part | Mapping[str, Any] | str]) -> list[dict[str, Any]]:
    """Return the JSON objects of parts given as typed parts, objects, or plain strings (text)."""
    return [_document(part) for part in parts]


def _document(part: Part | Mapping[str, Any] | str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "content": part}
    if isinstance(part, Mapping):
        return dict(part)
    return part_to_document(part)


def text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the text parts of a message, joined as they stand; reasoning and tools are left out."""
    return "".join(content_of(part) for part in parts if part.get("type") == "text")


def content_of(part: Mapping[str, Any]) -> str:
    """Return the text of a text or reasoning part, "" where it holds none."""
    content = part.get("content")
    return content if isinstance(content, str) else ""


def call_id(part: Mapping[str, Any]) -> str | None:
    """Return the id that a tool call and its response share, as text, or None where the part names none."""
    id = part.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        return str(id)
    return id if isinstance(id, str) and id else None
