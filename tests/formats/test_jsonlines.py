"""The tolerant reader of lines: whatever a crash leaves behind, the whole records come out and the rest has a place."""

import hashlib
import io
import json
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from playhead.formats import jsonlines
from playhead.formats.imported import Skipped
from playhead.formats.jsonlines import GLUED, NOT_A_NUMBER, NOT_UTF8, NULS, TOO_MANY_DIGITS, JsonLines, Place, Record

FIRST = b'{"type":"user","uuid":"a1","text":"Why does test_upload fail?"}'
SECOND = b'{"type":"assistant","uuid":"a2","text":"It times out."}'


def _read(data: bytes, place: Place | None = None) -> tuple[list[Record], list[Skipped], Place]:
    stream = io.BytesIO(data)
    stream.seek(place.offset if place else 0)
    lines = JsonLines(stream, "session.jsonl", place=place, is_record=lambda value: "type" in value)
    items = list(lines)
    return [i for i in items if isinstance(i, Record)], [i for i in items if isinstance(i, Skipped)], lines.place


def test_each_line_is_a_record_with_its_place_and_bytes() -> None:
    records, skipped, place = _read(FIRST + b"\n" + SECOND + b"\n")

    assert [(r.value["uuid"], r.line, r.offset, r.raw) for r in records] == [
        ("a1", 1, 0, FIRST),
        ("a2", 2, len(FIRST) + 1, SECOND),
    ]
    assert skipped == []
    assert place == Place(len(FIRST + SECOND) + 2, 3, len(SECOND) + 1, hashlib.sha256(SECOND + b"\n").hexdigest())


def test_only_a_line_feed_ends_a_line() -> None:
    separators = "\u2028\u2029\x85\x0b\x0c\x1c"
    line = b'{"type":"user","text":"a' + separators.encode() + b'b"}'

    records, skipped, _ = _read(line + b"\r\n\n  \n" + SECOND + b"\n")

    assert [r.value.get("text") for r in records] == [f"a{separators}b", "It times out."]
    assert [r.line for r in records] == [1, 4]
    assert skipped == []


def test_records_glued_together_come_out_one_by_one() -> None:
    records, skipped, _ = _read(FIRST + SECOND + b" " + FIRST + b"\n")

    assert [r.offset for r in records] == [0, len(FIRST), len(FIRST + SECOND) + 1]
    assert [r.raw for r in records] == [FIRST, SECOND, FIRST]
    assert [r.repairs for r in records] == [(), (GLUED,), (GLUED,)]
    assert skipped == []


def test_after_a_torn_record_the_next_one_is_found() -> None:
    torn = FIRST[:31]

    records, skipped, _ = _read(torn + SECOND + b"\n")

    assert [r.value["uuid"] for r in records] == ["a2"]
    assert [(s.source, s.line, s.offset, s.length) for s in skipped] == [("session.jsonl", 1, 0, len(torn))]
    assert skipped[0].reason.startswith("not JSON: ")


def test_pieces_of_a_torn_record_are_not_taken_for_records() -> None:
    torn = b'essage":{"role":"user","content":[{"kind":"text"}]},"uuid":"a1"}'

    records, skipped, _ = _read(torn + b"\n" + SECOND + b"\n")

    assert [r.value["uuid"] for r in records] == ["a2"]
    assert [(s.line, s.offset, s.length) for s in skipped] == [(1, 0, len(torn))]


def test_values_that_are_no_objects_are_reported() -> None:
    records, skipped, _ = _read(b'[1, 2]\n"text"\n17\nnull\n' + FIRST + b"\n")

    assert [r.value["uuid"] for r in records] == ["a1"]
    assert [(s.line, s.offset, s.reason) for s in skipped] == [
        (1, 0, "a JSON array, not an object"),
        (2, 7, "a JSON string, not an object"),
        (3, 14, "a JSON number, not an object"),
        (4, 17, "a JSON null, not an object"),
    ]


@pytest.mark.parametrize("blank", [b"\0" * 4096, b"\0"])
def test_nul_bytes_are_stripped_and_reported_wherever_they_stand(blank: bytes) -> None:
    inside = FIRST[:20] + blank + FIRST[20:]

    records, skipped, _ = _read(FIRST + blank + SECOND + b"\n" + inside + b"\n" + blank + b"\n")

    assert [r.value["uuid"] for r in records] == ["a1", "a2", "a1"]
    assert records[1].offset == len(FIRST) + len(blank)
    assert all(NULS in r.repairs for r in records)
    after = len(FIRST + blank + SECOND) + 1
    assert [(s.line, s.offset, s.length, s.reason) for s in skipped] == [
        (1, len(FIRST), len(blank), NULS),
        (2, after + 20, len(blank), NULS),
        (3, after + len(inside) + 1, len(blank), NULS),
    ]


def test_a_file_in_utf_16_is_reported_and_not_read() -> None:
    records, skipped, _ = _read(json.dumps({"text": "x" * 20_000}).encode("utf-16-le") + b"\n")

    assert records == []
    assert "full of NUL bytes" in skipped[0].reason


def test_bytes_that_are_not_utf_8_are_replaced_and_the_places_stay_exact() -> None:
    bad = b'{"type":"user","text":"caf\xe9 \xf0\x9f cut","\xff":1}'

    records, skipped, _ = _read(bad + SECOND + b"garbage" + FIRST + b"\n")

    assert records[0].value == {"type": "user", "text": "caf\ufffd \ufffd cut", "\ufffd": 1}
    assert [r.repairs for r in records] == [(NOT_UTF8,), (GLUED,), (GLUED,)]
    assert [r.offset for r in records] == [0, len(bad), len(bad + SECOND) + 7]
    assert [r.raw for r in records] == [bad, SECOND, FIRST]
    assert [(s.offset, s.length) for s in skipped] == [(len(bad + SECOND), 7)]


def test_half_a_surrogate_pair_stays_as_it_is() -> None:
    records, _, _ = _read(b'{"type":"user","text":"\\ud83d","\\udc00":[]}\n')

    assert records[0].value == {"type": "user", "text": "\ud83d", "\udc00": []}
    assert records[0].repairs == ()


@pytest.mark.parametrize(
    ("text", "value", "repair"),
    [
        ("NaN", None, NOT_A_NUMBER),
        ("-Infinity", None, NOT_A_NUMBER),
        ("1e999", None, NOT_A_NUMBER),
        ("1" * 400, int("1" * 400), None),
        ("1" * 5000, "1" * 5000, TOO_MANY_DIGITS),
        ("18446744073709551616", 2**64, None),
        ("0.1", 0.1, None),
    ],
)
def test_numbers_that_json_cannot_write_back_are_changed_and_the_others_kept(
    text: str, value: Any, repair: str | None
) -> None:
    records, _, _ = _read(b'{"type":"x","n":' + text.encode() + b"}\n")

    assert records[0].value["n"] == value
    assert records[0].repairs == ((repair,) if repair else ())


def test_control_characters_inside_strings_are_plain_data() -> None:
    records, skipped, _ = _read(b'{"type":"user","text":"a\tb\x1bc"}\n')

    assert records[0].value["text"] == "a\tb\x1bc"
    assert skipped == []


def test_a_record_nested_without_end_is_skipped_and_its_neighbours_are_not() -> None:
    bombs = [b"[" * 100_000, b'{"type":' * 100_000, b'{"type":' * 300 + b"1" + b"}" * 300]

    for bomb in bombs:
        records, skipped, _ = _read(FIRST + b"\n" + bomb + b"\n" + SECOND + b"\n")

        assert [r.value["uuid"] for r in records] == ["a1", "a2"]
        assert [(s.line, s.offset) for s in skipped] == [(2, len(FIRST) + 1)]


def test_a_wide_record_is_not_taken_for_a_deep_one() -> None:
    value = {"type": "x", "rows": [{"cells": [[]]} for _ in range(500)]}

    records, skipped, _ = _read(json.dumps(value).encode() + b"\n")

    assert (records[0].value, skipped) == (value, [])


def test_a_line_over_the_limit_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "LINE_BYTES_MAX", 100)
    monkeypatch.setattr(jsonlines, "_DISCARD_BYTES", 16)
    long = b'{"type":"user","text":"' + b"x" * 200 + b'"}\n'
    exact = b'{"type":"user","text":"' + b"x" * 75 + b'"}\n'

    records, skipped, place = _read(exact + long + SECOND + b"\n")
    _, unfinished, before = _read(exact + long[:-1])

    assert len(exact) == 101
    assert [r.line for r in records] == [1, 3]
    assert [(s.line, s.offset, s.length) for s in skipped] == [(2, 101, len(long))]
    assert place.line == 4
    assert (before.offset, unfinished[0].length) == (101, len(long) - 1)


def test_a_last_line_without_its_line_feed_is_read_when_it_is_whole() -> None:
    records, skipped, place = _read(FIRST + b"\n" + SECOND)
    more, _, end = _read(FIRST + b"\n" + SECOND + b"\n" + FIRST + b"\n", place)

    assert [r.value["uuid"] for r in records] == ["a1", "a2"]
    assert skipped == []
    assert (place.offset, place.line, place.last_length) == (len(FIRST + SECOND) + 1, 2, len(SECOND))
    assert [(r.value["uuid"], r.line) for r in more] == [("a1", 3)]
    assert end.line == 4


def test_an_unfinished_last_line_is_reported_and_read_when_the_writer_is_done() -> None:
    whole = FIRST + b"\n" + SECOND + FIRST + b"\n"
    cut = len(FIRST) + 1 + len(SECOND) + 20

    records, skipped, place = _read(whole[:cut])
    more, none_skipped, end = _read(whole, place)

    assert [r.value["uuid"] for r in records] == ["a1", "a2"]
    assert [(s.line, s.offset, s.length) for s in skipped] == [(2, len(FIRST) + 1 + len(SECOND), 20)]
    assert skipped[0].reason.startswith("the last line is unfinished; not read yet: ")
    assert [(r.value["uuid"], r.line) for r in more] == [("a1", 2)]
    assert none_skipped == []
    assert end.offset == len(whole)


@given(st.integers(min_value=0, max_value=len(FIRST + SECOND) + 2))
def test_a_file_read_in_two_halves_gives_the_same_records_as_in_one(cut: int) -> None:
    whole = FIRST + b"\n" + SECOND + b"\n"

    first, _, place = _read(whole[:cut])
    second, _, end = _read(whole, place)

    assert [r.value["uuid"] for r in (*first, *second)] == ["a1", "a2"]
    assert [r.offset for r in (*first, *second)] == [0, len(FIRST) + 1]
    assert end.offset == len(whole)


@given(st.binary(max_size=300), st.integers(min_value=0, max_value=200))
def test_no_bytes_make_the_reader_raise_or_lose_track(noise: bytes, at: int) -> None:
    whole = FIRST + b"\n" + SECOND + b"\n"
    data = whole[:at] + noise + whole[at:] + b"\n"

    records, skipped, place = _read(data)

    assert place.offset == len(data)
    assert all(s.offset >= 0 and s.offset + s.length <= len(data) and s.length > 0 for s in skipped)
    assert all(data.startswith(r.raw[:1], r.offset) for r in records)


def test_a_long_torn_line_is_read_in_linear_time() -> None:
    piece = b'{"a":[' + b"1," * 200
    line = piece * 2000 + b"\n"

    records, skipped, _ = _read(line + FIRST + b"\n")

    assert [r.value["uuid"] for r in records] == ["a1"]
    assert [(s.offset, s.length) for s in skipped] == [(0, len(line) - 1)]


def test_a_long_line_that_is_torn_at_many_places_is_read_in_linear_time() -> None:
    line = b'{"rows": {' + b", ".join(b'"row %d": {"text": "It times out."}' % number for number in range(60_000))
    began = time.process_time()
    records, skipped, _ = _read(line + b"\n" + FIRST + b"\n")
    took_s = time.process_time() - began

    assert [r.value["uuid"] for r in records] == ["a1"]
    assert [(s.offset, s.length) for s in skipped] == [(0, len(line))]
    assert took_s < 4


@pytest.mark.parametrize("size", [4090, 4096, 4100, 65_530, 70_000, 1_100_000])
@pytest.mark.parametrize("end", [b'"}', b'","n":-1.5e+10}', b'","n":null}', b'","n":"\\ud83d\\ude00"}', b'","n":NaN}'])
def test_a_record_of_any_size_is_found_behind_a_torn_one(size: int, end: bytes) -> None:
    record = b'{"type":"user","uuid":"b1","text":"'
    record += b"x" * (size - len(record) - len(end)) + end
    records, skipped, _ = _read(FIRST[:31] + record + SECOND + b"\n")

    assert [(r.value["uuid"], r.raw) for r in records] == [("b1", record), ("a2", SECOND)]
    assert [(s.offset, s.length, s.is_pending) for s in skipped] == [(0, 31, False)]


def test_an_open_string_is_reported_in_a_whole_sentence() -> None:
    _, (whole,), _ = _read(FIRST[:40] + b"\n")
    _, (unfinished,), _ = _read(FIRST[:40])

    assert (whole.reason, whole.is_pending) == ("not JSON: unterminated string", False)
    assert unfinished.reason == "the last line is unfinished; not read yet: not JSON: unterminated string"
    assert unfinished.is_pending
