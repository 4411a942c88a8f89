"""Reading bodies without trusting them: a wrong shape reads as absent."""

from typing import Any

import pytest
from hypothesis import given

from playhead.model.body import (
    list_in,
    names_in,
    number_in,
    object_in,
    objects_in,
    parts_in,
    text_in,
    token_count,
)
from tests.strategies import json_values


@given(json_values)
def test_any_value_in_a_field_is_read_as_what_was_asked_for_or_as_absent(value: Any) -> None:
    body = {"field": value, "parts": value, "usage": {"output_tokens": value}}

    assert text_in(body, "field") == (value if isinstance(value, str) and value else None)
    assert object_in(body, "field") == (value if isinstance(value, dict) else {})
    assert list_in(body, "field") == (value if isinstance(value, list) else [])
    assert number_in(body, "field") in (value, None)
    assert all(isinstance(part, dict) for part in parts_in(body))
    assert all(isinstance(item, dict) for item in objects_in(body, "field").values())
    assert all(isinstance(name, str) for names in names_in(body, "field").values() for name in names)
    assert token_count(body, "output_tokens") in (value, None)


def test_a_field_of_the_right_shape_is_read_as_it_is() -> None:
    part = {"type": "text", "content": "a"}
    body = {
        "text": "a",
        "number": 1.5,
        "parts": [part, "no part", None],
        "delta": {"session": {"a": 1}, "app": 7},
        "removed": {"session": ["a", 7], "app": "a"},
        "usage": {"output_tokens": 3},
    }

    assert text_in(body, "text") == "a"
    assert number_in(body, "number") == 1.5
    assert parts_in(body) == [part]
    assert objects_in(body, "delta") == {"session": {"a": 1}}
    assert names_in(body, "removed") == {"session": ["a"]}
    assert token_count(body, "output_tokens") == 3


@pytest.mark.parametrize("usage", [None, "many", 7, [], {}, {"output_tokens": True}, {"output_tokens": -1}])
def test_usage_that_counts_nothing_is_not_known(usage: Any) -> None:
    assert token_count({"usage": usage}, "output_tokens") is None
    assert token_count({}, "output_tokens") is None


def test_truth_is_no_number() -> None:
    assert number_in({"expires_at": True}, "expires_at") is None
