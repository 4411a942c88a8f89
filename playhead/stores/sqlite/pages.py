"""Rows out of the pages of an SQLite file, without SQLite: what still stands in a file that it refuses to read.

Each page is looked at by itself. A leaf of a table says where its rows begin, so a damaged root, a page of zeros or a
missing end costs the rows that were on it and no others. Leaves of indexes are read as well: what they repeat of a row
may be all that is left of it. A row whose overflow pages are damaged is left out, or comes
out wrong: whoever takes it has to prove it. What the write-ahead log holds of committed pages counts like the file's.

Source of the layout: the SQLite database file format. The file must be at rest: a live one belongs to SQLite.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from playhead.stores.files import os_errors

MAGIC = b"SQLite format 3\0"
DEFAULT_PAGE_BYTES = 4_096
"""Page size of every file of ours, for one whose header does not tell."""

PAGE_BYTES = frozenset(2**power for power in range(9, 17))
USABLE_BYTES_MIN = 480
"""SQLite's own least, below which a row would not fit as the format has it."""

COLUMNS_MAX = 32
"""A row of more columns is none of ours."""

ROW_BYTES_MAX = 2**30
"""Longest row that is believed: SQLite's own limit."""

_LEAF_OF_TABLE = 0x0D
_LEAF_OF_INDEX = 0x0A
_WAL_MAGICS = (0x377F0682, 0x377F0683)
_WAL_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_BROKEN = (IndexError, struct.error, UnicodeDecodeError, ValueError, OverflowError)
"""What reading raises where bytes are not what their place says."""


class RawRow(msgspec.Struct, frozen=True):
    """A row of some table, or an entry of some index.

    number: its row id, None for an entry. values: its columns as they are stored, so the one that is the row id itself
    is None, and a real number that is whole is an int; an entry has the row id at its end.
    """

    number: int | None
    values: tuple[Any, ...]


def rows_in(path: Path) -> Iterator[RawRow]:
    """Yield every row that can be read, page by page, some of them twice: a page that was given up keeps its bytes.

    Raises `StoreUnavailable` or `StoreReadOnly` where the file itself cannot be read.
    """
    with contextlib.ExitStack() as files:
        files.enter_context(os_errors(path))
        file, wal = files.enter_context(path.open("rb")), Path(f"{path}-wal")
        log = files.enter_context(wal.open("rb")) if wal.is_file() else None
        ours = (DEFAULT_PAGE_BYTES, DEFAULT_PAGE_BYTES)
        # A damaged header may say any size: what it says and what our files have are both tried.
        for page_bytes, usable in dict.fromkeys((ours, _said(file.read(100)) or ours)):
            yield from _Pages(file, log, page_bytes, usable).rows()


def _said(header: bytes) -> tuple[int, int] | None:
    """Return how many bytes a page has, and how many of them hold rows, as a header says; None where it cannot be."""
    if not header.startswith(MAGIC) or len(header) < 100:
        return None
    size = struct.unpack(">H", header[16:18])[0]
    size = 65_536 if size == 1 else size
    return (size, size - header[20]) if size in PAGE_BYTES and size - header[20] >= USABLE_BYTES_MIN else None


class _Pages:
    """The pages of a file by number, from 1, those of its write-ahead log before its own."""

    def __init__(self, file: BinaryIO, wal: BinaryIO | None, page_bytes: int, usable: int) -> None:
        self._bytes = page_bytes
        self._usable = usable
        self._file = file
        self._count = -(-file.seek(0, 2) // self._bytes)
        self._wal = wal
        self._frames = {} if wal is None else _frames(wal, self._bytes)

    def rows(self) -> Iterator[RawRow]:
        for number in range(1, self._count + 1):
            yield from self._rows_of(number, self._own(number))
        for number in sorted(self._frames):
            yield from self._rows_of(number, self._page(number))

    def _own(self, number: int) -> bytes:
        self._file.seek((number - 1) * self._bytes)
        return self._file.read(self._bytes)

    def _page(self, number: int) -> bytes:
        offset = self._frames.get(number)
        if offset is None or self._wal is None:
            return self._own(number)
        self._wal.seek(offset)
        return self._wal.read(self._bytes)

    def _rows_of(self, number: int, page: bytes) -> Iterator[RawRow]:
        start = 100 if number == 1 else 0
        if len(page) < start + 8 or page[start] not in (_LEAF_OF_TABLE, _LEAF_OF_INDEX):
            return
        is_table = page[start] == _LEAF_OF_TABLE
        (count,) = struct.unpack_from(">H", page, start + 3)
        count = min(count, (self._usable - start - 8) // 2)
        for place in range(start + 8, start + 8 + 2 * count, 2):
            try:
                (cell,) = struct.unpack_from(">H", page, place)
                row = self._row(page, cell, is_table=is_table)
            except _BROKEN:
                continue
            if row is not None:
                yield row

    def _row(self, page: bytes, cell: int, *, is_table: bool) -> RawRow | None:
        length, cell = _varint(page, cell)
        number, cell = _varint(page, cell) if is_table else (None, cell)
        if not 0 < length <= ROW_BYTES_MAX:
            return None
        local = self._local(length, is_table=is_table)
        payload = page[cell : cell + local]
        if len(payload) < local:
            return None
        if local < length:
            (overflow,) = struct.unpack_from(">I", page, cell + local)
            payload += self._overflow(overflow, length - local)
        values = _values(payload) if len(payload) == length else None
        return None if values is None else RawRow(None if number is None else _signed(number), values)

    def _local(self, length: int, *, is_table: bool) -> int:
        """Return how many bytes of a row stand on its leaf; the others are on overflow pages."""
        most = self._usable - 35 if is_table else (self._usable - 12) * 64 // 255 - 23
        least = (self._usable - 12) * 32 // 255 - 23
        if length <= most:
            return length
        wanted = least + (length - least) % (self._usable - 4)
        return wanted if wanted <= most else least

    def _overflow(self, number: int, missing: int) -> bytes:
        pieces = []
        while missing > 0 and number > 0:  # Each page takes bytes off, so a circle of pages ends as well.
            page = self._page(number)
            piece = page[4 : min(self._usable, 4 + missing)]
            if not piece:
                break
            (number,) = struct.unpack_from(">I", page)
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


def _frames(wal: BinaryIO, page_bytes: int) -> dict[int, int]:
    """Return where in a write-ahead log each page lies that a committed transaction wrote, the newest of each."""
    wal.seek(0)
    header = wal.read(_WAL_HEADER_BYTES)
    if len(header) < _WAL_HEADER_BYTES or struct.unpack_from(">I", header)[0] not in _WAL_MAGICS:
        return {}
    salts = header[16:24]
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    offset = _WAL_HEADER_BYTES
    while True:
        wal.seek(offset)
        frame = wal.read(_FRAME_HEADER_BYTES + page_bytes)
        if len(frame) < _FRAME_HEADER_BYTES + page_bytes or frame[8:16] != salts:
            return committed
        number, size_after = struct.unpack_from(">II", frame)
        pending[number] = offset + _FRAME_HEADER_BYTES
        if size_after:
            committed |= pending
            pending.clear()
        offset += len(frame)


def _values(payload: bytes) -> tuple[Any, ...] | None:
    """Return the columns of a row, or None where it has more than any of ours."""
    header_bytes, place = _varint(payload, 0)
    kinds = []
    while place < header_bytes:
        kind, place = _varint(payload, place)
        kinds.append(kind)
        if len(kinds) > COLUMNS_MAX:
            return None
    values = []
    place = header_bytes
    for kind in kinds:
        value, place = _value(payload, place, kind)
        values.append(value)
    if place != len(payload):
        raise ValueError("the columns do not fill the row")
    return tuple(values)


def _value(payload: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGER_BYTES:
        end = place + _INTEGER_BYTES[kind]
        return int.from_bytes(_slice(payload, place, end), "big", signed=True), end
    if kind == 7:
        return struct.unpack(">d", _slice(payload, place, place + 8))[0], place + 8
    if kind in (8, 9):
        return kind - 8, place
    if kind < 12:
        if kind:
            raise ValueError(f"no value is of kind {kind}")
        return None, place
    end = place + (kind - 12) // 2
    content = _slice(payload, place, end)
    return (content.decode() if kind % 2 else content), end


def _slice(payload: bytes, start: int, end: int) -> bytes:
    if end > len(payload):
        raise IndexError(end)
    return payload[start:end]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and the place after it."""
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    return value << 8 | data[place], place + 1


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
