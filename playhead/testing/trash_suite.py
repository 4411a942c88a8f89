"""The shared suite's part about the trash: what is put there is gone for everybody, and comes back as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.errors import (
    ArtifactNotFound,
    InvalidName,
    LeaseLost,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    TrashNotFound,
)
from playhead.features.live import position_at
from playhead.model.ids import SessionKey, session_key
from playhead.stores.base import ROWS_PAGE_MAX, Store, TextFilter, TextRow, TrashedRow
from playhead.testing.drafts import FIRST_AT, HOSTILE_NAMES, draft, started
from playhead.testing.replay import all_records, broken_links, snapshot_at
from playhead.testing.store_harness import KEY, StoreHarness, append, begun

OTHER = session_key("flaky-test", user="ada")
ANY = TextFilter()


class TrashSuite(StoreHarness):
    """Promises about `trash`, `trashed`, `trashed_row`, `is_trashed`, `restore` and `purge`."""

    def test_a_trashed_session_is_nowhere(self, store: Store) -> None:
        """K23."""
        ref = filled(store)
        begun(store, OTHER)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        asked: list[Callable[[], object]] = [
            lambda: store.tip(KEY),
            lambda: store.events(KEY),
            lambda: store.records(KEY),
            lambda: store.holder(KEY),
            lambda: store.artifacts.get(KEY, ref),
            lambda: store.text.indexed_seq(KEY),
            lambda: store.delete(KEY),
            lambda: store.trash(KEY, trash_id="t2", at=FIRST_AT),
        ]
        answers = [refused(one) for one in asked]

        assert [row.key for row in store.sessions()] == [OTHER]
        assert store.text.match('"deploy"', where=ANY, limit=9) == []
        assert store.text.match('"deploy"', keys=[KEY, OTHER], where=ANY, limit=9) == []
        assert answers == [True] * len(asked)
        assert len(store.trashed()) == 1

    def test_the_trash_says_what_is_in_it(self, store: Store) -> None:
        filled(store)
        store.save_summary(KEY, 5, '{"title":"Flaky"}')
        begun(store, OTHER, count=2)
        store.trash(KEY, trash_id="t2", at=FIRST_AT + 0.5)
        store.trash(OTHER, trash_id="t1", at=FIRST_AT + 9)
        first, second = store.trashed()

        assert (first.trash_id, first.key, first.at, first.seq) == ("t1", OTHER, FIRST_AT + 9, 2)
        assert (second.trash_id, second.key, second.at, second.seq) == ("t2", KEY, FIRST_AT + 0.5, 5)
        assert (second.summary, second.problem) == ('{"title":"Flaky"}', None)
        assert store.sessions() == []

    def test_one_trashing_is_told_of_as_the_list_tells_of_it(self, store: Store) -> None:
        filled(store)
        begun(store, OTHER, count=2)
        store.trash(KEY, trash_id="t2", at=FIRST_AT)
        store.trash(OTHER, trash_id="t1", at=FIRST_AT + 9)
        rows = [store.trashed_row(trash_id) for trash_id in ("t1", "t2")]
        store.restore("t2", KEY)
        store.purge("t1")
        for trash_id in ("t1", "t2", "t3", "", "../x", "A"):
            with pytest.raises(TrashNotFound):
                store.trashed_row(trash_id)

        assert [(row.trash_id, row.key, row.seq) for row in rows] == [("t1", OTHER, 2), ("t2", KEY, 5)]

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_the_store_says_of_any_key_whether_it_lies_in_the_trash(self, store: Store, name: str) -> None:
        key, other = session_key(name, app=name, user=name), session_key(name, app=name)
        begun(store, key)
        begun(store, other)
        before = store.is_trashed(key)
        store.trash(key, trash_id="t1", at=FIRST_AT)
        begun(store, key)
        store.trash(key, trash_id="t2", at=FIRST_AT)
        store.restore("t1", OTHER)
        seen = store.is_trashed(key), store.is_trashed(other), store.is_trashed(OTHER)
        store.purge("t2")

        assert before is False
        assert seen == (True, False, False)
        assert not store.is_trashed(key)

    def test_a_trash_id_that_is_used_again_stands_for_the_later_session(self, store: Store) -> None:
        for key, other in ((KEY, OTHER), (OTHER, KEY)):
            begun(store, key)
            store.trash(key, trash_id="t1", at=FIRST_AT)

            assert (store.is_trashed(key), store.is_trashed(other)) == (True, False)
            assert store.trashed_row("t1").key == key
            store.purge("t1")

    def test_a_restored_session_is_as_it_was(self, store: Store) -> None:
        ref = filled(store)
        before = all_records(store, KEY), store.tip(KEY), store.snapshot_seqs(KEY), store.streams.left(KEY)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.restore("t1", KEY)
        after = all_records(store, KEY), store.tip(KEY), store.snapshot_seqs(KEY), store.streams.left(KEY)
        append(store, draft(n=900))

        assert after == before
        assert store.artifacts.get(KEY, ref) == b"chart"
        assert broken_links(store, KEY) == []
        assert store.trashed() == []
        assert [row.key for row in store.sessions()] == [KEY]

    def test_the_next_search_indexes_a_restored_session_again(self, store: Store) -> None:
        filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.restore("t1", KEY)
        indexed_seq = store.text.indexed_seq(KEY)
        found = store.text.match('"deploy"', where=ANY, limit=9)
        store.text.add(KEY, [TextRow(2, "deploy key")], up_to=5)

        assert (indexed_seq, found) == (0, [])
        assert [match.key for match in store.text.match('"deploy"', where=ANY, limit=9)] == [KEY]

    def test_a_trashed_id_is_free_at_once_and_each_trashing_is_kept(self, store: Store) -> None:
        """K23."""
        for number in (1, 2, 3):
            begun(store, count=number)
            store.artifacts.put(KEY, b"chart %d" % number)
            store.trash(KEY, trash_id=f"t{number}", at=FIRST_AT + number)
        begun(store, count=4)
        store.artifacts.put(KEY, b"live")
        for number in (1, 2, 3):
            store.restore(f"t{number}", session_key(f"was-{number}"))
        seqs = {row.key.id: row.seq for row in store.sessions()}
        kept = {
            row.key.id: [store.artifacts.get(row.key, ref) for ref in store.artifacts.hashes(row.key)]
            for row in store.sessions()
        }

        assert seqs == {KEY.id: 4, "was-1": 1, "was-2": 2, "was-3": 3}
        assert kept == {KEY.id: [b"live"], "was-1": [b"chart 1"], "was-2": [b"chart 2"], "was-3": [b"chart 3"]}

    def test_nothing_of_a_trashed_session_is_in_the_next_one_of_its_id(self, store: Store) -> None:
        filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        begun(store)

        assert store.artifacts.hashes(KEY) == []
        assert store.streams.left(KEY) == []
        assert store.snapshot_seqs(KEY) == []
        assert store.text.indexed_seq(KEY) == 0
        assert store.holder(KEY) is None

    def test_a_session_is_not_restored_over_another_one(self, store: Store) -> None:
        ref = filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        begun(store, count=2)
        with pytest.raises(SessionExists):
            store.restore("t1", KEY)
        still = [row.trash_id for row in store.trashed()]
        store.restore("t1", OTHER)

        assert still == ["t1"]
        assert store.tip(KEY).seq == 2
        assert store.tip(OTHER).seq == 5
        assert store.artifacts.get(OTHER, ref) == b"chart"

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_any_name_goes_into_the_trash_and_comes_back(self, store: Store, name: str) -> None:
        key, other = session_key(name, app=name, user=name), session_key(f"{name}2", app=name, user=name)
        begun(store, key, count=3)
        ref = store.artifacts.put(key, b"chart")
        store.trash(key, trash_id="t1", at=FIRST_AT)
        row = store.trashed()[0]
        store.restore("t1", row.key)
        store.trash(key, trash_id="t2", at=FIRST_AT)
        store.restore("t2", other)

        assert row.key == key
        assert store.artifacts.get(other, ref.hash) == b"chart"
        assert store.tip(other).seq == 3

    def test_a_purged_session_is_gone_for_good(self, store: Store) -> None:
        filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.purge("t1")
        with pytest.raises(TrashNotFound):
            store.restore("t1", KEY)
        with pytest.raises(TrashNotFound):
            store.purge("t1")
        begun(store)

        assert store.trashed() == []
        assert store.tip(KEY).seq == 1
        assert store.artifacts.hashes(KEY) == []

    def test_a_purge_leaves_the_session_that_has_the_id_by_now(self, store: Store) -> None:
        filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        ref = filled(store)
        before = all_records(store, KEY)
        store.purge("t1")

        assert all_records(store, KEY) == before
        assert store.artifacts.get(KEY, ref) == b"chart"
        assert len(store.streams.left(KEY)) == 1
        assert len(store.text.match('"deploy"', where=ANY, limit=9)) == 1

    def test_a_session_in_a_turn_is_not_trashed(self, store: Store) -> None:
        """K23."""
        begun(store)
        lease = store.acquire(KEY, label="the server", at=FIRST_AT)
        with pytest.raises(SessionBusy) as error:
            store.trash(KEY, trash_id="t1", at=FIRST_AT)
        seq = store.tip(KEY).seq
        store.release(lease)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)

        assert error.value.holder["label"] == "the server"
        assert seq == 1
        assert [row.trash_id for row in store.trashed()] == ["t1"]

    def test_an_old_lease_means_nothing_to_a_restored_session(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, at=FIRST_AT)
        store.release(lease)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.restore("t1", KEY)
        with pytest.raises(LeaseLost):
            store.append(KEY, [draft(n=2)], expected_seq=None, fence=lease.fence)

        assert store.acquire(KEY, at=FIRST_AT).fence > lease.fence

    def test_whoever_has_it_open_writes_nothing_more(self, store: Store, folder: Path) -> None:
        """Neither through this store nor through another one that is open on the same place."""
        begun(store, count=2)
        others = [store]
        if self.is_durable:
            others.append(self.make_store(folder))
        for n, other in enumerate(others, 3):
            other.append(KEY, [draft(n=n)], expected_seq=n - 1)
        end = store.tip(KEY)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        for n, other in enumerate(others, 9):
            for one in (draft(n=n), draft("session_changed", n=n)):
                with pytest.raises(SessionNotFound):
                    other.append(KEY, [one], expected_seq=end.seq)
            with pytest.raises(SessionNotFound):
                other.save_summary(KEY, end.seq, "{}")
            with pytest.raises(SessionNotFound):
                other.artifacts.put(KEY, b"late")
        store.restore("t1", KEY)
        seen = [other.tip(KEY) for other in others]
        for n, other in enumerate(others, end.seq + 1):
            other.append(KEY, [draft(n=n)], expected_seq=n - 1)
        broken = broken_links(store, KEY)
        for other in others[1:]:
            other.close()

        assert seen == [end] * len(others)
        assert broken == []
        assert store.tip(KEY).seq == end.seq + len(others)

    def test_one_store_restores_what_another_one_trashed(self, store: Store, folder: Path) -> None:
        self.need_durable()
        ref = filled(store)
        other = self.make_store(folder)
        other.tip(KEY)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        rows = other.trashed()
        other.restore("t1", OTHER)
        seen = store.tip(OTHER).seq, store.artifacts.get(OTHER, ref), store.trashed()
        store.trash(OTHER, trash_id="t2", at=FIRST_AT)
        other.purge("t2")
        other.close()

        assert [row.trash_id for row in rows] == ["t1"]
        assert seen == (5, b"chart", [])
        assert store.trashed() == []

    def test_the_trash_lasts(self, store: Store, folder: Path) -> None:
        self.need_durable()
        ref = filled(store)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        again = self.reopen(store, folder)
        rows = again.trashed()
        again.restore("t1", KEY)
        kept = again.artifacts.get(KEY, ref)
        seq = again.tip(KEY).seq
        again.close()

        assert [(row.trash_id, row.key, row.seq) for row in rows] == [("t1", KEY, 5)]
        assert (kept, seq) == (b"chart", 5)

    def test_a_fork_goes_on_while_its_parent_is_in_the_trash(self, store: Store) -> None:
        begun(store, count=3)
        parent = {"session": KEY.id, "event": "message-3", "seq": 3}
        first = draft("session_started", n=0, body={"app": "default", "user": "default", "forked_from": parent})
        fork = session_key("fork")
        store.create(fork, [first, draft(n=2)])
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        append(store, draft(n=9), key=fork)

        assert position_at(store, fork, 3).fold.head == 3

    @pytest.mark.parametrize("trash_id", ["", "../x", "a/b", "A", ".", "x" * 65, "a\0", "\ud83d", "é", "a b"])
    def test_a_trash_id_is_a_plain_word(self, store: Store, trash_id: str) -> None:
        begun(store)
        with pytest.raises(InvalidName):
            store.trash(KEY, trash_id=trash_id, at=FIRST_AT)
        with pytest.raises(TrashNotFound):
            store.restore(trash_id, OTHER)
        with pytest.raises(TrashNotFound):
            store.purge(trash_id)

        assert store.tip(KEY).seq == 1

    def test_a_trash_id_stands_for_one_trashing(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER, count=2)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        with pytest.raises(InvalidName):
            store.trash(OTHER, trash_id="t1", at=FIRST_AT)

        assert store.tip(OTHER).seq == 2
        assert [row.key for row in store.trashed()] == [KEY]

    def test_the_trash_is_listed_in_pages(self, store: Store) -> None:
        ids = [f"t{number:02}" for number in range(12)]
        for trash_id in reversed(ids):
            begun(store)
            store.trash(KEY, trash_id=trash_id, at=FIRST_AT)
        found: list[TrashedRow] = []
        while page := store.trashed(after=found[-1].trash_id if found else None, limit=5):
            found += page

        assert [row.trash_id for row in found] == ids
        assert store.trashed(limit=0) == store.trashed(limit=-1) == []
        assert len(store.trashed(limit=ROWS_PAGE_MAX + 1)) == len(ids)
        assert store.trashed(after="t11") == []

    def test_records_come_over_under_an_id_that_lies_in_the_trash(self, store: Store) -> None:
        filled(store)
        records = all_records(store, KEY)
        store.trash(KEY, trash_id="t1", at=FIRST_AT)
        store.put_records(KEY, records, expected_seq=0)
        store.restore("t1", OTHER)

        assert all_records(store, KEY) == all_records(store, OTHER) == records
        assert store.artifacts.hashes(KEY) == []


def filled(store: Store, key: SessionKey = KEY) -> str:
    """Begin a session of five events with an artifact, a stream, a snapshot and an index; return the artifact's
    hash."""
    store.create(key, [started(app=key.app, user=key.user), *(draft(n=n) for n in range(2, 6))])
    store.save_snapshot(key, snapshot_at(store, key, 3))
    store.text.add(key, [TextRow(2, "deploy key")], up_to=5)
    store.streams.begin(key, "m1", {"at": FIRST_AT})
    store.streams.add(key, "m1", "text", "half an answ")
    return store.artifacts.put(key, b"chart").hash


def refused(verb: Callable[[], object]) -> bool:
    """Return True where a verb finds no such session."""
    try:
        verb()
    except (SessionNotFound, ArtifactNotFound):
        return True
    return False
