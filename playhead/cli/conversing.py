"""A conversation: prompts in, answers out as they come, until the person leaves. What `chat` and `resume` share.

Between prompts the session's triggers are watched; what they start is answered above the line that is being typed. The
session is opened, or begun, with the first thing that needs it, so that leaving at once leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from typing import Any

from playhead.agents.protocol import JOBS_PATIENCE_S
from playhead.agents.runtime import Happening, Runtime
from playhead.aio import AsyncSession, AsyncSessions, open_async
from playhead.cli import slash
from playhead.cli.agents import ANSWERED_BY, STATE_SCOPE, Chosen, goes_on_note, last_answered_by
from playhead.cli.answering import TURN_LABEL
from playhead.cli.asking import Asking, Interrupted, Lines, asking, history_file
from playhead.cli.command import Here
from playhead.cli.failures import exit_code, report
from playhead.cli.happenings import Happenings, JsonHappenings, Shown, Telling
from playhead.cli.table import Style
from playhead.cli.terminal import Terminal

INTERRUPTED = 130
LEAVES_WITHIN_S = 2.0
"""So long an agent has to stop once the person has left."""

_TOLD: Mapping[str, Style] = {"busy": "yellow", "fired": "yellow", "problem": "red", "resumed": "dim"}
"""What the runtime tells that the log does not, and how it looks."""

Opening = Callable[[AsyncSessions], Awaitable[AsyncSession]]
"""Opens the session to converse in, or begins one."""


def conversed(here: Here, chosen: Chosen, opening: Opening, *, at_once: bool, as_json: bool = False) -> int:
    """Have a conversation and return the exit code: 0 where the input ended, 130 where Ctrl-C did, 1 where it was read
    from a pipe and a prompt could not be answered.

    at_once: open the session before the first prompt, so that its triggers fire. as_json: tell everything in JSON, an
    object a line; every line that is read is a prompt then.
    """
    history = history_file(here.environment)
    if as_json:
        prompts: Asking = Lines(here.terminal, sys.stdin, asks=False)
    else:
        prompts = asking(here.terminal, here.environment, history=history, commands=[*slash.COMMANDS])
    return asyncio.run(_conversed(here, prompts, chosen, opening, at_once=at_once, as_json=as_json))


async def _conversed(
    here: Here, prompts: Asking, chosen: Chosen, opening: Opening, *, at_once: bool, as_json: bool
) -> int:
    async with await open_async(here.store_url) as sessions:
        conversation = _Conversation(here, prompts, sessions, chosen, opening, as_json=as_json)
        async with aclosing(conversation):
            if at_once:
                await conversation.enter()
            code = await conversation.go()
            conversation.tell_where_it_is()
            return code


class _Conversation:
    """The conversation that goes on, in one session at a time."""

    def __init__(
        self,
        here: Here,
        prompts: Asking,
        sessions: AsyncSessions,
        chosen: Chosen,
        opening: Opening,
        *,
        as_json: bool,
    ) -> None:
        self.here = here
        self._asking = prompts
        self._sessions = sessions
        self._chosen = chosen
        self._opening = opening
        self._as_json = as_json
        self._session: AsyncSession | None = None
        self._telling: Telling | None = None
        self._loop = asyncio.get_running_loop()
        self._open = AsyncExitStack()
        self._answering: asyncio.Task[Any] | None = None
        self._is_stopping = False
        self._runtime: Runtime | None = None
        self._next: AsyncSession | None = None
        self._has_left = False
        self._failed_code = 0

    @property
    def terminal(self) -> Terminal:
        return self._asking.terminal

    @property
    def session(self) -> AsyncSession:
        assert self._session is not None, "it is entered before what needs it"
        return self._session

    @property
    def runtime(self) -> Runtime:
        assert self._runtime is not None, "it runs as long as the session is open"
        return self._runtime

    def go_to(self, session: AsyncSession) -> None:
        self._next = session

    def leave(self) -> None:
        self._has_left = True

    def tell_where_it_is(self) -> None:
        """Say what to type to go on, where there is something to go on with."""
        if self._session is not None:
            self.terminal.note(f"Kept in {self._session.key}. To go on: playhead resume {self._session.key}")

    async def aclose(self) -> None:
        """Leave the session that is open, if one is."""
        self._session = None
        await self._open.aclose()

    async def go(self) -> int:
        """Ask for prompts and have them answered, until the person leaves. Returns the exit code.

        A first Ctrl-C stops what is going on, a second one before the next prompt leaves. In a pipe the first leaves.
        """
        was_interrupted = False
        with _interrupting(self._interrupt):
            while not self._has_left:
                try:
                    prompt = await self._prompt()
                except Interrupted:
                    if self._runtime is not None and self._runtime.stop_turn():
                        self.terminal.note("Stopped; what was said is kept.")
                        continue
                    if not was_interrupted and self.terminal.can_ask:
                        self.terminal.note("Ctrl-C again leaves.")
                    is_second, was_interrupted = was_interrupted, True
                else:
                    if prompt is None:
                        break
                    is_second = False
                    was_interrupted = bool(prompt.strip()) and await self._done(prompt)
                if is_second or (was_interrupted and not self.terminal.can_ask):
                    return INTERRUPTED
        return self._failed_code

    async def _prompt(self) -> str | None:
        """Return the next prompt, or None where no more will come. Raises `Interrupted`."""
        if self.terminal.can_ask and not self._as_json:
            self.terminal.line()
        prompt = await self._asking.asked()
        if prompt is None and self._runtime is not None and not self.terminal.can_ask:
            # Nobody waits at the other end of a pipe: what was begun is done to its end.
            await self._runtime.jobs.close(patience_s=JOBS_PATIENCE_S)
        return prompt

    async def _done(self, prompt: str) -> bool:
        """Do what was typed. Returns True where Ctrl-C stopped it; what goes wrong is told, and the person goes on."""
        self._is_stopping = False
        is_command = slash.is_command(prompt) and not self._as_json
        try:
            if not is_command or slash.needs_session(prompt):
                await self.enter()
            self._answering = asyncio.ensure_future(slash.run(self, prompt) if is_command else self._answered(prompt))
            await self._answering
            if self._next is not None:
                await self.aclose()
                await self.enter()
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            again = " Ctrl-C again leaves." if self.terminal.can_ask else ""
            self.terminal.note(f"Stopped; what was said is kept.{again}")
            return True
        except Exception as error:
            # Whatever an agent raised: its turn is recorded as failed, and the person can go on.
            report(error, self.terminal)
            self._failed_code = 0 if self.terminal.can_ask else exit_code(error)
        finally:
            self._answering = None
        return False

    async def _answered(self, prompt: str) -> None:
        assert self._telling is not None, "it is there with the session"
        try:
            await self.runtime.answer(prompt)
        finally:
            await self._telling.catch_up()

    async def enter(self) -> None:
        """Open the session to converse in, where none is open."""
        if self._session is not None:
            return
        session, self._next = self._next or await self._opening(self._sessions), None
        self._session = await self._open.enter_async_context(session)
        before = last_answered_by(await session.state(), (await session.event(1)).body)
        if before != self._chosen.name:
            await session.set_state({ANSWERED_BY: self._chosen.name}, scope=STATE_SCOPE)
        shown: Shown = JsonHappenings(self.terminal, session.key) if self._as_json else Happenings(self._asking)
        self._telling = await self._open.enter_async_context(Telling(session, shown))
        runtime = Runtime(
            self._chosen.agent,
            self._sessions,
            session,
            on_text=self._telling.text,
            on_event=self._heard,
            label=TURN_LABEL,
        )
        self._runtime = await self._open.enter_async_context(runtime)
        if note := goes_on_note(before, self._chosen.name):
            self.terminal.note(note)

    def _heard(self, happening: Happening) -> None:
        """Tell of what happens in the runtime, where the log does not tell it as well."""
        assert self._telling is not None, "it is there before the runtime"
        text = happening.text
        if happening.kind == "fired":
            text = f"{happening.details.get('type')} fired: {happening.details.get('words')}"
        if happening.kind in _TOLD:
            self._telling.line(text, _TOLD[happening.kind])

    def _interrupt(self) -> None:
        """Take a Ctrl-C, wherever the program is. The event loop may be asleep, so it is woken for what is its own."""
        if self._answering is None:
            self._loop.call_soon_threadsafe(self._asking.interrupt)
        elif self._is_stopping:
            # It does not stop, or not soon enough. The loop's end closes the turn; what holds that up as well is left
            # behind, as by a crash, and the next resume closes it.
            leaving = threading.Timer(LEAVES_WITHIN_S, os._exit, [INTERRUPTED])
            leaving.daemon = True
            leaving.start()
            raise KeyboardInterrupt
        else:
            self._is_stopping = True
            self._loop.call_soon_threadsafe(self._answering.cancel)


@contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C call a function instead of raising, also where an agent keeps the event loop busy."""
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
