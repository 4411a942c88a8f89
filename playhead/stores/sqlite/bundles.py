"""`bundles:DIR`: one SQLite file for each session, so that a session can be moved, sent or deleted as a file."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from playhead.errors import (
    InvalidName,
    NewerFormat,
    NotAStore,
    PlayheadError,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
    TrashNotFound,
)
from playhead.model.event import Draft, Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.model.path import Ranges
from playhead.model.snapshot import Snapshot
from playhead.stores.artifacts import FileArtifacts
from playhead.stores.base import (
    EVENTS_PAGE_MAX,
    ROWS_PAGE_MAX,
    Durability,
    Lease,
    Record,
    SessionRow,
    TextFilter,
    TextMatch,
    TextRow,
    Tip,
    TrashedRow,
)
from playhead.stores.files import (
    disk_bytes,
    make_private_directory,
    members,
    os_errors,
    place_file,
    rename,
)
from playhead.stores.names import STORE_LOG, as_text, check_trash_id, file_stem, is_trash_id, trash_key
from playhead.stores.oslock import OsLock, making, need_own_process
from playhead.stores.sqlite.aside import asides, set_aside
from playhead.stores.sqlite.bundle_trash import SUFFIX, UNREADABLE, BundleTrash
from playhead.stores.sqlite.catalogue import READINGS_MAX, Catalogue
from playhead.stores.sqlite.catalogue_rows import EMPTIED, HIDDEN, TRASHED
from playhead.stores.sqlite.connect import Database, create_file, empty_image, is_alone, place_database, remove_database
from playhead.stores.sqlite.copying import build, go_on
from playhead.stores.sqlite.index import SqliteText
from playhead.stores.sqlite.log import SqliteLog
from playhead.stores.sqlite.notes import SqliteNotes
from playhead.stores.sqlite.prints import state_of
from playhead.stores.streams import FileStreams

OPEN_MAX = 24
"""Bundles kept open at a time; the one that was used longest ago is closed first, unless its lease is held."""

OPENINGS_MAX = 20
"""So often a verb opens its bundle again when other threads' bundles take its place among those kept open."""

SLOW_S = 0.1
"""Whoever lists may have looked at a bundle during a write that takes so long."""

ROWS_KEPT = 1_000
"""So many bundles that were looked into to find a session are remembered."""

_READABLE = (None, *HIDDEN)

T = TypeVar("T")


class _Open(msgspec.Struct):
    """A bundle that is open. is_watched: whether the catalogue was told that it is written to."""

    log: SqliteLog
    path: Path
    is_watched: bool = False


class BundleStore:
    """A directory of bundles. A bundle's key is read from inside it, so a file may be copied in under any name."""

    def __init__(self, folder: Path, *, durability: Durability = "process", vfs: str | None = None) -> None:
        self._folder = folder.resolve()
        make_private_directory(self._folder, durable=durability == "power")
        self.url = f"bundles:{self._folder}"
        self.durability: Durability = durability
        self._vfs = vfs
        self._lock = threading.RLock()
        self._open: OrderedDict[SessionKey, _Open] = OrderedDict()
        self._open_by_path: dict[Path, SqliteLog] = {}
        self._rows: OrderedDict[Path, tuple[str, SessionRow]] = OrderedDict()
        self._elsewhere: dict[SessionKey, Path] = {}
        self._pid = os.getpid()
        self._is_closed = False
        self._store_log_open: Database | None = None
        self.streams = FileStreams(lambda key: self._side_file(key, ".stream"))
        self.artifacts = FileArtifacts(
            lambda key: self._side_file(key, ".artifacts"),
            folders=self._artifact_folders,
            need=self._need_session,
            durability=durability,
        )
        self.notes = SqliteNotes(self._store_log, begin=self._begin_store_log)
        self.text = _BundleText(self)
        self.listing = Catalogue(self._folder, read=self._read_row)
        self._trash = BundleTrash(self._folder, open_log=self._log, read_log=self._read_only, durability=durability)

    # The log: each verb goes to the bundle that holds the session.

    def create(self, key: SessionKey, drafts: Sequence[Draft], *, artifacts: Iterable[bytes] = ()) -> list[Event]:
        """Build the bundle in memory, put its artifacts beside, and place the file last: it appears whole or not at
        all."""
        path = self._named(key)
        with self._lock:
            self._need_open()
            if self._find(key) is not None:
                raise SessionExists(key.id)
            log = SqliteLog(Database.in_memory(is_shared=False), durability="process", lock_path=_no_lock)
            try:
                events = log.create(key, drafts)
                image, row = log.database.image(), _row_of(log, key)
            finally:
                log.close()
            with making(path):
                self._make_way(key, path)
                for data in artifacts:
                    self.artifacts.place(key, data)
                if not place_file(path, image, durable=self.durability == "power"):
                    raise SessionExists(key.id)
                self.listing.placed(path, row)
            return events

    def put_records(
        self, key: SessionKey, records: Iterable[Record], *, expected_seq: int, artifacts: Iterable[bytes] = ()
    ) -> Tip:
        """A new bundle is built under a hidden name, which a kill may leave behind until the next try, and is placed
        whole once it is proved, after its artifacts."""
        if expected_seq != 0:
            return self._continued(key, records, expected_seq, artifacts)
        path = self._named(key)
        built = path.with_name(f".{path.name}.new")
        with making(built):
            with self._lock:
                self._need_open()
                if self._find(key) is not None:
                    raise SessionExists(key.id)
            try:
                with os_errors(built):
                    remove_database(built)
                place_file(built, empty_image(is_shared=False), durable=False)
                log = self._log(built)
                try:
                    tip = build(log, key, records, session=key)
                finally:
                    log.close()
                self._place_built(key, built, path, artifacts)
            finally:
                with os_errors(built):
                    remove_database(built)
        return tip

    def _continued(
        self, key: SessionKey, records: Iterable[Record], expected_seq: int, artifacts: Iterable[bytes]
    ) -> Tip:
        def keep() -> None:
            for data in artifacts:
                self.artifacts.put(key, data)

        return go_on(
            key,
            records,
            expected_seq=expected_seq,
            keep_artifacts=keep,
            folder=self._folder,
            on=lambda verb: self._write(key, verb),
        )

    def _place_built(self, key: SessionKey, built: Path, path: Path, artifacts: Iterable[bytes]) -> None:
        with self._lock:
            self._need_open()
            if self._find(key) is not None:
                raise SessionExists(key.id)
            with making(path):
                self._make_way(key, path)
                for data in artifacts:
                    self.artifacts.place(key, data)
                if not rename(built, path, durable=self.durability == "power"):
                    raise SessionExists(key.id)
                self.listing.changed(path)

    def _make_way(self, key: SessionKey, path: Path) -> None:
        """Take away what is under the name of a session that is not there: one that was set aside goes into the trash,
        what a deletion that was cut off left is removed. Raises `SessionExists` for anything else. The caller is inside
        `making`."""
        self._settle(path)
        if os.path.lexists(path) and not self._is_emptied(path):
            raise SessionExists(key.id)
        self._remove_files(key, path)

    def append(
        self, key: SessionKey, drafts: Sequence[Draft], *, expected_seq: int | None, fence: int | None = None
    ) -> list[Event]:
        found = self._open.get(key)
        if found is not None and found.is_watched:  # The usual way, without the general one's closure and look-ups.
            began_at = time.monotonic()
            try:
                return found.log.append(key, drafts, expected_seq=expected_seq, fence=fence)
            except (SessionNotFound, StoreClosed, StoreUnavailable):
                pass
            finally:
                if time.monotonic() - began_at > SLOW_S:
                    self.listing.stir(found.path)
        return self._write(key, lambda log: log.append(key, drafts, expected_seq=expected_seq, fence=fence))

    def tip(self, key: SessionKey) -> Tip:
        return self._on(key, lambda log: log.tip(key))

    def events(
        self,
        key: SessionKey,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = EVENTS_PAGE_MAX,
        kinds: Sequence[str] | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        return self._on(
            key,
            lambda log: log.events(key, after=after, until=until, limit=limit, kinds=kinds, newest_first=newest_first),
        )

    def events_at(self, key: SessionKey, positions: Ranges) -> list[Event]:
        return self._on(key, lambda log: log.events_at(key, positions))

    def tail(self, key: SessionKey, head: int) -> tuple[list[Snapshot], list[Event]]:
        return self._on(key, lambda log: log.tail(key, head))

    def facts(self, key: SessionKey, *, until: int | None = None) -> list[Event]:
        return self._on(key, lambda log: log.facts(key, until=until))

    def seq_of(self, key: SessionKey, ids: Iterable[str]) -> dict[str, int]:
        wanted = list(ids)
        return self._on(key, lambda log: log.seq_of(key, wanted))

    def records(self, key: SessionKey, *, after: int = 0, limit: int = EVENTS_PAGE_MAX) -> list[Record]:
        return self._on(key, lambda log: log.records(key, after=after, limit=limit))

    def snapshot_seqs(self, key: SessionKey) -> list[int]:
        return self._on(key, lambda log: log.snapshot_seqs(key))

    def save_snapshot(self, key: SessionKey, snapshot: Snapshot) -> None:
        self._on(key, lambda log: log.save_snapshot(key, snapshot))

    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        """Keep the row in the bundle and push it to the catalogue."""

        def verb(log: SqliteLog) -> None:
            log.save_summary(key, seq, summary)
            found = self._open.get(key)
            if found is not None and found.log is log:
                self.listing.push(found.path, lambda: _row_of(log, key))

        self._write(key, verb)

    def acquire(self, key: SessionKey, *, label: str = "", at: float) -> Lease:
        return self._on(key, lambda log: log.acquire(key, label=label, at=at))

    def release(self, lease: Lease) -> None:
        with contextlib.suppress(SessionNotFound):
            self._on(lease.key, lambda log: log.release(lease))

    def holder(self, key: SessionKey) -> dict[str, Any] | None:
        """Whoever is in a turn keeps a lock file beside the bundle. Where there is none, the bundle is not opened, and
        where there is one, it is opened to be read: a list asks this of many."""
        with self._lock:
            self._need_open()
            path = None if key in self._open else self.listing.known(key)
            if path is not None and not os.path.lexists(_lock_beside(path)) and os.path.lexists(path):
                return None
            path = None if key in self._open else self._find(key)
        if path is None:
            return self._on(key, lambda log: log.holder(key))
        log = self._read_only(path)
        try:
            return log.holder(key)
        finally:
            log.close()

    # The directory.

    def sessions(
        self, *, app: str | None = None, user: str | None = None, after: SessionKey | None = None, limit: int = 100
    ) -> list[SessionRow]:
        self._need_open()
        wanted = max(0, min(limit, ROWS_PAGE_MAX))
        return self.listing.rows(app=app, user=user, after=after, limit=wanted) if wanted else []

    def keys(self) -> list[SessionKey]:
        """Return the key of every session that can be read."""
        found: list[SessionRow] = []
        while page := self.sessions(after=found[-1].key if found else None, limit=ROWS_PAGE_MAX):
            found += page
        return [row.key for row in found if row.problem is None]

    def path_of(self, key: SessionKey) -> Path:
        """Return the file that holds the session. Raises `SessionNotFound`."""
        with self._lock:
            self._need_open()
            path = self._find(key)
        if path is None:
            raise SessionNotFound(key.id, store=self.url)
        return path

    def delete(self, key: SessionKey) -> None:
        """Empty the bundle in a transaction, so that no other process can append to it, then remove its files.

        Killed in between, it leaves an empty bundle that counts as none; deleting again, or creating, clears it away.
        On a full disk, where a transaction finds no room, the files are removed as they are.
        """
        with self._lock:
            self._need_open()
            path = self._find(key) or self._named(key)
            with making(path):
                try:
                    self._write(key, lambda log: log.delete_rows(key))
                except SessionNotFound:
                    self._clear_away(key, path)
                    raise
                except StoreFull:
                    self._remove_as_it_is(key, path)
                else:
                    self._clear_away(key, path)

    def _remove_as_it_is(self, key: SessionKey, path: Path) -> None:
        """Remove a session where there is no room to empty its bundle first: its database goes first then. Whoever has
        that open to write learns from the next write that it is gone. Raises `SessionBusy`."""
        self._need_nobody_in_a_turn(key)
        self._close_bundle(key)
        lock = OsLock.take(_lock_beside(path))
        if lock is None:
            raise SessionBusy(key.id, {})
        try:
            with os_errors(path):
                remove_database(path)
            self._remove_files(key, path)
        finally:
            lock.release()

    def _need_nobody_in_a_turn(self, key: SessionKey) -> None:
        holder = self.holder(key)
        if holder is not None:
            raise SessionBusy(key.id, holder)

    def _clear_away(self, key: SessionKey, path: Path) -> None:
        """Remove the files of a session whose rows are gone. Never those of one that is in a turn or cannot be read."""
        self._close_bundle(key)
        if not os.path.lexists(path) or self._is_emptied(path):
            self._remove_files(key, path)

    # The trash: what lies where is `bundle_trash.py`'s.

    def trash(self, key: SessionKey, *, trash_id: str, at: float) -> None:
        """Set the session aside inside its bundle, in a transaction, so that no other process can append to it; then
        move the files: what lies beside it, and the database last.

        Killed in between, or where another process reads from it all the time, it is trash in its old place; whoever
        next needs the name moves it. A bundle that cannot be read is only moved, and so is one on a full disk that
        nobody has open; trashing it again makes up for a kill.
        One of a newer version, or that the system does not open at this moment, stays: what is wrong is raised.
        """
        check_trash_id(trash_id)
        with self._lock:
            self._need_open()
            path = self._find(key) or self.listing.unreadable(key) or self._named(key)
            with making(path):
                self._settle(path)
                if self._trash.find(trash_id) is not None:
                    raise InvalidName(f"the trash holds something by the id {trash_id!r} already")
                if not self._set_aside(key, path, trash_id, at=at):
                    trash_id = self._trash.begun(path) or trash_id
                self.streams.let_go(key)
                self._close_bundle(key)
                self._elsewhere.pop(key, None)
                self._trash.put_in(path, trash_id)
                self.listing.changed(path)

    def trashed(self, *, after: str | None = None, limit: int = 100) -> list[TrashedRow]:
        with self._lock:
            self._need_open()
            found = self._trash_paths()
        wanted = [trash_id for trash_id in sorted(found) if after is None or trash_id > after]
        return [self._trash.row(trash_id, found[trash_id]) for trash_id in wanted[: max(0, min(limit, ROWS_PAGE_MAX))]]

    def trashed_row(self, trash_id: str) -> TrashedRow:
        with self._lock:
            self._need_open()
            path = self._trash.find(trash_id) or self._trash_paths().get(trash_id)
            if path is None:
                raise TrashNotFound(trash_id, store=self.url)
            return self._trash.row(trash_id, path)

    def is_trashed(self, key: SessionKey) -> bool:
        """Ask those that are wholly in the trash, and those that were set aside and not moved yet: none of them bears
        a session's name, but for the one whose name was made of this key."""
        with self._lock:
            self._need_open()
            rows = ((path, self._row(path)) for path in {self._named(key), *self.listing.hidden()})
            in_place = [(path, row.key.id) for path, row in rows if row.problem == TRASHED]
            return self._trash.holds(key) or any(self._trash.row(id, path).key == key for path, id in in_place)

    def restore(self, trash_id: str, key: SessionKey) -> None:
        """Move the database back, which is trash in that place too, then what lies beside it, and give it its key last.
        Killed in between, it is in the trash yet, and restoring it again makes up for it."""
        with self._alone_with(trash_id):
            source = self._trash.find(trash_id)
            if source is None:
                if self._trash.take_rest_out(trash_id):
                    return
                raise TrashNotFound(trash_id, store=self.url)
            self._trash.need_known(source)
            row = self._trash.row(trash_id, source)
            # One that cannot be read is known by nothing but its file's name.
            target = self._folder / source.name if row.problem and row.key == key else self._named(key)
            with making(target):
                if self._find(key) is not None:
                    raise SessionExists(key.id)
                self._make_way(key, target)
                self._trash.take_out(source, target, key)
                self.listing.changed(target)

    def purge(self, trash_id: str) -> None:
        with self._alone_with(trash_id):
            source = self._trash.find(trash_id)
            if source is None:
                raise TrashNotFound(trash_id, store=self.url)
            self._trash.purge(source)

    @contextlib.contextmanager
    def _alone_with(self, trash_id: str) -> Iterator[None]:
        """Let nobody else restore or purge it meanwhile, and begin with it wholly in the trash. Raises
        `TrashNotFound`."""
        with self._lock:
            self._need_open()
            if not is_trash_id(trash_id):
                raise TrashNotFound(trash_id, store=self.url)
            with making(self._trash.folder / trash_id):
                if self._trash.find(trash_id) is None:
                    path = self._trash_paths().get(trash_id)
                    if path is not None:
                        with making(path):
                            self._settle(path)
                yield

    def _trash_paths(self) -> dict[str, Path]:
        """Return where each bundle of the trash lies: in its folder, or yet in its old place."""
        rows = ((path, self._row(path)) for path in self.listing.hidden())
        return {row.key.id: path for path, row in rows if row.problem == TRASHED} | self._trash.databases()

    def _set_aside(self, key: SessionKey, path: Path, trash_id: str, *, at: float) -> bool:
        """Set the session aside inside its bundle; return False where it cannot be read, or the disk is full and nobody
        has it open: then it can only be moved. Raises `SessionNotFound` where there is none, and `SessionBusy`."""
        if self._holds(path, key):
            try:
                self._write(key, lambda log: set_aside(log, key, trash_id, at=at, files=None))
                return True
            except StoreDamaged:
                return False  # A listing could read it all the same.
            except StoreFull:
                self._need_nobody_in_a_turn(key)
                self._close_bundle(key)
                if not is_alone(str(path)):
                    raise  # Whoever has it open would go on to write to it.
                return False
        if not os.path.lexists(path) or self._is_emptied(path):
            self._clear_away(key, path)
            raise SessionNotFound(key.id, store=self.url)
        with contextlib.suppress(*UNREADABLE):
            self._need_readable(path)
        if OsLock.is_held(_lock_beside(path)):
            raise SessionBusy(key.id, {})
        return False

    def _settle(self, path: Path) -> None:
        """Move a bundle that was set aside but lies in its old place into the trash. The caller is inside `making`."""
        if not os.path.lexists(path):
            return
        row = self._row(path)
        if row.problem == TRASHED and not self._trash.put_in(path, row.key.id):
            raise StoreLocked(f"{path} is in the trash, but another process reads from it; retry")

    def size_bytes(self) -> int:
        self._need_open()
        return disk_bytes(self._folder)

    def close(self) -> None:
        if self._pid != os.getpid():
            self._is_closed = True  # What is open belongs to the process that this one was forked from.
            return
        with self._lock:
            self._is_closed = True
            self.streams.close()
            for key in list(self._open):
                self._close_bundle(key)
            self.listing.close()
            if self._store_log_open is not None:
                self._store_log_open.close()
                self._store_log_open = None

    # Finding and opening bundles.

    def _store_log(self, make: bool) -> Database | None:
        """Return the store log, a file of its own; it is made when something is first put there."""
        with self._lock:
            self._need_open()
            if self._store_log_open is None:
                path = self._folder / STORE_LOG
                if not path.exists():
                    if not make:
                        return None
                    create_file(path, is_shared=True, durable=self.durability == "power")
                self._store_log_open = Database.open(str(path), vfs=self._vfs)
            return self._store_log_open

    def _begin_store_log(self, put: Callable[[Database], None]) -> bool:
        """Make the store log with its first note in it, and return whether it was not there before."""
        with self._lock:
            self._need_open()
            path = self._folder / STORE_LOG
            if self._store_log_open is not None or os.path.lexists(path):
                return False
            log = Database.in_memory(is_shared=True)
            try:
                put(log)
                return place_database(path, log.image(), durable=self.durability == "power")
            finally:
                log.close()

    def _on(self, key: SessionKey, verb: Callable[[SqliteLog], T]) -> T:
        """Run a verb on the session's bundle. It is opened again where another thread had to close it for want of room,
        and where the bundle was deleted, and perhaps made again, under the open file."""
        for _ in range(OPENINGS_MAX):
            log, is_fresh = self._opened(key)
            try:
                return verb(log)
            except StoreClosed:
                self._need_open()
            except SessionNotFound:
                self._close_bundle(key)
                if is_fresh:
                    raise
            except StoreUnavailable:
                if log.database.is_in_place():
                    raise
                self._close_bundle(key)
        raise StoreUnavailable(f"session {key.id!r}: its bundle is replaced or closed again and again; retry")

    def _write(self, key: SessionKey, verb: Callable[[SqliteLog], T]) -> T:
        """Run a verb that changes what a list says of the session, once the catalogue was told of it."""

        def watched(log: SqliteLog) -> T:
            found = self._open.get(key)
            if found is not None and found.log is log and not found.is_watched:
                self.listing.watch(found.path)
                found.is_watched = True
            began_at = time.monotonic()
            try:
                return verb(log)
            finally:
                if time.monotonic() - began_at > SLOW_S and found is not None:
                    self.listing.stir(found.path)

        return self._on(key, watched)

    def _opened(self, key: SessionKey) -> tuple[SqliteLog, bool]:
        self._need_open()  # Before the lock, which another thread may have held while this process was forked.
        with self._lock:
            self._need_open()
            if key in self._open and not self._open[key].log.database.is_in_place():
                self._close_bundle(key)
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key].log, False
            path = self._find(key)
            if path is None:
                self._need_readable(self._named(key))
                raise SessionNotFound(key.id, store=self.url)
            log = self._log(path)
            self._open[key] = _Open(log, path)
            self._open_by_path[path] = log
            self._close_idle(but=key)
            return log, True

    def _need_readable(self, path: Path) -> None:
        """Raise what is wrong with a bundle, where there is one and it cannot be read."""
        if os.path.lexists(path) and (problem := self._row(path).problem) not in _READABLE:
            if not _is_regular(path):
                raise NotAStore(problem)
            Database.open(str(path), vfs=self._vfs, read_only=True).close()
            raise StoreDamaged(f"{path}: {problem}")

    def _find(self, key: SessionKey) -> Path | None:
        """Return the bundle that holds exactly this session: the file with its generated name, else a search inside."""
        named = self._named(key)
        if self._holds(named, key):
            return named
        if (known := self._elsewhere.get(key)) is not None:
            if self._holds(known, key):
                return known
            del self._elsewhere[key]
        found = self.listing.find(key)
        if found is not None:
            self._elsewhere[key] = found
        return found

    def _holds(self, path: Path, key: SessionKey) -> bool:
        if not path.is_file():
            return False
        row = self._row(path)
        return row.key == key and row.problem is None

    def _named(self, key: SessionKey) -> Path:
        """Return the path of the bundle that this store makes for a session."""
        return self._folder / f"{file_stem(key)}{SUFFIX}"

    def _log(self, path: Path) -> SqliteLog:
        lock = _lock_beside(path)
        return SqliteLog(Database.open(str(path), vfs=self._vfs), durability=self.durability, lock_path=lambda _: lock)

    def _read_only(self, path: Path) -> SqliteLog:
        database = Database.open(str(path), vfs=self._vfs, read_only=True)
        lock = _lock_beside(path)
        return SqliteLog(database, durability="process", lock_path=lambda _: lock)

    def _close_idle(self, *, but: SessionKey) -> None:
        for key, found in list(self._open.items()):
            if len(self._open) <= OPEN_MAX:
                return
            if key != but and self._closed(key, found, found.log.close_idle):
                del self._open[key]
                self._open_by_path.pop(found.path, None)

    def _close_bundle(self, key: SessionKey) -> None:
        with self._lock:
            found = self._open.pop(key, None)
            if found is not None:
                self._open_by_path.pop(found.path, None)
                self._closed(key, found, found.log.close)

    def _closed(self, key: SessionKey, found: _Open, close: Callable[[], T]) -> T:
        """Close a bundle, and tell the catalogue what it is like then if it was written to."""
        if not found.is_watched or not found.log.database.is_in_place():
            return close()  # What it says of another file of that name is of no use.
        with self.listing.closing(found.path, lambda: _row_of(found.log, key)):
            return close()

    def _is_emptied(self, path: Path) -> bool:
        return self._row(path).problem == EMPTIED

    def _remove_files(self, key: SessionKey, path: Path) -> None:
        """Remove a bundle that holds no session, with all that lies beside it. The database goes before its write-ahead
        log, or a kill in between would bring back what the log had taken away. The caller is inside `making`."""
        self.streams.remove(key)
        self.artifacts.remove(key)
        with os_errors(path):
            remove_database(path)
        self._elsewhere.pop(key, None)

    def _need_session(self, key: SessionKey) -> None:
        self._on(key, lambda log: log.require(key))

    def _need_open(self) -> None:
        if self._is_closed:
            raise StoreClosed(f"{self.url} is closed")
        need_own_process(self._pid, self.url)

    def _side_file(self, key: SessionKey, suffix: str) -> Path:
        """Return a side file's path. It goes by the bundle's own name, so that both move together."""
        found = self._open.get(key)
        path = found.path if found else self._elsewhere.get(key, self._named(key))
        return self._folder / f"{path.name.removesuffix(SUFFIX)}{suffix}"

    def _artifact_folders(self) -> list[Path]:
        self._need_open()
        return [path for path in members(self._folder) if path.name.endswith(".artifacts")]

    # Listing rows.

    def _row(self, path: Path) -> SessionRow:
        """Return what is in a bundle, from memory where its files did not change."""
        known = self._rows.get(path)
        row: SessionRow | None = None
        for _ in range(READINGS_MAX):
            now, state = time.time_ns(), state_of(path)
            print_ = state.print if state is not None else ""
            if known is not None and known[0] == print_:
                return known[1]
            # A bundle at rest is read without locks: what somebody wrote to meanwhile has to be read again.
            row, is_settled = self._read_row(path)
            known = (print_, row)
            if not is_settled or state is None:
                break
            if state.is_settled(now):
                self._rows[path] = known
                if len(self._rows) > ROWS_KEPT:
                    self._rows.popitem(last=False)
        assert row is not None, "it was read"
        return row

    def _read_row(self, path: Path) -> tuple[SessionRow, bool]:
        """Return a bundle's row as it is in the file, and whether it holds for as long as that does not change: that
        the system did not open it says nothing of the next time. Takes no lock of the store: whoever looks through the
        catalogue calls this beside whoever opens and closes bundles."""
        unknown = SessionKey(DEFAULT_APP, DEFAULT_USER, path.name.removesuffix(SUFFIX))
        if not _is_regular(path):
            return SessionRow(unknown, 0, 0.0, problem=as_text(f"{path} is no regular file")), True
        try:
            log = self._open_by_path.get(path)
            if log is not None and log.database.is_in_place():
                with contextlib.suppress(StoreClosed):
                    return _row_of(log, unknown), True
            log = self._read_only(path)
            try:
                return _row_of(log, unknown), True
            finally:
                log.close()
        except PlayheadError as error:
            is_settled = isinstance(error, (NewerFormat, *UNREADABLE))
            return SessionRow(unknown, 0, 0.0, problem=str(error)), is_settled


class _BundleText:
    """The text index of a directory: one in each bundle, so that a bundle alone stays searchable."""

    def __init__(self, store: BundleStore) -> None:
        self._store = store

    def indexed_seq(self, key: SessionKey) -> int:
        return self._store._on(key, lambda log: SqliteText(log).indexed_seq(key))

    def add(self, key: SessionKey, rows: Sequence[TextRow], *, up_to: int) -> None:
        self._store._on(key, lambda log: SqliteText(log).add(key, rows, up_to=up_to))

    def match(
        self, expression: str, *, keys: Sequence[SessionKey] | None = None, where: TextFilter, limit: int
    ) -> list[TextMatch]:
        wanted = keys if keys is not None else self._all_keys()
        found: list[TextMatch] = []
        for key in wanted:
            with contextlib.suppress(SessionNotFound):
                found.extend(self._match_one(expression, key, where, limit))
        return sorted(found, key=lambda match: match.score, reverse=True)[:limit]

    def drop(self, key: SessionKey | None = None) -> None:
        for one in [key] if key is not None else self._all_keys():
            self._store._on(one, lambda log: SqliteText(log).drop())

    def _match_one(self, expression: str, key: SessionKey, where: TextFilter, limit: int) -> list[TextMatch]:
        return self._store._on(key, lambda log: SqliteText(log).match(expression, keys=[key], where=where, limit=limit))

    def _all_keys(self) -> list[SessionKey]:
        return self._store.keys()


def _row_of(log: SqliteLog, unknown: SessionKey) -> SessionRow:
    """Return the row of the session in a bundle. unknown: the key of one that does not say its own."""
    with contextlib.suppress(StoreDamaged), log.database.read():
        if (row := log.only_row()) is not None and row.key.app:
            return row
    rows = log.sessions(limit=1)
    if not rows:
        trash = asides(log, limit=1)
        if not trash:
            problem = EMPTIED if log.is_empty() else "it holds rows, but of no session: the file is damaged"
            return SessionRow(unknown, 0, 0.0, problem=problem)
        if not is_trash_id(trash[0].trash_id):
            return SessionRow(unknown, 0, 0.0, problem="it was set aside under what is no trash id")
        return SessionRow(trash_key(trash[0].trash_id), 0, 0.0, problem=TRASHED)
    # The log has no name for one whose key cannot be read.
    return rows[0] if rows[0].key.app else msgspec.structs.replace(rows[0], key=unknown)


def _lock_beside(path: Path) -> Path:
    """Return the file whose lock is held by who is in a turn of the session."""
    return path.with_name(f"{path.name}.lock")


def _is_regular(path: Path) -> bool:
    """Return False for what only has a bundle's name: a folder, a pipe that nobody feeds, a link out of the store."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return True  # Opening it says what is wrong.


def _no_lock(number: int) -> Path:
    raise AssertionError("a bundle that is being made takes no lease")
