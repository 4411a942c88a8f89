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

from playhead.errors import InvalidName, NotAStore, PlayheadError, StoreExists
from playhead.stores.files import make_private_directory, os_errors, sync_directory
from playhead.stores.sqlite.connect import APPLICATION_ID, BUSY_TIMEOUT_MS, remove_database, translated

SUFFIX = ".playhead"
SIDE_FOLDERS = ("artifacts", "streams")
"""What lies beside the one file of a `sqlite:` store and belongs to it. Locks are of this machine alone."""

_NOT_COPIED = ("-wal", "-shm", "-journal", ".lock", ".making", ".new")
_CHUNK_BYTES = 2**20


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
    copied after the events that name them were. The copy is built under another name and takes its own when it is
    whole: an interrupted backup leaves nothing. A session that goes away meanwhile is left out.

    A database that is damaged is copied byte by byte and named in `problems`; SQLite's locks on such a file are lost in
    a process that has it open, so call this in one that has not.

    Raises `StoreExists` where the target is there already and `overwrite` is not set, and `InvalidName` for a store
    that has no files.
    """
    scheme, _, place = url.partition(":")
    if scheme not in ("bundles", "sqlite"):
        raise InvalidName(f"{url} has no files to copy")
    source, target = Path(place).resolve(), target.absolute()
    if source == target.resolve() or source in target.resolve().parents:
        raise InvalidName(f"a backup of {source} cannot lie in it")
    if os.path.lexists(target) and not overwrite:
        raise StoreExists(f"{target} is there already; it was left as it is")
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
            with contextlib.suppress(FileNotFoundError):  # It went away since the folder was read.
                self._copy(file.source, file.target, is_database=file.is_database)

    def result(self, target: Path) -> BackedUp:
        return BackedUp(str(target), self._databases, self._files, self._size, self._problems)

    def _copy(self, source: Path, target: Path, *, is_database: bool) -> None:
        make_private_directory(target.parent)
        if is_database:
            try:
                _copy_database(source, target)
            except PlayheadError as error:
                if not source.exists():
                    return
                # What cannot be read as a database is kept as it lies there: it may be mended one day.
                self._problems[source.name] = str(error)
                remove_database(target)
                is_database = False
        if not is_database:
            _copy_bytes(source, target)
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
    """Yield the regular files of a folder and the folders in it. Links are not followed and not copied."""
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(root) / name
            if not name.endswith(_NOT_COPIED) and path.is_file() and not path.is_symlink():
                yield path


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database as of one moment. Raises `NotAStore` or `StoreDamaged` where it cannot be read whole."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.close(descriptor)
    with translated(str(source)):
        opened = reader(source)
        try:
            if opened.pragma("application_id") != APPLICATION_ID:
                raise NotAStore(f"{source} is no database of Playhead's")
            writer = apsw.Connection(str(target))
            try:
                with writer.backup("main", opened, "main") as backup:
                    while not backup.done:
                        backup.step(-1)  # All at once: in steps it would begin anew with every append of another.
                problem = writer.execute("PRAGMA quick_check(1)").fetchall()[0][0]
            finally:
                writer.close()
            if problem != "ok":
                raise NotAStore(f"{source} is damaged: {problem}")
        finally:
            opened.close()


def reader(path: Path) -> apsw.Connection:
    """Open a database to read from, as one of its users: what stands in its write-ahead log belongs to it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _copy_bytes(source: Path, target: Path) -> None:
    with os_errors(source):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out, source.open("rb") as into:
            shutil.copyfileobj(into, out, _CHUNK_BYTES)


def _take_place(built: Path, target: Path, *, is_folder: bool) -> None:
    """Give the finished copy its name; one that was there is moved aside first and removed last."""
    old = target.with_name(f".{target.name[:80]}.{secrets.token_hex(8)}.old")
    suffixes = [""] if is_folder else [*(f".{name}" for name in SIDE_FOLDERS), ""]
    moved = []
    for suffix in suffixes:
        if os.path.lexists(f"{target}{suffix}"):
            os.rename(f"{target}{suffix}", f"{old}{suffix}")
            moved.append(Path(f"{old}{suffix}"))
    for suffix in suffixes:
        if os.path.lexists(f"{built}{suffix}"):
            os.rename(f"{built}{suffix}", f"{target}{suffix}")
    sync_directory(target.parent)
    for path in moved:
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        with contextlib.suppress(OSError):
            remove_database(path)


def check_file(path: Path, *, problems_max: int = 20) -> list[str]:
    """Return what SQLite finds wrong with a database (`PRAGMA integrity_check`); `[]` where nothing is. Reads all of it
    and writes nothing. One that cannot be opened is one problem."""
    try:
        with translated(str(path)):
            opened = reader(path)
            try:
                if opened.pragma("application_id") != APPLICATION_ID:
                    raise NotAStore(f"{path} is no database of Playhead's")
                rows = opened.execute(f"PRAGMA integrity_check({problems_max:d})").fetchall()
            finally:
                opened.close()
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
