"""A store on a full disk is read as ever, says what is wrong, and gives room back: removing needs none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import playhead
from playhead.errors import SessionBusy, SessionNotFound, StoreFull, TrashNotFound
from playhead.features.doctor.examining import examine
from playhead.features.statistics import statistics
from playhead.stores.sqlite.backup import check_file, databases
from tests.promises.hindrances import full_disk
from tests.promises.places import Bundles, Place


@pytest.fixture
def filled(place: Place) -> Place:
    """A store with three sessions, closed."""
    with place.open() as sessions:
        for number in range(3):
            with sessions.create(f"s{number}", title=f"Session {number}") as session, session.turn("Why?") as turn:
                turn.say("Because the connection is reset.")
        sessions.search("connection")
    return place


@pytest.fixture
def bundles(tmp_path: Path) -> Place:
    place = Bundles(tmp_path / "store")
    with place.open() as sessions:
        for number in range(3):
            with sessions.create(f"s{number}", title=f"Session {number}") as session, session.turn("Why?") as turn:
                turn.say("Because the connection is reset.")
            session.save_artifact("plot.png", bytes(5_000))
    return place


def _names(place: Place) -> set[str]:
    return {str(path.relative_to(place.folder)) for path in place.folder.rglob("*")}


def test_a_full_disk_loses_no_session_from_lists_and_leaves_no_litter(filled: Place) -> None:
    """S12."""
    before = _names(filled)
    with full_disk():
        with filled.open() as sessions:
            session = sessions.get("s1")
            with pytest.raises(StoreFull):
                session.append("note", {"name": "test"})
            said = session.conversation()[-1].text
            listed = [(row.id, row.problem) for row in sessions.list(sort="title").items]
            found = sessions.search("connection")
            counted = statistics(sessions.store)
            verified = sessions.verify("s1")
    after = _names(filled)

    assert said == "Because the connection is reset."
    assert listed == [("s0", None), ("s1", None), ("s2", None)]
    assert {hit.session for hit in found.hits} == {"s0", "s1", "s2"}
    assert (counted.total.session_count, counted.unreadable_count) == (3, 0)
    assert verified.ok
    assert after == before


def test_what_a_program_left_beside_a_file_on_a_full_disk_hides_no_session(filled: Place) -> None:
    paths = databases(filled.url)
    for path in paths:
        Path(f"{path}-wal").write_bytes(b"")
        Path(f"{path}-shm").write_bytes(b"\0\0\0")
    with full_disk():
        with filled.open() as sessions:
            listed = [(row.id, row.problem) for row in sessions.list(sort="title").items]
        problems = [check_file(path) for path in paths]
        faults = examine(filled.url, deep=True, now=0.0).faults
    with filled.open() as sessions:
        sessions.get("s1").append("note", {"name": "after"})
        verified = sessions.verify("s1")

    assert listed == [("s0", None), ("s1", None), ("s2", None)]
    assert problems == [[]] * len(paths)
    assert [one.kind for one in faults if one.kind not in ("disk", "permissions")] == []
    assert verified.ok


def test_what_stands_in_a_write_ahead_log_alone_is_read_on_a_full_disk(filled: Place, tmp_path: Path) -> None:
    with filled.open() as sessions:
        sessions.get("s1").append("note", {"name": "last"})
        shutil.copytree(filled.folder, tmp_path / "kept", ignore=shutil.ignore_patterns("*-shm"))
    kept = type(filled)(tmp_path / "kept")
    for path in (tmp_path / "kept").rglob("*-wal"):
        path.with_name(f"{path.name.removesuffix('-wal')}-shm").write_bytes(b"\0\0\0")
    with full_disk():
        with kept.open() as sessions:
            listed = [(row.id, row.problem) for row in sessions.list(sort="title").items]
            last = sessions.get("s1").events()[-1]
    with kept.open() as sessions:
        event = sessions.get("s1").append("note", {"name": "after"})

    assert listed == [("s0", None), ("s1", None), ("s2", None)]
    assert last.body == {"name": "last"}
    assert event.seq == last.seq + 1


def test_a_session_that_was_opened_on_a_full_disk_is_written_to_once_there_is_room(filled: Place) -> None:
    with filled.open() as sessions:
        with full_disk():
            session = sessions.get("s1")
            with pytest.raises(StoreFull):
                session.turn("Is there room?")
        with session.turn("And now?") as turn:
            turn.say("Yes.")

        assert session.conversation()[-1].text == "Yes."
        assert session.verify().ok


def test_a_session_is_removed_for_good_on_a_full_disk(bundles: Place) -> None:
    """S12."""
    with full_disk(), bundles.open() as sessions:
        failure = _error_of(lambda: sessions.delete("s1"))
        listed = [row.id for row in sessions.list(sort="title").items]
        left = [name for name in _names(bundles) if "s1" in name]
    with bundles.open() as sessions:
        with sessions.create("s1") as session:
            session.append("note", {"name": "anew"})
        again = sessions.verify("s1")

    assert isinstance(failure, StoreFull) and "is removed" in str(failure)
    assert listed == ["s0", "s2"]
    assert left == []
    assert again.ok


def test_a_removal_that_makes_room_is_noted_after_it(bundles: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with bundles.open() as sessions:
        put, notes = sessions.store.notes.put, sessions.store.notes
        refused: list[object] = []

        def put_once_there_is_room(*arguments: object, **named: object) -> None:
            if not refused:
                refused.append(arguments)
                raise StoreFull("no space left")
            put(*arguments, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(notes, "put", put_once_there_is_room)
        sessions.delete("s1")
        trash_id = sessions.trash("s2")
        refused.clear()
        sessions.purge(trash_id)

        assert sessions.was_removed("s1") and sessions.was_removed("s2")
        assert [row.id for row in sessions.list().items] == ["s0"]


def test_a_session_goes_to_the_trash_on_a_full_disk_and_comes_back_under_any_id(bundles: Place) -> None:
    with full_disk(), bundles.open() as sessions:
        trash_ids = [sessions.trash("s1"), sessions.trash("s2")]
        trashed = {(row.key.id, row.title, row.problem) for row in sessions.trashed()}
        listed = [row.id for row in sessions.list().items]
        is_removed = sessions.was_removed("s1")
    with bundles.open() as sessions:
        sessions.restore(trash_ids[0])
        sessions.restore(trash_ids[1], id="another")
        back = sessions.get("s1")
        other = sessions.get("another")

        assert trashed == {("s1", "Session 1", None), ("s2", "Session 2", None)}
        assert listed == ["s0"]
        assert is_removed
        assert back.verify().ok and other.verify().ok
        assert back.artifact("plot.png") == other.artifact("plot.png") == bytes(5_000)
        assert _error_of(lambda: sessions.get("s2")) is not None


def test_the_trash_is_emptied_on_a_full_disk(bundles: Place) -> None:
    with bundles.open() as sessions:
        trash_id = sessions.trash("s1")
    with full_disk(), bundles.open() as sessions:
        failure = _error_of(lambda: sessions.purge(trash_id))
        again = _error_of(lambda: sessions.purge(trash_id))
        trashed = sessions.trashed()
        left = [name for name in _names(bundles) if "s1" in name]

    assert isinstance(failure, StoreFull)
    assert isinstance(again, TrashNotFound)
    assert trashed == ()
    assert left == []


def test_a_session_that_somebody_is_in_a_turn_of_stays_on_a_full_disk(bundles: Place) -> None:
    with bundles.open() as writer:
        session = writer.get("s1")
        with session.turn("Why?") as turn:
            with full_disk(), bundles.open() as sessions:
                errors = [_error_of(lambda: sessions.delete("s1")), _error_of(lambda: sessions.trash("s1"))]
            turn.say("Still here.")

        assert [type(error) for error in errors] == [SessionBusy, SessionBusy]
        assert session.verify().ok


def test_whoever_has_a_session_open_that_goes_on_a_full_disk_learns_of_it(bundles: Place) -> None:
    with bundles.open() as writer:
        session = writer.get("s1")
        session.append("note", {"name": "before"})
        with full_disk(), bundles.open() as sessions:
            refused = _error_of(lambda: sessions.trash("s1"))
            is_there = [row.id for row in sessions.list(sort="title").items] == ["s0", "s1", "s2"]
            _error_of(lambda: sessions.delete("s1"))
        after = _error_of(lambda: session.append("note", {"name": "after"}))

    assert isinstance(refused, StoreFull) and is_there
    assert isinstance(after, SessionNotFound)


def _error_of(call: Callable[[], object]) -> playhead.PlayheadError | None:
    try:
        call()
    except playhead.PlayheadError as error:
        return error
    return None
