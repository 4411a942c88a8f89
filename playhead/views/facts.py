"""Facts of a session, folded in seq order: title, labels, status, state shared beyond it, and what was redacted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from playhead.model.body import list_in, names_in, objects_in, text_in
from playhead.model.event import SHARED_SCOPES, Event, is_fact


class Facts(msgspec.Struct, frozen=True):
    """What holds for the session whatever its path.

    title: as last set, or None. labels: in the order given. status: `open` unless set otherwise. shared: state of the
    scopes `user` and `app` as this session last wrote it. redacted: ids of the events that lost something.
    last_at: `at` of the newest fact, 0.0 where there is none.
    """

    title: str | None = None
    labels: tuple[str, ...] = ()
    status: str = "open"
    shared: dict[str, dict[str, Any]] = {}
    redacted: tuple[str, ...] = ()
    last_at: float = 0.0


def facts(events: Iterable[Event]) -> Facts:
    """Return the facts that events state, given oldest first. Those on the path are ignored, so a whole log will do."""
    found = Facts()
    for event in events:
        if is_fact(event.kind, event.body):
            found = msgspec.structs.replace(found, last_at=event.at, **_stated(found, event))
    return msgspec.structs.replace(found, shared={scope: values for scope, values in found.shared.items() if values})


def _stated(before: Facts, event: Event) -> dict[str, Any]:
    """Return the fields of `Facts` that an event changes."""
    body = event.body
    if event.kind == "session_changed":
        return _changed(body)
    if event.kind == "state_changed":
        shared = {scope: dict(before.shared.get(scope, {})) for scope in sorted(SHARED_SCOPES)}
        for scope, values in shared.items():
            for key in names_in(body, "removed").get(scope, ()):
                values.pop(key, None)
            values.update(objects_in(body, "delta").get(scope, {}))
        return {"shared": shared}
    if event.kind == "redacted":
        ids = [id for id in list_in(body, "events") if isinstance(id, str)]
        return {"redacted": tuple(dict.fromkeys((*before.redacted, *ids)))}
    return {}


def _changed(body: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if "title" in body:
        changed["title"] = text_in(body, "title")
    if isinstance(body.get("labels"), list):
        changed["labels"] = tuple(label for label in body["labels"] if isinstance(label, str))
    if (status := text_in(body, "status")) is not None:
        changed["status"] = status
    return changed
