"""Processes that write sessions and processes that list them all the time, each with a diary."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import playhead
from playhead.errors import SessionNotFound, StaleWriter, StoreLocked
from playhead.features.listing import Listed
from tests.promises.diary import GONE, THERE, WRITTEN, Diary
from tests.promises.line import Line

SESSIONS_MAX = 40
"""A writer with so many sessions takes some away before it makes more."""

SHARED = "shared"
"""The session that all writers write to."""

RETRIES_MAX = 200

WHOLE = 1_000
"""A page that holds every session of these tests."""


def write(line: Line, *, url: str, name: str, seed: int, seconds: float, diary: str) -> None:
    """Create, go on, rename, fork, delete, trash and restore sessions until the time is over; then wait, and list."""
    with playhead.open(url) as sessions:
        writer = _Writer(sessions, name, random.Random(seed), Diary(Path(diary)))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            writer.step()
        line.say("done")
        _list_when_told(line, sessions)


def watch(line: Line, *, url: str, name: str, seed: int, seconds: float, diary: str) -> None:
    """List all sessions again and again, in one piece and in pages, until the time is over; then wait, and list."""
    rng, notes = random.Random(f"{name} {seed}"), Diary(Path(diary))
    with playhead.open(url) as sessions:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            how = rng.choice(("whole", "whole", "by title", "pages", "pages", "refreshed", "opened anew"))
            before = time.monotonic()
            if how == "opened anew":
                with playhead.open(url) as fresh:
                    rows, total = listed(fresh, how, rng)
            else:
                rows, total = listed(sessions, how, rng)
            notes.seen(before, time.monotonic(), how, total, [_noted(row) for row in rows])
        line.say("done")
        _list_when_told(line, sessions)


def listed(sessions: playhead.Sessions, how: str, rng: random.Random) -> tuple[list[Listed], int]:
    """Return all rows, and how many there are by the last page. Pages go by creation, which nothing moves."""
    ways: dict[str, dict[str, Any]] = {
        "by title": {"sort": "title", "limit": WHOLE},
        "pages": {"sort": "created", "limit": rng.randint(3, 40)},
        "refreshed": {"refresh": True, "limit": WHOLE},
    }
    asked = ways.get(how, {"limit": WHOLE})
    page = sessions.list(**asked)
    rows = list(page.items)
    while page.next_cursor is not None:
        page = sessions.list(**asked, cursor=page.next_cursor)
        rows += page.items
    return rows, page.total


def rows_of(sessions: playhead.Sessions) -> list[Any]:
    """Return all that a list says of each session, in its order, as it comes over a line."""
    rows, _ = listed(sessions, "whole", random.Random())
    found: list[Any] = msgspec.json.decode(msgspec.json.encode([[row.key, row.summary, row.problem] for row in rows]))
    return found


def _list_when_told(line: Line, sessions: playhead.Sessions) -> None:
    while line.hear() == "list":
        line.say("listed", rows_of(sessions))


def _noted(row: Listed) -> list[Any]:
    return [row.id, row.summary.created_at if row.summary else 0.0, row.summary.seq if row.summary else 0, row.problem]


class _Writer:
    def __init__(self, sessions: playhead.Sessions, name: str, rng: random.Random, diary: Diary) -> None:
        self._sessions = sessions
        self._name = name
        self._rng = rng
        self._diary = diary
        self._count = 0
        self._ids: list[str] = []
        self._trashed: list[tuple[str, str]] = []
        self._free: list[str] = []

    def step(self) -> None:
        deeds = [self._create, *[self._turn] * 4, self._rename, self._label, self._fork, self._write_to_shared]
        if self._trashed:
            deeds.append(self._restore)
        if len(self._ids) > SESSIONS_MAX // 2 or (self._ids and self._rng.random() < 0.2):
            deeds += [self._trash, self._delete]
        if not self._ids:
            deeds = [self._create]
        elif len(self._ids) >= SESSIONS_MAX:
            deeds = [self._trash, self._delete]
        self._rng.choice(deeds)()

    def _create(self) -> None:
        # Now and then under the id of one that is in the trash or was deleted.
        id = self._free.pop() if self._free and self._rng.random() < 0.3 else self._new_id()
        self._trashed = [one for one in self._trashed if one[1] != id]
        with self._diary.deed(THERE, id) as seq:
            session = self._sessions.create(id, title=f"Upload {self._count}", labels=["new"])
            seq.append(session.seq)
        self._ids.append(id)

    def _turn(self) -> None:
        id = self._rng.choice(self._ids)
        with self._diary.deed(WRITTEN, id) as seq, self._sessions.get(id) as session:
            with session.turn(f"Why does upload {self._rng.randrange(100)} fail?") as turn:
                for number in range(self._rng.randint(1, 12)):
                    turn.say(f"Reason {number}: the connection is reset.")
            seq.append(session.seq)

    def _rename(self) -> None:
        id = self._rng.choice(self._ids)
        with self._diary.deed(WRITTEN, id) as seq:
            seq.append(self._sessions.get(id).rename(f"Renamed {self._rng.randrange(100)}").seq)

    def _label(self) -> None:
        # A fact by itself: no row is saved with it, and the session is never closed.
        id = self._rng.choice(self._ids)
        with self._diary.deed(WRITTEN, id) as seq:
            session = self._sessions.get(id)
            seq.append(session.append("note", {"name": "a note"}).seq)

    def _write_to_shared(self) -> None:
        with self._diary.deed(WRITTEN, SHARED) as seq:
            session = self._sessions.get(SHARED)
            for _ in range(RETRIES_MAX):
                try:
                    seq.append(session.append("note", {"name": self._name}).seq)
                    break
                except StaleWriter:
                    session.refresh()
            if self._rng.random() < 0.5:
                session.close()

    def _fork(self) -> None:
        id, fork = self._rng.choice(self._ids), self._new_id()
        with self._diary.deed(THERE, fork) as seq:
            seq.append(self._sessions.get(id).fork(id=fork, title=f"Fork of {id}").seq)
        self._ids.append(fork)

    def _trash(self) -> None:
        id = self._taken()
        with self._diary.deed(GONE, id):
            trash_id = _patiently(lambda: self._sessions.trash(id))
        self._trashed.append((trash_id, id))
        self._free.append(id)

    def _delete(self) -> None:
        id = self._taken()
        with self._diary.deed(GONE, id):
            _patiently(lambda: self._sessions.delete(id))
        self._free.append(id)

    def _restore(self) -> None:
        trash_id, id = self._trashed.pop(self._rng.randrange(len(self._trashed)))
        if id not in self._free:
            return
        self._free.remove(id)
        with self._diary.deed(THERE, id) as seq:
            _patiently(lambda: self._sessions.restore(trash_id))
            seq.append(self._sessions.get(id).seq)
        self._ids.append(id)

    def _taken(self) -> str:
        return self._ids.pop(self._rng.randrange(len(self._ids)))

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count:04}"


def _patiently(deed: Callable[[], Any]) -> Any:
    """Do something that may be told that another process reads the file at this moment."""
    for number in range(RETRIES_MAX):
        try:
            return deed()
        except StoreLocked:
            time.sleep(0.005)
        except SessionNotFound:
            # An earlier try was told so after it had gone into the trash.
            if number == 0:
                raise
            return ""
    raise AssertionError("the session's file stayed locked")
