"""The stretch of a text that answers a question, cut where sentences end."""

from __future__ import annotations

import re
from typing import NamedTuple

from playhead.search.query import Query, highlight

CORE_CHARS = 160
"""The stretch is grown around a window of so many characters that shows most of what was asked."""

# A sentence ends at its stop with the quotes and brackets that close after it, and at the end of a line.
_BORDER = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*(\s+)|(?<=[。！？])(\s*)|(\s*\n\s*)")


class Stretch(NamedTuple):
    """Characters start to end (exclusive) of a text. is_match: what was asked for is in it."""

    start: int
    end: int
    is_match: bool


def telling_stretch(text: str, query: Query, chars_max: int) -> Stretch:
    """Return the stretch of at most `chars_max` characters that shows most of the question; without any, the beginning.

    It begins and ends with a sentence or a line, or between words where one sentence alone is too long.
    """
    core = highlight(text, query, min(CORE_CHARS, chars_max))
    start = text.find(core.text)
    if core.marks:
        first, last = start + core.marks[0][0], start + core.marks[-1][1]
    else:
        first = last = start
    return Stretch(*grown(text, first, last, chars_max), is_match=bool(core.marks))


def grown(text: str, first: int, last: int, chars_max: int) -> tuple[int, int]:
    """Return the ends of the stretch around text[first:last]: the whole sentences around it, and more behind them."""
    low, high = max(0, last - chars_max), min(len(text), first + chars_max)
    begins, ends = _borders(text, low, high)
    start = max((one for one in begins if one <= first), default=None)
    if start is None:
        # Most of the room goes to what led there, and some to what follows.
        start = _between_words(text, max(low, first - (chars_max - (last - first)) * 2 // 3), first)
    reach = min(len(text), start + chars_max)
    end = max((one for one in ends if last <= one <= reach), default=None)
    if end is None:
        end = _between_words_before(text, last, reach)
    # A short end of a text reads better with what led to it.
    earlier = min((one for one in begins if one < start and end - one <= chars_max), default=start)
    return (earlier if end - start < chars_max // 2 else start), end


def _borders(text: str, low: int, high: int) -> tuple[list[int], list[int]]:
    """Return where sentences begin and where they end, between two places of the text."""
    begins, ends = [0] if low == 0 else [], [len(text)] if high == len(text) else []
    for found in _BORDER.finditer(text, low, high):
        space = next(group for group in range(1, 4) if found.start(group) >= 0)
        ends.append(found.start(space))
        begins.append(found.end(space))
    return begins, ends


def _between_words(text: str, low: int, first: int) -> int:
    """Return where the first word after `low` begins, `first` at the latest; `low` where no word begins between."""
    found = re.compile(r"\s+").search(text, low, first)
    return found.end() if found and low > 0 else low


def _between_words_before(text: str, last: int, high: int) -> int:
    """Return where the last word before `high` ends, `last` at the earliest; `high` where no word ends between."""
    for at in range(high, last - 1, -1):
        if at == len(text) or text[at].isspace():
            return at
    return high
