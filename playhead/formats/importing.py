"""Importing: each source is read on from where it was left, and written into its session."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import SessionBusy, SessionNotFound, StaleWriter
from playhead.features.ingest import LABEL
from playhead.features.live import Live
from playhead.formats.imported import ImportedSession, SourcePosition
from playhead.model.ids import SessionKey, session_key
from playhead.session import Sessions

POSITIONS = "import"
"""Topic of the store's notes that say how far each source was read. Their names are the sources' resolved paths, or
what an importer calls one of many sessions in a file. Only the newest note of a name is kept: what a reader carries on
may be some 12 bytes for each record, and a source that is watched is imported at every line."""

Read = Callable[[dict[str, SourcePosition]], ImportedSession | None]
"""Reads a source beyond the given positions; None where there is nothing new."""


class Imported(msgspec.Struct, frozen=True):
    """What one source brought. added_count is what was added, or in a dry run what would be added at most."""

    session: ImportedSession
    added_count: int
    known_count: int
    is_new: bool


class Purged(msgspec.Struct, frozen=True):
    """A source whose session was deleted here. It is left alone unless it is asked for again."""

    id: str


class Silent(msgspec.Struct, frozen=True):
    """A source in which nobody said anything: it is no session so far, and nothing is noted of it."""


def import_source(
    sessions: Sessions,
    path: Path,
    read: Read,
    *,
    at: float,
    name: str | None = None,
    dry_run: bool = False,
    again: bool = False,
) -> Imported | Purged | Silent | None:
    """Bring in what a source has beyond the last import; None where that is nothing.

    Doing it again adds nothing. A session that was deleted here comes back only with `again`. The position is noted
    last: after a crash before that the same stretch is read once more, and its events are known by their ids. Where the
    source says at which of its branches it stands, the head follows, unless somebody moved it or went on here.

    name: what the position is noted under; the resolved path where None.
    Raises `ImportFailed` where the source cannot be read, and `SessionBusy` while somebody is in a turn of its session.
    """
    name = name or str(path.resolve())
    note = sessions.store.notes.get(POSITIONS, name) or {}
    known = _positions(note)
    imported = read(known)
    if imported is None and again and known:
        imported = read({})
    if imported is None:
        return None if known else Silent()
    is_new = not _exists(sessions, imported.id)
    if is_new:
        if not again and sessions.was_removed(imported.id):
            return Purged(imported.id)
        if known:  # The position is of a session that is gone: what was read of it before is wanted too.
            imported = read({}) or imported
    if dry_run:
        return Imported(imported, len(imported.events), 0, is_new)
    key = session_key(imported.id)
    head = None if is_new or imported.head is None else _wanted_head(sessions, key, imported.head, note.get("head"))
    ingested = sessions.ingest(
        imported.id,
        imported.events,
        at=imported.at,
        started=imported.started,
        title=imported.title,
        labels=imported.labels,
    )
    if head is not None:
        _put_head(sessions, key, head, {event.id for event in imported.events})
    for file in imported.files:
        sessions.store.artifacts.put(key, file.read())
    positions = {path: msgspec.to_builtins(position) for path, position in imported.positions.items()}
    noted = {"positions": positions, "head": imported.head or note.get("head")}
    sessions.store.notes.replace(POSITIONS, name, noted, id=secrets.token_hex(16), at=at)
    return Imported(imported, ingested.added_count, ingested.known_count, ingested.is_new)


def _wanted_head(sessions: Sessions, key: SessionKey, head: str, known_head: str | None) -> str:
    """Return the id of the event at which the session is to stand after the import.

    head, known_head: where the source stands now, and at the last import. Where the session's own head is elsewhere
    than that import left it, somebody moved it or went on, and it stays. The last event that was imported counts as
    left there as well: an import that was cut off ends at it.
    """
    ends = [str(fact.body["imported_to"]) for fact in sessions.store.facts(key) if "imported_to" in fact.body]
    at = sessions.store.tip(key).head
    (event,) = sessions.store.events_at(key, [[at, at]])
    return head if event.id in (known_head, *ends[-1:]) else event.id


def _put_head(sessions: Sessions, key: SessionKey, head: str, placed: set[str]) -> None:
    """Move the head to an event. It is left alone where somebody else is at work in the session by now.

    placed: ids of the source's events; a head at any other event is somebody's who went on here.
    """
    store = sessions.store
    last_at = store.tip(key).at
    live = Live(store, key, clock=lambda: last_at, entropy=secrets.token_bytes)
    seq = store.seq_of(key, [head]).get(head)
    if seq is None or seq == live.head:
        return
    try:
        lease = store.acquire(key, label=LABEL, at=last_at)
    except SessionBusy:
        return
    live.fence = lease.fence
    try:
        if store.events_at(key, [[live.head, live.head]])[0].id in placed:
            live.move_head(store.events_at(key, [[seq, seq]])[0], why=LABEL)
            live.save_caches()
    except StaleWriter:
        return
    finally:
        store.release(lease)


def _positions(note: dict[str, Any]) -> dict[str, SourcePosition]:
    try:
        return msgspec.convert(note.get("positions") or {}, dict[str, SourcePosition])
    except msgspec.ValidationError:
        return {}  # A note of another version: the source is read from its start, and nothing is doubled.


def _exists(sessions: Sessions, id: str) -> bool:
    try:
        sessions.store.tip(session_key(id))
    except SessionNotFound:
        return False
    return True
