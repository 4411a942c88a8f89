"""What every importer yields: a session's events in the order of its source, and a report of what could not be read.

An importer reads bytes and returns these values; it opens no store. `Sessions.ingest` writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

UNFINISHED = "the last line is unfinished; not read yet"
"""Why the end of a file is left out whose writer may still be at it."""


class ImportedEvent(msgspec.Struct, frozen=True):
    """An event as the source has it. after: id of the event it follows, or None to follow the one before it in this
    list (or the imported end). An `after` other than that marks a branch of the source (an edit, a rewind)."""

    kind: str
    body: dict[str, Any]
    id: str
    at: float
    agent: str | None = None
    turn: str | None = None
    scope: str | None = None
    after: str | None = None


class Skipped(msgspec.Struct, frozen=True):
    """A stretch of the source that is no record. line counts from 1, offset and length are in bytes.

    is_pending: True for a last line without an end, which its writer may still be at; the next import reads it.
    """

    source: str
    line: int
    offset: int
    length: int
    reason: str
    is_pending: bool = False


class SourcePosition(msgspec.Struct, frozen=True):
    """How far a source was read. size and mtime_ns: of the file then. offset: bytes read (whole lines). last_line: hex
    SHA-256 of the last line read. carry: what the reader needs to go on from there."""

    size: int
    mtime_ns: int
    offset: int
    last_line: str
    carry: dict[str, Any] = {}


class Counts(msgspec.Struct):
    """What the source held, counted while reading, independent of what the log then says."""

    records: int = 0
    user_prompts: int = 0
    assistant_messages: int = 0
    tool_calls: int = 0
    sub_agents: int = 0
    compactions: int = 0
    skipped: int = 0


class File(msgspec.Struct, frozen=True):
    """Bytes that an `artifact_saved` of the session speaks of. hash: their name in the store. read: returns them."""

    hash: str
    size: int
    read: Callable[[], bytes]


class ImportedSession(msgspec.Struct):
    """One session of a source.

    id: `claude-code.<its id>` and the like. started: fields for the body of `session_started` (cwd, config, origin).
    facts: title and labels, the last of each wins. positions: source path to how far it was read. warnings: readable
    sentences (impossible times, dangling parents …). head: id of the event at which the source itself stands, for
    sources that have branches and say so. files: the bytes of its artifacts.
    """

    id: str
    at: float
    started: dict[str, Any]
    events: list[ImportedEvent]
    title: str | None = None
    labels: tuple[str, ...] = ()
    counts: Counts = msgspec.field(default_factory=Counts)
    skipped: list[Skipped] = []
    warnings: list[str] = []
    positions: dict[str, SourcePosition] = {}
    head: str | None = None
    files: list[File] = []
