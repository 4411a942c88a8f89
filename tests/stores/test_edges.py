"""What the embedded stores do where the system, or another process, is in the way."""

import errno
import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from playhead.errors import (
    InvalidName,
    NotAStore,
    SessionExists,
    StoreClosed,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from playhead.model.event import Draft
from playhead.model.ids import session_key
from playhead.stores import files, named_queries, oslock
from playhead.stores.migrate import migrate
from playhead.stores.open import open_store
from playhead.stores.oslock import OsLock, making, need_own_process
from playhead.stores.sqlite import bundles, connect, log
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.connect import PACKAGE, Database, create_file, translated
from playhead.stores.sqlite.index import SqliteText
from playhead.stores.sqlite.shared import SharedStore

KEY = session_key("s")
STARTED = Draft("session_started", {"app": "default", "user": "default"}, "e1", 1.0)


@pytest.fixture
def shared(tmp_path: Path) -> SharedStore:
    store = SharedStore(tmp_path / "sessions.db")
    store.create(KEY, [STARTED])
    return store


@pytest.fixture
def folder(tmp_path: Path) -> BundleStore:
    store = BundleStore(tmp_path / "sessions")
    store.create(KEY, [STARTED])
    return store


def test_where_there_are_no_nameless_files_the_content_is_still_placed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "HAS_NAMELESS", False)
    store = BundleStore(tmp_path / "sessions", durability="power")
    store.create(KEY, [STARTED])
    ref = store.artifacts.put(KEY, b"bytes")

    assert store.artifacts.get(KEY, ref.hash) == b"bytes"
    assert [path.name for path in tmp_path.rglob("*.new")] == []


def test_an_artifact_that_cannot_be_placed_leaves_nothing_behind(
    folder: BundleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(files, "HAS_NAMELESS", False)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StoreReadOnly, match="read-only"):
        folder.artifacts.put(KEY, b"bytes")

    assert folder.artifacts.hashes(KEY) == []
    assert [path.name for path in tmp_path.rglob("*.new")] == []


def test_a_new_file_is_brought_up_to_date_by_every_migration(tmp_path: Path) -> None:
    applied: list[int] = []
    migrate("a file", PACKAGE, found=0, apply=lambda version, sql: applied.append(version))
    file = tmp_path / "old.db"
    old = apsw.Connection(str(file))
    old.execute(f"PRAGMA application_id={connect.APPLICATION_ID}")
    old.close()
    database = Database.open(str(file))
    tables = database.connection.execute("SELECT count(*) FROM events").fetchall()
    mode = database.connection.pragma("journal_mode")
    database.close()

    assert applied == sorted(applied) != []
    assert tables == [(0,)]
    assert mode == "wal"


def test_a_query_name_that_is_used_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_queries, "read_sql", lambda package, file: "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;")
    with pytest.raises(ValueError, match="used twice"):
        named_queries.named_queries.__wrapped__("package")


@pytest.mark.parametrize("url", ["sqlite:a\0b", "redis://x", "sqlite:", "memory:x"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(InvalidName):
        open_store(url)


def test_an_unknown_durability_is_refused() -> None:
    with pytest.raises(InvalidName, match="durability"):
        open_store("memory:", durability="wishful")  # type: ignore[arg-type]


def test_what_another_process_makes_is_waited_for_and_then_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oslock, "PATIENCE_S", 0.05)
    with making(tmp_path / "x"):
        with pytest.raises(StoreUnavailable, match="another process"):
            with making(tmp_path / "x"):
                pass


def test_a_lock_file_that_is_taken_away_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oslock, "_is_same_file", lambda descriptor, path: False)

    assert OsLock.try_take(tmp_path / "x") is None


def test_a_store_of_another_process_is_closed_to_this_one(shared: SharedStore, folder: BundleStore) -> None:
    with pytest.raises(StoreClosed, match="after fork"):
        need_own_process(os.getpid() + 1, "the store")
    shared.database._pid += 1
    folder._pid += 1
    shared.close()
    folder.close()
    with pytest.raises(StoreClosed):
        shared.tip(KEY)
    with pytest.raises(StoreClosed):
        folder.tip(KEY)


def test_a_bundle_that_another_process_placed_first_is_there_already(
    folder: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "place_file", lambda *arguments, **options: False)
    with pytest.raises(SessionExists):
        folder.create(session_key("other"), [STARTED])


def test_a_bundle_that_is_closed_again_and_again_is_given_up(
    folder: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(log: Any) -> None:
        raise StoreClosed("closed")

    with pytest.raises(StoreUnavailable, match="again and again"):
        folder._on(KEY, closed)


def test_a_file_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    assert create_file(tmp_path / "x.db", is_shared=True, durable=True)
    assert not create_file(tmp_path / "x.db", is_shared=True, durable=True)


def test_every_error_of_the_driver_has_its_meaning() -> None:
    meaning = translated("x.db").meaning
    kinds = {
        apsw.BusyError: StoreLocked,
        apsw.NotADBError: NotAStore,
        apsw.ReadOnlyError: StoreReadOnly,
        apsw.PermissionsError: StoreReadOnly,
        apsw.CantOpenError: StoreUnavailable,
        apsw.IOError: StoreUnavailable,
    }
    mistake = apsw.MisuseError("a mistake of ours")
    with pytest.raises(apsw.MisuseError):
        with translated("x.db"):
            raise mistake

    assert {kind: type(meaning(kind("x"))) for kind in kinds} == kinds
    assert meaning(mistake) is mistake


def test_a_session_that_is_unknown_to_the_index_is_indexed_up_to_nothing(shared: SharedStore) -> None:
    assert SqliteText(shared)._indexed_seq(999) == 0


def test_a_session_that_changes_its_number_again_and_again_gives_no_lease(
    shared: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(key: Any, number: int, lock: OsLock, **options: Any) -> None:
        lock.release()

    monkeypatch.setattr(shared, "_take_lease", moved)
    with pytest.raises(StoreUnavailable, match="again and again"):
        shared.acquire(KEY, at=1.0)


def test_a_machine_without_a_boot_id_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(log, "Path", lambda path: tmp_path / "no boot id")

    assert set(log._host.__wrapped__()) == {"host"}


def test_a_stream_that_is_begun_again_starts_from_nothing(folder: BundleStore) -> None:
    folder.streams.begin(KEY, "m1", {})
    folder.streams.add(KEY, "m1", "text", "first try")
    folder.streams.begin(KEY, "m1", {})
    folder.streams.add(KEY, "m1", "text", "second try")

    assert [left.chunks for left in folder.streams.left(KEY)] == [[("text", "second try")]]
