"""A model has its earlier sessions and a scratchpad at hand, of its own app and user alone."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from playhead import AsyncSession, AsyncSessions, open_async
from playhead.agents.default_tools import default_tools
from playhead.agents.documents import Documents
from playhead.agents.messages import function_name
from playhead.agents.protocol import Request
from playhead.agents.tools import Used, Using, misfit, use
from playhead.agents.toolsets.scratchpad import NOTE_CHARS_MAX, NOTES_MAX
from playhead.aio import AsyncSpeaker
from tests.agents.conftest import ESCAPES

TOOLS = {tool.name: tool for tool in default_tools()}
Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, Any]]


def play(scene: Scene) -> Any:
    async def run() -> Any:
        async with await open_async("memory:") as sessions:
            return await scene(sessions, await sessions.create("here"))

    return asyncio.run(run())


async def used(
    tool: str, sessions: AsyncSessions, session: AsyncSession, speaker: AsyncSpeaker, /, **given: Any
) -> Used:
    """Use a tool as a model would."""
    assert misfit(given, TOOLS[tool].parameters) == ""
    return await use(TOOLS[tool], Using(Request("Go", sessions, session), speaker), given)


def test_there_are_more_tools_for_a_folder_and_for_a_session_that_stays_open(tmp_path: Path) -> None:
    some = [tool.name for tool in default_tools()]
    tools = default_tools(documents=Documents(tmp_path), stays_open=True)
    all_of_them = [tool.name for tool in tools]
    for tool in tools:
        Draft202012Validator.check_schema(tool.parameters)

    assert some == ["search_memory", "read_event", "list_sessions", "scratchpad_read", "scratchpad_write"]
    assert all_of_them[: len(some)] == some
    assert {"search_documents", "send_message", "set_timer", "list_triggers"} <= set(all_of_them)
    assert len(set(all_of_them)) == len(all_of_them)
    assert [function_name(name) for name in all_of_them] == all_of_them
    assert all(tool.description for tool in tools)


def test_it_finds_reads_and_lists_what_was_said_before_and_not_what_it_says_now() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[str]:
        other = await sessions.create("old", title=f"Ravens {ESCAPES}")
        async with await other.turn("Where is the key?") as turn:
            await turn.say("The key is in the vault called ravens.")
        hidden = await sessions.create("hidden", user="bob")
        async with await hidden.turn("My key is in the cake.") as turn:
            await turn.say("Noted.")
        async with await session.turn("Where is the key to the vault?") as turn:
            found = [
                await used("search_memory", sessions, session, turn, query="vault key"),
                await used("read_event", sessions, session, turn, id="old#5"),
                await used("read_event", sessions, session, turn, id="nothing#1"),
                await used("list_sessions", sessions, session, turn, limit=1_000),
            ]
        return [str(one.response) for one in found]

    search, read, missing, listed = play(scene)

    assert "old#4" in search
    assert "here#" not in search
    assert "> The key is in the vault called ravens." in read
    assert "nothing" in missing
    assert [line.split()[1] for line in listed.splitlines()[1:]] == ["here", "old"]
    assert "Where is the key?" in listed
    assert "cake" not in search + listed
    assert "\x1b" not in listed


def test_the_scratchpad_lasts_with_the_session_and_follows_its_path() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[Any]:
        async with await session.turn("One") as turn:
            await used("scratchpad_write", sessions, session, turn, name="plan", text="Look first.")
            async with await turn.subagent("helper", "Help") as run:
                shared = (await used("scratchpad_read", sessions, session, run)).response
        async with await session.turn("Two") as turn:
            await used("scratchpad_write", sessions, session, turn, name="plan", text="Then jump.")
            await used("scratchpad_write", sessions, session, turn, name="aside", text="x")
            removed = (await used("scratchpad_write", sessions, session, turn, name="aside", text="")).response
        later = (await session.state())["agent:coordinator"]
        await session.rewind(turn=2)
        return [shared, removed, later, (await session.state())["agent:coordinator"]]

    assert play(scene) == [{"plan": "Look first."}, "Removed.", {"plan": "Then jump."}, {"plan": "Look first."}]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("", "x", "a note's name has 1 to 100 characters"),
        ("temp:x", "x", "does not begin with temp:"),
        ("plan", "x" * (NOTE_CHARS_MAX + 1), "this one has 10,001"),
        ("plan", "", "there is no note 'plan'; there are: none"),
    ],
)
def test_a_note_that_cannot_be_kept_is_refused(name: str, text: str, why: str) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Used:
        async with await session.turn("One") as turn:
            return await used("scratchpad_write", sessions, session, turn, name=name, text=text)

    refused = play(scene)

    assert refused.is_error
    assert why in refused.response


def test_the_scratchpad_has_a_limit() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Used:
        async with await session.turn("One") as turn:
            for number in range(NOTES_MAX):
                await used("scratchpad_write", sessions, session, turn, name=f"n{number}", text="x")
            return await used("scratchpad_write", sessions, session, turn, name="one more", text="x")

    refused = play(scene)

    assert refused.is_error
    assert "50 notes at most" in refused.response
