"""A few plain rules tell what a person wants of the built-in agent; everything else is a search."""

import pytest

from playhead.agents.built_in.intents import (
    Before,
    Help,
    Intent,
    ListSessions,
    NothingThere,
    ReadEvent,
    Search,
    before,
    understood,
)
from playhead.views.transcript import Entry, ToolUse

FOUND = Before("deploy key", "search_sessions", ("a#3", "b#5", "b#9"), ("c#1",), more_count=4)
NO_PASSAGES = "The last answer had no numbered passages. Say show SESSION#SEQ to read an event."
READING = Before("the first one", "read_event", reading=("a#3", 4_000))


@pytest.mark.parametrize(
    ("prompt", "intent"),
    [
        ("help", Help()),
        ("Help!", Help()),
        ("?", Help()),
        ("What can you do?", Help()),
        ("What did I do last?", ListSessions()),
        ("what was I working on", ListSessions()),
        ("List my recent sessions, please", Search("List my recent sessions, please")),
        ("please list my recent sessions", ListSessions()),
        ("What did I do last week?", Search("What did I do last week?")),
        ("show upload-0001#7", ReadEvent("upload-0001#7")),
        ("Show me: travel/ada/trip one#12.", ReadEvent("travel/ada/trip one#12")),
        ("upload-0001#7", ReadEvent("upload-0001#7")),
        ("show upload#seven", Search("show upload#seven")),
        ("Where is the deploy key?", Search("Where is the deploy key?")),
        ("why?", Search("why?")),
        ("2", Search("2")),
        ("more", NothingThere("There is nothing to go on from.")),
        ("", Search("")),
        ("  \n", Search("  \n")),
    ],
)
def test_a_prompt_by_itself(prompt: str, intent: Intent) -> None:
    assert understood(prompt, Before()) == intent


@pytest.mark.parametrize(
    ("prompt", "last", "intent"),
    [
        ("more", FOUND, Search("deploy key", ("c#1", "a#3", "b#5", "b#9"))),
        ("Show me more!", FOUND, Search("deploy key", ("c#1", "a#3", "b#5", "b#9"))),
        ("more", READING, ReadEvent("a#3", 4_000)),
        ("and the second one?", FOUND, ReadEvent("b#5")),
        ("the 3rd passage", FOUND, ReadEvent("b#9")),
        ("#1", FOUND, ReadEvent("a#3")),
        ("the last one", FOUND, ReadEvent("b#9")),
        ("what's in number two?", FOUND, Search("what's in number two?")),
        ("what's number two?", FOUND, ReadEvent("b#5")),
        ("0", FOUND, NothingThere("The last answer has no passage 0; it had 3.")),
        ("one", READING, NothingThere(NO_PASSAGES)),
        ("and on Windows?", FOUND, Search("deploy key and on Windows?")),
        ("what about staging", FOUND, Search("deploy key what about staging")),
        ("why?", FOUND, Search("deploy key why?")),
        ("Android?", FOUND, Search("Android?")),
        ("Where is the oven?", FOUND, Search("Where is the oven?")),
    ],
)
def test_a_prompt_that_goes_on_from_the_last(prompt: str, last: Before, intent: Intent) -> None:
    assert understood(prompt, last) == intent


def test_nothing_is_offered_twice_where_all_was_shown() -> None:
    shown = Before("deploy key", "search_sessions", ("a#3",), more_count=0)
    read = Before("the first one", "read_event", reading=("a#3", None))

    assert understood("more", shown) == NothingThere("There are no further passages.")
    assert understood("more", read) == NothingThere("That was all of it.")


def _entry(role: str, text: str = "", *, turn: str, tools: tuple[ToolUse, ...] = ()) -> Entry:
    return Entry("message", 1, 0.0, None, turn, None, role=role, text=text, tools=tools)


def test_what_was_before_is_the_last_turn_and_not_the_one_that_asks() -> None:
    response = {"passages": [{"id": "a#3"}, {"id": "b#5"}], "more_count": 2}
    use = ToolUse("1", "search_sessions", {"query": "deploy key", "without": ["c#1"]}, response, "completed", 4)
    entries = [
        _entry("user", "Where is it?", turn="one"),
        _entry("assistant", turn="one", tools=(use,)),
        _entry("assistant", "It is there.", turn="one"),
        _entry("user", "more", turn="two"),
    ]

    assert before(entries, turn="two") == Before("deploy key", "search_sessions", ("a#3", "b#5"), ("c#1",), 2)
    assert before(entries[3:], turn="two") == Before()
    assert before(entries, turn="three") == Before("more")


@pytest.mark.parametrize("response", [None, "text", {"passages": "none"}, {"passages": [1, {"id": 2}, {}]}, []])
def test_a_tool_of_the_same_name_with_another_shape_is_no_problem(response: object) -> None:
    """Another agent may have been in the turn before."""
    use = ToolUse("1", "search_sessions", "deploy", response, "completed", 4)
    entries = [_entry("user", "Where is it?", turn="one"), _entry("assistant", turn="one", tools=(use,))]
    last = before(entries, turn="two")

    assert last == Before("Where is it?", "search_sessions")
    assert understood("the first one", last) == NothingThere("The last answer has no passage 1; it had 0.")
