"""What a session had set survives `kill -9`, and a trigger fires once: never twice, and never not at all."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from playhead import Event, Session
from playhead.agents.triggers import trigger_types
from playhead.session import open as open_sessions
from playhead.views.fold import ENDED
from tests.promises.children import Nursery
from tests.promises.recorder import acknowledged
from tests.promises.runtimes import BEAT_S, FASTER, START, finish, prepare

TRIALS = 12
"""Steps at which a firing is killed in the normal suite, spread over all that it has."""
KILLS = 8


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with closing(Nursery()) as opened:
        yield opened


@pytest.mark.parametrize("kind", ["bundles", "sqlite"])
def test_a_firing_that_is_killed_happened_once_when_the_session_is_resumed(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    """K9."""
    different, _ = _killed_at_steps(kind, nursery, tmp_path, trials=TRIALS)

    assert different == {}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", ["bundles", "sqlite"])
def test_a_firing_that_is_killed_at_each_of_its_steps_happened_once(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    different, kills = _killed_at_steps(kind, nursery, tmp_path, trials=100_000)

    assert different == {}
    assert kills > 20


def _killed_at_steps(kind: str, nursery: Nursery, tmp_path: Path, *, trials: int) -> tuple[dict[int, Any], int]:
    """Return what differs from an undisturbed run, for each step at which it was killed, and the count of kills."""
    watched = tmp_path / "watched.toml"
    watched.write_text("a = 1")
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    prepare(_url(kind, prepared), str(watched))
    expected, count = _run(kind, nursery, prepared, tmp_path / "undisturbed", die_at=0)
    assert sorted(body["trigger"] for body in expected["fired"]) == ["file", "hourly", "often", "once", "ops"]
    assert sorted(expected["in force"]) == ["file", "hourly", "often", "ops"]
    different = {}
    steps = sorted({1 + index * count // min(trials, count) for index in range(min(trials, count))})
    for step in steps:
        found, _ = _run(kind, nursery, prepared, tmp_path / f"killed-{step}", die_at=step)
        if _in_any_order(found) != _in_any_order(expected):
            different[step] = (found, expected)
    return different, len(steps)


def _run(kind: str, nursery: Nursery, prepared: Path, folder: Path, *, die_at: int) -> tuple[dict[str, Any], int]:
    shutil.copytree(prepared, folder)
    url = _url(kind, folder)
    child = nursery.start("runtimes:fire_all", url=url, folder=str(folder), die_at=die_at)
    status = child.end()
    assert status == (-9 if die_at else 0), f"step {die_at}: the child ended with {status}"
    found = finish(url)
    shutil.rmtree(folder)
    return found, 0 if die_at else child.said[0][1]


def _url(kind: str, folder: Path) -> str:
    return f"bundles:{folder}/sessions" if kind == "bundles" else f"sqlite:{folder}/sessions.db"


def _in_any_order(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"fired": sorted(found["fired"], key=lambda body: str(body["trigger"]))}


def test_a_runtime_that_is_killed_at_random_moments_has_everything_back(nursery: Nursery, tmp_path: Path) -> None:
    """K8, K11."""
    _kill_and_resume(nursery, tmp_path, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(1, 13))
def test_a_runtime_that_is_killed_a_hundred_times_has_everything_back(
    nursery: Nursery, tmp_path: Path, seed: int
) -> None:
    """K8, K11."""
    _kill_and_resume(nursery, tmp_path, seed=seed)


def _kill_and_resume(nursery: Nursery, folder: Path, *, seed: int) -> None:
    url = _url("bundles", folder)
    rng = random.Random(seed)
    said: list[list[Any]] = []
    now = START
    for life in range(KILLS):
        child = nursery.start("runtimes:work", url=url, id="here", seed=seed * 1_000 + life, now=now)
        child.hear_until("resumed")
        time.sleep(0.05 + rng.random() * 0.2)
        said += child.kill()
        now = acknowledged(said, "now")[-1][0] + rng.choice([0.0, BEAT_S * 7.5])
        with open_sessions(url) as sessions:
            session = sessions.resume("here", triggers=trigger_types())
            log = _log(session)

            _check_triggers(session, said)
            _check_nothing_is_left_open(session, log)
            _check_beats(log)
            assert session.verify().problems == ()
    _rest(nursery, url, now)
    with open_sessions(url) as sessions:
        log = _log(sessions.get("here"))

    sent = Counter(id for (id,) in acknowledged(said, "sent"))
    assert sent - _answered(log) == Counter()  # None was left out …
    assert max(_answered(log).values()) == 1  # … and none was answered twice.
    assert len({event.body["agent"] for event in log if event.body.get("kind") == "sub-agent"}) == len(
        {event.body["job"] for event in log if event.body.get("kind") == "sub-agent"}
    )


def _rest(nursery: Nursery, url: str, now: float) -> None:
    """Let a runtime work undisturbed until all messages that had come are answered."""
    child = nursery.start("runtimes:work", url=url, id="here", seed=1_000_000, now=now)
    child.hear_until("resumed")
    with open_sessions(url) as sessions:
        waiting = {event.id for event in sessions.get("here").events(kinds=["channel_message"], newest_first=True)}
    for _ in range(300):
        time.sleep(0.1)
        with open_sessions(url) as sessions:
            if waiting <= set(_answered(_log(sessions.get("here")))):
                break
    else:
        raise AssertionError("messages were not answered within 30 s")
    child.kill()


def _check_triggers(session: Session, said: list[list[Any]]) -> None:
    """What was acknowledged is in force with its data, unless its removal had begun."""
    in_force = {id: trigger.to_resume_dict() for id, trigger in session.resumed.triggers.items()}
    removing = {id for (id,) in acknowledged(said, "removing")}
    kept = {id: data for id, data in acknowledged(said, "set") if id not in removing}

    assert session.resumed.trigger_problems == ()
    assert kept.items() <= in_force.items()
    assert {"beat", "ops"} <= in_force.keys()


def _check_nothing_is_left_open(session: Session, log: list[Event]) -> None:
    """Every job and run has ended, and of each that the kill cut off the agent is told."""
    last: dict[str, Event] = {event.body["job"]: event for event in log if event.kind == "job_changed"}
    told = " ".join(message.text for message in session.conversation() if message.injected == "playhead")

    assert session._fold.open_turn is None
    assert [event.body for event in last.values() if event.body["status"] not in ENDED] == []
    assert all(job in {event.body["job"] for event in last.values()} for job in session.resumed.sealed.jobs)
    assert all(last[job].body["name"] in told for job in session.resumed.sealed.jobs)


def _check_beats(log: list[Event]) -> None:
    """Between two firings of the repeating timer lie exactly as many beats as the later one says were missed."""
    beats = [
        event.body["payload"] for event in log if event.kind == "trigger_fired" and event.body["trigger"] == "beat"
    ]
    steps = [(after["due_at"] - before["due_at"]) / BEAT_S for before, after in pairwise(beats)]

    assert [round(step) for step in steps] == [after["missed"] + 1 for after in beats[1:]]
    assert all(beat["drift_s"] < BEAT_S for beat in beats), f"time passes {FASTER:g} times faster here"


def _answered(log: list[Event]) -> Counter[str]:
    fired = [event.body["payload"] for event in log if event.kind == "trigger_fired"]
    return Counter(message["event"] for payload in fired for message in payload.get("messages", ()))


def _log(session: Session) -> list[Event]:
    found: list[Event] = []
    while page := session.events(after=len(found)):
        found += page
    return found
