"""Rows out of the pages of a file that SQLite refuses, and what of them counts as events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings, strategies as st

import playhead
from playhead.errors import NotAStore, StoreUnavailable
from playhead.stores.names import CATALOGUE
from playhead.stores.sqlite.layout import artifacts_of, kept_as, lock_of, lying_in
from playhead.stores.sqlite.looking import look_at, looked_log
from playhead.stores.sqlite.mending import put_back, remove_emptied, replace_bundle
from playhead.stores.sqlite.pages import RawRow, rows_in
from playhead.stores.sqlite.salvage import saved_from

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False).filter(lambda value: value != int(value) if abs(value) < 2**53 else True),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200),
    st.binary(max_size=200),
    st.integers(0, 9_000).map(lambda length: "long " * (length // 5)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@settings(max_examples=40)
@given(
    rows=st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=30),
    page_bytes=st.sampled_from([512, 4_096, 65_536]),
)
def test_every_row_that_sqlite_has_is_found_in_its_pages(
    folder: Path, rows: dict[int, tuple[object, object, object]], page_bytes: int
) -> None:
    path = folder / "table.db"
    path.unlink(missing_ok=True)
    database = apsw.Connection(str(path))
    database.execute(f"PRAGMA page_size={page_bytes}")
    database.execute("PRAGMA synchronous=OFF")
    database.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, a, b, c)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(number, *row) for number, row in rows.items()])
    wanted = {row[0]: (None, *row[1:]) for row in database.execute("SELECT number, a, b, c FROM t").fetchall()}
    database.close()
    found = {row.number: row.values for row in rows_in(path) if row.number is not None and len(row.values) == 4}

    assert found == wanted


@given(content=st.binary(max_size=9_000), is_ours=st.booleans())
def test_bytes_that_are_no_database_give_rows_or_none_and_no_error(folder: Path, content: bytes, is_ours: bool) -> None:
    path = folder / "noise.db"
    path.write_bytes(b"SQLite format 3\0" * is_ours + content)
    Path(f"{path}-wal").write_bytes(b"\x37\x7f\x06\x82" + content)

    assert all(isinstance(row, RawRow) for row in rows_in(path))
    assert saved_from(path).logs == ()


def test_what_is_committed_to_the_write_ahead_log_counts_and_nothing_else_of_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    database = apsw.Connection(str(path))
    database.pragma("journal_mode", "wal")
    database.pragma("wal_autocheckpoint", 0)
    database.execute("CREATE TABLE t (a, b, c, d, e, f, g)")
    database.execute("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 'committed')")
    database.pragma("cache_size", 1)
    database.execute("BEGIN")
    database.execute("CREATE TABLE u (a)")
    for _ in range(300):
        database.execute("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, ?)", ("spilled" * 100,))
    found = [row.values[-1] for row in rows_in(path) if len(row.values) == 7]
    database.execute("ROLLBACK")
    database.close()

    assert found == ["committed"]


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        saved_from(tmp_path / "nothing.playhead")


def test_of_two_rows_in_one_place_the_one_that_follows_is_taken(tmp_path: Path) -> None:
    """A page that SQLite gave up keeps its bytes: an edit by hand may leave the event as it was beside it."""
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        with sessions.create("s1", title="Twice").turn("Why?") as turn:
            turn.say("So.")
    path = tmp_path / "s1.playhead"
    database = apsw.Connection(str(path))
    row = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events'").fetchall()[0]
    database.close()
    content, start = path.read_bytes(), (int(str(row[0])) - 1) * 4_096
    page = content[start : start + 4_096]
    edited = page.replace(b"So.", b"No.")
    path.write_bytes(content + edited)
    edited_later = saved_from(path).logs[0]
    path.write_bytes(content[:start] + edited + content[start + 4_096 :] + page)
    edited_before = saved_from(path).logs[0]

    assert edited != page
    assert edited_later.is_whole and edited_before.is_whole
    assert any("So." in (record.body or "") for record in edited_before.records)


def test_what_is_missing_and_what_was_changed_are_told_apart(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        session = sessions.create("s1")
        for number in range(8):
            session.append("note", {"name": "count", "number": number})
    path = tmp_path / "s1.playhead"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"number":2', b'"number":9').replace(b'"number":5', b'"number" 5'))
    edited = saved_from(path).logs[0]
    database = apsw.Connection(str(path))
    database.execute("INSERT INTO permits VALUES ('test'); DELETE FROM events WHERE row & 4294967295 IN (4, 5)")
    database.close()
    cut = saved_from(path).logs[0]

    assert (edited.changed, edited.missing, edited.is_whole) == ([4, 7], [], False)
    assert (cut.changed, cut.missing) == ([7], [[4, 5]])


def test_looking_at_what_is_no_database_says_what_it_is(tmp_path: Path) -> None:
    ways: dict[str, Callable[[Path], object]] = {
        "text": lambda path: path.write_text("text " * 500),
        "empty": lambda path: path.touch(),
        "folder": lambda path: path.mkdir(),
        "link": lambda path: path.symlink_to(tmp_path / "text"),
        "nothing": lambda path: None,
    }
    found = {}
    for name, make in ways.items():
        make(tmp_path / name)
        found[name] = look_at(tmp_path / name).state

    assert found == {
        "text": "no database",
        "empty": "no database",
        "folder": "no database",
        "link": "no database",
        "nothing": "shut",
    }
    with pytest.raises(NotAStore):
        with looked_log(tmp_path / "folder", lambda number: tmp_path):
            pass


def test_a_database_that_somebody_has_open_is_read_with_what_they_wrote_last(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        session = sessions.create("s1")
        session.append("note", {"name": "last"})
        path = tmp_path / "s1.playhead"
        with looked_log(path, lambda number: lock_of(f"bundles:{tmp_path}", path, number)) as log:
            rows = list(log.rows())
            state = look_at(path).state

    assert (state, [row.seq for row in rows]) == ("whole", [2])


def test_what_lies_in_a_store_is_told_by_its_name(tmp_path: Path) -> None:
    names = {
        "_store.playhead": "store log",
        "s1.playhead": "database",
        "s1.playhead-wal": "part",
        "s1.playhead.lock": "lock",
        "s1.stream": "stream",
        "s1.playhead.damaged": "kept",
        "s1.playhead.2.damaged-wal": "kept",
        ".s1.playhead.making": "leftover",
        "README": "other",
    }
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "s1.artifacts").mkdir()
    found = {one.path.name: (one.role, one.owner and one.owner.name) for one in lying_in(f"bundles:{tmp_path}")}

    assert {name: role for name, (role, _) in found.items()} == names | {"s1.artifacts": "artifacts"}
    assert {owner for name, (_, owner) in found.items() if name.startswith("s1")} == {"s1.playhead"}
    assert kept_as(tmp_path / "s1.playhead").name == "s1.playhead.2.damaged"


def test_what_lies_beside_a_file_with_many_sessions_is_told_by_its_name(tmp_path: Path) -> None:
    url, file = f"sqlite:{tmp_path}/all.db", tmp_path / "all.db"
    with playhead.open(url) as sessions:
        key = sessions.create("s1").key
        sessions.get("s1").save_artifact("plot", b"bytes")
    for name in ("all.db.damaged", "all.db.3.damaged", ".all.db.0123.new", "other.db", ".other.db.0123.new"):
        (tmp_path / name).touch()
    found = {one.path: one.role for one in lying_in(url) if one.role != "lock"}

    assert found == {
        file: "database",
        artifacts_of(url, file, key): "artifacts",
        tmp_path / "all.db.damaged": "kept",
        tmp_path / "all.db.3.damaged": "kept",
        tmp_path / ".all.db.0123.new": "leftover",
    }


def test_a_database_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("s1").close()
    path = tmp_path / "s1.playhead"
    path.write_bytes(b"damaged")

    def fails(store: object) -> None:
        raise StoreUnavailable("no")

    with pytest.raises(StoreUnavailable):
        replace_bundle(path, fails)
    left = sorted(one.name for one in tmp_path.iterdir() if one.name != CATALOGUE)
    with pytest.raises(FileExistsError):
        put_back(tmp_path / "s1.playhead.damaged", path)

    assert left == ["s1.playhead"]
    assert path.read_bytes() == b"damaged"


def test_a_bundle_that_holds_a_session_by_now_is_not_removed(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("s1").close()
    with pytest.raises(StoreUnavailable):
        remove_emptied(tmp_path / "s1.playhead")

    assert (tmp_path / "s1.playhead").exists()
