"""Verbs to be killed in: what each does, how it is done again afterwards, and what must have come of it then."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import playhead
from playhead.errors import SessionExists, SessionNotFound, StaleWriter
from playhead.features.live import position_at
from playhead.features.trash import Trashed
from playhead.formats.imported import ImportedEvent
from playhead.model.ids import session_key
from playhead.session import Sessions
from playhead.stores.open import open_store
from tests.promises.line import Line
from tests.promises.steps import Steps

IMPORT_AT = 1_767_225_600.0
IMPORTED_COUNT = 430
CHART = b"\x89PNG" + bytes(range(256)) * 40


def prepare(line: Line, *, url: str) -> None:
    """Fill a store: sessions to fork, resume, delete and search, one of them cut off in a turn by the end of this."""
    sessions = playhead.open(url)
    parent = sessions.create("parent", title="Flaky test", state={"runs": 1})
    for number in range(3):
        with parent.turn(f"Run the tests, round {number}.") as turn:
            turn.tool_result(turn.tool_call("run_tests", {"round": number}), {"failed": number})
            turn.say(f"{number} failed: connection reset.")
    parent.save_artifact("chart.png", CHART, media_type="image/png")
    parent.save_artifact("notes.md", b"# Notes")
    parent.rewind(turn=3)
    parent.close()
    sessions.ingest("imported", imported(300), at=IMPORT_AT, title="From elsewhere")
    other = sessions.get("imported")
    with other.turn("Go on here.") as turn:
        turn.say("Gladly.")
    other.close()
    old = sessions.create("old", title="Old")
    with old.turn("What was it?") as turn:
        turn.say("Connection reset.")
    old.save_artifact("old.png", CHART)
    sessions.store.streams.begin(old.key, "m1", {"at": IMPORT_AT})
    old.close()
    sessions.trash("old")
    cut = sessions.create("cut off")
    turn = cut.turn("Why does test_upload fail?")
    turn.tool_call("run_tests", {"path": "tests/upload"}, id="call-1")
    turn.job("build", id="job-1")
    turn.stream("It fails because ")
    run = turn.subagent("researcher", "Look at the log.").__enter__()
    run.stream("The log says ", part="reasoning")
    run.stream("connection reset")
    turn.stream("the network ")
    line.say("prepared")


def imported(count: int) -> list[ImportedEvent]:
    """Return a transcript of so many events from another program, with an edited prompt two thirds through."""
    events = []
    for number in range(count):
        role = "assistant" if number % 2 else "user"
        body = {"role": role, "parts": [{"type": "text", "content": f"line {number}: deploy key"}]}
        after = f"import-{number - 20}" if number in (200, 401) else None
        turn = f"import-turn-{number // 2}"
        events.append(
            ImportedEvent("message", body, f"import-{number}", IMPORT_AT + number, agent=role, turn=turn, after=after)
        )
    return events


def run(line: Line, *, url: str, folder: str, verb: str, die_at: int) -> None:
    """Do a verb and die before its n-th step, if it has so many; else say how many it has."""
    steps = Steps(folder, die_at=die_at)
    sessions = Sessions(open_store(url, vfs=steps.name))
    steps.armed = True
    VERBS[verb](sessions)
    sessions.close()
    steps.armed = False
    line.say("steps", steps.count)


def _create(sessions: Sessions) -> None:
    with contextlib.suppress(SessionExists):
        sessions.create("new", title="New", state={"runs": 0}, labels=["ci"]).close()


def _fork(sessions: Sessions) -> None:
    with contextlib.suppress(SessionExists):
        sessions.get("parent").fork(id="new").close()


def _save_artifact(sessions: Sessions) -> None:
    with sessions.get("parent") as session:
        if "report.md" not in session.artifacts():
            session.save_artifact("report.md", b"# Report\n" * 500, media_type="text/markdown")


def _rename(sessions: Sessions) -> None:
    with sessions.get("parent") as session:
        if session.title != "Renamed":
            session.rename("Renamed")


def _delete(sessions: Sessions) -> None:
    with contextlib.suppress(SessionNotFound):
        sessions.delete("parent")


def _replace(sessions: Sessions) -> None:
    """Delete a session and begin another under its id."""
    with contextlib.suppress(SessionNotFound):
        if sessions.get("parent").title == "Flaky test":
            sessions.delete("parent")
    with contextlib.suppress(SessionExists):
        sessions.create("parent", title="Begun again").close()


def _trash(sessions: Sessions) -> None:
    with contextlib.suppress(SessionNotFound):
        sessions.trash("parent")


def _trash_and_create(sessions: Sessions) -> None:
    """Trash a session and begin another under its id."""
    with contextlib.suppress(SessionNotFound):
        if sessions.get("parent").title == "Flaky test":
            sessions.trash("parent")
    with contextlib.suppress(SessionExists):
        sessions.create("parent", title="Begun again").close()


def _restore(sessions: Sessions) -> None:
    for one in sessions.trashed():
        if one.id == "old":
            sessions.restore(one.trash_id)


def _restore_as_another(sessions: Sessions) -> None:
    for one in sessions.trashed():
        if one.id == "old":
            sessions.restore(one.trash_id, id="new")


def _put_records(sessions: Sessions) -> None:
    """Copy a log in two pieces, with its artifacts."""
    store, source, target = sessions.store, session_key("parent"), session_key("copy")
    records = store.records(source)
    artifacts = [store.artifacts.get(source, hash) for hash in store.artifacts.hashes(source)]
    with contextlib.suppress(SessionExists):
        sessions.put_records("copy", records[:9], expected_seq=0, artifacts=artifacts[:1])
    with contextlib.suppress(StaleWriter):
        sessions.put_records("copy", records[9:], expected_seq=9, artifacts=artifacts[1:])
    assert store.tip(target).seq == len(records)


VERBS: Mapping[str, Callable[[Sessions], object]] = {
    "create": _create,
    "fork": _fork,
    "import": lambda sessions: sessions.ingest("new", imported(250), at=IMPORT_AT, title="New", labels=["import"]),
    "import more": lambda sessions: sessions.ingest("imported", imported(IMPORTED_COUNT), at=IMPORT_AT),
    "resume": lambda sessions: sessions.resume("cut off").close(),
    "search": lambda sessions: sessions.search("connection"),
    "save an artifact": _save_artifact,
    "rename": _rename,
    "delete": _delete,
    "delete and create": _replace,
    "trash": _trash,
    "trash and create": _trash_and_create,
    "restore": _restore,
    "restore as another": _restore_as_another,
    "purge": lambda sessions: sessions.empty_trash(),
    "put records": _put_records,
}
"""Each of them can be done again after a kill, and the store is then as if it had been done once, undisturbed."""


def outcome(url: str, folder: Path) -> dict[str, Any]:
    """Return all that a person could see of a store, without ids and times of events, which are never the same."""
    with playhead.open(url) as sessions:
        rows = sessions.list(sort="title", limit=1_000).items
        found: dict[str, Any] = {row.id: row.problem or _seen(sessions, row.id) for row in rows}
        hits = sessions.search("connection OR deploy OR report", k=1_000)
        trash = sessions.trashed()
        found["trash"] = [(one.id, one.title, one.event_count, one.problem) for one in trash]
        found["hits"] = (sorted((hit.session, hit.snippet.text) for hit in hits.hits), hits.problems)
    # Lock files are empty and mean nothing while nobody holds their lock; the others are SQLite's own.
    ignored = (".lock", ".making", "-wal", "-shm")
    found["files"] = sorted(
        _without_trash_ids(os.path.relpath(os.path.join(parent, name), folder), trash)
        for parent, _, names in os.walk(folder)
        for name in names
        if not name.endswith(ignored) and not parent.endswith(".locks")
    )
    return found


def _without_trash_ids(path: str, trash: Sequence[Trashed]) -> str:
    """Return a path with the numbers of the trashings in place of their ids, which are never the same."""
    for number, one in enumerate(trash):
        path = re.sub(f"{one.trash_id}(~[0-9a-f]{{20}})?", f"trashed-{number}", path)
    return path


def _seen(sessions: Sessions, id: str) -> dict[str, Any]:
    session = sessions.get(id)
    key = session_key(id)
    replayed = position_at(sessions.store, key, session.head).fold
    return {
        "title": session.title,
        "labels": session.facts.labels,
        "transcript": [(entry.kind, getattr(entry, "text", "")) for entry in session.transcript()],
        "conversation": [(message.role, message.text, message.interrupted) for message in session.conversation()],
        "head": _text(session.event(session.head)),
        "branches": sorted(_text(session.event(branch.tip_seq)) for branch in session.branches()),
        "state": session.state,
        "artifacts": {name: session.artifact(name) for name in session.artifacts()},
        "problems": sessions.verify(id).problems,
        "open": (replayed.open_turn, sorted(replayed.named("call")), sorted(replayed.named("job"))),
        "streams": sessions.store.streams.left(key),
        "holder": sessions.store.holder(key),
    }


def _text(event: playhead.Event) -> str:
    return f"{event.kind} {event.body.get('parts') or event.body.get('status') or ''}"
