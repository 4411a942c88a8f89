"""Overview: how many sessions a store has, of which kinds and ages, and what they take on disk. None is opened, but for
those in the trash."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import msgspec

from playhead.features.listing import facets
from playhead.features.live import Clock, Entropy
from playhead.features.trash import trashed
from playhead.stores.base import Store
from playhead.stores.listing import UNREADABLE, Facet, Wanted

FACETS: tuple[Facet, ...] = ("status", "config_type", "origin", "agent")

AGENTS_MAX = 5
"""So many agents are named, those that most sessions have."""

DAY_S = 86_400.0

OLDER = "older"

AGES: dict[str, float] = {"1d": DAY_S, "7d": 7 * DAY_S, "30d": 30 * DAY_S}
"""The groups of ages and how old their oldest is, in seconds; what is older still is `older`."""


class Overview(msgspec.Struct, frozen=True):
    """What there is. The trash is counted apart, everywhere.

    by_status: as lists show it, `unreadable` for those that cannot be read. by_config_type, by_origin: sessions without
    one count nowhere. by_age: by when they were active last: in the last day, else in the last seven, else in the last
    thirty, else `older`; it and unreadable_count add up to session_count. agents: those that most sessions have.
    oldest_at, newest_at: when the one was active last that was so longest ago, and the one that was so last (UTC
    seconds); average_age_s: how long ago it was on average. They are None where no session can be read.

    session_bytes: of the databases of sessions, artifacts_bytes: beside them, trashed_bytes: of the trash; None where
    they are in one file with others, and counted in other_bytes. The four add up to total_bytes, what the store takes
    on disk.
    """

    session_count: int
    unreadable_count: int
    by_status: dict[str, int]
    by_config_type: dict[str, int]
    by_origin: dict[str, int]
    by_age: dict[str, int]
    agents: dict[str, int]
    oldest_at: float | None
    newest_at: float | None
    average_age_s: float | None
    trashed_count: int
    trashed_bytes: int | None
    session_bytes: int | None
    artifacts_bytes: int | None
    other_bytes: int
    total_bytes: int


def overview(store: Store, *, now: float, clock: Clock = time.time, entropy: Entropy = os.urandom) -> Overview:
    """Return what a store has. It is counted from the rows of its list, as they are kept: no row is read, but those of
    turns that did not end."""
    counts = facets(store, Wanted(), FACETS, clock=clock, entropy=entropy)
    activity = store.listing.activity()
    unreadable_count = counts["status"].get(UNREADABLE, 0)
    gone = trashed(store)
    session_bytes, trashed_bytes = store.listing.session_bytes(), _sum(one.size_bytes for one in gone)
    artifacts_bytes = store.artifacts.total_bytes()
    known = (session_bytes or 0) + (trashed_bytes or 0) + artifacts_bytes
    # Others write meanwhile, so the whole may be measured smaller than its pieces.
    other_bytes = max(0, store.size_bytes() - known)
    return Overview(
        session_count=activity.count + unreadable_count,
        unreadable_count=unreadable_count,
        by_status=counts["status"],
        by_config_type=counts["config_type"],
        by_origin=counts["origin"],
        by_age=_by_age(store, activity.count, now),
        agents=dict(list(counts["agent"].items())[:AGENTS_MAX]),
        oldest_at=activity.oldest_at,
        newest_at=activity.newest_at,
        # A clock that is ahead makes nothing younger than new.
        average_age_s=max(0.0, now - activity.sum_at / activity.count) if activity.count else None,
        trashed_count=len(gone),
        trashed_bytes=trashed_bytes,
        session_bytes=session_bytes,
        artifacts_bytes=artifacts_bytes,
        other_bytes=other_bytes,
        total_bytes=known + other_bytes,
    )


def _by_age(store: Store, count: int, now: float) -> dict[str, int]:
    """Return how many sessions are in which group of ages. count: of all of them, so that the groups add up to it."""
    found: dict[str, int] = {}
    younger = 0
    for name, oldest_s in AGES.items():
        up_to = min(count, max(younger, store.listing.page(Wanted(since=now - oldest_s), limit=0).total))
        found[name] = up_to - younger
        younger = up_to
    return {**found, OLDER: count - younger}


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of sizes, None where one is not known."""
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total
