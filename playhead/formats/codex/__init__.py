"""Codex's rollout files: found, read on from where they were left, and turned into events."""

from playhead.formats.codex.records import restore_record, restore_records
from playhead.formats.codex.source import INDEX, ORIGIN, Source, default_root, discover, read, recognised

__all__ = [
    "INDEX",
    "ORIGIN",
    "Source",
    "default_root",
    "discover",
    "read",
    "recognised",
    "restore_record",
    "restore_records",
]
