"""What an SQLite file promises by itself, whoever opens it: an append-only log, one schema, a small start."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import playhead
from playhead.stores.migrate import migrations
from playhead.stores.named_queries import read_sql
from playhead.stores.sqlite.connect import PACKAGE
from tests.conftest import PROJECT

SMALLEST_BUNDLE_BYTES_MAX = 48 * 1024


@pytest.fixture
def database(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A stranger's connection to a bundle with one turn in it."""
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        with sessions.create("s").turn("Why does test_upload fail?") as turn:
            turn.say("It times out.")
    connection = apsw.Connection(str(tmp_path / "s.playhead"))
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}' WHERE row & 4294967295 = 3",
        "UPDATE events SET at = at + 1",
        "DELETE FROM events WHERE row & 4294967295 = 3",
        "DELETE FROM events",
    ],
)
def test_the_database_itself_refuses_to_change_or_delete_an_event(database: apsw.Connection, statement: str) -> None:
    """K2."""
    before = database.execute("SELECT * FROM events ORDER BY row").fetchall()
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        database.execute(statement)

    assert len(before) > 3
    assert database.execute("SELECT * FROM events ORDER BY row").fetchall() == before


def test_the_log_is_a_view_that_any_sqlite_tool_shows(database: apsw.Connection) -> None:
    """K1, S7."""
    rows = database.execute("SELECT session, seq, kind, body FROM log ORDER BY seq").fetchall()
    prompt = next(json.loads(str(body)) for _, _, kind, body in rows if kind == "message")

    assert [(session, seq) for session, seq, _, _ in rows] == [("s", seq) for seq in range(1, len(rows) + 1)]
    assert [kind for _, _, kind, _ in rows][-1] == "turn_ended"
    assert prompt["parts"] == [{"type": "text", "content": "Why does test_upload fail?"}]


def test_the_schema_is_what_all_migrations_make_in_order() -> None:
    made_at_once, migrated = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    made_at_once.execute(read_sql(PACKAGE, "schema.sql"))
    for _, sql in migrations(PACKAGE):
        migrated.execute(sql)
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"

    assert made_at_once.execute(schema).fetchall() == migrated.execute(schema).fetchall()


def test_the_smallest_bundle_is_small(tmp_path: Path) -> None:
    """S5."""
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("s", title="Empty").close()
    files = {path.name: path.stat().st_size for path in tmp_path.iterdir()}

    assert 0 < files["s.playhead"] <= SMALLEST_BUNDLE_BYTES_MAX
    assert sum(files.values()) <= SMALLEST_BUNDLE_BYTES_MAX


@pytest.mark.parametrize("url", ["bundles:{0}", "sqlite:{0}/sessions.playhead"])
def test_nothing_but_sqlite_opens_a_database_file(tmp_path: Path, url: str) -> None:
    """S3: closing another descriptor of a live file would take away the locks of the whole process."""
    program = f"""
import json, os, sys
opened = []
def hear(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        opened.append(os.fsdecode(arguments[0]))
sys.addaudithook(hear)
import playhead
with playhead.open({url.format(tmp_path)!r}) as sessions:
    session = sessions.create("s")
    with session.turn("Hello") as turn:
        turn.stream("Hi.")
    session.save_artifact("note.txt", b"text")
    session.fork(id="f")
    sessions.list(), sessions.search("hello"), session.verify()
with playhead.open({url.format(tmp_path)!r}) as sessions:
    sessions.resume("s"), sessions.list()
    sessions.delete("s")
print(json.dumps(opened))
"""
    answer = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    opened = json.loads(answer.stdout)
    ends = (".playhead", ".playhead-wal", ".playhead-shm")

    assert [path for path in opened if path.endswith(ends)] == []
    assert any("sha256-" in path or path.endswith(".stream") for path in opened), "the hook hears what Python opens"
