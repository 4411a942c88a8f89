"""The sessions of an export, each line and the whole chain proved before anything is made of them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

import msgspec

from playhead.errors import ImportFailed, InvalidEvent, PlayheadError
from playhead.formats.jsonl.lines import (
    LINE_BYTES_MAX,
    ArtifactLine,
    EndLine,
    EventLine,
    Line,
    SessionLine,
    artifact_bytes,
    from_hex,
    is_first_line,
    parsed,
    speaks_of_type,
)
from playhead.model.codec import HASH_BYTES, SALT_BYTES, body_digest, chain_hash, envelope_bytes
from playhead.model.ids import check_name
from playhead.stores.base import Record
from playhead.stores.records import EMPTY_TIP, Continuation

ARTIFACT_BYTES_MAX = 1024 * 1024 * 1024
"""Largest artifact that is read: it is held in memory, and so are its bytes as base64, a line at a time."""

FIRST_LINE_BYTES_MAX = 64 * 1024

_GZIP = b"\x1f\x8b"
_TORN = (EOFError, zlib.error, gzip.BadGzipFile)
_NO_SALT = bytes(SALT_BYTES)


class SessionFound(msgspec.Struct, frozen=True):
    """A session of an export whose every line was proved. first_line: as it stands. event_count and artifact_count:
    what is whole. is_cut: the file ends, or is damaged, before the session does."""

    first_line: SessionLine
    event_count: int
    artifact_count: int
    is_cut: bool
    events_offset: int
    artifacts_offset: int


class Export:
    """A file of exported sessions, open. Use it in a `with` block. Not safe for use by several threads at once.

    sessions: those that are whole, in the order of the file, and last the one that the damage cuts, if any. damage:
    what is wrong with the file, None where it is whole.
    """

    def __init__(self, source: Path | BinaryIO, *, name: str | None = None) -> None:
        """Open and prove a file, a gzip of one, or a stream. Holds one line, or one artifact, at a time.

        Raises `ImportFailed` for what is no export at all, `NewerFormat` for one of a newer version, and `OSError`
        where the file cannot be read.
        """
        self.name = name or (source.name if isinstance(source, Path) else "the export")
        is_named = isinstance(source, Path) and not source.is_fifo()
        self._nothing = f"{self.name} is no Playhead export"
        if not is_named:
            self._nothing = "this is no Playhead export, and nothing else is read from a pipe: name the file or folder"
        self._file, self._owned = _opened(source)
        self._is_packed = isinstance(self._file, gzip.GzipFile)
        self.sessions: list[SessionFound] = []
        self.damage: str | None = None
        try:
            self._prove()
        except BaseException:
            self.close()
            raise

    def records(
        self, found: SessionFound, *, after: int = 0, previous: bytes = EMPTY_TIP.hash, salt: Callable[[], bytes]
    ) -> Iterator[Record]:
        """Yield the records of a session after seq `after`, in order, byte for byte as they were exported.

        Where texts were masked the chain is made anew, from the hash `previous` on, with a new salt for each event.
        """
        # No line is looked at behind the last whole event: it may be the damaged one.
        for place, _, text in islice(self._lines(found.events_offset), found.event_count):
            line, body = parsed(text, place=place)
            if not isinstance(line, EventLine):
                raise ImportFailed(f"{place}: the file was changed while it was read")
            if line.seq > after:
                record = _record(line, body, place, found.first_line.masked, previous, salt)
                previous = record.hash
                yield record

    def artifacts(self, found: SessionFound) -> Iterator[bytes]:
        """Yield the bytes of each artifact of a session."""
        pieces = bytearray()
        left = found.artifact_count
        for place, _, text in self._lines(found.artifacts_offset) if left else ():
            line, _ = parsed(text, place=place)
            if not isinstance(line, ArtifactLine):
                raise ImportFailed(f"{place}: the file was changed while it was read")
            pieces += artifact_bytes(line, place=place)
            if len(pieces) >= line.size:
                yield bytes(pieces)
                pieces.clear()
                left -= 1
                if not left:
                    return

    def close(self) -> None:
        """Close the file, where it was opened here. Calling it twice is fine."""
        for file in self._owned:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _lines(self, start: int) -> Iterator[tuple[str, int, bytes]]:
        """Yield where each line lies in words, the offset of the one after it, and its text; empty lines are none."""
        offset, number = start, 0
        try:
            self._go_to(start)
            while text := self._file.readline(LINE_BYTES_MAX + 1):
                offset, number = offset + len(text), number + 1
                place = f"line {number}" if start == 0 else f"byte {offset - len(text)}"
                if len(text) > LINE_BYTES_MAX:
                    raise ImportFailed(f"{self.name}, {place}: it is longer than {LINE_BYTES_MAX} bytes")
                if text.strip():
                    yield f"{self.name}, {place}", offset, text
        except _TORN as error:
            raise ImportFailed(f"{self.name} is torn: the compressed file breaks off after byte {offset}") from error

    def _go_to(self, offset: int) -> None:
        """Go to a byte of the export.

        What is packed is unpacked into a file of its own before it is gone back in: each step back would unpack it from
        its beginning again. It was proved by then, so that is no more than an export holds.
        """
        if self._is_packed and offset < self._file.tell():
            spooled = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed with the export
            self._owned.insert(0, spooled)
            end = self._file.tell()
            self._file.seek(0)
            # By lines, as it was proved: in pieces of another size less may come out of a file before its damage.
            with contextlib.suppress(*_TORN):
                while spooled.tell() < end and (line := self._file.readline(LINE_BYTES_MAX + 1)):
                    spooled.write(line)
            self._file, self._is_packed = spooled, False
        self._file.seek(offset)

    def _prove(self) -> None:
        """Read the whole file once. The first thing that does not hold ends it, and is the file's damage."""
        proof: _Proof | None = None
        try:
            for place, offset, text in self._lines(0):
                if offset == len(text) and not speaks_of_type(text):
                    raise ImportFailed(self._nothing)
                line, body = parsed(text, place=place)
                if proof is None:
                    proof = _Proof(line, offset, place)
                elif isinstance(line, EndLine):
                    self.sessions.append(proof.ended(line, place))
                    proof = None
                else:
                    proof.take(line, body, offset, place)
            if proof is not None:
                raise ImportFailed(f"{self.name} is torn: it ends before session {proof.first_line.id!r} does")
        except ImportFailed as error:
            if proof is None and not self.sessions:
                raise
            if proof is not None and proof.event_count:
                self.sessions.append(proof.found(is_cut=True))
            self.damage = str(error)
        if not self.sessions and self.damage is None:
            raise ImportFailed(f"{self.name} holds no session")


class _Proof:
    """What was read of one session so far."""

    def __init__(self, line: Line, offset: int, place: str) -> None:
        if not isinstance(line, SessionLine):
            raise ImportFailed(f"{place}: a session's first line has to come, not one of type {_type(line)!r}")
        try:
            for part, what in ((line.app, "app"), (line.user, "user"), (line.id, "session id")):
                check_name(part, what)
        except PlayheadError as error:
            raise ImportFailed(f"{place}: {error}") from error
        self.first_line = line
        self.event_count = 0
        self._log = Continuation(EMPTY_TIP, is_on_path=lambda seq: False)
        self._ids: set[str] = set()
        self._events_offset = self._artifacts_offset = offset
        self._whole: set[str] = set()
        self._artifact: ArtifactLine | None = None
        self._digest = hashlib.sha256()
        self._taken = 0

    def take(self, line: Line, body: str | None, offset: int, place: str) -> None:
        if isinstance(line, EventLine):
            self._take_event(line, body, offset, place)
        elif isinstance(line, ArtifactLine):
            self._take_piece(line, place)
        else:
            raise ImportFailed(f"{place}: session {self.first_line.id!r} is torn: another one begins before its end")

    def ended(self, line: EndLine, place: str) -> SessionFound:
        first = self.first_line
        said = (line.id, line.event_count, line.hash, first.event_count, first.hash)
        hash = None if first.masked else self._log.tip.hash.hex()
        if said != (first.id, self.event_count, hash, self.event_count, hash):
            raise ImportFailed(
                f"{place}: session {first.id!r} does not end as its first and last lines say: "
                f"{self.event_count} events were read, of {first.event_count} and {line.event_count}"
            )
        if self._artifact is not None or line.artifact_count != len(self._whole):
            raise ImportFailed(
                f"{place}: session {first.id!r} ends with {len(self._whole)} whole artifacts of {line.artifact_count}"
            )
        return self.found(is_cut=False)

    def found(self, *, is_cut: bool) -> SessionFound:
        return SessionFound(
            self.first_line,
            self.event_count,
            len(self._whole),
            is_cut,
            self._events_offset,
            self._artifacts_offset,
        )

    def _take_event(self, line: EventLine, body: str | None, offset: int, place: str) -> None:
        if self._whole or self._artifact is not None:
            raise ImportFailed(f"{place}: an event comes after the artifacts")
        record = _record(line, body, place, self.first_line.masked, self._log.tip.hash, lambda: _NO_SALT)
        try:
            self._log.take(record)
        except InvalidEvent as error:
            raise ImportFailed(f"{place}: {error}") from error
        if line.id in self._ids:
            raise ImportFailed(f"{place}: event {line.seq} has the id {line.id!r}, which an earlier one has")
        self._ids.add(line.id)
        self.event_count = line.seq
        self._artifacts_offset = offset

    def _take_piece(self, line: ArtifactLine, place: str) -> None:
        if not 0 <= line.size <= ARTIFACT_BYTES_MAX:
            raise ImportFailed(f"{place}: an artifact has {ARTIFACT_BYTES_MAX} bytes at most, not {line.size}")
        if self._artifact is None:
            self._digest, self._taken = hashlib.sha256(), 0
        before = self._artifact or line
        if (line.hash, line.size, line.offset) != (before.hash, before.size, self._taken) or line.hash in self._whole:
            raise ImportFailed(f"{place}: this piece of artifact {line.hash!r} does not follow the one before it")
        piece = artifact_bytes(line, place=place)
        self._digest.update(piece)
        self._taken += len(piece)
        self._artifact = line
        if self._taken > line.size or (not piece and line.size):
            raise ImportFailed(f"{place}: artifact {line.hash!r} has not the {line.size} bytes that it should have")
        if self._taken == line.size:
            if line.hash != f"sha256-{self._digest.hexdigest()}":
                raise ImportFailed(f"{place}: the bytes of artifact {line.hash!r} are not those that its name is of")
            self._whole.add(line.hash)
            self._artifact = None


def is_export(path: Path) -> bool:
    """Return True where a file, or a gzip of it, begins as an export does. Reads its first line only."""
    if not path.is_file():
        return False  # Opening a pipe would wait for whoever is at its other end.
    try:
        with path.open("rb") as file:
            start = file.read(len(_GZIP))
            file.seek(0)
            lines = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if start == _GZIP else file
            return is_first_line(lines.readline(FIRST_LINE_BYTES_MAX))
    except (OSError, EOFError, zlib.error):
        return False


def _record(
    line: EventLine, body: str | None, place: str, masked: bool, previous: bytes, salt: Callable[[], bytes]
) -> Record:
    """Return the record of a line. The digest and the hash of a masked event are made of its text as it is."""
    digest = from_hex(line.digest, HASH_BYTES, place=place)
    if not masked:
        hash = from_hex(line.hash, HASH_BYTES, place=place)
        own_salt = from_hex(line.salt, SALT_BYTES, place=place)
        if hash is None:
            raise ImportFailed(f"{place}: event {line.seq} has no hash")
    else:
        own_salt = None if body is None else salt()
        if not 0 < line.seq < 2**63 or not 0 <= line.parent < 2**63 or (body is None and digest is None):
            raise ImportFailed(f"{place}: event {line.seq} is not what an event can be")
        try:
            envelope = envelope_bytes(
                seq=line.seq,
                parent=line.parent,
                at=line.at,
                id=line.id,
                kind=line.kind,
                agent=line.agent,
                turn=line.turn,
                scope=line.scope,
            )
            hash = chain_hash(
                previous, envelope, body_digest(own_salt or b"", body) if body is not None else digest or b""
            )
        except UnicodeEncodeError as error:
            raise ImportFailed(f"{place}: half a surrogate pair where no text can have one") from error
    return Record(
        seq=line.seq,
        parent=line.parent,
        id=line.id,
        at=line.at,
        kind=line.kind,
        agent=line.agent,
        turn=line.turn,
        scope=line.scope,
        body=body,
        salt=own_salt,
        digest=digest if body is None else None,
        hash=hash,
        is_fact=line.fact,
    )


def _type(line: Line) -> str:
    return str(line.__struct_config__.tag)


def _opened(source: Path | BinaryIO) -> tuple[BinaryIO, list[BinaryIO]]:
    """Return the lines of a source in a file that can be gone back in, and the files to be closed."""
    owned: list[BinaryIO] = []
    file = source
    if isinstance(file, Path):
        file = file.open("rb")
        owned.append(file)
    if not file.seekable():
        spooled = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed with the export
        owned.append(spooled)
        shutil.copyfileobj(file, spooled)
        file = spooled
    file.seek(0)
    start = file.read(len(_GZIP))
    file.seek(0)
    if start == _GZIP:
        unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=file))
        return unpacked, [unpacked, *owned]
    return file, owned
