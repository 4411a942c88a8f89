"""Stores of a thousand to a hundred thousand sessions, made once and kept: what lists are measured on.

A session is a title, one turn with prompt and answer, and what lists can be narrowed by, all seeded by its number. The
bundles are the files that closed sessions leave: each is built in memory by the store's own code, its snapshot and its
listing row included, and placed whole, which saves opening it again. A `sqlite:` file is filled through its store.
"""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count as counting
from pathlib import Path
from random import Random
from typing import Any, cast

import playhead
from benchmarks.sessions import STORES
from benchmarks.workload import prose
from playhead.features.live import Live
from playhead.model.event import Draft
from playhead.model.ids import DEFAULT_APP, SessionKey, session_key, time_ordered_id
from playhead.stores.base import Store
from playhead.stores.files import place_file
from playhead.stores.names import file_stem
from playhead.stores.sqlite.connect import Database
from playhead.stores.sqlite.log import SqliteLog

FIRST_AT = 1_767_225_600.0
APART_S = 300.0
"""A session begins so long after the one before it, give or take as much: a hundred thousand are a year's."""

USERS = 50
FOLDERS = 40
PIECE = 500
"""So many sessions are made by one process before the next piece is given out."""

_MADE = "made"


def ready(folder: Path, kind: str, session_count: int) -> str:
    """Return the URL of a store with so many sessions under the folder; it is made unless one is there whole."""
    place = folder / f"{kind}-{session_count}"
    url = STORES[kind].format(place)
    if not (place / _MADE).exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if kind == "bundles":
            _make_bundles(place / "sessions", session_count)
        else:
            _fill(url, session_count)
        (place / _MADE).touch()
    return url


def user(number: int) -> str:
    """Return the user of a session: some have ten times as many as others."""
    return f"user-{int(Random(f'user {number}').random() ** 2 * USERS):02}"


def drafts(number: int) -> list[Draft]:
    """Return the events of a session, as its program would have recorded them."""
    rng = Random(number)
    now = FIRST_AT + APART_S * (number + rng.uniform(-1, 1))
    ids = _ids(rng, now)

    def draft(kind: str, body: dict[str, Any], agent: str | None = None, turn: str | None = None) -> Draft:
        id, at = next(ids)
        return Draft(kind, body, id, at, agent, turn)

    def message(role: str, chars: int, agent: str) -> Draft:
        parts = [{"type": "text", "content": prose(rng, chars)}]
        return draft("message", {"role": role, "parts": parts}, agent, "turn-1")

    agent = rng.choice(("coordinator", "coordinator", "coordinator", "researcher", "reviewer"))
    config = {"name": f"agents/{agent}.yaml", "type": rng.choice(("agent", "agent", "team"))}
    started = {
        "app": DEFAULT_APP,
        "user": user(number),
        "config": config,
        "origin": rng.choice(("cli", "api", "import")),
    }
    changed: dict[str, Any] = {"title": prose(rng, 40).rstrip(".")}
    if rng.random() < 0.2:
        changed["labels"] = [rng.choice(("pinned", "release", "later"))]
    if rng.random() < 0.1:
        changed["status"] = "archived"
    found = [
        draft("session_started", {**started, "cwd": f"/home/ada/projects/{rng.randrange(FOLDERS)}"}),
        draft("session_changed", changed),
        draft("turn_started", {"cause": "user"}, "user", "turn-1"),
        message("user", 160, "user"),
        message("assistant", 400, agent),
    ]
    if rng.random() < 0.97:
        found.append(draft("turn_ended", {"status": "completed"}, agent, "turn-1"))
    return found


def _ids(rng: Random, start: float) -> Iterator[tuple[str, float]]:
    for step in counting():
        at = start + 2.0 * step
        yield time_ordered_id(at, rng.randbytes(6)), at


def _key(number: int) -> SessionKey:
    return session_key(f"session-{number:06}", app=DEFAULT_APP, user=user(number))


def _make_bundles(folder: Path, session_count: int) -> None:
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(_make_piece, folder, session_count), range(0, session_count, PIECE)))


def _make_piece(folder: Path, session_count: int, first: int) -> None:
    for number in range(first, min(first + PIECE, session_count)):
        key = _key(number)
        log = SqliteLog(Database.in_memory(is_shared=False), durability="process", lock_path=_no_lock)
        try:
            log.create(key, drafts(number))
            # All that the open session asks of its store here is the log, and that is what this is.
            _live(cast(Store, log), key).save_caches()
            image = log.database.image()
        finally:
            log.close()
        place_file(folder / f"{file_stem(key)}.playhead", image, durable=False)


def _fill(url: str, session_count: int) -> None:
    with playhead.open(url) as sessions:
        for number in range(session_count):
            key = _key(number)
            sessions.store.create(key, drafts(number))
            _live(sessions.store, key).save_caches()


def _live(store: Store, key: SessionKey) -> Live:
    return Live(store, key, clock=lambda: FIRST_AT, entropy=os.urandom)


def _no_lock(number: int) -> Path:
    raise AssertionError("nobody takes a lease on a session in memory")
