"""Rewind, seek, fork and time travel: nothing is lost, and every branch stays reachable."""

import pytest

from playhead.errors import EventNotFound, SessionBusy, SessionExists, StaleWriter, TurnNotFound
from playhead.session import Session, Sessions


def talk(session: Session, *prompts: str) -> None:
    for prompt in prompts:
        with session.turn(prompt) as turn:
            turn.set_state({"last": prompt})
            turn.say(f"Answer to {prompt}")


def said(session: Session) -> list[str]:
    return [message.text for message in session.conversation() if message.role == "user"]


def test_a_rewind_hides_a_turn_and_all_after_it_and_a_seek_brings_them_back(sessions: Sessions) -> None:
    """Z6, P2."""
    session = sessions.create()
    talk(session, "one", "two", "three")
    end = session.head
    session.rewind(turn=2)
    hidden, state = said(session), session.state
    session.seek(end)

    assert hidden == ["one"]
    assert state == {"session": {"last": "one"}}
    assert said(session) == ["one", "two", "three"]
    assert session.verify().problems == ()


def test_turns_count_backwards_too(sessions: Sessions) -> None:
    session = sessions.create()
    talk(session, "one", "two", "three")
    session.rewind(turn=-1)

    assert said(session) == ["one", "two"]


def test_a_rewind_to_a_turn_that_is_not_there_writes_nothing(sessions: Sessions) -> None:
    session = sessions.create()
    talk(session, "one")
    before = session.seq
    for turn in (0, 2, -2):
        with pytest.raises(TurnNotFound) as missing:
            session.rewind(turn=turn)
    with pytest.raises(EventNotFound):
        session.seek(99)

    assert missing.value.turn_count == 1
    assert sessions.get(session.id).seq == before


def test_a_title_survives_a_rewind(sessions: Sessions) -> None:
    session = sessions.create()
    talk(session, "one")
    session.rename("Kept")
    session.rewind(turn=1)

    assert session.title == "Kept"


def test_an_edit_makes_a_branch_and_both_stay_reachable(sessions: Sessions) -> None:
    """P2."""
    session = sessions.create()
    talk(session, "one", "two")
    first_tip = session.head
    session.rewind(turn=2, why="edit")
    talk(session, "two, better")
    branches = session.branches()

    assert said(session) == ["one", "two, better"]
    assert [(branch.is_current, branch.tip_seq) for branch in branches] == [(True, session.head), (False, first_tip)]
    session.seek(first_tip)
    assert said(session) == ["one", "two"]


def test_a_fork_begins_with_the_path_and_nothing_later_leaks_in(sessions: Sessions) -> None:
    session = sessions.create(title="Origin", user="ann")
    talk(session, "one")
    cut = session.head
    session.save_artifact("late.txt", b"late")
    talk(session, "two")
    before = session.seq, session.verify().head_hash
    fork = session.fork(at=cut)

    assert said(fork) == ["one"]
    assert fork.state == {"session": {"last": "one"}}
    assert fork.artifacts() == {}
    assert fork.title == "Origin (fork)"
    assert fork.key.user == "ann"
    assert fork.summary().forked_from == {
        "app": "default",
        "user": "ann",
        "session": session.id,
        "event": session.event(cut).id,
        "seq": cut,
    }
    assert fork.verify().problems == ()
    assert (session.seq, session.verify().head_hash) == before


def test_a_fork_keeps_event_ids_and_artifacts_and_leaves_other_branches_out(sessions: Sessions) -> None:
    session = sessions.create()
    talk(session, "one")
    session.rewind(turn=1)
    session.save_artifact("kept.txt", b"kept")
    talk(session, "another")
    fork = session.fork(id="my fork")
    talk(fork, "more")

    assert said(fork) == ["another", "more"]
    assert fork.artifact("kept.txt") == b"kept"
    assert [event.id for event in fork.path()][: len(session.path())] == [event.id for event in session.path()]
    with pytest.raises(SessionExists):
        session.fork(id="my fork")


def test_a_session_can_be_seen_as_it_was_at_any_event(sessions: Sessions) -> None:
    """P3: state, conversation and artifacts as of any event."""
    session = sessions.create()
    talk(session, "one")
    first = session.head
    session.save_artifact("plot", b"1")
    talk(session, "two")
    session.save_artifact("plot", b"2")
    session.rename("Named later")
    session.rewind(turn=1)
    then = session.at(first)

    assert [m.text for m in then.conversation()] == ["one", "Answer to one"]
    assert then.state == {"session": {"last": "one"}}
    assert then.artifacts() == {}
    assert then.facts.title is None
    assert session.at(session.seq).facts.title == "Named later"


def test_every_event_of_a_long_session_can_be_looked_at(sessions: Sessions) -> None:
    """P3."""
    session = sessions.create()
    talk(session, *map(str, range(40)))
    counts = [session.at(event.seq).turn_count for event in session.events() if event.kind == "turn_ended"]

    assert counts == list(range(1, 41))


def test_a_rewind_by_another_program_makes_a_plain_append_stale(sessions: Sessions) -> None:
    session = sessions.create("s")
    talk(session, "one")
    other = sessions.get("s")
    other.rewind(turn=1)
    with pytest.raises(StaleWriter):
        session.append("note", {"name": "late"})
    session.refresh()
    session.append("note", {"name": "late"})

    assert said(session) == []
    assert session.verify().problems == ()


def test_nobody_rewinds_a_session_that_somebody_is_in_a_turn_of(sessions: Sessions) -> None:
    session, other = sessions.create("s"), sessions.get("s")
    with session.turn("Go"):
        other.refresh()
        with pytest.raises(SessionBusy):
            other.rewind(turn=1)
        session.rename("fine")

    assert session.title == "fine"


def test_after_a_rewind_of_a_turn_whose_sub_agent_never_finished_people_speak_in_the_main_scope(
    sessions: Sessions,
) -> None:
    """Z5."""
    session = sessions.create()
    talk(session, "one")
    with session.turn("Search the papers") as turn:
        run = turn.subagent("pipeline", "Search")
        run.tool_call("fetch", {"page": 1}, id="call-1")
        turn.end("interrupted")
    session.rewind(turn=2)
    with session.turn("Never mind") as turn:
        turn.say("All right.")
    prompt = session.events(kinds=["message"])[-2]

    assert prompt.scope is None
    assert said(session) == ["one", "Never mind"]
    assert session._fold.open_calls() == {}
    assert session._fold.named("job") == {}
    assert session.conversation("coordinator/pipeline:1") == []
