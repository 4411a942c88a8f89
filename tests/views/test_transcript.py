"""The transcript: what a person reads, with each tool beside its result and each job in one place."""

from typing import Any

import pytest
from hypothesis import given

from playhead.model.event import Event
from playhead.views.transcript import Entry, ToolUse, transcript
from tests.log import Log, call, response
from tests.strategies import SCOPES, logs


def tools(entries: list[Entry]) -> list[tuple[str | None, Any, str, int | None]]:
    """Return (call id, response, status, response seq) of every tool on the page, in order."""
    uses = [tool for entry in entries for tool in entry.tools]
    return [(tool.call_id, tool.response, tool.status, tool.response_seq) for tool in uses]


def test_a_message_shows_its_text_reasoning_tools_and_attachments() -> None:
    log = Log()
    picture = {"type": "blob", "content": "aGk=", "mime_type": "image/png"}
    event = log.assistant(
        {"type": "reasoning", "content": "A timeout?"},
        {"type": "reasoning", "content": "Yes."},
        "It times ",
        "out.",
        call("a", "run_tests", path="tests/upload"),
        picture,
        by="coordinator",
        turn="turn-1",
        interrupted=True,
    )

    assert transcript(log.path()) == [
        Entry(
            kind="message",
            seq=event.seq,
            at=event.at,
            agent="coordinator",
            turn="turn-1",
            scope=None,
            role="assistant",
            text="It times out.",
            reasoning="A timeout?\nYes.",
            tools=(ToolUse("a", "run_tests", {"path": "tests/upload"}),),
            attachments=(picture,),
            seqs=(event.seq,),
            is_interrupted=True,
        )
    ]


def test_a_tools_response_lands_with_its_call() -> None:
    log = Log()
    log.assistant(call("a"), call("b"), call(7, name=""))
    log.tool(response("b", "second", is_error=True), response(7, "third"))
    log.tool(response("a", {"failed": 1}))

    [entry] = transcript(log.path())

    assert tools([entry]) == [
        ("a", {"failed": 1}, "completed", 4),
        ("b", "second", "failed", 3),
        ("7", "third", "completed", 3),
    ]
    assert entry.tools[2].name == "tool"
    assert entry.seqs == (2, 3, 4)


def test_responses_find_their_calls_in_a_reply_that_came_in_pieces() -> None:
    log = Log()
    reply: dict[str, Any] = {"message_id": "msg-1", "turn": "turn-1"}
    log.assistant("Let me look.", {"type": "reasoning", "content": "First."}, call("a"), **reply)
    log.user("Hurry up.", turn="turn-1")
    log.tool(response("a", "first"))
    log.assistant("And there.", {"type": "reasoning", "content": "Then."}, call("b"), interrupted=True, **reply)
    log.tool(response("b", "second"))

    entry, hurry = transcript(log.path())

    assert entry.text == "Let me look.\n\nAnd there."
    assert entry.reasoning == "First.\n\nThen."
    assert tools([entry]) == [("a", "first", "completed", 4), ("b", "second", "completed", 6)]
    assert entry.seqs == (2, 4, 5, 6)
    assert entry.is_interrupted
    assert hurry.text == "Hurry up."


def test_pieces_may_name_the_event_of_the_first() -> None:
    log = Log()
    first = log.assistant("Let me look.")
    log.assistant(call("a"), message_id=first.id)

    [entry] = transcript(log.path())

    assert (entry.text, entry.seqs, len(entry.tools)) == ("Let me look.", (2, 3), 1)


def test_a_call_whose_id_comes_again_gets_its_own_response() -> None:
    log = Log()
    log.assistant(call("a"), turn="turn-1")
    log.tool(response("a", "first"))
    log.assistant(call("a"), call("a"), turn="turn-2")
    log.tool(response("a", "second"))
    log.tool(response("a", "third"))
    log.tool(response("a", "third, final"))

    assert [response for _, response, _, _ in tools(transcript(log.path()))] == ["first", "second", "third, final"]


def test_a_response_without_its_call_is_shown_by_itself() -> None:
    log = Log()
    log.tool(response("a", "first"), response(None, "second", name=""))

    entries = transcript(log.path())

    assert [(entry.role, entry.tools[0].name, entry.tools[0].response) for entry in entries] == [
        ("tool", "run_tests", "first"),
        ("tool", "tool", "second"),
    ]


def test_what_came_beside_a_response_is_shown_as_well() -> None:
    log = Log()
    log.assistant(call("a"))
    log.user(response("a"), "It failed.")

    entry, beside = transcript(log.path())

    assert tools([entry]) == [("a", "ok", "completed", 3)]
    assert (beside.role, beside.text) == ("user", "It failed.")


@pytest.mark.parametrize(
    ("status", "expected"),
    [("completed", "interrupted"), ("failed", "interrupted"), ("cancelled", "interrupted"), ("interrupted", "running")],
)
def test_a_call_is_over_when_its_turn_is_unless_that_waits_for_a_person(status: str, expected: str) -> None:
    """Z5."""
    log = Log()
    log.assistant(call("a"), call("b"), turn="turn-1")
    log.assistant(call("c"), turn="turn-2")
    log.tool(response("a"), turn="turn-1")
    log.add("turn_ended", status=status, turn="turn-1")

    ended = tools(transcript(log.path()))
    log.tool(response("b", "late"))

    assert [status for _, _, status, _ in ended] == ["completed", expected, "running"]
    assert tools(transcript(log.path()))[1] == ("b", "late", "completed", 6)


def test_a_page_shows_one_scope_and_no_system_messages_unless_asked() -> None:
    log, scope = Log(), "coordinator/researcher:1"
    log.message("system", "You are careful.")
    log.user("Why?")
    log.user("Look it up.", scope=scope)
    log.assistant(call("a"), scope=scope, turn="turn-1")
    log.add("turn_ended", status="failed", turn="turn-1")

    assert [entry.text for entry in transcript(log.path())] == ["Why?"]
    assert [entry.text for entry in transcript(log.path(), system=True)] == ["You are careful.", "Why?"]
    assert [entry.text for entry in transcript(log.path(), scope=scope)] == ["Look it up.", ""]
    assert tools(transcript(log.path(), scope=scope))[0][2] == "interrupted"


def test_compacted_stretches_stay_visible_with_a_marker() -> None:
    """Z10."""
    log = Log()
    question, answer = log.user("Why?"), log.assistant("Because.")
    log.compact(question, answer, "Asked and answered.")

    assert [(entry.kind, entry.text) for entry in transcript(log.path())] == [
        ("message", "Why?"),
        ("message", "Because."),
        ("compaction", "Asked and answered."),
    ]


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("interrupt_requested", {"reason": "confirmation", "question": "Deploy?"}, ("interrupt", "Deploy?")),
        ("interrupt_requested", {"reason": "confirmation"}, ("interrupt", "confirmation")),
        ("interrupt_answered", {"status": "resolved", "answer": {"yes": True}}, ("answer", '{"yes": true}')),
        ("interrupt_answered", {"status": "cancelled"}, ("answer", "cancelled")),
        ("trigger_fired", {"trigger": "timer-1"}, ("trigger", "timer-1")),
        ("trigger_fired", {"trigger": "timer-1", "prompt": "It is nine."}, ("trigger", "It is nine.")),
        ("channel_message", {"channel": "plans", "sender": "ana", "content": "A"}, ("channel", "#plans ana: A")),
        ("channel_message", {"channel": "plans", "sender": "ana"}, ("channel", "#plans ana: ")),
        ("artifact_saved", {"name": "chart.png"}, ("artifact", "chart.png")),
    ],
)
def test_a_marker_says_what_happened_and_carries_its_body(
    kind: str, body: dict[str, Any], expected: tuple[str, str]
) -> None:
    log = Log()
    event = log.add(kind, body)

    [entry] = transcript(log.path())

    assert (entry.kind, entry.text) == expected
    assert (entry.data, entry.seqs) == (body, (event.seq,))


def test_a_job_is_one_entry_that_tells_its_newest_status() -> None:
    log = Log()
    job: dict[str, Any] = {"job": "job-1", "kind": "sub-agent", "agent": "coordinator/researcher:1"}
    log.add("job_changed", job | {"status": "running"})
    log.user("And?")
    log.add("job_changed", job | {"status": "completed", "result": "found"})
    log.add("job_changed", {"job": "job-1", "kind": "background", "name": "index", "status": "running"})
    log.add("job_changed", {"job": "job-2", "kind": "background", "status": "running"})

    first, message, second, third = transcript(log.path())

    assert (first.kind, first.text, first.seqs) == ("sub_agent", "coordinator/researcher:1: completed", (2, 4))
    assert first.data == job | {"status": "completed", "result": "found"}
    assert message.text == "And?"
    assert (second.kind, second.text) == ("job", "index: running")
    assert third.text == "job-2: running"


def test_a_job_that_runs_a_tool_shows_only_when_it_went_wrong() -> None:
    log = Log()
    for job, status in [("a", "running"), ("a", "completed"), ("b", "running"), ("b", "failed")]:
        log.add("job_changed", job=job, kind="tool", name="run_tests", status=status)

    assert [(entry.kind, entry.text) for entry in transcript(log.path())] == [("job", "run_tests: failed")]


def test_what_was_redacted_leaves_its_place() -> None:
    log = Log()
    secrets: list[Event] = [
        log.user("The key is 123."),
        log.add("interrupt_answered", interrupt="ask-1", status="resolved", answer="123"),
        log.add("note", name="key"),
    ]
    for secret in secrets:
        log.redact(secret)

    assert [(entry.kind, entry.seq, entry.text) for entry in transcript(log.path())] == [
        ("redacted", 2, ""),
        ("redacted", 3, ""),
    ]


@given(logs)
def test_every_message_of_a_scope_is_on_its_page_once(log: Log) -> None:
    for scope in SCOPES[2:]:
        entries = transcript(log.path(), scope=scope, system=True)

        messages = [event.seq for event in log.path() if event.scope == scope and event.kind == "message"]
        shown = {seq for entry in entries for seq in entry.seqs}
        firsts = [entry.seq for entry in entries if entry.kind == "message" and entry.role != "tool"]
        assert set(messages) <= shown
        assert firsts == sorted(set(firsts))
