"""Two paths side by side: the shared beginning, and how the turns after it differ."""

from typing import Any

import pytest
from hypothesis import given

from playhead.model.event import Event
from playhead.views.compare import LINES_MAX, compare
from tests.log import Log, call, response
from tests.strategies import logs


def _turn(log: Log, id: str, prompt: str, *said: str) -> None:
    log.add("turn_started", cause="user", turn=id, by="coordinator")
    log.user(prompt, turn=id, by="user", id=f"{id}-prompt")
    for number, text in enumerate(said):
        log.assistant(text, turn=id, by="coordinator", id=f"{id}-{number}-{text}")
    log.add("turn_ended", status="completed", turn=id)


def _branched() -> tuple[list[Event], list[Event]]:
    """A path of two turns, and one that shares the first of them."""
    log = Log()
    _turn(log, "one", "Why does it fail?", "It times out.")
    shared = log.head
    _turn(log, "two", "Then raise the limit.", "Raised.\nTo 60 seconds.")
    first = log.path()
    log.move(shared)
    _turn(log, "three", "Then raise the limit.", "Raised.\nTo 90 seconds.")
    return first, log.path()


def test_what_two_branches_share_is_counted_and_the_rest_is_told_line_by_line() -> None:
    a, b = _branched()
    found = compare(a, b)
    (turn,) = found.turns
    assert turn.a is not None and turn.b is not None

    assert (found.shared_turns, found.shared_events) == (1, 5)
    assert found.a_seq == found.b_seq == 5
    assert (turn.a.number, turn.b.number) == (2, 2)
    assert "-  To 60 seconds." in turn.lines
    assert "+  To 90 seconds." in turn.lines
    assert "   Raised." in turn.lines
    assert not found.is_equal


def test_a_path_is_equal_to_itself() -> None:
    a, _ = _branched()
    found = compare(a, a)

    assert (found.turns, found.shared_turns, found.shared_events) == ([], 2, len(a))
    assert found.is_equal


def test_a_turn_that_only_one_side_has_stands_alone() -> None:
    a, _ = _branched()
    shorter = [event for event in a if event.turn != "two"]
    longer, other = compare(shorter, a), compare(a, shorter)

    assert [(turn.a is None, turn.b is None) for turn in longer.turns] == [(True, False)]
    assert [line[0] for line in longer.turns[0].lines if line != "@"] == ["+"] * 5
    assert [(turn.a is None, turn.b is None) for turn in other.turns] == [(False, True)]
    assert not longer.is_equal


def test_sessions_without_a_common_past_share_nothing_also_where_both_have_begun() -> None:
    first, second = Log(), Log()
    _turn(first, "one", "Why?", "Because.")
    _turn(second, "other", "Why?", "Because.")
    second.events[0] = _renamed(second.events[0], "started-elsewhere")
    found = compare(first.path(), second.path())

    assert (found.shared_events, found.shared_turns, found.a_seq, found.b_seq) == (0, 0, 0, 0)
    assert [turn.lines for turn in found.turns] == [[]]
    assert found.is_equal


def test_a_fork_shares_its_parents_turns_though_its_first_event_is_its_own() -> None:
    a, _ = _branched()
    fork = [_renamed(a[0], "fork-started"), *a[1:5]]
    found = compare(a, fork)

    assert (found.shared_turns, found.shared_events) == (1, 5)


def test_tool_calls_are_compared_with_their_responses() -> None:
    def path(failed: int) -> list[Event]:
        log = Log()
        log.add("turn_started", cause="user", turn=f"turn-{failed}")
        log.assistant(call(path="a.py"), turn=f"turn-{failed}", id=f"call-{failed}")
        log.tool(response(text={"failed": failed}), turn=f"turn-{failed}", id=f"result-{failed}")
        log.tool(response("call-2", text=None), turn=f"turn-{failed}", id=f"other-{failed}")
        return log.path()

    lines = compare(path(0), path(1)).turns[0].lines

    assert '-    {"failed": 0}' in lines
    assert '+    {"failed": 1}' in lines
    assert '   run_tests({"path": "a.py"}) completed' in lines


def test_of_a_very_long_turn_the_end_counts_as_one_line() -> None:
    log = Log()
    _turn(log, "one", "\n".join(f"line {number}" for number in range(LINES_MAX * 2)))
    lines = compare([], log.path()).turns[0].lines

    assert lines[-1] == f"+({LINES_MAX + 1} further lines)"
    assert len(lines) == LINES_MAX + 2


@pytest.mark.parametrize("sides", [([], []), ([], None), (None, [])])
def test_an_empty_path_shares_nothing(sides: Any) -> None:
    a, b = (_branched()[0] if side is None else side for side in sides)

    assert compare(a, b).shared_events == 0


@given(logs)
def test_every_path_is_equal_to_itself_and_differences_mirror(log: Log) -> None:
    path = log.path()
    shorter = path[: len(path) // 2]
    one, other = compare(path, shorter), compare(shorter, path)

    assert compare(path, path).is_equal
    assert one.shared_events == other.shared_events
    assert [(turn.a, turn.b) for turn in one.turns] == [(turn.b, turn.a) for turn in other.turns]


def _renamed(event: Event, id: str) -> Event:
    return Event(
        seq=event.seq,
        parent=event.parent,
        id=id,
        at=event.at,
        kind=event.kind,
        agent=event.agent,
        turn=event.turn,
        scope=event.scope,
        body=event.body,
    )
