"""`playhead index`: how far search reaches, and building its index again."""

import pytest

from playhead import Sessions
from playhead.cli import index
from playhead.model.ids import SessionKey
from playhead.search.indexer import bring_up_to_date
from playhead.stores.base import Store
from tests.cli.conftest import CommandLine


def _behind(sessions: Sessions) -> str:
    """A session whose last event is not indexed."""
    with sessions.create("behind-0001") as session:
        session.append("note", {"name": "later"})
    return session.id


def test_it_says_how_many_events_are_not_indexed_and_update_indexes_them(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    id = _behind(sessions)
    before = {one["id"]: one for one in cli("index", "--json").json["sessions"]}
    updated = cli("index", "update", id)
    after = cli("index", "status", id, "--json").json

    assert before[upload]["indexed_seq"] == before[upload]["last_seq"]
    assert (before[id]["indexed_seq"], before[id]["last_seq"]) == (0, 2)
    assert updated.rows == [[id, "2", "2", "0", ""]]
    assert after["pending_count"] == 0


def test_rebuilding_loses_nothing(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    before = cli("search", "connection reset", "--json").json["hits"]
    sessions.store.text.drop(sessions.get(upload).key)
    dropped = cli("index", upload, "--json")
    answer = cli("index", "rebuild")

    assert dropped.code == 2  # A first word is an action; a session needs `status` before it.
    assert answer.code == 0
    assert cli("search", "connection reset", "--json").json["hits"] == before


def test_ctrl_c_keeps_what_is_indexed(
    cli: CommandLine, sessions: Sessions, upload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _behind(sessions)
    done: list[str] = []

    def interrupted(store: Store, key: SessionKey) -> int:
        if done:
            raise KeyboardInterrupt
        done.append(key.id)
        return bring_up_to_date(store, key)

    monkeypatch.setattr(index, "bring_up_to_date", interrupted)
    answer = cli("index", "rebuild")

    assert answer.code == 130
    assert "goes on from there" in answer.err
    assert len(done) == 1


def test_an_unknown_session_is_not_found(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    assert cli("index", "rebuild", "nothing").code == 3
