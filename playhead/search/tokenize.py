"""Text to the terms of the full-text index, and a typed word to the terms that find it there.

The index is an FTS5 table with `tokenize = "porter unicode61 remove_diacritics 2"`, fed with `analyze(text)`. Alone it
would lose CJK words inside sentences, every emoji, `C++` and the parts of `camelCase`. So a document becomes

    its words, in order   folded (case, accents, widths); `foo_bar` and `src/app/main.py` as their words;
                          CJK runs as overlapping pairs of characters and the last character alone;
                          an emoji as a word (`emoji1f680`); `50ms` as `50 ms`, `E0277` as `e 0277`;
                          `C++` as `cplusplus`
    and then, once each   other spellings of its compounds: `foobar` for `foo_bar`, `get user name` for `getUserName`

with a `SEGMENT_BREAK` before each spelling. No query can contain that break, and a phrase is a row of neighbouring
terms, so a phrase matches the running words or one spelling and never the border between two.

A query is read by the same rules, so both sides agree by construction. All work is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from playhead.search.stem import covering

ANALYZE_CHARS_MAX = 4_000_000
"""Text beyond this many characters is not indexed."""
OPAQUE_CHARS_MIN = 200
"""Runs of the base64 alphabet longer than this are skipped where they do not read like words."""
OPAQUE_WORD_CHARS_MEAN = 20
"""In such a run a path has words of 5 to 10 letters between its slashes; base64 has some 30 from sign to sign."""
WORD_CHARS_MAX = 200
"""A longer word is indexed by its beginning."""
JOINED_CHARS_MAX = 64
"""Compounds up to this length are also indexed as one word; nobody types a longer one from memory."""
PIECES_MAX = 16
"""A word with more borders than this is no name that somebody chose, and is not taken apart."""
SEGMENT_BREAK = "\ue000"
"""Stands between the other spellings. A private character: FTS5 takes it as a word, and no text gives it as a term."""

# Scripts written without spaces: Han, kana, hangul and bopomofo, and with them Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdf\U00020000-\U000323af"
)
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Pictures only. Arrows, box drawing and blocks are how programs draw tables, and would flood the index.
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25b6\u25c0"
    "\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u303d\u3297\u3299"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
_REGIONAL = "\U0001f1e6-\U0001f1ff"

_SIGNS = r"(?:\+\+|\#)?"
_DOTNET = r"(?<![A-Za-z0-9])\.[Nn][Ee][Tt](?![A-Za-z0-9])"
_ASCII_CHUNK = re.compile(rf"[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)*{_SIGNS}|{_DOTNET}")
NOT_A_WORD = re.compile(r"[\W_]+")
PIECE = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
_LETTERS_AND_DIGITS = re.compile(r"([A-Z]?[a-z]+|[A-Z]+)([0-9]+)|([0-9]+)([A-Za-z]{1,3})")
_HEX_LITERAL = re.compile(r"0[xX]([0-9A-Fa-f]+)")
HASH = re.compile(r"(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{7,}")
_OPAQUE = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{OPAQUE_CHARS_MIN + 1},}}")
_BETWEEN_OPAQUE = re.compile(r"[+/=_-]+")
_VOICED = "\u3099\u309a"


Phrase = tuple[str, ...]
"""Terms that stand side by side."""


class Reading(NamedTuple):
    """What one chunk of text becomes.

    words: its terms in the running text. spellings: other ways to write the whole of it. parts: what it is also found
    by, though it is not the same thing (`c` for `C++`).
    """

    words: Phrase
    spellings: tuple[Phrase, ...] = ()
    parts: tuple[Phrase, ...] = ()


def analyze(text: str) -> str:
    """Return what to feed the index for a document: its terms, one space between them.

    "" where nothing can be found. Works on any string, halves of surrogate pairs and NUL included. Only the first
    `ANALYZE_CHARS_MAX` characters count; opaque runs (base64, signatures) are skipped.
    """
    text = text[:ANALYZE_CHARS_MAX]
    if len(text) > OPAQUE_CHARS_MIN:
        text = _OPAQUE.sub(_words_or_nothing, text)
    readings = _Readings()
    running = " ".join(filter(None, map(readings.__getitem__, chunks(text))))
    if not readings.tail:
        return running
    breaks = f" {SEGMENT_BREAK} "
    return running + breaks + breaks.join(map(" ".join, readings.tail))


def terms(text: str) -> list[str]:
    """Return the index terms of a document in order, breaks included: `analyze(text)`, split."""
    return analyze(text).split()


def analyze_query_term(term: str, *, is_prefix: bool = False) -> list[list[str]]:
    """Return the ways in which an index can hold what was typed; a document that has one of them has the term.

    Each is a list of terms that stand side by side, the most literal first. A last term that ends with `*` stands for
    all that begin with it. `[]` where nothing can be found.
    """
    found = chunks(term[:ANALYZE_CHARS_MAX])
    words = _side_by_side(found)
    if not words:
        return []
    ways = [words]
    if len(found) == 1:
        ways += map(list, read(found[0]).spellings)
    if len(found) == 1 and HASH.fullmatch(found[0]):
        # The hash of a commit is typed by its beginning.
        ways.append([found[0].lower() + "*"])
    if is_prefix and not words[-1].endswith("*"):
        ways = [[*way[:-1], last] for way in ways for last in covering(way[-1])]
    return _distinct(ways)


def loose_query_terms(term: str) -> list[list[str]]:
    """Return what a document about the same thing may hold instead: the parts of a name, a path's last name, CJK pairs.

    To be added when ranking, never to exclude by. Numbers and parts of one or two letters are left out, since they
    mean nothing alone. `[]` where the term has no parts.
    """
    found = chunks(term[:ANALYZE_CHARS_MAX])
    last_name = re.split(r"[/\\]", term.rstrip("/\\"))[-1]
    loose = [_side_by_side(chunks(last_name))] if last_name != term and "." in last_name.strip(".") else []
    for chunk in found:
        reading = read(chunk)
        if is_unspaced(chunk):
            loose += ([pair] for pair in reading.words[:-1])
        else:
            names = [word for sequence in (reading.words, *reading.spellings) for word in sequence]
            loose += ([name] for name in names if len(name) > 2 and name.isalpha())
    known = analyze_query_term(term)
    return [way for way in _distinct(loose) if way and way not in known][:PIECES_MAX]


def chunks(text: str) -> list[str]:
    """Return the pieces of text that are read as one: words, compounds, CJK runs, emoji. Everything else is gone."""
    return (_ASCII_CHUNK if text.isascii() else beyond_ascii().chunk).findall(text)


def chunk_at(text: str, start: int) -> str:
    """Return the chunk that begins at `start`, or "" for none. Of one longer than `WORD_CHARS_MAX`, the beginning."""
    pattern = _ASCII_CHUNK if text.isascii() else beyond_ascii().chunk
    found = pattern.match(text, start, start + WORD_CHARS_MAX)
    return found[0] if found else ""


def read(chunk: str) -> Reading:
    """Return what one of the `chunks` becomes."""
    if not chunk.isascii():
        if beyond_ascii().emoji.match(chunk):
            return Reading((emoji_term(chunk),))
        if is_unspaced(chunk):
            run = NOT_A_WORD.sub("", fold(chunk))
            return Reading((*map("".join, pairwise(run)), *run[-1:]))
        chunk = _without_marks(chunk)
    if chunk.startswith("."):
        return Reading(("dotnet",), (), (("net",),))
    return _read_compound(chunk)


def is_unspaced(chunk: str) -> bool:
    """Return whether a chunk is a run of a script without spaces."""
    return not chunk.isascii() and beyond_ascii().unspaced.match(chunk) is not None


def emoji_term(emoji: str) -> str:
    """Return the word by which an emoji is indexed. Letters and digits only, since FTS5 drops every symbol."""
    return "emoji" + "".join(f"{ord(character):x}" for character in emoji)


def fold(text: str) -> str:
    """Return text as the index compares it: small letters, without accents, one width of each letter."""
    return text.lower() if text.isascii() else _without_marks(text).casefold()


def pieces(word: str) -> list[str]:
    """Return the parts of an ASCII word between its borders of case and digits: `get`, `User`, `2`. `[]` for none."""
    if not word.isascii() or HASH.fullmatch(word) or _HEX_LITERAL.fullmatch(word):
        return []
    found = PIECE.findall(word)
    return found if 1 < len(found) <= PIECES_MAX else []


class Patterns(NamedTuple):
    """How text beyond ASCII is taken apart.

    letters: a word without `_` and `-`. unspaced, emoji: how such a chunk begins. mark: an accent, a vowel sign, a
    selector: what is left out when text is compared.
    """

    chunk: re.Pattern[str]
    letters: re.Pattern[str]
    unspaced: re.Pattern[str]
    emoji: re.Pattern[str]
    mark: re.Pattern[str]


@cache
def beyond_ascii() -> Patterns:
    """Return the patterns for text beyond ASCII. Compiled when first needed: that takes longer than the import."""
    # Accents, vowel signs and the soft hyphen belong to the word around them, variation selectors to the Han before.
    marks = "\u00ad\u20d0-\u20e2\u20e4-\u20ff\ufe20-\ufe2f" + "".join(
        chr(code) for code in range(0x300, 0x1E00) if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"(?>(?:[^\W_{_UNSPACED}][{marks}]*)+)"
    chunk = (
        rf"{letters}(?>(?:[_-]+{letters})*){_SIGNS}"
        rf"|[{_UNSPACED}][{_UNSPACED}{marks}{_SELECTORS}]*"
        rf"|[{_REGIONAL}]{{1,2}}|[{_EMOJI}]|{_DOTNET}"
    )
    return Patterns(
        chunk=re.compile(chunk),
        letters=re.compile(letters),
        unspaced=re.compile(f"[{_UNSPACED}]"),
        emoji=re.compile(f"[{_EMOJI}{_REGIONAL}]"),
        mark=re.compile(f"[{marks}{_SELECTORS}]"),
    )


class _Readings(dict[str, str]):
    """Chunks to their running words, each worked out once; on the way it gathers the other spellings, in order."""

    def __init__(self) -> None:
        self.tail: dict[Phrase, None] = {}

    def __missing__(self, chunk: str) -> str:
        if chunk.isascii() and chunk.isalpha() and chunk[1:].islower() and len(chunk) <= WORD_CHARS_MAX:
            # Most words of most texts. The general way gives the same.
            words = chunk.lower()
        else:
            reading = read(chunk)
            words = " ".join(reading.words)
            self.tail.update(dict.fromkeys((*reading.spellings, *reading.parts)))
        self[chunk] = words
        return words


def _read_compound(chunk: str) -> Reading:
    """Read words joined by `_` and `-`, of which the last may be `C++` or `C#`."""
    chunk, parts = _with_signs_spelt(chunk)
    names = [name[:WORD_CHARS_MAX] for name in NOT_A_WORD.split(chunk) if name]
    if len(names) > PIECES_MAX:
        return Reading(tuple(name.casefold() for name in names))
    words: list[str] = []
    apart: list[str] = []
    for name in names:
        found = _letters_and_digits(name)
        words += found or [name.casefold()]
        apart += found or [piece.lower() for piece in pieces(name)] or [name.casefold()]
        if literal := _HEX_LITERAL.fullmatch(name):
            parts = (*parts, (literal[1].lower(),))
    spellings: list[Phrase] = []
    joined = "".join(words)
    if len(words) > 1 and len(joined) <= JOINED_CHARS_MAX:
        spellings.append((joined,))
    if apart != words:
        spellings.append(tuple(apart))
    return Reading(tuple(words), tuple(spellings), parts)


def _letters_and_digits(name: str) -> list[str]:
    """Return the two halves of `50ms`, `v2`, `E0277` and `HTTP404`, which people also write apart. `[]` for others."""
    if HASH.fullmatch(name):
        return []
    halves = _LETTERS_AND_DIGITS.fullmatch(name)
    return [half.lower() for half in halves.groups() if half] if halves else []


def _with_signs_spelt(chunk: str) -> tuple[str, tuple[Phrase, ...]]:
    """Return a chunk with the signs after a single letter spelt, and the letter. Other signs just go (`count++`)."""
    for sign, spelt in (("++", "plusplus"), ("#", "sharp")):
        if chunk.endswith(sign):
            chunk = chunk.removesuffix(sign)
            letter = chunk[-1:]
            if len(chunk) == 1 or chunk[-2] in "_-":
                return chunk.lower() + spelt, ((letter.lower(),),)
    return chunk, ()


def _side_by_side(found: list[str]) -> list[str]:
    """Return the terms of a phrase.

    A phrase may end inside a CJK run, so the run's last character is left to the pair before it; a single one may
    begin a pair or end a run, and is asked for as the beginning of a term.
    """
    words = [word for chunk in found for word in read(chunk).words]
    if found and is_unspaced(found[-1]) and words:
        last = words.pop()
        if len(read(found[-1]).words) == 1:
            words.append(last + "*")
    return words


def _words_or_nothing(run: re.Match[str]) -> str:
    """Return a long run of the base64 alphabet if it reads like words, else a space."""
    words = [word for word in _BETWEEN_OPAQUE.split(run[0]) if word]
    is_opaque = sum(map(len, words)) > OPAQUE_WORD_CHARS_MEAN * len(words)
    return " " if is_opaque else run[0]


def _without_marks(text: str) -> str:
    # Marks go first: `normalize` sorts them, in time that grows with the square of their number. What stays is voicing.
    return "".join(map(_base, unicodedata.normalize("NFKC", beyond_ascii().mark.sub("", text))))


@lru_cache(maxsize=16384)
def _base(character: str) -> str:
    """Return a character without its accents. Voiced kana are other letters, not accented ones."""
    if character.isascii() or "\uac00" <= character <= "\ud7a3":
        return character
    apart = unicodedata.normalize("NFD", character)
    if len(apart) > 1 and apart[-1] in _VOICED:
        return character
    return "".join(part for part in apart if not unicodedata.category(part).startswith("M"))


def _distinct(ways: Iterable[list[str]]) -> list[list[str]]:
    return [list(way) for way in dict.fromkeys(map(tuple, ways))]
