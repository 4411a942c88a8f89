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

DOT_COMMANDS = frozenset(
    "databases exit header headers help indexes indices mode nullvalue quit schema separator show tables width".split()
)
"""Dot-commands that only show something. Others open files, write them, or run programs."""

_ALLOWED = frozenset(
    {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE, apsw.SQLITE_TRANSACTION}
)
_FUNCTIONS_REFUSED = frozenset({"edit", "load_extension", "readfile", "writefile"})
_PRAGMAS = frozenset(
    "application_id compile_options database_list foreign_key_list freelist_count function_list index_info index_list "
    "index_xinfo integrity_check journal_mode page_count page_size quick_check table_info table_list table_xinfo "
    "user_version".split()
)
_PRAGMAS_OF_A_NAME = frozenset(name for name in _PRAGMAS if name.endswith(("_info", "_list", "_xinfo", "_check")))
"""Pragmas that take the name of what they tell about; with an argument, any other one would set something."""


class SqlShell:
    """Runs queries, and dot-commands that show something (`.schema`, `.tables`), on one database, to be used in a
    `with` block. Whatever else is typed is refused: it changes no database, opens no other file and runs no program.

    out: takes what they print, a piece at a time. Raises `StoreUnavailable` where the file is not there, and
    `NotAStore` where it is no database.
    """

    def __init__(self, path: Path, out: Callable[[str], object]) -> None:
        if not path.is_file():
            raise StoreUnavailable(f"{path} is not there")
        with translated(str(path)):
            self._reader = reader(path)
        # Asked for every statement, so it holds whatever SQL, or a dot-command by its SQL, attempts.
        self._reader.authorizer = _allowed
        self._out = out
        self._shell = Shell(stdout=_Out(out), stderr=_Out(out), db=self._reader)  # type: ignore[arg-type]

    def run(self, text: str) -> bool:
        """Run statements or one dot-command; return False after saying why where that failed."""
        command = text.strip().partition(" ")[0]
        if command.startswith(".") and command[1:] not in DOT_COMMANDS:
            self._out(f"{command} is not to be had here; there are .{', .'.join(sorted(DOT_COMMANDS))}\n")
            return False
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


def _allowed(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """Return whether SQLite may go on with a step of a statement (the C interface `sqlite3_set_authorizer`)."""
    if action == apsw.SQLITE_PRAGMA:
        name = (first or "").lower()
        is_allowed = name in _PRAGMAS and (second is None or name in _PRAGMAS_OF_A_NAME)
    else:
        is_allowed = action in _ALLOWED
        if action == apsw.SQLITE_FUNCTION:
            is_allowed = (second or "").lower() not in _FUNCTIONS_REFUSED
    return apsw.SQLITE_OK if is_allowed else apsw.SQLITE_DENY


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
