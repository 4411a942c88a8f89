"""The catalogue of a directory of bundles where what it keeps, or looks at, changes under its hands."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from playhead.errors import StoreClosed, StoreDamaged, StoreFull, StoreUnavailable
from playhead.model.ids import session_key
from playhead.stores.base import SessionRow
from playhead.stores.listing import Wanted
from playhead.stores.sqlite import bundles, catalogue, catalogue_rows
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.catalogue import Catalogue
from playhead.stores.sqlite.catalogue_file import CatalogueFile, path_in
from playhead.stores.sqlite.catalogue_kept import TRIES_MAX, KeptCatalogue
from playhead.stores.sqlite.prints import State, state_of
from playhead.testing.drafts import draft
from playhead.testing.store_harness import append, begun

KEY, OTHER = session_key("s00"), session_key("s01")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def kept(folder: Path) -> Iterator[KeptCatalogue]:
    found = KeptCatalogue(folder)
    yield found
    found.close()


@pytest.fixture
def store(folder: Path) -> Iterator[BundleStore]:
    found = BundleStore(folder)
    begun(found, KEY)
    begun(found, OTHER)
    yield found
    found.close()


def ids(store: BundleStore) -> list[str]:
    store.listing.behind()
    return sorted(row.key.id for row in store.listing.page(Wanted()).rows)


def failing(error: Exception, times: int) -> Callable[[CatalogueFile], bool]:
    """Return a verb that fails so often, and then says whether it ran in memory."""
    left = itertools.count(1)

    def verb(file: CatalogueFile) -> bool:
        if next(left) <= times:
            raise error
        return file.is_in_memory

    return verb


# The file.


def test_one_that_was_closed_under_a_verb_is_asked_again(kept: KeptCatalogue) -> None:
    assert kept.on(failing(StoreClosed("closed"), 1)) is False


def test_one_that_is_damaged_again_and_again_is_kept_in_memory(kept: KeptCatalogue) -> None:
    assert kept.on(failing(StoreDamaged("damaged"), TRIES_MAX)) is True


def test_one_that_was_removed_under_a_verb_is_made_anew(kept: KeptCatalogue, folder: Path) -> None:
    seen: list[CatalogueFile] = []

    def verb(file: CatalogueFile) -> int:
        seen.append(file)
        if len(seen) == 1:
            path_in(folder).unlink()
            raise StoreUnavailable("it was removed")
        return len(seen)

    assert kept.on(verb) == 2
    assert seen[0] is not seen[1] and path_in(folder).exists()


def test_one_that_cannot_even_be_copied_begins_empty_in_memory(
    kept: KeptCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(_: CatalogueFile) -> CatalogueFile:
        raise StoreDamaged("its pages cannot be read")

    monkeypatch.setattr(CatalogueFile, "copied", copied)

    assert kept.on(failing(StoreFull("full"), 1)) is True


def test_where_nobody_completes_it_the_answer_comes_from_memory(kept: KeptCatalogue) -> None:
    looks: list[int] = []

    assert kept.ask(lambda file: file.is_in_memory, look=lambda: looks.append(1)) is True
    assert len(looks) == TRIES_MAX + 1


def test_an_answer_of_a_file_that_was_removed_meanwhile_is_asked_for_again(kept: KeptCatalogue, folder: Path) -> None:
    asked: list[int] = []

    def look() -> None:
        kept.on(lambda file: file.query("set_looks", {"seen_at": 0, "boot": ""}))

    def verb(_: CatalogueFile) -> int:
        asked.append(1)
        if len(asked) == 1:
            path_in(folder).unlink()
        return len(asked)

    assert kept.ask(verb, look=look) == 2


# The bundles.


def test_one_that_goes_while_all_are_compared_is_dropped(store: BundleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ids(store)

    def gone(path: Path) -> State | None:
        if path.name == "s01.playhead":
            path.unlink(missing_ok=True)
        return state_of(path)

    monkeypatch.setattr(catalogue, "state_of", gone)
    done = store.listing.refresh()

    assert (done.looked_at, done.removed) == (1, 1)


def test_names_that_change_all_the_while_are_read_a_few_times(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = itertools.count(1)
    monkeypatch.setattr(Catalogue, "_folder_time", lambda _: next(times))

    assert ids(store) == ["s00", "s01"]


def test_a_page_whose_files_change_all_the_while_says_that_it_is_not_settled(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids(store)
    monkeypatch.setattr(Catalogue, "_looked_at", lambda *_: True)
    page = store.listing.page(Wanted())

    assert not page.is_settled
    assert [row.key.id for row in store.sessions()] == ["s00", "s01"]


def test_a_bundle_that_changes_with_every_look_is_as_of_the_last_one(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    prints = itertools.count(1)

    def changing(path: Path) -> State | None:
        state = state_of(path)
        return msgspec.structs.replace(state, print=str(next(prints))) if state is not None else None

    monkeypatch.setattr(catalogue, "state_of", changing)

    assert [row.key.id for row in store.sessions()] == ["s00", "s01"]


def test_what_is_told_of_a_bundle_that_went_is_let_go(store: BundleStore, folder: Path) -> None:
    store.listing.push(folder / "gone.playhead", lambda: SessionRow(KEY, 1, 1.0))
    store.listing.placed(folder / "gone.playhead", SessionRow(KEY, 1, 1.0))
    store.listing.stir(folder / "gone.playhead")

    assert ids(store) == ["s00", "s01"]


def test_a_write_that_took_long_changes_what_its_bundle_is_like_again(
    store: BundleStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looked during the write saw the write-ahead log as it is now, and the database as it was."""
    append(store, draft(n=2), key=KEY)
    stirred: list[Path] = []
    real = store.listing.stir
    monkeypatch.setattr(store.listing, "stir", stirred.append)
    append(store, draft(n=3), key=KEY)
    quick = list(stirred)
    monkeypatch.setattr(bundles, "SLOW_S", -1.0)
    append(store, draft(n=4), key=KEY)
    store.save_summary(KEY, 4, "{}")
    before = state_of(folder / "s00.playhead")
    time.sleep(0.02)
    real(folder / "s00.playhead")
    after = state_of(folder / "s00.playhead")

    assert quick == []
    assert stirred == [store.path_of(KEY)] * 2
    assert before is not None and after is not None and before.print != after.print


def test_a_copy_that_counts_once_the_other_one_goes_is_found_by_whoever_tells_of_it(
    store: BundleStore, folder: Path
) -> None:
    """Its own name comes first; then the first by name."""
    ids(store)
    (folder / "z.playhead").write_bytes((folder / "s01.playhead").read_bytes())
    problems = {row.key.id: row.problem for row in store.sessions()}
    os.replace(folder / "s00.playhead", folder / "s01.playhead")
    store.listing.changed(folder / "s01.playhead")
    store.listing.changed(folder / "s00.playhead")

    assert problems == {"s00": None, "s01": None, "z": "z.playhead holds the same session as s01.playhead"}
    assert {row.key.id: row.problem for row in store.sessions()} == {"s00": None, "s01": None}


def test_a_row_that_another_process_writes_all_the_while_is_left_to_it(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: CatalogueFile, readings: list[catalogue_rows.Reading], **_: object) -> tuple[bool, list[str]]:
        return True, [reading.name for reading in readings]

    ids(store)
    append(store, draft(n=2), key=KEY)
    monkeypatch.setattr(catalogue, "put_readings", refused)

    assert [row.key.id for row in store.sessions()] == ["s00", "s01"]
    store._close_bundle(KEY)
