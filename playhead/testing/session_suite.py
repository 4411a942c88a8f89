"""The shared suite's part about a session as a whole: resume, leases, listings, removal, closing and opening again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from playhead.errors import (
    EventConflict,
    EventNotFound,
    LeaseLost,
    SessionBusy,
    SessionNotFound,
    StaleWriter,
    StoreClosed,
)
from playhead.model.event import Draft
from playhead.model.ids import SessionKey, session_key
from playhead.model.snapshot import CHAIN_MAX, SNAPSHOT_VERSION, delta, full, restore
from playhead.stores.base import ROWS_PAGE_MAX, Lease, Store, TextFilter, TextRow
from playhead.testing.drafts import FIRST_AT, HOSTILE_TEXTS, draft, moved
from playhead.testing.replay import broken_links, replayed, resumed, snapshot_at
from playhead.testing.store_harness import KEY, StoreHarness, append, begun, messages, written


class SessionSuite(StoreHarness):
    """Promises about resuming, sharing, listing and removing sessions."""

    # Resume: the newest snapshot on the path, and the tail after it.

    def test_without_a_snapshot_the_tail_is_the_whole_path(self, store: Store) -> None:
        begun(store, count=4)
        append(store, moved(2, n=5), draft(n=6), draft("session_changed", n=7))
        chain, events = store.tail(KEY, 6)

        assert chain == []
        assert [event.seq for event in events] == [1, 2, 6]
        assert [event.seq for event in store.tail(KEY, 4)[1]] == [1, 2, 3, 4]
        assert store.tail(KEY, 0) == ([], [])

    def test_the_tail_begins_after_the_newest_snapshot_on_the_path(self, store: Store) -> None:
        """S4."""
        begun(store, count=3)
        first = full(2, {"path": [[1, 2]]})
        store.save_snapshot(KEY, first)
        store.save_snapshot(KEY, full(3, {"path": [[1, 3]]}))
        append(store, draft(n=4))
        chain, events = store.tail(KEY, 4)

        assert [snapshot.seq for snapshot in chain] == [3]
        assert [event.seq for event in events] == [4]
        assert store.tail(KEY, 3)[1] == []
        assert store.tail(KEY, 2) == ([first], [])

    def test_a_snapshot_of_another_branch_is_never_used(self, store: Store) -> None:
        """K3: Two branches leave event 2, each with snapshots; and the log goes on in turns, now here, now there."""
        begun(store, count=2)
        store.save_snapshot(KEY, snapshot_at(store, KEY, 2))
        append(store, *messages(3, 5))
        store.save_snapshot(KEY, snapshot_at(store, KEY, 5))
        append(store, moved(2, n=6), *messages(7, 9))
        store.save_snapshot(KEY, snapshot_at(store, KEY, 8))
        append(store, moved(5, n=10), draft(n=11), moved(7, n=12), draft(n=13))
        tails = {head: store.tail(KEY, head) for head in (5, 4, 9, 7, 11, 13)}

        assert {head: [one.seq for one in chain] for head, (chain, _) in tails.items()} == {
            5: [2, 5],
            4: [2],
            9: [2, 8],
            7: [2],
            11: [2, 5],
            13: [2],
        }
        assert {head: [event.seq for event in events] for head, (_, events) in tails.items()} == {
            5: [],
            4: [3, 4],
            9: [9],
            7: [7],
            11: [11],
            13: [7, 13],
        }

    def test_a_resume_gives_what_a_full_replay_gives_at_every_event(self, store: Store) -> None:
        """K8."""
        begun(store, count=2)
        for n in range(3, 3 + 2 * CHAIN_MAX):
            append(store, draft("state_changed" if n % 3 else "message", n=n, turn=f"t{n}", agent="coordinator"))
            if n % 40 == 0:
                append(store, moved(n - 20, n=10_000 + n))
            store.save_snapshot(KEY, snapshot_at(store, KEY, store.tip(KEY).head))
        heads = [record.seq for record in store.records(KEY) if not record.is_fact]
        longest = max(len(store.tail(KEY, head)[0]) for head in heads)
        different = [head for head in heads[::7] if resumed(store, KEY, head) != replayed(store, KEY, head)]

        assert different == []
        assert 32 <= longest <= CHAIN_MAX

    def test_a_snapshot_comes_back_as_it_was_saved(self, store: Store) -> None:
        slots = {f"later:session\n{text}": 2**70 for text in HOSTILE_TEXTS} | {
            "conv:": [[1, 2]],
            "later": [1, None, 0.5],
        }
        begun(store, count=3)
        first = full(2, slots)
        second = delta(3, first, slots, {"conv:": [[1, 3]], "\ud83d": ["\0"]})
        store.save_snapshot(KEY, first)
        store.save_snapshot(KEY, second)
        chain, events = store.tail(KEY, 3)

        assert chain == [first, second]
        assert events == []
        assert restore(chain) == {"conv:": [[1, 3]], "\ud83d": ["\0"]}

    def test_a_snapshot_replaces_the_one_at_its_event(self, store: Store) -> None:
        begun(store, count=3)
        for slots in ({"said": [1, 1, 1]}, {"said": [2, 2, 2]}):
            store.save_snapshot(KEY, full(2, slots))
        store.save_snapshot(KEY, full(1, {}))

        assert store.tail(KEY, 3)[0] == [full(2, {"said": [2, 2, 2]})]
        assert store.snapshot_seqs(KEY) == [1, 2]

    def test_nobody_can_change_a_kept_snapshot_through_what_they_gave_or_got(self, store: Store) -> None:
        begun(store, count=2)
        given = full(2, {"said": [1, 1, 1]})
        store.save_snapshot(KEY, given)
        for snapshot in (given, store.tail(KEY, 2)[0][0]):
            snapshot.changed["said"].append("changed")

        assert store.tail(KEY, 2)[0][0].changed == {"said": [1, 1, 1]}

    def test_a_snapshot_that_cannot_be_used_is_passed_over(self, store: Store) -> None:
        """One builds on nothing, one on itself, and one is of a newer version; an older one is sound."""
        begun(store, count=6)
        sound = full(2, {"said": [1, 1, 1]})
        store.save_snapshot(KEY, sound)
        store.save_snapshot(KEY, msgspec.structs.replace(sound, seq=4, base_seq=3, number=2))
        store.save_snapshot(KEY, msgspec.structs.replace(sound, seq=5, base_seq=5, number=2))
        store.save_snapshot(KEY, msgspec.structs.replace(sound, seq=6, version=SNAPSHOT_VERSION + 1))
        chain, events = store.tail(KEY, 6)

        assert chain == [sound]
        assert [event.seq for event in events] == [3, 4, 5, 6]
        assert store.snapshot_seqs(KEY) == [2, 4, 5, 6]

    @pytest.mark.parametrize("seq", [-1, 0, 3, 4, 2**40])
    def test_a_snapshot_is_kept_at_nothing_but_an_event_on_a_path(self, store: Store, seq: int) -> None:
        """3 is a fact. One beyond the end would be taken for a snapshot of whatever event comes to stand there."""
        begun(store, count=2)
        append(store, draft("session_changed", n=3))
        with pytest.raises(EventNotFound):
            store.save_snapshot(KEY, full(seq, {}))

        assert store.snapshot_seqs(KEY) == []

    @pytest.mark.parametrize("head", [-1, 3, 4, 2**40])
    def test_a_path_leads_to_nothing_but_an_event_on_it(self, store: Store, head: int) -> None:
        begun(store, count=2)
        append(store, draft("session_changed", n=3))
        with pytest.raises(EventNotFound):
            store.tail(KEY, head)

        assert len(store.tail(KEY, 2)[1]) == 2

    # Leases.

    def test_a_lease_has_one_holder_at_a_time(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, label="the server", at=FIRST_AT)
        holder = store.holder(KEY)
        with pytest.raises(SessionBusy) as error:
            store.acquire(KEY, at=FIRST_AT + 1)
        store.release(lease)

        assert holder is not None
        assert (holder["pid"], holder["since"], holder["label"]) == (os.getpid(), FIRST_AT, "the server")
        assert error.value.holder == holder == lease.holder
        assert "host" in holder
        assert store.holder(KEY) is None
        assert store.acquire(KEY, at=FIRST_AT + 2).fence > lease.fence

    def test_a_holder_without_a_label_has_none(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, at=FIRST_AT)
        lease.holder["pid"] = "changed"
        holder = store.holder(KEY)

        assert holder is not None
        assert "label" not in holder
        assert holder["pid"] == os.getpid()

    def test_sessions_have_leases_of_their_own(self, store: Store) -> None:
        other = session_key("flaky-test", user="ada")
        begun(store)
        begun(store, other)
        lease = store.acquire(KEY, at=FIRST_AT)
        others = store.acquire(other, at=FIRST_AT)
        store.release(lease)

        assert store.holder(KEY) is None
        assert store.holder(other) == others.holder

    def test_the_holder_appends_under_its_fence_whatever_facts_others_appended(self, store: Store) -> None:
        begun(store)
        fence = store.acquire(KEY, at=FIRST_AT).fence
        first = store.append(KEY, [draft(n=2)], expected_seq=1, fence=fence)
        title = store.append(KEY, [draft("session_changed", n=3)], expected_seq=2)
        second = store.append(KEY, [draft(n=4), moved(1, n=5)], expected_seq=2, fence=fence)
        third = store.append(KEY, [draft(n=6)], expected_seq=None, fence=fence)

        assert [event.seq for event in (*first, *title, *second, *third)] == [2, 3, 4, 5, 6]
        assert third[0].parent == 1

    @pytest.mark.parametrize(
        "batch",
        [
            [draft(n=2)],
            [moved(1, n=2)],
            [draft("session_changed", n=2), draft(n=3)],
            [draft("state_changed", n=2, body={"delta": {"session": {"seen": True}}})],
        ],
    )
    def test_without_the_fence_a_path_is_left_alone_while_somebody_is_in_a_turn(
        self, store: Store, batch: list[Draft]
    ) -> None:
        begun(store)
        lease = store.acquire(KEY, label="the server", at=FIRST_AT)
        before = written(store)
        with pytest.raises(SessionBusy) as error:
            append(store, *batch)

        assert error.value.holder == lease.holder
        assert written(store) == before
        store.release(lease)
        assert [event.seq for event in append(store, *batch)] == [*range(2, 2 + len(batch))]

    def test_without_the_fence_facts_are_taken_while_somebody_is_in_a_turn(self, store: Store) -> None:
        begun(store)
        store.acquire(KEY, at=FIRST_AT)
        shared = draft("state_changed", n=3, body={"delta": {"user": {"name": "Ada"}}})
        facts = append(store, draft("session_changed", n=2), shared, draft("redacted", n=4))
        with pytest.raises(StaleWriter):
            store.append(KEY, [draft("session_changed", n=5)], expected_seq=1)

        assert store.facts(KEY) == facts

    def test_a_lease_that_was_taken_over_writes_nothing(self, store: Store) -> None:
        begun(store)
        lost = store.acquire(KEY, at=FIRST_AT)
        store.release(lost)
        current = store.acquire(KEY, at=FIRST_AT + 60)
        before = written(store)
        for batch in ([draft(n=2)], [draft("session_changed", n=2)], messages(2, 4)):
            for expected in (1, None):
                with pytest.raises(LeaseLost) as error:
                    store.append(KEY, batch, expected_seq=expected, fence=lost.fence)

                assert (error.value.fence, error.value.current_fence) == (lost.fence, current.fence)
        assert written(store) == before

    def test_releasing_a_lease_that_was_taken_over_leaves_the_new_one_alone(self, store: Store) -> None:
        begun(store)
        lost = store.acquire(KEY, at=FIRST_AT)
        store.release(lost)
        current = store.acquire(KEY, at=FIRST_AT + 60)
        store.release(lost)

        assert store.holder(KEY) == current.holder
        assert len(store.append(KEY, [draft(n=2)], expected_seq=None, fence=current.fence)) == 1

    def test_a_fence_that_nobody_holds_writes_nothing(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, at=FIRST_AT)
        for fence in (lease.fence + 1, 0, -1):
            with pytest.raises(LeaseLost):
                store.append(KEY, [draft(n=2)], expected_seq=1, fence=fence)
        store.release(lease)
        store.release(lease)
        with pytest.raises(LeaseLost):
            store.append(KEY, [draft(n=2)], expected_seq=1, fence=lease.fence)

        assert store.tip(KEY).seq == 1
        assert len(store.append(KEY, [draft(n=2)], expected_seq=1)) == 1

    def test_a_retry_is_recognised_under_a_lost_lease_and_while_others_are_in_a_turn(self, store: Store) -> None:
        begun(store)
        lost = store.acquire(KEY, at=FIRST_AT)
        first = store.append(KEY, [draft(n=2)], expected_seq=1, fence=lost.fence)
        store.release(lost)
        store.acquire(KEY, at=FIRST_AT + 60)
        under_lost = store.append(KEY, [draft(n=2)], expected_seq=1, fence=lost.fence)
        without = store.append(KEY, [draft(n=2)], expected_seq=1)
        with pytest.raises(EventConflict):
            store.append(KEY, [draft(n=2), draft(n=3)], expected_seq=2)

        assert under_lost == without == first
        assert store.tip(KEY).seq == 2

    def test_a_fence_of_a_deleted_session_is_worth_nothing_in_the_next_one(self, store: Store) -> None:
        begun(store)
        old = store.acquire(KEY, at=FIRST_AT)
        store.release(old)
        store.delete(KEY)
        begun(store)
        current = store.acquire(KEY, at=FIRST_AT + 60)
        with pytest.raises(LeaseLost):
            store.append(KEY, [draft(n=2)], expected_seq=1, fence=old.fence)
        store.release(old)

        assert store.holder(KEY) == current.holder
        assert store.tip(KEY).seq == 1

    def test_releasing_the_lease_of_a_session_that_is_gone_is_no_error(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, at=FIRST_AT)
        store.release(lease)
        store.delete(KEY)
        store.release(lease)

        assert store.sessions() == []

    # Listings.

    def test_sessions_are_listed_in_key_order_and_in_pages(self, store: Store) -> None:
        keys = [
            session_key(name, app=app, user=user)
            for app in ("a", "B", "\u00e9")
            for user in ("x", "x y", "\U0001f98a")
            for name in ("1", "10", "2", "\uffff")
        ]
        for key in reversed(keys):
            begun(store, key)
        in_order = sorted(keys)
        pages: list[list[SessionKey]] = []
        for _ in range(len(keys)):
            rows = store.sessions(after=pages[-1][-1] if pages else None, limit=5)
            if not rows:
                break
            pages.append([row.key for row in rows])
        between = session_key("10!", app="B", user="x")

        assert [key for page in pages for key in page] == in_order
        assert [len(page) for page in pages] == [5] * 7 + [1]
        assert [row.key for row in store.sessions()] == in_order
        assert [row.key for row in store.sessions(after=between)] == [key for key in in_order if key > between]

    def test_a_page_of_sessions_has_a_most_and_may_be_empty(self, store: Store) -> None:
        for number in range(7):
            begun(store, session_key(f"s{number}"))

        assert len(store.sessions(limit=10**9)) == 7
        assert [store.sessions(limit=limit) for limit in (0, -1)] == [[], []]
        assert ROWS_PAGE_MAX == 1_000

    def test_sessions_can_be_listed_by_app_and_user_exactly(self, store: Store) -> None:
        for app, user in (("chat", "ada"), ("chat", "bob"), ("Chat", "ada"), ("cha", "ada"), ("default", "default")):
            begun(store, session_key("s", app=app, user=user))

        def found(**asked: str) -> list[tuple[str, str]]:
            return [(row.key.app, row.key.user) for row in store.sessions(**asked)]  # type: ignore[arg-type]

        assert found(app="chat") == [("chat", "ada"), ("chat", "bob")]
        assert found(user="ada") == [("Chat", "ada"), ("cha", "ada"), ("chat", "ada")]
        assert found(app="chat", user="ada") == [("chat", "ada")]
        assert found(app="ch%") == found(user="") == []
        assert [row.key.user for row in store.sessions(app="chat", after=session_key("s", app="chat", user="ada"))] == [
            "bob"
        ]

    def test_a_row_says_where_the_log_ends(self, store: Store) -> None:
        begun(store, count=3)
        append(store, draft("session_changed", n=4, at=FIRST_AT + 99))
        (row,) = store.sessions()

        assert (row.key, row.seq, row.at) == (KEY, 4, FIRST_AT + 99)
        assert (row.summary, row.summary_seq, row.problem) == (None, 0, None)

    def test_the_newest_summary_is_kept_and_an_older_one_ignored(self, store: Store) -> None:
        begun(store, count=5)
        rows = []
        for seq, summary in ((3, '{"title":"three"}'), (2, '{"title":"two"}'), (3, '{"title":"3 🦊"}'), (5, "{}")):
            store.save_summary(KEY, seq, summary)
            rows += store.sessions()

        assert [(row.summary_seq, row.summary) for row in rows] == [
            (3, '{"title":"three"}'),
            (3, '{"title":"three"}'),
            (3, '{"title":"3 🦊"}'),
            (5, "{}"),
        ]

    # Removal.

    def test_deleting_removes_everything_of_the_session_and_nothing_of_others(self, store: Store) -> None:
        other = session_key("flaky-test-2")
        for key in (KEY, other):
            _fill(store, key)
        before = written(store, other)
        store.delete(KEY)
        gone = [row.key for row in store.sessions()]
        begun(store)
        found = store.text.match('"word"', where=TextFilter(), limit=10)

        assert gone == [other]
        assert written(store, other) == before
        assert store.artifacts.hashes(KEY) == []
        assert store.streams.left(KEY) == []
        assert store.snapshot_seqs(KEY) == []
        assert store.text.indexed_seq(KEY) == 0
        assert [match.key for match in found] == [other]
        assert len(store.artifacts.hashes(other)) == 1
        assert [stream.id for stream in store.streams.left(other)] == ["m1"]
        assert store.snapshot_seqs(other) == [2]

    def test_the_id_of_a_deleted_session_can_be_used_again_with_a_fresh_log(self, store: Store) -> None:
        begun(store, count=5)
        store.save_snapshot(KEY, full(4, {}))
        store.save_summary(KEY, 5, "{}")
        store.delete(KEY)
        begun(store, count=3)
        append(store, draft(n=4))
        (row,) = store.sessions()

        assert [event.seq for event in store.events(KEY)] == [1, 2, 3, 4]
        assert store.tail(KEY, 4)[0] == []
        assert (row.seq, row.summary, row.summary_seq) == (4, None, 0)
        assert broken_links(store, KEY) == []

    def test_a_session_that_somebody_is_in_a_turn_of_is_not_deleted(self, store: Store) -> None:
        """K23."""
        _fill(store, KEY)
        lease = store.acquire(KEY, label="the server", at=FIRST_AT)
        before = written(store)
        with pytest.raises(SessionBusy) as error:
            store.delete(KEY)

        assert error.value.holder == store.holder(KEY) == lease.holder
        assert written(store) == before
        assert len(store.artifacts.hashes(KEY)) == 1
        assert len(store.append(KEY, [draft(n=9)], expected_seq=None, fence=lease.fence)) == 1
        store.release(lease)
        store.delete(KEY)
        with pytest.raises(SessionNotFound):
            store.delete(KEY)

    # Closing, and opening again.

    def test_a_closed_store_says_so(self, store: Store) -> None:
        begun(store)
        lease = store.acquire(KEY, at=FIRST_AT)
        store.close()
        store.close()
        for ask in _calls(lease):
            with pytest.raises(StoreClosed):
                ask(store)

    def test_everything_is_there_when_the_store_is_opened_again(self, store: Store, folder: Path) -> None:
        _fill(store, KEY)
        store.save_summary(KEY, 2, '{"title":"kept"}')
        store.notes.put("settings", "retention", {"days": 180}, id="n1", at=FIRST_AT)
        hashes, before, tail = store.artifacts.hashes(KEY), written(store), store.tail(KEY, 3)
        with contextlib.closing(self.reopen(store, folder)) as again:
            assert written(again) == before
            assert again.tail(KEY, 3) == tail
            assert again.sessions()[0].summary == '{"title":"kept"}'
            assert again.artifacts.get(KEY, hashes[0]) == b"a chart"
            assert [stream.chunks for stream in again.streams.left(KEY)] == [[("text", "Look")]]
            assert again.notes.get("settings", "retention") == {"days": 180}
            assert again.text.indexed_seq(KEY) == 3
            assert [match.seq for match in again.text.match('"word"', where=TextFilter(), limit=10)] == [2]
            assert again.size_bytes() > 0

    def test_closing_gives_back_the_leases(self, store: Store, folder: Path) -> None:
        begun(store)
        old = store.acquire(KEY, at=FIRST_AT)
        with contextlib.closing(self.reopen(store, folder)) as again:
            free = again.holder(KEY)
            current = again.acquire(KEY, at=FIRST_AT + 1)
            with pytest.raises(LeaseLost):
                again.append(KEY, [draft(n=2)], expected_seq=1, fence=old.fence)

            assert free is None
            assert current.fence > old.fence
            assert len(again.append(KEY, [draft(n=2)], expected_seq=1, fence=current.fence)) == 1

    def test_a_lease_of_a_closed_store_keeps_nobody_from_appending(self, store: Store, folder: Path) -> None:
        begun(store)
        store.acquire(KEY, at=FIRST_AT)
        with contextlib.closing(self.reopen(store, folder)) as again:
            events = append(again, draft(n=2))

            assert [event.seq for event in events] == [2]

    def test_two_stores_on_one_place_see_each_other(self, store: Store, folder: Path) -> None:
        """K21."""
        self.need_durable()
        begun(store)
        with contextlib.closing(self.make_store(folder)) as second:
            append(second, draft(n=2))
            append(store, draft(n=3))
            with pytest.raises(StaleWriter):
                second.append(KEY, [draft(n=4)], expected_seq=2)
            retried = second.append(KEY, [draft(n=3)], expected_seq=2)
            lease = store.acquire(KEY, label="first", at=FIRST_AT)
            with pytest.raises(SessionBusy) as busy:
                second.acquire(KEY, at=FIRST_AT + 1)
            with pytest.raises(SessionBusy):
                append(second, draft(n=4))
            append(second, draft("session_changed", n=4))
            store.append(KEY, [draft(n=5)], expected_seq=3, fence=lease.fence)
            store.release(lease)
            taken = second.acquire(KEY, label="second", at=FIRST_AT + 2)
            with pytest.raises(LeaseLost):
                store.append(KEY, [draft(n=6)], expected_seq=5, fence=lease.fence)
            second.append(KEY, [draft(n=6)], expected_seq=5, fence=taken.fence)

            assert [event.seq for event in retried] == [3]
            assert busy.value.holder == lease.holder
            assert [event.seq for event in store.events(KEY)] == [1, 2, 3, 4, 5, 6]
            assert broken_links(store, KEY) == broken_links(second, KEY) == []

    def test_a_session_that_another_store_deleted_and_began_again_is_the_new_one(
        self, store: Store, folder: Path
    ) -> None:
        self.need_durable()
        begun(store, count=3)
        with contextlib.closing(self.make_store(folder)) as second:
            append(second, draft(n=4))
            store.delete(KEY)
            with pytest.raises(SessionNotFound):
                second.tip(KEY)
            with pytest.raises(SessionNotFound):
                second.append(KEY, [draft(n=5)], expected_seq=4)
            begun(store, count=2)
            with pytest.raises(StaleWriter):
                second.append(KEY, [draft(n=5)], expected_seq=4)
            append(second, draft(n=3))

            assert [event.seq for event in store.events(KEY)] == [1, 2, 3]
            assert broken_links(store, KEY) == []

    def test_the_place_on_disk_is_private(self, store: Store, folder: Path) -> None:
        """S11."""
        self.need_durable()
        if os.name == "nt":
            pytest.skip("file modes say nothing here")
        _fill(store, KEY)
        store.acquire(KEY, at=FIRST_AT)
        modes = {path: path.stat().st_mode & 0o077 for path in folder.rglob("*")}

        assert {path for path, mode in modes.items() if mode} == set()
        assert modes


def _fill(store: Store, key: SessionKey) -> None:
    """Begin a session of three events with a little of everything beside it."""
    begun(store, key, count=3)
    store.save_snapshot(key, full(2, {"said": [2, 2, 0]}))
    store.artifacts.put(key, b"a chart")
    store.streams.begin(key, "m1", {"role": "assistant"})
    store.streams.add(key, "m1", "text", "Look")
    store.text.add(key, [TextRow(seq=2, text="word")], up_to=3)


def _calls(lease: Lease) -> list[Callable[[Store], Any]]:
    """Return a call of every method. `Any`: their answers differ."""
    return [
        lambda store: store.create(session_key("new"), [draft("session_started")]),
        lambda store: store.append(KEY, [draft(n=2)], expected_seq=1),
        lambda store: store.append(KEY, [draft(n=2)], expected_seq=1, fence=lease.fence),
        lambda store: store.append(KEY, messages(2, 3), expected_seq=1),
        lambda store: store.tip(KEY),
        lambda store: store.events(KEY),
        lambda store: store.events_at(KEY, [[1, 1]]),
        lambda store: store.tail(KEY, 1),
        lambda store: store.facts(KEY),
        lambda store: store.seq_of(KEY, ["message-1"]),
        lambda store: store.records(KEY),
        lambda store: store.snapshot_seqs(KEY),
        lambda store: store.save_snapshot(KEY, full(1, {})),
        lambda store: store.save_summary(KEY, 1, "{}"),
        lambda store: store.sessions(),
        lambda store: store.acquire(KEY, at=FIRST_AT),
        lambda store: store.release(lease),
        lambda store: store.holder(KEY),
        lambda store: store.delete(KEY),
        lambda store: store.size_bytes(),
        lambda store: store.streams.begin(KEY, "m1", {}),
        lambda store: store.streams.add(KEY, "m1", "text", "x"),
        lambda store: store.streams.end(KEY, "m1"),
        lambda store: store.streams.left(KEY),
        lambda store: store.artifacts.put(KEY, b"x"),
        lambda store: store.artifacts.get(KEY, "sha256-" + "0" * 64),
        lambda store: store.artifacts.hashes(KEY),
        lambda store: store.notes.put("t", "n", {}, id="n1", at=FIRST_AT),
        lambda store: store.notes.replace("t", "n", {}, id="n1", at=FIRST_AT),
        lambda store: store.notes.get("t", "n"),
        lambda store: store.notes.all("t"),
        lambda store: store.text.indexed_seq(KEY),
        lambda store: store.text.add(KEY, [], up_to=1),
        lambda store: store.text.match('"x"', where=TextFilter(), limit=1),
        lambda store: store.text.drop(KEY),
        lambda store: store.text.drop(),
    ]
