"""`playhead verify`: whole or damaged, and exit code 6 for the latter."""

from pathlib import Path

import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine


@pytest.fixture
def damaged(sessions: Sessions, upload: str, store_url: str) -> str:
    """The id of a session whose file was overwritten in its middle."""
    with sessions.create("damaged-0001", title="Damaged") as session:
        with session.turn("hello") as turn:
            turn.say("x" * 60_000)
    # Closed, the file holds everything, and nobody's lock on it can be lost.
    sessions.close()
    file = Path(store_url.removeprefix("bundles:")) / "damaged-0001.playhead"
    content = file.read_bytes()
    assert b"x" * 1_000 in content
    file.write_bytes(content.replace(b"x" * 1_000, b"y" * 1_000))
    return "damaged-0001"


def test_whole_sessions_are_said_to_be_whole(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    answer, document = cli("verify", upload), cli("verify", upload, "--json").json

    assert answer.code == 0
    assert answer.rows[0][:2] == [upload, "whole"]
    assert answer.err == "The session is whole.\n"
    assert (document["ok_count"], document["problem_count"]) == (1, 0)
    assert document["sessions"][0]["event_count"] == sessions.get(upload).seq
    assert len(document["sessions"][0]["head_hash"]) == 64


def test_every_session_is_checked_with_all(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    sessions.create("second-0001", user="ada").close()
    answer = cli("verify", "--all")

    assert answer.code == 0
    assert {row[0] for row in answer.rows} == {upload, "default/ada/second-0001"}


@pytest.mark.parametrize("options", [[], ["--all", "upload-0001"]])
def test_it_wants_sessions_or_all_of_them(cli: CommandLine, upload: str, options: list[str]) -> None:
    assert cli("verify", *options).code == 2


def test_a_changed_byte_is_found_and_ends_with_6(cli: CommandLine, damaged: str, upload: str) -> None:
    answer, document = cli("verify", "--all"), cli("verify", damaged, "--json")

    assert answer.code == 6
    assert [row[0] for row in answer.rows if row[1] == "damaged"] == [damaged]
    assert [row[0] for row in answer.rows if row[1] == "whole"] == [upload]
    assert answer.err == "1 of 2 sessions is whole.\n"
    assert cli("verify", damaged).err == "The session is damaged.\n"
    assert document.code == 6
    assert document.json["sessions"][0]["problems"] != []


def test_an_empty_store_has_nothing_to_verify(cli: CommandLine) -> None:
    answer = cli("verify", "--all")

    assert (answer.code, answer.err) == (0, "There is no session to verify.\n")


def test_a_file_that_is_no_session_is_a_problem_and_not_the_end_of_the_check(
    cli: CommandLine, sessions: Sessions, upload: str, store_url: str
) -> None:
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    answer = cli("verify", "--all")

    assert answer.code == 6
    assert sorted(row[1] for row in answer.rows) == ["damaged", "whole"]
