"""Text that is safe and sized for a terminal: control characters made visible, width counted in columns.

Tool output, titles and file names are other people's bytes. A terminal obeys the escape sequences in them (clear the
screen, set the clipboard, rename the window), so nothing of them is written before it went through `plain` or
`one_line`.
"""

from __future__ import annotations

import re
import unicodedata

# U+202D and U+202E turn the letters that follow around, so that a line reads as what it is not.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff]")
# In one row of a table these would turn the columns around; in running text right-to-left writers need them.
_DIRECTION = re.compile("[\u202a-\u202c\u2066-\u2069]")
_REPLACEMENT = "\ufffd"


def plain(text: str) -> str:
    """Return text with every control character but line feed and tab shown: ESC as ␛, BEL as ␇, CSI (U+009B) as ␛[.

    A carriage return before a line feed is dropped. Half a surrogate pair, which no stream takes, becomes U+FFFD, as
    does what overrides the direction of writing.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return `plain` text with all white space, line feeds and tabs too, folded to single spaces."""
    return _DIRECTION.sub("", " ".join(plain(text).split()))


def width(text: str) -> int:
    """Return the terminal columns that plain text takes: two for East Asian wide characters, none for marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def fitted(text: str, columns: int) -> str:
    """Return text cut to at most this many columns; a cut ends in `…`."""
    if width(text) <= columns:
        return text
    kept, taken = [], 0
    for character in text:
        taken += _columns(character)
        if taken > columns - 1:
            break
        kept.append(character)
    return "".join(kept) + "…" if columns > 0 else ""


def padded(text: str, columns: int) -> str:
    """Return text filled up with spaces to this many columns."""
    return text + " " * max(0, columns - width(text))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code <= 0x9F:
        # A C1 character means the same as ESC and the character 0x40 below it.
        return "␛" + chr(code - 0x40)
    return _REPLACEMENT


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
