"""The workload in Playhead's terms: the stores to measure, and the ways a program records a turn in a session."""

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from time import time

from benchmarks.workload import WorkloadEvent
from playhead.model.event import Draft
from playhead.model.ids import time_ordered_id
from playhead.session import Session
from playhead.turn import Turn

STORES = {"bundles": "bundles:{}/sessions", "sqlite": "sqlite:{}/sessions.db"}
"""Name of each embedded store to its URL, where `{}` is an empty directory."""


def turns(batch: Iterable[WorkloadEvent]) -> Iterator[list[WorkloadEvent]]:
    """Yield the events of each turn; the last turn may be cut short."""
    for _, turn in groupby(batch, key=turn_id):
        yield list(turn)


def turn_id(event: WorkloadEvent) -> str:
    """Return the id of the event's turn: the workload counts turns, a session names them."""
    return f"turn-{event['turn']}"


def draft(event: WorkloadEvent) -> Draft:
    """Return the event as a draft with an id and the time of now."""
    now = time()
    id = time_ordered_id(now, os.urandom(6))
    return Draft(event["kind"], event["body"], id, now, event["agent"], turn_id(event))


def fill(session: Session, batch: Iterable[WorkloadEvent]) -> None:
    """Append the events, a turn in each transaction."""
    for turn in turns(batch):
        session.append_all([draft(event) for event in turn])


def record(turn: Turn, event: WorkloadEvent) -> None:
    """Record an event between a turn's prompt and its end with the verb that an agent has for it."""
    body = event["body"]
    if event["kind"] == "state_changed":
        turn.set_state(body["delta"]["session"])
        return
    part = body["parts"][-1]
    match part["type"]:
        case "reasoning":
            turn.think(part["content"])
        case "tool_call_response":
            turn.tool_result(part["id"], part["response"])
        case _:
            turn.say(body["parts"], model=body["model"], usage=body["usage"], finish_reason=body["finish_reason"])
