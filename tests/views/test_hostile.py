"""Bodies of any shape: a newer version, a redaction or an odd import may leave anything; no view fails on it."""

from typing import Any

import msgspec
from hypothesis import given, strategies as st

from playhead.model import path as paths
from playhead.model.event import KINDS, Event, is_fact
from playhead.model.path import branches
from playhead.views.conversation import conversation, conversation_of_path
from playhead.views.facts import facts
from playhead.views.fold import Fold
from playhead.views.interrupts import interrupts, waiting
from playhead.views.state import state, state_from_positions
from playhead.views.summary import Summary, summary, wanted_seqs
from playhead.views.timeline import LABEL_CHARS_MAX, timeline
from playhead.views.transcript import transcript
from playhead.views.turns import turns
from tests.log import FIRST_AT, Log
from tests.strategies import AGENTS, SCOPES, TURNS, logs

FIELDS = (
    "agent answer app channel checkpoint choices content cwd delta events expires_at extra finish_reason forked_from "
    "from injected interrupt interrupted is_error job kind labels message_id model name origin parts prompt question "
    "reason removed role sender size state status summary title to trigger usage user"
).split()

# A few values of every type do it: what counts is where they stand.
scalars = st.sampled_from([None, True, False, 0, -1, 2**70, 1.5, "", "a", "\ud800", "event-2"])
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from(["a", "", "output_tokens"]), scalars)
part_types = st.sampled_from(["text", "reasoning", "tool_call", "tool_call_response", "blob", "file", "uri", "odd"])
odd_parts = st.fixed_dictionaries(
    {"type": part_types | values},
    optional=dict.fromkeys(("content", "id", "name", "arguments", "response", "is_error"), values),
)
odd_values = (
    values
    | st.lists(odd_parts | values, max_size=4)
    | st.dictionaries(st.sampled_from(["session", "user", "agent:a"]), values, max_size=3)
    | st.sampled_from(["assistant", "user", "event-1", "event-2", "completed", "removed"])
)
bodies = st.dictionaries(st.sampled_from(FIELDS), odd_values, max_size=8)

odd_events = st.builds(
    Event,
    seq=st.just(0),
    parent=st.just(0),
    id=st.just(""),
    at=st.just(FIRST_AT),
    kind=st.sampled_from([*sorted(KINDS), "from_a_newer_version"]),
    agent=st.sampled_from(AGENTS),
    turn=st.sampled_from(TURNS),
    scope=st.sampled_from(SCOPES),
    body=bodies,
)


def placed(events: list[Event]) -> list[Event]:
    """Return events one after another on one path, after a first one, with what would be facts left out."""
    path = [Log().events[0]]
    for event in events:
        if not is_fact(event.kind, event.body):
            seq = len(path) + 1
            path.append(msgspec.structs.replace(event, seq=seq, parent=seq - 1, id=f"event-{seq}"))
    return path


def look(events: list[Event], path: list[Event], said: list[Event]) -> dict[str, Any]:
    """Return what every view says of a log and a path. said: events that may be facts."""
    by_seq = {event.seq: event for event in events}
    fold = Fold().apply_all(path)
    row = summary(fold, facts(said), {seq: by_seq[seq] for seq in wanted_seqs(fold)}, seq=len(events), last_at=0.0)
    return {
        "branches": branches(events, path[-1].seq),
        "conversations": [conversation_of_path(path, scope, sealed=flag) for scope in SCOPES for flag in (True, False)],
        "facts": facts(said),
        "interrupts": interrupts(path),
        "slots": fold.slots,
        "state": state(path),
        "state_from_positions": state_from_positions(fold, by_seq),
        "summary": row,
        "timeline": timeline(events, fold.path),
        "transcripts": [transcript(path, scope=scope, system=flag) for scope in SCOPES for flag in (True, False)],
        "turns": turns(path),
        "waiting": {one.id: one.seq for one in waiting(path)},
    }


@given(st.lists(odd_events, max_size=10))
def test_no_view_fails_on_a_body_of_any_shape(events: list[Event]) -> None:
    path = placed(events)

    seen = look(path, path, events)

    assert seen["state"] == seen["state_from_positions"]
    assert seen["waiting"] == Fold(seen["slots"]).named("int")
    assert all(len(row.label) <= LABEL_CHARS_MAX for row in seen["timeline"])
    assert msgspec.json.decode(msgspec.json.encode(seen["summary"]), type=Summary) == seen["summary"]


@given(logs, st.data())
def test_no_view_fails_on_a_log_that_lost_bodies_to_a_redaction(log: Log, data: st.DataObject) -> None:
    for event in data.draw(st.lists(st.sampled_from(log.events), max_size=10)):
        log.redact(event, is_fact=is_fact(event.kind, event.body))
    path = log.path()

    seen = look(log.events, path, log.events)

    assert seen["state"] == seen["state_from_positions"]
    assert seen["waiting"] == Fold(seen["slots"]).named("int")
    assert [branch.is_current for branch in seen["branches"]].count(True) == 1


@given(st.lists(odd_events, max_size=8), st.data())
def test_a_resume_agrees_with_a_full_replay_on_bodies_of_any_shape(events: list[Event], data: st.DataObject) -> None:
    path = placed(events)
    cut = data.draw(st.integers(0, len(path)))

    ids = {event.id: event.seq for event in path}
    resumed = Fold().apply_all(path[:cut], ids).copy().apply_all(path[cut:], ids)

    assert resumed.slots == Fold().apply_all(path).slots
    for scope in SCOPES:
        seqs = paths.seqs(resumed.conversation(scope))
        assert conversation([path[seq - 1] for seq in seqs]) == conversation_of_path(path, scope)
