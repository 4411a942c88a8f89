"""Triggers that survive a restart: only types that the program registered ever come back from a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self

import msgspec

from playhead.errors import InvalidName
from playhead.model.event import Event


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
