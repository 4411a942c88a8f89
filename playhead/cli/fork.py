"""The `fork` command: a new session that begins as a copy of this one up to an event."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import session_document
from playhead.cli.naming import named
from playhead.cli.text import one_line


def run(
    here: Here,
    session: SessionArgument,
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", min=1, help="The last event to copy; the head where not given")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the new session")] = None,
    json: JsonOption = False,
) -> None:
    """Fork the session and print the new one's id."""
    with here.open_existing() as sessions:
        key = named(sessions, session)
        forked = sessions.get(key.id, app=key.app, user=key.user).fork(at=at, title=title)
        facts = session_document(forked)
    if json:
        here.terminal.json({"session": facts})
        return
    here.terminal.line(one_line(str(forked.key)))
    here.terminal.note(f'"{one_line(facts["title"])}" begins as a copy of {key} and leaves that as it is.')


COMMAND = Command(
    run,
    about=(
        "The new session holds a copy of the path up to and including the event. What came later does not leak in, and "
        "the first session is not touched. --at takes the seq that `show` prints after #."
    ),
    examples=(
        "playhead fork @last",
        'playhead fork @last --at 8 --title "try incremental vacuum"',
        "playhead show $(playhead fork @last -q)",
    ),
    exits=(3, 5),
)
