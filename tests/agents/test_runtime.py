"""A runtime answers prompts and what triggers fire for, one turn at a time and each firing once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, AsyncTurn, open_async
from playhead.agents import runtime as runtime_module
from playhead.agents.protocol import Agent, Request, as_agent
from playhead.agents.runtime import PROMPTS_MAX, Happening, Runtime
from playhead.agents.triggers import ChannelMessage, FileChange, Schedule, Timer, trigger_types
from playhead.errors import SessionNotFound, StaleWriter, StoreClosed, StoreFull
from tests.agents.fake_time import FakeTime

WAIT_S = 60


@dataclass
class World:
    """A session with a runtime in it, and what was told of it."""

    time: FakeTime
    sessions: AsyncSessions
    session: AsyncSession
    url: str
    events: list[Happening] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def runtime(self, agent: Agent) -> Runtime:
        return Runtime(
            agent,
            self.sessions,
            self.session,
            on_text=self.texts.append,
            on_event=self.events.append,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )

    async def elsewhere(self) -> AsyncSession:
        """Open the session as another process would."""
        sessions = await open_async(self.url, clock=self.time.clock)
        return await sessions.get("here", triggers=trigger_types())

    def told(self, kind: str) -> list[str]:
        return [one.text for one in self.events if one.kind == kind]

    async def prompts(self) -> list[str]:
        """Return what the agent was asked on the path, by whom or what ever."""
        await self.session.refresh()
        return [one.text for one in await self.session.conversation() if one.role == "user" and not one.injected]

    async def kinds(self, *kinds: str) -> list[dict[str, Any]]:
        return [event.body for event in await self.session.events(kinds=kinds)]


Scene = Callable[[World], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    async def run() -> None:
        time = FakeTime()
        url = f"bundles:{folder}/sessions"
        async with await open_async(url, clock=time.clock) as sessions:
            session = await sessions.create("here", triggers=trigger_types())
            await asyncio.wait_for(scene(World(time, sessions, session, url)), WAIT_S)

    asyncio.run(run())


async def echo(request: Request, turn: AsyncTurn) -> None:
    await turn.say(f"You said: {request.prompt}")


async def silent(request: Request, turn: AsyncTurn) -> None:
    await turn.note("heard")


async def settled(world: World, condition: Callable[[], bool]) -> None:
    """Wait until something is so, looking again whenever anything may have happened."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"it never came to be; what happened: {world.events}")


# Prompts


def test_a_prompt_is_answered_in_a_turn_of_its_own(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        async with world.runtime(as_agent(echo)) as runtime:
            one = await runtime.answer("hello")
            other = await runtime.answer("again")

        assert (one.text, one.status) == ("You said: hello", "completed")
        assert world.texts == ["You said: hello", "You said: again"]
        assert one.turn != other.turn
        assert [body["cause"] for body in await world.kinds("turn_started")] == ["user", "user"]

    play(tmp_path, scene)


def test_prompts_are_answered_in_their_order_and_never_two_at_a_time(tmp_path: Path) -> None:
    under_way: list[int] = []
    most = []

    async def busy(request: Request, turn: AsyncTurn) -> None:
        under_way.append(1)
        most.append(len(under_way))
        await turn.say(request.prompt)
        under_way.pop()

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(busy)) as runtime:
            count = PROMPTS_MAX + 5
            await asyncio.gather(*(runtime.answer(f"{number}") for number in range(count)))

        assert await world.prompts() == [f"{number}" for number in range(count)]
        assert max(most) == 1

    play(tmp_path, scene)


def test_stopping_keeps_what_was_said_and_the_runtime_goes_on(tmp_path: Path) -> None:
    async def endless(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("It begins ")
        if request.prompt == "talk":
            await asyncio.Event().wait()

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(endless)) as runtime:
            talking = asyncio.ensure_future(runtime.answer("talk"))
            await settled(world, lambda: bool(world.texts))
            was_stopped = runtime.stop_turn()
            stopped = await talking
            after = await runtime.answer("be brief")
            again = runtime.stop_turn()

        assert (was_stopped, again) == (True, False)
        assert (stopped.text, stopped.status) == ("It begins ", "cancelled")
        assert after.status == "completed"
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["cancelled", "completed"]

    play(tmp_path, scene)


def test_whoever_stops_waiting_for_an_answer_stops_its_turn_and_no_other(tmp_path: Path) -> None:
    async def endless(request: Request, turn: AsyncTurn) -> None:
        await turn.stream(request.prompt)
        await asyncio.Event().wait()

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(endless)) as runtime:
            first, second = (asyncio.ensure_future(runtime.answer(text)) for text in ("first", "second"))
            await settled(world, lambda: world.texts == ["first"])
            second.cancel()
            await asyncio.wait([second])
            is_first_waiting = not first.done()
            first.cancel()
            await asyncio.wait([first])
            ended = await world.kinds("turn_ended")

        assert is_first_waiting
        assert await world.prompts() == ["first"]
        assert [body["status"] for body in ended] == ["cancelled"]

    play(tmp_path, scene)


def test_what_an_agent_raises_comes_to_whoever_asked_and_the_runtime_goes_on(tmp_path: Path) -> None:
    async def failing(request: Request, turn: AsyncTurn) -> None:
        if request.prompt == "fail":
            raise ConnectionError("the model did not answer")

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(failing)) as runtime:
            with pytest.raises(ConnectionError, match="the model did not answer"):
                await runtime.answer("fail")
            after = await runtime.answer("go on")

        assert after.status == "completed"
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["failed", "completed"]

    play(tmp_path, scene)


def test_an_agent_that_ends_its_turn_itself_is_believed(tmp_path: Path) -> None:
    async def asking(request: Request, turn: AsyncTurn) -> None:
        await turn.say("Which one?")
        await turn.end("interrupted")

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(asking)) as runtime:
            answered = await runtime.answer("delete it")

        assert (answered.text, answered.status) == ("Which one?", "interrupted")

    play(tmp_path, scene)


def test_a_prompt_waits_while_another_process_is_in_a_turn_and_is_told_why(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        other = await world.elsewhere()
        async with world.runtime(as_agent(echo)) as runtime:
            async with await other.turn("mine", label="the other window"):
                waiting = asyncio.ensure_future(runtime.answer("hello"))
                await settled(world, lambda: bool(world.told("busy")))
                await world.time.pass_by(1)
                await world.time.pass_by(1)
                is_waiting = not waiting.done()
            world.time.now += 1
            await world.time.rests()
            answered = await waiting

        assert is_waiting
        assert len(world.told("busy")) == 1
        assert "the other window" in world.told("busy")[0]
        assert answered.status == "completed"
        assert await world.prompts() == ["mine", "hello"]

    play(tmp_path, scene)


def test_a_prompt_that_waits_for_a_busy_session_can_be_stopped(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        other = await world.elsewhere()
        async with world.runtime(as_agent(echo)) as runtime:
            async with await other.turn("mine"):
                waiting = asyncio.ensure_future(runtime.answer("hello"))
                await settled(world, lambda: bool(world.told("busy")))
                runtime.stop_turn()
                answered = await waiting

        assert (answered.status, answered.turn) == ("cancelled", None)
        assert await world.prompts() == ["mine"]

    play(tmp_path, scene)


def test_the_end_of_the_block_stops_the_turn_and_refuses_what_waits(tmp_path: Path) -> None:
    async def endless(request: Request, turn: AsyncTurn) -> None:
        await turn.stream("on and on")
        await asyncio.Event().wait()

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(endless)) as runtime:
            calls = [asyncio.ensure_future(runtime.answer(text)) for text in ("first", "second")]
            await settled(world, lambda: bool(world.texts))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        with pytest.raises(StoreClosed):
            await runtime.answer("too late")

        assert [type(one) for one in outcomes] == [StoreClosed, StoreClosed]
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["cancelled"]
        assert await world.prompts() == ["first"]
        async with await (await world.elsewhere()).turn("free"):
            pass

    play(tmp_path, scene)


def test_a_listener_that_fails_in_a_turn_fails_it_for_whoever_asked(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        def gone(happening: Happening) -> None:
            raise BrokenPipeError

        async with world.runtime(as_agent(echo)) as runtime:
            runtime._on_event = gone
            with pytest.raises(BrokenPipeError):
                await runtime.answer("hello")

        async with await (await world.elsewhere()).turn("free"):
            pass

    play(tmp_path, scene)


def test_a_listener_that_fails_between_turns_ends_the_runtime_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        def gone(happening: Happening) -> None:
            raise BrokenPipeError

        runtime = world.runtime(as_agent(echo))
        with pytest.raises(BrokenPipeError):
            async with runtime:
                await world.time.rests()
                runtime._on_event = gone
                body = {"trigger": "t", "type": "foreign", "status": "added"}
                await world.session.append("trigger_changed", body)
                outcomes = await asyncio.gather(
                    *(runtime.answer("hello") for _ in range(PROMPTS_MAX + 3)), return_exceptions=True
                )
                assert runtime._loop is not None
                await asyncio.wait([runtime._loop])
                with pytest.raises(StoreClosed):
                    await runtime.answer("too late")

        assert len(outcomes) == PROMPTS_MAX + 3

    play(tmp_path, scene)


# Triggers


def test_a_timer_fires_between_prompts_once_and_is_gone(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now + 100), id="break")
        async with world.runtime(as_agent(echo)) as runtime:
            await world.time.rests()
            before = await world.prompts()
            await world.time.pass_by(100)
            await world.time.pass_by(100)
            left = runtime.triggers

        assert before == []
        assert world.texts == ["You said: Stretch."]
        assert left == {}
        assert world.told("resumed") == ["1 trigger is in force."]
        assert world.told("fired") == ["The timer break fired."]
        assert [body["cause"] for body in await world.kinds("turn_started")] == ["trigger"]
        assert [body["trigger"] for body in await world.kinds("trigger_fired")] == ["break"]
        assert [body["status"] for body in await world.kinds("trigger_changed")] == ["added", "removed"]
        assert (await world.session.verify()).problems == ()

    play(tmp_path, scene)


def test_a_repeating_timer_fires_at_each_beat(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        start = world.time.now
        await world.session.add_trigger(Timer(prompt="Look.", at=start + 60, every_s=60), id="t")
        async with world.runtime(as_agent(echo)) as runtime:
            await world.time.rests()
            for _ in range(6):
                await world.time.pass_by(30)
            left = runtime.triggers

        fired = await world.kinds("trigger_fired")
        assert [body["payload"]["due_at"] - start for body in fired] == [60, 120, 180]
        assert left == {"t": Timer(prompt="Look.", at=start + 240, every_s=60)}

    play(tmp_path, scene)


def test_a_schedule_fires_and_goes_on(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        daily = Schedule.from_now("Report.", "0 13 * * *", now=world.time.now)
        await world.session.add_trigger(daily, id="report")
        async with world.runtime(as_agent(echo)) as runtime:
            await world.time.rests()
            await world.time.pass_by(3_600)
            left = runtime.triggers["report"]

        assert world.texts == ["You said: Report."]
        assert isinstance(left, Schedule)
        assert left.at == daily.at + 86_400

    play(tmp_path, scene)


def test_a_prompt_waits_for_a_firing_that_is_being_answered(tmp_path: Path) -> None:
    going_on = asyncio.Event()

    async def slow(request: Request, turn: AsyncTurn) -> None:
        if request.firing is not None:
            await turn.stream("Reminding. ")
            await going_on.wait()
        await turn.say(f"Done with {request.prompt}")

    async def scene(world: World) -> None:
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="break")
        async with world.runtime(as_agent(slow)) as runtime:
            await settled(world, lambda: world.texts == ["Reminding. "])
            waiting = asyncio.ensure_future(runtime.answer("hello"))
            await asyncio.sleep(0.01)
            is_waiting = not waiting.done()
            going_on.set()
            await waiting

        assert is_waiting
        assert await world.prompts() == ["Stretch.", "hello"]

    play(tmp_path, scene)


def test_a_trigger_that_an_agent_or_another_process_sets_is_watched(tmp_path: Path) -> None:
    async def setting(request: Request, turn: AsyncTurn) -> None:
        if request.firing is None:
            await request.session.add_trigger(Timer(prompt="From the agent.", at=request_time.now + 10))

    request_time = FakeTime()

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(setting)) as runtime:
            await runtime.answer("remind me")
            other = await world.elsewhere()
            await other.add_trigger(Timer(prompt="From elsewhere.", at=world.time.now + 20))
            await world.time.rests()
            await world.time.pass_by(10)
            await world.time.pass_by(10)

        assert await world.prompts() == ["remind me", "From the agent.", "From elsewhere."]

    play(tmp_path, scene)


def test_a_rewind_takes_back_the_triggers_that_it_hides(tmp_path: Path) -> None:
    async def setting(request: Request, turn: AsyncTurn) -> None:
        if request.firing is None:
            await request.session.add_trigger(Timer(prompt="Never.", at=1_767_268_900.0))

    async def scene(world: World) -> None:
        async with world.runtime(as_agent(setting)) as runtime:
            await runtime.answer("remind me")
            await world.session.rewind(turn=-1)
            await world.time.rests()
            hidden = runtime.triggers
            await world.time.pass_by(1_000)

        assert hidden == {}
        assert await world.kinds("trigger_fired") == []

    play(tmp_path, scene)


def test_a_rewind_of_a_turn_that_a_trigger_began_does_not_fire_it_again(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        start = world.time.now
        await world.session.add_trigger(Timer(prompt="Once.", at=start + 10), id="once")
        await world.session.add_trigger(Timer(prompt="Often.", at=start + 10, every_s=60), id="often")
        async with world.runtime(as_agent(echo)) as runtime:
            await world.time.rests()
            await world.time.pass_by(10)
            await world.session.rewind(turn=1)
            await world.time.rests()
            await world.time.rests()
            after = runtime.triggers
            await world.time.pass_by(60)

        assert after == {"often": Timer(prompt="Often.", at=start + 70, every_s=60)}
        assert [body["trigger"] for body in await world.kinds("trigger_fired")] == ["once", "often", "often"]
        assert await world.prompts() == ["Often."]

    play(tmp_path, scene)


def test_a_file_that_changes_is_answered(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        path = tmp_path / "config.toml"
        path.write_text("a = 1")
        await world.session.add_trigger(FileChange.from_now("Check it.", str(path)), id="config")
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            await world.time.rests()
            path.write_text("a = 2")
            await world.time.rests()
            await world.time.rests()

        fired = await world.kinds("trigger_fired")
        assert [body["payload"]["changed"] for body in fired] == [["config.toml"]]
        assert fired[0]["prompt"].startswith("Check it.\n\nIn the folder ")

    play(tmp_path, scene)


def test_each_message_on_a_channel_is_answered_once_whoever_sent_it(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        other = await world.elsewhere()
        await world.session.send("ops", "before it was set", sender="ada")
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", reply=True), id="ops")
        async with world.runtime(as_agent(silent_but_for_a_word)):
            await world.time.rests()
            await world.session.send("ops", "one", sender="ada")
            await world.session.send("other", "not this", sender="ada")
            await world.time.rests()
            await other.refresh()
            await other.send("ops", "two", sender="monitor")
            await other.send("ops", "three", sender="monitor")
            await world.time.rests()
            await world.time.rests()

        fired = [[m["sender"] for m in body["payload"]["messages"]] for body in await world.kinds("trigger_fired")]
        replies = [event for event in await world.session.channel("ops") if event.agent == "coordinator"]
        assert fired == [["ada"], ["monitor", "monitor"]]
        assert [body["cause"] for body in await world.kinds("turn_started")] == ["channel", "channel"]
        assert [reply.body["content"] for reply in replies] == ["Noted.", "Noted."]
        sent = {event.id: event.body["content"] for event in await world.session.channel("ops")}
        assert [sent[reply.body["reply_to"]] for reply in replies] == ["one", "three"]

    play(tmp_path, scene)


async def silent_but_for_a_word(request: Request, turn: AsyncTurn) -> None:
    await turn.say("Noted.")


def test_what_an_agent_says_on_a_channel_that_it_listens_to_does_not_wake_it(tmp_path: Path) -> None:
    async def talking(request: Request, turn: AsyncTurn) -> None:
        await request.session.send("ops", "I am here.", sender=turn.agent, turn=turn.turn_id)

    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", sender="ada"), id="ops")
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops"), id="all")
        async with world.runtime(as_agent(talking)) as runtime:
            await runtime.answer("say something")
            await world.time.rests()
            await world.session.send("ops", "hello", sender="eve")
            await world.time.rests()
            await world.time.rests()

        assert [body["trigger"] for body in await world.kinds("trigger_fired")] == ["all"]

    play(tmp_path, scene)


def test_many_messages_are_answered_in_several_turns_and_none_is_left_out(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops"), id="ops")
        for number in range(120):
            await world.session.send("ops", f"{number}", sender="ada")
        async with world.runtime(as_agent(silent)):
            await world.time.rests()
            await world.time.rests()

        ids = [m["event"] for body in await world.kinds("trigger_fired") for m in body["payload"]["messages"]]
        assert ids == [event.id for event in await world.session.channel("ops", last=200)]
        assert len(await world.kinds("trigger_fired")) == 3

    play(tmp_path, scene)


def test_two_runtimes_on_one_session_fire_a_trigger_once(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        for number in range(5):
            await world.session.add_trigger(Timer(prompt=f"{number}", at=world.time.now + 10), id=f"t{number}")
        other = World(FakeTime(), world.sessions, await world.elsewhere(), world.url)
        other.time = world.time
        async with world.runtime(as_agent(echo)), other.runtime(as_agent(echo)):
            world.time.now += 10
            for _ in range(1_000):
                await world.time.rests()
                if len(world.texts) + len(other.texts) == 5:
                    break
            await world.time.rests()
            await world.time.rests()

        await world.session.refresh()
        assert sorted(body["trigger"] for body in await world.kinds("trigger_fired")) == [f"t{n}" for n in range(5)]
        assert sorted(world.texts + other.texts) == [f"You said: {n}" for n in range(5)]
        assert (await world.session.verify()).problems == ()

    play(tmp_path, scene)


def test_a_trigger_whose_answer_fails_is_told_and_does_not_fire_again(tmp_path: Path) -> None:
    async def failing(request: Request, turn: AsyncTurn) -> None:
        raise ConnectionError("the model did not answer")

    async def scene(world: World) -> None:
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="break")
        async with world.runtime(as_agent(failing)):
            await world.time.rests()
            await world.time.pass_by(100)

        assert world.told("problem") == ["Trigger break: its answer failed: ConnectionError: the model did not answer"]
        assert len(await world.kinds("trigger_fired")) == 1
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["failed"]

    play(tmp_path, scene)


def test_triggers_that_cannot_be_watched_are_told_once_and_stop_no_other(tmp_path: Path) -> None:
    class Nightly:
        def to_resume_dict(self) -> dict[str, Any]:
            return {}

        @classmethod
        def from_resume_dict(cls, data: dict[str, Any]) -> Nightly:
            return cls()

    async def scene(world: World) -> None:
        types = trigger_types()
        types.register("nightly", Nightly)
        world.session = await world.sessions.get("here", triggers=types)
        for id, kind, data in [
            ("foreign", "os.system", {"command": "true"}),
            ("broken", "timer", {"prompt": "x", "at": "soon"}),
            ("lost", "channel", {"prompt": "x", "channel": "ops", "after": "no such event"}),
            ("own", "nightly", {}),
        ]:
            body = {"trigger": id, "type": kind, "data": data, "status": "added"}
            await world.session.append("trigger_changed", body)
        await world.session.send("ops", "hello", sender="ada")
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="good")
        async with world.runtime(as_agent(echo)):
            for _ in range(4):
                await world.time.rests()

        problems = {one.trigger: one.text for one in world.events if one.kind == "problem"}
        assert world.texts == ["You said: Stretch."]
        assert len(world.told("problem")) == len(problems) == 4
        assert "no such type is registered" in problems["foreign"]
        assert "InvalidTrigger" in problems["broken"]
        assert "no such event" in problems["lost"]
        assert "cannot tell when a Nightly fires" in problems["own"]

    play(tmp_path, scene)


def counted(name: str, verb: Callable[..., Any], read: list[str]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        read.append(name)
        return verb(*args, **options)

    return call


def test_a_look_at_a_session_that_nobody_changed_reads_where_its_log_ends_and_nothing_else(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops"), id="ops")
        read: list[str] = []
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            store: Any = world.session._session._store
            for name in ("tip", "events", "events_at", "tail"):
                setattr(store, name, counted(name, getattr(store, name), read))
            for _ in range(10):
                await world.time.rests()

        assert read.count("tip") >= 10
        assert {name for name in read if name != "tip"} == set()

    play(tmp_path, scene)


def test_a_session_that_is_busy_when_a_trigger_is_due_fires_it_later(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now + 10), id="break")
        other = await world.elsewhere()
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            async with await other.turn("mine"):
                await world.time.pass_by(10)
                await world.time.pass_by(200)
                before = list(world.texts)
            await world.time.rests()
            await world.time.rests()

        assert before == []
        assert world.texts == ["You said: Stretch.\n\nIt was due at 2026-01-01 12:00 UTC."]
        assert len(await world.kinds("trigger_fired")) == 1

    play(tmp_path, scene)


def test_a_firing_that_the_store_does_not_take_is_told_and_tried_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(world: World) -> None:
        tried = []
        fire = world.session.fire

        async def full(*args: Any, **options: Any) -> AsyncTurn:
            tried.append(args)
            if len(tried) <= 3:
                raise StoreFull("no space is left")
            return await fire(*args, **options)

        monkeypatch.setattr(world.session, "fire", full)
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="break")
        async with world.runtime(as_agent(echo)):
            for _ in range(5):
                await world.time.rests()

        assert world.texts == ["You said: Stretch."]
        assert len(tried) == 4
        assert world.told("problem") == ["Trigger break: its answer failed: StoreFull: no space is left"] * 3

    play(tmp_path, scene)


def test_a_session_that_is_gone_is_told_once_and_does_not_end_the_runtime(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        async with world.runtime(as_agent(echo)) as runtime:
            await world.time.rests()
            await world.sessions.delete("here")
            await world.time.rests()
            await world.time.rests()
            with pytest.raises(SessionNotFound):
                await runtime.answer("hello")

        assert len(world.told("problem")) == 1
        assert "the session cannot be looked at" in world.told("problem")[0]

    play(tmp_path, scene)


def test_messages_that_fire_nothing_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", sender="ada"), id="ops")
        for number in range(30):
            await world.session.send("ops", f"{number}", sender="monitor")
        read: list[int] = []
        messages = world.session.messages

        async def counted_messages(*args: Any, **options: Any) -> Any:
            found = await messages(*args, **options)
            read.extend(event.seq for event in found)
            return found

        monkeypatch.setattr(world.session, "messages", counted_messages)
        async with world.runtime(as_agent(echo)):
            for number in range(10):
                await world.time.rests()
                await world.session.send("ops", f"more {number}", sender="monitor")
            await world.session.send("ops", "hello", sender="ada")
            await world.time.rests()
            await world.time.rests()

        assert len(read) == len(set(read)) == 41
        assert len(world.texts) == 1 and "ada:\n> hello" in world.texts[0]

    play(tmp_path, scene)


def test_a_message_on_another_branch_fires_after_the_head_was_moved_there(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", sender="ada"), id="ops")
        fork = world.session.seq
        hello = await world.session.send("ops", "hello", sender="ada")
        await world.session.seek(fork)
        await world.session.send("ops", "nothing for anybody", sender="monitor")
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            before = list(world.texts)
            await world.session.seek(hello.seq)
            await world.time.rests()
            await world.time.rests()

        assert before == []
        assert len(world.texts) == 1 and "hello" in world.texts[0]

    play(tmp_path, scene)


def test_an_agent_that_meets_a_stale_writer_in_its_answer_has_failed_and_that_is_told(tmp_path: Path) -> None:
    async def stale(request: Request, turn: AsyncTurn) -> None:
        raise StaleWriter("there", expected_seq=1, actual_seq=2)

    async def scene(world: World) -> None:
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="break")
        async with world.runtime(as_agent(stale)):
            await world.time.rests()

        assert [text.partition(": StaleWriter")[0] for text in world.told("problem")] == [
            "Trigger break: its answer failed"
        ]
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["failed"]

    play(tmp_path, scene)


def test_an_agent_that_ends_its_turn_to_ask_a_person_sends_no_answer_yet(tmp_path: Path) -> None:
    async def asking(request: Request, turn: AsyncTurn) -> None:
        await turn.say("Which one?")
        await turn.end("interrupted")

    async def scene(world: World) -> None:
        await world.session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", reply=True), id="ops")
        await world.session.send("ops", "delete it", sender="ada")
        async with world.runtime(as_agent(asking)):
            await world.time.rests()
            await world.time.rests()

        assert [message.body["sender"] for message in await world.session.channel("ops")] == ["ada"]
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["interrupted"]
        assert world.told("problem") == []

    play(tmp_path, scene)


class Odd:
    """A program's own trigger that gives back what no runtime expects."""

    due: Any = None
    fires: Any = None

    def to_resume_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_resume_dict(cls, data: dict[str, Any]) -> Odd:
        return cls()

    def due_at(self) -> Any:
        return self.due

    async def firing(self, look: Any) -> Any:
        return self.fires


@pytest.mark.parametrize(
    "due", ["soon", b"1", float("nan"), float("inf"), [1], True, 10**400], ids=lambda due: repr(due)[:8]
)
def test_a_trigger_that_is_due_at_no_time_stops_no_other(
    tmp_path: Path, due: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "due", due)

    async def scene(world: World) -> None:
        types = trigger_types()
        types.register("odd", Odd)
        world.session = await world.sessions.get("here", triggers=types)
        await world.session.add_trigger(Odd(), id="odd")
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now + 10), id="break")
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            await world.time.pass_by(10)

        assert world.texts == ["You said: Stretch."]

    play(tmp_path, scene)


@pytest.mark.parametrize("fires", ["now", {"prompt": "x"}, 7])
def test_a_trigger_that_fires_what_is_no_firing_is_told_and_stops_no_other(
    tmp_path: Path, fires: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "fires", fires)

    async def scene(world: World) -> None:
        types = trigger_types()
        types.register("odd", Odd)
        world.session = await world.sessions.get("here", triggers=types)
        await world.session.add_trigger(Odd(), id="odd")
        await world.session.add_trigger(Timer(prompt="Stretch.", at=world.time.now), id="break")
        async with world.runtime(as_agent(echo)):
            await world.time.rests()
            await world.time.rests()

        assert world.texts == ["You said: Stretch."]
        assert world.told("problem") == [f"Trigger odd: it fired a {type(fires).__name__}, which is no Firing"]

    play(tmp_path, scene)


def test_an_agent_that_does_not_stop_holds_up_the_end_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_module, "STOP_S", 0.05)

    async def scene(world: World) -> None:
        let_go = asyncio.Event()
        late: list[type[BaseException]] = []

        async def stubborn(request: Request, turn: AsyncTurn) -> None:
            await turn.say("On and on")
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue
            try:
                await turn.say("and on")
            except StoreClosed as error:
                late.append(type(error))

        async def run() -> None:
            async with world.runtime(as_agent(stubborn)) as runtime:
                asking = asyncio.ensure_future(runtime.answer("go"))
                asking.add_done_callback(lambda asked: asked.exception())
                await settled(world, lambda: bool(world.texts))

        await asyncio.wait_for(run(), 10)
        async with await (await world.elsewhere()).turn("free"):
            pass
        let_go.set()
        await settled(world, lambda: bool(late))

        assert late == [StoreClosed]
        assert [body["status"] for body in await world.kinds("turn_ended")] == ["cancelled", "completed"]

    play(tmp_path, scene)
