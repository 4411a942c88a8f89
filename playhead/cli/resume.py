"""The `resume` command: what a session had, ready to go on; at a terminal, a conversation."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from playhead.cli.answering import answered, built_in_agent
from playhead.cli.asking import asked
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure, report
from playhead.cli.naming import all_rows, named, title_of
from playhead.cli.page import is_typed, print_entries, print_heading
from playhead.cli.table import Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.session import Session, Sessions
from playhead.views.transcript import Entry

INTERRUPTED = 130
RECENT_SHOWN = 5
EXCHANGE_EVENTS = 200
"""Events of the path among which the last exchange is looked for: a resume does not read the history."""

PROMPT = "> "


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
    json: JsonOption = False,
) -> int:
    """Take the session over, say what came back, and go on with it where a person can type."""
    if session is not None and last:
        raise Failure("a session and --last exclude each other; give one of them", code=2)
    with here.open_existing() as sessions:
        name = "@last" if last else session
        if name is None:
            raise Failure("name a session, or give --last", code=2, lines=_recent(sessions))
        key = named(sessions, name)
        with sessions.resume(key.id, app=key.app, user=key.user) as resumed:
            exchange = _last_exchange(resumed.transcript(last=EXCHANGE_EVENTS))
            if json:
                here.terminal.json(_document(resumed, exchange))
                return 0
            print_heading(here.terminal, resumed)
            _print_resumed(here.terminal, resumed)
            print_entries(here.terminal, exchange, tools="short")
            return _converse(here.terminal, sessions, resumed) if here.terminal.can_ask else 0


COMMAND = Command(
    run,
    about=(
        "Whatever a crash left open is closed first and told to the agent: messages that were being written, tool "
        "calls without a result, running jobs, the turn itself. At a terminal you then type prompts: Ctrl-C stops the "
        "answer and keeps what was said, twice leaves, and so does Ctrl-D. In a pipe it prints what came back and ends."
    ),
    examples=(
        "playhead resume --last",
        'playhead resume "Flaky upload test"',
        "playhead resume @-2 --json | jq .resumed",
    ),
    exits=(3, 4, 5, 130),
)


def _recent(sessions: Sessions) -> list[str]:
    return [f"{row.key}  {one_line(title_of(row))}" for row in islice(all_rows(sessions), RECENT_SHOWN)]


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


def _converse(terminal: Terminal, sessions: Sessions, session: Session) -> int:
    """Read prompts and have them answered until the person leaves; return the exit code.

    A first Ctrl-C stops what is going on, a second one before the next prompt leaves.
    """
    agent = built_in_agent()
    was_interrupted = False
    while True:
        terminal.line()
        try:
            prompt = asked(PROMPT)
            if prompt is None:
                terminal.line()
                return 0
            if not prompt.strip():
                continue
            was_interrupted = False
            answered(agent, sessions, session, prompt, on_text=terminal.start)
            terminal.line()
        except KeyboardInterrupt:
            terminal.line()
            if was_interrupted:
                return INTERRUPTED
            was_interrupted = True
            terminal.note("Stopped; what was said is kept. Ctrl-C again leaves.")
        except Exception as error:
            # Whatever an agent raised: its turn is recorded as failed, and the person can go on.
            report(error, terminal)
