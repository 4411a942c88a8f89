"""S9 and S11 on hostile and damaged files: a clear error or a row that says why, and all others go on."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import apsw
import pytest

from playhead.errors import NewerFormat, NotAStore, PlayheadError, SessionNotFound, StoreUnavailable
from playhead.features.live import Clock, Entropy
from playhead.model.ids import session_key
from playhead.session import Sessions
from playhead.stores.names import CATALOGUE
from playhead.stores.open import open_store
from tests.promises.children import Nursery
from tests.promises.places import Bundles, OneFile, Place

TRIALS = 60
TRIALS_IN_FULL = 1_500
NEWER = 99


def test_a_file_of_a_newer_version_is_refused_with_both_versions_and_stays_as_it_is(place: Place) -> None:
    """S11."""
    _fill(place)
    file = place.database("s1")
    _set_version(file, NEWER)
    before = file.read_bytes()
    with pytest.raises(NewerFormat) as error:
        with place.open() as sessions:
            sessions.get("s1")

    assert (error.value.found, error.value.supported) == (NEWER, 1)
    assert str(NEWER) in str(error.value) and "version 1" in str(error.value)
    assert file.read_bytes() == before
    assert not Path(f"{file}-wal").exists()


def test_a_file_of_a_newer_version_whose_writer_died_stays_as_it_is_with_its_write_ahead_log(
    place: Place, nursery: Nursery
) -> None:
    _fill(place)
    file = place.database("s1")
    nursery.run("test_damaged_files:die_with_a_newer_version", file=str(file))
    files = [file, Path(f"{file}-wal")]
    before = [one.read_bytes() for one in files]
    with pytest.raises(NewerFormat):
        with place.open() as sessions:
            sessions.get("s1")

    assert len(before[1]) > 0
    assert [one.read_bytes() for one in files] == before


def test_a_newer_bundle_is_a_row_that_says_so_and_others_are_listed_and_found(tmp_path: Path) -> None:
    """K19."""
    place = Bundles(tmp_path / "store")
    _fill(place)
    _set_version(place.database("s1"), NEWER)
    with place.open() as sessions:
        rows = {row.id: row.problem for row in sessions.list().items}
        found = sessions.search("connection reset")
        with pytest.raises(NewerFormat):
            sessions.resume("s1")
        with pytest.raises(PlayheadError):
            sessions.create("s1")

    assert rows["s2"] is None
    assert rows["s1"] is not None and str(NEWER) in rows["s1"]
    assert {hit.session for hit in found.hits} == {"s2"}


def _foreign_database(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version=1; CREATE TABLE sessions (id TEXT, update_time TEXT)")
    db.close()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a database of another program": _foreign_database,
    "a text file": lambda path: path.write_text("# A session\nNot a database at all.\n" * 40),
    "an empty file": lambda path: path.write_bytes(b""),
    "only a header": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(40_000)),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(what: str, place: Place) -> None:
    file = place.database("s1")
    FOREIGN[what](file)
    before = file.read_bytes()
    with pytest.raises(NotAStore) as error:
        with place.open() as sessions:
            sessions.get("s1")

    assert str(file) in str(error.value)
    assert file.read_bytes() == before
    assert sorted(path.name for path in place.folder.iterdir() if not path.name.startswith(("_", "."))) == [file.name]


def test_whatever_is_named_like_a_bundle_is_a_row_with_a_problem_and_hurts_nobody(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    _fill(place)
    for number, make in enumerate(FOREIGN.values()):
        make(place.folder / f"foreign-{number}.playhead")
    elsewhere = tmp_path / "elsewhere.playhead"
    shutil.copy(place.database("s1"), elsewhere)
    whole = place.database("s1").read_bytes()
    (place.folder / "cut.playhead").write_bytes(whole[: len(whole) // 2])
    (place.folder / "folder.playhead").mkdir()
    (place.folder / "link.playhead").symlink_to(elsewhere)
    (place.folder / "nowhere.playhead").symlink_to(tmp_path / "nothing")
    os.mkfifo(place.folder / "pipe.playhead")
    strange = {path.stem for path in place.folder.iterdir()} - {"s1", "s2", "_store", CATALOGUE}
    with place.open() as sessions:
        rows = {row.id: row.problem for row in sessions.list().items}
        hits = {hit.session for hit in sessions.search("connection reset").hits}
        refused = [_refusal(sessions, id) for id in sorted(strange)]
        session = sessions.get("s1")
        session.append("note", {"name": "after"})
        is_sound = session.verify().ok

    assert {id for id, problem in rows.items() if problem is None} == {"s1", "s2"}
    assert {id for id, problem in rows.items() if problem} == strange
    assert hits == {"s1", "s2"}
    assert all(isinstance(error, PlayheadError) for error in refused)
    assert is_sound
    assert elsewhere.read_bytes() == whole


@pytest.mark.parametrize("kind", [Bundles, OneFile], ids=["bundles", "sqlite"])
def test_flipped_bytes_never_crash_anything_and_leave_other_sessions_alone(kind: type[Place], tmp_path: Path) -> None:
    crashes, outcomes = _damage(kind, tmp_path, trials=TRIALS, seed=7)

    assert crashes == []
    assert outcomes["unreadable"] > 0
    assert outcomes["named by verify"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", [Bundles, OneFile], ids=["bundles", "sqlite"])
def test_bytes_flipped_a_thousand_times_never_crash_anything(kind: type[Place], tmp_path: Path) -> None:
    crashes, _ = _damage(kind, tmp_path, trials=TRIALS_IN_FULL, seed=1_000)

    assert crashes == []


GARBAGE = (
    b"not JSON at all",
    b"\xff\xfe\x00",
    bytes(4_096),
    b'"a text"',
    b"null",
    b"[0]",
    b'[[], "x"]',
    b'[{"begin": 0}, "x"]',
    b'{"end": []}',
    b'{"begin": {}, "id": "m"}',
    b'{"begin": 7, "id": 5, "header": {}}\n[7, "x"]',
    b'{"begin": 7, "header": {}}\n[7, "x"]',
    b'{"begin": 7, "id": "m", "header": "none"}\n[7, "x"]',
    b'{"begin": 7, "id": "m", "header": {"agent": 5, "turn": [], "scope": {}, "at": "now"}}\n[7, "x"]',
    b'{"begin": 7, "id": "m", "header": {"body": []}}\n[7, "x"]',
    b'{"begin": 7, "id": "m", "header": {"body": {"message_id": {}}}}\n[7, {"not": "text"}, ["type"]]',
    b"[" * 100_000,
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage[:24]))
def test_garbage_in_a_stream_file_hides_no_chunk_and_stops_no_resume(
    garbage: bytes, place: Place, nursery: Nursery
) -> None:
    _fill(place)
    child = nursery.start("holders:hold", url=place.url, id="s1")
    child.hear_until("holding")
    for _ in range(3):
        child.tell("stream")
        child.hear_until("streamed")
    child.kill()
    (stream,) = place.folder.rglob("*.stream")
    with stream.open("ab") as file:
        file.write(garbage)
    with place.open() as sessions:
        session = sessions.resume("s1")
        with session.turn("Go on.") as turn:
            turn.stream("Gladly.")
        texts = [message.text for message in session.conversation()]

        assert session.resumed.recovered_text.startswith("still still still ")
        assert texts[-1] == "Gladly."
        assert session.verify().ok
        assert not stream.exists()


def test_a_bundle_under_another_name_is_found_by_its_id_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    """K1, K22."""
    source, target = Bundles(tmp_path / "source"), Bundles(tmp_path / "target")
    _fill(source)
    for name, other in (("s1.playhead", "From Ada.playhead"), ("s1.artifacts", "From Ada.artifacts")):
        (source.folder / name).rename(target.folder / other)
    with target.open() as sessions:
        session = sessions.resume("s1")
        seen = (session.conversation()[-1].text, session.artifact("chart.png"), sessions.list().items[0].id)
        with session.turn("Go on.") as turn:
            turn.say("Gladly.")
            turn.stream("More ")
            beside = {path.name for path in target.folder.iterdir()}
        session.save_artifact("more.md", b"more")
        with pytest.raises(SessionNotFound):
            sessions.get("From Ada")
        sessions.delete("s1")

    assert seen == ("The connection reset made it fail.", b"chart", "s1")
    assert "From Ada.stream" in beside
    assert not [path for path in target.folder.iterdir() if not path.name.startswith(("_store", CATALOGUE))]


def test_of_two_copies_of_a_session_the_one_with_its_own_name_counts(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    _fill(place)
    shutil.copy(place.database("s1"), place.folder / "a-copy.playhead")
    with place.open() as sessions:
        session = sessions.get("s1")
        session.rename("The one that counts")
        rows = [(row.id, row.summary.title if row.summary else row.problem) for row in sessions.list().items]
        title = sessions.get("s1").title

    assert title == "The one that counts"
    assert ("s1", "The one that counts") in rows
    assert ("a-copy", "a-copy.playhead holds the same session as s1.playhead") in rows


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "begun again"])
def test_a_session_that_another_process_deletes_is_gone_for_an_open_one(
    again: bool, place: Place, nursery: Nursery
) -> None:
    _fill(place)
    with place.open() as sessions:
        session = sessions.get("s1")
        nursery.run("holders:delete", url=place.url, id="s1", again=again)
        with pytest.raises(PlayheadError) as error:
            session.append("note", {"name": "lost"})
        if not again:
            with pytest.raises(SessionNotFound):
                session.refresh()
        else:
            session.refresh()
            session.append("note", {"name": "goes on"})
        found = [] if not again else [event.body.get("name") for event in sessions.get("s1").events(kinds=["note"])]
        title = session.title if again else None

    assert type(error.value).__name__ == ("StaleWriter" if again else "SessionNotFound")
    assert found == (["new", "goes on"] if again else [])
    assert title == ("Begun again" if again else None)


def test_a_bundle_that_is_removed_by_hand_under_an_open_session_takes_no_event_silently(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    _fill(place)
    with place.open() as sessions:
        session = sessions.get("s1")
        session.append("note", {"name": "before"})
        for suffix in ("", "-wal", "-shm"):
            Path(f"{place.database('s1')}{suffix}").unlink()
        with pytest.raises(SessionNotFound):
            session.append("note", {"name": "lost"})
        with pytest.raises(SessionNotFound):
            session.refresh()
        rows = [row.id for row in sessions.list().items]
        begun_again = sessions.create("s1")
        begun_again.append("note", {"name": "new"})

        assert rows == ["s2"]
        assert [event.kind for event in begun_again.events()] == ["session_started", "note"]
        assert begun_again.artifacts() == {}
        assert begun_again.verify().ok


def test_a_shared_file_that_is_replaced_under_an_open_store_takes_no_event_silently(tmp_path: Path) -> None:
    place = OneFile(tmp_path / "store")
    _fill(place)
    with place.open() as sessions:
        session = sessions.get("s1")
        session.append("note", {"name": "before"})
        place.database("s1").rename(tmp_path / "moved.db")
        with pytest.raises(StoreUnavailable):
            session.append("note", {"name": "lost"})
        with pytest.raises(StoreUnavailable):
            sessions.create("s3")


def test_a_write_ahead_log_that_lost_its_file_is_not_replayed_into_the_next_one(place: Place, nursery: Nursery) -> None:
    child = nursery.start("recorder:record", url=place.url, id="s2", seed=6)
    child.hear_until("turn ended")
    child.kill()
    file = place.database("s2")
    assert Path(f"{file}-wal").stat().st_size > 0
    file.unlink()
    with place.open() as sessions:
        session = sessions.create("s2", title="Begun again")
        session.append("note", {"name": "new"})

        assert [event.kind for event in session.events()] == ["session_started", "session_changed", "note"]
        assert session.verify().ok
    assert place.integrity("s2") == "ok"


def die_with_a_newer_version(line: object, *, file: str) -> None:
    """Leave a write-ahead log that makes the file one of a newer version, as a killed process of it would."""
    db = apsw.Connection(file)
    db.execute(f"PRAGMA user_version={NEWER}")
    # Without closing the file, which would fold the log into it.
    os._exit(0)


def _fill(place: Place, *, clock: Clock = time.time, entropy: Entropy = os.urandom) -> None:
    """Make two sessions with all that a session can have."""
    with Sessions(place.store(), clock=clock, entropy=entropy) as sessions:
        for id in ("s1", "s2"):
            with sessions.create(id, title="Flaky test", state={"runs": 1}) as session:
                session.save_artifact("chart.png", b"chart")
                for number in range(4):
                    with session.turn(f"Why does test_upload fail? ({number})") as turn:
                        turn.tool_result(turn.tool_call("run_tests", {"n": number}), {"log": "connection reset " * 30})
                        turn.say("The connection reset made it fail.")
                session.rewind(turn=4)


def _set_version(file: Path, version: int) -> None:
    db = apsw.Connection(str(file))
    db.execute(f"PRAGMA user_version={version}")
    db.close()


def _refusal(sessions: Sessions, id: str) -> BaseException | None:
    try:
        sessions.get(id)
    except BaseException as error:
        return error
    return None


def _damage(kind: type[Place], tmp_path: Path, *, trials: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Damage the file of s1 in so many ways, use the store, and return what crashed and how often what was noticed."""
    whole = kind(tmp_path / "whole")
    chance = random.Random(seed)
    # The same bytes at the same places in every run, so that a seed says which ones were damaged.
    with (
        mock.patch("os.urandom", chance.randbytes),
        mock.patch("secrets.randbelow", chance.randrange),
        mock.patch("os.getpid", lambda: 4_242),
    ):
        _fill(whole, clock=itertools.count(1_767_225_600).__next__, entropy=chance.randbytes)
    content = whole.database("s1").read_bytes()
    crashes, outcomes = [], Counter[str]()
    for trial in range(trials):
        place = kind(tmp_path / "damaged")
        shutil.copytree(whole.folder, place.folder, dirs_exist_ok=True)
        place.database("s1").write_bytes(_damaged(content, random.Random(seed + trial)))
        for name, use in _USES.items():
            try:
                with Sessions(open_store(place.url)) as sessions:
                    outcomes[use(sessions)] += 1
            except PlayheadError:
                outcomes["unreadable"] += 1
            except Exception as error:
                crashes.append(f"seed {seed + trial}, {name}: {type(error).__name__}: {error}")
        crashes += [f"seed {seed + trial}: {name} is still open" for name in _left_open(place.folder)]
        if kind is Bundles:
            crashes += [f"seed {seed + trial}: {problem}" for problem in _problems_of_the_other(place)]
        shutil.rmtree(place.folder, ignore_errors=True)  # A log that is being closed takes its own files along.
    return crashes, outcomes


def _left_open(folder: Path) -> list[str]:
    """Return the files of a folder that this process holds open, where the system can tell."""
    found = []
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [name for name in found if name.startswith(str(folder))]


def _damaged(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    match rng.randrange(4):
        case 0:
            for _ in range(rng.randint(1, 40)):
                damaged[rng.randrange(100, len(damaged))] ^= 1 << rng.randrange(8)
        case 1:
            start = rng.randrange(100, len(damaged))
            damaged[start : start + rng.randint(1, 600)] = rng.randbytes(rng.randint(1, 600))
        case 2:
            page = rng.randrange(1, len(damaged) // 4096)
            damaged[page * 4096 : (page + 1) * 4096] = bytes(4096)
        case 3:
            del damaged[rng.randrange(4096, len(damaged)) :]
    return bytes(damaged)


def _list(sessions: Sessions) -> str:
    return "listed with a problem" if any(row.problem for row in sessions.list().items) else "listed"


def _search(sessions: Sessions) -> str:
    return "searched with problems" if sessions.search("connection reset").problems else "searched"


def _read(sessions: Sessions) -> str:
    session = sessions.get("s1")
    session.conversation(), session.transcript(), session.timeline(), session.branches(), session.summary()
    return "read"


def _resume(sessions: Sessions) -> str:
    session = sessions.resume("s1")
    with session.turn("Go on.") as turn:
        turn.say("Gladly.")
    session.fork(at=3)
    return "resumed"


def _verify(sessions: Sessions) -> str:
    return "verified" if sessions.verify("s1").ok else "named by verify"


_USES: dict[str, Callable[[Sessions], str]] = {
    "list": _list,
    "search": _search,
    "read": _read,
    "verify": _verify,
    "resume": _resume,
}


def _problems_of_the_other(place: Place) -> list[str]:
    with place.open() as sessions:
        session = sessions.get("s2")
        problems = list(session.verify().problems)
        if session.conversation()[-1].text != "The connection reset made it fail.":
            problems.append("s2 reads differently")
        if "s2" not in {hit.session for hit in sessions.search("connection reset").hits}:
            problems.append("s2 is not found")
        if sessions.store.tip(session_key("s2")).seq != session.seq:
            problems.append("s2 ends elsewhere")
    return problems
