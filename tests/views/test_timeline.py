"""The timeline: one line for every event, with what it closed and how long that took."""

import time
from typing import Any

import pytest
from hypothesis import given

from playhead.model.event import Event
from playhead.model.path import of_seqs
from playhead.views.fold import Fold
from playhead.views.timeline import LABEL_CHARS_MAX, is_error, label, timeline
from tests.log import Log, call, response
from tests.strategies import logs


def durations(events: list[Event]) -> list[float | None]:
    return [row.duration_s for row in timeline(events)][1:]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("session_started", {"app": "ci", "user": "ana"}, "session started (ci)"),
        ("message", {"role": "user", "parts": [{"type": "text", "content": "Why?\n\tNow"}]}, "Why? Now"),
        ("message", {"role": "user", "parts": []}, "user"),
        ("message", {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}]}, "(thinks) Hm."),
        (
            "message",
            {"role": "assistant", "parts": [call(path="a.py", tries=[1, None])]},
            "run_tests(path=a.py, tries=1, )",
        ),
        ("message", {"role": "tool", "parts": [response(text={"failed": 1})]}, "→ failed=1"),
        ("message", {"role": "user", "parts": [{"type": "blob", "mime_type": "image/png"}]}, "[image/png]"),
        ("message", {"role": "user", "parts": [{"type": "video"}]}, "[video]"),
        ("turn_started", {"cause": "user"}, "turn begins (user)"),
        ("turn_ended", {"status": "failed"}, "turn ends (failed)"),
        (
            "state_changed",
            {"delta": {"session": {"a": 1}}, "removed": {"x": ["b"]}},
            "state of session: a=1; x: without b",
        ),
        ("head_moved", {"to": "event-1", "why": "rewind"}, "head moved (rewind)"),
        ("compaction", {"summary": "All of it."}, "compacted: All of it."),
        ("interrupt_requested", {"reason": "confirmation"}, "asks: confirmation"),
        ("interrupt_requested", {"reason": "confirmation", "question": "Deploy?"}, "asks: Deploy?"),
        ("interrupt_answered", {"status": "resolved", "answer": {"yes": True}}, "answered (resolved): yes=true"),
        ("job_changed", {"job": "job-1", "kind": "tool", "status": "running"}, "tool job-1: running"),
        ("trigger_changed", {"trigger": "t", "type": "timer", "status": "active"}, "trigger t (timer): active"),
        ("trigger_fired", {"trigger": "t"}, "trigger t fired:"),
        ("channel_message", {"channel": "plans", "sender": "ana", "content": "Step 1"}, "#plans ana: Step 1"),
        ("artifact_saved", {"name": "a.png", "size": 12}, "artifact a.png (12 bytes)"),
        ("session_changed", {"title": "Flaky test"}, "session: title=Flaky test"),
        ("redacted", {"events": ["a", "b"], "reason": "a key"}, "redacted 2 events: a key"),
        ("note", {"name": "model_changed"}, "model_changed"),
        ("from_a_newer_version", {"name": "x"}, "from_a_newer_version"),
        ("message", {}, "(redacted)"),
    ],
)
def test_a_label_says_what_happened_in_one_line(kind: str, body: dict[str, Any], expected: str) -> None:
    event = Log().add(kind, body)

    assert label(event) == expected


def test_a_label_is_short_however_large_the_event() -> None:
    log = Log()
    deep: Any = "x" * 1_000
    for _ in range(100):
        deep = [deep] * 4
    wide = {f"{number}" * 300: "y" * 300 for number in range(10_000)}
    log.user("word " * 100_000, *["part"] * 10_000)
    for value in (deep, wide, "z" * 1_000_000):
        log.assistant(call("a", arguments=value))
        log.add("state_changed", {"delta": {"session": {"a": value}}})

    started = time.process_time()
    labels = [label(event) for event in log.events]

    assert time.process_time() - started < 0.5
    assert all(len(line) <= LABEL_CHARS_MAX for line in labels)
    assert len(labels[1]) == LABEL_CHARS_MAX
    assert labels[1].endswith("…")


def test_a_row_shows_the_event_and_whether_it_lies_on_the_path() -> None:
    log = Log()
    first = log.user("Why?", by="user", turn="turn-1")
    log.assistant("Because.", usage={"output_tokens": 7}, scope="coordinator/researcher:1")
    moved = log.move(first)

    rows = timeline(log.events, Fold().apply_all(log.path()).path)

    assert [(row.seq, row.is_on_path) for row in rows] == [(1, True), (2, True), (3, False), (moved.seq, False)]
    assert (rows[1].agent, rows[1].turn, rows[1].kind, rows[1].at) == ("user", "turn-1", "message", first.at)
    assert (rows[2].scope, rows[2].tokens) == ("coordinator/researcher:1", 7)
    assert [row.is_on_path for row in timeline(log.events)] == [True] * 4
    assert timeline([]) == []


@given(logs)
def test_rows_are_marked_by_the_path_they_are_given(log: Log) -> None:
    on_path = [event.seq for event in log.path()]

    rows = timeline(log.events, of_seqs(on_path))

    assert [row.seq for row in rows] == [event.seq for event in log.events]
    assert [row.seq for row in rows if row.is_on_path] == on_path
    assert all(row.duration_s is None or row.duration_s >= 0 for row in rows)
    assert all("\n" not in row.label and len(row.label) <= LABEL_CHARS_MAX for row in rows)


def test_by_time_rows_follow_the_clock_and_then_the_log() -> None:
    log = Log()
    for at in (5.0, 3.0, 5.0):
        log.user("Why?", at=at)

    assert [row.seq for row in timeline(log.events[1:], by_time=True)] == [3, 2, 4]
    assert [row.seq for row in timeline(log.events[1:])] == [2, 3, 4]


def test_a_tool_is_timed_from_its_call_to_its_response() -> None:
    log = Log()
    log.assistant(call("a"), call("b"), at=10.0)
    log.tool(response("a"), at=12.5)
    log.tool(response("b"), at=20.0)
    log.tool(response("never called"), at=21.0)

    assert durations(log.events) == [None, 2.5, 10.0, None]


def test_a_call_whose_id_comes_again_is_timed_from_its_newest_start() -> None:
    log = Log()
    log.assistant(call("a"), at=10.0)
    log.tool(response("a"), at=11.0)
    log.assistant(call("a"), at=100.0)
    log.assistant(call("a"), scope="coordinator/researcher:1", at=101.0)
    log.tool(response("a"), at=103.0)
    log.tool(response("a"), at=104.0, scope="coordinator/researcher:1")

    assert durations(log.events) == [None, 1.0, None, None, 3.0, 3.0]


def test_turns_questions_and_jobs_are_timed_too() -> None:
    log = Log()
    log.add("turn_started", cause="user", turn="turn-1", at=0.0)
    log.add("job_changed", job="job-1", kind="tool", status="queued", at=1.0)
    log.add("job_changed", job="job-1", kind="tool", status="running", at=3.0)
    log.add("job_changed", job="job-1", kind="tool", status="completed", at=6.0)
    log.add("job_changed", job="job-1", kind="tool", status="running", at=7.0)
    log.add("interrupt_requested", interrupt="ask-1", reason="confirmation", at=8.0)
    log.add("turn_ended", status="interrupted", turn="turn-1", at=9.0)
    log.add("interrupt_answered", interrupt="ask-1", status="resolved", at=60.0)
    log.add("turn_started", cause="resume", turn="turn-1", at=61.0)
    log.add("turn_ended", status="completed", turn="turn-1", at=63.0)
    log.add("turn_ended", status="completed", at=64.0)
    log.add("job_changed", {}, at=65.0)

    assert durations(log.events) == [None, None, 2.0, 5.0, None, None, 9.0, 52.0, None, 2.0, None, None]


def test_a_clock_that_goes_back_takes_no_time() -> None:
    log = Log()
    log.assistant(call("a"), at=10.0)
    log.tool(response("a"), at=3.0)

    assert durations(log.events) == [None, 0.0]


def test_what_failed_or_was_cut_off_is_an_error() -> None:
    log = Log()
    errors = [
        log.tool(response(is_error=True)),
        log.assistant("Beca", interrupted=True),
        log.add("turn_ended", status="failed"),
        log.add("job_changed", job="j", kind="tool", status="interrupted"),
        log.add("note", name="rate_limited", is_error=True),
    ]
    fine = [
        log.tool(response()),
        log.add("turn_ended", status="cancelled"),
        log.add("job_changed", job="j", kind="tool", status="running"),
        log.add("note", name="model_changed"),
        log.add("session_changed", title="failed"),
        log.add("turn_ended", {"status": ["failed"]}),
    ]

    assert [is_error(event) for event in errors] == [True] * 5
    assert [is_error(event) for event in fine] == [False] * 6
