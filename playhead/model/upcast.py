"""Upcasting: an event as any earlier version wrote it, to an event as this version reads it.

The log is never rewritten for a new version. Each stored event names the event version it was written in (through the
session's row); reading applies the steps from there to `EVENT_VERSION`, one pure function per step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from playhead.errors import InvalidEvent, NewerFormat
from playhead.model.event import Event

EVENT_VERSION = 1

Step = Callable[[Event], Event]

STEPS: Mapping[int, Step] = {}
"""Version to the step that lifts an event of that version to the next one. Empty while there is one version."""


def upcast(event: Event, version: int, *, steps: Mapping[int, Step] = STEPS, target: int = EVENT_VERSION) -> Event:
    """Return `event`, written in `version`, as `target` reads it.

    Raises `NewerFormat` where it was written by a newer version, and `InvalidEvent` for a version that never was.
    """
    if version < 1:
        raise InvalidEvent(f"event {event.seq} says it is of version {version}; versions count from 1")
    if version > target:
        raise NewerFormat(f"event {event.seq}", found=version, supported=target)
    for step in range(version, target):
        event = steps[step](event)
    return event
