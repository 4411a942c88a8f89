"""The stem of an English word, by Porter's algorithm, as SQLite's `porter` tokenizer makes it.

The index stems for itself. This is for the places that must know beforehand what it will do: the marks in a snippet,
and the beginning of a word as a query.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

STEM_CHARS_MAX = 64
"""Longer words are their own stem, as in SQLite (which counts bytes; a longer word is rarely one)."""

# For each step the first ending that fits is taken, so an ending stands before those it ends with.
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


# What may still follow when somebody stops typing: the endings that change the letters before them, or the stem's.
_ENDINGS = tuple(
    "s es ed ing ings er ers y ies ied ly e al ally ance ances ence ences ic ical able ible ably ibly ant ants ement "
    "ements ment ments ent ents ion ions ism isms ate ates ated ating ately ation ations ational ator ators ity ities "
    "ous ously ive ively ize izes ized izing izer izers ization izations ful fully ness iveness fulness ousness ality "
    "alities ivity ivities bility bilities icate icates icated icating ative alize alizes alized alizing alism icity "
    "tional ional logy logies".split()
)


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return the stem of a lower-case word. Words of one or two letters or of other alphabets come back unchanged."""
    if not 2 < len(word) <= STEM_CHARS_MAX:
        return word
    word = _without_plural(word)
    word = _without_past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _without_last_ending(word)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_like_hop(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def covering(beginning: str) -> list[str]:
    """Return the words that, asked for in a stemmed index, together find all that start with `beginning`.

    One that ends with `*` is asked for as a beginning. The index stems those as well, and a stem is not always how its
    words begin: `play*` would be looked up as `plai` and find "plain", not "player"; `connectio*` would miss
    "connection", which is kept as `connect`.
    """
    whole: dict[str, str] = {}
    start = beginning
    if not beginning.startswith(stem(beginning)):
        # The stemmer takes "ful" off again and leaves what is before it as it is.
        start = beginning + "ful"
        whole[stem(beginning)] = beginning
    for ending in _ENDINGS:
        for size in range(min(len(ending), len(beginning))):
            if beginning.endswith(ending[:size]):
                word = beginning + ending[size:]
                whole.setdefault(stem(word), word)
    return [start + "*", *(word for kept, word in whole.items() if not kept.startswith(stem(start)))]


def _without_plural(word: str) -> str:
    for ending in ("sses", "ies"):
        if word.endswith(ending) and word != ending:
            return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _without_past(word: str) -> str:
    if word.endswith("eed") and word != "eed":
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return _repaired(rest) if _has_vowel(rest) else word
    return word


def _repaired(rest: str) -> str:
    """Return what `ed` or `ing` was put after: `hop` for `hopp`, `hope` for `hop` where the `e` was dropped."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if len(rest) > 1 and rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    if _measure(rest) == 1 and _ends_like_hop(rest):
        return rest + "e"
    return rest


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, instead in endings:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            return rest + instead if _measure(rest) > 0 else word
    return word


def _without_last_ending(word: str) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t"))):
                return rest
            return word
    return word


def _is_vowel_at(word: str, index: int) -> bool:
    """A `y` is a vowel after a consonant, and a consonant elsewhere."""
    if word[index] == "y":
        return index > 0 and not _is_vowel_at(word, index - 1)
    return word[index] in "aeiou"


def _has_vowel(word: str) -> bool:
    return any(_is_vowel_at(word, index) for index in range(len(word)))


def _measure(word: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    shape = [_is_vowel_at(word, index) for index in range(len(word))]
    return sum(before and not after for before, after in pairwise(shape))


def _ends_like_hop(word: str) -> bool:
    """Return whether the word ends in consonant, vowel, consonant, the last of them no w, x or y."""
    last = len(word) - 1
    return (
        last >= 2
        and not _is_vowel_at(word, last)
        and _is_vowel_at(word, last - 1)
        and not _is_vowel_at(word, last - 2)
        and word[last] not in "wxy"
    )
