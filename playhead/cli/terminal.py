"""The terminal: where a command's lines, tables and JSON go, with colour and columns only where a person reads them.

Results go to stdout, everything else to stderr. All text is made safe here (see `text.py`), so a command cannot forget
to; only `exact` writes bytes as they are, and only where stdout is no terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from playhead.cli import text as texts
from playhead.cli.table import Cell, Column, Piece, Style, Styled, aligned, tab_separated

_CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "mark": "1;33",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
_WIDTH_DEFAULT = 80
_WIDTH_MIN = 20
_PROGRESS_COLUMNS_SPARE = 1
# Characters that JSON may hold as they are and a terminal (or a line-based reader) would act upon.
_JSON_UNSAFE = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Terminal:
    """The streams of one call of a command. Not safe for use by several threads at once."""

    def __init__(
        self, out: TextIO, err: TextIO, environment: Mapping[str, str], *, source: TextIO | None = None
    ) -> None:
        self._out = out
        self._err = err
        self._source = source
        self._environment = environment
        self._progress_shown = False
        self.is_quiet = False
        self.is_interactive = _is_tty(out)
        self.can_ask = self.is_interactive and source is not None and _is_tty(source)
        self.has_color = _has_color(environment, is_tty=self.is_interactive)
        self._error_color = _has_color(environment, is_tty=_is_tty(err))

    @property
    def width(self) -> int:
        """Columns of the terminal: COLUMNS where it is set, else as the terminal says, else 80."""
        wanted = self._environment.get("COLUMNS", "")
        if wanted.isascii() and wanted.isdigit() and int(wanted):
            return max(int(wanted), _WIDTH_MIN)
        try:
            # A terminal that was never told its size says 0.
            return max(os.get_terminal_size(self._out.fileno()).columns or _WIDTH_DEFAULT, _WIDTH_MIN)
        except (OSError, ValueError):
            return _WIDTH_DEFAULT

    # Results, to stdout.

    def line(self, *pieces: Piece) -> None:
        """Write one line (or, where the text has line feeds, several)."""
        self._write("".join(self._painted(piece, self.has_color) for piece in pieces) + "\n")

    def start(self, *pieces: Piece) -> None:
        """Write text that more will follow on the same line, and show it at once."""
        self._write("".join(self._painted(piece, self.has_color) for piece in pieces))
        self._out.flush()

    def json(self, value: Any) -> None:
        """Write a value as one JSON document: indented for a person, on one line for a program."""
        self._write(json_text(value, indent=2 if self.is_interactive else None) + "\n")

    def json_line(self, value: Any) -> None:
        """Write a value as one line of JSON and hand it over at once: one of a stream that a program follows."""
        self._write(json_text(value) + "\n")
        self._out.flush()

    def exact(self, text: str) -> None:
        """Write text as it is for a program to read; on a terminal it is made safe like any other."""
        if self.is_interactive:
            self._write(texts.plain(text))
            return
        # Half a surrogate pair has no UTF-8 form; a program that reads the pipe gets its escape.
        self._write(text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell | str]]) -> None:
        """Write rows: aligned under headings on a terminal, else tab-separated without headings, values exact.

        Columns that a narrow terminal has no room for are named in a note.
        """
        if self.is_interactive:
            fitted = aligned(columns, list(rows), self.width)
            for pieces in fitted.lines:
                self.line(*pieces)
            if fitted.left_out:
                self.note(f"No room here for {', '.join(fitted.left_out)}: a wider terminal or --json has more.")
        else:
            for row in rows:
                self._write(tab_separated(row) + "\n")

    # What goes on, and what went wrong, to stderr.

    def note(self, text: str) -> None:
        """Write a sentence about what happens; nothing under --quiet."""
        if not self.is_quiet:
            self._say(texts.plain(text))

    def progress(self, text: str) -> None:
        """Show what is being done, in one line that is written over; only where stderr is a terminal."""
        if self.is_quiet or not _is_tty(self._err) or self._environment.get("TERM") == "dumb":
            return
        line = texts.fitted(texts.one_line(text), self.width - _PROGRESS_COLUMNS_SPARE)
        self._err.write(f"\r\x1b[K{line}")
        self._err.flush()
        self._progress_shown = True

    def end_progress(self) -> None:
        """Take the line of `progress` away."""
        if self._progress_shown:
            self._err.write("\r\x1b[K")
            self._err.flush()
            self._progress_shown = False

    def error(self, text: str) -> None:
        """Write the one line that says why a command failed."""
        self._say(self._painted(Styled("error:", "red"), self._error_color) + " " + texts.one_line(text))

    def error_detail(self, text: str) -> None:
        """Write a line that helps to go on after an error."""
        self._say("  " + texts.plain(text))

    def error_block(self, text: str) -> None:
        """Write several lines for whoever mends the program."""
        self._say(texts.plain(text.rstrip("\n")))

    # The streams themselves.

    def flush(self) -> None:
        """Hand over everything written so far. Raises `BrokenPipeError` where the reader went away."""
        self._out.flush()

    def abandon(self) -> None:
        """Point stdout at nothing, so that Python's own flush at exit finds no broken pipe and no full disk."""
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._out.fileno())
            os.close(null)
        except (OSError, ValueError):
            pass  # A stream without a descriptor has no pipe that could be broken at exit.

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Send what the block writes through the person's PAGER, where stdout is a terminal and one is set."""
        command = shlex.split(self._environment.get("PAGER", ""))
        if not self.is_interactive or not command or shutil.which(command[0]) is None:
            yield
            return
        environment = {**self._environment, "LESS": self._environment.get("LESS", "FRX")}
        self.flush()
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8")
        assert pager.stdin is not None
        straight = self._out
        self._out = cast(TextIO, pager.stdin)  # Opened as text, which the type of Popen does not tell.
        try:
            yield
        except BrokenPipeError:
            pass  # The person left the pager: the rest is not wanted.
        finally:
            self._out = straight
            with suppress(BrokenPipeError):
                pager.stdin.close()
            pager.wait()

    def _write(self, text: str) -> None:
        self._out.write(text)

    def _say(self, text: str) -> None:
        self.end_progress()
        try:
            self._err.write(text + "\n")
            self._err.flush()
        except BrokenPipeError:
            pass  # Nobody reads the messages; the exit code still tells.

    def _painted(self, piece: Piece, color: bool) -> str:
        if isinstance(piece, str):
            return texts.plain(piece)
        safe = texts.plain(piece.text)
        return f"\x1b[{_CODES[piece.style]}m{safe}\x1b[0m" if color and safe else safe


def here_and_now(environment: Mapping[str, str]) -> Terminal:
    """Return the terminal of this process, its streams made to replace what their encoding cannot hold."""
    # A stream that was closed before the start (`>&-`) is None; what is written then goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    return Terminal(sys.stdout, sys.stderr, environment, source=sys.stdin)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON text that any terminal shows safely: control characters and those that turn the direction of writing
    are escapes, other scripts stay."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _JSON_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _has_color(environment: Mapping[str, str], *, is_tty: bool) -> bool:
    """Follow the customs: NO_COLOR wins, then FORCE_COLOR, then what the terminal can do."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0") or environment.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_tty and environment.get("TERM") != "dumb" and environment.get("CLICOLOR") != "0"


def _is_tty(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False  # A closed stream is no terminal.
