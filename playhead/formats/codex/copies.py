"""Where the copied history ends in the file of a fork or a sub-agent.

Such a file begins with its own `session_meta`. Behind it stands a copy of the parent's records, from the parent's own
`session_meta` on, written anew: their times are those of the copying. Three things tell where it ends, and the first
that is there counts: the number at which the thread's own records begin; the first turn whose id (a UUID of version 7,
which holds a time) is not older than the thread; and for threads whose turns have no such ids, a turn that begins later
than the copying can have taken.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from playhead.formats.codex.records import Opened
from playhead.formats.ids import clean
from playhead.formats.times import parsed
from playhead.formats.values import mapping

COPYING_S_MAX = 2.0
"""Seconds that a copy is written in. It is one burst; a person takes longer to type a prompt."""

_uuid7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TURNS = frozenset({"task_started", "turn_started", "user_message"})


class Copies(msgspec.Struct):
    """What is known of a thread's origin while its file is read.

    has_begun: the thread's own `session_meta` was read; own: the id in it. is_copying: the records read now are the
    parent's.
    """

    has_begun: bool = False
    own: str | None = None
    created_at: float | None = None
    begun_at: float | None = None
    first_ordinal: int | None = None
    is_derived: bool = False
    is_copying: bool = False
    has_own_turn: bool = False

    def is_own_meta(self, found: Opened, thread: str | None, *, is_first_line: bool) -> bool:
        """Return True for the thread's own `session_meta`. thread: its id, where the file's name tells.

        It is the first line, whatever its name says. Where that line is torn, the first one left may be the parent's.
        """
        if found.type != "session_meta" or self.has_begun:
            return False
        return is_first_line or thread is None or clean(found.payload.get("id")) in (thread, None)

    def begin(self, payload: dict[str, Any], at: float | None) -> None:
        """Take in the thread's own `session_meta`."""
        self.has_begun = True
        self.own = clean(payload.get("id"))
        self.created_at = _time_of(self.own or "") or parsed(payload.get("timestamp"))[0] or at
        self.begun_at = at
        spawned = mapping(mapping(payload.get("source")).get("subagent")).get("thread_spawn")
        parent = (payload.get("forked_from_id"), payload.get("parent_thread_id"), payload.get("history_base"), spawned)
        self.is_derived = any(parent)
        first = payload.get("subagent_history_start_ordinal")
        if first is None:
            first = mapping(payload.get("history_base")).get("end_ordinal_exclusive")
        if isinstance(first, int) and not isinstance(first, bool):
            self.first_ordinal = first
            self.is_copying = self.is_derived

    def takes(self, found: Opened, record: dict[str, Any], at: float | None) -> bool:
        """Return True for a record that repeats the parent's history. Asked about each record but the own meta."""
        ordinal = record.get("ordinal")
        if self.first_ordinal is not None and isinstance(ordinal, int):
            self.is_copying = self.is_derived and ordinal < self.first_ordinal
        elif found.type == "session_meta" and not self.has_own_turn and (self.is_derived or not self.has_begun):
            self.is_copying = clean(found.payload.get("id")) != self.own
        elif self.is_copying and self._begins_own_turn(found, at):
            self.is_copying = False
        self.has_own_turn = self.has_own_turn or (not self.is_copying and _begins_turn(found))
        return self.is_copying

    def _begins_own_turn(self, found: Opened, at: float | None) -> bool:
        if not _begins_turn(found):
            return False
        turn_at = _time_of(clean(found.payload.get("turn_id")) or "")
        if turn_at is not None and self.created_at is not None:
            return turn_at >= self.created_at
        return at is not None and self.begun_at is not None and at - self.begun_at > COPYING_S_MAX


def _begins_turn(found: Opened) -> bool:
    return found.type == "turn_context" or (found.type == "event_msg" and found.kind in _TURNS)


def _time_of(id: str) -> float | None:
    """Return the UTC seconds in a UUID of version 7, or None for any other id."""
    found = _uuid7.fullmatch(id)
    return int(found[1] + found[2], 16) / 1000 if found else None
