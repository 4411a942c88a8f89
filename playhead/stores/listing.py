"""The rows of a list: what can be asked of them, in which order they come, and what a store promises of them.

A row is a cache of what a session's log says. A store keeps the rows so that a page of them costs what the page holds,
however many sessions there are; which of them do not hold any more, it finds out itself (`Listing.behind`). Working a
row out again takes the views of the log, so whoever lists does that, and gives it back (`Listing.put`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import msgspec

from playhead.model.ids import SessionKey
from playhead.views.summary import SUMMARY_VERSION, Summary

Sort = Literal["last_active", "created", "title", "relevance"]

SORTS: tuple[Sort, ...] = ("last_active", "created", "title", "relevance")

Facet = Literal["status", "agent", "label", "cwd", "origin", "config", "config_type", "node", "group"]

FACETS: tuple[Facet, ...] = ("status", "agent", "label", "cwd", "origin", "config", "config_type", "node", "group")

PAGE_MAX = 1_000
"""Most rows of one page."""

TITLE_WEIGHT, PREVIEW_WEIGHT, OTHER_WEIGHT = 4, 2, 1
"""What a word counts in the sort `relevance`, by the best place where it is found."""

UNREADABLE = "unreadable"
"""The status by which a session that cannot be read is asked for."""

NO_TITLE = "\U0010ffff"
"""Stands for the title of one that cannot be read: it comes after all others."""

NOT_YET = "its row was not worked out yet"
"""The problem of a session that nobody has looked at: `behind` names it."""

Place = tuple[Any, ...]
"""Where a row stands in an order: what the order goes by, then app, user and id, which no two rows share."""

Progress = Callable[[int, int], None]
"""Is told how many of how many were looked at."""


class Wanted(msgspec.Struct, frozen=True):
    """Which rows are asked for; None and "" mean any.

    query: words that all are in title, preview, agents, labels, directory, origin, config, node or group, in any case;
    a piece of a word is found too. agent, label: one that it has. since, until: when it was active last, inclusive and
    exclusive, UTC seconds. status: the one that its log gives; `unreadable` for those that cannot be read. begins: what
    the id begins with, or what is behind its first dot, or `app/user/id`; case counts. Of a row that cannot be read
    only app, user, id and status are known: any other wish leaves it out.
    """

    app: str | None = None
    user: str | None = None
    begins: str | None = None
    query: str | None = None
    status: str | None = None
    agent: str | None = None
    cwd: str | None = None
    label: str | None = None
    origin: str | None = None
    config: str | None = None
    config_type: str | None = None
    node: str | None = None
    group: str | None = None
    since: float | None = None
    until: float | None = None


class ListingRow(msgspec.Struct, frozen=True):
    """One session of a list. summary: None where it cannot be read; then problem says why. size_bytes: of its database
    on disk, where the store can tell. fork_count: sessions in the store that name this one as their parent."""

    key: SessionKey
    summary: Summary | None
    problem: str | None = None
    size_bytes: int | None = None
    fork_count: int = 0

    @property
    def id(self) -> str:
        return self.key.id


class ListingPage(msgspec.Struct, frozen=True):
    """rows: in order. total: how many rows there are in all that are wanted. is_settled: False where some of them
    turned out not to hold any more; ask `behind` again, and then for the page. behind: those of this page of which that
    is known."""

    rows: list[ListingRow]
    total: int
    is_settled: bool = True
    behind: frozenset[SessionKey] = frozenset()


class Activity(msgspec.Struct, frozen=True):
    """When the sessions of a store that can be read were active last, UTC seconds: how many there are, the first and
    the last of these times (None where there is no session), and their sum."""

    count: int
    oldest_at: float | None
    newest_at: float | None
    sum_at: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Self:
        return cls(len(times), min(times, default=None), max(times, default=None), math.fsum(times))

    def joined(self, other: Self) -> Self:
        """Return the activity of these sessions and those."""
        ends = [at for at in (self.oldest_at, other.oldest_at, self.newest_at, other.newest_at) if at is not None]
        return type(self)(
            self.count + other.count, min(ends, default=None), max(ends, default=None), self.sum_at + other.sum_at
        )


class Refreshed(msgspec.Struct, frozen=True):
    """What a refresh did. looked_at: sessions that were compared with their rows; read: those that were read again;
    removed: rows whose session is gone; unreadable: sessions that could not be read."""

    looked_at: int
    read: int
    removed: int
    unreadable: int


class Listing(Protocol):
    """The rows of a store. They are caches: losing them all loses nothing.

    Nothing here writes to a session, and nothing raises because a row cannot be kept: a store that can only be read, or
    whose disk is full, keeps its rows in memory.
    """

    def behind(self, *, limit: int = PAGE_MAX) -> list[SessionKey]:
        """Look what was written since the last time, and return sessions whose rows do not hold up to their last
        event. Whoever lists works each of them out and gives it to `put`, until none is left."""

    def put(self, key: SessionKey, seq: int, summary: Summary | None, *, problem: str | None = None) -> None:
        """Keep a row that holds up to `seq`, or what is wrong with a session whose log ends there.

        One that is older than the kept one is ignored, and so is one of a session that is not there.
        """

    def page(
        self,
        wanted: Wanted,
        *,
        sort: Sort = "last_active",
        is_reversed: bool = False,
        after: Place | None = None,
        limit: int = 50,
    ) -> ListingPage:
        """Return rows in order (see `place`), those behind `after` only, `limit` at most (0 for the total alone).

        `last_active` and `created` begin with the newest, `relevance` with the best and among equals with the newest;
        is_reversed turns the whole order around. Without a query `relevance` is `last_active`.
        """

    def facets(self, wanted: Wanted, names: Sequence[Facet]) -> dict[Facet, dict[str, int]]:
        """Return for each facet how many of the wanted rows have which value, most frequent first, then by value.

        Rows without a value are not counted; those that cannot be read have the status `unreadable`.
        """

    def forks(self, key: SessionKey) -> list[SessionKey]:
        """Return the sessions that name this one as their parent, in key order."""

    def activity(self) -> Activity:
        """Return when the sessions were active, as their rows have it. Costs one number of each row, and no summary."""

    def session_bytes(self) -> int | None:
        """Return the sum of `size_bytes` of all rows, None where the store cannot tell of each."""

    def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        """Compare every session with its row and read those again that changed; with `full`, read all again.

        Sessions that came are taken in, rows of those that went are dropped. A failure to look raises and changes no
        row. `behind` looks for less: it trusts what every writer leaves behind.
        """


def is_current(summary: Summary | None, seq: int) -> bool:
    """Return True for a row that holds up to the log's last event and says all that rows say today."""
    return summary is not None and summary.seq == seq and summary.version == SUMMARY_VERSION


def place(row: ListingRow, sort: Sort, words: Sequence[str] = ()) -> Place:
    """Return where a row stands: rows are in the order of their places, smallest first."""
    summary, key = row.summary, (row.key.app, row.key.user, row.key.id)
    if sort == "title":
        return (summary.title.casefold() if summary else NO_TITLE, *key)
    if sort == "created":
        return (-summary.created_at if summary else 0.0, *key)
    last_active = -summary.last_active_at if summary else 0.0
    if sort == "relevance" and words:
        return (-relevance(row, words), last_active, *key)
    return (last_active, *key)


def relevance(row: ListingRow, words: Sequence[str]) -> int:
    """Return how well a row fits: for each word what the best place counts in which it is found, summed."""
    if row.summary is None:
        return 0
    title, preview = row.summary.title.casefold(), row.summary.preview.casefold()
    return sum(TITLE_WEIGHT if word in title else PREVIEW_WEIGHT if word in preview else OTHER_WEIGHT for word in words)


def words_of(query: str | None) -> list[str]:
    """Return the words of a query as they are looked for: folded, each once."""
    return list(dict.fromkeys((query or "").casefold().split()))


def text_of_row(summary: Summary) -> str:
    """Return the folded text that a query's words are looked for in. No word reaches over a line's end."""
    others = (summary.cwd, summary.origin, summary.config, summary.config_type, summary.node, summary.group)
    texts = (summary.title, summary.preview, *summary.agents, *summary.labels, *(one or "" for one in others))
    return "\n".join(texts).casefold()


def facet_values(summary: Summary | None, name: Facet) -> tuple[str, ...]:
    """Return the values by which a row is counted and found."""
    if summary is None:
        return (UNREADABLE,) if name == "status" else ()
    if name in ("agent", "label"):
        return tuple(dict.fromkeys(summary.agents if name == "agent" else summary.labels))
    value = getattr(summary, name)
    return () if value is None else (value,)


def by_count(counted: Mapping[str, int]) -> dict[str, int]:
    """Return how many rows have which value in the order of facets: most frequent first, then by value."""
    return dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))


def parent_key(summary: Summary | None) -> SessionKey | None:
    """Return the session that a row names as its parent, or None."""
    origin = summary.forked_from if summary is not None else None
    if not origin:
        return None
    return SessionKey(*(str(origin.get(field, "")) for field in ("app", "user", "session")))


def fits(row: ListingRow, wanted: Wanted) -> bool:
    """Return True for a row that is wanted: what a store's own query must say of it as well."""
    if (wanted.app is not None and row.key.app != wanted.app) or (
        wanted.user is not None and row.key.user != wanted.user
    ):
        return False
    if wanted.begins and not any(spelling.startswith(wanted.begins) for spelling in _spellings(row.key)):
        return False
    for name in FACETS:
        asked = getattr(wanted, name)
        if asked is not None and asked not in facet_values(row.summary, name):
            return False
    words, summary = words_of(wanted.query), row.summary
    if summary is None:
        return not words and wanted.since is None and wanted.until is None
    if wanted.since is not None and summary.last_active_at < wanted.since:
        return False
    if wanted.until is not None and summary.last_active_at >= wanted.until:
        return False
    text = text_of_row(summary) if words else ""
    return all(word in text for word in words)


def _spellings(key: SessionKey) -> tuple[str, str, str]:
    """Return what a name may be the beginning of: an imported session is `claude-code.4f9a…`, or just `4f9a…`."""
    return key.id, key.id.partition(".")[2], f"{key.app}/{key.user}/{key.id}"
