"""Errors to exit codes and to one line that says what to do next."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from playhead import errors
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line

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


GIVEN_CHARS_MAX = 60
"""So much of a value that makes no sense is repeated."""


class Failure(Exception):
    """What a command reports instead of its result: a message without a full stop, an exit code, and further lines."""

    def __init__(self, message: str, *, code: int, lines: Sequence[str] = ()) -> None:
        self.code = code
        self.lines = tuple(lines)
        super().__init__(message)


# What a person's own code raised.

PLACES_MAX = 3
"""So many places of a person's own code are named, the last of those that a call went through."""
CAUSES_MAX = 10
"""So far back is looked for one where an error was raised from another."""


class _Blame(str):
    """The note on an error that says which agent raised it."""

    __slots__ = ("agent",)
    agent: str


def blame(error: BaseException, agent: str) -> None:
    """Note on an error that a person's own agent raised it, so that it is told as theirs, and not as Playhead's."""
    note = _Blame(f"It was raised in the agent {agent}.")
    note.agent = agent
    error.add_note(note)


def blamed(error: BaseException) -> str | None:
    """Return the name of the agent that raised an error, None where it was none of a person's own."""
    notes = getattr(error, "__notes__", ())
    return next((note.agent for note in notes if isinstance(note, _Blame)), None)


def said(error: BaseException) -> str:
    """Return an error's type and text, in one line. A group of one error is that error."""
    text = f"{type(_only(error)).__name__}: {_only(error)}"
    return one_line(text.removesuffix(": "))


def places(error: BaseException) -> list[str]:
    """Return lines that name the places in a person's own code, the last being the one that raised the error.

    Where the error came out of none of it (of a package that they use), the place in there; of Playhead's, none.
    """
    frames = [_frames(one) for one in _with_causes(_only(error))]
    own = next((theirs for some in frames if (theirs := [one for one in some if not _is_in(one, _NOT_OWN)])), [])
    shown = own[-PLACES_MAX:] or [frame for frame in frames[0] if _is_in(frame, _PACKAGES)][-1:]
    return [f"in {one_line(frame.filename)}, line {frame.lineno}: {one_line(frame.line or '')}" for frame in shown]


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it was raised from, the error first."""
    chain = [error]
    while len(chain) < CAUSES_MAX and chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the places in files that a call went through, but for those of Playhead."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if Path(frame.filename).is_absolute() and not _is_in(frame, _PLAYHEAD)]


def _is_in(frame: traceback.FrameSummary, folders: Sequence[str]) -> bool:
    return any(Path(frame.filename).is_relative_to(folder) for folder in folders)


_PLAYHEAD = (str(Path(__file__).parents[1]),)
_PACKAGES = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib"))
_NOT_OWN = (*_PACKAGES, sysconfig.get_path("stdlib"))
"""Where Python keeps packages and itself: what is elsewhere, and not Playhead's, is a person's own."""


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
    code = next((code for kind, code in _BY_ERROR if isinstance(error, kind)), 1)
    if blamed(error) is not None:
        return 1 if code in (2, 3) else code  # It was the agent that named something wrong.
    if isinstance(error, BrokenPipeError):
        return 0
    return error.exit_code if isinstance(error, typer.TyperException) else code


def message(error: BaseException) -> str:
    """Return one line about an error: what happened, to what, and what to do next."""
    if isinstance(error, errors.TurnNotFound) and not error.turn_count:
        return f"session {error.session!r} has no turns on its path"
    if isinstance(error, Failure | errors.PlayheadError):
        return str(error)
    if (agent := blamed(error)) is not None:
        return f"{agent} failed: {said(error)}"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"  # What was written till then, the command that wrote it knows.
    if isinstance(error, typer.TyperException):
        return _about_usage(error)
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
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, BrokenPipeError) and blamed(error) is None:
            terminal.abandon()
            return 0
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
    lines = error.lines if isinstance(error, Failure) else places(error) if blamed(error) is not None else ()
    for line in lines:
        terminal.error_detail(line)
    usage_of = getattr(getattr(error, "ctx", None), "command_path", None)
    if isinstance(error, typer.TyperException) and usage_of:
        name = usage_of.split()[-1]
        if name in _OPTION_HINTS and hasattr(error, "option_name"):
            terminal.error_detail(_OPTION_HINTS[name])
        terminal.error_detail(f"see: {usage_of} --help")


_OPTION_HINTS = {"tag": "a label is given with --add LABEL and taken with --remove LABEL"}
"""By command, what may be meant where an option is not known."""


def _about_usage(error: typer.TyperException) -> str:
    """Return what is wrong with a command line, in words that are about it and not about how it was read."""
    if (about := _about_value(error)) is not None:
        return about
    text = error.format_message().rstrip(".")
    possible = getattr(error, "possibilities", None)
    if possible:
        return f"no such option: {getattr(error, 'option_name', '')}; did you mean {_either(sorted(possible))}?"
    text = re.sub(
        r"^Got unexpected extra argument\(s\) \((.*)\)$", r"nothing more is expected after: \1", text, flags=re.S
    )
    return text[:1].lower() + text[1:]


def _about_value(error: typer.TyperException) -> str | None:
    """Return what an option is and what it was given instead; None where that is not what is wrong.

    Typer has values checked by Pydantic, whose errors speak of input that cannot be parsed.
    """
    found, parameter = getattr(error.__cause__, "errors", None), getattr(error, "param", None)
    if found is None or parameter is None:
        return None
    wrong = found()[0]
    bounds = wrong.get("ctx", {})
    choices = parameter.type_descriptor.choices
    if choices:
        wanted = _either([str(choice) for choice in choices])
    elif wrong["type"].startswith("int_"):
        wanted = "a whole number"
    elif wrong["type"].startswith("float_"):
        wanted = "a number"
    elif "ge" in bounds:
        wanted = f"{bounds['ge']:,} or more"
    elif "le" in bounds:
        wanted = f"{bounds['le']:,} or less"
    else:
        return None
    name = next((one for one in parameter.opts if one.startswith("--")), parameter.metavar or parameter.name)
    given = str(wrong["input"])
    return f'{name} is {wanted}, not "{given if len(given) <= GIVEN_CHARS_MAX else given[:GIVEN_CHARS_MAX] + "…"}"'


def _either(names: Sequence[str]) -> str:
    """Return `a, b or c`."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
