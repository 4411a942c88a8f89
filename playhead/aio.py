"""The async twins: one awaited line per verb, each run on a worker thread, with the same names and arguments.

There are no decisions here; `session.py` and `turn.py` have them all. The verbs of one open session take turns on one
worker thread of its own, so a long search over all sessions never holds up a turn, and nothing blocks the event loop.

A cancelled call may still land: its thread goes on. Event ids make a retry harmless.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from playhead.features.ingest import Ingested, SourceEvent
from playhead.features.listing import Listed, Page
from playhead.features.live import Clock, Entropy
from playhead.features.reading import DEFAULT_AGENT, View
from playhead.features.resume import Output, Resumed
from playhead.features.triggers import Trigger, TriggerTypes
from playhead.features.verify import Verified
from playhead.model.event import Draft, Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.model.path import Branch
from playhead.search.find import Found
from playhead.session import Session, Sessions
from playhead.stores.base import EVENTS_PAGE_MAX, Durability
from playhead.stores.open import open_store
from playhead.turn import Job, Parts, Speaker, SubAgent, ToolCall, Turn
from playhead.views.conversation import Message
from playhead.views.facts import Facts
from playhead.views.interrupts import Interrupt
from playhead.views.state import State
from playhead.views.summary import Summary
from playhead.views.timeline import TimelineRow
from playhead.views.transcript import Entry

P = ParamSpec("P")
T = TypeVar("T")


async def open_async(
    url: str, *, durability: Durability = "process", clock: Clock = time.time, entropy: Entropy = os.urandom
) -> AsyncSessions:
    """Open a store for use in an event loop; see `playhead.open`."""
    worker = _Worker()
    store = await worker.run(partial(open_store, durability=durability), url)
    return AsyncSessions(Sessions(store, clock=clock, entropy=entropy), worker)


class _Worker:
    """One thread that runs blocking verbs in the order of their calls."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="playhead")

    async def run(self, verb: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(verb, *args, **kwargs))

    def stop(self) -> None:
        self._executor.shutdown(wait=False)
