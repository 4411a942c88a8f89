"""Logs that come over from elsewhere, where a process dies, or another one is in the way."""

import contextlib
import errno
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from playhead.errors import SessionExists, SessionNotFound, StoreFull, StoreUnavailable
from playhead.model.ids import session_key
from playhead.stores import oslock
from playhead.stores.base import Record, TextFilter
from playhead.stores.names import CATALOGUE
from playhead.stores.open import open_store
from playhead.stores.sqlite import bundles, copying, shared
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.log import STRETCH
from playhead.stores.sqlite.shared import SharedStore
from playhead.testing.drafts import draft, started
from playhead.testing.records_suite import records_of, source_records
from playhead.testing.store_harness import append, begun, messages

KEY = session_key("flaky")
OTHER = session_key("other")
ANY = TextFilter()
LONG = 2 * STRETCH + 7


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(folder: Path) -> BundleStore:
    return BundleStore(folder)


def test_a_new_bundle_is_seen_only_when_it_is_whole(store: BundleStore, folder: Path) -> None:
    records = source_records()
    seen: list[list[str]] = []

    def watched() -> Iterator[Record]:
        for record in records:
            seen.append([path.name for path in folder.glob("*.playhead")])
            yield record

    store.put_records(KEY, watched(), expected_seq=0)

    assert seen == [[]] * len(records)
    assert _names(folder) == ["flaky.playhead"]


@pytest.mark.parametrize("end", [0, 5])
def test_a_bundle_that_was_not_built_to_its_end_leaves_nothing(store: BundleStore, folder: Path, end: int) -> None:
    def torn() -> Iterator[Record]:
        yield from source_records()[:end]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put_records(KEY, torn(), expected_seq=0, artifacts=[b"chart"])

    assert _names(folder) == []


def test_what_a_killed_process_had_built_is_built_anew(store: BundleStore, folder: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (folder / f".flaky.playhead.new{suffix}").write_bytes(b"half of a database")
    listed = store.sessions()
    tip = store.put_records(KEY, source_records(), expected_seq=0)

    assert listed == []
    assert store.tip(KEY) == tip
    assert [name for name in _names(folder) if name.startswith(".")] == []


def test_a_bundle_that_was_placed_meanwhile_stays(store: BundleStore, folder: Path) -> None:
    def placing() -> Iterator[Record]:
        yield from source_records()
        begun(BundleStore(folder), KEY, count=2)

    with pytest.raises(SessionExists):
        store.put_records(KEY, placing(), expected_seq=0)

    assert store.tip(KEY).seq == 2
    assert [name for name in _names(folder) if name.startswith(".")] == []


def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "rename", lambda *arguments, **options: False)
    with pytest.raises(SessionExists):
        store.put_records(KEY, source_records(), expected_seq=0)

    assert _names(folder) == []


def test_two_who_build_the_same_bundle_take_turns(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oslock, "PATIENCE_S", 0.05)

    def nested() -> Iterator[Record]:
        with pytest.raises(StoreUnavailable, match="another process"):
            store.put_records(KEY, source_records(), expected_seq=0)
        yield from source_records()

    store.put_records(KEY, nested(), expected_seq=0)

    assert store.tip(KEY).seq == len(source_records())


def test_a_bundle_that_is_taken_away_while_records_come_takes_none(store: BundleStore, folder: Path) -> None:
    records = source_records()
    store.put_records(KEY, records[:5], expected_seq=0)

    def robbed() -> Iterator[Record]:
        yield from records[5:]
        (folder / "flaky.playhead").rename(folder / "elsewhere")

    with pytest.raises((StoreUnavailable, SessionNotFound)):
        store.put_records(KEY, robbed(), expected_seq=5)

    assert store.sessions() == []


@pytest.mark.parametrize("is_same", [True, False], ids=["the same log", "another log"])
def test_a_bundle_that_is_replaced_while_records_come_gets_them_where_they_follow(
    store: BundleStore, folder: Path, is_same: bool
) -> None:
    records = source_records()
    store.put_records(KEY, records[:5], expected_seq=0)

    def replaced() -> Iterator[Record]:
        yield from records[5:]
        (folder / "flaky.playhead").rename(folder / "elsewhere")
        BundleStore(folder).put_records(KEY, (records if is_same else source_records())[:5], expected_seq=0)

    with contextlib.nullcontext() if is_same else pytest.raises(StoreUnavailable, match="begun anew"):
        store.put_records(KEY, replaced(), expected_seq=5)

    assert BundleStore(folder).tip(KEY).seq == (len(records) if is_same else 5)


def test_a_store_reads_its_own_log_while_it_copies_it(tmp_path: Path, store: BundleStore) -> None:
    """A copy within one store reads and writes in turns."""
    one_file: list[Any] = [SharedStore(tmp_path / "sessions.db"), store]
    for each in one_file:
        each.put_records(KEY, source_records(), expected_seq=0)

        def own(each: Any = each) -> Iterator[Record]:
            after = 0
            while page := each.records(KEY, after=after, limit=2):
                yield from page
                after = page[-1].seq

        copy = session_key("copy")
        each.put_records(copy, own(), expected_seq=0)

        assert each.records(copy) == each.records(KEY)


@pytest.mark.parametrize("start", [0, 5], ids=["a new session", "one that goes on"])
@pytest.mark.parametrize("url", ["memory:", "sqlite:{0}/sessions.db", "bundles:{0}/sessions"])
def test_nobody_waits_while_records_are_read(tmp_path: Path, url: str, start: int) -> None:
    """A source may be slow. Meanwhile another one reads and writes, in this process and, on disk, in another one."""
    store = open_store(url.format(tmp_path))
    others = [store] if url == "memory:" else [store, open_store(url.format(tmp_path))]
    records = records_of([started(), *messages(2, 1_200)])
    begun(store, OTHER)
    if start:
        store.put_records(KEY, records[:start], expected_seq=0)
    done: list[int] = []

    def work() -> None:
        for other in others:
            done.append(append(other, draft(n=10 + len(done)), key=OTHER)[0].seq)
            other.events(KEY if start else OTHER)

    def slow() -> Iterator[Record]:
        yield from records[start:1_100]
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(timeout=3)
        done.append(0)
        yield from records[1_100:]

    tip = store.put_records(KEY, slow(), expected_seq=start)
    for other in others:
        other.close()

    assert done == [*range(2, 2 + len(others)), 0]
    assert tip.seq == len(records)


def test_what_a_killed_process_had_built_in_one_file_is_never_seen_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SharedStore(tmp_path / "sessions.db")

    def torn() -> Iterator[Record]:
        yield from records_of([started(), *messages(2, 1_200)])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shared, "remove", lambda log, key: None)
        with pytest.raises(KeyboardInterrupt):
            store.put_records(KEY, torn(), expected_seq=0)
    left = count_of_rows(store)
    seen = store.sessions(), store.trashed(), store.is_trashed(KEY), store.text.match('"a"', where=ANY, limit=9)
    store.put_records(OTHER, source_records(), expected_seq=0)
    after = count_of_rows(store)
    store.put_records(KEY, source_records(), expected_seq=0)

    assert left == (1, 1_000)
    assert seen == ([], [], False, [])
    assert after == (1, len(source_records()))
    assert [row.key for row in store.sessions()] == [KEY, OTHER]


def test_two_build_in_one_file_and_neither_takes_away_what_the_other_has(tmp_path: Path) -> None:
    store, other = SharedStore(tmp_path / "sessions.db"), SharedStore(tmp_path / "sessions.db")
    records = records_of([started(), *messages(2, 1_200)])

    def nested() -> Iterator[Record]:
        yield from records[:700]
        other.put_records(OTHER, records, expected_seq=0)
        yield from records[700:]

    store.put_records(KEY, nested(), expected_seq=0)
    same = [[record for after in (0, 1_000) for record in store.records(key, after=after)] for key in (KEY, OTHER)]

    assert same == [records, records]


def test_a_session_that_was_begun_while_it_was_built_stays(tmp_path: Path) -> None:
    store = SharedStore(tmp_path / "sessions.db")

    def overtaken() -> Iterator[Record]:
        yield from source_records()
        begun(store, KEY, count=2)

    with pytest.raises(SessionExists):
        store.put_records(KEY, overtaken(), expected_seq=0, artifacts=[b"chart"])

    assert store.tip(KEY).seq == 2
    assert store.artifacts.hashes(KEY) == []
    assert count_of_rows(store) == (1, 2)


@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_a_long_session_is_out_of_sight_at_once_and_goes_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Killed in between, what is left of it is seen by nobody, and goes with the next one that is removed."""
    store, other = SharedStore(tmp_path / "sessions.db"), SharedStore(tmp_path / "sessions.db")
    tip = store.put_records(KEY, records_of([started(), *messages(2, LONG)]), expected_seq=0)
    other.tip(KEY)
    begun(store, OTHER)
    if verb == "purge":
        store.trash(KEY, trash_id="t1", at=1.0)

    def remove_once(log: SharedStore, key: Any) -> None:
        log.remove_stretch(key)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shared, "remove", remove_once)
        with pytest.raises(KeyboardInterrupt):
            store.delete(KEY) if verb == "delete" else store.purge("t1")
    left = count_of_rows(store)
    seen = [row.key for row in store.sessions()], store.trashed()
    with pytest.raises(SessionNotFound):
        other.append(KEY, [draft(n=9)], expected_seq=tip.seq)
    store.delete(OTHER)

    assert left == (2, LONG - STRETCH + 1)
    assert seen == ([OTHER], [])
    assert count_of_rows(store) == (0, 0)


def test_what_goes_on_is_spooled_beyond_what_memory_should_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "SPOOL_BYTES_KEPT", 100)
    store = SharedStore(tmp_path / "sessions.db")
    records = records_of([started(), *messages(2, 1_200)])
    store.put_records(KEY, records[:5], expected_seq=0)
    store.put_records(KEY, iter(records[5:]), expected_seq=5)

    assert store.records(KEY, after=700, limit=500) == records[700:]
    assert [name for name in _names(tmp_path) if name.startswith(".")] == []


def test_a_spool_that_finds_no_room_leaves_the_session_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    store = SharedStore(tmp_path / "sessions.db")
    records = source_records()
    store.put_records(KEY, records[:5], expected_seq=0)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile.SpooledTemporaryFile, "write", full)
        with pytest.raises(StoreFull):
            store.put_records(KEY, records[5:], expected_seq=5, artifacts=[b"chart"])

    assert store.tip(KEY).seq == 5
    assert store.artifacts.hashes(KEY) == []


def test_a_bundle_with_rows_of_no_session_is_damaged_and_not_taken_for_an_emptied_one(
    store: BundleStore, folder: Path
) -> None:
    begun(store, KEY, count=3)
    store.close()
    database = apsw.Connection(str(folder / "flaky.playhead"))
    database.execute("DELETE FROM sessions")
    database.close()
    again = BundleStore(folder)
    (row,) = again.sessions()
    with pytest.raises(SessionExists):
        begun(again, KEY)

    assert row.problem is not None and "of no session" in row.problem


def count_of_rows(store: SharedStore) -> tuple[int, int]:
    """Return how many sessions and events the file holds, seen or not."""
    question = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events)"
    ((sessions, events),) = store.database.connection.execute(question).fetchall()
    return int(sessions), int(events)  # type: ignore[arg-type]


def _names(folder: Path) -> list[str]:
    """Return what lies in a folder, but for the catalogue, which is made whenever somebody asks it."""
    return sorted(path.name for path in folder.iterdir() if path.name != CATALOGUE)
