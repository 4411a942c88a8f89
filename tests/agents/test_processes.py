"""A process that dies or is interrupted in the middle of an answer keeps the words that it had shown."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from playhead import Session
from playhead.session import open as open_sessions
from tests.conftest import PROJECT

WAIT_S = 60
# Long enough that no machine is through with it before the signal comes; nothing waits for its end.
SPEAKER = """
import sys
from playhead.agents.built_in.default import DefaultAgent
from playhead.agents.protocol import for_blocking
from playhead.cli.answering import answered
from playhead.session import open as open_sessions

def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()

with open_sessions(sys.argv[1]) as sessions:
    with sessions.create("here") as session:
        print("ready", flush=True)
        answered(for_blocking(DefaultAgent(words_per_second=20)), sessions, session, "help", on_text=show)
"""


def shown_before(url: str, sent: signal.Signals) -> tuple[str, int]:
    """Return what a process had shown of an answer before the signal took it, and how it ended."""
    command = [sys.executable, "-c", SPEAKER, url]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        shown = b""
        while shown.count(b" ") < 5 and (piece := os.read(process.stdout.fileno(), 65_536)):
            shown += piece
        process.send_signal(sent)
        rest, _ = process.communicate(timeout=WAIT_S)
    return (shown + rest).decode().removeprefix("ready\n"), process.returncode


def said(session: Session) -> tuple[str, bool]:
    last = session.conversation()[-1]
    return last.text, last.interrupted


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_ctrl_c_ends_the_turn_as_cancelled_and_keeps_the_words(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/sessions"
    shown, _ = shown_before(url, signal.SIGINT)
    with open_sessions(url) as sessions:
        session = sessions.get("here")
        text, is_cut_off = said(session)
        ended = session.events(kinds=["turn_ended"])

    assert len(shown.split()) >= 5
    assert text.startswith(shown)
    assert is_cut_off
    assert [event.body["status"] for event in ended] == ["cancelled"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_killed_answer_is_there_after_resuming_and_the_session_goes_on(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/sessions"
    shown, code = shown_before(url, signal.SIGKILL)
    with open_sessions(url) as sessions:
        session = sessions.resume("here")
        text, is_cut_off = said(session)
        with session.turn("more") as turn:
            turn.say("There is nothing to go on from.")
        ended = [event.body["status"] for event in session.events(kinds=["turn_ended"])]

    assert code == -signal.SIGKILL
    assert len(shown.split()) >= 5
    assert text.startswith(shown)
    assert is_cut_off
    assert ended == ["interrupted", "completed"]
