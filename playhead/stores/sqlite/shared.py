"""`sqlite:FILE`: many sessions in one SQLite file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey
from playhead.stores.artifacts import FileArtifacts
from playhead.stores.base import Durability
from playhead.stores.files import disk_bytes
from playhead.stores.names import file_stem
from playhead.stores.oslock import making
from playhead.stores.sqlite.connect import Database, create_file
from playhead.stores.sqlite.index import SqliteText
from playhead.stores.sqlite.log import SqliteLog
from playhead.stores.sqlite.notes import SqliteNotes
from playhead.stores.streams import FileStreams


class SharedStore(SqliteLog):
    """All sessions in one file; beside it `FILE.streams/`, `FILE.artifacts/` and `FILE.locks/` as they are needed.

    The log is `SqliteLog` itself; this class adds the companions and the removal of a session's files.
    """

    def __init__(self, path: Path, *, durability: Durability = "process", vfs: str | None = None) -> None:
        path = path.resolve()  # Locks and streams go by the file's real name, whatever link leads to it.
        if not path.exists():
            create_file(path, is_shared=True, durable=durability == "power")
        self._path = path
        super().__init__(
            Database.open(str(path), vfs=vfs),
            durability=durability,
            lock_path=lambda number: self._beside("locks") / str(number),
        )
        try:
            self.database.run_script("notes.sql")
        except BaseException:
            self.database.close()
            raise
        self.url = f"sqlite:{path}"
        self.streams = FileStreams(lambda key: self._beside("streams") / f"{file_stem(key)}.stream")
        self.artifacts = FileArtifacts(
            lambda key: self._beside("artifacts") / file_stem(key), need=self.require, durability=durability
        )
        self.notes = SqliteNotes(lambda make: self.database)
        self.text = SqliteText(self)

    def create(self, key: SessionKey, drafts: Sequence[Draft], *, artifacts: Iterable[bytes] = ()) -> list[Event]:
        """Put its artifacts beside, then insert the session in one transaction: it is there whole or not at all."""
        with making(self._mark(key)):
            if self.number_of(key) is None:
                self._remove_files(key)  # What a deletion that was cut off may have left.
                for data in artifacts:
                    self.artifacts.place(key, data)
            return super().create(key, drafts)

    def delete(self, key: SessionKey) -> None:
        """Remove the session's rows in one transaction, then its files. Killed in between, it leaves files of no
        session; deleting again, or creating, clears them away."""
        with making(self._mark(key)):
            try:
                self.delete_rows(key)
            finally:
                if self.number_of(key) is None:
                    self._remove_files(key)

    def size_bytes(self) -> int:
        self.database.need_open()
        return disk_bytes(self._path, Path(f"{self._path}-wal"), self._beside("artifacts"), self._beside("streams"))

    def close(self) -> None:
        self.streams.close()
        super().close()

    def _mark(self, key: SessionKey) -> Path:
        return self._beside("locks") / file_stem(key)

    def _remove_files(self, key: SessionKey) -> None:
        self.streams.remove(key)
        self.artifacts.remove(key)

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}")
