"""Small promises of the embedded stores' own tools: what they do when something is in the way, or not there."""

import errno
import os
from pathlib import Path

import pytest

import playhead
from playhead.errors import SessionBusy, SessionExists, SessionNotFound, StoreReadOnly, StoreUnavailable
from playhead.model.event import Draft
from playhead.model.ids import session_key
from playhead.stores.files import rename, second_name
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite import aside, copying
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.layout import lying_in
from playhead.stores.sqlite.mending import replace_bundle
from playhead.stores.sqlite.pages import rows_in
from playhead.stores.sqlite.shared import SharedStore
from playhead.stores.sqlite.shell import SqlShell

KEY, OTHER = session_key("s"), session_key("other")
STARTED = Draft("session_started", {"app": "default", "user": "default"}, "e1", 1.0)


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    store = SharedStore(tmp_path / "sessions.db")
    for key in (KEY, OTHER):
        store.create(key, [STARTED])
    return store


def test_a_shell_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        SqlShell(tmp_path / "nothing.playhead", print)


def test_the_file_of_a_session_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    store = BundleStore(tmp_path / "sessions")
    store.create(KEY, [STARTED])
    with pytest.raises(SessionNotFound):
        store.path_of(OTHER)

    assert store.path_of(KEY) == (tmp_path / "sessions" / "s.playhead").resolve()


def test_a_key_that_is_taken_is_given_to_no_other_session(shared: SharedStore) -> None:
    shared.trash(KEY, trash_id="trash0001", at=2.0)
    (put_there,) = aside.asides(shared)
    with pytest.raises(SessionExists):
        aside.take_back(shared, put_there, OTHER)
    with pytest.raises(SessionExists):
        copying.switch(shared, OTHER, OTHER)

    assert [row.trash_id for row in shared.trashed()] == ["trash0001"]
    assert shared.tip(OTHER).seq == 1


def test_a_damaged_bundle_that_somebody_is_in_a_turn_of_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.playhead"
    path.write_bytes(b"no database")
    lock = OsLock.take(tmp_path / "s.playhead.lock")
    assert lock is not None
    try:
        with pytest.raises(SessionBusy):
            replace_bundle(path, lambda store: store.create(KEY, [STARTED]))
        kept = path.read_bytes()
    finally:
        lock.release()

    assert kept == b"no database"


@pytest.mark.parametrize("durable", [False, True])
def test_where_there_are_no_hard_links_a_second_name_is_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"content")
    target.write_bytes(b"old")
    was_given = second_name(source, target, durable=durable)
    none_there = second_name(tmp_path / "nothing", tmp_path / "elsewhere", durable=durable)

    assert (was_given, none_there) == (True, False)
    assert (source.read_bytes(), target.read_bytes()) == (b"content", b"content")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_name_that_is_taken_and_a_file_that_is_not_there_are_not_renamed(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")
    moved = [rename(one, other, durable=True), rename(tmp_path / "nothing", tmp_path / "new", durable=False)]

    assert moved == [False, False]
    assert rename(one, tmp_path / "folder" / "one", durable=True)
    assert (tmp_path / "folder" / "one").read_bytes() == b"1"


def test_a_write_does_not_begin_in_the_middle_of_a_read(tmp_path: Path) -> None:
    place = tmp_path / "sessions.db"
    with playhead.open(f"sqlite:{place}") as sessions:
        sessions.create("s").close()
    store = SharedStore(place)
    database = store.database
    database._is_refused = True  # As it is after a file could only be opened to be read.
    with database.read():
        with pytest.raises((StoreUnavailable, StoreReadOnly)):
            with database.write():
                raise AssertionError("it was let in")

    assert not database.is_to_be_written()


def test_what_lies_in_the_trash_and_beside_a_store_is_told_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    with playhead.open(f"bundles:{folder}") as sessions:
        for id in ("s", "gone"):
            sessions.create(id).close()
        trash_id = sessions.trash("gone")
    (folder / ".trash" / "a file").write_text("not of the trash")
    (folder / ".trash" / trash_id / "notes.txt").write_text("nor this")
    (folder / "letter.txt").write_text("nor this")
    found = {lying.path.name: lying.role for lying in lying_in(f"bundles:{folder}")}

    assert found["s.playhead"] == "database"
    assert found["gone.playhead"] == "trashed"
    assert found["letter.txt"] == "other"
    assert "a file" not in found and "notes.txt" not in found


def test_pages_without_a_database_hold_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    found = []
    for content in (b"", b"SQLite format 3\0", b"\0" * 8192):
        path.write_bytes(content)
        found += list(rows_in(path))

    assert found == []
