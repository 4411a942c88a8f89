"""A random machine that drives a store beside the memory store, and expects the same answers and the same errors.

Every rule asks both stores the same thing, and after every rule the session that it touched is compared as a whole.
What differs by nature (hashes, salts, numbers of leases, what a store takes on disk) is left out of the comparison and
checked by itself: the chain is recomputed, and a resume must give what a full replay gives.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from unittest import TestCase

import msgspec
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from playhead.errors import PlayheadError
from playhead.features.live import Live
from playhead.model.event import FACT_KINDS, KINDS, Draft, Event
from playhead.model.ids import SessionKey, session_key
from playhead.model.snapshot import full
from playhead.stores.base import Lease, Record, Store, TextFilter, TextRow, Tip
from playhead.stores.listing import FACETS, SORTS, Sort, Wanted
from playhead.stores.memory import MemoryStore
from playhead.testing.drafts import FIRST_AT, draft, drafts, json_values, names, some_texts, started, texts
from playhead.testing.replay import all_records, broken_links, replayed, resumed, snapshot_at

KEYS = (
    session_key("a"),
    session_key("A"),
    session_key("a", app="chat"),
    session_key("a", app="chat", user="ada"),
)
"""Few, so that they meet often, and alike, so that a store that mixes them up is caught."""

ROUNDS_MAX = 3

WORDS = ("deploy", "key", "reset", "grüße")

# Mostly one session, so that its history grows long enough to be interesting.
_key = st.sampled_from([KEYS[0]] * 6 + list(KEYS))
_any_key = st.sampled_from(KEYS)
_pick = st.integers(0, 2**16)
"""An index into whatever there is, modulo its length."""
_seq = st.integers(-1, 40)
_batch = st.lists(drafts(KINDS - {"session_started", "head_moved", "compaction"}), min_size=1, max_size=4)
_facts = st.lists(drafts(FACT_KINDS - {"head_moved"}), min_size=1, max_size=2)
_text = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)

Change = Literal["nothing", "body", "kind", "twice", "more"]


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
        self.trashed: dict[str, list[list[Draft]]] = {}
        self.touched: SessionKey = KEYS[0]
        self.is_listed = False
        """Whether rows were worked out, which a store may show as saved summaries or not."""

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
        for key in (KEYS[1], KEYS[0]):
            self.create(key, [draft(n=n) for n in range(1, 4)])

    @rule(key=_any_key, batch=_batch | st.just([]), artifacts=st.lists(st.binary(max_size=9), max_size=2))
    def create(self, key: SessionKey, batch: list[Draft], artifacts: Sequence[bytes] = ()) -> None:
        batch = [started(app=key.app, user=key.user), *self.renamed(batch)]
        if self.both(key, lambda store: store.create(key, batch, artifacts=artifacts)):
            self.written[key] = [batch]

    @rule(key=_key, batch=_batch | _facts)
    def append(self, key: SessionKey, batch: list[Draft]) -> None:
        self.append_at_end(key, self.renamed(batch))

    @rule(key=_key, batch=_batch | _facts, off=st.sampled_from([-2, -1, 1, 2]))
    def append_stale(self, key: SessionKey, batch: list[Draft], off: int) -> None:
        batch, expected = self.renamed(batch), self.seq(key) + off
        self.both(key, lambda store: store.append(key, batch, expected_seq=expected))

    @rule(key=_key, batch=_batch, place=_pick)
    def append_with_a_bad_one(self, key: SessionKey, batch: list[Draft], place: int) -> None:
        batch = self.renamed(batch)
        batch.insert(place % (len(batch) + 1), draft("note", id="bad", body={"name": float("nan")}))
        self.append_at_end(key, batch)

    @rule(
        key=_key,
        pick=_pick,
        expected=_seq,
        change=st.sampled_from(["nothing", "body", "kind", "twice", "more"]),
        new=_facts,
    )
    def retry(self, key: SessionKey, pick: int, expected: int, change: Change, new: list[Draft]) -> None:
        """Append again what is in the log: as it was, changed, or together with something new."""
        written = self.written.get(key)
        if written:
            batch = list(written[pick % len(written)])
            last = batch[-1]
            if change == "body":
                batch[-1] = msgspec.structs.replace(last, body={**last.body, "changed": pick})
            elif change == "kind":
                kind = "redacted" if last.kind == "session_changed" else "session_changed"
                batch[-1] = msgspec.structs.replace(last, kind=kind, body={"events": [], **last.body}, parent=None)
            elif change == "twice":
                batch.append(last)
            elif change == "more":
                batch += self.renamed(new)
            self.both(key, lambda store: store.append(key, batch, expected_seq=expected))

    @rule(key=_key, first=_pick, last=_pick, body=drafts({"compaction"}))
    def compact(self, key: SessionKey, first: int, last: int, body: Draft) -> None:
        """Cover events that are there; ids that come later would change what an old snapshot saw."""
        ids = {record.seq: record.id for record in self.records(key) if not record.is_fact}
        if ids:
            found = list(ids)
            ends = [ids[seq] for seq in sorted({found[first % len(found)], found[last % len(found)]})]
            covering = msgspec.structs.replace(body, body={**body.body, "from": ends[0], "to": ends[-1]})
            self.append_at_end(key, self.renamed([covering]))

    @rule(key=_key, before=_batch | st.just([]), to=_pick, move=drafts({"head_moved"}), after=_batch | st.just([]))
    def move_head(self, key: SessionKey, before: list[Draft], to: int, move: Draft, after: list[Draft]) -> None:
        """Anywhere in the log or in the batch itself, sometimes to a fact or beyond the end."""
        move = msgspec.structs.replace(move, parent=1 + to % (self.seq(key) + len(before) + 3))
        self.append_at_end(key, self.renamed([*before, move, *after]))

    # Leases.

    @rule(key=_key)
    def acquire(self, key: SessionKey) -> None:
        taken: list[Lease] = []

        def take(store: Store) -> bool:
            taken.append(store.acquire(key, label="" if key == KEYS[0] else "machine", at=FIRST_AT + self.seq(key)))
            return True

        if self.both(key, take):
            self.leases.setdefault(key, []).append((taken[0], taken[1]))

    @rule(key=_key, is_current=st.booleans() | st.just(True))
    def release(self, key: SessionKey, is_current: bool) -> None:
        pair = self.lease(key, is_current=is_current)
        if pair:
            self.both(key, lambda store: store.release(pair[store is not self.model]))

    @rule(key=_key, batch=_batch | _facts, is_current=st.booleans() | st.just(True), expected=st.none() | _seq)
    def append_under_a_lease(self, key: SessionKey, batch: list[Draft], is_current: bool, expected: int | None) -> None:
        """Under the newest lease, or under one that was taken over; either may be released by now."""
        pair = self.lease(key, is_current=is_current)
        if pair:
            batch = self.renamed(batch)

            def append(store: Store) -> list[Event]:
                fence = pair[store is not self.model].fence
                return store.append(key, batch, expected_seq=expected, fence=fence)

            if self.both(key, append):
                self.written.setdefault(key, []).append(batch)

    # What is saved beside a log.

    @rule(key=_key, pick=_pick, is_at_head=st.booleans(), is_full=st.booleans())
    def snapshot(self, key: SessionKey, pick: int, is_at_head: bool, is_full: bool) -> None:
        """At the head, as at a turn's end, or at any event on a path."""
        found = [record.seq for record in self.records(key) if not record.is_fact]
        if found:
            seq = self.model.tip(key).head if is_at_head else found[pick % len(found)]
            saved = full(seq, replayed(self.model, key, seq)) if is_full else snapshot_at(self.model, key, seq)
            self.both(key, lambda store: store.save_snapshot(key, saved))

    @rule(key=_key, seq=_seq, summary=some_texts().filter(str.isprintable))
    def save_summary_and_an_empty_snapshot(self, key: SessionKey, seq: int, summary: str) -> None:
        """The snapshot only where there is no event that could have one."""
        self.both(key, lambda store: store.save_summary(key, max(seq, 0), summary))
        if not any(record.seq == seq and not record.is_fact for record in self.records(key)):
            self.both(key, lambda store: store.save_snapshot(key, full(seq, {})))

    @rule(
        key=_key,
        id=names(),
        header=st.dictionaries(texts(), json_values(), max_size=2),
        chunks=st.lists(st.tuples(st.sampled_from(["text", "reasoning"]), texts()), max_size=4),
        ended=_pick,
    )
    def stream(
        self, key: SessionKey, id: str, header: dict[str, Any], chunks: list[tuple[str, str]], ended: int
    ) -> None:
        """Begin and fill one; end one of all that are open, three times in four."""
        if self.seq(key):
            id = f"{next(self.count)} {id}"

            def write(store: Store) -> None:
                store.streams.begin(key, id, header)
                for part, text in chunks:
                    store.streams.add(key, id, part, text)

            self.both(key, write)
            left = [stream.id for stream in self.model.streams.left(key)]
            self.both(key, lambda store: store.streams.end(key, left[ended % len(left)] if ended % 4 else "unknown"))

    @rule(key=_key, data=st.binary(max_size=30))
    def put_artifact(self, key: SessionKey, data: bytes) -> None:
        ref = self.both(key, lambda store: store.artifacts.put(key, data))
        if ref:
            self.both(key, lambda store: store.artifacts.get(key, ref.hash))

    @rule(
        topic=st.sampled_from(["user", "User"]),
        name=names() | texts(),
        id=st.integers(0, 4).map(str),
        value=json_values(),
        is_only=st.booleans(),
    )
    def put_note(self, topic: str, name: str, id: str, value: Any, is_only: bool) -> None:
        def put(store: Store) -> None:
            verb = store.notes.replace if is_only else store.notes.put
            verb(topic, name, {"value": value}, id=id, at=FIRST_AT)

        self.both(None, put)
        self.both(None, lambda store: list(store.notes.all(topic).items()))

    @rule(key=_key, said=st.lists(_text, min_size=1, max_size=6), count=st.integers(0, 6))
    def index(self, key: SessionKey, said: list[str], count: int) -> None:
        """Text of the events up to `count` after the last indexed one, and again of some before it."""
        indexed = self.model.text.indexed_seq(key) if self.seq(key) else 0
        up_to = min(indexed + count, self.seq(key))
        rows = [TextRow(seq=seq, text=text) for seq, text in enumerate(said, up_to - len(said) + 1) if seq > 0]
        self.both(key, lambda store: store.text.add(key, rows, up_to=up_to))

    @rule(key=_any_key | st.none())
    def drop_index(self, key: SessionKey | None) -> None:
        self.both(key, lambda store: store.text.drop(key))

    # Removal, and coming back.

    @rule(key=_any_key)
    def delete(self, key: SessionKey) -> None:
        self.both(key, lambda store: store.delete(key))

    @rule(key=_key)
    def trash(self, key: SessionKey) -> None:
        number = next(self.count)
        trash_id = f"t{number:06}"
        seq = self.seq(key)
        self.both(key, lambda store: store.trash(key, trash_id=trash_id, at=FIRST_AT + number))
        if seq and not self.seq(key):
            self.trashed[trash_id] = self.written.pop(key, [])

    @rule(key=_any_key, pick=_pick)
    def restore(self, key: SessionKey, pick: int) -> None:
        """Under its own key or another one, which may be taken; and sometimes what is in no trash."""
        trash_id = self.trash_id(pick)
        self.both(key, lambda store: store.restore(trash_id, key))
        if trash_id in self.trashed and trash_id not in [row.trash_id for row in self.model.trashed()]:
            self.written[key] = self.trashed.pop(trash_id)

    @rule(pick=_pick)
    def purge(self, pick: int) -> None:
        trash_id = self.trash_id(pick)
        self.both(None, lambda store: store.purge(trash_id))

    @rule(key=_any_key, source=_any_key, cut=_pick, off=st.sampled_from([0, 0, 0, -1, 1]), data=st.binary(max_size=9))
    def copy_records(self, key: SessionKey, source: SessionKey, cut: int, off: int, data: bytes) -> None:
        """Each store copies its own records, in two pieces; the second one is sometimes expected elsewhere."""
        place = cut % (self.seq(source) + 1)

        def first(store: Store) -> Any:
            records = all_records(store, source)[:place]
            return _place(store.put_records(key, records, expected_seq=0, artifacts=[data]))

        def second(store: Store) -> Any:
            records = all_records(store, source)[place:]
            return _place(store.put_records(key, records, expected_seq=place + off))

        if self.both(key, first):
            self.written[key] = list(self.written.get(source, []))
        self.both(key, second)

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
        positions=st.lists(st.tuples(st.integers(1, 12), st.integers(-1, 3)), max_size=4),
        picks=st.lists(_pick, max_size=3),
        others=st.lists(texts(), max_size=3),
    )
    def read(
        self,
        key: SessionKey,
        after: int,
        until: int | None,
        limit: int,
        kinds: list[str] | None,
        positions: list[tuple[int, int]],
        picks: list[int],
        others: list[str],
    ) -> None:
        asked: Any = {"after": after, "until": until, "limit": limit, "kinds": kinds}
        ranges = [[start, start + length] for start, length in positions]
        ids = [written.id for batch in self.written.get(key, []) for written in batch]
        wanted = [ids[pick % len(ids)] for pick in picks if ids] + others
        self.both(key, lambda store: store.events(key, **asked))
        self.both(key, lambda store: store.events(key, **asked, newest_first=True))
        self.both(key, lambda store: store.events_at(key, ranges))
        self.both(key, lambda store: sorted(store.seq_of(key, wanted).items()))

    @rule(
        words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        operator=st.sampled_from(["OR", "OR", "AND", "NOT"]),
        keys=st.none() | st.lists(_any_key, max_size=2, unique=True),
        agents=st.sampled_from([(), ("user", "coordinator")]),
        kinds=st.sampled_from([(), ("message",), ("note", "turn_started")]),
    )
    def match(
        self,
        words: list[str],
        operator: str,
        keys: list[SessionKey] | None,
        agents: tuple[str, ...],
        kinds: tuple[str, ...],
    ) -> None:
        """Scores and the order of equal ones are each store's own; what is found is not."""
        expression = f" {operator} ".join(f'"{word}"' for word in words)
        where = TextFilter(agents=agents, kinds=kinds)
        self.both(
            None,
            lambda store: sorted(
                (found.key, found.seq) for found in store.text.match(expression, keys=keys, where=where, limit=10_000)
            ),
        )

    @rule(
        app=st.none() | st.sampled_from(["default", "chat", "Chat"]),
        user=st.none() | st.sampled_from(["default", "ada"]),
        after=st.none() | _any_key,
        limit=st.integers(-1, 5),
    )
    def list_sessions(self, app: str | None, user: str | None, after: SessionKey | None, limit: int) -> None:
        self.both(None, lambda store: self.rows(store, app=app, user=user, after=after, limit=limit))

    @rule(
        wanted=st.builds(
            Wanted,
            app=st.none() | st.sampled_from(["default", "chat"]),
            query=st.none() | st.sampled_from([*WORDS, "de", "coordinator"]),
            status=st.none() | st.sampled_from(["open", "interrupted", "unreadable"]),
            since=st.none() | st.integers(0, 9).map(lambda n: FIRST_AT + n),
        ),
        sort=st.sampled_from(SORTS),
        is_reversed=st.booleans(),
        limit=st.integers(-1, 5),
    )
    def list_rows(self, wanted: Wanted, sort: Sort, is_reversed: bool, limit: int) -> None:
        """Each store works out what it finds to be behind; then all rows are equal, and so is a page of them."""
        for store in (self.model, self.store):
            _settle(store)
        self.is_listed = True
        self.both(None, lambda store: store.listing.behind())
        self.both(None, lambda store: _page(store, Wanted(), "title", limit=100))
        self.both(None, lambda store: _page(store, wanted, sort, is_reversed=is_reversed, limit=limit))
        self.both(None, lambda store: store.listing.facets(wanted, FACETS))

    @invariant()
    def the_touched_session_is_the_same_in_both(self) -> None:
        key = self.touched
        self.both(None, self.rows)
        self.both(None, _trashed)
        tip = self.both(key, lambda store: _place(store.tip(key)))
        if tip is None:
            return
        some = next(self.count) % (tip[0] + 3)  # Moves through the log, and beyond its end.
        self.both(key, lambda store: [_content(record) for record in all_records(store, key)])
        self.both(key, lambda store: store.tail(key, tip[1]))
        self.both(key, lambda store: store.tail(key, some))
        self.both(key, lambda store: store.events(key, after=some - 1, limit=5))
        self.both(key, lambda store: store.facts(key, until=some))
        self.both(key, lambda store: store.snapshot_seqs(key))
        self.both(key, lambda store: _holder(store.holder(key)))
        self.both(key, lambda store: store.streams.left(key))
        self.both(key, lambda store: store.artifacts.hashes(key))
        self.both(key, lambda store: store.text.indexed_seq(key))
        broken = broken_links(self.store, key)

        assert broken == []
        assert resumed(self.store, key, tip[1]) == replayed(self.store, key, tip[1])

    # How both are asked.

    def both(self, key: SessionKey | None, ask: Callable[[Store], Any]) -> Any:
        """Ask both stores: they give equal answers, or errors of one type. Return the answer, None for an error."""
        self.touched = self.touched if key is None else key
        expected, actual = _outcome(ask, self.model), _outcome(ask, self.store)

        # Compared as they are written, because Python says that 1 == 1.0 == True.
        assert repr(actual) == repr(expected), f"the memory store gives {expected!r}, this store {actual!r}"
        return None if isinstance(actual, type) else actual

    def rows(self, store: Store, **asked: Any) -> list[Any]:
        left_out = {"size_bytes": None} | ({"summary": None, "summary_seq": 0} if self.is_listed else {})
        return [msgspec.structs.replace(row, **left_out) for row in store.sessions(**asked)]

    def append_at_end(self, key: SessionKey, batch: list[Draft]) -> None:
        expected = self.seq(key)
        if self.both(key, lambda store: store.append(key, batch, expected_seq=expected)):
            self.written.setdefault(key, []).append(batch)

    def renamed(self, batch: Sequence[Draft]) -> list[Draft]:
        """Return the drafts with ids that no other draft has."""
        return [msgspec.structs.replace(draft, id=f"{next(self.count)} {draft.id}") for draft in batch]

    def lease(self, key: SessionKey, *, is_current: bool) -> tuple[Lease, Lease] | None:
        """Return the newest lease of a session, or the one before it, as the model and as the store gave it."""
        leases = self.leases.get(key, [])
        return leases[-1 if is_current or len(leases) == 1 else -2] if leases else None

    def trash_id(self, pick: int) -> str:
        """Return the id of something in the trash, now and then one that was there or never was."""
        known = [*(row.trash_id for row in self.model.trashed()), "t000000"]
        return known[pick % len(known)]

    def seq(self, key: SessionKey) -> int:
        """Return where the log ends, 0 where there is no session."""
        tip = _outcome(lambda store: store.tip(key), self.model)
        return tip.seq if isinstance(tip, Tip) else 0

    def records(self, key: SessionKey) -> list[Record]:
        """Return the log, [] where there is no session."""
        return all_records(self.model, key) if self.seq(key) else []


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


def _settle(store: Store) -> None:
    """Work out the rows that are behind. Whoever names one that was worked out again and again is left to show it."""
    for _ in range(ROUNDS_MAX):
        for key in store.listing.behind():
            seq, row, problem = store.tip(key).seq, None, None
            try:
                row = Live(store, key, clock=lambda: FIRST_AT, entropy=os.urandom).summary()
            except PlayheadError as error:
                problem = type(error).__name__
            store.listing.put(key, seq, row, problem=problem)


def _page(store: Store, wanted: Wanted, sort: Sort, *, limit: int, is_reversed: bool = False) -> tuple[Any, int]:
    page = store.listing.page(wanted, sort=sort, is_reversed=is_reversed, limit=limit)
    return [msgspec.structs.replace(row, size_bytes=None) for row in page.rows], page.total


def _trashed(store: Store) -> list[Any]:
    return [msgspec.structs.replace(row, size_bytes=None) for row in store.trashed()]


def _holder(holder: dict[str, Any] | None) -> list[Any] | None:
    """Return what every store says of a holder in the same words."""
    return None if holder is None else [holder.get(field) for field in ("pid", "since", "label")]
