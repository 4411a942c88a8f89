"""What the tests of the command line share: a way to call it, and a store with sessions in it."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import playhead
from playhead import Sessions
from playhead.cli.main import app

ESCAPES = "\x1b[2J \x1b]0;owned\x07 \x9b2J \x08\x7f"
"""Escape sequences and control characters, as hostile tool output holds them."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call of the command line left: its exit code and both streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The tab-separated rows of stdout."""
        return [line.split("\t") for line in self.out.splitlines()]


class CommandLine:
    """Calls commands in this process, with a pipe where a terminal could be."""

    def __call__(self, *arguments: str, text: str | None = None, **environment: str) -> Answered:
        result = CliRunner().invoke(app, list(arguments), input=text, env=environment, prog_name="playhead")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        # The runner's own text has line ends changed; the bytes are what was written.
        return Answered(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())


@pytest.fixture
def cli(tmp_home: Path) -> CommandLine:
    """The command line, with an empty home and a store in it."""
    return CommandLine()


@pytest.fixture
def store_url(tmp_home: Path) -> str:
    """The URL of the store that the command line uses by itself."""
    return f"bundles:{os.environ['PLAYHEAD_HOME']}/sessions"


@pytest.fixture
def sessions(store_url: str) -> Iterator[Sessions]:
    """The store that the command line uses by itself, open."""
    with playhead.open(store_url, clock=_Clock()) as opened:
        yield opened


@pytest.fixture
def upload(sessions: Sessions) -> str:
    """A session of three turns, with a tool, a sub-agent and hostile output; its id."""
    with sessions.create("upload-0001", title="Flaky upload test", cwd="/home/ada/upload") as session:
        with session.turn("Why does test_upload fail on CI?") as turn:
            call = turn.tool_call("run_tests", {"path": "tests/upload"})
            turn.tool_result(call, {"failed": 1, "output": f"{ESCAPES} connection reset by peer"})
            turn.say("The upload test times out after 30 seconds.\n\nRaise the limit to 60.")
        with session.turn("Did anybody see this before?") as turn:
            with turn.subagent("researcher", "Look for earlier timeouts.") as researcher:
                researcher.say("Nothing before March.")
            turn.say("Nobody wrote about it.")
        with session.turn("Then raise the limit.") as turn:
            turn.say(f"Done {ESCAPES}")
    return session.id


@pytest.fixture
def hostile(sessions: Sessions) -> str:
    """A session whose every piece of text holds escape sequences; its id. The newest, where `upload` is there too."""
    title = f"{ESCAPES} title"
    with sessions.create("hostile-0001", title=title, cwd=f"/home/{ESCAPES}", labels=[ESCAPES]) as session:
        with session.turn(f"prompt {ESCAPES}") as turn:
            turn.think(f"reasoning {ESCAPES}")
            call = turn.tool_call(f"tool {ESCAPES}", {f"key {ESCAPES}": f"value {ESCAPES}"})
            turn.tool_result(call, f"response {ESCAPES}", is_error=True)
            turn.say(
                [{"type": "text", "content": f"answer {ESCAPES}"}, {"type": "uri", "uri": "x", "mime_type": ESCAPES}]
            )
        session.save_artifact(f"file {ESCAPES}", b"bytes")
        session.send(f"channel {ESCAPES}", f"content {ESCAPES}", sender=f"sender {ESCAPES}")
    return session.id


class _Clock:
    """A clock that moves on a second at every look, so that the order of sessions is certain."""

    def __init__(self) -> None:
        self._at = 1_785_585_600.0

    def __call__(self) -> float:
        self._at += 1.0
        return self._at


@pytest.fixture
def claude_home(tmp_path: Path) -> Path:
    """A Claude Code folder with one session: a prompt, an answer, and a line that is no record in between."""
    folder = tmp_path / "claude" / "projects" / "-home-ada-upload"
    folder.mkdir(parents=True)
    lines = [
        claude_record(1, "user", "Why does test_upload fail?"),
        "this is no record\n",
        claude_record(2, "assistant", [{"type": "text", "text": "It times out."}]),
    ]
    (folder / f"{CLAUDE_SESSION}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder.parent.parent


CLAUDE_SESSION = "0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"


def claude_record(number: int, role: str, content: Any, *, session: str = CLAUDE_SESSION) -> str:
    """Return one line of a Claude Code session; each record follows the one with the number before."""
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5"}
    record = {
        "type": role,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": session,
        "timestamp": f"2026-08-01T12:00:{number:02}.000Z",
        "cwd": "/home/ada/upload",
        "version": "2.0.0",
        "isSidechain": False,
        "userType": "external",
        "message": message,
    }
    return json.dumps(record) + "\n"
