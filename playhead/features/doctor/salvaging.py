"""Saved events to a session that can be gone on with: the log as it was, or a new one that says what it lacks.

A log that is whole is written byte for byte, with its hashes. From one that lacks events no chain can be made: its
events are appended again, with their ids, times and bodies, each after the event that it followed, or after the nearest
one before that where that is lost. A note at the end says what is missing and which hashes did not hold.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from playhead.errors import EventConflict, InvalidEvent, PlayheadError
from playhead.features.live import Clock, Entropy
from playhead.model.codec import decode_body, encode_body
from playhead.model.event import Draft, check_draft, is_fact
from playhead.model.ids import ID_CHARS_MAX, LABEL_CHARS_MAX, SessionKey, check_name, time_ordered_id
from playhead.stores.base import Record, Store
from playhead.stores.sqlite.salvage import SavedLog

NOTE = "salvage"
"""Name of the note in a session that was put together from what could be saved."""

NAMED_MAX = 200
"""So many ranges, seqs and problems the note has at the most."""

SHOWN_MAX = 5
"""So many of them a sentence names."""


class Salvaged(msgspec.Struct, frozen=True):
    """What came of a session. is_whole: its log is as it was, hashes included. missing: seqs that are lost, as ranges.
    changed: seqs of events that do not match their hash. problems: what else the new log says differently, in
    sentences."""

    key: SessionKey
    event_count: int
    is_whole: bool
    missing: tuple[tuple[int, int], ...] = ()
    changed: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()

    def sentence(self) -> str:
        if self.is_whole:
            return f"session {self.key}: all {self.event_count} events were saved, as they were"
        lost = [f"{first}" if first == last else f"{first} to {last}" for first, last in self.missing]
        said = [f"lost are events {_listed(lost)}"] if lost else []
        said += [f"changed since they were written are events {_listed(list(map(str, self.changed)))}"] * any(
            self.changed
        )
        about = "; ".join(said) or "no event is lost, but not all could stay as it was"
        return f"session {self.key}: {self.event_count} events were saved into a new log, whose last note says: {about}"


def _listed(numbers: list[str]) -> str:
    more = f" and {len(numbers) - SHOWN_MAX} more" if len(numbers) > SHOWN_MAX else ""
    return ", ".join(numbers[:SHOWN_MAX]) + more


def write_saved(
    store: Store, log: SavedLog, key: SessionKey, *, source: str, clock: Clock, entropy: Entropy
) -> Salvaged:
    """Write a saved log into a store that has no session of this key. source: the name of the file it was saved from.

    Raises what `Store.create` does; then nothing was written.
    """
    if log.is_whole:
        try:
            store.put_records(key, log.records, expected_seq=0)
            return Salvaged(key, len(log.records), is_whole=True)
        except (InvalidEvent, EventConflict):
            pass  # Hashes alone do not make a log: the note of the new one says what is wrong with it.
    drafts, problems = drafts_of(log, key, source=source, clock=clock, entropy=entropy)
    store.create(key, drafts)
    missing = tuple((first, last) for first, last in log.missing)
    return Salvaged(key, len(log.records), False, missing, tuple(log.changed), problems)


def drafts_of(
    log: SavedLog, key: SessionKey, *, source: str, clock: Clock, entropy: Entropy
) -> tuple[list[Draft], tuple[str, ...]]:
    """Return the events of a log that lacks some as one that can be written, with the note at its end, and the
    sentences about what it says differently."""
    written = _Log(key, entropy=entropy)
    for record in log.records:
        written.take(record)
    return written.ended(log, source=source, now=clock()), tuple(written.problems)


class _Log:
    """The new log as it comes to be: drafts, and where each event of the old one stands in it."""

    def __init__(self, key: SessionKey, *, entropy: Entropy) -> None:
        self._key = key
        self._entropy = entropy
        self._drafts: list[Draft] = []
        self._ids: set[str] = set()
        self._old: list[int] = []  # Seqs of the old log that lie on a path, ascending,
        self._new: list[int] = []  # and where each of them stands in the new one.
        self._head = 0
        self.problems: list[str] = []

    def take(self, record: Record) -> None:
        """Append an event of the old log, after the one that it followed there."""
        draft = self._draft(record)
        if not self._drafts and draft.kind != "session_started":
            self._begin(record.at)
        if draft.kind == "head_moved":
            self._move(draft, record)
            return
        if is_fact(draft.kind, draft.body):
            self._append(draft)
            return
        self._place_after(record)
        self._append(draft)
        self._head = len(self._drafts)
        self._old.append(record.seq)
        self._new.append(self._head)

    def ended(self, log: SavedLog, *, source: str, now: float) -> list[Draft]:
        """Return the drafts, with the note that says what is missing."""
        if not self._drafts:
            self._begin(now)
        body = {
            "name": NOTE,
            "from": source,
            "event_count": len(log.records),
            "missing": log.missing[:NAMED_MAX],
            "changed": log.changed[:NAMED_MAX],
            "problems": self.problems[:NAMED_MAX],
        }
        self._append(Draft("note", body, self._new_id(now), now))
        return self._drafts

    def _begin(self, at: float) -> None:
        body = {"app": self._key.app, "user": self._key.user, "origin": NOTE}
        self._append(Draft("session_started", body, self._new_id(at), at))
        self._head = 1

    def _draft(self, record: Record) -> Draft:
        """Return the event as it can be appended; one that no session may have becomes a note that keeps its text."""
        envelope = self._envelope(record)
        if record.body is None:
            self.problems.append(f"event {record.seq} was redacted; a note stands in its place")
            return msgspec.structs.replace(envelope, body={"name": NOTE, "kind": record.kind})
        try:
            body = decode_body(record.body)
            if record.kind == "session_started":
                body |= {"app": self._key.app, "user": self._key.user}
            # Where the head moves to is said when the event is placed.
            parent = 1 if record.kind == "head_moved" else None
            draft = msgspec.structs.replace(envelope, kind=record.kind, body=body, parent=parent)
            check_draft(draft)
            encode_body(body)
            if record.kind != "session_started" or not self._drafts:
                return draft
            reason = "a session begins once"
        except PlayheadError as error:
            reason = str(error)
        self.problems.append(f"event {record.seq} is kept as a note: {reason}")
        return msgspec.structs.replace(envelope, body={"name": NOTE, "kind": record.kind, "text": record.body})

    def _envelope(self, record: Record) -> Draft:
        """Return a note without content in the place of an event: its id, time and names, as far as those can be."""
        id = record.id
        if id in self._ids or not _is_name(id, ID_CHARS_MAX):
            id = self._new_id(record.at)
            self.problems.append(
                f"event {record.seq} has another id: its own cannot be, or is that of an earlier event"
            )
        agent, turn, scope = (
            name if name is not None and _is_name(name, chars_max) else None
            for name, chars_max in (
                (record.agent, LABEL_CHARS_MAX),
                (record.turn, ID_CHARS_MAX),
                (record.scope, LABEL_CHARS_MAX),
            )
        )
        return Draft("note", {"name": NOTE}, id, record.at, agent, turn, scope)

    def _move(self, draft: Draft, record: Record) -> None:
        place = bisect_right(self._old, record.parent) - 1
        if place < 0 or self._old[place] != record.parent:
            self.problems.append(f"event {record.seq} moved the head to event {record.parent}, which is lost")
            return
        self._move_to(self._new[place], draft)

    def _place_after(self, record: Record) -> None:
        """See to it that the head stands at the event that this one followed, or at the nearest one before that."""
        place = bisect_right(self._old, record.parent) - 1
        if place < 0:
            return
        if self._old[place] != record.parent:
            self.problems.append(
                f"event {record.seq} followed event {record.parent}, which is lost: it follows event {self._old[place]}"
            )
        if self._new[place] != self._head:
            at = record.at
            self._move_to(self._new[place], Draft("head_moved", {"why": NOTE}, self._new_id(at), at))

    def _move_to(self, seq: int, draft: Draft) -> None:
        body = {**draft.body, "to": self._drafts[seq - 1].id}
        self._append(msgspec.structs.replace(draft, body=body, parent=seq))
        self._head = seq

    def _append(self, draft: Draft) -> None:
        self._ids.add(draft.id)
        self._drafts.append(draft)

    def _new_id(self, at: float) -> str:
        return time_ordered_id(at, self._entropy(6))


def _is_name(text: str, chars_max: int) -> bool:
    try:
        check_name(text, "a name", chars_max=chars_max)
    except PlayheadError:
        return False
    return True
