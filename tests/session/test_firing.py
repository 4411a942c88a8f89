"""What runtimes build on, in every store: a trigger fires in one append, channels are read on, jobs outlive turns."""

from __future__ import annotations

import pytest

from playhead.agents.triggers import ChannelMessage, Timer, trigger_types
from playhead.errors import EventNotFound, InvalidName, SessionBusy, StaleWriter
from playhead.features.triggers import Firing
from playhead.session import Session, Sessions

AT = 1_767_268_800.0
FIRING = Firing("Stretch.", "Stretch.", {"missed": 0}, Timer(prompt="Stretch.", at=AT + 60, every_s=60))


@pytest.fixture
def session(sessions: Sessions) -> Session:
    session = sessions.create("s", triggers=trigger_types())
    session.add_trigger(Timer(prompt="Stretch.", at=AT, every_s=60), id="break")
    return session


def test_a_turn_that_a_trigger_began_starts_with_that_it_fired_and_what_it_is_now(session: Session) -> None:
    before = session.seq
    with session.fire("break", FIRING, expected_seq=before) as turn:
        begun = session.events(after=before)
        turn.say("You should.")

    assert [event.kind for event in begun] == ["turn_started", "trigger_fired", "trigger_changed"]
    assert {event.turn for event in begun} == {turn.turn_id}
    assert begun[0].body == {"cause": "trigger"}
    assert [message.text for message in session.conversation()] == ["Stretch.", "You should."]
    assert session.triggers().triggers == {"break": FIRING.then}
    assert session.turn_count == 1


def test_a_firing_that_was_found_before_somebody_else_wrote_is_refused_and_nothing_is_written(
    sessions: Sessions, session: Session
) -> None:
    seen = session.seq
    other = sessions.get("s", triggers=trigger_types())
    other.append("note", {"name": "meanwhile"})
    for _ in range(2):
        with pytest.raises(StaleWriter):
            session.fire("break", FIRING, expected_seq=seen)
        session.refresh()

    assert session.seq == seen + 1
    with session.turn("free"):
        pass


def test_a_trigger_does_not_fire_while_somebody_is_in_a_turn(sessions: Sessions, session: Session) -> None:
    other = sessions.get("s")
    with other.turn("mine"):
        session.refresh()
        with pytest.raises(SessionBusy):
            session.fire("break", FIRING, expected_seq=session.seq)

    assert session.events(kinds=["trigger_fired"]) == []


def test_what_fired_on_a_path_that_was_left_moves_on_without_a_turn(session: Session) -> None:
    before = session.seq
    with session.fire("break", FIRING, expected_seq=before) as turn:
        turn.say("You should.")
    session.rewind(to=before)
    with pytest.raises(StaleWriter):
        session.fire("break", Firing("Stretch again."), expected_seq=session.seq)

    assert session.triggers().triggers == {"break": FIRING.then}
    assert session.turn_count == 0
    assert len(session.events(kinds=["trigger_fired"])) == 1
    with session.fire("break", Firing("And now."), expected_seq=session.seq):
        pass
    assert session.triggers().triggers == {}


def test_an_event_that_only_has_the_id_of_a_firing_moves_the_trigger_on_all_the_same(session: Session) -> None:
    """Whoever wrote the log: what follows such an event may be anything."""
    with session.fire("break", FIRING, expected_seq=session.seq):
        pass
    (id,) = [event.id for event in session.events(kinds=["trigger_fired"])]
    other = Sessions(session._store).create("copy", triggers=trigger_types())
    set_by = session.events(kinds=["trigger_changed"])[0]
    other.append("trigger_changed", set_by.body, id=set_by.id)
    other.append("note", {"name": "fired"}, id=id)
    other.append("note", {"name": "and something else"})
    with pytest.raises(StaleWriter):
        other.fire("break", FIRING, expected_seq=other.seq)

    assert other.triggers().triggers == {"break": FIRING.then}


def test_a_trigger_that_is_not_in_force_cannot_fire(session: Session) -> None:
    with pytest.raises(InvalidName, match="no trigger 'other'"):
        session.fire("other", FIRING, expected_seq=session.seq)

    with session.turn("free"):
        pass


def test_a_fork_has_triggers_of_its_own_that_have_come_as_far(session: Session) -> None:
    session.send("ops", "one", sender="ada")
    last = session.send("ops", "two", sender="ada")
    session.add_trigger(ChannelMessage(prompt="Answer.", channel="ops", after=last.id), id="ops")
    session.send("ops", "three", sender="ada")
    session.rename("facts take a place in the log of their own")
    fork = session.fork()
    with session.fire("break", FIRING, expected_seq=session.seq):
        pass
    with fork.fire("break", FIRING, expected_seq=fork.seq):
        pass

    trigger = fork.triggers().triggers["ops"]
    assert isinstance(trigger, ChannelMessage)
    assert [event.body["content"] for event in fork.messages("ops", after=trigger.after)] == ["three"]
    assert fork.turn_count == session.turn_count == 1


def test_a_channel_is_read_on_from_an_event_along_the_path(session: Session) -> None:
    start = session.events(newest_first=True, limit=1)[0]
    sent = [session.send("ops", number, sender="ada") for number in range(5)]
    session.send("other", "elsewhere", sender="ada")
    session.rewind(to=sent[2].seq)
    again = session.send("ops", "again", sender="ada")

    assert [event.body["content"] for event in session.messages("ops", after=start.id)] == [0, 1, 2, "again"]
    assert [event.seq for event in session.messages("ops", after=sent[0].id, limit=2)] == [sent[1].seq, sent[2].seq]
    assert session.messages("ops", after=again.id) == []
    assert session.messages("nowhere", after=start.id) == []
    with pytest.raises(EventNotFound):
        session.messages("ops", after="no such event")


def test_a_long_channel_is_read_in_pages(session: Session) -> None:
    start = session.events(newest_first=True, limit=1)[0]
    drafts = [
        session._live.draft("channel_message", {"channel": channel, "sender": "ada", "content": number})
        for number in range(1_100)
        for channel in ("ops", "other")
    ]
    session.append_all(drafts[:1_500])
    session.append_all(drafts[1_500:])
    found = session.messages("ops", after=start.id, limit=2_000)
    first = session.messages("ops", after=start.id, limit=700)

    assert [event.body["content"] for event in found] == list(range(1_100))
    assert first == found[:700]


def test_a_job_s_end_is_told_in_the_turn_that_is_open_or_between_two(session: Session) -> None:
    first, second = session.begin_job("index", args={"folder": "docs"}), session.begin_job("fetch")
    with session.turn("meanwhile") as turn:
        session.end_job(first, "completed", result=3, notice="3 files.")
        turn.say("It is there.")
    session.end_job(second, "failed", error="it is gone", notice="It is gone.")

    told = [message for message in session.conversation() if message.injected == "job"]
    assert [(message.text, message.turn) for message in told] == [("3 files.", turn.turn_id), ("It is gone.", None)]
    assert session.turn_count == 1
    assert session._fold.named("job") == {}


def test_a_job_that_could_not_be_recorded_is_not_taken_for_running(sessions: Sessions, session: Session) -> None:
    with sessions.get("s").turn("mine"):
        with pytest.raises(SessionBusy):
            session.begin_job("index")

    assert session._live.jobs == set()
    assert session.events(kinds=["job_changed"]) == []
