"""The built-in agent: offline and without a key, it answers with passages of the person's own sessions.

It is extractive and says so in every answer. It searches with a tool whose call and result are in the log like those of
any agent, and all that it quotes stands in that result, word for word. It obeys the prompt alone, and of that only what
`intents.py` lists: whatever a session says is data.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from playhead.agents.intents import (
    LIST,
    READ,
    SEARCH,
    Help,
    Intent,
    ListSessions,
    NothingThere,
    ReadEvent,
    Search,
    before,
    understood,
)
from playhead.agents.memory import event_text
from playhead.agents.passages import OWN_CALL, find_passages
from playhead.agents.protocol import Request, for_blocking
from playhead.agents.wording import HELP, Recent, RecentSessions, event_read, passages_found, sessions_listed
from playhead.aio import AsyncTurn
from playhead.errors import PlayheadError
from playhead.model.ids import SessionKey
from playhead.session import Sessions
from playhead.views.summary import Summary

GOES_ON_EVENTS = 200
"""So many of the last events are looked at for what a prompt may go on from."""
LISTED_MAX = 10
PIECE_CHARS_MAX = 24
"""A longer word, and a text without spaces, streams in pieces of so many characters."""

T = TypeVar("T")


class DefaultAgent:
    """The built-in agent. It keeps nothing between prompts: what a prompt goes on from is read from the session.

    words_per_second: how fast the answer streams; None for as fast as it can be recorded.
    """

    name = "built-in"

    def __init__(self, *, words_per_second: float | None = None) -> None:
        if words_per_second is not None and words_per_second <= 0:
            raise ValueError(f"words_per_second must be above 0, not {words_per_second}")
        self._pause_s = 0.0 if words_per_second is None else 1 / words_per_second

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        """Yield the answer word by word, each once it is recorded."""
        last = before(await request.session.transcript(last=GOES_ON_EVENTS), turn=turn.turn_id)
        text = await _answer(understood(request.prompt, last), request, turn)
        for piece in pieces(text):
            await turn.stream(piece)
            yield piece
            await asyncio.sleep(self._pause_s)


answer = for_blocking(DefaultAgent())
"""The built-in agent for a program that holds the blocking `Sessions`, `Session` and `Turn`."""


def pieces(text: str) -> list[str]:
    """Return the text in pieces that join to it: each a word with the space before it, or a part of a long word."""
    return re.findall(rf"\s*\S{{1,{PIECE_CHARS_MAX}}}|\s+\Z", text)


def recent_sessions(sessions: Sessions, *, app: str, user: str, without: str) -> RecentSessions:
    """Return the sessions of a person that were active last, but for one of them. Unreadable ones are left out."""
    page = sessions.list(app=app, user=user, limit=LISTED_MAX + 1)
    rows = [_recent(row.key, row.summary) for row in page.items if row.summary is not None and row.id != without]
    return RecentSessions(rows[:LISTED_MAX], page.total)


async def _answer(intent: Intent, request: Request, turn: AsyncTurn) -> str:
    """Use the tool for what is asked, and return the whole text of the answer."""
    app, user, here = request.session.key.app, request.session.key.user, request.session.key.id
    try:
        match intent:
            case Help():
                return HELP
            case NothingThere(why):
                return why
            case ListSessions():
                listing = partial(recent_sessions, app=app, user=user, without=here)
                return sessions_listed(await _used(request, turn, LIST, {}, listing))
            case ReadEvent(id, offset):
                reading = partial(event_text, id=id, offset=offset, app=app, user=user)
                return event_read(await _used(request, turn, READ, {"id": id, "offset": offset}, reading))
            case Search(query, without):
                its_turn = turn.turn_id
                finding = partial(
                    find_passages, query=query, without=without, app=app, user=user, here=here, turn=its_turn
                )
                arguments = {"query": query, "without": without}
                found = await _used(request, turn, SEARCH, arguments, finding)
                return passages_found(found, query, is_further=bool(without))
    except _ToolFailed as failure:
        return f"That did not work: {failure}."


class _ToolFailed(Exception):
    """A tool raised; its result in the log says what."""


async def _used(
    request: Request, turn: AsyncTurn, name: str, arguments: Mapping[str, Any], tool: Callable[[Sessions], T]
) -> T:
    """Run a tool off the event loop; its call is recorded before it runs, what it gave back or raised after.

    Raises `_ToolFailed` with the error's text. What goes wrong with the recording itself goes through.
    """
    # A turn has one call at the most.
    call = await turn.tool_call(name, dict(arguments), id=f"{OWN_CALL}{turn.turn_id}")
    try:
        result = await request.sessions.run(tool)
    except PlayheadError as error:
        await turn.tool_result(call, str(error), is_error=True)
        raise _ToolFailed(error) from error
    await turn.tool_result(call, msgspec.to_builtins(result))
    return result


def _recent(key: SessionKey, summary: Summary) -> Recent:
    return Recent(
        id=str(key),
        title=summary.title,
        last_user=summary.last_user,
        turn_count=summary.turn_count,
        last_active_at=summary.last_active_at,
    )
