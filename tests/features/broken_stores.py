"""Stores broken in every way that a doctor should tell: what is done to a whole one, and what is then found."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

import playhead
from tests.conftest import PROJECT

PAGE_BYTES = 4_096
TURNS = 12
ARTIFACT = b"\x89PNG and more"
ARTIFACT_NAME = f"sha256-{hashlib.sha256(ARTIFACT).hexdigest()}"
LONG_AGO = 1_600_000_000.0
SESSIONS = ("home-0001", "play-0001", "work-0001")


@dataclass(frozen=True)
class Store:
    """A store to break: where it is, and the files of its session `work-0001`."""

    scheme: str
    place: Path

    @property
    def url(self) -> str:
        return f"{self.scheme}:{self.place}"

    @property
    def database(self) -> Path:
        return self.place / "work-0001.playhead" if self.scheme == "bundles" else self.place

    @property
    def artifacts(self) -> Path:
        if self.scheme == "bundles":
            return self.place / "work-0001.artifacts"
        return Path(f"{self.place}.artifacts") / "work-0001"

    def beside(self, name: str) -> Path:
        """Return a path for something that lies in the store, or beside its file."""
        return self.place / name if self.scheme == "bundles" else Path(f"{self.place}.{name}")


@dataclass(frozen=True)
class Broken:
    """A way to break a store. kind: of the finding. how: what is done to it, once it is closed. is_mended: `--fix`
    leaves no fault. needs_deep: only `--deep` sees it."""

    kind: str
    how: Callable[[Store], object]
    is_mended: bool = True
    needs_deep: bool = False


def made_store(folder: Path, scheme: str) -> Store:
    """Make a store of three sessions with turns, tools, a branch, shared state, an artifact, an index, and a session in
    the trash."""
    store = Store(scheme, folder / ("store" if scheme == "bundles" else "store.db"))
    with playhead.open(store.url) as sessions:
        for name in SESSIONS:
            with sessions.create(name, title=f"About {name}") as session:
                for number in range(TURNS):
                    with session.turn(f"Why does {name} fail, attempt {number}?") as turn:
                        call = turn.tool_call("run_tests", {"path": f"tests/{number}"})
                        turn.tool_result(call, {"output": f"connection reset {number} " * 40})
                        turn.say(f"Because of reason {number}. " * (400 if number == 5 else 20))
                session.rewind(turn=TURNS)
                with session.turn("Try again") as turn:
                    turn.say("Done.")
                session.set_state({"language": "en", "theme": "dark"}, scope="user")
                session.save_artifact("plot.png", ARTIFACT)
        sessions.search("connection reset")
        sessions.create("gone-0001").close()
        sessions.trash("gone-0001")
    return store


def damage(path: Path, *statements: str, how: str = "as it is") -> None:
    """Run SQL on a database without the guards of its schema, in a process of its own."""
    command = [sys.executable, "-m", "tests.features.damage", str(path), how, *statements]
    subprocess.run(command, cwd=PROJECT, check=True)


def damage_index(path: Path, statement: str) -> None:
    """Run SQL on the text index, which Python's own SQLite may be too old to know."""
    database = apsw.Connection(str(path))
    try:
        database.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        database.execute(statement)
    finally:
        database.close()


def overwrite(path: Path, start: int, content: bytes) -> None:
    """Change bytes of a file in place."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)


def pages_of(path: Path, name: str, kind: str = "leaf") -> list[int]:
    """Return the pages of a table or an index, counted from 1."""
    database = apsw.Connection(str(path))
    try:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path"
        return [int(row[0]) for row in database.execute(query, (name, kind))]
    finally:
        database.close()


def zero_pages(path: Path, pages: list[int]) -> None:
    for page in pages:
        overwrite(path, (page - 1) * PAGE_BYTES, bytes(PAGE_BYTES))


def kill_a_writer(store: Store) -> None:
    """Let a process be killed in a turn of `work-0001`: its write-ahead log, lock and lease stay."""
    program = (
        "import os, signal, sys, playhead\n"
        "session = playhead.open(sys.argv[1]).get('work-0001')\n"
        "turn = session.turn('Once more'); turn.__enter__(); turn.say('Wait.')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program, store.url], cwd=PROJECT, check=False)
    assert answer.returncode == -9


def _lose_write_ahead_log(store: Store) -> None:
    kill_a_writer(store)
    Path(f"{store.database}-wal").unlink()


def _lose_a_database(store: Store) -> None:
    """Remove a database whose writer died, and leave its write-ahead log."""
    kill_a_writer(store)
    store.database.unlink()


def _foreign(path: Path) -> None:
    path.unlink(missing_ok=True)
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE cookies (host TEXT, value TEXT)")
    database.close()
    path.chmod(0o600)


def _old(path: Path) -> Path:
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def _folder_with(path: Path, name: str, content: bytes) -> None:
    path.mkdir(parents=True, mode=0o700, exist_ok=True)
    _written(path / name, content)
    _old(path)


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return _old(path)


def _events_leaf(store: Store, at: float) -> list[int]:
    leaves = pages_of(store.database, "events")
    return [leaves[int(len(leaves) * at)]]


_OF_WORK = "row >> 32 = (SELECT number FROM sessions WHERE id = 'work-0001')"
_INDEX_AGAIN = "CREATE UNIQUE INDEX events_by_id ON events (row >> 32, id)"

ANY: dict[str, Broken] = {
    "a first page of zeros": Broken("damaged database", lambda one: zero_pages(one.database, [1])),
    "a page of zeros in the log": Broken("events lost", lambda one: zero_pages(one.database, _events_leaf(one, 0.5))),
    "a page of noise in the log": Broken(
        "events lost",
        lambda one: overwrite(one.database, (_events_leaf(one, 0.5)[0] - 1) * PAGE_BYTES, b"\xa7" * PAGE_BYTES),
    ),
    "a root of the log that is gone": Broken(
        "damaged database", lambda one: zero_pages(one.database, pages_of(one.database, "events", "internal")[:1])
    ),
    "an index over the events that is gone": Broken(
        "damaged database", lambda one: zero_pages(one.database, pages_of(one.database, "events_by_id")[:1])
    ),
    "a file that was cut short": Broken(
        "damaged database", lambda one: os.truncate(one.database, one.database.stat().st_size * 2 // 3)
    ),
    "a file whose header is another one's": Broken(
        "damaged database", lambda one: overwrite(one.database, 0, b"not SQLite at all")
    ),
    "a text file": Broken(
        "not a database", lambda one: one.database.write_text("# A session\n" * 400), is_mended=False
    ),
    "an empty file": Broken("not a database", lambda one: os.truncate(one.database, 0), is_mended=False),
    "a database of another program": Broken("foreign database", lambda one: _foreign(one.database), is_mended=False),
    "a file of a newer version": Broken(
        "newer format", lambda one: damage(one.database, "PRAGMA user_version = 99"), is_mended=False
    ),
    "a trigger of somebody else's": Broken(
        "altered schema",
        lambda one: damage(
            one.database, "CREATE TRIGGER spy AFTER INSERT ON events BEGIN DELETE FROM snapshots; END", _INDEX_AGAIN
        ),
    ),
    "a table that was dropped": Broken("damaged database", lambda one: damage(one.database, "DROP TABLE snapshots")),
    "a row of a session that is gone": Broken(
        "row lost", lambda one: damage(one.database, "DELETE FROM sessions WHERE id = 'work-0001'", _INDEX_AGAIN)
    ),
    "a page of sessions that is gone": Broken(
        "damaged database", lambda one: zero_pages(one.database, pages_of(one.database, "sessions")[:1])
    ),
    "an event that was deleted": Broken(
        "events lost",
        lambda one: damage(one.database, f"DELETE FROM events WHERE {_OF_WORK} AND row & 4294967295 = 9", _INDEX_AGAIN),
    ),
    "an event that was edited": Broken(
        "events changed",
        lambda one: damage(
            one.database,
            f"UPDATE events SET body = replace(body, 'attempt 2', 'attempt 3') WHERE {_OF_WORK} AND kind = 'message'",
            _INDEX_AGAIN,
        ),
        is_mended=False,
    ),
    "a parent that leads elsewhere": Broken(
        "events changed",
        lambda one: damage(
            one.database,
            f"UPDATE events SET parent = 3 WHERE {_OF_WORK} AND row & 4294967295 = 9",
            _INDEX_AGAIN,
            how="hashed anew",
        ),
        is_mended=False,
    ),
    "an event that is no text": Broken(
        "events lost",
        lambda one: damage(
            one.database, f"UPDATE events SET kind = x'00' WHERE {_OF_WORK} AND row & 4294967295 = 9", _INDEX_AGAIN
        ),
    ),
    "a snapshot that says something else": Broken(
        "snapshot",
        lambda one: damage(
            one.database, "UPDATE snapshots SET document = replace(document, 'coordinator', 'somebody')", _INDEX_AGAIN
        ),
    ),
    "an index with a damaged block": Broken(
        "damaged database",
        lambda one: damage_index(one.database, "UPDATE text_index_data SET block = x'0102' WHERE id > 10"),
    ),
    "an index that is gone": Broken("text index", lambda one: damage_index(one.database, "DROP TABLE text_index")),
    "an index that lacks an event": Broken(
        "text index",
        lambda one: damage_index(
            one.database, "DELETE FROM text_index WHERE rowid = (SELECT min(id) FROM text_index_docsize)"
        ),
        needs_deep=True,
    ),
    "an index ahead of the log": Broken(
        "text index", lambda one: damage(one.database, "UPDATE sessions SET indexed_seq = 9999", _INDEX_AGAIN)
    ),
    "a listing row that is no JSON": Broken(
        "listing row", lambda one: damage(one.database, "UPDATE sessions SET summary = '{'", _INDEX_AGAIN)
    ),
    "a listing row that says something else": Broken(
        "listing row",
        lambda one: damage(
            one.database, "UPDATE sessions SET summary = replace(summary, 'About', 'Not about')", _INDEX_AGAIN
        ),
        needs_deep=True,
    ),
    "an artifact that is gone": Broken(
        "artifact missing", lambda one: (one.artifacts / ARTIFACT_NAME).unlink(), is_mended=False
    ),
    "an artifact that was cut short": Broken(
        "artifact changed", lambda one: os.truncate(one.artifacts / ARTIFACT_NAME, 3), is_mended=False
    ),
    "an artifact with other bytes": Broken(
        "artifact changed",
        lambda one: overwrite(one.artifacts / ARTIFACT_NAME, 0, b"\x00"),
        is_mended=False,
        needs_deep=True,
    ),
    "files that others can read": Broken("permissions", lambda one: one.database.chmod(0o644)),
    "files that their owner cannot write": Broken("permissions", lambda one: one.database.chmod(0o400)),
    "a write-ahead log that is gone": Broken("write-ahead log missing", _lose_write_ahead_log, is_mended=False),
}

BUNDLES: dict[str, Broken] = {
    "a write-ahead log without its database": Broken("orphan", _lose_a_database),
    "artifacts of no session": Broken(
        "orphan", lambda one: _folder_with(one.place / "lost-0001.artifacts", ARTIFACT_NAME, ARTIFACT)
    ),
    "a stream of no session": Broken("orphan", lambda one: _written(one.place / "lost-0001.stream", b"{}\n")),
    "the same session twice": Broken(
        "twice", lambda one: shutil.copy(one.database, one.place / "copy.playhead"), is_mended=False
    ),
    "a deletion that was cut off": Broken(
        "emptied", lambda one: damage(one.database, "DELETE FROM sessions", "DELETE FROM events", _INDEX_AGAIN)
    ),
    "a store log that is gone": Broken("store log", lambda one: (one.place / "_store.playhead").unlink()),
    "a store log with a page of zeros": Broken("store log", lambda one: zero_pages(one.place / "_store.playhead", [1])),
    "a folder in a bundle's place": Broken(
        "not a database", lambda one: (one.place / "odd-0001.playhead").mkdir(mode=0o700), is_mended=False
    ),
    "a damaged session in the trash": Broken(
        "trash",
        lambda one: overwrite(next((one.place / ".trash").glob("*/*.playhead")), 0, b"x" * 4_096),
        is_mended=False,
    ),
}

ONE_FILE: dict[str, Broken] = {
    "artifacts of no session": Broken(
        "orphan", lambda one: _folder_with(Path(f"{one.place}.artifacts") / "lost-0001", ARTIFACT_NAME, ARTIFACT)
    ),
}

ALL: dict[str, tuple[str, Broken]] = {
    f"{scheme}: {name}": (scheme, broken)
    for scheme, own in (("bundles", BUNDLES), ("sqlite", ONE_FILE))
    for name, broken in (ANY | own).items()
}
"""Every way, for both kinds of store on disk."""
