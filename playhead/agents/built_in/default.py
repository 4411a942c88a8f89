"""The built-in agent: offline and without a key, it answers with passages of the person's own sessions and documents.

It is extractive and says so in every answer. It searches with tools whose calls and results are in the log like those
of any agent, and all that it quotes stands in their results, word for word. It obeys the prompt alone, and of that only
what `intents.py` and `orders.py` list: whatever a session, a document or a channel says is data. What a trigger asks is
answered, and sets and sends nothing.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from functools import partial

from playhead.agents.built_in import orders
from playhead.agents.built_in.calling import Caller
from playhead.agents.built_in.doing import Doing
from playhead.agents.built_in.intents import (
    LIST,
    QUERY_CHARS_MAX,
    READ,
    READ_DOCUMENT,
    Before,
    Help,
    Intent,
    ListSessions,
    NothingThere,
    ReadDocument,
    ReadEvent,
    Research,
    Search,
    before,
    understood,
)
from playhead.agents.built_in.research import report_of, researched, searched
from playhead.agents.built_in.wording import (
    HELP,
    NO_ORDERS,
    Recent,
    RecentSessions,
    document_read,
    event_read,
    occasion,
    passages_found,
    reminded,
    sessions_listed,
)
from playhead.agents.documents.folder import Documents, DocumentText
from playhead.agents.documents.indexing import kept_in_step
from playhead.agents.memory import event_text
from playhead.agents.protocol import Request, for_blocking
from playhead.agents.tools import ToolFailed
from playhead.aio import AsyncTurn
from playhead.features.live import Clock
from playhead.features.triggers import Firing
from playhead.model.body import text_in
from playhead.model.ids import SessionKey
from playhead.session import Sessions
from playhead.views.summary import Summary

GOES_ON_EVENTS = 200
"""So many of the last events are looked at for what a prompt may go on from."""
LISTED_MAX = 10
PIECE_CHARS_MAX = 24
"""A longer word, and a text without spaces, streams in pieces of so many characters."""

MESSAGES_SEARCHED_MAX = 5
"""Of the messages on a channel that is answered, the last ones are looked for."""


class DefaultAgent:
    """The built-in agent. It keeps nothing between prompts: what a prompt goes on from is read from the session. (The
    index of the documents is made again from the folder wherever it is missing.)

    words_per_second: how fast the answer streams; None for as fast as it can be recorded. documents: a folder to answer
    from as well. zone: the time zone of times that name none. clock: what reminders count from.
    """

    name = "built-in"

    def __init__(
        self,
        *,
        words_per_second: float | None = None,
        documents: Documents | None = None,
        zone: str = "UTC",
        clock: Clock = time.time,
    ) -> None:
        if words_per_second is not None and words_per_second <= 0:
            raise ValueError(f"words_per_second must be above 0, not {words_per_second}")
        self._pause_s = 0.0 if words_per_second is None else 1 / words_per_second
        self._documents = documents
        self._orders = Doing(zone=zone, clock=clock)

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        """Yield the answer word by word, each once it is recorded."""
        caller = Caller(request, turn)
        try:
            if request.firing is not None:
                text = await self._fired(request.firing, caller)
            else:
                last = before(await request.session.transcript(last=GOES_ON_EVENTS), turn=turn.turn_id)
                text = await self._answer(self._understood(request.prompt, last), caller)
        except ToolFailed as failure:
            text = f"That did not work: {failure}."
        for piece in pieces(text):
            await turn.stream(piece)
            yield piece
            await asyncio.sleep(self._pause_s)

    def _understood(self, prompt: str, last: Before) -> Intent:
        return understood(prompt, last, has_documents=self._documents is not None)

    async def _answer(self, intent: Intent, caller: Caller) -> str:
        """Use the tools for what is asked, and return the whole text of the answer."""
        match intent:
            case Help():
                return HELP
            case NothingThere(why):
                return why
            case ListSessions():
                return sessions_listed(await _listed(caller))
            case ReadEvent():
                return await _read(intent, caller)
            case ReadDocument():
                return document_read(await self._read_document(intent, caller))
            case Search(query, without):
                found = await searched(caller, query, without)
                return passages_found(report_of(found), query, is_further=bool(without))
            case Research(query, _, without):
                report = await researched(caller, intent, self._documents)
                return passages_found(report, query, is_further=bool(without))
            case _:
                return await self._orders.done(intent, caller)

    async def _fired(self, firing: Firing, caller: Caller) -> str:
        """Return what is said for a trigger: a reminder itself, the answer to what else it asks."""
        if firing.reply is not None:
            return await self._answer(self._searching(await _said_on_channel(firing, caller)), caller)
        if firing.words.startswith(orders.REMINDER):
            return reminded(firing)
        # A trigger of a program's own may have no words but the whole prompt.
        intent = self._understood(firing.words or firing.prompt, Before())
        if isinstance(intent, orders.Order) and not isinstance(intent, orders.Recall | orders.ListTriggers):
            intent = NothingThere(NO_ORDERS)
        return "\n\n".join([await self._answer(intent, caller), *occasion(firing)])

    def _searching(self, text: str) -> Intent:
        """Return the search for what others said. Whatever else it may say, nobody asked for that."""
        if not text.strip():
            return NothingThere("There is no text in what was said, and so nothing to look for.")
        return Search(text) if self._documents is None else Research(text, (text,))

    async def _read_document(self, intent: ReadDocument, caller: Caller) -> DocumentText:
        documents = self._documents

        async def read() -> DocumentText:
            if documents is None:
                raise ToolFailed("there is no folder of documents here")
            await kept_in_step(documents, caller.request, agent=caller.speaker.agent)
            return await asyncio.to_thread(documents.read, intent.name, intent.line)

        return await caller.call(READ_DOCUMENT, {"name": intent.name, "line": intent.line}, read)


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


async def _listed(caller: Caller) -> RecentSessions:
    key, request = caller.request.session.key, caller.request
    listing = partial(recent_sessions, app=key.app, user=key.user, without=key.id)
    return await caller.call(LIST, {}, lambda: request.sessions.run(listing))


async def _read(intent: ReadEvent, caller: Caller) -> str:
    key, request = caller.request.session.key, caller.request
    reading = partial(event_text, id=intent.id, offset=intent.offset, app=key.app, user=key.user)
    arguments = {"id": intent.id, "offset": intent.offset}
    return event_read(await caller.call(READ, arguments, lambda: request.sessions.run(reading)))


async def _said_on_channel(firing: Firing, caller: Caller) -> str:
    """Return the texts of the last messages that a trigger fired for, in one."""
    wanted = {one.get("event") for one in firing.payload.get("messages", ()) if isinstance(one, dict)}
    channel = str(firing.payload.get("channel"))
    messages = await caller.request.session.channel(channel)
    said = [text for one in messages if one.id in wanted and (text := text_in(one.body, "content"))]
    return "\n".join(text[:QUERY_CHARS_MAX] for text in said[-MESSAGES_SEARCHED_MAX:])


def _recent(key: SessionKey, summary: Summary) -> Recent:
    return Recent(
        id=str(key),
        title=summary.title,
        last_user=summary.last_user,
        turn_count=summary.turn_count,
        last_active_at=summary.last_active_at,
    )
