"""The stemmer is the one of the index, and the beginning of a word finds the word."""

import random
import re

import pytest
from hypothesis import given, settings, strategies as st

from playhead.search.stem import STEM_CHARS_MAX, covering, stem
from tests.conftest import PROJECT
from tests.search.conftest import Index

ENDINGS = (
    "s es ed eed ing y e ll ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism "
    "iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible ant "
    "ement ment ent ion ou ism ate iti ous ive ize ies sses"
).split()
SYLLABLE = st.text(alphabet="abeiostlyzwx", max_size=4)
ENGLISH = st.tuples(SYLLABLE, st.sampled_from(ENDINGS), st.sampled_from(["", *ENDINGS])).map("".join)

# Words whose stems are not how they begin, or that lose their ending before one has typed it.
AWKWARD = (
    "player playground keyboard happiness university universal connection connections running hoping organization "
    "authenticated abilities skies flies agreed possibly sensibility relational policies libraries memory memories "
    "displayed deployed deployments retries retried applied queries querying copying entries"
).split()


def vocabulary() -> list[str]:
    """Return the words of the project's own pages and code."""
    files = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("playhead/**/*.py")]
    text = " ".join(file.read_text(encoding="utf-8") for file in files)
    return sorted({*re.findall(r"[a-z]+", text.lower()), *AWKWARD, *ENDINGS})


def test_the_stems_of_the_project_s_own_words_are_those_of_the_index(index: Index) -> None:
    words = vocabulary()
    index.fill(words)

    assert len(words) > 1_000
    assert {word: [stem(word)] for word in words} == dict(zip(words, index.terms(), strict=True))


@settings(max_examples=50)
@given(st.lists(ENGLISH, min_size=1, max_size=200))
def test_the_stem_of_anything_with_english_endings_is_that_of_the_index(index: Index, words: list[str]) -> None:
    index.fill(words)

    assert [[stem(word)] for word in words] == index.terms()


@pytest.mark.parametrize("word", ["", "a", "is", "東京", "x" * (STEM_CHARS_MAX + 1) + "ing", "404"])
def test_what_is_short_long_or_not_english_is_its_own_stem(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize("word", AWKWARD)
def test_every_beginning_of_a_word_finds_it(index: Index, word: str) -> None:
    index.fill([word])
    beginnings = [word[:size] for size in range(1, len(word) + 1)]
    missed = [beginning for beginning in beginnings if not index.match(_expression(covering(beginning)))]

    assert missed == []


def test_a_beginning_finds_its_word_throughout_the_project_s_own_words() -> None:
    words = random.Random(7).sample(vocabulary(), 250)
    missed = [
        (word[:size], word)
        for word in words
        for size in range(1, len(word) + 1)
        if not any(_finds(asked, word) for asked in covering(word[:size]))
    ]

    assert missed == []


def test_a_beginning_does_not_find_words_that_begin_otherwise(index: Index) -> None:
    index.fill(["player", "plainly", "keyboard", "keel", "runner", "rune"])

    assert index.match(_expression(covering("play"))) == [0]
    assert index.match(_expression(covering("keyb"))) == [2]
    assert index.match(_expression(covering("runn"))) == [4]


def _finds(asked: str, word: str) -> bool:
    return stem(word).startswith(stem(asked[:-1])) if asked.endswith("*") else stem(word) == stem(asked)


def _expression(asked: list[str]) -> str:
    return " OR ".join(f'"{word[:-1]}" *' if word.endswith("*") else f'"{word}"' for word in asked)
