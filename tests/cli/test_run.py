"""`playhead run`: one prompt in, one answer out, everything kept unless one says otherwise."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead import Sessions
from tests.cli.agents import WORDY
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal

UseAgent = Callable[[str], None]


@pytest.fixture
def use_agent(tmp_home: Path, monkeypatch: pytest.MonkeyPatch) -> UseAgent:
    """Puts an agent of the tests in the place of the built-in one."""

    def use(agent: str) -> None:
        monkeypatch.setenv("PLAYHEAD_AGENT", f"tests.cli.agents:{agent}")

    return use


def test_the_answer_is_printed_and_kept(cli: CommandLine, sessions: Sessions, use_agent: UseAgent) -> None:
    use_agent("echo")
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")
    said = [(message.role, message.text) for message in session.conversation()]

    assert (answer.code, answer.out) == (0, "You said: hello\n")
    assert answer.err == f"Kept in {session.key} as turn 1.\n"
    assert said == [("user", "hello"), ("assistant", "You said: hello")]
    assert session.summary().cwd == os.getcwd()


def test_a_prompt_can_come_through_a_pipe(cli: CommandLine, use_agent: UseAgent) -> None:
    use_agent("echo")

    assert cli("run", text="from the pipe\n").out == "You said: from the pipe\n\n"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_prompt_is_a_usage_error_and_makes_no_session(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent, text: str
) -> None:
    use_agent("echo")
    answer = cli("run", text=text)

    assert (answer.code, answer.out) == (2, "")
    assert sessions.list().total == 0


def test_a_session_goes_on_with_the_next_turn(
    cli: CommandLine, sessions: Sessions, upload: str, use_agent: UseAgent
) -> None:
    use_agent("echo")
    answer = cli("run", "-p", "And then?", "--session", "flaky upload test")

    assert answer.code == 0
    assert answer.err == f"Kept in {upload} as turn 4.\n"
    assert sessions.get(upload).conversation()[-1].text == "You said: And then?"


def test_without_a_session_nothing_is_written(cli: CommandLine, tmp_home: Path, use_agent: UseAgent) -> None:
    """K6."""
    use_agent("echo")
    text, document = cli("run", "-p", "hello", "--no-session"), cli("run", "-p", "hello", "--no-session", "--json").json

    assert (text.code, text.out, text.err) == (0, "You said: hello\n", "")
    assert document["session"] is None
    assert document["text"] == "You said: hello"
    assert list(tmp_home.rglob("*")) == []


def test_the_json_has_the_answer_its_turn_and_its_events(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("echo")
    document = cli("run", "-p", "hello", "--json").json
    session = sessions.get("@last")

    assert document["session"]["id"] == session.id
    assert (document["status"], document["turn_number"]) == ("completed", 1)
    assert [event["kind"] for event in document["events"]] == ["turn_started", "message", "message", "turn_ended"]
    assert document["waiting"] == []


def test_json_lines_come_as_things_happen(cli: CommandLine, use_agent: UseAgent) -> None:
    use_agent("echo")
    lines = [json.loads(line) for line in cli("run", "-p", "hello", "--jsonl").out.splitlines()]
    events = [line["event"]["kind"] for line in lines if line["type"] == "event"]

    assert [line["type"] for line in lines] == ["event", "event", "text", "text", "event", "event", "end"]
    assert events == ["turn_started", "message", "message", "turn_ended"]
    assert "".join(line["text"] for line in lines if line["type"] == "text") == lines[-1]["text"] == "You said: hello"
    assert lines[-1]["status"] == "completed"


def test_a_turn_that_waits_for_a_person_ends_with_10_and_says_how_to_go_on(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    """Z11."""
    use_agent("asking")
    answer = cli("run", "-p", "Clean up")
    session = sessions.get("@last")

    assert answer.code == 10
    assert "It asks: Delete 14 files?" in answer.err
    assert f"playhead resume {session.key}" in answer.err
    assert session.summary().status == "waiting"


def test_an_agent_that_fails_leaves_what_it_said_and_a_failed_turn(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("failing")
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")
    ended = session.event(session.seq).body

    assert answer.code == 1
    assert "the model did not answer" in answer.err
    assert "Traceback" not in answer.err
    assert session.conversation()[-1].text == "It begins "
    assert ended["status"] == "failed"


def test_an_agent_that_fails_ends_the_line_and_says_where_the_session_is(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("failing")
    answer = cli("run", "-p", "hello")
    key = sessions.get("@last").key

    assert answer.out == "It begins \n"
    assert answer.err.startswith(
        f"Kept in {key} as turn 1. The turn is failed. To go on: playhead resume {key}\nerror: "
    )


@pytest.mark.parametrize(("agent", "status", "code"), [("failing", "failed", 1), ("interrupted", "cancelled", 130)])
def test_a_run_that_fails_or_is_interrupted_prints_its_closing_object(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent, agent: str, status: str, code: int
) -> None:
    use_agent(agent)
    whole = cli("run", "-p", "hello", "--json")
    id_of_whole = sessions.get("@last").id
    lines = cli("run", "-p", "hello", "--jsonl")
    end = [json.loads(line) for line in lines.out.splitlines()][-1]

    assert whole.code == lines.code == code
    assert (whole.json["session"]["id"], whole.json["status"], whole.json["text"]) == (
        id_of_whole,
        status,
        "It begins ",
    )
    assert (end["type"], end["session"], end["status"], end["text"]) == (
        "end",
        sessions.get("@last").id,
        status,
        "It begins ",
    )


def test_a_run_says_for_which_job_it_waits(cli: CommandLine, use_agent: UseAgent) -> None:
    use_agent("leaving_a_job")
    answer = cli("run", "-p", "hello")

    assert answer.out == "It is begun.\n"
    assert "Waiting for job thumbnails. Ctrl-C cancels it." in answer.err


def test_on_a_terminal_an_answer_is_broken_between_words(tmp_home: Path) -> None:
    shown = in_a_terminal("run", "hello", "--agent", "tests.cli.agents:wordy", COLUMNS="40").shown.replace("\r", "")
    answer = shown[: shown.index("Kept in")].splitlines()

    assert " ".join(answer).strip() == WORDY
    assert max(map(len, answer)) <= 40


def test_an_interrupted_run_ends_with_130_and_a_cancelled_turn(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("interrupted")
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")

    assert answer.code == 130
    assert session.conversation()[-1].text == "It begins "
    assert session.event(session.seq).body["status"] == "cancelled"


def test_a_busy_session_names_its_holder_and_takes_no_prompt(
    cli: CommandLine, sessions: Sessions, upload: str, use_agent: UseAgent
) -> None:
    use_agent("echo")
    with sessions.get(upload).turn("Wait", label="the other window"):
        before = sessions.get(upload).seq
        answer = cli("run", "-p", "Me too", "--session", upload)
        after = sessions.get(upload).seq

    assert answer.code == 4
    assert "the other window" in answer.err
    assert after == before


@pytest.mark.parametrize(
    "options",
    [
        ["--session", "x", "--no-session"],
        ["--json", "--jsonl"],
        ["--title", "x", "--no-session"],
        ["--label", "x", "--session", "y"],
        ["-p", "twice"],
    ],
)
def test_options_that_contradict_each_other_are_refused(cli: CommandLine, options: list[str]) -> None:
    assert cli("run", "hello", *options).code == 2


def test_a_prompt_needs_no_option_and_a_new_session_takes_a_title_and_labels(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("echo")
    answer = cli("run", "hello there", "--title", "First steps", "--label", "trial", "--label", "docs")
    summary = sessions.get("@last").summary()

    assert answer.out == "You said: hello there\n"
    assert (summary.title, summary.labels) == ("First steps", ("trial", "docs"))


def test_a_turn_that_the_agent_ends_as_failed_is_a_failure(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent("giving_up")
    answer = cli("run", "hello")

    assert (answer.code, answer.out) == (1, "I cannot.\n")
    assert "error: the model is out of order" in answer.err
    assert "as turn 1" in answer.err


def test_one_ctrl_c_ends_a_run_with_130_and_keeps_what_was_said(sessions: Sessions) -> None:
    """C-16."""
    shown = in_a_terminal("run", "slow", "--agent", "tests.cli.agents:talking", typed=[("It begins", "\x03")])
    session = sessions.get("@last")

    assert shown.code == 130
    assert "Traceback" not in shown.shown
    assert session.conversation()[-1].text == "It begins"
    assert session.event(session.seq).body["status"] == "cancelled"
