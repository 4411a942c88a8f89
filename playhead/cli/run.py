"""The `run` command: one prompt in, one answer out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import typer

from playhead.agents.protocol import for_blocking
from playhead.cli.agents import (
    ABOUT,
    ANSWERED_BY,
    BUILT_IN,
    AgentOption,
    BaseUrlOption,
    DocumentsOption,
    InstructionsOption,
    ModelOption,
    Wanted,
    chosen,
)
from playhead.cli.answering import Answer, TellsOfJobs, answered, who_goes_on
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.happenings import end_document
from playhead.cli.naming import named
from playhead.cli.terminal import Terminal
from playhead.cli.wrapping import Wrapping
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
    if no_session and answering.name == BUILT_IN:
        here.terminal.note("With --no-session no store is opened: nothing that was recorded before is looked through.")
    with open_sessions("memory:") if no_session else here.open() as sessions:
        with _session(sessions, session, beginning) as opened:
            if note := who_goes_on(opened, answering.name):
                here.terminal.note(note)
            shown: _Shown = _Text(here.terminal)
            if json:
                shown = _Document(here.terminal, opened, is_kept=not no_session)
            elif jsonl:
                shown = _JsonLines(here.terminal, opened)
            agent_ = TellsOfJobs(answering.agent, shown.note)
            answer = answered(for_blocking(agent_), sessions, opened, asked, on_text=shown.text)
            shown.end(answer)
            _tell(here.terminal, opened, answer, is_kept=not no_session)
    if answer.raised is not None:
        raise answer.raised
    if answer.status == "failed":
        raise Failure(answer.error or "the agent could not answer", code=1)
    return WAITS_FOR_A_PERSON if answer.waiting else 0


COMMAND = Command(
    run,
    about=(
        "The prompt is stored before it is answered, and the answer while it is written, so a killed run can be taken "
        "up with `playhead resume`. Ctrl-C stops the turn and keeps what was said. With --jsonl each line has a type: "
        "text, event, or end. The last is an end, and --json prints its object, also where the agent failed or was "
        f"interrupted.\n\n{ABOUT}"
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


class _Shown(Protocol):
    """How the answer is given out."""

    def text(self, text: str) -> None:
        """Take a piece of the answer."""

    def note(self, text: str) -> None:
        """Say something that is no part of it."""

    def end(self, answer: Answer) -> None:
        """Take how it ended."""


class _Text:
    """The answer as it comes. On a terminal it is broken between words, and what stops half-way ends its line."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._wrapping = Wrapping(lambda: terminal.width)
        self._is_in_line = False

    def text(self, text: str) -> None:
        self._start(self._wrapping.add(text) if self._terminal.is_interactive else text)

    def note(self, text: str) -> None:
        if self._terminal.is_interactive:
            self._end_line()
        self._terminal.note(text)

    def end(self, answer: Answer) -> None:
        if answer.raised is not None or self._terminal.is_interactive:
            self._end_line()
        else:
            self._terminal.line()
        self._terminal.flush()

    def _start(self, text: str) -> None:
        if text:
            self._terminal.start(text)
            self._is_in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        self._start(self._wrapping.end())
        if self._is_in_line:
            self._terminal.line()
        self._is_in_line = False


class _Document:
    """One document at the end, whatever the end is."""

    def __init__(self, terminal: Terminal, session: Session, *, is_kept: bool) -> None:
        self._terminal = terminal
        self._session = session
        self._is_kept = is_kept

    def text(self, text: str) -> None:
        pass  # The document has the whole text.

    def note(self, text: str) -> None:
        self._terminal.note(text)

    def end(self, answer: Answer) -> None:
        self._terminal.json(
            {
                "session": session_document(self._session) if self._is_kept else None,
                "turn": answer.turn,
                "turn_number": answer.turn_number,
                "status": answer.status,
                "text": answer.text,
                "events": [document(event) for event in answer.events],
                "waiting": [document(interrupt) for interrupt in answer.waiting],
            }
        )


class _JsonLines:
    """One object a line: each piece of the answer, each event once it is in the log, and how it ended."""

    def __init__(self, terminal: Terminal, session: Session) -> None:
        self._terminal = terminal
        self._session = session
        self._seq = session.seq

    def text(self, text: str) -> None:
        self._events()
        self._terminal.json_line({"type": "text", "text": text})

    def note(self, text: str) -> None:
        self._terminal.note(text)

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
    if not is_kept:
        return
    if answer.waiting:
        terminal.note(f"To answer: playhead resume {session.key}")
        return
    how = f" The turn is {answer.status}. To go on: playhead resume {session.key}"
    terminal.note(f"Kept in {session.key} as turn {answer.turn_number}.{how if answer.status != 'completed' else ''}")
