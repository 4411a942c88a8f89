"""`playhead chat`: a conversation at a terminal, and line by line in a pipe."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.agents.triggers import Timer, trigger_types
from playhead.cli import slash
from playhead.cli.asking import Lines
from playhead.cli.happenings import Happenings
from playhead.cli.history import HISTORY_BYTES_MAX, forget, private_history
from playhead.cli.terminal import Terminal
from playhead.features.triggers import Firing
from tests.cli.agents import WORDY
from tests.cli.conftest import CommandLine
from tests.cli.terminals import Shown, in_a_terminal
from tests.conftest import PROJECT

AGENT = "tests.cli.agents:talking"
READY = "\x1b[?2004h"
"""What the line editor sends when it begins to ask: from here on a paste comes marked as one."""


def chat(*typed: tuple[str, str], session: str | None = None, **environment: str) -> Shown:
    """Converse with the talking agent in a terminal."""
    named = ["--session", session] if session is not None else []
    environment = {"PROMPT_TOOLKIT_NO_CPR": "1", **environment}
    return in_a_terminal("chat", "--agent", AGENT, *named, typed=typed, **environment)


def said(sessions: Sessions, id: str = "@last") -> list[str]:
    return [message.text for message in sessions.get(id).conversation()]


def ended(sessions: Sessions, id: str = "@last") -> list[str]:
    return [event.body["status"] for event in sessions.get(id).events(kinds=["turn_ended"])]


def test_prompts_are_answered_until_the_input_ends(sessions: Sessions) -> None:
    shown = chat((READY, "hello\r"), ("You said: hello.", ""), (READY, "\r"), (READY, "bye\r"), (READY, "\x04"))

    assert shown.code == 0
    assert said(sessions) == ["hello", "You said: hello.", "bye", "You said: bye."]
    assert "playhead resume" in shown.shown
    assert sessions.get("@last").event(1).body["config"] == {"answered_by": AGENT}


def test_leaving_without_a_word_leaves_no_session(sessions: Sessions) -> None:
    shown = chat((READY, "/help\r"), (READY, "/quit\r"))

    assert shown.code == 0
    assert "/rewind [TURN]" in shown.shown
    assert sessions.list().total == 0


def test_what_happens_in_a_turn_is_shown_in_order_and_dim(sessions: Sessions) -> None:
    shown = chat((READY, "tools\r"), ("It failed.", ""), (READY, "\x04")).shown
    told = [
        "(thinks) I should look first.",
        "I look.",
        "run_tests(path=tests/upload)",
        "✓ run_tests → failed=1",
        "sub-agent researcher: running",
        "sub-agent researcher: completed",
        "It failed.",
    ]

    assert [shown.index(text) for text in told] == sorted(shown.index(text) for text in told)
    assert "\x1b[2mrun_tests(path=tests/upload)\x1b[0m" in shown


def test_one_ctrl_c_stops_the_turn_and_keeps_what_was_said(sessions: Sessions) -> None:
    shown = chat(
        (READY, "slow\r"), ("It begins", "\x03"), (READY, "hello\r"), ("You said: hello.", ""), (READY, "\x04")
    )

    assert shown.code == 0
    assert "Stopped; what was said is kept." in shown.shown
    assert ended(sessions) == ["cancelled", "completed"]
    assert said(sessions) == ["slow", "It begins", "hello", "You said: hello."]


def test_a_second_ctrl_c_leaves_with_130(sessions: Sessions) -> None:
    shown = chat((READY, "slow\r"), ("It begins", "\x03"), (READY, "\x03"))

    assert shown.code == 130
    assert "Traceback" not in shown.shown
    assert said(sessions) == ["slow", "It begins"]


def test_an_agent_that_does_not_stop_is_left_with_a_second_ctrl_c(sessions: Sessions) -> None:
    shown = chat((READY, "stubborn\r"), ("It begins", "\x03"), ("It has not stopped yet.", "\x03"))
    with sessions.resume("@last") as resumed:
        sealed = resumed.resumed.sealed

    assert shown.code == 130
    assert "Traceback" not in shown.shown
    assert said(sessions) == ["stubborn", "It begins"]
    assert sealed.turn is not None


MODES_AFTERWARDS = """
import sys, termios
from playhead.cli.main import main
import atexit, os
status = os.fork()
if status == 0:
    sys.exit(main())
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
code = os.waitstatus_to_exitcode(os.waitpid(status, 0)[1])
flags = termios.tcgetattr(0)[3]
print("MODES", bool(flags & termios.ICANON), bool(flags & termios.ECHO), bool(flags & termios.ISIG))
sys.exit(code)
"""


def test_an_agent_that_blocks_everything_is_left_and_the_terminal_is_as_it_was(sessions: Sessions) -> None:
    shown = in_a_terminal(
        "chat",
        "--agent",
        "tests.cli.agents:blocking",
        typed=[(READY, "hello\r"), ("?2004l", ""), ("", "\x03"), ("It has not stopped yet.", "\x03")],
        program=MODES_AFTERWARDS,
        PROMPT_TOOLKIT_NO_CPR="1",
    )
    key = sessions.get("@last").key

    assert shown.code == 130
    assert "MODES True True True" in shown.shown
    assert f"playhead resume {key}" in shown.shown
    assert shown.shown.count(READY) == 1
    assert "Traceback" not in shown.shown
    assert said(sessions) == ["hello", "It begins"]


def test_what_is_typed_during_an_answer_is_the_next_prompts_text(sessions: Sessions) -> None:
    shown = chat(
        (READY, "slow\r"),
        ("It begins", "and then"),
        ("", "\x03"),
        ("and then", "?\r"),
        ("and then?.", ""),
        (READY, "\x04"),
    )
    before_the_stop = shown.shown[: shown.shown.index("Stopped; what was said is kept.")]

    assert "and then" not in before_the_stop
    assert said(sessions) == ["slow", "It begins", "and then?", "You said: and then?."]


def test_a_prompt_that_waits_says_so_and_comes_back_where_it_is_stopped(sessions: Sessions, store_url: str) -> None:
    hold = f"""
import sys, time, playhead
with playhead.open({store_url!r}).get(sys.argv[1]).turn("Wait", label="the other window"):
    print("in the turn", flush=True)
    time.sleep(60)
"""
    shown = meanwhile(
        hold,
        (READY, "hello\r"),
        ("You said: hello.", ""),
        (READY, "me too\r"),
        ("fork the session", "\x03"),
        ("me too", "\x03"),
        ("", "\x03"),
        ("", "\x03"),
        COLUMNS="60",
    ).shown
    after = shown[shown.index("fork the session") :]

    assert "The prompt waits: " in shown
    assert "Stopped before it began: the prompt was not sent." in after
    assert "me too" in after
    assert "me too" not in said(sessions)


MEANWHILE = f"""
import atexit, subprocess, sys
from playhead.cli import conversing
from playhead.cli.main import main
done = conversing._Conversation._done
count = 0
async def doing(self, prompt):
    global count
    count += 1
    if count == 2:
        other = subprocess.Popen([sys.executable, "-c", OTHER, self.session.id], stdout=subprocess.PIPE)
        atexit.register(other.kill)
        other.stdout.readline()
    return await done(self, prompt)
OTHER = sys.argv[1]
conversing._Conversation._done = doing
sys.argv = ["playhead", "chat", "--agent", {AGENT!r}]
sys.exit(main())
"""
"""A conversation in which another process does something before the second prompt is answered."""


def meanwhile(other: str, *typed: tuple[str, str], **environment: str) -> Shown:
    return in_a_terminal(other, typed=typed, program=MEANWHILE, PROMPT_TOOLKIT_NO_CPR="1", **environment)


def test_ctrl_c_clears_what_is_typed_before_it_leaves(sessions: Sessions) -> None:
    shown = chat((READY, "never sent"), ("sent", "\x03"), ("\x1b[K", "\x03"), ("again leaves", "\x03"))

    assert shown.code == 130
    assert sessions.list().total == 0


def test_an_agent_that_fails_does_not_end_the_conversation(sessions: Sessions) -> None:
    shown = chat((READY, "fail\r"), ("no answer from the model", ""), (READY, "hello\r"), (READY, "\x04"))

    assert shown.code == 0
    assert "Traceback" not in shown.shown
    assert ended(sessions) == ["failed", "completed"]


def test_alt_enter_and_a_paste_make_one_prompt_of_several_lines(sessions: Sessions) -> None:
    pasted = "\x1b[200~third\r\nfourth\x1b[201~"
    chat((READY, f"first\x1b\rsecond\x1b\r{pasted}\r"), ("You said:", ""), (READY, "\x04"))

    assert said(sessions)[0] == "first\nsecond\nthird\nfourth"


def test_tab_completes_a_command(sessions: Sessions) -> None:
    shown = chat((READY, "/he\t"), ("lp", "\r"), ("/rewind [TURN]", ""), (READY, "\x04"))

    assert "Hide a turn and all after it" in shown.shown


def test_the_slash_commands_do_what_the_commands_do(sessions: Sessions) -> None:
    shown = chat(
        (READY, "first\r"),
        (READY, "second\r"),
        (READY, "/rewind\r"),
        ("Nothing is deleted", ""),
        (READY, "/title Renamed here\r"),
        (READY, "/send ops all is well\r"),
        (READY, "/fork\r"),
        (READY, "third\r"),
        (READY, "\x04"),
    )
    by_title = {row.summary.title: row.id for row in sessions.list().items if row.summary is not None}
    first, fork = by_title["Renamed here"], by_title["Renamed here (fork)"]
    channel = [event.body["content"] for event in sessions.get(first).events(kinds=["channel_message"])]

    assert "playhead rewind" in shown.shown
    assert said(sessions, first)[:2] == ["first", "You said: first."]
    assert "second" not in said(sessions, first)
    assert said(sessions, fork)[-2:] == ["third", "You said: third."]
    assert channel == ["all is well"]


def test_a_search_from_within_finds_what_the_command_finds(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    answer = cli("chat", "--session", upload, text='/search upload limit\n/search "times out"\n/SEARCH xylophone\n')
    outside = cli("search", "upload", "limit"), cli("search", '"times out"')

    assert answer.out == outside[0].out + outside[1].out
    assert upload in outside[0].out


@pytest.mark.parametrize(
    "line", ["/rewind", "/fork", "/export", "/jobs", "/triggers", "/title", "/send ops", "/search xylophone", "/home"]
)
def test_a_command_in_a_chat_in_which_nothing_was_asked_leaves_no_session(
    cli: CommandLine, sessions: Sessions, line: str
) -> None:
    answer = cli("chat", "--agent", AGENT, text=f"{line}\n")

    assert sessions.list().total == 0
    assert "Kept in" not in answer.err
    assert answer.err or line == "/search xylophone"


def test_a_rewind_of_a_session_without_turns_says_that_there_is_nothing(cli: CommandLine, sessions: Sessions) -> None:
    sessions.create("empty-0001").close()
    answer = cli("chat", "--session", "empty-0001", text="/rewind\n")

    assert answer.code == 3
    assert "error: there is nothing to rewind yet\n" in answer.err


def test_what_looks_like_a_command_is_sent_with_one_more_slash(cli: CommandLine, sessions: Sessions) -> None:
    answer = cli("chat", "--agent", AGENT, text="/home\n//home\n// a comment\n /HELP\n")

    assert "there is no command /home" in answer.err
    assert "//home sends it as a prompt" in answer.err
    assert [text for text in said(sessions) if text.startswith("/")] == ["/home", "// a comment"]
    assert "/rewind [TURN]" in answer.out


def test_why_a_job_failed_is_told_and_listed(cli: CommandLine, tmp_home: Path) -> None:
    answer = cli("chat", "--agent", "tests.cli.agents:failing_job", text="go\n/jobs\n")

    assert "background thumbnails: failed (ValueError: no picture there)" in answer.err
    assert "thumbnails" in answer.out and "failed (ValueError: no picture there)" in answer.out


def test_a_session_that_is_put_into_the_trash_meanwhile_says_how_it_comes_back(
    sessions: Sessions, store_url: str
) -> None:
    remove = f"import sys, playhead; playhead.open({store_url!r}).trash(sys.argv[1])"
    shown = meanwhile(
        remove,
        (READY, "hello\r"),
        ("You said: hello.", ""),
        (READY, "again\r"),
        (READY, "\x03"),
        ("", "\x04"),
    ).shown

    assert "To bring it back: playhead restore" in shown
    assert "To go on: playhead resume" not in shown
    assert "No such file" not in shown


def test_a_session_that_is_deleted_meanwhile_is_not_one_to_go_on_with(sessions: Sessions, store_url: str) -> None:
    delete = f"import sys, playhead; playhead.open({store_url!r}).delete(sys.argv[1])"
    shown = meanwhile(
        delete, (READY, "hello\r"), ("You said: hello.", ""), (READY, "again\r"), (READY, "\x03"), ("", "\x04")
    ).shown

    assert "was removed meanwhile." in shown
    assert "To go on: playhead resume" not in shown
    assert "No such file" not in shown


def test_a_store_that_is_gone_meanwhile_is_named_and_not_one_to_go_on_with(sessions: Sessions, tmp_home: Path) -> None:
    remove = f"import shutil; shutil.rmtree({str(tmp_home)!r})"
    shown = meanwhile(
        remove, (READY, "hello\r"), ("You said: hello.", ""), (READY, "again\r"), (READY, "\x03"), ("", "\x04")
    )

    assert "Traceback" not in shown.shown
    assert "mistake in Playhead" not in shown.shown
    assert "To go on: playhead resume" not in shown.shown


def test_answers_are_broken_between_words(sessions: Sessions) -> None:
    shown = in_a_terminal(
        "chat",
        "--agent",
        "tests.cli.agents:wordy",
        typed=[(READY, "hello\r"), ("again please.", ""), (READY, "\x04")],
        PROMPT_TOOLKIT_NO_CPR="1",
        COLUMNS="40",
    ).shown
    answer = shown[shown.index("The upload") : shown.index("again please.")].replace("\r", "").split("\n")

    assert max(map(len, answer)) <= 40
    assert len(answer) > 2
    assert " ".join(answer).rstrip() == WORDY.removesuffix("again please.").rstrip()


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_asking", [True, False])
def test_an_empty_line_parts_the_answer_to_a_firing_from_what_follows(
    cli: CommandLine, sessions: Sessions, is_asking: bool
) -> None:
    out = _Tty()
    asking = Lines(Terminal(out, io.StringIO(), {"NO_COLOR": "1", "COLUMNS": "80"}), None)
    asking.is_asking = is_asking
    shown = Happenings(asking)
    with sessions.create("reminded-0001", triggers=trigger_types()) as session:
        session.add_trigger(Timer(prompt="tea is ready", at=0.0), id="tea")
        with session.fire("tea", Firing(prompt="tea is ready"), expected_seq=session.seq) as turn:
            turn.say("Tea.")
        events = session.events()
    for event in events:
        shown.event(event)
        if event.kind == "turn_ended":
            shown.text("Tea.")
            shown.ended(event, [])
    shown.text("Next.\n")
    shown.end()

    assert "Tea.\n\nNext.\n" in out.getvalue()


def test_a_rewind_shows_what_a_firing_asked(cli: CommandLine, sessions: Sessions) -> None:
    with sessions.create("reminded-0001", triggers=trigger_types()) as session:
        session.add_trigger(Timer(prompt="tea is ready", at=0.0), id="tea")
        with session.fire("tea", Firing(prompt="tea is ready"), expected_seq=session.seq) as turn:
            turn.say("Tea.")
    answer = cli("chat", "--session", "reminded-0001", text="/rewind\n")

    assert "tea is ready" in answer.out


def test_an_unknown_command_is_answered_with_the_nearest_and_is_no_prompt(sessions: Sessions) -> None:
    shown = chat((READY, "/rewnd 1\r"), ("did you mean /rewind?", ""), (READY, "\x04"))

    assert shown.code == 0
    assert sessions.list().total == 0


def test_a_trigger_fires_above_the_line_that_is_being_typed(sessions: Sessions) -> None:
    shown = chat(
        (READY, "timer\r"),
        ("I will.", ""),
        (READY, "half a sen"),
        ("timer fired: tea is ready", ""),
        ("You said: tea", ""),
        ("due at", "tence\r"),
        ("half a sentence.", ""),
        (READY, "\x04"),
    )
    causes = [event.body["cause"] for event in sessions.get("@last").events(kinds=["turn_started"])]

    assert shown.code == 0
    assert causes == ["user", "trigger", "user"]
    assert said(sessions)[-2:] == ["half a sentence", "You said: half a sentence."]


def test_a_trigger_set_before_fires_in_the_next_conversation(sessions: Sessions) -> None:
    with sessions.create("remind-0001", triggers=trigger_types()) as session:
        session.add_trigger(Timer(prompt="water the plants", at=0.0), id="plants")
    shown = chat(("timer fired: water the plants", ""), ("due at", "\x04"), session="remind-0001")

    assert shown.code == 0
    assert ended(sessions, "remind-0001") == ["completed"]


def test_escape_sequences_of_tools_and_answers_never_reach_the_terminal(sessions: Sessions) -> None:
    """C-15."""
    shown = chat((READY, "hostile\r"), ("Done", ""), (READY, "\x04")).shown

    assert "\x1b]0;owned" not in shown
    assert "␛]0;owned" in shown
    assert "\x9b2J" not in shown


def test_the_history_is_its_owners_alone_and_comes_back(sessions: Sessions, tmp_home: Path) -> None:
    chat((READY, "remember me\r"), ("You said", ""), (READY, "\x04"))
    shown = chat((READY, "\x1b[A\r"), ("You said: remember me", ""), (READY, "\x04"))
    file = tmp_home / "playhead" / "state" / "history"

    assert shown.code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "remember me" in file.read_text(encoding="utf-8")


def test_a_history_that_grew_too_long_keeps_its_newer_half(tmp_path: Path) -> None:
    file = tmp_path / "state" / "history"
    file.parent.mkdir()
    entries = [f"\n# 2026-08-01 12:00:00.000000\n+prompt {number:06}\n" for number in range(30_000)]
    file.write_text("".join(entries), encoding="utf-8")
    was_ready = private_history(file)
    kept = file.read_text(encoding="utf-8")

    assert was_ready
    assert len(kept) <= HISTORY_BYTES_MAX // 2
    assert kept.startswith("\n# 2026-08-01")
    assert kept.endswith("+prompt 029999\n")
    assert [name.name for name in file.parent.iterdir()] == ["history"]


def test_what_is_purged_leaves_the_history_and_the_rest_stays(
    cli: CommandLine, sessions: Sessions, tmp_home: Path
) -> None:
    file = tmp_home / "playhead" / "state" / "history"
    chat((READY, "my secret\x1b\rof two lines\r"), ("You said", ""), (READY, "\x04"))
    chat((READY, "another\r"), ("You said", ""), (READY, "\x04"))
    first = sessions.list().items[-1].key
    before = file.read_text(encoding="utf-8")
    answer = cli("rm", str(first), "--purge", "--yes")
    after = file.read_text(encoding="utf-8")
    shown = chat((READY, "\x1b[A\r"), ("You said: another", ""), (READY, "\x04"))

    assert answer.code == 0
    assert "my secret" in before and "of two lines" in before
    assert "my secret" not in after and "of two lines" not in after
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert shown.code == 0


def test_a_history_that_is_not_there_has_nothing_to_forget(tmp_path: Path) -> None:
    assert forget(tmp_path / "history", {"hello"}) == 0


def test_emptying_the_trash_says_where_what_was_typed_still_is(
    cli: CommandLine, sessions: Sessions, tmp_home: Path
) -> None:
    without = cli("rm", "--empty-trash", "--yes")
    chat((READY, "my secret\r"), ("You said", ""), (READY, "\x04"))
    cli("rm", "@last")
    answer = cli("rm", "--empty-trash", "--yes")

    assert "history" not in without.err
    assert str(tmp_home / "playhead" / "state" / "history") in answer.err


def test_a_dumb_terminal_has_no_editor_and_converses_all_the_same(sessions: Sessions) -> None:
    shown = chat(
        ("> ", "hello\n"),
        ("You said: hello.", ""),
        ("> ", "slow\n"),
        ("It begins", "\x03"),
        ("> ", "\x03"),
        TERM="dumb",
    )

    assert shown.code == 130
    assert "\x1b" not in shown.shown
    assert said(sessions) == ["hello", "You said: hello.", "slow", "It begins"]


def test_in_a_pipe_each_line_is_a_prompt_and_stdout_has_the_answers_alone(cli: CommandLine, sessions: Sessions) -> None:
    answer = cli("chat", "--agent", AGENT, text="hello\n\ntools\nlast line without an end")

    assert answer.code == 0
    assert answer.out == "You said: hello.\nI look.It failed.\nYou said: last line without an end.\n"
    assert "run_tests(path=tests/upload)" in answer.err
    assert ended(sessions) == ["completed"] * 3


def test_json_lines_tell_everything_as_it_happens(cli: CommandLine, sessions: Sessions) -> None:
    lines = [
        json.loads(line) for line in cli("chat", "--agent", AGENT, "--jsonl", text="tools\n/help\n").out.splitlines()
    ]
    ends = [line for line in lines if line["type"] == "end"]
    texts = [line["text"] for line in lines if line["type"] == "text"]
    seqs = [line["event"]["seq"] for line in lines if line["type"] == "event"]

    assert [end["text"] for end in ends] == ["I look.It failed.", "You said: /help."]
    assert {(end["session"], end["status"]) for end in ends} == {(sessions.get("@last").id, "completed")}
    assert "".join(texts) == "I look.It failed.You said: /help."
    assert seqs == list(range(2, sessions.get("@last").seq + 1))


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(("text", "wait_for"), [("slow\nnever\n", b"It begins"), ("hello\n", b"You said: hello.")])
def test_in_a_pipe_one_ctrl_c_leaves_and_keeps_what_was_said(sessions: Sessions, text: str, wait_for: bytes) -> None:
    command = [sys.executable, "-m", "playhead._entry", "chat", "--agent", AGENT]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None, "they were asked to be pipes"
        process.stdin.write(text.encode())
        process.stdin.flush()
        shown = b""
        while wait_for not in shown and (piece := os.read(process.stdout.fileno(), 65_536)):
            shown += piece
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in err
    assert said(sessions) == [text.splitlines()[0], wait_for.decode()]


def test_in_a_pipe_a_prompt_that_fails_is_told_by_the_exit_code(cli: CommandLine, sessions: Sessions) -> None:
    answer = cli("chat", "--agent", AGENT, text="fail\nhello\n")

    assert answer.code == 1
    assert answer.out == "You said: hello.\n"
    assert ended(sessions) == ["failed", "completed"]


def test_a_session_is_exported_from_within(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = cli("chat", "--session", upload, text="/export\n/export upload.html\n/export upload.html\n")
    written = sorted(file.name for file in tmp_path.iterdir() if file.is_file())
    again = cli("chat", "--session", upload, text="/export --force\n/export upload.html --force\n")

    assert "Flaky upload test" in (tmp_path / "upload.html").read_text(encoding="utf-8")
    assert len(written) == 2 and written[1] == "upload.html" and written[0].endswith(".md")
    assert f"to {written[0]}." in answer.err
    assert "upload.html: there is a file of this name already; --force overwrites it" in answer.err
    assert again.code == 0


def test_an_export_knows_the_home_folder_and_the_formats_there_are(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_home: Path
) -> None:
    home = cli("chat", "--session", upload, text="/export ~/upload notes.md\n")
    other = cli("chat", "--session", upload, text="/export foo.pdf\n")
    nowhere = cli("chat", "--session", upload, text="/export no/such/folder/x.md\n")

    assert home.code == 0
    assert "Flaky upload test" in (tmp_home / "upload notes.md").read_text(encoding="utf-8")
    assert "give .md, .html or .jsonl" in other.err and "--format" not in other.err
    assert "no/such/folder/x.md cannot be written" in nowhere.err


def test_jobs_and_triggers_are_listed(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    empty = cli("chat", text="/jobs\n/triggers\n")
    with sessions.get(upload, triggers=trigger_types()) as session:
        session.add_trigger(Timer(prompt="water the plants", at=4_000_000_000.0), id="plants")
    full = cli("chat", "--session", upload, text="/jobs\n/triggers\n")

    assert "There are no jobs." in empty.err and "There are no triggers." in empty.err
    assert "sub-agent coordinator/researcher:1: completed" in full.out
    assert "plants  " in full.out


@pytest.mark.parametrize("line", ["/title", "/search", "/send ops", "/rewind x", "/rewind 99", "/nothing"])
def test_a_command_that_is_used_wrongly_says_how_and_changes_nothing(
    cli: CommandLine, sessions: Sessions, upload: str, line: str
) -> None:
    before = sessions.get(upload)
    answer = cli("chat", "--session", upload, text=f"{line}\n")
    after = sessions.get(upload)

    assert answer.code in (2, 3)
    assert answer.err.startswith("error: ") or "\nerror: " in answer.err
    assert (after.title, after.turn_count) == (before.title, before.turn_count)


def test_a_chat_goes_on_with_a_session(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    answer = cli("chat", "--agent", AGENT, "--session", "flaky upload test", text="and then?\n")

    assert answer.code == 0
    assert said(sessions, upload)[-2:] == ["and then?", "You said: and then?."]
    assert cli("chat", "--session", "no-such-session", text="").code == 3
    assert cli("chat", "--session", upload, "--title", "x", text="").code == 2


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("/help", True),
        (" /Help", True),
        ("//help", False),
        ("/rewind 2", True),
        ("/etc/hosts", False),
        ("/", False),
        ("a /b", False),
    ],
)
def test_only_a_word_after_a_slash_is_a_command(text: str, is_command: bool) -> None:
    assert slash.is_command(text) is is_command
