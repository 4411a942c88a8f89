"""The files can be read without Playhead: a reader written from the format's page finds what the library says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest

import playhead
from playhead.formats.claude_code import discover, read
from playhead.formats.importing import POSITIONS
from playhead.model.event import _REQUIRED
from playhead.model.ids import SessionKey
from playhead.session import PURGED, Session, Sessions
from playhead.stores.names import file_stem
from playhead.views.conversation import conversation_of_path
from tests.conftest import PROJECT
from tests.promises.children import Nursery
from tests.promises.places import Place

READER = Path(__file__).with_name("second_reader.py")
PAGE = PROJECT / "docs" / "file-format.md"
HALF = "half \ud83d of a pair"

HOSTILE_KEYS = (
    ("default", "default", "plain-id_2.txt"),
    ("default", "default", "../../etc/passwd"),
    ("default", "default", "con.txt"),
    ("default", "default", "com7"),
    ("default", "default", "console"),
    ("default", "default", "ends with a dot."),
    ("default", "default", "Upper"),
    ("default", "default", "upper"),
    ("default", "default", "\u0130stanbul \u212a"),
    ("default", "default", "日本語"),
    ("default", "default", "'; DROP TABLE events; --"),
    ("default", "default", "line\nfeed~"),
    ("default", "default", "x" * 512),
    ("default", "default", "x" * 100),
    ("default", "default", "x" * 101),
    ("default", "default", "a-" * 30),
    ("shop", 'Zoë "the boss" \\', "plain-id_2.txt"),
    ("../shop", "default", "plain-id_2.txt"),
)


def second_reading(path: Path) -> dict[str, Any]:
    """Return what the second reader, in a process of its own, finds at a path."""
    done = subprocess.run([sys.executable, "-I", str(READER), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def first_reading(sessions: Sessions) -> list[dict[str, Any]]:
    """Return the same of the library, in the same order."""
    keys = [row.key for row in sessions.store.sessions(limit=1_000)]
    return [_answers(sessions, key) for key in keys]


def _answers(sessions: Sessions, key: SessionKey) -> dict[str, Any]:
    session = sessions.get(key.id, app=key.app, user=key.user)
    verified = session.verify()
    assert verified.problems == ()
    left = sessions.store.streams.left(key)
    logged = sessions.store.seq_of(key, [stream.id for stream in left])
    path = session.path()
    without_compactions = [event for event in path if event.kind != "compaction"]
    return {
        "app": key.app,
        "user": key.user,
        "id": key.id,
        "event_count": session.seq,
        "head": session.head,
        "path": [event.seq for event in path],
        "texts": [message.text for message in conversation_of_path(without_compactions, sealed=False)],
        "facts": {
            "title": session.title,
            "labels": list(session.facts.labels),
            "status": session.facts.status,
        },
        "state": session.state,
        "first_bad_seq": None,
        "last_hash": verified.head_hash,
        "artifacts": dict.fromkeys(sessions.store.artifacts.hashes(key), True),
        "streams": [
            {"id": stream.id, "header": stream.header, "chunks": [list(chunk) for chunk in stream.chunks]}
            for stream in left
            if stream.id not in logged
        ],
        "fields": _fields(session),
    }


def _fields(session: Session) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for event in session.events():
        found.setdefault(event.kind, set()).update(event.body)
    return {kind: sorted(names) for kind, names in sorted(found.items())}


class _Timer:
    """A trigger, so that one can be recorded."""

    def to_resume_dict(self) -> dict[str, Any]:
        return {"every_s": 60}

    @classmethod
    def from_resume_dict(cls, data: dict[str, Any]) -> _Timer:
        return cls()


@pytest.fixture
def rich(place: Place) -> Iterator[Sessions]:
    """A store with everything in it, open, with a turn going on and its message half written."""
    with place.open() as sessions:
        _record_everything(sessions)
        for number, (app, user, id) in enumerate(HOSTILE_KEYS):
            with sessions.create(id, app=app, user=user, title=f"Number {number}") as session:
                session.save_artifact("chart.png", f"chart {number}".encode())
                session.set_state({"rank": number, "theme": None}, scope=("user", "app")[number % 2])
                session.append("message", {"role": "user", "parts": [{"type": "text", "content": id}]}, agent="user")
        cut = sessions.create("cut-off")
        turn = cut.turn("Why does test_upload fail?")
        run = turn.subagent("researcher", "Look at the log.").__enter__()
        run.stream("The log says: ")
        run.stream(HALF)
        turn.stream("Let me see. ", part="reasoning")
        turn.stream("It fails ")
        turn.stream(HALF)
        yield sessions
        run.end("cancelled")
        turn.end("cancelled")


def _record_everything(sessions: Sessions) -> None:
    types = playhead.TriggerTypes({"timer": _Timer})
    session = sessions.create("rich", title="Flaky test", labels=["ci"], cwd="/srv", state={"runs": 0}, triggers=types)
    with session.turn("Why does test_upload fail?") as turn:
        turn.system(f"You are careful. {HALF}, \0, grüße, 日本語")
        turn.think(f"Let me look. {HALF}")
        turn.say("I run it.", usage={"input_tokens": 10, "output_tokens": 3}, model="m", finish_reason="stop")
        turn.tool_result(turn.tool_call("run_tests", {"seed": 2**70}), {"failed": [1, 2.5, None]})
        turn.tool_result(turn.tool_call("fetch"), "no network", is_error=True)
        turn.stream("It times ")
        turn.stream("out.")
        with turn.subagent("researcher", "Find the log.") as run:
            run.say("Here it is.")
            with run.subagent("reader", "Read it."):
                pass
        turn.job("build", {"target": "all"}).done({"size": 3})
        turn.job("deploy").fail("no key")
        turn.set_state({"runs": 1, "temp:cursor": 5, HALF: HALF})
        turn.set_state({"model": "m"}, scope="agent:coordinator")
        turn.inject("Be brief.", source="hook")
        turn.fire("timer-1", prompt="It is nine.", payload={"at": 9})
        turn.fire("timer-1")
        turn.say(f"It is the network: {HALF}, \0, grüße, 日本語.")
    session.remove_trigger(session.add_trigger(_Timer()))
    session.send("plans", {"step": 1}, sender="coordinator", reply_to="x")
    session.save_artifact("report.md", b"# Report", media_type="text/markdown")
    session.save_artifact("report.md", b"# Report 2", media_type="text/markdown")
    asked = {"interrupt": "ask-1", "reason": "confirmation", "question": "Deploy?", "choices": ["yes", "no"]}
    session.append("interrupt_requested", asked | {"checkpoint": {"step": 3}})
    session.append("interrupt_answered", {"interrupt": "ask-1", "status": "resolved", "answer": "yes"})
    # The turn that is rewound away, and what is said in its place.
    with session.turn("And then?") as turn:
        turn.say("Then it retries.")
        turn.set_state({"runs": 99})
    session.rewind(turn=-1, why="edit")
    with session.turn("And what then?", label="terminal") as turn:
        turn.say("Then it gives up.")
        turn.set_state({"lost": True}, removed=["runs"])
        turn.note("model_changed", to="m2")
    first, last = session.path()[2], session.path()[5]
    session.append("compaction", {"from": first.id, "to": last.id, "summary": "It looked.", "reason": "size"})
    session.set_state({"name": "Zoë", "plan": "free"}, scope="user")
    session.set_state({"plan": "paid"}, scope="user", removed=["name"])
    session.set_state({"currency": "€"}, scope="app")
    session.rename(f"Flaky upload test, 日本語, {HALF}")
    session.label("ci", "network")
    session.set_status("archived")
    session.fork(at=session.path()[9].seq, id="fork", title="A fork").close()
    fork_of_head = session.fork()
    fork_of_head.seek(3)
    fork_of_head.rename("")
    fork_of_head.close()
    session.close()
    sessions.create("deleted").close()
    sessions.delete("deleted")
    # The same key as before, so that numbers and files of the deleted one would show.
    sessions.create("deleted", title="Made again").close()


def test_a_second_reader_finds_what_the_library_says_while_a_turn_goes_on(place: Place, rich: Sessions) -> None:
    """S7."""
    expected = first_reading(rich)
    found = second_reading(_path(place))

    assert found["problems"] == {}
    assert len(expected) == len(HOSTILE_KEYS) + 5
    for second, first in zip(found["sessions"], expected, strict=True):
        assert second == first
    cut = next(one for one in expected if one["id"] == "cut-off")
    assert [stream["chunks"] for stream in cut["streams"]] == [
        [["text", "The log says: "], ["text", HALF]],
        [["reasoning", "Let me see. "], ["text", "It fails "], ["text", HALF]],
    ]


def test_a_session_without_compactions_reads_as_the_model_is_sent_it(place: Place, rich: Sessions) -> None:
    found = {one["id"]: one["texts"] for one in second_reading(_path(place))["sessions"]}
    sent = [message.text for message in rich.get("fork").conversation(sealed=False)]

    assert found["fork"] == sent
    assert sent[:3] == ["Why does test_upload fail?", f"You are careful. {HALF}, \0, grüße, 日本語", "I run it."]


def test_a_bundle_is_read_alone_under_another_name(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        session = sessions.create("Ünusual", user="ada", title="Moved")
        session.save_artifact("report.md", b"# Report")
        session.close()
        expected = first_reading(sessions)
    stem = file_stem(SessionKey("default", "ada", "Ünusual"))
    away = tmp_path / "elsewhere"
    away.mkdir()
    (tmp_path / f"{stem}.playhead").rename(away / "copy.playhead")
    (tmp_path / f"{stem}.artifacts").rename(away / "copy.artifacts")

    assert second_reading(away / "copy.playhead") == {"sessions": expected, "problems": {}}


@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_killed_process_leaves_is_read_alike(place: Place, nursery: Nursery, seed: int) -> None:
    child = nursery.start("recorder:record", url=place.url, id="killed", seed=seed)
    for _ in range(150):
        child.hear()
    child.kill()
    found = second_reading(_path(place))
    with place.open() as sessions:
        expected = first_reading(sessions)

    assert found == {"sessions": expected, "problems": {}}
    assert next(one["event_count"] for one in expected if one["id"] == "killed") > 20


def test_a_changed_body_is_found_at_its_seq(place: Place) -> None:
    with place.open() as sessions:
        with sessions.create("s") as session:
            for number in range(5):
                session.append("note", {"name": "count", "number": number})
    file = place.database("s")
    _run(file, "DROP TRIGGER events_never_change")
    _run(file, "UPDATE events SET body = '{}' WHERE row & 7 = 4")
    (found,) = second_reading(_path(place))["sessions"]

    assert found["first_bad_seq"] == 4


@pytest.mark.parametrize("change", ["PRAGMA user_version = 2", "UPDATE sessions SET event_version = 2"])
def test_a_higher_version_is_refused_by_the_second_reader_as_by_the_first(place: Place, change: str) -> None:
    with place.open() as sessions:
        sessions.create("s").close()
    database = place.database("s")
    _run(database, change)
    found = second_reading(_path(place))
    with pytest.raises(playhead.NewerFormat):
        with place.open() as sessions:
            sessions.get("s").event(1)

    assert found["sessions"] == []
    assert list(found["problems"]) == [database.name]


def test_imported_sessions_of_claude_code_are_read_alike(place: Place, shared_data: Path) -> None:
    with place.open() as sessions:
        for source in discover(shared_data / "home" / ".claude"):
            imported = read(source)
            if imported is not None:
                sessions.ingest(
                    imported.id,
                    imported.events,
                    at=imported.at,
                    started=imported.started,
                    title=imported.title,
                    labels=imported.labels,
                )
        expected = first_reading(sessions)
    found = second_reading(_path(place))

    assert found["problems"] == {}
    assert len(expected) > 5
    for second, first in zip(found["sessions"], expected, strict=True):
        assert second == first


# The page itself, against the code and against what was recorded.


def test_the_page_names_every_kind_and_the_fields_that_are_always_there() -> None:
    said = {kind: set(re.findall(r"\*\*(\w+)\*\*", fields)) for kind, fields in _bodies().items()}

    assert said == {kind: {name for name, _ in fields} for kind, fields in _REQUIRED.items()}


def test_the_page_names_every_field_that_the_library_writes(place: Place, rich: Sessions) -> None:
    """S7."""
    named = {kind: set(re.findall(r"\w+", fields)) | {"extra"} for kind, fields in _bodies().items()}
    unnamed = {
        (kind, name)
        for session in second_reading(_path(place))["sessions"]
        for kind, names in session["fields"].items()
        for name in names
        if name not in named[kind] and kind != "note"
    }
    recorded = {kind for session in second_reading(_path(place))["sessions"] for kind in session["fields"]}

    assert unnamed == set()
    assert recorded == set(_REQUIRED) - {"redacted"}


@pytest.mark.parametrize("table", ["sessions", "events", "snapshots", "notes"])
def test_the_page_names_every_column(place: Place, table: str) -> None:
    with place.open() as sessions:
        sessions.create("s").set_state({"theme": "dark"}, scope="user")
    file = place.database("s")
    if table == "notes" and place.name == "bundles":
        file = file.with_name("_store.playhead")
    section = re.split(rf"^### {table}$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1].split("\n#")[0]
    named = set(re.findall(r"`(\w+)`", section))
    columns = {name for (name,) in _run(file, f"SELECT name FROM pragma_table_info('{table}')")}

    assert columns - named == set()


def test_the_page_names_every_topic_of_the_store_log(place: Place, rich: Sessions) -> None:
    file = place.database("s")
    if place.name == "bundles":
        file = file.with_name("_store.playhead")
    topics = {topic for (topic,) in _run(file, "SELECT DISTINCT topic FROM notes")}
    starts = {re.split(r"[\[]", topic)[0] for topic in {*topics, POSITIONS}}
    named = {start for row in _table("topic") for start in re.findall(r"`([a-z:]+)", row[0])}

    assert starts == {PURGED, POSITIONS, "state:user:", "state:app:"}
    assert named == starts


def test_a_second_reader_passes_over_the_trash(place: Place) -> None:
    with place.open() as sessions:
        for id in ("s", "t", "u"):
            sessions.create(id).save_artifact("x", b"x")
        sessions.restore(sessions.trash("u"))
        sessions.trash("t")
    found = second_reading(_path(place))

    assert [one["id"] for one in found["sessions"]] == ["s", "u"]
    assert [len(one["artifacts"]) for one in found["sessions"]] == [1, 1]
    assert found["problems"] == {}


def test_what_lies_in_the_trash_is_as_the_page_says(place: Place) -> None:
    with place.open() as sessions:
        sessions.create("s", title="Gone").save_artifact("x", b"x")
        trash_id = sessions.trash("s")
        (row,) = sessions.trashed()
    file = place.database("s")
    if place.name == "bundles":
        file = place.folder / ".trash" / trash_id / "s.playhead"
    ((app, user, id, holder, indexed_seq),) = _run(file, "SELECT app, user, id, holder, indexed_seq FROM sessions")
    fields = {field.strip("`") for field, *_ in _table("field")}

    assert (app, user, id, indexed_seq) == ("", "", trash_id, 0)
    assert json.loads(holder) == {"trashed": ["default", "default", "s", row.at]}
    assert fields == {"trashed", "files"}
    assert re.fullmatch(r"[a-z0-9]{1,64}", trash_id)


def test_the_header_is_as_the_page_says(place: Place) -> None:
    with place.open() as sessions:
        sessions.create("s").close()
    found = {
        name: _run(place.database("s"), f"PRAGMA {name}")[0][0]
        for name in ("application_id", "user_version", "page_size", "journal_mode")
    }

    assert found == {"application_id": 0x504C4844, "user_version": 1, "page_size": 4096, "journal_mode": "wal"}


def _path(place: Place) -> Path:
    """Return what a reader is given: the directory of the bundles, or the shared file."""
    return Path(place.url.partition(":")[2])


def _run(file: Path, statements: str) -> list[Any]:
    """Run statements on a file whose store is closed, through the one SQLite library of this process."""
    database = apsw.Connection(str(file))
    try:
        return database.execute(statements).fetchall()
    finally:
        database.close()


def _bodies() -> Mapping[str, str]:
    """Return the page's table of bodies: kind to what it says of the fields."""
    return {row[0].strip("` "): row[1] for row in _table("kind")}


def _table(first_heading: str) -> list[list[str]]:
    """Return the rows of the page's table whose first column has this heading, less the heading."""
    page = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^\| {first_heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in found.splitlines()]
