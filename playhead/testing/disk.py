"""A disk under SQLite that is full, or that fails one sync or read, when a test says so.

apsw raises an error of the disk out of the call in hand, even where SQLite itself carries on. The everyday case is a
checkpoint, tried after a commit or on closing and put off when it fails; so a full disk lets checkpoints through unless
`limits_checkpoints` is set. A sync or read told to fail may still hit one: the call raises, and its commit stands.
"""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Literal, Self

import apsw

if TYPE_CHECKING:
    from typing_extensions import Buffer

Name = str | apsw.URIFilename | None


class FullDisk(apsw.VFS):
    """A VFS with a budget: `with FullDisk() as disk: apsw.Connection(file, vfs=disk.name)`; `disk.limit_bytes = 0`.

    `limit_bytes` is how many more bytes may be written, to all files together; None, as at first, is no limit. An
    overwrite costs as much as an extension, as on a copy-on-write file system. The write that crosses the limit leaves
    as many of its bytes as fit and fails with SQLITE_FULL, as do all after it, until `release` or a new limit.
    SQLite makes files longer by writing alone, so nothing else is limited; the memory-mapped `-shm` index never is.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.name = f"full-disk-{id(self):x}"
        self.limit_bytes: int | None = None
        self.limits_checkpoints = False
        self._rng = random.Random(seed)
        self._calls_until_failure: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__(self.name, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def fail(self, kind: Literal["read", "sync"], *, within: int = 1) -> None:
        """Let one of the next `within` reads or syncs, chosen by the seed, fail with SQLITE_IOERR."""
        with self._lock:
            self._calls_until_failure[kind] = self._rng.randint(1, within)

    def release(self) -> None:
        """Make the disk whole: no limit, and no failure still to come."""
        with self._lock:
            self.limit_bytes = None
            self._calls_until_failure.clear()

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        return _FaultyFile(self, name, flags)

    def _take(self, size_bytes: int) -> int:
        """Return how many of so many bytes still fit, and use them up."""
        with self._lock:
            if self.limit_bytes is None:
                return size_bytes
            taken = min(size_bytes, self.limit_bytes)
            self.limit_bytes -= taken
            return taken

    def _fail_if_due(self, kind: Literal["read", "sync"], code: int) -> None:
        with self._lock:
            calls_left = self._calls_until_failure.get(kind, 0) - 1
            self._calls_until_failure[kind] = calls_left
        if calls_left == 0:
            raise _error(code, f"the simulated disk failed a {kind}")


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FullDisk, name: Name, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        full_name = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._wal = f"{full_name}-wal" if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else None

    def xWrite(self, data: Buffer, offset: int) -> None:
        content = bytes(data)
        # In WAL mode nothing but a checkpoint writes to the database file itself.
        is_free = self._wal is not None and os.path.exists(self._wal) and not self._disk.limits_checkpoints
        fitting = len(content) if is_free else self._disk._take(len(content))
        super().xWrite(content[:fitting], offset)
        if fitting < len(content):
            raise _error(apsw.SQLITE_FULL, "the simulated disk is full")

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk._fail_if_due("read", apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)

    def xSync(self, flags: int) -> None:
        self._disk._fail_if_due("sync", apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


def _error(code: int, message: str) -> Exception:
    # Made from the code, so that it has `result` and `extendedresult` like any other error of apsw.
    error = apsw.exception_for(code)
    error.args = (message,)
    return error
