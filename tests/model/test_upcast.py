"""Upcasting: old events are read as new ones, step by step, and newer ones are refused."""

import msgspec
import pytest

from playhead.errors import InvalidEvent, NewerFormat
from playhead.model.event import Event
from playhead.model.upcast import EVENT_VERSION, STEPS, Step, upcast
from tests.log import Log


def step(version: int) -> Step:
    def lift(event: Event) -> Event:
        return msgspec.structs.replace(event, body=event.body | {"steps": [*event.body.get("steps", []), version]})

    return lift


def test_the_steps_from_an_events_version_on_apply_in_order() -> None:
    event = Log().user("Why?")
    steps = {version: step(version) for version in (1, 2, 3)}

    lifted = {version: upcast(event, version, steps=steps, target=4) for version in (1, 2, 3, 4)}

    assert {version: one.body.get("steps") for version, one in lifted.items()} == {
        1: [1, 2, 3],
        2: [2, 3],
        3: [3],
        4: None,
    }
    assert event.body == lifted[4].body


def test_an_event_of_a_newer_version_is_refused_with_both_versions_named() -> None:
    event = Log().user("Why?")

    with pytest.raises(NewerFormat, match=r"event 2 has format version 2.*up to version 1") as caught:
        upcast(event, EVENT_VERSION + 1)

    assert (caught.value.found, caught.value.supported) == (EVENT_VERSION + 1, EVENT_VERSION)


def test_every_version_before_this_one_has_its_step() -> None:
    event = Log().user("Why?")

    assert sorted(STEPS) == list(range(1, EVENT_VERSION))
    assert upcast(event, EVENT_VERSION) is event


def test_a_version_that_never_was_is_refused() -> None:
    event = Log().user("Why?")

    with pytest.raises(InvalidEvent, match="versions count from 1"):
        upcast(event, 0)
