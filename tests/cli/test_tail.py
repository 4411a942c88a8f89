"""`playhead tail`: the last events, and those that come while it looks on."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue

import pytest

import playhead
from playhead import Sessions
from tests.cli.conftest import CommandLine

WAIT_S = 30


class Follower:
    """A `tail -f` in a process of its own. What it prints is read by a thread, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def line(self) -> str:
        """Return the next line that it prints."""
        try:
            return self._lines.get(timeout=WAIT_S)
        except Empty:
            raise AssertionError(f"nothing came for {WAIT_S} s") from None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))


@contextmanager
def following(*arguments: str) -> Iterator[Follower]:
    command = [sys.executable, "-m", "playhead._entry", "tail", "-f", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=os.environ
    )
    try:
        yield Follower(process)
    finally:
        process.kill()
        process.communicate()


def test_the_last_events_are_printed_the_newest_last(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    rows = cli("tail", upload, "-n", "2").rows
    none = cli("tail", upload, "-n", "0")

    assert [int(row[0]) for row in rows] == [sessions.get(upload).seq - 1, sessions.get(upload).seq]
    assert (none.code, none.out) == (0, "")


def test_jsonl_prints_whole_events(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    (line,) = cli("tail", upload, "-n", "1", "--jsonl").out.splitlines()

    assert json.loads(line)["body"] == {"status": "completed"}


def test_what_another_process_writes_appears_and_ctrl_c_ends_it(sessions: Sessions, upload: str) -> None:
    with following(upload, "-n", "1", "--jsonl") as follower:
        first = json.loads(follower.line())
        with sessions.get(upload).turn("And on Windows?") as turn:
            turn.say("There it passes.")
        new = [json.loads(follower.line()) for _ in range(4)]
        sessions.get(upload).rewind(turn=-1)
        moved = json.loads(follower.line())
        follower.process.send_signal(signal.SIGINT)
        code = follower.process.wait(WAIT_S)

    assert [event["kind"] for event in new] == ["turn_started", "message", "message", "turn_ended"]
    assert [event["seq"] for event in new] == [first["seq"] + number for number in range(1, 5)]
    assert moved["kind"] == "head_moved"
    assert code == 130


def test_a_session_that_goes_away_ends_it_with_a_sentence(sessions: Sessions, upload: str) -> None:
    with following(upload, "-n", "1") as follower:
        follower.line()
        sessions.delete(upload)
        code = follower.process.wait(WAIT_S)
        assert follower.process.stderr is not None
        said = follower.process.stderr.read()

    assert code == 3
    assert "not there any more" in said


def test_a_look_reads_one_row_where_nothing_is_new(
    cli: CommandLine, sessions: Sessions, upload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.cli import tail
    from playhead.cli.terminal import here_and_now

    follower = tail._Follower(here_and_now({}), sessions, sessions.get(upload).key, jsonl=True)
    monkeypatch.setattr(sessions.store, "events", lambda *_, **__: pytest.fail("events were read"))
    follower.look()


def test_a_session_that_was_deleted_and_begun_again_is_followed_from_its_beginning(
    store_url: str, sessions: Sessions, upload: str
) -> None:
    with following(upload, "-n", "1") as follower:
        follower.line()
        sessions.delete(upload)
        with playhead.open(store_url) as others:
            others.create(upload, title="Another").close()
        line = follower.process.wait(WAIT_S) if follower.process.poll() is not None else follower.line()

    assert line == 3 or "session_started" in str(line)
