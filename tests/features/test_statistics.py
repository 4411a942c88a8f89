"""Statistics: everything that was done counts once, by whatever it is grouped."""

from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import Sessions
from playhead.features.statistics import Count, Statistics, statistics
from playhead.model.event import Draft

DAY_S = 86_400.0
START = 1_785_542_400.0  # 2026-08-01 00:00 UTC


class _Clock:
    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> float:
        self.at += 1.0
        return self.at


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture(params=["memory", "sqlite", "bundles"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path, clock: _Clock) -> Sessions:
    url = "memory:" if request.param == "memory" else f"{request.param}:{tmp_path / 'store'}"
    opened = playhead.open(url, clock=clock)
    request.addfinalizer(opened.close)
    return opened


@pytest.fixture
def work(sessions: Sessions) -> playhead.Session:
    """Two turns: a tool that failed, a reply in two pieces by one model, a sub-agent with another model."""
    session = sessions.create("work-0001", title="Work")
    with session.turn("Why?") as turn:
        call = turn.tool_call("run_tests", {})
        turn.tool_result(call, "no such file", is_error=True)
        turn.say("Look.", model="large", usage={"input_tokens": 10, "output_tokens": 2, "cost": 0.25})
        turn.tool_result(turn.tool_call("read", {"path": "a"}), "text")
    with session.turn("And?") as turn:
        with turn.subagent("helper", "Look around") as helper:
            helper.say("Nothing.", model="small", usage={"input_tokens": 5, "output_tokens": 1})
        turn.say("Nothing.", model="large", usage={"input_tokens": 20, "output_tokens": 3, "cache_read_tokens": 7})
    return session


def _counts(found: Statistics, *fields: str) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(getattr(count, field) for field in fields) for name, count in found.groups.items()}


def test_everything_that_was_done_counts_once(sessions: Sessions, work: playhead.Session) -> None:
    found = statistics(sessions.store)

    assert found.total == Count(
        session_count=1,
        turn_count=2,
        prompt_count=2,
        reply_count=4,
        tool_call_count=2,
        tool_error_count=1,
        input_tokens=35,
        output_tokens=6,
        cache_read_tokens=7,
        cost_usd=0.25,
    )
    assert found.groups == {}
    assert found.size_bytes == sessions.store.size_bytes()


def test_the_sums_are_those_of_the_listing_where_both_count(sessions: Sessions, work: playhead.Session) -> None:
    total, summary = statistics(sessions.store).total, work.summary()

    assert (total.turn_count, total.prompt_count) == (summary.turn_count, summary.user_message_count)
    assert (total.input_tokens, total.output_tokens) == (summary.input_tokens, summary.output_tokens)
    assert total.tool_call_count == summary.tool_call_count


def test_a_model_has_its_replies_and_the_calls_of_all_their_pieces(sessions: Sessions, work: playhead.Session) -> None:
    found = statistics(sessions.store, by="model")

    assert _counts(found, "reply_count", "tool_call_count", "input_tokens", "turn_count", "prompt_count") == {
        "": (1, 1, 0, 2, 2),
        "large": (2, 1, 30, 2, 0),
        "small": (1, 0, 5, 1, 0),
    }


def test_an_agent_has_all_its_runs(sessions: Sessions, work: playhead.Session) -> None:
    with work.turn("Once more") as turn, turn.subagent("helper", "Look again") as helper:
        helper.say("Still nothing.")
    found = statistics(sessions.store, by="agent")

    assert _counts(found, "reply_count", "prompt_count")["coordinator/helper"] == (2, 0)
    assert _counts(found, "prompt_count")["user"] == (3,)


def test_a_tool_has_its_calls_and_failures(sessions: Sessions, work: playhead.Session) -> None:
    found = statistics(sessions.store, by="tool")

    assert _counts(found, "tool_call_count", "tool_error_count", "turn_count", "session_count") == {
        "read": (1, 0, 1, 1),
        "run_tests": (1, 1, 1, 1),
    }
    assert found.total == statistics(sessions.store).total


def test_a_day_has_what_happened_on_it_wherever_it_begins(
    sessions: Sessions, work: playhead.Session, clock: _Clock
) -> None:
    clock.at += DAY_S
    with work.turn("Next day") as turn:
        turn.say("Good morning.")
    found = statistics(sessions.store, by="day")
    elsewhere = statistics(sessions.store, by="day", day_of=lambda at: "once")

    assert _counts(found, "prompt_count", "turn_count") == {"2026-08-01": (2, 2), "2026-08-02": (1, 1)}
    assert list(elsewhere.groups) == ["once"]


def test_only_the_time_that_is_asked_for_counts(sessions: Sessions, work: playhead.Session, clock: _Clock) -> None:
    clock.at += 10 * DAY_S
    sessions.create("late-0001").append("message", {"role": "user", "parts": []})
    late = statistics(sessions.store, since=START + 5 * DAY_S).total
    early = statistics(sessions.store, until=START + 5 * DAY_S).total
    never = statistics(sessions.store, since=START + 99 * DAY_S).total

    assert (late.session_count, late.prompt_count, late.reply_count) == (1, 1, 0)
    assert (early.session_count, early.prompt_count, early.reply_count) == (1, 2, 4)
    assert never == Count()


def test_a_rewound_turn_was_done_all_the_same(sessions: Sessions, work: playhead.Session) -> None:
    before = statistics(sessions.store).total
    work.rewind(turn=1)

    assert statistics(sessions.store).total == before


def test_what_a_fork_copied_counts_with_its_parent(sessions: Sessions, work: playhead.Session) -> None:
    fork = work.fork(id="fork-0001")
    copied = statistics(sessions.store).total
    with fork.turn("Only here") as turn:
        turn.say("Yes.")
    fork.fork(id="fork-of-fork-0001")
    found = statistics(sessions.store).total

    assert (copied.session_count, copied.reply_count) == (1, 4)
    assert (found.session_count, found.prompt_count, found.reply_count) == (2, 3, 5)


def test_what_a_deleted_parent_had_counts_once_in_its_forks(sessions: Sessions, work: playhead.Session) -> None:
    child = work.fork(id="a-child-0001")
    work.fork(id="b-child-0001", at=work.at(work.seq).head)
    child.fork(id="c-grandchild-0001")
    whole = statistics(sessions.store).total
    sessions.delete("work-0001")
    without_parent = statistics(sessions.store).total
    sessions.delete("a-child-0001")
    without_child = statistics(sessions.store).total
    sessions.delete("b-child-0001")
    last = statistics(sessions.store).total

    assert [one.reply_count for one in (whole, without_parent, without_child, last)] == [4, 4, 4, 4]
    assert [one.input_tokens for one in (whole, without_parent, without_child, last)] == [35, 35, 35, 35]
    assert last.session_count == 1


def test_a_middle_that_was_deleted_leaves_nothing_counted_twice(sessions: Sessions, work: playhead.Session) -> None:
    work.fork(id="a-middle-0001").fork(id="a-last-0001")
    sessions.delete("a-middle-0001")

    assert statistics(sessions.store).total.reply_count == 4


def test_pieces_of_a_reply_count_the_largest_usage_in_any_order(sessions: Sessions) -> None:
    session = sessions.create("pieces-0001")
    for number, tokens in enumerate([3, 9, 5]):
        usage = {"input_tokens": 100, "output_tokens": tokens}
        body = {"role": "assistant", "parts": [], "message_id": "msg_1", "model": "m", "usage": usage}
        session.append("message", body, agent="coordinator", turn="turn-1", id=f"piece-{number}")
    found = statistics(sessions.store, by="model")

    assert (found.total.reply_count, found.total.input_tokens, found.total.output_tokens) == (1, 100, 9)
    assert found.groups == {"m": found.total}


def test_what_bodies_say_is_not_trusted(sessions: Sessions) -> None:
    session = sessions.create("odd-0001")
    bodies: list[dict[str, Any]] = [
        {"usage": {"input_tokens": -5, "output_tokens": "many", "cost": 10**400}},
        {"usage": [1], "model": 7, "extra": {"claude_code": {"costUSD": 0.5}}},
        {"usage": {"input_tokens": 4, "cost": -1}, "extra": "none"},
    ]
    parts = [{"type": "tool_call", "name": 3}, {"type": "tool_call_response", "id": [], "is_error": True}]
    for number, body in enumerate(bodies):
        session.append("message", {"role": "assistant", "parts": parts, **body}, id=f"odd-{number}")
    total = statistics(sessions.store, by="tool").total

    assert (total.input_tokens, total.output_tokens, total.cost_usd) == (4, 0, 0.5)
    assert (total.reply_count, total.tool_call_count, total.tool_error_count) == (3, 3, 3)


def test_more_events_than_a_page_are_all_counted(sessions: Sessions) -> None:
    session = sessions.create("long-0001")
    session.append_all(
        [Draft("message", {"role": "user", "parts": []}, f"event-{number}", START + number) for number in range(2_100)]
    )

    assert statistics(sessions.store).total.prompt_count == 2_100


def test_progress_is_told_before_each_session(sessions: Sessions, work: playhead.Session) -> None:
    work.fork(id="fork-0001")
    told: list[tuple[int, int]] = []
    statistics(sessions.store, on_progress=lambda done, count: told.append((done, count)))

    assert told == [(0, 2), (1, 2)]


def test_a_session_that_cannot_be_read_is_said_to_be_left_out(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        with sessions.create("whole-0001").turn("Why?") as turn:
            turn.say("So.")
        (tmp_path / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
        found = statistics(sessions.store)

    assert (found.unreadable_count, found.total.session_count) == (1, 1)


def test_counting_writes_nothing(sessions: Sessions, work: playhead.Session) -> None:
    before = work.events()
    statistics(sessions.store, by="day")

    assert sessions.get("work-0001").events() == before
