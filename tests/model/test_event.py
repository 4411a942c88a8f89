"""Events: what may become one, what is a fact, where the head stands after it, and where turns begin."""

from typing import Any

import pytest
from hypothesis import given

from playhead.errors import InvalidEvent
from playhead.model.event import KINDS, Draft, begins_turn, check_draft, head_after, is_fact, redacted_body
from playhead.model.ids import ID_CHARS_MAX, LABEL_CHARS_MAX
from tests.log import Log, response
from tests.strategies import json_objects, logs

BODIES: dict[str, dict[str, Any]] = {
    "session_started": {"app": "default", "user": "ana"},
    "message": {"role": "user", "parts": [{"type": "text", "content": "Why does test_upload fail on CI?"}]},
    "turn_started": {"cause": "user"},
    "turn_ended": {"status": "completed"},
    "state_changed": {"delta": {"session": {"branch": "main"}}},
    "head_moved": {"to": "event-1", "why": "rewind"},
    "compaction": {"from": "event-1", "to": "event-2", "summary": "The upload test fails."},
    "interrupt_requested": {"interrupt": "ask-1", "reason": "confirmation"},
    "interrupt_answered": {"interrupt": "ask-1", "status": "resolved"},
    "job_changed": {"job": "job-1", "kind": "tool", "status": "running"},
    "trigger_changed": {"trigger": "timer-1", "type": "timer", "status": "active"},
    "trigger_fired": {"trigger": "timer-1"},
    "channel_message": {"channel": "plans", "sender": "coordinator"},
    "artifact_saved": {"name": "chart.png", "hash": "sha256-0", "size": 0},
    "session_changed": {"title": "Flaky test"},
    "redacted": {"events": ["event-2"]},
    "note": {"name": "model_changed"},
}


def draft(kind: str = "message", body: Any = None, **fields: Any) -> Draft:
    given: dict[str, Any] = {"id": "event-7", "at": 1_767_225_600.5}
    if kind == "head_moved":
        given["parent"] = 1
    return Draft(kind=kind, body=BODIES[kind] if body is None else body, **(given | fields))


def test_every_kind_has_a_plain_draft_that_may_be_appended() -> None:
    for kind in KINDS:
        check_draft(draft(kind))

    assert BODIES.keys() == KINDS


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in sorted(KINDS) for field in BODIES[kind]])
def test_a_draft_without_a_needed_field_is_refused(kind: str, field: str) -> None:
    if kind in ("state_changed", "session_changed"):
        return  # These need no field by name.
    whole = BODIES[kind]
    broken = [
        {name: value for name, value in whole.items() if name != field},
        whole | {field: None},
        whole | {field: True},
        whole | {field: ""},
    ]

    for body in broken:
        with pytest.raises(InvalidEvent, match=f"a {kind} needs '{field}'"):
            check_draft(draft(kind, body))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"kind": "thought"}, "unknown kind 'thought'"),
        ({"body": ["role"]}, "must be a dict, not list"),
        ({"body": {"role": "developer", "parts": []}}, "role must be one of assistant, system, tool, user"),
        ({"body": {"role": "user", "parts": ["text"]}}, "a part must be an object with a 'type'"),
        ({"body": {"role": "user", "parts": [{"content": "text"}]}}, "a part must be an object with a 'type'"),
        ({"body": {"role": "user", "parts": [{"type": 1}]}}, "a part must be an object with a 'type'"),
        ({"id": ""}, "an event id must be a string of at least one character"),
        ({"id": None}, "an event id must be a string"),
        ({"id": "a\0"}, "holds a NUL"),
        ({"id": "\ud800"}, "half a surrogate pair"),
        ({"id": "x" * (ID_CHARS_MAX + 1)}, "512 characters at most"),
        ({"turn": ""}, "a turn id must be a string of at least one character"),
        ({"turn": 7}, "a turn id must be a string"),
        ({"agent": "a\0"}, "an agent 'a.x00' holds a NUL"),
        ({"agent": "x" * (LABEL_CHARS_MAX + 1)}, "2048 characters at most"),
        ({"scope": ""}, "a scope must be a string of at least one character"),
        ({"scope": "\udfff"}, "half a surrogate pair"),
        ({"at": float("nan")}, "'at' must be finite UTC seconds"),
        ({"at": float("inf")}, "'at' must be finite"),
        ({"at": 10**400}, "'at' must be finite"),
        ({"at": "now"}, "'at' must be finite"),
        ({"at": True}, "'at' must be finite"),
        ({"parent": 3}, "only a head_moved names its 'parent'"),
        ({"parent": 0}, "only a head_moved names its 'parent'"),
    ],
)
def test_a_draft_that_no_store_could_keep_is_refused(changed: dict[str, Any], problem: str) -> None:
    fields: dict[str, Any] = {"kind": "message", "body": BODIES["message"], "id": "event-7", "at": 0.0} | changed

    with pytest.raises(InvalidEvent, match=problem):
        check_draft(Draft(**fields))


@pytest.mark.parametrize("parent", [None, 0, -1, "1", True, 1.0])
def test_a_head_moves_to_an_event_and_nowhere_else(parent: Any) -> None:
    with pytest.raises(InvalidEvent, match="needs the seq it moves to"):
        check_draft(draft("head_moved", parent=parent))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "needs 'delta'"),
        ({"delta": {}, "removed": {}}, "needs 'delta'"),
        ({"delta": [1]}, "needs 'delta'"),
        ({"delta": {"session": {"a": 1}}, "removed": [1]}, "needs 'delta'"),
        ({"delta": {"session": ["a"]}}, "'delta' must be {scope: {key: value}}"),
        ({"removed": {"session": {"a": 1}}}, "'removed' must be {scope: .key.}"),
        ({"delta": {"session": {"a": 1}, "user": {"b": 1}}}, "a fact of its own"),
        ({"delta": {"session": {"a": 1}}, "removed": {"app": ["b"]}}, "a fact of its own"),
        ({"delta": {"session": {"temp:a": 1}}}, "never stored"),
        ({"removed": {"app": ["temp:a"]}}, "never stored"),
        ({"removed": {"session": [7]}}, "keys of state are strings"),
    ],
)
def test_a_change_of_state_that_means_nothing_is_refused(body: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidEvent, match=problem):
        check_draft(draft("state_changed", body))


@given(json_objects)
def test_no_body_makes_the_check_fail_in_another_way(body: dict[str, Any]) -> None:
    for kind in KINDS:
        for merged in (body, BODIES[kind] | body, {**BODIES[kind], **dict.fromkeys(BODIES[kind], body)}):
            try:
                check_draft(draft(kind, merged))
            except InvalidEvent:
                continue
            assert is_fact(kind, merged) in (True, False)


@given(logs)
def test_the_parent_of_an_event_is_the_head_before_it_and_a_fact_is_no_ones_parent(log: Log) -> None:
    facts = {event.seq for event in log.events if is_fact(event.kind, event.body)}
    heads = [0, *(head_after(event) for event in log.events)]
    placed = [event for event in log.events if event.seq not in facts]

    assert [event.parent for event in placed] == [heads[event.seq - 1] for event in placed]
    assert not facts & {event.parent for event in placed}
    assert not facts & {event.seq for event in log.path()}
    assert heads[-1] == log.head


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("state_changed", {"delta": {"session": {"a": 1}}}, False),
        ("state_changed", {"delta": {"agent:coordinator": {"a": 1}}}, False),
        ("state_changed", {"delta": {"user": {"a": 1}}}, True),
        ("state_changed", {"removed": {"app": ["a"]}}, True),
        ("state_changed", {"delta": {}, "removed": {"app": ["a"]}}, True),
        ("state_changed", {"delta": "user", "removed": 7}, False),
        ("state_changed", {}, False),
        ("note", {"delta": {"user": {}}}, False),
        ("session_changed", {}, True),
        ("head_moved", {}, True),
        ("redacted", {}, True),
    ],
)
def test_facts_are_told_from_events_on_the_path(kind: str, body: dict[str, Any], expected: bool) -> None:
    assert is_fact(kind, body) is expected


def test_an_event_that_was_redacted_is_still_a_fact_or_not_as_before() -> None:
    for kind, body in BODIES.items():
        assert is_fact(kind, redacted_body(kind, is_fact=is_fact(kind, body))) == is_fact(kind, body)
    assert is_fact("state_changed", redacted_body("state_changed", is_fact=True))
    assert redacted_body("message", is_fact=False) == redacted_body("head_moved", is_fact=True) == {}


def test_a_turn_begins_as_it_is_started_or_with_what_is_first_said() -> None:
    log = Log()
    begins = [
        log.add("turn_started", cause="user", turn="b"),
        log.user("Why?", turn="b"),
        log.add("trigger_fired", trigger="timer-1", turn="b"),
    ]
    late = [
        log.add("job_changed", job="job-1", kind="tool", status="completed", turn="b"),
        log.assistant("Found it.", turn="b", scope="coordinator/researcher:1"),
        log.add("trigger_fired", trigger="timer-1", turn="b", scope="coordinator/researcher:1"),
        log.tool(response("a"), turn="b"),
        log.add("turn_ended", status="completed", turn="b"),
        log.user("Why?"),
    ]

    assert all(begins_turn(event, last) for event in begins for last in (None, "a"))
    assert not any(begins_turn(event, "b") for event in begins)
    assert not any(begins_turn(event, "a") for event in late)
