"""Runtimes at work, as child processes: what the tests of triggers, jobs and sub-agents start, and kill."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import playhead
from playhead import AsyncSession, AsyncSessions, AsyncTurn
from playhead.agents.protocol import Agent, Request, as_agent, run_subagent
from playhead.agents.runtime import Runtime
from playhead.agents.triggers import ChannelMessage, FileChange, Schedule, Timer, trigger_types
from playhead.aio import _Worker
from playhead.session import Sessions
from playhead.stores.open import open_store
from tests.agents.fake_time import FakeTime
from tests.promises.line import Line
from tests.promises.steps import Steps

START = 1_767_268_800.0
BEAT_S = 60.0
FASTER = 600.0
"""So many seconds pass for a runtime that is to be killed while one passes for the test."""


# Firing, step by step, at one moment.


def prepare(url: str, watched: str) -> None:
    """Make a session in which a trigger of each type is due at `START`."""
    with playhead.open(url, clock=lambda: START - 1_000) as sessions:
        session = sessions.create("here", triggers=trigger_types())
        session.add_trigger(Timer(prompt="Once.", at=START - 5), id="once")
        session.add_trigger(Timer(prompt="Often.", at=START - 90, every_s=BEAT_S), id="often")
        hourly = Schedule.from_now("Report.", "0 * * * *", now=START - 5_000)
        session.add_trigger(hourly, id="hourly")
        session.add_trigger(FileChange(prompt="Check.", path=watched), id="file")
        session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", reply=True), id="ops")
        session.send("ops", "one", sender="ada")
        session.send("ops", "two", sender="ada")


def fire_all(line: Line, *, url: str, folder: str, die_at: int) -> None:
    """Answer all that is due at `START`, and die before the n-th step, if there are so many; else say how many."""
    steps = Steps(folder, die_at=die_at)
    sessions = Sessions(open_store(url, vfs=steps.name), clock=lambda: START)
    steps.armed = True
    asyncio.run(_fired_all(AsyncSessions(sessions, _Worker())))
    steps.armed = False
    line.say("steps", steps.count)


def finish(url: str) -> dict[str, Any]:
    """Resume, answer what is still due at `START`, and return what there is then."""
    with Sessions(open_store(url), clock=lambda: START) as sessions:
        asyncio.run(_fired_all(AsyncSessions(sessions, _Worker())))
        session = sessions.resume("here", triggers=trigger_types())
        path = session.path()
        return {
            "fired": [event.body for event in path if event.kind == "trigger_fired"],
            "in force": {id: trigger.to_resume_dict() for id, trigger in session.resumed.triggers.items()},
            "problems": [*session.resumed.trigger_problems, *session.verify().problems],
            "is open": session._fold.open_turn is not None,
        }


async def _fired_all(sessions: AsyncSessions) -> None:
    fake = FakeTime(START)
    session = await sessions.resume("here", triggers=trigger_types())

    async def brief(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("Noted")
        await turn.stream(".")

    async with Runtime(as_agent(brief), sessions, session, clock=fake.clock, sleep=fake.sleep):
        await fake.rests()
    await session.close()


# In the middle of a sub-agent's run.


def be_cut_off(line: Line, *, url: str) -> None:
    """Stream in a sub-agent's run, say so, and go on for ever."""

    async def endless(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("It appeared ")
        line.say("streaming")
        await asyncio.Event().wait()

    async def asking(request: Request, turn: AsyncTurn) -> None:
        await run_subagent(as_agent(endless), "researcher", "Look it up.", request, turn)

    async def cut_off() -> None:
        sessions = AsyncSessions(playhead.open(url), _Worker())
        async with Runtime(as_agent(asking), sessions, await sessions.create("here")) as runtime:
            await runtime.answer("Which issue?")

    asyncio.run(cut_off())


# At work, until killed at a random moment.


def work(line: Line, *, url: str, id: str, seed: int, now: float) -> None:
    """Resume the session, or create it, and be a runtime in it until killed. What is said is durable by promise:

    `["resumed", {trigger: data}]`, `["set", trigger, data]`, `["removing", trigger]`, `["sent", event id]`, and
    `["now", seconds]` from time to time.
    """
    began = time.monotonic()

    def clock() -> float:
        return now + (time.monotonic() - began) * FASTER

    sessions = AsyncSessions(playhead.open(url, clock=clock), _Worker())
    asyncio.run(_work(line, sessions, id, random.Random(seed), clock))


async def _work(line: Line, sessions: AsyncSessions, id: str, rng: random.Random, clock: Callable[[], float]) -> None:
    try:
        session = await sessions.resume(id, triggers=trigger_types())
    except playhead.SessionNotFound:
        session = await sessions.create(id, triggers=trigger_types())
        await session.add_trigger(Timer(prompt="Beat.", at=clock() + BEAT_S, every_s=BEAT_S), id="beat")
        await session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops"), id="ops")
    line.say("resumed", {name: one.to_resume_dict() for name, one in session.resumed.triggers.items()})

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / FASTER)

    async with Runtime(_agent(line, rng, clock), sessions, session, clock=clock, sleep=sleep) as runtime:
        while True:
            line.say("now", clock())
            await _step(line, runtime, session, rng, clock)


async def _step(
    line: Line, runtime: Runtime, session: AsyncSession, rng: random.Random, clock: Callable[[], float]
) -> None:
    match rng.randrange(4):
        case 0:
            await runtime.answer(f"Work on {rng.randrange(1_000)}.")
        case 1:
            event = await session.send("ops", f"message {rng.randrange(1_000)}", sender="ada")
            line.say("sent", event.id)
        case 2:
            await _set(line, session, Timer(prompt="Much later.", at=clock() + 1e9))
        case 3:
            await asyncio.sleep(rng.random() * 0.02)


async def _set(line: Line, session: AsyncSession, timer: Timer) -> None:
    id = await session.add_trigger(timer)
    line.say("set", id, timer.to_resume_dict())


def _agent(line: Line, rng: random.Random, clock: Callable[[], float]) -> Agent:
    async def researcher(request: Request, turn: AsyncTurn) -> None:
        for word in ("It ", "appeared ", "with the new retry policy."):
            await turn.stream(word)

    async def slow() -> int:
        await asyncio.sleep(rng.random() * 0.1)
        return 4

    async def agent(request: Request, turn: AsyncTurn) -> None:
        for _ in range(rng.randint(0, 3)):
            await turn.stream("Working. ")
        match rng.randrange(4):
            case 0:
                await request.jobs.start("index", slow())
            case 1:
                await run_subagent(as_agent(researcher), "researcher", "Look it up.", request, turn)
            case 2:
                await _set(line, request.session, Timer(prompt="Later still.", at=clock() + 1e9))
            case 3 if later := [one for one in await _in_force(request.session) if one not in ("beat", "ops")]:
                chosen = rng.choice(later)
                line.say("removing", chosen)
                await request.session.remove_trigger(chosen)
        await turn.say("Done.")

    return as_agent(agent)


async def _in_force(session: AsyncSession) -> list[str]:
    return list((await session.triggers()).triggers)
