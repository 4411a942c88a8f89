"""The listing row: what a list shows of a session."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from playhead.views.facts import facts
from playhead.views.fold import Fold
from playhead.views.summary import PREVIEW_CHARS_MAX, SUMMARY_VERSION, TITLE_CHARS_MAX, Summary, summary, wanted_seqs
from tests.log import FIRST_AT, Log, call
from tests.strategies import logs


def listed(log: Log) -> Summary:
    """Return the row, made from no other events than those it asks for."""
    fold = Fold().apply_all(log.path(), log.seq_of())
    events = {seq: log.events[seq - 1] for seq in wanted_seqs(fold)}
    last = log.events[-1]
    return summary(fold, facts(log.events), events, seq=last.seq, last_at=last.at)


def test_a_new_session_says_that_it_is_new() -> None:
    assert listed(Log()) == Summary(
        seq=1,
        title="New session",
        preview="",
        last_user="",
        last_agent="",
        status="open",
        agents=(),
        labels=(),
        turn_count=0,
        user_message_count=0,
        agent_message_count=0,
        tool_call_count=0,
        event_count=1,
        input_tokens=0,
        output_tokens=0,
        created_at=FIRST_AT + 1,
        last_active_at=FIRST_AT + 1,
        version=SUMMARY_VERSION,
    )


def test_what_a_session_was_begun_with_is_named_in_its_row() -> None:
    whole = {"name": "Re\nview", "path": "review.yaml", "type": "terrarium", "node": "alpha", "group": "night"}
    named, by_path, odd = (
        listed(Log(started={"config": config}))
        for config in (whole, {"path": "x" * 300}, {"name": ["no", "name"], "type": 3, "node": ""})
    )

    assert (named.config, named.config_type, named.node, named.group) == ("Re view", "terrarium", "alpha", "night")
    assert (by_path.config or "").startswith("xxx") and len(by_path.config or "") == 200
    assert (odd.config, odd.config_type, odd.node, odd.group) == (None, None, None, None)


def test_a_session_shows_what_was_asked_and_answered_and_how_much() -> None:
    """K20, K24."""
    log = Log()
    log.events[0].body.update(cwd="/home/ana/shop", origin="claude-code", forked_from={"session": "a", "seq": 3})
    log.user("Why does\n test_upload fail?", by="user", turn="turn-1")
    log.assistant(call("a"), by="coordinator", usage={"input_tokens": 100, "output_tokens": 7}, turn="turn-1")
    log.assistant("It times out.", by="coordinator", turn="turn-1")
    log.user("Fix it.", by="user", turn="turn-2")
    log.add("session_changed", labels=["ci"])

    row = listed(log)

    assert (row.title, row.is_titled) == ("Why does test_upload fail?", False)
    assert (row.preview, row.last_user, row.last_agent) == ("Why does test_upload fail?", "Fix it.", "It times out.")
    assert (row.turn_count, row.user_message_count, row.agent_message_count, row.tool_call_count) == (2, 2, 2, 1)
    assert (row.input_tokens, row.output_tokens, row.event_count) == (100, 7, 6)
    assert (row.agents, row.labels) == (("coordinator",), ("ci",))
    assert (row.cwd, row.origin, row.forked_from) == ("/home/ana/shop", "claude-code", {"session": "a", "seq": 3})
    assert row.last_active_at == log.events[-1].at


def test_a_title_that_was_set_is_shown_instead_of_the_first_prompt() -> None:
    log = Log()
    log.user("Why?")
    log.add("session_changed", title="Flaky test")

    row = listed(log)

    assert (row.title, row.is_titled) == ("Flaky test", True)


def test_what_is_long_is_cut_and_says_so() -> None:
    log = Log()
    log.user("word " * 100_000)
    untitled = listed(log)
    log.add("session_changed", title="T" * 100_000)

    assert len(untitled.title) == TITLE_CHARS_MAX
    assert len(untitled.preview) == len(listed(log).title) == PREVIEW_CHARS_MAX
    assert untitled.preview.endswith("…") and untitled.title.endswith("…")


def test_the_status_tells_what_a_person_should_look_at() -> None:
    log = Log()
    log.add("turn_started", cause="user", turn="turn-1")
    cut_off = listed(log)
    log.add("interrupt_requested", interrupt="ask-1", reason="confirmation", turn="turn-1")
    log.add("turn_ended", status="interrupted", turn="turn-1")
    waits = listed(log)
    log.add("session_changed", status="archived")
    archived = listed(log)
    log.add("session_changed", status="open")
    log.add("interrupt_answered", interrupt="ask-1", status="resolved")

    assert (cut_off.status, cut_off.waiting_count) == ("interrupted", 0)
    assert (waits.status, waits.waiting_count) == ("waiting", 1)
    assert archived.status == "archived"
    assert listed(log).status == "open"


def test_a_clock_that_went_back_leaves_the_session_last_active_when_it_began() -> None:
    log = Log()
    log.user("Why?", at=5.0)

    assert listed(log).last_active_at == FIRST_AT + 1


@pytest.mark.parametrize("value", [7, ["a"], True, None, {}])
def test_fields_of_another_shape_read_as_absent(value: Any) -> None:
    log = Log()
    log.events[0].body.update(cwd=value, origin=value, forked_from=value)

    row = listed(log)

    assert (row.cwd, row.origin, row.forked_from) == (None, None, None)


def test_a_row_holds_only_text_that_can_be_kept_and_sent() -> None:
    log, half = Log(), "half \ud83d a pair"
    log.events[0].body.update(cwd=half, origin=half, forked_from={half: half, "seq": 3, "deep": [half]})
    log.user(half)
    log.assistant(half)
    untitled = listed(log)
    log.add("session_changed", title=half, labels=[half], status=half)

    row = listed(log)

    assert (untitled.title, untitled.preview, untitled.last_agent) == ("half ? a pair",) * 3
    assert (row.title, row.status, row.labels) == ("half ? a pair", "half ? a pair", ("half ? a pair",))
    assert (row.cwd, row.origin) == ("half ? a pair", "half ? a pair")
    assert row.forked_from == {"half ? a pair": "half ? a pair", "seq": 3}
    assert msgspec.json.decode(msgspec.json.encode(row), type=Summary) == row


@given(logs)
def test_a_row_needs_five_events_at_most_and_comes_back_from_json_as_it_was(log: Log) -> None:
    row = listed(log)

    assert len(wanted_seqs(Fold().apply_all(log.path()))) <= 5
    assert msgspec.json.decode(msgspec.json.encode(row), type=Summary) == row
