"""Claude Code's session files: found, read on from where they were left, and turned into events."""

from playhead.formats.claude_code.records import restore_record
from playhead.formats.claude_code.source import ORIGIN, Source, default_root, discover, is_side_file, read, recognised

__all__ = ["ORIGIN", "Source", "default_root", "discover", "is_side_file", "read", "recognised", "restore_record"]
