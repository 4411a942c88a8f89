"""Importing one source: the head follows a source that has branches, and files come with their session."""

from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import Sessions
from playhead.errors import ImportFailed
from playhead.formats.imported import File, ImportedEvent, ImportedSession, SourcePosition
from playhead.formats.importing import Imported, import_source
from playhead.stores.artifacts import content_name

PATH = Path("conversations.json")


@pytest.fixture
def sessions() -> Sessions:
    """A store in memory."""
    return playhead.open("memory:")


def said(text: str, after: str | None) -> ImportedEvent:
    body: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "content": text}]}
    return ImportedEvent("message", body, text, 1_783_000_000.0, agent="user", turn=text, after=after)


ONE, TWO, OTHER, THREE = said("one", None), said("two", "one"), said("other", "one"), said("three", "two")


def bring_in(sessions: Sessions, *events: ImportedEvent, head: str | None, **fields: Any) -> Imported:
    session = ImportedSession("source.1", 1_783_000_000.0, {"origin": "source"}, list(events), head=head, **fields)
    session.positions = {"source": SourcePosition(1, 1, 1, "")}
    found = import_source(sessions, PATH, lambda known: session, at=1.0, name="source:1")
    assert isinstance(found, Imported)
    return found


def texts(sessions: Sessions) -> list[str]:
    return [message.text for message in sessions.get("source.1").conversation()]


def test_the_head_follows_a_source_that_stands_elsewhere_now(sessions: Sessions) -> None:
    bring_in(sessions, ONE, OTHER, TWO, head="two")
    first = texts(sessions)
    moved = bring_in(sessions, ONE, OTHER, TWO, head="other")

    assert first == ["one", "two"]
    assert moved.added_count == 0
    assert texts(sessions) == ["one", "other"]


def test_new_events_of_a_branch_that_is_not_shown_leave_the_head_where_the_source_stands(sessions: Sessions) -> None:
    bring_in(sessions, ONE, TWO, head="two")
    bring_in(sessions, ONE, OTHER, TWO, head="two")

    assert texts(sessions) == ["one", "two"]
    assert len(sessions.get("source.1").branches()) == 2


def test_the_head_follows_after_an_import_that_was_cut_off(sessions: Sessions) -> None:
    """What was appended before the cut is known; the head stands at its end and the position was not noted."""
    bring_in(sessions, ONE, TWO, head="two")
    sessions.ingest("source.1", [ONE, OTHER], at=1.0)
    bring_in(sessions, ONE, OTHER, TWO, THREE, head="three")

    assert texts(sessions) == ["one", "two", "three"]


def test_a_head_that_a_person_moved_stays(sessions: Sessions) -> None:
    bring_in(sessions, ONE, TWO, head="two")
    sessions.get("source.1").rewind(turn=2)
    bring_in(sessions, ONE, OTHER, TWO, head="other")

    assert texts(sessions) == ["one"]


def test_a_source_without_branches_moves_no_head(sessions: Sessions) -> None:
    bring_in(sessions, ONE, TWO, head=None)
    sessions.get("source.1").rewind(turn=2)
    bring_in(sessions, ONE, TWO, head=None)

    assert texts(sessions) == ["one"]


def test_files_are_kept_and_one_that_cannot_be_read_is_read_again_the_next_time(sessions: Sessions) -> None:
    data = b"\x89PNG"
    name = content_name(data)
    body = {"name": "shot.png", "version": 1, "media_type": "image/png", "size": len(data), "hash": name}
    saved = ImportedEvent("artifact_saved", body, "file", 1_783_000_000.0, after="one")

    def gone() -> bytes:
        raise ImportFailed("the export is gone")

    with pytest.raises(ImportFailed):
        bring_in(sessions, ONE, saved, head="file", files=[File(name, len(data), gone)])
    bring_in(sessions, ONE, saved, head="file", files=[File(name, len(data), lambda: data)])

    assert sessions.get("source.1").artifact("shot.png") == data
    assert len(sessions.get("source.1").path()) == 3


def test_many_sessions_of_one_file_have_a_position_each(sessions: Sessions) -> None:
    seen = []
    for name in ("file#1", "file#2", "file#1"):
        session = ImportedSession(name, 1.0, {}, [said("one", None)])
        session.positions = {name: SourcePosition(1, 1, 1, "")}

        def read(known: dict[str, SourcePosition], session: ImportedSession = session) -> ImportedSession:
            seen.append(list(known))
            return session

        import_source(sessions, PATH, read, at=1.0, name=name)

    assert seen == [[], [], ["file#1"]]


def test_what_is_kept_of_a_source_does_not_grow_with_the_number_of_its_imports(tmp_path: Path) -> None:
    """A watched source is imported at every line, and what a reader carries on may be hundreds of kilobytes."""
    place = tmp_path / "sessions"
    sizes = []
    with playhead.open(f"bundles:{place}") as sessions:
        for number in range(60):
            session = ImportedSession("source.1", 1.0, {}, [said(str(number), None)])
            session.positions = {"source": SourcePosition(1, 1, 1, "", {"ids": [f"{number}-" * 3000] * 10})}
            import_source(sessions, PATH, lambda known, session=session: session, at=1.0, name="source:1")  # type: ignore[misc]
            sizes.append((place / "_store.playhead").stat().st_size)

    assert sizes[0] > 0
    assert sizes[-1] < 5 * sizes[3]
