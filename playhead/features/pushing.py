"""Pushing: which open sessions have appended what their rows in the list do not say yet.

Whoever lists finds rows that are behind and works them out, so nothing depends on a push: it only saves that work.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Protocol

PUSH_EVENTS = 20
"""So many events after the last push a row is pushed again."""

PUSH_S = 5.0
"""An event that comes so many seconds after the last push pushes the row."""

REST_S = 1.0
"""Between two such pushes of a session lie so many seconds at the least."""

UNPUSHED_MAX = 64
"""So many sessions wait for a push at the most; the one that has waited longest is pushed then."""

WAIT_S = 1.0
"""Closing waits so long for a session that another thread is at work in."""


class Pushable(Protocol):
    """An open session, as far as its row goes."""

    def push(self, *, wait_s: float) -> bool:
        """Push the row where it is behind. False where another thread was at work in it all the while."""


class Unpushed:
    """The open sessions of a program whose rows are behind: closing pushes them, also those that nobody closed.

    Safe for any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Pushable, None] = {}

    def add(self, session: Pushable) -> None:
        """Remember a session, and push the one that has waited longest where there are too many."""
        with self._lock:
            self._waiting[session] = None
            oldest = next(iter(self._waiting)) if len(self._waiting) > UNPUSHED_MAX else None
            if oldest is not None:
                del self._waiting[oldest]
        # Two threads, each in a session of its own, could wait for each other here for ever. So nobody waits.
        if oldest is not None and not oldest.push(wait_s=0.0):
            with self._lock:
                self._waiting[oldest] = None

    def discard(self, session: Pushable) -> None:
        """Forget a session whose row was pushed."""
        with self._lock:
            self._waiting.pop(session, None)

    def push_all(self) -> None:
        """Push what is behind. Never raises."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for session in waiting:
            with contextlib.suppress(Exception):  # Closing must not fail for a cache.
                session.push(wait_s=WAIT_S)
