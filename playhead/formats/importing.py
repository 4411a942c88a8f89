"""Importing: each source is read on from where it was left, and written into its session."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from playhead.errors import SessionNotFound
from playhead.formats.imported import ImportedSession, SourcePosition
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, session_key
from playhead.session import PURGED, Sessions, purged_name

POSITIONS = "import"
"""Topic of the store's notes that say how far each source was read. Their names are the sources' resolved paths."""

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


def import_source(
    sessions: Sessions, path: Path, read: Read, *, at: float, dry_run: bool = False, again: bool = False
) -> Imported | Purged | None:
    """Bring in what a source has beyond the last import; None where that is nothing.

    Doing it again adds nothing. A session that was deleted here comes back only with `again`. The position is noted
    last: after a crash before that the same stretch is read once more, and its events are known by their ids.
    Raises `ImportFailed` where the source cannot be read, and `SessionBusy` while somebody is in a turn of its session.
    """
    name = str(path.resolve())
    known = _positions(sessions, name)
    imported = read(known)
    if imported is None and again:
        imported = read({})
    if imported is None:
        return None
    is_new = not _exists(sessions, imported.id)
    if is_new:
        if not again and _is_purged(sessions, imported.id):
            return Purged(imported.id)
        if known:  # The position is of a session that is gone: what was read of it before is wanted too.
            imported = read({}) or imported
    if dry_run:
        return Imported(imported, len(imported.events), 0, is_new)
    ingested = sessions.ingest(
        imported.id,
        imported.events,
        at=imported.at,
        started=imported.started,
        title=imported.title,
        labels=imported.labels,
    )
    positions = {path: msgspec.to_builtins(position) for path, position in imported.positions.items()}
    sessions.store.notes.put(POSITIONS, name, {"positions": positions}, id=secrets.token_hex(16), at=at)
    return Imported(imported, ingested.added_count, ingested.known_count, ingested.is_new)


def _positions(sessions: Sessions, name: str) -> dict[str, SourcePosition]:
    note = sessions.store.notes.get(POSITIONS, name) or {}
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


def _is_purged(sessions: Sessions, id: str) -> bool:
    return sessions.store.notes.get(PURGED, purged_name(DEFAULT_APP, DEFAULT_USER, id)) is not None
