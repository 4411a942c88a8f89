"""The `tag` command: the labels of sessions, shown, added and removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionsArgument
from playhead.cli.documents import session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named, short_names
from playhead.cli.table import Cell, Column
from playhead.cli.text import one_line
from playhead.errors import StaleWriter
from playhead.model.ids import SessionKey
from playhead.session import Session

NOT_FOUND = 3
LABEL_CHARS_MAX = 64
LABELS_MAX = 100
"""Most labels that one session may have."""

RETRIES_MAX = 20
"""A change of labels that somebody's append came before is looked at again so often."""


def run(
    here: Here,
    sessions: SessionsArgument,
    add: Annotated[
        list[str] | None, typer.Option("--add", "-a", metavar="LABEL", help="A label to give; may come several times")
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", "-r", metavar="LABEL", help="A label to take; may come several times"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Change the labels of the sessions, and show those that they have then."""
    adding, removing = [checked_label(one) for one in add or ()], [checked_label(one) for one in remove or ()]
    both = set(adding) & set(removing)
    if both:
        raise Failure(f'"{min(both)}" cannot be both given and taken', code=2)
    try:
        changed = each_changed(here, sessions, lambda session: relabelled(session, add=adding, remove=removing))
    except Failure as failure:
        if failure.code != NOT_FOUND:
            raise
        raise Failure(str(failure), code=NOT_FOUND, lines=[*failure.lines, *_hint(sessions)]) from failure
    if json:
        here.terminal.json(changes_document(changed))
        return
    columns = (Column("ID", style="cyan"), Column("TITLE", is_flexible=True), Column("LABELS", is_flexible=True))
    shorter = short_names(one.key for one in changed)
    here.terminal.table(
        columns,
        (
            [Cell(shorter[one.key], str(one.key)), one.facts["title"], _labels_cell(one.facts["labels"])]
            for one in changed
        ),
    )


COMMAND = Command(
    run,
    about=(
        "Without --add and --remove the labels are only shown: id, title, labels. A label is a word or a few; it holds "
        "on every branch and `list --label` finds it. All sessions are looked up before the first is changed, and "
        "giving a label twice changes nothing."
    ),
    examples=(
        "playhead tag @last --add ci --add flaky",
        "playhead tag @last @-2 --remove ci",
        "playhead tag @last",
    ),
    exits=(3, 5),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """A session after a change: its facts, and whether the call changed anything."""

    key: SessionKey
    facts: dict[str, Any]
    is_changed: bool


def each_changed(here: Here, names: Sequence[str], change: Callable[[Session], bool]) -> list[Changed]:
    """Change every session that is named, each once, and return what they are then.

    change: does it, and returns whether there was anything to do. Raises `Failure` before the first change where a name
    fits no session or several.
    """
    changed = []
    with here.open_existing() as sessions:
        for key in dict.fromkeys([named(sessions, name) for name in names]):
            with sessions.get(key.id, app=key.app, user=key.user) as opened:
                is_changed = change(opened)
                changed.append(Changed(key, session_document(opened), is_changed))
    return changed


def changes_document(changed: Sequence[Changed]) -> dict[str, Any]:
    """Return what `--json` prints of changed sessions."""
    return {"sessions": [{**one.facts, "is_changed": one.is_changed} for one in changed]}


def relabelled(session: Session, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> bool:
    """Add and remove labels in one append, and return whether that changed anything.

    The whole list is written, so it is compared with the log: where somebody else appended meanwhile, it is made again
    of what the labels are then. Raises `StaleWriter` where others are faster `RETRIES_MAX` times.
    """
    for left in reversed(range(RETRIES_MAX)):
        before = session.facts.labels
        after = list(dict.fromkeys([*(label for label in before if label not in remove), *add]))
        if len(after) > LABELS_MAX:
            raise Failure(f"a session has {LABELS_MAX} labels at most, this one would have {len(after)}", code=1)
        if tuple(after) == before:
            return False
        try:
            session.append("session_changed", {"labels": after})
            return True
        except StaleWriter:
            if not left:
                raise
            session.refresh()
    raise AssertionError("the last try returns or raises")


def checked_label(text: str) -> str:
    """Return a label with its white space folded. Raises `Failure` (usage) for one that lists could not show."""
    label = " ".join(text.split())
    if not label:
        raise Failure("a label has at least one character", code=2)
    if len(label) > LABEL_CHARS_MAX:
        raise Failure(f"a label has {LABEL_CHARS_MAX} characters at most, this one {len(label)}", code=2)
    if one_line(label) != label or "," in label:
        raise Failure("a label holds no comma and no control character", code=2)
    return label


def _hint(names: Sequence[str]) -> list[str]:
    """Return how labels are given, where a name that fits no session may be meant as one."""
    if len(names) == 1 and not names[0].startswith("+"):
        return []
    return ["labels are given with --add: playhead tag SESSION --add LABEL --add LABEL"]


def _labels_cell(labels: Sequence[str]) -> Cell:
    return Cell(", ".join(labels) or "none", ",".join(labels), style=None if labels else "dim")
