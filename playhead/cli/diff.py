"""The `diff` command: two sessions, or two branches of one, side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named_event
from playhead.cli.table import Column, Style, Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import fitted, one_line
from playhead.features.reading import View
from playhead.model.body import text_in
from playhead.model.ids import SessionKey
from playhead.session import Session, Sessions
from playhead.views.compare import Comparison, Side, TurnDifference, compare

LINE_COLUMNS_MAX = 400
"""A longer line (a tool's answer is often one) is cut where it is shown; --json has it whole."""


def run(
    here: Here,
    a: Annotated[
        str,
        typer.Argument(
            metavar="SESSION", help="A session named as in `show`, or SESSION#SEQ for its branch at that event"
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER", help="What to compare it with, named alike; without it, what SESSION was forked from"
        ),
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only which turns differ, and by how many lines")] = False,
    json: JsonOption = False,
) -> None:
    """Say what the two share from the beginning on, then how each turn after that differs."""
    with here.open_existing() as sessions:
        one, one_view = _viewed(sessions, a)
        if b is not None:
            other, other_view = _viewed(sessions, b)
        else:
            # What a fork gained should read as gained, so its parent comes first.
            other, other_view = one, one_view
            one = _parent(sessions, other)
            one_view = one
        found = compare(one_view.path(), other_view.path())
        if json:
            here.terminal.json(_document(one, other, found))
        elif stat:
            _print_stat(here.terminal, found)
        else:
            with here.terminal.paged():
                _print(here.terminal, one, other, found)


COMMAND = Command(
    run,
    about=(
        "Events are the same where their ids are, so a fork and its parent, and two branches of a session, share their "
        "beginning, which is folded to one line. After it the turns stand side by side in order: lines that only the "
        "first has begin with -, those that only the second has with +. `playhead show SESSION --tree` names the "
        "branches of a session by the events that they end at."
    ),
    examples=(
        "playhead diff @last",
        "playhead diff upload-0001 upload-0002",
        "playhead diff upload-0001#8 upload-0001#12 --stat",
    ),
    exits=(3, 5, 6),
)


def _viewed(sessions: Sessions, name: str) -> tuple[Session, View]:
    key, seq = named_event(sessions, name)
    session = sessions.get(key.id, app=key.app, user=key.user)
    return session, session if seq is None else session.at(seq)


def _parent(sessions: Sessions, session: Session) -> Session:
    parent = text_in(session.summary().forked_from or {}, "session")
    if parent is None:
        raise Failure(f"{session.key} is no fork; name what to compare it with", code=2)
    key = SessionKey(session.key.app, session.key.user, parent)
    return sessions.get(key.id, app=key.app, user=key.user)


def _document(a: Session, b: Session, found: Comparison) -> dict[str, Any]:
    return {
        "a": session_document(a),
        "b": session_document(b),
        "is_equal": found.is_equal,
        **document(found),
    }


_COLUMNS = (
    Column("A", is_right=True),
    Column("B", is_right=True),
    Column("LESS", is_right=True, style="red"),
    Column("MORE", is_right=True, style="green"),
)


def _print_stat(terminal: Terminal, found: Comparison) -> None:
    terminal.table(
        _COLUMNS,
        (
            [_number(turn.a), _number(turn.b), str(_count(turn, "-")), str(_count(turn, "+"))]
            for turn in found.turns
            if turn.lines
        ),
    )
    terminal.note(_sentence(found))


def _print(terminal: Terminal, a: Session, b: Session, found: Comparison) -> None:
    for mark, session in (("---", a), ("+++", b)):
        terminal.line(Styled(f"{mark} {one_line(str(session.key))}  {one_line(session.summary().title)}", "bold"))
    terminal.line(Styled(_sentence(found), "dim"))
    for turn in found.turns:
        if not turn.lines:
            continue
        terminal.line()
        terminal.line(Styled(f"── {_heading(turn)} ──", "dim"))
        for line in turn.lines:
            shown = fitted(line, LINE_COLUMNS_MAX)
            terminal.line(Styled(shown, _STYLES[line[:1]]) if line[:1] in _STYLES else shown)


_STYLES: dict[str, Style] = {"-": "red", "+": "green", "@": "dim"}


def _sentence(found: Comparison) -> str:
    if found.is_equal and found.shared_turns == 0 and not found.turns:
        return "Neither has a turn."
    turns = "turn" if found.shared_turns == 1 else f"{found.shared_turns} turns"
    shared = (
        f"The first {turns} ({found.shared_events} events) are the same"
        if found.shared_turns
        else ("They share no turn")
    )
    if found.is_equal:
        return f"{shared}, and the rest reads the same."
    differing = sum(1 for turn in found.turns if turn.lines or turn.a is None or turn.b is None)
    return f"{shared}; {differing} turn{' differs' if differing == 1 else 's differ'} after that."


def _number(side: Side | None) -> str:
    return "" if side is None else str(side.number)


def _heading(turn: TurnDifference) -> str:
    """Return where the turn is: `turn 3 (#12) | turn 3 (#14)`, or on which side alone."""
    places = [f"turn {side.number} (#{side.first_seq})" for side in (turn.a, turn.b) if side is not None]
    if turn.a is None or turn.b is None:
        return f"{places[0]}, only in the {'second' if turn.a is None else 'first'}"
    return " | ".join(places)


def _count(turn: TurnDifference, mark: str) -> int:
    return sum(line.startswith(mark) for line in turn.lines)
