"""A second reader of the files: written from docs/file-format.md alone, with nothing of Playhead in it.

`python second_reader.py PATH` prints as JSON what it finds in a directory of bundles, one bundle or a shared file. It
runs as a process of its own, since two SQLite libraries in one process lose each other's locks.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

APPLICATION_ID = 0x504C4844
SCHEMA_VERSION_MAX = EVENT_VERSION_MAX = 1
STORE_LOG = "_store.playhead"
SHARED_SCOPES = {"user", "app"}
DEVICES = {"con", "prn", "aux", "nul"} | {f"{name}{digit}" for name in ("com", "lpt") for digit in range(10)}

# The values of JSON: what a body holds is for its kind to say.
Document = dict[str, Any]


class Refused(Exception):
    """The file is not one that this reader may read."""


class Event(NamedTuple):
    """One row of `events`."""

    seq: int
    parent: int
    id: str
    at: float
    kind: str
    agent: str | None
    turn: str | None
    scope: str | None
    body: str | None
    salt: bytes | None
    digest: bytes | None
    hash: bytes
    fact: int | None

    @property
    def document(self) -> Document:
        """The body's object, `{}` once it was redacted."""
        document: Document = json.loads(self.body) if self.body is not None else {}
        return document


def read(path: Path) -> Document:
    """Return {`sessions`: in key order, `problems`: {file name: why it was refused}}."""
    files = [path]
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.name.endswith(".playhead"))
        files = [path / name for name in names if name != STORE_LOG and not name.startswith(".")]
    sessions: list[Document] = []
    problems = {}
    for file in files:
        try:
            sessions += read_file(file)
        except (Refused, sqlite3.DatabaseError) as error:
            problems[file.name] = str(error)
    return {"sessions": sorted(sessions, key=lambda one: (one["app"], one["user"], one["id"])), "problems": problems}


def read_file(file: Path) -> list[Document]:
    """Return what the sessions of one database say."""
    with closing(opened(file)) as database:
        database.execute("BEGIN")
        is_shared = bool(database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'notes'").fetchall())
        shared_state = notes(file, database if is_shared else None)
        columns = "number, app, user, id, event_version"
        rows = database.execute(f"SELECT {columns} FROM sessions WHERE NOT (app = '' AND user = '')").fetchall()
        return [
            read_session(database, row, side_files(file, row[1:4], is_shared=is_shared), shared_state) for row in rows
        ]


def opened(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise Refused("it is no database of Playhead")
        if version > SCHEMA_VERSION_MAX:
            raise Refused(f"its schema has version {version}")
    except BaseException:
        database.close()
        raise
    return database


def read_session(
    database: sqlite3.Connection, row: tuple[Any, ...], sides: tuple[Path, Path], shared_state: Document
) -> Document:
    number, app, user, id, version = row
    if version > EVENT_VERSION_MAX:
        raise Refused(f"its events have version {version}")
    events = events_of(database, number)
    head = head_of(events)
    path = path_to(head, events)
    artifacts, stream = sides
    return {
        "app": app,
        "user": user,
        "id": id,
        "event_count": len(events),
        "head": head,
        "path": [event.seq for event in path],
        "texts": texts(path),
        "facts": facts(events),
        "state": state(path) | shared_with(shared_state, app, user),
        "first_bad_seq": first_bad_seq(events),
        "last_hash": events[-1].hash.hex(),
        "artifacts": {file.name: is_whole(file) for file in sorted(artifacts.glob("sha256-*"))},
        "streams": unfinished(stream, {event.id for event in events}),
        "fields": fields(events),
    }


def events_of(database: sqlite3.Connection, number: int) -> list[Event]:
    columns = "row, parent, id, at, kind, agent, turn, scope, body, salt, digest, hash, fact"
    query = f"SELECT {columns} FROM events WHERE row BETWEEN ? AND ? ORDER BY row"
    rows = database.execute(query, (number << 32, (number << 32) + 2**32 - 1))
    return [Event(row - (number << 32), *rest) for row, *rest in rows]


# The log.


def head_of(events: Sequence[Event]) -> int:
    last = events[-1]
    return last.parent if last.fact else last.seq


def path_to(head: int, events: Sequence[Event]) -> list[Event]:
    by_seq = {event.seq: event for event in events}
    path = []
    while head:
        path.append(by_seq[head])
        head = by_seq[head].parent
    return path[::-1]


def first_bad_seq(events: Sequence[Event]) -> int | None:
    """Return where the chain breaks first, or None where it holds."""
    hash = bytes(32)
    for number, event in enumerate(events, start=1):
        hash = hash_of(event, after=hash)
        if event.seq != number or event.hash != hash:
            return event.seq
    return None


def hash_of(event: Event, *, after: bytes) -> bytes:
    digest = event.digest if event.body is None else sha256((event.salt or b"") + event.body.encode())
    names = b"".join(map(field, (event.id, event.kind, event.agent, event.turn, event.scope)))
    return sha256(after + struct.pack(">QQd", event.seq, event.parent, event.at) + names + (digest or b""))


def field(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">I", 0xFFFFFFFF)
    return struct.pack(">I", len(text.encode())) + text.encode()


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def fields(events: Iterable[Event]) -> dict[str, list[str]]:
    """Return the names of all fields that occur in the bodies of each kind."""
    found: dict[str, set[str]] = {}
    for event in events:
        found.setdefault(event.kind, set()).update(event.document)
    return {kind: sorted(names) for kind, names in sorted(found.items())}


# What the events say.


def texts(path: Iterable[Event]) -> list[str]:
    """Return the texts of the main conversation, as it is without compactions."""
    found: list[str] = []
    replies: dict[tuple[str, str | None, str | None], int] = {}
    for event in path:
        body = event.document
        if event.scope is not None:
            continue
        if event.kind == "trigger_fired" and body.get("prompt"):
            found.append(body["prompt"])
        elif event.kind == "message":
            text = "".join(part["content"] for part in body.get("parts", []) if part["type"] == "text")
            index = len(found)
            if body.get("role") == "assistant":
                index = replies.setdefault((body.get("message_id", event.id), event.agent, event.turn), index)
            if index < len(found):
                found[index] += text
            else:
                found.append(text)
    return found


def facts(events: Iterable[Event]) -> Document:
    found: Document = {"title": None, "labels": [], "status": "open"}
    for event in events:
        if event.kind == "session_changed":
            found |= {name: value for name, value in event.document.items() if name in found}
    return found | {"title": found["title"] or None}


def state(path: Iterable[Event]) -> dict[str, Document]:
    """Return the state that is on the path: scope to values."""
    found: dict[str, Document] = {}
    for event in path:
        body = event.document if event.kind in ("session_started", "state_changed") else {}
        for scope, keys in body.get("removed", {}).items():
            found[scope] = {key: value for key, value in found.get(scope, {}).items() if key not in keys}
        for scope, values in {**body.get("state", {}), **body.get("delta", {})}.items():
            found[scope] = found.get(scope, {}) | values
    return {scope: values for scope, values in found.items() if values and scope not in SHARED_SCOPES}


# The store log.


def notes(file: Path, database: sqlite3.Connection | None) -> dict[str, Document]:
    """Return the newest notes, topic to name to body, of this file or of the store log beside a bundle."""
    beside = file.with_name(STORE_LOG)
    if database is None:
        if not beside.exists():
            return {}
        with closing(opened(beside)) as store_log:
            return notes(beside, store_log)
    found: dict[str, Document] = {}
    for topic, name, body in database.execute("SELECT topic, name, body FROM notes ORDER BY position"):
        found.setdefault(topic, {})[name] = json.loads(body)
    return found


def shared_with(notes: dict[str, Document], app: str, user: str) -> dict[str, Document]:
    """Return the state that an app's and a user's sessions share."""
    found = {}
    for scope, owner in (("user", [app, user]), ("app", [app])):
        topic = f"state:{scope}:{json.dumps(owner, separators=(',', ':'), ensure_ascii=False)}"
        values = {name: body["value"] for name, body in notes.get(topic, {}).items() if "value" in body}
        if values:
            found[scope] = values
    return found


# The side files.


def side_files(file: Path, key: Sequence[str], *, is_shared: bool) -> tuple[Path, Path]:
    """Return the folder of the artifacts and the file of the streams."""
    if is_shared:
        stem = stem_of(*key)
        folder, streams = (file.with_name(f"{file.name}.{what}") for what in ("artifacts", "streams"))
        return folder / stem, streams / f"{stem}.stream"
    stem = file.name.removesuffix(".playhead")
    return file.with_name(f"{stem}.artifacts"), file.with_name(f"{stem}.stream")


def stem_of(app: str, user: str, id: str) -> str:
    is_plain = re.fullmatch(r"[a-z0-9]([a-z0-9._-]*[a-z0-9_-])?", id) and len(id) <= 100
    if is_plain and app == user == "default" and id.partition(".")[0] not in DEVICES:
        return id
    slug = re.sub("[^a-z0-9]+", "-", id.lower()).strip("-")[:40] or "session"
    return f"{slug}~{hashlib.sha256(chr(0).join((app, user, id)).encode()).hexdigest()[:20]}"


def is_whole(artifact: Path) -> bool:
    return artifact.name == f"sha256-{hashlib.sha256(artifact.read_bytes()).hexdigest()}"


def unfinished(stream: Path, ids: set[str]) -> list[Document]:
    """Return the messages that were begun, are not ended and are not in the log: `id`, `header`, `chunks`."""
    found: dict[int, Document] = {}
    for line in stream.read_bytes().split(b"\n") if stream.exists() else ():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, list) and said[0] in found:
            found[said[0]]["chunks"].append([said[2] if len(said) > 2 else "text", said[1]])
        elif isinstance(said, dict) and "begin" in said:
            found[said["begin"]] = {"id": said["id"], "header": said["header"], "chunks": []}
        elif isinstance(said, dict):
            found.pop(said["end"], None)
    return [message for message in found.values() if message["id"] not in ids]


if __name__ == "__main__":
    json.dump(read(Path(sys.argv[1])), sys.stdout)
