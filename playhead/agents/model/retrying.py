"""Which failures of an endpoint pass, how long is waited before it is asked again, and how that is told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

PAUSE_S = 0.5
"""The wait before the endpoint is asked again where it names none; each further wait is twice as long."""
PAUSE_S_MAX = 8.0
WAIT_S_MAX = 120.0
"""So long is waited at the most, whatever the endpoint asks."""

_PASSING = (408, 409, 429)
"""Statuses below 500 that may be others in a moment."""


def may_pass(status: int, headers: Mapping[str, str]) -> bool:
    """Whether it is worthwhile to send a request again that was refused: the endpoint may say so itself."""
    said = headers.get("x-should-retry")
    return said == "true" if said in ("true", "false") else status in _PASSING or status >= 500


def pause_s(attempt: int) -> float:
    """Return how long to wait after an attempt (from 1) where the endpoint does not say it."""
    return min(PAUSE_S * 2.0 ** (attempt - 1), PAUSE_S_MAX)


def asked_s(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Return how many seconds the endpoint asks to wait, `WAIT_S_MAX` at the most; None where it names no time.

    now: UTC seconds, for an endpoint that names a date.
    """
    named = headers.get("retry-after", "").strip()
    wait_s = _number(headers.get("retry-after-ms", ""), per_s=1_000) or _number(named, per_s=1)
    if wait_s is None and named:
        try:
            wait_s = parsedate_to_datetime(named).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, OSError):
            return None
    return None if wait_s is None or wait_s <= 0 else min(wait_s, WAIT_S_MAX)


def told(why: str, *, wait_s: float, is_asked: bool, attempt: int, attempts_max: int) -> str:
    """Return the sentence about a wait. why: what the endpoint did. attempt: the one that follows, from 2."""
    because = ", as it asks" if is_asked else ""
    shown = f"{wait_s:.0f}" if wait_s >= 10 else f"{wait_s:.1g}"
    return f"{why}; waiting {shown} s{because} (attempt {attempt} of {attempts_max})."


def _number(text: str, *, per_s: float) -> float | None:
    try:
        value = float(text) / per_s
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def headers_of(error: Any) -> Mapping[str, str]:
    """Return the headers of a refusal, their names in small letters. error: the client library's."""
    return {name.lower(): value for name, value in error.response.headers.items()}
