"""Mending databases: caches dropped, a rebuilt file put in a damaged one's place, what holds nothing removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from playhead.errors import SessionBusy, StoreExists, StoreUnavailable
from playhead.stores.base import Store
from playhead.stores.files import os_errors, sync_directory
from playhead.stores.named_queries import named_queries
from playhead.stores.oslock import OsLock, making
from playhead.stores.sqlite.bundle_trash import SUFFIX
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.connect import PACKAGE, Database, create_file, remove_database
from playhead.stores.sqlite.layout import kept_as
from playhead.stores.sqlite.looking import looked_log
from playhead.stores.sqlite.salvage import SavedNote
from playhead.stores.sqlite.shared import SharedStore


def drop_caches(path: Path) -> None:
    """Drop every snapshot, the text index and the listing rows of a database, in one transaction. Loses nothing."""
    database = Database.open(str(path))
    try:
        with database.write():
            for name in ("drop_all_snapshots", "forget_summaries"):
                database.connection.execute(named_queries(PACKAGE, "mending.sql")[name])
            database.query("drop_text_index")
            database.query("reset_indexed_seq")
    finally:
        database.close()


def replace_bundle(path: Path, write: Callable[[Store], object]) -> Path:
    """Put a new bundle in the place of a damaged one, and return where that is kept.

    write: puts one session into the store that it is given. The new bundle is built in a folder of its own and takes
    the name when it is whole and closed. Raises `SessionBusy` while somebody is in a turn of the session.
    """
    lock = OsLock.take(path.with_name(f"{path.name}.lock"))
    if lock is None:
        raise SessionBusy(path.name.removesuffix(SUFFIX), {})
    try:
        with _workshop(path) as folder:
            with contextlib.closing(BundleStore(folder)) as store:
                write(store)
            built = [one for one in sorted(folder.iterdir()) if one.name.endswith(SUFFIX)]
            assert len(built) == 1, "one session was written"
            return _take_place(built[0], path)
    finally:
        lock.release()


def replace_shared(path: Path, write: Callable[[Store], object]) -> Path:
    """Put a new database in the place of a damaged one that holds many sessions, and return where that is kept.

    Nobody may be in a turn of one of its sessions: that is the caller's to see to.
    """
    with _workshop(path) as folder:
        with contextlib.closing(SharedStore(folder / path.name)) as store:
            write(store)
        return _take_place(folder / path.name, path)


def replace_store_log(path: Path, notes: Sequence[SavedNote]) -> Path:
    """Put a new store log with these notes in the place of a damaged one, and return where that is kept."""
    with _workshop(path) as folder:
        built = folder / path.name
        if not create_file(built, is_shared=True, durable=False):
            raise StoreExists(f"{built} is there already")
        database = Database.open(str(built))
        try:
            put_notes(database, notes)
        finally:
            database.close()
        return _take_place(built, path)


def put_notes(database: Database, notes: Sequence[SavedNote]) -> None:
    """Put notes into a store log as they were, in their order, in one transaction."""
    with database.write():
        for note in notes:
            bindings = {"topic": note.topic, "name": note.name, "id": note.id, "at": note.at, "body": note.body}
            database.query("put_note", bindings)


def put_back(kept: Path, path: Path) -> None:
    """Give a damaged database its name back, where replacing it was cut off before another one took the name."""
    with making(path):
        if os.path.lexists(path):
            raise StoreExists(f"{path} is there")
        with os_errors(path):
            _put_back(kept, path)


def _put_back(kept: Path, path: Path) -> None:
    for suffix in ("-wal", ""):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{kept}{suffix}", f"{path}{suffix}")
    sync_directory(path.parent)


def remove_emptied(path: Path) -> None:
    """Remove a bundle that holds no session and no event. Raises `StoreUnavailable` where it does by now."""
    with making(path):
        with looked_log(path, _no_lock) as log:
            if not log.is_emptied:
                raise StoreUnavailable(f"{path} holds a session by now; it was left as it is")
        with os_errors(path):
            remove_database(path)


@contextlib.contextmanager
def _workshop(path: Path) -> Iterator[Path]:
    """A folder beside a database, in which another one is built; a kill may leave it behind, hidden."""
    with os_errors(path.parent):
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}.", suffix=".new", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _take_place(built: Path, path: Path) -> Path:
    """Give a finished database the name of a damaged one, which is kept under another name with its write-ahead log.

    Killed in between, the damaged one lies under its other name, and nothing under its own: `put_back` mends that.
    """
    with making(path), os_errors(path):
        kept = kept_as(path)
        _sync(built)
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{path}{suffix}", f"{kept}{suffix}")
        for suffix in ("-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        try:
            os.rename(built, path)
        except BaseException:
            _put_back(kept, path)
            raise
        sync_directory(path.parent)
    return kept


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _no_lock(number: int) -> Path:
    raise AssertionError("a database that is only looked into takes no lease")
