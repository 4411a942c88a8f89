"""Resuming: a snapshot and the tail after it say what a full replay of the path says, whatever happened before."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from playhead.model import path as paths, snapshot as snapshots
from playhead.model.event import Event
from playhead.model.snapshot import Slots, Snapshot, extended, full, next_snapshot, restore
from playhead.views.conversation import conversation, conversation_of_path
from playhead.views.fold import Fold, references
from playhead.views.interrupts import interrupts, waiting
from playhead.views.state import state, state_from_positions
from playhead.views.turns import turns
from tests.log import Log, call, response
from tests.strategies import SCOPES, Step, Steps, build, many, steps

KEEP = ("snapshot", "full_snapshot", "replace_snapshot")
kept_steps = steps | st.tuples(st.sampled_from(KEEP), *[st.integers(0, 40)] * 3)


class Keeper:
    """Keeps snapshots as a store does, and resumes from them as a session does."""

    def __init__(self) -> None:
        self.kept: dict[int, Snapshot] = {}
        self.written: dict[int, bytes] = {}

    def resume(self, log: Log, head: int) -> Fold:
        chain, tail = self.tail(log, head)
        known = {id: seq for id, seq in log.seq_of().items() if id in references(tail)}
        return Fold(restore(chain)).apply_all(tail, known)

    def tail(self, log: Log, head: int) -> tuple[list[Snapshot], list[Event]]:
        tail: list[Event] = []
        for event in reversed(log.path(head)):
            if event.seq in self.kept:
                return self.chain(event.seq), tail[::-1]
            tail.append(event)
        return [], tail[::-1]

    def chain(self, seq: int) -> list[Snapshot]:
        found = [self.kept[seq]]
        while found[0].base_seq:
            found.insert(0, self.kept[found[0].base_seq])
        return found

    def keep(self, log: Log, head: int, slots: Slots, *, is_full: bool) -> None:
        chain, _ = self.tail(log, head)
        saved = full(head, slots) if is_full else next_snapshot(chain, slots, seq=head)
        self.kept[head] = saved
        self.written[head] = msgspec.json.encode(saved)


def sessions(taken: Sequence[Step]) -> tuple[Log, Keeper, list[Fold]]:
    """Carry out steps with a live fold, as a session does; return the log, the snapshots and the live fold."""
    machine, keeper, live = Steps(), Keeper(), Fold()
    live.apply_all(machine.log.path())
    for step in taken:
        log = machine.log
        if step[0] in KEEP:
            # At the head, or at an event that was left behind: another branch goes on from there later.
            head = log.head if step[0] == "snapshot" else log.path()[step[1] % len(log.path())].seq
            slots = live.slots if head == log.head else keeper.resume(log, head).slots
            keeper.keep(log, head, slots, is_full=step[0] == "full_snapshot")
            continue
        event = machine.take(step)
        if event.kind == "head_moved":
            live = keeper.resume(log, log.head)
        else:
            live.apply(event, log.seq_of())
    return machine.log, keeper, [live]


@settings(max_examples=150)
@given(many(kept_steps))
def test_a_resume_gives_what_a_full_replay_gives_on_every_branch(taken: list[Step]) -> None:
    """K3."""
    with pytest.MonkeyPatch.context() as patch:
        # Short runs, so that few snapshots make chains of every level.
        patch.setattr(snapshots, "RUN", 2)
        patch.setattr(snapshots, "LEVELS", 2)
        log, keeper, (live,) = sessions(taken)

    heads = [branch.tip_seq for branch in paths.branches(log.events, log.head)]
    events = {event.seq: event for event in log.events}
    assert live.slots == Fold().apply_all(log.path()).slots
    for head in heads:
        path = log.path(head)
        replayed, resumed = Fold().apply_all(path), keeper.resume(log, head)
        assert resumed.slots == replayed.slots
        assert state(path) == state_from_positions(resumed, events)
        assert [(one.id, one.seq) for one in waiting(path)] == by_seq(resumed.named("int"))
        assert len(turns(path)) == resumed.turn_count
        for scope in SCOPES:
            positions = paths.seqs(resumed.conversation(scope))
            assert conversation([events[seq] for seq in positions]) == conversation_of_path(path, scope)
    for seq, written in keeper.written.items():
        assert msgspec.json.encode(keeper.kept[seq]) == written


def by_seq(named: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted(named.items(), key=lambda item: item[1])


@given(many(steps), many(steps, size_max=20))
def test_going_back_gives_the_views_of_then(before: list[Step], after: list[Step]) -> None:
    """P3."""
    then = build(before)
    path = then.path()
    log = build([*before, *after])

    log.move(path[-1].seq)

    assert log.path() == path
    assert Fold().apply_all(log.path(), log.seq_of()).slots == Fold().apply_all(path).slots
    assert interrupts(log.path()) == interrupts(path)


@given(many(steps), steps)
def test_a_copy_of_a_fold_goes_its_own_way(taken: list[Step], more: Step) -> None:
    machine = Steps()
    for step in taken:
        machine.take(step)
    fold = Fold().apply_all(machine.log.path())
    before = json.dumps(fold.slots)
    copy = fold.copy()

    copy.apply(machine.take(more), machine.log.seq_of())

    assert json.dumps(fold.slots) == before


def long_session(turn_count: int) -> Log:
    """Return a session of 37 events a turn, with a sub-agent in every fifth."""
    log = Log()
    for number in range(1, turn_count + 1):
        turn: dict[str, Any] = {"turn": f"turn-{number:015}"}
        last = len(log.events) + 37
        log.add("turn_started", cause="user", **turn)
        log.user(f"Question {number}?", by="user", **turn)
        if number % 5 == 0:
            label = f"coordinator/researcher:{number // 5}"
            job = {"job": f"job-{number}", "kind": "sub-agent", "agent": label}
            log.add("job_changed", {**job, "status": "running"}, **turn)
            for index in range(4):
                log.assistant(call(f"sub-{number}-{index}"), by=label, scope=label, **turn)
                log.tool(response(f"sub-{number}-{index}"), by=label, scope=label, **turn)
            log.add("job_changed", {**job, "status": "completed"}, **turn)
        while len(log.events) < last - 5:
            id = f"call-{len(log.events)}"
            log.assistant(call(id), by="coordinator", usage={"input_tokens": 9_000, "output_tokens": 90}, **turn)
            log.tool(response(id), **turn)
        log.add("state_changed", {"delta": {"session": {"last_question": number}}}, **turn)
        while len(log.events) < last - 2:
            log.add("note", name="checkpoint", **turn)
        log.assistant(f"Answer {number}.", by="coordinator", **turn)
        log.add("turn_ended", status="completed", **turn)
    return log


def test_snapshots_stay_small_and_grow_with_the_session_not_faster() -> None:
    """S5."""
    log, fold = long_session(400), Fold()
    chain: list[Snapshot] = []
    sizes, lengths = [], []

    for event in log.events:
        fold.apply(event, {})
        if event.kind == "turn_ended":
            saved = next_snapshot(chain, fold.slots, seq=event.seq)
            chain = extended(chain, saved)
            sizes.append(len(msgspec.json.encode(saved)))
            lengths.append(len(chain))

    first, second = sum(sizes[:200]), sum(sizes[200:])
    assert len(log.events) == 1 + 400 * 37
    assert restore(chain) == fold.slots == Fold().apply_all(log.events).slots
    assert sum(sizes) / 400 <= 600
    assert second <= 1.3 * first
    assert max(lengths) <= 2 * snapshots.RUN
