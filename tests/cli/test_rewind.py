"""`playhead rewind`: hiding turns, bringing them back, and saying so beforehand."""

import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine


@pytest.mark.parametrize(("to", "hidden"), [("-1", ["3"]), ("3", ["3"]), ("2", ["2", "3"]), ("-3", ["1", "2", "3"])])
def test_a_rewind_hides_the_turn_and_all_after_it(
    cli: CommandLine, sessions: Sessions, upload: str, to: str, hidden: list[str]
) -> None:
    answer = cli("rewind", upload, "--to", to)

    assert answer.code == 0
    assert [row[:2] for row in answer.rows] == [["hidden", number] for number in hidden]
    assert sessions.get(upload).turn_count == 3 - len(hidden)


def test_a_dry_run_says_the_same_and_changes_nothing(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    before = sessions.get(upload).seq
    dry = cli("rewind", upload, "--to", "2", "--dry-run")
    dry_document = cli("rewind", upload, "--to", "2", "-n", "--json").json
    untouched = sessions.get(upload).seq
    wet_document = cli("rewind", upload, "--to", "2", "--json").json
    head = sessions.get(upload).head

    assert untouched == before
    assert [row[3] for row in dry.rows] == ["Did anybody see this before?", "Then raise the limit."]
    assert "Nothing was changed." in dry.err
    assert dry_document == wet_document | {"is_dry_run": True}
    assert wet_document["head_after"] == head


def test_the_way_back_is_printed_and_works(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    head = sessions.get(upload).head
    command = cli("rewind", upload, "--to", "1").err.splitlines()[-1].removeprefix("To go back: playhead ")
    back = cli(*command.split())

    assert back.code == 0
    assert [row[:2] for row in back.rows] == [["shown", "1"], ["shown", "2"], ["shown", "3"]]
    assert sessions.get(upload).head == head


def test_a_head_in_the_middle_of_a_turn_hides_that_turn_in_part(cli: CommandLine, upload: str) -> None:
    document = cli("rewind", upload, "--head", "6", "--json").json

    assert [turn["number"] for turn in document["hidden_turns"]] == [1, 2, 3]
    assert document["head_after"] == 6


@pytest.mark.parametrize("to", ["0", "4", "-4", "99"])
def test_a_turn_that_is_not_there_is_not_found(cli: CommandLine, sessions: Sessions, upload: str, to: str) -> None:
    before = sessions.get(upload).seq
    answer = cli("rewind", upload, "--to", to)

    assert (answer.code, answer.out) == (3, "")
    assert "turns run from 1 to 3" in answer.err
    assert sessions.get(upload).seq == before


@pytest.mark.parametrize("options", [[], ["--to", "1", "--head", "4"], ["--to", "x"]])
def test_it_takes_a_turn_or_an_event(cli: CommandLine, upload: str, options: list[str]) -> None:
    assert cli("rewind", upload, *options).code == 2


def test_a_session_in_use_is_busy_and_names_the_holder(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload).turn("Wait", label="the other window"):
        answer = cli("rewind", upload, "--to", "1")

    assert (answer.code, answer.out) == (4, "")
    assert "the other window" in answer.err
