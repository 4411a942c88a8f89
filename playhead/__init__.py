"""Durable sessions for AI agents: an append-only log with a movable head.

    import playhead

    sessions = playhead.open("bundles:./sessions")
    with sessions.create(title="Flaky test") as session:
        with session.turn("Why does test_upload fail on CI?") as turn:
            turn.say("The upload test times out.")
    session = sessions.resume("@last")

This is the whole public page, with the errors that a program meets; `playhead.errors` has them all. Stores are
reached by URL, formats and agents from their own modules.
"""

from playhead.aio import AsyncSession, AsyncSessions, AsyncTurn, open_async
from playhead.errors import (
    EventConflict,
    EventNotFound,
    InvalidEvent,
    InvalidName,
    LeaseLost,
    NewerFormat,
    PlayheadError,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StaleWriter,
    StoreFull,
    StoreUnavailable,
    TurnNotFound,
)
from playhead.features.listing import Listed, Page
from playhead.features.triggers import Trigger, TriggerTypes
from playhead.model.event import Event
from playhead.model.parts import (
    BlobPart,
    FilePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    UriPart,
)
from playhead.model.snapshot import Snapshot
from playhead.search.find import Found, Hit
from playhead.session import Session, Sessions, open
from playhead.turn import Turn
from playhead.views.conversation import Message
from playhead.views.interrupts import Interrupt
from playhead.views.timeline import TimelineRow
from playhead.views.transcript import Entry

__version__ = "0.1.0"

__all__ = [
    "AsyncSession",
    "AsyncSessions",
    "AsyncTurn",
    "BlobPart",
    "Entry",
    "Event",
    "EventConflict",
    "EventNotFound",
    "FilePart",
    "Found",
    "Hit",
    "Interrupt",
    "InvalidEvent",
    "InvalidName",
    "LeaseLost",
    "Listed",
    "Message",
    "NewerFormat",
    "Page",
    "PlayheadError",
    "ReasoningPart",
    "Session",
    "SessionBusy",
    "SessionExists",
    "SessionNotFound",
    "Sessions",
    "Snapshot",
    "StaleWriter",
    "StoreFull",
    "StoreUnavailable",
    "TextPart",
    "TimelineRow",
    "ToolCallPart",
    "ToolCallResponsePart",
    "Trigger",
    "TriggerTypes",
    "Turn",
    "TurnNotFound",
    "UriPart",
    "open",
    "open_async",
]
