"""A backup made while others write: each session as of one moment, whole, and a store of its own."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead import Sessions
from playhead.errors import InvalidName, NotAStore, StoreExists, StoreUnavailable
from playhead.stores.names import CATALOGUE
from playhead.stores.sqlite.backup import SUFFIX, back_up, check_file, databases
from playhead.stores.sqlite.shell import SqlShell, is_complete

URLS = ("bundles:{}/store", "sqlite:{}/store.db")


@pytest.fixture(params=URLS, ids=lambda url: url.partition(":")[0])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


@pytest.fixture
def sessions(url: str) -> Iterator[Sessions]:
    """A store with three sessions, one with an artifact, and one in the trash."""
    with playhead.open(url) as opened:
        for number in range(3):
            with opened.create(f"s{number}", title=f"Session {number}") as session, session.turn("Why?") as turn:
                turn.say("Because the connection is reset.")
        opened.get("s0").save_artifact("plot.png", b"\x89PNG and more")
        opened.create("gone").close()
        opened.trash("gone")
        yield opened


def _copy_of(url: str, place: str, tmp_path: Path) -> tuple[Path, str]:
    target = tmp_path / place
    return target, f"{url.partition(':')[0]}:{target}"


def test_the_copy_opens_as_a_store_and_holds_every_session_artifact_and_the_trash(
    url: str, sessions: Sessions, tmp_path: Path
) -> None:
    target, copy = _copy_of(url, "copy", tmp_path)
    done = back_up(url, target)
    with playhead.open(copy) as copied:
        ids = [row.id for row in copied.list(sort="title").items]
        whole = [copied.verify(id).ok for id in ids]
        hashes = [copied.verify(id).head_hash for id in ids]
        artifact = copied.get("s0").artifact("plot.png")
        trashed = [row.key.id for row in copied.trashed()]
        found = copied.search("connection reset").hits

    assert ids == ["s0", "s1", "s2"]
    assert whole == [True] * 3
    assert hashes == [sessions.verify(id).head_hash for id in ids]
    assert artifact == b"\x89PNG and more"
    assert trashed == ["gone"]
    assert len(found) == 3
    assert done.problems == {}
    assert done.file_count == 1
    assert done.target == str(target)


def test_the_copy_is_private(url: str, sessions: Sessions, tmp_path: Path) -> None:
    target, _ = _copy_of(url, "copy", tmp_path)
    back_up(url, target)
    made = [target, *target.rglob("*"), *tmp_path.glob("copy.*"), *tmp_path.glob("copy.*/**/*")]

    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_file()} == {"0o600"}
    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_dir()} <= {"0o700"}


def test_every_session_of_the_copy_is_as_of_one_moment_while_others_write(
    url: str, sessions: Sessions, tmp_path: Path
) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            session = sessions.get("s1")
            while not stop.is_set():
                with session.turn("And now?") as turn:
                    turn.say("Still the same.")
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [_copy_of(url, f"copy-{number}", tmp_path) for number in range(5)]
        for target, _ in copies:
            back_up(url, target)
    finally:
        stop.set()
        writer.join()
    verified = []
    for _, copy in copies:
        with playhead.open(copy) as copied:
            verified.append(copied.verify("s1"))

    assert failures == []
    assert all(one.ok for one in verified)
    assert [one.event_count for one in verified] == sorted(one.event_count for one in verified)
    assert sessions.verify("s1").ok


def test_what_is_at_the_target_stays_unless_it_may_be_replaced(url: str, sessions: Sessions, tmp_path: Path) -> None:
    target, copy = _copy_of(url, "copy", tmp_path)
    back_up(url, target)
    with pytest.raises(StoreExists):
        back_up(url, target)
    sessions.create("later").close()
    back_up(url, target, overwrite=True)
    with playhead.open(copy) as copied:
        total = copied.list().total
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".") and "store" not in path.name]

    assert total == 4
    assert left == []


def test_an_interrupted_backup_leaves_nothing(url: str, sessions: Sessions, tmp_path: Path) -> None:
    target, _ = _copy_of(url, "copy", tmp_path)

    def stop(number: int, count: int, name: str) -> None:
        if number == count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(url, target, on_file=stop)

    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_a_damaged_bundle_is_copied_as_it_lies_there_and_named(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/store"
    with playhead.open(url) as sessions:
        sessions.create("s1").close()
        sessions.create("s2").close()
    damaged = tmp_path / "store" / "s2.playhead"
    damaged.write_bytes(b"this is no database" * 100)
    done = back_up(url, tmp_path / "copy")

    assert list(done.problems) == ["s2.playhead"]
    assert (tmp_path / "copy" / "s2.playhead").read_bytes() == damaged.read_bytes()
    assert done.database_count == 1


def test_links_are_not_followed_and_a_backup_cannot_lie_in_its_source(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/store"
    with playhead.open(url) as sessions:
        sessions.create("s1").close()
    secret = tmp_path / "secret"
    secret.write_text("not for the copy")
    (tmp_path / "store" / "link.playhead").symlink_to(secret)
    done = back_up(url, tmp_path / "copy")

    assert not (tmp_path / "copy" / "link.playhead").exists()
    assert done.problems == {}
    for inside in ("store", "store/copy"):
        with pytest.raises(InvalidName):
            back_up(url, tmp_path / inside, overwrite=True)


@pytest.mark.parametrize(
    ("url", "error"), [("memory:", InvalidName), ("bundles:/nowhere", NotAStore), ("sqlite:/nowhere", NotAStore)]
)
def test_what_has_no_files_cannot_be_copied(url: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        back_up(url, tmp_path / "copy")


def test_a_check_names_what_sqlite_finds(url: str, sessions: Sessions, tmp_path: Path) -> None:
    whole = [check_file(path) for path in databases(url)]
    path = tmp_path / f"torn{SUFFIX}"
    target, _ = _copy_of(url, "copy", tmp_path)
    back_up(url, target)
    source = target / "s1.playhead" if target.is_dir() else target
    pages = bytearray(source.read_bytes())
    pages[4096 : 4096 * 3] = bytes(4096 * 2)
    path.write_bytes(pages)
    text = tmp_path / f"text{SUFFIX}"
    text.write_text("no database")

    assert all(problems == [] for problems in whole)
    assert len(whole) >= 1
    assert check_file(path) != []
    assert "not an SQLite file" in check_file(text)[0]
    assert databases("memory:") == []


def test_the_shell_reads_and_cannot_write(url: str, sessions: Sessions) -> None:
    path = databases(url)[-1]
    said: list[str] = []
    with SqlShell(path, said.append) as shell:
        statements = ("SELECT count(*) FROM sessions", "DELETE FROM permits", "SELEKT", ".nonsense", ".tables")
        ok = [shell.run(sql) for sql in statements]

    assert ok == [True, False, False, False, True]
    assert sessions.get("s0").seq > 0
    assert [is_complete(text) for text in (".tables", "SELECT 1;", "SELECT 1")] == [True, True, False]
    assert "notauthorized" in "".join(said).replace(" ", "").lower()


@pytest.mark.parametrize(
    "line",
    [
        ".open {0}",
        ".output {1}",
        ".once {1}",
        ".shell touch {1}",
        ".read {1}",
        ".log {1}",
        ".load {1}",
        ".dump",
        "ATTACH '{1}' AS other",
        "VACUUM INTO '{1}'",
        "PRAGMA query_only=OFF",
        "PRAGMA writable_schema=ON",
        "PRAGMA journal_mode=DELETE",
        "INSERT INTO permits VALUES ('mine')",
        "DROP TABLE events",
        "CREATE TABLE mine (x)",
        "SELECT load_extension('{1}')",
        "SELECT writefile('{1}', 'x')",
    ],
)
def test_nothing_that_is_typed_in_the_shell_changes_or_opens_anything_else(
    url: str, sessions: Sessions, tmp_path: Path, line: str
) -> None:
    path = databases(url)[0]
    before = {id: sessions.verify(id).head_hash for id in ("s0", "s1", "s2")}
    other = tmp_path / "other"
    with SqlShell(path, lambda _: None) as shell:
        was_done = shell.run(line.format(path, other))
        shell.run("INSERT INTO permits VALUES ('mine')")
        shell.run("DELETE FROM events")

    assert not was_done
    assert {id: sessions.verify(id).head_hash for id in before} == before
    assert not other.exists()


def test_what_is_no_store_is_never_replaced(url: str, sessions: Sessions, tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    text = tmp_path / "letter.txt"
    text.write_text("dear")
    for target in (folder, text):
        with pytest.raises(StoreExists):
            back_up(url, target, overwrite=True)
    with pytest.raises((InvalidName, StoreExists)):
        back_up(url, tmp_path, overwrite=True)  # The store lies in it.

    assert (folder / "thesis.txt").read_text() == "years of work"
    assert text.read_text() == "dear"
    assert sessions.verify("s0").ok


def test_an_earlier_backup_is_back_in_its_place_where_the_new_one_cannot_take_it(
    url: str, sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, copy = _copy_of(url, "copy", tmp_path)
    back_up(url, target)
    rename = os.rename

    def failing(source: str, place: str) -> None:
        if str(source).endswith(".new"):
            raise OSError(5, "Input/output error")
        rename(source, place)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(StoreUnavailable):
        back_up(url, target, overwrite=True)
    monkeypatch.undo()
    with playhead.open(copy) as copied:
        total = copied.list().total

    assert total == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith((".old", ".new"))] == []


def test_what_goes_away_meanwhile_is_left_out(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/store"
    with playhead.open(url) as sessions:
        for id in ("s1", "s2"):
            sessions.create(id).close()
        (tmp_path / "store" / "s1.stream").write_text("")

        def vanish(number: int, count: int, name: str) -> None:
            if name == "s1.stream":
                (tmp_path / "store" / name).unlink()
            if name == "s2.playhead":
                sessions.delete("s2")

        done = back_up(url, tmp_path / "copy", on_file=vanish)

    assert [path.name for path in (tmp_path / "copy").glob("s*")] == ["s1.playhead"]
    assert done.problems == {}
    assert done.file_count == 0


def test_looking_leaves_no_file_beside_a_store(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/store"
    with playhead.open(url) as sessions:
        sessions.create("s1").close()
    before = sorted(path.name for path in (tmp_path / "store").iterdir() if path.name != CATALOGUE)
    for path in databases(url):
        check_file(path)
        with SqlShell(path, lambda _: None) as shell:
            shell.run("SELECT count(*) FROM events")
    back_up(url, tmp_path / "copy")

    assert sorted(path.name for path in (tmp_path / "store").iterdir() if path.name != CATALOGUE) == before
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == before
