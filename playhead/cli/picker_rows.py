"""The rows of the session picker: which the filter leaves, which is chosen, and what each says. No terminal here.

Of ten thousand rows a key formats those that are in view, and filters texts that were made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from playhead.cli import text as texts
from playhead.cli.moments import age
from playhead.cli.naming import title_of
from playhead.cli.pin import STAR
from playhead.features.listing import PINNED, Listed
from playhead.model.ids import SessionKey
from playhead.stores.listing import text_of_row, words_of

_GAP = "  "
_STATUS_COLUMNS = 11
_TURNS_COLUMNS = 5
_AGE_COLUMNS = 6
_AGENTS_COLUMNS_MIN = 8
_AGENTS_COLUMNS_MAX = 20
_TITLE_COLUMNS_MIN = 16
_TITLE_CHARS_LOOKED_AT = 200
_LEAVE = (2, 0, 1)
"""Age, status and turns: where they stand among the fixed cells, in the order in which they leave a narrow terminal."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A session, and the text that the filter looks in."""

    listed: Listed
    haystack: str


class Rows:
    """The sessions to pick from, those that the filter leaves, and which of them is chosen and in view.

    formatted_count: rows that were formatted since the beginning, which a test counts.
    """

    def __init__(self, now: float) -> None:
        self._now = now
        self._rows: list[_Row] = []
        self._keys: set[SessionKey] = set()
        self._left: list[_Row] = []
        self._query = ""
        self._at = 0
        self._top = 0
        self.formatted_count = 0

    def fill(self, listed: Iterable[Listed]) -> None:
        """Take the sessions, in the order in which they are shown, in place of those that there are."""
        self._rows, self._left, self._keys = [], [], set()
        self._at = self._top = 0
        self.add(listed)

    def add(self, listed: Iterable[Listed]) -> None:
        """Take sessions that are shown below the others. What is typed, chosen and in view stays.

        One that is there already stays where it is: it moved in the list while that was read.
        """
        words = words_of(self._query)
        for row in listed:
            if row.key in self._keys:
                continue
            self._keys.add(row.key)
            added = _Row(row, haystack(row))
            self._rows.append(added)
            if _has_all(added, words):
                self._left.append(added)

    def filter(self, query: str) -> None:
        """Leave the rows that have every word, as `list --query` does. The first of them is chosen."""
        words = words_of(query)
        # What is typed on to a filter leaves some of what that left.
        among = self._left if self._query and query.startswith(self._query) else self._rows
        self._query = query
        self._left = [row for row in among if _has_all(row, words)]
        self._at = self._top = 0

    def move(self, by: int) -> None:
        """Choose the row so many further down, or up; at most the last, at least the first."""
        self._at = max(0, min(self._at + by, len(self._left) - 1))

    @property
    def chosen(self) -> SessionKey | None:
        return self._left[self._at].listed.key if self._left else None

    @property
    def query(self) -> str:
        return self._query

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows are left, and how many there are."""
        return len(self._left), len(self._rows)

    def in_view(self, height: int, width: int) -> list[tuple[str, bool]]:
        """Return the rows that fit in so many lines, each as wide as the terminal, and whether it is the chosen one."""
        height = max(height, 1)
        if self._at < self._top:
            self._top = self._at
        elif self._at >= self._top + height:
            self._top = self._at - height + 1
        shown = self._left[self._top : self._top + height]
        self.formatted_count += len(shown)
        return [
            (row_text(row.listed, self._now, width), self._top + index == self._at) for index, row in enumerate(shown)
        ]


def haystack(row: Listed) -> str:
    """Return what the filter looks in: what `list --query` looks in. It finds nothing that cannot be read."""
    return text_of_row(row.summary) if row.summary is not None else ""


def _has_all(row: _Row, words: Sequence[str]) -> bool:
    return all(word in row.haystack for word in words)


def row_text(row: Listed, now: float, width: int) -> str:
    """Return a row of exactly `width` columns: title, agents, turns, status, and how long ago it was active.

    Where that leaves the title no room, the age goes first, then the status, then the turns.
    """
    summary = row.summary
    if summary is None:
        agents, turns, status, active = "", "", "unreadable", ""
    else:
        agents, turns = " ".join(summary.agents), str(summary.turn_count)
        status, active = summary.status, age(summary.last_active_at, now)
    star = STAR if summary is not None and PINNED in summary.labels else " " * texts.width(STAR)
    fixed = [
        _cell(status, _STATUS_COLUMNS),
        _cell(turns, _TURNS_COLUMNS, is_right=True),
        _cell(active, _AGE_COLUMNS, is_right=True),
    ]
    leaving = [fixed[place] for place in _LEAVE]
    while leaving and _left(star, fixed, width) < _TITLE_COLUMNS_MIN:
        fixed.remove(leaving.pop(0))
    left = _left(star, fixed, width)
    agents_columns = min(_AGENTS_COLUMNS_MAX, left - _TITLE_COLUMNS_MIN - len(_GAP))
    if agents_columns < _AGENTS_COLUMNS_MIN:
        agents_columns = 0
    title_columns = max(left - agents_columns - (len(_GAP) if agents_columns else 0), 0)
    cells = [_cell(_called(row), title_columns)]
    if agents_columns:
        cells.append(_cell(agents, agents_columns))
    return texts.padded(texts.fitted(star + _GAP.join([*cells, *fixed]), width), width)


def _left(star: str, fixed: Sequence[str], width: int) -> int:
    """Return how many columns the cells leave to the title and the agents."""
    return width - texts.width(star) - sum(texts.width(cell) + len(_GAP) for cell in fixed)


def _called(row: Listed) -> str:
    """Return the title; the id where nothing of that can be seen, as it may be of characters without a width."""
    title = title_of(row)
    return title if texts.width(texts.one_line(title[:_TITLE_CHARS_LOOKED_AT])) else str(row.key)


def _cell(text: str, columns: int, *, is_right: bool = False) -> str:
    cut = texts.fitted(texts.one_line(text[: columns * 4 + 16]), columns)
    return " " * (columns - texts.width(cut)) + cut if is_right else texts.padded(cut, columns)
