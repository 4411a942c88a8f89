"""The trash on disk: where it lies, what comes of a cut-off move, and what strangers' files may say of it."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from playhead.errors import (
    NewerFormat,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreDamaged,
    StoreUnavailable,
    TrashNotFound,
)
from playhead.model.ids import session_key
from playhead.stores.base import Store
from playhead.stores.names import CATALOGUE, trash_key
from playhead.stores.open import open_store
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite import bundle_trash, bundles, shared
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.connect import Database, remove_database
from playhead.stores.sqlite.shared import SharedStore
from playhead.testing.drafts import FIRST_AT, draft
from playhead.testing.store_harness import append, begun

KEY = session_key("flaky")
OTHER = session_key("other")
JUNK = b"this is no database" * 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(folder: Path) -> BundleStore:
    return BundleStore(folder)


def files(folder: Path) -> list[str]:
    """Return the files of a folder, but for those that SQLite and locks leave while a store is open."""
    passing = ("-wal", "-shm", ".lock", ".making")
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != CATALOGUE)
    found = (path for path in files if not path.name.endswith(passing))
    return sorted(str(path.relative_to(folder)) for path in found)


class CutOff(Exception):
    """What stands for a kill at one step."""


def cut_off(at: int) -> Callable[..., Any]:
    """Return a `rename` that fails at the n-th file that is there."""
    done = 0

    def rename(source: Path, target: Path, **options: Any) -> bool:
        nonlocal done
        if not source.exists():
            return False
        done += 1
        if done == at:
            raise CutOff
        target.parent.mkdir(exist_ok=True)
        source.rename(target)
        return True

    return rename


def filled(store: Store) -> str:
    begun(store, KEY, count=3)
    store.streams.begin(KEY, "m1", {"at": FIRST_AT})
    store.streams.add(KEY, "m1", "text", "half an answ")
    return store.artifacts.put(KEY, b"chart").hash


def test_all_of_a_session_lies_in_a_folder_of_its_own(store: BundleStore, folder: Path) -> None:
    ref = filled(store)
    before = files(folder)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    after = files(folder)
    store.restore("t1", KEY)

    assert after == [f".trash/t1/flaky.artifacts/{ref}", ".trash/t1/flaky.playhead", ".trash/t1/flaky.stream"]
    assert files(folder) == before
    assert (folder / ".trash").stat().st_mode & 0o777 == 0o700


def test_no_reader_of_the_directory_sees_the_trash(store: BundleStore, folder: Path) -> None:
    filled(store)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)

    assert BundleStore(folder).sessions() == []
    assert [path.name for path in folder.glob("*.playhead")] == []
    assert store.size_bytes() > 0


@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_trashing_that_was_cut_off_is_trash_and_is_made_up_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, durability: Any
) -> None:
    store = BundleStore(folder, durability=durability)
    ref = filled(store)
    with monkeypatch.context() as patch:
        patch.setattr(bundle_trash, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.trash(KEY, trash_id="t1", at=FIRST_AT)
    again = BundleStore(folder, durability=durability)
    seen = [row.trash_id for row in again.trashed()], again.sessions()
    with pytest.raises(SessionNotFound):
        again.append(KEY, [draft(n=9)], expected_seq=3)
    begun(again, KEY)
    again.restore("t1", OTHER)

    assert seen == (["t1"], [])
    assert again.tip(KEY).seq == 1
    assert again.artifacts.hashes(KEY) == []
    assert again.artifacts.get(OTHER, ref) == b"chart"
    assert [left.chunks for left in again.streams.left(OTHER)] == [[("text", "half an answ")]]


@pytest.mark.parametrize("target", [KEY, OTHER], ids=["its own id", "another id"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_restoring_that_was_cut_off_is_made_up_for(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, target: Any
) -> None:
    ref = filled(store)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    with monkeypatch.context() as patch:
        patch.setattr(bundle_trash, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.restore("t1", target)
    seen = [row.trash_id for row in store.trashed()], store.sessions()
    if step == 3:
        begun(store, target)
        store.delete(target)
    store.restore("t1", target)

    assert seen == (["t1"], [])
    assert store.tip(target).seq == 3
    assert store.artifacts.get(target, ref) == b"chart"
    assert len(store.streams.left(target)) == 1


@contextlib.contextmanager
def another_process_has_it_open(folder: Path) -> Iterator[None]:
    """Let another process append an event to `KEY`, and keep its bundle open until the block ends."""
    code = """
import sys
from pathlib import Path
from playhead.model.ids import session_key
from playhead.stores.sqlite.bundles import BundleStore
from playhead.testing.drafts import draft
from playhead.testing.store_harness import append
store = BundleStore(Path(sys.argv[1]))
append(store, draft(n=4), key=session_key(sys.argv[2]))
print("open", flush=True)
sys.stdin.readline()
store.close()
"""
    command = [sys.executable, "-c", code, str(folder), KEY.id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield
        finally:
            process.stdin.write("close\n")
            process.stdin.close()
            assert process.wait() == 0


@pytest.mark.parametrize("durability", ["process", "power"])
def test_who_had_it_open_before_takes_nothing_of_it_along(folder: Path, durability: Any) -> None:
    """K23. As it closes, SQLite takes away the write-ahead log under the name of its own: here, that of a newer one."""
    store = BundleStore(folder, durability=durability)
    ref = filled(store)
    with another_process_has_it_open(folder):
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.restore("t1", KEY)
        append(store, draft(n=5), key=KEY)
        seen = files(folder)
        store.close()
    again = BundleStore(folder, durability=durability)

    assert [event.seq for event in again.events(KEY)] == [1, 2, 3, 4, 5]
    assert again.artifacts.get(KEY, ref) == b"chart"
    assert again.trashed() == []
    assert not [name for name in seen if name.endswith(".new") or ".trash" in name]


def test_who_had_another_one_of_its_name_open_takes_nothing_of_it_along(folder: Path) -> None:
    store = BundleStore(folder)
    begun(store, KEY, count=3)
    with another_process_has_it_open(folder):
        store.delete(KEY)
        begun(store, KEY, count=3)
        append(store, draft(n=4), key=KEY)
        store.close()

    assert [event.seq for event in BundleStore(folder).events(KEY)] == [1, 2, 3, 4]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_restoring_by_copy_that_was_cut_off_is_made_up_for(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    other = BundleStore(folder)
    ref = filled(store)
    append(other, draft(n=4), key=KEY)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    with monkeypatch.context() as patch:
        patch.setattr(bundle_trash, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.restore("t1", KEY)
    seen = [row.trash_id for row in store.trashed()], store.sessions()
    store.restore("t1", KEY)
    other.close()

    assert seen == (["t1"], [])
    assert store.tip(KEY).seq == 4
    assert store.artifacts.get(KEY, ref) == b"chart"
    assert len(store.streams.left(KEY)) == 1


def test_a_restoring_that_ends_between_copy_and_removal_keeps_both(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = BundleStore(folder)
    begun(store, KEY, count=3)
    append(other, draft(n=4), key=KEY)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)

    def cut(path: Path) -> None:
        if ".trash" in str(path):
            raise CutOff
        remove_database(path)

    with monkeypatch.context() as patch:
        patch.setattr("playhead.stores.sqlite.bundle_trash.remove_database", cut)
        with pytest.raises(CutOff):
            store.restore("t1", KEY)
    seen = [row.trash_id for row in store.trashed()], store.sessions()
    store.restore("t1", KEY)
    other.close()

    assert seen == (["t1"], [])
    assert store.tip(KEY).seq == 4
    assert [row.trash_id for row in store.trashed()] == ["t1x"]


@pytest.mark.parametrize("step", [1, 2])
def test_in_one_file_a_move_that_was_cut_off_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Trashed and cut off; then restored as another and cut off; then again, with sessions of both ids in between."""
    store = SharedStore(tmp_path / "sessions.db", durability="power")
    ref = filled(store)
    with monkeypatch.context() as patch:
        patch.setattr(shared, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.trash(KEY, trash_id="t1", at=FIRST_AT)
    begun(store, KEY)
    mixed = store.artifacts.hashes(KEY), store.streams.left(KEY)
    with monkeypatch.context() as patch:
        patch.setattr(shared, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.restore("t1", OTHER)
    begun(store, OTHER)
    mixed_again = store.artifacts.hashes(OTHER), store.streams.left(OTHER)
    store.restore("t1", session_key("third"))

    assert mixed == mixed_again == ([], [])
    assert store.artifacts.get(session_key("third"), ref) == b"chart"
    assert len(store.streams.left(session_key("third"))) == 1


def test_in_one_file_whoever_restores_makes_up_for_a_cut_off_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SharedStore(tmp_path / "sessions.db")
    ref = filled(store)
    with monkeypatch.context() as patch:
        patch.setattr(shared, "rename", cut_off(1))
        with pytest.raises(CutOff):
            store.trash(KEY, trash_id="t1", at=FIRST_AT)
    with pytest.raises(SessionNotFound):
        store.delete(KEY)
    store.restore("t1", KEY)

    assert store.artifacts.get(KEY, ref) == b"chart"


def test_a_purge_that_was_cut_off_is_purged_again(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(Exception, match="no"):
            store.purge("t1")
    still = [row.trash_id for row in store.trashed()]
    store.purge("t1")

    assert still == ["t1"]
    assert files(folder) == []


def test_what_cannot_be_read_is_trashed_restored_and_purged(store: BundleStore, folder: Path) -> None:
    begun(store, OTHER)
    (folder / "flaky.playhead").write_bytes(JUNK)
    (folder / "flaky.artifacts").mkdir()
    (folder / "flaky.artifacts" / "x").write_bytes(b"x")
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    (row,) = store.trashed()
    listed = [one.key for one in store.sessions()]
    begun(store, KEY)
    with pytest.raises(SessionExists):
        store.restore("t1", KEY)
    store.delete(KEY)
    store.restore("t1", KEY)
    content = (folder / "flaky.playhead").read_bytes(), (folder / "flaky.artifacts" / "x").read_bytes()
    problems = [one.key for one in store.sessions() if one.problem]
    store.trash(KEY, trash_id="t2", at=FIRST_AT)
    store.purge("t2")

    assert (row.trash_id, row.key, row.seq) == ("t1", KEY, 0)
    assert row.problem is not None and row.at > FIRST_AT
    assert listed == [OTHER]
    assert content == (JUNK, b"x")
    assert problems == [KEY]
    assert files(folder) == ["other.playhead"]


def test_an_unreadable_bundle_of_any_name_is_trashed_by_what_the_list_calls_it(
    store: BundleStore, folder: Path
) -> None:
    (folder / "Flaky Test.playhead").write_bytes(JUNK)
    (row,) = store.sessions()
    store.trash(row.key, trash_id="t1", at=FIRST_AT)
    left = store.sessions()
    store.restore("t1", row.key)

    assert left == []
    assert files(folder) == ["Flaky Test.playhead"]


@pytest.mark.parametrize("step", [1, 2])
def test_the_move_of_an_unreadable_bundle_is_made_up_for(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    (folder / "flaky.playhead").write_bytes(JUNK)
    (folder / "flaky.stream").write_bytes(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(bundle_trash, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.trash(KEY, trash_id="t1", at=FIRST_AT)
    store.trash(KEY, trash_id="t2", at=FIRST_AT)
    (row,) = store.trashed()
    in_trash = files(folder / ".trash" / row.trash_id)
    with monkeypatch.context() as patch:
        patch.setattr(bundle_trash, "rename", cut_off(step))
        with pytest.raises(CutOff):
            store.restore(row.trash_id, KEY)
    store.restore(row.trash_id, KEY)

    assert in_trash == ["flaky.playhead", "flaky.stream"]
    assert files(folder) == ["flaky.playhead", "flaky.stream"]


def test_an_unreadable_bundle_whose_lock_is_held_stays(store: BundleStore, folder: Path) -> None:
    (folder / "flaky.playhead").write_bytes(JUNK)
    lock = OsLock.take(folder / "flaky.playhead.lock")
    assert lock is not None
    with pytest.raises(SessionBusy):
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
    lock.release()

    assert files(folder) == ["flaky.playhead"]


def test_a_bundle_that_only_a_list_could_read_is_moved_as_it_is(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*arguments: Any, **options: Any) -> None:
        raise StoreDamaged("damaged")

    begun(store, KEY, count=3)
    with monkeypatch.context() as patch:
        patch.setattr(bundles, "set_aside", damaged)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
    (row,) = store.trashed()
    store.restore("t1", KEY)

    assert (row.key, row.seq, row.problem) == (KEY, 3, None)
    assert store.tip(KEY).seq == 3


def test_a_bundle_that_somebody_reads_from_is_trash_in_its_place(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.stores.sqlite.connect.BUSY_TIMEOUT_MS", 20)
    begun(store, KEY, count=3)
    stranger = apsw.Connection(str(folder / "flaky.playhead"))
    stranger.execute("BEGIN")
    stranger.execute("SELECT count(*) FROM events").fetchall()
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    seen = [row.trash_id for row in store.trashed()], store.sessions(), files(folder)
    told = store.trashed_row("t1").key, store.is_trashed(KEY), store.is_trashed(OTHER)
    with pytest.raises(StoreUnavailable, match="reads"):
        begun(store, KEY)
    with pytest.raises(StoreUnavailable, match="reads"):
        store.purge("t1")
    stranger.close()
    begun(store, KEY)

    assert seen == (["t1"], [], ["flaky.playhead"])
    assert told == (KEY, True, False)
    assert files(folder) == [".trash/t1/flaky.playhead", "flaky.playhead"]
    assert store.tip(KEY).seq == 1


def test_a_bundle_that_was_copied_out_by_hand_is_no_second_trashing(store: BundleStore, folder: Path) -> None:
    begun(store, KEY, count=3)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    shutil.copy(folder / ".trash" / "t1" / "flaky.playhead", folder / "flaky.playhead")
    listed = [row.trash_id for row in store.trashed()], store.sessions()
    begun(store, KEY)
    store.restore("t1", OTHER)

    assert listed == (["t1"], [])
    assert (store.tip(KEY).seq, store.tip(OTHER).seq) == (1, 3)
    assert [row.trash_id for row in store.trashed()] == ["t1x"]


def test_a_bundle_under_another_name_comes_back_under_its_own(store: BundleStore, folder: Path) -> None:
    begun(store, KEY, count=3)
    store.close()
    os.rename(folder / "flaky.playhead", folder / "Copied here.playhead")
    again = BundleStore(folder)
    again.trash(KEY, trash_id="t1", at=FIRST_AT)
    again.restore("t1", KEY)
    append(again, draft(n=9), key=KEY)

    assert files(folder) == ["flaky.playhead"]
    assert again.tip(KEY).seq == 4


def test_what_is_no_trashing_in_the_trash_is_left_alone(store: BundleStore, folder: Path) -> None:
    begun(store, KEY)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    for name in ("No Id", "t2", "t3"):
        (folder / ".trash" / name).mkdir()
    (folder / ".trash" / "t3" / "notes.txt").write_bytes(b"mine")
    (folder / ".trash" / "t4").write_bytes(b"a file")
    os.symlink(folder / ".trash" / "t1", folder / ".trash" / "t5")
    for trash_id in ("t2", "t3", "t4", "t6"):
        with pytest.raises(TrashNotFound):
            store.restore(trash_id, KEY)
        with pytest.raises(TrashNotFound):
            store.purge(trash_id)

    assert [row.trash_id for row in store.trashed()] == ["t1"]
    assert (folder / ".trash" / "t3" / "notes.txt").read_bytes() == b"mine"


@pytest.mark.parametrize("url", ["bundles:{0}/sessions", "sqlite:{0}/sessions.db"])
@pytest.mark.parametrize(
    "holder", [None, "", "{}", "[]", '{"trashed":[1,2,3,4]}', '{"trashed":["a"]}', b"\xff", "\xff" * 9, "[" * 5_000]
)
def test_a_row_that_does_not_say_what_it_was_is_a_problem_and_comes_back(tmp_path: Path, url: str, holder: Any) -> None:
    store = open_store(url.format(tmp_path))
    begun(store, KEY, count=3)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    store.close()
    (file,) = [path for path in tmp_path.rglob("*") if path.suffix in (".playhead", ".db")]
    database = apsw.Connection(str(file))
    database.execute("UPDATE sessions SET holder = ?", (holder,))
    database.close()
    again = open_store(url.format(tmp_path))
    (row,) = again.trashed()
    again.restore("t1", OTHER)

    assert (row.trash_id, row.key, row.seq) == ("t1", trash_key("t1"), 3)
    assert row.problem is not None
    assert again.tip(OTHER).seq == 3
    again.close()


def test_a_row_under_what_is_no_trash_id_is_listed_as_a_problem(store: BundleStore, folder: Path) -> None:
    begun(store, KEY)
    store.close()
    database = apsw.Connection(str(folder / "flaky.playhead"))
    database.execute("UPDATE sessions SET app = '', user = '', id = '../../x'")
    database.close()
    again = BundleStore(folder)
    (row,) = again.sessions()
    with pytest.raises(SessionExists):
        begun(again, KEY)

    assert row.problem is not None and "no trash id" in row.problem
    assert again.trashed() == []


def test_a_damaged_end_of_a_log_is_a_problem_in_the_trash(tmp_path: Path) -> None:
    store = SharedStore(tmp_path / "sessions.db")
    begun(store, KEY, count=2)
    store.trash(KEY, trash_id="t1", at=FIRST_AT)
    store.database.connection.execute("INSERT INTO permits VALUES ('test'); DELETE FROM events; DELETE FROM permits")
    (row,) = store.trashed()
    store.purge("t1")

    assert row.problem is not None and "no events" in row.problem
    assert store.trashed() == []


def crashed(folder: Path, statement: str) -> None:
    """Write to the bundle as a process that dies there: its write-ahead log is not folded into the file."""
    code = "import os, sys, apsw\none = apsw.Connection(sys.argv[1])\none.execute(sys.argv[2])\nos._exit(0)\n"
    subprocess.run([sys.executable, "-c", code, str(folder / "flaky.playhead"), statement], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*.playhead*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_bundle_of_a_newer_version_is_left_where_it_is(store: BundleStore, folder: Path) -> None:
    """A newer process may be at work in it, and what it says to others this one does not know."""
    begun(store, KEY, count=3)
    store.close()
    crashed(folder, "PRAGMA user_version = 99; INSERT INTO permits VALUES ('a newer one')")
    before = contents(folder)
    again = BundleStore(folder)
    with pytest.raises(NewerFormat):
        again.trash(KEY, trash_id="t1", at=FIRST_AT)

    assert contents(folder) == before
    assert f"{KEY.id}.playhead-wal" in before


def test_a_bundle_that_cannot_be_opened_at_this_moment_is_not_taken_for_an_unreadable_one(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise StoreUnavailable("too many open files")

    begun(store, KEY, count=3)
    store.close()
    again = BundleStore(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "open", refuse)
        with pytest.raises(StoreUnavailable, match="too many"):
            again.trash(KEY, trash_id="t1", at=FIRST_AT)
    before = files(folder)
    again.trash(KEY, trash_id="t1", at=FIRST_AT)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "open", refuse)
        with pytest.raises(StoreUnavailable, match="too many"):
            again.restore("t1", KEY)
    still = files(folder)
    again.restore("t1", KEY)

    assert before == ["flaky.playhead"]
    assert still == [".trash/t1/flaky.playhead"]
    assert again.tip(KEY).seq == 3


def test_a_session_is_there_again_once_its_bundle_can_be_opened(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise StoreUnavailable("too many open files")

    begun(store, KEY, count=3)
    store.close()
    again = BundleStore(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "open", refuse)
        (row,) = again.sessions()
        with pytest.raises(StoreUnavailable, match="too many"):
            again.tip(KEY)

    assert row.problem is not None and "too many" in row.problem
    assert again.tip(KEY).seq == 3
    assert [one.problem for one in again.sessions()] == [None]


@pytest.mark.parametrize("has_links", [True, False], ids=["hard links", "no hard links"])
@pytest.mark.parametrize("step", range(1, 15))
def test_a_database_is_never_torn_from_what_was_not_folded_into_it(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, has_links: bool
) -> None:
    """Killed at each step of the way in, and then at each step of the way out."""
    begun(store, KEY, count=3)
    store.close()
    crashed(folder, "CREATE TRIGGER theirs AFTER INSERT ON events BEGIN SELECT 1; END")
    before = contents(folder)
    again = BundleStore(folder)
    if not has_links:
        monkeypatch.setattr(os, "link", refused_link)
    with monkeypatch.context() as patch, contextlib.suppress(CutOff):
        kill_at(patch, step)
        again.trash(KEY, trash_id="t1", at=FIRST_AT)
    seen_in = whole_databases(folder)
    again = BundleStore(folder)
    if not again.trashed():
        again.trash(KEY, trash_id="t1", at=FIRST_AT)
    in_trash = {name.rpartition("/")[2]: content for name, content in contents(folder / ".trash").items()}
    with monkeypatch.context() as patch, contextlib.suppress(CutOff):
        kill_at(patch, step)
        again.restore("t1", KEY)
    seen_out = whole_databases(folder)
    with contextlib.suppress(TrashNotFound):
        BundleStore(folder).restore("t1", KEY)

    assert set(before) == {"flaky.playhead", "flaky.playhead-wal"}
    assert seen_in >= 1
    assert seen_out >= 1
    assert in_trash == before
    assert contents(folder) == before


def refused_link(*arguments: Any, **options: Any) -> None:
    raise OSError(errno.EOPNOTSUPP, "no hard links here")


def kill_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Let the n-th call that changes a name be the last one."""
    done = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def one(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            if ".playhead" in str(arguments[0]) and not str(arguments[0]).endswith((".making", ".lock")):
                done += 1
                if done > step:
                    raise CutOff
            return call(*arguments, **options)

        return one

    for name in ("link", "rename", "unlink", "replace"):
        patch.setattr(os, name, counted(getattr(os, name)))


def whole_databases(folder: Path) -> int:
    """Return how many databases lie somewhere together with what was not folded into them."""
    return sum(1 for path in folder.rglob("*.playhead") if os.path.lexists(f"{path}-wal"))
