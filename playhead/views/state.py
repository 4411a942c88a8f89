"""State on a path: the newest value of every key, per state scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playhead.model.body import names_in, objects_in
from playhead.model.event import SHARED_SCOPES, Event, is_fact
from playhead.views.fold import Fold

State = dict[str, dict[str, Any]]
"""{state scope: {key: value}}. Scopes are `session` and `agent:NAME`; `user` and `app` where shared state is added."""


def state(path: Iterable[Event]) -> State:
    """Return the state at the end of a path, folded from its events in path order. Shared state is no part of it."""
    found: State = {}
    for event in path:
        if event.kind == "session_started":
            _update(found, event, "state")
        elif event.kind == "state_changed" and not is_fact(event.kind, event.body):
            for scope, keys in names_in(event.body, "removed").items():
                for key in keys:
                    found.get(scope, {}).pop(key, None)
            _update(found, event, "delta")
    return {scope: values for scope, values in found.items() if values}


def state_from_positions(fold: Fold, events: Mapping[int, Event]) -> State:
    """Return the state that a fold points at. `events` must hold every event in `fold.state_positions()`."""
    found: State = {}
    for scope, keys in fold.state_positions().items():
        for key, seq in keys.items():
            field = "state" if events[seq].kind == "session_started" else "delta"
            values = objects_in(events[seq].body, field).get(scope, {})
            if key in values:
                found.setdefault(scope, {})[key] = values[key]
    return found


def _update(target: State, event: Event, field: str) -> None:
    for scope, values in objects_in(event.body, field).items():
        if scope not in SHARED_SCOPES:
            target.setdefault(scope, {}).update(values)
