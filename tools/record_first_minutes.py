"""Records a newcomer's first minutes at a real terminal, and writes them to docs/first-minutes.md.

    python tools/record_first_minutes.py

It needs tmux, types each line as a person would, and keeps what the screen shows. Everything happens in a home of its
own that holds one made-up session of Claude Code, so nothing of this machine gets into the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PAGE = PROJECT / "docs" / "first-minutes.md"
COLUMNS, LINES = 100, 32
WAIT_S = 30.0
LOOK_S = 0.1
PROMPT = re.compile(r"^\$ $", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """What is typed, a key or a line at a time, what the screen then has to show, and what the page says of it."""

    says: str
    typed: Sequence[str]
    shows: Sequence[str]


STEPS = (
    Step("Bring in what is on this machine.", ["playhead import --yes\n"], ["1 of them new"]),
    Step("See what there is, and find a half-remembered word in it.", ["playhead list\n"], ["Flaky upload"]),
    Step("", ["playhead search reset connection\n"], ["2 hits"]),
    Step("Ask: the built-in agent answers from your sessions and, here, from a folder.", [], []),
    Step(
        "",
        ['playhead run "How is a session resumed after a crash?" --documents docs\n'],
        ["Kept in"],
    ),
    Step(
        "Talk. Slash commands rewind, fork, search and export without leaving.",
        ["playhead chat\n", "what did the upload test do\n", "/rewind\n", "/title Uploads\n"],
        ["> ", "connection reset", "rewind", "Uploads"],
    ),
    Step("Ctrl-D leaves; the session stays, and the picker finds it again.", ["C-d", "playhead resume\n"], ["Enter"]),
    Step("", ["flaky"], ["Flaky upload"]),
    Step("", ["Escape", "Escape"], []),
    Step("Look at it event by event, fork it, and see what differs.", ["playhead timeline @-2\n"], ["turn ends"]),
    Step("", ["playhead export @-2 -o upload.html\n"], ["upload.html"]),
    Step("Put a session in the trash, and undo that.", ["playhead rm @last\n", "playhead restore @last\n"], ["", ""]),
    Step("Prove that nothing was lost.", ["playhead verify --all\n"], ["are whole"]),
)


class Screen:
    """A tmux of its own with one shell in it."""

    def __init__(self, home: Path) -> None:
        self._socket = str(home / "tmux")
        environment = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PS1": "$ ",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        assigned = [f"{name}={value}" for name, value in environment.items()]
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", str(home / "project"),
            "env", "-i", *assigned, "TERM=screen", "bash", "--norc", "--noprofile",
        )  # fmt: skip

    def type(self, text: str) -> None:
        """Type a line (with its line feed), or press a key that tmux has a name for."""
        if text.startswith("C-") or text in ("Escape", "Enter"):
            self._tmux("send-keys", text)
            return
        line, feed, _ = text.partition("\n")
        self._tmux("send-keys", "-l", line)
        if feed:
            self._tmux("send-keys", "Enter")

    def wait_for(self, text: str) -> str:
        """Return the screen once it shows the text and stands still."""
        given_up_at = time.monotonic() + WAIT_S
        before = ""
        while time.monotonic() < given_up_at:
            time.sleep(LOOK_S)
            shown = self.shown()
            if text in shown and shown == before:
                return shown
            before = shown
        raise SystemExit(f"the screen never showed {text!r}; it shows:\n{before}")

    def shown(self) -> str:
        return self._tmux("capture-pane", "-p", "-J").rstrip()

    def clear(self) -> None:
        self._tmux("send-keys", "C-l")
        time.sleep(3 * LOOK_S)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make_home(home: Path) -> None:
    """Lay out a home with a project, the project's documents, and one session of Claude Code."""
    docs = home / "project" / "docs"
    docs.mkdir(parents=True)
    for page in ("glossary.md", "guarantees.md", "library.md"):
        (docs / page).write_bytes((PROJECT / "docs" / page).read_bytes())
    folder = home / ".claude" / "projects" / "-home-ada-upload"
    folder.mkdir(parents=True)
    session = "0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    run = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest tests/upload"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1 failed: connection reset by peer"}
    said = (
        ("user", "Flaky upload test: why does it fail on CI?"),
        ("assistant", [run]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "The server closes the connection after 30 s. Raise its limit."}]),
    )
    lines = []
    for number, (role, content) in enumerate(said, start=1):
        message: dict[str, object] = {"role": role, "content": content}
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
        lines.append(json.dumps(record) + "\n")
    (folder / f"{session}.jsonl").write_text("".join(lines), encoding="utf-8")


def recorded(screen: Screen, home: Path) -> tuple[list[str], float]:
    """Go through the steps; return the page's blocks, and how many seconds it took."""
    began = time.monotonic()
    blocks = []
    screen.wait_for("$")
    for step in STEPS:
        if step.says:
            blocks.append(step.says)
        if not step.typed:
            continue
        if PROMPT.search(screen.shown() + " ") or step.typed[0].startswith("playhead"):
            screen.clear()
        for typed, shows in zip(step.typed, [*step.shows, *[""] * len(step.typed)], strict=False):
            screen.type(typed)
            time.sleep(0.6)
            screen.wait_for(shows)
        shown = screen.shown().replace(str(home), "~")
        if shown.strip(" $\n"):
            blocks.append(f"```text\n{shown}\n```")
    return blocks, time.monotonic() - began


def main() -> int:
    """Record, and write the page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        make_home(home)
        screen = Screen(home)
        try:
            blocks, seconds = recorded(screen, home)
        finally:
            screen.close()
    text = "\n\n".join(
        [
            "# The first minutes",
            f"A newcomer's first minutes at a terminal of {COLUMNS} columns, as tmux captured them: {seconds:.0f} "
            "seconds, typed by `tools/record_first_minutes.py`, which makes this page. The home holds one "
            "session of Claude Code and a folder of documents.",
            *blocks,
        ]
    )
    PAGE.write_text("\n".join(line.rstrip() for line in text.split("\n")) + "\n", encoding="utf-8")
    print(f"{PAGE}: {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
