"""Other people's text, sizes and times as they may stand on a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_CONTROL = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
_CONTROL |= {code: "\u241b" + chr(code - 0x40) for code in range(0x80, 0xA0)}
_CONTROL |= dict.fromkeys([*range(0xD800, 0xE000), 0x202D, 0x202E], "\ufffd") | {0x7F: "\u2421"}
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return text in which every control character but line feed and tab is shown as a sign for it, and no half of a
    surrogate pair is left, nor an override of the direction of writing, which lets a line read as what it is not: what
    a page, and whoever prints it on a terminal, can take."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_CONTROL)


def one_line(text: str) -> str:
    """Return visible text in one line, without the signs that turn the direction of what stands beside it."""
    return _DIRECTION.sub("", " ".join(visible(text).split()))


def at_utc(at: float, *, seconds: bool = False) -> str:
    """Return `2026-08-01 12:05 UTC`; "" where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def size_text(size: object) -> str:
    """Return a number of bytes as people read it (812 bytes, 4.2 MB), "" where it is no number."""
    if not isinstance(size, int) or size < 0:
        return ""
    if size < 1000:
        return f"{size} bytes"
    number, units = size / 1000, ["kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.1f} {units[0]}"
