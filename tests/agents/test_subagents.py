"""An agent answers as a sub-agent of another, in a conversation of its own, whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, AsyncTurn, open_async
from playhead.agents.built_in.default import DefaultAgent
from playhead.agents.protocol import Request, answered, as_agent, run_subagent
from playhead.model.event import Event
from playhead.session import open as open_sessions
from tests.promises.children import Nursery

WAIT_S = 60
Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    async def run() -> None:
        async with await open_async(f"bundles:{folder}/sessions") as sessions:
            await asyncio.wait_for(scene(sessions, await sessions.create("here")), WAIT_S)

    asyncio.run(run())


def ignore(text: str) -> None:
    """Take a piece that the test does not look at."""


async def runs(session: AsyncSession) -> list[tuple[str, str, Any]]:
    """Return the agent, the status and the result of each change of a run."""
    bodies = [event.body for event in await session.events(kinds=["job_changed"])]
    return [(body["agent"], body["status"], body.get("result")) for body in bodies if body["kind"] == "sub-agent"]


async def researcher(request: Request, turn: AsyncTurn) -> None:
    call = await turn.tool_call("search", {"query": request.prompt})
    await turn.tool_result(call, ["issue 91"])
    await turn.stream("It is ")
    await turn.stream("issue 91.")


async def asking(request: Request, turn: AsyncTurn) -> None:
    found = await run_subagent(as_agent(researcher), "researcher", "Find the issue.", request, turn)
    await turn.say(f"The researcher says: {found}")


def test_a_sub_agent_answers_in_its_own_conversation_and_its_answer_is_the_result(tmp_path: Path) -> None:
    heard: list[str] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        await answered(as_agent(asking), sessions, session, "Which issue?", on_text=heard.append)
        main = await session.conversation()
        run = await session.conversation("coordinator/researcher:1")

        assert heard == ["The researcher says: It is issue 91."]
        assert [(m.role, m.text) for m in main] == [("user", "Which issue?"), ("assistant", heard[0])]
        assert [m.role for m in run] == ["user", "assistant", "tool", "assistant"]
        assert run[0].text == "Find the issue."
        assert await runs(session) == [
            ("coordinator/researcher:1", "running", None),
            ("coordinator/researcher:1", "completed", "It is issue 91."),
        ]

    play(tmp_path, scene)


def test_any_agent_can_be_a_sub_agent_and_one_can_have_its_own(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async def outer(request: Request, turn: AsyncTurn) -> None:
            await run_subagent(as_agent(asking), "middle", "Ask further.", request, turn)
            await run_subagent(DefaultAgent(), "built-in", "help", request, turn)

        await answered(as_agent(outer), sessions, session, "Go", on_text=ignore)
        labels = [agent for agent, status, _ in await runs(session) if status == "completed"]
        inner = await session.conversation("coordinator/middle:1/researcher:1")

        assert labels == ["coordinator/middle:1/researcher:1", "coordinator/middle:1", "coordinator/built-in:1"]
        assert inner[-1].text == "It is issue 91."
        assert [m.text for m in await session.conversation()] == ["Go"]
        assert (await session.events(kinds=["turn_ended"]))[-1].body["status"] == "completed"

    play(tmp_path, scene)


def test_a_sub_agent_that_fails_is_recorded_as_failed_and_the_one_that_asked_decides(tmp_path: Path) -> None:
    async def failing(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("I begin ")
        raise ConnectionError("the model did not answer")

    async def careful(request: Request, turn: AsyncTurn) -> None:
        with pytest.raises(ConnectionError):
            await run_subagent(as_agent(failing), "researcher", "Try.", request, turn)
        await turn.say("It did not work.")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        await answered(as_agent(careful), sessions, session, "Go", on_text=ignore)
        said = (await session.conversation("coordinator/researcher:1"))[-1]

        assert (said.text, said.interrupted) == ("I begin ", True)
        assert [status for _, status, _ in await runs(session)] == ["running", "failed"]
        assert (await session.conversation())[-1].text == "It did not work."

    play(tmp_path, scene)


def test_a_sub_agent_that_ends_its_turn_ends_only_its_run(tmp_path: Path) -> None:
    async def ending(request: Request, turn: AsyncTurn) -> None:
        await turn.say("Enough.")
        await turn.end("cancelled")

    async def going_on(request: Request, turn: AsyncTurn) -> None:
        await run_subagent(as_agent(ending), "researcher", "Try.", request, turn)
        await turn.say("And I go on.")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        await answered(as_agent(going_on), sessions, session, "Go", on_text=ignore)

        assert [status for _, status, _ in await runs(session)] == ["running", "cancelled"]
        assert (await session.conversation())[-1].text == "And I go on."
        assert [event.body["status"] for event in await session.events(kinds=["turn_ended"])] == ["completed"]

    play(tmp_path, scene)


def test_numbers_of_runs_never_repeat_also_after_a_rewind(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        await answered(as_agent(asking), sessions, session, "Which issue?", on_text=ignore)
        await session.rewind(turn=1)
        await answered(as_agent(asking), sessions, session, "Which one, then?", on_text=ignore)

        assert [agent for agent, status, _ in await runs(session) if status == "completed"] == [
            "coordinator/researcher:1",
            "coordinator/researcher:2",
        ]

    play(tmp_path, scene)


def test_a_sub_agent_that_a_crash_cut_off_is_closed_with_what_it_had_said(tmp_path: Path) -> None:
    """K8, K11."""
    url = f"bundles:{tmp_path}/sessions"
    with closing(Nursery()) as nursery:
        child = nursery.start("runtimes:be_cut_off", url=url)
        child.hear_until("streaming")
        child.kill()
    with open_sessions(url) as sessions:
        session = sessions.resume("here")
        run = session.conversation("coordinator/researcher:1")

        assert session.resumed.sub_agents == ("coordinator/researcher:1",)
        assert session.resumed.recovered_text == "It appeared "
        assert (run[-1].text, run[-1].interrupted) == ("It appeared ", True)
        assert _last(session.events(kinds=["job_changed"]))["status"] == "interrupted"
        assert "researcher" in session.conversation()[-1].text


def _last(events: list[Event]) -> dict[str, Any]:
    return events[-1].body
