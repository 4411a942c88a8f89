"""The full disk fails where a real one would, and lets the same connection go on once there is room again."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from playhead.testing.disk import FullDisk


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_transaction_on_a_full_disk_fails_whole_and_goes_through_after_release(
    tmp_path: Path, journal_mode: str
) -> None:
    with _events_on_full_disk(tmp_path, journal_mode=journal_mode) as (disk, db):
        _append(db, 1)
        disk.limit_bytes = 0
        with pytest.raises(apsw.FullError) as full:
            _append_together(db, [2, 3])
        seqs_on_full_disk = _seqs(db)
        disk.release()
        _append_together(db, [2, 3])
        mode, check, seqs = db.pragma("journal_mode"), db.pragma("integrity_check"), _seqs(db)

    assert mode == journal_mode
    assert _code(full.value) == apsw.SQLITE_FULL
    assert "disk is full" in str(full.value)
    assert seqs_on_full_disk == [1]
    assert check == "ok"
    assert seqs == [1, 2, 3]


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_wherever_the_disk_fills_up_an_append_lands_whole_or_not_at_all(tmp_path: Path, journal_mode: str) -> None:
    outcomes = []
    for limit_bytes in range(0, 30_000, 2_000):
        folder = tmp_path / str(limit_bytes)
        folder.mkdir()
        with _events_on_full_disk(folder, journal_mode=journal_mode) as (disk, db):
            _append(db, 1)
            disk.limit_bytes = limit_bytes
            try:
                _append(db, 2)
                appended = [1, 2]
            except apsw.FullError:
                appended = [1]
            disk.release()
            outcomes.append((appended, _seqs(db), db.pragma("integrity_check")))
            _append(db, 3)

    assert all(seqs == appended and check == "ok" for appended, seqs, check in outcomes)
    assert {len(seqs) for _, seqs, _ in outcomes} == {1, 2}


def test_the_write_that_crosses_the_limit_leaves_what_fits(tmp_path: Path) -> None:
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE
    with FullDisk() as disk:
        file = apsw.VFSFile(disk.name, str(tmp_path / "events.db"), [flags, 0])
        disk.limit_bytes = 6
        with pytest.raises(apsw.FullError):
            file.xWrite(b"0123456789", 0)
        content = file.xRead(file.xFileSize(), 0)
        file.xClose()

    assert content == b"012345"


def test_a_commit_stands_although_its_automatic_checkpoint_finds_no_room(tmp_path: Path) -> None:
    with _events_on_full_disk(tmp_path) as (disk, db):
        db.pragma("wal_autocheckpoint", 1)
        disk.limit_bytes = 200_000
        with pytest.raises(apsw.FullError):
            for seq in range(1, 100):
                _append(db, seq)
        seqs = _seqs(db)

    assert seqs == list(range(1, seq))
    assert len(seqs) > 1


def test_a_checkpoint_asked_for_can_be_limited_too_and_loses_nothing(tmp_path: Path) -> None:
    with _events_on_full_disk(tmp_path) as (disk, db):
        _append(db, 1)
        disk.limits_checkpoints = True
        disk.limit_bytes = 0
        with pytest.raises(apsw.FullError):
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        disk.release()
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        check, seqs = db.pragma("integrity_check"), _seqs(db)

    assert check == "ok"
    assert seqs == [1]


def test_a_failing_sync_is_an_input_output_error_once(tmp_path: Path) -> None:
    with _events_on_full_disk(tmp_path) as (disk, db):
        db.pragma("synchronous", "FULL")
        disk.fail("sync")
        with pytest.raises(apsw.IOError) as failed:
            _append(db, 1)
        seqs_after_failure = _seqs(db)
        _append(db, 1)
        seqs = _seqs(db)

    assert _code(failed.value) == apsw.SQLITE_IOERR_FSYNC
    assert seqs_after_failure == []
    assert seqs == [1]


def test_a_failing_read_is_an_input_output_error_once(tmp_path: Path) -> None:
    with _events_on_full_disk(tmp_path) as (disk, db), closing(_open(tmp_path, disk)) as reader:
        _append(db, 1)
        disk.fail("read")
        with pytest.raises(apsw.IOError) as failed:
            _seqs(reader)
        seqs = _seqs(reader)

    assert _code(failed.value) == apsw.SQLITE_IOERR_READ
    assert seqs == [1]


def test_the_seed_chooses_which_sync_fails(tmp_path: Path) -> None:
    failures = []
    for run, seed in enumerate([3, 3, 4, 5]):
        folder = tmp_path / str(run)
        folder.mkdir()
        with _events_on_full_disk(folder, seed=seed) as (disk, db):
            db.pragma("synchronous", "FULL")
            disk.fail("sync", within=20)
            with pytest.raises(apsw.IOError):
                for seq in range(1, 100):
                    _append(db, seq)
        failures.append(seq)

    assert failures[0] == failures[1]
    assert len(set(failures)) > 1
    assert max(failures) <= 20


def test_release_forgets_a_failure_still_to_come(tmp_path: Path) -> None:
    with _events_on_full_disk(tmp_path) as (disk, db):
        db.pragma("synchronous", "FULL")
        disk.fail("sync")
        disk.release()
        _append(db, 1)
        seqs = _seqs(db)

    assert seqs == [1]


def test_full_disks_do_not_share_a_limit_and_leave_no_name_behind(tmp_path: Path) -> None:
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    with _events_on_full_disk(tmp_path / "full") as (full, _), _events_on_full_disk(tmp_path / "empty") as (empty, db):
        full.limit_bytes = 0
        _append(db, 1)
        seqs = _seqs(db)

    assert seqs == [1]
    assert not {full.name, empty.name} & set(apsw.vfs_names())


@contextmanager
def _events_on_full_disk(
    folder: Path, *, journal_mode: str = "wal", seed: int = 0
) -> Iterator[tuple[FullDisk, apsw.Connection]]:
    with FullDisk(seed=seed) as disk, closing(_open(folder, disk, journal_mode=journal_mode)) as db:
        db.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT)")
        yield disk, db


def _open(folder: Path, disk: FullDisk, *, journal_mode: str = "wal") -> apsw.Connection:
    db = apsw.Connection(str(folder / "events.db"), vfs=disk.name)
    db.pragma("journal_mode", journal_mode)
    db.pragma("synchronous", "NORMAL")
    return db


def _append(db: apsw.Connection, seq: int) -> None:
    db.execute("INSERT INTO event VALUES (?, ?)", (seq, f"event {seq}: " + "tests pass " * 800))


def _append_together(db: apsw.Connection, seqs: list[int]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for seq in seqs:
            _append(db, seq)
        db.execute("COMMIT")
    except apsw.FullError:
        # With a rollback journal SQLite has rolled back already, and a second time would be an error.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _seqs(db: apsw.Connection) -> list[int]:
    return [seq for (seq,) in db.execute("SELECT seq FROM event ORDER BY seq")]


def _code(error: apsw.Error) -> int | None:
    # apsw sets it on each error, but its type hints only know it on the base class's instances at run time.
    return getattr(error, "extendedresult", None)
