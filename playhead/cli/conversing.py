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
from playhead.cli.answering import TURN_LABEL, jobs_sentence
from playhead.cli.asking import INTERRUPTED, Asking, Interrupted, Lines, asking
from playhead.cli.command import Here
from playhead.cli.failures import blamed, exit_code, report
from playhead.cli.happenings import Happenings, JsonHappenings, Shown, Telling
from playhead.cli.history import history_file
from playhead.cli.modes import Modes
from playhead.cli.table import Style
from playhead.cli.terminal import Terminal
from playhead.errors import PlayheadError, StoreUnavailable
from playhead.model.ids import SessionKey

LEAVES_WITHIN_S = 2.0
"""So long an agent has to stop once the person has left."""
SIGN_AFTER_S = 1.0
"""An agent that has not stopped so long after Ctrl-C is told of: a person sees that the key was heard."""

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
    leaving = _Leaving(here.terminal)
    try:
        return asyncio.run(_conversed(here, prompts, chosen, opening, leaving, at_once=at_once, as_json=as_json))
    except KeyboardInterrupt:
        if leaving.kept is None:
            raise
        leaving.tell()
        return INTERRUPTED


async def _conversed(
    here: Here,
    prompts: Asking,
    chosen: Chosen,
    opening: Opening,
    leaving: _Leaving,
    *,
    at_once: bool,
    as_json: bool,
) -> int:
    async with await open_async(here.store_url) as sessions:
        conversation = _Conversation(here, prompts, sessions, chosen, opening, leaving, as_json=as_json)
        async with aclosing(conversation):
            if at_once:
                await conversation.enter()
            code = await conversation.go()
            await conversation.tell_where_it_is()
            return code


class _Leaving:
    """The way out, also where an agent keeps the program from taking it. kept: the session that there is to go on with,
    None where there is none."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._modes = Modes(sys.stdin)
        self.kept: SessionKey | None = None

    def tell(self) -> None:
        """Say what to type to go on, where there is something to go on with."""
        if self.kept is not None:
            self._terminal.note(f"Kept in {self.kept}. To go on: playhead resume {self.kept}")

    def soon(self) -> None:
        """End the process before long, whatever still goes on in it: as by a crash, and the next resume closes it."""
        timer = threading.Timer(LEAVES_WITHIN_S, self._now)
        timer.daemon = True
        timer.start()

    def _now(self) -> None:
        try:
            self._modes.restore()
            self.tell()
        finally:
            os._exit(INTERRUPTED)


class _Conversation:
    """The conversation that goes on, in one session at a time."""

    def __init__(
        self,
        here: Here,
        prompts: Asking,
        sessions: AsyncSessions,
        chosen: Chosen,
        opening: Opening,
        leaving: _Leaving,
        *,
        as_json: bool,
    ) -> None:
        self.here = here
        self._leaving = leaving
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
        self._is_leaving = False
        self._has_begun = False
        self._runtime: Runtime | None = None
        self._next: AsyncSession | None = None
        self._has_left = False
        self._failed_code = 0

    @property
    def terminal(self) -> Terminal:
        return self._asking.terminal

    @property
    def is_in_session(self) -> bool:
        return self._session is not None

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

    async def tell_where_it_is(self) -> None:
        """Say what to type to go on, where there is something to go on with."""
        if self._session is None:
            return
        if gone := await self._gone():
            self.terminal.note(gone)
        else:
            self._leaving.tell()

    async def _gone(self) -> str | None:
        """Return what became of the session that is open, where it was removed meanwhile; None where it is there."""
        key = self.session.key
        try:
            if not await self._sessions.was_removed(key.id, app=key.app, user=key.user):
                return None
            trashed = [one for one in await self._sessions.trashed() if one.key == key]
        except StoreUnavailable:
            return f"{key} is not there any more, nor is its store."
        except PlayheadError:
            return None  # Nobody can tell; what went wrong is told by whatever needs the store next.
        if trashed:
            return f"{key} is in the trash. To bring it back: playhead restore {trashed[0].trash_id}"
        return f"{key} was removed meanwhile."

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
                    with self._asking.not_asking():
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
            if running := self._runtime.jobs.running:
                self.terminal.note(jobs_sentence(running))
            await self._runtime.jobs.close(patience_s=JOBS_PATIENCE_S)
        return prompt

    async def _done(self, prompt: str) -> bool:
        """Do what was typed. Returns True where Ctrl-C stopped it; what goes wrong is told, and the person goes on."""
        self._is_stopping = self._has_begun = False
        is_command = slash.is_command(prompt) and not self._as_json
        try:
            if is_command:
                self._answering = asyncio.ensure_future(slash.run(self, prompt))
            else:
                await self.enter()
                self._answering = asyncio.ensure_future(self._answered(prompt))
            await self._answering
            if self._next is not None:
                await self.aclose()
                await self.enter()
        except asyncio.CancelledError:
            if self._is_leaving or not self._is_stopping:
                raise
            self._tell_stopped(prompt, is_command=is_command)
            return True
        except Exception as error:
            if isinstance(error, BrokenPipeError) and blamed(error) is None:
                raise  # Who reads the answers went away: there is nobody to go on for.
            # Whatever an agent raised: its turn is recorded as failed, and the person can go on.
            report(error, self.terminal)
            if self._session is not None and (gone := await self._gone()):
                self.terminal.error_detail(gone)
            if not is_command and not self._has_begun:
                self._asking.give_back(prompt)
            self._failed_code = 0 if self.terminal.can_ask else exit_code(error)
        finally:
            self._answering = None
        return False

    def _tell_stopped(self, prompt: str, *, is_command: bool) -> None:
        if is_command:
            said = "Stopped."
        elif self._has_begun:
            said = "Stopped; what was said is kept."
        else:
            said = "Stopped before it began: the prompt was not sent."
            self._asking.give_back(prompt)
        self.terminal.note(f"{said} Ctrl-C again leaves." if self.terminal.can_ask else said)

    async def _answered(self, prompt: str) -> None:
        assert self._telling is not None, "it is there with the session"
        try:
            await self.runtime.answer(prompt if self._as_json else slash.as_prompt(prompt))
        finally:
            await self._telling.catch_up()

    async def enter(self) -> None:
        """Open the session to converse in, where none is open."""
        if self._session is not None:
            return
        session, self._next = self._next or await self._opening(self._sessions), None
        self._session = await self._open.enter_async_context(session)
        self._leaving.kept = session.key
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
        if happening.kind == "busy" and happening.trigger is None:
            text = f"The prompt waits: {text}"
        if happening.kind == "ended" and happening.trigger is None:
            self._has_begun = True
        if happening.kind in _TOLD:
            self._telling.line(text, _TOLD[happening.kind])

    def _interrupt(self) -> None:
        """Take a Ctrl-C, wherever the program is. The event loop may be asleep, so it is woken for what is its own."""
        if self._answering is None:
            self._loop.call_soon_threadsafe(self._asking.interrupt)
        elif self._is_stopping:
            # It does not stop, or not soon enough. The loop's end closes the turn; what holds that up as well is left
            # behind.
            self._is_leaving = True
            self._leaving.soon()
            raise KeyboardInterrupt
        else:
            self._is_stopping = True
            self._loop.call_soon_threadsafe(self._answering.cancel)
            sign = threading.Timer(SIGN_AFTER_S, self._tell_still_there, [self._answering])
            sign.daemon = True
            sign.start()

    def _tell_still_there(self, answering: asyncio.Task[Any]) -> None:
        """Say that a Ctrl-C was heard which stops nothing yet. From a thread: the event loop may be what is held up."""
        if not answering.done() and not self._is_leaving:
            # The answer may stand in the line that is being written.
            told = "\nIt has not stopped yet. Ctrl-C again leaves."
            self.terminal.note(told if self.terminal.can_ask else told.strip())


@contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C call a function instead of raising, also where an agent keeps the event loop busy."""
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
