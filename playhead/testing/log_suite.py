"""The shared suite's part about the log: appends, heads, retries, bodies, keys, reading, the chain."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from playhead.errors import (
    EventConflict,
    EventNotFound,
    InvalidEvent,
    SessionExists,
    SessionNotFound,
    StaleWriter,
)
from playhead.model.event import KINDS, Draft, head_after
from playhead.model.ids import SessionKey, session_key
from playhead.model.snapshot import full
from playhead.stores.base import EVENTS_PAGE_MAX, Store, TextRow
from playhead.testing.drafts import FIRST_AT, HOSTILE_NAMES, HOSTILE_TEXTS, draft, moved, started
from playhead.testing.replay import all_events, all_records, broken_links
from playhead.testing.store_harness import KEY, StoreHarness, append, begun, messages, written

WRITERS, APPENDS_EACH = 8, 50
RETRIES_MAX = 10_000

ALIKE = (
    "Session",
    "session",
    "SESSION",
    "sess",
    "session ",
    " session",
    "session\n",
    "session%",
    "sess_on",
    "sess%",
    "caf\u00e9",
    "cafe\u0301",
    "../session",
    "..",
    ".",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "CON",
    "con",
    "nul.playhead",
    "session.playhead",
    "_store",
    "🦊 in the log",
    "'; --",
    "x" * 512,
    "x" * 511 + "y",
    "\u65e5" * 512,
    *HOSTILE_NAMES,
)
"""Ids that a file system, a pattern or a collation might take for one another, or for something else."""

EVERYTHING: dict[str, Any] = {
    "integers": [0, -1, 2**53 + 1, -(2**63), 2**64 - 1, 2**64, 10**300],
    "floats": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0],
    "words": [True, False, None],
    "texts": list(HOSTILE_TEXTS),
    "": {"": {"": []}},
    "\0": "\0",
    "\ud83d": "half a surrogate pair as a key",
    "nested": {},
}
for _ in range(50):
    EVERYTHING["nested"] = [{"deeper": EVERYTHING["nested"]}]

REFUSED: dict[str, Any] = {
    "NaN": {"name": "x", "value": float("nan")},
    "an infinity": {"name": "x", "value": [float("-inf")]},
    "an object": {"name": "x", "value": object()},
    "bytes": {"name": "x", "value": b"x"},
    "a set": {"name": "x", "value": {1}},
    "a key that is no text": {"name": "x", "value": {1: 2}},
    "itself": {"name": "x"},
    "100,000 levels": {"name": "x"},
}
REFUSED["itself"]["value"] = REFUSED["itself"]
for _ in range(100_000):
    REFUSED["100,000 levels"]["value"] = [REFUSED["100,000 levels"].get("value")]

BAD = {
    "unknown kind": Draft(kind="poem", body={"name": "x"}, id="bad", at=FIRST_AT),
    "missing field": Draft(kind="message", body={"role": "user"}, id="bad", at=FIRST_AT),
    "empty id": draft("note", id=""),
    "NUL in the id": draft("note", id="a\0b"),
    "half a pair in the id": draft("note", id="\ud83d"),
    "half a pair in the agent": draft("note", id="bad", agent="\ud83d"),
    "NUL in the turn": draft("note", id="bad", turn="\0"),
    "a number as scope": draft("note", id="bad", scope=3),
    "at without end": draft("note", id="bad", at=float("inf")),
    "at beyond a float": draft("note", id="bad", at=10**400),
    "a parent of its own": draft("note", id="bad", parent=1),
    "an empty agent": draft("note", id="bad", agent=""),
    "head moved to nowhere": draft("head_moved", id="bad", parent=None),
    **{what: draft("note", id="bad", body=body) for what, body in REFUSED.items()},
}


class LogSuite(StoreHarness):
    """Promises about the log itself."""

    # Appending, and where it places events.

    def test_an_append_returns_its_events_with_seq_and_parent(self, store: Store) -> None:
        begun(store)
        events = store.append(KEY, messages(2, 4), expected_seq=1)

        assert [(event.seq, event.parent, event.id) for event in events] == [
            (2, 1, "message-2"),
            (3, 2, "message-3"),
            (4, 3, "message-4"),
        ]
        assert events == store.events(KEY, after=1)

    def test_a_session_begins_with_its_first_event_whose_parent_is_0(self, store: Store) -> None:
        (event,) = begun(store)
        tip = store.tip(KEY)

        assert (event.seq, event.parent, event.kind) == (1, 0, "session_started")
        assert (tip.seq, tip.head, tip.at) == (1, 1, event.at)

    def test_every_field_of_an_event_of_every_kind_comes_back(self, store: Store) -> None:
        """K2."""
        begun(store)
        kinds = sorted(KINDS - {"session_started"})
        drafts = [
            draft(kind, n=n, agent="coordinator/researcher:2", turn="t1", scope="search:call-1")
            for n, kind in enumerate(kinds, 2)
        ]
        append(store, *drafts)
        events = store.events(KEY, after=1)
        fields = ("kind", "body", "id", "at", "agent", "turn", "scope")

        assert [[getattr(event, name) for name in fields] for event in events] == [
            [getattr(given, name) for name in fields] for given in drafts
        ]

    @pytest.mark.parametrize(
        "body",
        [
            {"delta": {"user": {"name": "Ada"}}},
            {"delta": {"app": {"flag": True}, "user": {"name": "Ada"}}},
            {"removed": {"app": ["flag"]}},
        ],
    )
    def test_state_beyond_the_session_is_a_fact_and_leaves_the_head_where_it_stands(
        self, store: Store, body: dict[str, Any]
    ) -> None:
        begun(store, count=2)
        fact, after = append(store, draft("state_changed", body=body, n=3), draft(n=4))

        assert (fact.seq, fact.parent) == (3, 2)
        assert (after.seq, after.parent) == (4, 2)
        assert store.facts(KEY) == [fact]

    @pytest.mark.parametrize("kind", ["session_changed", "redacted"])
    def test_a_fact_has_no_children(self, store: Store, kind: str) -> None:
        begun(store, count=2)
        (fact,) = append(store, draft(kind, n=3))
        tip = store.tip(KEY)
        (after,) = append(store, draft(n=4))

        assert (tip.seq, tip.head, fact.parent, after.parent) == (3, 2, 2, 2)
        assert [record.is_fact for record in store.records(KEY)] == [False, False, True, False]

    def test_the_next_event_is_placed_where_the_head_was_moved_to(self, store: Store) -> None:
        begun(store, count=4)
        (move,) = append(store, moved(2, n=5))
        tip = store.tip(KEY)
        (after,) = append(store, draft(n=6))

        assert (move.parent, tip.seq, tip.head) == (2, 5, 2)
        assert (after.seq, after.parent) == (6, 2)
        assert store.tip(KEY).head == 6

    def test_a_batch_can_move_the_head_among_its_own_events(self, store: Store) -> None:
        begun(store)
        batch = [*messages(2, 3), moved(2, n=4), draft(n=5), moved(3, n=6), draft("session_changed", n=7), draft(n=8)]
        events = store.append(KEY, batch, expected_seq=1)

        assert [event.parent for event in events] == [1, 2, 2, 2, 3, 3, 3]
        assert [head_after(event) for event in events] == [2, 3, 2, 5, 3, 3, 8]
        assert store.tip(KEY).head == 8

    @pytest.mark.parametrize("to", [-1, 0, 3, 4, 5, 6, 2**40])
    def test_the_head_moves_to_nothing_but_an_earlier_event_on_a_path(self, store: Store, to: int) -> None:
        """3 is a fact; the batch would be events 4, 5 (the move itself) and 6."""
        begun(store, count=2)
        append(store, draft("session_changed", n=3))
        before = written(store)
        batch = [draft("session_changed", n=4), moved(to, n=5), draft(n=6)]

        with pytest.raises(InvalidEvent):
            append(store, *batch)
        assert written(store) == before

    def test_a_stale_append_writes_nothing(self, store: Store) -> None:
        begun(store, count=3)
        before = written(store)
        for expected in (0, 2, 4, 2**40):
            with pytest.raises(StaleWriter) as error:
                store.append(KEY, [draft(n=9)], expected_seq=expected)

            assert (error.value.expected_seq, error.value.actual_seq) == (expected, 3)
        assert written(store) == before

    def test_a_fact_is_checked_against_the_end_of_the_log_like_any_event(self, store: Store) -> None:
        begun(store, count=3)
        with pytest.raises(StaleWriter):
            store.append(KEY, [draft("session_changed", n=4)], expected_seq=2)

        assert store.tip(KEY).seq == 3

    def test_an_append_says_what_it_expects(self, store: Store) -> None:
        begun(store)
        with pytest.raises(ValueError):
            store.append(KEY, [draft(n=2)], expected_seq=None)

        assert store.tip(KEY).seq == 1

    def test_an_append_of_nothing_writes_nothing(self, store: Store) -> None:
        begun(store, count=2)
        before = written(store)
        answers = [store.append(KEY, [], expected_seq=expected) for expected in (2, 1)]

        assert answers == [[], []]
        assert written(store) == before

    @pytest.mark.parametrize("what", sorted(BAD))
    def test_a_bad_draft_in_the_middle_of_a_batch_writes_nothing(self, store: Store, what: str) -> None:
        begun(store)
        before = written(store)
        for batch in ([draft(n=2), BAD[what], draft(n=3)], [BAD[what]]):
            with pytest.raises(InvalidEvent):
                append(store, *batch)

        assert written(store) == before
        assert store.seq_of(KEY, ["message-2", "message-3"]) == {}

    def test_a_large_batch_is_one_append(self, store: Store) -> None:
        begun(store)
        events = append(store, *messages(2, 3_000))

        assert [event.seq for event in events] == list(range(2, 3_001))
        assert [event.parent for event in all_events(store, KEY)] == list(range(3_000))

    @pytest.mark.parametrize("at", [0.0, -0.0, -1.5, 1e300, 5e-324, FIRST_AT + 1 / 3])
    def test_at_is_an_exact_float_and_clocks_may_go_back(self, store: Store, at: float) -> None:
        begun(store, count=2)
        append(store, draft(n=3, at=at), draft(n=4, at=at - 1))
        events = store.events(KEY, after=2)

        assert [event.at for event in events] == [at, at - 1]
        assert store.tip(KEY).at == at - 1
        assert broken_links(store, KEY) == []

    # Beginning a session.

    def test_a_session_that_exists_is_not_begun_again(self, store: Store) -> None:
        begun(store, count=2)
        before = written(store)
        for drafts in ([started()], [started(n=7), draft(n=8)]):
            with pytest.raises(SessionExists):
                store.create(KEY, drafts)

        assert written(store) == before

    @pytest.mark.parametrize("what", ["nothing", "a message", "an id twice", *sorted(BAD)])
    def test_a_session_that_cannot_begin_is_not_there(self, store: Store, what: str) -> None:
        drafts = {
            "nothing": [],
            "a message": [draft(n=1)],
            "an id twice": [started(), draft(n=1), draft(n=1)],
        }.get(what) or [started(), *([BAD[what]] if what in BAD else [])]
        if what == "nothing":
            drafts = []

        with pytest.raises((InvalidEvent, EventConflict)):
            store.create(KEY, drafts)
        with pytest.raises(SessionNotFound):
            store.tip(KEY)
        assert store.sessions() == []
        assert [event.seq for event in begun(store)] == [1]

    # Retries and conflicts.

    def test_a_retry_returns_the_stored_events_and_writes_nothing(self, store: Store) -> None:
        begun(store)
        batch = [draft(n=2), moved(1, n=3), draft(n=4)]
        first = store.append(KEY, batch, expected_seq=1)
        before = written(store)
        again = [store.append(KEY, batch, expected_seq=expected) for expected in (1, 4, 99)]

        assert again == [first, first, first]
        assert written(store) == before

    def test_a_retry_is_recognised_after_others_have_appended(self, store: Store) -> None:
        begun(store)
        first = store.append(KEY, [draft(n=2)], expected_seq=1)
        append(store, draft(n=3), draft("session_changed", n=4))
        again = store.append(KEY, [draft(n=2)], expected_seq=1)

        assert again == first
        assert store.tip(KEY).seq == 4

    def test_a_batch_that_is_in_the_log_in_part_is_a_conflict_and_writes_nothing(self, store: Store) -> None:
        begun(store, count=3)
        before = written(store)
        for batch in ([draft(n=9), *messages(3, 3)], [*messages(2, 3), draft(n=9)]):
            with pytest.raises(EventConflict):
                append(store, *batch)

        assert written(store) == before

    @pytest.mark.parametrize(("kept", "given"), [(1, 2), (1, True), (1, 1.0), (0, False), (None, "null"), ("a", "A")])
    def test_an_id_with_another_body_is_a_conflict_and_writes_nothing(
        self, store: Store, kept: object, given: object
    ) -> None:
        begun(store)
        append(store, draft("note", id="same", body={"name": "count", "value": kept}))
        before = written(store)
        with pytest.raises(EventConflict) as error:
            append(store, draft("note", id="same", body={"name": "count", "value": given}))

        assert error.value.event_ids == ("same",)
        assert written(store) == before

    def test_an_id_with_another_kind_is_a_conflict(self, store: Store) -> None:
        begun(store)
        append(store, draft("note", id="same", body={"name": "x"}))
        with pytest.raises(EventConflict):
            append(store, draft("session_changed", id="same", body={"name": "x"}))

        assert store.tip(KEY).seq == 2

    def test_an_id_twice_in_one_batch_is_a_conflict_and_writes_nothing(self, store: Store) -> None:
        begun(store, count=2)
        before = written(store)
        for twice in (draft(n=9), *messages(2, 2)):
            with pytest.raises(EventConflict):
                append(store, twice, twice)

        assert written(store) == before

    def test_the_same_event_id_in_two_sessions_is_no_conflict(self, store: Store) -> None:
        other = session_key("another")
        begun(store, count=2)
        begun(store, other, count=2)

        assert store.events(KEY) == store.events(other)

    def test_eight_threads_that_retry_leave_a_log_without_gaps(self, store: Store) -> None:
        begun(store)
        failures: list[BaseException] = []

        def write(writer: int) -> None:
            try:
                for number in range(APPENDS_EACH):
                    _append_with_retries(store, draft("note", id=f"{writer}/{number}"))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events = all_events(store, KEY)
        numbers = {
            writer: [int(event.id.partition("/")[2]) for event in events[1:] if event.id.startswith(f"{writer}/")]
            for writer in range(WRITERS)
        }

        assert failures == []
        assert [event.seq for event in events] == list(range(1, WRITERS * APPENDS_EACH + 2))
        assert [event.parent for event in events] == list(range(WRITERS * APPENDS_EACH + 1))
        assert numbers == {writer: list(range(APPENDS_EACH)) for writer in range(WRITERS)}
        assert broken_links(store, KEY) == []

    # Bodies.

    def test_a_body_with_everything_that_json_can_hold_comes_back_equal(self, store: Store) -> None:
        begun(store)
        append(store, draft("note", body={"name": "everything", **EVERYTHING}))
        (event,) = store.events(KEY, after=1)

        # Compared as they are written, because Python says that 1 == 1.0 == True.
        assert repr(event.body) == repr({"name": "everything", **EVERYTHING})

    def test_a_megabyte_of_text_comes_back_equal(self, store: Store) -> None:
        text = "Zeile für Zeile 🦊\n" * 50_000
        begun(store)
        append(store, draft(text=text))
        (event,) = store.events(KEY, after=1)

        assert len(text.encode()) > 1_000_000
        assert event.body["parts"] == [{"type": "text", "content": text}]

    def test_nobody_can_change_the_log_through_what_they_gave_or_got(self, store: Store) -> None:
        begun(store)
        given = draft("note", body={"name": "x", "list": [1]})
        events = append(store, given)
        for body in (given.body, events[0].body, store.events(KEY)[1].body, store.events_at(KEY, [[2, 2]])[0].body):
            body["list"].append(2)
            body["name"] = "changed"

        assert store.events(KEY, after=1)[0].body == {"name": "x", "list": [1]}
        assert store.tail(KEY, 2)[1][1].body == {"name": "x", "list": [1]}

    # Keys.

    def test_keys_are_exact(self, store: Store) -> None:
        names = list(dict.fromkeys(ALIKE))
        keys = [session_key(name) for name in names]
        for number, key in enumerate(keys):
            begun(store, key)
            append(store, draft("note", n=number), key=key)
        found = [[event.id for event in store.events(key)] for key in keys]

        assert found == [["session_started-0", f"note-{number}"] for number in range(len(names))]
        assert [row.key for row in store.sessions(limit=1000)] == sorted(keys)

    def test_a_key_that_is_only_alike_is_not_found(self, store: Store) -> None:
        """S9."""
        begun(store, session_key("Session one"))
        for name in ("session one", "Session", "Session one ", "Session%", "Session_one", "Session on"):
            with pytest.raises(SessionNotFound):
                store.tip(session_key(name))
        for key in (session_key("Session one", app="Default"), session_key("Session one", user="default ")):
            with pytest.raises(SessionNotFound):
                store.tip(key)

        assert len(store.sessions()) == 1

    def test_app_and_user_tell_sessions_apart(self, store: Store) -> None:
        keys = [
            session_key("same", app=app, user=user)
            for app, user in (("chat", "ada"), ("chat", "Ada"), ("Chat", "ada"), ("ada", "chat"), ("chat/ada", "x"))
        ] + [session_key("ada/same", app="chat"), session_key("a", app="b\u00e9"), session_key("a", app="be\u0301")]
        for number, key in enumerate(keys):
            begun(store, key, count=number + 1)
        store.delete(keys[0])

        assert [store.tip(key).seq for key in keys[1:]] == list(range(2, len(keys) + 1))

    def test_no_key_writes_outside_the_stores_own_place(self, store: Store, folder: Path, tmp_path: Path) -> None:
        """S9."""
        for name in ("../escaped", "../../escaped", "/../escaped", "..\\escaped", "a/../../escaped", "escaped\n"):
            key = session_key(name, app="../escaped", user="../escaped")
            begun(store, key)
            store.artifacts.put(key, b"bytes")
            store.streams.begin(key, "../escaped", {})
            store.release(store.acquire(key, at=FIRST_AT))
        outside = [path for path in tmp_path.rglob("*") if path != folder and folder not in path.parents]

        assert outside == [folder.parent]
        assert len(store.sessions()) == 6

    def test_a_session_that_is_not_there_is_said_to_be_missing(self, store: Store) -> None:
        begun(store)
        missing = session_key("missing")
        for ask in _questions(missing):
            with pytest.raises(SessionNotFound):
                ask(store)

        assert [row.key for row in store.sessions()] == [KEY]

    # Reading.

    def test_events_are_read_in_pages(self, store: Store) -> None:
        begun(store, count=10)
        pages = [store.events(KEY, after=after, limit=4) for after in (0, 4, 8, 10, 99, -5)]
        bounded = store.events(KEY, after=2, until=5)

        assert [[event.seq for event in page] for page in pages] == [
            [1, 2, 3, 4],
            [5, 6, 7, 8],
            [9, 10],
            [],
            [],
            [1, 2, 3, 4],
        ]
        assert [event.seq for event in bounded] == [3, 4, 5]

    def test_a_page_has_a_most_and_may_be_empty(self, store: Store) -> None:
        begun(store, count=EVENTS_PAGE_MAX + 5)
        most = store.events(KEY, limit=10**9)
        records = store.records(KEY, limit=10**9)

        assert [event.seq for event in most] == list(range(1, EVENTS_PAGE_MAX + 1))
        assert [record.seq for record in records] == list(range(1, EVENTS_PAGE_MAX + 1))
        assert [store.events(KEY, limit=limit) for limit in (0, -1)] == [[], []]
        assert [store.records(KEY, limit=limit) for limit in (0, -1)] == [[], []]
        assert store.events(KEY, after=3, until=2) == []

    def test_events_can_be_read_by_kind_and_newest_first(self, store: Store) -> None:
        begun(store, count=4)
        append(store, draft("note", n=5), draft("session_changed", n=6), draft("note", n=7))

        def seqs(**asked: Any) -> list[int]:
            return [event.seq for event in store.events(KEY, **asked)]

        assert seqs(newest_first=True) == [7, 6, 5, 4, 3, 2, 1]
        assert seqs(newest_first=True, after=2, until=6, limit=3) == [6, 5, 4]
        assert seqs(kinds=["note"]) == [5, 7]
        assert seqs(kinds=["note", "session_changed"], newest_first=True, limit=2) == [7, 6]
        assert seqs(kinds=["notes", "Note", "%"]) == []
        assert seqs(kinds=[]) == []

    def test_events_at_are_those_asked_for_in_the_order_asked(self, store: Store) -> None:
        begun(store, count=10)
        events = store.events_at(KEY, [[9, 10], [2, 4], [7, 7], [3, 3]])

        assert [event.seq for event in events] == [9, 10, 2, 3, 4, 7, 3]
        assert store.events_at(KEY, []) == []
        assert store.events_at(KEY, [[5, 4]]) == []

    @pytest.mark.parametrize("positions", [[[1, 2], [4, 4]], [[0, 1]], [[3, 10**15]], [[-4, -2]]])
    def test_events_at_positions_that_the_log_does_not_have_are_not_found(
        self, store: Store, positions: list[list[int]]
    ) -> None:
        begun(store, count=3)
        with pytest.raises(EventNotFound):
            store.events_at(KEY, positions)

        assert len(store.events_at(KEY, [[1, 3]])) == 3

    def test_more_than_a_page_of_positions_is_read_at_once(self, store: Store) -> None:
        begun(store, count=2_500)
        events = store.events_at(KEY, [[2, 2_500], [1, 1]])

        assert [event.seq for event in events] == [*range(2, 2_501), 1]

    def test_facts_are_read_without_the_events_between_them(self, store: Store) -> None:
        begun(store, count=2)
        append(
            store,
            draft("session_changed", n=3),
            draft(n=4),
            moved(2, n=5),
            draft("state_changed", n=6, body={"delta": {"user": {"name": "Ada"}}}),
            draft("state_changed", n=7, body={"delta": {"session": {"name": "Ada"}}}),
            draft("redacted", n=8),
        )

        assert [fact.seq for fact in store.facts(KEY)] == [3, 5, 6, 8]
        assert [fact.seq for fact in store.facts(KEY, until=5)] == [3, 5]
        assert store.facts(KEY, until=2) == []
        assert store.facts(KEY)[0] == store.events(KEY, after=2, limit=1)[0]

    def test_ids_lead_to_their_seq(self, store: Store) -> None:
        begun(store, count=2_000)
        everything = store.seq_of(KEY, (f"message-{n}" for n in range(3_000)))
        few = store.seq_of(KEY, ["message-7", "Message-7", "message-", "", "\0", "\ud83d", "message-7"])

        assert everything == {f"message-{n}": n for n in range(2, 2_001)}
        assert few == {"message-7": 7}
        assert store.seq_of(KEY, []) == {}

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_ids_agents_turns_and_scopes_are_kept_exactly(self, store: Store, name: str) -> None:
        begun(store)
        append(store, draft("note", id=name, agent=name, turn=name, scope=name))
        (event,) = store.events(KEY, after=1)

        assert (event.id, event.agent, event.turn, event.scope) == (name, name, name, name)
        assert store.seq_of(KEY, [name]) == {name: 2}

    # The chain.

    def test_every_hash_can_be_computed_from_the_records(self, store: Store) -> None:
        begun(store, count=5)
        append(
            store,
            moved(2, n=6),
            draft("note", n=7, body={"name": "x", **EVERYTHING}, agent="user", turn="t", scope="s"),
        )
        append(store, draft("session_changed", n=8))
        records = all_records(store, KEY)

        assert broken_links(store, KEY) == []
        assert store.tip(KEY).hash == records[-1].hash
        assert all(record.digest is None for record in records)

    def test_the_same_body_twice_has_another_salt(self, store: Store) -> None:
        begun(store)
        append(store, draft("note", n=2, body={"name": "x"}), draft("note", n=3, body={"name": "x"}))
        salts = [record.salt for record in store.records(KEY)]

        assert len(set(salts)) == 3
        assert all(salt is not None and len(salt) == 16 for salt in salts)

    def test_the_chain_holds_after_the_store_is_opened_again(self, store: Store, folder: Path) -> None:
        begun(store, count=3)
        append(store, moved(2, n=4))
        before = store.records(KEY)
        again = self.reopen(store, folder)
        append(again, draft(n=5))
        broken, records = broken_links(again, KEY), again.records(KEY)
        again.close()

        assert broken == []
        assert records[:4] == before
        assert (records[4].seq, records[4].parent) == (5, 2)


def _append_with_retries(store: Store, given: Draft) -> None:
    for _ in range(RETRIES_MAX):
        try:
            append(store, given)
        except StaleWriter:
            continue
        return
    raise AssertionError(f"no append in {RETRIES_MAX} tries")


def _questions(key: SessionKey) -> list[Any]:
    """Return every call that names a session, as functions of the store. `Any`: their answers differ."""
    return [
        lambda store: store.append(key, [draft()], expected_seq=0),
        lambda store: store.append(key, [draft()], expected_seq=None, fence=1),
        lambda store: store.tip(key),
        lambda store: store.events(key),
        lambda store: store.events_at(key, [[1, 1]]),
        lambda store: store.tail(key, 0),
        lambda store: store.facts(key),
        lambda store: store.seq_of(key, ["x"]),
        lambda store: store.records(key),
        lambda store: store.snapshot_seqs(key),
        lambda store: store.save_snapshot(key, full(1, {})),
        lambda store: store.save_summary(key, 1, "{}"),
        lambda store: store.acquire(key, at=FIRST_AT),
        lambda store: store.holder(key),
        lambda store: store.delete(key),
        lambda store: store.text.add(key, [TextRow(seq=1, text="x")], up_to=1),
        lambda store: store.text.drop(key),
    ]
