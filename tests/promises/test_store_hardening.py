"""What a store holds out against: evictions in the midst of a lease, damaged and hostile files, and forked children."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import playhead
from playhead.errors import NotAStore, PlayheadError, SessionExists, SessionNotFound, StoreDamaged
from playhead.model.ids import SessionKey, session_key
from playhead.model.snapshot import Snapshot, full, is_sound
from playhead.stores.base import SessionRow
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite.bundles import OPEN_MAX, BundleStore
from playhead.stores.sqlite.connect import Database
from tests.promises.places import Bundles, Place, log_of

MORE_THAN_OPEN = OPEN_MAX + 6
MANY = 200


# Leases and the bundles kept open.


def test_a_log_that_is_closed_right_after_its_lease_was_taken_gives_the_lease_back(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    with place.open() as sessions:
        key = sessions.create("s1").key
        store = sessions.store
        assert isinstance(store, BundleStore)
        log = log_of(store, "s1")
        ordinary = log.database.write

        @contextlib.contextmanager
        def closed_at_once(*, through_power_loss: bool = False) -> Iterator[None]:
            with ordinary(through_power_loss=through_power_loss):
                yield
            store._close_bundle(key)

        log.database.write = closed_at_once  # type: ignore[method-assign]
        store.release(store.acquire(key, at=time.time()))
        is_held = OsLock.is_held(place.lock("s1"))
        again = store.acquire(key, at=time.time())

    assert not is_held
    assert again.fence > 0


def test_a_log_is_not_closed_as_idle_while_a_lease_is_held_or_a_thread_is_at_it(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    with place.open() as sessions:
        key = sessions.create("s1").key
        log = log_of(sessions.store, "s1")
        lease = log.acquire(key, at=time.time())
        while_held = log.close_idle()
        log.release(lease)
        answers: list[bool] = []
        with log.database.write():
            other = threading.Thread(target=lambda: answers.append(log.close_idle()))
            other.start()
            other.join()
        afterwards = log.close_idle()

    assert (while_held, answers, afterwards) == (False, [False], True)


def test_more_turns_at_once_than_bundles_are_kept_open_leave_no_lease_behind(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    errors: list[BaseException] = []
    with place.open() as sessions:
        begun = [sessions.create(f"s{number}") for number in range(MORE_THAN_OPEN)]

        def work(session: playhead.Session) -> None:
            try:
                for _ in range(4):
                    with session.turn("Go on.") as turn:
                        turn.say("Done.")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(session,)) for session in begun]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = [session.id for session in begun if OsLock.is_held(place.lock(session.id))]
        with place.open() as others:
            counts = [_turns_ended(others.resume(session.id)) for session in begun] if not held else []

    assert errors == []
    assert held == []
    assert counts == [4] * MORE_THAN_OPEN


def test_a_bundle_opens_while_as_many_as_are_kept_open_hold_their_leases(tmp_path: Path) -> None:
    with Bundles(tmp_path / "store").open() as sessions:
        turns = [sessions.create(f"s{number}").turn("Go on.") for number in range(MORE_THAN_OPEN)]
        for turn in turns:
            turn.say("Done.")
            turn.end()
        counts = [_turns_ended(sessions.get(f"s{number}")) for number in range(MORE_THAN_OPEN)]

    assert counts == [1] * MORE_THAN_OPEN


def test_a_session_made_again_before_its_lease_is_taken_is_locked_by_its_new_number(place: Place) -> None:
    with place.open() as sessions:
        sessions.create("other")
        key = sessions.create("s1").key
        log = log_of(sessions.store, "s1")
        ordinary, is_first = log.require, [True]

        def made_again(key: SessionKey) -> int:
            number = ordinary(key)
            if is_first:
                is_first.clear()
                with log.database.write():
                    log.database.connection.execute("UPDATE sessions SET number = 7 WHERE id = 's1'")
                    log.database.connection.execute("INSERT INTO permits VALUES ('test')")
                    log.database.connection.execute(f"UPDATE events SET row = (row & {2**32 - 1}) + (7 << 32)")
                    log.database.connection.execute("DELETE FROM permits")
            return number

        log.require = made_again  # type: ignore[method-assign]
        if place.name == "sqlite":
            sessions.delete("other")
        lease = log.acquire(key, at=time.time())
        path = log._lock_path(7)
        is_held = OsLock.is_held(path)
        log.release(lease)

    assert is_held
    assert path.name == ("7" if place.name == "sqlite" else "s1.playhead.lock")


# Damaged files.

DAMAGE = {
    "the app is no text": "UPDATE sessions SET app = x'01' WHERE id = 's1'",
    "the id is no text": "UPDATE sessions SET id = x'01' WHERE id = 's1'",
    "the holder is a list": "UPDATE sessions SET holder = '[1]', renewed_at = 0 WHERE id = 's1'",
    "the holder is no JSON": "UPDATE sessions SET holder = 'nobody', renewed_at = 0 WHERE id = 's1'",
    "the holder is no text": "UPDATE sessions SET holder = x'ff', renewed_at = 'once' WHERE id = 's1'",
    "the index is built up to a text": "UPDATE sessions SET indexed_seq = 'all' WHERE id = 's1'",
    "the version is a text": "UPDATE sessions SET event_version = 'new' WHERE id = 's1'",
    "the fence is a text": "UPDATE sessions SET fence = 'high' WHERE id = 's1'",
    "the listing row is a blob": "UPDATE sessions SET summary = x'ff', summary_seq = 'all' WHERE id = 's1'",
    "the number is beyond all rows": f"UPDATE sessions SET number = {2**50} WHERE id = 's1'",
    "the times are texts": "UPDATE events SET at = 'soon'",
    "the times have no end": "UPDATE events SET at = 9e999",
    "the parents are texts": "UPDATE events SET parent = 'the last'",
    "the event ids are blobs": "UPDATE events SET id = x'01' || row",
    "the event ids are really blobs": "UPDATE events SET id = CAST('e' || row AS BLOB)",
    "the kinds are blobs": "UPDATE events SET kind = x'01'",
    "the scopes are blobs": "UPDATE events SET scope = x'01', agent = x'02', turn = x'03'",
    "the bodies are blobs": "UPDATE events SET body = x'01'",
    "the bodies are lists": "UPDATE events SET body = '[1]'",
    "the hashes are texts": "UPDATE events SET hash = 'abc'",
    "the hashes are short": "UPDATE events SET hash = x'0102'",
    "the snapshots hold other shapes": """UPDATE snapshots SET document =
        '{"seq":' || (row & 4294967295) || ',"base_seq":0,"number":0,"changed":{"path":7,"turns":3}}', base_seq = 0""",
    "the snapshots hold endless ranges": """UPDATE snapshots SET base_seq = 0, document = '{"seq":'
        || (row & 4294967295) || ',"base_seq":0,"number":0,"changed":{"path":[[1,9000000000000000]]}}'""",
    "the snapshots are elsewhere": """UPDATE snapshots SET document = replace(document, '"seq":', '"seq":1')""",
}

VERBS: dict[str, Callable[[playhead.Sessions], object]] = {
    "list": lambda sessions: sessions.list().items,
    "search": lambda sessions: sessions.search("hello").hits,
    "get": lambda sessions: sessions.get("s1").conversation(),
    "last": lambda sessions: sessions.get("@last").id,
    "holder": lambda sessions: sessions.store.holder(session_key("s1")),
    "turn": lambda sessions: sessions.get("s1").turn("Go on.").end(),
    "verify": lambda sessions: sessions.verify("s1"),
    "search again": lambda sessions: sessions.search("hello").hits,
    "delete": lambda sessions: sessions.delete("s1"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_an_error_of_playhead_and_the_others_are_listed_and_found(what: str, tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    _fill(place)
    _damage(place, DAMAGE[what])
    with place.open() as sessions:
        strange = _raw_errors(sessions)
        listed = {row.id for row in sessions.list().items if row.problem is None}
        found = {hit.session for hit in sessions.search("hello").hits}
        with sessions.resume("s2").turn("Go on.") as turn:
            turn.say("Done.")

    assert strange == {}
    assert "s2" in listed
    assert "s2" in found


@pytest.mark.parametrize("what", [what for what, sql in DAMAGE.items() if "WHERE id = 's1'" in sql])
def test_one_damaged_session_of_a_file_leaves_the_others_listed(what: str, place: Place) -> None:
    _fill(place)
    _damage(place, DAMAGE[what])
    with place.open() as sessions:
        strange = _raw_errors(sessions, but={"search", "search again"} if place.name == "sqlite" else set())
        rows = {row.id: row.problem for row in sessions.list(limit=1_000).items}
        conversation = sessions.get("s2").conversation()

    assert strange == {}
    assert rows["s2"] is None
    assert len(conversation) == 2


def test_sessions_whose_keys_cannot_be_read_are_rows_that_a_pager_passes(place: Place) -> None:
    _fill(place)
    _damage(place, "UPDATE sessions SET user = x'01' WHERE id = 's1'")
    with place.open() as sessions:
        pages, after = [], None
        for _ in range(5):
            page = sessions.store.sessions(after=after, limit=1)
            if not page:
                break
            pages.extend(page)
            after = page[-1].key

    assert len(pages) == 2
    assert [row.key.id for row in pages if row.problem is None] == ["s2"]


def test_a_lease_whose_holder_cannot_be_read_runs_out(place: Place) -> None:
    _fill(place)
    _damage(place, "UPDATE sessions SET holder = '[1]', renewed_at = 0")
    with place.open() as sessions:
        with sessions.resume("s1").turn("A new question") as turn:
            turn.say("Done.")
        kinds = [event.kind for event in sessions.get("s1").events()]

    assert kinds.count("turn_ended") == 2


def test_an_index_that_says_no_end_is_built_anew_once_it_is_dropped(place: Place) -> None:
    _fill(place)
    _damage(place, "UPDATE sessions SET indexed_seq = 'all'")
    with place.open() as sessions:
        with pytest.raises(StoreDamaged):
            sessions.store.text.indexed_seq(session_key("s1"))
        sessions.store.text.drop()
        hits = sessions.search("hello", session="s1").hits

    assert len(hits) == 1


def test_a_chain_of_sound_snapshots_is_told_from_one_that_no_fold_made() -> None:
    sound = full(3, {"path": [[1, 3]], "turns": [1, "t", 1, 1], "later": {"any": [None]}})
    follows = Snapshot(4, 3, 1, {"path": [0, [[1, 4]]], "said": [1, 1, 2]})
    unsound = [
        full(3, {"path": [[1, 4]]}),
        full(3, {"conv:": [[2, 1]]}),
        full(3, {"conv:": [[0, 1]]}),
        Snapshot(3, 0, 0, {"path": 7}),
        Snapshot(3, 0, 0, {"turns": [1, "t", 1]}),
        Snapshot(3, 0, 0, {"state:session\nkey": "1"}),
        Snapshot(3, 2, 1, {"path": [-1, []]}),
        Snapshot(3, 2, 1, {"path": [[1, 3]]}),
    ]

    assert is_sound([sound, follows])
    assert [is_sound([snapshot]) for snapshot in unsound] == [False] * len(unsound)


# Hostile schemas.

HOSTILE = {
    "a view without an end": """ALTER TABLE sessions RENAME TO s0; CREATE VIEW sessions AS
        WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x FROM n)
        SELECT 1 number, 'default' app, 'default' user, 's1' id, 1 event_version, 0 fence, NULL holder,
          NULL renewed_at, NULL summary, 0 summary_seq, 0 indexed_seq FROM n WHERE x = 2""",
    "a trigger that deletes": """CREATE TRIGGER clean AFTER INSERT ON events BEGIN INSERT INTO permits VALUES ('x');
        DELETE FROM events WHERE row < new.row - 2; DELETE FROM permits; END""",
    "a guard that lets all pass": """DROP TRIGGER events_never_go;
        CREATE TRIGGER events_never_go BEFORE DELETE ON events BEGIN SELECT 1; END""",
    "a view in place of a function": """CREATE VIEW json_each AS WITH RECURSIVE n (x) AS
        (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS value FROM n""",
    "a table that replaces": """ALTER TABLE permits RENAME TO gone; DROP TABLE gone;
        CREATE TABLE permits (reason TEXT NOT NULL, other TEXT UNIQUE ON CONFLICT REPLACE)""",
    "a virtual table": "CREATE VIRTUAL TABLE more USING fts5(content)",
    "an index that refuses": "CREATE UNIQUE INDEX only_one ON events (scope, kind IS NULL)",
    "a view in place of the text index": """DROP TABLE IF EXISTS text_index;
        CREATE VIEW text_index AS SELECT 1 AS content""",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_schema_that_is_not_ours_is_refused_by_name_and_left_as_it_is(what: str, place: Place) -> None:
    _fill(place)
    file = place.database("s1")
    _run(file, HOSTILE[what])
    before = file.read_bytes()
    for read_only in (True, False):
        with pytest.raises(NotAStore) as error:
            Database.open(str(file), read_only=read_only)
        assert "that is not Playhead's" in str(error.value)
        assert file.read_bytes() == before


def test_a_hostile_bundle_is_a_row_with_a_problem(tmp_path: Path) -> None:
    place = Bundles(tmp_path / "store")
    _fill(place)
    _run(place.database("s1"), HOSTILE["a view without an end"])
    with place.open() as sessions:
        problems = {row.id: row.problem for row in sessions.list().items}
        with pytest.raises(NotAStore):
            sessions.get("s1")

    assert problems["s2"] is None
    assert "'s0'" in str(problems["s1"]) or "'sessions'" in str(problems["s1"])


def test_a_file_that_lost_a_table_says_which(place: Place) -> None:
    _fill(place)
    _run(place.database("s1"), "DROP TABLE snapshots")
    with pytest.raises(StoreDamaged, match="snapshots"):
        with place.open() as sessions:
            sessions.get("s1")


def test_statistics_and_a_vacuum_of_any_sqlite_tool_are_no_reason_to_refuse_a_file(place: Place) -> None:
    _fill(place)
    _run(place.database("s1"), "ANALYZE; VACUUM")
    with place.open() as sessions:
        problems = [row.problem for row in sessions.list().items]
        hits = sessions.search("hello", session="s1").hits

    assert problems == [None, None]
    assert len(hits) == 1


# Forked children.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_neither_writes_nor_gives_back_the_lease_of_its_parent(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")
        turn = session.turn("Go on.")
        turn.stream("Half ")
        verbs: list[Callable[[], object]] = [
            lambda: turn.end("failed"),
            lambda: turn.stream("of it"),
            lambda: sessions.store.tip(session.key),
            lambda: sessions.create("s2"),
            lambda: sessions.store.streams.end(session.key, "any"),
        ]
        said = _in_child(lambda: [_error_of(verb) for verb in verbs] + [_error_of(sessions.close)])
        turn.say("The parent goes on.")
        turn.end()
        events = [event.kind for event in session.events()]
        is_sound = session.verify().ok

    assert said == ["StoreClosed"] * len(verbs) + ["None"]
    assert events[-2:] == ["message", "turn_ended"]
    assert is_sound


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_that_opens_the_store_again_writes_as_any_process(place: Place) -> None:
    with place.open() as sessions:
        session = sessions.create("s1")

        def write() -> list[str]:
            with place.open() as own:
                own.get("s1").append("note", {"name": "from the child"})
            return ["done"]

        said = _in_child(write)
        kinds = [event.kind for event in session.events()]

    assert said == ["done"]
    assert kinds == ["session_started", "note"]


# Bundles under any name.


def test_a_new_session_opens_no_bundle_that_was_looked_at_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    ordinary = BundleStore._read_row

    def noted(store: BundleStore, path: Path) -> tuple[SessionRow, bool]:
        opened.append(path.name)
        return ordinary(store, path)

    monkeypatch.setattr(BundleStore, "_read_row", noted)
    with Bundles(tmp_path / "store").open() as sessions:
        for number in range(MANY):
            sessions.create(f"s{number}")
            with pytest.raises(SessionNotFound):
                sessions.get("nowhere")

    assert len(opened) <= 2 * MANY


def test_a_bundle_that_is_copied_in_under_any_name_counts_at_once(tmp_path: Path) -> None:
    place, elsewhere = Bundles(tmp_path / "store"), Bundles(tmp_path / "elsewhere")
    for one, id in ((place, "s1"), (elsewhere, "s2"), (elsewhere, "s3")):
        with one.open() as sessions:
            sessions.create(id)
    with place.open() as sessions:
        with pytest.raises(SessionNotFound):
            sessions.get("s2")
        (place.folder / "received.playhead").write_bytes(elsewhere.database("s2").read_bytes())
        with pytest.raises(SessionExists):
            sessions.create("s2")
        (place.folder / "received.playhead").rename(place.folder / "kept.playhead")
        renamed = sessions.get("s2").id
        os.replace(elsewhere.database("s3"), place.folder / "kept.playhead")
        replaced = sessions.get("s3").id
        with pytest.raises(SessionNotFound):
            sessions.get("s2")

    assert (renamed, replaced) == ("s2", "s3")


def _fill(place: Place) -> None:
    with place.open() as sessions:
        for id in ("s1", "s2"):
            session = sessions.create(id)
            with session.turn("hello world") as turn:
                turn.say("Done.")
        sessions.search("hello")


def _turns_ended(session: playhead.Session) -> int:
    return [event.kind for event in session.events()].count("turn_ended")


def _damage(place: Place, sql: str) -> None:
    _run(place.database("s1"), f"INSERT INTO permits VALUES ('test'); {sql}; DELETE FROM permits")


def _run(file: Path, sql: str) -> None:
    db = apsw.Connection(str(file))
    try:
        db.execute(sql)
        db.pragma("wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


def _raw_errors(sessions: playhead.Sessions, *, but: set[str] | None = None) -> dict[str, str]:
    """Run every verb and return those that fail with anything but an error of Playhead."""
    found = {}
    for name, verb in VERBS.items():
        try:
            verb(sessions)
        except PlayheadError:
            continue
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return {name: error for name, error in found.items() if name not in (but or set())}


def _in_child(work: Callable[[], list[str]]) -> list[str]:
    """Return what `work` gives in a forked child."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(theirs, "\n".join(work()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        said = answer.read().split("\n")
    os.waitpid(pid, 0)
    return said


def _error_of(verb: Callable[[], object]) -> str:
    try:
        verb()
    except BaseException as error:
        return type(error).__name__
    return "None"
