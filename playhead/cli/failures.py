"""Errors to exit codes and to one line that says what to do next."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

import typer

from playhead import errors
from playhead.cli.terminal import Terminal

EXIT_CODES = {
    0: "done",
    1: "it failed; the line on stderr says why",
    2: "the command line was not understood",
    3: "no such session, event or turn; the nearest names are on stderr",
    4: "someone else is in a turn of the session; the holder is on stderr",
    5: "the name fits more than one session; the candidates are on stderr",
    6: "damage was found",
    10: "the turn waits for a person",
    130: "interrupted with Ctrl-C; what was written stays",
}
"""What each code means, for every command's help. A reader that closes the pipe early is no failure: 0."""


class Failure(Exception):
    """What a command reports instead of its result: a message without a full stop, an exit code, and further lines."""

    def __init__(self, message: str, *, code: int, lines: Sequence[str] = ()) -> None:
        self.code = code
        self.lines = tuple(lines)
        super().__init__(message)


_BY_ERROR: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidName, 2),
    (errors.SessionNotFound, 3),
    (errors.EventNotFound, 3),
    (errors.TurnNotFound, 3),
    (errors.ArtifactNotFound, 3),
    (errors.SessionBusy, 4),
    (errors.StaleWriter, 4),
    (errors.LeaseLost, 4),
    (errors.StoreLocked, 4),
    (errors.StoreDamaged, 6),
    (errors.ArtifactDamaged, 6),
    (errors.NotAStore, 1),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code that an error ends the program with."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, BrokenPipeError):
        return 0
    if isinstance(error, typer.TyperException):
        return error.exit_code
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), 1)


def message(error: BaseException) -> str:
    """Return one line about an error: what happened, to what, and what to do next."""
    if isinstance(error, Failure | errors.PlayheadError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; what was written stays"
    if isinstance(error, typer.TyperException):
        text = error.format_message().rstrip(".")
        return text[:1].lower() + text[1:]
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    name = type(error).__name__
    return f"this is a mistake in Playhead ({name}: {error}); run it again with --debug and report what it prints"


def guarded(run: Callable[[], int | None], terminal: Terminal, *, debug: bool = False) -> int:
    """Run a command and return its exit code; what it raises becomes a line on stderr, with `debug` a traceback.

    A reader that went away (`| head -1`) ends the command without a word.
    """
    try:
        code = run() or 0
        terminal.flush()
        return code
    except BrokenPipeError:
        terminal.abandon()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            terminal.error_block(traceback.format_exc())
        report(error, terminal)
        try:
            terminal.flush()
        except OSError:
            terminal.abandon()
        return exit_code(error)


def report(error: BaseException, terminal: Terminal) -> None:
    """Write the error to stderr, with the lines that help to go on."""
    terminal.error(message(error))
    for line in error.lines if isinstance(error, Failure) else ():
        terminal.error_detail(line)
    usage_of = getattr(getattr(error, "ctx", None), "command_path", None)
    if isinstance(error, typer.TyperException) and usage_of:
        terminal.error_detail(f"see: {usage_of} --help")
