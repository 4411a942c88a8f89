"""A background job goes on after the turn that began it; its end is in the log, and the agent is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, AsyncTurn, Sessions, open_async
from playhead.agents import jobs as jobs_module, protocol
from playhead.agents.jobs import JOBS_MAX, NOTICE_CHARS_MAX, BackgroundJob, Jobs
from playhead.agents.protocol import Request, answered, as_agent, for_blocking
from playhead.agents.runtime import Runtime
from playhead.errors import JobCancelled, StoreClosed, StoreDamaged, StoreFull, TooManyJobs
from playhead.session import open as open_sessions

WAIT_S = 60
Scene = Callable[[AsyncSessions, AsyncSession, str], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    async def run() -> None:
        url = f"bundles:{folder}/sessions"
        async with await open_async(url) as sessions:
            await asyncio.wait_for(scene(sessions, await sessions.create("here"), url), WAIT_S)

    asyncio.run(run())


async def statuses(session: AsyncSession) -> list[tuple[str, str]]:
    bodies = [event.body for event in await session.events(kinds=["job_changed"])]
    return [(body["name"], body["status"]) for body in bodies]


async def notices(session: AsyncSession) -> list[str]:
    return [message.text for message in await session.conversation() if message.injected]


def ignore(text: str) -> None:
    """Take a piece that the test does not look at."""


async def gives(result: Any, when: asyncio.Event | None = None) -> Any:
    if when is not None:
        await when.wait()
    return result


async def fails() -> None:
    raise ConnectionError("the index is gone")


def test_a_job_outlives_its_turn_and_the_next_one_is_told_its_result(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        done = asyncio.Event()
        seen: list[list[str]] = []
        jobs: list[BackgroundJob] = []

        async def agent(request: Request, turn: AsyncTurn) -> None:
            seen.append(await notices(session))
            if request.prompt == "index":
                jobs.append(await request.jobs.start("index", gives({"files": 3}, done), args={"folder": "docs"}))

        async with Runtime(as_agent(agent), sessions, session) as runtime:
            await runtime.answer("index")
            await runtime.answer("meanwhile")
            is_running = [job.name for job in runtime.jobs.running]
            done.set()
            while jobs[0].status == "running":
                await asyncio.sleep(0.001)
            await runtime.answer("and now?")
        bodies = [event.body for event in await session.events(kinds=["job_changed"])]

        assert is_running == ["index"]
        assert bodies[0] == {**bodies[0], "status": "running", "args": {"folder": "docs"}, "kind": "background"}
        assert bodies[1] == {**bodies[1], "status": "completed", "result": {"files": 3}, "job": bodies[0]["job"]}
        assert len(bodies) == 2
        assert seen == [[], [], [f"The job 'index' ({jobs[0].id}) is done. Its result:\n{{\"files\":3}}"]]
        assert (await session.verify()).problems == ()

    play(tmp_path, scene)


def test_an_end_and_what_the_agent_is_told_of_it_are_one_append(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        await jobs.start("index", gives({"files": 3}))
        await jobs.start("fetch", fails())
        await jobs.start("tidy", gives(None))
        await jobs.close(patience_s=10)
        told = await notices(session)
        log = await session.events(after=1)

        assert [event.kind for event in log if event.body.get("status") != "running"] == ["job_changed", "message"] * 3
        assert told[0].endswith('is done. Its result:\n{"files":3}')
        assert told[1].endswith("has failed: ConnectionError: the index is gone")
        assert told[2].startswith("The job 'tidy' (job-")
        assert [event.body["injected"] for event in log if event.kind == "message"] == ["job"] * 3
        assert await session.turn_count() == 0

    play(tmp_path, scene)


def test_who_waits_for_a_job_gets_its_result_and_is_not_told_again(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        async def agent(request: Request, turn: AsyncTurn) -> None:
            done = asyncio.Event()
            job = await request.jobs.start("add", gives(4, done))
            asyncio.get_running_loop().call_soon(done.set)
            await turn.say(f"It gave {await job}.")
            failing = await request.jobs.start("fetch", fails())
            with pytest.raises(ConnectionError, match="the index is gone"):
                await failing
            assert await job == 4

        await answered(as_agent(agent), sessions, session, "add", on_text=ignore)

        assert await notices(session) == []
        assert (await session.conversation())[-1].text == "It gave 4."
        assert await statuses(session) == [
            ("add", "running"),
            ("add", "completed"),
            ("fetch", "running"),
            ("fetch", "failed"),
        ]

    play(tmp_path, scene)


def test_a_cancelled_job_is_recorded_and_whoever_waits_for_it_goes_on(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        job = await jobs.start("index", gives(1, asyncio.Event()))
        never_began = await jobs.start("never", gives(1))
        never_began.cancel()
        job.cancel()
        for one in (job, never_began):
            with pytest.raises(JobCancelled):
                await one

        assert (job.status, never_began.status) == ("cancelled", "cancelled")
        assert sorted(await statuses(session)) == [
            ("index", "cancelled"),
            ("index", "running"),
            ("never", "cancelled"),
            ("never", "running"),
        ]
        assert await notices(session) == []
        assert jobs.running == []

    play(tmp_path, scene)


def test_a_job_that_exits_fails_and_ends_no_program(tmp_path: Path) -> None:
    async def exiting() -> None:
        raise SystemExit(4)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        job = await Jobs(session).start("index", exiting())
        with pytest.raises(RuntimeError, match=r"it called sys.exit\(4\)"):
            await job

        assert await statuses(session) == [("index", "running"), ("index", "failed")]

    play(tmp_path, scene)


def test_the_end_of_a_runtime_cancels_its_jobs(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        async def agent(request: Request, turn: AsyncTurn) -> None:
            await request.jobs.start("index", gives(1, asyncio.Event()))

        async with Runtime(as_agent(agent), sessions, session) as runtime:
            await runtime.answer("index")
        resumed = await sessions.resume("here")

        assert await statuses(session) == [("index", "running"), ("index", "cancelled")]
        assert not resumed.resumed.sealed

    play(tmp_path, scene)


def test_a_listener_hears_of_jobs(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        heard: list[tuple[str, str]] = []
        jobs = Jobs(session, on_job=lambda job: heard.append((job.name, job.status)))
        await (await jobs.start("index", gives(1)))

        assert heard == [("index", "running"), ("index", "completed")]

    play(tmp_path, scene)


@pytest.mark.parametrize("how", ["answered", "for_blocking"])
def test_one_answer_alone_waits_for_its_jobs(tmp_path: Path, how: str) -> None:
    async def agent(request: Request, turn: AsyncTurn) -> None:
        async def work() -> str:
            await asyncio.sleep(0.01)
            return "done"

        await request.jobs.start("index", work())
        await turn.say("It is under way.")

    _answer(tmp_path, agent, how)

    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.get("here")
        assert [event.body["status"] for event in session.events(kinds=["job_changed"])] == ["running", "completed"]
        assert session.conversation()[-1].text.endswith("Its result:\ndone")


@pytest.mark.parametrize("how", ["answered", "for_blocking"])
def test_jobs_that_go_on_and_on_after_one_answer_are_cancelled(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "JOBS_PATIENCE_S", 0.01)

    async def agent(request: Request, turn: AsyncTurn) -> None:
        await request.jobs.start("index", gives(1, asyncio.Event()))

    _answer(tmp_path, agent, how)

    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.get("here")
        assert [event.body["status"] for event in session.events(kinds=["job_changed"])] == ["running", "cancelled"]
        assert not sessions.resume("here").resumed.sealed


@pytest.mark.parametrize("how", ["answered", "for_blocking"])
def test_an_agent_that_fails_takes_its_jobs_with_it(tmp_path: Path, how: str) -> None:
    async def agent(request: Request, turn: AsyncTurn) -> None:
        await request.jobs.start("index", gives(1, asyncio.Event()))
        raise ConnectionError("the model did not answer")

    with pytest.raises(ConnectionError):
        _answer(tmp_path, agent, how)

    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        events = sessions.get("here").events(kinds=["job_changed", "turn_ended"])
        assert sorted(event.body["status"] for event in events) == ["cancelled", "failed", "running"]


def _answer(folder: Path, function: protocol.PlainFunction, how: str) -> None:
    """Have a function answer a prompt in the session `here`, awaited or blocking."""
    if how == "answered":

        async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
            await answered(as_agent(function), sessions, session, "go", on_text=ignore)

        play(folder, scene)
        return
    with open_sessions(f"bundles:{folder}/sessions") as sessions, sessions.create("here") as session:
        with session.turn("go") as turn, closing(for_blocking(as_agent(function))(sessions, session, turn, "go")) as it:
            for _ in it:
                pass


def test_no_more_jobs_than_a_limit_run_at_a_time(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        forever = asyncio.Event()
        await asyncio.gather(*(jobs.start(f"{number}", gives(1, forever)) for number in range(JOBS_MAX)))
        with pytest.raises(TooManyJobs, match="32 jobs run already"):
            await jobs.start("one more", gives(1))
        await jobs.close()
        await (await jobs.start("now there is room", gives(1)))

        assert "one more" not in {name for name, _ in await statuses(session)}

    play(tmp_path, scene)


def test_a_job_that_cannot_be_recorded_never_begins(tmp_path: Path) -> None:
    began = []

    async def work() -> None:
        began.append(True)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        other = await open_async(url)
        await other.close()
        jobs = Jobs(session)
        await sessions.close()
        with pytest.raises(StoreClosed):
            await jobs.start("index", work())

        assert jobs.running == []

    play(tmp_path, scene)
    assert began == []


@pytest.mark.parametrize("result", [object(), float("nan"), {1, 2}, b"bytes", {"deep": [object()]}])
def test_a_result_that_json_cannot_hold_is_recorded_as_it_can_be_or_as_a_failure(tmp_path: Path, result: Any) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        await jobs.start("index", gives(result))
        await jobs.close(patience_s=10)
        (_, last) = await statuses(session)

        assert last[1] in ("completed", "failed")
        assert len(await notices(session)) == 1
        assert (await session.verify()).problems == ()

    play(tmp_path, scene)


def test_a_long_result_is_told_in_part_and_recorded_whole(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        await jobs.start("index", gives("x" * (NOTICE_CHARS_MAX + 5)))
        await jobs.close(patience_s=10)
        (told,) = await notices(session)
        ended = (await session.events(kinds=["job_changed"]))[-1]

        assert told.endswith("x … (5 characters more are in the log)")
        assert len(ended.body["result"]) == NOTICE_CHARS_MAX + 5

    play(tmp_path, scene)


def test_a_job_whose_turn_was_rewound_ends_in_the_log_and_nobody_is_told(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        done = asyncio.Event()

        async def agent(request: Request, turn: AsyncTurn) -> None:
            await request.jobs.start("index", gives(1, done))

        async with Runtime(as_agent(agent), sessions, session) as runtime:
            await runtime.answer("index")
            await session.rewind(turn=1)
            (job,) = runtime.jobs.running
            done.set()
            while job.status == "running":
                await asyncio.sleep(0.001)

        assert await statuses(session) == [("index", "running"), ("index", "completed")]
        assert await notices(session) == []
        assert await session.turn_count() == 0

    play(tmp_path, scene)


def test_a_job_that_ends_while_another_process_is_in_a_turn_is_recorded_after_it(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        done = asyncio.Event()
        jobs = Jobs(session)
        job = await jobs.start("index", gives(1, done))
        async with await open_async(url) as others:
            other = await others.get("here")
            async with await other.turn("mine"):
                done.set()
                await asyncio.sleep(0.05)
                is_running = job.status == "running"
                await other.append("note", {"name": "meanwhile"})
            await jobs.close(patience_s=10)

        assert is_running
        assert job.status == "completed"
        assert (await statuses(session))[-1] == ("index", "completed")
        assert (await session.verify()).problems == ()

    play(tmp_path, scene)


def test_blocking_programs_keep_their_jobs_across_turns(tmp_path: Path) -> None:
    with Sessions(open_sessions(f"bundles:{tmp_path}/sessions").store) as sessions:
        session = sessions.create("here")
        begun = session.begin_job("index", args={"folder": "docs"})
        with session.turn("meanwhile") as turn:
            turn.say("It runs.")
        session.end_job(begun, "completed", result=3, notice="The index has 3 files.")
        with session.turn("and now?") as turn:
            turn.say("Three files.")

        assert [m.text for m in session.conversation()] == [
            "meanwhile",
            "It runs.",
            "The index has 3 files.",
            "and now?",
            "Three files.",
        ]
        assert session.turn_count == 2
        assert not sessions.resume("here").resumed.sealed


def test_a_job_goes_on_where_another_process_begins_a_turn_and_its_end_is_told(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        done = asyncio.Event()
        jobs = Jobs(session)
        await jobs.start("index", gives("3 files", done))
        async with await open_async(url) as others:
            async with await (await others.get("here")).turn("mine"):
                pass
        done.set()
        await jobs.close(patience_s=10)

        assert [status for _, status in await statuses(session)] == ["running", "completed"]
        assert [text.endswith("3 files") for text in await notices(session)] == [True]
        assert (await session.verify()).problems == ()

    play(tmp_path, scene)


def test_an_end_waits_for_its_record_as_long_as_another_process_is_in_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "BUSY_PAUSE_S", 0.0005)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        done = asyncio.Event()
        jobs = Jobs(session)
        job = await jobs.start("index", gives("3 files", done))
        tried: list[int] = []
        end_job = session.end_job

        async def counted(*args: Any, **options: Any) -> Any:
            tried.append(1)
            return await end_job(*args, **options)

        session.end_job = counted  # type: ignore[method-assign]
        async with await open_async(url) as others:
            async with await (await others.get("here")).turn("mine"):
                done.set()
                while len(tried) < 60:
                    await asyncio.sleep(0.001)
                meanwhile = job.status
        result = await job
        async with await session.turn("and now?"):
            pass

        assert meanwhile == "running"
        assert (result, job.status) == ("3 files", "completed")
        assert [status for _, status in await statuses(session)] == ["running", "completed"]

    play(tmp_path, scene)


def test_an_end_that_finds_no_room_is_recorded_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "BUSY_PAUSE_S", 0.001)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        end_job, is_full = session.end_job, [True] * 3

        async def full(*args: Any, **options: Any) -> Any:
            if is_full:
                is_full.pop()
                raise StoreFull("no space is left")
            return await end_job(*args, **options)

        session.end_job = full  # type: ignore[method-assign]
        jobs = Jobs(session)
        job = await jobs.start("index", gives("3 files"))
        while job.status == "running":
            await asyncio.sleep(0.001)

        assert job.status == "completed"
        assert (await notices(session))[-1].endswith("3 files")

    play(tmp_path, scene)


def test_an_end_that_nothing_can_record_is_interrupted_for_all_and_closed_by_the_next_turn(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        async def damaged(*args: Any, **options: Any) -> Any:
            raise StoreDamaged("a page is damaged")

        session.end_job = damaged  # type: ignore[method-assign]
        heard: list[str] = []
        jobs = Jobs(session, on_job=lambda job: heard.append(job.status))
        job = await jobs.start("index", gives("3 files"))
        with pytest.raises(StoreDamaged):
            await job
        async with await session.turn("and now?"):
            pass

        assert (job.status, heard) == ("interrupted", ["running", "interrupted"])
        assert "cannot be recorded" in (job.error or "")
        assert [status for _, status in await statuses(session)] == ["running", "interrupted"]
        assert "index" in (await notices(session))[-1]
        assert jobs.running == []

    play(tmp_path, scene)


async def heeds_nothing(let_go: asyncio.Event) -> None:
    while not let_go.is_set():
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            continue


def test_a_job_that_does_not_stop_holds_up_the_end_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "STOP_S", 0.05)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        let_go = asyncio.Event()

        async def agent(request: Request, turn: AsyncTurn) -> None:
            await request.jobs.start("stubborn", heeds_nothing(let_go))

        async def run() -> None:
            async with Runtime(as_agent(agent), sessions, session) as runtime:
                await runtime.answer("go")

        running = asyncio.ensure_future(run())
        _, late = await asyncio.wait([running], timeout=10)
        let_go.set()
        await running

        assert not late
        assert await statuses(session) == [("stubborn", "running"), ("stubborn", "cancelled")]

    play(tmp_path, scene)


def test_the_end_of_a_runtime_gives_up_what_cannot_be_recorded_after_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "RECORD_S", 0.05)

    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        jobs = Jobs(session)
        job = await jobs.start("index", gives(1, asyncio.Event()))
        async with await open_async(url) as others:
            async with await (await others.get("here")).turn("mine"):
                await asyncio.wait_for(jobs.close(), 10)
        async with await session.turn("and now?"):
            pass

        assert job.status == "interrupted"
        assert [status for _, status in await statuses(session)] == ["running", "interrupted"]

    play(tmp_path, scene)


def test_a_runtime_whose_end_is_cancelled_ends_its_jobs_all_the_same(tmp_path: Path) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession, url: str) -> None:
        stopping = asyncio.Event()

        async def slow_to_stop(request: Request, turn: AsyncTurn) -> None:
            await request.jobs.start("index", gives(1, asyncio.Event()))
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stopping.set()
                await asyncio.sleep(0.05)
                raise

        async def run() -> None:
            async with Runtime(as_agent(slow_to_stop), sessions, session) as runtime:
                asyncio.ensure_future(runtime.answer("go")).add_done_callback(lambda asked: asked.exception())
                while not runtime.jobs.running:
                    await asyncio.sleep(0.001)

        running = asyncio.ensure_future(run())
        await stopping.wait()
        running.cancel()
        await asyncio.wait([running])

        assert running.cancelled()
        assert (await statuses(session))[-1] == ("index", "cancelled")

    play(tmp_path, scene)
