"""Turns: where each begins and how it ended, numbered as everything else numbers them."""

from hypothesis import given

from playhead.model.event import begins_turn
from playhead.views.fold import Fold
from playhead.views.turns import TurnSpan, turns
from tests.log import FIRST_AT, Log
from tests.strategies import logs


def test_turns_are_numbered_along_the_path_with_their_bounds_and_ends() -> None:
    log = Log()
    log.add("turn_started", cause="trigger", turn="a")
    log.assistant("It is nine o'clock.", turn="a")
    log.add("turn_ended", status="failed", turn="a")
    log.add("note", name="idle")
    log.user("Why?", turn="b")
    log.assistant("Because.", turn="b")

    assert turns(log.path()) == [
        TurnSpan(1, "a", 2, 5, "trigger", "failed", FIRST_AT + 2, FIRST_AT + 4),
        TurnSpan(2, "b", 6, 7, None, "open", FIRST_AT + 6),
    ]
    assert turns([]) == []


def test_a_turn_that_was_paused_goes_on_as_itself() -> None:
    """Z12."""
    log = Log()
    log.add("turn_started", cause="user", turn="a")
    log.add("turn_ended", status="interrupted", turn="a")
    paused = turns(log.path())
    log.add("turn_started", cause="resume", turn="a")
    resumed = turns(log.path())
    log.add("turn_ended", {}, turn="a")

    assert [(turn.cause, turn.status) for turn in paused] == [("user", "interrupted")]
    assert [(turn.cause, turn.status, turn.ended_at) for turn in resumed] == [("user", "open", None)]
    assert [(turn.first_seq, turn.last_seq, turn.status) for turn in turns(log.path())] == [(2, 5, "completed")]


def test_a_turn_that_goes_on_after_another_has_two_numbers() -> None:
    log = Log()
    for turn in ("a", "b", "a"):
        log.add("turn_started", cause="user", turn=turn)
    log.add("turn_ended", status="completed", turn="b")

    assert [(turn.number, turn.id, turn.status) for turn in turns(log.path())] == [
        (1, "a", "open"),
        (2, "b", "open"),
        (3, "a", "open"),
    ]


@given(logs)
def test_turns_agree_with_the_live_fold_and_rewinding_one_hides_it_and_all_after_it(log: Log) -> None:
    path = log.path()
    found = turns(path)
    fold = Fold().apply_all(path)

    assert fold.turn_count == len(found)
    assert [turn.number for turn in found] == list(range(1, len(found) + 1))
    for turn in found:
        first = log.events[turn.first_seq - 1]
        assert begins_turn(first, None)
        assert len(turns(log.path(first.parent))) == turn.number - 1
    spans = [(turn.first_seq, turn.last_seq) for turn in found]
    assert spans == sorted(spans)
    assert not found or found[-1].last_seq == log.head
