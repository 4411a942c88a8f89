"""Paths: ranges of seq, the walk along parents, branches and fork points."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, strategies as st

from playhead.model import path as paths
from playhead.model.event import begins_turn, is_fact
from playhead.model.path import Branch, Ranges, branches, fork_points
from tests.log import Log
from tests.strategies import logs

numbers = st.lists(st.integers(1, 30), unique=True, max_size=20)
ascending = numbers.map(sorted)


@given(numbers)
def test_ranges_hold_the_seqs_they_were_made_of_in_order(given: list[int]) -> None:
    ranges = paths.of_seqs(given)

    assert list(paths.seqs(ranges)) == given
    assert paths.count(ranges) == len(given)
    assert {seq for seq in range(32) if paths.contains(ranges, seq)} == set(given)
    assert all(before[1] + 1 != after[0] for before, after in pairwise(ranges))


@given(ascending)
def test_a_seq_is_found_on_a_path_as_well_as_anywhere(given: list[int]) -> None:
    ranges = paths.of_seqs(given)

    assert {seq for seq in range(32) if paths.lies_on(ranges, seq)} == set(given)


@given(numbers, st.integers(1, 30), st.integers(0, 30))
def test_what_is_taken_out_of_ranges_leaves_the_rest_and_its_place(given: list[int], first: int, length: int) -> None:
    last = first + length
    ranges = paths.of_seqs(given)

    rest, place = paths.without(ranges, first, last)

    kept = [seq for seq in given if not first <= seq <= last]
    before = [] if place is None else list(paths.seqs(rest[:place]))
    assert list(paths.seqs(rest)) == kept
    assert (place is None) == (kept == given)
    assert place is None or before == given[: len(before)]
    assert place is None or first <= given[len(before)] <= last
    assert ranges == paths.of_seqs(given)


@given(ascending, st.integers(-1, 20), st.none() | st.integers(0, 32))
def test_the_newest_seqs_are_the_last_ones_below_a_bound(given: list[int], number: int, before: int | None) -> None:
    below = [seq for seq in given if before is None or seq < before]

    found = paths.newest(paths.of_seqs(given), number, before=before)

    assert list(paths.seqs(found)) == (below[-number:] if number > 0 else [])


@given(ascending, ascending)
def test_a_copy_of_ranges_stays_as_it_is_while_the_ranges_grow(given: list[int], more: list[int]) -> None:
    ranges = paths.of_seqs(given)
    copy: Ranges = list(ranges)

    for seq in more:
        paths.extend(ranges, seq + 30)

    assert list(paths.seqs(copy)) == given
    assert list(paths.seqs(ranges)) == [*given, *(seq + 30 for seq in more)]


@given(logs)
def test_a_path_runs_from_the_first_event_to_the_head_along_parents(log: Log) -> None:
    events = {event.seq: event for event in log.events}

    walked = paths.path(events, log.head)

    assert walked == log.path()
    assert walked[0].seq == 1
    assert paths.path(events, 0) == []


def test_damaged_parents_are_reported_and_never_walked_for_ever() -> None:
    log = Log()
    log.user("Why?")
    events = {event.seq: event for event in log.events}
    loop = events | {1: msgspec.structs.replace(events[1], parent=2)}

    with pytest.raises(ValueError, match="event 1 names 2 as its parent"):
        paths.path(loop, 2)
    with pytest.raises(KeyError):
        paths.path({2: events[2]}, 2)
    assert [branch.tip_seq for branch in branches(loop.values(), 2)] == [2]


@given(logs)
def test_branches_cover_every_event_on_a_path_and_exactly_one_is_current(log: Log) -> None:
    """P2."""
    found = branches(log.events, log.head)

    covered = {event.seq for branch in found for event in log.path(branch.tip_seq)}
    parents = {event.parent for event in log.events if not is_fact(event.kind, event.body)}
    assert covered == {event.seq for event in log.events if not is_fact(event.kind, event.body)}
    assert [branch.is_current for branch in found] == [True] + [False] * (len(found) - 1)
    assert found[0].tip_seq == log.head
    assert all(branch.tip_seq not in parents for branch in found[1:])
    assert [branch.tip_seq for branch in found[1:]] == sorted((b.tip_seq for b in found[1:]), reverse=True)


@given(logs)
def test_a_branch_tells_where_it_left_the_current_path_and_how_much_lies_after(log: Log) -> None:
    current = {event.seq for event in log.path()}

    for branch in branches(log.events, log.head):
        walked = log.path(branch.tip_seq)
        shared = [event.seq for event in walked if event.seq in current]
        turns, last = [], None
        for event in walked:
            if begins_turn(event, last):
                last = event.turn
                turns.append(event.seq)
        own_start = 0 if branch.is_current else branch.fork_seq
        assert branch.fork_seq == (shared[-1] if shared else 0)
        assert branch.event_count == sum(event.seq > own_start for event in walked)
        assert branch.turn_count == sum(seq > own_start for seq in turns)


def test_an_edited_prompt_makes_a_branch_beside_the_one_it_replaces() -> None:
    log = Log()
    log.user("Why does test_upload fail?", turn="turn-1")
    answer = log.assistant("It times out.", turn="turn-1")
    log.user("Fix it.", turn="turn-2")
    old_tip = log.assistant("Done.", turn="turn-2")
    log.move(answer)
    log.add("state_changed", {"delta": {"user": {"language": "de"}}})
    new_tip = log.user("Explain it.", turn="turn-3")
    log.add("session_changed", title="Flaky test")

    found = branches(log.events, log.head)

    assert found == [
        Branch(tip_seq=new_tip.seq, fork_seq=new_tip.seq, event_count=4, turn_count=2, is_current=True),
        Branch(tip_seq=old_tip.seq, fork_seq=answer.seq, event_count=2, turn_count=1, is_current=False),
    ]
    assert fork_points(log.events) == {answer.seq: [old_tip.seq - 1, new_tip.seq]}


def test_a_redacted_change_of_shared_state_does_not_show_as_a_branch() -> None:
    log = Log()
    log.user("Why?")
    shared = log.add("state_changed", {"delta": {"user": {"token": "secret"}}})
    log.assistant("Because.")

    log.redact(shared, is_fact=True)

    assert len(branches(log.events, log.head)) == 1
    assert fork_points(log.events) == {}


def test_after_a_rewind_the_current_path_is_listed_though_it_has_children() -> None:
    log = Log()
    first = log.user("Why?")
    last = log.assistant("Because.")
    log.move(first)

    found = branches(log.events, log.head)

    assert [(branch.tip_seq, branch.is_current) for branch in found] == [(first.seq, True), (last.seq, False)]
    assert branches([], 0) == []
