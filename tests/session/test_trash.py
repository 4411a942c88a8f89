"""What a person puts into the trash is out of the way, comes back whole, and goes for good only when they say so."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import playhead
from playhead.errors import (
    InvalidEvent,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StoreUnavailable,
    TrashNotFound,
)
from playhead.features.trash import PURGED, purged_name
from playhead.session import Session, Sessions
from playhead.stores.base import Record
from playhead.stores.sqlite.connect import Database
from tests.session.conftest import Clock


@pytest.fixture
def upload(sessions: Sessions) -> Session:
    """A session with a turn, an artifact and a title."""
    session = sessions.create("upload", title="Flaky upload test", state={"branch": "main"})
    with session.turn("Why does test_upload fail?") as turn:
        turn.say("The connection is reset.")
    session.save_artifact("chart.png", b"chart")
    return session


def test_the_trash_is_counted_apart(sessions: Sessions, upload: Session) -> None:
    sessions.create("other")
    trash_id = sessions.trash("upload")
    (one,) = sessions.trashed()

    assert (sessions.list().total, [row.id for row in sessions.list().items]) == (1, ["other"])
    assert sessions.list(query="upload").total == 0
    assert sessions.search("connection").hits == []
    assert (one.trash_id, one.id, one.title, one.event_count) == (trash_id, "upload", "Flaky upload test", upload.seq)
    assert one.problem is None


def test_a_trashed_session_is_not_opened_nor_the_last_one(sessions: Sessions, upload: Session) -> None:
    sessions.create("older")
    with sessions.get("upload").turn("Again?"):
        pass
    before = sessions.get("@last").id
    sessions.trash("upload")
    for verb in (sessions.get, sessions.resume, sessions.verify, sessions.delete, sessions.trash):
        with pytest.raises(SessionNotFound):
            verb("upload")

    assert before == "upload"
    assert sessions.get("@last").id == "older"


def test_a_restored_session_goes_on_where_it_was(sessions: Sessions, upload: Session) -> None:
    before = upload.events()
    key = sessions.restore(sessions.trash("upload"))
    session = sessions.resume("upload")
    with session.turn("And now?") as turn:
        turn.say("It passes.")

    assert key == upload.key
    assert session.events(until=len(before)) == before
    assert session.artifact("chart.png") == b"chart"
    assert session.state == {"session": {"branch": "main"}}
    assert len(sessions.search("connection").hits) == 1
    assert sessions.verify("upload").problems == ()


def test_an_open_object_writes_nothing_more_until_its_session_is_back(sessions: Sessions, upload: Session) -> None:
    seq = upload.seq
    trash_id = sessions.trash("upload")
    verbs: list[Callable[[], object]] = [
        lambda: upload.append("note", {"name": "late"}),
        lambda: upload.turn("Late?"),
        lambda: upload.rename("Late"),
        lambda: upload.save_artifact("late.txt", b"late"),
        lambda: upload.rewind(turn=1),
        upload.refresh,
    ]
    for verb in verbs:
        with pytest.raises(SessionNotFound):
            verb()
    sessions.restore(trash_id)
    upload.append("note", {"name": "back"})

    assert upload.seq == seq + 1
    assert sessions.verify("upload").problems == ()


def test_an_open_object_never_writes_into_the_next_session_of_its_id(sessions: Sessions, upload: Session) -> None:
    sessions.trash("upload")
    other = sessions.create("upload", title="Begun again")
    before = other.events()
    with pytest.raises((playhead.StaleWriter, SessionNotFound)):
        upload.append("note", {"name": "late"})

    assert sessions.get("upload").events() == before


def test_a_session_in_a_turn_stays_and_names_the_holder(sessions: Sessions, upload: Session) -> None:
    with upload.turn("Wait", label="the other window"):
        with pytest.raises(SessionBusy, match="the other window"):
            sessions.trash("upload")

    assert sessions.trashed() == ()
    assert sessions.get("upload").turn_count == 2


def test_what_was_cut_off_before_the_trash_is_sealed_after_it(
    durable_url: str, clock: Clock, reopen: Callable[[], Sessions]
) -> None:
    first = reopen()
    turn = first.create("s").turn("Why?")
    turn.tool_call("run_tests", {})
    turn.stream("It fails bec")
    first.close()
    second = reopen()
    second.restore(second.trash("s"))
    session = second.resume("s")

    assert session.resumed.recovered_text == "It fails bec"
    assert [message.text for message in session.conversation() if message.interrupted] == ["It fails bec"]
    assert second.verify("s").problems == ()


def test_forks_of_a_trashed_session_go_on(sessions: Sessions, upload: Session) -> None:
    upload.fork(id="fork")
    sessions.trash("upload")
    fork = sessions.resume("fork")
    with fork.turn("And now?") as turn:
        turn.say("It passes.")

    assert fork.turn_count == 2
    assert fork.artifact("chart.png") == b"chart"
    assert sessions.verify("fork").problems == ()


def test_each_trashing_of_an_id_is_kept_the_last_one_first(sessions: Sessions, upload: Session) -> None:
    first = sessions.trash("upload")
    sessions.create("upload", title="Second")
    second = sessions.trash("upload")
    sessions.create("upload", title="Third")
    listed = [(one.trash_id, one.title) for one in sessions.trashed()]
    with pytest.raises(SessionExists):
        sessions.restore(first)
    sessions.restore(first, id="first")

    assert listed == [(second, "Second"), (first, "Flaky upload test")]
    assert sessions.get("first").artifact("chart.png") == b"chart"
    assert sessions.get("upload").title == "Third"


def test_a_purge_is_remembered_and_the_trash_is_too(sessions: Sessions, upload: Session) -> None:
    name = purged_name("default", "default", "upload")
    trash_id = sessions.trash("upload")
    in_trash = sessions.was_removed("upload"), sessions.store.notes.get(PURGED, name)
    sessions.purge(trash_id)
    purged = sessions.was_removed("upload"), sessions.store.notes.get(PURGED, name)
    with pytest.raises(TrashNotFound):
        sessions.restore(trash_id)
    with pytest.raises(TrashNotFound):
        sessions.purge(trash_id)
    sessions.create("upload")

    assert in_trash == (True, None)
    assert purged[0] and purged[1] is not None
    assert not sessions.was_removed("upload")
    assert not sessions.was_removed("never there")


def test_a_purge_says_nothing_of_the_session_that_has_the_id_by_now(sessions: Sessions, upload: Session) -> None:
    trash_id = sessions.trash("upload")
    sessions.create("upload", title="Second")
    sessions.purge(trash_id)

    assert sessions.store.notes.all(PURGED) == {}
    assert sessions.get("upload").title == "Second"


def test_the_trash_is_emptied_of_what_is_older(sessions: Sessions, upload: Session, clock: Clock) -> None:
    sessions.create("other")
    sessions.trash("upload")
    clock.now += 3_600
    moment = clock.now
    sessions.trash("other")
    gone = sessions.empty_trash(before=moment)
    left = [one.id for one in sessions.trashed()]
    rest = sessions.empty_trash()

    assert ([one.id for one in gone], left, [one.id for one in rest]) == (["upload"], ["other"], ["other"])
    assert sessions.trashed() == ()


def test_what_somebody_else_takes_out_of_the_trash_meanwhile_is_passed_over(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id in ("a", "b", "c", "d"):
        sessions.create(id)
    trash_ids = {id: sessions.trash(id) for id in ("a", "b", "c", "d")}
    purge = sessions.store.purge

    def purge_after_others(trash_id: str) -> None:
        monkeypatch.setattr(sessions.store, "purge", purge)
        sessions.store.purge(trash_ids["c"])
        sessions.restore(trash_ids["b"])
        purge(trash_id)

    monkeypatch.setattr(sessions.store, "purge", purge_after_others)
    gone = sessions.empty_trash()

    assert sorted(one.id for one in gone) == ["a", "d"]
    assert sessions.trashed() == ()
    assert sessions.get("b").seq == 1


def test_what_cannot_be_removed_keeps_nothing_else_in_the_trash(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id in ("a", "b", "c"):
        sessions.create(id)
    trash_ids = {id: sessions.trash(id) for id in ("a", "b", "c")}
    purge = sessions.store.purge

    def purge_all_but_one(trash_id: str) -> None:
        if trash_id == trash_ids["b"]:
            raise StoreUnavailable("somebody reads from it")
        purge(trash_id)

    with monkeypatch.context() as patch:
        patch.setattr(sessions.store, "purge", purge_all_but_one)
        with pytest.raises(StoreUnavailable, match="reads from it"):
            sessions.empty_trash()

    assert [one.id for one in sessions.trashed()] == ["b"]
    assert [one.id for one in sessions.empty_trash()] == ["b"]


def test_what_is_done_to_the_trash_opens_each_bundle_of_it_as_often_as_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all the asking, however often; once for its own purge; once for emptying."""
    sessions = playhead.open(f"bundles:{tmp_path}")
    for number in range(12):
        sessions.create(f"s{number}")
        trash_id = sessions.trash(f"s{number}")
    opened: list[str] = []
    real = Database.open

    def counted(path: str, **options: object) -> Database:
        opened.append(path)
        return real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "open", counted)
    asked = [sessions.was_removed(f"s{number}") for number in range(20)]
    count_of_asking = len([path for path in opened if ".trash" in path])
    opened.clear()
    sessions.purge(trash_id)
    count_of_purge = len([path for path in opened if ".trash" in path])
    opened.clear()
    gone = sessions.empty_trash()
    count_of_emptying = len([path for path in opened if ".trash" in path])
    sessions.close()

    assert asked == [True] * 12 + [False] * 8
    assert len(gone) == 11
    assert (count_of_asking, count_of_purge, count_of_emptying) == (12, 1, 11)


def test_sessions_of_an_app_and_a_user_come_back_as_theirs(sessions: Sessions) -> None:
    sessions.create("s", app="chat", user="ada", title="Ada's")
    with pytest.raises(SessionNotFound):
        sessions.trash("s")
    key = sessions.restore(sessions.trash("s", app="chat", user="ada"), id="t")

    assert (key.app, key.user, key.id) == ("chat", "ada", "t")
    assert sessions.get("t", app="chat", user="ada").title == "Ada's"


@pytest.mark.parametrize("target", ["memory:", "sqlite:{0}/copy.db", "bundles:{0}/copy"])
def test_a_log_is_copied_between_stores_byte_for_byte(
    sessions: Sessions, upload: Session, tmp_path: Path, target: str
) -> None:
    for prompt in ("And now?", "Another way?"):
        with upload.turn(prompt) as turn:
            turn.say("There is one.")
        upload.rewind(turn=2)
    store = sessions.store
    with playhead.open(target.format(tmp_path)) as others:
        artifacts = [store.artifacts.get(upload.key, hash) for hash in store.artifacts.hashes(upload.key)]
        others.put_records("copy", _records(upload), expected_seq=0, artifacts=artifacts)
        copy = others.get("copy")
        branches, verified = copy.branches(), others.verify("copy")
        same = list(_records(copy)) == list(_records(upload))

        assert same
        assert branches == upload.branches()
        assert verified.head_hash == upload.verify().head_hash
        assert verified.problems == ()
        assert copy.artifact("chart.png") == b"chart"
        assert copy.transcript() == upload.transcript()


def test_a_log_that_was_tampered_with_does_not_come_over(sessions: Sessions, upload: Session) -> None:
    records = list(_records(upload))
    records[2] = Record(**{name: getattr(records[2], name) for name in Record.__struct_fields__} | {"at": 1.0})
    with pytest.raises(InvalidEvent, match="event 3 "):
        sessions.put_records("copy", records, expected_seq=0)

    assert sessions.list().total == 1


def _records(session: Session) -> Iterator[Record]:
    after = 0
    while page := session._store.records(session.key, after=after, limit=3):
        yield from page
        after = page[-1].seq
