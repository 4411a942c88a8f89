"""K20 to K22: a list is true at every moment, while processes write, die and list, and hands move the files."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.stores.sqlite.catalogue_file import path_in
from tests.promises.children import Child, Nursery
from tests.promises.diary import GONE, SAID_MAX, THERE, Diary, History
from tests.promises.listers import SHARED, rows_of
from tests.promises.places import Bundles, Place
from tests.promises.test_second_reader import second_reading

SHORT_S = 4.0
WHOLE_S = 60.0
WRITERS = 2
DIES_EVERY_S = 0.7
STEP_S = 0.05
BY_HAND = 20


def test_whatever_two_processes_write_a_third_lists_what_is_there(
    place: Place, nursery: Nursery, tmp_path: Path
) -> None:
    """K20 to K22."""
    faults, lists, rows = _minute(place, nursery, tmp_path, seconds=SHORT_S)

    assert faults == []
    assert lists > 3
    assert rows > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_for_a_minute_nothing_is_lost_and_nothing_is_doubled(
    place: Place, nursery: Nursery, tmp_path: Path, seed: int
) -> None:
    """K20 to K22."""
    faults, lists, rows = _minute(place, nursery, tmp_path, seconds=WHOLE_S, seed=seed)

    assert faults == []
    assert lists > 30
    assert rows > 0


def _minute(
    place: Place, nursery: Nursery, tmp_path: Path, *, seconds: float, seed: int = 1
) -> tuple[list[str], int, int]:
    """Let two processes write and a third list; return what is wrong, the lists that were taken, and the rows left.

    One more writer is killed again and again. In a directory of bundles the catalogue is removed and closed bundles are
    put there and taken away by hand.
    """
    diaries = tmp_path / "diaries"
    diaries.mkdir()
    rng, hand = random.Random(seed), Diary(diaries / "hand")
    with place.open() as sessions, hand.deed(THERE, SHARED) as seq:
        seq.append(sessions.create(SHARED, title="Everybody's").seq)

    def start(call: str, name: str, number: int) -> Child:
        more = {"seed": seed * 1_000 + number, "seconds": seconds, "diary": str(diaries / name)}
        return nursery.start(f"listers:{call}", url=place.url, name=name, **more)

    children = [start("write", f"w{number}", number) for number in range(WRITERS)]
    children.append(start("watch", "watcher", WRITERS))
    hands = _Hands(place.folder, tmp_path / "elsewhere", hand, rng) if isinstance(place, Bundles) else None
    until, deaths = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        doomed = start("write", f"d{deaths}", WRITERS + 1 + deaths)
        dies_at = time.monotonic() + rng.uniform(0.1, DIES_EVERY_S)
        while time.monotonic() < dies_at:
            time.sleep(STEP_S)
            if hands is not None:
                hands.step()
        doomed.kill()
        deaths += 1
    for child in children:
        child.hear_until("done")
    for child in children:
        child.tell("list")
    said = [child.hear_until("listed")[1] for child in children]
    statuses = [_hang_up(child) for child in children]
    history = History.of(list(diaries.iterdir()))
    faults = history.faults() + [f"a child ended with {status}" for status in statuses if status != 0]
    left = _left(place)
    faults += [f"process {number} lists {_difference(rows, left)}" for number, rows in enumerate(said) if rows != left]
    faults += _faults_of_readings(place, left)
    return faults, len(history.lists[-1]), len(left)


def _hang_up(child: Child) -> int:
    child.tell(None)
    return child.end()


def _left(place: Place) -> list[Any]:
    with place.open() as sessions:
        return rows_of(sessions)


def _faults_of_readings(place: Place, left: list[Any]) -> list[str]:
    """Return where what is left differs from what is listed without a catalogue, from the logs, and from the files."""
    if isinstance(place, Bundles):
        shutil.rmtree(path_in(place.folder).parent)
    anew = _left(place)
    faults = [f"without a catalogue there is {_difference(anew, left)}"] if anew != left else []
    with place.open() as sessions:
        for key, summary, problem in left:
            live = sessions.get(key["id"]).summary()
            if problem is not None or [live.seq, live.title, live.status] != [
                summary["seq"],
                summary["title"],
                summary["status"],
            ]:
                faults.append(f"{key['id']} is listed as {summary or problem}, its log says {live}")
    found = second_reading(place.folder if isinstance(place, Bundles) else place.database(""))
    plain = sorted((one["id"], one["event_count"], one["facts"]["labels"]) for one in found["sessions"])
    shown = sorted((key["id"], summary["seq"], list(summary["labels"])) for key, summary, _ in left if summary)
    return faults + ([f"a plain reading finds {_difference(plain, shown)}"] if plain != shown else [])


def _difference(found: list[Any], expected: list[Any]) -> str:
    """Say in which rows two lists differ, the first few of them; a row begins with what names it."""
    rows, others = {str(one[0]): one for one in found}, {str(one[0]): one for one in expected}
    differs = [name for name in sorted({*rows, *others}) if rows.get(name) != others.get(name)]
    told = [f"{name}: {rows.get(name)}, not {others.get(name)}" for name in differs[:SAID_MAX]]
    return "; ".join(told) or "the same in another order"


class _Hands:
    """Somebody who copies bundles into a directory, takes them away, and removes its catalogue, while it is in use."""

    def __init__(self, folder: Path, elsewhere: Path, diary: Diary, rng: random.Random) -> None:
        self._folder = folder
        self._elsewhere = elsewhere
        self._diary = diary
        self._rng = rng
        self._here: list[Path] = []
        with playhead.open(f"bundles:{elsewhere}") as sessions:
            for number in range(BY_HAND):
                with sessions.create(f"hand-{number:02}", title=f"From elsewhere {number}") as session:
                    for _ in range(self._rng.randrange(30)):
                        session.append("note", {"name": "elsewhere", "text": "x" * 1_000})
            self._seqs = {row.id: row.summary.seq for row in sessions.list().items if row.summary is not None}
        self._away = sorted(path for path in elsewhere.glob("*.playhead") if not path.name.startswith("_"))

    def step(self) -> None:
        deed = self._rng.choice([self._copy, self._copy, self._remove, self._remove_catalogue])
        deed()

    def _copy(self) -> None:
        if self._away:
            path = self._away.pop(self._rng.randrange(len(self._away)))
            with self._diary.deed(THERE, path.stem) as seq:
                shutil.copy(path, self._folder)
                seq.append(self._seqs[path.stem])
            self._here.append(path)

    def _remove(self) -> None:
        if self._here:
            path = self._here.pop(self._rng.randrange(len(self._here)))
            with self._diary.deed(GONE, path.stem):
                (self._folder / path.name).unlink()
            self._away.append(path)

    def _remove_catalogue(self) -> None:
        if self._rng.random() < 0.05:
            shutil.rmtree(path_in(self._folder).parent, ignore_errors=True)
