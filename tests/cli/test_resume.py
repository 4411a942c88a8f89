"""`playhead resume`: what came back after a crash, and a conversation at a terminal."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import Shown, in_a_terminal
from tests.conftest import PROJECT

AGENT = "tests.cli.agents:talking"
READY = "\x1b[?2004h"
"""What the line editor sends when it begins to ask."""

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


def _resumed(*arguments: str, typed: Sequence[tuple[str, str]]) -> Shown:
    """Resume in a terminal, with the talking agent."""
    return in_a_terminal("resume", "--agent", AGENT, *arguments, typed=typed, PROMPT_TOOLKIT_NO_CPR="1")


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
    shown = _resumed("--last", typed=[(READY, "hello\r"), ("You said: hello.", ""), (READY, "\x04")])
    said = [message.text for message in sessions.get(upload).conversation()][-2:]

    assert shown.code == 0
    assert "Then raise the limit." in shown.shown
    assert said == ["hello", "You said: hello."]


def test_one_ctrl_c_stops_the_turn_and_a_second_leaves_with_130(sessions: Sessions, upload: str) -> None:
    """C-16."""
    shown = _resumed("--last", typed=[(READY, "slow\r"), ("It begins", "\x03"), (READY, "\x03")])
    session = sessions.get(upload)
    stopped = [event.body["status"] for event in session.events(kinds=["turn_ended"])][-1]

    assert shown.code == 130
    assert "Traceback" not in shown.shown
    assert stopped == "cancelled"
    assert session.conversation()[-1].text == "It begins"


def test_without_a_name_a_terminal_shows_a_list_to_pick_from(sessions: Sessions, upload: str, hostile: str) -> None:
    """C-15: the newest session's title is hostile."""
    shown = _resumed(
        typed=[
            ("2 sessions", "\t"),
            ("answer", "\x1b[B"),
            ("Then raise the limit.", "\r"),
            (READY, "hello\r"),
            ("You said: hello.", ""),
            (READY, "\x04"),
        ]
    )

    assert shown.code == 0
    assert "\x1b]0;owned" not in shown.shown
    assert sessions.get(upload).conversation()[-1].text == "You said: hello."
    assert sessions.get(hostile).turn_count == 1


def test_what_is_typed_filters_the_list(sessions: Sessions, upload: str, hostile: str) -> None:
    shown = _resumed("--pick", typed=[("2 sessions", "flaky"), ("flaky", "\r"), (READY, "\x04")])

    assert shown.code == 0
    assert upload in shown.shown


@pytest.mark.parametrize("keys", [[("2 sessions", "\x1b")], [("2 sessions", "xyz"), ("xyz", "\x1b"), ("", "\x03")]])
def test_leaving_the_list_resumes_nothing(
    sessions: Sessions, upload: str, hostile: str, keys: list[tuple[str, str]]
) -> None:
    shown = _resumed(typed=keys)

    assert shown.code == 130
    assert READY in shown.shown
    assert "Then raise the limit." not in shown.shown


def test_a_fork_goes_on_and_leaves_the_session_as_it_is(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    before = sessions.get(upload).seq
    answer = cli("resume", upload, "--fork", "--json")
    fork = sessions.get(answer.json["session"]["id"])

    assert answer.code == 0
    assert (fork.title, fork.turn_count) == ("Flaky upload test (fork)", 3)
    assert f"{fork.key} begins as a copy of {upload}" in answer.err
    assert sessions.get(upload).seq == before


def test_a_fork_can_be_made_at_an_earlier_event(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    first_turn = next(event.seq for event in sessions.get(upload).events(kinds=["turn_ended"]))
    by_option = cli("resume", upload, "--fork", "--at", str(first_turn), "--json").json
    by_name = cli("resume", f"{upload}#{first_turn}", "--fork", "--json").json

    assert by_option["session"]["turn_count"] == by_name["session"]["turn_count"] == 1
    assert cli("resume", f"{upload}#2", "--at", "3").code == 2
    assert cli("resume", upload, "--fork", "--at", "999").code == 3


def test_an_event_alone_moves_the_head_once_that_is_agreed(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    first_turn = next(event.seq for event in sessions.get(upload).events(kinds=["turn_ended"]))
    before = sessions.get(upload).head
    unasked = cli("resume", upload, "--at", str(first_turn))
    kept = sessions.get(upload).head
    agreed = cli("resume", upload, "--at", str(first_turn), "--yes")

    assert unasked.code == 2
    assert "--yes" in unasked.err
    assert kept == before
    assert agreed.code == 0
    assert sessions.get(upload).head == first_turn
    assert f"playhead rewind {upload} --head {before}" in agreed.err


def test_a_person_is_asked_before_the_head_moves(sessions: Sessions, upload: str) -> None:
    first_turn = next(event.seq for event in sessions.get(upload).events(kinds=["turn_ended"]))
    before = sessions.get(upload).head
    refused = _resumed(upload, "--at", str(first_turn), typed=[("[y/N] ", "n\n")])
    kept = sessions.get(upload).head
    agreed = _resumed(upload, "--at", str(first_turn), typed=[("[y/N] ", "y\n"), (READY, "\x04")])

    assert refused.code == 1
    assert kept == before
    assert agreed.code == 0
    assert sessions.get(upload).turn_count == 1


@pytest.mark.parametrize(
    "flags", [["--model", "m"], ["--agent", AGENT], ["--documents", "."], ["--json", "--agent", AGENT]]
)
def test_flags_about_who_answers_are_refused_where_nothing_is_answered(
    cli: CommandLine, upload: str, flags: list[str]
) -> None:
    answer = cli("resume", "--last", *flags)

    assert (answer.code, answer.out) == (2, "")
    assert "playhead run --session" in answer.err


def test_ctrl_c_at_the_question_says_that_nothing_was_changed(sessions: Sessions, upload: str) -> None:
    before = sessions.get(upload).seq
    first_turn = next(event.seq for event in sessions.get(upload).events(kinds=["turn_ended"]))
    shown = _resumed(upload, "--at", str(first_turn), typed=[("[y/N] ", "\x03")])

    assert shown.code == 130
    assert "interrupted; nothing was changed" in shown.shown
    assert sessions.get(upload).seq == before


def test_the_last_session_of_a_folder_is_found(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    none = cli("resume", "--cwd")
    sessions.create("here-0001", cwd=str(tmp_path)).close()
    sessions.create("later-0001", cwd="/elsewhere").close()

    assert none.code == 3
    assert f"{upload}  Flaky upload test" in none.err
    assert cli("resume", "--cwd", "--json").json["session"]["id"] == "here-0001"
    assert cli("resume", "--project", ".", "--json").json["session"]["id"] == "here-0001"
    assert cli("resume", "--project", "/elsewhere", "--json").json["session"]["id"] == "later-0001"
    assert cli("resume", "--cwd", "--last").code == 2
    assert cli("resume", "--project", ".", "--cwd").code == 2
    assert cli("resume", "--pick").code == 2


def test_another_agent_that_goes_on_is_told(sessions: Sessions, upload: str) -> None:
    with sessions.get(upload) as session:
        session.set_state({"answered_by": "mine:agent"}, scope="agent:command-line")
    shown = _resumed(upload, typed=[(READY, "\x04")]).shown

    assert f"last answered by mine:agent; you are going on with {AGENT}." in " ".join(shown.split())


def test_resume_at_a_terminal_needs_no_pipe_for_json(tmp_home: Path, upload: str) -> None:
    shown = in_a_terminal("resume", "--last", "--json")

    assert shown.code == 0
    assert shown.shown.lstrip().startswith("{")
