"""What once went wrong when something failed half-way, or when two were at it at once."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.errors import InvalidName, SessionBusy, StoreClosed, StoreUnavailable
from playhead.features import live as live_module
from playhead.formats.imported import ImportedEvent
from playhead.session import Session, Sessions

Reopen = Callable[[], Sessions]


def talk(session: Session, *prompts: str) -> None:
    for prompt in prompts:
        with session.turn(prompt) as turn:
            turn.say(f"Answer to {prompt}")


def said(session: Session) -> list[str]:
    return [message.text for message in session.conversation() if message.role == "user"]


def test_a_rewind_whose_look_afterwards_fails_has_happened_and_hurts_no_snapshot(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sessions.create("s")
    talk(session, "one", "two")
    read, failures = live_module.position_at, [StoreUnavailable("the disk hiccups")]

    def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return read(*arguments)

    monkeypatch.setattr(live_module, "position_at", failing)
    session.rewind(turn=2)
    talk(session, "two, better")

    assert said(session) == said(sessions.get("s")) == ["one", "two, better"]
    assert session.verify().problems == ()


def test_a_look_up_that_fails_while_the_fold_is_brought_up_loses_no_event(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sessions.create("s")
    talk(session, "one", "two")
    first, last = session.path()[2], session.path()[3]
    look_up, failures = sessions.store.seq_of, [StoreUnavailable("the disk hiccups")]

    def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return look_up(*arguments)

    session.append("compaction", {"from": first.id, "to": last.id, "summary": "one was asked"})
    monkeypatch.setattr(sessions.store, "seq_of", failing)
    with pytest.raises(StoreUnavailable):
        session.conversation()
    talk(session, "three")

    assert [message.text for message in session.conversation()][:1] == ["one was asked"]
    assert said(session)[-2:] == ["two", "three"]
    assert session.verify().problems == ()


def test_readers_beside_a_writer_see_whole_states(sessions: Sessions) -> None:
    session = sessions.create("s")
    failures: list[BaseException] = []
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            try:
                _ = session.state, session.conversation(), session.transcript(last=5), session.summary()
            except BaseException as error:
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(40):
        with session.turn(f"prompt {number}") as turn:
            turn.set_state({f"key {number}": number})
            turn.say("answer")
    is_done.set()
    for reader in readers:
        reader.join()

    assert failures == []
    assert len(session.state["session"]) == 40


def test_a_turn_ends_once_however_many_end_it(sessions: Sessions) -> None:
    session = sessions.create("s")
    for _ in range(10):
        turn = session.turn("Go")
        enders = [threading.Thread(target=turn.end) for _ in range(4)]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

    assert len(session.events(kinds=["turn_ended"])) == 10


def test_a_sub_agents_run_does_not_outlive_its_turn(sessions: Sessions) -> None:
    session = sessions.create("s")
    turn = session.turn("Go")
    run = turn.subagent("researcher", "Look")
    turn.end()
    with pytest.raises(StoreClosed):
        run.say("Too late")
    with pytest.raises(StoreClosed):
        run.stream("Too late")


def test_nobody_moves_the_head_under_an_open_turn_of_their_own(sessions: Sessions) -> None:
    session = sessions.create("s")
    talk(session, "one")
    with session.turn("two") as turn:
        with pytest.raises(SessionBusy):
            session.rewind(turn=1)
        with pytest.raises(SessionBusy):
            session.seek(1)
        turn.say("still here")

    assert said(session) == ["one", "two"]


def test_a_fact_of_which_a_crash_kept_a_part_from_the_store_log_gets_there_whole(sessions: Sessions) -> None:
    session = sessions.create("s")
    event = session.append("state_changed", {"delta": {"user": {"a": 1, "b": 2}}})
    store = sessions.store
    store.notes.put('state:user:["default","default"]', "a", {"value": 1, "at": event.at}, id="half", at=event.at)

    assert sessions.resume("s").state == {"user": {"a": 1, "b": 2}}


def test_a_fork_keeps_the_labels_and_the_title_that_hold(sessions: Sessions) -> None:
    session = sessions.create(title="First", labels=["x"])
    talk(session, "one")
    early = session.head
    session.rename("Second")

    assert (session.fork().title, session.fork().facts.labels) == ("Second (fork)", ("x",))
    assert session.fork(at=early).title == "First (fork)"


def test_equal_event_ids_of_unrelated_sessions_hide_nothing(sessions: Sessions) -> None:
    for id in ("a", "b"):
        sessions.create(id, title="Airships").append(
            "message", {"role": "user", "parts": [{"type": "text", "content": "zeppelin"}]}, id="m1", agent="user"
        )
    fork = sessions.get("a").fork(id="fork").fork(id="fork of the fork")
    found = {hit.session for hit in sessions.search("zeppelin").hits}

    assert found == {"a", "b"}
    assert fork.id == "fork of the fork"


def test_a_quiet_channel_keeps_its_history_beside_a_loud_one(sessions: Sessions) -> None:
    """K4."""
    session = sessions.create("s")
    session.send("quiet", "the one thing", sender="a")
    live = session._live
    loud = {"channel": "loud", "sender": "b", "content": "again"}
    session.append_all([live.draft("channel_message", loud) for _ in range(1_100)])

    assert [event.body["content"] for event in session.channel("quiet")] == ["the one thing"]
    assert len(session.channel("loud", last=1_050)) == 1_050


def test_the_last_session_is_ones_own(sessions: Sessions) -> None:
    sessions.create("mine", user="ann")
    sessions.create("theirs", user="bob")

    assert sessions.get("@last", user="ann").id == "mine"
    assert sessions.resume("last", user="ann").id == "mine"


def test_what_a_block_raised_is_not_hidden_by_a_store_that_is_closed(sessions: Sessions) -> None:
    with pytest.raises(RuntimeError, match="mine"):
        with sessions.create("s"):
            sessions.close()
            raise RuntimeError("mine")


def test_a_link_to_a_store_leads_to_the_same_locks_and_streams(tmp_path: Path) -> None:
    with playhead.open(f"sqlite:{tmp_path / 'a.db'}") as sessions:
        turn = sessions.create("s").turn("first")
        turn.stream("hello ")
        (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
        with playhead.open(f"sqlite:{tmp_path / 'link.db'}") as others:
            with pytest.raises(SessionBusy):
                others.get("s").turn("second")
            with pytest.raises(SessionBusy):
                others.resume("s")
        turn.stream("world")
        turn.end()

        assert sessions.get("s").conversation()[-1].text == "hello world"


def test_a_side_record_of_any_shape_stops_no_resume(durable_url: str, reopen: Reopen) -> None:
    sessions = reopen()
    turn = sessions.create("s").turn("Go")
    turn.stream("Some ")
    scheme, _, path = durable_url.partition(":")
    place = Path(f"{path}.streams") if scheme == "sqlite" else Path(path)
    with next(place.glob("s.stream")).open("a") as record:
        record.write('{"begin":7,"id":"x","header":[1]}\n[[1],"x"]\n[7,5]\n{"end":[2]}\n"text"\n')
        record.write('{"begin":8,"id":"y","header":{"at":"soon","agent":5,"body":[1]}}\n[8,"kept"]\n')
    turn._live.store.release(turn._lease)
    session = reopen().resume("s")

    assert session.resumed.recovered_text == "Some kept"
    assert session.verify().problems == ()


def test_two_imports_of_one_session_at_once_both_succeed(durable_url: str, reopen: Reopen) -> None:
    events = [
        ImportedEvent("message", {"role": "user", "parts": [{"type": "text", "content": str(n)}]}, f"id-{n}", 1.0)
        for n in range(300)
    ]
    results: list[int] = []

    def run(sessions: Sessions) -> None:
        results.append(sessions.ingest("s", events, at=1.0).added_count)

    importers = [threading.Thread(target=run, args=(reopen(),)) for _ in range(3)]
    for importer in importers:
        importer.start()
    for importer in importers:
        importer.join()

    assert sorted(results) == [0, 0, 300]
    assert len(reopen().get("s").conversation()) == 300


@pytest.mark.parametrize(
    ("url", "says"), [("sqlite::memory:", "'memory:'"), ("sqlite:~/s.db", "no home"), ("bundles:~", "no home")]
)
def test_a_url_that_would_surprise_is_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidName, match=says):
        playhead.open(url)


def test_three_slashes_are_relative_and_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///relative.db", f"sqlite:///{tmp_path}/absolute.db"):
        playhead.open(url).close()

    assert {path.name for path in tmp_path.iterdir()} >= {"relative.db", "absolute.db"}


@pytest.mark.parametrize("place", [["last_active", "x", 1, 2, 3], ["last_active", "x", "a", "b", "c"], [], "x"])
def test_a_forged_cursor_is_an_error_that_says_so(sessions: Sessions, place: Any) -> None:
    import base64
    import json

    sessions.create("s")
    with pytest.raises(InvalidName, match="cursor"):
        sessions.list(cursor=base64.urlsafe_b64encode(json.dumps(place).encode()).decode())
