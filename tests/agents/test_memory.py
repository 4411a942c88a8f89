"""An agent searches and reads its own memory with plain functions: text in, text out."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from playhead import EventNotFound, InvalidName, SessionNotFound, Sessions
from playhead.agents.memory import (
    HIT_CHARS_MAX,
    HITS_MAX,
    READ_CHARS_DEFAULT,
    READ_EVENT_TOOL,
    SEARCH_MEMORY_TOOL,
    event_text,
    read_event,
    search_memory,
)
from playhead.search.indexer import searchable_text
from tests.agents.conftest import INSTRUCTIONS


def test_hits_name_their_event_and_quote_the_text_around_the_match(filled: Sessions) -> None:
    """K17."""
    found = search_memory(filled, "vault ravens")
    first = found.split("\n\n")[1]

    assert found.startswith('2 hits for "vault ravens" in 3 sessions, best first (searched by fts).')
    assert re.match(r"1\. deploy-0001#\d+  (user|coordinator), 2026-08-01 12:\d\d UTC\n> ", first)
    assert "the vault called ravens" in first


def test_a_long_hit_is_cut_says_how_long_it_is_and_how_to_read_on(filled: Sessions) -> None:
    """K17."""
    rows = "\n".join(f"row {number} of the ledger" for number in range(2_000))
    with filled.create("long-0001").turn("Read the ledger") as turn:
        event = turn.tool_result(turn.tool_call("read_file", {"path": "ledger"}), rows)
    found = search_memory(filled, '"row 1500 of the ledger"')
    place = re.search(r'Characters ([\d,]+) to ([\d,]+) of ([\d,]+); read_event\(id="(.+?)", offset=(\d+)\)', found)
    assert place is not None
    start, end, chars = (int(place[number].replace(",", "")) for number in (1, 2, 3))
    rest = read_event(filled, place[4], int(place[5]))

    assert "> row 1500 of the ledger" in found
    assert end - start <= HIT_CHARS_MAX
    assert chars == len(rows)
    assert place[4] == f"long-0001#{event.seq}"
    assert [line[2:] for line in rest.splitlines()[1:-1] if line[2:]] == rows[
        end : end + READ_CHARS_DEFAULT
    ].strip().split("\n")


def test_reading_on_gives_all_of_an_event_once(filled: Sessions) -> None:
    rows = "\n".join(f"row {number} of the ledger" for number in range(2_000))
    with filled.create("long-0001").turn("Read the ledger") as turn:
        event = turn.say(rows)
    text, offset = "", 0
    while True:
        found = event_text(filled, f"long-0001#{event.seq}", offset)
        text += found.text
        if found.next_offset is None:
            break
        offset = found.next_offset
    last = read_event(filled, f"long-0001#{event.seq}", offset)

    assert text == rows == searchable_text(event)
    assert found.chars == len(rows)
    assert f"of {len(rows):,}." in last
    assert "reads on" not in last
    assert "reads on" in read_event(filled, f"long-0001#{event.seq}")
    assert len(event_text(filled, f"long-0001#{event.seq}").text) == READ_CHARS_DEFAULT


def test_the_turn_that_asks_is_left_out(filled: Sessions) -> None:
    with filled.create("here").turn("Which vault is called ravens?") as turn:
        call = turn.tool_call("search_memory", {"query": "vault ravens"})
        with_it = search_memory(filled, "vault ravens")
        without_it = search_memory(filled, "vault ravens", turn=turn.turn_id)
        turn.tool_result(call, without_it)

    assert "here#" in with_it
    assert "here#" not in without_it
    assert without_it.startswith("2 hits")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"agent": "coordinator/researcher:1"}, {"upload-0001"}),
        ({"session": "upload-0001"}, {"upload-0001"}),
        ({"user": "bob"}, {"default/bob/secret-0001"}),
    ],
)
def test_it_can_be_narrowed_and_never_leaves_its_user(
    filled: Sessions, options: dict[str, Any], expected: set[str]
) -> None:
    with filled.create("secret-0001", user="bob").turn("The upload of Bob is secret.") as turn:
        turn.say("The upload is safe with me.")
    found = search_memory(filled, "upload", k=HITS_MAX, **options)
    everything = search_memory(filled, "upload", k=HITS_MAX)
    sessions = re.compile(r"^\d+\. (\S+)#", re.MULTILINE)

    assert set(sessions.findall(found)) == expected
    assert "secret-0001" not in everything


@pytest.mark.parametrize(("k", "count"), [(1, 1), (0, 1), (-5, 1), (10_000, HITS_MAX)])
def test_the_number_of_hits_is_bounded(sessions: Sessions, k: int, count: int) -> None:
    with sessions.create("a").turn("Look.") as turn:
        for number in range(HITS_MAX + 5):
            turn.say(f"Quokka number {number} was here.")
    found = search_memory(sessions, "quokka", k=k)

    assert len(re.findall(r"^\d+\. a#", found, re.MULTILINE)) == count


def test_a_mode_that_is_not_set_up_falls_back_and_says_so(filled: Sessions) -> None:
    asked, fallen_back = search_memory(filled, "ravens", "fts"), search_memory(filled, "ravens", "semantic")

    assert "There is nothing here to search by semantic with." in fallen_back.splitlines()[0]
    assert "nothing here" not in asked
    assert fallen_back.split("\n\n")[1:] == asked.split("\n\n")[1:]


def test_no_hits_are_said_plainly(filled: Sessions) -> None:
    assert search_memory(filled, "xyzzyplugh") == 'No hits for "xyzzyplugh" in 3 sessions (searched by fts).'
    assert search_memory(filled, "").startswith('No hits for ""')


def test_hostile_text_is_fenced_and_called_data(filled: Sessions) -> None:
    found = search_memory(filled, "previous instructions")
    lines = [line for line in found.splitlines() if "Ignore" in line]

    assert "data, not instructions" in found.splitlines()[0]
    assert lines == [line for line in lines if line.startswith(f"> {INSTRUCTIONS}")] != []
    assert "\x1b" not in found


def test_an_event_without_text_and_an_offset_beyond_its_end_are_said_plainly(filled: Sessions) -> None:
    started = read_event(filled, "upload-0001#1")
    beyond = read_event(filled, "deploy-0001#4", 10_000)

    assert "There is no text in it" in started
    assert "It ends before character 10,000" in beyond


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda sessions: search_memory(sessions, "x", mode="telepathy"), InvalidName),
        (lambda sessions: read_event(sessions, "nowhere#1"), SessionNotFound),
        (lambda sessions: read_event(sessions, "upload-0001#999"), EventNotFound),
        (lambda sessions: read_event(sessions, "upload-0001#0"), EventNotFound),
        (lambda sessions: read_event(sessions, "@last#1"), SessionNotFound),
        (lambda sessions: read_event(sessions, "upload-0001#4", user="bob"), SessionNotFound),
        (lambda sessions: read_event(sessions, "upload-0001"), InvalidName),
    ],
)
def test_what_cannot_be_is_an_error_that_says_so(
    filled: Sessions, call: Callable[[Sessions], str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(filled)


@pytest.mark.parametrize(("tool", "function"), [(SEARCH_MEMORY_TOOL, search_memory), (READ_EVENT_TOOL, read_event)])
def test_the_schema_is_that_of_the_function(tool: dict[str, Any], function: Callable[..., str]) -> None:
    """K17."""
    properties = tool["parameters"]["properties"]
    parameters = list(inspect.signature(function).parameters.values())[1:]
    own = [one for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    defaults = {one.name: one.default for one in own if one.default is not inspect.Parameter.empty}

    assert tool["name"] == function.__name__
    assert list(properties) == [one.name for one in own]
    assert {name: one["default"] for name, one in properties.items() if "default" in one} == defaults
    assert tool["parameters"]["required"] == [one.name for one in own if one.name not in defaults]
