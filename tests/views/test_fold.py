"""The live fold: what it knows of a path, in positions and counters."""

import pytest
from hypothesis import given

from playhead.model import path as paths
from playhead.views.conversation import conversation_of_path
from playhead.views.fold import AGENTS_MAX, REPLIES_MAX, Fold, references
from tests.log import Log, call, response
from tests.strategies import logs


def fold_of(log: Log) -> Fold:
    return Fold().apply_all(log.path(), log.seq_of())


def test_a_fold_of_nothing_knows_nothing() -> None:
    fold = Fold()

    assert (fold.path, fold.head, fold.turn_count, fold.open_turn) == ([], 0, 0, None)
    assert fold.conversation(None) == []
    assert [fold.state_positions(), fold.open_calls(), fold.named("int")] == [{}, {}, {}]


@given(logs)
def test_the_path_of_a_fold_is_the_path(log: Log) -> None:
    fold = fold_of(log)

    assert list(paths.seqs(fold.path)) == [event.seq for event in log.path()]
    assert fold.head == log.head


def test_facts_leave_a_fold_as_it_is() -> None:
    log = Log()
    log.user("Why?")
    facts = [
        log.add("session_changed", title="Flaky test"),
        log.add("state_changed", {"delta": {"user": {"language": "de"}}}),
        log.add("redacted", events=["event-2"]),
        log.move(1),
    ]
    fold = Fold()

    fold.apply_all(facts)

    assert fold.slots == {}


def test_a_turn_is_open_from_its_start_to_its_end() -> None:
    log = Log()
    log.add("turn_started", cause="user", turn="turn-1")
    during = fold_of(log)
    log.add("turn_ended", status="completed", turn="turn-1")
    log.add("turn_started", cause="user", turn="turn-2")
    log.add("turn_ended", status="completed", turn="turn-1")
    late_end = fold_of(log)
    log.add("turn_ended", status="interrupted", turn="turn-2")
    paused = fold_of(log)
    log.add("turn_started", cause="resume", turn="turn-2")

    assert (during.turn_count, during.open_turn) == (1, "turn-1")
    assert (late_end.turn_count, late_end.open_turn) == (2, "turn-2")
    assert (paused.turn_count, paused.open_turn) == (2, None)
    assert (fold_of(log).turn_count, fold_of(log).open_turn) == (2, "turn-2")


def test_what_an_earlier_turn_left_running_begins_no_turn() -> None:
    log = Log()
    log.user("Why?", turn="turn-1")
    log.user("And now?", turn="turn-2")
    log.add("job_changed", job="job-1", kind="background", status="completed", turn="turn-1")
    log.assistant("Found.", turn="turn-1", scope="coordinator/researcher:1")
    log.assistant("Because.", turn="turn-2")

    assert fold_of(log).turn_count == 2


def test_calls_are_open_until_they_get_a_response_in_their_scope() -> None:
    log, scope = Log(), "coordinator/researcher:1"
    main = log.assistant(call("a"), call("b"), call(7))
    inner = log.assistant(call("a"), scope=scope)
    odd = log.assistant(call("x\ny"), scope="odd\n%0A:scope")
    log.tool(response("b"))
    log.tool(response(7))
    both = fold_of(log).open_calls()
    log.tool(response("a"), scope=scope)

    assert both == {
        (None, "a"): main.seq,
        (scope, "a"): inner.seq,
        ("odd\n%0A:scope", "x\ny"): odd.seq,
    }
    assert fold_of(log).open_calls() == {(None, "a"): main.seq, ("odd\n%0A:scope", "x\ny"): odd.seq}


def test_agents_are_listed_once_each_without_the_numbers_of_their_runs() -> None:
    log = Log()
    for label in ["user", "coordinator", "coordinator/researcher:1", "coordinator/researcher:2/reader:1", "bot:7"]:
        log.user("Why?", by=label)
        log.user("Why?", by=label)

    assert fold_of(log).slots["agents"] == [
        "user",
        "coordinator",
        "coordinator/researcher",
        "coordinator/researcher/reader",
        "bot:7",
    ]


def test_an_agent_for_every_run_does_not_make_the_fold_grow_without_bound() -> None:
    log = Log()
    for number in range(AGENTS_MAX + 50):
        scope = f"coordinator/run-{number}:1"
        log.assistant("Found.", by=scope, scope=scope, message_id="msg-1", usage={"output_tokens": 3})
        log.assistant("More.", by=scope, scope=scope, message_id="msg-1", usage={"output_tokens": 5})

    slots = fold_of(log).slots

    assert len(slots["agents"]) == AGENTS_MAX
    assert len(slots["replies"]) == REPLIES_MAX
    assert slots["counts"][4] == 5 * (AGENTS_MAX + 50)


def test_runs_of_sub_agents_are_numbered_by_the_highest_one_seen() -> None:
    log = Log()
    for label in ["coordinator/researcher:3", "coordinator/researcher:2", "coordinator", "odd/²:²"]:
        log.add("job_changed", job="job", kind="sub-agent", status="running", agent=label)
    log.assistant("Found.", by="coordinator/reviewer:4")

    assert fold_of(log).named("run") == {"coordinator/researcher": 3, "coordinator/reviewer": 4}


def test_jobs_triggers_channels_and_artifacts_stand_where_they_changed_last() -> None:
    log = Log()
    log.add("job_changed", job="job-1", kind="tool", status="running")
    log.add("job_changed", job="job-2", kind="tool", status="running")
    job = log.add("job_changed", job="job-1", kind="tool", status="waiting")
    log.add("job_changed", job="job-2", kind="tool", status="failed")
    log.add("trigger_changed", trigger="timer-1", type="timer", status="active")
    trigger = log.add("trigger_changed", trigger="timer-1", type="timer", status="paused")
    log.add("trigger_changed", trigger="timer-2", type="timer", status="active")
    log.add("trigger_changed", trigger="timer-2", type="timer", status="removed")
    log.add("channel_message", channel="plans", sender="coordinator", content="Step 1")
    sent = log.add("channel_message", channel="plans", sender="coordinator", content="Step 2")
    log.add("artifact_saved", name="chart.png", hash="sha256-0", size=1)
    saved = log.add("artifact_saved", name="chart.png", hash="sha256-1", size=2)

    fold = fold_of(log)

    assert fold.named("job") == {"job-1": job.seq}
    assert fold.named("trig") == {"timer-1": trigger.seq}
    assert fold.named("chan") == {"plans": [2, sent.seq]}
    assert fold.named("art") == {"chart.png": saved.seq}


def test_a_reply_in_pieces_is_counted_once_with_its_final_usage() -> None:
    log = Log()
    log.user("Why?", turn="turn-1")
    for id, usage in [("a", (100, 3)), ("a", (100, 9)), ("a", (100, 5)), ("b", (200, 2)), (None, (300, 1))]:
        usage_of = {"input_tokens": usage[0], "output_tokens": usage[1]}
        log.assistant("Because.", message_id=id, usage=usage_of, turn="turn-1", by="coordinator")
    log.assistant(call("a"), scope="coordinator/researcher:1", usage={"input_tokens": 1_000, "output_tokens": 10})
    within = fold_of(log).slots
    log.add("turn_ended", status="completed", turn="turn-1")

    usages = [message.usage or {} for message in conversation_of_path(log.path())]
    assert within["counts"] == [1, 3, 1, 100 + 200 + 300 + 1_000, 9 + 2 + 1 + 10]
    assert sum(usage.get("output_tokens", 0) for usage in usages) == 9 + 2 + 1
    assert "replies" in within
    assert "replies" not in fold_of(log).slots


@pytest.mark.parametrize("usage", [None, "much", [7], {"output_tokens": "7"}, {"output_tokens": True}])
def test_usage_that_is_no_count_counts_nothing(usage: object) -> None:
    log = Log()
    log.assistant("Because.", usage=usage)

    assert fold_of(log).slots["counts"] == [0, 1, 0, 0, 0]


def test_only_what_a_person_wrote_counts_as_theirs() -> None:
    log = Log()
    log.user(response("a"))
    log.user("Two minutes are left.", injected="clock")
    log.user("Look it up.", scope="coordinator/researcher:1")
    log.user({"type": "file", "file_id": "chart"})
    written = log.user("Why?")
    answer = log.assistant("Because.")
    log.assistant(call("a"))

    slots = fold_of(log).slots

    assert slots["counts"][:2] == [2, 2]
    assert slots["said"] == [written.seq, written.seq, answer.seq]


def test_the_ids_that_a_fold_has_to_resolve_are_the_ends_of_compactions() -> None:
    log = Log()
    first, last = log.user("Why?"), log.assistant("Because.")
    log.compact(first, last)
    log.add("compaction", {"from": 7, "summary": "?"})

    assert references(log.events) == {first.id, last.id}
