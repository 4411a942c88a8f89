"""aider's chat histories: one Markdown file for each project, each run in it a session of its own."""

from playhead.formats.aider.events import ORIGIN, restore_block
from playhead.formats.aider.source import NAME, Run, discover, places, read, recognised

__all__ = ["NAME", "ORIGIN", "Run", "discover", "places", "read", "recognised", "restore_block"]
