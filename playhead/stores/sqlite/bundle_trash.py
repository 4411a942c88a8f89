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
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from playhead.errors import NewerFormat, NotAStore, PlayheadError, StoreDamaged, StoreFull
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.stores.base import Durability, TrashedRow
from playhead.stores.files import disk_bytes, make_private_directory, os_errors, rename, second_name, sync_file, unlink
from playhead.stores.names import as_text, is_trash_id
from playhead.stores.sqlite.aside import asides, give_key, take_back, trashed_row
from playhead.stores.sqlite.backup import copy_database
from playhead.stores.sqlite.connect import is_alone, remove_database
from playhead.stores.sqlite.log import SqliteLog

SUFFIX = ".playhead"
TRASH = ".trash"
LOG_SUFFIXES = ("-wal", "-journal")
"""What of a database may not be in its file yet. Without it the file is another one."""

DATABASE_SUFFIXES = (*LOG_SUFFIXES, "-shm", "")
"""What a database is made of, in the order in which it may be removed."""

SIDE_SUFFIXES = (".artifacts", ".stream")

UNREADABLE = (NotAStore, StoreDamaged)
"""What is wrong with a bundle that nobody can read, now or later. One of a newer version, or that the system does not
open at this moment, may be in use by another process: it stays where it is."""


_Mark = tuple[str, int, int]


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
        self._keys: dict[_Mark, SessionKey] = {}

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
            found = self._read(path)
        except PlayheadError as error:
            found = TrashedRow("", _key_by_name(path), _changed_at(path.parent), 0, problem=str(error))
        return msgspec.structs.replace(found, trash_id=trash_id, size_bytes=size)

    def holds(self, key: SessionKey) -> bool:
        """Return True where one that is wholly in here had this key. Each is opened once, and again when its folder
        changed."""
        keys: dict[_Mark, SessionKey] = {}
        passing = []
        for entry, mark in self._marked_entries():
            if (known := self._keys.get(mark)) is not None:
                keys[mark] = known
            elif (path := _database_in(entry)) is not None:
                try:
                    keys[mark] = self._read(path).key
                except (NewerFormat, *UNREADABLE):
                    keys[mark] = _key_by_name(path)
                except PlayheadError:
                    passing.append(_key_by_name(path))  # The next time it may be opened.
        self._keys = keys
        return key in keys.values() or key in passing

    def _read(self, path: Path) -> TrashedRow:
        """Return what is in a bundle, without what its folder says of it."""
        log = self._read_log(path)
        try:
            if found := asides(log, limit=1):
                return trashed_row(log, found[0])
            rows = log.sessions(limit=1)
        finally:
            log.close()
        at = _changed_at(path.parent)
        if not rows:
            return TrashedRow("", _key_by_name(path), at, 0, problem="the bundle holds no session")
        key = rows[0].key if rows[0].key.app else _key_by_name(path)
        return TrashedRow("", key, at, rows[0].seq, rows[0].summary, rows[0].problem)

    def put_in(self, path: Path, trash_id: str) -> bool:
        """Move a bundle in: its side files, then its database. The caller is inside `making`.

        Returns False where somebody reads from it at this moment: what its write-ahead log holds cannot be folded into
        the file then. It stays where it is. So it does where it cannot be opened for a reason that passes, or is of a
        newer version: what is wrong is raised.
        """
        if not self._is_folded(path):
            return False
        entry, stem = self.folder / trash_id, _stem(path)
        # Somebody copied a bundle out of the trash by hand, or a restoring by copy was cut off.
        while _database_in(entry) is not None:
            entry = entry.with_name(f"{entry.name}x")
        make_private_directory(entry, durable=self._is_durable)
        # Its own name, or that which it had in here before a restoring under another one was cut off.
        name = next((_stem(file) for file in sorted(entry.iterdir())), stem)
        for suffix in SIDE_SUFFIXES:
            rename(path.with_name(f"{stem}{suffix}"), entry / f"{name}{suffix}", durable=self._is_durable)
        _move_database(path, entry / f"{name}{SUFFIX}", durable=self._is_durable)
        return True

    def take_out(self, source: Path, target: Path, key: SessionKey) -> None:
        """Move a bundle out under a name that is free: its database, which is trash there as well, then its side files;
        then give it its key. The caller is inside `making`.

        Where somebody has it open, the name goes to a copy. SQLite tells by a file's number whether the one that it has
        open is still the one of that name. With the same one back in its place, whoever had it open before it was
        trash would take the new write-ahead log away as it closes, and all that is in there.
        """
        if self._is_open_elsewhere(source):
            self._copy_out(source, target)
        else:
            _move_database(source, target, durable=self._is_durable)
        for suffix in SIDE_SUFFIXES:
            side = source.with_name(f"{_stem(source)}{suffix}")
            rename(side, target.with_name(f"{_stem(target)}{suffix}"), durable=self._is_durable)
        self._give_key(target, key)
        with contextlib.suppress(OSError):
            source.parent.rmdir()

    def _is_open_elsewhere(self, source: Path) -> bool:
        try:
            self._read_log(source).close()
        except UNREADABLE:
            return False  # Nobody writes to what cannot be read, and nothing here changes a byte of it.
        return not is_alone(str(source))

    def _copy_out(self, source: Path, target: Path) -> None:
        """Place a copy of a database, whole, and remove it. Killed in between, both are the same trash."""
        built = target.with_name(f".{target.name}.new")
        try:
            with os_errors(built):
                remove_database(built)
            copy_database(source, built)
            if self._is_durable:
                sync_file(built)
            rename(built, target, durable=self._is_durable)
        finally:
            with os_errors(built):
                remove_database(built)
        with os_errors(source):
            remove_database(source)

    def take_rest_out(self, trash_id: str) -> bool:
        """Move the side files out of a bundle that cannot be read and was moved out without them; return whether there
        were any."""
        entry = self.folder / trash_id
        is_any = False
        if is_trash_id(trash_id) and entry.is_dir():
            for side in sorted(entry.iterdir()):
                if os.path.lexists(self.folder.parent / f"{_stem(side)}{SUFFIX}"):
                    is_any |= self._take_side_out(side)
            with contextlib.suppress(OSError):
                entry.rmdir()
        return is_any

    def _take_side_out(self, side: Path) -> bool:
        if side.name.endswith(tuple(f"{SUFFIX}{suffix}" for suffix in DATABASE_SUFFIXES if suffix)):
            with os_errors(side):
                side.unlink()  # Its database has taken it along under its new name.
            return True
        return rename(side, self.folder.parent / side.name, durable=self._is_durable)

    def purge(self, source: Path) -> None:
        """Remove a bundle for good: what lies beside it first, its database last. Killed in between, it is in the trash
        yet, and purging it again ends it."""
        with os_errors(source):
            for path in _files(source):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    unlink(path)
            with contextlib.suppress(OSError):
                source.parent.rmdir()

    def need_known(self, path: Path) -> None:
        """Raise what is wrong with a bundle of which nobody can say yet whether it can be read."""
        with contextlib.suppress(*UNREADABLE):
            self._read_log(path).close()

    def _marked_entries(self) -> Iterator[tuple[Path, _Mark]]:
        """Yield each folder in here with what changes whenever something is put into it or taken out."""
        for entry in self._entries():
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat()
                yield entry, (entry.name, found.st_ino, found.st_mtime_ns)

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
        except UNREADABLE:
            return True  # Of what cannot be read nothing is folded by anybody.
        try:
            return log.database.fold()
        except StoreDamaged:
            return True
        except StoreFull:
            log.close()
            return is_alone(str(path))  # Then its log goes along as it is.
        finally:
            log.close()

    def _give_key(self, path: Path, key: SessionKey) -> None:
        try:
            log = self._open_log(path)
        except UNREADABLE:
            return  # It cannot be read, as before, and goes by its file's name.
        try:
            found = asides(log, limit=1)
            if found:
                take_back(log, found[0], key)
            else:
                give_key(log, key)  # On a full disk it was only moved.
        finally:
            log.close()


def _move_database(source: Path, target: Path, *, durable: bool) -> None:
    """Move a database. What was not folded into it gets its new name first and loses the old one last: wherever a kill
    leaves the file, that lies beside it. Nothing may be under the new name; what is left there of a log is nobody's."""
    for suffix in LOG_SUFFIXES:
        second_name(Path(f"{source}{suffix}"), Path(f"{target}{suffix}"), durable=durable)
    rename(source, target, durable=durable)
    with os_errors(source):
        for suffix in (*LOG_SUFFIXES, "-shm"):
            unlink(Path(f"{source}{suffix}"))


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


def _key_by_name(path: Path) -> SessionKey:
    """Return the key by which a bundle goes that does not say its own."""
    return SessionKey(DEFAULT_APP, DEFAULT_USER, as_text(_stem(path)))


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
