"""What an importer read is written once, with its branches, and never over what a person did since."""

from typing import Any

import pytest

from playhead.errors import SessionBusy
from playhead.formats.imported import ImportedEvent
from playhead.session import Session, Sessions


def said(role: str, text: str, id: str, *, after: str | None = None, turn: str = "t1") -> ImportedEvent:
    body: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": text}]}
    return ImportedEvent("message", body, id, 1_700_000_000.0, agent=role, turn=turn, after=after)


def texts(session: Session) -> list[str]:
    return [message.text for message in session.conversation()]


FIRST = [said("user", "one", "a"), said("assistant", "two", "b")]
MORE = [said("user", "three", "c", turn="t2"), said("assistant", "four", "d", turn="t2")]


def test_importing_again_adds_nothing(sessions: Sessions) -> None:
    first = sessions.ingest("claude-code.x", FIRST, at=1.0, title="Imported", started={"origin": "claude-code"})
    seq = sessions.get("claude-code.x").seq
    second = sessions.ingest("claude-code.x", FIRST, at=1.0, title="Imported")

    assert (first.added_count, first.known_count, first.is_new) == (2, 0, True)
    assert (second.added_count, second.known_count, second.is_new) == (0, 2, False)
    assert sessions.get("claude-code.x").seq == seq
    assert sessions.get("claude-code.x").title == "Imported"


@pytest.mark.parametrize("events", [FIRST + MORE, MORE], ids=["read again whole", "read from where it stopped"])
def test_what_the_source_gained_is_added_at_the_imported_end(sessions: Sessions, events: list[ImportedEvent]) -> None:
    """P4."""
    sessions.ingest("s", FIRST, at=1.0)
    sessions.ingest("s", events, at=1.0)
    session = sessions.get("s")

    assert texts(session) == ["one", "two", "three", "four"]
    assert session.turn_count == 2
    assert session.verify().problems == ()


def test_what_a_person_continued_locally_stays_where_they_are(sessions: Sessions) -> None:
    sessions.ingest("s", FIRST, at=1.0)
    with sessions.get("s").turn("my own question") as turn:
        turn.say("my own answer")
    local = sessions.get("s").head
    sessions.ingest("s", MORE, at=1.0)
    session = sessions.get("s")

    assert session.head == local
    assert texts(session) == ["one", "two", "my own question", "my own answer"]
    other = next(branch for branch in session.branches() if not branch.is_current)
    session.seek(other.tip_seq)
    assert texts(session) == ["one", "two", "three", "four"]
    assert session.verify().problems == ()


def test_an_edit_in_the_source_is_a_branch(sessions: Sessions) -> None:
    edited = said("user", "three, better", "e", after="b", turn="t3")
    sessions.ingest("s", [*FIRST, *MORE, edited], at=1.0)
    session = sessions.get("s")

    assert texts(session) == ["one", "two", "three, better"]
    assert len(session.branches()) == 2


def test_a_title_and_labels_that_a_person_set_are_left_alone(sessions: Sessions) -> None:
    sessions.ingest("s", FIRST, at=1.0, title="First", labels=["imported"])
    sessions.ingest("s", FIRST, at=1.0, title="Second")
    followed = sessions.get("s").title
    sessions.get("s").rename("Mine")
    sessions.ingest("s", MORE, at=1.0, title="Third", labels=["other"])

    assert followed == "Second"
    assert sessions.get("s").title == "Mine"
    assert sessions.get("s").facts.labels == ("imported",)


def test_an_import_that_was_cut_off_goes_on_where_it_stopped(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.features import ingest

    events = [said("user", f"message {n}", f"id-{n}", turn=f"t{n}") for n in range(40)]
    monkeypatch.setattr(ingest, "BATCH", 7)
    append, calls = sessions.store.append, 0

    def failing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError("the process was killed here")
        return append(*args, **kwargs)

    monkeypatch.setattr(sessions.store, "append", failing)
    with pytest.raises(OSError):
        sessions.ingest("s", events, at=1.0)
    partial = len(texts(sessions.get("s")))
    sessions.ingest("s", events, at=1.0)

    assert partial == 21
    assert texts(sessions.get("s")) == [f"message {n}" for n in range(40)]
    assert sessions.get("s").verify().problems == ()


def test_a_session_that_is_in_use_is_not_imported_into(sessions: Sessions) -> None:
    sessions.ingest("s", FIRST, at=1.0)
    with sessions.get("s").turn("busy"):
        with pytest.raises(SessionBusy):
            sessions.ingest("s", MORE, at=1.0)


def test_an_import_does_not_make_an_old_session_the_one_last_active(sessions: Sessions) -> None:
    sessions.create("today")
    sessions.ingest("imported", FIRST, at=1.0, title="Old", labels=["old"])
    row = sessions.list().items[-1]

    assert row.id == "imported"
    assert row.summary is not None
    assert row.summary.last_active_at == 1_700_000_000.0
    assert sessions.get("@last").id == "today"


def test_what_an_import_notes_for_itself_is_not_found(sessions: Sessions) -> None:
    sessions.ingest("s", FIRST, at=1.0)

    assert sessions.search("imported_to").hits == []
    assert sessions.search("kind:session_changed").hits == []
