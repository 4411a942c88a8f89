"""Looking at one database, in whatever state it is: what it is, what SQLite finds wrong, and its sessions to read."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import apsw
import msgspec

from playhead.errors import OF_THE_SYSTEM, NewerFormat, NotAStore, PlayheadError
from playhead.model.ids import SessionKey
from playhead.stores.base import ROWS_PAGE_MAX, SessionRow
from playhead.stores.named_queries import named_queries
from playhead.stores.sqlite.aside import Aside, asides
from playhead.stores.sqlite.connect import (
    APPLICATION_ID,
    PACKAGE,
    Database,
    Row,
    fingerprint as fingerprint,
    looking,
    translated,
)
from playhead.stores.sqlite.index import SqliteText
from playhead.stores.sqlite.log import SqliteLog, bounds_of

State = Literal["whole", "damaged", "altered", "no database", "foreign", "newer", "shut"]
"""What a file is: one of ours that SQLite finds whole, or damaged; one of ours whose schema somebody changed; no SQLite
database; one of another program; one of a newer Playhead; or one that cannot be opened at all."""

PROBLEMS_MAX = 20


class Looked(msgspec.Struct, frozen=True):
    """What a file is, and what is wrong with it: sentences, `()` where it is whole."""

    state: State
    problems: tuple[str, ...] = ()


def sqlite_version() -> str:
    """Return the version of the SQLite that all files are read with."""
    return apsw.sqlite_lib_version()


def look_at(path: Path) -> Looked:
    """Say what a file is. Reads all of a database (`integrity_check`) and changes nothing."""
    if not _is_regular(path):
        return Looked("no database", (f"{path} is no regular file",))
    if _is_empty(path):
        return Looked("no database", (f"{path} is empty",))
    try:
        application = _application_of(path)
    except NotAStore as error:
        return Looked("no database", (str(error),))
    except OF_THE_SYSTEM as error:
        return Looked("shut", (str(error),))
    except PlayheadError as error:
        return Looked("damaged", (str(error),))
    if application != APPLICATION_ID:
        return Looked("foreign", (f"{path} is a database of another program (application id {application})",))
    try:
        database = Database.look(str(path))
    except NewerFormat as error:
        return Looked("newer", (str(error),))
    except NotAStore as error:
        return Looked("altered", (str(error),))
    except OF_THE_SYSTEM as error:
        return Looked("shut", (str(error),))
    except PlayheadError as error:
        return Looked("damaged", (str(error),))
    try:
        problems = _problems(database)
    except OF_THE_SYSTEM as error:
        return Looked("shut", (str(error),))
    finally:
        database.close()
    return Looked("damaged" if problems else "whole", problems)


class LookedLog(SqliteLog):
    """The sessions of one database that is open to look at, as a store has them. Nothing can be written."""

    def __init__(self, database: Database, lock_path: Callable[[int], Path]) -> None:
        super().__init__(database, durability="process", lock_path=lock_path)
        self.text = SqliteText(self)
        self.is_shared = bool(self._looked("is_shared")[0][0])
        self.is_emptied = bool(self._looked("is_emptied")[0][0])

    def rows(self) -> Iterator[SessionRow]:
        """Yield the row of each session, those that cannot be read as well. Without the trash."""
        after: SessionKey | None = None
        while page := self.sessions(after=after, limit=ROWS_PAGE_MAX):
            yield from page
            after = page[-1].key

    def trash(self) -> Iterator[Aside]:
        """Yield what is set aside."""
        after: str | None = None
        while page := asides(self, after=after):
            yield from page
            after = page[-1].trash_id

    def numbers_without_session(self) -> list[int]:
        """Return the numbers of sessions of which only events are left."""
        return [int(row[0]) for row in self._looked("numbers_without_session", {"limit": ROWS_PAGE_MAX})]

    def lease_of(self, key: SessionKey) -> str | None:
        """Return what the session's row says of who is in a turn, dead or alive, or None."""
        row = self.database.row("lease", {"number": self.need_number(key)})
        return None if row is None or row[1] is None else str(row[1])

    def has_text_index(self) -> bool:
        return self.database.row("has_text_index") == (1,)

    def indexed_rows(self, key: SessionKey) -> list[int]:
        """Return the seqs of the events that the text index holds."""
        return [int(row[0]) for row in self._looked("indexed_rows", bounds_of(self.need_number(key)))]

    def bodies_naming_bytes(self, key: SessionKey) -> Iterator[str]:
        """Yield the bodies that may name an artifact."""
        for (body,) in self._looked("bodies_naming_bytes", bounds_of(self.need_number(key))):
            if isinstance(body, str):
                yield body

    def _looked(self, name: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
        return _ask(self.database, name, bindings)


@contextlib.contextmanager
def looked_log(path: Path, lock_path: Callable[[int], Path]) -> Iterator[LookedLog]:
    """The sessions of a database, to look at for as long as the block runs. lock_path: where a session's lock lies.

    Raises as `Database.open` does.
    """
    database = Database.look(str(path))
    try:
        yield LookedLog(database, lock_path)
    finally:
        database.close()


def _application_of(path: Path) -> int:
    connection = looking(str(path))
    try:
        with translated(str(path), connection):
            return int(connection.pragma("application_id"))
    finally:
        connection.close()


def _problems(database: Database) -> tuple[str, ...]:
    try:
        with database.lock, translated(database.path, database.connection):
            rows = database.connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX:d})").fetchall()
    except OF_THE_SYSTEM:
        raise
    except PlayheadError as error:
        return (str(error),)
    return () if rows == [("ok",)] else tuple(str(row[0]) for row in rows)


def _ask(database: Database, name: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
    with database.lock, translated(database.path, database.connection):
        return database.connection.execute(named_queries(PACKAGE, "looking.sql")[name], bindings).fetchall()


def _is_empty(path: Path) -> bool:
    """Return True for a file without a byte, in which SQLite sees a database without tables."""
    return fingerprint(path)[0][1] == 0 and path.is_file() and not os.path.lexists(f"{path}-wal")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True  # Opening it says what is wrong.
