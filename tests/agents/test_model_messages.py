"""Whatever a session holds becomes messages that every OpenAI-compatible endpoint takes."""

import copy
import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from playhead.agents.messages import (
    CALL_ID_CHARS_MAX,
    CUT_OFF,
    RESULT_CHARS_MAX,
    chat_messages,
    function_name,
    system_prompt,
    usage_of,
)
from playhead.model.parts import text_of
from playhead.views.conversation import INTERRUPTED, Message

PNG = "iVBORw0KGgo="


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def call(id: str | None, name: str = "search", arguments: Any = None) -> dict[str, Any]:
    part = {"type": "tool_call", "name": name, "arguments": arguments}
    return part if id is None else part | {"id": id}


def response(id: str | None, value: Any, name: str = "search", **more: Any) -> dict[str, Any]:
    part = {"type": "tool_call_response", "response": value, "name": name, **more}
    return part if id is None else part | {"id": id}


def message(role: str, *parts: dict[str, Any] | str, **fields: Any) -> Message:
    return Message(role=role, parts=[text(one) if isinstance(one, str) else one for one in parts], seqs=(1,), **fields)


def test_a_conversation_becomes_messages_with_each_result_after_its_call() -> None:
    sent = chat_messages(
        [
            message("user", "Where is the key?"),
            message("system", "Be brief."),
            message("assistant", "I look.", call("a", arguments={"query": "key"}), call("b", "list", None)),
            message("tool", response("a", {"hits": ["in the vault"]}), response("b", "nothing", "list")),
            message("assistant", "In the vault."),
        ]
    )
    asked, first, second = sent[2:5]

    assert [one["role"] for one in sent] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert sent[0]["content"] == "Be brief."
    assert asked["content"] == "I look."
    assert [one["function"] for one in asked["tool_calls"]] == [
        {"name": "search", "arguments": '{"query": "key"}'},
        {"name": "list", "arguments": "{}"},
    ]
    assert (first["tool_call_id"], json.loads(first["content"])) == ("a", {"hits": ["in the vault"]})
    assert (second["tool_call_id"], second["content"]) == ("b", "nothing")


def test_the_system_prompt_that_was_set_last_comes_first_and_alone() -> None:
    conversation = [
        message("system", "Be brief."),
        message("user", "Hello"),
        message("system", "Be thorough."),
        message("system", "It is raining.", injected="weather"),
    ]

    assert system_prompt(conversation) == "Be thorough."
    assert chat_messages(conversation) == [
        {"role": "system", "content": "Be thorough."},
        {"role": "user", "content": "Hello\n\nIt is raining."},
    ]
    assert system_prompt([message("user", "Hello")]) is None


def test_messages_of_one_side_in_a_row_become_one() -> None:
    sent = chat_messages(
        [
            message("user", "One."),
            message("user", "Two.", injected="queue"),
            message("assistant", "Three."),
            message("assistant"),
            message("assistant", {"type": "reasoning", "content": "Four?"}),
            message("assistant", "Five.", call("a")),
            message("tool", response("a", 1)),
            message("user", "   "),
        ]
    )

    assert [(one["role"], one["content"]) for one in sent] == [
        ("user", "One.\n\nTwo."),
        ("assistant", "Three.\n\nFive."),
        ("tool", "1"),
    ]


def test_a_message_that_was_cut_off_is_told_as_such_after_its_results() -> None:
    told = chat_messages(
        [message("user", "Go"), message("assistant", "I beg", interrupted=True), message("user", "On")]
    )
    with_call = chat_messages(
        [
            message("user", "Go"),
            message("assistant", "I beg", call("a"), interrupted=True),
            message("tool", response("a", INTERRUPTED, is_error=True)),
        ]
    )
    silent = chat_messages([message("user", "Go"), message("assistant", interrupted=True), message("user", "On")])

    assert [one["content"] for one in told] == ["Go", "I beg", f"{CUT_OFF}\n\nOn"]
    assert [one["content"] for one in with_call] == ["Go", "I beg", f"Error: {INTERRUPTED}", CUT_OFF]
    assert [one["content"] for one in silent] == ["Go\n\nOn"]


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_becomes_text() -> None:
    sent = chat_messages([message("assistant", call("a")), message("tool", response("z", {"n": 1}, "count"))])

    assert [(one["role"], one["content"]) for one in sent] == [
        ("assistant", None),
        ("tool", f"Error: {INTERRUPTED}"),
        ("user", 'Result of an earlier call of count:\n{"n": 1}'),
    ]


def test_ids_that_an_endpoint_would_refuse_are_replaced_on_both_sides() -> None:
    long = "call-" + "x" * CALL_ID_CHARS_MAX
    sent = chat_messages(
        [
            message("assistant", call(long), call("a"), call(None, "plain")),
            message("tool", response(long, "long"), response("a", "short"), response(None, "none", "plain")),
            message("assistant", call("a")),
            message("tool", response("a", "again")),
        ]
    )
    asked = [one["id"] for reply in sent for one in reply.get("tool_calls", ())]
    answered = [(one["tool_call_id"], one["content"]) for one in sent if one["role"] == "tool"]

    assert asked == ["call_1", "a", "call_3", "call_4"]
    assert answered == list(zip(asked, ["long", "short", "none", "again"], strict=True))


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (None, "{}"),
        ({"n": 1}, '{"n": 1}'),
        ('{"n": 1}', '{"n": 1}'),
        ('{"n": ', '{"text": "{\\"n\\": "}'),
        ([1], '{"value": [1]}'),
        ("7", '{"value": 7}'),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_always_the_text_of_an_object(arguments: Any, sent: str | None) -> None:
    said = chat_messages([message("assistant", call("a", arguments=arguments))])[0]["tool_calls"][0]["function"]

    assert isinstance(json.loads(said["arguments"]), dict)
    assert sent is None or said["arguments"] == sent


def test_images_and_sounds_go_as_they_are_and_other_files_as_a_line() -> None:
    parts = [
        text("Look:"),
        {"type": "blob", "mime_type": "image/png", "content": PNG},
        {"type": "blob", "mime_type": "audio/mpeg", "content": PNG},
        {"type": "uri", "mime_type": "image/jpeg", "uri": "https://example.org/cat.jpg"},
        {"type": "uri", "mime_type": "image/png", "uri": "file:///etc/passwd"},
        {"type": "blob", "mime_type": "image/png", "content": "no base64!"},
        {"type": "file", "mime_type": "application/pdf", "file_id": "report.pdf"},
    ]
    content = chat_messages([message("user", *parts)])[0]["content"]
    plain = chat_messages([message("user", *parts)], sends_media=False)[0]["content"]

    assert content == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "input_audio", "input_audio": {"data": PNG, "format": "mp3"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg"}},
        {"type": "text", "text": "[image/png: file:///etc/passwd]"},
        {"type": "text", "text": "[image/png]"},
        {"type": "text", "text": "[application/pdf: report.pdf]"},
    ]
    assert plain.splitlines()[::2] == [
        "Look:",
        "[image/png]",
        "[audio/mpeg]",
        "[image/jpeg: https://example.org/cat.jpg]",
        "[image/png: file:///etc/passwd]",
        "[image/png]",
        "[application/pdf: report.pdf]",
    ]


def test_what_a_model_thought_goes_back_only_where_it_is_asked_for() -> None:
    conversation = [message("assistant", {"type": "reasoning", "content": "Hm."}, "Yes.")]

    assert chat_messages(conversation) == [{"role": "assistant", "content": "Yes."}]
    assert chat_messages(conversation, sends_reasoning=True)[0]["reasoning_content"] == "Hm."


def test_a_result_beyond_all_measure_is_cut_and_says_so() -> None:
    sent = chat_messages([message("assistant", call("a")), message("tool", response("a", "x" * 3_000_000))])

    assert len(sent[1]["content"]) < RESULT_CHARS_MAX + 100
    assert sent[1]["content"].endswith("[cut here: 3,000,000 characters in all]")


def test_names_and_usage_are_those_of_each_side() -> None:
    assert function_name("mcp.files/read all") == "mcp_files_read_all"
    assert function_name("é" * 100) == "_" * 64
    assert function_name("") == "_"
    assert usage_of({"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}) == {
        "input_tokens": 3,
        "output_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    assert usage_of({"prompt_tokens": float("nan"), "completion_tokens": "2", "cost": 0.5, "x": None}) == {"cost": 0.5}
    assert usage_of({}) is None


words = st.text(st.characters(), max_size=12)
values = st.recursive(st.none() | st.booleans() | st.integers() | words, lambda inner: st.lists(inner, max_size=3))
ids = st.sampled_from(["a", "b", "call_1", "call_2", "", "x" * 41]) | st.none()
names = st.sampled_from(["search", "list", "mcp.x y", ""])
parts = st.one_of(
    st.builds(text, words),
    st.builds(lambda content: {"type": "reasoning", "content": content}, words),
    st.builds(call, ids, names, values | st.dictionaries(words, values, max_size=2)),
    st.builds(lambda *given: response(*given, is_error=True), ids, values, names),
    st.builds(response, ids, values, names),
    st.builds(lambda media, content: {"type": "blob", "mime_type": media, "content": content}, words, words),
    st.just({"type": "blob", "mime_type": "image/png", "content": PNG}),
    st.dictionaries(st.sampled_from(["type", "content", "uri", "name", "id"]), values, max_size=4),
)
messages = st.builds(
    lambda role, parts, interrupted, injected: Message(role, parts, (1,), interrupted=interrupted, injected=injected),
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(parts, max_size=4),
    st.booleans(),
    st.sampled_from([None, "hook"]),
)


def refused_because(sent: list[dict[str, Any]]) -> list[str]:
    """Return what some endpoint would refuse in these messages."""
    wrong = []
    roles = [one["role"] for one in sent]
    made: list[str] = []
    unanswered: list[str] = []
    for one in sent:
        if one["role"] == "tool":
            if unanswered[:1] != [one["tool_call_id"]] or not isinstance(one["content"], str):
                wrong.append("a result that answers no call, or another")
            unanswered = unanswered[1:]
            continue
        if unanswered:
            wrong.append("a call without a result")
        unanswered = [asked["id"] for asked in one.get("tool_calls", ())]
        made += unanswered
        if not one["content"] and not unanswered:
            wrong.append("an empty message")
        for asked in one.get("tool_calls", ()):
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", asked["function"]["name"]):
                wrong.append("a name")
            if not isinstance(json.loads(asked["function"]["arguments"]), dict):
                wrong.append("arguments")
    if unanswered:
        wrong.append("a call without a result at the end")
    if "system" in roles[1:]:
        wrong.append("a system message that is not the first")
    if any(one == two and one in ("user", "assistant") for one, two in pairwise(roles)):
        wrong.append("two messages of one side in a row")
    if len(set(made)) != len(made) or not all(0 < len(id) <= CALL_ID_CHARS_MAX for id in made):
        wrong.append("ids")
    return wrong


@given(st.lists(messages, max_size=8), st.booleans())
def test_any_conversation_at_all_is_one_that_an_endpoint_takes(conversation: list[Message], sends_media: bool) -> None:
    before = copy.deepcopy(conversation)
    sent = chat_messages(conversation, sends_media=sends_media)

    assert refused_because(sent) == []
    assert json.dumps(sent, ensure_ascii=False).encode()
    assert conversation == before


@given(st.lists(messages, max_size=6))
def test_nothing_that_a_person_or_the_model_said_is_left_out(conversation: list[Message]) -> None:
    sent = json.dumps(chat_messages(conversation))
    said = [
        text_of([part])
        for one in conversation
        for part in one.parts
        if one.role in ("user", "assistant") and text_of([part]).isascii()
    ]

    assert all(json.dumps(one)[1:-1] in sent for one in said if one.strip())
