"""Records that another store wrote, each proved to go on where the log ends before it counts.

What is proved of a record: its number, its place (parent and head), that its fields and body are what an event may
have, that it is marked as the right one of fact and event on a path, and that its hash follows from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from playhead.errors import InvalidEvent
from playhead.model.codec import (
    FIRST_HASH,
    HASH_BYTES,
    SALT_BYTES,
    body_digest,
    chain_hash,
    check_json,
    decode_body,
    envelope_bytes,
)
from playhead.model.event import FACT_KINDS, KINDS, Draft, check_draft, is_fact
from playhead.stores.base import Record, Tip

PAGE = 500
"""So many records are taken from the caller, proved and written at a time: what is held of a long session."""

SEQ_MAX = 2**32 - 1
"""Highest seq that every store can hold."""

EMPTY_TIP = Tip(seq=0, head=0, at=0.0, hash=FIRST_HASH)
"""Where a log ends that has not begun."""


class Continuation:
    """Where a log ends, and what may follow. tip: where it ends with all that was taken.

    is_on_path: says of a seq up to that of the first `tip` whether it is an event on a path.
    """

    def __init__(self, tip: Tip, *, is_on_path: Callable[[int], bool]) -> None:
        self.tip = tip
        self._start = tip.seq
        self._is_stored_on_path = is_on_path
        self._facts: set[int] = set()

    def take(self, record: Record) -> Record:
        """Return the record as it is to be stored, and end after it. Raises `InvalidEvent`, naming its seq."""
        try:
            _check_fields(record)
            self._check_place(record)
            digest = _checked_digest(record)
            envelope = record_envelope(record)
            if chain_hash(self.tip.hash, envelope, digest) != record.hash:
                raise InvalidEvent(
                    f"its hash does not follow from that of event {self.tip.seq}; it, or that, was changed"
                )
        except InvalidEvent as error:
            raise InvalidEvent(f"event {record.seq!r} cannot be taken over: {error}") from error
        if record.is_fact:
            self._facts.add(record.seq)
        head = record.parent if record.is_fact else record.seq
        at = float(record.at) + 0.0  # A database keeps no sign of zero.
        self.tip = Tip(seq=record.seq, head=head, at=at, hash=record.hash)
        return msgspec.structs.replace(record, at=at)

    def _check_place(self, record: Record) -> None:
        if record.seq != self.tip.seq + 1 or record.seq > SEQ_MAX:
            raise InvalidEvent(f"it follows event {self.tip.seq}, where {self.tip.seq + 1} has to come")
        if record.seq == 1 and record.kind != "session_started":
            raise InvalidEvent(f"a session begins with its session_started, not with a {record.kind}")
        if record.kind != "head_moved":
            if record.parent != self.tip.head:
                raise InvalidEvent(f"its parent is {record.parent}, but the head stood at {self.tip.head}")
        elif not self._is_on_path(record.parent):
            raise InvalidEvent(f"it moves the head to {record.parent}, where the log has no event that lies on a path")

    def _is_on_path(self, seq: int) -> bool:
        if seq <= self._start:
            return seq >= 1 and self._is_stored_on_path(seq)
        return seq <= self.tip.seq and seq not in self._facts


def in_pages(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records in lists of `PAGE` at the most, none of them empty."""
    rest = iter(records)
    while page := list(islice(rest, PAGE)):
        yield page


def _check_fields(record: Record) -> None:
    """Whoever read the record from a file may have put anything into it."""
    right = {
        "seq": type(record.seq) is int and record.seq >= 1,
        "parent": type(record.parent) is int and 0 <= record.parent <= SEQ_MAX,
        "at": type(record.at) in (int, float),
        "kind": isinstance(record.kind, str) and record.kind in KINDS,
        "body": isinstance(record.body, str | None),
        "salt": _is_bytes(record.salt, None if record.body is None else SALT_BYTES),
        "digest": _is_bytes(record.digest, HASH_BYTES if record.body is None else None),
        "hash": _is_bytes(record.hash, HASH_BYTES),
        "is_fact": type(record.is_fact) is bool,
    }
    wrong = [name for name, is_right in right.items() if not is_right]
    if wrong:
        raise InvalidEvent(f"it holds what cannot be its {', '.join(wrong)}")


def _is_bytes(value: object, length: int | None) -> bool:
    """Return True for bytes of this length, or for None where there should be none."""
    return value is None if length is None else isinstance(value, bytes) and len(value) == length


def _checked_digest(record: Record) -> bytes:
    """Return the digest of the body, once it is known to be one that an append of the event would have taken."""
    if record.body is None:
        # Of a redacted event only the envelope is left: it is checked as that of an event that needs no more.
        check_draft(_draft(record, "note", {"name": "redacted"}))
        is_right = record.kind == "state_changed" or record.is_fact == (record.kind in FACT_KINDS)
        digest = record.digest or b""
    else:
        try:
            digest = body_digest(record.salt or b"", record.body)
        except UnicodeEncodeError as error:
            raise InvalidEvent("its body is not valid Unicode (half a surrogate pair)") from error
        body = decode_body(record.body)
        check_json(body, name="body")
        parent = record.parent if record.kind == "head_moved" else None
        check_draft(msgspec.structs.replace(_draft(record, record.kind, body), parent=parent))
        is_right = record.is_fact == is_fact(record.kind, body)
    if not is_right:
        raise InvalidEvent("it is marked as the wrong one of fact and event on a path")
    return digest


def _draft(record: Record, kind: str, body: dict[str, object]) -> Draft:
    return Draft(kind, body, record.id, record.at, record.agent, record.turn, record.scope)


def record_envelope(record: Record) -> bytes:
    """Return the bytes of everything in a record but its body, as the chain takes them."""
    return envelope_bytes(
        seq=record.seq,
        parent=record.parent,
        at=record.at,
        id=record.id,
        kind=record.kind,
        agent=record.agent,
        turn=record.turn,
        scope=record.scope,
    )
