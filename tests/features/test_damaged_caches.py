"""Damage of a cache stops nothing, and damage of the log is an error of ours, never the driver's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead.errors import NotAStore, PlayheadError, StoreDamaged

PROJECT = Path(__file__).parents[2]


def damaged(tmp_path: Path, statement: str) -> str:
    """Record a session of two turns, then run a statement on its file in a process of its own."""
    file = tmp_path / "sessions.db"
    with playhead.open(f"sqlite:{file}") as sessions:
        for prompt in ("one", "two"):
            with sessions.get("s").turn(prompt) if prompt == "two" else sessions.create("s").turn(prompt) as turn:
                turn.say(f"Answer to {prompt}")
    command = [sys.executable, "-m", "tests.features.damage", str(file), "as it is", statement]
    subprocess.run(command, cwd=PROJECT, check=True)
    return f"sqlite:{file}"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshots SET document = 'no JSON'",
        "UPDATE snapshots SET document = '[1]'",
        "UPDATE snapshots SET document = 5",
        "UPDATE snapshots SET document = ''",
        "UPDATE snapshots SET document = CAST(x'ff8081' AS TEXT)",
        'UPDATE snapshots SET document = \'{"seq":"x"}\'',
        "UPDATE snapshots SET base_seq = 1",
        "DELETE FROM snapshots",
        "UPDATE sessions SET summary = 'no JSON'",
    ],
)
def test_a_damaged_cache_is_passed_over(tmp_path: Path, statement: str) -> None:
    with playhead.open(damaged(tmp_path, statement)) as sessions:
        said = [message.text for message in sessions.get("s").conversation()]
        titles = [row.summary.title for row in sessions.list().items if row.summary]
        hits = sessions.search("answer").hits

    assert said == ["one", "Answer to one", "two", "Answer to two"]
    assert titles == ["one"]
    assert len(hits) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = CAST(x'ff8081' AS TEXT) WHERE kind = 'message'",
        "UPDATE events SET body = 'no JSON'",
        "UPDATE sessions SET event_version = 0",
    ],
)
def test_a_damaged_log_is_an_error_of_ours(tmp_path: Path, statement: str) -> None:
    with playhead.open(damaged(tmp_path, statement)) as sessions:
        with pytest.raises(PlayheadError):
            sessions.get("s").conversation()
        rows = [row for row in sessions.list().items if row.problem is None]

    assert len(rows) <= 1


def test_a_lost_session_row_does_not_stand_in_the_way_of_a_new_session(tmp_path: Path) -> None:
    with playhead.open(damaged(tmp_path, "DELETE FROM sessions")) as sessions:
        session = sessions.create("new")
        with session.turn("three") as turn:
            turn.say("Answer to three")

        assert [message.text for message in session.conversation()] == ["three", "Answer to three"]
        assert session.verify().problems == ()


def test_a_time_of_minus_zero_keeps_the_chain_whole(tmp_path: Path) -> None:
    with playhead.open(f"sqlite:{tmp_path / 's.db'}") as sessions:
        session = sessions.create("s")
        event = session.append("note", {"name": "epoch"}, at=-0.0)

        assert session.verify().problems == ()
        assert str(event.at) == str(session.event(event.seq).at) == "0.0"


def test_a_missing_table_is_damage_that_is_named(tmp_path: Path) -> None:
    with playhead.open(damaged(tmp_path, "DROP TABLE snapshots")) as sessions:
        with pytest.raises(StoreDamaged, match="lacks a part of its schema"):
            sessions.get("s")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(NotAStore, match="no regular file"):
            playhead.open(f"sqlite:{tmp_path / name}")
