"""The `chat` command: a conversation, kept in a session."""

from __future__ import annotations

from typing import Annotated

import typer

from playhead.agents.triggers import trigger_types
from playhead.aio import AsyncSession, AsyncSessions
from playhead.cli.agents import (
    ABOUT,
    ANSWERED_BY,
    BUILT_IN,
    AgentOption,
    BaseUrlOption,
    DocumentsOption,
    InstructionsOption,
    ModelOption,
    Wanted,
    chosen,
)
from playhead.cli.command import Command, Here
from playhead.cli.conversing import conversed
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.text import one_line


def run(
    here: Here,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Go on with this session; else a new one begins")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the new session")] = None,
    agent: AgentOption = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    documents: DocumentsOption = None,
    instructions: InstructionsOption = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object a line, as things happen; each line read is a prompt")
    ] = False,
) -> int:
    """Converse in the session until the person leaves or the input ends."""
    if title is not None and session is not None:
        raise Failure("--title is for a new session", code=2)
    answering = chosen(here, Wanted(agent, model, base_url, documents, instructions), stays_open=True)
    if session is not None:
        with here.open_existing() as sessions:
            key = named(sessions, session)

    async def opening(sessions: AsyncSessions) -> AsyncSession:
        if session is not None:
            return await sessions.resume(key.id, app=key.app, user=key.user, triggers=trigger_types())
        return await sessions.create(
            cwd=here.folder, title=title, config={ANSWERED_BY: answering.name}, triggers=trigger_types()
        )

    if here.terminal.can_ask and not jsonl:
        where = f"in {one_line(str(key))}" if session is not None else "in a new session"
        who = "The built-in agent" if answering.name == BUILT_IN else one_line(answering.name)
        here.terminal.note(f"{who} answers {where}. /help lists the commands, Ctrl-D leaves.")
    return conversed(here, answering, opening, at_once=session is not None, as_json=jsonl)


COMMAND = Command(
    run,
    about=(
        "Every prompt is stored before it is answered, and the answer while it is written. Ctrl-C stops the answer and "
        "keeps what was said, twice leaves, and so does Ctrl-D. Enter sends, Alt-Enter begins another line; what you "
        "type during an answer is the beginning of the next prompt. Lines that begin with a slash are commands, such "
        "as /rewind, /fork and /export; /help lists them, and //help sends /help as a prompt. In a pipe each line is a "
        "prompt, and the answers alone go to stdout.\n\n"
        "The arrow keys bring back what you typed: it is kept in a file that you alone can read, state/history in "
        "PLAYHEAD_HOME, else `history` in your state folder. `rm --purge` takes a session's prompts out of it.\n\n"
        f"{ABOUT}"
    ),
    examples=(
        "playhead chat",
        "playhead chat --session @last",
        'echo "What did we decide about the upload test?" | playhead chat',
        'echo "hello" | playhead chat --jsonl | jq -r .type',
    ),
    exits=(3, 4, 5, 130),
)
