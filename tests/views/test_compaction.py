"""Compaction: a summary stands in for a stretch of the conversation, and for nothing else."""

from typing import Any

from hypothesis import given, settings

from playhead.model import path as paths
from playhead.model.event import Event
from playhead.views.conversation import Message, conversation, conversation_of_path
from playhead.views.fold import Fold
from tests.log import Log
from tests.strategies import SCOPES, logs

Covered = dict[int, tuple[int, int]]


def visible(log: Log, scope: str | None = None) -> list[int]:
    """Return the seqs that the fold shows, in reading order."""
    return list(paths.seqs(Fold().apply_all(log.path(), log.seq_of()).conversation(scope)))


class Plain:
    """The rules of compaction once more, over a plain list of seqs instead of ranges."""

    def __init__(self) -> None:
        self.shown: list[int] = []
        self.leading: list[int] = []
        self.newest_system = 0
        self.in_force: Covered = {}

    def message(self, event: Event) -> None:
        if event.body.get("role") == "system" and not event.body.get("injected"):
            if len(self.shown) == len(self.leading):
                self.leading.append(event.seq)
            else:
                self.newest_system = event.seq
        self.shown.append(event.seq)

    def compaction(self, event: Event, seq_of: dict[str, int]) -> None:
        first, last = (seq_of.get(event.body[field]) for field in ("from", "to"))
        if not event.body["summary"]:
            return
        if first is not None and last is not None:
            first = self.in_force.get(first, (first, 0))[0]
            last = self.in_force.get(last, (0, last))[1]
        if first is None or last is None or first > last:
            self.shown.append(event.seq)
            return
        inside = {seq for seq, (start, end) in self.in_force.items() if first <= start and end <= last}
        staying = {*self.in_force, *self.leading, self.newest_system} - inside
        gone = [seq for seq in self.shown if seq in inside or (first <= seq <= last and seq not in staying)]
        if gone:
            self.shown[self.shown.index(gone[0])] = event.seq
            self.shown = [seq for seq in self.shown if seq not in gone]
            self.in_force = {seq: ends for seq, ends in self.in_force.items() if seq not in inside}
            self.in_force[event.seq] = (first, last)


@settings(max_examples=150)
@given(logs)
def test_compactions_show_what_their_rules_say_however_they_nest_and_overlap(log: Log) -> None:
    for scope in SCOPES[2:]:
        plain, seq_of = Plain(), {}
        for event in log.path():
            seq_of[event.id] = event.seq
            if event.scope == scope:
                if event.kind == "message" or (event.kind == "trigger_fired" and event.body.get("prompt")):
                    plain.message(event)
                elif event.kind == "compaction":
                    plain.compaction(event, seq_of)

        assert visible(log, scope) == plain.shown


@given(logs)
def test_a_compaction_hides_its_stretch_and_nothing_outside_it(log: Log) -> None:
    fold, seq_of = Fold(), log.seq_of()
    events = {event.seq: event for event in log.events}
    for event in log.path():
        slot = f"comp:{event.scope or ''}"
        before = list(paths.seqs(fold.conversation(event.scope)))
        was_in_force = {seq: (first, last) for seq, first, last in fold.slots.get(slot, [])}
        fold.apply(event, seq_of)
        if event.kind != "compaction":
            continue
        after = list(paths.seqs(fold.conversation(event.scope)))
        in_force = {seq: (first, last) for seq, first, last in fold.slots.get(slot, [])}
        first, last = in_force.get(event.seq, (0, 0))
        hidden = [seq for seq in before if seq not in after]

        assert [seq for seq in after if seq != event.seq] == [seq for seq in before if seq not in hidden]
        assert all(first <= seq <= last or was_in_force[seq][0] >= first for seq in hidden)
        assert len(set(after)) == len(after)
        for summary, (start, end) in in_force.items():
            shown = [seq for seq in after if start <= seq <= end and seq != summary and seq not in in_force]
            assert all(events[seq].body.get("role") == "system" for seq in shown)


def talk(log: Log, *turns: str) -> list[tuple[Event, Event]]:
    """Append a question and an answer for each turn."""
    return [(log.user(f"{turn}?"), log.assistant(f"{turn}.")) for turn in turns]


def said(log: Log, **options: Any) -> list[str]:
    return [message.text for message in conversation_of_path(log.path(), **options)]


def test_a_summary_stands_where_the_stretch_stood() -> None:
    log = Log()
    (first, _), (_, second), _ = talk(log, "A", "B", "C")

    log.compact(first, second, "A and B.")
    talk(log, "D")

    assert said(log) == ["A and B.", "C?", "C.", "D?", "D."]


def test_a_summary_comes_as_a_message_of_the_user_that_says_what_it_is() -> None:
    """Z10."""
    log = Log()
    [(question, answer)] = talk(log, "A")
    summary = log.compact(question, answer, "A.", at=7.0, by="coordinator", turn="turn-1")

    [message] = conversation_of_path(log.path())

    assert message == Message(
        role="user",
        parts=[{"type": "text", "content": "A."}],
        seqs=(summary.seq,),
        agent="coordinator",
        turn="turn-1",
        at=7.0,
        kind="compaction",
    )


def test_rewinding_past_a_compaction_brings_the_stretch_back() -> None:
    """Z6."""
    log = Log()
    (first, _), (_, last) = talk(log, "A", "B")
    raw = said(log)
    summary = log.compact(first, last, "A and B.")
    compacted = said(log)

    log.move(last)
    brought_back = said(log)
    log.move(summary)

    assert compacted == said(log) == ["A and B."]
    assert brought_back == raw == ["A?", "A.", "B?", "B."]


def test_a_rolling_compaction_takes_the_earlier_summary_in() -> None:
    """Z9."""
    log = Log()
    (first, second), (_, fourth), (_, sixth) = talk(log, "A", "B", "C")
    earlier = log.compact(first, second, "A.")
    log.compact(first, fourth, "A and B.")
    by_first_message = said(log)
    log.move(earlier)

    log.compact(earlier, sixth, "All.")

    assert by_first_message == ["A and B.", "C?", "C."]
    assert said(log) == ["All."]


def test_summaries_of_neighbouring_stretches_stand_side_by_side_in_order() -> None:
    log = Log()
    pairs = talk(log, "A", "B", "C", "D")
    log.compact(*pairs[2], "C.")
    log.compact(*pairs[0], "A.")
    later = log.compact(*pairs[1], "B.")
    side_by_side = said(log)

    log.compact(pairs[0][0], later, "A and B.")

    assert side_by_side == ["A.", "B.", "C.", "D?", "D."]
    assert said(log) == ["A and B.", "C.", "D?", "D."]


def test_a_summary_that_was_written_within_a_stretch_but_covers_none_of_it_stays() -> None:
    log = Log()
    first, second = talk(log, "A", "B")
    log.compact(*first, "A.")
    [third] = talk(log, "C")

    log.compact(second[0], third[1], "B and C.")

    assert said(log) == ["A.", "B and C."]


def test_a_summary_inside_what_is_summed_up_already_is_not_shown() -> None:
    log = Log()
    pairs = talk(log, "A", "B", "C")
    log.compact(pairs[0][0], pairs[2][1], "All.")

    log.compact(*pairs[1], "B.")

    assert said(log) == ["All."]


def test_overlapping_stretches_keep_both_summaries_and_no_message_of_either() -> None:
    log = Log()
    pairs = talk(log, "A", "B", "C", "D")
    log.compact(pairs[0][0], pairs[1][1], "A and B.")

    log.compact(pairs[1][0], pairs[2][1], "B and C.")

    assert said(log) == ["A and B.", "B and C.", "D?", "D."]


def test_a_compaction_that_names_no_stretch_hides_nothing_and_is_read_where_it_was_written() -> None:
    log = Log()
    [(question, answer)] = talk(log, "A")
    elsewhere = log.user("On another branch?")
    log.move(answer)
    fact = log.add("session_changed", title="A")
    for ends in [("gone", answer.id), (question.id, "gone"), (answer.id, question.id), (question.id, elsewhere.id)]:
        log.add("compaction", {"from": ends[0], "to": ends[1], "summary": f"{ends}"})
    log.compact(question, fact, "Up to a fact.")

    shown = said(log)

    assert shown[:2] == ["A?", "A."]
    assert len(shown) == 2 + 5
    assert conversation_of_path(log.path()) == conversation([log.events[seq - 1] for seq in visible(log)])


def test_a_redacted_summary_stands_in_for_nothing() -> None:
    log = Log()
    [(question, answer)] = talk(log, "A")
    summary = log.compact(question, answer, "A, with the key.")

    log.redact(summary)

    assert said(log) == ["A?", "A."]


def test_the_instructions_of_the_model_outlive_every_compaction() -> None:
    log = Log()
    log.message("system", "You are careful.")
    log.message("system", "The project uses tabs.")
    talk(log, "A")
    log.message("system", "Be brief.")
    log.message("system", "Two minutes are left.", injected="clock")
    talk(log, "B")
    log.message("system", "Be very brief.")
    [(_, last)] = talk(log, "C")

    log.compact(log.events[0], last, "A, B and C.")
    once = said(log)
    log.message("system", "Take your time.")
    [(_, last)] = talk(log, "D")
    log.compact(log.events[0], last, "A to D.")

    assert once == ["You are careful.", "The project uses tabs.", "A, B and C.", "Be very brief."]
    assert said(log) == ["You are careful.", "The project uses tabs.", "A to D.", "Take your time."]


def test_instructions_alone_are_nothing_to_sum_up() -> None:
    log = Log()
    system = log.message("system", "You are careful.")

    log.compact(log.events[0], system, "Instructions.")

    assert said(log) == ["You are careful."]


def test_a_compaction_of_one_scope_leaves_the_others_alone() -> None:
    """Z9."""
    log, scope = Log(), "coordinator/researcher:1"
    [(question, _)] = talk(log, "A")
    log.user("Look it up.", scope=scope)
    found = log.assistant("Found.", scope=scope)
    [(_, last)] = talk(log, "B")
    log.compact(question, last, "Looked it up.", scope=scope)

    in_scope = said(log, scope=scope)
    log.compact(question, found, "A.")

    assert in_scope == said(log, scope=scope) == ["Looked it up."]
    assert said(log) == ["A.", "B?", "B."]


def test_events_that_were_only_made_later_are_no_end_of_a_stretch() -> None:
    log = Log()
    [(question, answer)] = talk(log, "A")
    log.add("compaction", {"from": question.id, "to": "later", "summary": "A."})
    log.user("B?", id="later")

    live = Fold().apply_all(log.path(), log.seq_of())

    assert list(paths.seqs(live.conversation(None))) == [question.seq, answer.seq, 4, 5]
    assert live.slots == Fold().apply_all(log.path()).slots
