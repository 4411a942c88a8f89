"""Resuming: closing what a crash cut off, then bringing back what the session had, in a fixed order.

The order is: facts, the snapshot with the tail after it, state, triggers, the replay to the outputs, sub-agents. The
cost is that of the tail. What was cut off is closed in one append, under the lease, before anything else is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

import msgspec

from playhead.features.live import Live, events_at
from playhead.features.owners import goes_on
from playhead.features.triggers import Trigger, TriggerProblem
from playhead.model import path as paths
from playhead.model.body import number_in, object_in, text_in
from playhead.model.event import Draft, Event
from playhead.stores.base import LeftStream
from playhead.views.conversation import INTERRUPTED
from playhead.views.transcript import Entry

OUTPUT_EVENTS = 200
"""How many of the last events of the path an output gets to paint; the pager has the rest."""

Pager = Callable[[int, int], list[Entry]]
"""pager(before_seq, count) returns transcript entries of the `count` events of the path before a seq, oldest first."""


class Output(Protocol):
    """What shows a session to a person, and wants its scrollback again."""

    def on_resume(self, entries: list[Entry], pager: Pager) -> None:
        """Paint the last entries (oldest first). `pager` gives earlier ones."""


class Sealed(msgspec.Struct, frozen=True):
    """What was closed because its process is gone. calls: tool call ids. jobs: job ids. streams: ids of messages whose
    beginning was saved. turn: id of the turn that never ended, or None."""

    calls: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    turn: str | None = None

    def __bool__(self) -> bool:
        return bool(self.calls or self.jobs or self.streams or self.turn)


class Resumed(msgspec.Struct, frozen=True):
    """What came back. triggers: id to trigger. agents: labels of the runs that were going on and are closed now."""

    sealed: Sealed = Sealed()
    triggers: dict[str, Trigger] = {}
    trigger_problems: tuple[TriggerProblem, ...] = ()
    sub_agents: tuple[str, ...] = ()
    recovered_text: str = ""


def seal(live: Live) -> tuple[Sealed, str, tuple[str, ...]]:
    """Close what the last holder left open. The caller holds the lease (its fence is `live.fence`).

    Streams become messages marked `interrupted`, under the ids they were begun with, so that doing this twice adds
    nothing. Calls without a response get one that says so; running jobs and an open turn are closed as interrupted.
    Jobs whose owner goes on with them (`live.jobs`, and those of others that live) are left as they are, and so is a
    turn that waits for a person.
    Returns what was closed, the text that was recovered, and the labels of sub-agent runs that were closed.
    """
    left = live.store.streams.left(live.key)
    known = live.store.seq_of(live.key, [stream.id for stream in left])
    drafts = [_stream_draft(live, stream) for stream in left if stream.id not in known and _has_text(stream)]
    calls, call_drafts = _call_drafts(live)
    jobs, job_drafts, runs = _job_drafts(live, calls)
    turn, turn_drafts = _turn_drafts(live)
    drafts += call_drafts + job_drafts + turn_drafts
    if drafts:
        live.append(drafts)
    for stream in left:
        live.store.streams.end(live.key, stream.id)
    saved = tuple(draft.id for draft in drafts if draft.kind == "message" and draft.body.get("interrupted"))
    text = "".join(text for stream in left if stream.id in saved for part, text in stream.chunks if part == "text")
    return Sealed(calls=calls, jobs=jobs, streams=saved, turn=turn), text, runs


def replay(live: Live, outputs: Sequence[Output], transcript: Callable[[list[Event]], list[Entry]]) -> None:
    """Give each output the end of the transcript, and a pager for what is before it."""
    if not outputs:
        return

    def page(before: int, number: int) -> list[Entry]:
        return transcript(events_at(live.store, live.key, paths.newest(live.shown().path, number, before=before)))

    entries = transcript(events_at(live.store, live.key, paths.newest(live.shown().path, OUTPUT_EVENTS)))
    for output in outputs:
        output.on_resume(entries, page)


def _has_text(stream: LeftStream) -> bool:
    return any(text for _, text in stream.chunks)


def _stream_draft(live: Live, stream: LeftStream) -> Draft:
    """Return the message of what had arrived, parts in the order in which they came."""
    parts = [
        {"type": part, "content": "".join(text for _, text in chunks)}
        for part, chunks in groupby(stream.chunks, key=lambda chunk: chunk[0])
    ]
    header, at = stream.header, number_in(stream.header, "at")
    body: dict[str, Any] = {"role": "assistant", "parts": parts, "interrupted": True}
    message_id = text_in(object_in(header, "body"), "message_id")
    return live.draft(
        "message",
        body | ({"message_id": message_id} if message_id else {}),
        agent=text_in(header, "agent"),
        turn=text_in(header, "turn"),
        scope=text_in(header, "scope"),
        id=stream.id,
        at=at,
    )


def _call_drafts(live: Live) -> tuple[tuple[str, ...], list[Draft]]:
    """Return the calls that nobody will answer, and one message per scope that answers them."""
    asked = {
        event.body.get("tool_call")
        for event in events_at(live.store, live.key, [[seq, seq] for seq in live.fold.named("int").values()])
    }
    open_calls = {name: seq for name, seq in live.fold.open_calls().items() if name[1] not in asked}
    if not open_calls:
        return (), []
    made = {
        event.seq: event
        for event in events_at(live.store, live.key, [[seq, seq] for seq in sorted(set(open_calls.values()))])
    }
    by_scope: dict[str | None, list[dict[str, Any]]] = {}
    wrote: dict[str | None, Event] = {}
    for (scope, call), seq in open_calls.items():
        names = [part.get("name") for part in made[seq].body.get("parts") or () if part.get("id") == call]
        response = {"type": "tool_call_response", "id": call, "response": INTERRUPTED, "is_error": True}
        by_scope.setdefault(scope, []).append(response | ({"name": names[0]} if names else {}))
        wrote[scope] = made[seq]
    drafts = [
        live.draft(
            "message",
            {"role": "tool", "parts": parts, "injected": "playhead"},
            agent=wrote[scope].agent,
            turn=wrote[scope].turn,
            scope=scope,
        )
        for scope, parts in by_scope.items()
    ]
    return tuple(call for _, call in open_calls), drafts


def _job_drafts(live: Live, calls: Sequence[str]) -> tuple[tuple[str, ...], list[Draft], tuple[str, ...]]:
    """Return the jobs that stopped with their process, what closes them and tells the agent, and sub-agent labels."""
    positions = sorted(seq for id, seq in live.fold.named("job").items() if id not in live.jobs)
    found = events_at(live.store, live.key, [[seq, seq] for seq in positions])
    events = [event for event in found if not goes_on(live, object_in(event.body, "owner"))]
    drafts, runs, untold = [], [], []
    for event in events:
        body: dict[str, Any] = {
            name: event.body[name] for name in ("job", "kind", "name", "agent") if name in event.body
        }
        drafts.append(
            live.draft(
                "job_changed", body | {"status": "interrupted"}, agent=event.agent, turn=event.turn, scope=event.scope
            )
        )
        if event.body.get("kind") == "sub-agent":
            runs.append(str(event.body.get("agent")))
        if event.body["job"] not in calls:
            untold.append(str(event.body.get("name") or event.body["job"]))
    if untold:
        text = f"The process stopped while these were running: {', '.join(untold)}. Their results are unknown."
        parts = [{"type": "text", "content": text}]
        notice = {"role": "user", "parts": parts, "injected": "playhead"}
        drafts.append(live.draft("message", notice, agent=None, turn=live.fold.open_turn))
    return tuple(str(event.body["job"]) for event in events), drafts, tuple(runs)


def _turn_drafts(live: Live) -> tuple[str | None, list[Draft]]:
    turn = live.fold.open_turn
    if turn is None:
        return None, []
    return turn, [live.draft("turn_ended", {"status": "interrupted"}, agent=None, turn=turn)]
