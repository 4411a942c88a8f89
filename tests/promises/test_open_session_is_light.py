"""An open session that nobody uses takes little: a few file descriptors, and no more than a bounded number in all."""

from __future__ import annotations

import os
import threading

import playhead
from playhead.stores.sqlite.bundles import OPEN_MAX
from tests.promises.children import Nursery
from tests.promises.line import Line
from tests.promises.places import Bundles, Place

DESCRIPTORS_MAX = 4

CATALOGUE_DESCRIPTORS = 3
"""The catalogue of a directory, its write-ahead log and the index of that: once for a store, however many are open."""


def test_an_open_idle_session_holds_few_descriptors_and_a_closed_one_none(place: Place, nursery: Nursery) -> None:
    said = nursery.run("test_open_session_is_light:count_descriptors", url=place.url, sessions=1)
    counts = {name: count for _, name, count in said}

    most = DESCRIPTORS_MAX + _of_the_store(place)
    assert counts["idle"] <= most
    assert counts["after a turn"] <= most
    assert counts["after a search"] <= most
    assert counts["closed"] == 0


def test_many_open_sessions_hold_a_bounded_number_of_descriptors(place: Place, nursery: Nursery) -> None:
    said = nursery.run("test_open_session_is_light:count_descriptors", url=place.url, sessions=3 * OPEN_MAX)
    counts = {name: count for _, name, count in said}

    assert counts["idle"] <= OPEN_MAX * 3 + DESCRIPTORS_MAX + _of_the_store(place)
    assert counts["closed"] == 0


def test_more_sessions_than_are_kept_open_work_from_many_threads(place: Place) -> None:
    failures: list[BaseException] = []
    with place.open() as sessions:
        opened = [sessions.create(f"s{number}") for number in range(2 * OPEN_MAX)]

        def work(first: int) -> None:
            try:
                for round in range(6):
                    for session in opened[first::8]:
                        session.append("note", {"name": "test", "round": round})
                        assert len(session.events(kinds=["note"])) == round + 1
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        unsound = [session.id for session in opened if not session.verify().ok or session.seq != 7]

    assert failures == []
    assert unsound == []


def _of_the_store(place: Place) -> int:
    # A bundle alone has three, so four leave room for one of them.
    return CATALOGUE_DESCRIPTORS - 1 if isinstance(place, Bundles) else 0


def count_descriptors(line: Line, *, url: str, sessions: int) -> None:
    """Say how many descriptors sessions hold, beyond those that the process had before."""
    before = _open_descriptors()
    store = playhead.open(url)
    opened = [store.create(f"s{number}") for number in range(sessions)]
    for session in opened:
        session.append("note", {"name": "test"})
    line.say("count", "idle", _open_descriptors() - before)
    if sessions == 1:
        with opened[0].turn("Why?") as turn:
            turn.stream("The network.")
        line.say("count", "after a turn", _open_descriptors() - before)
        store.search("network")
        line.say("count", "after a search", _open_descriptors() - before)
    store.close()
    line.say("count", "closed", _open_descriptors() - before)


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
