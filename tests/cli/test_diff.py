"""`playhead diff`: two sessions, or two branches of one."""

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal


def _forked(sessions: Sessions, upload: str) -> str:
    """Fork the session after its second turn, and let it go on elsewhere."""
    session = sessions.get(upload)
    end = next(event.seq for event in session.path() if event.kind == "turn_ended" and event.seq > 10)
    with session.fork(at=end, id="forked-0001") as fork:
        with fork.turn("Then retry instead.") as turn:
            turn.say("It retries three times.")
        return fork.id


def test_a_fork_is_compared_with_its_parent_unless_something_else_is_named(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    fork = _forked(sessions, upload)
    alone, named = cli("diff", fork), cli("diff", upload, fork)

    assert alone.out == named.out
    assert "The first 2 turns" in alone.out
    assert "-  Then raise the limit." in alone.out
    assert "+  Then retry instead." in alone.out
    assert "Why does test_upload" not in alone.out


def test_two_branches_of_a_session_are_named_by_the_events_they_end_at(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    session = sessions.get(upload)
    before = session.head
    session.rewind(turn=3)
    with session.turn("Then retry instead.") as turn:
        turn.say("It retries.")
    found = cli("diff", f"{upload}#{before}", upload, "--json").json

    assert (found["shared_turns"], found["is_equal"]) == (2, False)
    assert [(turn["a"]["number"], turn["b"]["number"]) for turn in found["turns"]] == [(3, 3)]
    assert "+  Then retry instead." in found["turns"][0]["lines"]


def test_the_same_session_differs_in_nothing(cli: CommandLine, upload: str) -> None:
    answer = cli("diff", upload, upload, "--json")

    assert answer.json["is_equal"] is True
    assert answer.json["turns"] == []


def test_stat_counts_lines_turn_by_turn(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    (row,) = cli("diff", _forked(sessions, upload), "--stat").rows

    assert row[:2] == ["3", "3"]
    assert int(row[2]) > 0 and int(row[3]) > 0


def test_what_is_no_fork_needs_a_second_name_and_unknown_ones_are_not_found(cli: CommandLine, upload: str) -> None:
    alone, unknown, event = cli("diff", upload), cli("diff", upload, "nothing"), cli("diff", upload, f"{upload}#999")

    assert (alone.code, unknown.code, event.code) == (2, 3, 3)
    assert "no fork" in alone.err


def test_a_person_sees_it_in_colour(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal("diff", _forked(sessions, upload))

    assert shown.code == 0
    assert "\x1b[32m+  Then retry instead.\x1b[0m" in shown.shown
