"""What happens in a turn, as it happens: the answer's text, and a dim line for each tool, sub-agent, job and firing.

At a terminal both stand in one stream. In a pipe the text alone is the result, and the lines go to stderr.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from playhead.aio import AsyncSession
from playhead.cli.asking import Asking
from playhead.cli.documents import document
from playhead.cli.table import Style, Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import fitted, one_line
from playhead.cli.wrapping import Wrapping, wrapped
from playhead.errors import PlayheadError
from playhead.model.body import parts_in, text_in
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.model.parts import text_of
from playhead.views.interrupts import Interrupt
from playhead.views.timeline import is_error, label

Line = tuple[str, Style]

LOOK_EVERY_S = 0.2
"""How often the log is looked at for what happens, where no piece of an answer comes."""

REASON_COLUMNS_MAX = 300

_INDENT = "  "


class Shown(Protocol):
    """Where what happens is shown."""

    def text(self, piece: str) -> None:
        """Show a piece of an answer."""

    def event(self, event: Event) -> None:
        """Show an event of the log, if it deserves it."""

    def ended(self, event: Event, waiting: Sequence[Interrupt]) -> None:
        """Show that a turn has ended, and the questions that the session waits for."""

    def line(self, text: str, style: Style = "dim") -> None:
        """Show something that is not in the log."""

    def end(self) -> None:
        """Show that nothing more comes for now."""


class Telling:
    """Tells what happens in a session while the block lasts, from the end of its log on. For use on one event loop.

    `text` takes the pieces of answers as they come. They are written with the next look at the log, so that a tool's
    line stands where the tool was called; a text that is in the log stands before what the log has after it.
    """

    def __init__(self, session: AsyncSession, shown: Shown) -> None:
        self._session = session
        self._shown = shown
        self._seq = session.seq
        self._pieces: list[str] = []
        self._woken = asyncio.Event()
        self._looking = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._look_again_and_again())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def text(self, piece: str) -> None:
        """Take a piece of an answer."""
        self._pieces.append(piece)
        self._woken.set()

    def line(self, text: str, style: Style) -> None:
        """Tell of something that is not in the log, before what is told next."""
        self._shown.line(text, style)

    async def catch_up(self) -> None:
        """Tell all that has happened so far."""
        await self._look()
        self._shown.end()

    async def _look_again_and_again(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), LOOK_EVERY_S)
            self._woken.clear()
            await self._look()

    async def _look(self) -> None:
        async with self._looking:
            # The verbs that an agent or a person calls say what is wrong with a log; the text is told all the same.
            with suppress(PlayheadError):
                while page := await self._session.events(after=self._seq):
                    for event in page:
                        await self._tell(event)
                    self._seq = page[-1].seq
            self._write_text()

    async def _tell(self, event: Event) -> None:
        said = event.kind == "message" and event.scope is None and event.body.get("role") == "assistant"
        if (said and text_of(parts_in(event.body))) or event.kind == "turn_ended":
            self._write_text()
        self._shown.event(event)
        if event.kind == "turn_ended":
            self._shown.ended(event, await self._session.waiting())

    def _write_text(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._shown.text("".join(pieces))


class Happenings:
    """Writes what happens, in the order in which it is told. `text` is the agent's answer, `event` what was recorded.

    On a terminal answers are broken between words. One that comes while a person is at the prompt is written line by
    line, since it stands above what is typed, and an empty line parts it from that.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._wrapping = Wrapping(lambda: asking.terminal.width)
        self._is_in_line = False
        self._held = ""
        self._is_firing = False
        self._owes_empty_line = False

    def text(self, piece: str) -> None:
        """Write a piece of an answer."""
        self._part_from_firing()
        self._held += self._wrapping.add(piece) if self._asking.terminal.is_interactive else piece
        self._write_held()

    def event(self, event: Event) -> None:
        """Write the line that an event deserves, if any."""
        if event.kind == "turn_started":
            self._is_firing = event.body.get("cause") in ("trigger", "channel")
        for text, style in happening(event):
            self.line(text, style)

    def ended(self, event: Event, waiting: Sequence[Interrupt]) -> None:
        """End the answer of a turn."""
        self.end()
        if self._is_firing and self._asking.terminal.is_interactive:
            if self._asking.is_asking:
                self._asking.terminal.line()
            else:
                self._owes_empty_line = True
        self._is_firing = False

    def line(self, text: str, style: Style = "dim") -> None:
        """Write a line of its own about what happens. What a person has to know is written whole, else what fits."""
        terminal = self._asking.terminal
        if not terminal.is_interactive:
            terminal.note(one_line(text))
            return
        self._part_from_firing()
        self.end()
        columns = max(terminal.width - len(_INDENT), 20)
        shown = fitted(one_line(text), columns) if style == "dim" else wrapped(one_line(text), columns)
        for one in shown.split("\n"):
            terminal.line(_INDENT, Styled(one, style))

    def end(self) -> None:
        """End the line that the answer stands in, if it is in one."""
        terminal = self._asking.terminal
        self._held += self._wrapping.end()
        if self._held:
            terminal.line(self._held)
        elif self._is_in_line:
            terminal.line()
        self._held = ""
        self._is_in_line = False

    def _write_held(self) -> None:
        if not self._held:
            return
        if self._asking.is_asking:
            whole, feed, self._held = self._held.rpartition("\n")
            if feed:
                self._asking.terminal.line(whole)
                self._is_in_line = False
        else:
            self._asking.terminal.start(self._held)
            self._is_in_line = not self._held.endswith("\n")
            self._held = ""

    def _part_from_firing(self) -> None:
        """Write the empty line that the answer to a firing is owed, where no prompt brings one."""
        if self._owes_empty_line and not self._asking.is_asking:
            self._asking.terminal.line()
        self._owes_empty_line = False


class JsonHappenings:
    """Writes what happens as one JSON object a line: each piece of an answer, each event, and how a turn ended."""

    def __init__(self, terminal: Terminal, key: SessionKey) -> None:
        self._terminal = terminal
        self._key = key
        self._said: list[str] = []

    def text(self, piece: str) -> None:
        """Write a piece of an answer."""
        self._said.append(piece)
        self._terminal.json_line({"type": "text", "text": piece})

    def event(self, event: Event) -> None:
        """Write an event."""
        self._terminal.json_line({"type": "event", "event": document(event)})

    def ended(self, event: Event, waiting: Sequence[Interrupt]) -> None:
        """Write how a turn ended."""
        text, self._said = "".join(self._said), []
        self._terminal.json_line(end_document(self._key, event.turn, event.body.get("status"), text, waiting))

    def line(self, text: str, style: Style = "dim") -> None:
        """Write what is not in the log to stderr."""
        self._terminal.note(one_line(text))

    def end(self) -> None:
        """Do nothing: every line stands for itself."""


def end_document(
    key: SessionKey, turn: str | None, status: Any, text: str, waiting: Sequence[Interrupt]
) -> dict[str, Any]:
    """Return the JSON object that says how a turn ended: the last of its turn with --jsonl."""
    return {
        "type": "end",
        "session": key.id,
        "app": key.app,
        "user": key.user,
        "turn": turn,
        "status": status,
        "text": text,
        "waiting": [document(interrupt) for interrupt in waiting],
    }


def happening(event: Event) -> list[Line]:
    """Return the lines that tell a person of an event; [] for what the answer's text tells already."""
    if event.kind == "message":
        return [line for part in parts_in(event.body) for line in _part(event, part)]
    if event.kind not in _TOLD or event.body.get("kind") == "tool":
        return []
    if event.kind == "trigger_changed" and event.body.get("status") != "added":
        return []  # It goes on, or is over, since it fired: that is told already.
    went_wrong = is_error(event)
    text = label(event) + (reason(event.body) if event.kind == "job_changed" else "")
    return [(text, "red" if went_wrong else _TOLD[event.kind])]


def reason(body: Mapping[str, Any]) -> str:
    """Return why a job failed, to stand behind how it ended; "" where its last change does not say."""
    error = text_in(body, "error")
    return f" ({fitted(one_line(error), REASON_COLUMNS_MAX)})" if error else ""


def _part(event: Event, part: dict[str, Any]) -> list[Line]:
    """Return the line of a part that is no text of the answer. A sub-agent's parts begin with its name."""
    kind = part.get("type")
    if kind not in ("reasoning", "tool_call", "tool_call_response") or (
        kind == "reasoning" and event.scope is not None
    ):
        return []
    alone = msgspec.structs.replace(event, body={**event.body, "parts": [part]})
    text = label(alone)
    if kind == "tool_call_response":
        text = f"{'✗' if part.get('is_error') else '✓'} {text_in(part, 'name') or ''} {text}"
    who = f"{event.agent}: " if event.scope is not None else ""
    return [(who + text, "red" if part.get("is_error") else "dim")]


_TOLD: Mapping[str, Style] = {
    "artifact_saved": "dim",
    "channel_message": "dim",
    "interrupt_requested": "yellow",
    "job_changed": "dim",
    "trigger_changed": "dim",
}
"""The kinds that get a line, and how it looks where nothing went wrong."""
