"""ChatGPT's data export: conversations with all their branches, from the zip, its folder or a single file of it."""

from playhead.formats.chatgpt.archive import fault_of
from playhead.formats.chatgpt.messages import ORIGIN, restore_message
from playhead.formats.chatgpt.source import Conversation, discover, read, recognised

__all__ = ["ORIGIN", "Conversation", "discover", "fault_of", "read", "recognised", "restore_message"]
