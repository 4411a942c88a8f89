"""Interrupts: a question waits until it is answered, once, on its path."""

import pytest
from hypothesis import given

from playhead.views.fold import Fold
from playhead.views.interrupts import Interrupt, interrupt, interrupts, waiting
from tests.log import Log
from tests.strategies import logs


def ask(log: Log, id: str, **fields: object) -> int:
    return log.add("interrupt_requested", {"interrupt": id, "reason": "confirmation", **fields}, turn="turn-1").seq


def test_a_question_carries_all_that_the_person_and_the_agent_need() -> None:
    log = Log()
    body = {
        "interrupt": "ask-1",
        "reason": "tool_call",
        "question": "Deploy to production?",
        "choices": ["yes", "no"],
        "response_schema": {"type": "string"},
        "tool_call": "call-1",
        "expires_at": 9.5,
        "checkpoint": {"step": 3},
    }
    event = log.add("interrupt_requested", body, by="coordinator", turn="turn-1", at=7.0)

    assert interrupt(event) == Interrupt(
        id="ask-1",
        reason="tool_call",
        seq=event.seq,
        at=7.0,
        agent="coordinator",
        turn="turn-1",
        question="Deploy to production?",
        choices=["yes", "no"],
        response_schema={"type": "string"},
        tool_call="call-1",
        expires_at=9.5,
        checkpoint={"step": 3},
    )


def test_an_answer_ends_the_wait() -> None:
    log = Log()
    ask(log, "ask-1")
    ask(log, "ask-2")
    answered = log.add("interrupt_answered", interrupt="ask-1", status="resolved", answer="yes")

    first, second = interrupts(log.path())

    assert (first.status, first.answer, first.answered_at) == ("resolved", "yes", answered.at)
    assert waiting(log.path()) == [second]


def test_the_first_answer_counts() -> None:
    """Z12."""
    log = Log()
    ask(log, "ask-1")
    log.add("interrupt_answered", interrupt="ask-1", status="resolved", answer="yes")
    log.add("interrupt_answered", interrupt="ask-1", status="cancelled", answer="no")

    [found] = interrupts(log.path())

    assert (found.status, found.answer) == ("resolved", "yes")


def test_rewinding_past_an_answer_makes_the_question_wait_again() -> None:
    log = Log()
    asked = ask(log, "ask-1")
    log.add("interrupt_answered", interrupt="ask-1", status="resolved", answer="yes")
    log.move(asked)

    assert [one.id for one in waiting(log.path())] == ["ask-1"]


def test_a_question_that_is_asked_again_waits_anew() -> None:
    log = Log()
    ask(log, "ask-1")
    log.add("interrupt_answered", interrupt="ask-1", status="resolved", answer="yes")
    ask(log, "ask-2")
    again = ask(log, "ask-1")

    assert [(one.id, one.seq) for one in waiting(log.path())] == [("ask-2", again - 1), ("ask-1", again)]


def test_an_answer_to_nothing_that_waits_changes_nothing() -> None:
    log = Log()
    log.add("interrupt_answered", interrupt="ask-1", status="resolved")
    log.add("interrupt_answered", {})
    ask(log, "ask-2")
    log.add("interrupt_answered", interrupt="ask-1", status="resolved")

    assert [one.id for one in waiting(log.path())] == ["ask-2"]


def test_an_answer_that_was_redacted_still_ends_the_wait_of_its_question() -> None:
    log = Log()
    ask(log, "ask-1")
    ask(log, "ask-2")
    secret = log.add("interrupt_answered", interrupt="ask-2", status="resolved", answer="the key")
    log.redact(secret)

    first, second = interrupts(log.path())

    assert first.status == "waiting"
    assert (second.status, second.answer, second.answered_at) == ("resolved", None, secret.at)
    assert Fold().apply_all(log.path()).named("int") == {"ask-1": first.seq}


def test_a_question_that_was_redacted_waits_for_nobody() -> None:
    log = Log()
    ask(log, "ask-1")
    log.redact(log.events[1])

    assert interrupts(log.path()) == []
    assert Fold().apply_all(log.path()).named("int") == {}


@pytest.mark.parametrize("value", [7, None, ["a"], {"a": 1}])
def test_a_field_of_another_shape_reads_as_absent(value: object) -> None:
    log = Log()
    fields = ["reason", "question", "choices", "response_schema", "tool_call", "expires_at"]
    event = log.add("interrupt_requested", {"interrupt": "ask-1", **dict.fromkeys(fields, value)})

    found = interrupt(event)

    assert (found.reason, found.question, found.tool_call) == ("", "", None)
    assert isinstance(found.choices, list)
    assert found.response_schema in (None, value)
    assert found.expires_at in (None, value)


@given(logs)
def test_the_live_fold_waits_for_the_same_answers(log: Log) -> None:
    named = Fold().apply_all(log.path(), log.seq_of()).named("int")

    assert {one.id: one.seq for one in waiting(log.path())} == named
