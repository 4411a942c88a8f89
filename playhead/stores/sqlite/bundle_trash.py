"""The trash of a directory of bundles: a folder `.trash` in it, with a folder for each session that was put there.

`.trash/TRASHID/` holds the bundle and its side files under the names that they had. A bundle that can be read is set
aside inside (`aside.py`) before anything is moved, so that no process that has it open writes to it any more; from then
on it counts as trash, wherever it lies. The database is the last file to go in, so that what is in `.trash` with a
database is there whole, and the first to come out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from playhead.errors import PlayheadError
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.stores.base import Durability, TrashedRow
from playhead.stores.files import disk_bytes, make_private_directory, os_errors, rename
from playhead.stores.names import is_trash_id
from playhead.stores.sqlite.aside import asides, take_back, trashed_row
from playhead.stores.sqlite.log import SqliteLog

SUFFIX = ".playhead"
TRASH = ".trash"
DATABASE_SUFFIXES = ("-wal", "-shm", "")
"""What a database is made of, in the order in which it is moved: its write-ahead log never comes to lie beside another
one's database, and goes where its own is expected."""

SIDE_SUFFIXES = (".artifacts", ".stream")


class BundleTrash:
    """The files of a trash. Whoever calls it sees to it that nobody else moves the same ones.

    open_log: opens a bundle to be written to. read_log: opens one to be looked at.
    """

    def __init__(
        self,
        folder: Path,
        *,
        open_log: Callable[[Path], SqliteLog],
        read_log: Callable[[Path], SqliteLog],
        durability: Durability,
    ) -> None:
        self.folder = folder / TRASH
        self._open_log = open_log
        self._read_log = read_log
        self._is_durable = durability == "power"

    def databases(self) -> dict[str, Path]:
        """Return the trash ids of all that is wholly in here, each with its database."""
        found = ((entry.name, _database_in(entry)) for entry in self._entries())
        return {trash_id: path for trash_id, path in found if path is not None}

    def find(self, trash_id: str) -> Path | None:
        """Return the database of one that is wholly in here, or None."""
        return _database_in(self.folder / trash_id) if is_trash_id(trash_id) else None

    def begun(self, path: Path) -> str | None:
        """Return the trash id under which a bundle that cannot be read was not wholly moved in, or None."""
        stem = _stem(path)
        for entry in self._entries():
            if _database_in(entry) is None and any(_stem(file) == stem for file in entry.iterdir()):
                return entry.name
        return None

    def row(self, trash_id: str, path: Path) -> TrashedRow:
        """Return what a list of the trash says of the bundle at `path`. One that cannot be read goes by its file's name
        and by when it came here."""
        size = disk_bytes(*_files(path))
        try:
            log = self._read_log(path)
            try:
                if found := asides(log, limit=1):
                    return msgspec.structs.replace(trashed_row(log, found[0]), trash_id=trash_id, size_bytes=size)
                rows = log.sessions(limit=1)
                problem = rows[0].problem if rows else "the bundle holds no session"
            finally:
                log.close()
        except PlayheadError as error:
            rows, problem = [], str(error)
        key = rows[0].key if rows and rows[0].key.app else SessionKey(DEFAULT_APP, DEFAULT_USER, _stem(path))
        seq, summary = (rows[0].seq, rows[0].summary) if rows else (0, None)
        return TrashedRow(trash_id, key, _changed_at(path.parent), seq, summary, problem, size)

    def put_in(self, path: Path, trash_id: str) -> bool:
        """Move a bundle in: its side files, then its database. The caller is inside `making`.

        Returns False where somebody reads from it at this moment: what its write-ahead log holds cannot be folded into
        the file then, and the two must not be torn apart by a kill. It stays where it is.
        """
        if not self._is_folded(path):
            return False
        entry, stem = self.folder / trash_id, _stem(path)
        while _database_in(entry) is not None:  # Somebody copied a bundle out of the trash by hand.
            entry = entry.with_name(f"{entry.name}x")
        make_private_directory(entry, durable=self._is_durable)
        # Its own name, or that which it had in here before a restoring under another one was cut off.
        name = next((_stem(file) for file in sorted(entry.iterdir())), stem)
        for suffix in SIDE_SUFFIXES:
            rename(path.with_name(f"{stem}{suffix}"), entry / f"{name}{suffix}", durable=self._is_durable)
        for suffix in DATABASE_SUFFIXES:
            rename(Path(f"{path}{suffix}"), entry / f"{name}{SUFFIX}{suffix}", durable=self._is_durable)
        return True

    def take_out(self, source: Path, target: Path, key: SessionKey) -> None:
        """Move a bundle out under a name that is free: its database, which is trash there as well, then its side files;
        then give it its key. The caller is inside `making`."""
        for suffix in DATABASE_SUFFIXES:
            rename(Path(f"{source}{suffix}"), Path(f"{target}{suffix}"), durable=self._is_durable)
        for suffix in SIDE_SUFFIXES:
            side = source.with_name(f"{_stem(source)}{suffix}")
            rename(side, target.with_name(f"{_stem(target)}{suffix}"), durable=self._is_durable)
        self._give_key(target, key)
        with contextlib.suppress(OSError):
            source.parent.rmdir()

    def take_rest_out(self, trash_id: str) -> bool:
        """Move the side files out of a bundle that cannot be read and was moved out without them; return whether there
        were any."""
        entry = self.folder / trash_id
        is_any = False
        if is_trash_id(trash_id) and entry.is_dir():
            for side in sorted(entry.iterdir()):
                if os.path.lexists(self.folder.parent / f"{_stem(side)}{SUFFIX}"):
                    is_any |= rename(side, self.folder.parent / side.name, durable=self._is_durable)
        return is_any

    def purge(self, source: Path) -> None:
        """Remove a bundle for good: what lies beside it first, its database last. Killed in between, it is in the trash
        yet, and purging it again ends it."""
        with os_errors(source):
            for path in _files(source):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                source.parent.rmdir()

    def _entries(self) -> list[Path]:
        with os_errors(self.folder):
            try:
                names = sorted(os.listdir(self.folder))
            except FileNotFoundError:
                return []
        entries = (self.folder / name for name in names if is_trash_id(name))
        return [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]

    def _is_folded(self, path: Path) -> bool:
        try:
            log = self._open_log(path)
        except PlayheadError:
            return True  # Of what cannot be read nothing is folded by anybody.
        try:
            return log.database.fold()
        finally:
            log.close()

    def _give_key(self, path: Path, key: SessionKey) -> None:
        try:
            log = self._open_log(path)
        except PlayheadError:
            return  # It cannot be read, as before, and goes by its file's name.
        try:
            found = asides(log, limit=1)
            if found:
                take_back(log, found[0], key)
        finally:
            log.close()


def _database_in(entry: Path) -> Path | None:
    try:
        names = sorted(os.listdir(entry))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return next((entry / name for name in names if name.endswith(SUFFIX)), None)


def _files(path: Path) -> list[Path]:
    """Return all that belongs to a bundle, in the order in which it may be removed."""
    sides = [path.with_name(f"{_stem(path)}{suffix}") for suffix in SIDE_SUFFIXES]
    return [*sides, *(Path(f"{path}{suffix}") for suffix in DATABASE_SUFFIXES)]


def _stem(path: Path) -> str:
    """Return what a bundle and the files beside it have in common."""
    name = path.name
    for suffix in (*(f"{SUFFIX}{end}" for end in DATABASE_SUFFIXES), *SIDE_SUFFIXES):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


def _changed_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
