"""Moments as people write and read them: `7d`, `yesterday`, `2026-08-01` in; `3 h`, `2026-08-01 14:05` out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playhead.cli.failures import Failure

_UNITS_S = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGES = ((31_536_000, "y"), (2_592_000, "mo"), (604_800, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))


def moment(text: str, now: float, *, option: str) -> float:
    """Return UTC seconds for what a person wrote: an age (`30m`, `12h`, `7d`, `2w`), `today`, `yesterday`, or a date or
    date and time in ISO 8601, taken as local time where it names no zone.

    now: UTC seconds. Raises `Failure` (usage) that names `option` where the text is none of these.
    """
    age = re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip().lower())
    if age:
        return now - int(age[1]) * _UNITS_S[age[2]]
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"today": midnight, "yesterday": midnight - timedelta(days=1)}.get(text.strip().lower())
    try:
        return (named or datetime.fromisoformat(text.strip())).timestamp()
    except (ValueError, OverflowError, OSError):
        raise Failure(
            f'{option} does not understand "{text}"; write an age (30m, 12h, 7d, 2w), today, yesterday, '
            "or a date such as 2026-08-01",
            code=2,
        ) from None


def age(at: float, now: float) -> str:
    """Return how long ago that was, in one unit: `now`, `5 min`, `3 h`, `2 d`. What lies ahead counts as now."""
    passed = now - at
    for seconds, unit in _AGES:
        if passed >= seconds:
            return f"{int(passed // seconds)} {unit}"
    return "now"


def iso(at: float) -> str:
    """Return UTC seconds as ISO 8601, to the second: `2026-08-01T12:05:00Z`; "" where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return ""


def local(at: float) -> str:
    """Return UTC seconds on this machine's clock: `2026-08-01 14:05`; "" where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""
