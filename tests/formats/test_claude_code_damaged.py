"""Claude Code: damaged copies and wrong types. Each readable record becomes an event, and the report names the rest."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from playhead.formats.claude_code import Source, read, restore_record
from playhead.formats.imported import ImportedSession
from playhead.model.path import branches
from playhead.views.conversation import conversation_of_path
from playhead.views.fold import Fold
from playhead.views.interrupts import interrupts
from playhead.views.timeline import timeline
from playhead.views.transcript import transcript
from tests.formats.claude_code_samples import Script, a_day_of_work, imported, log

Json = dict[str, Any]
Damage = Callable[[list[bytes]], bytes]

LONG = "word " * (4 * 1024 * 1024)
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
    [],
    [None],
    {},
    {"type": "text"},
    [{"a": []}],
]


def _records(session: ImportedSession) -> list[Json]:
    return [record for event in session.events if (record := restore_record(event)) is not None]


def _show_everything(session: ImportedSession) -> None:
    """Make a log of the events, which checks and encodes each, and every view of it."""
    events = log(session.events)
    fold = Fold().apply_all(events)
    for scope in {event.scope for event in events}:
        conversation_of_path(events, scope)
        transcript(events, scope=scope, system=True)
    timeline(events, fold.path)
    interrupts(events)
    branches(events, events[-1].seq)


def _with(lines: list[bytes], index: int, line: bytes) -> bytes:
    return b"\n".join([*lines[:index], line, *lines[index + 1 :]]) + b"\n"


DAMAGES: dict[str, tuple[Damage, set[int], str]] = {
    "a cut tail": (lambda lines: b"\n".join(lines)[:-25], {-1}, "the last line is unfinished"),
    "a torn line": (lambda lines: _with(lines, 5, lines[5][:120]), {5}, "not JSON"),
    "a torn line with the next one behind it": (
        lambda lines: b"\n".join([*lines[:5], lines[5][:120] + lines[6], *lines[7:]]),
        {5},
        "not JSON",
    ),
    "the second half of a record": (lambda lines: _with(lines, 5, lines[5][180:]), {5}, "not JSON"),
    "two records on one line": (lambda lines: b"\n".join([*lines[:5], lines[5] + lines[6], *lines[7:]]), set(), ""),
    "NUL bytes between records": (lambda lines: _with(lines, 5, b"\0" * 4096 + lines[5]), set(), "NUL bytes"),
    "NUL bytes over half a record": (
        lambda lines: _with(lines, 5, lines[5][:200] + b"\0" * (len(lines[5]) - 200)),
        {5},
        "NUL bytes",
    ),
    "garbage": (lambda lines: _with(lines, 5, b"\x80\x81 <html> \xff"), {5}, "not JSON"),
    "values that are no records": (lambda lines: _with(lines, 5, b"[1, 2]"), {5}, "a JSON array, not an object"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_records_but_the_damaged_one_become_events(tmp_path: Path, damage: str) -> None:
    """P4."""
    script = a_day_of_work()
    make, lost, reason = DAMAGES[damage]
    count = len(script.records)
    kept = [record for index, record in enumerate(script.records) if index not in lost and index - count not in lost]
    path = tmp_path / f"{script.session}.jsonl"
    path.write_bytes(make(script.lines()))

    session = imported(path)

    assert _records(session) == kept
    assert session.counts.records == len(kept)
    assert session.counts.skipped == len(session.skipped)
    assert [s.source for s in session.skipped] == [str(path)] * len(session.skipped)
    if reason:
        assert any(s.reason.startswith(reason) for s in session.skipped)
        assert all(s.line in (6, count) and s.length > 0 for s in session.skipped)
    _show_everything(session)


def test_text_that_is_not_utf_8_is_repaired_and_the_report_says_where(tmp_path: Path) -> None:
    script = Script()
    script.prompt("Is the café open?")
    path = tmp_path / f"{script.session}.jsonl"
    path.write_bytes(script.data().replace("é".encode(), b"\xe9"))

    session = imported(path)

    assert session.events[0].body["parts"][0]["content"] == "Is the caf\ufffd open?"
    assert session.warnings == ["bytes that are not UTF-8 were replaced (records: 1; line 1)"]


def test_line_separators_and_half_surrogates_are_plain_data(tmp_path: Path) -> None:
    script = Script()
    script.prompt("one\u2028two\u2029three\x85four")
    script.say("half \ud83d of a pair", {"type": "text", "text": "\udc00", "\ud800": 1})
    script.call("Task", "t\ud800", {"subagent_type": "Ex\udc00plore", "prompt": "\ud800"})
    path = tmp_path / f"{script.session}.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in script.records[1:]) + "\n")
    path.write_bytes(script.lines()[0] + b"\n" + path.read_bytes())

    session = imported(path)

    assert _records(session) == script.records
    assert session.skipped == []
    assert (session.events[3].kind, session.events[3].body["agent"]) == ("job_changed", "coordinator/Ex\ufffdplore:1")
    _show_everything(session)


def test_numbers_beyond_json_become_null_and_are_reported(tmp_path: Path) -> None:
    script = Script()
    script.say("Done.")
    path = tmp_path / f"{script.session}.jsonl"
    path.write_bytes(script.data().replace(b'"output_tokens": 10', b'"output_tokens": NaN, "cost": -Infinity'))

    session = imported(path)

    assert session.events[0].body["usage"] == {"input_tokens": 100, "output_tokens": None, "cost": None}
    assert session.warnings == ["NaN or an infinity became null (records: 1; line 1)"]
    _show_everything(session)


def test_a_line_of_twenty_megabytes_is_read(tmp_path: Path) -> None:
    script = Script()
    script.prompt("Read it")
    script.call("Read", "t1", {"file_path": "book.txt"})
    script.result("t1", LONG, toolUseResult=LONG)
    script.say("Read.")

    session = imported(script.write(tmp_path))

    assert _records(session) == script.records
    assert len(LONG) > 20_000_000
    assert json.dumps(session.events[2].body).count("word word") == LONG.count("word word")


def test_a_chain_of_parents_in_a_circle_ends(tmp_path: Path) -> None:
    script = Script()
    for number in range(50):
        script.prompt(f"Prompt {number}", isSidechain=number % 2 == 1)
    for number, record in enumerate(script.records):
        record["parentUuid"] = script.records[(number + 7) % 50]["uuid"]

    session = imported(script.write(tmp_path))

    assert _records(session) == script.records
    assert session.warnings[0].startswith("a record names a parent that is not before it")
    _show_everything(session)


def test_sub_agents_in_sub_agents_without_end_keep_names_of_sensible_length(tmp_path: Path) -> None:
    script = Script()
    script.prompt("Go down")
    for depth in range(60):
        call = {"prompt": f"level {depth + 1}", "subagent_type": "explorer/of:depths" * 20}
        script.call("Task", f"t{depth}", call, isSidechain=depth > 0)
        script.prompt(f"level {depth + 1}", isSidechain=True, parent=None)

    session = imported(script.write(tmp_path))

    assert len({event.scope for event in session.events}) == 61
    _show_everything(session)


def test_many_equal_lines_and_many_sidechains_take_linear_time(tmp_path: Path) -> None:
    script = Script()
    for _ in range(3000):
        script.bare("mode", mode="normal")
    for _ in range(1000):
        script.prompt("Look", isSidechain=True, parent=None)
    script.records.extend([script.records[-1]] * 3000)

    session = imported(script.write(tmp_path))

    assert len(_records(session)) == 7000
    assert len({event.id for event in session.events}) == len(session.events)


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=repr)
def test_a_value_of_the_wrong_type_anywhere_loses_nothing(tmp_path: Path, replacement: Any) -> None:
    """Each place of each sort of record once, all in one file: what a field may hold is never taken on trust."""
    originals = a_day_of_work().records
    mutants = [mutant for record in originals for mutant in _mutants(record, replacement)]
    path = tmp_path / "0b7e1c52-64a5-4a53-9d0e-2f8a3c9b1d70.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in mutants))

    session = imported(path)

    assert _records(session) == mutants
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
    for _ in range(data.draw(st.integers(min_value=1, max_value=12))):
        record = data.draw(st.sampled_from(records))
        holder, key = data.draw(st.sampled_from(list(_places(record))))
        holder[key] = data.draw(_values)
    order = data.draw(st.permutations(records)) if data.draw(st.booleans()) else records
    path = tmp_path / "0b7e1c52-64a5-4a53-9d0e-2f8a3c9b1d70.jsonl"
    lines = [json.dumps(record) + "\n" for record in order]
    path.write_text("".join(lines))

    whole = imported(path)
    cut = data.draw(st.integers(min_value=1, max_value=len(lines)))
    path.write_text("".join(lines[:cut]))
    first = read(Source(path))
    path.write_text("".join(lines))
    second = read(Source(path), first.positions if first else None)

    assert _records(whole) == order
    _show_everything(whole)
    events = [*(first.events if first else []), *(second.events if second else [])]
    assert [event.id for event in events] == [event.id for event in whole.events]


def _mutants(record: Json, replacement: Any) -> Iterator[Json]:
    for number in range(len(list(_places(record)))):
        mutant = copy.deepcopy(record)
        if "uuid" in mutant:
            # Of its own, or the mutant would count as the same record once more.
            mutant["uuid"] = f"{mutant['uuid']}-{number}"
        holder, key = list(_places(mutant))[number]
        holder[key] = replacement
        yield mutant


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place inside a JSON value, as the object or array that holds it and the key."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(item)
