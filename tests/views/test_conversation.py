"""The conversation: what a model is sent, in an order that every model accepts."""

from collections import Counter
from typing import Any

from hypothesis import given, settings, strategies as st

from playhead.model.parts import call_id
from playhead.views.conversation import INTERRUPTED, Message, conversation, conversation_of_path
from tests.log import Log, call, response
from tests.strategies import CALLS, logs

Shown = list[tuple[str, list[Any]]]


def shown(log: Log, **options: Any) -> Shown:
    """Return each message's role and what its parts say, tool calls and responses by their id."""
    messages = conversation_of_path(log.path(), **options)
    return [(message.role, [brief(part) for part in message.parts]) for message in messages]


def brief(part: dict[str, Any]) -> Any:
    kind = part["type"]
    if kind == "tool_call":
        return f"call {part.get('id')}"
    return f"{part.get('id')}: {part['response']}" if kind == "tool_call_response" else part["content"]


def test_a_conversation_is_what_was_said_in_the_main_scope() -> None:
    log = Log()
    log.message("system", "You are careful.", by="coordinator")
    log.user("Why does test_upload fail?", by="user", turn="turn-1")
    log.assistant("Look into it.", scope="coordinator/researcher:1", by="coordinator/researcher:1")
    log.add("note", name="model_changed")
    log.add("trigger_fired", trigger="timer-1", prompt="It is nine o'clock.")
    log.add("trigger_fired", trigger="timer-2")
    log.user("Two minutes are left.", injected="clock")
    log.assistant(
        {"type": "reasoning", "content": "A timeout?"},
        "It times out.",
        by="coordinator",
        turn="turn-1",
        at=9.5,
        model="large-1",
        usage={"output_tokens": 7},
        finish_reason="stop",
        interrupted=True,
        extra={"logprobs": None},
    )

    messages = conversation_of_path(log.path())

    assert [(message.role, message.text) for message in messages] == [
        ("system", "You are careful."),
        ("user", "Why does test_upload fail?"),
        ("user", "It is nine o'clock."),
        ("user", "Two minutes are left."),
        ("assistant", "It times out."),
    ]
    assert [message.kind for message in messages] == ["message", "message", "trigger_fired", "message", "message"]
    assert messages[3].injected == "clock"
    assert messages[4] == Message(
        role="assistant",
        parts=[{"type": "reasoning", "content": "A timeout?"}, {"type": "text", "content": "It times out."}],
        seqs=(9,),
        agent="coordinator",
        turn="turn-1",
        at=9.5,
        model="large-1",
        usage={"output_tokens": 7},
        finish_reason="stop",
        interrupted=True,
        extra={"logprobs": None},
    )


def test_a_sub_agents_conversation_is_that_of_its_scope() -> None:
    """Z4."""
    log, scope = Log(), "coordinator/researcher:1"
    log.user("Why?")
    log.user("Look it up.", scope=scope)
    log.assistant("Found.", scope=scope)
    log.user("Another run.", scope="coordinator/researcher:2")

    assert shown(log, scope=scope) == [("user", ["Look it up."]), ("assistant", ["Found."])]
    assert shown(log, scope="coordinator/nobody:1") == []


def test_a_reply_recorded_in_pieces_is_one_message_and_the_results_follow_it() -> None:
    log = Log()
    log.user("Why?", turn="turn-1")
    reply: dict[str, Any] = {"message_id": "msg-1", "turn": "turn-1", "by": "coordinator"}
    log.assistant("Let me look.", usage={"output_tokens": 3}, model="large-1", **reply)
    log.assistant(call("a"), usage={"output_tokens": 8}, **reply)
    log.tool(response("a", "first"), turn="turn-1")
    log.assistant(call("b"), usage={"output_tokens": 5}, finish_reason="tool_use", **reply)
    log.tool(response("b", "second"), turn="turn-1")
    log.assistant("Done.", message_id="msg-2", turn="turn-1", by="coordinator")

    messages = conversation_of_path(log.path())

    assert [(message.role, [brief(part) for part in message.parts]) for message in messages] == [
        ("user", ["Why?"]),
        ("assistant", ["Let me look.", "call a", "call b"]),
        ("tool", ["a: first", "b: second"]),
        ("assistant", ["Done."]),
    ]
    assert [message.seqs for message in messages] == [(2,), (3, 4, 6), (5, 7), (8,)]
    assert messages[1].usage == {"output_tokens": 8}
    assert (messages[1].model, messages[1].finish_reason) == ("large-1", "tool_use")


def test_later_pieces_of_a_reply_may_name_the_event_of_the_first() -> None:
    log = Log()
    first = log.assistant("Let me look.")
    log.assistant(call("a"), message_id=first.id)
    log.tool(response("a"))
    log.assistant("Done.")

    assert shown(log) == [
        ("assistant", ["Let me look.", "call a"]),
        ("tool", ["a: ok"]),
        ("assistant", ["Done."]),
    ]


def test_a_message_id_that_comes_again_in_another_turn_or_agent_is_another_reply() -> None:
    log = Log()
    for turn, agent in [("turn-1", "coordinator"), ("turn-2", "coordinator"), ("turn-2", "reviewer")]:
        log.assistant(f"{turn} {agent}", message_id="msg-0", turn=turn, by=agent)
    log.user("Mine.", message_id="msg-0", turn="turn-2", by="reviewer")

    assert shown(log) == [
        ("assistant", ["turn-1 coordinator"]),
        ("assistant", ["turn-2 coordinator"]),
        ("assistant", ["turn-2 reviewer"]),
        ("user", ["Mine."]),
    ]


def test_a_piece_that_was_interrupted_marks_the_whole_reply() -> None:
    log = Log()
    log.assistant("Let me", message_id="msg-1", interrupted=True)
    log.assistant(" look.", message_id="msg-1")

    [message] = conversation_of_path(log.path())

    assert message.interrupted
    assert message.text == "Let me look."


def test_a_call_without_a_response_gets_one_that_says_it_was_interrupted() -> None:
    log = Log()
    log.assistant("Let me look.", call("a", "run_tests"), call("b", "read"), by="coordinator", turn="turn-1", at=5.0)
    log.tool(response("b", "text"))
    log.user("Go on.")

    messages = conversation_of_path(log.path())
    unsealed = conversation_of_path(log.path(), sealed=False)

    assert messages[1] == Message(
        role="tool",
        parts=[
            {
                "type": "tool_call_response",
                "id": "a",
                "name": "run_tests",
                "response": INTERRUPTED,
                "is_error": True,
            },
            response("b", "text"),
        ],
        seqs=(3,),
        at=log.events[2].at,
    )
    assert [message.role for message in messages] == ["assistant", "tool", "user"]
    assert [message.role for message in unsealed] == ["assistant", "tool", "user"]
    assert unsealed[1].parts == [response("b", "text")]


def test_a_call_that_nobody_answered_is_answered_in_the_name_of_its_caller() -> None:
    log = Log()
    log.assistant(call("a"), by="coordinator", turn="turn-1", at=5.0)

    message = conversation_of_path(log.path())[1]

    assert (message.role, message.agent, message.turn, message.at, message.seqs) == (
        "tool",
        "coordinator",
        "turn-1",
        5.0,
        (),
    )


def test_responses_come_right_after_their_calls_whatever_was_said_between() -> None:
    log = Log()
    log.assistant(call("a"), call("b"))
    log.user("Hurry up.", injected="queue")
    log.tool(response("b", "second"))
    log.assistant("Still waiting.")
    log.tool(response("a", "first"))

    assert shown(log) == [
        ("assistant", ["call a", "call b"]),
        ("tool", ["a: first", "b: second"]),
        ("user", ["Hurry up."]),
        ("assistant", ["Still waiting."]),
    ]


def test_the_last_response_to_a_call_is_the_one_that_counts() -> None:
    log = Log()
    log.assistant(call("a"))
    log.tool(response("a", "pending"))
    log.assistant("It takes a while.")
    log.user(response("a", "finished"), "There it is.")

    assert shown(log) == [
        ("assistant", ["call a"]),
        ("tool", ["a: finished"]),
        ("assistant", ["It takes a while."]),
        ("user", ["There it is."]),
    ]


def test_an_id_that_is_used_again_in_a_later_turn_is_another_call() -> None:
    log = Log()
    log.assistant(call("a"), turn="turn-1")
    log.tool(response("a", "first"), turn="turn-1")
    log.assistant(call("a"), turn="turn-2")
    log.user("Stop.", turn="turn-3")
    log.assistant(call("a"), turn="turn-3")
    log.tool(response("a", "third"), turn="turn-3")

    assert shown(log) == [
        ("assistant", ["call a"]),
        ("tool", ["a: first"]),
        ("assistant", ["call a"]),
        ("tool", [f"a: {INTERRUPTED}"]),
        ("user", ["Stop."]),
        ("assistant", ["call a"]),
        ("tool", ["a: third"]),
    ]


def test_calls_without_ids_are_answered_in_order_by_the_names_of_their_tools() -> None:
    log = Log()
    log.assistant(call(None, "read"), call(None, "run_tests"), call("", "read"))
    log.tool(response(None, "first", name="read"))
    log.tool(response(None, "second", name="read"))

    messages = conversation_of_path(log.path())

    assert [part["response"] for part in messages[1].parts] == ["first", INTERRUPTED, "second"]


def test_a_tool_of_the_provider_keeps_its_result_within_the_reply() -> None:
    log = Log()
    log.assistant(call("s", "web_search"), response("s", "found"), response("s", "twice"), "It is known.", call("a"))
    log.tool(response("a", "first"))
    log.tool(response("s", "found again"))

    assert shown(log) == [
        ("assistant", ["call s", "s: found", "It is known.", "call a"]),
        ("tool", ["a: first"]),
    ]


def test_a_response_whose_call_was_summed_up_is_told_as_text() -> None:
    log = Log()
    question = log.user("Why?")
    caller = log.assistant(call("a"))
    log.tool(response("a", {"failed": 1}), response("b", "unknown", name=""))
    log.compact(question, caller, "Asked for the tests.")

    assert shown(log) == [
        ("user", ["Asked for the tests."]),
        (
            "user",
            [
                'Result of an earlier call of run_tests:\n{"failed": 1}',
                "Result of an earlier call of a tool:\nunknown",
            ],
        ),
    ]


def test_what_a_tool_gave_beside_its_response_follows_as_the_users() -> None:
    log = Log()
    log.assistant(call("a"))
    picture = {"type": "blob", "content": "aGk=", "mime_type": "image/png"}
    log.tool(response("a"), picture, extra={"tool": 1})

    messages = conversation_of_path(log.path())

    assert [(message.role, message.parts) for message in messages[1:]] == [
        ("tool", [response("a")]),
        ("user", [picture]),
    ]
    assert messages[1].extra == {"tool": 1}


def test_an_empty_message_is_left_out_unless_the_log_is_asked_for_as_it_is() -> None:
    log = Log()
    log.user("Why?")
    secret = log.assistant("The key is 123.")
    log.assistant()
    log.redact(secret)

    assert shown(log) == [("user", ["Why?"])]
    assert [message.seqs for message in conversation_of_path(log.path(), sealed=False)] == [(2,), (3,), (4,)]


def open_calls(message: Message) -> list[dict[str, Any]]:
    """Return the calls of a message that it does not answer itself."""
    answered = Counter(call_id(part) for part in message.parts if part["type"] == "tool_call_response")
    open_ones = []
    for part in message.parts:
        if part["type"] == "tool_call":
            answered[call_id(part)] -= 1
            if answered[call_id(part)] < 0:
                open_ones.append(part)
    return open_ones


messages = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.lists(
            st.sampled_from(CALLS).map(call)
            | st.sampled_from(CALLS).map(response)
            | st.sampled_from(["Because.", ""]).map(lambda text: {"type": "text", "content": text}),
            max_size=4,
        ),
        st.sampled_from([None, "msg-1"]),
    ),
    max_size=12,
)


@settings(max_examples=150)
@given(messages)
def test_after_every_message_that_calls_stands_exactly_one_response_to_each_call(
    drawn: list[tuple[str, list[dict[str, Any]], str | None]],
) -> None:
    log = Log()
    for role, parts, message_id in drawn:
        log.message(role, *parts, message_id=message_id)
    raw, sealed = (conversation(log.events[1:], sealed=flag) for flag in (False, True))

    following = [*sealed[1:], None]
    for message, after in zip(sealed, following, strict=False):
        calls = [] if message.role == "tool" else open_calls(message)
        if calls:
            assert after is not None and after.role == "tool"
            assert [(part["type"], call_id(part)) for part in after.parts] == [
                ("tool_call_response", call_id(part)) for part in calls
            ]
        elif after is not None:
            assert after.role != "tool" or any(part["type"] == "tool_call" for part in message.parts)
        assert message.parts
    texts = [part for message in raw for part in message.parts if part["type"] not in ("tool_call_response",)]
    kept = [part for message in sealed for part in message.parts if part["type"] != "tool_call_response"]
    assert [part for part in kept if not str(part.get("content", "")).startswith("Result of")] == texts


@given(logs)
def test_every_event_of_the_conversation_is_in_a_message_of_its_own_or_of_its_reply(log: Log) -> None:
    for scope in (None, "coordinator/researcher:1"):
        unsealed = conversation_of_path(log.path(), scope, sealed=False)
        sealed = conversation_of_path(log.path(), scope)

        seqs = [seq for message in unsealed for seq in message.seqs]
        assert len(seqs) == len(set(seqs))
        assert {seq for message in sealed for seq in message.seqs} <= set(seqs)
