"""Times of a source: ISO 8601 text to UTC seconds, and what is wrong with it where something is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_YEARS = range(2000, 2100)


def parsed(stamp: Any) -> tuple[float | None, str | None]:
    """Return a time stamp in UTC seconds, and what is wrong with it: `missing`, `impossible`, or that it has no zone.

    The time is None where it is missing or impossible.
    """
    if stamp is None:
        return None, "missing"
    try:
        moment = datetime.fromisoformat(stamp)
    except (ValueError, TypeError):
        return None, "impossible"
    if moment.year not in _YEARS:
        return None, "impossible"
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC).timestamp(), "without a zone, and read as UTC"
    return moment.timestamp(), None
