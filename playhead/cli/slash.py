"""The commands of a conversation, which begin with a slash: what each is called, what it says of itself, what it does.

They do what the commands of the same name do, on the session that the conversation is in.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from playhead.agents.runtime import Runtime
from playhead.aio import AsyncSession
from playhead.cli.command import Here
from playhead.cli.failures import Failure
from playhead.cli.happenings import reason
from playhead.cli.table import Styled
from playhead.cli.terminal import Terminal
from playhead.cli.text import one_line
from playhead.model.ids import SessionKey
from playhead.stores.names import file_stem
from playhead.views.transcript import Entry

JOBS_EVENTS = 2_000
"""Events of the path among which `/jobs` looks: a conversation does not read the history."""

_FORCE = "--force"


class Talk(Protocol):
    """The conversation, as its commands see it."""

    @property
    def here(self) -> Here: ...

    @property
    def terminal(self) -> Terminal: ...

    @property
    def is_in_session(self) -> bool:
        """True once there is a session: a conversation begins one with the first prompt."""

    @property
    def session(self) -> AsyncSession:
        """The session that the conversation is in."""

    @property
    def runtime(self) -> Runtime:
        """What answers in it, and watches its triggers."""

    async def enter(self) -> None:
        """Open the session, or begin one, where none is open."""

    def go_to(self, session: AsyncSession) -> None:
        """Go on in another session after this command."""

    def leave(self) -> None:
        """End the conversation after this command."""


@dataclass(frozen=True, slots=True)
class Slash:
    """A command. usage: what follows its name. about: what it does, in the imperative."""

    usage: str
    about: str
    run: Callable[[Talk, str], Awaitable[None]]


def is_command(text: str) -> bool:
    """Return True for a line that is a command and no prompt: a path such as /etc/hosts is a prompt."""
    return text.lstrip().startswith("/") and _name(text)[1:].replace("-", "").isalpha()


def as_prompt(text: str) -> str:
    """Return what is sent for a line that is no command: //home sends /home, which by itself would be one."""
    return text[1:] if text.startswith("//") and is_command(text[1:]) else text


async def run(talk: Talk, text: str) -> None:
    """Do what a line says that `is_command`. Raises `Failure` with the nearest names where there is no such command."""
    name = _name(text)
    command = COMMANDS.get(name.lower())
    if command is None:
        near = get_close_matches(name.lower(), COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "/help lists the commands"
        sends = f"/{one_line(name)} sends it as a prompt"
        raise Failure(f"there is no command {one_line(name)}; {hint}", code=2, lines=[sends])
    await command.run(talk, text.strip().removeprefix(name).strip())


def _name(text: str) -> str:
    return text.split(maxsplit=1)[0]


def _need_session(talk: Talk, nothing: str) -> None:
    """Raise `Failure` where there is no session yet: nothing is begun just to say that it is empty."""
    if not talk.is_in_session:
        raise Failure(nothing, code=3)


async def _help(talk: Talk, argument: str) -> None:
    wide = max(len(f"{name} {command.usage}") for name, command in COMMANDS.items())
    for name, command in COMMANDS.items():
        talk.terminal.line(Styled(f"{name} {command.usage}".ljust(wide), "cyan"), f"  {command.about}")
    talk.terminal.line(
        Styled("Alt-Enter begins another line, Ctrl-C stops the answer and twice leaves, Ctrl-D leaves.", "dim")
    )
    talk.terminal.line(Styled("A prompt that looks like a command is sent with one more slash: //help.", "dim"))


async def _rewind(talk: Talk, argument: str) -> None:
    nothing = "there is nothing to rewind yet"
    _need_session(talk, nothing)
    session = talk.session
    try:
        turn = int(argument or -1)
    except ValueError:
        raise Failure(f"/rewind takes the number of a turn, not {one_line(argument)}", code=2) from None
    await session.refresh()
    if not (await session.summary()).turn_count:
        raise Failure(nothing, code=3)
    await _as_command(talk, "rewind", str(session.key), to=turn)
    await session.refresh()


async def _fork(talk: Talk, argument: str) -> None:
    _need_session(talk, "there is nothing to fork yet")
    session = talk.session
    facts = await session.summary()
    forked = await session.fork(title=argument or fork_title(facts.title))
    talk.go_to(forked)
    talk.terminal.note(f"You are in {forked.key} now. To go back: playhead resume {session.key}")


async def _search(talk: Talk, argument: str) -> None:
    if not argument:
        raise Failure("say what to search for, as in /search upload timeout", code=2)
    await _as_command(talk, "search", argument.split())


async def _title(talk: Talk, argument: str) -> None:
    if not argument:
        raise Failure("say what the title is, as in /title Flaky upload test", code=2)
    await talk.enter()
    await talk.session.rename(argument)
    talk.terminal.note(f'The session is called "{one_line(argument)}".')


async def _export(talk: Talk, argument: str) -> None:
    _need_session(talk, "there is nothing to export yet")
    words = argument.split(" ")
    is_forced = _FORCE in (words[0], words[-1])
    if is_forced:
        argument = argument.removeprefix(_FORCE).removesuffix(_FORCE).strip()
    file = _exported_to(argument, talk.session.key)
    await _as_command(talk, "export", [str(talk.session.key)], output=file, force=is_forced)


def _exported_to(argument: str, key: SessionKey) -> str:
    """Return the file that is meant. In a folder it is named after the session; without a name it is one to read."""
    # Loaded on use: it brings every format that can be written.
    from playhead.formats.exporting import format_of

    try:
        path = Path(argument).expanduser()
    except RuntimeError as error:
        raise Failure(f"{one_line(argument)} cannot be written: {error}", code=2) from error
    if argument.endswith(("/", os.sep)) or path.is_dir():
        return str(path / f"{file_stem(key)}.md")
    if format_of(path) is None:
        raise Failure(
            f"the ending of {one_line(path.name)} does not tell what to write; give .md, .html or .jsonl", code=2
        )
    return str(path)


async def _jobs(talk: Talk, argument: str) -> None:
    entries = await talk.session.transcript(last=JOBS_EVENTS) if talk.is_in_session else []
    jobs = [entry for entry in entries if entry.kind in ("job", "sub_agent")]
    for entry in jobs:
        talk.terminal.line(_job_line(entry))
    if not jobs:
        talk.terminal.note("There are no jobs.")


def _job_line(entry: Entry) -> str:
    return f"{entry.kind.replace('_', '-')} {one_line(entry.text)}{reason(entry.data or {})}"


async def _triggers(talk: Talk, argument: str) -> None:
    triggers = talk.runtime.triggers if talk.is_in_session else {}
    for id, trigger in sorted(triggers.items()):
        label = getattr(trigger, "label", None)
        talk.terminal.line(Styled(one_line(id), "cyan"), f"  {one_line(label() if label else type(trigger).__name__)}")
    if not triggers:
        talk.terminal.note("There are no triggers.")


async def _send(talk: Talk, argument: str) -> None:
    channel, _, text = argument.partition(" ")
    channel = channel.removeprefix("#")
    if not channel or not text.strip():
        raise Failure("say where and what, as in /send ops The upload is green again", code=2)
    await talk.enter()
    await talk.session.send(channel, text.strip(), sender="user")
    talk.terminal.note(f"Sent to #{one_line(channel)}.")


async def _quit(talk: Talk, argument: str) -> None:
    talk.leave()


async def _as_command(talk: Talk, name: str, *arguments: Any, **options: Any) -> None:
    """Run the command of this name as the command line does, on the same store. It opens the store for itself."""
    module = import_module(f"playhead.cli.{name}")
    here = replace(talk.here, terminal=talk.terminal)
    await asyncio.to_thread(module.COMMAND.run, here, *arguments, **options)
    talk.terminal.flush()


def fork_title(title: str) -> str:
    """Return what a fork is called where nobody named it."""
    return f"{title} (fork)"


COMMANDS: Mapping[str, Slash] = {
    "/help": Slash("", "List the commands", _help),
    "/rewind": Slash("[TURN]", "Hide a turn and all after it; the last one where none is named", _rewind),
    "/fork": Slash("[TITLE]", "Go on in a copy of this session", _fork),
    "/search": Slash("WORDS", "Search every event of every session", _search),
    "/title": Slash("TEXT", "Name the session", _title),
    "/export": Slash("[FILE] [--force]", "Write the session to a file: .md, .html or .jsonl", _export),
    "/jobs": Slash("", "List jobs and sub-agents, and what became of them", _jobs),
    "/triggers": Slash("", "List what will start a turn by itself", _triggers),
    "/send": Slash("CHANNEL TEXT", "Leave a message on a channel", _send),
    "/quit": Slash("", "Leave; the session stays", _quit),
}
