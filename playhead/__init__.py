"""Durable sessions for AI agents: an append-only log with a movable head.

    import playhead

    sessions = playhead.open("bundles:./sessions")
    with sessions.create(title="Flaky test") as session:
        with session.turn("Why does test_upload fail on CI?") as turn:
            turn.say("The upload test times out.")
    session = sessions.resume("@last")

This is the whole public page. Stores are reached by URL; formats and adapters from their own modules.
"""

from playhead.aio import AsyncSession, AsyncSessions, AsyncTurn, open_async
from playhead.errors import (
    ArtifactDamaged,
    ArtifactNotFound,
    EventConflict,
    EventNotFound,
    ImportFailed,
    InterruptNotFound,
    InvalidEvent,
    InvalidName,
    LeaseLost,
    NewerFormat,
    NotAStore,
    PlayheadError,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StaleWriter,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
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
    "ArtifactDamaged",
    "ArtifactNotFound",
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
    "ImportFailed",
    "Interrupt",
    "InterruptNotFound",
    "InvalidEvent",
    "InvalidName",
    "LeaseLost",
    "Listed",
    "Message",
    "NewerFormat",
    "NotAStore",
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
    "StoreClosed",
    "StoreDamaged",
    "StoreFull",
    "StoreReadOnly",
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
