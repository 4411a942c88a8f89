"""K20 to K23 where somebody is in the way: a writer that was stopped, strange files, a catalogue from elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

import playhead
from playhead.errors import NotAStore, SessionNotFound
from playhead.features import listing
from playhead.model.ids import session_key
from playhead.stores.listing import ListingPage
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.catalogue_file import path_in
from playhead.testing.drafts import draft
from playhead.testing.store_harness import append, begun

NOT_UTF8 = os.fsdecode(b"caf\xe9.playhead")
UPDATE = "UPDATE bundles SET name = ? WHERE name = 's01.playhead'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    with playhead.open(f"bundles:{folder}") as sessions:
        for number in range(4):
            sessions.create(f"s{number:02}", title=f"Upload {number}").close()
        time.sleep(0.1)
        sessions.list()
    return folder


def _ids(folder: Path) -> list[str]:
    with playhead.open(f"bundles:{folder}") as sessions:
        return sorted(row.id for row in sessions.list().items)


# A writer that was stopped.


def test_a_catalogue_that_stays_locked_is_in_nobodys_way(folder: Path) -> None:
    """K21. As where a process was stopped in the middle of a write to it."""
    with playhead.open(f"bundles:{folder}") as sessions, _locked(path_in(folder)):
        sessions.get("s00").rename("Renamed")
        sessions.create("s04").close()
        with sessions.get("s01").turn("Why?") as turn:
            turn.say("So.")
        sessions.trash("s02")
        with pytest.raises(SessionNotFound):
            sessions.get("nowhere")
        titles = {row.id: row.summary.title for row in sessions.list().items if row.summary}
        count = sessions.overview().session_count
    after = _ids(folder)

    assert titles == {"s00": "Renamed", "s01": "Upload 1", "s03": "Upload 3", "s04": "New session"}
    assert (count, after) == (4, sorted(titles))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    code = (
        "import sys, apsw\nc = apsw.Connection(sys.argv[1])\nc.execute('BEGIN IMMEDIATE')\nprint('locked', flush=True)"
    )
    command = [sys.executable, "-c", f"{code}\nsys.stdin.readline()", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            process.stdin.close()
            process.wait()


STOPPED = '''
import os, signal, sys
from pathlib import Path
import apsw
from playhead.model.ids import session_key
from playhead.stores.sqlite.bundles import BundleStore
from playhead.testing.drafts import draft
from playhead.testing.store_harness import append

class Stops(apsw.VFS):
    """Stops this process once the last frame of a commit is in the write-ahead log, and no reader knows of it yet."""
    is_armed = False
    def __init__(self):
        super().__init__("stops", "")
    def xOpen(self, name, flags):
        return File(self, name, flags)

class File(apsw.VFSFile):
    def __init__(self, stops, name, flags):
        self.stops, self.is_last = stops, False
        self.is_wal = (name.filename() if isinstance(name, apsw.URIFilename) else name or "").endswith("-wal")
        super().__init__("", name, flags)
    def xWrite(self, data, offset):
        super().xWrite(data, offset)
        if self.stops.is_armed and self.is_wal and offset >= 32:
            if len(data) == 24:
                self.is_last = int.from_bytes(data[4:8], "big") != 0
            elif self.is_last:
                self.stops.is_armed = False
                os.kill(os.getpid(), signal.SIGSTOP)

stops, key = Stops(), session_key("s00")
store = BundleStore(Path(sys.argv[1]), vfs="stops")
append(store, draft(n=50), key=key)
stops.is_armed = True
append(store, draft(n=51), key=key)
print("written", flush=True)
sys.stdin.readline()
'''


def test_what_a_writer_that_was_stopped_wrote_is_listed_once_it_goes_on(folder: Path) -> None:
    """K21."""
    with playhead.open(f"bundles:{folder}") as sessions:
        before = _seq_of(sessions)
        command = [sys.executable, "-c", STOPPED, str(folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            os.waitpid(process.pid, os.WUNTRACED)
            time.sleep(0.6)
            seen = [_seq_of(sessions) for _ in range(2)]
            process.send_signal(signal.SIGCONT)
            written = process.stdout.readline()
            after = _seq_of(sessions)
            process.stdin.close()
            process.wait()
        closed = _seq_of(sessions)

    assert written == "written\n"
    assert seen == [before + 1] * 2
    assert (after, closed) == (before + 2, before + 2)


def test_a_write_ahead_log_that_rests_is_read_again_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K21. Who is stopped may be killed as well, and then nobody tells."""
    monkeypatch.setattr("playhead.stores.sqlite.catalogue.TRUST_MAX_NS", 0)
    read: list[str] = []
    real = BundleStore._read_row

    def counted(store: BundleStore, path: Path) -> object:
        read.append(path.name)
        return real(store, path)

    monkeypatch.setattr(BundleStore, "_read_row", counted)
    with playhead.open(f"bundles:{folder}") as sessions, playhead.open(f"bundles:{folder}") as others:
        sessions.get("s00").append("note", {"name": "n"})
        time.sleep(0.4)
        others.list()
        read.clear()
        others.list()

    assert set(read) == {"s00.playhead"}


def _seq_of(sessions: playhead.Sessions) -> int:
    (row,) = [row for row in sessions.list().items if row.id == "s00"]
    assert row.summary is not None
    return row.summary.seq


# Strange files.


def test_a_name_that_is_no_utf8_is_a_row_that_says_so(folder: Path) -> None:
    """K21."""
    (folder / NOT_UTF8).write_bytes((folder / "s00.playhead").read_bytes())
    (folder / "s00.playhead").unlink()
    with playhead.open(f"bundles:{folder}") as sessions:
        rows = {row.id: row.problem for row in sessions.list().items}
        sessions.create("s04").close()
        sessions.search("upload")
        with pytest.raises(SessionNotFound):
            sessions.get("s00")
        trash_id = sessions.trash("caf?")
        gone = {row.id for row in sessions.list().items}
        sessions.restore(trash_id)
        (folder / NOT_UTF8).rename(folder / "cafe.playhead")
        back = {row.id: row.problem for row in sessions.list().items}

    assert set(rows) == {"s01", "s02", "s03", "caf?"}
    assert "not UTF-8; rename the file" in (rows["caf?"] or "")
    assert gone == {"s01", "s02", "s03", "s04"}
    assert back == dict.fromkeys(["s00", "s01", "s02", "s03", "s04"])


def test_a_pipe_beside_a_bundle_keeps_nobody_waiting(folder: Path) -> None:
    """K21."""
    os.mkfifo(folder / "s00.playhead.lock")
    os.mkfifo(folder / "s01.playhead-journal")
    with playhead.open(f"bundles:{folder}") as sessions:
        with sessions.get("s02").turn("Why?"):
            ids = sorted(row.id for row in sessions.list(full_rescan=True).items)
        sessions.list(status="interrupted")
        with pytest.raises(NotAStore):
            sessions.get("s01")

    assert ids == ["s00", "s01", "s02", "s03"]


def test_a_bundle_with_the_longest_name_can_be_put_into_the_trash(folder: Path) -> None:
    """K23."""
    long = "b" * 240
    (folder / f"{long}.playhead").write_bytes(b"no database")
    with playhead.open(f"bundles:{folder}") as sessions:
        listed = [row.id for row in sessions.list().items if row.problem]
        sessions.trash(long)

    assert listed == [long]
    assert _ids(folder) == ["s00", "s01", "s02", "s03"]


# A catalogue from elsewhere.


@pytest.mark.parametrize(
    "name", ["../elsewhere/s09.playhead", "/zz", "", "a\0b.playhead", "x" * 300 + ".playhead", "s01"]
)
def test_a_catalogue_leads_nowhere_else(folder: Path, name: str) -> None:
    """K22."""
    elsewhere = folder.parent / "elsewhere"
    with playhead.open(f"bundles:{elsewhere}") as sessions:
        sessions.create("s09").close()
    before = (elsewhere / "s09.playhead").read_bytes()
    _by_hand(folder, UPDATE, (name,))
    with playhead.open(f"bundles:{folder}") as sessions:
        ids = sorted(row.id for row in sessions.list().items)
        sessions.get("s01").rename("Renamed")
        sessions.delete("s01")

    assert ids == ["s00", "s01", "s02", "s03"]
    assert _ids(folder) == ["s00", "s02", "s03"]
    assert (elsewhere / "s09.playhead").read_bytes() == before


def test_a_catalogue_that_lost_rows_is_made_anew(folder: Path) -> None:
    """K22."""
    _by_hand(folder, "DELETE FROM bundles WHERE number % 2")

    assert _ids(folder) == ["s00", "s01", "s02", "s03"]


def test_what_was_purged_is_in_no_page_of_the_catalogue(folder: Path) -> None:
    """K23."""
    with playhead.open(f"bundles:{folder}") as sessions:
        with sessions.create("canary", title="XYZZY canary") as session, session.turn("a canary question") as turn:
            turn.say("a canary answer")
        sessions.list()
        sessions.purge(sessions.trash("canary"))
        sessions.list()

    assert b"canary" not in path_in(folder).read_bytes().lower()


def _by_hand(folder: Path, statement: str, bindings: tuple[str, ...] = ()) -> None:
    connection = apsw.Connection(str(path_in(folder)))
    connection.execute(statement, bindings)
    connection.close()


# A page whose rows stay behind.


def test_pages_go_on_from_where_the_kept_row_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K20. A row that is written to all the while moves, and must take no reader of pages back to the front with it."""
    store = BundleStore(folder)
    for number in range(6):
        begun(store, session_key(f"t{number}"))
    with playhead.open(f"bundles:{folder}") as sessions:
        sessions.list()
        real = sessions.store.listing.page

        def never_settled(*arguments: object, **options: object) -> ListingPage:
            page: ListingPage = real(*arguments, **options)  # type: ignore[arg-type]
            last = page.rows[2:3]
            for row in last:
                append(store, draft("session_changed", n=int(time.monotonic_ns() % 10**9), body={}), key=row.key)
            return ListingPage(page.rows, page.total, False, frozenset(row.key for row in last))

        monkeypatch.setattr(sessions.store.listing, "page", never_settled)
        monkeypatch.setattr(listing, "PAGES_MAX", 1)
        page = sessions.list(limit=3)
        met = [row.id for row in page.items]
        while page.next_cursor is not None and len(met) < 40:
            page = sessions.list(limit=3, cursor=page.next_cursor)
            met += [row.id for row in page.items]
    store.close()

    assert sorted(set(met)) == sorted([f"s{number:02}" for number in range(4)] + [f"t{number}" for number in range(6)])
    assert len(met) < 40
