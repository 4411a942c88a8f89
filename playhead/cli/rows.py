"""Rows of the listing as commands take them: as many as they need, page after page."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from playhead.features.listing import PAGE_MAX, Listed, Page, Wanted, list_sessions
from playhead.model.ids import SessionKey
from playhead.session import Sessions
from playhead.stores.listing import Progress, Sort

ANY = Wanted()


def pages(
    sessions: Sessions,
    wanted: Wanted = ANY,
    *,
    sort: Sort = "last_active",
    is_reversed: bool = False,
    cursor: str | None = None,
    first: int = PAGE_MAX,
    on_progress: Progress | None = None,
) -> Iterator[Page[Listed]]:
    """Yield the pages of a list, the first with `first` rows; each is read when it is asked for."""
    limit = first
    while True:
        page = list_sessions(
            sessions.store,
            wanted,
            sort=sort,
            is_reversed=is_reversed,
            limit=limit,
            cursor=cursor,
            clock=time.time,
            entropy=os.urandom,
            on_progress=on_progress,
        )
        yield page
        if page.next_cursor is None:
            return
        cursor, limit = page.next_cursor, PAGE_MAX


def rows(sessions: Sessions, wanted: Wanted = ANY, *, first: int = PAGE_MAX) -> Iterator[Listed]:
    """Yield the rows that are wanted, the most recently active first; no page is read that nobody comes to."""
    for page in pages(sessions, wanted, first=first):
        yield from page.items


def taken(
    sessions: Sessions,
    wanted: Wanted,
    *,
    count: int | None,
    sort: Sort = "last_active",
    is_reversed: bool = False,
    cursor: str | None = None,
    on_progress: Progress | None = None,
) -> Page[Listed]:
    """Return so many rows as one page, however many that are; all of them where `count` is None."""
    items: list[Listed] = []
    while True:
        left = PAGE_MAX if count is None else min(count - len(items), PAGE_MAX)
        page = next(
            pages(
                sessions,
                wanted,
                sort=sort,
                is_reversed=is_reversed,
                cursor=cursor,
                first=left,
                on_progress=on_progress,
            )
        )
        items += page.items
        cursor = page.next_cursor
        if cursor is None or len(items) == count:
            return Page(items, cursor, page.total)


def row_of(sessions: Sessions, key: SessionKey) -> Listed | None:
    """Return the row of one session, None where it is not there."""
    wanted = Wanted(app=key.app, user=key.user, begins=key.id)
    return next((row for row in rows(sessions, wanted) if row.key == key), None)
