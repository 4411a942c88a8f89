"""Whoever runs an agent sees its answer piece by piece, each recorded before it is shown, and stopping loses none."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, AsyncTurn, SessionBusy, Sessions, open_async
from playhead.agents.built_in.default import DefaultAgent
from playhead.agents.protocol import PIECES_MAX, Agent, Request, answered, as_agent, for_blocking
from playhead.agents.runtime import Runtime
from playhead.model.parts import text_of
from tests.agents.conftest import ask

WAIT_S = 30
Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    """Run a scene with a durable store and a session in it."""

    async def run() -> None:
        async with await open_async(f"bundles:{folder}/sessions") as sessions:
            await asyncio.wait_for(scene(sessions, await sessions.create("here")), WAIT_S)

    asyncio.run(run())


def ignore(text: str) -> None:
    """Take a piece that the test does not look at."""


async def said(session: AsyncSession) -> list[tuple[str, bool]]:
    """Return the texts of the agent, each with whether it was cut off."""
    return [(one.text, one.interrupted) for one in await session.conversation() if one.role == "assistant"]


async def ending(session: AsyncSession) -> Any:
    return (await session.events(newest_first=True, limit=1, kinds=["turn_ended"]))[0].body["status"]


async def tea(request: Request, turn: AsyncTurn) -> None:
    """Answer in all ways in which a plain function can."""
    await turn.think("They want tea.")
    await turn.stream("Boil ")
    await turn.stream("hmm", part="reasoning")
    await turn.stream("water. ")
    async with await turn.subagent("taster", "Taste.") as taster:
        await taster.stream("Bitter.")
    await turn.say([{"type": "text", "content": "Wait "}, "four minutes."], model="kettle-1")


def test_what_a_plain_function_streams_or_says_is_its_answer(tmp_path: Path) -> None:
    heard: list[str] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        turn = await answered(as_agent(tea), sessions, session, "How is tea made?", on_text=heard.append)
        texts = await said(session)

        assert heard == ["Boil ", "water. ", "Wait four minutes."]
        assert texts == [("Boil water. Wait four minutes.", False)]
        assert await ending(session) == "completed"
        assert await turn.number() == 1

    play(tmp_path, scene)


def test_an_agent_has_the_name_of_its_function_or_another() -> None:
    named: list[Agent] = [as_agent(tea), as_agent(tea, name="barista"), DefaultAgent()]

    assert [agent.name for agent in named] == ["tea", "barista", "built-in"]


@pytest.mark.parametrize("agent", [as_agent(tea), DefaultAgent()], ids=lambda agent: agent.name)
def test_nothing_is_shown_before_it_is_recorded(tmp_path: Path, agent: Agent) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        seen: list[str] = []
        missing: list[str] = []

        def on_text(text: str) -> None:
            seen.append(text)
            store = session._session._store
            recorded = "".join(chunk for left in store.streams.left(session.key) for _, chunk in left.chunks)
            for event in store.events(session.key, kinds=["message"]):
                recorded += text_of(event.body["parts"])
            if text not in recorded:
                missing.append(text)

        await answered(agent, sessions, session, "help", on_text=on_text)

        assert seen
        assert missing == []

    play(tmp_path, scene)


@pytest.mark.parametrize("agent", [as_agent(tea), DefaultAgent()], ids=lambda agent: agent.name)
def test_cancelling_keeps_what_was_said_and_gives_the_lease_back(tmp_path: Path, agent: Agent) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        heard: list[str] = []

        def on_text(text: str) -> None:
            heard.append(text)
            if len(heard) == 2:
                task.cancel()

        task = asyncio.ensure_future(answered(agent, sessions, session, "help", on_text=on_text))
        with pytest.raises(asyncio.CancelledError):
            await task
        kept = "".join(text for text, _ in await said(session))

        assert kept.startswith("".join(heard))
        assert len(heard) == 2
        assert await ending(session) == "cancelled"
        async with await session.turn("again"):
            pass

    play(tmp_path, scene)


def test_an_agent_that_fails_leaves_what_it_said_and_a_failed_turn(tmp_path: Path) -> None:
    async def failing(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("It begins ")
        raise ConnectionError("the model did not answer")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        heard: list[str] = []
        with pytest.raises(ConnectionError, match="the model did not answer"):
            await answered(as_agent(failing), sessions, session, "hello", on_text=heard.append)

        assert heard == ["It begins "]
        assert await said(session) == [("It begins ", True)]
        assert await ending(session) == "failed"

    play(tmp_path, scene)


def test_a_listener_that_fails_stops_the_agent(tmp_path: Path) -> None:
    stopped = []

    async def endless(request: Request, turn: AsyncTurn) -> None:
        try:
            while True:
                await turn.stream("on and ")
        finally:
            stopped.append(True)

    def gone(text: str) -> None:
        raise BrokenPipeError

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        with pytest.raises(BrokenPipeError):
            await answered(as_agent(endless), sessions, session, "talk", on_text=gone)

        assert stopped == [True]
        assert await ending(session) == "failed"

    play(tmp_path, scene)


def test_a_function_waits_for_a_slow_reader(tmp_path: Path) -> None:
    streamed = []

    async def fast(request: Request, turn: AsyncTurn) -> None:
        for number in range(PIECES_MAX * 3):
            await turn.stream(f"{number} ")
            streamed.append(number)

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async with await session.turn("count") as turn:
            pieces = as_agent(fast).answer(Request("count", sessions, session), turn)
            first = await anext(pieces)
            while len(streamed) < PIECES_MAX:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            ahead = len(streamed)
            rest = [piece async for piece in pieces]

        assert ahead <= PIECES_MAX + 2
        assert [first, *rest] == [f"{number} " for number in range(PIECES_MAX * 3)]

    play(tmp_path, scene)


def test_a_function_that_says_nothing_ends_the_turn_all_the_same(tmp_path: Path) -> None:
    async def silent(request: Request, turn: AsyncTurn) -> None:
        await turn.note("thought", about=request.prompt)

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        heard: list[str] = []
        await answered(as_agent(silent), sessions, session, "hello", on_text=heard.append)

        assert heard == []
        assert await ending(session) == "completed"

    play(tmp_path, scene)


def test_an_agent_may_end_its_turn_itself(tmp_path: Path) -> None:
    async def asking(request: Request, turn: AsyncTurn) -> None:
        await turn.say("I need to know one thing.")
        await turn.end("interrupted")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        await answered(as_agent(asking), sessions, session, "clean up", on_text=ignore)

        assert await ending(session) == "interrupted"

    play(tmp_path, scene)


def test_a_busy_session_takes_no_prompt(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async with await session.turn("wait", label="the other window"):
            before = await (await sessions.get("here")).events()
            with pytest.raises(SessionBusy, match="the other window"):
                await answered(DefaultAgent(), sessions, await sessions.get("here"), "me too", on_text=ignore)
            after = await (await sessions.get("here")).events()

        assert after == before

    play(tmp_path, scene)


def test_two_sessions_are_answered_side_by_side(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        agent = DefaultAgent()
        opened = [await sessions.create(f"s-{number}") for number in range(5)]
        heard: list[list[str]] = [[] for _ in opened]
        prompts = [f"Where is item {number}?" for number in range(5)]
        calls = zip(opened, prompts, heard, strict=True)
        await asyncio.gather(
            *(answered(agent, sessions, one, prompt, on_text=pieces.append) for one, prompt, pieces in calls)
        )
        kept = ["".join(text for text, _ in await said(one)) for one in opened]

        assert kept == ["".join(pieces) for pieces in heard]
        assert all(f"“{prompt}”" in text or "> " in text for prompt, text in zip(prompts, kept, strict=True))

    play(tmp_path, scene)


def test_a_blocking_program_gets_the_same_and_its_turn_is_still_its_own_to_end(sessions: Sessions) -> None:
    session = sessions.create("here")
    answer = ask(session, sessions, "How is tea made?", as_agent(tea))

    assert answer.pieces == ["Boil ", "water. ", "Wait four minutes."]
    assert [event.body["status"] for event in answer.events if event.kind == "turn_ended"] == ["completed"]


@pytest.mark.parametrize("agent", [as_agent(tea), DefaultAgent()], ids=lambda agent: agent.name)
def test_a_blocking_program_that_stops_listening_stops_the_agent(
    sessions: Sessions, agent: Agent, capfd: pytest.CaptureFixture[str]
) -> None:
    session = sessions.create("here")
    with session.turn("help") as turn:
        pieces = for_blocking(agent)(sessions, session, turn, "help")
        first = next(pieces)
        pieces.close()
        turn.end("cancelled")
    written = session.events()
    complaints = capfd.readouterr().err

    assert written[-1].body == {"status": "cancelled"}
    assert session.conversation()[-1].text.startswith(first)
    assert len(session.conversation()[-1].text) < 60
    assert complaints == ""


def test_ctrl_c_in_a_blocking_program_s_own_code_stops_the_agent_too(sessions: Sessions) -> None:
    session = sessions.create("here")
    heard: list[str] = []
    with pytest.raises(KeyboardInterrupt), session.turn("help") as turn:
        with closing(for_blocking(DefaultAgent())(sessions, session, turn, "help")) as pieces:
            for text in pieces:
                heard.append(text)
                if len(heard) == 3:
                    raise KeyboardInterrupt
    last = session.conversation()[-1]

    assert session.events()[-1].body == {"status": "cancelled"}
    assert (last.text, last.interrupted) == ("".join(heard), True)


@contextmanager
def ctrl_c(*after_s: float) -> Iterator[None]:
    """Interrupt this process from the keyboard, as it were: so long after the block has begun."""
    timers = [threading.Timer(wait_s, os.kill, [os.getpid(), signal.SIGINT]) for wait_s in after_s]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


async def blocked(request: Request, turn: AsyncTurn) -> None:
    await turn.stream("It begins.")
    while True:
        time.sleep(0.05)


async def stubborn(request: Request, turn: AsyncTurn) -> None:
    await turn.stream("It begins.")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(WAIT_S)


@pytest.mark.parametrize("function", [blocked, stubborn])
def test_a_second_ctrl_c_leaves_an_agent_that_does_not_stop(
    sessions: Sessions, function: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    session = sessions.create("here")
    begun = time.monotonic()
    with ctrl_c(0.5, 0.8), pytest.raises(KeyboardInterrupt):
        ask(session, sessions, "hello", as_agent(function))
    took_s = time.monotonic() - begun
    again = ask(session, sessions, "And tea?", as_agent(tea))
    texts = [one.text for one in session.conversation() if one.role == "assistant"]

    assert took_s < 3
    assert texts == ["It begins.", "Boil water. Wait four minutes."]
    assert again.events[-1].body == {"status": "completed"}
    assert capfd.readouterr().err == ""


def test_one_ctrl_c_leaves_an_agent_that_does_not_stop_once_it_had_its_time(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.agents.protocol.STOP_S", 0.2)
    session = sessions.create("here")
    begun = time.monotonic()
    with ctrl_c(0.5), pytest.raises(KeyboardInterrupt):
        ask(session, sessions, "hello", as_agent(stubborn))

    assert time.monotonic() - begun < 3
    assert session.events()[-1].body == {"status": "cancelled"}


class Exiting:
    """Exits as a script does, from the generator itself."""

    name = "exiting"

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        await turn.stream("It begins.")
        yield "It begins."
        sys.exit(4)


async def exiting(request: Request, turn: AsyncTurn) -> None:
    await turn.stream("It begins.")
    sys.exit(4)


@pytest.mark.parametrize("agent", [Exiting(), as_agent(exiting)], ids=["object", "function"])
def test_an_agent_that_exits_fails_its_turn_and_ends_no_program(tmp_path: Path, agent: Agent) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        with pytest.raises(RuntimeError, match=r"it called sys.exit\(4\)"):
            await answered(agent, sessions, session, "hello", on_text=ignore)
        blocking = session._session
        with pytest.raises(RuntimeError, match=r"it called sys.exit\(4\)"):
            await asyncio.to_thread(ask, blocking, sessions._sessions, "hello", agent)
        async with Runtime(agent, sessions, session) as runtime:
            with pytest.raises(RuntimeError, match=r"it called sys.exit\(4\)"):
                await runtime.answer("hello")
        ended = await session.events(kinds=["turn_ended"])

        assert [event.body["status"] for event in ended] == ["failed"] * 3

    play(tmp_path, scene)


def test_a_keyboard_interrupt_that_an_agent_raises_itself_goes_to_the_program(
    sessions: Sessions, capfd: pytest.CaptureFixture[str]
) -> None:
    async def interrupting(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("It begins.")
        raise KeyboardInterrupt

    session = sessions.create("here")
    with pytest.raises(KeyboardInterrupt):
        ask(session, sessions, "hello", as_agent(interrupting))

    assert session.events()[-1].body == {"status": "cancelled"}
    assert session.conversation()[-1].text == "It begins."
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("result", "what"), [("Four minutes.", "text"), ({"minutes": 4}, "dict"), ("", "text")])
def test_what_a_function_returns_and_has_not_said_fails_the_turn(tmp_path: Path, result: Any, what: str) -> None:
    async def returning(request: Request, turn: AsyncTurn) -> Any:
        return result

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        with pytest.raises(TypeError, match=f"returning returned {what} but said nothing: .* await turn.say"):
            await answered(as_agent(returning), sessions, session, "hello", on_text=ignore)

        assert await ending(session) == "failed"

    play(tmp_path, scene)


def test_a_function_that_has_said_something_may_return_what_it_likes(tmp_path: Path) -> None:
    async def streaming(request: Request, turn: AsyncTurn) -> str:
        await turn.stream("Four minutes.")
        return "Four minutes."

    async def noting(request: Request, turn: AsyncTurn) -> Any:
        return await turn.note("thought")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        heard: list[str] = []
        await answered(as_agent(streaming), sessions, session, "hello", on_text=heard.append)
        await answered(as_agent(noting), sessions, session, "hello", on_text=heard.append)

        assert heard == ["Four minutes."]
        assert await said(session) == [("Four minutes.", False)]

    play(tmp_path, scene)
