"""The `tail` command: the last events of a session, and with -f those that come, whoever writes them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from playhead.cli.command import Command, Here, SessionArgument
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.cli.timeline import JsonLinesOption, print_row
from playhead.errors import PlayheadError, SessionNotFound
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.session import Sessions
from playhead.views.timeline import rows

LAST_DEFAULT = 10
LAST_MAX = 1_000
POLL_S = 0.25
"""So often the log's end is looked at. That reads one row; events are read only where there are new ones."""
WRITING_CHARS = 400
"""Of a message that is being written, so much of its end is shown."""
INTERRUPTED = 130


def run(
    here: Here,
    session: SessionArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what comes, until Ctrl-C")] = False,
    count: Annotated[
        int, typer.Option("-n", "--last", metavar="N", min=0, max=LAST_MAX, help="Events to begin with")
    ] = LAST_DEFAULT,
    jsonl: JsonLinesOption = False,
) -> int:
    """Print the last events, the newest last."""
    with here.open_existing() as sessions:
        key = named(sessions, session)
        follower = _Follower(here.terminal, sessions, key, jsonl=jsonl)
        try:
            follower.begin(count)
            while follow:
                time.sleep(POLL_S)
                follower.look()
        except KeyboardInterrupt:
            here.terminal.end_progress()
            return INTERRUPTED
        except SessionNotFound as error:
            here.terminal.end_progress()
            raise Failure(f"session {key} is not there any more", code=3) from error
    return 0


COMMAND = Command(
    run,
    about=(
        "Events of any process appear within a second. A message that is still being written shows its end in one line "
        "on stderr, where that is a terminal. Columns and marks are those of `playhead timeline`; with --jsonl each "
        "line is one whole event, as `playhead show --event SEQ --json` has it."
    ),
    examples=(
        "playhead tail @last",
        "playhead tail @last -f",
        "playhead tail @last -f -n 0 --jsonl | jq -r .kind",
    ),
    exits=(3, 5, 6, 130),
)


class _Follower:
    """Prints what a log gains. seq: the last event that was printed."""

    def __init__(self, terminal: Terminal, sessions: Sessions, key: SessionKey, *, jsonl: bool) -> None:
        self._terminal = terminal
        self._store = sessions.store
        self._key = key
        self._jsonl = jsonl
        self._session = sessions.get(key.id, app=key.app, user=key.user)
        self._seq = self._session.seq

    def begin(self, count: int) -> None:
        """Print the last events."""
        newest = self._session.events(limit=count, newest_first=True) if count else []
        self._print(newest[::-1])

    def look(self) -> None:
        """Print what came since the last look. Raises `SessionNotFound` where the session is gone."""
        tip = self._store.tip(self._key)
        if tip.seq < self._seq:
            # A log never gets shorter: the session was deleted, and another one with its id begun.
            self._terminal.note(f"{self._key} was deleted and begun again.")
            self._seq = 0
        if tip.seq > self._seq:
            self._terminal.end_progress()
            self._session.refresh()
            while page := self._store.events(self._key, after=self._seq):
                self._print(page)
                self._seq = page[-1].seq
        if not self._jsonl:
            self._show_writing()

    def _print(self, events: list[Event]) -> None:
        path: Ranges = self._session.positions
        for event, row in zip(events, rows(events, path), strict=True):
            if self._jsonl:
                self._terminal.json_line(document(event))
            else:
                print_row(self._terminal, row)
        self._terminal.flush()

    def _show_writing(self) -> None:
        """Show the end of a message that is being written. One that cannot be read now is read at the next look."""
        try:
            left = self._store.streams.left(self._key)
        except PlayheadError:
            return
        if not left or not left[-1].chunks:
            self._terminal.end_progress()
            return
        text = one_line("".join(text for _, text in left[-1].chunks)[-WRITING_CHARS:])
        room = max(self._terminal.width - 12, 20)
        self._terminal.progress(f"writing … {text[-room:]}")
