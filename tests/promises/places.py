"""The two embedded stores as places on disk: their URLs, and where a session's files lie."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import apsw

import playhead
from playhead.features.live import Clock
from playhead.model.ids import session_key
from playhead.stores.base import Durability, Store
from playhead.stores.open import open_store
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.log import SqliteLog


class Place:
    """A folder of its own in which one store lives, and nothing else."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    @property
    def url(self) -> str:
        raise NotImplementedError

    def database(self, id: str) -> Path:
        """Return the SQLite file that holds the session `id` of the default app and user."""
        raise NotImplementedError

    def lock(self, id: str) -> Path:
        """Return the lock file of the first session of this place, which is `id`."""
        raise NotImplementedError

    def at(self, folder: Path) -> Place:
        """Return the same kind of place elsewhere, for a copy of this one."""
        return type(self)(folder)

    def open(self, *, clock: Clock | None = None) -> playhead.Sessions:
        return playhead.open(self.url, clock=clock) if clock else playhead.open(self.url)

    def store(self, *, durability: Durability = "process", vfs: str | None = None) -> Store:
        return open_store(self.url, durability=durability, vfs=vfs)

    def integrity(self, id: str, *, vfs: str | None = None) -> str:
        """Return `ok`, or what SQLite finds wrong with the file of a session, through this process's one SQLite."""
        db = apsw.Connection(str(self.database(id)), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        try:
            db.set_busy_timeout(10_000)
            return str(db.pragma("integrity_check"))
        finally:
            db.close()


def log_of(store: Store, id: str) -> SqliteLog:
    """Return the log in which a store keeps the session `id`, to look at what the public page does not show."""
    if isinstance(store, SqliteLog):
        return store
    assert isinstance(store, BundleStore), "there are two embedded stores"
    return store._opened(session_key(id))[0]


class Bundles(Place):
    """`bundles:DIR`: one file for each session."""

    name = "bundles"

    @property
    def url(self) -> str:
        return f"bundles:{self.folder}"

    def database(self, id: str) -> Path:
        return self.folder / f"{id}.playhead"

    def lock(self, id: str) -> Path:
        return self.folder / f"{id}.playhead.lock"


class OneFile(Place):
    """`sqlite:FILE`: all sessions in one file."""

    name = "sqlite"

    @property
    def url(self) -> str:
        return f"sqlite:{self.folder / 'sessions.db'}"

    def database(self, id: str) -> Path:
        return self.folder / "sessions.db"

    def lock(self, id: str) -> Path:
        return self.folder / "sessions.db.locks" / "1"
