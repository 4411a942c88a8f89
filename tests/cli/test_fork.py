"""`playhead fork`: a new session with a copy of the path."""

from playhead import Sessions
from tests.cli.conftest import CommandLine


def test_a_fork_prints_the_new_id_alone_and_leaves_the_parent(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    before = sessions.get(upload).seq
    answer = cli("fork", upload)
    id = answer.out.removesuffix("\n")
    forked, parent = sessions.get(id), sessions.get(upload)

    assert answer.code == 0
    assert id.isalnum()
    assert forked.turn_count == 3
    assert parent.seq == before
    assert forked.summary().forked_from is not None


def test_a_fork_at_an_event_has_nothing_of_what_came_later(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    document = cli("fork", upload, "--at", "8", "--title", "try incremental vacuum", "--json").json["session"]
    out = cli("show", document["id"]).out

    assert document["title"] == "try incremental vacuum"
    assert "Raise the limit to 60." in out
    assert "Did anybody see this before?" not in out


def test_a_fork_at_an_event_that_is_not_there_makes_no_session(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    answer = cli("fork", upload, "--at", "9999")

    assert (answer.code, answer.out) == (3, "")
    assert sessions.list().total == 1


def test_quiet_leaves_the_id_and_nothing_else(cli: CommandLine, upload: str) -> None:
    answer = cli("fork", "Flaky upload test", "-q")

    assert len(answer.out.splitlines()) == 1
    assert answer.err == ""


def test_a_fork_at_a_turn_ends_with_that_turn(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    second, last = (cli("fork", upload, "--turn", turn, "--json").json["session"] for turn in ("2", "-2"))
    unknown, both = cli("fork", upload, "--turn", "7"), cli("fork", upload, "--turn", "1", "--at", "3")

    assert second["turn_count"] == last["turn_count"] == 2
    assert (unknown.code, both.code) == (3, 2)


def test_a_fork_of_a_session_without_a_title_is_called_after_what_the_list_calls_it(
    cli: CommandLine, sessions: Sessions
) -> None:
    with sessions.create("untitled-0001") as session, session.turn("Why is the build slow?") as turn:
        turn.say("It compiles everything twice.")

    assert cli("fork", "untitled-0001", "--json").json["session"]["title"] == "Why is the build slow? (fork)"
