"""Codex: damaged copies and wrong types. Each readable record becomes an event, and the report names the rest."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from playhead.formats.codex import Source, read, restore_records
from playhead.formats.imported import ImportedSession
from playhead.model.path import branches
from playhead.views.conversation import conversation_of_path
from playhead.views.fold import Fold
from playhead.views.interrupts import interrupts
from playhead.views.timeline import timeline
from playhead.views.transcript import transcript
from playhead.views.turns import turns
from tests.formats.claude_code_samples import log
from tests.formats.codex_samples import PNG, THREAD, Rollout, a_day_of_work, imported

Json = dict[str, Any]
Damage = Callable[[list[bytes]], bytes]

NAME = f"rollout-2026-03-14T10-00-00-{THREAD}.jsonl"
REPLACEMENTS: list[Any] = [
    None,
    True,
    0,
    -1,
    2**70,
    1e308,
    "",
    "text",
    "\ud800",
    "\0",
    PNG,
    [],
    [None],
    {},
    {"type": "text"},
    [{"type": "input_text", "text": 7}],
]


def _show_everything(session: ImportedSession) -> None:
    """Make a log of the events, which checks and encodes each, and every view of it."""
    events = log(session.events)
    fold = Fold().apply_all(events)
    conversation_of_path(events)
    transcript(events, system=True)
    timeline(events, fold.path)
    interrupts(events)
    turns(events)
    branches(events, events[-1].seq)


def _with(lines: list[bytes], index: int, line: bytes) -> bytes:
    return b"\n".join([*lines[:index], line, *lines[index + 1 :]]) + b"\n"


DAMAGES: dict[str, tuple[Damage, set[int], str]] = {
    "a cut tail": (lambda lines: b"\n".join(lines)[:-25], {-1}, "the last line is unfinished"),
    "no line feed at the end": (lambda lines: b"\n".join(lines), set(), ""),
    "a torn line": (lambda lines: _with(lines, 9, lines[9][:90]), {9}, "not JSON"),
    "a torn line with the next one behind it": (
        lambda lines: b"\n".join([*lines[:9], lines[9][:90] + lines[10], *lines[11:]]),
        {9},
        "not JSON",
    ),
    "the second half of a record": (lambda lines: _with(lines, 9, lines[9][60:]), {9}, "not JSON"),
    "a torn first line": (lambda lines: _with(lines, 0, lines[0][:200]), {0}, "not JSON"),
    "two records on one line": (lambda lines: b"\n".join([*lines[:9], lines[9] + lines[10], *lines[11:]]), set(), ""),
    "NUL bytes between records": (lambda lines: _with(lines, 9, b"\0" * 4096 + lines[9]), set(), "NUL bytes"),
    "NUL bytes over half a record": (
        lambda lines: _with(lines, 9, lines[9][:90] + b"\0" * (len(lines[9]) - 90)),
        {9},
        "NUL bytes",
    ),
    "garbage": (lambda lines: _with(lines, 9, b"\x80\x81 <html> \xff"), {9}, "not JSON"),
    "values that are no records": (lambda lines: _with(lines, 9, b"[1, 2]"), {9}, "a JSON array, not an object"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_records_but_the_damaged_one_become_events(tmp_path: Path, damage: str) -> None:
    """P4."""
    day = a_day_of_work()
    make, lost, reason = DAMAGES[damage]
    count = len(day.records)
    kept = [record for index, record in enumerate(day.records) if index not in lost and index - count not in lost]
    path = tmp_path / NAME
    path.write_bytes(make(day.lines()))

    session = imported(Source(path))

    assert list(restore_records(session.events)) == kept
    assert session.id == f"codex.{THREAD}"
    assert session.counts.records == len(kept)
    assert session.counts.skipped == len(session.skipped)
    assert [s.source for s in session.skipped] == [str(path)] * len(session.skipped)
    if reason:
        assert any(s.reason.startswith(reason) for s in session.skipped)
        assert all(s.line in (1, 10, count) and s.length > 0 for s in session.skipped)
    _show_everything(session)


def test_a_fork_whose_first_line_is_torn_is_still_the_thread_that_its_name_says(tmp_path: Path) -> None:
    parent, path = a_day_of_work(), tmp_path / NAME.replace(THREAD, "019d0a00-0000-7000-8000-00000000000b")
    path.write_bytes(b'{"timestamp":"2026-03-14T10:00:00.000Z","type":"session_m\n' + parent.data())

    session = imported(Source(path))

    assert session.id == "codex.019d0a00-0000-7000-8000-00000000000b"
    assert (session.counts.user_prompts, session.started["forked_from"]["session"]) == (0, f"codex.{THREAD}")


def test_text_that_is_not_utf_8_is_repaired_and_the_report_says_where(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    rollout.prompt("Is the café open?")
    path = tmp_path / NAME
    path.write_bytes(rollout.data().replace("é".encode(), b"\xe9"))

    session = imported(Source(path))

    assert session.events[1].body["parts"][0]["content"] == "Is the caf\ufffd open?"
    assert session.warnings == ["bytes that are not UTF-8 were replaced (records: 2; line 2, line 3)"]


def test_line_separators_and_half_surrogates_are_plain_data(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    rollout.prompt("one\u2028two\u2029three\x85four")
    rollout.item("message", role="assistant", content=[{"type": "output_text", "text": "half \ud83d", "\ud800": 1}])
    rollout.item("function_call", name="shell\ud800", arguments='{"a":"\\ud800"}', call_id="t\ud800")
    path = tmp_path / NAME
    path.write_text("".join(json.dumps(record) + "\n" for record in rollout.records))

    session = imported(Source(path))

    assert list(restore_records(session.events)) == rollout.records
    assert session.skipped == []
    _show_everything(session)


def test_impossible_times_are_those_of_the_record_before_and_are_reported(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    for stamp in ("[trimmed]", "1970-01-01T00:00:00Z", 12, None, "2026-03-14T09:00:30"):
        rollout.say(str(stamp))
        for record in rollout.records[-2:]:
            record["timestamp"] = stamp

    session = imported(rollout.write(tmp_path))
    first = session.events[0].at

    assert [event.at - first for event in session.events] == [0.0] * 9 + [29.0] * 2
    assert session.warnings == [
        "a time is impossible (records: 6; line 2, line 3, line 4, line 5, line 6, …)",
        "a time is without a zone, and read as UTC (records: 2; line 10, line 11)",
    ]
    assert list(restore_records(session.events)) == rollout.records


def test_thousands_of_equal_records_and_open_ends_take_linear_time(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    for number in range(2000):
        rollout.event("task_started", turn_id="t1")
        rollout.item("message", role="user", content="again")
        rollout.call(f"c{number}", "ls")
        rollout.event("exec_command_end", call_id=f"c{number}", exit_code=1)
        rollout.event("thread_rolled_back", num_turns=1)
    for record in rollout.records:
        record["timestamp"] = rollout.records[0]["timestamp"]

    session = imported(rollout.write(tmp_path))

    assert len({event.id for event in session.events}) == len(session.events) == len(rollout.records)
    assert sum(event.after is not None for event in session.events) == 2000


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=repr)
def test_a_value_of_the_wrong_type_anywhere_loses_nothing(tmp_path: Path, replacement: Any) -> None:
    """Each place of each sort of record once, all in one file: what a field may hold is never taken on trust."""
    originals = a_day_of_work().records
    mutants = [mutant for record in originals for mutant in _mutants(record, replacement)]
    path = tmp_path / NAME
    path.write_text("".join(json.dumps(record) + "\n" for record in mutants))

    session = imported(Source(path))

    assert list(restore_records(session.events)) == mutants
    assert session.skipped == []
    _show_everything(session)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mixture_of_damage_loses_no_readable_record(tmp_path: Path, data: st.DataObject) -> None:
    records = copy.deepcopy(a_day_of_work().records)
    records.insert(
        30, {"timestamp": None, "type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    )
    for _ in range(data.draw(st.integers(min_value=1, max_value=12))):
        holder, key = data.draw(st.sampled_from(list(_places(data.draw(st.sampled_from(records))))))
        holder[key] = data.draw(_values)
    order = data.draw(st.permutations(records)) if data.draw(st.booleans()) else records
    path = tmp_path / NAME
    lines = [json.dumps(record) + "\n" for record in order]
    path.write_text("".join(lines))

    whole = imported(Source(path))
    cut = data.draw(st.integers(min_value=len(lines) // 2, max_value=len(lines)))
    path.write_text("".join(lines[:cut]))
    first = read(Source(path))
    path.write_text("".join(lines))
    second = read(Source(path), first.positions if first else None)

    assert list(restore_records(whole.events)) == order
    _show_everything(whole)
    events = [*(first.events if first else []), *(second.events if second else [])]
    assert [(e.id, e.kind, e.turn, e.after, e.body) for e in events] == [
        (e.id, e.kind, e.turn, e.after, e.body) for e in whole.events
    ]


def _mutants(record: Json, replacement: Any) -> Iterator[Json]:
    for number in range(len(list(_places(record)))):
        mutant = copy.deepcopy(record)
        holder, key = list(_places(mutant))[number]
        holder[key] = replacement
        yield mutant


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place inside a JSON value, as the object or array that holds it and the key."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
