"""Bodies and chains as bytes: JSON in and out, and the hash that links each event to the one before.

JSON text is what lies on disk. Everything that JSON can hold comes back equal (a tuple as a list, and two halves of a
surrogate pair side by side as the one character that they are); what it cannot hold (NaN, infinities, bytes, dates,
keys that are no strings) is refused rather than changed in silence.

The chain, byte for byte (all integers big-endian):

    digest  = SHA-256(salt || body)                  body: the stored UTF-8 text; salt: 16 random bytes
    hash(n) = SHA-256(hash(n-1) || envelope(n) || digest(n))      hash(0) = 32 zero bytes
    envelope = u64 seq, u64 parent, f64 at (IEEE 754), then id, kind, agent, turn, scope, each as
               u32 length and UTF-8 bytes; an absent one is the length 0xFFFFFFFF alone

The session's id is left out, so a session can be renamed or moved. Dropping salt and body and keeping the digest
(a redaction) leaves every hash verifiable and gives nothing to guess the body from.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

import msgspec

from playhead.errors import InvalidEvent
from playhead.model.event import Body, Draft

SALT_BYTES = 16
HASH_BYTES = 32
FIRST_HASH = bytes(HASH_BYTES)

DEPTH_MAX = 200
"""Deepest nesting of a body. A decoder recurses, on a stack that may be deep already; SQLite's own reaches 1,000."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_fixed = struct.Struct(">QQd")
_length = struct.Struct(">I")
_ABSENT = _length.pack(0xFFFFFFFF)
_LEAVES = frozenset({str, int, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple})


def encode_body(body: Mapping[str, Any]) -> str:
    """Return the JSON text of a body.

    Raises `InvalidEvent` where JSON would not give back what it was given, and for nesting beyond `DEPTH_MAX`.
    """
    if type(body) is not dict:
        raise InvalidEvent(f"a body is a dict, not a {type(body).__name__}")
    return encode_json(body, name="body")


def decode_body(text: str | bytes) -> Body:
    """Return the body that `encode_body` was given. Raises `InvalidEvent` where the text is not a JSON object."""
    body = decode_json(text)
    if not isinstance(body, dict):
        raise InvalidEvent(f"a stored body is a JSON {type(body).__name__}, not an object")
    return body


def encode_json(value: Any, *, name: str = "value") -> str:
    """Return the JSON text of a value, without spaces. Raises `InvalidEvent` as `encode_body` does."""
    check_json(value, name=name)
    try:
        return _encoder.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):
        # Half a surrogate pair cannot be UTF-8, but a JSON escape can carry it, and it comes back equal.
        return json.dumps(value, separators=(",", ":"))
    except ValueError as error:
        raise InvalidEvent(f"the {name} cannot be written as JSON: {error}") from error


def decode_json(text: str | bytes) -> Any:
    """Return the value that `encode_json` was given. Raises `InvalidEvent` where the text is not JSON."""
    try:
        return _decoder.decode(text)
    except RecursionError as error:
        raise InvalidEvent("a stored value is nested too deeply to be read") from error
    except (msgspec.DecodeError, UnicodeError):
        return _decode_escaped(text)


def check_json(value: Any, *, name: str = "value") -> None:
    """Raise `InvalidEvent` unless JSON can hold the value exactly, nested `DEPTH_MAX` deep at most."""
    if type(value) not in _LEAVES:
        _check(name, value, DEPTH_MAX)


def _check(name: str, value: Any, depth_left: int) -> None:
    """Check what is no leaf. It runs for every append. Types are exact, since a subclass may encode as anything."""
    kind = type(value)
    if depth_left == 0 and kind in _CONTAINERS:
        raise InvalidEvent(f"{name!r} is nested more than {DEPTH_MAX} levels deep")
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidEvent(f"{key!r} is no key in JSON, where keys are strings")
            kind = type(item)
            if kind is not str and kind not in _LEAVES:
                _check(key, item, depth_left - 1)
    elif kind in _CONTAINERS:
        for item in value:
            if type(item) not in _LEAVES:
                _check(name, item, depth_left - 1)
    elif kind is not float:
        raise InvalidEvent(f"{name!r} holds a {kind.__name__}, for which JSON has no form; write it as text")
    elif value - value != 0.0:
        raise InvalidEvent(f"{name!r} holds {value!r}, for which JSON has no form; write None or text in its place")


def _decode_escaped(text: str | bytes) -> Any:
    """Decode what the fast decoder does not take: half a surrogate pair is legal JSON."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(f"a stored body is not JSON: {error}") from error


def _finite(literal: str) -> float:
    number = float(literal)
    if number - number != 0.0:
        raise ValueError(f"number {literal} is out of range")
    return number


def _refuse_constant(literal: str) -> NoReturn:
    raise ValueError(f"JSON has no {literal}")


def body_digest(salt: bytes, body: str) -> bytes:
    """Return the 32-byte digest that stands for a body in the chain."""
    return hashlib.sha256(salt + body.encode()).digest()


def chain_hash(previous: bytes, envelope: bytes, digest: bytes) -> bytes:
    """Return the 32-byte hash of an event, given the hash of the event before it (`FIRST_HASH` for the first)."""
    return hashlib.sha256(previous + envelope + digest).digest()


def envelope_bytes(
    *, seq: int, parent: int, at: float, id: str, kind: str, agent: str | None, turn: str | None, scope: str | None
) -> bytes:
    """Return the bytes of everything in an event but its body, as the chain takes them."""
    # A database keeps no sign of zero, so -0.0 is hashed as it is read back: adding 0.0 makes 0.0 of it.
    return _fixed.pack(seq, parent, at + 0.0) + _field(id) + _repeated_fields(kind, agent, turn, scope)


def _field(text: str) -> bytes:
    raw = text.encode()
    return _length.pack(len(raw)) + raw


@lru_cache(maxsize=1_024)  # A few writers and kinds make up a turn; an append is timed in microseconds.
def _repeated_fields(*texts: str | None) -> bytes:
    return b"".join(_ABSENT if text is None else _field(text) for text in texts)


def draft_envelope(draft: Draft, *, seq: int, parent: int) -> bytes:
    """Return the envelope bytes of a draft at its place in the log."""
    return envelope_bytes(
        seq=seq,
        parent=parent,
        at=draft.at,
        id=draft.id,
        kind=draft.kind,
        agent=draft.agent,
        turn=draft.turn,
        scope=draft.scope,
    )
