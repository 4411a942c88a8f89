"""The next prompt of a conversation: from a person with a line editor, or line by line from whatever stdin is.

While somebody is asked, the event loop goes on, so that a trigger may fire; what is written then goes through
`terminal`, which puts it above the line that is being typed.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

from playhead.cli.failures import Failure
from playhead.cli.history import private_history
from playhead.cli.modes import Modes
from playhead.cli.terminal import Terminal, here_and_now

INTERRUPTED = 130
PROMPT = "> "
LINE_BYTES_MAX = 16_000_000
"""Longest line that is read from a pipe."""

_READ_BYTES = 65_536


class Interrupted(Exception):
    """Ctrl-C where nothing was typed."""


class Asking(Protocol):
    """What asks for prompts. terminal: where to write now. is_asking: a person is at the prompt."""

    @property
    def terminal(self) -> Terminal: ...

    @property
    def is_asking(self) -> bool: ...

    async def asked(self) -> str | None:
        """Return the next prompt, without its line feed, or None at the end of input. Raises `Interrupted`."""

    def interrupt(self) -> None:
        """Have `asked` raise `Interrupted`, where it waits."""

    def give_back(self, prompt: str) -> None:
        """Take back a prompt that was not sent, for the person to go on from, where they can."""

    def not_asking(self) -> AbstractContextManager[None]:
        """Have what a person types within the block kept for the next prompt, where it can be."""


def asking(
    terminal: Terminal, environment: Mapping[str, str], *, history: Path, commands: Sequence[str] = ()
) -> Asking:
    """Return the line editor where a person sits at a terminal that can have one, else what reads lines."""
    if terminal.can_ask and environment.get("TERM") not in (None, "", "dumb"):
        with suppress(ImportError):
            return Editor(terminal, environment, history=history, commands=commands)
    return Lines(terminal, sys.stdin)


def agreed(terminal: Terminal, question: str) -> bool:
    """Ask a person, and return True for yes. Raises `Failure` (usage) where nobody can be asked, and for Ctrl-C."""
    if not terminal.can_ask:
        raise Failure("there is nobody to ask here; give --yes to agree beforehand", code=2)
    terminal.start(f"{question} [y/N] ")
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        terminal.line()
        raise Failure("interrupted; nothing was changed", code=INTERRUPTED) from None


class Lines:
    """Lines of stdin as they come. At a terminal each is asked for with a prompt, and the terminal edits it; not where
    `asks` is False, for a program that types."""

    is_asking = False

    def __init__(self, terminal: Terminal, source: TextIO | None, *, asks: bool = True) -> None:
        self.terminal = terminal
        self._asks = asks and terminal.can_ask
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = ""
        self._is_over = source is None
        self._waiting: asyncio.Future[None] | None = None

    async def asked(self) -> str | None:
        if self._asks:
            self.terminal.start(PROMPT)
        try:
            while "\n" not in self._read and not self._is_over:
                await self._more()
        except Interrupted:
            self.terminal.line()
            raise
        line, feed, self._read = self._read.partition("\n")
        if not feed and not line:
            if self._asks:
                self.terminal.line()
            return None
        return line.removesuffix("\r")

    def interrupt(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Interrupted())

    def give_back(self, prompt: str) -> None:
        pass  # A line that was read cannot be put before the cursor again.

    def not_asking(self) -> AbstractContextManager[None]:
        return nullcontext()  # The terminal keeps whole lines by itself.

    async def _more(self) -> None:
        """Read what there is, waiting on the event loop where stdin can be waited for."""
        assert self._source is not None, "without a source it is over at once"
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        try:
            descriptor = self._source.fileno()
            loop.add_reader(descriptor, self._ready)
        except (OSError, ValueError, NotImplementedError):
            # A file, or an event loop that cannot wait for stdin (Windows): it is read line by line.
            line = self._source.readline(LINE_BYTES_MAX)
            self._add(line, is_over=not line)
            return
        try:
            await self._waiting
        finally:
            loop.remove_reader(descriptor)
            self._waiting = None
        piece = os.read(descriptor, _READ_BYTES)
        self._add(self._decoder.decode(piece, final=not piece), is_over=not piece)

    def _ready(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _add(self, text: str, *, is_over: bool) -> None:
        self._read += text
        self._is_over = is_over
        if len(self._read) > LINE_BYTES_MAX:
            raise Failure(f"a prompt longer than {LINE_BYTES_MAX} characters is not read", code=2)


class Editor:
    """A line editor with a history. Raises `ImportError` where prompt_toolkit is not installed.

    Enter hands the text in, Alt-Enter begins another line, Tab completes what begins with a slash. Ctrl-C clears the
    text; where there is none it interrupts.
    """

    def __init__(
        self, terminal: Terminal, environment: Mapping[str, str], *, history: Path, commands: Sequence[str]
    ) -> None:
        # Loaded on use: it takes as long to load as everything else.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory

        self._straight = terminal
        self._above: Terminal | None = None
        self._environment = environment
        self._modes = Modes(sys.stdin)
        self._given_back = ""
        words = WordCompleter(list(commands), sentence=True, ignore_case=True)
        file = FileHistory(str(history)) if private_history(history) else None
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=file,
            completer=words,
            complete_while_typing=False,
            multiline=True,
            key_bindings=_keys(),
            enable_open_in_editor=False,
            enable_suspend=True,
        )

    @property
    def terminal(self) -> Terminal:
        return self._above or self._straight

    @property
    def is_asking(self) -> bool:
        return self._above is not None

    async def asked(self) -> str | None:
        text, self._given_back = self._given_back, ""
        with self._writing_above():
            try:
                return await self._session.prompt_async(default=text)
            except EOFError:
                return None
            except KeyboardInterrupt:
                raise Interrupted from None

    def interrupt(self) -> None:
        app = self._session.app
        if app.is_running:
            app.exit(exception=KeyboardInterrupt)

    def give_back(self, prompt: str) -> None:
        self._given_back = prompt

    def not_asking(self) -> AbstractContextManager[None]:
        return self._modes.keeping_typed()

    @contextmanager
    def _writing_above(self) -> Iterator[None]:
        """Have everything that is written meanwhile appear above the line that is being typed."""
        from prompt_toolkit.patch_stdout import patch_stdout

        self._straight.flush()
        with patch_stdout(raw=True):
            self._above = here_and_now(self._environment)
            self._above.is_quiet = self._straight.is_quiet
            try:
                yield
            finally:
                self._above.flush()
                self._above = None


def _keys() -> Any:
    """Return the keys that differ from the editor's own. `Any`: its type is loaded with it."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys
