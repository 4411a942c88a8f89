"""The awaited twins: the same names and arguments as the blocking classes, off the event loop, and safe to cancel."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, EventConflict, SessionBusy, Sessions, open_async
from playhead.aio import AsyncJob, AsyncSpeaker, AsyncSubAgent, AsyncTurn, AsyncView, lent
from playhead.errors import StoreClosed
from playhead.features.reading import View
from playhead.model.event import Draft
from playhead.model.ids import session_key
from playhead.session import Session, open as open_sessions
from playhead.stores.base import Lease
from playhead.turn import Job, Speaker, SubAgent, Turn

WAIT_S = 60
TWINS: list[tuple[type, type]] = [
    (Sessions, AsyncSessions),
    (View, AsyncView),
    (Session, AsyncSession),
    (Speaker, AsyncSpeaker),
    (Turn, AsyncTurn),
    (SubAgent, AsyncSubAgent),
    (Job, AsyncJob),
]
TWIN_OF = {blocking.__name__: twin.__name__ for blocking, twin in TWINS}
# How a blocking program begins a turn is `Session.turn`; the class method is its inside.
BLOCKING_ONLY = {"Turn": {"begin"}}
# A program that needs another verb of the blocking class brings it along.
TWIN_ONLY = {"AsyncSessions": {"run"}}
# What an open object knows without asking its store; everything else is awaited.
KNOWN = {"agent", "id", "is_open", "key", "resumed", "result", "scope", "seq", "turn_id", "url"}

URLS = {"memory": "memory:", "sqlite": "sqlite:{0}/sessions.db", "bundles": "bundles:{0}/sessions"}

Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, None]]


def play(url: str, scene: Scene) -> None:
    """Run a scene in an event loop, with a store and a session in it."""

    async def run() -> None:
        async with await open_async(url) as sessions:
            await asyncio.wait_for(scene(sessions, await sessions.create("one")), WAIT_S)

    asyncio.run(run())


@pytest.fixture(params=list(URLS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param].format(tmp_path)


@pytest.fixture
def bundles(tmp_path: Path) -> str:
    return f"bundles:{tmp_path}/sessions"


# Names and signatures


def names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def slots(kind: type) -> set[str]:
    """Return the public attributes that a class sets on itself as it is made."""
    source = "".join(inspect.getsource(vars(one)["__init__"]) for one in kind.__mro__[:-1] if "__init__" in vars(one))
    found = {word.split(" ")[0].split(":")[0] for word in source.split("self.")[1:]}
    return {name for name in found if name.isidentifier() and not name.startswith("_")}


def described(annotation: object) -> str:
    """Return a return annotation with every blocking class in it replaced by its twin."""
    text = str(annotation)
    return TWIN_OF.get(text, text)


@pytest.mark.parametrize(("blocking", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_has_every_name_of_its_blocking_class_and_no_other(blocking: type, twin: type) -> None:
    expected = (names(blocking) | slots(blocking)) - BLOCKING_ONLY.get(blocking.__name__, set()) - {"store"}
    actual = names(twin) - TWIN_ONLY.get(twin.__name__, set())

    assert actual == expected


@pytest.mark.parametrize(("blocking", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_twin_takes_the_same_arguments_and_gives_the_same(blocking: type, twin: type) -> None:
    different = []
    for name in names(blocking) & names(twin):
        ours, theirs = inspect.getattr_static(blocking, name), inspect.getattr_static(twin, name)
        if not inspect.isfunction(ours) or not inspect.isfunction(theirs):
            continue
        one, other = inspect.signature(ours), inspect.signature(theirs)
        if list(one.parameters.values()) != list(other.parameters.values()):
            different.append(f"{name}: {one} and {other}")
        if described(one.return_annotation) != other.return_annotation:
            different.append(f"{name} gives {one.return_annotation} and {other.return_annotation}")

    assert different == []


def test_opening_takes_the_same_arguments() -> None:
    assert inspect.signature(open_sessions).parameters == inspect.signature(open_async).parameters


@pytest.mark.parametrize("twin", [twin for _, twin in TWINS], ids=lambda kind: kind.__name__)
def test_whatever_may_read_the_store_is_awaited(twin: type) -> None:
    static = {name: inspect.getattr_static(twin, name) for name in names(twin)}
    properties = {name for name, one in static.items() if isinstance(one, property)}
    plain = {name for name, one in static.items() if inspect.isfunction(one) and not inspect.iscoroutinefunction(one)}

    assert properties <= KNOWN
    assert plain == set()


@pytest.mark.parametrize(("blocking", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_a_property_of_a_blocking_class_is_awaited_under_its_own_name(blocking: type, twin: type) -> None:
    properties = [name for name in names(blocking) if isinstance(inspect.getattr_static(blocking, name), property)]
    missing = [
        name
        for name in properties
        if name not in KNOWN and not inspect.iscoroutinefunction(inspect.getattr_static(twin, name))
    ]

    assert missing == []


# Verbs


def test_a_session_goes_to_the_trash_and_comes_back(url: str) -> None:
    seen: list[Any] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        trash_id = await sessions.trash("one")
        seen.append([one.id for one in await sessions.trashed()])
        seen.append(await sessions.was_removed("one"))
        seen.append((await sessions.restore(trash_id, id="two")).id)
        records = await sessions.run(lambda blocking: blocking.store.records(session_key("two")))
        seen.append((await sessions.put_records("three", records, expected_seq=0)).seq)
        await sessions.purge(await sessions.trash("two"))
        await sessions.trash("three")
        seen.append([one.id for one in await sessions.empty_trash()])

    play(url, scene)

    assert seen == [["one"], True, "two", 1, ["three"]]


def test_the_verbs_do_what_the_blocking_ones_do(url: str) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async with await session.turn("Why does it fail?") as turn:
            call = await turn.tool_call("run_tests", {"path": "tests"})
            await turn.tool_result(call, {"failed": 1})
            async with await turn.subagent("researcher", "Look.") as run:
                await run.say("Nothing before March.")
            job = await turn.job("watch")
            await job.done("quiet")
            await turn.stream("It times ")
            await turn.stream("out.")
            await turn.set_state({"tries": 3})
            number = await turn.number()
        texts = [message.text for message in await session.conversation()]
        fork = await session.fork(id="two")
        await session.rename("Flaky")
        await session.save_artifact("log", b"bytes")
        listed = {row.id for row in (await sessions.list()).items}
        found = await sessions.search("march")

        assert (number, await session.turn_count(), run.result) == (1, 1, "Nothing before March.")
        assert texts == ["Why does it fail?", "", "", "It times out."]
        assert (await session.state())["session"] == {"tries": 3}
        assert await session.title() == "Flaky"
        assert await session.artifact("log") == b"bytes"
        assert (fork.id, await fork.turn_count()) == ("two", 1)
        assert await fork.head() == len(await fork.path())
        assert listed == {"one", "two"}
        assert [hit.session for hit in found.hits][:1] == ["one"]
        assert (await sessions.verify("one")).ok

    play(url, scene)


def test_a_function_of_the_blocking_class_runs_on_the_worker(url: str) -> None:
    def ids(sessions: Sessions, limit: int) -> tuple[list[str], str]:
        return [row.id for row in sessions.list(limit=limit).items], threading.current_thread().name

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        found, thread = await sessions.run(ids, limit=5)

        assert found == ["one"]
        assert thread != threading.current_thread().name

    play(url, scene)


def test_closing_twice_is_fine_and_a_call_afterwards_says_what_is_wrong(bundles: str) -> None:
    async def run() -> None:
        sessions = await open_async(bundles)
        session = await sessions.create("one")
        await session.close()
        await session.close()
        title = await session.title()
        await sessions.close()
        await sessions.close()

        assert title is None
        with pytest.raises(StoreClosed):
            await sessions.create("two")
        with pytest.raises(StoreClosed):
            await session.append("note", {"name": "late"})

    asyncio.run(run())


# Cancelling


def test_a_cancelled_append_may_land_and_its_retry_is_harmless(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_appending, may_end = threading.Event(), threading.Event()
    append = Session.append_all

    def slow(session: Session, drafts: list[Draft]) -> Any:
        is_appending.set()
        assert may_end.wait(WAIT_S)
        return append(session, drafts)

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        drafts = [Draft("note", {"name": "step", "number": 1}, "step-1", 1_785_585_600.0)]
        monkeypatch.setattr(Session, "append_all", slow)
        call = asyncio.ensure_future(session.append_all(drafts))
        await asyncio.to_thread(is_appending.wait, WAIT_S)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        monkeypatch.undo()
        may_end.set()
        again = await session.append_all(drafts)
        stored = await session.events(kinds=["note"])

        assert stored == again
        assert [event.id for event in stored] == ["step-1"]
        with pytest.raises(EventConflict):
            await session.append("note", {"name": "step", "number": 2}, id="step-1")

    play(url, scene)


def test_a_turn_that_begins_for_a_cancelled_call_is_ended(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its lease would be held as long as the process lives, and the session would be busy for ever."""
    is_beginning, may_go_on = threading.Event(), threading.Event()

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        store = session._session._store
        acquire = store.acquire

        def slow(*args: Any, **options: Any) -> Lease:
            is_beginning.set()
            assert may_go_on.wait(WAIT_S)
            return acquire(*args, **options)

        monkeypatch.setattr(store, "acquire", slow)
        call = asyncio.ensure_future(session.turn("Hello?"))
        await asyncio.to_thread(is_beginning.wait, WAIT_S)
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        monkeypatch.undo()
        holder = store.holder(session.key)
        ended = [event.body for event in await session.events(kinds=["turn_ended"])]
        async with await session.turn("And now?"):
            pass

        assert holder is None
        assert ended == [{"status": "cancelled"}]

    play(url, scene)


def test_a_turn_that_cannot_begin_says_why_also_where_it_is_cancelled(url: str) -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        other = await sessions.get("one")
        async with await session.turn("Wait", label="the other window"):
            with pytest.raises(SessionBusy, match="the other window"):
                await other.turn("Me too")
            call = asyncio.ensure_future(other.turn("Me too"))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        prompts = [message.text for message in await session.conversation()]

        assert prompts == ["Wait"]

    play(url, scene)


async def _completed(turn: AsyncTurn) -> None:
    await turn.stream("All of it.")


async def _failed(turn: AsyncTurn) -> None:
    await turn.stream("Some of ")
    raise ConnectionError("the model did not answer")


async def _cancelled(turn: AsyncTurn) -> None:
    await turn.stream("Some of ")
    raise asyncio.CancelledError


async def _timed_out(turn: AsyncTurn) -> None:
    await turn.stream("Some of ")
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("block", "raised", "status", "said"),
    [
        (_completed, None, "completed", ("All of it.", False)),
        (_failed, ConnectionError, "failed", ("Some of ", True)),
        (_cancelled, asyncio.CancelledError, "cancelled", ("Some of ", True)),
        (_timed_out, TimeoutError, "cancelled", ("Some of ", True)),
    ],
    ids=["completed", "failed", "cancelled", "timed out"],
)
def test_a_turn_ends_as_its_block_does_and_keeps_what_was_streamed(
    url: str,
    block: Callable[[AsyncTurn], Coroutine[Any, Any, None]],
    raised: type[BaseException] | None,
    status: str,
    said: tuple[str, bool],
) -> None:
    async def turn_over(session: AsyncSession) -> None:
        async with asyncio.timeout(0.2 if raised is TimeoutError else WAIT_S):
            async with await session.turn("Hello?") as turn:
                await block(turn)

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        caught: BaseException | None = None
        try:
            await turn_over(session)
        except (Exception, asyncio.CancelledError) as error:
            caught = error
        ended = [event.body["status"] for event in await session.events(kinds=["turn_ended"])]
        last = (await session.conversation())[-1]
        holder = session._session._store.holder(session.key)

        assert type(caught) is (raised or type(None))
        assert ended == [status]
        assert (last.text, last.interrupted) == said
        assert holder is None

    play(url, scene)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_sub_agent_s_run_ends_as_its_block_does(url: str, status: str) -> None:
    raised = {"completed": None, "failed": ValueError("no"), "cancelled": asyncio.CancelledError()}[status]

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async with await session.turn("Hello?") as turn:
            try:
                async with await turn.subagent("researcher", "Look.") as run:
                    await run.stream("Nothing.")
                    if raised is not None:
                        raise raised
            except (ValueError, asyncio.CancelledError) as error:
                assert error is raised
        jobs = [event.body["status"] for event in await session.events(kinds=["job_changed"])]

        assert jobs == ["running", status]

    play(url, scene)


def test_cancelling_again_while_a_turn_ends_neither_hurries_nor_loses_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ending, may_end = threading.Event(), threading.Event()
    end = Turn.end

    def slow(turn: Turn, *args: Any, **options: Any) -> None:
        is_ending.set()
        assert may_end.wait(WAIT_S)
        end(turn, *args, **options)

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async def work() -> None:
            async with await session.turn("Hello?") as turn:
                await turn.stream("Some of ")

        monkeypatch.setattr(Turn, "end", slow)
        task = asyncio.ensure_future(work())
        await asyncio.to_thread(is_ending.wait, WAIT_S)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        is_waiting = not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()
        ended = [event.body for event in await session.events(kinds=["turn_ended"])]

        assert is_waiting
        assert ended == [{"status": "completed"}]
        assert session._session._store.holder(session.key) is None

    play(url, scene)


# The event loop


def test_the_event_loop_beats_on_during_a_long_search(bundles: str) -> None:
    """K14. The first search indexes thousands of events; the longest gap between two beats is far below its time."""
    with open_sessions(bundles) as sessions:
        text = "the proxy resets idle connections after thirty seconds and nobody knows why " * 20
        for number in range(3):
            session = sessions.create(f"long-{number}")
            session.append_all(
                [
                    Draft("note", {"name": "log", "text": f"{text} {seq}"}, f"log-{seq}", 1_785_585_600.0)
                    for seq in range(500)
                ]
            )
    gaps: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        beating = asyncio.ensure_future(beat())
        started = time.perf_counter()
        found = await sessions.search("proxy", k=50)
        took_s = time.perf_counter() - started
        beating.cancel()

        assert len(found.hits) == 50
        assert len(gaps) >= 10
        assert max(gaps) < took_s / 3

    play(bundles, scene)


def test_a_search_over_all_sessions_does_not_hold_up_a_turn(bundles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_searching, has_spoken = threading.Event(), threading.Event()

    def slow(sessions: Sessions, query: str, **options: Any) -> str:
        is_searching.set()
        assert has_spoken.wait(WAIT_S)
        return query

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        async with await session.turn("Hello?") as turn:
            monkeypatch.setattr(Sessions, "search", slow)
            searching = asyncio.ensure_future(sessions.search("proxy"))
            await asyncio.to_thread(is_searching.wait, WAIT_S)
            await turn.say("Still here.")
            has_spoken.set()
            found: Any = await searching

        assert found == "proxy"

    play(bundles, scene)


# Lent to a blocking program's agent


def test_what_is_lent_is_the_program_s_own_and_still_open_afterwards(bundles: str) -> None:
    with open_sessions(bundles) as sessions, sessions.create("one") as session:
        with session.turn("Hello?") as turn:

            async def speak() -> int:
                async with lent(sessions, session, turn) as (its_sessions, its_session, its_turn):
                    await its_turn.stream("From the ")
                    await its_turn.stream("loop.")
                    found = await its_sessions.search("hello")
                    return len(found.hits) + await its_session.turn_count()

            counted = asyncio.run(speak())
            turn.stream(" From the program.")
        texts = [message.text for message in session.conversation()]

    assert counted == 2
    assert texts == ["Hello?", "From the loop. From the program."]


def test_nothing_of_a_cancelled_call_is_under_way_after_the_loan(bundles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends the turn right after, on its own thread."""
    is_streaming, done = threading.Event(), []
    stream = Turn.stream

    def slow(turn: Turn, text: str, *, part: str = "text") -> None:
        is_streaming.set()
        time.sleep(0.2)
        stream(turn, text, part=part)
        done.append(text)

    monkeypatch.setattr(Turn, "stream", slow)
    with open_sessions(bundles) as sessions, sessions.create("one") as session:
        with session.turn("Hello?") as turn:

            async def speak() -> None:
                async with lent(sessions, session, turn) as (_, _, its_turn):
                    call = asyncio.ensure_future(its_turn.stream("One word."))
                    await asyncio.to_thread(is_streaming.wait, WAIT_S)
                    call.cancel()

            asyncio.run(speak())
            was_done = list(done)
        texts = [message.text for message in session.conversation()]

    assert was_done == ["One word."]
    assert texts == ["Hello?", "One word."]
