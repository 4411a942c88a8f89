"""The rows of a store in memory: every row is looked at for every answer, which is simple and obviously right."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from playhead.model.ids import SessionKey
from playhead.stores.base import SessionRow
from playhead.stores.listing import (
    NOT_YET,
    PAGE_MAX,
    Activity,
    Facet,
    ListingPage,
    ListingRow,
    Place,
    Progress,
    Refreshed,
    Sort,
    Wanted,
    by_count,
    facet_values,
    fits,
    is_current,
    parent_key,
    place,
    words_of,
)
from playhead.views.summary import Summary


class Listable(Protocol):
    """A session as far as its row goes. kept: up to which event its row holds, the row, and what is wrong with it."""

    kept: tuple[int, Summary | None, str | None]

    def row(self) -> SessionRow:
        """Return where its log ends, and the row that its writer saved."""


class MemoryListing:
    """A `Listing` over sessions in memory.

    opened: a context in which the store is open and nobody else writes. sessions: those that there are.
    """

    def __init__(
        self,
        opened: Callable[[], contextlib.AbstractContextManager[Any]],
        sessions: Callable[[], Mapping[SessionKey, Listable]],
    ) -> None:
        self._opened = opened
        self._sessions = sessions

    def behind(self, *, limit: int = PAGE_MAX) -> list[SessionKey]:
        with self._opened():
            stale = [key for key, session in self._sessions().items() if not _is_held(session)]
            return sorted(stale)[: max(0, limit)]

    def put(self, key: SessionKey, seq: int, summary: Summary | None, *, problem: str | None = None) -> None:
        with self._opened():
            session = self._sessions().get(key)
            if session is not None and seq >= _known(session)[0]:
                session.kept = (seq, summary, problem)

    def page(
        self,
        wanted: Wanted,
        *,
        sort: Sort = "last_active",
        is_reversed: bool = False,
        after: Place | None = None,
        limit: int = 50,
    ) -> ListingPage:
        words = words_of(wanted.query)
        with self._opened():
            placed = sorted(
                ((place(row, sort, words), row) for row in self._rows() if fits(row, wanted)),
                key=lambda one: one[0],
                reverse=is_reversed,
            )
        left = [
            row
            for where, row in placed
            if after is None or (where < tuple(after) if is_reversed else where > tuple(after))
        ]
        return ListingPage(left[: max(0, min(limit, PAGE_MAX))], len(placed))

    def facets(self, wanted: Wanted, names: Sequence[Facet]) -> dict[Facet, dict[str, int]]:
        with self._opened():
            rows = [row for row in self._rows() if fits(row, wanted)]
        found: dict[Facet, dict[str, int]] = {}
        for name in names:
            counted = Counter(value for row in rows for value in facet_values(row.summary, name))
            found[name] = by_count(counted)
        return found

    def forks(self, key: SessionKey) -> list[SessionKey]:
        with self._opened():
            return sorted(row.key for row in self._rows() if parent_key(row.summary) == key)

    def activity(self) -> Activity:
        with self._opened():
            rows = self._rows()
        return Activity.of([row.summary.last_active_at for row in rows if row.summary is not None])

    def session_bytes(self) -> int | None:
        with self._opened():
            return None

    def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        with self._opened():
            count = len(self._sessions())
        if on_progress is not None:
            on_progress(count, count)
        return Refreshed(looked_at=count, read=count if full else 0, removed=0, unreadable=0)

    def _rows(self) -> list[ListingRow]:
        known = {key: _known(session) for key, session in self._sessions().items()}
        forks = Counter(parent_key(summary) for _, summary, _ in known.values())
        return [ListingRow(key, summary, problem, None, forks[key]) for key, (_, summary, problem) in known.items()]


def _is_held(session: Listable) -> bool:
    seq, summary, problem = _known(session)
    end = session.row().seq
    return seq == end and (summary is None or is_current(summary, end)) and problem != NOT_YET


def _known(session: Listable) -> tuple[int, Summary | None, str | None]:
    """Return up to which event the row holds, the row, and what is wrong with the session."""
    row, kept = session.row(), session.kept
    saved = _decoded(row.summary)
    if saved is not None and row.summary_seq > kept[0]:
        return row.summary_seq, saved, None
    return kept if kept[0] else (0, None, NOT_YET)


def _decoded(text: str | None) -> Summary | None:
    if text is not None:
        with contextlib.suppress(msgspec.DecodeError):
            return _read_summary.decode(text)
    return None


_read_summary = msgspec.json.Decoder(Summary)
