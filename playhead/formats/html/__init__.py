"""A session as one HTML page that needs nothing else and runs nothing."""

from playhead.formats.html.page import html

__all__ = ["html"]
