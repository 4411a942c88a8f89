"""Commands run in a terminal of their own: a pseudo-terminal with a person who types."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.conftest import PROJECT

TIMEOUT_S = 30
QUIET_S = 0.2


@dataclass(frozen=True, slots=True)
class Shown:
    """What stood on the terminal in the end (both streams, as sent), and the exit code."""

    shown: str
    code: int


def in_a_terminal(
    *arguments: str, typed: Sequence[tuple[str, str]] = (), program: str | None = None, **environment: str
) -> Shown:
    """Run the command line in a terminal. typed: what to wait for on the screen, and what is then typed.

    program: Python to run in place of the command line (with the arguments in `sys.argv`).
    """
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", program] if program else [sys.executable, "-m", "playhead._entry"]
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=PROJECT,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "PAGER": "", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        # A session of its own makes the terminal its controlling one, so that a typed Ctrl-C interrupts it.
        start_new_session=True,
        preexec_fn=lambda: _take_terminal(theirs),
    )
    os.close(theirs)
    try:
        shown = _talk(ours, list(typed))
        code = process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return Shown(shown.decode("utf-8", "replace"), code)


def _take_terminal(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _talk(terminal: int, typed: list[tuple[str, str]]) -> bytes:
    """Read until the other side is done. A line is typed once what it waits for has appeared since the last one, and
    the screen stands still: a Ctrl-C between a prompt and the read behind it would be lost, as it is for a person."""
    shown, seen = b"", 0
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], QUIET_S)
        if not ready:
            if typed and (at := shown.find(typed[0][0].encode(), seen)) >= 0:
                seen = at + len(typed[0][0].encode())
                os.write(terminal, typed.pop(0)[1].encode())
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # Linux reports a terminal whose other side is closed as an error.
            return shown
        if not piece:
            return shown
        shown += piece
    raise AssertionError(f"the command did not end; on the terminal stood: {shown!r}")
