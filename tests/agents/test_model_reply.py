"""A reply is put together from whatever an endpoint streams, and what has not the expected shape reads as absent."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from playhead.agents.model.reply import CALLS_MAX, Asked, Piece, Reply, arguments_in
from tests.agents.fake_endpoint import MODEL, USAGE, chunk


def fragment(
    index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    given = {"index": index, "id": id, "function": function}
    return chunk({"tool_calls": [{key: value for key, value in given.items() if value is not None}]})


def taken(*chunks: dict[str, Any]) -> tuple[Reply, list[Piece]]:
    reply = Reply()
    return reply, [piece for one in chunks for piece in reply.take(one)]


def test_text_and_reasoning_come_piece_by_piece_under_each_of_their_names() -> None:
    reply, pieces = taken(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Hm"}),
        chunk({"reasoning": " so"}),
        chunk({"content": "Tea"}),
        chunk({"content": [{"type": "thinking", "thinking": [{"text": "?"}]}, {"type": "text", "text": "!"}]}),
        chunk({"refusal": "No."}),
        chunk(finish="stop"),
        chunk(usage=USAGE),
    )

    assert pieces == [
        ("reasoning", "Hm"),
        ("reasoning", " so"),
        ("text", "Tea"),
        ("reasoning", "?"),
        ("text", "!"),
        ("text", "No."),
    ]
    assert (reply.model, reply.finish_reason, reply.chars, reply.is_begun) == (MODEL, "stop", 13, True)
    assert reply.usage == {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}


def test_a_whole_reply_reads_as_one_that_was_streamed() -> None:
    message = {"role": "assistant", "content": "Tea", "tool_calls": [{"id": "a", "function": {"name": "boil"}}]}
    reply, pieces = taken({"model": "m", "choices": [{"message": message, "finish_reason": "tool_calls"}]})

    assert pieces == [("text", "Tea")]
    assert reply.calls() == [Asked("a", "boil", {}, "")]
    assert reply.finish_reason == "tool_calls"


def test_fragments_of_calls_that_arrive_side_by_side_are_kept_apart() -> None:
    reply, _ = taken(
        fragment(0, "a", "search", ""),
        fragment(1, "b", "list", ""),
        fragment(0, arguments='{"query": '),
        fragment(1, arguments='{"n"'),
        fragment(0, arguments='"tea"}'),
        fragment(1, arguments=": 2}"),
    )

    assert reply.calls() == [
        Asked("a", "search", {"query": "tea"}, '{"query": "tea"}'),
        Asked("b", "list", {"n": 2}, '{"n": 2}'),
    ]


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment(0, "a", "f", '{"n": 1}'), fragment(0, "b", "g", '{"n": 2}')],
        [fragment(None, "a", "f", '{"n": 1}'), fragment(None, "b", "g", '{"n"'), fragment(None, arguments=": 2}")],
        [fragment(0, "a", "f", '{"n"'), fragment(0, "a", "f", ": 1}"), fragment(1, "b", "g", {"n": 2})],
    ],
    ids=["all numbered 0", "no numbers", "id and name in every fragment"],
)
def test_servers_that_number_and_name_in_their_own_way_are_understood(fragments: list[dict[str, Any]]) -> None:
    reply, _ = taken(*fragments)

    assert [(one.id, one.name, one.arguments) for one in reply.calls()] == [("a", "f", {"n": 1}), ("b", "g", {"n": 2})]


def test_a_second_call_with_the_same_id_loses_it() -> None:
    reply, _ = taken(fragment(0, "a", "f", "{}"), fragment(1, "a", "g", "{}"), fragment(2, None, "h", "{}"))

    assert [(one.id, one.name) for one in reply.calls()] == [("a", "f"), ("", "g"), ("", "h")]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ('{"n": 1}', {"n": 1}),
        ('{"n": ', None),
        ("[1]", None),
        ("null", None),
        ('{"n": NaN}', None),
        ('{"n": 1e999}', None),
        ('{"a": ' * 1_000 + "1" + "}" * 1_000, None),
    ],
)
def test_arguments_are_an_object_that_a_log_can_hold_or_nothing(text: str, arguments: dict[str, Any] | None) -> None:
    assert arguments_in(text) == arguments


def test_a_reply_that_is_asked_for_again_begins_empty() -> None:
    reply, _ = taken(fragment(0, "a", "f", "{}"), chunk({"content": "x"}, finish="stop"))
    reply.begin()

    assert (reply.calls(), reply.chars, reply.is_begun, reply.finish_reason) == ([], 0, False, None)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "tool_calls", "function", "arguments", "name", "id", "index", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "model"]), anything), max_size=5))
def test_no_chunk_of_any_shape_stops_a_reply(chunks: list[dict[str, Any]]) -> None:
    reply, pieces = taken(*chunks)

    assert all(part in ("text", "reasoning") and text for part, text in pieces)
    assert all(isinstance(one.name, str) for one in reply.calls())


def test_all_that_calls_bring_counts_whatever_of_it_is_kept() -> None:
    reply, _ = taken(
        fragment(0, "i" * 100, "n" * 50, ""),
        fragment(0, "i" * 100, "n" * 50, "{}"),  # Repeated, and not kept twice.
        fragment(1, "j" * 100, None, {"a": 1}),
    )

    assert reply.chars == 2 * 150 + 2 + 100 + len('{"a": 1}')
    assert [call.id[0] for call in reply.calls()] == ["i", "j"]


def test_more_calls_than_a_limit_are_counted_and_not_kept() -> None:
    reply, _ = taken(*(fragment(index, f"call-{index}", "boil", "{}") for index in range(CALLS_MAX + 5)))

    assert len(reply.calls()) == CALLS_MAX
    assert reply.has_too_many_calls
    assert reply.chars > (CALLS_MAX + 5) * 12
