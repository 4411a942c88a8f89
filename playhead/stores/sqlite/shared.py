"""`sqlite:FILE`: many sessions in one SQLite file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from playhead.errors import PlayheadError, SessionExists, SessionNotFound, StoreLocked, TrashNotFound
from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey
from playhead.stores.artifacts import FileArtifacts
from playhead.stores.base import ROWS_PAGE_MAX, Durability, Record, Tip, TrashedRow
from playhead.stores.files import disk_bytes, members, rename
from playhead.stores.names import building_key, check_trash_id, file_stem, is_trash_id, removing_key, trash_key
from playhead.stores.oslock import making
from playhead.stores.sqlite.aside import Aside, asides, need_aside, note_files, set_aside, take_back, trashed_row
from playhead.stores.sqlite.connect import Database, create_file
from playhead.stores.sqlite.copying import build, go_on, remove, switch
from playhead.stores.sqlite.index import SqliteText
from playhead.stores.sqlite.log import STRETCH, SqliteLog, bounds_of
from playhead.stores.sqlite.notes import SqliteNotes
from playhead.stores.sqlite.shared_listing import SharedListing
from playhead.stores.streams import FileStreams


class SharedStore(SqliteLog):
    """All sessions in one file; beside it `FILE.streams/`, `FILE.artifacts/` and `FILE.locks/` as they are needed.

    The log is `SqliteLog` itself; this class adds the companions and the removal of a session's files.
    """

    def __init__(self, path: Path, *, durability: Durability = "process", vfs: str | None = None) -> None:
        path = path.resolve()  # Locks and streams go by the file's real name, whatever link leads to it.
        if not path.exists():
            create_file(path, is_shared=True, durable=durability == "power", has_rows=True)
        self._path = path
        super().__init__(
            Database.open(str(path), vfs=vfs),
            durability=durability,
            lock_path=lambda number: self._beside("locks") / str(number),
        )
        self.listing = SharedListing(self)
        try:
            self._has_notes = self.database.row("has_notes") == (1,)
            if self.database.is_to_be_written():
                self._make_notes()
            self.listing.begin()
        except BaseException:
            self.database.close()
            raise
        self.url = f"sqlite:{path}"
        self.streams = FileStreams(lambda key: self._files(key)[1])
        self.artifacts = FileArtifacts(
            lambda key: self._files(key)[0], folders=self._artifact_folders, need=self.require, durability=durability
        )
        self.notes = SqliteNotes(self._notes_in)
        self.text = SqliteText(self)

    def create(self, key: SessionKey, drafts: Sequence[Draft], *, artifacts: Iterable[bytes] = ()) -> list[Event]:
        """Put its artifacts beside, then insert the session in one transaction: it is there whole or not at all."""
        with making(self._mark(key)):
            if self.number_of(key) is None:
                self._make_way(key)
                for data in artifacts:
                    self.artifacts.place(key, data)
            return super().create(key, drafts)

    def put_records(
        self, key: SessionKey, records: Iterable[Record], *, expected_seq: int, artifacts: Iterable[bytes] = ()
    ) -> Tip:
        """Build a new session where nobody sees it, put its artifacts beside, and let it be seen last. A kill may leave
        it unseen in the file; whoever builds or removes a session next takes that away."""

        def keep() -> None:
            for data in artifacts:
                self.artifacts.place(key, data)

        if expected_seq != 0:
            return go_on(
                key,
                records,
                expected_seq=expected_seq,
                keep_artifacts=keep,
                folder=self._path.parent,
                on=lambda verb: verb(self),
            )
        built = building_key(key)
        with making(self._mark(built)):
            self._need_free_key(key)
            self._clear_hidden()
            remove(self, built)
            try:
                tip = build(self, built, records, session=key)
                with making(self._mark(key)):
                    self._need_free_key(key)
                    self._make_way(key)
                    keep()
                    switch(self, built, key)
            finally:
                with contextlib.suppress(PlayheadError):
                    remove(self, built)
        return tip

    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        with self.database.write():
            number = self.need_number(key)
            self.database.query("save_summary", {"number": number, "seq": seq, "summary": summary})
            self.listing.follow(key, number, seq, summary)

    def delete(self, key: SessionKey) -> None:
        """Take the session out of sight in one transaction, then remove its files and its rows. Killed in between, it
        leaves files of no session, and rows that nobody sees; deleting again, or creating, clears them away."""
        with making(self._mark(key)):
            try:
                with self.database.write(through_power_loss=self.durability == "power"):
                    number = self.need_number(key)
                    self.need_free(key, number)
                    self._hide(number)
            except SessionNotFound:
                self._make_way(key)
                self._clear_hidden()
                raise
            self.forget(key)
            self._remove_files(key)
            self._clear_hidden()

    def trash(self, key: SessionKey, *, trash_id: str, at: float) -> None:
        """Set the session's row aside, with a note that its files lie under its own name yet; then give them the name
        of the trash id, and take the note away. Killed in between, the next session of this id makes up for it before
        it begins."""
        check_trash_id(trash_id)
        with making(self._mark(key)):
            has_files = self._has_files(key)
            try:
                set_aside(self, key, trash_id, at=at, files=key if has_files else None)
            except SessionNotFound:
                self._make_way(key)
                raise
            self._remove_files(trash_key(trash_id))
            if has_files:
                self._move_aside(key, need_aside(self, trash_id))

    def trashed(self, *, after: str | None = None, limit: int = 100) -> list[TrashedRow]:
        with self.database.read():
            return [trashed_row(self, aside) for aside in asides(self, after=after, limit=limit)]

    def trashed_row(self, trash_id: str) -> TrashedRow:
        self._need_trash_id(trash_id)
        with self.database.read():
            return trashed_row(self, need_aside(self, trash_id))

    def is_trashed(self, key: SessionKey) -> bool:
        return any(aside.key == key for aside in self._asides())

    def restore(self, trash_id: str, key: SessionKey) -> None:
        """Note where its files go, give them the name of the session, and bring its row back last. Killed in between,
        it is in the trash yet; restoring it again, or the next session of this id, makes up for it."""
        with self._alone_with(trash_id):
            aside = self._settled(trash_id)
            with making(self._mark(key)):
                self._need_free_key(key)
                self._make_way(key)
                if self._has_files(trash_key(trash_id)):
                    note_files(self, aside, key)
                    self._move_files(trash_key(trash_id), key)
                take_back(self, aside, key)
        self.listing.take_in(key)

    def purge(self, trash_id: str) -> None:
        """Remove the files, then the rows. Killed in between, it is in the trash without its files, and purging it
        again ends it; or its rows are where nobody sees them, and go with the next session that is built or removed."""
        with self._alone_with(trash_id):
            self._settled(trash_id)
            self._remove_files(trash_key(trash_id))
            with self.database.write(through_power_loss=self.durability == "power"):
                self._hide(need_aside(self, trash_id).number)
            self._clear_hidden()

    def _hide(self, number: int) -> None:
        """Take a session out of sight for good; one that is small is removed at once. The caller is in a
        transaction."""
        tip = self.database.row("tip", bounds_of(number))
        if tip is None or tip[0] <= STRETCH:
            self.remove_rows(number)
            return
        self.unindex(number)
        self.database.query("drop_snapshots", bounds_of(number))
        self.database.query("hide", {"number": number, "id": removing_key(number).id})

    def _clear_hidden(self) -> None:
        """Remove what was taken out of sight, or was not built to its end, unless somebody is at it."""
        for (id,) in self.database.query("list_hidden", {"limit": ROWS_PAGE_MAX}):
            hidden = SessionKey("", "", id)
            with contextlib.suppress(StoreLocked), making(self._mark(hidden), patience_s=0.0):
                remove(self, hidden)

    def _need_free_key(self, key: SessionKey) -> None:
        if self.number_of(key) is not None:
            raise SessionExists(key.id)

    def size_bytes(self) -> int:
        self.database.need_open()
        return disk_bytes(self._path, Path(f"{self._path}-wal"), self._beside("artifacts"), self._beside("streams"))

    def close(self) -> None:
        self.streams.close()
        super().close()

    def _notes_in(self, make: bool) -> Database | None:
        """Return the database once it has the tables of the notes, which a bundle lacks until it is opened to write."""
        if not self._has_notes and make:
            self._make_notes()
        return self.database if self._has_notes else None

    def _make_notes(self) -> None:
        if not self._has_notes:
            with self.database.write():
                self.database.run_script("notes.sql")
            self._has_notes = True

    def _mark(self, key: SessionKey) -> Path:
        return self._beside("locks") / file_stem(key)

    @contextlib.contextmanager
    def _alone_with(self, trash_id: str) -> Iterator[None]:
        """Let nobody else restore or purge it meanwhile. Raises `TrashNotFound`."""
        self._need_trash_id(trash_id)
        with making(self._mark(trash_key(trash_id))):
            yield

    def _need_trash_id(self, trash_id: str) -> None:
        if not is_trash_id(trash_id):
            raise TrashNotFound(trash_id, store=self.url)

    def _asides(self) -> Iterator[Aside]:
        after: str | None = None
        while page := asides(self, after=after):
            yield from page
            after = page[-1].trash_id

    def _settled(self, trash_id: str) -> Aside:
        """Return what is in the trash under this id, once all its files lie under the name of it."""
        aside = need_aside(self, trash_id)
        if aside.files is not None:
            with making(self._mark(aside.files)):
                if self.number_of(aside.files) is None:
                    self._make_way(aside.files)
        return need_aside(self, trash_id)

    def _make_way(self, key: SessionKey) -> None:
        """Take away what lies under the name of a session that is not there: the files of one that was not wholly moved
        into the trash, or out of it, go there; what is left is of a deletion that was cut off. The caller is inside
        `making`."""
        if not self._has_files(key):
            return
        for aside in self._asides():
            if aside.files == key:
                self._move_aside(key, aside)
        self._remove_files(key)

    def _move_aside(self, key: SessionKey, aside: Aside) -> None:
        self._move_files(key, trash_key(aside.trash_id))
        note_files(self, aside, None)

    def _move_files(self, source: SessionKey, target: SessionKey) -> None:
        self.streams.let_go(source)
        is_durable = self.durability == "power"
        for one, other in zip(self._files(source), self._files(target), strict=True):
            rename(one, other, durable=is_durable)

    def _has_files(self, key: SessionKey) -> bool:
        return any(os.path.lexists(path) for path in self._files(key))

    def _files(self, key: SessionKey) -> tuple[Path, Path]:
        stem = file_stem(key)
        return self._beside("artifacts") / stem, self._beside("streams") / f"{stem}.stream"

    def _artifact_folders(self) -> list[Path]:
        """Return the folder of each session that has artifacts, but for those in the trash."""
        self.database.need_open()
        trashed = {file_stem(trash_key(aside.trash_id)) for aside in self._asides()}
        return [folder for folder in members(self._beside("artifacts")) if folder.name not in trashed]

    def _remove_files(self, key: SessionKey) -> None:
        self.streams.remove(key)
        self.artifacts.remove(key)

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}")
