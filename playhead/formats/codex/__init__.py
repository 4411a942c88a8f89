"""Codex's rollout files: found, read on from where they were left, and turned into events."""

from playhead.formats.codex.records import restore_record, restore_records
from playhead.formats.codex.source import ORIGIN, Source, default_root, discover, read, recognised

__all__ = ["ORIGIN", "Source", "default_root", "discover", "read", "recognised", "restore_record", "restore_records"]
