"""What several processes did and when, and what a list must and may say by that: diaries are written, then judged.

Whoever does something notes it before and after, with the clock that all processes of the machine share. So a list that
took from one moment to another must show what was there all through, must not show what was there at no moment of it,
and where a log ended lies between what was finished before and what was begun before its end.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

THERE, GONE, WRITTEN = "there", "gone", "written"

NEVER = math.inf

SAID_MAX = 5
"""So many faults are told; more would say no more."""


class Diary:
    """One process's notes, a JSON line each. They survive its death: each is written by a single call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    @contextmanager
    def deed(self, what: str, id: str) -> Iterator[list[int]]:
        """Note that something is done to a session while the block runs, which puts in the list where its log ends."""
        self._count += 1
        number = self._count
        self._note(["begin", number, time.monotonic(), what, id])
        seq: list[int] = []
        yield seq
        self._note(["end", number, time.monotonic(), seq[0] if seq else 0])

    def seen(self, begin: float, end: float, how: str, total: int, rows: list[list[Any]]) -> None:
        """Note a whole list: its rows as [id, created_at, seq, problem], and how many there were said to be in all."""
        self._note(["seen", begin, end, how, total, rows])

    def _note(self, what: list[Any]) -> None:
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(what).encode() + b"\n")


@dataclass
class Life:
    """A stretch in which a session was there: between which moments it came, and went."""

    came_after: float
    came_before: float = NEVER
    went_after: float = NEVER
    went_before: float = NEVER

    def is_all_through(self, begin: float, end: float) -> bool:
        return self.came_before <= begin and self.went_after >= end

    def is_possible(self, begin: float, end: float) -> bool:
        return self.came_after <= end and self.went_before >= begin


@dataclass
class Write:
    """A write to a session: when it was begun, when it was finished, and where the log ended then."""

    begun: float
    done: float = NEVER
    seq: int = 0


class Seen(NamedTuple):
    """A whole list, from one moment to another; rows and total as `Diary.seen` has them."""

    begin: float
    end: float
    how: str
    total: int
    rows: list[list[Any]]


@dataclass
class History:
    """What all diaries together say."""

    lives: dict[str, list[Life]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[str, list[Write]] = field(default_factory=lambda: defaultdict(list))
    lists: list[list[Seen]] = field(default_factory=list)
    """The lists that each process saw, in their order."""

    @classmethod
    def of(cls, paths: list[Path]) -> History:
        history = cls()
        for path in sorted(paths):
            history._take(path)
        return history

    def faults(self) -> list[str]:
        """Return what is wrong with the lists, the first of many."""
        found: list[str] = []
        for seen in self.lists:
            last: dict[tuple[str, float], int] = {}
            for one in seen:
                found += self._faults_of(one, last)
                if len(found) >= SAID_MAX:
                    return found[:SAID_MAX]
        return found

    def _faults_of(self, seen: Seen, last: dict[tuple[str, float], int]) -> Iterator[str]:
        how, begin, end = seen.how, seen.begin, seen.end
        count = Counter(id for id, *_ in seen.rows)
        for id, lives in self.lives.items():
            must = any(life.is_all_through(begin, end) for life in lives)
            may = sum(life.is_possible(begin, end) for life in lives)
            if not must <= count[id] <= may:
                yield f"{how}: {id} is in it {count[id]} times, not {int(must)} to {may}"
        yield from (f"{how}: {id} was never there" for id in count if id not in self.lives)
        if how != "pages" and seen.total != len(seen.rows):
            yield f"{how}: {seen.total} in all, but {len(seen.rows)} rows"
        for id, created_at, seq, problem in seen.rows:
            if problem is not None:
                if any(life.is_all_through(begin, end) for life in self.lives[id]):
                    yield f"{how}: {id} cannot be read: {problem}"
                continue
            low, high = self._bounds(id, begin, end)
            if not low <= seq <= high:
                yield f"{how}: {id} holds up to {seq}, its log ended between {low} and {high}"
            if seq < last.get((id, created_at), 0):
                yield f"{how}: {id} goes back from {last[id, created_at]} to {seq}"
            last[id, created_at] = seq

    def _bounds(self, id: str, begin: float, end: float) -> tuple[float, float]:
        """Return the least and the most that a row may hold, as far as one life of the session can tell."""
        lives = [life for life in self.lives[id] if life.is_possible(begin, end)]
        if len(lives) != 1 or not lives[0].is_all_through(begin, end):
            return 0, NEVER
        writes = [one for one in self.writes[id] if lives[0].came_after <= one.begun <= end]
        low = max((one.seq for one in writes if one.done <= begin), default=0)
        return low, max((one.seq if one.done < NEVER else NEVER for one in writes), default=0)

    def _take(self, path: Path) -> None:
        deeds: dict[int, tuple[str, str, Life | Write]] = {}
        seen = []
        for line in path.read_text().splitlines():
            match json.loads(line):
                case ["begin", number, at, what, id]:
                    deeds[number] = (what, id, self._begun(what, id, at))
                case ["end", number, at, seq]:
                    self._ended(*deeds[number], at, seq)
                case ["seen", *one]:
                    seen.append(Seen(*one))
        if seen:
            self.lists.append(seen)

    def _begun(self, what: str, id: str, at: float) -> Life | Write:
        if what == WRITTEN:
            self.writes[id].append(Write(at))
            return self.writes[id][-1]
        if what == THERE:
            self.lives[id].append(Life(at))
        else:
            self.lives[id][-1].went_after = at
        return self.lives[id][-1]

    def _ended(self, what: str, id: str, deed: Life | Write, at: float, seq: int) -> None:
        if isinstance(deed, Write):
            deed.done, deed.seq = at, seq
        elif what == THERE:
            deed.came_before = at
            self.writes[id].append(Write(deed.came_after, at, seq))
        else:
            deed.went_before = at
