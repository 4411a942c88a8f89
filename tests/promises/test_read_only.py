"""A store that cannot be written is read all the same, and whoever writes to it is told what is in the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import playhead
from playhead.errors import StoreReadOnly, StoreUnavailable
from playhead.features.statistics import statistics
from playhead.stores.sqlite.backup import back_up, check_file, databases
from playhead.stores.sqlite.connect import Database
from playhead.stores.sqlite.shell import SqlShell
from tests.promises.hindrances import bound_by_modes

SCHEMES = ("bundles", "sqlite")


class ReadOnly:
    """A store with one session, whose files and folders can be made read-only, and writable again."""

    def __init__(self, folder: Path, scheme: str) -> None:
        self.folder = folder
        self.url = f"{scheme}:{folder / ('store' if scheme == 'bundles' else 'store.db')}"
        with playhead.open(self.url) as sessions:
            with sessions.create("s1", title="Flaky upload test") as session, session.turn("Why does it fail?") as turn:
                turn.say("Because the connection is reset.")
            sessions.search("connection")

    def shut(self) -> None:
        self._give(0o400, 0o500)

    def open_up(self) -> None:
        self._give(0o600, 0o700)

    def names(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}

    def _give(self, file_mode: int, folder_mode: int) -> None:
        for root, _, names in os.walk(self.folder):
            os.chmod(root, folder_mode)
            for name in names:
                os.chmod(Path(root) / name, file_mode)


@pytest.fixture(params=SCHEMES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReadOnly]:
    folder = tmp_path / "place"
    folder.mkdir()
    with bound_by_modes():
        made = ReadOnly(folder, request.param)
        yield made
        made.open_up()


def test_what_cannot_be_written_is_listed_shown_searched_counted_and_verified(store: ReadOnly) -> None:
    """S12."""
    store.shut()
    before = store.names()
    with playhead.open(store.url) as sessions:
        rows = sessions.list().items
        session = sessions.get("s1")
        said = [message.text for message in session.conversation()]
        timeline = session.timeline()
        found = sessions.search("connection")
        counted = statistics(sessions.store)
        verified = sessions.verify("s1")
        trashed = sessions.trashed()

    assert [(row.problem, row.summary.title if row.summary else None) for row in rows] == [(None, "Flaky upload test")]
    assert said == ["Why does it fail?", "Because the connection is reset."]
    assert timeline
    assert [hit.session for hit in found.hits] == ["s1"]
    assert found.problems == {}
    assert (counted.total.session_count, counted.unreadable_count) == (1, 0)
    assert verified.ok
    assert trashed == ()
    assert store.names() == before


def test_a_write_to_what_cannot_be_written_says_so_and_works_once_it_can(store: ReadOnly) -> None:
    store.shut()
    with playhead.open(store.url) as sessions:
        session = sessions.get("s1")
        writes: list[Callable[[], object]] = [
            lambda: session.append("note", {"name": "test"}),
            lambda: session.turn("And now?"),
            lambda: session.rename("Another title"),
            lambda: sessions.resume("s1"),
            lambda: sessions.create("s2"),
            lambda: session.fork(),
            lambda: sessions.delete("s1"),
            lambda: sessions.trash("s1"),
        ]
        refused = [_error_of(write) for write in writes]
        count = len(session.events())
        store.open_up()
        event = session.append("note", {"name": "after"})
        with session.turn("And now?") as turn:
            turn.say("Yes.")

        assert refused == [StoreReadOnly] * len(writes)
        assert event.seq == count + 1
        assert session.verify().ok


def test_what_the_index_does_not_hold_yet_is_named_by_a_search(store: ReadOnly) -> None:
    with playhead.open(store.url) as sessions:
        sessions.get("s1").append("message", {"role": "user", "parts": [{"type": "text", "content": "connection two"}]})
    store.shut()
    with playhead.open(store.url) as sessions:
        found = sessions.search("connection")

    assert len(found.hits) == 1
    assert "cannot be written" in found.problems["s1"]


def test_what_was_written_last_before_a_kill_is_read_too(store: ReadOnly) -> None:
    """The write-ahead log holds it, which nobody can fold into the file."""
    with playhead.open(store.url) as sessions:
        sessions.get("s1").append("note", {"name": "last"})
        kept = store.folder / "kept"
        shutil.copytree(store.folder, kept, ignore=shutil.ignore_patterns("*-shm", "kept"))
    moved = f"{store.url.partition(':')[0]}:{kept / Path(store.url.partition(':')[2]).name}"
    store.shut()
    with playhead.open(moved) as sessions:
        last = sessions.get("s1").events()[-1]
        row = sessions.list().items[0]

    assert any(name.endswith("-wal") for name in store.names())
    assert not any(name.endswith("-shm") for name in store.names())
    assert last.body == {"name": "last"}
    assert row.problem is None


def test_a_reader_without_rights_sees_what_others_write_meanwhile(store: ReadOnly) -> None:
    store.shut()
    with playhead.open(store.url) as reader:
        session = reader.get("s1")
        before = len(session.events())
        store.open_up()
        with playhead.open(store.url) as writer:
            writer.get("s1").append("note", {"name": "more"})
            during = len(reader.get("s1").events())
        after = len(reader.get("s1").events())

    assert (during, after) == (before + 1, before + 1)


def test_what_changes_while_it_is_read_without_locks_is_read_again(store: ReadOnly) -> None:
    store.shut()
    path = databases(store.url)[0]
    database = Database.open(str(path))
    with pytest.raises(StoreUnavailable, match="read it again"):
        with database.read():
            is_in_place = database.row("is_empty") == (0,)
            os.utime(path, (0.0, 0.0))
    again = database.row("is_empty")
    database.close()

    assert is_in_place
    assert again == (0,)


def test_files_that_can_be_written_in_a_folder_that_cannot_are_read(store: ReadOnly) -> None:
    for root, _, _ in os.walk(store.folder):
        os.chmod(root, 0o500)
    with playhead.open(store.url) as sessions:
        title = sessions.list().items[0].summary
        refused = _error_of(lambda: sessions.get("s1").append("note", {"name": "test"}))

    assert title is not None and title.title == "Flaky upload test"
    assert refused is StoreReadOnly


def test_what_cannot_be_written_is_copied_checked_and_looked_into_with_sql(store: ReadOnly) -> None:
    copy = store.folder / "copy"
    place = store.folder / "only"
    place.mkdir()
    name = Path(store.url.partition(":")[2]).name
    os.rename(store.folder / name, place / name)
    url = f"{store.url.partition(':')[0]}:{place / name}"
    store.shut()
    os.chmod(store.folder, 0o700)
    done = back_up(url, copy)
    problems = [check_file(path) for path in databases(url)]
    printed: list[str] = []
    with SqlShell(databases(url)[-1], printed.append) as shell:
        is_done = shell.run("SELECT count(*) > 0 FROM events;")
    with playhead.open(f"{url.partition(':')[0]}:{copy}") as copied:
        whole = copied.verify("s1").ok

    assert done.problems == {}
    assert problems == [[]] * len(problems)
    assert is_done and "".join(printed).split() == ["1"]
    assert whole


def test_a_session_that_is_read_without_rights_leaves_writers_alone(store: ReadOnly) -> None:
    """Closing a file that was opened without locks must not take those of the process along."""
    store.shut()
    with playhead.open(store.url) as sessions:
        session = sessions.get("s1")
        session.events()
        store.open_up()
        with session.turn("And now?") as turn, playhead.open(store.url) as other:
            holder = other.store.holder(session.key)
            turn.say("Yes.")
            seen = len(other.get("s1").events())

        assert holder is not None
        assert seen == len(session.events()) - 1
        assert session.verify().ok


def _error_of(call: Callable[[], object]) -> type[BaseException] | None:
    try:
        call()
    except playhead.PlayheadError as error:
        return type(error)
    return None
