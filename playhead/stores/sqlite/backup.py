"""A copy of a whole store, made while others write to it: each database as of one moment, then what lies beside it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from playhead.errors import OF_THE_SYSTEM, InvalidName, NotAStore, PlayheadError, StoreExists, StoreFull
from playhead.stores.files import make_private_directory, os_errors, sync_directory
from playhead.stores.names import CATALOGUE
from playhead.stores.sqlite.connect import (
    APPLICATION_ID,
    BUSY_TIMEOUT_MS,
    fingerprint,
    looking,
    remove_database,
    tidy_up,
    translated,
)

SUFFIX = ".playhead"
SIDE_FOLDERS = ("artifacts", "streams")
"""What lies beside the one file of a `sqlite:` store and belongs to it. Locks are of this machine alone."""

_NOT_COPIED = ("-wal", "-shm", "-journal", ".lock", ".making", ".new")
_CHUNK_BYTES = 2**20

COPIES_MAX = 3
"""So often a database is copied again to which somebody wrote meanwhile, where no lock could keep them from it."""


class BackedUp(msgspec.Struct, frozen=True):
    """What a backup holds. problems: file to why it could not be copied, whole as it was; all else was copied."""

    target: str
    database_count: int
    file_count: int
    size_bytes: int
    problems: dict[str, str]


Progress = Callable[[int, int, str], None]
"""Told before each file: its number from 1, how many there are, and its name."""


def back_up(url: str, target: Path, *, overwrite: bool = False, on_file: Progress = lambda *_: None) -> BackedUp:
    """Copy the store that `url` names to a new folder (`bundles:`) or file (`sqlite:`), which opens as a store.

    Each database is copied under a read transaction, so it is as of one moment; writers go on meanwhile. Artifacts are
    copied after the events that name them were. A session that goes away meanwhile is left out. The copy is built under
    another name and takes its own when it is whole: an interrupted backup leaves nothing, a killed one a hidden
    `.NAME.….new`. `overwrite` replaces an earlier backup, or a store, and nothing else: that one is moved aside as
    `.NAME.….old` until the new one is in its place, and is there if the process is killed in between.

    A database that is damaged is copied byte by byte and named in `problems`; SQLite's locks on such a file are lost in
    a process that has it open, so call this in one that has not.

    Raises `StoreExists` where the target is there already and `overwrite` is not set, or it is no store, and
    `InvalidName` for a store that has no files.
    """
    scheme, _, path = url.partition(":")
    if scheme not in ("bundles", "sqlite"):
        raise InvalidName(f"{url} has no files to copy")
    source, target = Path(path).resolve(), target.absolute()
    place = target.resolve()
    if source == place or source in place.parents or place in source.parents:
        raise InvalidName(f"a backup of {source} cannot lie in it, nor take the place of what it lies in")
    if os.path.lexists(target):
        if not overwrite:
            raise StoreExists(f"{target} is there already; it was left as it is")
        if not (_is_folder_of_bundles(target) if scheme == "bundles" else _is_database(target)):
            raise StoreExists(f"{target} is there already, and is no store: it is not replaced")
    make_private_directory(target.parent)
    built = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.new")
    try:
        copier = _Copier(on_file)
        copier.copy(list(_bundle_files(source, built) if scheme == "bundles" else _shared_files(source, built)))
        with os_errors(target):
            _take_place(built, target, is_folder=scheme == "bundles")
        return copier.result(target)
    finally:
        _remove(built)
        for folder in SIDE_FOLDERS:
            _remove(Path(f"{built}.{folder}"))


class _Copier:
    """Copies files one after the other and counts what it did."""

    def __init__(self, on_file: Progress) -> None:
        self._on_file = on_file
        self._databases = 0
        self._files = 0
        self._size = 0
        self._problems: dict[str, str] = {}

    def copy(self, files: list[_File]) -> None:
        for number, file in enumerate(files, start=1):
            self._on_file(number, len(files), file.source.name)
            self._copy(file.source, file.target, is_database=file.is_database)

    def result(self, target: Path) -> BackedUp:
        return BackedUp(str(target), self._databases, self._files, self._size, self._problems)

    def _copy(self, source: Path, target: Path, *, is_database: bool) -> None:
        make_private_directory(target.parent)
        if is_database:
            try:
                copy_database(source, target)
            except StoreFull:
                raise
            except PlayheadError as error:
                remove_database(target)
                if not source.exists():
                    return  # It went away since the folder was read.
                # What cannot be read as a database is kept as it lies there: it may be mended one day.
                self._problems[source.name] = str(error)
                is_database = False
        if not is_database:
            if not _copy_bytes(source, target):
                return
            wal = Path(f"{source}-wal")
            if source.name in self._problems and wal.is_file():
                _copy_bytes(wal, Path(f"{target}-wal"))  # What was written last stands there alone.
        self._databases += is_database
        self._files += not is_database
        self._size += target.stat().st_size


class _File(msgspec.Struct, frozen=True):
    """A file to copy. Whether it is a database is told by its place: opening a live one to look inside would drop the
    locks that SQLite holds on it."""

    source: Path
    target: Path
    is_database: bool


def _bundle_files(source: Path, built: Path) -> Iterator[_File]:
    """Yield every file of a directory of bundles: databases first, then what lies beside them."""
    if not source.is_dir():
        raise NotAStore(f"{source} is no folder")
    make_private_directory(built)
    paths = sorted(_files_in(source), key=lambda path: (path.suffix != SUFFIX, path))
    for path in paths:
        yield _File(path, built / path.relative_to(source), path.suffix == SUFFIX)


def _shared_files(source: Path, built: Path) -> Iterator[_File]:
    """Yield the one database, then every file beside it."""
    if not source.is_file():
        raise NotAStore(f"{source} is no file")
    yield _File(source, built, True)
    for name in SIDE_FOLDERS:
        folder = Path(f"{source}.{name}")
        for path in _files_in(folder) if folder.is_dir() else ():
            yield _File(path, Path(f"{built}.{name}") / path.relative_to(folder), False)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the regular files of a folder and the folders in it. Links are not followed and not copied, and neither is
    a catalogue, which is made anew."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != CATALOGUE]
        for name in sorted(names):
            path = Path(root) / name
            if not name.endswith(_NOT_COPIED) and path.is_file() and not path.is_symlink():
                yield path


def copy_database(source: Path, target: Path) -> None:
    """Copy a database as of one moment. Raises `NotAStore` or `StoreDamaged` where it cannot be read whole."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    for _ in range(COPIES_MAX):
        before = fingerprint(source)
        opened = reader(source)
        try:
            problem = _copied(opened, source, target)
            is_of_one_moment = not opened.readonly("main") or fingerprint(source) == before
        finally:
            opened.close()
        if is_of_one_moment:
            break
    else:
        problem = "it is written to again and again while it is copied"
    if problem is not None:
        raise NotAStore(f"{source} is damaged: {problem}")


def _copied(opened: apsw.Connection, source: Path, target: Path) -> str | None:
    """Copy what is open to a file, and return what SQLite finds wrong with the copy, or None."""
    with translated(str(source), opened):
        if opened.pragma("application_id") != APPLICATION_ID:
            raise NotAStore(f"{source} is no database of Playhead's")
        writer = apsw.Connection(str(target))
        try:
            with writer.backup("main", opened, "main") as backup:
                while not backup.done:
                    backup.step(-1)  # All at once: in steps it would begin anew with every append of another.
            problem = writer.execute("PRAGMA quick_check(1)").fetchall()[0][0]
        except (apsw.FullError, apsw.IOError) as error:
            meant = translated(str(target), writer).meaning(error)
            if isinstance(meant, StoreFull):
                raise meant from error
            raise
        finally:
            writer.close()
    return None if problem == "ok" else str(problem)


def reader(path: Path) -> apsw.Connection:
    """Open a database to read from, as one of its users: what stands in its write-ahead log belongs to it.

    The last user of a database folds that log into it when it closes, and takes it away. One that cannot be written,
    for want of a right or of room, is only looked at.
    """
    connection = _user(path) or looking(str(path))
    with translated(str(path), connection):
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _user(path: Path) -> apsw.Connection | None:
    """Open a database as one who could write to it; None where that cannot be."""
    had_wal = os.path.lexists(f"{path}-wal")
    with translated(str(path)):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    is_hindered = False
    try:
        if not connection.readonly("main"):
            connection.pragma("user_version")
            return connection
    except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError):
        is_hindered = True
    except apsw.Error:
        return connection  # Whoever reads on is told what is wrong.
    connection.close()
    if is_hindered and not had_wal:
        tidy_up(str(path))
    return None


def _copy_bytes(source: Path, target: Path) -> bool:
    """Copy a file; return False where it went away since the folder was read."""
    with os_errors(source):
        try:
            into = source.open("rb")
        except FileNotFoundError:
            return False
        with into:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                shutil.copyfileobj(into, out, _CHUNK_BYTES)
    return True


_OF_A_STORE = (SUFFIX, f"{SUFFIX}-wal", f"{SUFFIX}-shm", ".artifacts", ".stream", ".lock")


def _is_folder_of_bundles(path: Path) -> bool:
    """Return True for a folder that holds a store and nothing else, or nothing."""
    if path.is_symlink() or not path.is_dir():
        return False
    names = os.listdir(path)
    return all(name.endswith(_OF_A_STORE) or name.startswith(".") for name in names)


def _is_database(path: Path) -> bool:
    """Return True for a file that is a database of Playhead's."""
    return not path.is_symlink() and path.is_file() and _application_id(path) == APPLICATION_ID


def _application_id(path: Path) -> int | None:
    try:
        opened = looking(str(path))
        try:
            return int(opened.pragma("application_id"))
        finally:
            opened.close()
    except (apsw.Error, PlayheadError):
        return None


def _take_place(built: Path, target: Path, *, is_folder: bool) -> None:
    """Give the finished copy its name; one that was there is moved aside first and removed last. After an error it is
    back in its place."""
    old = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.old")
    suffixes = [""] if is_folder else [*(f".{name}" for name in SIDE_FOLDERS), ""]
    moved: list[tuple[str, str]] = []
    try:
        for source, place in [(target, old), (built, target)]:
            for suffix in suffixes:
                if os.path.lexists(f"{source}{suffix}"):
                    os.rename(f"{source}{suffix}", f"{place}{suffix}")
                    moved.append((f"{source}{suffix}", f"{place}{suffix}"))
    except BaseException:
        for was, now in reversed(moved):
            with contextlib.suppress(OSError):
                os.rename(now, was)
        raise
    sync_directory(target.parent)
    for suffix in suffixes:
        _remove(Path(f"{old}{suffix}"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        with contextlib.suppress(OSError):
            remove_database(path)


def check_file(path: Path, *, problems_max: int = 20) -> list[str]:
    """Return what SQLite finds wrong with a database (`PRAGMA integrity_check`); `[]` where nothing is. Reads all of it
    and writes nothing. One that is no database of Playhead's is one problem.

    Raises `StoreFull`, `StoreReadOnly` or `StoreUnavailable` where it could not be looked through: that is no damage.
    """
    before = fingerprint(path)
    found = _checked(path, problems_max)
    if found and fingerprint(path) != before:
        return _checked(path, problems_max)  # Somebody wrote to it under the check.
    return found


def _checked(path: Path, problems_max: int) -> list[str]:
    try:
        opened = looking(str(path))
        try:
            with translated(str(path), opened):
                opened.execute("PRAGMA trusted_schema=OFF")
                if opened.pragma("application_id") != APPLICATION_ID:
                    raise NotAStore(f"{path} is no database of Playhead's")
                rows = opened.execute(f"PRAGMA integrity_check({problems_max:d})").fetchall()
        finally:
            opened.close()
    except OF_THE_SYSTEM:
        raise
    except PlayheadError as error:
        return [str(error)]
    return [] if rows == [("ok",)] else [str(row[0]) for row in rows]


def databases(url: str) -> list[Path]:
    """Return the databases of a store that has files, the store log and the trash of a directory too, in order."""
    scheme, _, place = url.partition(":")
    if scheme == "sqlite":
        return [Path(place)]
    if scheme != "bundles":
        return []
    return sorted(path for path in _files_in(Path(place)) if path.suffix == SUFFIX)
