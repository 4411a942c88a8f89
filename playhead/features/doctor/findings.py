"""What the doctor finds: each thing that is wrong or worth knowing, with its place and what to do about it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from playhead.model.ids import SessionKey

Kind = Literal[
    "settings",
    "place",
    "permissions",
    "disk",
    "not a database",
    "foreign database",
    "newer format",
    "altered schema",
    "damaged database",
    "events lost",
    "events changed",
    "row lost",
    "snapshot",
    "text index",
    "listing row",
    "store log",
    "artifact missing",
    "artifact changed",
    "artifact unnamed",
    "write-ahead log missing",
    "orphan",
    "emptied",
    "twice",
    "cut off",
    "leftover",
    "dead holder",
    "kept",
    "trash",
]
"""What sort of thing was found; docs/doctor.md explains each."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was found.

    place: the file or folder. what: a sentence. advice: what to do. is_fault: False for what is only worth knowing.
    is_mendable: `--fix` mends it. session: the one that it is about, or None.
    """

    kind: Kind
    place: str
    what: str
    advice: str
    is_fault: bool = True
    is_mendable: bool = False
    session: SessionKey | None = None


class Examination(msgspec.Struct, frozen=True):
    """What a store is like. Bytes are those on disk; free_bytes those that are free there. holders: who is in a turn at
    this moment, each with `session` and what the lease says. unindexed_count: events that the next search will index.
    """

    findings: tuple[Finding, ...]
    database_count: int = 0
    session_count: int = 0
    event_count: int = 0
    artifact_count: int = 0
    unindexed_count: int = 0
    trashed_count: int = 0
    trash_bytes: int = 0
    size_bytes: int = 0
    free_bytes: int | None = None
    holders: tuple[dict[str, Any], ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_fault)


FIX = "playhead doctor --fix"
FROM_BACKUP = "if you have a backup from before, compare with it or put the file back from there"
"""Advice for what nothing in the store can bring back."""
