"""Interrupts on a path: the questions to a person that wait for an answer, and those that were answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from playhead.model.body import list_in, number_in, object_in, text_in
from playhead.model.event import Event


class Interrupt(msgspec.Struct, frozen=True):
    """One question that paused a turn.

    id: unique in the store. reason: `tool_call`, `input_required`, `confirmation` or `namespace:name` (AG-UI's values).
    question: what the person reads. choices: what they may pick, [] for free text. checkpoint: all that the agent needs
    to go on. status: `waiting`, or how it was answered (`resolved`, `cancelled`). answer: the answer's payload.
    """

    id: str
    reason: str
    seq: int
    at: float
    agent: str | None
    turn: str | None
    question: str = ""
    choices: list[Any] = []
    response_schema: dict[str, Any] | None = None
    tool_call: str | None = None
    expires_at: float | None = None
    checkpoint: Any = None
    status: str = "waiting"
    answer: Any = None
    answered_at: float | None = None


def interrupt(event: Event) -> Interrupt:
    """Return the waiting interrupt that an `interrupt_requested` event asks for."""
    body = event.body
    return Interrupt(
        id=text_in(body, "interrupt") or "",
        reason=text_in(body, "reason") or "",
        seq=event.seq,
        at=event.at,
        agent=event.agent,
        turn=event.turn,
        question=text_in(body, "question") or "",
        choices=list_in(body, "choices"),
        response_schema=object_in(body, "response_schema") or None,
        tool_call=text_in(body, "tool_call"),
        expires_at=number_in(body, "expires_at"),
        checkpoint=body.get("checkpoint"),
    )


def interrupts(path: Iterable[Event]) -> list[Interrupt]:
    """Return every interrupt of a path, oldest first, each with its answer where it has one.

    The first answer counts. A question that was redacted cannot be answered and is left out. An answer that was
    redacted is taken as one to the newest question that waits, so that nobody is asked again.
    """
    found: dict[str, Interrupt] = {}
    for event in path:
        if event.kind == "interrupt_requested":
            asked = interrupt(event)
            if asked.id:
                found[asked.id] = asked
        elif event.kind == "interrupt_answered":
            open_ones = {one.id: one.seq for one in found.values() if one.status == "waiting"}
            id = text_in(event.body, "interrupt") or max(open_ones, key=open_ones.__getitem__, default="")
            if id in open_ones:
                found[id] = _answered(found[id], event)
    return sorted(found.values(), key=lambda one: one.seq)


def waiting(path: Iterable[Event]) -> list[Interrupt]:
    """Return the interrupts of a path that wait for an answer, oldest first."""
    return [one for one in interrupts(path) if one.status == "waiting"]


def _answered(asked: Interrupt, event: Event) -> Interrupt:
    return msgspec.structs.replace(
        asked,
        status=text_in(event.body, "status") or "resolved",
        answer=event.body.get("answer"),
        answered_at=event.at,
    )
