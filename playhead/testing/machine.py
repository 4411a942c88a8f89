"""A random machine that drives a store beside the memory store, and expects the same answers and the same errors.

Every rule asks both stores the same thing. What differs by nature (hashes, salts, numbers of leases, what a store
takes on disk) is left out of the comparison and checked by itself: the chain is recomputed, and a resume must give what
a full replay gives.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import TestCase

import msgspec
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from playhead.errors import PlayheadError
from playhead.model.event import FACT_KINDS, KINDS, Draft, Event
from playhead.model.ids import SessionKey, session_key
from playhead.model.snapshot import full
from playhead.stores.base import Lease, Record, Store, TextFilter, TextRow, Tip
from playhead.stores.memory import MemoryStore
from playhead.testing.drafts import FIRST_AT, drafts, json_values, names, some_texts, started, texts
from playhead.testing.replay import all_records, broken_links, replayed, resumed, snapshot_at

KEYS = (
    session_key("a"),
    session_key("A"),
    session_key("a", app="chat"),
    session_key("a", app="chat", user="ada"),
)
"""Few, so that they meet often, and alike, so that a store that mixes them up is caught."""

WORDS = ("deploy", "key", "reset", "grüße")

_key = st.sampled_from(KEYS)
_pick = st.integers(0, 2**16)
"""An index into whatever there is, modulo its length."""
_batch = st.lists(drafts(KINDS - {"session_started", "head_moved", "compaction"}), min_size=1, max_size=4)
_facts = st.lists(drafts(FACT_KINDS - {"head_moved"}), min_size=1, max_size=2)
_seq = st.integers(-1, 40)
_text = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def store_machine(
    make_store: Callable[[Path], Store], *, is_durable: bool = True, examples: int = 60, steps: int = 25
) -> type[TestCase]:
    """Return a test case that drives the store that `make_store(folder)` opens.

    is_durable: opening the same folder again gives the same sessions. examples, steps: how many runs, of how many
    rules each.
    """

    class Machine(StoreMachine):
        def open_store(self, folder: Path) -> Store:
            return make_store(folder)

        def can_reopen(self) -> bool:
            return is_durable

    case: type[TestCase] = Machine.TestCase
    case.settings = settings(  # type: ignore[attr-defined]
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return case


class StoreMachine(RuleBasedStateMachine):
    """The rules. `store_machine` says which store they drive."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="playhead-machine-"))
        self.model: Store = MemoryStore()
        self.store = self.open_store(self.folder)
        self.count = itertools.count(1)
        self.written: dict[SessionKey, list[list[Draft]]] = {}
        self.leases: dict[SessionKey, list[tuple[Lease, Lease]]] = {}
        self.touched: SessionKey = KEYS[0]

    def open_store(self, folder: Path) -> Store:
        raise NotImplementedError

    def can_reopen(self) -> bool:
        raise NotImplementedError

    def teardown(self) -> None:
        self.store.close()
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Writing.

    @initialize()
    def begin(self) -> None:
        self.create(KEYS[0], [])

    @rule(key=_key, batch=_batch | st.just([]))
    def create(self, key: SessionKey, batch: list[Draft]) -> None:
        batch = [started(app=key.app, user=key.user), *self.renamed(batch)]
        if self.both(key, lambda store: store.create(key, batch)):
            self.written[key] = [batch]

    @rule(key=_key, batch=_batch | _facts)
    def append(self, key: SessionKey, batch: list[Draft]) -> None:
        self.append_at_end(key, self.renamed(batch))

    @rule(key=_key, batch=_batch | _facts, off=st.sampled_from([-2, -1, 1, 2]))
    def append_stale(self, key: SessionKey, batch: list[Draft], off: int) -> None:
        batch, expected = self.renamed(batch), self.seq(key) + off
        self.both(key, lambda store: store.append(key, batch, expected_seq=expected))

    @rule(key=_key, first=_pick, last=_pick, body=drafts({"compaction"}))
    def compact(self, key: SessionKey, first: int, last: int, body: Draft) -> None:
        """A compaction that covers events that are there; ids that come later would change what an old snapshot saw."""
        found = self.path_seqs(key)
        if found:
            ids = {event.seq: event.id for event in self.model.events(key)}
            ends = [ids[seq] for seq in sorted({found[first % len(found)], found[last % len(found)]})]
            covering = msgspec.structs.replace(body, body={**body.body, "from": ends[0], "to": ends[-1]})
            self.append_at_end(key, self.renamed([covering]))

    @rule(key=_key, to=_pick, move=drafts({"head_moved"}), after=_batch | st.just([]))
    def move_head(self, key: SessionKey, to: int, move: Draft, after: list[Draft]) -> None:
        found = self.path_seqs(key)
        if found:
            move = msgspec.structs.replace(move, parent=found[to % len(found)])
            self.append_at_end(key, self.renamed([move, *after]))

    @rule(key=_key, to=st.integers(-1, 60), move=drafts({"head_moved"}))
    def move_head_anywhere(self, key: SessionKey, to: int, move: Draft) -> None:
        """Often to a fact, or beyond the end."""
        self.append_at_end(key, self.renamed([msgspec.structs.replace(move, parent=to)]))

    @rule(key=_key, batch=_batch, place=_pick)
    def append_with_a_bad_one(self, key: SessionKey, batch: list[Draft], place: int) -> None:
        batch = self.renamed(batch)
        batch.insert(place % (len(batch) + 1), Draft(kind="note", body={"name": float("nan")}, id="bad", at=0.0))
        self.append_at_end(key, batch)

    @rule(key=_key, pick=_pick, expected=_seq, is_changed=st.booleans(), new=_facts | st.just([]))
    def retry(self, key: SessionKey, pick: int, expected: int, is_changed: bool, new: list[Draft]) -> None:
        """Append again what is in the log: as it was, with another body, or together with something new."""
        written = self.written.get(key)
        if written:
            batch = list(written[pick % len(written)])
            if is_changed:
                batch[-1] = msgspec.structs.replace(batch[-1], body={**batch[-1].body, "changed": pick})
            batch += self.renamed(new)
            self.both(key, lambda store: store.append(key, batch, expected_seq=expected))

    # Leases.

    @rule(key=_key)
    def acquire(self, key: SessionKey) -> None:
        before = len(self.leases.get(key, []))
        taken: list[Lease] = []

        def take(store: Store) -> bool:
            taken.append(store.acquire(key, label="machine", at=FIRST_AT + before))
            return True

        if self.both(key, take):
            self.leases.setdefault(key, []).append((taken[0], taken[1]))

    @rule(key=_key, pick=_pick)
    def release(self, key: SessionKey, pick: int) -> None:
        leases = self.leases.get(key)
        if leases:
            in_model, in_store = leases[-1 - pick % min(2, len(leases))]
            self.model.release(in_model)
            self.store.release(in_store)
            self.touched = key

    @rule(key=_key, batch=_batch | _facts, pick=_pick)
    def append_under_a_lease(self, key: SessionKey, batch: list[Draft], pick: int) -> None:
        leases = self.leases.get(key)
        if leases:
            batch = self.renamed(batch)
            in_model, in_store = leases[-1 - pick % min(2, len(leases))]

            def append(store: Store) -> list[Event]:
                fence = in_model.fence if store is self.model else in_store.fence
                return store.append(key, batch, expected_seq=None, fence=fence)

            if self.both(key, append):
                self.written.setdefault(key, []).append(batch)

    # Snapshots, and what else is saved beside a log.

    @rule(key=_key, is_full=st.booleans(), back=st.sampled_from([0, 0, 0, 1, 3]))
    def snapshot(self, key: SessionKey, is_full: bool, back: int) -> None:
        """At the head, as at a turn's end, or at an event before it."""
        found = self.path_seqs(key)
        if found:
            head = self.model.tip(key).head
            path = [event.seq for event in self.model.tail(key, head)[1]] or [head]
            seq = path[-1 - min(back, len(path) - 1)]
            saved = full(seq, replayed(self.model, key, seq)) if is_full else snapshot_at(self.model, key, seq)
            self.both(key, lambda store: store.save_snapshot(key, saved))

    @rule(key=_key, seq=st.integers(41, 60))
    def snapshot_beyond_the_end(self, key: SessionKey, seq: int) -> None:
        seq += self.seq(key)
        self.both(key, lambda store: store.save_snapshot(key, full(seq, {})))

    @rule(key=_key, seq=_seq, summary=some_texts().filter(str.isprintable))
    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        self.both(key, lambda store: store.save_summary(key, max(seq, 0), summary))

    @rule(key=_key, id=names(), header=st.dictionaries(texts(), json_values(), max_size=2), chunks=st.lists(texts()))
    def stream(self, key: SessionKey, id: str, header: dict[str, Any], chunks: list[str]) -> None:
        id = f"{next(self.count)} {id}"
        if self.both(key, lambda store: store.tip(key).seq):

            def write(store: Store) -> None:
                store.streams.begin(key, id, header)
                for chunk in chunks:
                    store.streams.add(key, id, "text", chunk)

            self.both(key, write)

    @rule(key=_key, pick=_pick)
    def end_stream(self, key: SessionKey, pick: int) -> None:
        left = self.left(key)
        if left:
            self.both(key, lambda store: store.streams.end(key, left[pick % len(left)]))

    @rule(key=_key, data=st.binary(max_size=30))
    def put_artifact(self, key: SessionKey, data: bytes) -> None:
        ref = self.both(key, lambda store: store.artifacts.put(key, data))
        if ref:
            self.both(key, lambda store: store.artifacts.get(key, ref.hash))

    @rule(topic=st.sampled_from(["user", "User"]), name=names(), id=st.sampled_from("abcdefgh"), value=json_values())
    def put_note(self, topic: str, name: str, id: str, value: Any) -> None:
        self.both(None, lambda store: store.notes.put(topic, name, {"value": value}, id=id, at=FIRST_AT))
        self.both(None, lambda store: store.notes.get(topic, name))

    @rule(key=_key, said=st.lists(_text, max_size=6), count=st.integers(0, 6))
    def index(self, key: SessionKey, said: list[str], count: int) -> None:
        up_to = min(self.indexed_seq(key) + count, self.seq(key))
        rows = [TextRow(seq=seq, text=text) for seq, text in enumerate(said, up_to - len(said) + 1) if seq > 0]
        self.both(key, lambda store: store.text.add(key, rows, up_to=up_to))

    @rule(key=_key | st.none())
    def drop_index(self, key: SessionKey | None) -> None:
        self.both(key, lambda store: store.text.drop(key))

    # Removal, and coming back.

    @rule(key=_key)
    def delete(self, key: SessionKey) -> None:
        self.both(key, lambda store: store.delete(key))

    @precondition(lambda self: self.can_reopen())
    @rule()
    def reopen(self) -> None:
        """Closing gives back every lease; a session's old leases mean nothing to the store that is opened next."""
        for in_model, _ in itertools.chain.from_iterable(self.leases.values()):
            self.model.release(in_model)
        self.leases.clear()
        self.store.close()
        self.store = self.open_store(self.folder)

    # Asking.

    @rule(
        key=_key,
        after=_seq,
        until=st.none() | _seq,
        limit=st.integers(-1, 20),
        kinds=st.none() | st.lists(st.sampled_from(["message", "note", "session_changed", "head_moved"])),
        newest_first=st.booleans(),
    )
    def read_events(
        self, key: SessionKey, after: int, until: int | None, limit: int, kinds: list[str] | None, newest_first: bool
    ) -> None:
        self.both(
            key,
            lambda store: store.events(
                key, after=after, until=until, limit=limit, kinds=kinds, newest_first=newest_first
            ),
        )

    @rule(key=_key, positions=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3)), max_size=4))
    def read_positions(self, key: SessionKey, positions: list[tuple[int, int]]) -> None:
        ranges = [[start, start + length] for start, length in positions]
        self.both(key, lambda store: store.events_at(key, ranges))

    @rule(key=_key, head=_seq, until=_seq)
    def read_path(self, key: SessionKey, head: int, until: int) -> None:
        """The path of any head, often of one on another branch."""
        self.both(key, lambda store: store.tail(key, head))
        self.both(key, lambda store: store.facts(key, until=until))

    @rule(key=_key, picks=st.lists(_pick, max_size=3), others=st.lists(texts(), max_size=3))
    def find_ids(self, key: SessionKey, picks: list[int], others: list[str]) -> None:
        ids = [draft.id for batch in self.written.get(key, []) for draft in batch]
        wanted = [ids[pick % len(ids)] for pick in picks if ids] + others
        self.both(key, lambda store: sorted(store.seq_of(key, wanted).items()))

    @rule(
        app=st.none() | st.sampled_from(["default", "chat", "Chat"]),
        user=st.none() | st.sampled_from(["default", "ada"]),
        after=st.none() | _key,
        limit=st.integers(-1, 5),
    )
    def list_sessions(self, app: str | None, user: str | None, after: SessionKey | None, limit: int) -> None:
        self.both(
            None,
            lambda store: [
                msgspec.structs.replace(row, size_bytes=None)
                for row in store.sessions(app=app, user=user, after=after, limit=limit)
            ],
        )

    @rule(
        words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        operator=st.sampled_from(["OR", "AND", "NOT"]),
        keys=st.none() | st.lists(_key, max_size=2, unique=True),
        kinds=st.sampled_from([(), ("message",), ("note", "turn_started")]),
    )
    def match(self, words: list[str], operator: str, keys: list[SessionKey] | None, kinds: tuple[str, ...]) -> None:
        """Scores and the order of equal ones are each store's own; what is found is not."""
        expression = f" {operator} ".join(f'"{word}"' for word in words)
        where = TextFilter(kinds=kinds)
        self.both(
            None,
            lambda store: sorted(
                (found.key, found.seq) for found in store.text.match(expression, keys=keys, where=where, limit=10_000)
            ),
        )

    @invariant()
    def the_touched_session_is_the_same_in_both(self) -> None:
        key = self.touched
        if self.both(key, lambda store: _place(store.tip(key))) is None:
            return
        self.both(key, lambda store: [_content(record) for record in all_records(store, key)])
        self.both(key, lambda store: store.facts(key))
        self.both(key, lambda store: store.snapshot_seqs(key))
        self.both(key, lambda store: store.tail(key, store.tip(key).head))
        self.both(key, lambda store: store.holder(key) is None)
        self.both(key, lambda store: store.streams.left(key))
        self.both(key, lambda store: store.artifacts.hashes(key))
        head = self.store.tip(key).head
        broken = broken_links(self.store, key)

        assert broken == []
        assert resumed(self.store, key, head) == replayed(self.store, key, head)

    # How both are asked.

    def both(self, key: SessionKey | None, ask: Callable[[Store], Any]) -> Any:
        """Ask both stores: they give equal answers, or errors of one type. Return the answer, None for an error."""
        self.touched = self.touched if key is None else key
        expected, actual = _outcome(ask, self.model), _outcome(ask, self.store)

        # Compared as they are written, because Python says that 1 == 1.0 == True.
        assert repr(actual) == repr(expected), f"the memory store gives {expected!r}, this store {actual!r}"
        return None if isinstance(actual, type) else actual

    def append_at_end(self, key: SessionKey, batch: list[Draft]) -> None:
        expected = self.seq(key)
        if self.both(key, lambda store: store.append(key, batch, expected_seq=expected)):
            self.written.setdefault(key, []).append(batch)

    def renamed(self, batch: Sequence[Draft]) -> list[Draft]:
        """Return the drafts with ids that no other draft has."""
        return [msgspec.structs.replace(draft, id=f"{next(self.count)} {draft.id}") for draft in batch]

    def seq(self, key: SessionKey) -> int:
        tip = _outcome(lambda store: store.tip(key), self.model)
        return tip.seq if isinstance(tip, Tip) else 0

    def path_seqs(self, key: SessionKey) -> list[int]:
        """Return the seqs of all events that lie on some path, [] where there is no session."""
        if not self.seq(key):
            return []
        return [record.seq for record in all_records(self.model, key) if not record.is_fact]

    def indexed_seq(self, key: SessionKey) -> int:
        return self.model.text.indexed_seq(key) if self.seq(key) else 0

    def left(self, key: SessionKey) -> list[str]:
        return [stream.id for stream in self.model.streams.left(key)] if self.seq(key) else []


def _outcome(ask: Callable[[Store], Any], store: Store) -> Any:
    try:
        return ask(store)
    except (PlayheadError, ValueError) as error:
        return type(error)


def _place(tip: Tip) -> tuple[int, int, float]:
    return tip.seq, tip.head, tip.at


def _content(record: Record) -> Record:
    """Return a record without what is drawn anew for every store."""
    return msgspec.structs.replace(record, salt=None, hash=b"")
