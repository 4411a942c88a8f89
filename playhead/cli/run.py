"""The `run` command: one prompt in, one answer out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from playhead.cli.answering import Answer, answered, built_in_agent
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.terminal import Terminal
from playhead.session import Session, Sessions, open as open_sessions

WAITS_FOR_A_PERSON = 10


def run(
    here: Here,
    prompt: Annotated[
        str | None,
        typer.Option("-p", "--prompt", metavar="TEXT", help="What to answer; read from stdin where it is not given"),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Go on with this session; else a new one begins")
    ] = None,
    no_session: Annotated[bool, typer.Option("--no-session", help="Keep nothing: no session and no file")] = False,
    json: JsonOption = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a line, as things happen")] = False,
) -> int:
    """Answer the prompt in a session and print the answer as it comes."""
    if session is not None and no_session:
        raise Failure("--session and --no-session exclude each other; give one of them", code=2)
    if json and jsonl:
        raise Failure("--json and --jsonl exclude each other; give one of them", code=2)
    text = prompt if prompt is not None else _from_stdin(here.terminal)
    if not text.strip():
        raise Failure("the prompt is empty; give one with -p or on stdin", code=2)
    agent = built_in_agent()
    with open_sessions("memory:") if no_session else here.open() as sessions:
        with _session(sessions, session, here.folder) as opened:
            lines = _JsonLines(here.terminal, opened)
            on_text: Callable[[str], None] = here.terminal.start
            if json:
                on_text = _ignore
            elif jsonl:
                on_text = lines.text
            answer = answered(agent, sessions, opened, text, on_text=on_text)
            if json:
                here.terminal.json(_document(opened, answer, is_kept=not no_session))
            elif jsonl:
                lines.end(answer)
            else:
                here.terminal.line()
            _tell(here.terminal, opened, answer, is_kept=not no_session)
    return WAITS_FOR_A_PERSON if answer.waiting else 0


COMMAND = Command(
    run,
    about=(
        "The prompt is stored before it is answered, and the answer while it is written, so a killed run can be taken "
        "up with `playhead resume`. With --jsonl each line has a type: text, event, or end."
    ),
    examples=(
        'playhead run -p "What did we decide about the upload test?"',
        'echo "And on Windows?" | playhead run --session @last',
        'playhead run -p "hello" --no-session --jsonl | jq -r .type',
    ),
    exits=(3, 4, 5, 10, 130),
)


def _session(sessions: Sessions, name: str | None, folder: str) -> Session:
    if name is None:
        return sessions.create(cwd=folder)
    key = named(sessions, name)
    return sessions.get(key.id, app=key.app, user=key.user)


def _from_stdin(terminal: Terminal) -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise Failure("there is no prompt; give one with -p or on stdin", code=2)
    return sys.stdin.read()


def _ignore(text: str) -> None:
    """Take a piece of an answer that is printed whole at the end."""


def _document(session: Session, answer: Answer, *, is_kept: bool) -> dict[str, object]:
    return {
        "session": session_document(session) if is_kept else None,
        "turn": answer.turn,
        "turn_number": answer.turn_number,
        "status": answer.status,
        "text": answer.text,
        "events": [document(event) for event in answer.events],
        "waiting": [document(interrupt) for interrupt in answer.waiting],
    }


class _JsonLines:
    """One object a line: each piece of the answer, each event once it is in the log, and how it ended."""

    def __init__(self, terminal: Terminal, session: Session) -> None:
        self._terminal = terminal
        self._session = session
        self._seq = session.seq

    def text(self, text: str) -> None:
        self._events()
        self._terminal.json_line({"type": "text", "text": text})

    def end(self, answer: Answer) -> None:
        self._events()
        waiting = [document(interrupt) for interrupt in answer.waiting]
        key = self._session.key
        ended = {"type": "end", "session": key.id, "app": key.app, "user": key.user, "turn": answer.turn}
        self._terminal.json_line({**ended, "status": answer.status, "text": answer.text, "waiting": waiting})

    def _events(self) -> None:
        while page := self._session.events(after=self._seq):
            for event in page:
                self._terminal.json_line({"type": "event", "event": document(event)})
            self._seq = page[-1].seq


def _tell(terminal: Terminal, session: Session, answer: Answer, *, is_kept: bool) -> None:
    for interrupt in answer.waiting:
        terminal.note(f"It asks: {interrupt.question or interrupt.reason}")
    if answer.waiting and is_kept:
        terminal.note(f"To answer: playhead resume {session.key}")
    elif is_kept:
        terminal.note(f"Kept in {session.key} as turn {answer.turn_number}.")
