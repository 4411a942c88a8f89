"""A lock that the operating system frees when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from playhead.errors import StoreUnavailable
from playhead.stores.files import make_private_directory, os_errors

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


PATIENCE_S = 10.0
"""How long `making` waits for another process."""

POLL_S = 0.002
"""How often it looks."""

TRIES_MAX = 100
"""A lock file may be taken away between opening and locking it; so many times before giving up."""


class OsLock:
    """An exclusive lock on a small file of its own (never on a database file, whose locks are SQLite's)."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def try_take(cls, path: Path) -> Self | None:
        """Return the lock, or None where somebody alive holds it. Never waits."""
        make_private_directory(path.parent)
        with os_errors(path):
            for _ in range(TRIES_MAX):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
                try:
                    if not _take(descriptor):
                        os.close(descriptor)
                        return None
                    if _is_same_file(descriptor, path):
                        return cls(path, descriptor)
                except BaseException:
                    os.close(descriptor)
                    raise
                # The holder before us removed the name as it left: what we locked is no longer what others open.
                os.close(descriptor)
        return None

    def release(self) -> None:
        """Free the lock and take its file away. Calling it twice is fine."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Removed while still locked, so that nobody else can have locked this very file.
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(descriptor)


@contextlib.contextmanager
def making(path: Path) -> Iterator[None]:
    """Let one process at a time make, or remove, what has its name at `path`.

    Raises `StoreUnavailable` where another one is at it for longer than `PATIENCE_S`.
    """
    lock_path = path.with_name(f".{path.name}.making")
    given_up_at = time.monotonic() + PATIENCE_S
    while (lock := OsLock.try_take(lock_path)) is None:
        if time.monotonic() > given_up_at:
            raise StoreUnavailable(f"{path}: another process makes or removes it since {PATIENCE_S:g} s; retry")
        time.sleep(POLL_S)
    try:
        yield
    finally:
        lock.release()


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
