"""Files of lines that grow: what happened to one since it was read, and its records from there on.

What a later read needs is in a `SourcePosition`, whose `carry` has the line's number and the length of the last line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Literal

from playhead.errors import ImportFailed
from playhead.formats.imported import Skipped, SourcePosition
from playhead.formats.jsonlines import JsonLines, Place, Record

SKIPPED_MAX = 1000
"""Skipped stretches that a report lists; their count has them all."""

Change = Literal["none", "grown", "other"]

Open = Callable[[Path], AbstractContextManager[BinaryIO]]
"""Opens a file for reading its bytes. What it gives need not be seekable where nothing of the file is known; its
`fileno` is that of the file itself."""


def change_of(path: Path, known: SourcePosition | None) -> Change:
    """Return what happened to a file since it was read: nothing, more at its end, or something else.

    A file that was not read before counts as grown. Raises `OSError` where it cannot be looked at.
    """
    if known is None:
        return "grown"
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (known.size, known.mtime_ns):
        return "none"
    place = place_of(known)
    if status.st_size < place.offset:
        return "other"
    with path.open("rb") as stream:
        if not _ends_at(stream, place):
            return "other"
    return "none" if status.st_size == known.size else "grown"


def _ends_at(stream: BinaryIO, place: Place) -> bool:
    """Go to a place in a file; return True where the line before it is the one that was read there."""
    stream.seek(place.offset - place.last_length)
    last = stream.read(place.last_length)
    return not place.last_length or hashlib.sha256(last).hexdigest() == place.last_hash


def place_of(known: SourcePosition | None) -> Place:
    """Return where to read on, which is the beginning where nothing sensible is known."""
    if known is None:
        return Place()
    line, length = known.carry.get("line"), known.carry.get("last_length")
    if not isinstance(line, int) or not isinstance(length, int) or not 0 <= length <= known.offset:
        return Place()
    return Place(known.offset, line, length, known.last_line)


def first_of(skipped: Sequence[Skipped]) -> str:
    """Return what the sentence that nothing of a file could be read ends with: the first place, and what is wrong."""
    if not skipped:
        return ""
    first = skipped[0]
    return f": line {first.line}, byte {first.offset}, {first.length} bytes: {first.reason}"


class Files:
    """Reads files on from where they were left; has the new positions by path, and the reports.

    is_record: says of an object behind torn text whether it is a record by itself, and no piece of the torn one.
    """

    def __init__(
        self,
        known: Mapping[str, SourcePosition],
        *,
        is_record: Callable[[dict[str, Any]], bool],
        open: Open = lambda path: path.open("rb"),
    ) -> None:
        self._known = known
        self._is_record = is_record
        self._open = open
        self.positions: dict[str, SourcePosition] = dict(known)
        self.skipped: list[Skipped] = []
        self.skipped_count = 0

    def records(self, path: Path) -> Iterator[Record]:
        """Yield the records that follow the known position, and note the new one at the end.

        Raises `ImportFailed` where the file cannot be read.
        """
        name = str(path)
        place = place_of(self._known.get(name))
        try:
            with self._open(path) as stream:
                status = os.fstat(stream.fileno())  # Of this file: another may have its name by now.
                if place.offset:
                    self._go_on(stream, path, place)
                lines = JsonLines(stream, name, place=place, is_record=self._is_record)
                for item in lines:
                    if isinstance(item, Record):
                        yield item
                    else:
                        self.report(item)
        except OSError as error:
            raise ImportFailed(f"{path} cannot be read: {error.strerror}") from error
        read = lines.place
        carry = {"line": read.line, "last_length": read.last_length}
        self.positions[name] = SourcePosition(status.st_size, status.st_mtime_ns, read.offset, read.last_hash, carry)

    def _go_on(self, stream: BinaryIO, path: Path, place: Place) -> None:
        """Go to where the file was left. Raises `ImportFailed` where that is not the file that was read before."""
        if not _ends_at(stream, place):
            raise ImportFailed(f"{path} was replaced while it was looked at; import it again")

    def report(self, skipped: Skipped) -> None:
        """Count a stretch that could not be read, and list it while there is room."""
        self.skipped_count += 1
        if len(self.skipped) < SKIPPED_MAX:
            self.skipped.append(skipped)
