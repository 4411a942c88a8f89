"""The shared suite's part about records: a log that another store wrote comes over byte for byte, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from playhead.errors import (
    EventConflict,
    InvalidEvent,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    StaleWriter,
)
from playhead.model.codec import FIRST_HASH, body_digest, chain_hash, envelope_bytes
from playhead.model.event import Draft
from playhead.model.ids import session_key
from playhead.stores.base import EVENTS_PAGE_MAX, Record, Store
from playhead.stores.memory import MemoryStore
from playhead.testing.drafts import FIRST_AT, HOSTILE_TEXTS, draft, moved, started
from playhead.testing.replay import all_records, broken_links, replayed, resumed
from playhead.testing.store_harness import KEY, StoreHarness, append, begun, messages, written

OTHER = session_key("flaky-test", user="ada")
LONG = 2 * EVENTS_PAGE_MAX + 7


_ILLEGAL: list[tuple[int, dict[str, Any]]] = [
    (1, {"kind": "message", "body": '{"role":"user","parts":[]}'}),
    (1, {"parent": 1}),
    (3, {"parent": 1}),
    (3, {"parent": 3}),
    (3, {"body": "{}"}),
    (3, {"body": "[]"}),
    (3, {"body": "{"}),
    (3, {"body": '{"role":"user","parts":[],"x":NaN}'}),
    (3, {"body": '{"role":"user","parts":[],"x":1e999}'}),
    (3, {"body": '{"role":"user","parts":[],"x":' + "[" * 300 + "]" * 300 + "}"}),
    (3, {"body": '{"role":"user","parts":[]}\ud83d'}),
    (3, {"is_fact": True}),
    (3, {"kind": "invented"}),
    (3, {"id": ""}),
    (3, {"id": "a\0b"}),
    (3, {"agent": ""}),
    (3, {"at": float("inf")}),
    (3, {"body": None, "digest": b"\0" * 32}),
    (3, {"body": None, "salt": None}),
    (3, {"body": None, "salt": None, "digest": b"\0" * 32, "is_fact": True}),
    (3, {"digest": b"\0" * 32}),
    (3, {"salt": b"short"}),
    (6, {"is_fact": False}),
    (6, {"parent": 0}),
    (6, {"parent": 6}),
    (6, {"parent": 7}),
    (9, {"parent": 6}),
]
"""What is wrong with which record of `source_records`: 6 is a `head_moved`, and so is 9."""

_CHANGES: dict[str, Any] = {
    "id": "another",
    "at": 1.5,
    "agent": "somebody",
    "body": '{"app":"other","user":"other","role":"user","parts":[],"to":"x","why":"y","delta":{"session":{"a":1}}}',
    "salt": b"0123456789abcdef",
    "hash": b"0" * 32,
    "kind": "note",
    "turn": "another",
    "scope": "another",
}


class RecordsSuite(StoreHarness):
    """Promises about `put_records`."""

    def test_a_log_comes_over_byte_for_byte(self, store: Store) -> None:
        records = source_records()
        tip = store.put_records(KEY, records, expected_seq=0, artifacts=[b"chart", b"", b"chart"])
        chart, empty = store.artifacts.put(KEY, b"chart"), store.artifacts.put(KEY, b"")

        assert all_records(store, KEY) == records
        assert broken_links(store, KEY) == []
        assert tip == store.tip(KEY)
        assert (tip.seq, tip.hash) == (len(records), records[-1].hash)
        assert store.artifacts.hashes(KEY) == sorted([chart.hash, empty.hash])
        assert resumed(store, KEY, tip.head) == replayed(store, KEY, tip.head)

    def test_a_log_that_came_over_is_written_to_like_any_other(self, store: Store) -> None:
        tip = store.put_records(KEY, source_records(), expected_seq=0)
        (event,) = append(store, draft(n=900))
        lease = store.acquire(KEY, at=FIRST_AT)
        store.append(KEY, [draft(n=901)], expected_seq=None, fence=lease.fence)
        store.release(lease)

        assert (event.seq, event.parent) == (tip.seq + 1, tip.head)
        assert broken_links(store, KEY) == []

    def test_a_log_is_taken_up_where_it_ends(self, store: Store) -> None:
        records = source_records()
        for end in range(1, len(records)):
            key = session_key(f"cut at {end}")
            store.put_records(key, records[:end], expected_seq=0)
            tip = store.put_records(key, iter(records[end:]), expected_seq=end)

            assert tip == store.tip(key)
            assert all_records(store, key) == records

    def test_a_long_log_comes_over_from_an_iterator(self, store: Store) -> None:
        records = records_of([started(), *messages(2, LONG)])
        tip = store.put_records(KEY, (record for record in records), expected_seq=0)

        assert tip.seq == LONG
        assert all_records(store, KEY) == records

    def test_a_redacted_event_comes_over_as_it_is(self, store: Store) -> None:
        records = redacted(source_records(), {2, 5})
        store.put_records(KEY, records, expected_seq=0)

        assert all_records(store, KEY) == records
        assert broken_links(store, KEY) == []
        assert [event.body for event in store.events_at(KEY, [[2, 2], [5, 5]])] == [{}, {"delta": {"user": {}}}]

    def test_a_log_that_came_over_lasts(self, store: Store, folder: Path) -> None:
        self.need_durable()
        records = source_records()
        store.put_records(KEY, records[:4], expected_seq=0, artifacts=[b"one"])
        store.put_records(KEY, records[4:], expected_seq=4, artifacts=[b"two"])
        again = self.reopen(store, folder)

        assert all_records(again, KEY) == records
        assert len(again.artifacts.hashes(KEY)) == 2
        again.close()

    def test_no_records_begin_no_session_and_add_nothing(self, store: Store) -> None:
        begun(store, count=3)
        before = written(store)
        tip = store.put_records(KEY, [], expected_seq=3)
        with pytest.raises(InvalidEvent):
            store.put_records(OTHER, [], expected_seq=0)
        with pytest.raises(SessionNotFound):
            store.tip(OTHER)

        assert tip == store.tip(KEY)
        assert written(store) == before

    def test_a_log_that_is_not_where_it_was_expected_stays_as_it_is(self, store: Store) -> None:
        records = source_records()
        store.put_records(KEY, records[:5], expected_seq=0)
        before = written(store)
        with pytest.raises(SessionExists):
            store.put_records(KEY, records, expected_seq=0)
        for expected in (-1, 3, 6):
            with pytest.raises(StaleWriter):
                store.put_records(KEY, records[5:], expected_seq=expected)
        with pytest.raises(SessionNotFound):
            store.put_records(OTHER, records[5:], expected_seq=5)

        assert written(store) == before

    def test_nothing_comes_over_while_somebody_is_in_a_turn(self, store: Store) -> None:
        records = source_records()
        store.put_records(KEY, records[:5], expected_seq=0)
        lease = store.acquire(KEY, label="the server", at=FIRST_AT)
        with pytest.raises(SessionBusy) as error:
            store.put_records(KEY, records[5:], expected_seq=5)
        seq = store.tip(KEY).seq
        store.release(lease)

        assert error.value.holder["label"] == "the server"
        assert seq == 5
        assert store.put_records(KEY, records[5:], expected_seq=5).seq == len(records)

    def test_a_log_goes_on_only_from_the_very_event_that_it_followed(self, store: Store) -> None:
        """Two logs of equal events have other salts, so their chains are not the same."""
        records = source_records()
        store.create(KEY, [started(), *messages(2, 4)])
        before = written(store)
        with pytest.raises(InvalidEvent, match="event 5"):
            store.put_records(KEY, records_of([started(), *messages(2, 6)])[4:], expected_seq=4)

        assert written(store) == before
        assert len(records) > 5

    def test_an_iterable_that_fails_leaves_nothing(self, store: Store) -> None:
        records = records_of([started(), *messages(2, LONG)])

        def torn(end: int) -> Iterator[Record]:
            yield from records[:end]
            raise OSError("the file ends here")

        for end in (0, 1, LONG):
            with pytest.raises(OSError, match="ends here"):
                store.put_records(KEY, torn(end), expected_seq=0, artifacts=[b"chart"])
        begun(store, count=1)

        assert [row.key for row in store.sessions()] == [KEY]
        assert store.tip(KEY).seq == 1
        assert store.artifacts.hashes(KEY) == []

    def test_artifacts_of_a_refused_log_are_not_kept(self, store: Store) -> None:
        records = source_records()
        with pytest.raises(InvalidEvent):
            store.put_records(KEY, [*records[:-1], replaced(records[-1], at=0.0)], expected_seq=0, artifacts=[b"x"])
        begun(store, count=1)

        assert store.artifacts.hashes(KEY) == []

    @pytest.mark.parametrize("place", [1, 4, 8])
    @pytest.mark.parametrize("name", ["id", "at", "agent", "body", "salt", "hash", "kind", "turn", "scope"])
    def test_a_record_that_was_changed_is_refused_by_its_seq(self, store: Store, name: str, place: int) -> None:
        records = source_records()
        changed = [*records]
        changed[place - 1] = replaced(records[place - 1], **{name: _CHANGES[name]})
        with pytest.raises(InvalidEvent, match=f"event {place} "):
            store.put_records(KEY, changed, expected_seq=0)
        with pytest.raises(SessionNotFound):
            store.tip(KEY)

        assert store.put_records(KEY, records, expected_seq=0).seq == len(records)

    @pytest.mark.parametrize(("end", "next", "named"), [(3, 4, 5), (3, 2, 3), (0, 1, 2)])
    def test_a_gap_and_a_repetition_are_refused(self, store: Store, end: int, next: int, named: int) -> None:
        records = source_records()
        with pytest.raises(InvalidEvent, match=f"event {named} "):
            store.put_records(KEY, records[:end] + records[next:], expected_seq=0)

        assert store.sessions() == []

    @pytest.mark.parametrize(("seq", "fields"), _ILLEGAL)
    def test_a_record_that_no_append_would_have_written_is_refused(
        self, store: Store, seq: int, fields: dict[str, Any]
    ) -> None:
        """Its hash is right: whoever made it has computed the whole chain anew."""
        records = source_records()
        records[seq - 1] = replaced(records[seq - 1], **fields)
        with pytest.raises(InvalidEvent, match=f"event {seq} "):
            store.put_records(KEY, rehashed(records), expected_seq=0)

        assert store.sessions() == []

    @pytest.mark.parametrize(
        "field", ["seq", "parent", "at", "kind", "body", "salt", "digest", "hash", "is_fact", "id"]
    )
    @pytest.mark.parametrize("value", [None, "x", b"x", -1, 2**70, 0.5, float("nan"), [], True], ids=repr)
    def test_a_value_of_another_kind_is_refused_with_a_clear_error(self, store: Store, field: str, value: Any) -> None:
        records = source_records()
        if value == getattr(records[1], field):
            return
        records[1] = replaced(records[1], **{field: value})
        with pytest.raises(InvalidEvent):
            store.put_records(KEY, records, expected_seq=0)

        assert store.sessions() == []

    def test_an_id_that_is_there_already_is_a_conflict(self, store: Store) -> None:
        records = source_records()
        same = rehashed([*records[:6], replaced(records[6], id=records[2].id)])
        far = records_of([started(), *messages(2, LONG)])
        far[-1] = replaced(far[-1], id=far[2].id)
        with pytest.raises(EventConflict):
            store.put_records(KEY, same, expected_seq=0)
        with pytest.raises(EventConflict):
            store.put_records(KEY, rehashed(far), expected_seq=0)
        store.put_records(KEY, same[:6], expected_seq=0)
        with pytest.raises(EventConflict):
            store.put_records(KEY, same[6:], expected_seq=6)

        assert store.tip(KEY).seq == 6


def records_of(drafts: Sequence[Draft]) -> list[Record]:
    """Return the records that these drafts become in the store in memory."""
    store = MemoryStore()
    store.create(KEY, drafts[:1])
    store.append(KEY, drafts[1:], expected_seq=1)
    return all_records(store, KEY)


def source_records() -> list[Record]:
    """Return a log with two branches, hostile text, a title, state and a fact of each sort."""
    hostile = {"role": "user", "parts": [{"type": "text", "content": text} for text in HOSTILE_TEXTS]}
    return records_of(
        [
            started(),
            draft(n=2, agent="user", turn="t1"),
            draft(n=3, body=hostile, scope="coordinator/researcher:1"),
            draft("session_changed", n=4),
            draft("state_changed", n=5, body={"delta": {"user": {"tone": "brief"}}}),
            moved(2, n=6),
            draft("state_changed", n=7, body={"delta": {"session": {"n": 2**70, "x": -0.0}}}, at=0.0),
            draft(n=8),
            moved(3, n=9),
            draft("note", n=10),
        ]
    )


def replaced(record: Record, **fields: Any) -> Record:
    return msgspec.structs.replace(record, **fields)


def redacted(records: Sequence[Record], seqs: set[int]) -> list[Record]:
    """Return the records with the bodies of some gone and their digests in place. The chain stays as it is."""
    return [
        replaced(record, body=None, salt=None, digest=body_digest(record.salt or b"", record.body or ""))
        if record.seq in seqs
        else record
        for record in records
    ]


def rehashed(records: Sequence[Record]) -> list[Record]:
    """Return the records with the hashes that a chain over them has, as far as one can be computed."""
    found, previous = [], FIRST_HASH
    for record in records:
        with contextlib.suppress(UnicodeEncodeError):
            digest = record.digest or body_digest(record.salt or b"", record.body or "")
            envelope = envelope_bytes(
                seq=record.seq,
                parent=record.parent,
                at=record.at,
                id=record.id,
                kind=record.kind,
                agent=record.agent,
                turn=record.turn,
                scope=record.scope,
            )
            previous = chain_hash(previous, envelope, digest)
        found.append(replaced(record, hash=previous))
    return found
