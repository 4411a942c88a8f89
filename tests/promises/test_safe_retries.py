"""Event ids make an append idempotent: a retry after a lost acknowledgement writes nothing twice, in any process."""

from __future__ import annotations

import os
import signal

import pytest

import playhead
from playhead.errors import EventConflict
from playhead.model.ids import session_key
from playhead.testing.drafts import draft
from tests.promises.children import Nursery
from tests.promises.line import Line
from tests.promises.places import Place


def test_an_append_whose_acknowledgement_was_lost_is_retried_by_another_process(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        sessions.create("s1").close()
    child = nursery.start("test_safe_retries:append_and_die", url=place.url, id="s1")
    child.hear_until("appending")
    status = child.end()
    with place.open() as sessions:
        session = sessions.get("s1")
        retried = session.append_all([draft("note", n=1), draft("note", n=2)])
        single = session.append("note", {"name": "test"}, id="alone", at=3.0)
        again = session.append("note", {"name": "test"}, id="alone", at=99.0)

        assert status == -signal.SIGKILL
        assert [event.seq for event in retried] == [2, 3]
        assert again == single
        assert [event.id for event in session.events(after=1)] == ["note-1", "note-2", "alone"]
        assert session.verify().ok


def append_and_die(line: Line, *, url: str, id: str) -> None:
    """Append a batch and die before its caller hears of it."""
    session = playhead.open(url).get(id)
    line.say("appending")
    session.append_all([draft("note", n=1), draft("note", n=2)])
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_retry_is_recognised_whatever_happened_since(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        first = session.append("note", {"name": "test", "number": 1}, id="retried", at=5.0)
        with session.turn("Meanwhile.") as turn:
            turn.say("A turn was taken.")
        session.rewind(to=1)
    with place.open() as sessions:
        tip = sessions.store.tip(session_key("s1"))
        again = sessions.store.append(
            session_key("s1"),
            [draft("note", id="retried", at=5.0, body={"name": "test", "number": 1})],
            expected_seq=1,
        )

        assert again == [first]
        assert sessions.store.tip(session_key("s1")) == tip


@pytest.mark.parametrize("what", ["another body", "another kind", "a part of a batch"])
def test_an_id_that_means_something_else_is_a_conflict_and_writes_nothing(what: str, place: Place) -> None:
    with place.open() as sessions:
        sessions.create("s1").append("note", {"name": "test"}, id="taken")
    with place.open() as sessions:
        session = sessions.get("s1")
        before = session.events()
        with pytest.raises(EventConflict) as error:
            if what == "another body":
                session.append("note", {"name": "other"}, id="taken")
            elif what == "another kind":
                session.append("message", {"role": "user", "parts": []}, id="taken")
            else:
                session.append_all([draft("note", id="taken", body={"name": "test"}), draft("note", n=9)])

        assert error.value.event_ids == ("taken",)
        assert session.events() == before
        assert session.append("note", {"name": "next"}).seq == 3
