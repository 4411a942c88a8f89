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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import platformdirs

from playhead.cli.failures import Failure
from playhead.cli.terminal import Terminal, here_and_now

PROMPT = "> "
HISTORY_FILE = "history"
HISTORY_BYTES_MAX = 1_000_000
"""A longer history is cut to its newer half when it is opened."""
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


def asking(
    terminal: Terminal, environment: Mapping[str, str], *, history: Path, commands: Sequence[str] = ()
) -> Asking:
    """Return the line editor where a person sits at a terminal that can have one, else what reads lines."""
    if terminal.can_ask and environment.get("TERM") not in (None, "", "dumb"):
        with suppress(ImportError):
            return Editor(terminal, environment, history=history, commands=commands)
    return Lines(terminal, sys.stdin)


def agreed(terminal: Terminal, question: str) -> bool:
    """Ask a person, and return True for yes. Raises `Failure` (usage) where nobody can be asked."""
    if not terminal.can_ask:
        raise Failure("there is nobody to ask here; give --yes to agree beforehand", code=2)
    terminal.start(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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

    async def _more(self) -> None:
        """Read what there is, waiting on the event loop where stdin can be waited for."""
        assert self._source is not None, "without a source it is over at once"
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        try:
            descriptor = self._source.fileno()
            loop.add_reader(descriptor, self._ready)
        except (OSError, ValueError, NotImplementedError):
            # A file, or what stands for stdin in a test: it does not keep anybody waiting.
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
        words = WordCompleter(list(commands), sentence=True)
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
        with self._writing_above():
            try:
                return await self._session.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                raise Interrupted from None

    def interrupt(self) -> None:
        app = self._session.app
        if app.is_running:
            app.exit(exception=KeyboardInterrupt)

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


def history_file(environment: Mapping[str, str]) -> Path:
    """Return where past prompts are kept: with the sessions where PLAYHEAD_HOME says so, else in the state folder."""
    if environment.get("PLAYHEAD_HOME"):
        return Path(environment["PLAYHEAD_HOME"]) / "state" / HISTORY_FILE
    return platformdirs.user_state_path("playhead", appauthor=False, ensure_exists=False) / HISTORY_FILE


def private_history(file: Path) -> bool:
    """Make the file of past prompts one that only its owner reads, cut to its newer half where it grew too long.

    Returns False where it cannot be had; a conversation does without.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        file.chmod(0o600)
        if file.stat().st_size > HISTORY_BYTES_MAX:
            _shorten(file)
    except OSError:
        return False
    return True


def _shorten(file: Path) -> None:
    """Keep the newer half, from the beginning of an entry on: a blank line and a comment with its time."""
    kept = file.read_bytes()[-HISTORY_BYTES_MAX // 2 :]
    _, mark, entries = kept.partition(b"\n\n#")
    part = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as out:
        out.write(b"\n#" + entries if mark else b"")
    part.replace(file)
