"""Running text on a terminal: broken between words, in whatever pieces it comes."""

import pytest
from hypothesis import given, strategies as st

from playhead.cli.text import width
from playhead.cli.wrapping import Wrapping, wrapped

ANSWER = "The upload test times out after thirty seconds, so raise the limit to sixty and run it again."


def _in_pieces(text: str, size: int, columns: int) -> str:
    wrapping = Wrapping(lambda: columns)
    pieces = [wrapping.add(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join(pieces) + wrapping.end()


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_text_is_broken_between_words_in_whatever_pieces_it_comes(size: int, columns: int) -> None:
    lines = _in_pieces(ANSWER, size, columns).split("\n")

    assert max(map(len, lines)) <= columns
    assert " ".join(lines) == ANSWER


@given(st.text(alphabet="ab c\n日\u0301", max_size=200), st.integers(1, 9), st.integers(20, 40))
def test_nothing_is_lost_but_the_spaces_at_a_break(text: str, size: int, columns: int) -> None:
    shown = _in_pieces(text, size, columns)

    assert "".join(shown.split()) == "".join(text.split())


def test_code_and_tables_are_left_as_they_are() -> None:
    code = "```\nplayhead search --role tool upload\n```\n    indented by four columns\n| a | b | c | d | e |"

    assert wrapped(code, 20) == code


def test_a_fence_is_seen_in_whatever_pieces_it_comes() -> None:
    code = "```\nplayhead search --role tool --since 7d upload\n```"

    assert [_in_pieces(code, size, 30) for size in (1, 2, 3)] == [code] * 3


def test_text_after_code_is_broken_again() -> None:
    shown = wrapped("```\ncode that is longer than it\n```\none two three four five", 20)

    assert shown.endswith("one two three four\nfive")


def test_a_word_longer_than_a_line_is_not_torn() -> None:
    address = "https://example.org/" + "a" * 60

    assert address in wrapped(f"See {address} for more", 40)


def test_scripts_without_spaces_are_broken_anywhere() -> None:
    lines = wrapped("日本語の長いタイトル" * 5, 21).split("\n")

    assert {width(line) for line in lines[:-1]} == {20}


def test_the_beginning_of_a_word_is_shown_where_there_is_room_for_a_long_one() -> None:
    wrapping = Wrapping(lambda: 40)
    early, late = wrapping.add("It beg"), wrapping.add("ins with the upl")

    assert early == "It beg"
    assert late == "ins with the"
    assert wrapping.end() == " upl"


def test_escape_sequences_are_shown_and_counted() -> None:
    assert wrapped("one \x1b[2J two", 20) == "one ␛[2J two"
