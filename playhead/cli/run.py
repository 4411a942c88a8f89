"""The `run` command: one prompt in, one answer out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from playhead.agents.protocol import for_blocking
from playhead.cli.agents import (
    ABOUT,
    ANSWERED_BY,
    AgentOption,
    BaseUrlOption,
    DocumentsOption,
    InstructionsOption,
    ModelOption,
    Wanted,
    chosen,
)
from playhead.cli.answering import Answer, answered, who_goes_on
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.happenings import end_document
from playhead.cli.naming import named
from playhead.cli.terminal import Terminal
from playhead.session import Session, Sessions, open as open_sessions

WAITS_FOR_A_PERSON = 10


def run(
    here: Here,
    text: Annotated[str | None, typer.Argument(metavar="PROMPT", help="What to answer", show_default=False)] = None,
    prompt: Annotated[
        str | None,
        typer.Option("-p", "--prompt", metavar="TEXT", help="The same; read from stdin where neither is given"),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Go on with this session; else a new one begins")
    ] = None,
    no_session: Annotated[bool, typer.Option("--no-session", help="Keep nothing: no session and no file")] = False,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the new session")] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="A label of the new session; may be repeated")
    ] = None,
    agent: AgentOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    documents: DocumentsOption = None,
    instructions: InstructionsOption = None,
    json: JsonOption = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a line, as things happen")] = False,
) -> int:
    """Answer the prompt in a session and print the answer as it comes."""
    _check_together(session, title, label, text, prompt, no_session=no_session, json=json, jsonl=jsonl)
    asked = _prompt(here.terminal, prompt if text is None else text)
    answering = chosen(here, Wanted(agent, model, base_url, documents, instructions))
    beginning = _Beginning(here.folder, answering.name, title, tuple(label or ()))
    with open_sessions("memory:") if no_session else here.open() as sessions:
        with _session(sessions, session, beginning) as opened:
            if note := who_goes_on(opened, answering.name):
                here.terminal.note(note)
            lines = _JsonLines(here.terminal, opened)
            on_text: Callable[[str], None] = here.terminal.start
            if json:
                on_text = _ignore
            elif jsonl:
                on_text = lines.text
            answer = answered(for_blocking(answering.agent), sessions, opened, asked, on_text=on_text)
            if json:
                here.terminal.json(_document(opened, answer, is_kept=not no_session))
            elif jsonl:
                lines.end(answer)
            else:
                here.terminal.line()
            _tell(here.terminal, opened, answer, is_kept=not no_session)
    if answer.status == "failed":
        raise Failure(answer.error or "the agent could not answer", code=1)
    return WAITS_FOR_A_PERSON if answer.waiting else 0


COMMAND = Command(
    run,
    about=(
        "The prompt is stored before it is answered, and the answer while it is written, so a killed run can be taken "
        "up with `playhead resume`. Ctrl-C stops the turn and keeps what was said. With --jsonl each line has a type: "
        f"text, event, or end.\n\n{ABOUT}"
    ),
    examples=(
        'playhead run "What did we decide about the upload test?"',
        'playhead run -p "hello" --title "First steps" --label trial',
        'echo "And on Windows?" | playhead run --session @last',
        'playhead run -p "hello" --no-session --jsonl | jq -r .type',
    ),
    exits=(3, 4, 5, 10, 130),
)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What a new session begins with. answered_by: the name of the agent."""

    folder: str
    answered_by: str
    title: str | None
    labels: tuple[str, ...]


def _check_together(
    session: str | None,
    title: str | None,
    label: Sequence[str] | None,
    text: str | None,
    prompt: str | None,
    *,
    no_session: bool,
    json: bool,
    jsonl: bool,
) -> None:
    """Refuse options that contradict each other."""
    if session is not None and no_session:
        raise Failure("--session and --no-session exclude each other; give one of them", code=2)
    if (title is not None or label) and (session is not None or no_session):
        raise Failure("--title and --label are for a new session", code=2)
    if json and jsonl:
        raise Failure("--json and --jsonl exclude each other; give one of them", code=2)
    if text is not None and prompt is not None:
        raise Failure("the prompt is there twice; give it with or without -p (and in quotes)", code=2)


def _prompt(terminal: Terminal, given: str | None) -> str:
    text = given if given is not None else _from_stdin(terminal)
    if not text.strip():
        raise Failure("the prompt is empty; give one on the command line or on stdin", code=2)
    return text


def _session(sessions: Sessions, name: str | None, beginning: _Beginning) -> Session:
    if name is None:
        return sessions.create(
            cwd=beginning.folder,
            title=beginning.title,
            labels=beginning.labels,
            config={ANSWERED_BY: beginning.answered_by},
        )
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
        self._terminal.json_line(
            end_document(self._session.key, answer.turn, answer.status, answer.text, answer.waiting)
        )

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
