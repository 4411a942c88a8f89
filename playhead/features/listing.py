"""Listing: the sessions of a store, newest first, filtered, a page at a time."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from playhead.errors import InvalidName, PlayheadError
from playhead.features.live import Clock, Entropy, Live
from playhead.model.ids import SessionKey
from playhead.stores.base import ROWS_PAGE_MAX, SessionRow, Store
from playhead.views.summary import Summary

T = TypeVar("T")

PAGE_MAX = 1_000
"""Most items of one page."""


PINNED = "pinned"
"""The label that makes a session pinned; lists show it as a star."""


class Listed(msgspec.Struct, frozen=True):
    """One session of a list. summary is None where it cannot be read; then `problem` says why."""

    key: SessionKey
    summary: Summary | None
    problem: str | None = None
    size_bytes: int | None = None

    @property
    def id(self) -> str:
        return self.key.id


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Items, the cursor that asks for those after them (None on the last page), and how many there are in all."""

    items: list[T]
    next_cursor: str | None
    total: int


class Wanted(msgspec.Struct, frozen=True):
    """Which sessions a list is asked for; None and "" mean any.

    query: words that all are in title, preview, agents, labels or directory, in any case. label: one that it has.
    since, until: when it was active last, inclusive and exclusive, UTC seconds.
    """

    query: str | None = None
    status: str | None = None
    agent: str | None = None
    cwd: str | None = None
    label: str | None = None
    since: float | None = None
    until: float | None = None


def list_sessions(
    store: Store,
    *,
    app: str | None,
    user: str | None,
    query: str | None,
    status: str | None,
    agent: str | None,
    cwd: str | None,
    sort: str,
    limit: int,
    cursor: str | None,
    clock: Clock,
    entropy: Entropy,
) -> Page[Listed]:
    """Return a page. Raises `InvalidName` for an unknown sort or a cursor that no page gave."""
    wanted = Wanted(query=query, status=status, agent=agent, cwd=cwd)
    ordered = all_sessions(store, wanted, app=app, user=user, sort=sort, clock=clock, entropy=entropy)
    order = _SORTS[sort]
    start = 0
    if cursor is not None:
        place = _decoded(cursor, sort)
        start = next((index for index, row in enumerate(ordered) if order(row) > place), len(ordered))
    limit = max(1, min(limit, PAGE_MAX))
    items = ordered[start : start + limit]
    is_last = start + limit >= len(ordered)
    return Page(items=items, next_cursor=None if is_last else _encoded(order(items[-1]), sort), total=len(ordered))


def all_sessions(
    store: Store,
    wanted: Wanted,
    *,
    app: str | None = None,
    user: str | None = None,
    sort: str = "last_active",
    clock: Clock,
    entropy: Entropy,
) -> list[Listed]:
    """Return every session that is wanted, in the order that pages have. Raises `InvalidName` for an unknown sort."""
    if sort not in _SORTS:
        raise InvalidName(f"sort must be one of {', '.join(_SORTS)}, not {sort!r}")
    rows = (_listed(store, row, clock, entropy) for row in session_rows(store, app=app, user=user))
    return sorted((row for row in rows if _matches(row, wanted)), key=_SORTS[sort])


def newest_key(store: Store, *, app: str, user: str) -> SessionKey | None:
    """Return a person's session whose last event is the newest, or None where there is none."""
    rows = [row for row in session_rows(store, app=app, user=user) if row.problem is None]
    return max(rows, key=lambda row: (row.at, row.key)).key if rows else None


def session_rows(store: Store, *, app: str | None = None, user: str | None = None) -> Iterator[SessionRow]:
    """Yield the row of every session, in key order, a page at a time."""
    after: SessionKey | None = None
    while page := store.sessions(app=app, user=user, after=after, limit=ROWS_PAGE_MAX):
        yield from page
        after = page[-1].key
        if len(page) < ROWS_PAGE_MAX:
            return


def _listed(store: Store, row: SessionRow, clock: Clock, entropy: Entropy) -> Listed:
    """Return the row; a saved one that is behind the log is worked out again from the session's tail, and kept."""
    if row.problem is not None:
        return Listed(row.key, None, row.problem, row.size_bytes)
    try:
        found = _summary(store, row, clock, entropy)
        if found.status == "interrupted" and store.holder(row.key) is not None:
            # Whoever is in the turn is alive. That is not in the log, so it is looked up and never kept.
            found = msgspec.structs.replace(found, status="running")
        return Listed(row.key, found, None, row.size_bytes)
    except PlayheadError as error:
        return Listed(row.key, None, str(error), row.size_bytes)


def _summary(store: Store, row: SessionRow, clock: Clock, entropy: Entropy) -> Summary:
    if row.summary is not None and row.summary_seq == row.seq:
        with contextlib.suppress(msgspec.DecodeError):
            return _read_summary.decode(row.summary)
    found = Live(store, row.key, clock=clock, entropy=entropy).summary()
    with contextlib.suppress(PlayheadError):  # A store that cannot be written still lists.
        store.save_summary(row.key, found.seq, msgspec.json.encode(found).decode())
    return found


_read_summary = msgspec.json.Decoder(Summary)


def _matches(row: Listed, wanted: Wanted) -> bool:
    summary = row.summary
    if summary is None:
        # Nothing is known of it that a filter could hold against it but its status and the time.
        other = (wanted.query, wanted.agent, wanted.cwd, wanted.label, wanted.since, wanted.until)
        return wanted.status in (None, "unreadable") and all(one in (None, "") for one in other)
    if wanted.status is not None and summary.status != wanted.status:
        return False
    if wanted.agent is not None and wanted.agent not in summary.agents:
        return False
    if wanted.cwd is not None and summary.cwd != wanted.cwd:
        return False
    if wanted.label is not None and wanted.label not in summary.labels:
        return False
    if wanted.since is not None and summary.last_active_at < wanted.since:
        return False
    if wanted.until is not None and summary.last_active_at >= wanted.until:
        return False
    return not wanted.query or _has_words(summary, wanted.query)


def _has_words(summary: Summary, query: str) -> bool:
    texts = (summary.title, summary.preview, *summary.agents, *summary.labels, summary.cwd or "")
    haystack = "\n".join(texts).casefold()
    return all(word in haystack for word in query.casefold().split())


Place = tuple[Any, ...]


def _newest_first(field: str) -> Callable[[Listed], Place]:
    def place(row: Listed) -> Place:
        at = getattr(row.summary, field) if row.summary else 0.0
        return (-at, row.key.app, row.key.user, row.key.id)

    return place


def _by_title(row: Listed) -> Place:
    title = row.summary.title if row.summary else "\U0010ffff"
    return (title.casefold(), row.key.app, row.key.user, row.key.id)


_SORTS: dict[str, Callable[[Listed], Place]] = {
    "last_active": _newest_first("last_active_at"),
    "created": _newest_first("created_at"),
    "title": _by_title,
}


def _encoded(place: Place, sort: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([sort, *place])).decode().rstrip("=")


def _decoded(cursor: str, sort: str) -> Place:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        decoded = base64.urlsafe_b64decode(padded)
        cursor_sort, *place = msgspec.json.decode(decoded, type=tuple[str, float | str, str, str, str])
    except (ValueError, TypeError) as error:
        raise InvalidName("this cursor comes from no list of sessions; ask without one") from error
    if cursor_sort != sort or isinstance(place[0], str) != (sort == "title"):
        raise InvalidName("this cursor belongs to a list in another order; ask without one")
    return tuple(place)
