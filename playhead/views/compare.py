"""Two paths side by side: what they share from the beginning on, and how the turns after that differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from playhead.model.event import Event
from playhead.views.transcript import Entry, ToolUse, transcript
from playhead.views.turns import TurnSpan, turns

CONTEXT_LINES = 2
"""So many equal lines are kept around each difference."""

LINES_MAX = 2_000
"""Of a turn, so many lines are compared; what is beyond counts as one line that says so."""


class Side(msgspec.Struct, frozen=True):
    """One side's turn. number: its number on that path. first_seq, last_seq: where it lies in that log."""

    number: int
    id: str
    first_seq: int
    last_seq: int
    status: str


class TurnDifference(msgspec.Struct, frozen=True):
    """A turn after the shared beginning, on both sides or on one. lines: unified-diff lines (` ` both, `-` only a, `+`
    only b, `@` a gap), `[]` where a person would read the same on both sides."""

    a: Side | None
    b: Side | None
    lines: list[str]


class Comparison(msgspec.Struct, frozen=True):
    """How two paths differ. shared_events, shared_turns: how long their common beginning is. a_seq, b_seq: the last
    shared event in either log, 0 where there is none. turns: those that are not wholly shared, in order."""

    shared_events: int
    shared_turns: int
    a_seq: int
    b_seq: int
    turns: list[TurnDifference]

    @property
    def is_equal(self) -> bool:
        """True where a person would read the same on both paths."""
        return not any(turn.lines or turn.a is None or turn.b is None for turn in self.turns)


def compare(a: Sequence[Event], b: Sequence[Event]) -> Comparison:
    """Return how two paths (events from the first to the head) differ.

    Events are the same where id, time and turn are: a fork keeps those, and branches share the events themselves.
    Sessions begin with an event of their own, which is not compared. After the shared beginning the first turn of one
    side stands beside the first of the other, and so on.
    """
    shared = _shared(a, b)
    a_turns, b_turns = turns(a), turns(b)
    both = sum(
        1
        for one, other in zip(a_turns, b_turns, strict=False)
        if _lies_within(one, a, shared) and _lies_within(other, b, shared)
    )
    differences = [
        TurnDifference(_side(one), _side(other), _difference(_events(a, one), _events(b, other)))
        for one, other in zip_longest(a_turns[both:], b_turns[both:])
    ]
    return Comparison(
        shared_events=shared,
        shared_turns=both,
        a_seq=a[shared - 1].seq if shared else 0,
        b_seq=b[shared - 1].seq if shared else 0,
        turns=differences,
    )


def _shared(a: Sequence[Event], b: Sequence[Event]) -> int:
    """Return how many events from the beginning on are the same."""
    count = 0
    for one, other in zip(a, b, strict=False):
        if not _is_same(one, other) and not (one.kind == other.kind == "session_started"):
            break
        count += 1
    # A beginning of their own is all that sessions without a common past share.
    return count if count > 1 or (count == 1 and _is_same(a[0], b[0])) else 0


def _is_same(one: Event, other: Event) -> bool:
    """Return True for one event in two logs. Ids are unique in a session only, and some programs just count."""
    return (one.id, one.at, one.turn) == (other.id, other.at, other.turn)


def _lies_within(turn: TurnSpan, path: Sequence[Event], shared: int) -> bool:
    return shared > 0 and turn.last_seq <= path[shared - 1].seq


def _side(turn: TurnSpan | None) -> Side | None:
    return None if turn is None else Side(turn.number, turn.id, turn.first_seq, turn.last_seq, turn.status)


def _events(path: Sequence[Event], turn: TurnSpan | None) -> list[Event]:
    return [] if turn is None else [event for event in path if turn.first_seq <= event.seq <= turn.last_seq]


def _difference(a: Sequence[Event], b: Sequence[Event]) -> list[str]:
    compared = difflib.unified_diff(_lines(a), _lines(b), lineterm="", n=CONTEXT_LINES)
    # The first two lines name files, which there are none of.
    return ["@" if line.startswith("@@") else line for index, line in enumerate(compared) if index > 1]


def _lines(events: Sequence[Event]) -> list[str]:
    """Return the turn as lines: who speaks, then what; each tool call with its response."""
    lines: list[str] = []
    for entry in transcript(events):
        lines += _entry_lines(entry)
        if len(lines) > LINES_MAX:
            return [*lines[:LINES_MAX], f"({len(lines) - LINES_MAX} further lines)"]
    return lines


def _entry_lines(entry: Entry) -> Iterator[str]:
    yield f"{entry.agent or entry.role or entry.kind}:"
    for line in entry.text.split("\n") if entry.text else ():
        yield f"  {line}"
    for tool in entry.tools:
        yield from _tool_lines(tool)


def _tool_lines(tool: ToolUse) -> Iterator[str]:
    yield f"  {tool.name}({_text(tool.arguments)}) {tool.status}"
    for line in _text(tool.response).split("\n") if tool.response is not None else ():
        yield f"    {line}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
