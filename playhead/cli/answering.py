"""Answering a prompt: the one place where a command that asks once drives an agent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from playhead.agents.protocol import BlockingAnswer
from playhead.cli.agents import ANSWERED_BY, STATE_SCOPE, goes_on_note, last_answered_by
from playhead.model.event import Event
from playhead.session import Session, Sessions
from playhead.views.interrupts import Interrupt

TURN_LABEL = "command line"
"""How others are told who is in a turn."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a prompt. events: those of the turn, in order. status: how the turn ended. error: what the agent
    says went wrong, or None. waiting: the questions that the session now waits for."""

    text: str
    turn: str
    turn_number: int
    status: str
    events: list[Event]
    waiting: list[Interrupt]
    error: str | None = None


def answered(
    agent: BlockingAnswer, sessions: Sessions, session: Session, prompt: str, *, on_text: Callable[[str], None]
) -> Answer:
    """Let an agent answer a prompt in a turn of the session; `on_text` is given the text as it comes.

    The prompt is durable before the agent sees it. Interrupted from the keyboard, the turn ends as cancelled, what was
    said so far stays, and `KeyboardInterrupt` goes on to the caller. Raises `SessionBusy` where somebody is in a turn.
    """
    before_seq = session.seq
    said: list[str] = []
    with session.turn(prompt, label=TURN_LABEL) as turn:
        with closing(agent(sessions, session, turn, prompt)) as pieces:
            for text in pieces:
                said.append(text)
                on_text(text)
        number = turn.number
    events = _events_after(session, before_seq)
    ended = [event.body for event in events if event.kind == "turn_ended" and event.turn == turn.turn_id][-1]
    return Answer(
        "".join(said), turn.turn_id, number, ended["status"], events, session.waiting, error=ended.get("error")
    )


def who_goes_on(session: Session, name: str) -> str | None:
    """Let the session remember who answers from here on; return the sentence about a change, None where there is none.

    Raises `SessionBusy` where somebody is in a turn; nothing was written then.
    """
    before = last_answered_by(session.state, session.event(1).body)
    if before == name:
        return None
    session.set_state({ANSWERED_BY: name}, scope=STATE_SCOPE)
    return goes_on_note(before, name)


def _events_after(session: Session, seq: int) -> list[Event]:
    found: list[Event] = []
    while page := session.events(after=found[-1].seq if found else seq):
        found += page
    return found
