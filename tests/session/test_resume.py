"""A session comes back where it stopped, also after a crash, and says what it closed."""

from collections.abc import Callable
from typing import Any

import pytest

from playhead.errors import SessionBusy, SessionNotFound
from playhead.features.resume import OUTPUT_EVENTS, Pager
from playhead.features.triggers import TriggerTypes
from playhead.session import Session, Sessions
from playhead.views.conversation import INTERRUPTED
from playhead.views.transcript import Entry

Reopen = Callable[[], Sessions]


def crashed(reopen: Reopen, work: Callable[[Session], Any]) -> Sessions:
    """Leave a session as a dead process would: whatever `work` began is open, and its locks are free."""
    sessions = reopen()
    session = sessions.create("s")
    work(session)
    for _, lock in _locks(sessions):
        lock.release()
    return reopen()


def _locks(sessions: Sessions) -> list[tuple[int, Any]]:
    store: Any = sessions.store
    logs = [found.log for found in store._open.values()] if hasattr(store, "_open") else [store]
    return [held for log in logs for held in log._locks.values()]


def test_a_message_that_was_streaming_comes_back_as_far_as_it_had_come(reopen: Reopen) -> None:
    def work(session: Session) -> None:
        turn = session.turn("Tell me")
        turn.stream("Let me think. ", part="reasoning")
        turn.stream("The answer is ")
        turn.stream("forty-")

    session = crashed(reopen, work).resume("s")
    last = session.conversation()[-1]

    assert last.parts == [
        {"type": "reasoning", "content": "Let me think. "},
        {"type": "text", "content": "The answer is forty-"},
    ]
    assert last.interrupted
    assert session.resumed.recovered_text == "The answer is forty-"
    assert session.events(kinds=["turn_ended"])[-1].body == {"status": "interrupted"}
    assert session.verify().problems == ()


def test_calls_and_jobs_that_were_running_are_closed_and_the_agent_is_told(reopen: Reopen) -> None:
    """K11."""

    def work(session: Session) -> None:
        turn = session.turn("Do both")
        turn.tool_call("search", {"q": "x"}, id="call-1")
        turn.job("render", id="job-1")
        run = turn.subagent("researcher", "Look")
        run.tool_call("read", {"path": "y"}, id="call-2")

    session = crashed(reopen, work).resume("s")
    sealed = session.resumed.sealed
    main = session.conversation()
    run = session.conversation("coordinator/researcher:1")

    assert set(sealed.calls) == {"call-1", "call-2"}
    assert set(sealed.jobs) == {"job-1", "run-coordinator/researcher:1"}
    assert session.resumed.sub_agents == ("coordinator/researcher:1",)
    assert main[-2].parts[0] | {"name": "search"} == {
        "type": "tool_call_response",
        "id": "call-1",
        "name": "search",
        "response": INTERRUPTED,
        "is_error": True,
    }
    assert "render, researcher" in main[-1].text
    assert run[-1].parts[0]["id"] == "call-2"
    assert session.summary().status == "open"


def test_resuming_twice_adds_nothing(reopen: Reopen) -> None:
    sessions = crashed(reopen, lambda session: session.turn("Go").stream("Some"))
    first = sessions.resume("s")
    second = sessions.resume("s")

    assert first.resumed.sealed
    assert not second.resumed.sealed
    assert second.seq == first.seq


def test_the_next_turn_closes_what_was_left_open_too(reopen: Reopen) -> None:
    """K11."""
    sessions = crashed(reopen, lambda session: session.turn("Go").stream("Some"))
    session = sessions.get("s")
    with session.turn("Again") as turn:
        turn.say("Fine.")

    assert [message.text for message in session.conversation()] == ["Go", "Some", "Again", "Fine."]
    assert session.verify().problems == ()


def test_a_crash_between_the_message_and_the_end_of_its_stream_doubles_nothing(reopen: Reopen) -> None:
    def work(session: Session) -> None:
        turn = session.turn("Go")
        turn.stream("Whole.")
        end = session._live.store.streams.end
        session._live.store.streams.end = lambda key, id: None  # type: ignore[method-assign]
        turn.finish_stream()
        session._live.store.streams.end = end  # type: ignore[method-assign]

    sessions = crashed(reopen, work)
    session = sessions.resume("s")

    assert [message.text for message in session.conversation()] == ["Go", "Whole."]
    assert not session.conversation()[-1].interrupted
    assert sessions.store.streams.left(session.key) == []


def test_a_session_that_is_in_use_is_not_taken_over(sessions: Sessions) -> None:
    session = sessions.create("s")
    with session.turn("Go") as turn:
        turn.stream("Working")
        with pytest.raises(SessionBusy):
            sessions.resume("s")
        turn.stream(" on it.")

    assert session.conversation()[-1].text == "Working on it."


def test_the_last_session_is_the_one_with_the_newest_event(sessions: Sessions) -> None:
    sessions.create("a")
    sessions.create("b")
    sessions.get("a").append("note", {"name": "later"})

    assert sessions.resume("@last").id == sessions.get("last").id == "a"
    sessions.get("b").append("note", {"name": "later still"})
    assert sessions.resume("@last").id == "b"


def test_a_session_that_is_called_last_is_found_by_its_name(sessions: Sessions) -> None:
    sessions.create("@last")
    sessions.create("newer")

    assert sessions.get("@last").id == "@last"


def test_an_empty_store_has_no_last_session(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFound):
        sessions.resume("@last")


class Timer:
    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def to_resume_dict(self) -> dict[str, Any]:
        return {"seconds": self.seconds}

    @classmethod
    def from_resume_dict(cls, data: dict[str, Any]) -> "Timer":
        if data["seconds"] < 0:
            raise ValueError("a timer cannot run backwards")
        return cls(data["seconds"])


def test_triggers_come_back_only_through_registered_types(reopen: Reopen) -> None:
    """K9, S8: an unknown or failing trigger is reported, not fatal."""
    types = TriggerTypes({"timer": Timer})
    session = reopen().create("s", triggers=types)
    session.add_trigger(Timer(60), id="kept")
    session.add_trigger(Timer(-1), id="failing")
    session.remove_trigger(session.add_trigger(Timer(5)))
    body = {"trigger": "foreign", "type": "os.system", "data": {"command": "true"}, "status": "added"}
    session.append("trigger_changed", body)
    session = reopen().resume("s", triggers=types)

    assert {id: trigger.seconds for id, trigger in session.resumed.triggers.items()} == {"kept": 60}  # type: ignore[attr-defined]
    assert {problem.id: problem.reason for problem in session.resumed.trigger_problems} == {
        "failing": "ValueError: a timer cannot run backwards",
        "foreign": "no such type is registered",
    }


class Screen:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.earlier: list[Entry] = []

    def on_resume(self, entries: list[Entry], pager: Pager) -> None:
        self.entries = entries
        self.earlier = pager(entries[0].seq, 10)


def test_outputs_get_the_end_of_the_transcript_and_a_pager(sessions: Sessions) -> None:
    """K10."""
    session = sessions.create("s")
    for number in range(100):
        with session.turn(f"prompt {number}") as turn:
            turn.say(f"answer {number}")
    screen = Screen()
    sessions.resume("s", outputs=[screen])

    assert screen.entries[-1].text == "answer 99"
    assert len(screen.entries) <= OUTPUT_EVENTS
    assert 1 <= len(screen.earlier) <= 10
    assert screen.earlier[-1].seq < screen.entries[0].seq
    shown = [entry.text for entry in (*screen.earlier, *screen.entries)]
    everything = [entry.text for entry in session.transcript()]
    assert everything[-len(shown) :] == shown


def test_everything_that_reached_the_model_survives_a_crash_and_a_fork(reopen: Reopen) -> None:
    """K12: system prompt, trigger prompt, injected input and tool errors."""

    def work(session: Session) -> None:
        turn = session.turn("Go")
        turn.system("Be brief.")
        turn.fire("nightly", prompt="It is three in the morning.")
        turn.inject("The disk is nearly full.", source="hook")
        call = turn.tool_call("read", {"path": "a"})
        turn.tool_result(call, "permission denied", is_error=True)

    sessions = crashed(reopen, work)
    session = sessions.resume("s")
    texts = [(message.role, message.text) for message in session.conversation()]
    error = [part for message in session.conversation() for part in message.parts if part.get("is_error")]
    fork = session.fork()

    assert ("system", "Be brief.") in texts
    assert ("user", "It is three in the morning.") in texts
    assert ("user", "The disk is nearly full.") in texts
    assert error[0]["response"] == "permission denied"
    assert [(message.role, message.text) for message in fork.conversation()] == texts


def test_shared_state_that_a_crash_kept_from_the_store_log_gets_there_on_resume(reopen: Reopen) -> None:
    sessions = reopen()
    session = sessions.create("s")
    session.set_state({"colour": "red"}, scope="user")
    session.append("state_changed", {"delta": {"user": {"colour": "blue"}}})
    before = sessions.get("s").state
    again = reopen().resume("s")

    assert before == {"user": {"colour": "red"}}
    assert again.state == {"user": {"colour": "blue"}}


def test_an_older_value_that_was_left_behind_does_not_overwrite_a_newer_one(reopen: Reopen) -> None:
    sessions = reopen()
    old, new = sessions.create("old"), sessions.create("new")
    old.append("state_changed", {"delta": {"user": {"colour": "blue"}}})
    new.set_state({"colour": "green"}, scope="user")
    sessions.resume("old")

    assert new.state == {"user": {"colour": "green"}}


class Counted:
    """A store that counts the events it hands out."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.events_read = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("tail", "events", "events_at", "facts", "records"):
            return found

        def counted(*args: Any, **options: Any) -> Any:
            answer = found(*args, **options)
            self.events_read += len(answer[1] if name == "tail" else answer)
            return answer

        return counted


def events_read_by_a_resume(sessions: Sessions, id: str, *, turns: int) -> int:
    session = sessions.create(id)
    for number in range(turns):
        with session.turn(f"prompt {number}") as turn:
            turn.tool_result(turn.tool_call("look", {}), number)
            turn.set_state({"last": number})
            turn.say(f"answer {number}")
    session.append("note", {"name": "tail"})
    counted: Any = Counted(sessions.store)
    resumed = Sessions(counted).resume(id)
    assert resumed.state == {"session": {"last": turns - 1}}
    return int(counted.events_read)


def test_a_resume_reads_as_few_events_of_a_long_session_as_of_a_short_one(sessions: Sessions) -> None:
    """K8, S4."""
    short = events_read_by_a_resume(sessions, "short", turns=3)
    long = events_read_by_a_resume(sessions, "long", turns=150)

    assert long == short
    assert 1 <= short < 10


def test_what_was_cut_off_is_closed_then_state_and_triggers_come_back_and_then_the_scrollback(reopen: Reopen) -> None:
    """K4, K8."""
    seen: list[tuple[str, Any]] = []

    class Looking(Timer):
        @classmethod
        def from_resume_dict(cls, data: dict[str, Any]) -> "Looking":
            now = reopen().get("s")
            seen.append(("trigger", (now.event(now.seq).body.get("status"), now.state["user"])))
            return cls(data["seconds"])

    class Watching:
        def on_resume(self, entries: list[Entry], pager: Pager) -> None:
            seen.append(("output", entries[-1].kind))

    types = TriggerTypes({"looking": Looking})

    def work(session: Session) -> None:
        body = {"trigger": "t", "type": "looking", "data": {"seconds": 1}, "status": "added"}
        session.append("trigger_changed", body)
        session.append("state_changed", {"delta": {"user": {"colour": "blue"}}})
        turn = session.turn("Go")
        turn.subagent("researcher", "Look").stream("Half")
        turn.stream("Some")

    session = crashed(reopen, work).resume("s", triggers=types, outputs=[Watching()])

    assert [name for name, _ in seen] == ["trigger", "output"]
    assert seen[0][1] == ("interrupted", {"colour": "blue"})
    assert session.resumed.sub_agents == ("coordinator/researcher:1",)
    assert session.conversation("coordinator/researcher:1")[-1].text == "Half"


def test_a_question_waits_through_a_restart_with_all_that_the_agent_needs_to_go_on(reopen: Reopen) -> None:
    """Z11, Z12."""
    session = reopen().create("s")
    turn = session.turn("Deploy")
    turn.tool_call("deploy", {"to": "production"}, id="call-1")
    body = {
        "interrupt": "ask-1",
        "reason": "confirmation",
        "question": "Deploy to production?",
        "tool_call": "call-1",
        "checkpoint": {"step": 3},
    }
    session.append("interrupt_requested", body, agent=turn.agent, turn=turn.turn_id)
    turn.end("interrupted")
    again = reopen().resume("s")
    asked = again.waiting[0]
    with again.turn(id=asked.turn, cause="resume") as turn:
        answer = {"interrupt": "ask-1", "status": "resolved", "answer": "yes"}
        again.append("interrupt_answered", answer, turn=asked.turn)
        turn.tool_result("call-1", "deployed")

    assert not again.resumed.sealed
    assert (asked.question, asked.checkpoint, asked.turn) == ("Deploy to production?", {"step": 3}, turn.turn_id)
    assert again.waiting == []
    assert again.turn_count == 1
