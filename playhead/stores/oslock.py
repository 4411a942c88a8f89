"""A lock that the operating system frees when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from playhead.errors import StoreClosed, StoreLocked
from playhead.stores.files import make_private_directory, os_errors

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int, *, shared: bool = False) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _take(descriptor: int, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A link in the place of a lock leads elsewhere, and a pipe waits for whoever is at its other end."""

NAME_BYTES_MAX = 255
"""Most bytes of a file's name."""

PATIENCE_S = 10.0
"""How long `making` waits for another process."""

PROBE_S = 0.05
"""How long one who takes a lock waits for those who only look at it: far longer than a look takes."""

POLL_S = 0.001
"""How often one who waits tries again."""

TRIES_MAX = 100
"""A lock file may be taken away between opening and locking it; so many times before giving up."""


class OsLock:
    """An exclusive lock on a small file of its own (never on a database file, whose locks are SQLite's)."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        _held.add(self)

    @classmethod
    def take(cls, path: Path, *, patience_s: float = PROBE_S) -> Self | None:
        """Return the lock, or None where somebody alive holds it. Waits no longer than a look at it (`is_held`) takes,
        or as long as it is told to."""
        given_up_at = time.monotonic() + patience_s
        while (lock := cls.try_take(path)) is None and time.monotonic() < given_up_at:
            time.sleep(POLL_S)
        return lock

    @staticmethod
    def is_held(path: Path) -> bool:
        """Return True where somebody alive holds the lock. Writes nothing; looks of several processes do not collide,
        but for as long as one takes nobody can take the lock."""
        with os_errors(path):
            try:
                descriptor = os.open(path, os.O_RDONLY | _CAREFUL)
            except FileNotFoundError:
                return False
            try:
                return not _take(descriptor, shared=True)
            finally:
                os.close(descriptor)

    @classmethod
    def try_take(cls, path: Path) -> Self | None:
        """Return the lock, or None where somebody alive holds it, or looks at it just now. Never waits."""
        make_private_directory(path.parent)
        with os_errors(path):
            for _ in range(TRIES_MAX):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _CAREFUL, 0o600)
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
        _held.discard(self)
        if descriptor is None:
            return
        # Removed while still locked, so that nobody else can have locked this very file.
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        os.close(descriptor)


@contextlib.contextmanager
def making(path: Path, *, patience_s: float | None = None) -> Iterator[None]:
    """Let one process at a time make, or remove, what has its name at `path`.

    Raises `StoreUnavailable` where another one is at it for longer than `patience_s`, `PATIENCE_S` where None.
    """
    patience_s = PATIENCE_S if patience_s is None else patience_s
    lock = OsLock.take(_making_beside(path), patience_s=patience_s)
    if lock is None:
        raise StoreLocked(f"{path}: another process makes or removes it since {patience_s:g} s; retry")
    try:
        yield
    finally:
        lock.release()


def _making_beside(path: Path) -> Path:
    name = f".{path.name}.making"
    if len(os.fsencode(name)) > NAME_BYTES_MAX:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}.making"
    return path.with_name(name)


def need_own_process(pid: int, what: str) -> None:
    """Raise `StoreClosed` in a process other than the one of this id, where `what` was opened."""
    if pid != os.getpid():
        raise StoreClosed(f"{what} was opened in another process: open the store again after fork")


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


_held: weakref.WeakSet[OsLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Close the locks of the parent in a forked child, which would keep them for as long as it lives."""
    for lock in list(_held):
        descriptor, lock._descriptor = lock._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
