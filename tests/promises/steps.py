"""Killing a process at an exact step: before its n-th change to the disk, whatever that is.

A step is a write, truncation, sync, creation or deletion of one of SQLite's files, or a file that Playhead opens,
writes, links, renames or removes by itself.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import apsw

FILE_EVENTS = frozenset({"open", "os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"})


class Steps(apsw.VFS):
    """Count the steps of this process and kill it before step `die_at` (counted from 1; 0 for never).

    Make one for a process, for good: what it hooks into cannot be taken back. Nothing is counted until `armed` is set.
    """

    def __init__(self, folder: str, *, die_at: int) -> None:
        self.name = "steps"
        self.armed = False
        self.count = 0
        self._folder = folder
        self._die_at = die_at
        self._write = os.write
        super().__init__(self.name, "")
        os.write = self._counted_write
        sys.addaudithook(self._audit)

    def step(self) -> None:
        if self.armed:
            self.count += 1
            if self.count == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        self.step()
        return _CountedFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.step()
        super().xDelete(filename, syncdir)

    def _counted_write(self, descriptor: int, data: Any) -> int:
        self.step()
        return self._write(descriptor, data)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in FILE_EVENTS and isinstance(arguments[0], str | os.PathLike):
            path = os.fspath(arguments[0])
            if path.startswith(self._folder) or "/" not in path:
                self.step()


class _CountedFile(apsw.VFSFile):
    def __init__(self, steps: Steps, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._steps = steps

    def xWrite(self, data: Any, offset: int) -> None:
        self._steps.step()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._steps.step()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._steps.step()
        super().xSync(flags)
