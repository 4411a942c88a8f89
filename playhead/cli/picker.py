"""A list of sessions to pick one from: type to filter, move, look at the end of one, take it.

`Rows` is what the list holds and shows, and touches no terminal. Of ten thousand rows a key formats those that are in
view, and filters texts that were made once; `picked` shows it, and reads sessions and previews on threads of their own.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from playhead.cli import text as texts
from playhead.cli.moments import age
from playhead.cli.naming import title_of
from playhead.cli.page import print_entries
from playhead.cli.pin import STAR
from playhead.cli.terminal import Terminal
from playhead.errors import PlayheadError
from playhead.features.listing import PINNED, Listed, Wanted, all_sessions
from playhead.model.ids import SessionKey
from playhead.session import Sessions

PREVIEW_EVENTS = 40
"""So many of a session's last events are read for its preview, whatever its length."""
PREVIEWS_KEPT = 64
FRAME_LINES = 2
"""The line that is typed in, and the line that names the keys."""

KEYS = "type to filter · ↑↓ move · Enter resume · Tab preview · Esc leave"

_GAP = "  "
_STATUS_COLUMNS = 11
_TURNS_COLUMNS = 5
_AGE_COLUMNS = 6
_AGENTS_COLUMNS_MAX = 20
_TITLE_COLUMNS_MIN = 16


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
        self._left: list[_Row] = []
        self._query = ""
        self._at = 0
        self._top = 0
        self.formatted_count = 0

    def fill(self, listed: Sequence[Listed]) -> None:
        """Take the sessions, in the order in which they are shown."""
        self._rows = [_Row(row, haystack(row)) for row in listed]
        query, self._query = self._query, ""
        self.filter(query)

    def filter(self, query: str) -> None:
        """Leave the rows that have every word, as `list --query` does. The first of them is chosen."""
        words = query.casefold().split()
        # What is typed on to a filter leaves some of what that left.
        among = self._left if self._query and query.startswith(self._query) else self._rows
        self._query = query
        self._left = [row for row in among if all(word in row.haystack for word in words)]
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
    """Return what the filter looks in: what `list --query` looks in."""
    summary = row.summary
    if summary is None:
        return f"{row.key.id}\n{row.problem or ''}".casefold()
    return "\n".join((summary.title, summary.preview, *summary.agents, *summary.labels, summary.cwd or "")).casefold()


def row_text(row: Listed, now: float, width: int) -> str:
    """Return a row of exactly `width` columns: title, agents, turns, status, and how long ago it was active."""
    summary = row.summary
    if summary is None:
        agents, turns, status, active = "", "", "unreadable", ""
    else:
        agents, turns = " ".join(summary.agents), str(summary.turn_count)
        status, active = summary.status, age(summary.last_active_at, now)
    star = STAR if summary is not None and PINNED in summary.labels else " " * texts.width(STAR)
    fixed = [_cell(status, _STATUS_COLUMNS), _cell(turns, _TURNS_COLUMNS, is_right=True)]
    fixed.append(_cell(active, _AGE_COLUMNS, is_right=True))
    left = width - texts.width(star) - sum(texts.width(cell) + len(_GAP) for cell in fixed)
    agents_columns = min(_AGENTS_COLUMNS_MAX, max(left - _TITLE_COLUMNS_MIN - len(_GAP), 0))
    title_columns = max(left - agents_columns - (len(_GAP) if agents_columns else 0), 0)
    cells = [_cell(title_of(row), title_columns)]
    if agents_columns:
        cells.append(_cell(agents, agents_columns))
    return texts.padded(texts.fitted(star + _GAP.join([*cells, *fixed]), width), width)


def _cell(text: str, columns: int, *, is_right: bool = False) -> str:
    cut = texts.fitted(texts.one_line(text[: columns * 4 + 16]), columns)
    return " " * (columns - texts.width(cut)) + cut if is_right else texts.padded(cut, columns)


def preview(sessions: Sessions, key: SessionKey, width: int) -> str:
    """Return the end of a session's transcript as plain lines, safe to show; of one that cannot be read, why."""
    try:
        session = sessions.get(key.id, app=key.app, user=key.user)
        entries = session.transcript(last=PREVIEW_EVENTS)
    except PlayheadError as error:
        return texts.one_line(str(error))
    out = io.StringIO()
    page = Terminal(out, out, {"COLUMNS": str(width), "NO_COLOR": "1"})
    page.line(texts.one_line(str(key)))
    print_entries(page, entries, tools="short")
    return out.getvalue()


def picked(sessions: Sessions, *, now: float) -> SessionKey | None:
    """Let a person pick a session; return its key, or None where they leave without. Raises `ImportError` where
    prompt_toolkit, which shows the list, is not installed."""
    # Loaded on use: no other command needs it.
    from playhead.cli.picker_screen import shown

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="picker") as reader:
        return shown(
            Rows(now),
            load=lambda: reader.submit(_all_rows, sessions),
            preview=lambda key, width: reader.submit(preview, sessions, key, width),
        )


def _all_rows(sessions: Sessions) -> list[Listed]:
    return all_sessions(sessions.store, Wanted(), sort="last_active", clock=time.time, entropy=os.urandom)
