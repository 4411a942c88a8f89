"""S2: one writer, no silent overwrite; a dead holder's lease is free at once; readers never wait."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import apsw
import pytest

from playhead.errors import LeaseLost, SessionBusy
from playhead.model.ids import session_key
from playhead.stores.base import LEASE_S
from playhead.testing.drafts import draft
from tests.promises.children import Nursery
from tests.promises.places import Place, log_of

READ_S = 5.0
"""A reader that waits is stopped by SQLite's busy timeout of 10 s at the earliest; one that does not takes none."""


class Clock:
    """A clock that goes only when told."""

    def __init__(self) -> None:
        self.now = 1_767_225_600.0

    def __call__(self) -> float:
        return self.now


def test_a_stale_append_of_another_process_writes_nothing(place: Place, nursery: Nursery) -> None:
    """S2."""
    with place.open() as sessions:
        session = sessions.create("s1")
        child = nursery.start("holders:append_stale", url=place.url, id="s1")
        child.hear_until("looked")
        session.append("note", {"name": "first"})
        before = (sessions.store.tip(session.key), session.events())
        child.tell("go on")
        refused = child.hear_until("refused")
        child.end()

        assert refused[1] == "StaleWriter"
        assert "expected its log to end at 1, it ends at 2" in refused[2]
        assert (sessions.store.tip(session.key), session.events()) == before


def test_processes_that_retry_leave_a_log_without_gaps(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        sessions.create("s1").close()
    children = [nursery.start("holders:contend", url=place.url, id="s1", count=25) for _ in range(4)]
    for child in children:
        child.hear_until("ready")
    for child in children:
        child.tell("go")
    statuses = [child.end() for child in children]
    acknowledged = [id for child in children for word, id in child.said[1:-1] if word == "appended"]
    with place.open() as sessions:
        session = sessions.get("s1")
        events = session.events(kinds=["note"])

        assert statuses == [0, 0, 0, 0]
        assert sorted(event.id for event in events) == sorted(acknowledged)
        assert [event.seq for event in events] == list(range(2, 102))
        assert session.verify().ok


def test_turns_of_several_processes_never_overlap(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        sessions.create("s1").close()
    children = [nursery.start("holders:take_turns", url=place.url, id="s1", count=8) for _ in range(3)]
    for child in children:
        child.hear_until("ready")
    for child in children:
        child.tell("go")
    statuses = [child.end() for child in children]
    with place.open() as sessions:
        session = sessions.get("s1")
        kinds = [(event.kind, event.turn) for event in session.events(after=1) if event.turn is not None]
        per_turn = [kinds[start : start + 4] for start in range(0, len(kinds), 4)]

        assert statuses == [0, 0, 0]
        assert len(per_turn) == 24
        assert all(
            [kind for kind, _ in turn] == ["turn_started", "message", "message", "turn_ended"] for turn in per_turn
        )
        assert all(len({id for _, id in turn}) == 1 for turn in per_turn)
        assert session.verify().ok


@pytest.mark.parametrize("number", [None, signal.SIGSTOP], ids=["running", "stopped"])
def test_a_second_turn_is_told_who_is_in_the_first(
    place: Place, nursery: Nursery, number: signal.Signals | None
) -> None:
    """S2."""
    clock = Clock()
    with place.open(clock=clock) as sessions:
        session = sessions.create("s1")
        child = nursery.start("holders:hold", url=place.url, id="s1")
        child.hear_until("holding")
        if number is not None:
            child.signal(number)
        clock.now = time.time() + 10 * LEASE_S
        errors = []
        for verb in (
            lambda: session.turn("And I second."),
            lambda: sessions.resume("s1"),
            lambda: session.append("note", {"name": "on the path"}),
            lambda: session.rewind(to=1),
            lambda: sessions.delete("s1"),
        ):
            with pytest.raises(SessionBusy) as error:
                verb()
            errors.append(error.value)
        holder = sessions.store.holder(session.key)
        events = session.events()
        child.signal(signal.SIGCONT)
        child.tell("say")
        said = child.hear_until("said")
        child.kill()

    assert [error.holder["pid"] for error in errors] == [child.pid] * 5
    assert all(error.holder["host"] == socket.gethostname() for error in errors)
    assert all(error.holder["label"] == "the first" and error.holder["since"] > 0 for error in errors)
    assert holder == errors[0].holder
    assert len(events) == 3
    assert said == ["said", 4]


def test_a_killed_holder_is_free_at_once(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        sessions.create("s1").close()
        for _ in range(5):
            child = nursery.start("holders:hold", url=place.url, id="s1")
            child.hear_until("holding")
            child.kill()
            holder = sessions.store.holder(session_key("s1"))
            session = sessions.resume("s1")
            with session.turn("My turn.") as turn:
                turn.say("At once.")

            assert holder is None
            assert session.resumed.sealed.turn is not None
        assert session.verify().ok


def test_a_holder_that_was_killed_keeps_nobody_from_appending_or_deleting(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        for id in ("s1", "s2"):
            sessions.create(id).close()
            child = nursery.start("holders:hold", url=place.url, id=id)
            child.hear_until("holding")
            child.kill()
        event = sessions.get("s1").append("note", {"name": "after"})
        sessions.delete("s2")

        assert event.seq == 4
        assert [row.id for row in sessions.list().items] == ["s1"]


def test_a_child_that_a_holder_forked_does_not_keep_its_lease(place: Place, nursery: Nursery) -> None:
    """A forked child inherits what its parent has open, the lease's lock among it."""
    with place.open() as sessions:
        sessions.create("s1").close()
        child = nursery.start("holders:hold_and_fork", url=place.url, id="s1")
        orphan = child.hear_until("forked")[1]
        child.signal(signal.SIGKILL)
        try:
            child.reap()
            holder = sessions.store.holder(session_key("s1"))
            sessions.get("s1").turn("My turn.").end()
        finally:
            os.kill(orphan, signal.SIGKILL)

    assert holder is None


def test_a_lease_of_another_host_is_free_after_its_time_and_the_old_holder_writes_nothing_more(
    place: Place, nursery: Nursery
) -> None:
    """S2."""
    clock = Clock()
    with place.open(clock=clock) as sessions:
        session = sessions.create("s1")
        clock.now = time.time()
        lock = str(place.lock("s1"))
        child = nursery.start("holders:hold", url=place.url, id="s1", host="elsewhere", lock=lock)
        child.hear_until("holding")
        clock.now = time.time() + LEASE_S - 5
        with pytest.raises(SessionBusy) as busy:
            session.turn("Too early.")
        clock.now = time.time() + LEASE_S + 5
        with session.turn("Taken over.") as turn:
            for word in ("stream", "say", "end"):
                child.tell(word)
            child.end()
            turn.say("It is mine now.")

        refused = [said[1] for said in child.said if said[0] == "refused"]
        texts = [message.text for message in session.conversation()]

        assert busy.value.holder["host"] == "elsewhere"
        assert set(refused) == {LeaseLost.__name__}
        assert len(refused) >= 2
        assert texts == ["I was here first.", "Taken over.", "It is mine now."]
        assert session.verify().ok


def test_a_lease_that_runs_on_another_host_is_renewed_by_what_it_appends(place: Place) -> None:
    clock = Clock()
    with place.open(clock=clock) as sessions, place.open(clock=clock) as others:
        turn = sessions.create("s1").turn("A long one.")
        renewed = []
        for _ in range(5):
            clock.now += LEASE_S / 2
            turn.say("Still at it.")
            renewed.append(clock.now - _renewed_at(place))
        # What came from elsewhere is old; it says nothing about when it was written.
        others.store.append(turn._live.key, [draft("note", n=9, at=1.0)], expected_seq=None, fence=turn._live.fence)
        after_an_old_event = clock.now - _renewed_at(place)
        turn.end()

    assert renewed == [0.0] * 5
    assert after_an_old_event == 0.0


def test_facts_that_another_process_states_do_not_hurt_a_turn(place: Place, nursery: Nursery) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        with session.turn("What is my name?") as turn:
            for number in range(3):
                nursery.run("holders:rename", url=place.url, id="s1", title=f"Title {number}")
                turn.tool_result(turn.tool_call("look_up", {"number": number}), {"found": number})
                turn.stream("You are ")
                turn.stream(f"number {number}.")
            turn.say("That is all.")
        session.refresh()
        events = session.events()

        assert session.title == "Title 2"
        assert session.state["user"] == {"seen": "Title 2"}
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert session.conversation()[-1].text.endswith("That is all.")
        assert session.verify().ok


def test_readers_never_wait_for_a_writer(place: Place, nursery: Nursery) -> None:
    """S2."""
    with place.open() as sessions:
        with sessions.create("s1", title="Flaky test") as session:
            with session.turn("Why?") as turn:
                turn.say("The network.")
        child = nursery.start("holders:hold_transaction", file=str(place.database("s1")))
        child.hear_until("writing")
        started = time.monotonic()
        read = (session.conversation()[-1].text, session.title, session.verify().ok, sessions.list().total)
        with place.open() as others:
            opened = others.get("s1")
            read_anew = (opened.conversation()[-1].text, opened.title, opened.verify().ok, others.list().total)
        seconds = time.monotonic() - started
        child.tell("go on")
        child.hear_until("rolled back")
        child.end()

    assert read == read_anew == ("The network.", "Flaky test", True, 1)
    assert seconds < READ_S


def test_a_writer_never_waits_for_a_reader(place: Place) -> None:
    with place.open() as sessions, place.open() as readers:
        session = sessions.create("s1")
        log = log_of(readers.store, "s1")
        reading, written = threading.Event(), threading.Event()
        seen: list[int] = []

        def read() -> None:
            with log.database.read():
                seen.append(log.tip(session_key("s1")).seq)
                reading.set()
                written.wait(READ_S)
                seen.append(log.tip(session_key("s1")).seq)

        thread = threading.Thread(target=read)
        thread.start()
        assert reading.wait(READ_S)
        events = [session.append("note", {"name": "test", "number": number}) for number in range(50)]
        written.set()
        thread.join()

    assert seen == [1, 1]
    assert events[-1].seq == 51


def test_a_probe_for_a_live_holder_refuses_nobody_the_lease(place: Place) -> None:
    """Whoever looks whether a holder is alive tries its lock, and must not be taken for a holder while at it."""
    with place.open() as sessions, place.open() as onlookers:
        session = sessions.create("s1")
        session.turn("Then its process dies.")
        log = log_of(sessions.store, "s1")
        log._locks.pop(session.key)[1].release()
        is_done = threading.Event()

        def look() -> None:
            while not is_done.is_set():
                onlookers.store.holder(session.key)

        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        taken = 0
        try:
            for _ in range(200):
                lease = sessions.store.acquire(session.key, at=time.time())
                taken += 1
                # As a process that dies leaves it: the row names a holder whose lock is free.
                log._locks.pop(session.key)[1].release()
        finally:
            is_done.set()
            for thread in threads:
                thread.join()

    assert taken == 200
    assert lease.fence > 0


def _renewed_at(place: Place) -> float:
    """Return when the lease of the only session gave its last sign of life."""
    db = apsw.Connection(str(place.database("s1")), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return float(db.execute("SELECT renewed_at FROM sessions").get)
    finally:
        db.close()
