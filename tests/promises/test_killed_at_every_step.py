"""K13: a verb that is killed at any step happened or did not; doing it again gives what one undisturbed run gives."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from playhead.session import Sessions
from playhead.stores.open import open_store
from tests.promises.children import Nursery
from tests.promises.places import Place
from tests.promises.verbs import VERBS, outcome

TRIALS = 12
"""Steps at which a verb is killed in the normal suite, spread over all that it has."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_killed_happened_or_did_not(verb: str, place: Place, nursery: Nursery, tmp_path: Path) -> None:
    differences, _ = _kill_at_steps(verb, place, nursery, tmp_path, trials=TRIALS)

    assert differences == {}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_killed_at_each_of_its_steps_happened_or_did_not(
    verb: str, place: Place, nursery: Nursery, tmp_path: Path
) -> None:
    """K23."""
    differences, kills = _kill_at_steps(verb, place, nursery, tmp_path, trials=100_000)

    assert differences == {}
    assert kills > 5


def _kill_at_steps(
    verb: str, place: Place, nursery: Nursery, tmp_path: Path, *, trials: int
) -> tuple[dict[int, Any], int]:
    """Return what differs from an undisturbed run, for each step before which the verb was killed, and the kills."""
    nursery.run("verbs:prepare", url=place.url)
    undisturbed = place.at(tmp_path / "undisturbed")
    _copy(place, undisturbed)
    ((_, count),) = _run(verb, undisturbed, nursery, die_at=0)
    expected = outcome(undisturbed.url, undisturbed.folder)
    differences, kills = {}, 0
    steps = sorted({1 + index * count // min(trials, count) for index in range(min(trials, count))})
    for step in steps:
        killed = place.at(tmp_path / f"killed-{step}")
        _copy(place, killed)
        kills += not _run(verb, killed, nursery, die_at=step)
        found = _finished(verb, killed)
        if found != expected:
            differences[step] = _difference(found, expected)
        shutil.rmtree(killed.folder)
    return differences, kills


def _run(verb: str, place: Place, nursery: Nursery, *, die_at: int) -> list[list[Any]]:
    """Return what the child said, nothing where it was killed. One that comes through took fewer steps than the first
    one: what was written lately is looked at again, and how late it is differs."""
    child = nursery.start("verbs:run", url=place.url, folder=str(place.folder), verb=verb, die_at=die_at)
    status = child.end()
    came_through = status == 0 and (not die_at or child.said[-1][1] < die_at)
    assert came_through or (status == -9 and die_at), f"{verb}, step {die_at}: the child ended with {status}"
    return child.said


def _finished(verb: str, place: Place) -> dict[str, Any]:
    """Do the verb again, in another process than the killed one, and return what is there then."""
    with Sessions(open_store(place.url)) as sessions:
        VERBS[verb](sessions)
    return outcome(place.url, place.folder)


def _copy(source: Place, target: Place) -> None:
    shutil.copytree(source.folder, target.folder, dirs_exist_ok=True)


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return (found, expected) of what differs, as deep as both are dictionaries."""
    differs: dict[str, Any] = {}
    for name in sorted({*found, *expected}):
        one, other = found.get(name), expected.get(name)
        if isinstance(one, dict) and isinstance(other, dict) and one != other:
            differs[name] = _difference(one, other)
        elif one != other:
            differs[name] = (one, other)
    return differs
