"""Keeping a catalogue at hand: whatever happens to its file, there is one to ask.

It is made anew where it is damaged or was removed, and kept in memory where it cannot be written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from playhead.errors import PlayheadError, StoreClosed, StoreFull, StoreLocked, StoreReadOnly, StoreUnavailable
from playhead.stores.sqlite.catalogue_file import DAMAGE, CatalogueFile

MEMORY_S = 60.0
"""How long a catalogue that could not be written is kept in memory until the file is tried again."""

LOCKED_S = 10.0
"""The same for one that somebody keeps locked, as a process does that was stopped in the middle of a write."""

TRIES_MAX = 5

T = TypeVar("T")

_log = logging.getLogger("playhead")


class _Incomplete(Exception):
    """The file is a new one, and nobody has looked through the directory for it yet."""


class KeptCatalogue:
    """The catalogue of a directory. Safe for any thread and any number of processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opening = threading.Lock()
        self._opened: CatalogueFile | None = None
        self._is_closed = False
        self._memory_until = 0.0

    def on(self, verb: Callable[[CatalogueFile], T]) -> T:
        """Run a verb on the file, which is made anew where it is damaged or was removed, and kept in memory from then
        on where it cannot be written."""
        for _ in range(TRIES_MAX):
            file = self.file()
            try:
                return verb(file)
            except DAMAGE as error:
                _log.warning("the catalogue of %s is made anew: %s", self._folder, error)
                self._let_go(file, is_damaged=True)
            except (StoreFull, StoreReadOnly, StoreUnavailable) as error:
                if file.is_in_place() and not file.is_in_memory:
                    _log.warning("the catalogue of %s is kept in memory: %s", self._folder, error)
                    self._go_on_in_memory(file, for_s=LOCKED_S if isinstance(error, StoreLocked) else MEMORY_S)
                else:
                    self._let_go(file)
            except StoreClosed:
                if self._is_closed:
                    raise
        return verb(self._in_memory())

    def ask(self, verb: Callable[[CatalogueFile], T], *, look: Callable[[], None]) -> T:
        """Run a verb that answers from the rows. A file that was made anew since the last look has none, so the
        directory is looked through for it first: look does that."""

        def asked(file: CatalogueFile) -> tuple[T, CatalogueFile]:
            if not file.is_complete:
                file.is_complete = file.row("looks") is not None
            if not file.is_complete:
                raise _Incomplete
            return verb(file), file

        for number in range(TRIES_MAX):
            try:
                answer, file = self.on(asked)
                # Whoever removes a database may take its write-ahead log first, and rows with it.
                if file.is_in_memory or file.is_in_place() or number == TRIES_MAX - 1:
                    return answer
            except _Incomplete:
                look()
        self._in_memory()
        look()
        return self.on(verb)

    def _in_memory(self) -> CatalogueFile:
        _log.warning("the catalogue of %s is kept in memory: it is replaced again and again", self._folder)
        self._go_on_in_memory(self.file())
        return self.file()

    def file(self) -> CatalogueFile:
        file = self._opened
        if file is not None and not self._is_to_be_left(file):
            return file
        with self._opening:
            if self._is_closed:
                raise StoreClosed(f"the catalogue of {self._folder} is closed")
            file = self._opened
            if file is not None and self._is_to_be_left(file):
                file.close()
                file = self._opened = None
            if file is None:
                file = CatalogueFile.of(self._folder)
                self._take_over(file)
            return file

    def _is_to_be_left(self, file: CatalogueFile) -> bool:
        return time.monotonic() > self._memory_until if file.is_in_memory else not file.is_in_place()

    def _take_over(self, file: CatalogueFile, *, for_s: float = MEMORY_S) -> None:
        self._opened = file
        if file.is_in_memory:
            self._memory_until = time.monotonic() + for_s

    def _let_go(self, file: CatalogueFile, *, is_damaged: bool = False) -> None:
        """Close a file that is of no use, so that it is opened, or made, anew."""
        with self._opening:
            if self._opened is file:
                self._opened = None
            if is_damaged:
                file.remove()
            file.close()

    def _go_on_in_memory(self, file: CatalogueFile, *, for_s: float = MEMORY_S) -> None:
        with self._opening:
            if self._opened is not file:
                return
            try:
                copy = file.copied()
            except PlayheadError:
                copy = CatalogueFile.empty()
            file.close()
            self._take_over(copy, for_s=for_s)

    def close(self) -> None:
        with self._opening:
            self._is_closed = True
            if self._opened is not None:
                self._opened.close()
                self._opened = None
