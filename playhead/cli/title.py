"""The `title` command: what a session is called, shown or set."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.text import one_line
from playhead.views.summary import PREVIEW_CHARS_MAX


def run(
    here: Here,
    session: SessionArgument,
    new: Annotated[
        list[str] | None, typer.Argument(metavar="NEW", help="The words of the new title", show_default=False)
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take the title away; the first prompt stands in for it")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the title, or set it to the words that follow."""
    title = checked_title(" ".join(new)) if new else None
    if clear and title is not None:
        raise Failure("give either a new title or --clear", code=2)
    with here.open_existing() as sessions:
        key = named(sessions, session)
        with sessions.get(key.id, app=key.app, user=key.user) as opened:
            before = opened.title
            wanted = title if title is not None else None if clear else before
            if wanted != before:
                opened.rename(wanted or "")
            facts = session_document(opened)
    if json:
        here.terminal.json({"session": facts, "is_changed": wanted != before})
        return
    here.terminal.line(one_line(facts["title"]))


COMMAND = Command(
    run,
    about=(
        "Without new words the title is only shown. A title is a fact about the session: it holds on every branch, "
        "survives rewinds, and the log keeps those it had before. Setting it is never in the way of a running turn."
    ),
    examples=(
        "playhead title @last",
        'playhead title @last "Flaky upload test"',
        "playhead title @last Raise the limit of the upload test",
    ),
    exits=(3, 5),
)


def checked_title(text: str) -> str:
    """Return a title with its white space folded. Raises `Failure` (usage) for one that lists could not show."""
    title = " ".join(text.split())
    if not title:
        raise Failure("a title has at least one character; --clear takes it away", code=2)
    if len(title) > PREVIEW_CHARS_MAX:
        raise Failure(f"a title has {PREVIEW_CHARS_MAX} characters at most, this one {len(title)}", code=2)
    if one_line(title) != title:
        raise Failure("a title holds no control characters", code=2)
    return title
