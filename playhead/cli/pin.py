"""The `pin` command: a star before the sessions that a person wants at hand."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionsArgument
from playhead.cli.tag import changes_document, each_changed, relabelled
from playhead.cli.text import one_line
from playhead.features.listing import PINNED

STAR = "★ "


def run(
    here: Here,
    sessions: SessionsArgument,
    off: Annotated[bool, typer.Option("--off", "--undo", help="Take the pin away")] = False,
    json: JsonOption = False,
) -> None:
    """Pin the sessions, or with --off take the pins away."""
    add, remove = ([], [PINNED]) if off else ([PINNED], [])
    changed = each_changed(here, sessions, lambda session: relabelled(session, add=add, remove=remove))
    if json:
        here.terminal.json(changes_document(changed))
        return
    for one in changed:
        here.terminal.line(one_line(str(one.key)))
        if off:
            has = "is no longer pinned" if one.is_changed else "was not pinned"
        else:
            has = "is pinned" if one.is_changed else "is pinned already"
        here.terminal.note(f'"{one_line(one.facts["title"])}" {has}.')


COMMAND = Command(
    run,
    about=(
        "A pinned session has a ★ before its title in lists, and `list --label pinned` shows those alone. A pin is the "
        f"label {PINNED}, so it holds on every branch and goes along with an export."
    ),
    examples=("playhead pin @last", "playhead pin @last @-2", "playhead pin @last --off"),
    exits=(3, 5),
)
