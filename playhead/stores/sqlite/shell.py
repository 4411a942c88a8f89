"""SQL on a database that it cannot change, for a person who looks inside."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw
from apsw.shell import Shell

from playhead.errors import StoreUnavailable
from playhead.stores.sqlite.backup import reader
from playhead.stores.sqlite.connect import translated


class SqlShell:
    """Runs statements and dot-commands (`.schema`, `.tables`) on one database, to be used in a `with` block.

    out: takes what they print, a piece at a time. Raises `StoreUnavailable` where the file is not there, and
    `NotAStore` where it is no database.
    """

    def __init__(self, path: Path, out: Callable[[str], object]) -> None:
        if not path.is_file():
            raise StoreUnavailable(f"{path} is not there")
        with translated(str(path)):
            self._reader = reader(path)
        self._out = out
        self._shell = Shell(stdout=_Out(out), stderr=_Out(out), db=self._reader)  # type: ignore[arg-type]

    def run(self, text: str) -> bool:
        """Run statements or one dot-command; return False after saying why where that failed."""
        try:
            self._shell.process_complete_line(text)  # type: ignore[no-untyped-call]
        except (apsw.Error, Shell.Error) as error:
            self._out(f"{error}\n")
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(apsw.ConnectionClosedError):
            self._reader.close()


def is_complete(text: str) -> bool:
    """Return True where the text is a dot-command or ends a statement."""
    return text.lstrip().startswith(".") or apsw.complete(text)


class _Out:
    """A stream that hands on what is written to it, and says that it is no terminal: escapes would be shown as such."""

    encoding = "utf-8"

    def __init__(self, out: Callable[[str], object]) -> None:
        self._out = out

    def write(self, text: str) -> int:
        self._out(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        return False
