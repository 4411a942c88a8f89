"""Who writes a session keeps its row of the list, without slowing down for it: K21."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from playhead import Session, Sessions
from playhead.errors import StoreFull
from playhead.features.live import Live
from playhead.features.pushing import PUSH_EVENTS, UNPUSHED_MAX
from playhead.model.ids import SessionKey
from playhead.stores.base import Store
from playhead.stores.open import open_store
from playhead.views.summary import Summary
from tests.session.conftest import Clock


class Saved:
    """The rows that were given to a store, by session, as events up to which each holds."""

    def __init__(self) -> None:
        self.seqs: dict[str, list[int]] = {}
        self.rows: dict[str, Summary] = {}

    def __getitem__(self, id: str) -> list[int]:
        return self.seqs.get(id, [])


@pytest.fixture
def saved(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Saved:
    found = Saved()
    keep = sessions.store.save_summary

    def save_summary(key: SessionKey, seq: int, summary: str) -> None:
        keep(key, seq, summary)
        found.seqs.setdefault(key.id, []).append(seq)
        found.rows[key.id] = msgspec.json.decode(summary, type=Summary)

    monkeypatch.setattr(sessions.store, "save_summary", save_summary)
    return found


def begun(sessions: Sessions, id: str) -> Session:
    """Begin a session, and close it once so that its row is pushed."""
    session = sessions.create(id)
    session.close()
    return session


def note(session: Session, *, at: float | None = None) -> int:
    return session.append("note", {"name": "step"}, at=at).seq


def test_a_row_is_pushed_after_twenty_events(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    session = begun(sessions, "s")
    clock.now += 2.0
    for _ in range(2 * PUSH_EVENTS):
        clock.now += 0.1
        note(session)

    assert saved["s"] == [1, 1 + PUSH_EVENTS, 1 + 2 * PUSH_EVENTS]


def test_a_row_is_pushed_by_an_event_that_comes_five_seconds_later(
    sessions: Sessions, saved: Saved, clock: Clock
) -> None:
    session = begun(sessions, "s")
    clock.now += 4.0
    early = note(session)
    clock.now += 1.5
    late = note(session)
    clock.now += 1.5
    note(session)

    assert saved["s"] == [1, late]
    assert late == early + 1


def test_many_events_push_a_row_once_a_second(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    session = begun(sessions, "s")
    clock.now += 10.0
    began = clock.now
    for _ in range(1_000):
        clock.now += 0.003
        note(session)
    took_s = clock.now - began

    assert took_s > 4
    assert took_s - 1 <= len(saved["s"]) - 1 <= took_s + 1


def test_events_of_other_years_push_a_row_no_more_often(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    session = begun(sessions, "s")
    clock.now += 10.0
    for number in range(100):
        note(session, at=1_000_000.0 + 3_600.0 * number)

    assert len(saved["s"]) == 2


def test_a_clock_that_went_back_stops_no_push(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    session = begun(sessions, "s")
    clock.now += 10.0
    note(session)
    clock.now -= 86_400.0
    after = note(session)
    for _ in range(PUSH_EVENTS + 1):
        clock.now += 0.1
        note(session)

    assert saved["s"][:3] == [1, 2, after]
    assert after + 10 <= saved["s"][3] <= after + PUSH_EVENTS


def test_a_title_and_labels_are_pushed_at_once(sessions: Sessions, saved: Saved) -> None:
    session = begun(sessions, "s")
    session.rename("Flaky test")
    titled = saved.rows["s"].title
    session.label("ci", "flaky")

    assert titled == "Flaky test"
    assert saved.rows["s"].labels == ("ci", "flaky")
    assert saved["s"] == [1, 2, 3]


def test_the_end_of_a_turn_pushes_a_row_once(sessions: Sessions, saved: Saved) -> None:
    session = begun(sessions, "s")
    with session.turn("Why?") as turn:
        turn.say("It times out.")

    assert saved["s"] == [1, session.seq]
    assert saved.rows["s"].last_agent == "It times out."


def test_closing_a_session_pushes_what_it_appended(sessions: Sessions, saved: Saved) -> None:
    """K21: always at close."""
    with sessions.create("s") as session:
        note(session)

    assert saved["s"] == [2]


def test_closing_a_session_that_was_only_read_writes_no_row(sessions: Sessions, saved: Saved) -> None:
    begun(sessions, "s")
    with sessions.get("s") as session:
        session.transcript()
    with sessions.resume("s"):
        pass

    assert saved["s"] == [1]


def test_closing_the_store_pushes_sessions_that_nobody_closed(durable_url: str, clock: Clock) -> None:
    """K21: always at close."""
    with Sessions(open_store(durable_url), clock=clock) as sessions:
        kept = sessions.create("kept")
        note(kept)
        note(sessions.create("dropped"))
        sessions.create("empty")
        kept.fork(id="fork")
        gc.collect()
    store = open_store(durable_url)
    rows = {row.key.id: (row.seq, row.summary_seq) for row in store.sessions()}
    store.close()

    assert {id: seq for id, (seq, _) in rows.items()} == {"kept": 2, "dropped": 2, "empty": 1, "fork": 3}
    assert all(seq == summary_seq for seq, summary_seq in rows.values())


def test_no_more_than_a_few_sessions_wait_for_a_push(sessions: Sessions, saved: Saved) -> None:
    for number in range(UNPUSHED_MAX + 10):
        note(sessions.create(f"s-{number:03}"))

    assert sorted(saved.seqs) == [f"s-{number:03}" for number in range(10)]


def test_a_push_that_fails_fails_neither_append_nor_close(
    sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def save_summary(key: SessionKey, seq: int, summary: str) -> None:
        tried.append(seq)
        raise StoreFull("no room is left")

    monkeypatch.setattr(sessions.store, "save_summary", save_summary)
    session = sessions.create("s")
    for _ in range(5):
        clock.now += 10.0
        note(session)
    session.rename("Held")
    with session.turn("Why?"):
        pass
    seq = session.seq
    session.close()
    sessions.close()

    assert tried[:5] == [2, 3, 4, 5, 6]
    assert seq == 10


def test_what_a_push_cannot_work_out_fails_no_append(
    sessions: Sessions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begun(sessions, "s")

    def summary(*_: object, **__: object) -> Summary:
        raise KeyError(1)

    monkeypatch.setattr("playhead.features.live.summary", summary)
    clock.now += 10.0

    assert note(session) == 2


def test_a_push_says_what_others_said_while_a_turn_went_on(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    session = begun(sessions, "s")
    with session.turn("Why?") as turn:
        clock.now += 10.0
        turn.note("first")
        sessions.get("s").rename("Named by another")
        clock.now += 10.0
        turn.note("second")
        row = saved.rows["s"]

    assert row.title == "Named by another"
    assert row.status == "interrupted"


def counting(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by how many events each read of a store gives."""
    read: list[int] = []

    def counted(ask: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def asked(*args: Any, **options: Any) -> list[Any]:
            found = ask(*args, **options)
            read.append(len(found))
            return found

        return asked

    for name in ("events", "events_at", "facts", "records"):
        monkeypatch.setattr(store, name, counted(getattr(store, name)))
    return read


def test_a_push_reads_the_same_few_events_however_long_the_session_is(
    sessions: Sessions, saved: Saved, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = begun(sessions, "s")
    counts = []
    for _ in range(2):
        for number in range(40):
            session.rename(f"Title {number}")
            with session.turn(f"prompt {number}") as turn:
                turn.say("answer")
        session = sessions.get("s")
        with session.turn("one more") as turn:
            clock.now += 10.0
            turn.note("the facts are read here")
            with monkeypatch.context() as patched:
                read = counting(sessions.store, patched)
                clock.now += 10.0
                turn.note("and known here")
                counts.append(sum(read))

    assert counts[0] == counts[1] <= 5
    assert saved["s"][-2] == session.seq - 1


def test_a_session_that_another_thread_is_at_work_in_holds_up_no_other(sessions: Sessions) -> None:
    session = sessions.create("s")
    held, done = threading.Event(), threading.Event()

    def work() -> None:
        with session._live.lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    held.wait(60)
    pushed = session._live.push(wait_s=0.0)
    for number in range(UNPUSHED_MAX + 1):
        note(sessions.create(f"s-{number:03}"))
    done.set()
    thread.join()
    sessions._unpushed.push_all()

    assert not pushed
    assert session._live._pushed_seq == 1


def test_a_log_that_was_begun_anew_is_pushed_from_its_beginning(sessions: Sessions) -> None:
    session = begun(sessions, "s")
    for _ in range(5):
        note(session)
    session.close()
    sessions.delete("s")
    sessions.create("s", title="Anew")
    session.close()

    assert sessions.store.sessions()[0].summary_seq == 2


def test_what_nobody_follows_is_saved_by_who_is_done_with_it(sessions: Sessions, saved: Saved, clock: Clock) -> None:
    begun(sessions, "s")
    live = Live(sessions.store, SessionKey("default", "default", "s"), clock=clock, entropy=bytes)
    for number in range(30):
        clock.now += 10.0
        live.append([live.draft("note", {"name": "step"}, id=f"note-{number}")])
    before = list(saved["s"])
    live.save_caches()
    live.save_caches()

    assert before == [1]
    assert saved["s"] == [1, 31]
