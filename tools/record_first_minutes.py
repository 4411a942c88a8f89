"""Records a newcomer's first minutes at a real terminal: docs/first-minutes.md to read, and .cast to play.

    python tools/record_first_minutes.py

It needs tmux, types each line as a person would, and keeps what the screen shows. Everything happens in a home of its
own that holds one made-up session of Claude Code, so nothing of this machine gets into the page.
"""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PAGE = PROJECT / "docs" / "first-minutes.md"
CAST = PAGE.with_suffix(".cast")
COLUMNS, LINES = 100, 32
WAIT_S = 30.0
LOOK_S = 0.1
KEY_S = 0.02
READ_S = 1.5
"""How long a person looks at what came, before the next line."""
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
    Step(
        "Ask: the built-in agent quotes your sessions and, here, a folder of documents.",
        ['playhead run "How is a session resumed after a crash?" --documents docs\n'],
        ["Kept in"],
    ),
    Step(
        "Talk. Slash commands rewind, fork, search and export without leaving; Ctrl-D leaves, and the session stays.",
        ["playhead chat\n", "who reset the connection\n", "/rewind\n", "/title Uploads\n", "C-d"],
        ["Ctrl-D leaves", "by peer", "hidden", "is called", "To go on"],
    ),
    Step("The picker finds it again: type a few letters, Tab shows what is in it.", ["playhead resume\n"], ["Enter"]),
    Step("", ["flaky", "Tab"], ["Flaky upload", "preview"]),
    Step("", ["Escape", "Escape"], ["", "$"]),
    Step("Look at it event by event.", ["playhead timeline claude-code\n"], ["title=flaky"]),
    Step(
        "Give it to a colleague as one page that needs nothing else.",
        ["playhead export claude-code -o upload.html\n"],
        ["upload.html"],
    ),
    Step(
        "Put a session in the trash, and undo that.",
        ["playhead rm @last\n", "playhead restore @last\n"],
        ["restore", ""],
    ),
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

        self._tmux("set", "-g", "status", "off")  # It would name this machine.
        self._began = time.monotonic()
        self._cast = [json.dumps({"version": 2, "width": COLUMNS, "height": LINES, "title": "Playhead: first minutes"})]
        self._watched = threading.Thread(target=self._watch, daemon=True)
        self._watched.start()

    def cast(self) -> str:
        """Return everything that the terminal was sent, as asciicast v2 (a line for each piece, with its time)."""
        return "\n".join(self._cast) + "\n"

    def _watch(self) -> None:
        """Look at the terminal as a person at another one would, until it closes, and keep what is sent there."""
        pid, descriptor = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execvp("tmux", ["tmux", "-S", self._socket, "attach", "-r"])
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                data = os.read(descriptor, 65_536)
            except OSError:  # The other side is gone.
                break
            if not data:
                break
            self._cast.append(json.dumps([round(time.monotonic() - self._began, 3), "o", decoder.decode(data)]))
        os.waitpid(pid, 0)

    def type(self, text: str) -> None:
        """Type a line (with its line feed), or press a key that tmux has a name for."""
        if text.startswith("C-") or text in ("Escape", "Enter", "Tab"):
            self._tmux("send-keys", text)
            return
        line, feed, _ = text.partition("\n")
        for character in line:
            self._tmux("send-keys", "-l", character)
            time.sleep(KEY_S)
        if feed:
            self._tmux("send-keys", "Enter")

    def wait_for(self, text: str) -> str:
        """Return the screen once it shows the text and stands still."""
        given_up_at = time.monotonic() + WAIT_S
        before = ""
        while time.monotonic() < given_up_at:
            time.sleep(LOOK_S)
            shown = self.shown()
            if text.casefold() in shown.casefold() and shown == before:
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
            time.sleep(0.5)
            screen.wait_for(shows)
            time.sleep(READ_S)
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
        CAST.write_text(screen.cast().replace(str(home), "~"), encoding="utf-8")
    text = "\n\n".join(
        [
            "# The first minutes",
            f"A newcomer's first minutes at a terminal of {COLUMNS} columns, as tmux captured them: {seconds:.0f} "
            "seconds, typed by `tools/record_first_minutes.py`, which makes this page and, to play them again, "
            "[first-minutes.cast](first-minutes.cast) (`asciinema play docs/first-minutes.cast`). The home holds one "
            "session of Claude Code and a folder of documents.",
            *blocks,
        ]
    )
    PAGE.write_text("\n".join(line.rstrip() for line in text.split("\n")) + "\n", encoding="utf-8")
    print(f"{PAGE}: {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
