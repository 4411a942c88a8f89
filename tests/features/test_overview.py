"""The overview counts every session once, and its pieces add up."""

from pathlib import Path

import pytest

import playhead
from playhead import Sessions
from playhead.features.overview import Overview, overview

DAY_S = 86_400.0
START = 1_785_542_400.0


class _Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture(params=["memory", "sqlite", "bundles"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path, clock: _Clock) -> Sessions:
    url = "memory:" if request.param == "memory" else f"{request.param}:{tmp_path / 'store'}"
    opened = playhead.open(url, clock=clock)
    request.addfinalizer(opened.close)
    return opened


def _bytes(found: Overview) -> int:
    return sum(
        size or 0 for size in (found.session_bytes, found.artifacts_bytes, found.trashed_bytes, found.other_bytes)
    )


def test_an_empty_store_has_an_overview(sessions: Sessions) -> None:
    found = sessions.overview()

    assert (found.session_count, found.unreadable_count, found.trashed_count) == (0, 0, 0)
    assert (found.oldest_at, found.newest_at, found.average_age_s) == (None, None, None)
    assert found.by_age == {"1d": 0, "7d": 0, "30d": 0, "older": 0}
    assert _bytes(found) == found.total_bytes


def test_every_session_counts_once_in_every_group(sessions: Sessions, clock: _Clock) -> None:
    """K24."""
    ages_d = [0.0, 1.0, 1.5, 6.0, 8.0, 29.0, 31.0, 400.0]
    for number, age_d in enumerate(ages_d):
        clock.now = START - age_d * DAY_S
        config = {"name": "desk", "type": "team" if number % 2 else "agent"} if number < 5 else None
        with sessions.create(f"s-{number}", config=config, origin="codex" if number == 7 else None) as session:
            with session.turn("Why?", agent="coordinator" if number < 6 else "helper") as turn:
                turn.say("So.")
            if number == 2:
                session.set_status("archived")
    clock.now = START
    running = sessions.create("running").turn("Go on")
    found = sessions.overview()
    running.end()

    assert found.session_count == 9 == sum(found.by_status.values()) == sum(found.by_age.values())
    assert found.by_status == {"open": 7, "archived": 1, "running": 1}
    assert found.by_age == {"1d": 3, "7d": 2, "30d": 2, "older": 2}
    assert found.by_config_type == {"agent": 3, "team": 2}
    assert found.by_origin == {"codex": 1}
    assert found.agents == {"coordinator": 7, "helper": 2}
    assert (found.oldest_at, found.newest_at) == (START - 400 * DAY_S, START)
    assert found.average_age_s == pytest.approx(sum(ages_d) * DAY_S / 9)


def test_only_the_agents_that_most_sessions_have_are_named(sessions: Sessions) -> None:
    for number in range(8):
        with sessions.create(f"s-{number}") as session:
            for agent in range(number + 1):
                with session.turn("Why?", agent=f"agent-{agent}"):
                    pass

    assert sessions.overview().agents == {f"agent-{number}": 8 - number for number in range(5)}


def test_what_is_on_disk_adds_up_with_the_trash_counted_apart(sessions: Sessions) -> None:
    """K23, K24."""
    for number in range(3):
        session = sessions.create(f"s-{number}")
        with session.turn("Read it") as turn:
            turn.say("word " * 20_000)
        session.save_artifact("plot", bytes([number]) * 100_000)
        session.close()
    before = sessions.overview()
    sessions.trash("s-1")
    after = sessions.overview()
    sessions.empty_trash()
    empty = sessions.overview()

    assert [one.session_count for one in (before, after, empty)] == [3, 2, 2]
    assert [one.trashed_count for one in (before, after, empty)] == [0, 1, 0]
    assert all(_bytes(one) == one.total_bytes for one in (before, after, empty))
    assert before.trashed_bytes == empty.trashed_bytes == 0
    if sessions.url != "memory:":
        assert 300_000 <= (before.artifacts_bytes or 0) <= 400_000
        assert 200_000 <= (after.artifacts_bytes or 0) <= 300_000
        assert before.total_bytes > 600_000
    if sessions.url.startswith("bundles:"):
        assert (before.session_bytes or 0) > 300_000
        assert (after.trashed_bytes or 0) > 200_000
        assert empty.total_bytes < after.total_bytes


def test_a_clock_that_is_behind_makes_nothing_younger_than_new(sessions: Sessions) -> None:
    sessions.create("s")
    found = overview(sessions.store, now=START - 10 * DAY_S)

    assert (found.by_age["1d"], found.average_age_s) == (1, 0.0)


def test_what_cannot_be_read_counts_as_that(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("good")
        (tmp_path / "bad.playhead").write_bytes(b"not a database at all" * 100)
        found = sessions.overview()

    assert (found.session_count, found.unreadable_count) == (2, 1)
    assert found.by_status == {"open": 1, "unreadable": 1}
    assert sum(found.by_age.values()) == 1


def test_no_session_is_opened_for_it(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        sessions.create(f"s-{number}").close()
    sessions.list()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a session was opened")

    for name in ("tip", "events", "events_at", "tail", "facts", "records"):
        monkeypatch.setattr(sessions.store, name, refuse)
    found = sessions.overview()

    assert found.session_count == 3
