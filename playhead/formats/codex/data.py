"""Base64 in records: kept once, wherever else it is repeated.

Codex writes an image into the item that a model was sent, into the event about it, and again into every compaction that
follows. Here the first place keeps it; in every later one a stand-in with its SHA-256 takes its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from playhead.formats.values import Json

DATA_CHARS_MIN = 1024
"""Shorter texts stay where they are: a stand-in would save next to nothing."""

_PREFIX = "playhead:sha256:"
_OPAQUE = "encrypted_content"
"""A field whose base64 is no file. It stays in its record."""

HEADER_CHARS_MAX = 1024
"""Longest beginning of a `data:` address, up to its comma. A type and its parameters are some 50."""

_header = re.compile(r"data:\S*;base64")
_content = re.compile(r"[A-Za-z0-9+/=_\-\s]*")
_base64 = re.compile(r"[A-Za-z0-9+/=_\-]+")


def digest_of(data: str) -> str:
    """Return the SHA-256 of a text in hex."""
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()


def data_in(value: Json) -> list[str]:
    """Return the long base64 texts in a JSON value, each once, in order.

    `[]` also where a text of the value itself looks like a stand-in: such a value is left as it is.
    """
    found: dict[str, None] = {}
    for piece in _texts(value):
        if piece.startswith(_PREFIX):
            return []
        if len(piece) >= DATA_CHARS_MIN and (_base64.fullmatch(piece) or is_data_address(piece)):
            found[piece] = None
    return list(found)


def with_stand_ins(value: Json, digests: Collection[str]) -> Json:
    """Return a copy of a value in which the base64 texts with these digests are stand-ins."""
    wanted = {piece: _PREFIX + digest for piece in data_in(value) if (digest := digest_of(piece)) in digests}
    return _replaced(value, wanted) if wanted else value


def filled(value: Json, data: Mapping[str, str]) -> Json:
    """Return a copy of a value with its stand-ins replaced by what `data` has under their digests."""
    wanted = {
        piece: data[digest]
        for piece in _texts(value)
        if piece.startswith(_PREFIX) and (digest := piece.removeprefix(_PREFIX)) in data
    }
    return _replaced(value, wanted) if wanted else value


def blob_part(data: str) -> dict[str, Any]:
    """Return a `blob` part for a base64 text or a `data:` address; `blob_data` gives the text back."""
    found = _address(data)
    if found is None:
        return {"type": "blob", "content": data, "extra": {}}
    header, content = found
    part: dict[str, Any] = {"type": "blob", "content": content, "extra": {"header": header}}
    if mime_type := header.removeprefix("data:").partition(";")[0]:
        part["mime_type"] = mime_type
        if mime_type.startswith(("image/", "audio/", "video/")):
            part["modality"] = mime_type.partition("/")[0]
    return part


def is_data_address(value: Json) -> bool:
    """Return True for a `data:` address in base64, of any length."""
    return isinstance(value, str) and _address(value) is not None


def blob_data(part: Mapping[str, Any]) -> str:
    """Return the text that `blob_part` was given."""
    header = part["extra"].get("header")
    return part["content"] if header is None else f"{header},{part['content']}"


def _address(text: str) -> tuple[str, str] | None:
    """Return what stands before and after the first comma of a `data:` address in base64, or None for another text."""
    comma = text.find(",", 0, HEADER_CHARS_MAX + 1) if text.startswith("data:") else -1
    if comma < 0 or not _header.fullmatch(text, 0, comma) or not _content.fullmatch(text, comma + 1):
        return None
    return text[:comma], text[comma + 1 :]


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            if name != _OPAQUE:
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _replaced(value: Json, wanted: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return wanted.get(value, value)
    if isinstance(value, dict):
        return {name: item if name == _OPAQUE else _replaced(item, wanted) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, wanted) for item in value]
    return value
