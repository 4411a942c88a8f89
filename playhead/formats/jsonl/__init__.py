"""Playhead's own JSON Lines: sessions out of a store and into one, with nothing lost."""

from playhead.formats.jsonl.importing import OnConflict, SessionImported, import_jsonl
from playhead.formats.jsonl.reading import Export, SessionFound, is_export
from playhead.formats.jsonl.writing import Written, write_session

__all__ = [
    "Export",
    "OnConflict",
    "SessionFound",
    "SessionImported",
    "Written",
    "import_jsonl",
    "is_export",
    "write_session",
]
