"""A turn records what was asked and all that is done to answer it."""

import pytest

from playhead.errors import InvalidEvent, SessionBusy, StoreClosed
from playhead.session import Session, Sessions


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.path()]


def test_the_prompt_is_in_the_log_before_anything_is_answered(sessions: Sessions) -> None:
    """S1."""
    session = sessions.create()
    turn = session.turn("Why does test_upload fail?")
    seen = sessions.get(session.id).conversation()
    turn.end()

    assert [(message.role, message.text) for message in seen] == [("user", "Why does test_upload fail?")]


def test_each_turn_s_end_keeps_a_snapshot_that_later_turns_leave_usable(sessions: Sessions) -> None:
    """K3."""
    session = sessions.create("s")
    ends, said = [], []
    for number in range(4):
        with session.turn(f"Look up {number}") as turn:
            call = turn.tool_call("look_up", {"number": number}, id=f"call-{number}")
            turn.tool_result(call, {"found": number})
            with turn.subagent("researcher", f"Check {number}") as run:
                run.say(f"Checked {number}.")
        ends.append(session.head)
        said.append(session.conversation())
    seqs = sessions.store.snapshot_seqs(session.key)
    tails = [sessions.store.tail(session.key, end)[1] for end in ends]
    reopened = sessions.get("s")

    assert set(ends) <= set(seqs)
    assert tails == [[]] * 4
    assert [reopened.at(end).conversation() for end in ends] == said
    assert said[3][-2].parts[0] == {
        "type": "tool_call",
        "id": "call-3",
        "name": "look_up",
        "arguments": {"number": 3},
    }
    assert reopened.at(ends[1]).conversation("coordinator/researcher:2")[-1].text == "Checked 1."


def test_pieces_of_one_reply_are_one_message_and_results_follow_it(sessions: Sessions) -> None:
    session = sessions.create()
    with session.turn("Run the tests") as turn:
        turn.stream("I will ")
        turn.stream("run them.")
        first = turn.tool_call("run_tests", {"path": "a"})
        second = turn.tool_call("run_tests", {"path": "b"})
        turn.tool_result(first, {"failed": 0})
        turn.tool_result(second, "boom", is_error=True)
        turn.say("One failed.")
    messages = session.conversation()

    assert [message.role for message in messages][:2] == ["user", "assistant"]
    assert [part["type"] for part in messages[1].parts] == ["text", "tool_call", "tool_call"]
    responses = [part for message in messages[2:-1] for part in message.parts]
    assert [part["id"] for part in responses] == [first.id, second.id]
    assert messages[-1].text == "One failed."


def test_what_streams_becomes_one_message_and_leaves_no_record(sessions: Sessions) -> None:
    session = sessions.create()
    with session.turn("Tell me") as turn:
        for word in ("All ", "is ", "well."):
            turn.stream(word)
        event = turn.finish_stream(model="small", usage={"output_tokens": 3})

    assert event is not None
    assert session.conversation()[-1].text == "All is well."
    assert session.conversation()[-1].model == "small"
    assert sessions.store.streams.left(session.key) == []


def test_reasoning_and_text_of_a_stream_stay_apart(sessions: Sessions) -> None:
    session = sessions.create()
    with session.turn("Think") as turn:
        turn.stream("Hm. ", part="reasoning")
        turn.stream("Let me see.", part="reasoning")
        turn.stream("Yes.")

    assert session.conversation()[-1].parts == [
        {"type": "reasoning", "content": "Hm. Let me see."},
        {"type": "text", "content": "Yes."},
    ]


def test_a_block_that_raises_ends_the_turn_as_failed_and_keeps_what_streamed(sessions: Sessions) -> None:
    session = sessions.create()
    with pytest.raises(RuntimeError, match="the model is down"):
        with session.turn("Go") as turn:
            turn.stream("Half an ans")
            raise RuntimeError("the model is down")
    ended = session.events(kinds=["turn_ended"])[0]
    last = session.conversation()[-1]

    assert ended.body == {"status": "failed", "error": "RuntimeError: the model is down"}
    assert (last.text, last.interrupted) == ("Half an ans", True)


def test_an_interrupted_block_ends_the_turn_as_cancelled(sessions: Sessions) -> None:
    session = sessions.create()
    with pytest.raises(KeyboardInterrupt):
        with session.turn("Go"):
            raise KeyboardInterrupt

    assert session.events(kinds=["turn_ended"])[0].body == {"status": "cancelled"}


def test_only_one_can_be_in_a_turn_and_the_other_learns_who(sessions: Sessions) -> None:
    session, other = sessions.create("s"), sessions.get("s")
    with session.turn("Mine", label="first"):
        with pytest.raises(SessionBusy) as busy:
            other.turn("Mine too")
        before = other.seq
    with other.turn("Now me") as turn:
        number = turn.number

    assert busy.value.holder["label"] == "first"
    assert sessions.get("s").turn_count == number == 2
    assert before < other.seq


def test_facts_by_others_do_not_hurt_a_turn(sessions: Sessions) -> None:
    session, other = sessions.create("s"), sessions.get("s")
    with session.turn("Go") as turn:
        other.rename("A better name")
        turn.say("Done.")

    assert session.title == "A better name"
    assert session.conversation()[-1].text == "Done."
    assert session.verify().problems == ()


def test_a_turn_that_has_ended_records_nothing_more(sessions: Sessions) -> None:
    session = sessions.create()
    turn = session.turn("Go")
    turn.end()
    turn.end()
    before = session.seq
    with pytest.raises(StoreClosed):
        turn.say("Too late")

    assert session.seq == before


def test_a_refused_message_leaves_the_turn_usable(sessions: Sessions) -> None:
    session = sessions.create()
    with session.turn("Go") as turn:
        with pytest.raises(InvalidEvent, match="nan"):
            turn.tool_result("call-1", {"score": float("nan")})
        turn.say("Still here.")

    assert session.conversation()[-1].text == "Still here."


def test_a_sub_agent_is_recorded_in_its_own_scope_as_it_happens(sessions: Sessions) -> None:
    """K4, Z4."""
    session = sessions.create()
    with session.turn("Find out") as turn:
        with turn.subagent("researcher", "Look it up") as run:
            run.stream("Reading ")
            seen = [m.text for m in sessions.get(session.id).conversation("coordinator/researcher:1")]
            run.stream("done.")
        turn.say("It says so.")
    main = [message.text for message in session.conversation()]

    assert seen == ["Look it up"]
    assert [m.text for m in session.conversation("coordinator/researcher:1")] == ["Look it up", "Reading done."]
    assert main == ["Find out", "It says so."]
    assert run.result == "Reading done."
    assert session._fold.named("job") == {}


def test_a_failing_sub_agent_is_closed_as_failed(sessions: Sessions) -> None:
    """Z4."""
    session = sessions.create()
    with session.turn("Find out") as turn:
        with pytest.raises(ValueError):
            with turn.subagent("researcher", "Look it up"):
                raise ValueError("no network")
        turn.say("It failed.")
    job = session.events(kinds=["job_changed"])[-1]

    assert (job.body["status"], job.body["error"]) == ("failed", "ValueError: no network")


def test_run_numbers_never_repeat_even_after_a_rewind(sessions: Sessions) -> None:
    session = sessions.create()
    labels = []
    for _ in range(2):
        with session.turn("Go") as turn, turn.subagent("researcher", "x") as run:
            labels.append(run.agent)
    session.rewind(turn=1)
    with session.turn("Again") as turn, turn.subagent("researcher", "y") as run:
        labels.append(run.agent)

    assert labels == ["coordinator/researcher:1", "coordinator/researcher:2", "coordinator/researcher:3"]


def test_jobs_channels_notes_and_artifacts_are_events(sessions: Sessions) -> None:
    """K1, K2, K4."""
    session = sessions.create()
    with session.turn("Plot it") as turn:
        job = turn.job("render", {"dpi": 300})
        turn.note("progress", percent=50)
        job.done({"pages": 1})
        session.save_artifact("plot.svg", b"<svg/>", media_type="image/svg+xml", turn=turn.turn_id)
        session.save_artifact("plot.svg", b"<svg></svg>", turn=turn.turn_id)
        session.send("review", "please look", sender="coordinator", turn=turn.turn_id)

    assert session.artifact("plot.svg") == b"<svg></svg>"
    assert session.artifacts()["plot.svg"]["version"] == 2
    assert [event.body["content"] for event in session.channel("review")] == ["please look"]
    assert session._fold.named("job") == {}


def test_state_is_kept_per_scope_and_temporary_keys_never(sessions: Sessions) -> None:
    """K4, Z3."""
    session = sessions.create(state={"topic": "upload"})
    with session.turn("Go") as turn:
        turn.set_state({"step": 1, "temp:draft": "secret canary"})
        turn.set_state({"notes": ["a"]}, scope="agent:coordinator")
        turn.set_state({}, removed=["topic"])
    stored = [record.body or "" for record in sessions.store.records(session.key)]

    assert session.state == {"session": {"step": 1}, "agent:coordinator": {"notes": ["a"]}}
    assert not any("secret canary" in body for body in stored)


def test_shared_state_is_seen_by_every_session_it_concerns(sessions: Sessions) -> None:
    """Z3."""
    one = sessions.create(user="ann")
    two = sessions.create(user="ann")
    other = sessions.create(user="bob")
    one.set_state({"language": "fr"}, scope="user")
    one.set_state({"model": "small"}, scope="app")
    two.set_state({}, scope="user", removed=["nothing"])

    assert two.state == {"user": {"language": "fr"}, "app": {"model": "small"}}
    assert other.state == {"app": {"model": "small"}}


def test_a_session_without_a_store_writes_no_file(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """K6: `memory:` keeps nothing."""
    monkeypatch.chdir(str(tmp_path))
    from pathlib import Path

    import playhead

    with playhead.open("memory:") as sessions:
        with sessions.create().turn("Hello") as turn:
            turn.stream("Hi.")

    assert list(Path(str(tmp_path)).rglob("*")) == []
