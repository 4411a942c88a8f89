"""Rollout files, compressed or not, opened with what this Python has for zstd."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from playhead.errors import ImportFailed

SUFFIX = ".zst"
MAGIC = b"\x28\xb5\x2f\xfd"

UNPACKED_BYTES_MAX = 4 * 1024**3
"""Most bytes that one compressed file may unpack to. A few kilobytes can be made to unpack to any number."""

WINDOW_LOG_MAX = 27
"""Most memory that a file may ask for to be unpacked, as a power of two: 128 MiB. Codex's own ask for 2 MiB."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a rollout file for reading.

    Raises `OSError` where it cannot be opened, and `ImportFailed` where it is compressed and this Python cannot unpack
    that, where it is damaged, or where it unpacks to more than `UNPACKED_BYTES_MAX`.
    """
    with path.open("rb") as file:
        if path.suffix != SUFFIX:
            yield file
            return
        library = _library()
        if library is None:
            raise ImportFailed(f"{path} is compressed with zstd; install zstandard (pip install zstandard) to read it")
        unpacked, failure = library
        try:
            yield io.BufferedReader(_Bounded(unpacked(file), path, file.fileno()), 1024 * 1024)
        except (failure, EOFError) as error:
            raise ImportFailed(f"{path} is damaged and cannot be unpacked: {error}") from error


def can_unpack() -> bool:
    """Return True where this Python can read zstd: from 3.14 on by itself, before that with the zstandard package."""
    return _library() is not None


def _library() -> tuple[Callable[[BinaryIO], Any], type[Exception]] | None:
    """Return what makes a reader of the bytes inside, and the error that it raises for damage; None for neither.

    `Any`: no checker can know the types of a library that need not be installed.
    """
    if sys.version_info >= (3, 14):
        from compression import zstd

        options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG_MAX}
        return lambda file: zstd.ZstdFile(file, options=options), zstd.ZstdError
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    unpacking = zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG_MAX)
    return lambda file: unpacking.stream_reader(file, read_across_frames=True), zstandard.ZstdError


class _Bounded(io.RawIOBase):
    """Hands on what a reader unpacks, and gives up where that is beyond any session."""

    def __init__(self, reader: Any, path: Path, fileno: int) -> None:
        self._reader = reader
        self._path = path
        self._fileno = fileno
        self._count = 0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return the number of the packed file, for whoever asks about it."""
        return self._fileno

    def readinto(self, buffer: Any) -> int:
        piece: bytes = self._reader.read(len(buffer))
        self._count += len(piece)
        if self._count > UNPACKED_BYTES_MAX:
            raise ImportFailed(f"{self._path} unpacks to more than {UNPACKED_BYTES_MAX} bytes, and is not read")
        buffer[: len(piece)] = piece
        return len(piece)
