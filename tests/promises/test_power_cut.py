"""S1 when the power fails: `power` keeps every turn that has ended, `process` loses the end at the most."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import apsw
import pytest

from playhead.errors import PlayheadError, SessionNotFound
from playhead.session import Session, Sessions
from playhead.stores.base import Durability
from playhead.stores.open import open_store
from playhead.testing.powercut import Image, PowerCut
from tests.promises.places import Place

CUTS = 30
CUTS_IN_FULL = 400
TURNS = 44
"""Enough for the write-ahead log to be folded into the file half-way, which is when a power cut is most dangerous."""

TEXT = "The log says: connection reset by peer. " * 40

Verdict = Literal["kept", "lost", "damaged"]


@pytest.mark.parametrize("seed", [1, 2])
def test_power_keeps_every_turn_that_has_ended(place: Place, tmp_path: Path, seed: int) -> None:
    """S1."""
    verdicts = _cut(place, tmp_path, durability="power", cuts=CUTS, seed=seed)

    assert verdicts == {"kept": CUTS}


def test_process_may_lose_the_end_of_the_log_but_never_damages_it(place: Place, tmp_path: Path) -> None:
    verdicts = _cut(place, tmp_path, durability="process", cuts=CUTS, seed=1)

    assert verdicts["damaged"] == 0
    assert verdicts["lost"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("durability", ["power", "process"])
def test_hundreds_of_power_cuts_damage_nothing(place: Place, tmp_path: Path, durability: Durability) -> None:
    verdicts = _cut(place, tmp_path, durability=durability, cuts=CUTS_IN_FULL, seed=3)

    assert verdicts["damaged"] == 0
    assert durability == "process" or verdicts == {"kept": CUTS_IN_FULL}


def test_power_syncs_a_new_session_and_an_artifact_before_they_get_their_names(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, link, replace = os.fsync, os.link, os.replace

    def noting(what: Callable[[Any], str], call: Callable[..., None]) -> Callable[..., None]:
        def noted(first: Any, *rest: Any, **more: Any) -> None:
            done.append(what(first))
            call(first, *rest, **more)

        return noted

    monkeypatch.setattr(os, "fsync", noting(_kind, sync))
    monkeypatch.setattr(os, "link", noting(lambda _: "name", link))
    monkeypatch.setattr(os, "replace", noting(lambda _: "name", replace))
    steps = {}
    with Sessions(place.store(durability="power")) as sessions:
        steps["create"] = _drained(done)
        session = sessions.create("s1")
        steps["create"] += _drained(done)
        session.save_artifact("chart.png", b"chart")
        steps["artifact"] = _drained(done)

    assert steps["create"][-3:] == ["file", "name", "folder"]
    assert [step for step in steps["artifact"] if step != "folder"] == ["file", "name"]
    # The artifact's name, and that of the folder that was made for it.
    assert steps["artifact"].count("folder") >= 2


def _cut(place: Place, tmp_path: Path, *, durability: Durability, cuts: int, seed: int) -> Counter[Verdict]:
    """Record a session, cut the power so often, and return what became of it."""
    with PowerCut[int](place.folder) as cut:
        with Sessions(open_store(place.url, durability=durability, vfs=cut.name)) as sessions:
            ids = _record(sessions.create("s1"), cut)
    images = cut.images(cuts, seed=seed, into=tmp_path / "images")
    with Unsynced() as vfs:
        return Counter(_verdict(place.at(image.directory), image, ids, vfs=vfs.name) for image in images)


class Unsynced(apsw.VFS):
    """A disk that is never waited for: images only have to be read, and syncing hundreds of them takes long."""

    def __init__(self) -> None:
        self.name = "unsynced"
        super().__init__(self.name, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _UnsyncedFile("", name, flags)


class _UnsyncedFile(apsw.VFSFile):
    def xSync(self, flags: int) -> None:
        pass


def _record(session: Session, cut: PowerCut[int]) -> list[str]:
    """Record turns, promise the seq of its first event and of each turn's end, and return the ids of all events."""
    cut.promise(session.seq)
    for number in range(TURNS):
        with session.turn(f"{number}: Why does test_upload fail? {TEXT}") as turn:
            turn.tool_result(turn.tool_call("run_tests", {"path": "tests/upload"}), {"log": TEXT})
            turn.set_state({"runs": number})
            for chunk in ("The upload ", "times out. ", TEXT):
                turn.stream(chunk)
            turn.finish_stream()
            end = session.seq + 1
        cut.promise(end)
        if number % 5 == 4:
            session.rename(f"Flaky test {number}")
        if number % 7 == 6:
            session.rewind(turn=-1)
    return [event.id for event in session.events()]


def _verdict(place: Place, image: Image[int], ids: list[str], *, vfs: str) -> Verdict:
    """Return whether the log of an image is sound, and holds all that was promised."""
    try:
        if place.integrity("s1", vfs=vfs) != "ok":
            return "damaged"
        with Sessions(place.store(vfs=vfs)) as sessions:
            session = sessions.resume("s1")
            is_whole = session.verify().ok
            found = [event.id for event in session.events()]
            with session.turn("Are you still there?") as turn:
                turn.say("Yes.")
            sealed = [event.id for event in session.events(after=len(found))]
    except SessionNotFound:
        return "lost" if image.promised else "kept"
    except PlayheadError:
        return "damaged"
    common = next((index for index, id in enumerate(found) if index == len(ids) or id != ids[index]), len(found))
    if not is_whole or not sealed or len(found) - common > SEALING_MAX:
        return "damaged"
    return "kept" if common >= max(image.promised, default=0) else "lost"


SEALING_MAX = 3
"""Events with which a resume closes what was cut off."""


def _kind(descriptor: int) -> str:
    return "folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"


def _drained(done: list[str]) -> list[str]:
    steps = done.copy()
    done.clear()
    return steps
