"""The power-cut simulator tells a configuration that keeps its promises from one that does not."""

import itertools
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from playhead.testing.powercut import Image, Operation, PowerCut

TURNS = 40
EVENTS_PER_TURN = 5
CUTS = 200

Commit = Callable[[apsw.Connection, PowerCut[int], int], None]


def test_the_wal_works_through_the_vfs(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path) as cut:
        db, reader = _open(cut, tmp_path), _open(cut, tmp_path)
        _append(db, 1)
        seqs = reader.execute("SELECT seq FROM event").fetchall()
        mode = db.pragma("journal_mode")
        db.close()
        reader.close()

    assert mode == "wal"
    assert seqs == [(1,)]
    assert cut.name not in apsw.vfs_names()


def test_power_cuts_have_names_of_their_own(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "one") as one, PowerCut[int](tmp_path / "two") as two:
        names = {one.name, two.name} & set(apsw.vfs_names())

    assert len(names) == 2


def test_a_commit_with_synchronous_full_syncs_the_wal_without_a_checkpoint(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path) as cut:
        db = _open(cut, tmp_path)
        _append(db, 1)
        before_normal = len(cut.operations)
        _append(db, 2)
        before_full = len(cut.operations)
        _append_in_full(db, 3)
        normal, full = cut.operations[before_normal:before_full], cut.operations[before_full:]
        db.close()

    assert {operation.kind for operation in normal} == {"write"}
    assert full[-1] == Operation("sync", "events.db-wal")
    assert {operation.path for operation in full} == {"events.db-wal"}


def test_turn_ends_committed_with_synchronous_full_lose_nothing(tmp_path: Path) -> None:
    verdicts = _cut_the_power(tmp_path, turn_end=_end_in_full)

    assert verdicts == {"kept": CUTS}


def test_turn_ends_followed_by_a_checkpoint_lose_nothing(tmp_path: Path) -> None:
    verdicts = _cut_the_power(tmp_path, turn_end=_end_with_checkpoint)

    assert verdicts == {"kept": CUTS}


def test_promising_every_commit_with_synchronous_normal_is_caught_losing_rows_not_corrupting(tmp_path: Path) -> None:
    verdicts = _cut_the_power(tmp_path, turn_end=_end_in_normal)

    assert verdicts.keys() == {"kept", "lost"}


def test_synchronous_off_is_caught_corrupting(tmp_path: Path) -> None:
    verdicts = _cut_the_power(tmp_path, turn_end=_end_in_normal, synchronous="OFF")

    assert verdicts.keys() == {"kept", "lost", "corrupt"}


@pytest.mark.parametrize(("synchronous", "expected"), [("EXTRA", {"kept"}), ("FULL", {"kept", "lost"})])
def test_a_rollback_journal_keeps_promises_only_if_its_deletion_is_synced(
    tmp_path: Path, synchronous: str, expected: set[str]
) -> None:
    # SQLite's documentation says as much: after FULL, a journal that comes back rolls the last commit back.
    verdicts = _cut_the_power(tmp_path, turn_end=_end_in_normal, synchronous=synchronous, journal_mode="delete")

    assert verdicts.keys() == expected


def test_a_database_from_before_the_simulation_is_in_every_image(tmp_path: Path) -> None:
    root, images = tmp_path / "disk", tmp_path / "images"
    root.mkdir()
    db = apsw.Connection(str(root / "events.db"))
    db.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, body TEXT); INSERT INTO event VALUES (1, 'kept')")
    db.close()
    with PowerCut[int](root) as cut:
        cut.promise(1)
        db = apsw.Connection(str(root / "events.db"), vfs=cut.name)
        db.execute("INSERT INTO event VALUES (2, 'new')")
        db.close()
    verdicts = Counter(_verdict(image) for image in cut.images(50, seed=1, into=images))

    assert verdicts == {"kept": 50}


def test_an_unsynced_write_is_torn_at_sector_boundaries_only(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        file = _raw_file(cut, "events.db")
        file.xWrite(b"a" * 2000, 0)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        file.xWrite(b"b" * 1600, 100)
        file.xClose()
    contents = _contents(cut, tmp_path / "images", "events.db")
    sector_parts = [(b"a" * size, b"b" * size) for size in (412, 512, 512, 164)]
    expected = {b"a" * 100 + b"".join(parts) + b"a" * 300 for parts in itertools.product(*sector_parts)}

    assert contents == expected


def test_what_was_synced_survives_and_what_was_not_may_be_missing(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        file = _raw_file(cut, "events.db")
        file.xWrite(b"synced", 0)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
        file.xTruncate(3)
        file.xWrite(b"late", 6)
        file.xClose()
    contents = _contents(cut, tmp_path / "images", "events.db")

    assert contents == {b"synced", b"syn", b"syncedlate", b"syn\0\0\0late"}


def test_an_unsynced_creation_or_deletion_may_not_have_happened(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        _write_file(cut, "old.db", b"old", is_synced=True)
        _write_file(cut, "new.db", b"new", is_synced=False)
        _delete_file(cut, "old.db")
    old_contents = _contents(cut, tmp_path / "images-of-old", "old.db")
    new_contents = _contents(cut, tmp_path / "images-of-new", "new.db")

    assert old_contents == {b"old", None}
    assert new_contents == {b"new", b"", None}


def test_a_file_whose_creation_was_lost_does_not_write_into_the_one_it_was_to_replace(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        _write_file(cut, "events.db", b"old events", is_synced=True)
        _delete_file(cut, "events.db")
        _write_file(cut, "events.db", b"new", is_synced=False)
    contents = _contents(cut, tmp_path / "images", "events.db")

    assert contents == {b"old events", None, b"", b"new"}


def test_the_first_sync_of_a_file_makes_the_names_in_its_folder_durable_but_not_their_contents(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        _write_file(cut, "deleted.db", b"old", is_synced=True)
        _write_file(cut, "created.db", b"new", is_synced=False)
        _delete_file(cut, "deleted.db")
        _write_file(cut, "synced.db", b"synced", is_synced=True)
    deleted, created, synced = (
        _contents(cut, tmp_path / f"images-of-{name}", f"{name}.db") for name in ("deleted", "created", "synced")
    )

    assert deleted == {None}
    assert created == {b"new", b""}
    assert synced == {b"synced"}


def test_what_was_written_to_a_deleted_file_does_not_reach_the_next_one_of_its_name(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        _write_file(cut, "events.db", b"old events", is_synced=False)
        _delete_file(cut, "events.db")
        _write_file(cut, "events.db", b"", is_synced=False)
        _write_file(cut, "other.db", b"synced", is_synced=True)
    contents = _contents(cut, tmp_path / "images", "events.db")

    assert contents == {b""}


def test_an_image_lists_the_promises_made_before_its_cut(tmp_path: Path) -> None:
    with PowerCut[str](tmp_path / "disk") as cut:
        cut.promise("nothing is there yet")
        _write_file(cut, "events.db", b"events", is_synced=True)
        cut.promise("events are there")
        _delete_file(cut, "events.db")
    last = len(cut.operations)
    promised = [
        cut.image(count, random.Random(1), into=tmp_path / f"image-{count}").promised
        for count in (0, last - 2, last - 1, last)
    ]

    assert promised[:2] == [("nothing is there yet",)] * 2
    assert promised[2:] == [("nothing is there yet", "events are there")] * 2


def test_the_same_seed_gives_the_same_images(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        db = _open(cut, tmp_path / "disk")
        for seq in range(1, 21):
            _append(db, seq)
            cut.promise(seq)
        db.close()
    first, again, other = (
        [_fingerprint(image) for image in cut.images(20, seed=seed, into=tmp_path / name)]
        for name, seed in (("first", 7), ("again", 7), ("other", 8))
    )

    assert first == again
    assert first != other


def test_a_file_replaced_behind_the_simulation_is_refused(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path) as cut:
        _open(cut, tmp_path).close()
        (tmp_path / "other.db").write_bytes(b"")
        os.replace(tmp_path / "other.db", tmp_path / "events.db")
        with pytest.raises(RuntimeError) as refused:
            _open(cut, tmp_path)

    assert "events.db was replaced" in str(refused.value)


def test_files_outside_the_root_are_left_alone(tmp_path: Path) -> None:
    with PowerCut[int](tmp_path / "disk") as cut:
        (tmp_path / "disk-of-another").mkdir()
        _open(cut, tmp_path / "disk-of-another").close()

    assert cut.operations == []


def _open(cut: PowerCut[int], root: Path, *, synchronous: str = "NORMAL", journal_mode: str = "wal") -> apsw.Connection:
    """Return a database of events with two b-trees that have to agree, and checkpoints every few commits."""
    root.mkdir(exist_ok=True)
    db = apsw.Connection(str(root / "events.db"), vfs=cut.name)
    db.pragma("journal_mode", journal_mode)
    db.pragma("synchronous", synchronous)
    db.pragma("wal_autocheckpoint", 25)
    db.execute("CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY, kind TEXT, body TEXT)")
    db.execute("CREATE INDEX IF NOT EXISTS event_by_kind ON event (kind, seq)")
    return db


def _append(db: apsw.Connection, seq: int) -> None:
    kind = ("message", "job_changed", "state_changed")[seq % 3]
    db.execute("INSERT INTO event VALUES (?, ?, ?)", (seq, kind, f"event {seq}: " + "tests pass " * (seq % 90)))


def _append_in_full(db: apsw.Connection, seq: int) -> None:
    db.pragma("synchronous", "FULL")
    _append(db, seq)
    db.pragma("synchronous", "NORMAL")


def _end_in_full(db: apsw.Connection, cut: PowerCut[int], seq: int) -> None:
    _append_in_full(db, seq)
    cut.promise(seq)


def _end_with_checkpoint(db: apsw.Connection, cut: PowerCut[int], seq: int) -> None:
    _append(db, seq)
    db.pragma("wal_checkpoint")
    cut.promise(seq)


def _end_in_normal(db: apsw.Connection, cut: PowerCut[int], seq: int) -> None:
    _append(db, seq)
    cut.promise(seq)


def _cut_the_power(
    tmp_path: Path, *, turn_end: Commit, synchronous: str = "NORMAL", journal_mode: str = "wal"
) -> Counter[str]:
    """Return how many of the images kept their promises, lost promised events, or are no sound database."""
    with PowerCut[int](tmp_path / "disk") as cut:
        db = _open(cut, tmp_path / "disk", synchronous=synchronous, journal_mode=journal_mode)
        for seq in range(1, TURNS * EVENTS_PER_TURN + 1):
            if seq % EVENTS_PER_TURN:
                _append(db, seq)
            else:
                turn_end(db, cut, seq)
        db.close()
    return Counter(_verdict(image) for image in cut.images(CUTS, seed=1, into=tmp_path / "images"))


def _verdict(image: Image[int]) -> str:
    """Return "corrupt" unless the image opens as a sound database whose events are 1, 2, 3 … without gaps."""
    try:
        db = apsw.Connection(str(image.directory / "events.db"))
        db.pragma("synchronous", "OFF")  # the images only have to be read, and syncing hundreds of them takes long
        check = db.pragma("integrity_check")
        has_table = bool(db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'event'").get)
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM event ORDER BY seq")] if has_table else []
        db.close()
    except (apsw.CorruptError, apsw.NotADBError):
        return "corrupt"
    if check != "ok" or seqs != list(range(1, len(seqs) + 1)):
        return "corrupt"
    return "kept" if len(seqs) >= max(image.promised, default=0) else "lost"


def _raw_file(cut: PowerCut[Any], name: str) -> apsw.VFSFile:
    cut.root.mkdir(exist_ok=True)
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_READWRITE
    return apsw.VFSFile(cut.name, str(cut.root / name), [flags, 0])


def _write_file(cut: PowerCut[Any], name: str, content: bytes, *, is_synced: bool) -> None:
    file = _raw_file(cut, name)
    file.xWrite(content, 0)
    if is_synced:
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    file.xClose()


def _delete_file(cut: PowerCut[Any], name: str) -> None:
    cut.xDelete(str(cut.root / name), False)


def _contents(cut: PowerCut[int], images: Path, name: str) -> set[bytes | None]:
    """Return every content, or None for absence, that a file has in many images of the last moment."""
    rng = random.Random(1)
    found: set[bytes | None] = set()
    for _ in range(300):
        image = cut.image(len(cut.operations), rng, into=images)
        file = image.directory / name
        found.add(file.read_bytes() if file.exists() else None)
        shutil.rmtree(images)
    return found


def _fingerprint(image: Image[int]) -> tuple[object, ...]:
    files = sorted(path for path in image.directory.rglob("*") if path.is_file())
    return (image.operation_count, image.promised, [(path.name, path.read_bytes()) for path in files])
