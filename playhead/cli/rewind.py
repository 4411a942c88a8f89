"""The `rewind` command: put the head before a turn, or on any event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.table import Column
from playhead.cli.terminal import Terminal
from playhead.errors import TurnNotFound
from playhead.model.body import parts_in
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.model.parts import text_of
from playhead.session import Session
from playhead.views.turns import TurnSpan, turns


def run(
    here: Here,
    session: SessionArgument,
    to: Annotated[
        int | None, typer.Option("--to", metavar="TURN", help="Hide this turn and all after it; -1 is the last turn")
    ] = None,
    head: Annotated[
        int | None, typer.Option("--head", metavar="SEQ", min=1, help="Put the head on this event; undoes a rewind")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would change, and change nothing")] = False,
    json: JsonOption = False,
) -> None:
    """Move the head, and say what that hides and shows."""
    with here.open_existing() as sessions:
        key = named(sessions, session)
        opened = sessions.get(key.id, app=key.app, user=key.user)
        before = opened.path()
        after = _path_after(opened, before, to=to, head=head)
        if not dry_run:
            opened.seek(after[-1].seq, why="rewind" if to is not None else "switch")
    move = _Move(key, dry_run, before, after)
    if json:
        here.terminal.json(move.document())
    else:
        _print(here.terminal, move)


COMMAND = Command(
    run,
    about=(
        "--to 3 hides turn 3 and all after it, so that the next prompt follows turn 2. `show` prints the numbers of "
        "turns and, after #, those of events. What is hidden stays in the log, is found by `search`, and comes back "
        "with --head."
    ),
    examples=(
        "playhead rewind @last --to -1 --dry-run",
        "playhead rewind @last --to 3",
        "playhead rewind @last --head 4",
    ),
    exits=(3, 4, 5),
)

_COLUMNS = (
    Column("", style="dim"),
    Column("TURN", is_right=True),
    Column("EVENT", is_right=True),
    Column("PROMPT", is_flexible=True),
)


def _path_after(session: Session, path: list[Event], *, to: int | None, head: int | None) -> list[Event]:
    """Return the path that the options ask for."""
    if head is not None and to is None:
        return session.at(head).path()
    if to is None or head is not None:
        raise Failure("give either --to with a turn or --head with an event", code=2)
    spans = turns(path)
    number = len(spans) + 1 + to if to < 0 else to
    if not 1 <= number <= len(spans):
        raise TurnNotFound(session.id, to, turn_count=len(spans))
    return [event for event in path if event.seq < spans[number - 1].first_seq]


@dataclass(frozen=True, slots=True)
class _Move:
    """A move of the head: the paths before and after it."""

    key: SessionKey
    is_dry_run: bool
    before: list[Event]
    after: list[Event]

    def hidden(self) -> list[tuple[TurnSpan, str]]:
        return list(_less(self.before, self.after))

    def shown(self) -> list[tuple[TurnSpan, str]]:
        return list(_less(self.after, self.before))

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "id": self.key.id,
            "app": self.key.app,
            "user": self.key.user,
            "is_dry_run": self.is_dry_run,
            "head_before": self.before[-1].seq,
            "head_after": self.after[-1].seq,
            "hidden_turns": [{**document(span), "prompt": prompt} for span, prompt in self.hidden()],
            "shown_turns": [{**document(span), "prompt": prompt} for span, prompt in self.shown()],
        }


def _less(path: list[Event], other: list[Event]) -> Iterator[tuple[TurnSpan, str]]:
    """Yield the turns of `path` of which `other` lacks anything, each with the text of its prompt."""
    kept = {event.seq for event in other}
    for span in turns(path):
        own = [event for event in path if span.first_seq <= event.seq <= span.last_seq and event.turn == span.id]
        if not all(event.seq in kept for event in own):
            yield span, _prompt(own)


def _prompt(events: list[Event]) -> str:
    asked = (event for event in events if event.kind == "message" and event.body.get("role") == "user")
    fired = (str(event.body.get("prompt") or "") for event in events if event.kind == "trigger_fired")
    return next((text_of(parts_in(event.body)) for event in asked), None) or next(fired, "")


def _print(terminal: Terminal, move: _Move) -> None:
    moved = [("hidden", *one) for one in move.hidden()] + [("shown", *one) for one in move.shown()]
    terminal.table(_COLUMNS, ([how, str(span.number), str(span.first_seq), prompt] for how, span, prompt in moved))
    before, after = move.before[-1].seq, move.after[-1].seq
    if move.is_dry_run:
        terminal.note(f"The head would move from event {before} to event {after}. Nothing was changed.")
    else:
        terminal.note(f"The head moved from event {before} to event {after}. Nothing is deleted.")
        terminal.note(f"To go back: playhead rewind {move.key} --head {before}")
