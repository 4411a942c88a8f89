"""Parts: typed reading and writing lose nothing."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from playhead.model.parts import (
    BlobPart,
    FilePart,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    UriPart,
    call_id,
    documents,
    part_from_document,
    part_to_document,
    text_of,
)
from tests.strategies import json_objects, json_values, texts

KNOWN = (TextPart, ReasoningPart, ToolCallPart, ToolCallResponsePart, BlobPart, FilePart, UriPart)

extras = st.none() | json_objects
optional = st.none() | texts
known_parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, texts, extras),
    st.builds(ReasoningPart, texts, extras),
    st.builds(ToolCallPart, texts, optional, json_values, extras),
    st.builds(ToolCallResponsePart, json_values, optional, optional, st.booleans(), extras),
    st.builds(BlobPart, texts, optional, optional, extras),
    st.builds(FilePart, texts, optional, optional, extras),
    st.builds(UriPart, texts, optional, optional, extras),
)
types = st.sampled_from(["text", "reasoning", "tool_call", "tool_call_response", "blob", "file", "uri", "video"])


@given(known_parts)
def test_a_part_of_the_schema_comes_back_as_it_was(part: Part) -> None:
    assert part_from_document(part_to_document(part)) == part


@given(types | texts, json_objects, st.dictionaries(st.sampled_from(["content", "id", "name", "extra"]), json_values))
def test_a_part_of_any_shape_comes_back_whole(type: str, fields: dict[str, Any], usual: dict[str, Any]) -> None:
    document = {**fields, **usual, "type": type}

    back = part_to_document(part_from_document(document))

    # A known part leaves out what spells its default: None, or False for is_error.
    missing = {name: document[name] for name in document.keys() - back.keys()}
    assert back == {name: value for name, value in document.items() if name not in missing}
    assert all(value is None or (name, value) == ("is_error", False) for name, value in missing.items())


@pytest.mark.parametrize(
    "document",
    [
        {"type": "text"},
        {"type": "text", "content": None},
        {"type": "text", "content": ["a"]},
        {"type": "text", "content": "a", "annotations": [1]},
        {"type": "tool_call", "id": 7, "name": "run"},
        {"type": "video", "content": "a"},
        {"type": "\ud800", "content": "a"},
        {"content": "a"},
        {},
    ],
)
def test_what_is_outside_the_schema_is_kept_whole(document: dict[str, Any]) -> None:
    part = part_from_document(document)

    assert part == OtherPart(document)
    assert part_to_document(part) == document


def test_defaults_that_are_spelled_out_do_not_make_a_part_a_stranger() -> None:
    part = part_from_document({"type": "tool_call_response", "id": "a", "response": None, "is_error": False})

    assert part == ToolCallResponsePart(id="a")


def test_parts_are_given_as_typed_parts_objects_or_plain_text() -> None:
    written = documents([TextPart("a"), {"type": "text", "content": "b"}, "c"])

    assert written == [{"type": "text", "content": letter} for letter in "abc"]
    assert text_of(written) == "abc"


def test_text_is_what_text_parts_say_and_nothing_else() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "content": "The upload "},
        {"type": "reasoning", "content": "Think."},
        {"type": "text", "content": None},
        {"type": "text", "content": ["list"]},
        {"type": "text"},
        {"type": "text", "content": "times out."},
    ]

    assert text_of(parts) == "The upload times out."


@pytest.mark.parametrize(
    ("id", "read"), [("a", "a"), (7, "7"), ("", None), (None, None), (True, None), (1.5, None), (["a"], None)]
)
def test_the_id_of_a_call_is_text_or_none(id: Any, read: str | None) -> None:
    assert call_id({"type": "tool_call", "id": id}) == read
