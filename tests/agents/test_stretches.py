"""A passage begins and ends with a sentence where it can, and always holds what was asked for."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from playhead.agents.stretches import grown, telling_stretch
from playhead.search.query import Query, parse


def asked(question: str) -> Query:
    return parse(question, now=datetime.fromtimestamp(0, UTC))


def told(text: str, question: str, chars_max: int = 80) -> str:
    stretch = telling_stretch(text, asked(question), chars_max)
    return text[stretch.start : stretch.end]


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("It is short.", "short", "It is short."),
        ("One thing. " * 9 + "The key is here. " + "Another thing. " * 9, "key", None),
        ("# Title\n\n- first item\n- the key is in the second\n- third\n" + "- more\n" * 20, "key", None),
        ("「鍵はどこですか。」鍵は箱の中です。" + "次の文です。" * 20, "箱", None),
    ],
)
def test_it_is_cut_where_sentences_and_lines_end(text: str, question: str, expected: str | None) -> None:
    found = told(text, question)
    before, after = text.partition(found)[::2]

    assert expected is None or found == expected
    assert len(found) <= 80
    assert before == "" or before.rstrip(" \n").endswith((".", "。", "」", "Title", "item"))
    assert after == "" or found.endswith((".", "。", "second", "third", "more"))


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    text = "word " * 200 + "needle " + "more " * 200
    found = told(text, "needle")

    assert "needle" in found
    assert len(found) <= 80
    assert set(found.split()) <= {"word", "needle", "more"}


def test_one_endless_word_is_cut_anywhere() -> None:
    assert len(told("a" * 10_000, "aaa*")) == 80


def test_without_a_match_it_is_the_beginning() -> None:
    stretch = telling_stretch("The beginning. The end.", asked("nothing"), 15)

    assert (stretch.start, stretch.end, stretch.is_match) == (0, 14, False)
    assert telling_stretch("", asked("nothing"), 15).end == 0


@given(
    st.text(st.sampled_from("ab. \n!?。…\"')\t")),
    st.integers(0, 60),
    st.integers(0, 20),
    st.integers(20, 40),
)
def test_it_holds_what_it_grows_around_and_is_never_too_long(text: str, first: int, width: int, chars_max: int) -> None:
    first = min(first, len(text))
    last = min(first + width, len(text))
    start, end = grown(text, first, last, chars_max)

    assert 0 <= start <= first
    assert last <= end <= len(text)
    assert end - start <= chars_max
