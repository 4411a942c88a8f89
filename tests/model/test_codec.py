"""The codec: what JSON can hold comes back equal, what it cannot is refused, and the chain is as its page says."""

import datetime
import decimal
import enum
import hashlib
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from playhead.errors import InvalidEvent
from playhead.model.codec import (
    DEPTH_MAX,
    FIRST_HASH,
    body_digest,
    chain_hash,
    check_json,
    decode_body,
    decode_json,
    draft_envelope,
    encode_body,
    encode_json,
    envelope_bytes,
)
from playhead.model.event import Draft
from tests.strategies import json_objects, json_values, texts


class Colour(enum.StrEnum):
    RED = "red"


def nested(levels: int, *, wrap: Callable[[Any], Any] = lambda inner: [inner]) -> dict[str, Any]:
    """Return a body that is so many levels deep, itself included."""
    value: Any = "end"
    for _ in range(levels - 1):
        value = wrap(value)
    return {"value": value}


def exact(value: Any) -> Any:
    """Return a value with the types of its numbers spelled out, and surrogate pairs joined, so that == tells all."""
    if isinstance(value, dict):
        return {exact(name): exact(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return f"{type(value).__name__} {value!r}"


def one_inside(body: Any, value: Any, position: int) -> Any:
    """Return a copy of a body with the value put at one of its places."""
    if isinstance(body, dict) and body:
        name = list(body)[position % len(body)]
        return body | {name: one_inside(body[name], value, position // len(body))}
    if isinstance(body, list) and body:
        index = position % len(body)
        return [*body[:index], one_inside(body[index], value, position // len(body)), *body[index + 1 :]]
    return value


@given(json_objects)
def test_whatever_json_can_hold_comes_back_equal(body: dict[str, Any]) -> None:
    text = encode_body(body)
    stored = text.encode()

    assert exact(decode_body(text)) == exact(body)
    assert exact(decode_body(stored)) == exact(body)
    assert exact(json.loads(text)) == exact(body)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("\0", '"\\u0000"'),
        ("half \ud83d a pair", '"half \\ud83d a pair"'),
        ("\udc00\ud800", '"\\udc00\\ud800"'),
        (2**64, "18446744073709551616"),
        (-(2**200), str(-(2**200))),
        (-0.0, "-0.0"),
        (5e-324, "5e-324"),
        (1e308, "1e308"),
        (1.0, "1.0"),
        ("日本語 👩‍👩‍👧", '"日本語 👩‍👩‍👧"'),
        ([], "[]"),
        ({}, "{}"),
        (None, "null"),
    ],
)
def test_a_value_at_the_edge_of_json_is_written_so_that_any_reader_takes_it(value: Any, text: str) -> None:
    encoded = encode_body({"value": value})

    assert encoded == f'{{"value":{text}}}'
    assert exact(decode_body(encoded)) == exact({"value": value})


def test_halves_of_a_surrogate_pair_side_by_side_come_back_as_their_character() -> None:
    assert decode_body(encode_body({"text": "\ud83d\ude00"})) == {"text": "😀"}


def test_a_tuple_is_written_as_a_list() -> None:
    assert encode_body({"labels": ("ci", ("a",))}) == '{"labels":["ci",["a"]]}'


@given(json_objects, st.sampled_from([math.nan, math.inf, -math.inf]), st.integers(min_value=0))
def test_nan_and_infinities_are_refused_wherever_they_hide(body: dict[str, Any], number: float, position: int) -> None:
    hostile = one_inside(body or {"a": 1}, number, position)

    with pytest.raises(InvalidEvent, match="no form"):
        encode_body(hostile)


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        {1, 2},
        datetime.datetime(2026, 1, 1),
        decimal.Decimal("1.5"),
        Colour.RED,
        object(),
        msgspec.UNSET,
        complex(1, 2),
    ],
)
def test_what_json_would_change_in_silence_is_refused(value: Any) -> None:
    bodies = [{"args": value}, {"args": [1, {"deep": (value,)}]}]

    for body in bodies:
        with pytest.raises(InvalidEvent, match="no form"):
            encode_body(body)


@pytest.mark.parametrize("key", [1, 1.5, math.nan, math.inf, None, True, b"key", ("a",), Colour.RED])
def test_a_key_that_is_no_string_is_refused(key: Any) -> None:
    with pytest.raises(InvalidEvent, match="keys are strings"):
        encode_body({"args": [{key: 1}]})


def test_a_body_that_is_no_dict_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="a body is a dict, not a list"):
        encode_body([1])  # type: ignore[arg-type]


@given(json_values)
def test_a_value_that_is_no_body_comes_back_equal_too(value: Any) -> None:
    assert exact(decode_json(encode_json(value))) == exact(value)


@pytest.mark.parametrize("value", [math.nan, b"bytes", [math.inf], object()])
def test_a_value_that_json_cannot_hold_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(InvalidEvent, match="'setting' holds"):
        encode_json(value, name="setting")


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,)])
def test_nesting_is_bounded_so_that_what_is_written_can_be_read(wrap: Callable[[Any], Any]) -> None:
    deepest = nested(DEPTH_MAX, wrap=wrap)

    assert exact(decode_body(encode_body(deepest))) == exact(deepest)
    for levels in (DEPTH_MAX + 1, 100_000):
        with pytest.raises(InvalidEvent, match="more than 200 levels"):
            encode_body(nested(levels, wrap=wrap))


def test_an_integer_beyond_what_python_reads_back_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="cannot be written as JSON"):
        encode_body({"count": 10**5_000})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"a":1} {"b":2}', "not JSON"),
        (b'{"a":"\xff"}', "not JSON"),
        ("\ud800", "not JSON"),
        ('{"a":NaN}', "no NaN"),
        ('{"a":[-Infinity]}', "no -Infinity"),
        ('{"a":1e999}', "out of range"),
        ("[1]", "a JSON list"),
        ('"text"', "a JSON str"),
        ("null", "a JSON NoneType"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "too deeply"),
        ('{"a":"\\ud800","b":' + "[" * 100_000 + "]" * 100_000 + "}", "not JSON"),
    ],
)
def test_a_stored_text_that_is_no_body_is_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(InvalidEvent, match=problem):
        decode_body(text)


def test_a_number_beside_half_a_surrogate_pair_is_read_all_the_same() -> None:
    assert decode_body('{"a":"\\ud800","b":1.5}') == {"a": "\ud800", "b": 1.5}


def test_the_chain_is_made_byte_for_byte_as_its_page_says() -> None:
    first = Draft("session_started", {"app": "default", "user": "ana"}, "s-1", 1_767_225_600.25)
    second = Draft("message", {"role": "user", "parts": []}, "é", 7, agent="user", turn="t", scope="", parent=None)
    salts = [bytes(range(16)), bytes(range(16, 32))]

    hashes = [FIRST_HASH]
    for seq, (draft, salt) in enumerate(zip((first, second), salts, strict=True), 1):
        digest = body_digest(salt, encode_body(draft.body))
        hashes.append(chain_hash(hashes[-1], draft_envelope(draft, seq=seq, parent=seq - 1), digest))

    absent = struct.pack(">I", 0xFFFFFFFF)
    envelope_1 = (
        struct.pack(">QQd", 1, 0, 1_767_225_600.25)
        + struct.pack(">I", 3)
        + b"s-1"
        + struct.pack(">I", 15)
        + b"session_started"
        + absent * 3
    )
    envelope_2 = (
        struct.pack(">QQd", 2, 1, 7.0)
        + struct.pack(">I", 2)
        + b"\xc3\xa9"
        + struct.pack(">I", 7)
        + b"message"
        + struct.pack(">I", 4)
        + b"user"
        + struct.pack(">I", 1)
        + b"t"
        + struct.pack(">I", 0)
    )
    digest_1 = hashlib.sha256(salts[0] + b'{"app":"default","user":"ana"}').digest()
    digest_2 = hashlib.sha256(salts[1] + b'{"role":"user","parts":[]}').digest()
    hash_1 = hashlib.sha256(bytes(32) + envelope_1 + digest_1).digest()
    hash_2 = hashlib.sha256(hash_1 + envelope_2 + digest_2).digest()

    assert hashes == [bytes(32), hash_1, hash_2]
    assert hash_2.hex() == "76d3d4a5443b4f1cab2b9b509da8979110fdbf0e29fec06c7b5d664a2f86583b"


def test_a_time_of_minus_zero_is_hashed_as_a_database_gives_it_back() -> None:
    drafts = [Draft("note", {"name": "a"}, "n-1", at) for at in (0.0, -0.0, 0)]

    assert len({draft_envelope(draft, seq=1, parent=0) for draft in drafts}) == 1


@given(st.tuples(texts, texts), st.tuples(texts, texts))
def test_no_two_envelopes_have_the_same_bytes(one: tuple[str, str], other: tuple[str, str]) -> None:
    def envelope(id: str, agent: str) -> bytes:
        clean = [text.encode("utf-8", "replace").decode() for text in (id, agent)]
        return envelope_bytes(
            seq=1, parent=0, at=0.0, id=clean[0], kind="note", agent=clean[1] or None, turn=None, scope=None
        )

    replaced = [tuple(text.encode("utf-8", "replace") for text in pair) for pair in (one, other)]

    assert (envelope(*one) == envelope(*other)) == (replaced[0] == replaced[1])


@given(json_values)
def test_checking_changes_nothing(value: Any) -> None:
    body = {"value": value}
    before = repr(body)

    check_json(body)

    assert repr(body) == before
