"""JSON objects from a file of lines that may be torn, glued together or half overwritten.

One line normally holds one object. After a crash it may hold two, a half, a run of NUL bytes, or text that is not
UTF-8. The reader gives every object that can still be read, says where each stretch lies that cannot, and raises for
nothing that the file contains. It holds one line in memory at a time.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import msgspec

from playhead.formats.imported import UNFINISHED, Skipped
from playhead.formats.values import is_deeper

LINE_BYTES_MAX = 64 * 1024 * 1024
"""Longest line that is read. A longer one is reported and passed over without being held in memory."""

DEPTH_MAX = 200
"""Deepest nesting of a record. Python's own limit for writing JSON lies near 1,000 less the depth of the caller."""

RESCANS_MAX = 8
"""How many times its own length a torn line is gone over in search of records. After that its rest is one stretch."""

NUL_RUNS_MAX = 10_000
"""Runs of NUL bytes in one line. A line with more of them is no UTF-8 at all (UTF-16 has one in each letter)."""

DIGITS_MAX = 4300
"""Longest whole number that Python turns into text and back by itself."""

NOT_UTF8 = "bytes that are not UTF-8 were replaced"
NULS = "NUL bytes were stripped"
NOT_A_NUMBER = "NaN or an infinity became null"
TOO_MANY_DIGITS = "a number beyond any sensible size is kept as text"
GLUED = "a record stands behind another one on the same line"

_DISCARD_BYTES = 1024 * 1024
_WINDOW_CHARS = 4096
_WINDOW_GROWTH = 16
# An error so close to the end of a window may be the window's: half a number, a literal, an escape.
_WINDOW_MARGIN = 16
_decoder = msgspec.json.Decoder()
_whitespace = re.compile(r"[ \t\r\n\ufeff]*")
_nul_run = re.compile(rb"\0+")
_bad_bytes = re.compile("[\udc80-\udcff]+")


class Record(msgspec.Struct, frozen=True):
    """One JSON object of the file.

    line counts from 1; offset is that of its first byte. raw: its bytes, without those that were stripped. repairs:
    what was changed so that it could be read, `()` for a sound record.
    """

    value: dict[str, Any]
    line: int
    offset: int
    raw: bytes
    repairs: tuple[str, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """How far a file was read: the next byte, the number of the line that it stands in, and the line before it.

    last_length, last_hash: bytes and hex SHA-256 of the stretch that ends at `offset` and was read as the last line,
    so that a reader who comes back can tell whether the file only grew.
    """

    offset: int = 0
    line: int = 1
    last_length: int = 0
    last_hash: str = ""


class JsonLines:
    """Iterate over a file's records and skipped stretches, in order; `place` says where to go on another time.

    stream: opened for reading bytes, standing at `place.offset`. source: the name that reports carry. is_record: asked
    about an object found behind torn text, since what follows a torn record may be a piece of that record.

    A last line without a line feed counts as read as far as its records are whole. What follows may still be on its
    way from the writer: it is reported, and `place` stays before it.
    """

    def __init__(
        self,
        stream: BinaryIO,
        source: str,
        *,
        place: Place | None = None,
        is_record: Callable[[dict[str, Any]], bool] = lambda value: True,
    ) -> None:
        self.place = place or Place()
        self._stream = stream
        self._source = source
        self._is_record = is_record

    def __iter__(self) -> Iterator[Record | Skipped]:
        while raw := self._stream.readline(LINE_BYTES_MAX + 1):
            if len(raw) > LINE_BYTES_MAX and not raw.endswith(b"\n"):
                skipped, is_whole = self._pass_over(len(raw))
                yield skipped
                if not is_whole:
                    return
            elif raw.endswith(b"\n"):
                found = self._line(raw)
                self._moved(raw, ends_line=True)
                yield from found
            else:
                yield from self._unfinished(raw)
                return

    def _line(self, raw: bytes) -> list[Record | Skipped]:
        try:
            value = _decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            # Odd, glued or damaged: the slower reader takes it apart.
            return _Pieces(raw.removesuffix(b"\n"), self._source, self.place, self._is_record).found()
        if isinstance(value, dict) and not _is_too_deep(value, raw):
            return [Record(value, self.place.line, self.place.offset, raw.strip())]
        return _Pieces(raw.removesuffix(b"\n"), self._source, self.place, self._is_record).found()

    def _unfinished(self, raw: bytes) -> Iterator[Record | Skipped]:
        """Yield the whole records of a line that has no end yet, and one report of what follows them."""
        read = len(raw)
        for item in self._line(raw):
            if isinstance(item, Skipped) and item.reason != NULS:
                read = item.offset - self.place.offset
                rest = len(raw) - read
                reason = f"{UNFINISHED}: {item.reason}"
                yield Skipped(item.source, item.line, item.offset, rest, reason, is_pending=True)
                break
            yield item
        if read:
            self._moved(raw[:read], ends_line=False)

    def _pass_over(self, length: int) -> tuple[Skipped, bool]:
        """Read to the end of an overlong line; return its report, and whether the line has an end."""
        is_whole = False
        while not is_whole and (more := self._stream.readline(_DISCARD_BYTES)):
            length += len(more)
            is_whole = more.endswith(b"\n")
        at = self.place
        reason = f"a line of {length} bytes; {LINE_BYTES_MAX} are read at most"
        if is_whole:
            # Nothing of the line is at hand, so the next reader compares the line feed alone.
            self.place = Place(at.offset + length, at.line + 1, 1, hashlib.sha256(b"\n").hexdigest())
        return Skipped(self._source, at.line, at.offset, length, reason), is_whole

    def _moved(self, raw: bytes, *, ends_line: bool) -> None:
        at = self.place
        self.place = Place(
            at.offset + len(raw), at.line + (1 if ends_line else 0), len(raw), hashlib.sha256(raw).hexdigest()
        )


class _Pieces:
    """The records and the stretches between them in one line that is not simply one object."""

    def __init__(self, raw: bytes, source: str, place: Place, is_record: Callable[[dict[str, Any]], bool]) -> None:
        self._source = source
        self._line = place.line
        self._start = place.offset
        self._is_record = is_record
        self._length = len(raw)
        self._repairs: list[str] = []
        self._items: list[Record | Skipped] = []
        self._nul_ends: list[int] = []
        self._nul_counts: list[int] = []
        self._has_bad_bytes = False
        # The index in the text and the offset in the line that were last brought together: both only grow.
        self._known = (0, 0)
        self._text = self._clean(raw)
        self._decoder = json.JSONDecoder(
            strict=False,
            parse_constant=self._constant,
            parse_float=self._float,
            parse_int=self._int,
        )

    def found(self) -> list[Record | Skipped]:
        """Return what the line holds, in order; stretches that adjoin are one."""
        index, is_torn, scanned = 0, False, 0
        while True:
            index = self._after_space(index)
            if index >= len(self._text):
                return self._items
            try:
                value, end = self._decoded(index)
            except (ValueError, RecursionError) as error:
                scanned += self._scanned(error, index)
                has_budget = scanned <= RESCANS_MAX * len(self._text)
                following = self._text.find('{"', index + 1) if has_budget else -1
                end = following if following >= 0 else len(self._text)
                self._skip(index, end, _reason(error))
                is_torn = True
            else:
                is_torn = self._take(value, index, end, is_torn) or is_torn
            index = end

    def _decoded(self, index: int) -> tuple[Any, int]:
        """Return the value that begins at `index`, and where it ends.

        The text is looked at through windows that grow: for an error the decoder counts the line feeds of all that
        stands before it, which in a long line with many torn places would cost the square of its length. The place in
        an error counts from `index`.
        """
        chars = _WINDOW_CHARS
        while True:
            window = self._text[index : index + chars]
            is_rest = index + len(window) >= len(self._text)
            self._repairs.clear()
            try:
                value, end = self._decoder.raw_decode(window)
            except json.JSONDecodeError as error:
                is_cut = "Unterminated" in error.msg or error.pos > len(window) - _WINDOW_MARGIN
                if is_rest or not is_cut:
                    raise
            else:
                if is_rest or isinstance(value, dict | list | str):
                    return value, index + end
                if end < len(window) - _WINDOW_MARGIN:
                    return value, index + end
            chars *= _WINDOW_GROWTH

    def _take(self, value: Any, index: int, end: int, is_torn: bool) -> bool:
        """Keep a decoded value as a record, or report it; return True where it is none."""
        raw = self._text[index:end].encode("utf-8", "surrogateescape")
        repairs, self._repairs = self._repairs, []
        if not isinstance(value, dict):
            self._skip(index, end, f"a JSON {_json_type(value)}, not an object")
            return True
        if is_torn and not self._is_record(value):
            self._skip(index, end, "a piece of a torn record")
            return True
        if _is_too_deep(value, raw):
            self._skip(index, end, f"nested deeper than {DEPTH_MAX} levels")
            return False
        if self._has_bad_bytes and _bad_bytes.search(self._text, index, end):
            value = _without_bad_bytes(value)
            repairs.append(NOT_UTF8)
        if self._nul_counts:
            repairs.append(NULS)
        if any(isinstance(item, Record) for item in self._items[-2:]):
            repairs.append(GLUED)
        offset = self._offset(index)
        self._items.append(Record(value, self._line, offset, raw, tuple(dict.fromkeys(repairs))))
        return False

    def _skip(self, index: int, end: int, reason: str) -> None:
        self._repairs.clear()
        offset = self._offset(index)
        length = self._offset(end) - offset
        last = self._items[-1] if self._items else None
        if isinstance(last, Skipped) and last.reason != NULS:
            length += offset - last.offset
            self._items[-1] = msgspec.structs.replace(last, length=length)
        else:
            self._items.append(Skipped(self._source, self._line, offset, length, reason))

    def _clean(self, raw: bytes) -> str:
        """Return the line as text, and note what was taken out of it."""
        if b"\0" in raw:
            runs = [run.span() for _, run in zip(range(NUL_RUNS_MAX + 1), _nul_run.finditer(raw), strict=False)]
            if len(runs) > NUL_RUNS_MAX:
                self._items.append(
                    Skipped(self._source, self._line, self._start, len(raw), "not UTF-8: full of NUL bytes")
                )
                return ""
            removed = 0
            for start, end in runs:
                self._nul_ends.append(start - removed)
                removed += end - start
                self._nul_counts.append(removed)
            self._items.append(Skipped(self._source, self._line, self._start + runs[0][0], removed, NULS))
            raw = raw.replace(b"\0", b"")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            # Each byte that is no UTF-8 becomes one character that leads back to it, so that offsets stay exact.
            self._has_bad_bytes = True
            return raw.decode("utf-8", "surrogateescape")

    def _offset(self, index: int) -> int:
        """Return the offset in the file of a place in the text. Asked in rising order."""
        known_index, known_bytes = self._known
        if index < known_index:
            known_index = known_bytes = 0
        known_bytes += len(self._text[known_index:index].encode("utf-8", "surrogateescape"))
        self._known = (index, known_bytes)
        before = bisect_right(self._nul_ends, known_bytes)
        removed = self._nul_counts[before - 1] if before else 0
        return min(self._start + known_bytes + removed, self._start + self._length)

    def _scanned(self, error: Exception, index: int) -> int:
        """Return how much text a failed attempt went over: up to the error, or to the end for an open string."""
        if isinstance(error, json.JSONDecodeError) and "Unterminated" not in error.msg:
            return error.pos
        return len(self._text) - index

    def _after_space(self, index: int) -> int:
        space = _whitespace.match(self._text, index)
        return space.end() if space else index

    def _constant(self, name: str) -> None:
        self._repairs.append(NOT_A_NUMBER)

    def _float(self, digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        self._repairs.append(NOT_A_NUMBER)
        return None

    def _int(self, digits: str) -> int | str:
        if len(digits) <= DIGITS_MAX:
            return int(digits)
        self._repairs.append(TOO_MANY_DIGITS)
        return digits


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        # The decoder's sentence for an open string ends where a place would follow: the report has its own.
        said = error.msg.removesuffix(" starting at").removesuffix(" at").removesuffix(":")
        return f"not JSON: {said[0].lower()}{said[1:]}"
    return "nested too deeply" if isinstance(error, RecursionError) else "not JSON"


def _json_type(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "number"


def _is_too_deep(value: dict[str, Any], raw: bytes) -> bool:
    """Return True for a record nested beyond `DEPTH_MAX`; brackets are counted first, since few have that many."""
    return raw.count(b"[") + raw.count(b"{") > DEPTH_MAX and is_deeper(value, DEPTH_MAX)


def _without_bad_bytes(value: Any) -> Any:
    """Return a JSON value with each run of bytes that were no UTF-8 replaced by U+FFFD. At most `DEPTH_MAX` deep."""
    if isinstance(value, str):
        return _bad_bytes.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_bad_bytes(key): _without_bad_bytes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_bad_bytes(item) for item in value]
    return value
