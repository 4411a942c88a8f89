"""State: the newest value of every key on the path, from events and from positions alike."""

import pytest

from playhead.views.fold import Fold
from playhead.views.state import State, state, state_from_positions
from tests.log import Log


def both(log: Log) -> State:
    """Return the state of the path; it must be the same in both ways."""
    events = {event.seq: event for event in log.events}
    folded = state(log.path())

    assert folded == state_from_positions(Fold().apply_all(log.path()), events)
    return folded


def test_the_newest_value_of_each_key_counts() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"session": {"branch": "main", "tries": 1}}})
    log.add("state_changed", {"delta": {"session": {"tries": 2}, "agent:coordinator": {"plan": ["a"]}}})

    assert both(log) == {"session": {"branch": "main", "tries": 2}, "agent:coordinator": {"plan": ["a"]}}


def test_a_removed_key_is_gone_and_a_scope_without_keys_too() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"session": {"branch": "main"}, "agent:coordinator": {"plan": None}}})
    log.add("state_changed", {"removed": {"session": ["branch", "never set"], "agent:nobody": ["a"]}})

    assert both(log) == {"agent:coordinator": {"plan": None}}


def test_a_key_that_is_removed_and_set_in_one_event_is_set() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"session": {"a": 1}}})
    log.add("state_changed", {"delta": {"session": {"a": 2}}, "removed": {"session": ["a"]}})

    assert both(log) == {"session": {"a": 2}}


def test_a_session_may_begin_with_a_state() -> None:
    log = Log()
    started = log.events[0]
    started.body["state"] = {"session": {"branch": "main"}, "user": {"language": "de"}}
    log.add("state_changed", {"delta": {"session": {"tries": 1}}})

    assert both(log) == {"session": {"branch": "main", "tries": 1}}


def test_rewinding_brings_the_older_values_back() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"session": {"a": 1}}})
    before = log.user("Why?")
    log.add("state_changed", {"delta": {"session": {"a": 2, "b": 2}}})
    log.move(before)

    assert both(log) == {"session": {"a": 1}}


def test_shared_state_is_no_part_of_a_path() -> None:
    log = Log()
    shared = [
        log.add("state_changed", {"delta": {"user": {"language": "de"}}}),
        log.add("state_changed", {"removed": {"app": ["theme"]}}),
    ]

    assert both(log) == {}
    assert state(shared) == {}


@pytest.mark.parametrize("scope", ["odd\nscope", "per%cent", "%0A", "", "session"])
@pytest.mark.parametrize("key", ["", "line\nfeed", "\ud800", "state:session\na"])
def test_scopes_and_keys_may_hold_any_text(scope: str, key: str) -> None:
    log = Log()
    log.add("state_changed", {"delta": {scope: {key: 1}}})

    assert both(log) == {scope: {key: 1}}


def test_a_value_that_was_redacted_is_not_made_up() -> None:
    log = Log()
    log.add("state_changed", {"delta": {"session": {"token": "old"}}})
    secret = log.add("state_changed", {"delta": {"session": {"token": "secret"}}})
    before = Fold().apply_all(log.path())
    log.redact(secret)

    events = {event.seq: event for event in log.events}
    assert state_from_positions(before, events) == {}
