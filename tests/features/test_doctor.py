"""The doctor: every fault is named with its place, looking changes nothing, and mending loses nothing."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead.features.doctor.examining import examine
from playhead.features.doctor.findings import Examination
from playhead.features.doctor.mending import Mended, mend
from playhead.features.live import all_events
from playhead.model.ids import session_key
from playhead.stores.oslock import OsLock
from tests.features.broken_stores import ALL, ARTIFACT, PAGE_BYTES, SESSIONS, Store, kill_a_writer, made_store


def examined(store: Store, *, deep: bool = True) -> Examination:
    return examine(store.url, deep=deep, now=time.time())


def mended(store: Store, found: Examination) -> Mended:
    return mend(store.url, found, clock=time.time, entropy=os.urandom)


def tree(store: Store) -> dict[str, str]:
    """Return every file beside and in the store, each with its mode and the hash of its bytes. A `-shm` holds nothing
    that lasts: SQLite makes it anew."""
    return {
        str(path): f"{path.lstat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ''}"
        for path in sorted(store.place.parent.rglob("*"))
        if not path.name.endswith("-shm")
    }


@pytest.fixture(params=["bundles", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    yield made_store(tmp_path, request.param)


def test_a_whole_store_has_no_findings_and_its_counts_are_right(store: Store) -> None:
    found = examined(store)
    with playhead.open(store.url) as sessions:
        event_count = sum(sessions.get(id).seq for id in SESSIONS)

    assert found.findings == ()
    assert (found.session_count, found.event_count, found.artifact_count) == (3, event_count, 3)
    assert (found.trashed_count, found.holders) == (1, ())
    assert found.free_bytes is not None and found.size_bytes > 0


@pytest.mark.parametrize("name", ALL)
def test_each_fault_is_named_with_its_place_and_looking_changes_no_byte(name: str, tmp_path: Path) -> None:
    """P5, C-14."""
    scheme, broken = ALL[name]
    store = made_store(tmp_path, scheme)
    broken.how(store)
    before = tree(store)
    found = examined(store, deep=broken.needs_deep)
    named = [one for one in found.faults if one.kind == broken.kind]

    assert named, found.findings
    assert all(str(store.place) in one.place and one.what and one.advice for one in named)
    assert tree(store) == before


@pytest.mark.parametrize("name", [name for name, (_, broken) in ALL.items() if broken.is_mended])
def test_what_can_be_mended_is_mended_and_the_store_goes_on(name: str, tmp_path: Path) -> None:
    scheme, broken = ALL[name]
    store = made_store(tmp_path, scheme)
    broken.how(store)
    done = mended(store, examined(store))
    left = examined(store)
    with playhead.open(store.url) as sessions:
        problems = [row.problem for row in sessions.list().items if row.problem]
        whole = [sessions.verify(row.id).ok for row in sessions.list().items]
        with sessions.get("home-0001").turn("Does it go on?") as turn:
            turn.say("It does.")
        found = sessions.search("goes on").hits or sessions.search("does it go on").hits

    assert left.faults == (), done.steps
    assert problems == []
    assert all(whole) and len(whole) >= 2
    assert found


@pytest.mark.parametrize("name", [name for name, (_, broken) in ALL.items() if not broken.is_mended])
def test_what_cannot_be_mended_is_left_as_it_is_and_said_why(name: str, tmp_path: Path) -> None:
    scheme, broken = ALL[name]
    store = made_store(tmp_path, scheme)
    broken.how(store)
    found = examined(store)
    before = tree(store)
    done = mended(store, found)
    after = tree(store)
    fault = next(one for one in found.faults if one.kind == broken.kind)
    said = [step for step in done.steps if step.place == fault.place and not step.is_done]

    assert said and fault.advice in said[0].what
    if not any(one.is_mendable for one in found.findings):
        assert after == before
    assert done.backup is not None or after == before
    assert examined(store).faults != () or broken.kind == "write-ahead log missing"


@pytest.mark.parametrize(
    "way",
    [
        "a first page of zeros",
        "a root of the log that is gone",
        "an index over the events that is gone",
        "a file whose header is another one's",
        "a trigger of somebody else's",
        "a table that was dropped",
        "a page of sessions that is gone",
        "an index with a damaged block",
        "a snapshot that says something else",
    ],
)
def test_damage_that_took_no_event_is_mended_with_every_hash_as_it_was(way: str, store: Store) -> None:
    """P5."""
    with playhead.open(store.url) as sessions:
        before = {id: sessions.verify(id).head_hash for id in SESSIONS}
    ALL[f"{store.scheme}: {way}"][1].how(store)
    done = mended(store, examined(store))
    with playhead.open(store.url) as sessions:
        after = {id: sessions.verify(id).head_hash for id in SESSIONS}
        trashed = [one.id for one in sessions.trashed()]
        artifact = sessions.get("work-0001").artifact("plot.png")
        language = sessions.get("home-0001").state["user"]["language"]

    assert after == before, done.steps
    assert trashed == ["gone-0001"] or (way == "a page of sessions that is gone" and len(trashed) == 1)
    assert artifact == ARTIFACT
    assert language == "en"


def test_what_was_written_last_stands_in_the_write_ahead_log_and_is_saved_with_the_rest(store: Store) -> None:
    kill_a_writer(store)
    with store.database.open("r+b") as file:
        file.write(bytes(4_096))
    done = mended(store, examined(store))
    with playhead.open(store.url) as sessions:
        session = sessions.resume("work-0001")
        said = [message.text for message in session.conversation()]

    assert "Wait." in said, done.steps


def test_a_backup_of_the_store_as_it_was_comes_first_and_the_damaged_file_is_kept(store: Store) -> None:
    ALL[f"{store.scheme}: a page of zeros in the log"][1].how(store)
    damaged = store.database.read_bytes()
    done = mended(store, examined(store))
    assert done.backup is not None
    copy = Path(done.backup) / store.database.name if store.scheme == "bundles" else Path(done.backup)

    assert copy.read_bytes() == damaged
    assert Path(f"{store.database}.damaged").read_bytes() == damaged
    assert [one.kind for one in examined(store).findings] == ["kept"]


def test_a_session_that_lacks_events_says_which_and_keeps_what_was_said(tmp_path: Path) -> None:
    """P5."""
    store = made_store(tmp_path, "bundles")
    with playhead.open(store.url) as sessions:
        session = sessions.get("work-0001")
        before = {event.id: event for event in (session.event(seq) for seq in range(1, session.seq + 1))}
    ALL["bundles: a page of zeros in the log"][1].how(store)
    mended(store, examined(store))
    with playhead.open(store.url) as sessions:
        session = sessions.get("work-0001")
        after = {event.id: event for event in (session.event(seq) for seq in range(1, session.seq + 1))}
        note = session.event(session.seq).body
        title, turns = session.facts.title, session.turn_count
        is_whole = session.verify().ok
    lost = {event.seq for id, event in before.items() if id not in after}
    missing = {seq for first, last in note["missing"] for seq in range(first, last + 1)}
    kept = [id for id in before if id in after and before[id].kind not in ("session_started", "head_moved")]

    assert (note["name"], note["from"]) == ("salvage", "work-0001.playhead")
    assert lost and lost == missing
    assert note["event_count"] == len(before) - len(lost)
    assert [after[id].body for id in kept] == [before[id].body for id in kept]
    assert [after[id].at for id in kept] == [before[id].at for id in kept]
    assert is_whole and title == "About work-0001" and turns > 1


def test_who_is_in_a_turn_is_named_and_left_alone(tmp_path: Path) -> None:
    store = made_store(tmp_path, "bundles")
    with playhead.open(store.url) as sessions:
        with sessions.get("work-0001").turn("Wait for me") as turn:
            found = examined(store)
            turn.say("Done.")
        with sessions.get("home-0001").turn("Me too"):
            ALL["bundles: an event that was deleted"][1].how(Store("bundles", store.place))
            during = examined(store)

    assert [holder["session"] for holder in found.holders] == ["work-0001"]
    assert [holder["session"] for holder in during.holders] == ["home-0001"]
    assert found.findings == ()


def test_a_session_that_somebody_is_in_a_turn_of_is_not_replaced(tmp_path: Path) -> None:
    store = made_store(tmp_path, "bundles")
    ALL["bundles: an event that was deleted"][1].how(store)
    found = examined(store)
    with playhead.open(store.url) as sessions:
        lease = sessions.store.acquire(session_key("work-0001"), at=time.time())
        inode = store.database.stat().st_ino
        done = mended(store, found)
        sessions.store.release(lease)

    assert store.database.stat().st_ino == inode
    assert any("in a turn" in step.what for step in done.steps if not step.is_done)


def test_a_file_whose_sessions_somebody_is_in_a_turn_of_is_not_replaced(tmp_path: Path) -> None:
    store = made_store(tmp_path, "sqlite")
    ALL["sqlite: a first page of zeros"][1].how(store)
    found = examined(store)
    before = store.database.read_bytes()
    lock = OsLock.take(Path(f"{store.place}.locks") / "1")
    assert lock is not None
    done = mended(store, found)
    lock.release()

    assert store.database.read_bytes() == before
    assert ["in a turn" in step.what for step in done.steps if not step.is_done] == [True]


def test_a_holder_that_died_is_a_note_and_mending_frees_the_session(store: Store) -> None:
    kill_a_writer(store)
    found = examined(store)
    mended(store, found)
    left = examined(store)

    assert [one.kind for one in found.findings if one.session] == ["dead holder"]
    assert found.faults == ()
    assert left.findings == ()


def test_replacing_a_database_that_was_cut_off_in_between_begins_again(tmp_path: Path) -> None:
    store = made_store(tmp_path, "bundles")
    ALL["bundles: a first page of zeros"][1].how(store)
    os.rename(store.database, f"{store.database}.damaged")
    (store.place / ".work-0001.playhead.abcdefgh.new").mkdir(mode=0o700)
    found = examined(store)
    mended(store, found)
    left = examined(store)
    with playhead.open(store.url) as sessions:
        is_whole = sessions.verify("work-0001").ok

    assert [one.kind for one in found.faults if one.place.endswith(".damaged")] == ["cut off"]
    assert left.faults == ()
    assert is_whole


def test_what_belongs_to_nothing_is_moved_beside_the_backup_and_not_lost(tmp_path: Path) -> None:
    store = made_store(tmp_path, "bundles")
    ALL["bundles: artifacts of no session"][1].how(store)
    done = mended(store, examined(store))

    assert done.backup is not None
    assert [path.read_bytes() for path in Path(f"{done.backup}.removed").rglob("sha256-*")] == [ARTIFACT]
    assert not (store.place / "lost-0001.artifacts").exists()


def test_an_edit_by_hand_in_a_file_that_is_replaced_is_named_in_the_note(store: Store) -> None:
    ALL[f"{store.scheme}: an event that was edited"][1].how(store)
    ALL[f"{store.scheme}: a table that was dropped"][1].how(store)
    done = mended(store, examined(store))
    with playhead.open(store.url) as sessions:
        session = sessions.get("work-0001")
        note = session.event(session.seq).body
        changed = [session.event(seq).body["parts"][0]["content"] for seq in note["changed"]]

    assert (note["name"], note["missing"], len(changed)) == ("salvage", [], 1)
    assert "attempt 3" in changed[0]
    assert any("changed since they were written" in step.what for step in done.steps)


@pytest.mark.parametrize("seed", range(24))
def test_whatever_is_damaged_looking_changes_nothing_and_mending_keeps_what_was_said(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    store = made_store(tmp_path, chance.choice(["bundles", "sqlite"]))
    with playhead.open(store.url) as sessions:
        said = {event.id for id in SESSIONS for event in all_events(sessions.store, session_key(id))}
    content = bytearray(store.database.read_bytes())
    for _ in range(chance.randint(1, 3)):
        start, length = chance.randrange(len(content)), chance.choice([1, 40, PAGE_BYTES, 3 * PAGE_BYTES])
        noise = chance.choice([bytes(length), chance.randbytes(length)])
        content[start : start + length] = noise[: len(content) - start]
    store.database.write_bytes(content)
    before = tree(store)
    found = examined(store)
    after_look = tree(store)
    mended(store, found)
    left = examined(store)
    kept, unsound = set(), []
    if not any(one.kind in ("newer format", "not a database", "damaged database") for one in left.faults):
        with playhead.open(store.url) as sessions:
            for row in sessions.list().items:
                kept |= {event.id for event in all_events(sessions.store, row.key)}
                unsound += [row.id] * (not sessions.verify(row.id).ok)
        kept_share = len(kept & said) / len(said)
    else:
        kept_share = 1.0

    assert after_look == before
    assert unsound == [] or any(one.kind == "events changed" for one in left.faults)
    assert kept_share > 0.5


def test_a_place_that_is_no_store_is_a_finding_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    no_folder = examine(f"bundles:{tmp_path}/file", deep=False, now=time.time())
    no_file = examine(f"sqlite:{tmp_path}/nothing.db", deep=False, now=time.time())

    assert [one.kind for one in no_folder.faults] == ["place"]
    assert [one.kind for one in no_file.faults] == ["place"]


def test_text_without_a_word_in_it_is_no_fault_of_the_index(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/store"
    with playhead.open(url) as sessions, sessions.create("s") as session, session.turn("Why?") as turn:
        turn.say("\n\n")
        turn.say("Because.")
    with playhead.open(url) as sessions:
        sessions.search("because")

    assert [finding for finding in examine(url, deep=True, now=time.time()).findings if finding.is_fault] == []
