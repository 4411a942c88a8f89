"""What can be saved of a damaged database: its sessions' events as they were stored, and its notes.

Nothing that is found is believed. A row counts as an event where its columns can be those of one; whether its hash
follows from the event before is said of each, and where two rows claim one place the one that follows is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from playhead.model.codec import FIRST_HASH, HASH_BYTES, body_digest, chain_hash
from playhead.model.event import KINDS
from playhead.model.ids import SessionKey
from playhead.model.upcast import EVENT_VERSION
from playhead.stores.base import Record
from playhead.stores.names import is_trash_id
from playhead.stores.records import record_envelope
from playhead.stores.sqlite.log import NUMBER_MAX, SEQ_BITS, SEQ_MAX
from playhead.stores.sqlite.pages import RawRow, rows_in

_EVENT_COLUMNS = 13
_SESSION_COLUMNS = 11
_NOTE_COLUMNS = 6
_KEY_COLUMNS = 4


class SavedRow(msgspec.Struct, frozen=True):
    """What is left of the row of a session. key: None where it cannot be read; for one in the trash, the key that it
    had there, with trash_id. last_seq: an event that it had at least, as its caches say."""

    key: SessionKey | None
    event_version: int
    last_seq: int
    trash_id: str | None = None
    trashed_at: float = 0.0


class SavedLog(msgspec.Struct, frozen=True):
    """The events that are left of one session, in order. row: None where the session's row is lost.

    unproven: the seqs of those whose hash does not follow from the event before, which may be missing itself.
    """

    number: int
    row: SavedRow | None
    records: tuple[Record, ...]
    unproven: frozenset[int]

    @property
    def last_seq(self) -> int:
        """The last event that the session had, as far as anything tells."""
        found = self.records[-1].seq if self.records else 0
        return max(found, self.row.last_seq if self.row is not None else 0)

    @property
    def missing(self) -> list[list[int]]:
        """The seqs of events that are lost, as ranges: `[]` where all are there."""
        ranges, expected = [], 1
        for record in self.records:
            if record.seq > expected:
                ranges.append([expected, record.seq - 1])
            expected = record.seq + 1
        if expected <= self.last_seq:
            ranges.append([expected, self.last_seq])
        return ranges

    @property
    def changed(self) -> list[int]:
        """The seqs of events that do not match their hash although the one before is there: breaks of the chain."""
        found = {record.seq for record in self.records}
        return sorted(seq for seq in self.unproven if seq == 1 or seq - 1 in found)

    @property
    def is_whole(self) -> bool:
        return bool(self.records) and not self.missing and not self.unproven


class SavedNote(msgspec.Struct, frozen=True):
    """A note of the store log: topic, name, id, at and the JSON text of its body. position: its order of arrival."""

    position: int
    topic: str
    name: str
    id: str
    at: float
    body: str


class Saved(msgspec.Struct, frozen=True):
    """What a database still holds. logs: in order of their numbers. notes: in order of arrival."""

    logs: tuple[SavedLog, ...]
    notes: tuple[SavedNote, ...]


def saved_from(path: Path) -> Saved:
    """Read all that can be read of a database at rest, without SQLite. Holds all of its events in memory.

    Raises `StoreUnavailable` or `StoreReadOnly` where the file itself cannot be read.
    """
    rows: dict[int, SavedRow] = {}
    events: dict[int, dict[int, list[Record]]] = {}
    notes: dict[int, SavedNote] = {}
    entries: dict[int, SavedRow] = {}
    for raw in rows_in(path):
        if raw.number is None:
            _take_entry(raw, entries)
        elif (record := _record(raw)) is not None:
            found = events.setdefault(raw.number >> SEQ_BITS, {}).setdefault(record.seq, [])
            if record not in found:
                found.append(record)
        elif (row := _session(raw)) is not None:
            rows[raw.number] = row
        elif (note := _note(raw)) is not None:
            notes[note.position] = note
    rows = entries | rows  # An index repeats a session's key; its row says more.
    numbers = sorted(number for number in rows.keys() | events.keys() if number in events or number not in entries)
    logs = [_log(number, rows.get(number), events.get(number, {})) for number in numbers]
    return Saved(tuple(logs), tuple(notes[position] for position in sorted(notes)))


def _log(number: int, row: SavedRow | None, found: dict[int, list[Record]]) -> SavedLog:
    records, unproven = [], set()
    seq, hash = 0, FIRST_HASH
    for record in _chosen(found):
        if record.seq != seq + 1 or not _follows(record, hash):
            unproven.add(record.seq)
        records.append(record)
        seq, hash = record.seq, record.hash
    return SavedLog(number, row, tuple(records), frozenset(unproven))


def _chosen(found: dict[int, list[Record]]) -> Iterator[Record]:
    """Yield one record for each seq: where there are several, the one that follows from the one before."""
    hash = FIRST_HASH
    for seq in sorted(found):
        chosen = next((record for record in found[seq] if _follows(record, hash)), found[seq][-1])
        yield chosen
        hash = chosen.hash


def _follows(record: Record, hash: bytes) -> bool:
    try:
        digest = record.digest or b"" if record.body is None else body_digest(record.salt or b"", record.body)
        envelope = record_envelope(record)
    except UnicodeEncodeError:
        return False
    return chain_hash(hash, envelope, digest) == record.hash


def _record(raw: RawRow) -> Record | None:
    """Return the event that a row holds, or None where it cannot be one."""
    if raw.number is None or len(raw.values) != _EVENT_COLUMNS or not 0 < raw.number >> SEQ_BITS <= NUMBER_MAX:
        return None
    alias, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, fact = raw.values
    is_one = (
        alias is None
        and isinstance(kind, str)
        and kind in KINDS
        and isinstance(id, str)
        and isinstance(parent, int)
        and 0 <= parent <= SEQ_MAX
        and _is_number(at)
        and all(isinstance(text, str | None) for text in (agent, turn, scope, body))
        and all(isinstance(content, bytes | None) for content in (salt, digest))
        and isinstance(hash, bytes)
        and len(hash) == HASH_BYTES
        and fact in (None, 1)
        and raw.number & SEQ_MAX > 0
    )
    if not is_one:
        return None
    seq = raw.number & SEQ_MAX
    return Record(seq, parent, id, float(at), kind, agent, turn, scope, body, salt, digest, hash, fact is not None)


def _session(raw: RawRow) -> SavedRow | None:
    """Return what a row says of a session, or None where it is no row of one."""
    if raw.number is None or len(raw.values) != _SESSION_COLUMNS or not 0 < raw.number <= NUMBER_MAX:
        return None
    alias, app, user, id, version, fence, holder, renewed_at, _, summary_seq, indexed_seq = raw.values
    if alias is not None or not isinstance(version, int) or not isinstance(fence, int):
        return None
    if not (renewed_at is None or _is_number(renewed_at)):
        return None
    last_seq = max([0, *(seq for seq in (summary_seq, indexed_seq) if isinstance(seq, int) and 0 <= seq <= SEQ_MAX)])
    if not all(isinstance(text, str) for text in (app, user, id)):
        return SavedRow(None, version, last_seq)
    if (app, user) == ("", ""):
        return _trashed(id, holder, version)
    return SavedRow(SessionKey(app, user, id), version, last_seq)


def _take_entry(raw: RawRow, entries: dict[int, SavedRow]) -> None:
    """Note what an entry of the index over the sessions' keys says of a session."""
    if len(raw.values) != _KEY_COLUMNS:
        return
    app, user, id, number = raw.values
    if not all(isinstance(text, str) for text in (app, user, id)) or not isinstance(number, int):
        return
    if (app, user) == ("", ""):
        entries[number] = SavedRow(None, EVENT_VERSION, 0, id if is_trash_id(id) else None)
    else:
        entries[number] = SavedRow(SessionKey(app, user, id), EVENT_VERSION, 0)


def _trashed(trash_id: str, holder: object, version: int) -> SavedRow:
    try:
        said = msgspec.json.decode(holder if isinstance(holder, str) else "", type=_Trashed).trashed
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return SavedRow(None, version, 0)
    app, user, id, at = said
    return SavedRow(SessionKey(app, user, id), version, 0, trash_id if is_trash_id(trash_id) else None, at)


class _Trashed(msgspec.Struct):
    trashed: tuple[str, str, str, float]


def _note(raw: RawRow) -> SavedNote | None:
    if raw.number is None or len(raw.values) != _NOTE_COLUMNS:
        return None
    alias, topic, name, id, at, body = raw.values
    texts: Sequence[Any] = (topic, name, id, body)
    if alias is not None or not all(isinstance(text, str) for text in texts) or not _is_number(at):
        return None
    return SavedNote(raw.number, topic, name, id, float(at), body)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
