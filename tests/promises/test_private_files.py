"""Promises 9 and 11 (K7): files are private, named by us, and never outside the store; symbolic links are refused."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

import playhead
from playhead.errors import ArtifactDamaged, PlayheadError, SessionExists
from playhead.model.ids import session_key
from playhead.stores import files
from playhead.stores.migrate import migrations
from playhead.stores.named_queries import read_sql
from playhead.stores.names import CATALOGUE, file_stem
from playhead.stores.sqlite.catalogue_file import path_in
from playhead.stores.sqlite.connect import PACKAGE
from tests.promises.children import Nursery
from tests.promises.line import Line
from tests.promises.places import Bundles, Place

HOSTILE_IDS = (
    "../escape",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "a\\b",
    "C:\\autoexec",
    "con",
    "-rf",
    "~",
    "$(touch pwned)",
    "file\nname",
    "name.playhead",
    "_store",
    "?vfs=unix-none",
    "a#b?mode=memory",
    "é" * 300,
    "x" * 512,
    "日本語",
    "\u202etxt.exe",
)

BUNDLE_BYTES_MAX = 48 * 1024


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_every_file_is_private_whatever_the_umask(place: Place, nursery: Nursery, umask: int) -> None:
    folder = place.folder / "made" / "by the store"
    said = nursery.run(
        "test_private_files:use_everything",
        url=place.url.replace(str(place.folder), str(folder)),
        folder=str(folder),
        umask=umask,
    )
    modes = {path: mode for _, path, mode in said}
    suffixes = {Path(path).suffix or path for path in modes}

    assert {path: oct(mode) for path, mode in modes.items() if mode not in (0o600, 0o700)} == {}
    assert all(mode == 0o700 for path, mode in modes.items() if path.endswith("/"))
    assert {".stream", ".lock" if place.name == "bundles" else ".db"} <= suffixes
    assert any(path.endswith("-wal") for path in modes) and any(path.endswith("-shm") for path in modes)
    assert any("sha256-" in path for path in modes)


def use_everything(line: Line, *, url: str, folder: str, umask: int) -> None:
    """Make a file of every kind, and say their modes while they are there."""
    os.umask(umask)
    sessions = playhead.open(url)
    session = sessions.create("s1")
    session.set_state({"name": "Ada"}, scope="user")
    session.save_artifact("chart.png", b"chart")
    sessions.search("anything")
    sessions.list()
    turn = session.turn("Why?")
    turn.stream("The network ")
    line.say("mode", f"{folder}/", stat.S_IMODE(os.stat(folder).st_mode))
    for parent, folders, names in os.walk(folder):
        for name in [*names, *(f"{one}/" for one in folders)]:
            path = os.path.join(parent, name)
            line.say("mode", path, stat.S_IMODE(os.stat(path).st_mode))


@pytest.mark.parametrize("id", HOSTILE_IDS)
def test_a_hostile_id_opens_no_file_outside_the_store(id: str, place: Place, nursery: Nursery) -> None:
    said = nursery.run("test_private_files:live_under_audit", url=place.url, folder=str(place.folder), id=id)
    touched = [values for word, *values in said if word == "touched"]

    assert touched == []
    assert said[-1] == ["found", [id], "Yes."]
    assert "/" not in file_stem(session_key(id))


def live_under_audit(line: Line, *, url: str, folder: str, id: str) -> None:
    """Do everything with a session, and say each file outside the store that was opened to write, made or removed."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            is_writing = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        elif event in ("os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink"):
            path, is_writing = arguments[0], True
        else:
            return
        # A path without a slash is relative to the descriptor of a folder that was opened by its own path.
        if is_writing and isinstance(path, str) and "/" in path:
            inside = os.path.realpath(path) + "/"
            if not inside.startswith(folder + "/") and not path.startswith("/proc/self/fd/"):
                line.say("touched", event, path)

    sessions = playhead.open(url)
    sys.addaudithook(audit)
    session = sessions.create(id)
    with session.turn("Are you there?") as turn:
        turn.stream("Yes.")
    session.save_artifact(id, b"bytes", media_type="text/plain")
    with contextlib.suppress(PlayheadError):
        session.send(id, "hello", sender=id)
    session.fork().close()
    found = sessions.search("Yes", session=id).hits
    listed = [row.id for row in sessions.list().items if row.id == id]
    text = sessions.resume(id).conversation()[-1].text
    other = sessions.create("other", app=id, user=id)
    sessions.delete("other", app=id, user=id)
    assert found and other.id == "other"
    before = set(os.listdir(folder))
    sessions.delete(id)
    line.say("found", listed, text)
    sessions.close()
    assert before - set(os.listdir(folder)) or "sessions.db" in before


def test_sqlite_itself_opens_no_file_outside_the_store(place: Place) -> None:
    opened: set[str] = set()

    class Watched(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("watched", "")

        def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
            full = name.filename() if isinstance(name, apsw.URIFilename) else name
            opened.add(os.path.dirname(full) if full else "")
            return apsw.VFSFile("", name, flags)

    vfs = Watched()
    try:
        with playhead.Sessions(place.store(vfs="watched")) as sessions:
            for id in HOSTILE_IDS:
                sessions.create(id).append("note", {"name": "here"})
            total = sessions.list().total
    finally:
        vfs.unregister()

    assert opened == {str(place.folder)}
    assert total == len(HOSTILE_IDS)


def test_a_link_in_the_place_of_an_artifact_or_its_folder_is_refused(place: Place, tmp_path: Path) -> None:
    secret, elsewhere = tmp_path / "secret", tmp_path / "elsewhere"
    secret.write_bytes(b"chart")
    elsewhere.mkdir()
    with place.open() as sessions:
        session = sessions.create("s1")
        session.save_artifact("chart.png", b"chart")
        (file,) = place.folder.rglob("sha256-*")
        file.unlink()
        file.symlink_to(secret)
        with pytest.raises(PlayheadError):
            session.artifact("chart.png")
        session.save_artifact("chart.png", b"chart")
        again = (session.artifact("chart.png"), file.is_symlink(), secret.read_bytes())
        folder = file.parent
        file.unlink()
        folder.rmdir()
        folder.symlink_to(elsewhere, target_is_directory=True)
        with pytest.raises(PlayheadError):
            session.save_artifact("report.md", b"report")
        with pytest.raises(PlayheadError):
            session.artifact("chart.png")

        assert again == (b"chart", False, b"chart")
        assert list(elsewhere.iterdir()) == []
        assert [event.body["name"] for event in session.events(kinds=["artifact_saved"])] == ["chart.png"] * 2


def test_a_stream_file_that_is_a_link_is_refused(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("keep me\n")
    with place.open() as sessions:
        turn = sessions.create("s1").turn("Why?")
        turn.stream("The ")
        (file,) = place.folder.rglob("*.stream")
        turn.finish_stream()
        file.symlink_to(secret)
        with pytest.raises(PlayheadError):
            turn.stream("network.")

    assert secret.read_text() == "keep me\n"


@pytest.mark.parametrize("what", ["artifact", "stream"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(what: str, place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        session.save_artifact("chart.png", b"chart")
        (file,) = place.folder.rglob("sha256-*")
        turn = session.turn("Why?")
        turn.stream("The network.")
        (stream,) = place.folder.rglob("*.stream")
        turn.end()
        if what == "artifact":
            file.unlink()
            os.mkfifo(file)
            with pytest.raises(PlayheadError):
                session.artifact("chart.png")
        else:
            os.mkfifo(stream)
            with pytest.raises(PlayheadError):
                session.turn("Why?")

        assert session.verify().ok


def test_bytes_of_the_same_size_under_the_name_are_put_right_by_keeping_the_artifact_again(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        session.save_artifact("chart.png", b"chart")
        (file,) = place.folder.rglob("sha256-*")
        file.write_bytes(b"crash")
        with pytest.raises(ArtifactDamaged):
            session.artifact("chart.png")
        session.save_artifact("chart.png", b"chart")

        assert session.artifact("chart.png") == b"chart"


def test_the_schema_equals_all_migrations_applied_in_order() -> None:
    def shape(*scripts: str) -> list[tuple[Any, ...]]:
        db = apsw.Connection(":memory:")
        for script in scripts:
            db.execute(script)
        return sorted(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall(), key=str)

    steps = migrations(PACKAGE)

    assert shape(read_sql(PACKAGE, "schema.sql")) == shape(*(sql for _, sql in steps))
    assert [version for version, _ in steps] == list(range(1, len(steps) + 1))


def test_the_smallest_bundle_is_small(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    with place.open() as sessions:
        sessions.create("s1").close()
        while_open = sum(path.stat().st_size for path in place.folder.iterdir() if path.name == "s1.playhead")
    with place.open() as sessions:
        with sessions.get("s1").turn("Why?") as turn:
            turn.say("The network.")
        sessions.search("network")
    files = sorted(path.name for path in place.folder.iterdir())

    assert while_open <= BUNDLE_BYTES_MAX
    assert place.database("s1").stat().st_size <= BUNDLE_BYTES_MAX + 16 * 1024
    assert files == [CATALOGUE, "s1.playhead"]


def test_listing_and_searching_leave_no_file_behind(place: Place) -> None:
    with place.open() as sessions:
        for number in range(5):
            sessions.create(f"s{number}").close()
    before = sorted(path.name for path in place.folder.rglob("*"))
    with place.open() as sessions:
        sessions.list()
        while_open = sorted(path.name for path in place.folder.rglob("*") if path.parent.name != CATALOGUE)
        sessions.search("anything")
    after = sorted(path.name for path in place.folder.rglob("*"))

    assert after == before
    assert place.name == "sqlite" or while_open == [name for name in before if name != path_in(place.folder).name]


@pytest.mark.parametrize("system", ["has nameless files", "has links", "has renames only"])
def test_files_appear_whole_and_once_whatever_the_file_system_can_do(
    system: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object, **more: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if system != "has nameless files":
        monkeypatch.setattr(files, "HAS_NAMELESS", False)
    if system == "has renames only":
        monkeypatch.setattr(os, "link", refuse)
    with place.open() as sessions:
        session = sessions.create("s1")
        session.save_artifact("chart.png", b"chart")
        with pytest.raises(SessionExists):
            sessions.create("s1")
        is_placed_again = files.place_file(place.database("s1"), b"something else", durable=True)
        names = {path.name for path in place.folder.rglob("*")}

        assert session.artifact("chart.png") == b"chart"
        assert session.verify().ok
        assert is_placed_again is False
        assert not [name for name in names if name.endswith(".new")]
