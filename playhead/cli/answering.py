"""Answering a prompt: the one place where the command line drives an agent."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module

from playhead.cli.failures import Failure
from playhead.model.event import Event
from playhead.session import Session, Sessions
from playhead.turn import Turn
from playhead.views.interrupts import Interrupt

AGENT_MODULE = "playhead.agents.default"

Agent = Callable[[Sessions, Session, Turn, str], Generator[str]]
"""What answers: called with the store, the session, the open turn and the prompt, it records everything in the turn and
yields the text of its answer as it comes. `playhead.agents.protocol.for_blocking` makes one of any agent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a prompt. events: those of the turn, in order. status: how the turn ended. waiting: the questions
    that the session now waits for."""

    text: str
    turn: str
    turn_number: int
    status: str
    events: list[Event]
    waiting: list[Interrupt]


def built_in_agent() -> Agent:
    """Return the agent that comes with Playhead. Raises `Failure` where it was left out."""
    try:
        # Loaded on use: an agent brings packages that no other command needs.
        agent: Agent = import_module(AGENT_MODULE).answer
    except ModuleNotFoundError as error:
        raise Failure(f"the built-in agent cannot be loaded: there is no {error.name}", code=1) from error
    return agent


def answered(
    agent: Agent, sessions: Sessions, session: Session, prompt: str, *, on_text: Callable[[str], None]
) -> Answer:
    """Let an agent answer a prompt in a turn of the session; `on_text` is given the text as it comes.

    The prompt is durable before the agent sees it. Interrupted from the keyboard, the turn ends as cancelled, what was
    said so far stays, and `KeyboardInterrupt` goes on to the caller. Raises `SessionBusy` where somebody is in a turn.
    """
    before_seq = session.seq
    said: list[str] = []
    with session.turn(prompt, label="command line") as turn:
        with closing(agent(sessions, session, turn, prompt)) as pieces:
            for text in pieces:
                said.append(text)
                on_text(text)
        number = turn.number
    events = _events_after(session, before_seq)
    ended = [event.body["status"] for event in events if event.kind == "turn_ended" and event.turn == turn.turn_id]
    return Answer("".join(said), turn.turn_id, number, ended[-1], events, session.waiting)


def _events_after(session: Session, seq: int) -> list[Event]:
    found: list[Event] = []
    while page := session.events(after=found[-1].seq if found else seq):
        found += page
    return found
