"""State of the scopes `user` and `app`: shared by sessions, kept in the store log, written through a session's fact.

The session's event commits first. Should the process die before the store log has it, opening the session to resume it
puts it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from playhead.model.body import names_in, objects_in
from playhead.model.event import SHARED_SCOPES, Event
from playhead.model.ids import SessionKey
from playhead.stores.base import Store


def shared_state(store: Store, key: SessionKey) -> dict[str, dict[str, Any]]:
    """Return {`user`: values, `app`: values} that hold for a session now; a scope without values is left out."""
    found: dict[str, dict[str, Any]] = {}
    for scope in sorted(SHARED_SCOPES):
        notes = store.notes.all(_topic(key, scope))
        values = {name: body["value"] for name, body in notes.items() if "value" in body}
        if values:
            found[scope] = values
    return found


def publish(store: Store, key: SessionKey, event: Event) -> None:
    """Put what a fact says of shared state into the store log. Doing it again changes nothing."""
    for scope in SHARED_SCOPES:
        for name, body in _changes(event, scope):
            _put(store, key, scope, name, body, event)


def republish(store: Store, key: SessionKey) -> None:
    """Put what the store log misses of a session's facts there, unless something newer holds."""
    for event in store.facts(key):
        for scope, name, body in unpublished(store.notes.get, key, event):
            _put(store, key, scope, name, body, event)


def unpublished(
    note: Callable[[str, str], dict[str, Any] | None], key: SessionKey, event: Event
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the scope, name and body of what the store log misses of a fact, unless something newer holds.

    note: returns the newest note of a topic and name, as the store log has it.
    """
    if event.kind != "state_changed":
        return
    for scope in SHARED_SCOPES:
        for name, body in _changes(event, scope):
            if (note(_topic(key, scope), name) or {}).get("at", 0.0) < event.at:
                yield scope, name, body


def _changes(event: Event, scope: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a fact says of each key of a scope: the note's body, without a value where the key was removed."""
    for name, value in objects_in(event.body, "delta").get(scope, {}).items():
        yield name, {"value": value}
    for name in names_in(event.body, "removed").get(scope, ()):
        yield name, {}


def _topic(key: SessionKey, scope: str) -> str:
    owner = [key.app, key.user] if scope == "user" else [key.app]
    return f"state:{scope}:{msgspec.json.encode(owner).decode()}"


def _put(store: Store, key: SessionKey, scope: str, name: str, body: dict[str, Any], event: Event) -> None:
    id = f"{key.app}\n{key.user}\n{key.id}\n{event.id}\n{scope}\n{name}"
    store.notes.put(_topic(key, scope), name, body | {"at": event.at}, id=id.replace("\0", ""), at=event.at)
