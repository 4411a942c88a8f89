"""Other people's text inside an answer: fenced line by line, harmless on any screen, and named by its place.

A session holds whatever was pasted into it: escape sequences, text that poses as instructions, line separators that
would end a quote early. An answer shows it and nothing obeys it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from playhead.errors import InvalidName
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, ID_CHARS_MAX, SessionKey, session_key

FENCE = "> "
SEQ_DIGITS_MAX = 18
REFERENCE_CHARS_MAX = 3 * ID_CHARS_MAX + SEQ_DIGITS_MAX + 3

# Characters that a terminal obeys, that turn the order of the line around them, or that no stream can carry.
_OBEYED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def quoted(text: str, *, is_cut_before: bool = False, is_cut_after: bool = False) -> str:
    """Return the text as a quote: every line, however it ends, begins with `FENCE`; `…` stands where it was cut."""
    lines = [line.rstrip() for line in visible(text).splitlines()] or [""]
    if is_cut_before:
        lines[0] = f"… {lines[0].lstrip()}"
    if is_cut_after:
        lines[-1] = f"{lines[-1]} …"
    return "\n".join(f"{FENCE}{line}".rstrip() for line in lines)


def one_line(text: str, *, chars_max: int) -> str:
    """Return the text in one line of at most so many characters; a cut ends in `…`."""
    line = " ".join(visible(text).split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def visible(text: str) -> str:
    """Return the text with every character that something would obey shown instead: ESC as ␛, others as U+FFFD.

    One character for one; white space of all kinds stays.
    """
    return _OBEYED.sub(lambda found: _shown(ord(found[0])), text)


def reference(key: SessionKey, seq: int) -> str:
    """Return how an event is named to people and models: `SESSION#SEQ`, the session as `playhead show` takes it."""
    return f"{key}#{seq}"


def shown_reference(name: str) -> str:
    """Return a reference as it may stand in a line. An id with line feeds or escapes in it can only be looked at."""
    return one_line(name, chars_max=REFERENCE_CHARS_MAX)


def place(name: str, *, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> tuple[SessionKey, int]:
    """Return what `reference` named, in this app and for this user alone. Raises `InvalidName`.

    The session's id is matched whole: no prefix, no `@last`.
    """
    session, _, digits = name.strip().rpartition("#")
    if not session or not re.fullmatch(f"[0-9]{{1,{SEQ_DIGITS_MAX}}}", digits):
        raise InvalidName(f"an event is named SESSION#SEQ, such as upload-0001#7, not {one_line(name, chars_max=80)!r}")
    if (app, user) != (DEFAULT_APP, DEFAULT_USER):
        session = session.removeprefix(f"{app}/{user}/")
    return session_key(session, app=app, user=user), int(digits)


def moment(at: float, zone: str = "UTC", *, is_exact: bool = False) -> str:
    """Return UTC seconds as people write them: `2026-08-01 12:00 UTC`; `?` where no calendar reaches.

    zone: the time zone in which it is written, with its name; UTC where there is none of this name. is_exact: with the
    seconds, unless the minute is a whole one.
    """
    there: tzinfo = UTC
    name = "UTC"
    if zone not in ("UTC", "Etc/UTC"):
        with suppress(LookupError, ValueError, OSError):
            there, name = ZoneInfo(zone), zone
    try:
        time = datetime.fromtimestamp(at, there)
        return f"{time:{'%Y-%m-%d %H:%M:%S' if is_exact and time.second else '%Y-%m-%d %H:%M'}} {name}"
    except (ValueError, OverflowError, OSError):
        return "?"


def counted(count: int, one: str, many: str = "") -> str:
    """Return `1 session`, `1,200 sessions`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _shown(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else _REPLACEMENT
