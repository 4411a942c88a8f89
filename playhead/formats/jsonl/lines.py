"""The lines of a JSON Lines export, version 1: what each says, and the way from its values to its text and back.

`docs/jsonl.md` is the format's own page. The body of an event stands at the end of its line exactly as it is stored, so
that its hash holds: no reader has to write JSON the way we do.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import Any

import msgspec

from playhead.errors import ImportFailed, NewerFormat
from playhead.model.codec import encode_json
from playhead.model.ids import SessionKey
from playhead.stores.base import Record

FORMAT = "playhead"
VERSION = 1

LINE_BYTES_MAX = 256 * 1024 * 1024
"""Longest line that is written or read."""

CHUNK_BYTES = 768 * 1024
"""Bytes of an artifact in one line: a megabyte of base64, three bytes of which are four characters."""

_BODY = b',"body":'
_KIND_BYTES = 200
_typed = re.compile(rb'\s*\{\s*"type"\s*:\s*"(?:session|event|artifact|end)"')


class SessionLine(msgspec.Struct, frozen=True, tag="session"):
    """The first line of a session.

    event_count: events that follow. hash: chain hash of the last one in hex. masked: secrets were looked for and
    masked, so no hash of the session is left and the chain is to be made anew. title, forked_from: to be read by a
    person; the events say so too.
    """

    format: str
    version: int
    app: str
    user: str
    id: str
    event_count: int
    hash: str | None = None
    title: str | None = None
    forked_from: dict[str, str | int] | None = None
    masked: bool = False

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.app, self.user, self.id)


class EventLine(msgspec.Struct, frozen=True, tag="event"):
    """One event as it is stored. fact: it lies on no path. A redacted event has a digest and neither body nor salt."""

    seq: int
    parent: int
    id: str
    at: float
    kind: str
    agent: str | None = None
    turn: str | None = None
    scope: str | None = None
    fact: bool = False
    salt: str | None = None
    digest: str | None = None
    hash: str | None = None
    body_text: str | None = None


class ArtifactLine(msgspec.Struct, frozen=True, tag="artifact"):
    """A piece of an artifact, in base64. offset: how many of its bytes came before."""

    hash: str
    size: int
    offset: int
    data: str


class EndLine(msgspec.Struct, frozen=True, tag="end"):
    """The last line of a session. A session without it is torn. masked: how many texts of which kind were masked."""

    id: str
    event_count: int
    artifact_count: int
    hash: str | None = None
    masked: dict[str, int] | None = None


Line = SessionLine | EventLine | ArtifactLine | EndLine

_decoder = msgspec.json.Decoder(Line)


class _Kind(msgspec.Struct):
    """What a line of any version says of itself."""

    type: str = ""
    format: str = ""
    version: int = 0


def is_first_line(line: bytes) -> bool:
    """Return True where a file begins as an export of any version does: with a session's first line."""
    try:
        kind = msgspec.json.decode(line, type=_Kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return (kind.type, kind.format) == ("session", FORMAT)


def speaks_of_type(line: bytes) -> bool:
    """Return True for a line whose first field is a type of this format: one of it, whole or damaged."""
    return _typed.match(line) is not None


def line_text(line: SessionLine | ArtifactLine | EndLine) -> bytes:
    """Return a line that holds no body, with its line feed."""
    return encode_json(_said(line)).encode() + b"\n"


def event_text(line: EventLine, body: str | None) -> bytes:
    """Return the line of an event, with its line feed; the body's text stands in it unchanged.

    A body that another program stored in several lines is written as a string instead.
    """
    if body is not None and not _is_one_line(body):
        line = msgspec.structs.replace(line, body_text=body)
        body = None
    head = encode_json(_said(line)).encode()
    text = head if body is None else head[:-1] + _BODY + body.encode() + b"}"
    return text + b"\n"


def parsed(text: bytes, *, place: str) -> tuple[Line, str | None]:
    """Return what a line says, and the stored text of its body where it is an event that has one.

    Raises `ImportFailed` that names the place for what is no line of this format, and `NewerFormat` for a session of a
    newer version.
    """
    head, mark, rest = text.rstrip(b"\r\n").partition(_BODY)
    try:
        if mark:
            if not rest.endswith(b"}"):
                raise ImportFailed(f"{place}: the line ends in the middle of a body")
            head, rest = head + b"}", rest[:-1]
        if b'"session"' in head[:_KIND_BYTES] and is_first_line(head):
            _check_version(msgspec.json.decode(head, type=_Kind).version, place)
        line = _decoder.decode(head)
        body = rest.decode() if mark else None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ImportFailed(f"{place} is no line of a Playhead export: {error}") from error
    if isinstance(line, EventLine):
        return line, line.body_text if body is None else body
    if mark or (isinstance(line, SessionLine) and line.format != FORMAT):
        raise ImportFailed(f"{place} is no line of a Playhead export")
    return line, None


def event_line(record: Record) -> EventLine:
    """Return the line of a record, without its body."""
    return EventLine(
        seq=record.seq,
        parent=record.parent,
        id=record.id,
        at=record.at,
        kind=record.kind,
        agent=record.agent,
        turn=record.turn,
        scope=record.scope,
        fact=record.is_fact,
        salt=_hex(record.salt),
        digest=_hex(record.digest),
        hash=_hex(record.hash),
    )


def artifact_line(hash: str, data: bytes, offset: int) -> ArtifactLine:
    """Return the line of the piece of an artifact that begins at `offset`."""
    piece = data[offset : offset + CHUNK_BYTES]
    return ArtifactLine(hash=hash, size=len(data), offset=offset, data=b64encode(piece).decode())


def artifact_bytes(line: ArtifactLine, *, place: str) -> bytes:
    """Return the bytes of a piece. Raises `ImportFailed` where they are not base64."""
    try:
        return b64decode(line.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImportFailed(f"{place}: the bytes of an artifact are not base64: {error}") from error


def from_hex(text: str | None, count: int, *, place: str) -> bytes | None:
    """Return the bytes of a hash or a salt, which has `count` of them; None for None. Raises `ImportFailed`."""
    if text is None:
        return None
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != count or len(text) != 2 * count:
        raise ImportFailed(f"{place}: {text[:80]!r} is not {count} bytes in hex")
    return value


def _said(line: Line) -> dict[str, Any]:
    """Return the fields of a line in their order, those that say nothing left out."""
    fields = {name: getattr(line, name) for name in line.__struct_fields__}
    said = {name: value for name, value in fields.items() if value is not None and value is not False}
    return {"type": line.__struct_config__.tag, **said}


def _check_version(version: int, place: str) -> None:
    if version > VERSION:
        raise NewerFormat(place, found=version, supported=VERSION)
    if version < 1:
        raise ImportFailed(f"{place}: there is no version {version} of this format")


def _is_one_line(body: str) -> bool:
    return body.startswith("{") and body.endswith("}") and "\n" not in body and "\r" not in body


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
