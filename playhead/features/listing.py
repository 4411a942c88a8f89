"""Listing: the sessions of a store in any order, filtered, a page at a time, with every row as it is now.

A store keeps the rows (`Store.listing`) and knows which of them are behind their logs. Those are worked out here, from
the tail of each, before anything is shown. Nothing is written to a session.

Whether somebody is in a turn is in no row: it is looked up for rows that say `interrupted`, which are `running` then.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from playhead.errors import InvalidName, PlayheadError, SessionNotFound, StoreClosed
from playhead.features.live import Clock, Entropy, Live
from playhead.model.ids import SessionKey
from playhead.stores.base import Store
from playhead.stores.listing import (
    PAGE_MAX as PAGE_MAX,
    SORTS,
    Facet,
    ListingPage,
    ListingRow,
    Place,
    Progress,
    Refreshed,
    Sort,
    Wanted as Wanted,
    by_count,
    facet_values,
    place,
    words_of,
)
from playhead.views.summary import Summary

T = TypeVar("T")

Listed = ListingRow
"""One session of a list."""

PINNED = "pinned"
"""The label that makes a session pinned; lists show it as a star."""

INTERRUPTED, RUNNING = "interrupted", "running"
"""Statuses of a turn that began and did not end, by whether whoever is in it is alive."""

ROUNDS_MAX = 3
"""A row that is behind is worked out so often for one list: its session may be written to all the while."""

PAGES_MAX = 6
"""A page is asked for so often where rows of it turn out not to hold."""

LOG = logging.getLogger("playhead")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Items, the cursor that asks for those after them (None on the last page), and how many there are in all."""

    items: list[T]
    next_cursor: str | None
    total: int


def list_sessions(
    store: Store,
    wanted: Wanted,
    *,
    sort: str = "last_active",
    is_reversed: bool = False,
    limit: int = 50,
    cursor: str | None = None,
    refresh: bool = False,
    full_rescan: bool = False,
    clock: Clock = time.time,
    entropy: Entropy = os.urandom,
    on_progress: Progress | None = None,
) -> Page[Listed]:
    """Return a page. Raises `InvalidName` for an unknown sort or a cursor that no page of this order gave.

    refresh, full_rescan: compare all sessions with their rows first, or read all again (`refresh_listing`); where that
    fails, it is logged and the rows that there are are served.
    """
    order, words = _sort(sort), words_of(wanted.query)
    after = None if cursor is None else _decoded(cursor, order, is_reversed, words)
    limit = max(1, min(limit, PAGE_MAX))
    rows = _Rows(store, wanted, clock, entropy)
    if refresh or full_rescan:
        with rows.served_anyway():
            refresh_listing(store, full=full_rescan, clock=clock, entropy=entropy, on_progress=on_progress)
    rows.settle(on_progress)
    found, total = rows.first(order, is_reversed, after, limit + 1)
    items = found[:limit]
    is_last = len(found) <= limit
    next_cursor = None if is_last else _encoded(rows.places[limit - 1], order, is_reversed)
    return Page(items=items, next_cursor=next_cursor, total=total)


def all_sessions(
    store: Store,
    wanted: Wanted,
    *,
    sort: str = "last_active",
    is_reversed: bool = False,
    clock: Clock = time.time,
    entropy: Entropy = os.urandom,
) -> list[Listed]:
    """Return every session that is wanted, in the order that pages have, each once. Raises `InvalidName`."""
    order, words = _sort(sort), words_of(wanted.query)
    rows = _Rows(store, wanted, clock, entropy)
    rows.settle()
    return sorted(rows.each(), key=lambda row: place(row, order, words), reverse=is_reversed)


def first_sessions(
    store: Store,
    wanted: Wanted,
    *,
    sort: str = "last_active",
    is_reversed: bool = False,
    count: int,
    clock: Clock = time.time,
    entropy: Entropy = os.urandom,
) -> tuple[list[Listed], int]:
    """Return the first sessions that are wanted, `count` at most, and how many there are. Raises `InvalidName`."""
    order = _sort(sort)
    rows = _Rows(store, wanted, clock, entropy)
    rows.settle()
    return rows.first(order, is_reversed, None, max(0, count))


def each_session(
    store: Store, wanted: Wanted, *, clock: Clock = time.time, entropy: Entropy = os.urandom
) -> Iterator[Listed]:
    """Yield every session that is wanted, each once, a page at a time, in no order to rely on."""
    rows = _Rows(store, wanted, clock, entropy)
    rows.settle()
    yield from rows.each()


def facets(
    store: Store,
    wanted: Wanted,
    names: Sequence[Facet],
    *,
    clock: Clock = time.time,
    entropy: Entropy = os.urandom,
) -> dict[Facet, dict[str, int]]:
    """Return for each facet how many of the wanted sessions have which value, most frequent first, then by value."""
    rows = _Rows(store, wanted, clock, entropy)
    rows.settle()
    return rows.facets(names)


def newest_key(
    store: Store, *, app: str, user: str, clock: Clock = time.time, entropy: Entropy = os.urandom
) -> SessionKey | None:
    """Return a person's session that was active last, or None where there is none that can be read."""
    rows = _Rows(store, Wanted(app=app, user=user), clock, entropy)
    rows.settle()
    found, total = rows.first("last_active", False, None, 1)
    if found and found[0].summary is None and total > 1:
        # Those that cannot be read come after the year 1970, and a clock may have been before it.
        found = [row for row in rows.first("last_active", False, None, total)[0] if row.summary is not None]
    return found[0].key if found and found[0].summary is not None else None


def refresh_listing(
    store: Store,
    *,
    full: bool = False,
    clock: Clock = time.time,
    entropy: Entropy = os.urandom,
    on_progress: Progress | None = None,
) -> Refreshed:
    """Compare every session with its row and work out those that are behind; with `full`, read all again.

    Raises what is wrong where the store cannot be looked at; no row changed then.
    """
    done = store.listing.refresh(full=full, on_progress=on_progress)
    worked_out, unreadable = _settle(store, clock, entropy, on_progress)
    return msgspec.structs.replace(done, read=max(done.read, worked_out), unreadable=max(done.unreadable, unreadable))


class _Rows:
    """The rows of a store that are wanted, as they are now."""

    def __init__(self, store: Store, wanted: Wanted, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._listing = store.listing
        self._wanted = _without_blanks(wanted)
        self._clock = clock
        self._entropy = entropy
        self._is_stale = False
        self._anew: dict[SessionKey, Listed] = {}
        """Rows as they are, where the kept ones stay behind. The kept ones tell where a page goes on."""
        self.places: list[Place] = []
        """Where the rows stand that `first` returned last."""

    @contextlib.contextmanager
    def served_anyway(self) -> Iterator[None]:
        """Let a failure to look at the store be logged, and stale rows be served; it is raised where there are none."""
        try:
            yield
        except StoreClosed:
            raise
        except PlayheadError as error:
            if self._listing.page(Wanted(), limit=0).total == 0:
                raise
            LOG.warning("the list of %s may be stale: %s", self._store.url, error)
            self._is_stale = True

    def settle(self, on_progress: Progress | None = None) -> None:
        """Work out the rows that are behind."""
        with self.served_anyway():
            _settle(self._store, self._clock, self._entropy, on_progress)

    def first(self, sort: Sort, is_reversed: bool, after: Place | None, count: int) -> tuple[list[Listed], int]:
        """Return the first rows behind a place, and how many rows are wanted in all."""
        words = words_of(self._wanted.query)
        if self._is_told_apart:
            placed = sorted(
                ((place(row, sort, words), row) for row in self.each()), key=lambda one: one[0], reverse=is_reversed
            )
            left = [one for one in placed if after is None or (one[0] < after if is_reversed else one[0] > after)][
                :count
            ]
            self.places = [where for where, _ in left]
            return [row for _, row in left], len(placed)
        found: dict[SessionKey, Listed] = {}
        total: int | None = None
        while True:
            asked = min(count - len(found), PAGE_MAX)
            page = self._page(self._wanted, sort, is_reversed, after, asked)
            total = page.total if total is None else total
            for row in page.rows:  # One that is written to meanwhile may come again, further on.
                found.setdefault(row.key, row)
            if len(page.rows) < asked or len(found) >= count:
                self.places = [place(row, sort, words) for row in found.values()]
                return [self._shown(row) for row in found.values()], total
            after = place(page.rows[-1], sort, words)

    def each(self) -> Iterator[Listed]:
        """Yield every row once, in no order to rely on."""
        if not self._is_told_apart:
            yield from map(self._shown, self._kept(self._wanted))
            return
        # Only rows that say `interrupted` can be of a turn that goes on; `running` itself somebody may have set.
        met: set[SessionKey] = set()
        for status in dict.fromkeys((INTERRUPTED, self._wanted.status)):
            for row in map(self._shown, self._kept(msgspec.structs.replace(self._wanted, status=status))):
                if row.key not in met and row.summary is not None and row.summary.status == self._wanted.status:
                    met.add(row.key)
                    yield row

    def facets(self, names: Sequence[Facet]) -> dict[Facet, dict[str, int]]:
        if self._is_told_apart:
            rows = list(self.each())
            return {
                name: by_count(Counter(value for row in rows for value in facet_values(row.summary, name)))
                for name in names
            }
        found = self._listing.facets(self._wanted, names)
        interrupted = found.get("status", {}).get(INTERRUPTED, 0)
        if interrupted:
            wanted = msgspec.structs.replace(self._wanted, status=INTERRUPTED)
            left = sum(1 for _ in _Rows(self._store, wanted, self._clock, self._entropy).each())
            counted = Counter(found["status"])
            counted.update({INTERRUPTED: left - interrupted, RUNNING: interrupted - left})
            found["status"] = by_count(+counted)
        return found

    @property
    def _is_told_apart(self) -> bool:
        return self._wanted.status in (INTERRUPTED, RUNNING)

    def _kept(self, wanted: Wanted) -> Iterator[Listed]:
        """Yield every row once, as it is kept.

        They are read in the order in which they were created, since there none moves past the place that a page goes on
        from while others write.
        """
        met: set[SessionKey] = set()
        after: Place | None = None
        while True:
            page = self._page(wanted, "created", False, after, PAGE_MAX)
            for row in page.rows:
                if row.key not in met:
                    met.add(row.key)
                    yield row
            if len(page.rows) < PAGE_MAX:
                return
            after = place(page.rows[-1], "created")

    def _page(self, wanted: Wanted, sort: Sort, is_reversed: bool, after: Place | None, limit: int) -> ListingPage:
        """Return a page whose rows hold: where some turn out not to, they are worked out and it is asked for again."""
        for _ in range(PAGES_MAX):
            page = self._listing.page(wanted, sort=sort, is_reversed=is_reversed, after=after, limit=limit)
            if page.is_settled or self._is_stale:
                return page
            self.settle()
        # Somebody writes all the while, or removes what is kept as fast as it is worked out.
        self._anew |= {row.key: self._read(row) for row in page.rows if row.key in page.behind}
        return page

    def _read(self, row: Listed) -> Listed:
        """Return a row as its log has it at this moment."""
        _, summary, problem = _read(self._store, row.key, self._clock, self._entropy)
        if summary is None and problem is None:
            return row  # It went just now.
        return msgspec.structs.replace(row, summary=summary, problem=problem)

    def _shown(self, row: Listed) -> Listed:
        row = self._anew.get(row.key, row)
        summary = row.summary
        if summary is None or summary.status != INTERRUPTED:
            return row
        with contextlib.suppress(PlayheadError):  # What cannot be looked up leaves the row as its log has it.
            if self._store.holder(row.key) is not None:
                return msgspec.structs.replace(row, summary=msgspec.structs.replace(summary, status=RUNNING))
        return row


def _settle(store: Store, clock: Clock, entropy: Entropy, on_progress: Progress | None = None) -> tuple[int, int]:
    """Work out the rows that are behind, and return how many sessions were read, and how many could not be."""
    tries: Counter[SessionKey] = Counter()
    problems: dict[SessionKey, str] = {}
    given_up = 0
    is_all = False
    while not is_all:
        # Those that are written to all the while are passed over at some point, and must hide no other.
        limit = PAGE_MAX + given_up
        behind = store.listing.behind(limit=limit)
        is_all = len(behind) < limit
        keys = [key for key in behind if tries[key] < ROUNDS_MAX]
        if not keys:
            break
        for key in keys:
            if on_progress is not None:
                on_progress(len(tries), len(tries) + len(keys))
            tries[key] += 1
            given_up += tries[key] == ROUNDS_MAX
            problem = _work_out(store, key, clock, entropy)
            problems.pop(key, None)
            if problem is not None:
                problems[key] = problem
    return len(tries), len(problems)


_WRONG_SHAPE = (LookupError, TypeError, ValueError, AttributeError)
"""What reading a log raises that is damaged in a way no check foresaw. One such session must not hide all others."""


def _work_out(store: Store, key: SessionKey, clock: Clock, entropy: Entropy) -> str | None:
    """Give the store the row of a session as it is now, or what is wrong with it, and return that."""
    seq, summary, problem = _read(store, key, clock, entropy)
    if summary is not None or problem is not None:
        with contextlib.suppress(PlayheadError):  # A row that cannot be kept is worked out again for the next list.
            store.listing.put(key, seq, summary, problem=problem)
    return problem


def _read(store: Store, key: SessionKey, clock: Clock, entropy: Entropy) -> tuple[int, Summary | None, str | None]:
    """Return up to which event a row holds, the row, and what is wrong with the session; the latter two are None where
    it is gone."""
    seq, summary, problem = 0, None, None
    try:
        seq = store.tip(key).seq
        summary = Live(store, key, clock=clock, entropy=entropy).summary()
        seq = summary.seq
    except StoreClosed:
        raise
    except SessionNotFound:
        pass  # It was deleted just now.
    except PlayheadError as error:
        problem = str(error)
    except _WRONG_SHAPE as error:
        problem = f"its log cannot be read: {type(error).__name__}: {error}"
    return seq, summary, problem


def _without_blanks(wanted: Wanted) -> Wanted:
    """Return what is wanted with None for every wish that is empty: both mean any."""
    return msgspec.structs.replace(
        wanted, **{name: None for name, value in msgspec.structs.asdict(wanted).items() if value == ""}
    )


# Orders and cursors.


def _sort(name: str) -> Sort:
    for sort in SORTS:
        if sort == name:
            return sort
    raise InvalidName(f"sort must be one of {', '.join(SORTS)}, not {name!r}")


def _encoded(where: Place, sort: Sort, is_reversed: bool) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([sort, is_reversed, *where])).decode().rstrip("=")


def _decoded(cursor: str, sort: Sort, is_reversed: bool, words: Sequence[str]) -> Place:
    """Return the place that a cursor stands for. It may come from anywhere, so every piece of it is checked."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        made_for, was_reversed, *where = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=list[Any])
    except (ValueError, TypeError) as error:
        raise InvalidName("this cursor comes from no list of sessions; ask without one") from error
    if (made_for, was_reversed) != (sort, is_reversed) or not isinstance(was_reversed, bool):
        raise InvalidName("this cursor belongs to a list in another order; ask without one")
    kinds = _PLACES["relevance" if sort == "relevance" and words else "title" if sort == "title" else "last_active"]
    if len(where) != len(kinds) or not all(fits(piece) for fits, piece in zip(kinds, where, strict=True)):
        raise InvalidName("this cursor comes from no list of sessions; ask without one")
    return tuple(where)


def _is_text(piece: object) -> bool:
    return isinstance(piece, str)


def _is_time(piece: object) -> bool:
    return isinstance(piece, float) and math.isfinite(piece)


def _is_rank(piece: object) -> bool:
    return type(piece) is int and abs(piece) <= _RANK_MAX


_RANK_MAX = 2**31
"""No query has so many words."""

_PLACES: dict[Sort, tuple[Callable[[object], bool], ...]] = {
    "title": (_is_text, _is_text, _is_text, _is_text),
    "last_active": (_is_time, _is_text, _is_text, _is_text),
    "relevance": (_is_rank, _is_time, _is_text, _is_text, _is_text),
}
