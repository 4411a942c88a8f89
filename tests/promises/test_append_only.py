"""K2, promise 10: no SQL edits or deletes an event, and an edit that gets around that is named by `verify`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.promises.places import Place

# Another program with another SQLite library: it runs in a process of its own, as it must.
EDITOR = """
import json, sqlite3, sys
file, statements = sys.argv[1], json.loads(sys.argv[2])
db = sqlite3.connect(file, isolation_level=None)
for statement in statements:
    try:
        changed = db.execute(statement).rowcount
        print(json.dumps(["done", changed]))
    except sqlite3.Error as error:
        print(json.dumps(["refused", str(error)]))
db.close()
"""

LAST_TEXT = "SELECT row FROM events WHERE kind = 'message' ORDER BY row DESC LIMIT 1"
WITHOUT_GUARDS = ["DROP TRIGGER events_never_change", "DROP TRIGGER events_never_go"]
GUARDS = [
    """CREATE TRIGGER events_never_change BEFORE UPDATE ON events WHEN NOT EXISTS (SELECT 1 FROM permits)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
    """CREATE TRIGGER events_never_go BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM permits)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END""",
]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}'",
        f"UPDATE events SET at = at + 1 WHERE row IN ({LAST_TEXT})",
        "UPDATE OR REPLACE events SET row = row + 1",
        "DELETE FROM events",
        f"DELETE FROM events WHERE row IN ({LAST_TEXT})",
    ],
)
def test_a_database_trigger_refuses_to_change_or_delete_an_event(statement: str, place: Place) -> None:
    events = _fill(place)
    (answer,) = _edit(place, [statement])
    with place.open() as sessions:
        session = sessions.get("s1")

        assert answer == ["refused", "events are append-only"]
        assert [event.id for event in session.events()] == events
        assert session.verify().ok


@pytest.mark.parametrize(
    ("edit", "seq"),
    [
        ("UPDATE events SET body = replace(body, 'network', 'printer') WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET at = at + 0.001 WHERE row & 4294967295 = 3", 3),
        ("UPDATE events SET agent = 'user' WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET id = 'another' WHERE row & 4294967295 = 2", 2),
        ("UPDATE events SET turn = 'another' WHERE row & 4294967295 = 5", 5),
        ("UPDATE events SET scope = 'hidden' WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET kind = 'note' WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET parent = 2 WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET fact = 1 WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET salt = zeroblob(16) WHERE row & 4294967295 = 4", 4),
        ("UPDATE events SET body = NULL WHERE row & 4294967295 = 4", 4),
        ("DELETE FROM events WHERE row & 4294967295 = 4", 5),
    ],
)
def test_an_edit_that_gets_around_the_trigger_is_named_by_verify(edit: str, seq: int, place: Place) -> None:
    _fill(place)
    answers = _edit(place, [*WITHOUT_GUARDS, edit, *GUARDS])
    with place.open() as sessions:
        verified = sessions.verify("s1")

    assert answers[2] == ["done", 1]
    assert not verified.ok
    assert any(f"event {seq} " in problem for problem in verified.problems)


def test_an_event_that_was_replaced_by_an_insert_is_named_by_verify(place: Place) -> None:
    """SQLite fires no trigger for a row that `INSERT OR REPLACE` pushes out, so this one leaves only its trace."""
    _fill(place)
    columns = "parent, id, at, kind, agent, turn, scope, salt, digest, hash, fact"
    forged = json.dumps({"role": "assistant", "parts": [{"type": "text", "content": "It is the printer."}]})
    source = f"SELECT row, {columns}, '{forged}' FROM events WHERE row & 4294967295 = 4"
    answers = _edit(place, [f"INSERT OR REPLACE INTO events (row, {columns}, body) {source}"])
    with place.open() as sessions:
        verified = sessions.verify("s1")

    assert answers == [["done", 1]]
    assert [problem for problem in verified.problems if "event 4 " in problem]


def test_two_events_that_change_places_are_named_by_verify(place: Place) -> None:
    _fill(place)
    swap = [
        "UPDATE events SET row = row + 1000 WHERE row & 4294967295 = 3",
        "UPDATE events SET row = row - 1 WHERE row & 4294967295 = 4",
        "UPDATE events SET row = row - 999 WHERE row & 4294967295 = 1003",
    ]
    answers = _edit(place, [*WITHOUT_GUARDS, *swap, *GUARDS])
    with place.open() as sessions:
        verified = sessions.verify("s1")

    assert answers[2:5] == [["done", 1]] * 3
    assert not verified.ok


def test_a_tail_that_was_cut_off_shows_only_against_a_head_hash_kept_elsewhere(place: Place) -> None:
    _fill(place)
    with place.open() as sessions:
        kept = sessions.verify("s1")
    cut = "DELETE FROM events WHERE row & 4294967295 > 5"
    _edit(place, [*WITHOUT_GUARDS, cut, "DELETE FROM snapshots", "UPDATE sessions SET indexed_seq = 0", *GUARDS])
    with place.open() as sessions:
        verified = sessions.verify("s1")

    assert verified.ok
    assert (verified.event_count, kept.event_count) == (5, 9)
    assert verified.head_hash != kept.head_hash


def test_a_bundle_that_was_copied_as_a_file_verifies_to_the_same_head_hash(place: Place, tmp_path: Path) -> None:
    _fill(place)
    copy = place.at(tmp_path / "copy")
    shutil.copytree(place.folder, copy.folder, dirs_exist_ok=True)
    with place.open() as sessions, copy.open() as copies:
        verified, copied = sessions.verify("s1"), copies.verify("s1")

    assert verified.ok
    assert copied == verified


def _fill(place: Place) -> list[str]:
    """Record two turns, and return the ids of all events."""
    with place.open() as sessions:
        with sessions.create("s1") as session:
            for prompt, answer in (("Why does it fail?", "It is the network."), ("And now?", "It runs.")):
                with session.turn(prompt) as turn:
                    turn.say(answer)
            return [event.id for event in session.events()]


def _edit(place: Place, statements: list[str]) -> list[list[object]]:
    """Run statements on the session's file in another program, and return what came of each."""
    command = [sys.executable, "-c", EDITOR, str(place.database("s1")), json.dumps(statements)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()]
