"""Whatever a session holds becomes a message history that Pydantic AI reads."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from playhead import Event, Message
from playhead.adapters.pydantic_ai_history import KEY, history, reply_details, result_details
from playhead.agents.messages import CUT_OFF
from playhead.views.conversation import INTERRUPTED, conversation
from tests.agents.test_model_messages import call, message, messages, response, text

pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")

from pydantic_ai.messages import ModelMessagesTypeAdapter


def parts_of(documents: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(part["part_kind"], part.get("content")) for one in documents for part in one["parts"]]


def test_what_another_agent_wrote_is_a_history_too() -> None:
    told = history(
        [
            message("user", "Where?"),
            message("system", "Be brief."),
            message("assistant", {"type": "reasoning", "content": "Hm."}, "I look.", call("a"), model="m", at=1.5),
            message("tool", response("a", {"n": 1})),
            message("user", "More.", injected="queue"),
            message("assistant", "It beg", interrupted=True),
        ]
    )

    assert [one["kind"] for one in told] == ["request", "response", "request", "response", "request"]
    assert parts_of(told) == [
        ("user-prompt", "Where?"),
        ("thinking", "Hm."),
        ("text", "I look."),
        ("tool-call", None),
        ("tool-return", {"n": 1}),
        ("user-prompt", "More."),
        ("text", "It beg"),
        ("user-prompt", CUT_OFF),
    ]
    assert (told[1]["model_name"], told[1]["timestamp"]) == ("m", "1970-01-01T00:00:01.500000+00:00")


def test_results_say_how_they_came_out() -> None:
    failed, cut_off = response("b", "no", is_error=True), response("c", INTERRUPTED, is_error=True)
    told = history(
        [message("assistant", call("a"), call("b"), call("c")), message("tool", response("a", 1), failed, cut_off)],
        [message("tool", failed, extra={KEY: {"outcome": "retried"}})],
    )

    assert [part["outcome"] for part in told[1]["parts"]] == ["success", "retried", "interrupted"]


def test_images_go_as_they_are_and_other_files_as_a_line() -> None:
    blob = {"type": "blob", "mime_type": "image/png", "content": "iVBORw0KGgo="}
    broken = {"type": "blob", "mime_type": "image/png", "content": "no base64!"}
    told = history([message("user", "Look:", blob, broken, {"type": "file", "file_id": "a.pdf"})])

    assert told[0]["parts"][0]["content"] == [
        "Look:",
        {"kind": "binary", "data": "iVBORw0KGgo=", "media_type": "image/png"},
        "[image/png]",
        "[file: a.pdf]",
    ]


def test_only_what_the_log_does_not_say_is_kept_beside_it() -> None:
    plain = {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "Hm.", "id": None},
            {"part_kind": "text", "content": "Yes."},
            {"part_kind": "tool-call", "tool_name": "f", "args": "{}", "tool_call_id": "a"},
        ],
        "provider_name": "some",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    signed = {**plain, "parts": [{"part_kind": "thinking", "content": "Hm.", "signature": "sig"}]}
    turned = {**plain, "parts": list(reversed(plain["parts"]))}

    assert reply_details(plain) is None
    assert reply_details(signed) == {
        "parts": [{"part_kind": "thinking", "chars": 3, "signature": "sig"}],
        "provider_name": "some",
    }
    assert [part["part_kind"] for part in (reply_details(turned) or {})["parts"]] == ["tool-call", "text", "thinking"]
    assert result_details({"part_kind": "tool-return", "content": 1, "outcome": "success", "timestamp": "x"}) is None
    assert result_details({"part_kind": "tool-return", "content": 1, "outcome": "denied"}) == {"outcome": "denied"}


def test_parts_come_back_where_one_ended_and_the_next_began() -> None:
    told = {
        "parts": [
            {"part_kind": "thinking", "chars": 3, "signature": "one"},
            {"part_kind": "thinking", "chars": 0, "signature": "two"},
            {"part_kind": "tool-call", "tool_name": "f", "tool_call_id": "a"},
            {"part_kind": "text", "chars": 4},
        ]
    }
    carrier = {"type": "reasoning", "content": "", "extra": {KEY: told}}
    thought = {"type": "reasoning", "content": "Hm."}
    (one,) = history([message("assistant", thought, text("Yes."), call("a", "f", {"n": 1}), carrier)])
    (other,) = history([message("assistant", thought, text("Yes, but."), call("a", "f", {"n": 1}), carrier)])

    assert one["parts"] == [
        {"part_kind": "thinking", "content": "Hm.", "signature": "one"},
        {"part_kind": "thinking", "content": "", "signature": "two"},
        {"part_kind": "tool-call", "tool_name": "f", "tool_call_id": "a", "args": {"n": 1}},
        {"part_kind": "text", "content": "Yes."},
    ]
    assert [part["part_kind"] for part in other["parts"]] == ["thinking", "text", "tool-call"]


def events_of(said: list[Message]) -> list[Event]:
    bodies = [{"role": one.role, "parts": one.parts, "interrupted": one.interrupted} for one in said]
    return [Event(n, n - 1, f"e{n}", 1.0, "message", "x", "t", None, body) for n, body in enumerate(bodies, 1)]


@given(st.lists(messages, max_size=8))
def test_any_session_at_all_is_a_history_that_pydantic_ai_reads(said: list[Message]) -> None:
    told = history(conversation(events_of(said)))
    read = ModelMessagesTypeAdapter.validate_python(told)
    kinds = [one["kind"] for one in told]
    asked = [[p["tool_call_id"] for p in one["parts"] if p["part_kind"] == "tool-call"] for one in told]
    answered = [[p["tool_call_id"] for p in one["parts"] if p["part_kind"] == "tool-return"] for one in told]

    assert len(read) == len(told)
    assert all(one["parts"] for one in told)
    assert all(set(ids) == set(answered[at + 1]) for at, ids in enumerate(asked) if ids)
    assert all(set(ids) <= set(asked[at - 1]) for at, ids in enumerate(answered) if ids)
    assert all(one != "request" or two != "request" for one, two in pairwise(kinds))
