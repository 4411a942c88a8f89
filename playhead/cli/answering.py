"""Answering a prompt: the one place where a command that asks once drives an agent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass

from playhead.agents.jobs import BackgroundJob
from playhead.agents.protocol import Agent, BlockingAnswer, Request
from playhead.aio import AsyncTurn
from playhead.cli.agents import ANSWERED_BY, STATE_SCOPE, goes_on_note, last_answered_by
from playhead.cli.text import one_line
from playhead.model.event import Event
from playhead.session import Session, Sessions
from playhead.views.interrupts import Interrupt

TURN_LABEL = "command line"
"""How others are told who is in a turn."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a prompt. events: those of the turn, in order. status: how the turn ended. error: what the agent
    says went wrong, or None. waiting: the questions that the session now waits for. raised: what the agent raised, or
    the person with Ctrl-C; for the caller to raise again once it has told the rest."""

    text: str
    turn: str
    turn_number: int
    status: str
    events: list[Event]
    waiting: list[Interrupt]
    error: str | None = None
    raised: Exception | KeyboardInterrupt | None = None


def answered(
    agent: BlockingAnswer, sessions: Sessions, session: Session, prompt: str, *, on_text: Callable[[str], None]
) -> Answer:
    """Let an agent answer a prompt in a turn of the session; `on_text` is given the text as it comes.

    The prompt is durable before the agent sees it. Where the agent fails, or is interrupted from the keyboard, the turn
    ends as failed or cancelled, what was said so far stays, and the answer says so. Raises `SessionBusy` where somebody
    is in a turn, and what else keeps the turn from beginning.
    """
    before_seq = session.seq
    said: list[str] = []
    raised: Exception | KeyboardInterrupt | None = None
    turn = session.turn(prompt, label=TURN_LABEL)
    number = turn.number
    try:
        with turn, closing(agent(sessions, session, turn, prompt)) as pieces:
            for text in pieces:
                said.append(text)
                on_text(text)
    except (Exception, KeyboardInterrupt) as error:
        raised = error
    events = _events_after(session, before_seq)
    ended = next((event.body for event in events if event.kind == "turn_ended" and event.turn == turn.turn_id), {})
    if raised is not None and not ended:
        raise raised  # Not even the end of its turn could be recorded: the next resume closes it.
    text, error_text = "".join(said), ended.get("error")
    return Answer(text, turn.turn_id, number, ended["status"], events, session.waiting, error_text, raised)


def jobs_sentence(jobs: Sequence[BackgroundJob]) -> str:
    """Return what a person is told while the jobs are waited for."""
    names = ", ".join(one_line(job.name) for job in jobs)
    what, it = ("job", "it") if len(jobs) == 1 else ("jobs", "them")
    return f"Waiting for {what} {names}. Ctrl-C cancels {it}."


@dataclass(frozen=True, slots=True)
class TellsOfJobs:
    """An agent that tells, once it has answered, for which of its jobs the program still waits."""

    agent: Agent
    tell: Callable[[str], None]

    @property
    def name(self) -> str:
        return self.agent.name

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        """Answer as the agent does."""
        async with aclosing(self.agent.answer(request, turn)) as pieces:
            async for text in pieces:
                yield text
        if request.jobs.running:
            self.tell(jobs_sentence(request.jobs.running))


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
