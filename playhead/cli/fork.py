"""The `fork` command: a new session that begins as a copy of this one up to an event."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named_event
from playhead.cli.text import one_line
from playhead.cli.title import checked_title
from playhead.errors import TurnNotFound
from playhead.session import Session
from playhead.views.turns import turns


def run(
    here: Here,
    session: SessionArgument,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", min=1, help="The last event to copy; the head where not given")
    ] = None,
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="The last turn to copy; -1 is the last, -2 the one before")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the new session")] = None,
    json: JsonOption = False,
) -> None:
    """Fork the session and print the new one's id."""
    if title is not None:
        title = checked_title(title)
    if at is not None and turn is not None:
        raise Failure("--at and --turn exclude each other; give one of them", code=2)
    with here.open_existing() as sessions:
        key, seq = named_event(sessions, session)
        opened = sessions.get(key.id, app=key.app, user=key.user)
        if turn is not None:
            at = _end_of_turn(opened, turn)
        forked = opened.fork(at=at if at is not None else seq, title=title)
        facts = session_document(forked)
    if json:
        here.terminal.json({"session": facts})
        return
    here.terminal.line(one_line(str(forked.key)))
    here.terminal.note(f'"{one_line(facts["title"])}" begins as a copy of {key} and leaves that as it is.')


def _end_of_turn(session: Session, turn: int) -> int:
    """Return the last event of a turn of the current path. Raises `TurnNotFound`."""
    spans = turns(session.path())
    number = len(spans) + 1 + turn if turn < 0 else turn
    if not 1 <= number <= len(spans):
        raise TurnNotFound(session.id, turn, turn_count=len(spans))
    return spans[number - 1].last_seq


COMMAND = Command(
    run,
    about=(
        "The new session holds a copy of the path up to and including the event. What came later does not leak in, and "
        "the first session is not touched. --at takes the seq that `show` prints after #, as does SESSION#SEQ."
    ),
    examples=(
        "playhead fork @last",
        'playhead fork @last --at 8 --title "try incremental vacuum"',
        "playhead fork @last --turn -2",
        "playhead show $(playhead fork @last -q)",
    ),
    exits=(3, 5),
)
