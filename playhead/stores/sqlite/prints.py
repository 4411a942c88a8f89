"""What a bundle's files are like: figures that differ once anything of them has changed. They are compared for equality
only, never by age."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from playhead.errors import PlayheadError
from playhead.stores.files import os_errors

TICK_NS = 20_000_000
"""Two changes so close to each other may bear the same time: the system's clock for files goes in ticks."""

COARSE_TICK_NS = 2_000_000_000
"""The same on a file system that keeps whole seconds, or two of them."""

WAL_REST_NS = 250_000_000
"""A write-ahead log shows a write a moment before readers of the database see it: one that has not rested so long may
hold more than was read."""


class State(msgspec.Struct, frozen=True):
    """What a bundle's files were like. print: all that is compared. changed_at: when the system noted the last change
    of the file, in nanoseconds. has_wal: whether a write-ahead log lies beside it, be it empty. written_at: when one
    that is not empty was written last, else 0."""

    print: str
    inode: int
    changed_at: int
    has_wal: bool
    written_at: int
    size_bytes: int

    def is_settled(self, now: int) -> bool:
        """Return True where what changes from now on shows. now: from before the files were looked at."""
        return is_past(self.changed_at, now) and (not self.written_at or self.written_at + WAL_REST_NS < now)


def state_of(path: Path | str) -> State | None:
    """Return what a bundle's files are like, None where there is none. An empty write-ahead log is as good as none: it
    comes and goes with every reader. Raises what is wrong where the system does not say."""
    try:
        main = os.lstat(path)
    except OSError as error:
        if isinstance(error, _GONE):
            return None
        with os_errors(Path(path)):
            raise
    print_, written_at, size = _figures(main), 0, _bytes_of(main)
    has_wal = True
    try:
        wal = os.lstat(f"{path}-wal")
    except OSError:
        has_wal = False
    else:
        if wal.st_size:
            # Without the time of any change: where root opens a database, SQLite gives its write-ahead log an owner.
            print_ = f"{print_} {wal.st_ino}.{wal.st_size}.{wal.st_mtime_ns}"
            size, written_at = size + _bytes_of(wal), wal.st_mtime_ns
    return State(print_, main.st_ino, main.st_ctime_ns, has_wal, written_at, size)


_GONE = (FileNotFoundError, NotADirectoryError)


def state_or_none(path: Path) -> State | None:
    with contextlib.suppress(PlayheadError):
        return state_of(path)
    return None


def print_of(path: str) -> str:
    """Return the print of a bundle without a write-ahead log."""
    try:
        return _figures(os.lstat(path))
    except OSError:
        return ""


def _figures(found: os.stat_result) -> str:
    return f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _bytes_of(found: os.stat_result) -> int:
    return found.st_blocks * 512 if hasattr(found, "st_blocks") else found.st_size


def is_past(changed_at: int, now: int) -> bool:
    """Return True where what changes from now on bears a later time than this one."""
    return changed_at + (COARSE_TICK_NS if changed_at % 1_000_000_000 == 0 else TICK_NS) < now
