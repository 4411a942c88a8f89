"""Promise 5: disk grows linearly with the history, snapshots hold positions, and text is stored once."""

from __future__ import annotations

import apsw
import pytest

from playhead.session import Session, Sessions
from tests.promises.long_sessions import lengthen, turn
from tests.promises.places import Place

SNAPSHOT_BYTES_PER_TURN_MAX = 600
TURNS = 400


def test_an_event_costs_as_many_bytes_after_20_000_events_as_after_2_000(place: Place) -> None:
    sizes = {}
    for event_count in (2_000, 20_000):
        with place.open() as sessions:
            lengthen(_session(sessions), event_count)
            sessions.search("nothing of the kind")
        with place.open() as sessions:
            sizes[_session(sessions).seq] = place.database("s1").stat().st_size
    (short, short_bytes), (long, long_bytes) = sizes.items()

    assert long >= 20_000 and short < 2_100
    assert abs(long_bytes / long - short_bytes / short) <= 0.1 * short_bytes / short


def test_a_turns_snapshot_is_small_on_average_however_long_the_session(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        averages = []
        for number in range(1, TURNS + 1):
            session.append_all(list(turn(number)))
            session._live.save_snapshot()
            if number in (TURNS // 4, TURNS):
                averages.append(_snapshot_bytes(place) / number)

    assert averages[-1] <= SNAPSHOT_BYTES_PER_TURN_MAX
    assert averages[1] <= averages[0] * 1.2


@pytest.mark.parametrize("shape", ["branches", "sub-agents", "state"])
def test_a_turns_snapshot_is_small_for_sessions_of_other_shapes(place: Place, shape: str) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        for number in range(1, TURNS + 1):
            with session.turn(f"Turn {number}") as one:
                if shape == "sub-agents":
                    with one.subagent("researcher", "Look.") as run:
                        run.say("Found it.")
                if shape == "state":
                    one.set_state({f"key-{number % 20}": number})
                one.say("Done.")
            if shape == "branches" and number % 3 == 0:
                session.rewind(turn=-1)
        snapshot_count = session.verify().snapshot_count
    average = _snapshot_bytes(place) / snapshot_count

    assert snapshot_count >= TURNS
    assert average <= SNAPSHOT_BYTES_PER_TURN_MAX


def test_text_is_stored_once(place: Place) -> None:
    marker = "a sentence that stands nowhere else 93751"
    with place.open() as sessions:
        with sessions.create("s1") as session:
            with session.turn(marker) as one:
                one.stream("As you ")
                one.stream("said.")
            session.rewind(turn=1)
            with session.turn("Something else") as one:
                one.say("Done.")
        found = sessions.search("sentence that stands").hits
        with place.open() as others:
            others.list()
    content = b"".join(path.read_bytes() for path in place.folder.rglob("*") if path.is_file())

    assert [hit.session for hit in found] == ["s1"]
    # Once in the event; once more in the listing row, whose preview it is.
    assert content.count(marker.encode()) <= 2


def _session(sessions: Sessions) -> Session:
    return sessions.get("s1") if sessions.list().total else sessions.create("s1")


def _snapshot_bytes(place: Place) -> int:
    """Return what all snapshots of the only session take, in bytes of their documents and keys."""
    db = apsw.Connection(str(place.database("s1")), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(db.execute("SELECT sum(length(document) + 16) FROM snapshots").get)
    finally:
        db.close()
