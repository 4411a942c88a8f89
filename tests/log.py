"""A log in memory for tests of values and views: it gives each draft its place, as a store would, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.model.event import Event, redacted_body

FIRST_AT = 1_767_225_600.0


class Log:
    """A session's events. `add` appends one; event n happens n seconds after `FIRST_AT` unless told otherwise."""

    def __init__(self, *, started: Mapping[str, Any] | None = None) -> None:
        self.events: list[Event] = []
        self.head = 0
        self.add("session_started", {"app": "default", "user": "default", **(started or {})})

    def add(
        self,
        kind: str,
        body: Mapping[str, Any] | None = None,
        /,
        *,
        id: str = "",
        at: float | None = None,
        by: str | None = None,
        turn: str | None = None,
        scope: str | None = None,
        to: int = 0,
        **fields: Any,
    ) -> Event:
        """Append an event. Its body is `body`, or the fields that remain. `to` is where a head_moved leads."""
        seq = len(self.events) + 1
        content = dict(body) if body is not None else fields
        # The rule of `Event.parent`, written out once more so that the model is held against it.
        shared = {"user", "app"} & {*content.get("delta", ()), *content.get("removed", ())}
        is_fact = kind in ("session_changed", "head_moved", "redacted") or (kind == "state_changed" and bool(shared))
        parent = to if kind == "head_moved" else self.head
        event = Event(
            seq=seq,
            parent=parent,
            id=id or f"event-{seq}",
            at=FIRST_AT + seq if at is None else at,
            kind=kind,
            agent=by,
            turn=turn,
            scope=scope,
            body=content,
        )
        self.events.append(event)
        self.head = parent if is_fact else seq
        return event

    def message(self, role: str, *parts: str | dict[str, Any], **fields: Any) -> Event:
        """Append a message; strings are text parts. `scope`, `turn`, `by` and `at` go to the event."""
        envelope = {name: fields.pop(name) for name in ("id", "at", "by", "turn", "scope") if name in fields}
        documents = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
        return self.add("message", {"role": role, "parts": documents, **fields}, **envelope)

    def user(self, *parts: str | dict[str, Any], **fields: Any) -> Event:
        return self.message("user", *parts, **fields)

    def assistant(self, *parts: str | dict[str, Any], **fields: Any) -> Event:
        return self.message("assistant", *parts, **fields)

    def tool(self, *parts: str | dict[str, Any], **fields: Any) -> Event:
        return self.message("tool", *parts, **fields)

    def compact(self, first: Event, last: Event, summary: str = "What was said before.", **fields: Any) -> Event:
        return self.add("compaction", {"from": first.id, "to": last.id, "summary": summary}, **fields)

    def move(self, to: Event | int) -> Event:
        """Move the head to an earlier event."""
        seq = to if isinstance(to, int) else to.seq
        return self.add("head_moved", {"to": self.events[seq - 1].id, "why": "rewind"}, to=seq)

    def redact(self, target: Event, *, is_fact: bool = False) -> None:
        """Take the body of an event away, where it lies."""
        body = redacted_body(target.kind, is_fact=is_fact)
        self.events[target.seq - 1] = Event(
            seq=target.seq,
            parent=target.parent,
            id=target.id,
            at=target.at,
            kind=target.kind,
            agent=target.agent,
            turn=target.turn,
            scope=target.scope,
            body=body,
        )

    def path(self, head: int | None = None) -> list[Event]:
        """Return the events from the first to a head (where it stands now, unless given)."""
        seq = self.head if head is None else head
        walked = []
        while seq:
            walked.append(self.events[seq - 1])
            seq = walked[-1].parent
        return walked[::-1]

    def seq_of(self) -> dict[str, int]:
        """Return the seq of every id in the log, whatever branch it is on."""
        return {event.id: event.seq for event in self.events}


def call(id: str | int | None = "call-1", name: str = "run_tests", **arguments: Any) -> dict[str, Any]:
    """Return a tool_call part."""
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def response(
    id: str | int | None = "call-1", text: Any = "ok", *, name: str = "run_tests", is_error: bool = False
) -> dict[str, Any]:
    """Return a tool_call_response part."""
    part = {"type": "tool_call_response", "id": id, "name": name, "response": text}
    return part | {"is_error": True} if is_error else part
