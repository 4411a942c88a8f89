"""A list of sessions to pick one from: type to filter, move, look at the end of one, take it.

`picker_rows.py` says what the list holds, `picker_screen.py` shows it; here sessions and previews are read.
"""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

from playhead.cli import text as texts
from playhead.cli.page import print_entries
from playhead.cli.picker_rows import Rows
from playhead.cli.rows import pages
from playhead.cli.terminal import Terminal
from playhead.cli.wrapping import wrapped
from playhead.errors import PlayheadError
from playhead.model.ids import SessionKey
from playhead.session import Sessions

FIRST_ROWS = 200
"""So many sessions are read before anything is shown: more than a terminal has lines."""

PREVIEW_EVENTS = 40
"""So many of a session's last events are read for its preview, whatever its length."""


def preview(sessions: Sessions, key: SessionKey, width: int) -> str:
    """Return the end of a session's transcript as plain lines, safe to show; of one that cannot be read, why."""
    try:
        session = sessions.get(key.id, app=key.app, user=key.user)
        entries = session.transcript(last=PREVIEW_EVENTS)
    except PlayheadError as error:
        return texts.one_line(str(error))
    out = io.StringIO()
    page = Terminal(out, out, {"COLUMNS": str(width), "NO_COLOR": "1"})
    page.line(texts.one_line(str(key)))
    print_entries(page, entries, tools="short")
    return "\n".join(_broken(line, width) for line in out.getvalue().split("\n"))


def _broken(line: str, width: int) -> str:
    """Return a line of the page broken between words; what follows is indented as its beginning is."""
    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    return "\n".join(indent + one for one in wrapped(text, max(width - len(indent), 1)).split("\n"))


def picked(sessions: Sessions, *, now: float) -> SessionKey | None:
    """Let a person pick a session; return its key, or None where they leave without. Raises `ImportError` where
    prompt_toolkit, which shows the list, is not installed."""
    # Loaded on use: no other command needs it.
    from playhead.cli.picker_screen import shown

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="picker") as reader:
        # Page by page, so that a preview is read between two of them, and leaving waits for one at the most.
        left = pages(sessions, first=FIRST_ROWS)
        return shown(
            Rows(now),
            load=lambda: reader.submit(next, left),
            preview=lambda key, width: reader.submit(preview, sessions, key, width),
        )
