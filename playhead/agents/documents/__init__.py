"""A folder of documents that agents search and read."""

from playhead.agents.documents.folder import Documents

__all__ = ["Documents"]
