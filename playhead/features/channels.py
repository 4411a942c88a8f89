"""Channels: reading on in one from an event, in bounded pages."""

from __future__ import annotations

from playhead.errors import EventNotFound
from playhead.features.live import Live
from playhead.model import path as paths
from playhead.model.event import Event
from playhead.stores.base import EVENTS_PAGE_MAX


def messages_after(live: Live, channel: str, *, after: str, limit: int) -> list[Event]:
    """Return the first messages of a channel on the path after the event with the id `after`, oldest first.

    Raises `EventNotFound` where the log has no such event.
    """
    fold = live.shown()
    _, newest = fold.slots.get(f"chan:{channel}", (0, 0))
    seq = live.store.seq_of(live.key, [after]).get(after)
    if seq is None:
        raise EventNotFound(live.key.id, after)
    found: list[Event] = []
    while seq < newest and len(found) < limit:
        page = live.store.events(live.key, after=seq, until=newest, kinds=["channel_message"])
        found += [one for one in page if one.body.get("channel") == channel and paths.lies_on(fold.path, one.seq)]
        seq = page[-1].seq if len(page) == EVENTS_PAGE_MAX else newest
    return found[:limit]
