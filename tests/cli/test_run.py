"""`playhead run`: one prompt in, one answer out, everything kept unless one says otherwise."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.cli.answering import Agent
from tests.cli import agents
from tests.cli.conftest import CommandLine

UseAgent = Callable[[Agent], None]


@pytest.fixture
def use_agent(monkeypatch: pytest.MonkeyPatch) -> UseAgent:
    """Puts an agent in the place of the built-in one."""

    def use(agent: Agent) -> None:
        monkeypatch.setattr("playhead.cli.run.built_in_agent", lambda: agent)

    return use


def test_the_answer_is_printed_and_kept(cli: CommandLine, sessions: Sessions, use_agent: UseAgent) -> None:
    use_agent(agents.echo)
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")
    said = [(message.role, message.text) for message in session.conversation()]

    assert (answer.code, answer.out) == (0, "You said: hello\n")
    assert answer.err == f"Kept in {session.key} as turn 1.\n"
    assert said == [("user", "hello"), ("assistant", "You said: hello")]
    assert session.summary().cwd == os.getcwd()


def test_a_prompt_can_come_through_a_pipe(cli: CommandLine, use_agent: UseAgent) -> None:
    use_agent(agents.echo)

    assert cli("run", text="from the pipe\n").out == "You said: from the pipe\n\n"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_prompt_is_a_usage_error_and_makes_no_session(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent, text: str
) -> None:
    use_agent(agents.echo)
    answer = cli("run", text=text)

    assert (answer.code, answer.out) == (2, "")
    assert sessions.list().total == 0


def test_a_session_goes_on_with_the_next_turn(
    cli: CommandLine, sessions: Sessions, upload: str, use_agent: UseAgent
) -> None:
    use_agent(agents.echo)
    answer = cli("run", "-p", "And then?", "--session", "flaky upload test")

    assert answer.code == 0
    assert answer.err == f"Kept in {upload} as turn 4.\n"
    assert sessions.get(upload).conversation()[-1].text == "You said: And then?"


def test_without_a_session_nothing_is_written(cli: CommandLine, tmp_home: Path, use_agent: UseAgent) -> None:
    """K6."""
    use_agent(agents.echo)
    text, document = cli("run", "-p", "hello", "--no-session"), cli("run", "-p", "hello", "--no-session", "--json").json

    assert (text.code, text.out, text.err) == (0, "You said: hello\n", "")
    assert document["session"] is None
    assert document["text"] == "You said: hello"
    assert list(tmp_home.rglob("*")) == []


def test_the_json_has_the_answer_its_turn_and_its_events(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent(agents.echo)
    document = cli("run", "-p", "hello", "--json").json
    session = sessions.get("@last")

    assert document["session"]["id"] == session.id
    assert (document["status"], document["turn_number"]) == ("completed", 1)
    assert [event["kind"] for event in document["events"]] == ["turn_started", "message", "message", "turn_ended"]
    assert document["waiting"] == []


def test_json_lines_come_as_things_happen(cli: CommandLine, use_agent: UseAgent) -> None:
    use_agent(agents.echo)
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
    use_agent(agents.asking)
    answer = cli("run", "-p", "Clean up")
    session = sessions.get("@last")

    assert answer.code == 10
    assert "It asks: Delete 14 files?" in answer.err
    assert f"playhead resume {session.key}" in answer.err
    assert session.summary().status == "waiting"


def test_an_agent_that_fails_leaves_what_it_said_and_a_failed_turn(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent(agents.failing)
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")
    ended = session.event(session.seq).body

    assert answer.code == 1
    assert "the model did not answer" in answer.err
    assert "Traceback" not in answer.err
    assert session.conversation()[-1].text == "It begins "
    assert ended["status"] == "failed"


def test_an_interrupted_run_ends_with_130_and_a_cancelled_turn(
    cli: CommandLine, sessions: Sessions, use_agent: UseAgent
) -> None:
    use_agent(agents.interrupted)
    answer = cli("run", "-p", "hello")
    session = sessions.get("@last")

    assert answer.code == 130
    assert session.conversation()[-1].text == "It begins "
    assert session.event(session.seq).body["status"] == "cancelled"


def test_a_busy_session_names_its_holder_and_takes_no_prompt(
    cli: CommandLine, sessions: Sessions, upload: str, use_agent: UseAgent
) -> None:
    use_agent(agents.echo)
    with sessions.get(upload).turn("Wait", label="the other window"):
        before = sessions.get(upload).seq
        answer = cli("run", "-p", "Me too", "--session", upload)
        after = sessions.get(upload).seq

    assert answer.code == 4
    assert "the other window" in answer.err
    assert after == before


def test_a_playhead_without_its_agent_says_so_before_anything_is_written(
    cli: CommandLine, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.cli.answering.AGENT_MODULE", "playhead.agents.absent")
    answer = cli("run", "-p", "hello")

    assert (answer.code, answer.out) == (1, "")
    assert "playhead.agents.absent" in answer.err
    assert sessions.list().total == 0


@pytest.mark.parametrize("options", [["--session", "x", "--no-session"], ["--json", "--jsonl"]])
def test_options_that_contradict_each_other_are_refused(cli: CommandLine, options: list[str]) -> None:
    assert cli("run", "-p", "hello", *options).code == 2
