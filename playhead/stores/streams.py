"""Crash-durable records of messages that are still streaming, as one small append-only file for each session.

One `write` per chunk: what was written survives the death of the process, at a cost of microseconds and a few bytes
beside the text. The file is emptied and removed when its last message is in the log.

Lines, each JSON: `{"begin": n, "id": …, "header": {…}}`, then `[n, "text"]` for a chunk of text or
`[n, "text", "part type"]` for one of another part, then `{"end": n}`. `n` numbers the messages of the file from 0.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playhead.errors import InvalidEvent, StoreClosed
from playhead.model.codec import decode_json, encode_json
from playhead.model.ids import SessionKey
from playhead.stores.base import LeftStream
from playhead.stores.files import make_private_directory, open_regular, os_errors, write_all
from playhead.stores.oslock import need_own_process


class _Open:
    """An open stream file: its descriptor and size, the number of the next message, and the numbers of those not
    ended."""

    def __init__(self, descriptor: int, numbers: dict[str, int], next_number: int) -> None:
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.numbers = numbers
        self.next_number = next_number

    def write(self, line: bytes) -> None:
        try:
            write_all(self.descriptor, line)
        except OSError:
            # What was written of a refused line must not run into the next one, nor count when that one is a retry.
            os.ftruncate(self.descriptor, self.size)
            raise
        self.size += len(line)


class FileStreams:
    """Stream records in side files. `path_of` says where a session's file lies. Thread-safe."""

    def __init__(self, path_of: Callable[[SessionKey], Path]) -> None:
        self._path_of = path_of
        self._open: dict[SessionKey, _Open] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._is_closed = False

    def begin(self, key: SessionKey, id: str, header: dict[str, Any]) -> None:
        with self._lock:
            self._need_open()
            record = self._open.get(key) or self._opened(key)
            if id in record.numbers:
                self._write(key, record, {"end": record.numbers[id]})
            number = record.next_number
            self._write(key, record, {"begin": number, "id": id, "header": header})
            record.numbers[id] = number
            record.next_number += 1

    def add(self, key: SessionKey, id: str, part: str, text: str) -> None:
        with self._lock:
            self._need_open()
            record = self._open.get(key)
            if record is None or id not in record.numbers:
                raise StoreClosed(f"message {id!r} is not streaming: begin it first")
            number = record.numbers[id]
            self._write(key, record, [number, text] if part == "text" else [number, text, part])

    def end(self, key: SessionKey, id: str) -> None:
        with self._lock:
            self._need_open()
            record = self._open.get(key)
            if record is None:
                if not self._path_of(key).exists():
                    return
                record = self._opened(key)
            number = record.numbers.pop(id, None)
            if not record.numbers:
                self._remove(key)
            elif number is not None:
                self._write(key, record, {"end": number})

    def left(self, key: SessionKey) -> list[LeftStream]:
        with self._lock:
            self._need_open()
            return list(_unfinished(_lines(self._path_of(key))).values())

    def remove(self, key: SessionKey) -> None:
        """Drop every record of a session."""
        with self._lock:
            self._remove(key)

    def let_go(self, key: SessionKey) -> None:
        """Close the file of a session, which is about to get another name. What it holds stays."""
        with self._lock:
            record = self._open.pop(key, None)
            if record is not None:
                os.close(record.descriptor)

    def close(self) -> None:
        """Close the files. Records that were not ended stay, for the next holder to find."""
        with self._lock:
            self._is_closed = True
            for record in self._open.values():
                os.close(record.descriptor)
            self._open.clear()

    def _need_open(self) -> None:
        if self._is_closed:
            raise StoreClosed("the store is closed")
        need_own_process(self._pid, "the store")

    def _opened(self, key: SessionKey) -> _Open:
        path = self._path_of(key)
        make_private_directory(path.parent)
        lines = _lines(path)
        used = [line["begin"] for line in lines if isinstance(line, dict) and isinstance(line.get("begin"), int)]
        numbers = {stream.id: number for number, stream in _unfinished(lines).items()}
        with os_errors(path):
            descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                record = _Open(descriptor, numbers, max(used, default=-1) + 1)
                if record.size:
                    # A torn last line of an earlier writer must not swallow the first line of this one.
                    record.write(b"\n")
            except BaseException:
                os.close(descriptor)
                raise
        self._open[key] = record
        return record

    def _write(self, key: SessionKey, record: _Open, line: Any) -> None:
        with os_errors(self._path_of(key)):
            record.write(encode_json(line).encode() + b"\n")

    def _remove(self, key: SessionKey) -> None:
        record = self._open.pop(key, None)
        if record is not None:
            os.close(record.descriptor)
        path = self._path_of(key)
        with os_errors(path):
            path.unlink(missing_ok=True)


def _unfinished(lines: Sequence[Any]) -> dict[int, LeftStream]:
    """Return the messages that were begun and not ended, by number."""
    found: dict[int, LeftStream] = {}
    for line in lines:
        if isinstance(line, dict) and isinstance(line.get("begin"), int):
            header = line.get("header")
            if isinstance(line.get("id"), str) and line["id"] and isinstance(header, dict):
                found[line["begin"]] = LeftStream(line["id"], header, [])
        elif isinstance(line, dict):
            ended = line.get("end")
            found.pop(ended if isinstance(ended, int) else -1, None)
        elif isinstance(line, list) and len(line) >= 2 and isinstance(line[0], int) and line[0] in found:
            found[line[0]].chunks.append((str(line[2]) if len(line) > 2 else "text", str(line[1])))
    return found


def _lines(path: Path) -> list[Any]:
    """Return the file's lines as JSON values; a line that is torn is left out."""
    found = []
    with os_errors(path):
        try:
            descriptor = open_regular(path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            content = file.read()
    for line in content.split(b"\n"):
        if line:
            try:
                found.append(decode_json(line))
            except InvalidEvent:
                continue  # Only the last line before a crash can be torn; it was never acknowledged.
    return found
