"""The conversations in a file of an export: each a stretch of JSON of its own, so that a bad one harms no other."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats.chatgpt.archive import Member
from playhead.formats.ids import clean
from playhead.formats.jsonlines import DEPTH_MAX
from playhead.formats.values import is_deeper, mapping

_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_blank = " \t\r\n,"


class _Wrapped(msgspec.Struct):
    conversations: list[msgspec.Raw]


class _Heading(msgspec.Struct):
    id: Any = None
    conversation_id: Any = None


def pieces(member: Member) -> list[bytes | msgspec.Raw]:
    """Return the JSON of each conversation in a file, in its order.

    Raises `ImportFailed` where the file is no list of them, or breaks off.
    """
    data = member.read().removeprefix(b"\xef\xbb\xbf")
    try:
        if data.lstrip()[:1] == b"{":
            return list(msgspec.json.decode(data, type=_Wrapped).conversations)
        return list(_decoder.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # Halves of surrogate pairs, NaN, or damage: the slower reader says which.
        return _slow_pieces(data.decode("utf-8", "replace"), member.name)


def value(piece: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return a conversation. Raises `ImportFailed` for what is no object with messages."""
    try:
        found: Any = msgspec.json.decode(piece)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        found = _slow_value(bytes(piece))
    if not isinstance(mapping(found).get("mapping"), dict):
        raise ImportFailed("it has no messages")
    if is_deeper(found, DEPTH_MAX):
        raise ImportFailed(f"it is nested deeper than {DEPTH_MAX} levels")
    conversation: dict[str, Any] = found
    return conversation


def id_of(piece: bytes | msgspec.Raw) -> str:
    """Return the id that a conversation states, else one made from all of it."""
    try:
        heading = msgspec.json.decode(piece, type=_Heading)
        stated = clean(heading.conversation_id) or clean(heading.id)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        try:
            found = mapping(_slow_value(bytes(piece)))
        except ImportFailed:
            found = {}
        stated = clean(found.get("conversation_id")) or clean(found.get("id"))
    return stated or f"unnamed-{hashlib.sha256(bytes(piece)).hexdigest()[:24]}"


def _slow_pieces(text: str, name: str) -> list[bytes | msgspec.Raw]:
    decoder = _slow_decoder()
    start = text.find("[")
    if start < 0:
        raise ImportFailed(f"{name} is no list of conversations")
    found: list[bytes | msgspec.Raw] = []
    index = start + 1
    while True:
        index = _after(text, index)
        if text[index : index + 1] == "]":
            return found
        try:
            _, end = decoder.raw_decode(text, index)
        except (ValueError, RecursionError) as error:
            place = len(text[:index].encode("utf-8", "surrogatepass"))
            raise ImportFailed(
                f"{name} breaks off: conversation {len(found) + 1}, at byte {place}, is no whole JSON"
            ) from error
        found.append(text[index:end].encode("utf-8", "surrogatepass"))
        index = end


def _after(text: str, index: int) -> int:
    while text[index : index + 1] and text[index] in _blank:
        index += 1
    return index


def _slow_value(piece: bytes) -> Any:
    try:
        return _slow_decoder().decode(piece.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ImportFailed("it is no JSON that can be read") from error


def _slow_decoder() -> json.JSONDecoder:
    return json.JSONDecoder(strict=False, parse_constant=lambda name: None)
