"""The `archive` command: mark sessions as done with."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionsArgument
from playhead.cli.tag import changes_document, each_changed
from playhead.cli.text import one_line
from playhead.session import Session

ARCHIVED = "archived"
OPEN = "open"


def run(
    here: Here,
    sessions: SessionsArgument,
    undo: Annotated[bool, typer.Option("--undo", "--off", help="Make archived sessions open again")] = False,
    json: JsonOption = False,
) -> None:
    """Archive the sessions, or with --undo open them again."""
    changed = each_changed(here, sessions, _opened if undo else _archived)
    if json:
        here.terminal.json(changes_document(changed))
        return
    for one in changed:
        here.terminal.line(one_line(str(one.key)))
        if undo:
            has = "is no longer archived" if one.is_changed else "was not archived"
        else:
            has = "is archived" if one.is_changed else "is archived already"
        here.terminal.note(f'"{one_line(one.facts["title"])}" {has}.')


COMMAND = Command(
    run,
    about=(
        "An archived session has the status archived and nothing else changes: it is listed, found and resumed as "
        "before, and `list --status archived` shows such sessions alone."
    ),
    examples=("playhead archive @last", "playhead archive @last @-2", "playhead archive @last --undo"),
    exits=(3, 5),
)


def _archived(session: Session) -> bool:
    if session.facts.status == ARCHIVED:
        return False
    session.set_status(ARCHIVED)
    return True


def _opened(session: Session) -> bool:
    if session.facts.status != ARCHIVED:
        return False
    session.set_status(OPEN)
    return True
