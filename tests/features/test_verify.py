"""`verify` names every kind of damage that a stranger can do to a session's file, and raises nothing but our errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from playhead.errors import NewerFormat, NotAStore, PlayheadError, SessionNotFound, StoreDamaged
from playhead.features.verify import Verified, verify
from playhead.stores.base import Store
from tests.conftest import PROJECT
from tests.promises.places import Bundles, OneFile, Place

CHANGED = "does not match its hash: it, or the order, was changed"
ANY_VALUE_ANYWHERE = (
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'events'",
    "PRAGMA writable_schema = RESET",
)
"""Takes the column's constraints away, so that NULL can be put where none belongs."""


@pytest.fixture(params=[Bundles, OneFile], ids=["bundles", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A store that holds one session `s`, closed.

    Its events: 1 start, 2 title, 3 to 7 a turn (5 says something, 6 sets state), 8 to 11 a turn (9 asks, 10 says
    something), 12 title, 13 the head moved to 7, 14 to 17 a turn (16 says something). Snapshots are at 7, 11 and
    17; the last two build on the first.
    """
    kind: type[Place] = request.param
    place = kind(tmp_path / "store")
    with place.open() as sessions:
        with sessions.create("s", title="Flaky test") as session:
            with session.turn("Why does test_upload fail?") as turn:
                turn.say("It times out.")
                turn.set_state({"runs": 1})
            with session.turn("And then?") as turn:
                turn.say("Then it retries.")
            session.rename("Flaky upload test")
            session.rewind(turn=-1)
            with session.turn("And what then?") as turn:
                turn.say("Then it gives up.")
    return place


def damage(place: Place, *statements: str, how: str = "as it is") -> None:
    """Let a process of its own run SQL on the session's file."""
    command = [sys.executable, "-m", "tests.features.damage", str(place.database("s")), how, *statements]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def verified(place: Place) -> Verified:
    with place.open() as sessions:
        return sessions.verify("s")


def event(seq: int) -> str:
    """Return the condition for one event: the session's number is 1 in either store."""
    return f"row = {(1 << 32) + seq}"


def later_than(seq: int) -> str:
    return f"row > {(1 << 32) + seq}"


CHANGED_BODY = f"UPDATE events SET body = json_set(body, '$.parts[0].content', 'It is fine.') WHERE {event(10)}"
CHANGED_TIME = f"UPDATE events SET at = at + 3600 WHERE {event(10)}"
CHANGED_NAME = f"UPDATE events SET agent = 'user' WHERE {event(10)}"
CHANGED_PARENT = f"UPDATE events SET parent = 4 WHERE {event(10)}"
SWAPPED = (
    f"UPDATE events SET row = 1 WHERE {event(9)}",
    f"UPDATE events SET {event(9)} WHERE {event(10)}",
    f"UPDATE events SET {event(10)} WHERE row = 1",
)
MISSING = f"DELETE FROM events WHERE {event(10)}"
DOUBLE_ID = f"UPDATE events SET id = (SELECT id FROM events WHERE {event(4)}) WHERE {event(10)}"
FACT_ON_A_PATH = f"UPDATE events SET fact = NULL WHERE {event(12)}"
FACT_OF_ANOTHER_MARK = f"UPDATE events SET fact = 7 WHERE {event(12)}"
MESSAGE_AS_A_FACT = f"UPDATE events SET fact = 1 WHERE {event(10)}"
HEAD_ON_A_FACT = (
    f"UPDATE events SET parent = 12, body = json_set(body, '$.to', (SELECT id FROM events WHERE {event(12)})) "
    f"WHERE {event(13)}"
)
HEAD_ELSEWHERE = f"UPDATE events SET parent = 5 WHERE {event(13)}"
NO_JSON = f"UPDATE events SET body = 'It is fine.' WHERE {event(5)}"
NO_OBJECT = f"UPDATE events SET body = '[]' WHERE {event(12)}"
NO_TEXT = f"UPDATE events SET body = CAST(x'7bff7d' AS TEXT) WHERE {event(12)}"
NO_HASH = f"UPDATE events SET hash = NULL WHERE {event(12)}"
NO_LAST_HASH = f"UPDATE events SET hash = NULL WHERE {event(17)}"


IN_THE_LOG: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "a body": ([CHANGED_BODY], [f"event 10 {CHANGED}"]),
    "a time": ([CHANGED_TIME], [f"event 10 {CHANGED}"]),
    "an agent": ([CHANGED_NAME], [f"event 10 {CHANGED}"]),
    "a parent": ([CHANGED_PARENT], [f"event 10 {CHANGED}", "event 10 has parent 4, but the head stood at 9"]),
    "swapped rows": (
        SWAPPED,
        [f"event 9 {CHANGED}", f"event 10 {CHANGED}", "the snapshot at 11 names a path on which 9 follows 8"],
    ),
    "a missing row": ([MISSING], ["event 11 follows event 9: the numbers between are missing", f"event 11 {CHANGED}"]),
    "an id twice": ([DOUBLE_ID], [f"event 10 {CHANGED}", "event 10 has the id of event 4"]),
    "the head on a fact": (
        [HEAD_ON_A_FACT],
        [f"event 13 {CHANGED}", "event 13 moves the head to 12, which lies on no path"],
    ),
    "the head elsewhere": (
        [HEAD_ELSEWHERE],
        [f"event 13 {CHANGED}", "event 13 moves the head to 5, but names event 7"],
    ),
    "no JSON": ([NO_JSON], [f"event 5 {CHANGED}", "event 5: a stored body is not JSON"]),
    "no object": ([NO_OBJECT], [f"event 12 {CHANGED}", "event 12: a stored body is a JSON list, not an object"]),
    "no text": ([NO_TEXT], ["event 12 cannot be read: "]),
    "no hash": ([*ANY_VALUE_ANYWHERE, NO_HASH], ["event 12 holds what cannot be its hash"]),
    "no last hash": ([*ANY_VALUE_ANYWHERE, NO_LAST_HASH], ["event 17 holds what cannot be its hash"]),
}
"""What was done to the log: the statements, and how the problems begin that have to be named."""

HASHED_ANEW: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "a parent": ([CHANGED_PARENT], ["event 10 has parent 4, but the head stood at 9"]),
    "swapped rows": (
        SWAPPED,
        ["event 9 has parent 9, but the head stood at 8", "event 10 has parent 8, but the head stood at 9"],
    ),
    "a missing row": ([MISSING], ["event 11 follows event 9: the numbers between are missing"]),
    "an id twice": ([DOUBLE_ID], ["event 10 has the id of event 4"]),
    "a fact on a path": ([FACT_ON_A_PATH], ["event 12 is marked as the wrong one of fact and event on the path"]),
    "a fact of another mark": ([FACT_OF_ANOTHER_MARK], ["event 12 is not told from those on a path by its mark"]),
    "a message as a fact": ([MESSAGE_AS_A_FACT], ["event 10 is marked as the wrong one of fact and event on the path"]),
    "the head on a fact": ([HEAD_ON_A_FACT], ["event 13 moves the head to 12, which lies on no path"]),
    "the head elsewhere": ([HEAD_ELSEWHERE], ["event 13 moves the head to 5, but names event 7"]),
    "no JSON": ([NO_JSON], ["event 5: a stored body is not JSON"]),
}


@pytest.mark.parametrize("change", IN_THE_LOG)
def test_a_change_to_the_log_is_named(place: Place, change: str) -> None:
    """P5, S10."""
    statements, problems = IN_THE_LOG[change]
    damage(place, *statements)
    found = verified(place)

    assert not found.ok
    assert [problem for problem in problems if not _is_among(problem, found)] == []


@pytest.mark.parametrize("change", HASHED_ANEW)
def test_what_cannot_be_is_named_also_where_the_hashes_were_made_right_again(place: Place, change: str) -> None:
    statements, problems = HASHED_ANEW[change]
    damage(place, *statements, how="hashed anew")
    found = verified(place)

    assert [problem for problem in problems if not _is_among(problem, found)] == []
    assert not any(CHANGED in problem for problem in found.problems)


def test_one_changed_body_is_one_problem(place: Place) -> None:
    damage(place, CHANGED_BODY)

    assert verified(place).problems == (f"event 10 {CHANGED}",)


def test_a_body_that_was_changed_with_all_its_hashes_shows_only_against_the_hash_kept_elsewhere(place: Place) -> None:
    """S10."""
    before = verified(place)
    damage(place, CHANGED_BODY, how="hashed anew")
    after = verified(place)

    assert (before.ok, after.ok) == (True, True)
    assert after.head_hash != before.head_hash


def test_a_cut_tail_shows_only_against_the_hash_kept_elsewhere(place: Place) -> None:
    """S10."""
    before = verified(place)
    caches = f"DELETE FROM snapshots WHERE {later_than(15)}", "UPDATE sessions SET indexed_seq = 0"
    damage(place, f"DELETE FROM events WHERE {later_than(15)}", *caches)
    after = verified(place)

    assert (after.ok, after.event_count) == (True, 15)
    assert after.head_hash != before.head_hash


def test_a_cut_tail_is_named_where_a_cache_still_knows_of_it(place: Place) -> None:
    damage(place, f"DELETE FROM events WHERE {later_than(15)}")

    assert verified(place).problems == (
        "the snapshot at 17 cannot be read: session 's' has no event 17",
        "the text index is said to hold events up to 17, but the log ends at 15",
    )


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("turns", "json('[9, \"x\", 8, 0]')"),
        ("counts", "json('[0, 0, 0, 0, 0]')"),
        ("conv:", "json('[1, []]')"),
        ("x", "1"),
    ],
)
def test_a_snapshot_that_says_something_else_than_a_full_replay_is_named_with_its_slot(
    place: Place, slot: str, value: str
) -> None:
    """P5."""
    damage(
        place,
        f"""UPDATE snapshots SET document = json_set(document, '$.changed."{slot}"', {value}) WHERE {event(11)}""",
    )

    assert verified(place).problems == (f"the snapshot at 11 differs from a full replay in {slot!r}",)


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM snapshots WHERE {event(7)}",
        f"UPDATE snapshots SET document = 'gone' WHERE {event(7)}",
        f"UPDATE snapshots SET document = json_set(document, '$.version', 2) WHERE {event(7)}",
    ],
)
def test_a_snapshot_whose_chain_is_broken_is_named_and_the_session_reads_as_before(
    place: Place, statement: str
) -> None:
    with place.open() as sessions:
        before = [message.text for message in sessions.get("s").conversation()]
    damage(place, statement)
    found = verified(place)
    with place.open() as sessions:
        after = [message.text for message in sessions.get("s").conversation()]

    named = "cannot be used: it, or one that it builds on, is wrong or gone"
    assert [problem for problem in found.problems if "snapshot at 7" not in problem] == [
        f"the snapshot at 11 {named}",
        f"the snapshot at 17 {named}",
    ]
    assert after == before == ["Why does test_upload fail?", "It times out.", "And what then?", "Then it gives up."]


@pytest.mark.parametrize(
    "document",
    [
        "json_set(document, '$.changed.path', json('[[1, 999]]'))",
        "json_set(document, '$.changed.path', json('[[-4, 7]]'))",
        "json_set(document, '$.changed.path', json('\"abc\"'))",
        "json_set(document, '$.changed.path', json('[[1, \"x\"], 5]'))",
        "json_set(document, '$.changed', json('{}'))",
        "json_set(document, '$.seq', 5)",
        "'[1, 2]'",
        "CAST(x'7bff7d' AS TEXT)",
        "x'00'",
    ],
)
def test_a_snapshot_of_any_shape_is_named_and_no_more(place: Place, document: str) -> None:
    damage(place, f"UPDATE snapshots SET document = {document} WHERE {event(7)}")
    found = verified(place)

    assert _is_among("the snapshot at 7 ", found)
    assert all("the snapshot at " in problem for problem in found.problems)


def test_a_snapshot_where_there_is_no_event_of_a_path_is_named(place: Place) -> None:
    damage(place, f"UPDATE snapshots SET {event(12)} WHERE {event(11)}")

    assert verified(place).problems == ("the snapshot at 12 cannot be read: session 's' has no event 12",)


def test_an_index_that_is_said_to_be_further_than_the_log_is_named(place: Place) -> None:
    """P5."""
    damage(place, "UPDATE sessions SET indexed_seq = 18")

    assert verified(place).problems == ("the text index is said to hold events up to 18, but the log ends at 17",)


@pytest.mark.parametrize("value", ["x'00ff'", "CAST(x'ff' AS TEXT)", "NULL", "-1", "'abc'", "9e999", "''"])
def test_an_event_with_any_value_in_any_column_is_named(place: Place, value: str) -> None:
    # Every other event, so that each damaged one follows an undamaged one and is named for itself.
    damaged = {"id": 2, "agent": 4, "kind": 6, "at": 8, "body": 10, "parent": 12, "salt": 14, "hash": 16}
    changes = [f"UPDATE events SET {column} = {value} WHERE {event(seq)}" for column, seq in damaged.items()]
    damage(place, *ANY_VALUE_ANYWHERE, *changes)
    found = verified(place)

    assert [seq for seq in damaged.values() if not _is_among(f"event {seq} ", found)] == []
    assert not any(_is_among(f"event {seq} ", found) for seq in (1, 3, 17))


@pytest.mark.parametrize("seq", [1, 7, 11])
def test_events_after_one_that_cannot_be_read_are_checked_without_it(place: Place, seq: int) -> None:
    damage(place, f"UPDATE events SET agent = x'00ff' WHERE {event(seq)}", "DELETE FROM snapshots")

    assert verified(place).problems == (f"event {seq} holds what cannot be its agent",)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("DELETE FROM sessions", SessionNotFound),
        ("UPDATE sessions SET id = 'other'", SessionNotFound),
        ("DELETE FROM events", StoreDamaged),
        ("UPDATE sessions SET indexed_seq = 'far'", StoreDamaged),
        ("UPDATE sessions SET event_version = 'new'", StoreDamaged),
        ("PRAGMA user_version = 2", NewerFormat),
        ("PRAGMA application_id = 2", NotAStore),
    ],
)
def test_where_there_is_nothing_to_check_it_says_so(place: Place, statement: str, error: type[PlayheadError]) -> None:
    # A bundle that cannot be opened holds no session that anybody could ask for; events of no session are damage.
    expected = (error, SessionNotFound, StoreDamaged) if place.name == "bundles" else error
    damage(place, statement)

    with pytest.raises(expected):
        verified(place)


@pytest.mark.parametrize("version", [0, 2])
def test_events_of_a_version_that_it_does_not_read_are_a_problem(place: Place, version: int) -> None:
    damage(place, f"UPDATE sessions SET event_version = {version}")

    assert _is_among("the facts cannot be read: ", verified(place))


def test_a_redacted_event_is_whole_with_its_digest_and_not_without_it(place: Place) -> None:
    redacted = "UPDATE events SET digest = digest_of(salt, body), body = NULL, salt = NULL WHERE"
    damage(place, f"{redacted} {event(10)}", f"{redacted} {event(12)}", "DELETE FROM snapshots")
    with_digest = verified(place)
    with place.open() as sessions:
        title = sessions.get("s").title
    damage(place, f"UPDATE events SET digest = NULL WHERE {event(10)}")

    assert (with_digest.problems, with_digest.redacted_count) == ((), 2)
    assert title == "Flaky test"
    assert verified(place).problems == (f"event 10 {CHANGED}",)


def test_a_report_has_a_bound(place: Place) -> None:
    with place.open() as sessions:
        with sessions.get("s") as session:
            for number in range(150):
                session.append("note", {"name": "count", "number": number})
    damage(place, "UPDATE events SET at = at + 1")
    found = verified(place)

    assert len(found.problems) == 100
    assert found.event_count == 167


def test_events_that_others_append_meanwhile_are_no_problem(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.get("s")

        def go_on() -> None:
            with session.turn("Are you still there?") as turn:
                turn.say("Yes.")

        found = verify(cast(Store, _Busy(sessions.store, go_on)), session.key)
        end = session.seq

    assert found.problems == ()
    assert 17 < found.event_count < end


class _Busy:
    """A store in which something is written before each look at it."""

    def __init__(self, store: Store, meanwhile: Callable[[], None]) -> None:
        self._store = store
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        self._meanwhile()
        return getattr(self._store, name)


def _is_among(beginning: str, found: Verified) -> bool:
    return any(problem.startswith(beginning) for problem in found.problems)
