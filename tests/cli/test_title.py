"""`playhead title`: shown, set, taken away; on every branch and during a turn."""

import pytest

from playhead import Sessions
from tests.cli.conftest import ESCAPES, CommandLine


def test_a_title_is_shown_set_and_taken_away(cli: CommandLine, upload: str) -> None:
    before = cli("title", upload)
    done = cli("title", upload, "Timeouts", "  of ", "uploads")
    removed = cli("title", upload, "--clear")

    assert before.out == "Flaky upload test\n"
    assert (done.code, done.out) == (0, "Timeouts of uploads\n")
    assert removed.out == "Why does test_upload fail on CI?\n"
    assert cli("list").rows[0][1] == "Why does test_upload fail on CI?"


def test_a_title_survives_a_rewind_and_lists_know_it_at_once(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    cli("title", upload, "Timeouts")
    sessions.get(upload).rewind(turn=1)

    assert cli("list").rows[0][1] == "Timeouts"
    assert cli("show", "timeouts", "--json").json["session"]["id"] == upload


def test_the_same_title_again_adds_no_event(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    seq = sessions.get(upload).seq
    first, again = cli("title", upload, "New", "--json").json, cli("title", upload, "New", "--json").json

    assert (first["is_changed"], again["is_changed"]) == (True, False)
    assert again["session"]["title"] == "New"
    assert sessions.get(upload).seq == seq + 1


def test_a_title_is_set_while_somebody_is_in_a_turn(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload).turn("Hold on") as turn:
        answer = cli("title", upload, "While it runs")
        turn.say("Done.")

    assert answer.code == 0
    assert sessions.get(upload).title == "While it runs"


@pytest.mark.parametrize("words", [[""], ["  "], ["x" * 201], [ESCAPES], ["half\ud83d"], ["a", "--clear"]])
def test_a_title_that_lists_could_not_show_is_refused(
    cli: CommandLine, sessions: Sessions, upload: str, words: list[str]
) -> None:
    seq = sessions.get(upload).seq
    answer = cli("title", upload, *words)

    assert answer.code == 2
    assert "\x1b" not in answer.err
    assert sessions.get(upload).seq == seq


def test_the_title_of_an_unknown_session_is_not_found(cli: CommandLine, upload: str) -> None:
    assert cli("title", "nobody", "New").code == 3
