"""The stretch of a stored text that best shows why it was found, with the found words marked.

Works on the text itself and not on index terms: offsets count the characters that a person reads. A word is marked
where its stem is that of a word that was asked for, so a mark stands wherever the index would find something.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from playhead.search.stem import stem
from playhead.search.tokenize import (
    ANALYZE_CHARS_MAX,
    HASH,
    NOT_A_WORD,
    PIECE,
    WORD_CHARS_MAX,
    beyond_ascii,
    chunk_at,
    chunks,
    fold,
    is_unspaced,
    loose_query_terms,
    read,
)

MARKS_PER_WANTED_MAX = 200
"""Of one thing that was asked for, this many places are found; the window is chosen among them."""
TRIES_MAX = 50_000
"""Words compared, in all, where something begins like what was asked for."""
NAMES_CHARS_MAX = 200_000
"""So much of a text is searched for names that were typed without their `_` and `-`."""
SEPARATORS_MAX = 40
"""Signs and spaces that may stand between two words of a phrase."""
SNAP_CHARS = 20
"""How far an end of the window may move inwards to fall between two words."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a text, unchanged. marks: (start, end) offsets into `text`, in order and apart.

    cut_before, cut_after: whether the text goes on at that side.
    """

    text: str
    marks: tuple[tuple[int, int], ...]
    cut_before: bool
    cut_after: bool


class Item(NamedTuple):
    """One word to look for.

    start: how it begins in folded text; the whole of it where it has no stem (CJK, an emoji, `C++`).
    asked: the stem of the words meant, or with `is_prefix` their beginning; "" for exactly `start`.
    """

    start: str
    asked: str = ""
    is_prefix: bool = False


Needle = tuple[Item, ...]
"""Items that stand side by side."""


class Wanted(NamedTuple):
    """One thing that was asked for: the ways in which a text can hold it, and what to mark where it holds none."""

    needles: tuple[Needle, ...]
    loose: tuple[Needle, ...]


class _Mark(NamedTuple):
    start: int
    end: int
    wanted: int


def wanted(typed: str, *, is_prefix: bool = False, is_exact: bool = False) -> Wanted:
    """Return what to look for where a person typed this. is_exact: parts of it alone are not to be marked."""
    found = chunks(typed[:ANALYZE_CHARS_MAX])
    ways: list[Sequence[str]] = [[said for chunk in found for said in _said(chunk)]]
    if len(found) == 1 and not is_unspaced(found[0]):
        ways += (read(found[0]).words, *read(found[0]).spellings)
        is_prefix = is_prefix or HASH.fullmatch(found[0]) is not None
    loose = [] if is_exact else loose_query_terms(typed)
    return Wanted(
        _distinct([*map(_item, way[:-1]), _item(way[-1], is_prefix=is_prefix)] for way in ways if way),
        _distinct(map(_item, way) for way in loose),
    )


def cut(text: str, asked: Sequence[Wanted], width: int) -> Snippet:
    """Return the window of at most `width` characters (at least 1) that shows most of what was asked for.

    First counts how many different things it shows, then how many marks; the earliest wins. Without any match it is the
    beginning of the text. Only the first `ANALYZE_CHARS_MAX` characters are searched, which is what the index holds.
    """
    width = max(width, 1)
    marks = _marks(text[:ANALYZE_CHARS_MAX], asked)
    start, end = _window(text, _densest(marks, width), width)
    inside = ((max(mark.start, start) - start, min(mark.end, end) - start) for mark in marks)
    return Snippet(
        text=text[start:end],
        marks=tuple(mark for mark in inside if mark[0] < mark[1]),
        cut_before=start > 0,
        cut_after=end < len(text),
    )


def _said(chunk: str) -> Sequence[str]:
    """Return what to look for instead of a chunk's index terms where the text does not hold those as they are."""
    words = read(chunk).words
    if is_unspaced(chunk):
        return [run] if (run := NOT_A_WORD.sub("", fold(chunk))) else []
    if len(words) == 1 and not (chunk[0].isalnum() and chunk[-1].isalnum()):
        # Signs that are words: an emoji, `.NET`, `C++`.
        return [chunk.lower()]
    return words


def _item(said: str, *, is_prefix: bool = False) -> Item:
    if not said.isalnum() or is_unspaced(said):
        return Item(said)
    asked = said if is_prefix else stem(said)
    # Every form of the word has to begin like this: "happiness" is kept as `happi`, and is found by "happy".
    start = asked
    while not said.startswith(start):
        start = start[:-1]
    if not is_prefix and len(start) > 1 and start[-1] in "eily":
        start = start[:-1]
    # A sharp s is two letters when folded and one in the text.
    return Item(start.partition("ss")[0] or start[:1], asked, is_prefix)


def _distinct(ways: Iterable[Iterable[Item]]) -> tuple[Needle, ...]:
    return tuple(dict.fromkeys(map(tuple, ways)))


class _FlatLetters(dict[int, str]):
    """Each letter as its folded self where that is one character, so that offsets stay; filled as letters are met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        folded = fold(letter)
        self[code] = flat = folded if len(folded) == 1 else letter
        return flat


class _Page:
    """A text made ready to be searched: without accents and selectors of their own, and once more in small letters."""

    def __init__(self, text: str) -> None:
        self._original = text
        self._taken: list[int] = []
        if text.isascii():
            self._letters = _ASCII_LETTERS
            self.text = text
            self.flat = text.lower()
        else:
            patterns = beyond_ascii()
            self._taken = [mark.start() - count for count, mark in enumerate(patterns.mark.finditer(text))]
            self._letters = patterns.letters
            self.text = patterns.mark.sub("", text)
            self.flat = self.text.translate(_FlatLetters())

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where a stretch of the page stands in the text, with the accents after it and the tone of an emoji."""
        original_end = end + bisect_right(self._taken, end - 1)
        return start + bisect_right(self._taken, start), _after_joined(self._original, original_end)

    def match(self, needle: Needle, start: int) -> int:
        """Return where a needle that begins at `start` ends, or 0 where none does."""
        end = self._item_end(needle[0], start)
        for item in needle[1:]:
            if not end:
                return 0
            end = self._item_end(item, self._next_start(item, end))
        return end

    def _next_start(self, item: Item, end: int) -> int:
        """Return where an item would have to begin that follows what ended at `end`. It may be -1, for nowhere."""
        if item.asked:
            return _SEPARATORS.match(self.flat, end).end()  # type: ignore[union-attr]  # it matches "" anywhere
        start = self.flat.find(item.start, end, end + SEPARATORS_MAX + len(item.start))
        return start if start >= 0 and _SEPARATORS.fullmatch(self.flat, end, start) else -1

    def _item_end(self, item: Item, start: int) -> int:
        if start < 0 or not self.flat.startswith(item.start, start):
            return 0
        is_in_word = self._is_in_word(start)
        if not item.asked:
            is_there = is_unspaced(item.start) or self._is_sign_word(item.start, start, is_in_word=is_in_word)
            return start + len(item.start) if is_there else 0
        if is_in_word and not self._is_border(start):
            return 0
        for end in self._word_ends(start):
            word = fold(self.text[start:end])
            if word.startswith(item.asked) if item.is_prefix else stem(word) == item.asked:
                return end
        return 0

    def _word_ends(self, start: int) -> list[int]:
        """Return where a word that begins at `start` may end: with its letters, or at the first border inside them."""
        found = (pattern.match(self.text, start, start + WORD_CHARS_MAX) for pattern in (self._letters, PIECE))
        return [match.end() for match in found if match]

    def _is_sign_word(self, word: str, start: int, *, is_in_word: bool) -> bool:
        """Return whether an emoji, `C++` or `.NET` stands there, and not `.network`."""
        return chunk_at(self.flat, start) == word and not (is_in_word and word[0].isalnum())

    def _is_in_word(self, start: int) -> bool:
        before = self.text[start - 1 : start]
        return before.isalnum() and not is_unspaced(before)

    def _is_border(self, start: int) -> bool:
        """Return whether a part of a name begins: `User` in `getUser`, `Server` in `HTTPServer`, `404` in `HTTP404`."""
        before, here, after = self.text[start - 1], self.text[start], self.text[start + 1 : start + 2]
        return before.isdigit() != here.isdigit() or (here.isupper() and (before.islower() or after.islower()))


_NAME = re.compile(r"(?<![^\W_])[^\W_]++(?:[_-]++[^\W_]++)+")
_SEPARATORS = re.compile(rf"[\W_]{{0,{SEPARATORS_MAX}}}")
_ASCII_LETTERS = re.compile("[A-Za-z0-9]+")


@cache
def _joined() -> re.Pattern[str]:
    return re.compile(f"(?:{beyond_ascii().mark.pattern}|[\U0001f3fb-\U0001f3ff]|\u200d[^\\w\\s])+")


def _after_joined(text: str, start: int) -> int:
    """Return where the accents, tones and joined emoji end that belong to the character before `start`."""
    if text[start : start + 1].isascii():
        return start
    joined = _joined().match(text, start)
    return joined.end() if joined else start


def _marks(text: str, asked: Sequence[Wanted]) -> list[_Mark]:
    """Return the places to mark, in order. Parts of a thing count only where the whole of it is nowhere."""
    page = _Page(text)
    marks = _scan(page, {number: one.needles for number, one in enumerate(asked)})
    seen = {mark.wanted for mark in marks}
    loose = {number: one.loose for number, one in enumerate(asked) if one.loose and number not in seen}
    marks += _scan(page, loose)
    seen = {mark.wanted for mark in marks}
    marks += list(_joined_names(page, {number: one for number, one in enumerate(asked) if number not in seen}))
    taken_until = 0
    apart = []
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start >= taken_until:
            start, taken_until = mark.start, mark.end
            apart.append(_Mark(*page.original(start, taken_until), mark.wanted))
    return apart


def _scan(page: _Page, asked: dict[int, tuple[Needle, ...]]) -> list[_Mark]:
    """Return the matches of the needles in the page, each with the number of what it is a match of."""
    marks: list[_Mark] = []
    found: Counter[int] = Counter()
    position = tries = 0
    starts, table = _starts(asked)
    while table and tries < TRIES_MAX and (hit := starts.search(page.flat, position)):
        here = hit.start()
        candidates = [pair for size in table for pair in table[size].get(page.flat[here : here + size], ())]
        tries += sum(len(needle) for _, needle in candidates)
        end, number = max((page.match(needle, here), number) for number, needle in candidates)
        position = end or here + 1
        if end:
            marks.append(_Mark(here, end, number))
            found[number] += 1
            if found[number] == MARKS_PER_WANTED_MAX:
                asked = {key: needles for key, needles in asked.items() if key != number}
                starts, table = _starts(asked)
    return marks


def _joined_names(page: _Page, asked: dict[int, Wanted]) -> Iterator[_Mark]:
    """Yield the names that were typed as one word: `dry-run` for `dryrun`."""
    items = [(number, needle[0]) for number, one in asked.items() for needle in one.needles if len(needle) == 1]
    stems = {item.asked: number for number, item in items if not item.is_prefix}
    beginnings = [(item.asked, number) for number, item in items if item.is_prefix]
    for name in _NAME.finditer(page.flat, 0, NAMES_CHARS_MAX if items else 0):
        if len(name[0]) <= WORD_CHARS_MAX:
            word = NOT_A_WORD.sub("", fold(name[0]))
            number = next((number for start, number in beginnings if word.startswith(start)), stems.get(stem(word), -1))
            if number >= 0:
                yield _Mark(name.start(), name.end(), number)


_Table = dict[int, dict[str, list[tuple[int, Needle]]]]


def _starts(asked: dict[int, tuple[Needle, ...]]) -> tuple[re.Pattern[str], _Table]:
    """Return a pattern for how the needles begin, and the needles by the length of that and by itself."""
    table: _Table = defaultdict(lambda: defaultdict(list))
    for number, needles in asked.items():
        for needle in needles:
            start = needle[0].start
            table[len(start)][start].append((number, needle))
    starts = sorted(start for by_start in table.values() for start in by_start)
    return re.compile("|".join(map(re.escape, starts))), {size: dict(by_start) for size, by_start in table.items()}


def _densest(marks: Sequence[_Mark], width: int) -> tuple[int, int]:
    """Return from where to where the best marks reach that fit into the width; (0, 0) for no marks."""
    shown: Counter[int] = Counter()
    best = (0, 0)
    stretch = (0, 0)
    first = 0
    for last, mark in enumerate(marks):
        shown[mark.wanted] += 1
        while first < last and mark.end - marks[first].start > width:
            shown[marks[first].wanted] -= 1
            if not shown[marks[first].wanted]:
                del shown[marks[first].wanted]
            first += 1
        score = (len(shown), last - first + 1)
        if score > best:
            best, stretch = score, (marks[first].start, mark.end)
    return stretch


def _window(text: str, stretch: tuple[int, int], width: int) -> tuple[int, int]:
    """Return where the window begins and ends: the stretch in its middle, its ends between words where that is near."""
    first, last = stretch[0], min(stretch[1], stretch[0] + width)
    end = min(len(text), max(0, first - (width - (last - first)) // 2) + width)
    start = max(0, end - width)
    if start > 0:
        space = _SPACE.search(text, start - 1, min(start + SNAP_CHARS, first))
        start = space.end() if space else start
    if end < len(text):
        nearest = max(end - SNAP_CHARS, last, start)
        space = _LAST_SPACE.search(text[nearest : end + 1])
        end = min(end, nearest + space.start()) if space else end
    return min(_after_joined(text, start), max(start, first)) if start > 0 else start, end


_SPACE = re.compile(r"\s+")
_LAST_SPACE = re.compile(r"\s+\S*\Z")
