"""K20 to K22 on hostile ground: clocks, hands, rights, a catalogue that is damaged. Lists stay true all the same."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import playhead
from playhead.stores.sqlite.catalogue_file import path_in
from tests.promises.children import Nursery
from tests.promises.hindrances import bound_by_modes
from tests.promises.line import Line
from tests.promises.listers import rows_of

SESSIONS = 12
PATIENCE_S = 10.0
SECONDS_NS = 1_000_000_000
TIMES = {"1970": 1, "the day before": int(time.time()) - 86_400, "2100": 4_102_444_800}
UNREADABLE = 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of bundles that were listed and are at rest."""
    folder = tmp_path / "store"
    with _open(folder) as sessions:
        for number in range(SESSIONS):
            with sessions.create(f"s{number:02}", title=f"Upload {number:02}", labels=["test"]) as session:
                with session.turn(f"Why does upload {number:02} fail?") as turn:
                    turn.say("The connection is reset.")
    _settle(folder)
    return folder


# What is not opened.


def test_a_list_opens_no_bundle_whatever_process_asks(folder: Path) -> None:
    """K20."""
    with openings() as opened, _open(folder) as sessions:
        page = sessions.list(limit=5)
        found = sessions.list(query="upload 07")
        sessions.refresh()

    assert page.total == SESSIONS
    assert [row.id for row in found.items] == ["s07"]
    assert opened == {}


def test_only_what_changed_is_opened(folder: Path, nursery: Nursery) -> None:
    """K21."""
    nursery.run("test_catalogue_hardening:rename", url=f"bundles:{folder}", id="s03", title="Renamed")
    with openings() as opened, _open(folder) as sessions:
        titles = _titles(sessions)

    assert titles["s03"] == "Renamed"
    assert set(opened) <= {"s03.playhead"}


def test_a_thousand_files_that_cannot_be_read_are_rows_and_are_not_opened_again_until_they_change(
    folder: Path, tmp_path: Path
) -> None:
    """K21."""
    whole = (folder / "s00.playhead").read_bytes()
    kinds = _unreadable(whole, tmp_path)
    for number in range(UNREADABLE):
        kinds[number % len(kinds)](folder / f"u{number:04}.playhead")
    _settle(folder)
    other, mended = _elsewhere(tmp_path), folder / "u0001.playhead"
    with openings() as opened, _open(folder) as sessions:
        rows = {row.id: row.problem for row in sessions.list(limit=1_000).items}
        total = sessions.list(status="unreadable", limit=1).total
        sessions.refresh()
        counted = dict(opened)
        mended.unlink()
        shutil.copy(other, mended)
        after = sessions.list(limit=1_000)
        opened_then = set(opened)

    assert counted == {}
    assert total == UNREADABLE
    assert sum(problem is not None for problem in rows.values()) == 1_000 - SESSIONS
    assert "other" in {row.id for row in after.items if row.problem is None}
    assert after.total == UNREADABLE + SESSIONS
    assert opened_then == {"u0001.playhead"}


# Clocks and hands.


@pytest.mark.parametrize("when", TIMES)
def test_times_of_files_that_are_set_mislead_no_list(folder: Path, nursery: Nursery, when: str) -> None:
    """K21."""
    at = TIMES[when] * SECONDS_NS
    with _open(folder) as sessions:
        before = _titles(sessions)
        for path in folder.glob("*.playhead"):
            os.utime(path, ns=(at, at))
        os.utime(folder, ns=(at, at))
        same = _titles(sessions)
        nursery.run("test_catalogue_hardening:rename", url=f"bundles:{folder}", id="s04", title="Renamed")
        shutil.copy(folder / "s05.playhead", folder / "copy.playhead")
        for path in folder.glob("*.playhead"):
            os.utime(path, ns=(at, at))
        os.utime(folder, ns=(at, at))
        after = _titles(sessions)
    with _open(folder) as sessions:
        fresh = _titles(sessions)

    assert same == before
    assert after == fresh == before | {"s04": "Renamed", "copy": None}


def test_an_edit_that_leaves_size_and_time_as_they_were_is_seen(folder: Path) -> None:
    """K21."""
    path = folder / "s06.playhead"
    old = path.read_bytes()
    with _open(folder) as sessions:
        sessions.get("s06").rename("Upload 99")
    _settle(folder)
    state = path.stat()
    with _open(folder) as sessions:
        before = _titles(sessions)["s06"]
        with path.open("r+b") as file:
            file.write(old)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        listed = _titles(sessions)["s06"]
        found = [row.id for row in sessions.list(query="upload 06", refresh=True).items]

    assert (len(old), state.st_mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    assert (before, listed, found) == ("Upload 99", "Upload 06", ["s06"])


def test_an_edit_in_place_that_no_page_shows_is_found_by_a_refresh(folder: Path) -> None:
    path = folder / "s06.playhead"
    old = path.read_bytes()
    with _open(folder) as sessions:
        sessions.get("s06").rename("Zebra")
    _settle(folder)
    with _open(folder) as sessions:
        with path.open("r+b") as file:
            file.write(old)
        refreshed = sessions.refresh()
        titles = [row.summary.title for row in sessions.list(sort="title").items if row.summary is not None]

    assert (refreshed.looked_at, refreshed.read) == (SESSIONS, 1)
    assert titles == sorted(titles) and "Zebra" not in titles


def test_a_directory_that_was_moved_takes_its_catalogue_along(folder: Path, tmp_path: Path) -> None:
    """K22."""
    before = _rows(folder)
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    folder.rename(moved)
    with openings() as opened, _open(moved) as sessions:
        rows = rows_of(sessions)

    assert rows == before
    assert opened == {}


def test_a_directory_that_was_copied_lists_the_same(folder: Path, tmp_path: Path) -> None:
    before = _rows(folder)
    shutil.copytree(folder, tmp_path / "copy")
    copied = _rows(tmp_path / "copy")
    with _open(tmp_path / "copy") as sessions:
        sessions.get("s01").rename("Only here")

    assert copied == before
    assert _rows(folder) == before


def test_bundles_that_come_and_go_by_hand_are_listed_as_they_are(folder: Path, tmp_path: Path) -> None:
    """K22."""
    other = _elsewhere(tmp_path)
    with _open(folder) as sessions:
        before = set(_titles(sessions))
        shutil.copy(other, folder)
        came = set(_titles(sessions))
        (folder / "s02.playhead").unlink()
        (folder / other.name).rename(folder / "under another name.playhead")
        renamed = set(_titles(sessions))
        again = sessions.get("other").rename("Found under any name").seq
        title = _titles(sessions)["other"]

    assert came == before | {"other"}
    assert renamed == came - {"s02"}
    assert (again, title) == (4, "Found under any name")


def test_of_two_files_of_one_session_the_other_counts_when_the_first_is_gone(folder: Path) -> None:
    with _open(folder) as sessions:
        shutil.copy(folder / "s08.playhead", folder / "copy of s08.playhead")
        both = {row.id: row.problem is None for row in sessions.list().items if "s08" in row.id}
        (folder / "s08.playhead").unlink()
        left = {row.id: row.problem is None for row in sessions.list().items if "s08" in row.id}

    assert both == {"s08": True, "copy of s08": False}
    assert left == {"s08": True}


# Rights.


@pytest.mark.parametrize("has_catalogue", [True, False], ids=["with a catalogue", "without one"])
def test_a_directory_that_cannot_be_written_is_listed_as_it_is(
    folder: Path, nursery: Nursery, has_catalogue: bool
) -> None:
    before = _rows(folder)
    if not has_catalogue:
        shutil.rmtree(path_in(folder).parent)
    with bound_by_modes():
        _give(folder, 0o400, 0o500)
        names = _names(folder)
        try:
            with _open(folder) as sessions:
                listed = rows_of(sessions)
                found = [row.id for row in sessions.list(query="upload 03").items]
                refreshed = sessions.refresh()
                after = _names(folder)
                # Somebody who may write does so, while this store has its rows in memory.
                _give(folder, 0o600, 0o700)
                nursery.run("test_catalogue_hardening:rename", url=f"bundles:{folder}", id="s04", title="Renamed")
                shutil.copy(folder / "s05.playhead", folder / "copy.playhead")
                _give(folder, 0o400, 0o500)
                changed = _titles(sessions)
        finally:
            _give(folder, 0o600, 0o700)
    fresh = _rows(folder)

    assert listed == before
    assert found == ["s03"]
    assert refreshed.unreadable == 0
    assert after == names
    assert (changed["s04"], changed["copy"], len(changed)) == ("Renamed", None, SESSIONS + 1)
    assert {row[0]["id"]: row[1] and row[1]["title"] for row in fresh} == changed


# A catalogue that is damaged.


def _edit(sql: str) -> Callable[[Path], object]:
    def edit(path: Path) -> None:
        connection = apsw.Connection(str(path))
        connection.execute(sql)
        connection.close()

    return edit


def _bytes(change: Callable[[bytearray], object]) -> Callable[[Path], object]:
    def edit(path: Path) -> None:
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return edit


def _zero(content: bytearray, start: int, end: int) -> None:
    content[start:end] = bytes(len(content[start:end]))


def _flip(content: bytearray) -> None:
    rng = random.Random(7)
    for _ in range(2_000):
        content[rng.randrange(100, len(content))] ^= 1 << rng.randrange(8)


def _in_its_place(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _in_place_of_the_folder(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replace(path: Path) -> None:
        shutil.rmtree(path.parent)
        make(path.parent)

    return replace


def _link_to_a_folder(path: Path) -> None:
    target = path.parent.parent / "target"
    target.mkdir()
    path.symlink_to(target)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut to a byte": lambda path: os.truncate(path, 1),
    "cut within the header": lambda path: os.truncate(path, 50),
    "cut to one page": lambda path: os.truncate(path, 4_096),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut off a page's border": lambda path: os.truncate(path, path.stat().st_size - 1_000),
    "its header zeroed": _bytes(lambda content: _zero(content, 0, 100)),
    "its schema zeroed": _bytes(lambda content: _zero(content, 100, 4_096)),
    "its second page zeroed": _bytes(lambda content: _zero(content, 4_096, 8_192)),
    "all but its first page zeroed": _bytes(lambda content: _zero(content, 4_096, len(content))),
    "bits flipped all over": _bytes(_flip),
    "random bytes": _in_its_place(lambda path: path.write_bytes(random.Random(3).randbytes(50_000))),
    "a text": _in_its_place(lambda path: path.write_text("# Not a catalogue\n" * 500)),
    "another SQLite file": _in_its_place(_edit("CREATE TABLE notes (text TEXT)")),
    "a table more": _edit("CREATE TABLE more (a)"),
    "a trigger more": _edit("CREATE TRIGGER more AFTER INSERT ON bundles BEGIN DELETE FROM bundles; END"),
    "a view that never ends": _edit(
        "DROP TABLE looks; CREATE VIEW looks AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
        "SELECT i AS one, i AS seen_at, '' AS boot FROM n"
    ),
    "a table less": _edit("DROP TABLE bundles"),
    "an index less": _edit("DROP INDEX bundles_by_key"),
    "of another application": _edit("PRAGMA application_id=1"),
    "of a later version": _edit("PRAGMA user_version=99"),
    "in another text encoding": _in_its_place(_edit("PRAGMA encoding='UTF-16'; CREATE TABLE a (b)")),
    "a folder": _in_its_place(lambda path: path.mkdir()),
    "a folder with something in it": _in_its_place(lambda path: (path / "more").mkdir(parents=True)),
    "a link to nothing": _in_its_place(lambda path: path.symlink_to("nothing")),
    "a link to itself": _in_its_place(lambda path: path.symlink_to(path.name)),
    "a pipe": _in_its_place(lambda path: os.mkfifo(path)),
    "its folder a file": _in_place_of_the_folder(lambda path: path.write_text("not a folder")),
    "its folder a link": _in_place_of_the_folder(_link_to_a_folder),
    "its folder removed": _in_place_of_the_folder(lambda path: None),
    "garbage as its write-ahead log": lambda path: Path(f"{path}-wal").write_bytes(random.Random(5).randbytes(9_000)),
    "a folder as its write-ahead log": lambda path: Path(f"{path}-wal").mkdir(),
    "garbage as its shared memory": lambda path: Path(f"{path}-shm").write_bytes(random.Random(6).randbytes(32_768)),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_catalogue_costs_a_reading_and_no_more(folder: Path, what: str) -> None:
    """K22."""
    before = _rows(folder)
    DAMAGE[what](path_in(folder))
    with _open(folder) as sessions:
        listed = rows_of(sessions)
        found = [row.id for row in sessions.list(query="upload 03").items]
        sessions.get("s04").rename("Renamed")
        sessions.delete("s05")
        titles = _titles(sessions)
    fresh = _rows(folder)
    files = {path.name for path in folder.glob("*.playhead")}

    assert listed == before
    assert found == ["s03"]
    assert titles["s04"] == "Renamed" and "s05" not in titles
    assert {row[0]["id"]: row[1] and row[1]["title"] for row in fresh} == titles
    assert files == {f"{id}.playhead" for id in titles} | {"_store.playhead"}


def test_a_row_of_the_catalogue_that_lost_its_summary_is_read_again(folder: Path) -> None:
    """K22. As where the page that held it reads as zeros."""
    before = _rows(folder)
    connection = apsw.Connection(str(path_in(folder)))
    connection.execute("UPDATE bundles SET summary = '{' WHERE id = 's03'")
    connection.close()

    assert _rows(folder) == before


REPLACED = (
    "removed",
    "random bytes",
    "another SQLite file",
    "a folder",
    "a link to nothing",
    "its folder a file",
    "its folder removed",
)
"""What a hand can do to a file that SQLite has open without taking its pages away under its feet."""


@pytest.mark.parametrize("what", REPLACED)
def test_a_catalogue_that_is_replaced_while_it_is_open_costs_a_reading_and_no_more(folder: Path, what: str) -> None:
    """K22."""
    with _open(folder) as sessions, _open(folder) as others:
        before = rows_of(sessions)
        rows_of(others)
        DAMAGE[what](path_in(folder))
        listed = rows_of(sessions)
        sessions.get("s04").rename("Renamed")
        others.create("s99", title="Upload 99").close()
        one, other = rows_of(sessions), rows_of(others)
    fresh = _rows(folder)
    titles = {row[0]["id"]: row[1]["title"] for row in one}

    assert listed == before
    assert one == other == fresh
    assert (titles["s04"], titles["s99"], len(titles)) == ("Renamed", "Upload 99", SESSIONS + 1)


def test_rows_that_somebody_removed_or_changed_by_hand_are_put_right_by_a_full_rescan(folder: Path) -> None:
    before = _rows(folder)
    edit = "DELETE FROM bundles WHERE id > 's06'; UPDATE bundles SET summary = NULL, seq = 99 WHERE id < 's03'"
    _edit(edit)(path_in(folder))
    with _open(folder) as sessions:
        sessions.refresh(full=True)
        rows = rows_of(sessions)

    assert rows == before


def rename(line: Line, *, url: str, id: str, title: str) -> None:
    """Rename a session, in a process of its own."""
    with playhead.open(url) as sessions, sessions.get(id) as session:
        session.rename(title)
    line.say("renamed")


@contextmanager
def openings() -> Iterator[Counter[str]]:
    """Count how often each bundle is opened, by whatever of this process."""
    counts: Counter[str] = Counter()

    def note(connection: apsw.Connection) -> None:
        name = Path(connection.filename).name
        if name.endswith(".playhead"):
            counts[name] += 1

    apsw.connection_hooks.append(note)
    try:
        yield counts
    finally:
        apsw.connection_hooks.remove(note)


def _open(folder: Path) -> playhead.Sessions:
    return playhead.open(f"bundles:{folder}")


def _settle(folder: Path) -> None:
    """List until no bundle has to be opened for it: what was written just now is read once more, to be sure."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with openings() as opened, _open(folder) as sessions:
            sessions.list(limit=1)
            sessions.refresh()
        if not opened:
            return
        time.sleep(0.02)
    raise AssertionError(f"every list opens {sorted(opened)[:5]} again")


def _rows(folder: Path) -> list[Any]:
    with _open(folder) as sessions:
        return rows_of(sessions)


def _titles(sessions: playhead.Sessions) -> dict[str, str | None]:
    """Return the title of each session, None for one that cannot be read."""
    return {row.id: row.summary.title if row.summary else None for row in sessions.list(limit=1_000).items}


def _elsewhere(tmp_path: Path) -> Path:
    """Return a closed bundle of the session `other` in another directory."""
    with playhead.open(f"bundles:{tmp_path / 'others'}") as sessions:
        with sessions.create("other", title="From elsewhere") as session:
            session.append("note", {"name": "test"})
    return tmp_path / "others" / "other.playhead"


def _unreadable(whole: bytes, tmp_path: Path) -> list[Callable[[Path], object]]:
    newer = tmp_path / "newer.playhead"
    newer.write_bytes(whole)
    _edit("PRAGMA user_version=99")(newer)
    foreign = tmp_path / "foreign.playhead"
    _edit("CREATE TABLE sessions (id TEXT); PRAGMA user_version=1")(foreign)
    trigger = tmp_path / "trigger.playhead"
    trigger.write_bytes(whole)
    _edit("CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END")(trigger)
    contents = [path.read_bytes() for path in (newer, foreign, trigger)]
    contents += [b"", b"SQLite format 3\0", b"A text.\n" * 100, whole[: len(whole) // 2], bytes(4_096)]
    return [
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(tmp_path / "nothing"),
        lambda path: os.mkfifo(path),
        *(lambda path, content=content: path.write_bytes(content) for content in contents),
    ]


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _give(folder: Path, file_mode: int, folder_mode: int) -> None:
    for root, _, names in os.walk(folder):
        os.chmod(root, 0o700)
        for name in names:
            os.chmod(Path(root) / name, file_mode)
    for root, _, _ in os.walk(folder, topdown=False):
        os.chmod(root, folder_mode)
