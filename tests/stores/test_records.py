"""Logs that come over from elsewhere, where a process dies, or another one is in the way."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import SessionExists, SessionNotFound, StoreUnavailable
from playhead.model.ids import session_key
from playhead.stores import oslock
from playhead.stores.base import Record
from playhead.stores.sqlite import bundles
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.shared import SharedStore
from playhead.testing.records_suite import source_records
from playhead.testing.store_harness import begun

KEY = session_key("flaky")


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
    assert sorted(path.name for path in folder.iterdir()) == ["flaky.playhead"]


@pytest.mark.parametrize("end", [0, 5])
def test_a_bundle_that_was_not_built_to_its_end_leaves_nothing(store: BundleStore, folder: Path, end: int) -> None:
    def torn() -> Iterator[Record]:
        yield from source_records()[:end]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put_records(KEY, torn(), expected_seq=0, artifacts=[b"chart"])

    assert list(folder.iterdir()) == []


def test_what_a_killed_process_had_built_is_built_anew(store: BundleStore, folder: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (folder / f".flaky.playhead.new{suffix}").write_bytes(b"half of a database")
    listed = store.sessions()
    tip = store.put_records(KEY, source_records(), expected_seq=0)

    assert listed == []
    assert store.tip(KEY) == tip
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_a_bundle_that_was_placed_meanwhile_stays(store: BundleStore, folder: Path) -> None:
    def placing() -> Iterator[Record]:
        yield from source_records()
        begun(BundleStore(folder), KEY, count=2)

    with pytest.raises(SessionExists):
        store.put_records(KEY, placing(), expected_seq=0)

    assert store.tip(KEY).seq == 2
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "rename", lambda *arguments, **options: False)
    with pytest.raises(SessionExists):
        store.put_records(KEY, source_records(), expected_seq=0)

    assert list(folder.iterdir()) == []


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


def test_a_bundle_that_is_replaced_while_records_come_is_not_mistaken_for_the_other(
    store: BundleStore, folder: Path
) -> None:
    records = source_records()
    store.put_records(KEY, records[:5], expected_seq=0)

    def replaced() -> Iterator[Record]:
        yield from records[5:]
        (folder / "flaky.playhead").rename(folder / "elsewhere")
        BundleStore(folder).put_records(KEY, records[:5], expected_seq=0)

    with pytest.raises(StoreUnavailable, match="replaced"):
        store.put_records(KEY, replaced(), expected_seq=5)

    assert BundleStore(folder).tip(KEY).seq == 5


def test_a_store_reads_its_own_log_while_it_copies_it(tmp_path: Path, store: BundleStore) -> None:
    """A copy within one store reads and writes in turns, in one file inside the very transaction that it reads in."""
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
