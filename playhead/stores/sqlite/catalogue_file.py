"""The file of a catalogue: made where there is none, made anew where it is damaged, kept in memory where it cannot be
written. Nothing in it is a fact, so losing it costs a reading of the bundles and no more."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from typing import Self

import apsw

from playhead.errors import NewerFormat, NotAStore, PlayheadError, StoreDamaged
from playhead.stores.files import make_private_directory, os_errors, place_file
from playhead.stores.named_queries import named_queries, read_sql
from playhead.stores.names import CATALOGUE
from playhead.stores.oslock import making
from playhead.stores.sqlite.connect import PACKAGE, Database, remove_database

APPLICATION_ID = 0x504C4343
"""`PLCC`, in the header of every catalogue."""

VERSION = 1
"""Of the catalogue's tables, and in its file's name: each version of them has a file of its own."""

BUSY_TIMEOUT_MS = 1_000
"""How long whoever writes waits for another one. A row that could not be kept is found out again."""

CACHE_KIB = 8 * 1024
"""Page cache at the most. With less, a page of its indexes is written again and again while bundles are taken in."""

DAMAGE = (NotAStore, NewerFormat, StoreDamaged)
"""What a catalogue is made anew for."""


class CatalogueFile(Database):
    """A `Database` with the tables of a catalogue and of the listing."""

    is_in_memory = False

    is_complete = False
    """Whether it is known to hold every bundle that was there when somebody looked through the directory for it."""

    seen_at = 0
    """The directory's own time at the last look through its names, 0 where that is not known; and when, by a clock that
    only goes on, the next look may be."""

    next_scan_at = 0.0

    def __init__(self, path: str, connection: apsw.Connection, *, vfs: str | None = None) -> None:
        super().__init__(path, connection, vfs=vfs)
        self._queries = {**self._queries, **named_queries(PACKAGE, "catalogue_queries.sql")}
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def _protect(self) -> None:
        super()._protect()
        with self._errors:
            # What a session said is not to stay in a cache of it, on pages that nothing uses.
            self.connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}; PRAGMA secure_delete=ON")

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the catalogue of a directory of bundles. Never raises for what is wrong with the file or the folder:
        then it is in memory, with what could be read."""
        path = path_in(folder)
        for _ in range(2):
            try:
                return cls._made_or_opened(path)
            except DAMAGE:
                with contextlib.suppress(PlayheadError, OSError):
                    cls._make_anew(path)
            except (PlayheadError, OSError):
                break
        return cls.empty()

    @classmethod
    def empty(cls) -> Self:
        """Return a catalogue in memory, with no bundle in it."""
        connection = apsw.Connection(":memory:")
        connection.deserialize("main", _image())
        return cls._kept_in_memory(connection)

    def copied(self) -> Self:
        """Return a catalogue in memory that holds what this one does."""
        connection = apsw.Connection(":memory:")
        with self.lock, self._errors, connection.backup("main", self.connection, "main") as backup:
            backup.step()
        return self._kept_in_memory(connection)

    def remove(self) -> None:
        """Take the file away, for it is damaged; one that has taken its name meanwhile stays."""
        path = Path(self.path)
        with contextlib.suppress(PlayheadError, OSError), making(path):
            if not self.is_in_memory and self.is_in_place():
                remove_database(path)

    @classmethod
    def _kept_in_memory(cls, connection: apsw.Connection) -> Self:
        found = cls(":memory:", connection)
        found.is_in_memory = True
        return found

    @classmethod
    def _made_or_opened(cls, path: Path) -> Self:
        if path.parent.is_symlink():
            raise NotADirectoryError(path.parent)  # It leads out of the store.
        if not os.path.lexists(path):
            if not path.parent.parent.is_dir():
                raise FileNotFoundError(path.parent.parent)  # The store is gone, and must not come back empty.
            make_private_directory(path.parent)
            with making(path):
                if not os.path.lexists(path):
                    with os_errors(path):
                        remove_database(path)
                    place_file(path, _file_image(), durable=False)
        found = cls.open(str(path))
        if found.is_to_be_written():
            return found
        try:
            return found.copied()
        finally:
            found.close()

    @classmethod
    def _make_anew(cls, path: Path) -> None:
        """Put an empty one in the place of a damaged one, unless somebody else has done so meanwhile."""
        with making(path):
            if os.path.lexists(path):
                try:
                    cls.open(str(path)).close()
                    return
                except DAMAGE:
                    with os_errors(path):
                        remove_database(path)
            place_file(path, _file_image(), durable=False)

    def _check_header(self, *, read_only: bool) -> None:
        with self._errors:
            application = self.connection.pragma("application_id")
            version = self.connection.pragma("user_version")
            found = self.connection.execute(self._queries["schema"], {"limit": len(_schema()) + 1}).fetchall()
        if (application, version) != (APPLICATION_ID, VERSION) or set(found) != _schema():
            raise NotAStore(f"{self.path} is no catalogue of this version")


def path_in(folder: Path) -> Path:
    """Return where the catalogue of a directory of bundles lies."""
    return folder / CATALOGUE / f"{VERSION}.sqlite"


@cache
def _image() -> bytes:
    """Return the bytes of a catalogue without a row."""
    connection = apsw.Connection(":memory:")
    try:
        for file in ("catalogue.sql", "listing.sql"):
            connection.execute(read_sql(PACKAGE, file))
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        return connection.serialize("main")
    finally:
        connection.close()


@cache
def _file_image() -> bytes:
    catalogue = CatalogueFile.empty()
    try:
        return catalogue.image()
    finally:
        catalogue.close()


@cache
def _schema() -> frozenset[tuple[object, ...]]:
    connection = apsw.Connection(":memory:")
    try:
        connection.deserialize("main", _image())
        query = named_queries(PACKAGE)["schema"]
        return frozenset(connection.execute(query, {"limit": -1}).fetchall())
    finally:
        connection.close()
