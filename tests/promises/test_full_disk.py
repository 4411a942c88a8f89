"""S1 and S2 on a full disk: `StoreFull`, nothing half-written, and the session goes on once there is room."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import playhead
from playhead.errors import SessionNotFound, StoreFull
from playhead.model.ids import session_key
from playhead.session import Sessions
from playhead.stores.open import open_store
from playhead.testing.disk import FullDisk
from tests.promises.children import Nursery
from tests.promises.line import Line
from tests.promises.places import Place

LONG = "The log says: connection reset by peer. " * 200


class FullFiles:
    """Makes the files that Playhead writes by itself (streams, artifacts, new bundles) run out of room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limit_bytes: int | None = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self._limited)

    def _limited(self, descriptor: int, data: bytes) -> int:
        if self.limit_bytes is None:
            return self._write(descriptor, data)
        if self.limit_bytes == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, bytes(data)[: self.limit_bytes])
        self.limit_bytes -= written
        return written


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> FullFiles:
    return FullFiles(monkeypatch)


@pytest.fixture
def disk() -> Iterator[FullDisk]:
    with FullDisk() as disk:
        yield disk


@pytest.fixture
def sessions(place: Place, disk: FullDisk) -> Iterator[Sessions]:
    with Sessions(open_store(place.url, vfs=disk.name)) as sessions:
        yield sessions


def test_an_append_on_a_full_disk_writes_nothing_and_the_session_goes_on_after(
    sessions: Sessions, disk: FullDisk, place: Place
) -> None:
    session = sessions.create("s1")
    first = session.append("note", {"name": "before"})
    disk.limit_bytes = 0
    with pytest.raises(StoreFull):
        session.append("note", {"name": "lost", "text": LONG}, id="retried")
    with pytest.raises(StoreFull):
        session.rename("No room for this")
    on_full_disk = ([event.id for event in session.events()], session.title, sessions.list().items[0].problem)
    disk.release()
    second = session.append("note", {"name": "lost", "text": LONG}, id="retried")
    third = session.append("note", {"name": "after"})

    assert on_full_disk == ([session.event(1).id, first.id], None, None)
    assert [second.seq, third.seq] == [3, 4]
    assert session.verify().ok
    assert place.integrity("s1") == "ok"


def test_wherever_the_disk_fills_up_in_a_turn_no_event_is_half_written_and_the_turn_goes_on(
    sessions: Sessions, disk: FullDisk, place: Place
) -> None:
    session = sessions.create("s1")
    outcomes = []
    for limit_bytes in range(0, 150_000, 10_000):
        with session.turn(f"A turn with {limit_bytes} bytes left") as turn:
            disk.limit_bytes = limit_bytes
            events = []
            try:
                for number in range(40):
                    events.append(turn.say(f"{number}: {LONG[:500]}"))
            except StoreFull:
                disk.release()
            stored = [event.id for event in session.events(after=events[0].seq - 1 if events else session.seq)]
            events.append(turn.say("There is room again."))
            outcomes.append((stored, [event.id for event in events[:-1]]))
    said = session.conversation()

    assert all(stored == acknowledged for stored, acknowledged in outcomes)
    assert len({len(acknowledged) for _, acknowledged in outcomes}) > 5
    assert [message.text for message in said if message.role == "user"] == [
        f"A turn with {limit_bytes} bytes left" for limit_bytes in range(0, 150_000, 10_000)
    ]
    assert session.verify().ok
    assert place.integrity("s1") == "ok"


def test_a_turn_that_cannot_end_for_want_of_room_is_closed_by_the_next_one(sessions: Sessions, disk: FullDisk) -> None:
    session = sessions.create("s1")
    with pytest.raises(StoreFull):
        with session.turn("Why does test_upload fail?") as turn:
            turn.tool_call("run_tests", {"path": "tests/upload"}, id="call-1")
            disk.limit_bytes = 0
            turn.say(LONG)
    with pytest.raises(StoreFull):
        session.turn("Is there room?")
    disk.release()
    with session.turn("And now?") as turn:
        turn.say("Yes.")
    ended = [event.body["status"] for event in session.events(kinds=["turn_ended"])]

    assert ended == ["interrupted", "completed"]
    assert session.conversation()[-1].text == "Yes."
    assert session.verify().ok


def test_a_snapshot_a_listing_row_and_an_index_that_find_no_room_are_made_up_for_later(
    sessions: Sessions, disk: FullDisk
) -> None:
    """S6."""
    session = sessions.create("s1")
    session.append("message", {"role": "user", "parts": [{"type": "text", "content": LONG}]})
    disk.limit_bytes = 0
    session.close()
    listed_on_full_disk = sessions.list().items[0]
    found_on_full_disk = sessions.search("connection reset")
    disk.release()
    session.close()
    found = sessions.search("connection reset")

    assert listed_on_full_disk.problem is None
    assert found_on_full_disk.problems.keys() == {"s1"}
    assert [hit.session for hit in found.hits] == ["s1"]
    assert found.problems == {}
    assert session.verify().ok
    assert session.verify().snapshot_count == 1


@pytest.mark.parametrize("limit_bytes", [0, 1, 10, 60, 100, 200])
def test_a_stream_on_a_full_disk_keeps_every_acknowledged_chunk_and_goes_on(
    place: Place, files: FullFiles, limit_bytes: int
) -> None:
    with place.open() as sessions:
        turn = sessions.create("s1").turn("Why?")
        kept = _stream_with_a_full_disk(turn, files, limit_bytes)
        left = sessions.store.streams.left(session_key("s1"))
        event = turn.finish_stream()

    assert event is not None
    assert "".join(text for stream in left for _, text in stream.chunks) == kept
    assert event.body["parts"] == [{"type": "text", "content": kept}]


@pytest.mark.parametrize("limit_bytes", [0, 1, 10, 60, 100, 200])
def test_a_stream_that_met_a_full_disk_survives_the_death_of_its_writer(
    place: Place, files: FullFiles, limit_bytes: int
) -> None:
    with place.open() as sessions:
        turn = sessions.create("s1").turn("Why?")
        kept = _stream_with_a_full_disk(turn, files, limit_bytes)
    with place.open() as sessions:
        session = sessions.resume("s1")
        last = session.conversation()[-1]

    assert session.resumed.recovered_text == kept
    assert (last.text, last.interrupted) == (kept, True)


def test_a_finished_stream_whose_record_cannot_be_dropped_stands_in_the_log_once(
    place: Place, files: FullFiles
) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        turn = session.turn("Why?")
        with turn.subagent("researcher", "Look.") as run:
            run.stream("Looking.")
            turn.stream("The network.")
            files.limit_bytes = 0
            event = turn.finish_stream()
            files.limit_bytes = None
        turn.say("That was it.")
    with place.open() as sessions:
        session = sessions.resume("s1")
        texts = [message.text for message in session.conversation()]

    assert event is not None
    assert texts == ["Why?", "The network.That was it."]


def test_an_artifact_on_a_full_disk_is_not_recorded_and_leaves_no_file(place: Place, files: FullFiles) -> None:
    """K7."""
    with place.open() as sessions:
        session = sessions.create("s1")
        session.save_artifact("notes.md", b"# Notes")
        before = _names(place.folder)
        files.limit_bytes = 1_000
        with pytest.raises(StoreFull):
            session.save_artifact("chart.png", bytes(5_000))
        on_full_disk = _names(place.folder)
        files.limit_bytes = None
        session.save_artifact("chart.png", bytes(5_000))

        assert on_full_disk == before
        assert session.artifact("notes.md") == b"# Notes"
        assert session.artifact("chart.png") == bytes(5_000)


def test_a_session_that_finds_no_room_is_not_there_and_leaves_no_file(
    sessions: Sessions, disk: FullDisk, files: FullFiles, place: Place
) -> None:
    sessions.create("first")
    before = _names(place.folder)
    disk.limit_bytes = files.limit_bytes = 3_000
    with pytest.raises(StoreFull):
        sessions.create("second", state={"text": LONG})
    with pytest.raises(SessionNotFound):
        sessions.get("second")
    on_full_disk = _names(place.folder)
    disk.release()
    files.limit_bytes = None
    session = sessions.create("second")

    assert on_full_disk == before
    assert session.verify().ok
    assert [row.id for row in sessions.list(sort="created").items] == ["second", "first"]


def test_a_limit_on_the_size_of_files_is_a_full_disk_too(place: Place, nursery: Nursery) -> None:
    said = nursery.run("test_full_disk:write_under_a_limit", url=place.url)
    with place.open() as sessions:
        session = sessions.get("s1")
        kept = [event.body["number"] for event in session.events(kinds=["note"])]
        verified = session.verify()
        session.append("note", {"name": "after", "number": -1})

    assert said[-1] == ["full", "StoreFull", "StoreFull"]
    assert kept == [number for word, number in said[:-1] if word == "appended"]
    assert len(kept) > 10
    assert verified.ok
    assert place.integrity("s1") == "ok"


def write_under_a_limit(line: Line, *, url: str) -> None:
    """Append until a file may not grow any more, then try an artifact."""
    session = playhead.open(url).create("s1")
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    for number in range(1_000):
        try:
            session.append("note", {"name": "test", "number": number, "text": LONG})
        except playhead.PlayheadError as error:
            line.say("full", type(error).__name__, _error_of(lambda: session.save_artifact("big", bytes(500_000))))
            return
        line.say("appended", number)


def _error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except playhead.PlayheadError as error:
        return type(error).__name__
    return "none"


def _stream_with_a_full_disk(turn: playhead.Turn, files: FullFiles, limit_bytes: int) -> str:
    """Stream chunks while the disk fills up and is given room again; return the text of those that were taken."""
    kept = []
    for number in range(12):
        if number == 4:
            files.limit_bytes = limit_bytes
        try:
            turn.stream(f"chunk {number}, grüße; ")
            kept.append(f"chunk {number}, grüße; ")
        except StoreFull:
            files.limit_bytes = None
    return "".join(kept)


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}
