"""A question researched by a sub-agent: it searches sessions and documents, topic by topic, and picks the best.

The built-in agent sends it out where one search is not enough: where there are documents beside the sessions, where
two things are compared, where everything about something is asked for. Its searches are recorded in a scope of their
own; the main conversation holds the one call that sent it out, and what it picked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from playhead.agents.built_in.calling import Caller
from playhead.agents.built_in.intents import RESEARCH, SEARCH, SEARCH_DOCUMENTS, Research
from playhead.agents.built_in.passages import PASSAGES_MAX, Passage, Passages, best_of, find_passages
from playhead.agents.documents.folder import DocumentPassages, Documents, Status
from playhead.agents.documents.indexing import kept_in_step
from playhead.agents.quoting import counted, shown_reference

RESEARCHER = "researcher"
BROAD_PASSAGES_MAX = 12
"""So many passages where everything about something was asked for."""
TOPIC_PASSAGES_MAX = 4
"""So many of each of the things that are compared."""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found. passages: topic by topic, the best ones of each first. topics: what was looked for, where that is
    several things. more_count: further ones that `without` leads to. documents: how far the folder was searched, None
    without one. The rest is as in `Passages`."""

    passages: list[Passage]
    session_count: int
    more_count: int = 0
    problem_count: int = 0
    topics: list[str] = []
    documents: Status | None = None


async def searched(caller: Caller, query: str, without: Sequence[str], *, count: int = PASSAGES_MAX) -> Passages:
    """Search the sessions of the person who asks, as a recorded call, but for the turn that asks."""
    request, key = caller.request, caller.request.session.key
    finding = partial(
        find_passages,
        query=query,
        without=without,
        count=count,
        app=key.app,
        user=key.user,
        here=key.id,
        turn=caller.speaker.turn_id,
    )
    return await caller.call(SEARCH, _asking(query, without), lambda: request.sessions.run(finding))


async def searched_documents(
    caller: Caller, documents: Documents, query: str, without: Sequence[str], *, count: int = PASSAGES_MAX
) -> DocumentPassages:
    """Search the folder, as a recorded call."""

    async def search() -> DocumentPassages:
        await kept_in_step(documents, caller.request, agent=caller.speaker.agent)
        return await asyncio.to_thread(documents.find, query, without=without, count=count)

    return await caller.call(SEARCH_DOCUMENTS, _asking(query, without), search)


async def researched(caller: Caller, intent: Research, documents: Documents | None) -> Report:
    """Send out a sub-agent that researches a question, and return its report.

    Raises `ToolFailed` where it failed. Its run then is recorded as failed as well.
    """
    arguments = _asking(intent.query, intent.without)
    return await caller.call(RESEARCH, arguments, lambda: _run(caller, intent, documents))


def _asking(query: str, without: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a call that looks for something: what was shown already is none of the first."""
    return {"query": query} | ({"without": list(without)} if without else {})


async def _run(caller: Caller, intent: Research, documents: Documents | None) -> Report:
    async with await caller.speaker.subagent(RESEARCHER, intent.query) as run:
        its = Caller(caller.request, run)
        count = BROAD_PASSAGES_MAX if intent.is_broad else PASSAGES_MAX
        topics = list(intent.topics) if len(intent.topics) > 1 else []
        count = TOPIC_PASSAGES_MAX if topics else count
        reports = [await _topic(its, topic, intent, documents, count) for topic in intent.topics]
        passages = [
            msgspec.structs.replace(passage, topic=topics[number] if topics else "")
            for number, report in enumerate(reports)
            for passage in report.passages
        ]
        report = msgspec.structs.replace(
            reports[-1],
            passages=_once(passages),
            topics=topics,
            more_count=sum(one.more_count for one in reports),
            problem_count=max(one.problem_count for one in reports),
        )
        ids = ", ".join(shown_reference(passage.id) for passage in report.passages)
        text = f"{counted(len(report.passages), 'passage')}: {ids}." if ids else "Nothing was found."
        await run.say(text)
        await run.end("completed", text)
    return report


async def _topic(caller: Caller, topic: str, intent: Research, documents: Documents | None, count: int) -> Report:
    """Research one topic: search wherever there is something to search, and pick the best of all of it."""
    found = await searched(caller, topic, intent.without, count=count)
    if documents is None:
        return report_of(found)
    there = await searched_documents(caller, documents, topic, intent.without, count=count)
    everything = [*found.passages, *there.passages]
    best = best_of(everything, count)
    return Report(
        passages=best,
        more_count=found.more_count + there.more_count + len(everything) - len(best),
        session_count=found.session_count,
        problem_count=found.problem_count,
        documents=there.status,
    )


def report_of(found: Passages) -> Report:
    """Return what one search of the sessions found as a report."""
    return Report(
        passages=found.passages,
        more_count=found.more_count,
        session_count=found.session_count,
        problem_count=found.problem_count,
    )


def _once(passages: Sequence[Passage]) -> list[Passage]:
    """Return each passage once, under the first of the topics that it answers."""
    kept: dict[str, Passage] = {}
    for passage in passages:
        kept.setdefault(passage.id, passage)
    return list(kept.values())
