"""`playhead resume`: what came back after a crash, and a conversation at a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

CRASHING = """
import os, sys, playhead
sessions = playhead.open(sys.argv[1])
session = sessions.create("crashed-0001", title="Crashed")
turn = session.turn("Build it")
turn.tool_call("make", {"target": "all"})
job = turn.job("watch")
turn.stream("It is being bu")
os._exit(9)
"""

CONVERSATION = """
import sys, time
from playhead.cli import answering

def agent(sessions, session, turn, prompt):
    if prompt == "slow":
        turn.stream("It begins")
        yield "It begins"
        time.sleep(60)
    if prompt == "fail":
        raise ConnectionError("no answer from the model")
    turn.say(f"You said: {prompt}.")
    yield f"You said: {prompt}."

answering.built_in_agent = lambda: agent
from playhead.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def crashed(sessions: Sessions, store_url: str) -> str:
    """A session whose process died in the middle of a turn."""
    done = subprocess.run([sys.executable, "-c", CRASHING, store_url], cwd=PROJECT, capture_output=True, timeout=60)
    assert done.returncode == 9, done.stderr
    return "crashed-0001"


def test_what_a_crash_left_open_is_closed_and_told(cli: CommandLine, sessions: Sessions, crashed: str) -> None:
    answer = cli("resume", "--last")
    again = cli("resume", crashed)

    assert answer.code == 0
    assert answer.out.startswith("Crashed\ncrashed-0001  1 turn  open")
    assert "Closed as interrupted: 1 message that was being written, 1 tool call without a result, 1 running job" in (
        answer.out
    )
    assert "It is being bu" in answer.out
    assert "(interrupted before it was finished)" in answer.out
    assert "Closed as interrupted" not in again.out
    assert sessions.get(crashed).summary().status == "open"


def test_the_json_lists_what_was_closed(cli: CommandLine, crashed: str) -> None:
    document = cli("resume", crashed, "--json").json

    assert len(document["resumed"]["sealed_calls"]) == 1
    assert len(document["resumed"]["sealed_jobs"]) == 1
    assert len(document["resumed"]["recovered_streams"]) == 1
    assert document["resumed"]["sealed_turn"] is not None
    assert document["waiting"] == []
    assert document["last_exchange"][0]["text"] == "Build it"


def test_the_last_exchange_is_shown_and_nothing_before_it(cli: CommandLine, upload: str) -> None:
    out = cli("resume", upload).out

    assert "Then raise the limit." in out
    assert "Why does test_upload" not in out


def test_what_waits_for_a_person_is_shown(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    """Z11."""
    with sessions.get(upload) as session:
        body = {"interrupt": "int-1", "reason": "input_required", "question": "Delete 14 files?"}
        session.append("interrupt_requested", body, agent="coordinator")
    out, document = cli("resume", upload).out, cli("resume", upload, "--json").json

    assert "Waits for you: Delete 14 files?" in out
    assert [interrupt["id"] for interrupt in document["waiting"]] == ["int-1"]


def test_without_a_name_the_recent_sessions_are_offered(cli: CommandLine, upload: str) -> None:
    answer = cli("resume")

    assert (answer.code, answer.out) == (2, "")
    assert f"{upload}  Flaky upload test" in answer.err
    assert cli("resume", upload, "--last").code == 2


def test_a_session_in_a_turn_is_busy(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload).turn("Wait", label="the other window"):
        answer = cli("resume", upload)

    assert (answer.code, answer.out) == (4, "")
    assert "the other window" in answer.err


def test_at_a_terminal_prompts_are_answered_until_the_input_ends(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal(
        "resume",
        "--last",
        program=CONVERSATION,
        typed=[
            ("> ", "hello\n"),
            ("You said: hello.", ""),
            ("> ", "\n"),
            ("> ", "bye\n"),
            ("You said: bye.", ""),
            ("> ", "\x04"),
        ],
    )
    said = [message.text for message in sessions.get(upload).conversation()][-4:]

    assert shown.code == 0
    assert said == ["hello", "You said: hello.", "bye", "You said: bye."]


def test_one_ctrl_c_stops_the_turn_and_keeps_what_was_said(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal(
        "resume",
        "--last",
        program=CONVERSATION,
        typed=[("> ", "slow\n"), ("It begins", "\x03"), ("> ", "hello\n"), ("You said: hello.", ""), ("> ", "\x04")],
    )
    session = sessions.get(upload)
    stopped = [event.body for event in session.events(kinds=["turn_ended"])][-2]
    said = [message.text for message in session.conversation()][-4:]

    assert shown.code == 0
    assert "Ctrl-C again leaves" in shown.shown
    assert stopped["status"] == "cancelled"
    assert said == ["slow", "It begins", "hello", "You said: hello."]


def test_a_second_ctrl_c_leaves_with_130(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal(
        "resume", "--last", program=CONVERSATION, typed=[("> ", "slow\n"), ("It begins", "\x03"), ("> ", "\x03")]
    )

    assert shown.code == 130
    assert "Traceback" not in shown.shown
    assert sessions.get(upload).conversation()[-1].text == "It begins"


def test_an_agent_that_fails_does_not_end_the_conversation(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal(
        "resume",
        "--last",
        program=CONVERSATION,
        typed=[
            ("> ", "fail\n"),
            ("no answer from the model", ""),
            ("> ", "hello\n"),
            ("You said: hello.", ""),
            ("> ", "\x04"),
        ],
    )

    assert shown.code == 0
    assert "Traceback" not in shown.shown


def test_resume_at_a_terminal_needs_no_pipe_for_json(tmp_home: Path, upload: str) -> None:
    shown = in_a_terminal("resume", "--last", "--json")

    assert shown.code == 0
    assert shown.shown.lstrip().startswith("{")
