"""Which bytes are a picture that a page may hold in itself, told by the bytes and never by what they are called."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

PICTURE_BYTES_MAX = 5 * 1024 * 1024
"""Largest picture that is put into the page."""

PICTURES_BYTES_MAX = 40 * 1024 * 1024
"""What all pictures of one page may take together; those that come later are named only."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class Pictures:
    """Turns bytes into `data:` addresses for as long as there is room on the page."""

    def __init__(self) -> None:
        self._bytes_left = PICTURES_BYTES_MAX

    def address(self, data: bytes) -> str | None:
        """Return what an `img` has as its source, or None for bytes that are no picture or too many."""
        kind = picture_type(data)
        if kind is None or len(data) > min(PICTURE_BYTES_MAX, self._bytes_left):
            return None
        self._bytes_left -= len(data)
        return f"data:{kind};base64,{b64encode(data).decode()}"


def picture_type(data: bytes) -> str | None:
    """Return the media type of a PNG, JPEG, GIF or WebP, None for anything else. SVG is a document."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), None)


def blob_bytes(content: object) -> bytes | None:
    """Return the bytes of a blob part's base64, None where it is none."""
    if not isinstance(content, str) or len(content) > 2 * PICTURE_BYTES_MAX:
        return None
    try:
        return b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None
