"""Triggers that survive a restart and fire once: only types that the program registered ever come back from a file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self

import msgspec

from playhead.errors import InvalidName, InvalidTrigger, StaleWriter
from playhead.features.jobs import appended
from playhead.features.live import Live, events_at
from playhead.model import path as paths
from playhead.model.event import Draft, Event

_NUMBER = re.compile(r"[0-9]{1,8}")


class Trigger(Protocol):
    """What a program implements for its own kind of trigger."""

    def to_resume_dict(self) -> dict[str, Any]:
        """Return all that is needed to build this trigger again, as JSON values."""

    @classmethod
    def from_resume_dict(cls, data: dict[str, Any]) -> Self:
        """Build the trigger from what `to_resume_dict` returned."""


class TriggerTypes:
    """The trigger types that may come back, by a name that the program chooses."""

    def __init__(self, types: dict[str, type[Trigger]] | None = None) -> None:
        self._types: dict[str, type[Trigger]] = dict(types or {})

    def register(self, name: str, type: type[Trigger]) -> None:
        """Let triggers of this type come back under `name`. Raises `InvalidName` where the name is taken."""
        if self._types.get(name, type) is not type:
            raise InvalidName(f"trigger type {name!r} is registered already")
        self._types[name] = type

    def name_of(self, trigger: Trigger) -> str:
        """Return the name under which the trigger's type is registered."""
        for name, registered in self._types.items():
            if type(trigger) is registered:
                return name
        raise InvalidName(f"register {type(trigger).__name__} before adding one, or it could not come back")

    def restore(self, events: Iterable[Event]) -> tuple[dict[str, Trigger], list[TriggerProblem]]:
        """Return the triggers that these `trigger_changed` events describe, and those that could not come back.

        An unknown type, or one whose `from_resume_dict` raises, is a problem to report; it never stops the others.
        """
        restored: dict[str, Trigger] = {}
        problems: list[TriggerProblem] = []
        for event in events:
            id, name = str(event.body.get("trigger")), str(event.body.get("type"))
            registered = self._types.get(name)
            if registered is None:
                problems.append(TriggerProblem(id, name, "no such type is registered"))
                continue
            try:
                restored[id] = registered.from_resume_dict(dict(event.body.get("data") or {}))
            except Exception as error:  # A program's own code: whatever it raises, the session still resumes.
                problems.append(TriggerProblem(id, name, f"{type(error).__name__}: {error}"))
        return restored, problems


class TriggerProblem(msgspec.Struct, frozen=True):
    """A trigger that is in force in the log and could not be built again."""

    id: str
    type: str
    reason: str


class Firing(msgspec.Struct, frozen=True):
    """What a trigger fires for.

    prompt: the text that the agent is sent. words: the trigger's own part of it. payload: what it is about, as JSON
    values. then: the trigger as it goes on, None where it is over. cause: of the turn, `trigger` or `channel`.
    reply: where the answer is sent, or None.
    """

    prompt: str
    words: str = ""
    payload: Mapping[str, Any] = {}
    then: Trigger | None = None
    cause: str = "trigger"
    reply: Reply | None = None


class Reply(msgspec.Struct, frozen=True):
    """Where the answer to a firing is sent. to: id of the message that it replies to."""

    channel: str
    to: str


class InForce(msgspec.Struct, frozen=True):
    """The triggers of the current path. seq: the session's revision at which this holds.

    triggers: id to trigger. set_by: id to the `trigger_changed` that it comes from, of those in `problems` as well.
    """

    seq: int
    triggers: dict[str, Trigger] = {}
    set_by: dict[str, Event] = {}
    problems: tuple[TriggerProblem, ...] = ()


def in_force(live: Live, types: TriggerTypes) -> InForce:
    """Return the triggers of the path as this object knows it. Reads one event for each."""
    with live.lock:
        events = events_at(live.store, live.key, paths.of_seqs(sorted(live.fold.named("trig").values())))
        triggers, problems = types.restore(events)
        set_by = {str(event.body.get("trigger")): event for event in events}
        return InForce(live.seq, triggers, set_by, tuple(problems))


def add_trigger(
    live: Live, types: TriggerTypes, trigger: Trigger, *, id: str | None = None, prefix: str = "", count_max: int = 0
) -> str:
    """Record a trigger and return its id; one that is in force under this id is replaced.

    Without an id it gets one of its own, or, with a prefix, the prefix and a number that no other in force has: chosen
    and recorded at once, so that no two that are set side by side share one. count_max: where so many are in force, and
    it is not 0, `InvalidTrigger` is raised. `InvalidName` is raised where the type is not registered, and `StaleWriter`
    as by any append, though not with a prefix, whose number is then chosen anew. Nothing was written then.
    """
    name = types.name_of(trigger)
    data = trigger.to_resume_dict()

    def drafts() -> list[Draft]:
        in_force = live.fold.named("trig")
        if count_max and len(in_force) >= count_max:
            raise InvalidTrigger(f"{len(in_force)} triggers are in force already; remove one first")
        own = f"{prefix}-{_next_number(in_force)}" if prefix else f"trigger-{live.new_id()}"
        body = {"trigger": id or own, "type": name, "data": data, "status": "added"}
        return [live.draft("trigger_changed", body)]

    with live.lock:
        events = appended(live, drafts) if prefix and id is None else live.append(drafts())
        return str(events[0].body["trigger"])


def remove_trigger(live: Live, id: str) -> Event:
    """Record that a trigger is gone. Raises `InvalidName` where none with this id is in force."""
    with live.lock:
        kind = _set_by(live, id).body["type"]
        return live.append([live.draft("trigger_changed", {"trigger": id, "type": kind, "status": "removed"})])[0]


def _next_number(ids: Iterable[str]) -> int:
    numbers = [int(number) for id in ids if _NUMBER.fullmatch(number := id.rpartition("-")[2])]
    return max(numbers, default=0) + 1


def check_revision(live: Live, seq: int) -> None:
    """Raise `StaleWriter` where the session is not at this revision."""
    if live.seq != seq:
        raise StaleWriter(live.key.id, expected_seq=seq, actual_seq=live.seq)


def firing_drafts(
    live: Live, trigger: str, types: TriggerTypes, firing: Firing, *, agent: str, turn: str
) -> list[Draft]:
    """Return what a turn that a trigger began starts with: that it fired, and what it is from now on."""
    set_by = _set_by(live, trigger)
    fired = {"trigger": trigger, "prompt": firing.prompt, "payload": dict(firing.payload)}
    return [
        live.draft("trigger_fired", fired, agent=agent, turn=turn, id=fired_id(set_by)),
        live.draft("trigger_changed", _next_state(set_by, types, firing), agent=agent, turn=turn),
    ]


def pass_over(live: Live, trigger: str, types: TriggerTypes, firing: Firing, *, expected_seq: int) -> None:
    """Where a path that was left holds this firing already, move the trigger on as it went on there, without a turn.

    Raises `StaleWriter` where the session is not at `expected_seq`; nothing was written then.
    """
    with live.lock:
        check_revision(live, expected_seq)
        set_by = _set_by(live, trigger)
        known = live.store.seq_of(live.key, [fired_id(set_by)]).values()
        if not known:
            return
        after = events_at(live.store, live.key, [[seq + 1, seq + 1] for seq in known])
        there = [event.body for event in after if event.body.get("trigger") == trigger and "status" in event.body]
        live.append([live.draft("trigger_changed", there[0] if there else _next_state(set_by, types, firing))])


def fired_id(set_by: Event) -> str:
    """Return the id of the `trigger_fired` of a trigger as this event set it.

    The log takes an id once, so that what was set once fires once, also where the head was moved back in between.
    """
    return f"fired-{hashlib.sha256(set_by.id.encode()).hexdigest()[:32]}"


def _set_by(live: Live, trigger: str) -> Event:
    seq = live.fold.slots.get(f"trig:{trigger}")
    if seq is None:
        raise InvalidName(f"session {live.key.id!r} has no trigger {trigger!r}")
    return events_at(live.store, live.key, [[seq, seq]])[0]


def _next_state(set_by: Event, types: TriggerTypes, firing: Firing) -> dict[str, Any]:
    trigger = set_by.body["trigger"]
    if firing.then is None:
        return {"trigger": trigger, "type": set_by.body["type"], "status": "removed"}
    data = firing.then.to_resume_dict()
    return {"trigger": trigger, "type": types.name_of(firing.then), "data": data, "status": "changed"}
