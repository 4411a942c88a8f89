"""`playhead tag`, `pin` and `archive`: several sessions at once, all of them or none, and nothing twice."""

import pytest

from playhead import Sessions
from playhead.cli import tag
from playhead.cli.tag import LABEL_CHARS_MAX, LABELS_MAX, relabelled
from playhead.errors import StaleWriter
from tests.cli.conftest import ESCAPES, CommandLine
from tests.cli.terminals import in_a_terminal


@pytest.fixture
def other(sessions: Sessions) -> str:
    """A second session, without turns; its id."""
    sessions.create("other-0001", title="Other", labels=["ci"]).close()
    return "other-0001"


def test_labels_are_added_and_removed_in_their_order(cli: CommandLine, upload: str, other: str) -> None:
    added = cli("tag", upload, other, "--add", "flaky", "-a", "ci")
    removed = cli("tag", other, "--remove", "ci")

    assert added.rows == [[upload, "Flaky upload test", "flaky,ci"], [other, "Other", "ci,flaky"]]
    assert removed.rows == [[other, "Other", "flaky"]]
    assert cli("tag", upload).rows == [[upload, "Flaky upload test", "flaky,ci"]]


def test_what_is_so_already_adds_no_event(cli: CommandLine, sessions: Sessions, upload: str, other: str) -> None:
    seqs = [sessions.get(id).seq for id in (upload, other)]
    found = cli("tag", other, "--add", "ci", "--remove", "absent", "--json").json["sessions"]
    for command in (["pin", "--off"], ["archive", "--undo"]):
        cli(*command, upload)

    assert [one["is_changed"] for one in found] == [False]
    assert [sessions.get(id).seq for id in (upload, other)] == seqs


def test_all_names_are_looked_up_before_the_first_session_changes(cli: CommandLine, upload: str) -> None:
    answers = [cli(*command, upload, "nobody") for command in (["tag", "--add", "x"], ["pin"], ["archive"])]

    assert [answer.code for answer in answers] == [3, 3, 3]
    assert cli("list").rows[0][4:] == ["open", cli("list").rows[0][5], ""]


@pytest.mark.parametrize("words", [["flaky", "ci"], ["+flaky"], ["+flaky", "-b"], ["-bar"]])
def test_labels_that_are_taken_for_sessions_or_options_get_a_hint(
    cli: CommandLine, upload: str, words: list[str]
) -> None:
    answer = cli("tag", upload, *words)

    assert answer.code in (2, 3)
    assert "--add LABEL" in answer.err


def test_a_session_that_is_not_there_gets_no_hint_about_labels(cli: CommandLine, upload: str) -> None:
    answer = cli("tag", "nobody", "--add", "ci")

    assert answer.code == 3
    assert "--add LABEL" not in answer.err


def test_pins_and_archives_are_undone_by_either_word(cli: CommandLine, upload: str) -> None:
    for option in ("--off", "--undo"):
        cli("pin", upload)
        cli("archive", upload)

        assert cli("pin", upload, option).err == '"Flaky upload test" is no longer pinned.\n'
        assert cli("archive", upload, option).err == '"Flaky upload test" is no longer archived.\n'


def test_a_session_that_is_named_twice_is_changed_once(cli: CommandLine, upload: str) -> None:
    answer = cli("tag", upload, "@last", "--add", "x", "--json")

    assert len(answer.json["sessions"]) == 1


@pytest.mark.parametrize("label", ["", " ", "x" * (LABEL_CHARS_MAX + 1), "a,b", ESCAPES])
def test_a_label_that_lists_could_not_show_is_refused(cli: CommandLine, upload: str, label: str) -> None:
    answer = cli("tag", upload, "--add", label)

    assert answer.code == 2
    assert "\x1b" not in answer.err


def test_a_label_is_not_given_and_taken_in_one_call(cli: CommandLine, upload: str) -> None:
    assert cli("tag", upload, "--add", "a", "--remove", "a").code == 2


def test_a_session_has_so_many_labels_and_no_more(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    sessions.get(upload).label(*map(str, range(LABELS_MAX)))
    answer = cli("tag", upload, "--add", "one more")

    assert answer.code == 1
    assert len(sessions.get(upload).facts.labels) == LABELS_MAX


def test_labels_that_two_give_at_once_are_both_kept(sessions: Sessions, upload: str) -> None:
    first, second = sessions.get(upload), sessions.get(upload)
    relabelled(first, add=["a"])
    relabelled(second, add=["b"])

    assert sessions.get(upload).facts.labels == ("a", "b")


def test_a_writer_who_is_always_faster_is_reported(
    sessions: Sessions, upload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, faster = sessions.get(upload), sessions.get(upload)
    monkeypatch.setattr(tag, "RETRIES_MAX", 2)
    monkeypatch.setattr(session, "refresh", lambda: None)
    faster.rename("Faster")

    with pytest.raises(StaleWriter):
        relabelled(session, add=["a"])
    assert sessions.get(upload).facts.labels == ()


def test_a_label_is_given_while_somebody_is_in_a_turn(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload).turn("Hold on") as turn:
        answers = [cli("tag", upload, "--add", "x"), cli("pin", upload), cli("archive", upload)]
        turn.say("Done.")

    assert [answer.code for answer in answers] == [0, 0, 0]
    assert sessions.get(upload).facts.labels == ("x", "pinned")


def test_a_pin_is_a_star_in_lists_and_comes_off_again(cli: CommandLine, upload: str, other: str) -> None:
    cli("tag", upload, "--add", "ci")
    pinned = cli("pin", upload)
    shown = in_a_terminal("list", NO_COLOR="1").shown
    listed = cli("list", "--label", "pinned").rows
    off = cli("pin", upload, "--off")

    assert (pinned.out, pinned.err) == (f"{upload}\n", '"Flaky upload test" is pinned.\n')
    assert "★ Flaky upload test" in shown
    assert "LABELS" in shown.splitlines()[0]
    assert [row[:2] for row in listed] == [[upload, "Flaky upload test"]]
    assert off.err == '"Flaky upload test" is no longer pinned.\n'
    assert cli("pin", upload, "--off").err == '"Flaky upload test" was not pinned.\n'
    assert "★" not in in_a_terminal("list", NO_COLOR="1").shown


def test_an_archived_session_stays_listed_found_and_resumable(cli: CommandLine, upload: str, other: str) -> None:
    done = cli("archive", upload, other)
    all_rows, archived = cli("list").rows, cli("list", "--status", "archived").rows
    undone = cli("archive", upload, "--undo")

    assert done.out.splitlines() == [upload, other]
    assert [row[0] for row in all_rows] == [row[0] for row in archived]
    assert [row[4] for row in all_rows] == ["archived", "archived"]
    assert cli("search", "xylophone OR timeout", "--json").json["hits"]
    assert undone.err == '"Flaky upload test" is no longer archived.\n'
    assert [row[4] for row in cli("list").rows if row[0] == upload] == ["open"]
