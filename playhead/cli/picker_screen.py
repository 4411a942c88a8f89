"""The picker on the screen: keys to what `Rows` does, and its rows, a preview and the filter line painted.

Nothing that reads a store happens on a key: rows and previews come from futures, and are painted when they are there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from playhead.cli import text as texts
from playhead.cli.picker_rows import Rows
from playhead.cli.wrapping import wrapped
from playhead.errors import PlayheadError
from playhead.features.listing import Listed, Page
from playhead.model.ids import SessionKey

Fragments = StyleAndTextTuples
Load = Callable[[], "Future[Page[Listed]]"]
Preview = Callable[[SessionKey, int], "Future[str]"]

KEYS = "type to filter · ↑↓ move · Enter resume · Tab preview · Esc leave"
NO_SESSION = "There is no session yet: playhead run begins one, playhead import brings some. Esc leaves."
NO_MATCH = "No session has all these words. Esc clears them."
PREVIEWS_KEPT = 64
FRAME_LINES = 2
"""The line that is typed in, and the line that names the keys."""

_ESCAPE_WAIT_S = 0.05
"""So long after an Esc the rest of a key's sequence may still come."""
_PREVIEW_WAIT_S = 0.1
"""A preview is read once the choice has rested so long: holding an arrow down reads none."""
_PROMPT = "Resume: "
_STYLE = Style([("chosen", "reverse"), ("dim", "fg:ansibrightblack"), ("prompt", "bold")])


def shown(
    rows: Rows, *, load: Load, preview: Preview, source: Input | None = None, screen: Output | None = None
) -> SessionKey | None:
    """Show the list until a session is picked or the person leaves; return its key, or None.

    load: reads the next page of the list, until one is the last; what it raises ends the picker and is raised.
    source and screen: in place of the process's own terminal.
    """
    return _Screen(rows, load, preview, source, screen).run()


class _Screen:
    """The application: the filter's buffer, the rows, and the previews that were read."""

    def __init__(self, rows: Rows, load: Load, preview: Preview, source: Input | None, screen: Output | None) -> None:
        self._rows = rows
        self._load = load
        self._preview = preview
        self._previews: dict[SessionKey, str] = {}
        self._shows_preview = False
        self._is_loading = True
        self._typed = Buffer(multiline=False, on_text_changed=lambda buffer: self._filter(buffer.text))
        self._app: Application[SessionKey | None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            style=_STYLE,
            full_screen=True,
            input=source,
            output=screen,
        )
        self._app.ttimeoutlen = _ESCAPE_WAIT_S
        self._app.timeoutlen = _ESCAPE_WAIT_S

    def run(self) -> SessionKey | None:
        return self._app.run(pre_run=lambda: self._later(self._filled()))

    # What is on the screen.

    def _layout(self) -> Layout:
        typed = Window(
            BufferControl(self._typed, input_processors=[], focusable=True),
            height=1,
            get_line_prefix=lambda line, wrap: [("class:prompt", _PROMPT)],
        )
        listed = Window(
            FormattedTextControl(self._row_fragments),
            height=lambda: Dimension.exact(self._height()),
            always_hide_cursor=True,
            wrap_lines=False,
        )
        end = Window(FormattedTextControl(self._preview_fragments), always_hide_cursor=True, wrap_lines=True)
        below = ConditionalContainer(
            HSplit([Window(height=1, char="─", style="class:dim"), end]), self._is_previewing()
        )
        foot = Window(FormattedTextControl(self._foot_fragments), height=1, always_hide_cursor=True)
        return Layout(HSplit([typed, listed, below, foot]), focused_element=typed)

    def _is_previewing(self) -> Condition:
        return Condition(lambda: self._shows_preview)

    def _height(self) -> int:
        """Return how many rows there is room for."""
        lines = max(get_app().output.get_size().rows - FRAME_LINES, 1)
        return max((lines - 1) // 2, 1) if self._shows_preview else lines

    def _width(self) -> int:
        return get_app().output.get_size().columns

    def _row_fragments(self) -> Fragments:
        fragments: Fragments = []
        left, total = self._rows.counts
        if not left and not self._is_loading:
            text = NO_MATCH if total else NO_SESSION
            return [("class:dim", wrapped(text, self._width() - 1))]
        for text, is_chosen in self._rows.in_view(self._height(), self._width() - 1):
            fragments += [("class:chosen" if is_chosen else "", text), ("", "\n")]
        return fragments[:-1]

    def _preview_fragments(self) -> Fragments:
        key = self._rows.chosen
        if key is None:
            return []
        text = self._previews.get(key)
        lines = ("Reading…" if text is None else text).rstrip("\n").split("\n")
        # The end is what a person goes on from.
        height = max(get_app().output.get_size().rows - FRAME_LINES - self._height() - 1, 1)
        return [("class:dim" if text is None else "", "\n".join([lines[0], *lines[1:][-(height - 1) :]]))]

    def _foot_fragments(self) -> Fragments:
        left, total = self._rows.counts
        if self._is_loading:
            count = f"{left} so far…" if total else "Reading the sessions…"
        elif left == total:
            count = f"{total} session{'' if total == 1 else 's'}"
        else:
            count = f"{left} of {total}"
        return [("class:dim", texts.fitted(f"{count} · {KEYS}", self._width() - 1))]

    # What keys do.

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key, way in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
            keys.add(key)(partial(self._move_by, lines=way))
        for key, way in (("pageup", -1), ("pagedown", 1)):
            keys.add(key)(partial(self._move_by, pages=way))
        for key, way in (("home", -1), ("end", 1)):
            keys.add(key)(partial(self._move_by, lists=way))
        keys.add("enter")(self._take)
        keys.add("tab")(self._toggle)
        keys.add("right", filter=Condition(lambda: self._typed.document.is_cursor_at_the_end))(self._toggle)
        keys.add("escape")(self._clear_or_leave)
        keys.add("c-c")(self._leave)
        keys.add("c-d")(self._leave)
        return keys

    def _move_by(self, event: KeyPressEvent, *, lines: int = 0, pages: int = 0, lists: int = 0) -> None:
        self._rows.move(lines + pages * self._height() + lists * self._rows.counts[1])
        self._choice_rests()

    def _filter(self, query: str) -> None:
        self._rows.filter(query)
        self._choice_rests()

    def _take(self, event: KeyPressEvent) -> None:
        if (key := self._rows.chosen) is not None:
            event.app.exit(result=key)

    def _toggle(self, event: KeyPressEvent) -> None:
        self._shows_preview = not self._shows_preview
        self._choice_rests()

    def _clear_or_leave(self, event: KeyPressEvent) -> None:
        if self._typed.text:
            self._typed.reset()
            self._filter("")
        else:
            event.app.exit(result=None)

    def _leave(self, event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    # What is read beside the keys.

    def _later(self, work: Any) -> None:
        self._app.create_background_task(work)

    async def _filled(self) -> None:
        while self._is_loading:
            try:
                page = await asyncio.wrap_future(self._load())
            except PlayheadError as error:
                self._app.exit(exception=error)
                return
            self._rows.add(page.items)
            self._is_loading = page.next_cursor is not None
            self._choice_rests()
            self._app.invalidate()

    def _choice_rests(self) -> None:
        """Have the preview of the chosen session read, if it is shown and the choice stays a moment."""
        if self._shows_preview and self._rows.chosen is not None and self._rows.chosen not in self._previews:
            self._later(self._previewed(self._rows.chosen))

    async def _previewed(self, key: SessionKey) -> None:
        await asyncio.sleep(_PREVIEW_WAIT_S)
        if self._rows.chosen != key or key in self._previews:
            return
        text = await asyncio.wrap_future(self._preview(key, self._width() - 1))
        while len(self._previews) >= PREVIEWS_KEPT:
            self._previews.pop(next(iter(self._previews)))
        self._previews[key] = text
        self._app.invalidate()
