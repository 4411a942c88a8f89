"""Opening SQLite files: the one place that creates, configures and closes connections, and translates their errors.

Only `apsw` is used, everywhere: two SQLite libraries on one file in one process lose each other's locks. For the same
reason nothing here ever opens a live database file outside SQLite.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw

from playhead.errors import (
    OF_THE_SYSTEM,
    NewerFormat,
    NotAStore,
    PlayheadError,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from playhead.stores.files import NO_SPACE, os_errors, place_file, unlink
from playhead.stores.migrate import latest_version, migrate, migrations
from playhead.stores.named_queries import named_queries, read_sql
from playhead.stores.names import as_text
from playhead.stores.oslock import making, need_own_process

PACKAGE = "playhead.stores.sqlite"
APPLICATION_ID = 0x504C4844
"""`PLHD`, in the header of every Playhead database, so that `file` and we can tell it from any other SQLite file."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one's transaction before `StoreUnavailable`."""

WAL_BYTES_KEPT = 4 * 2**20
"""A write-ahead log that has grown beyond this is cut back when it is reset."""

CACHE_KIB = 512
"""Page cache of one connection. Small: a process may hold many bundles open."""

STATEMENTS_CACHED = 60
"""Prepared statements kept per connection: those of appending, reading and listing at once."""

LISTING_FILES = ("listing.sql", "listing_shared.sql")
"""What makes the tables for rows of lists in a shared file, in this order."""

_SIGNS_OF_DAMAGE = ("constructor", "file format", "no such table", "malformed")
"""Words in SQLite's errors about a damaged text index, which no error about a query holds."""

Row = tuple[Any, ...]


class Database:
    """One open file: a connection, its lock, and its queries by name. Safe for any thread; calls take turns.

    A file that can be read but not written, for want of a right or of room, is open to read all the same: each write
    first tries again to open it to write, and raises what is in the way.
    """

    def __init__(self, path: str, connection: apsw.Connection, *, vfs: str | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._queries = named_queries(PACKAGE)
        self._insert = connection.cursor().execute
        self._connection: apsw.Connection | None = connection
        self._errors = translated(path, connection)
        self._inode = _inode(path)
        self._pid = os.getpid()
        self._vfs = vfs
        self._is_refused = False
        self._seen: Fingerprint | None = None
        """What the file was like when it was opened to be read without locks; None where SQLite's locks are taken."""

    @classmethod
    def open(cls, path: str, *, vfs: str | None = None, read_only: bool = False) -> Self:
        """Open an existing file, and bring its schema up to date where it is opened to write and can be written.

        Raises `NotAStore` for any other file, `NewerFormat` for one of a newer version; both are left untouched.
        """
        try:
            return cls._opened(path, vfs=vfs, read_only=read_only)
        except StoreLocked:
            raise
        except OF_THE_SYSTEM as error:
            try:
                database = cls._looked(path, vfs=vfs)
            except (NotAStore, NewerFormat, StoreDamaged):
                raise
            except PlayheadError:
                raise error from None
            database._is_refused = not read_only
            return database

    @classmethod
    def _opened(cls, path: str, *, vfs: str | None, read_only: bool) -> Self:
        _need_regular(path)
        had_wal = _has_wal(path)
        with translated(path):
            database = cls(path, _connected(path, vfs=vfs, read_only=read_only), vfs=vfs)
        if not read_only and database.connection.readonly("main"):
            database.close()  # SQLite opens what it may not write all the same, and says so later in several ways.
            raise _cannot_write(path)
        try:
            database._protect()
            database._check_header(read_only=read_only)
            if not read_only:
                database._configure()
        except BaseException as error:
            if had_wal:
                database._leave_wal()
            database.close()
            if not had_wal and isinstance(error, StoreFull):
                tidy_up(path)
            if not read_only and type(error) is StoreUnavailable and not _may_write(os.path.dirname(path) or "."):
                raise _cannot_write(os.path.dirname(path) or ".") from error
            raise
        return database

    @classmethod
    def look(cls, path: str, *, vfs: str | None = None) -> Self:
        """Open an existing file to read it without changing a byte of it, and without making one beside it.

        Only the `-shm` of a file that somebody has open, or had when it died, takes part: its bytes are of the moment.
        Raises as `open` does. Where the file changed meanwhile, what was read may be of no one moment: read it again.
        """
        database = cls._looked(path, vfs=vfs)
        database._seen = None  # Whoever looks at a moment compares fingerprints of their own.
        return database

    @classmethod
    def _looked(cls, path: str, *, vfs: str | None) -> Self:
        """Open a file to be read, with locks where that takes no write, else as it is at this moment and the next."""
        _need_regular(path)
        seen = fingerprint(path)
        with translated(path):
            connection, has_locks = _looking(path, vfs=vfs)
        database = cls(path, connection, vfs=vfs)
        database._seen = None if has_locks else seen
        try:
            database._protect()
            database._check_header(read_only=True)
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def in_memory(cls, *, is_shared: bool, has_rows: bool = False) -> Self:
        """Return an empty database in memory, to be written out whole by `image`."""
        connection = apsw.Connection(":memory:")
        connection.deserialize("main", _empty_image(is_shared=is_shared, has_rows=has_rows))
        return cls(":memory:", connection)

    def image(self) -> bytes:
        """Return the bytes of the file that this database would be, in write-ahead mode."""
        with self.lock:
            image = bytearray(self.connection.serialize("main"))
        # Bytes 18 and 19 of the header are the file format's write and read versions; 2 means write-ahead log.
        # Source: the SQLite database file format, section "The Database Header".
        image[18] = image[19] = 2
        return bytes(image)

    def need_open(self) -> None:
        """Raise `StoreClosed` once the database is closed, and in a forked child: SQLite allows no connection there."""
        if self._connection is None:
            raise StoreClosed(f"{self.path} is closed")
        need_own_process(self._pid, self.path)

    def is_own(self) -> bool:
        """Return False in a forked child of the process that opened this database."""
        return self._pid == os.getpid()

    def is_in_place(self) -> bool:
        """Return False once the file was removed or replaced under this connection, whose writes go nowhere then, and
        where the connection is closed."""
        return self._connection is not None and _inode(self.path) == self._inode

    def _need_in_place(self) -> None:
        # After the commit: SQLite writes to a file that has lost its name without a word, and nobody finds it again.
        if not self.is_in_place():
            raise StoreUnavailable(
                f"{self.path} was removed or replaced while it was open; this write went with it: open the store again"
            )

    @property
    def connection(self) -> apsw.Connection:
        self.need_open()
        assert self._connection is not None, "it is open"
        return self._connection

    def query(self, name: str, bindings: Mapping[str, Any] | None = None, *, refused: str = "") -> list[Row]:
        """Run a named query and return all rows.

        refused: where set, a value that the query cannot take raises `ValueError` with this text.
        """
        self.need_open()  # Before the lock, which another thread may have held while this process was forked.
        if self._seen is not None:
            with self.lock, self._at_rest():
                return self._query(name, bindings, refused)
        return self._query(name, bindings, refused)

    def _query(self, name: str, bindings: Mapping[str, Any] | None, refused: str) -> list[Row]:
        with self.lock, self._errors:
            try:
                return self.connection.execute(self._queries[name], bindings).fetchall()
            except apsw.SQLError as error:
                if refused and not any(word in str(error) for word in _SIGNS_OF_DAMAGE):
                    raise ValueError(refused) from error
                raise

    def query_many(self, name: str, bindings: Sequence[Mapping[str, Any] | tuple[Any, ...]]) -> None:
        """Run a named statement once for each of `bindings`."""
        with self.lock, self._errors:
            self.connection.executemany(self._queries[name], bindings)

    def row(self, name: str, bindings: Mapping[str, Any] | None = None) -> Row | None:
        """Run a named query and return its first row, or None."""
        rows = self.query(name, bindings)
        return rows[0] if rows else None

    def try_insert(self, name: str, bindings: tuple[Any, ...]) -> bool:
        """Run a named insert as its own transaction; return False where a constraint refused it.

        The caller holds `lock`. This is the hot path of every append: no context managers, and one cursor for all.
        """
        self.need_open()
        if self._is_refused:
            self._open_to_write()
        try:
            self._insert(self._queries[name], bindings)
        except apsw.ConstraintError:
            return False
        except apsw.Error as error:
            raise self._errors.meaning(error) from error
        self._need_in_place()
        return True

    @contextlib.contextmanager
    def write(self, *, through_power_loss: bool = False) -> Iterator[None]:
        """A write transaction: committed when the block ends, rolled back whole when it raises.

        `through_power_loss` makes this commit wait for the disk, so that it survives a loss of power.
        """
        self.need_open()
        if self._is_refused:
            self._open_to_write()
        with self.lock, self._errors:
            connection = self.connection
            if through_power_loss:
                connection.execute("PRAGMA synchronous=FULL")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    connection.execute("COMMIT")
                    self._need_in_place()
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                if through_power_loss:
                    connection.execute("PRAGMA synchronous=NORMAL")

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """A read transaction: every query in the block sees the same state of the file.

        Where that is read without locks, a writer may come meanwhile: `StoreUnavailable` is raised then at the end.
        """
        self.need_open()
        if self._seen is not None:
            with self.lock, self._at_rest():
                yield
            return
        with self.lock, self._errors:
            connection = self.connection
            if connection.in_transaction:
                yield
                return
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    def fold(self) -> bool:
        """Fold the write-ahead log into the file; return False where somebody reads from it too long for that."""
        self.need_open()
        if self._is_refused:
            self._open_to_write()
        with self.lock, self._errors:
            return self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0

    def is_to_be_written(self) -> bool:
        """Return False where the file could only be opened to be read."""
        return not self._is_refused

    def _open_to_write(self) -> None:
        """Take a connection that can write in place of one that cannot. Raises what is in the way; it reads on then."""
        with self.lock:
            if not self._is_refused:
                return
            if self.connection.in_transaction:
                raise StoreUnavailable(f"{self.path} is being read; a write cannot begin in the middle of that")
            # Closed first: a file that SQLite opened without locks takes along those of the whole process as it goes.
            self.connection.close()
            self._connection = None
            try:
                fresh = type(self)._opened(self.path, vfs=self._vfs, read_only=False)
            except BaseException:
                self._take_over(type(self)._looked(self.path, vfs=self._vfs))
                raise
            self._take_over(fresh)
            self._is_refused = False

    def _take_over(self, other: Self) -> None:
        """Go on with the connection of another one, which is of no use any more."""
        connection, other._connection = other.connection, None
        self._connection = connection
        self._insert = connection.cursor().execute
        self._errors = translated(self.path, connection)
        self._inode = other._inode
        self._seen = other._seen

    @contextlib.contextmanager
    def _at_rest(self) -> Iterator[None]:
        """A read transaction on a file that is read without locks, as it is now. The caller holds `lock`."""
        if self.connection.in_transaction:
            yield
            return
        if fingerprint(self.path) != self._seen:
            self.connection.close()
            self._connection = None
            self._take_over(type(self)._looked(self.path, vfs=self._vfs))
        connection = self.connection
        try:
            with self._errors:
                connection.execute("BEGIN")
                try:
                    yield
                finally:
                    if connection.in_transaction:
                        connection.execute("COMMIT")
        except PlayheadError as error:
            self._need_unchanged(error)  # What seems damaged, or gone, may only have been read in between.
            raise
        self._need_unchanged(None)

    def _need_unchanged(self, cause: Exception | None) -> None:
        if self._seen is not None and fingerprint(self.path) != self._seen:
            raise StoreUnavailable(f"{self.path} was written to while it was read; read it again") from cause

    def run_script(self, file: str) -> None:
        """Run a `.sql` file of this package."""
        with self.lock, self._errors:
            self.connection.execute(read_sql(PACKAGE, file))

    def close(self) -> None:
        """Close the connection; the last one of all processes folds the write-ahead log into the file.

        A forked child leaves its parent's connection as it is.
        """
        if self._pid != os.getpid():
            _of_parents.append(self._connection)
            self._connection = None
            return
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _protect(self) -> None:
        """Set what bounds a connection before anything of the file is trusted. Even this reads a damaged schema."""
        with self._errors:
            # A file that somebody sent may hold a schema of their making: it gets no say over what runs here.
            self.connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}; PRAGMA trusted_schema=OFF")
            self.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)

    def _leave_wal(self) -> None:
        """Let closing leave the write-ahead log as it is: what is refused stays untouched, byte for byte."""
        self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def _check_header(self, *, read_only: bool) -> None:
        with self._errors:
            application = self.connection.pragma("application_id")
            version = self.connection.pragma("user_version")
        if application != APPLICATION_ID:
            raise NotAStore(f"{self.path} is an SQLite file, but not one of Playhead's (application id {application})")
        self._check_schema(int(version))
        if read_only and version <= latest_version(PACKAGE):
            return
        migrate(self.path, PACKAGE, found=int(version), apply=self._apply)

    def _check_schema(self, version: int) -> None:
        """Refuse a file whose schema is not ours: a trigger could change what is written, a view need never end."""
        if version > latest_version(PACKAGE):
            return
        ours = expected_schema(version)
        with self._errors:
            # sqlite_schema itself cannot be replaced; one object more than we ever make is enough to know.
            found = self.connection.execute(self._queries["schema"], {"limit": len(ours) + 1}).fetchall()
        for row in found:
            if not ours.holds(row):
                raise NotAStore(f"{self.path} holds a {row[0]} {row[1]!r} that is not Playhead's; it was left as it is")

    def _configure(self) -> None:
        with self._errors:
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES_KEPT}")
            if self.connection.pragma("journal_mode") != "wal":
                self.connection.pragma("journal_mode", "wal")

    def _apply(self, version: int, sql: str) -> None:
        with self.write():
            if int(self.connection.pragma("user_version")) < version:
                self.connection.execute(sql)
                self.connection.execute(f"PRAGMA user_version={version:d}")


def create_file(path: Path, *, is_shared: bool, durable: bool, has_rows: bool = False) -> bool:
    """Create an empty database at `path`, whole or not at all; return False where a file is already there.

    `durable` makes the new file and its name survive a loss of power. has_rows: it gets the tables for rows of lists.
    """
    return place_database(path, empty_image(is_shared=is_shared, has_rows=has_rows), durable=durable)


def place_database(path: Path, image: bytes, *, durable: bool) -> bool:
    """Create a database as `create_file` does, with what is in it from its first moment."""
    with making(path):
        if os.path.lexists(path):
            return False
        with os_errors(path):
            remove_database(path)
        return place_file(path, image, durable=durable)


def empty_image(*, is_shared: bool, has_rows: bool = False) -> bytes:
    """Return the bytes of a database file without sessions, in write-ahead mode."""
    database = Database.in_memory(is_shared=is_shared, has_rows=has_rows)
    try:
        return database.image()
    finally:
        database.close()


def remove_database(path: Path) -> None:
    """Remove a database that nobody may use any more, or what one of this name left behind.

    A write-ahead log without its database has to go before another one takes the name, or SQLite would replay it there.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        unlink(Path(f"{path}{suffix}"))


@cache
def _empty_image(*, is_shared: bool, has_rows: bool) -> bytes:
    """Return the bytes of an empty database. Copying them is far cheaper than running the schema for every bundle."""
    connection = apsw.Connection(":memory:")
    try:
        if is_shared:
            # Lets a shared file give free pages back in small steps; it can only be set before the first table.
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute(read_sql(PACKAGE, "schema.sql"))
        if is_shared:
            connection.execute(read_sql(PACKAGE, "notes.sql"))
        if has_rows:
            for file in LISTING_FILES:
                connection.execute(read_sql(PACKAGE, file))
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={latest_version(PACKAGE)}")
        return connection.serialize("main")
    finally:
        connection.close()


_SHADOW_PREFIXES = ("text_index_", "listing_words_")


class Schema:
    """What a database may hold: its tables, the notes, the text index, rows of lists, and SQLite's own statistics."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._known = set(rows)
        self._normal = {_normal(row) for row in rows}
        self._tables = {name: _words(sql) for kind, name, _, sql in rows if kind == "table"}
        self._shadows = {row[1] for row in rows if row[1].startswith(_SHADOW_PREFIXES)}

    def __len__(self) -> int:
        return len(self._known)

    def holds(self, row: Row) -> bool:
        """Return True for one of ours. Spaces do not count, nor how another version of SQLite words its own tables, nor
        what a table of ours asks no more of its columns: only what is added could do harm."""
        if row in self._known:
            return True
        kind, name, table, sql = row
        if not all(isinstance(text, str) for text in row):
            return False
        if name in self._shadows:
            return bool(kind == "table" and name == table and sql.split()[1].lower() == "table")
        if kind == "table" and name == table and name in self._tables:
            ours = iter(self._tables[name])
            return all(word in ours for word in _words(sql))
        return _normal(row) in self._normal


@cache
def expected_schema(version: int) -> Schema:
    """Return the schema of a database of a version: that of all migrations up to it."""
    connection = apsw.Connection(":memory:")
    try:
        for number, sql in migrations(PACKAGE):
            if number <= version:
                connection.execute(sql)
        for file in ("notes.sql", "text.sql", "statistics.sql", "listing.sql"):
            connection.execute(read_sql(PACKAGE, file))
        if version > 0:
            connection.execute(read_sql(PACKAGE, "listing_shared.sql"))  # Its triggers are on tables of version 1.
        return Schema(connection.execute(named_queries(PACKAGE)["schema"], {"limit": -1}).fetchall())
    finally:
        connection.close()


def _words(sql: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", sql)


def _normal(row: Row) -> Row:
    kind, name, table, sql = row
    return kind, name, table, None if sql is None else " ".join(sql.split())


_of_parents: list[apsw.Connection | None] = []
"""Connections that a forked child was asked to close. Kept, since collecting them would close them: SQLite forbids a
child even that."""


class NotUtf8(StoreDamaged):
    """A text in the database is not UTF-8. In a cache it can be passed over."""


class translated:
    """Translate the driver's errors into Playhead's, at the store's edge. A class: a generator costs twice as much."""

    def __init__(self, path: str, connection: apsw.Connection | None = None) -> None:
        self._path = path
        self._connection = connection

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, apsw.Error):
            meant = self.meaning(error)
            if meant is not error:
                raise meant from error
        elif isinstance(error, UnicodeDecodeError):
            raise NotUtf8(f"{self._path} is damaged: a text in it is not UTF-8") from error

    def meaning(self, error: apsw.Error) -> Exception:
        """Return the error that a caller of the store should see; the driver's own where it can only be our mistake."""
        path = self._path
        if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and self._has_no_space()):
            return StoreFull(f"{path}: no space left; nothing was written, free some and retry")
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreLocked(f"{path} stayed locked by another connection; retry")
        if isinstance(error, apsw.NoMemError | apsw.TooBigError):
            return StoreUnavailable(f"{path} asks for more memory than there is, or SQLite handles: {error}")
        if isinstance(error, apsw.NotADBError):
            return NotAStore(f"{path} is not an SQLite file")
        if isinstance(error, apsw.SQLError) and "no such" in str(error):
            return StoreDamaged(f"{path} lacks a part of its schema: {error}")
        if isinstance(error, apsw.CorruptError | apsw.SQLError):
            # Our SQL is fixed and tested, so an error in it means that the tables are not those that we made.
            return StoreDamaged(f"{path} is damaged: {error}")
        if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
            return StoreReadOnly(f"{path} cannot be written: {error}")
        if isinstance(error, apsw.CantOpenError | apsw.IOError):
            return StoreUnavailable(f"{path} cannot be opened, read or written: {error}")
        return error

    def _has_no_space(self) -> bool:
        """Return True where the system said so: SQLite calls a quota or a limit on file sizes an I/O error."""
        return self._connection is not None and self._connection.system_errno in NO_SPACE


def _inode(path: str) -> int:
    """Return what tells a file from another one of its name; 0 where there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


Fingerprint = tuple[tuple[int, int], ...]


def fingerprint(path: Path | str) -> Fingerprint:
    """Return what changes whenever somebody writes to a database. Where it differs before and after a look, what was
    seen may be of no one moment."""
    found = []
    for suffix in ("", "-wal"):
        try:
            state = os.stat(f"{path}{suffix}")
            # An empty write-ahead log is as good as none, and comes and goes with every reader.
            found.append((state.st_mtime_ns if state.st_size else 0, state.st_size))
        except OSError:
            found.append((0, 0))
    return tuple(found)


def _has_wal(path: str) -> bool:
    return os.path.lexists(f"{path}-wal")


def _is_pending(path: str) -> bool:
    """Return True where the write-ahead log holds something. Where it does not, all is in the file itself."""
    try:
        return os.lstat(f"{path}-wal").st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _need_regular(path: str) -> None:
    """Raise for what SQLite must not be asked to open, or cannot."""
    if (text := as_text(path)) != path:
        raise NotAStore(f"{text}: its name is not UTF-8; rename the file")
    for one in (path, f"{path}-journal"):
        if os.path.lexists(one) and not os.path.isfile(one):
            raise NotAStore(f"{one} is no regular file")  # Opening a pipe would wait for ever.


def _cannot_write(path: str) -> StoreReadOnly:
    return StoreReadOnly(f"{path} cannot be written; check who owns it, its mode, and whether its disk is read-only")


def _may_write(folder: str) -> bool:
    return os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def tidy_up(path: str) -> None:
    """Remove the empty write-ahead log and the beginning of its index that SQLite leaves where it finds no room for
    that. Nothing is done where anybody else has the file open: the lock that this takes is granted to one alone."""
    with contextlib.suppress(apsw.Error, OSError):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("locking_mode", "exclusive")
            connection.pragma("user_version")
            if not _is_pending(path):
                Path(f"{path}-shm").unlink(missing_ok=True)
        finally:
            connection.close()  # This takes the write-ahead log away.


def is_alone(path: str) -> bool:
    """Return True where nobody else, here or in another process, has the database open at this moment."""
    with contextlib.suppress(apsw.Error):
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("locking_mode", "exclusive")
            connection.pragma("user_version")
            return True
        finally:
            connection.close()
    return False


def looking(path: str) -> apsw.Connection:
    """Return a connection as `Database.look` has it, to a file of which nothing was checked yet."""
    with translated(path):
        return _looking(path)[0]


def _looking(path: str, *, vfs: str | None = None) -> tuple[apsw.Connection, bool]:
    """Return a connection that changes nothing, and whether it takes the locks that keep writers apart from it."""
    is_pending = _is_pending(path)
    if not is_pending or _NO_LOCKS not in apsw.vfs_names():
        return _connected(path, vfs=vfs, read_only=True, is_at_rest=not is_pending), is_pending
    if os.path.lexists(f"{path}-shm"):
        connection = _connected(path, vfs=vfs, read_only=True, is_at_rest=False)
        try:
            connection.pragma("user_version")
        except (apsw.IOError, apsw.FullError, apsw.CantOpenError, apsw.ReadOnlyError):
            connection.close()  # The index of its write-ahead log can neither be used nor made.
        except apsw.Error:
            return connection, True  # Whoever reads on is told what is wrong.
        else:
            return connection, True
    # A write-ahead log without a `-shm` that can be used is nobody's at this moment. Alone with it, SQLite keeps in
    # memory what it would put into a `-shm` of its own.
    connection = _connected(path, vfs=_NO_LOCKS, read_only=True, is_at_rest=False)
    connection.pragma("locking_mode", "exclusive")
    return connection, False


_NO_LOCKS = "unix-none"
"""The VFS that takes no locks, which a file that is open to read only would not grant for writing."""


def _connected(path: str, *, vfs: str | None, read_only: bool, is_at_rest: bool | None = None) -> apsw.Connection:
    """Return a connection. is_at_rest: whether all is in the file itself, which is looked up where it is not told."""
    name, flags = path, apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if read_only and (not _is_pending(path) if is_at_rest is None else is_at_rest):
        # Nobody writes: without locks it costs a quarter, and leaves no empty `-wal` and `-shm` beside every file.
        name, flags = f"{Path(path).absolute().as_uri()}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags, vfs=vfs, statementcachesize=STATEMENTS_CACHED)
    if read_only:
        # A reader cannot fold the write-ahead log into the file, so closing should not try.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection
