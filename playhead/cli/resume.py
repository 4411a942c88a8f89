"""The `resume` command: what a session had, ready to go on; at a terminal, a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from playhead.agents.triggers import trigger_types
from playhead.aio import AsyncSession, AsyncSessions
from playhead.cli.agents import (
    ABOUT,
    AgentOption,
    BaseUrlOption,
    DocumentsOption,
    InstructionsOption,
    ModelOption,
    Wanted,
    chosen,
)
from playhead.cli.asking import agreed
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.conversing import conversed
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named_event, title_of
from playhead.cli.page import is_typed, print_entries, print_heading
from playhead.cli.picker import picked
from playhead.cli.rows import rows
from playhead.cli.slash import fork_title
from playhead.cli.table import Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.model.ids import SessionKey
from playhead.session import Session, Sessions
from playhead.views.transcript import Entry

RECENT_SHOWN = 5
EXCHANGE_EVENTS = 200
"""Events of the path among which the last exchange is looked for: a resume does not read the history."""
LEFT = 130
"""The exit code of a picker that was left without a choice, as with any program to pick with."""


def run(
    here: Here,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="A whole id, the first four or more characters of one, @last, @-2 (the one before), or a title",
            show_default=False,
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The session that was active last")] = False,
    cwd: Annotated[bool, typer.Option("--cwd", help="The session of this folder that was active last")] = False,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PATH", help="As --cwd, for another folder")
    ] = None,
    pick: Annotated[bool, typer.Option("--pick", help="Pick one from a list, as without a name at a terminal")] = False,
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy, and leave the session as it is")] = False,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="SEQ", min=1, help="With --fork copy up to this event, else put the head on it"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Move the head without asking")] = False,
    agent: AgentOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    documents: DocumentsOption = None,
    instructions: InstructionsOption = None,
    json: JsonOption = False,
) -> int:
    """Take the session over, say what came back, and go on with it where a person can type."""
    if (session is not None) + last + cwd + (project is not None) + pick > 1:
        raise Failure("a session, --last, --cwd, --project and --pick exclude each other; give one of them", code=2)
    converses = here.terminal.can_ask and not json
    wanted = Wanted(agent, model, base_url, documents, instructions)
    if not converses and wanted != Wanted():
        raise Failure(
            "nothing is answered here: resume converses at a terminal alone, without --json",
            code=2,
            lines=["in a pipe: playhead run --session SESSION, or playhead chat --session SESSION"],
        )
    answering = chosen(here, wanted, stays_open=True) if converses else None
    with here.open_existing() as sessions:
        folder = "." if cwd else project
        place = _place(here, sessions, "@last" if last else session, folder=folder, pick=pick, at=at)
        if place is None:
            return LEFT
        key = _forked(here.terminal, sessions, place) if fork else place.key
        with sessions.resume(key.id, app=key.app, user=key.user, triggers=trigger_types()) as resumed:
            if place.at is not None and not fork:
                _moved(here.terminal, resumed, place.at, is_agreed=yes)
            exchange = _last_exchange(resumed.transcript(last=EXCHANGE_EVENTS))
            if json:
                here.terminal.json(_document(resumed, exchange))
                return 0
            print_heading(here.terminal, resumed)
            _print_resumed(here.terminal, resumed)
            print_entries(here.terminal, exchange, tools="short")
    if answering is None:
        return 0

    async def opening(again: AsyncSessions) -> AsyncSession:
        return await again.resume(key.id, app=key.app, user=key.user, triggers=trigger_types())

    return conversed(here, answering, opening, at_once=True)


COMMAND = Command(
    run,
    about=(
        "Whatever a crash left open is closed first and told to the agent: messages that were being written, tool "
        "calls without a result, running jobs, the turn itself. At a terminal you then type prompts: Ctrl-C stops the "
        "answer and keeps what was said, twice leaves, and so does Ctrl-D. In a pipe it prints what came back and "
        "ends, and takes no flag about who answers: `run` and `chat` answer there. Without a name a terminal shows a "
        "list to pick from: type to filter, Tab shows the end of a session.\n\n"
        f"{ABOUT}"
    ),
    examples=(
        "playhead resume --last",
        'playhead resume "Flaky upload test" --fork',
        "playhead resume @last --fork --at 8",
        "playhead resume @-2 --json | jq .resumed",
    ),
    exits=(3, 4, 5, 130),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A session, and the event in it that was named."""

    key: SessionKey
    at: int | None = None


def _place(
    here: Here, sessions: Sessions, name: str | None, *, folder: str | None, pick: bool, at: int | None
) -> _Place | None:
    """Return what the arguments name; None where a person left the list without picking."""
    if folder is not None:
        cwd = str((Path(here.folder) / Path(folder).expanduser()).resolve())
        rows = sessions.list(cwd=cwd, limit=1).items
        if not rows:
            raise Failure(f"there is no session of {one_line(cwd)}", code=3, lines=_recent(sessions))
        return _Place(rows[0].key, at)
    if name is not None:
        key, seq = named_event(sessions, name)
        if at is not None and seq is not None and at != seq:
            raise Failure(f"{one_line(name)} names event {seq}, and --at names {at}; give one of them", code=2)
        return _Place(key, seq if at is None else at)
    if not here.terminal.can_ask or here.environment.get("TERM") in (None, "", "dumb"):
        if pick:
            raise Failure("--pick needs a terminal that can show a list", code=2)
        raise Failure("name a session, or give --last", code=2, lines=_recent(sessions))
    try:
        key_picked = picked(sessions, now=here.now())
    except ImportError as error:
        raise Failure(
            f"the list to pick from needs {error.name}: pip install 'playhead[cli]'", code=1, lines=_recent(sessions)
        ) from error
    return None if key_picked is None else _Place(key_picked, at)


def _forked(terminal: Terminal, sessions: Sessions, place: _Place) -> SessionKey:
    """Fork the session, and return the fork's key."""
    with sessions.get(place.key.id, app=place.key.app, user=place.key.user) as session:
        forked = session.fork(at=place.at, title=fork_title(session.summary().title))
    terminal.note(f"{forked.key} begins as a copy of {place.key} and leaves that as it is.")
    return forked.key


def _moved(terminal: Terminal, session: Session, seq: int, *, is_agreed: bool) -> None:
    """Put the head on an event, once the person agrees. Nothing is deleted, and it is said how to go back."""
    before = session.head
    target = session.at(seq).head
    if target == before:
        return
    if not is_agreed and not agreed(terminal, f"Move the head from event {before} to event {target}?"):
        raise Failure("the head was not moved; --fork goes on in a copy instead", code=1)
    session.seek(target, why="switch")
    terminal.note(f"The head moved from event {before} to event {target}. Nothing is deleted.")
    terminal.note(f"To go back: playhead rewind {session.key} --head {before}")


def _recent(sessions: Sessions) -> list[str]:
    return [f"{row.key}  {one_line(title_of(row))}" for row in islice(rows(sessions, first=RECENT_SHOWN), RECENT_SHOWN)]


def _last_exchange(entries: list[Entry]) -> list[Entry]:
    """Return the last prompt with all that followed; the last entry where there was no prompt."""
    prompts = [index for index, entry in enumerate(entries) if is_typed(entry)]
    return entries[prompts[-1] :] if prompts else entries[-1:]


def _document(session: Session, exchange: list[Entry]) -> dict[str, Any]:
    resumed = session.resumed
    return {
        "session": session_document(session),
        "resumed": {
            "sealed_calls": list(resumed.sealed.calls),
            "sealed_jobs": list(resumed.sealed.jobs),
            "recovered_streams": list(resumed.sealed.streams),
            "sealed_turn": resumed.sealed.turn,
            "sub_agents": list(resumed.sub_agents),
            "triggers": sorted(resumed.triggers),
            "trigger_problems": [document(problem) for problem in resumed.trigger_problems],
        },
        "waiting": [document(interrupt) for interrupt in session.waiting],
        "last_exchange": [document(entry) for entry in exchange],
    }


def _print_resumed(terminal: Terminal, session: Session) -> None:
    """Say what the last process left open, and what waits."""
    resumed = session.resumed
    counts = (
        (len(resumed.sealed.streams), "message that was being written", "messages that were being written"),
        (len(resumed.sealed.calls), "tool call without a result", "tool calls without a result"),
        (len(resumed.sealed.jobs), "running job", "running jobs"),
    )
    closed = [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    if resumed.sealed.turn is not None:
        closed.append("the open turn")
    if closed:
        terminal.line(Styled(f"Closed as interrupted: {', '.join(closed)}.", "yellow"))
    for problem in resumed.trigger_problems:
        terminal.line(Styled(f"Trigger {problem.id} ({problem.type}) did not come back: {problem.reason}.", "yellow"))
    for interrupt in session.waiting:
        terminal.line(Styled("Waits for you: ", "yellow"), interrupt.question or interrupt.reason)
