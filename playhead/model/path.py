"""Paths through a log: ranges of seq, the walk from a head to the first event, branches and fork points.

`Ranges` is how positions are kept everywhere: a list of inclusive `[start, end]` pairs, in the order in which events
are to be read. On a path they ascend; in a conversation a summary stands where the stretch stood that it covers. A
list may grow at its end; the pairs in it are never changed in place, so copies of a list may share them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from playhead.model.event import Event, begins_turn, is_fact

Ranges = list[list[int]]


def extend(ranges: Ranges, seq: int) -> None:
    """Add one seq at the end, in place: the last range grows where the seq adjoins it."""
    if ranges and ranges[-1][1] + 1 == seq:
        ranges[-1] = [ranges[-1][0], seq]
    else:
        ranges.append([seq, seq])


def seqs(ranges: Ranges) -> Iterator[int]:
    """Yield each seq, in the ranges' order."""
    for start, end in ranges:
        yield from range(start, end + 1)


def count(ranges: Ranges) -> int:
    """Return how many seqs the ranges hold."""
    return sum(end - start + 1 for start, end in ranges)


def contains(ranges: Ranges, seq: int) -> bool:
    """Return True when the seq lies in one of the ranges, in whatever order they are."""
    return any(start <= seq <= end for start, end in ranges)


def lies_on(path: Ranges, seq: int) -> bool:
    """Return True when the seq lies on a path, whose ranges ascend. Fast also where they are many."""
    index = bisect_right(path, seq, key=lambda pair: pair[0])
    return index > 0 and seq <= path[index - 1][1]


def without(ranges: Ranges, first: int, last: int) -> tuple[Ranges, int | None]:
    """Return the ranges less all seqs from `first` to `last`, and the index where the first of them stood.

    The index is None where none of them stood in the ranges.
    """
    kept: Ranges = []
    place: int | None = None
    for start, end in ranges:
        if end < first or start > last:
            kept.append([start, end])
            continue
        if start < first:
            kept.append([start, first - 1])
        if place is None:
            place = len(kept)
        if end > last:
            kept.append([last + 1, end])
    return kept, place


def newest(ranges: Ranges, number: int, *, before: int | None = None) -> Ranges:
    """Return the last `number` seqs of ascending ranges, of those below `before`, ascending."""
    found: Ranges = []
    for start, end in reversed(ranges):
        last = end if before is None else min(end, before - 1)
        if number <= 0:
            break
        if last >= start:
            first = max(start, last - number + 1)
            found.append([first, last])
            number -= last - first + 1
    found.reverse()
    return found


def of_seqs(numbers: Iterable[int]) -> Ranges:
    """Return the ranges that hold these seqs in this order."""
    ranges: Ranges = []
    for seq in numbers:
        extend(ranges, seq)
    return ranges


def path(events: Mapping[int, Event], head: int) -> list[Event]:
    """Return the events from the first to `head`, following parents; `[]` for head 0.

    Raises `KeyError` where a parent is missing and `ValueError` where parents do not lead downwards (damage).
    """
    walked: list[Event] = []
    seq = head
    while seq:
        event = events[seq]
        if event.parent >= seq:
            raise ValueError(f"event {seq} names {event.parent} as its parent, which is not before it")
        walked.append(event)
        seq = event.parent
    walked.reverse()
    return walked


class Branch(msgspec.Struct, frozen=True):
    """A path that ends at an event with no child.

    tip_seq: its last event. fork_seq: the last event it shares with the current path (equal to `tip_seq` for the
    current one, 0 where it shares none). event_count and turn_count: events and turns after `fork_seq`, or on the whole
    path for the current branch.
    """

    tip_seq: int
    fork_seq: int
    event_count: int
    turn_count: int
    is_current: bool


def branches(events: Iterable[Event], head: int) -> list[Branch]:
    """Return every branch of a log (whole, in seq order), the current one first, then by tip, newest first.

    The current path is always listed, also where the head stands on an event that has children (after a rewind); it is
    left out only for a log without a path (head 0). Time and memory grow with the log, however many branches it has.
    """
    on_path = {event.seq: event for event in events if not is_fact(event.kind, event.body)}
    current = set(_walk(on_path, head))
    # Event to (fork, events and turns since then, last turn of its path). Parents come before their children.
    reached: dict[int, tuple[int, int, int, str | None]] = {}
    for seq, event in on_path.items():
        fork_seq, event_count, turn_count, last_turn = reached.get(event.parent, (0, 0, 0, None))
        if seq in current:
            fork_seq = seq
        elif event.parent in current:
            event_count = turn_count = 0
        begins = begins_turn(event, last_turn)
        reached[seq] = (fork_seq, event_count + 1, turn_count + begins, event.turn if begins else last_turn)
    inner = {event.parent for event in on_path.values()}
    tips = [seq for seq in sorted(on_path, reverse=True) if seq not in inner and seq != head]
    return [
        Branch(
            tip_seq=seq,
            fork_seq=reached[seq][0],
            event_count=reached[seq][1],
            turn_count=reached[seq][2],
            is_current=seq in current,
        )
        for seq in ([head] if head in on_path else []) + tips
    ]


def fork_points(events: Iterable[Event]) -> dict[int, list[int]]:
    """Return the events with more than one child: seq to the children's seqs, in order of arrival."""
    children: dict[int, list[int]] = {}
    for event in events:
        if event.parent and not is_fact(event.kind, event.body):
            children.setdefault(event.parent, []).append(event.seq)
    return {seq: found for seq, found in children.items() if len(found) > 1}


def _walk(on_path: Mapping[int, Event], head: int) -> Iterator[int]:
    seq = head
    while seq in on_path and on_path[seq].parent < seq:
        yield seq
        seq = on_path[seq].parent
