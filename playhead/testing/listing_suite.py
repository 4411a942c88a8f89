"""The shared suite's part about lists: every page shows what the logs say, in one order, whoever wrote them."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from playhead.features.live import Live
from playhead.model.event import Draft
from playhead.model.ids import SessionKey, session_key
from playhead.stores.base import Store
from playhead.stores.listing import (
    FACETS,
    PAGE_MAX,
    SORTS,
    UNREADABLE,
    ListingPage,
    ListingRow,
    Place,
    Sort,
    Wanted,
    facet_values,
    fits,
    parent_key,
    place,
    words_of,
)
from playhead.testing.drafts import FIRST_AT, draft, started
from playhead.testing.replay import all_records
from playhead.testing.store_harness import KEY, StoreHarness, append, begun
from playhead.views.summary import SUMMARY_VERSION, Summary

OTHER = session_key("flaky-test", user="ada")

KEYS = tuple(
    session_key(f"{id}{number}", app=app, user=user)
    for number, (id, app, user) in enumerate(
        [("a.", "desk", "ada"), ("B", "desk", "ada"), ("é", "desk", "bo"), ("ﬀ", "chat", "ada"), ("😀", "chat", "bo")]
        * 3
    )
)
"""Sessions whose keys are in another order by code point than by any alphabet."""

WORDS = (
    *("deploy", "DEPLOY", "key", "ke", "k", "straße", "STRASSE", "İzmir", "e\u0301", "é", "日本語", "本", "テキスト"),
    *(
        "👩‍👩‍👧",
        "😀",
        '"quoted"',
        "o'clock",
        "100%",
        "a_b",
        "back\\slash",
        "a\0b",
        "NOT",
        "title:",
        "*",
        "x" * 90,
        "\U0010ffff",
    ),
)
"""Words that trip a search which is anything but a look for a piece of text."""

TIMES = (FIRST_AT, FIRST_AT + 0.5, FIRST_AT + 86_400, 0.0, -0.0, -1.5, 1e-9)

STRANGE_TIMES = (*TIMES, float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 2**63)


class ListingSuite(StoreHarness):
    """Promises about `listing`."""

    # What is behind, and what is put.

    def test_a_session_is_listed_from_its_beginning(self, store: Store) -> None:
        begun(store)
        before = store.listing.page(Wanted())
        behind = store.listing.behind()
        settle(store)
        page = store.listing.page(Wanted())

        assert (before.total, behind) == (1, [KEY])
        assert [(row.key, row.problem) for row in page.rows] == [(KEY, None)]
        assert page.rows[0].summary == worked_out(store, KEY)
        assert (page.total, page.is_settled, store.listing.behind()) == (1, True, [])

    def test_every_append_leaves_its_row_behind(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER)
        settle(store)
        one_event = [behind_after(store, draft("session_changed", n=2, body={"title": "Nightly"}))]
        several = [behind_after(store, draft(n=3), draft(n=4)), behind_after(store, draft(n=5))]
        lease = store.acquire(KEY, at=FIRST_AT)
        store.append(KEY, [draft(n=6)], expected_seq=None, fence=lease.fence)
        in_a_turn = store.listing.behind()
        store.release(lease)
        settle(store)

        assert [*one_event, *several, in_a_turn] == [[KEY]] * 4
        assert titles(store) == {KEY: "Nightly", OTHER: worked_out(store, OTHER).title}

    def test_a_saved_summary_that_holds_is_the_row(self, store: Store) -> None:
        begun(store, count=3)
        saved = msgspec.structs.replace(worked_out(store, KEY), title="As it was saved")
        store.save_summary(KEY, saved.seq, text_of(saved))
        behind = store.listing.behind()
        append(store, draft(n=4))
        behind_again = store.listing.behind()
        store.save_summary(KEY, saved.seq, text_of(saved))

        assert (behind, behind_again, store.listing.behind()) == ([], [KEY], [KEY])
        assert titles(store) == {KEY: "As it was saved"}

    def test_a_summary_that_cannot_be_read_is_no_row(self, store: Store) -> None:
        begun(store)
        store.save_summary(KEY, 1, '{"title":"Flaky"}')
        behind = store.listing.behind()
        settle(store)
        store.save_summary(KEY, 1, "no JSON at all")
        settle(store)

        assert behind == [KEY]
        assert titles(store) == {KEY: worked_out(store, KEY).title}

    def test_an_older_row_takes_no_newer_ones_place(self, store: Store) -> None:
        begun(store, count=2)
        older = worked_out(store, KEY)
        append(store, draft("session_changed", n=3, body={"title": "Nightly"}))
        settle(store)
        store.listing.put(KEY, older.seq, older)
        store.listing.put(KEY, older.seq, None, problem="it could not be read a while ago")

        assert (titles(store), store.listing.behind()) == ({KEY: "Nightly"}, [])

    def test_a_row_of_no_session_is_ignored(self, store: Store) -> None:
        begun(store)
        row = worked_out(store, KEY)
        for key in (OTHER, SessionKey("", "", "x"), SessionKey("default", "default", "\0")):
            store.listing.put(key, row.seq, row)
        settle(store)

        assert store.listing.page(Wanted()).total == 1

    def test_one_that_cannot_be_read_says_why_and_is_not_tried_again(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER)
        settle(store)
        store.listing.put(KEY, 1, None, problem="event 1 is damaged")
        behind = store.listing.behind()
        unreadable = store.listing.page(Wanted(status=UNREADABLE)).rows
        every = store.listing.page(Wanted()).rows
        append(store, draft(n=2))
        behind_again = store.listing.behind()
        settle(store)

        assert (behind, behind_again) == ([], [KEY])
        assert [(row.key, row.summary, row.problem) for row in unreadable] == [(KEY, None, "event 1 is damaged")]
        assert [row.key for row in every] == [OTHER, KEY]
        assert store.listing.page(Wanted(status=UNREADABLE)).total == 0

    def test_a_row_of_another_version_is_worked_out_again(self, store: Store) -> None:
        begun(store)
        for version in (SUMMARY_VERSION - 1, SUMMARY_VERSION + 1):
            store.listing.put(KEY, 1, msgspec.structs.replace(worked_out(store, KEY), version=version, title="Other"))
            behind, title = store.listing.behind(), titles(store)
            settle(store)

            assert (behind, title) == ([KEY], {KEY: "Other"})
            assert titles(store) == {KEY: worked_out(store, KEY).title}

    def test_no_more_are_named_behind_than_were_asked_for_and_none_is_passed_over(self, store: Store) -> None:
        for key in KEYS:
            begun(store, key)
        named = [len(store.listing.behind(limit=limit)) for limit in (-1, 0, 1, 4, 1_000)]
        rounds = 0
        while behind := store.listing.behind(limit=4):
            rounds += 1
            for key in behind:
                put(store, key)

        assert named == [0, 0, 1, 4, len(KEYS)]
        assert rounds == 4
        assert {row.key for row in store.listing.page(Wanted(), limit=PAGE_MAX).rows} == set(KEYS)

    # What comes and goes.

    def test_what_is_deleted_or_trashed_is_in_no_list_and_what_is_restored_is(self, store: Store) -> None:
        for key in (*KEYS[:3], KEY):
            begun(store, key, count=2)
        settle(store)
        put_row(store, KEYS[1], forked_from=KEYS[0])
        store.delete(KEYS[0])
        store.trash(KEYS[1], trash_id="t1", at=FIRST_AT)
        store.trash(KEYS[2], trash_id="t2", at=FIRST_AT)
        without = sorted(titles(store))
        forks_without = store.listing.forks(KEYS[0])
        counted_without = store.listing.facets(Wanted(), ["status"])
        store.restore("t1", OTHER)
        store.purge("t2")
        settle(store)

        assert (without, forks_without) == ([KEY], [])
        assert counted_without == {"status": {"open": 1}}
        assert titles(store) == {KEY: worked_out(store, KEY).title, OTHER: worked_out(store, OTHER).title}

    def test_a_session_made_anew_has_nothing_of_the_one_before(self, store: Store) -> None:
        begun(store, count=3)
        put_row(store, KEY, title="The one before", labels=("old",))
        store.delete(KEY)
        begun(store)
        behind = store.listing.behind()
        found = store.listing.page(Wanted(query="before")).total
        settle(store)

        assert (behind, found) == ([KEY], 0)
        assert store.listing.facets(Wanted(), ["label"]) == {"label": {}}
        assert titles(store) == {KEY: worked_out(store, KEY).title}

    def test_records_that_come_over_are_listed(self, store: Store) -> None:
        begun(store, count=3)
        settle(store)
        store.put_records(OTHER, all_records(store, KEY)[:2], expected_seq=0)
        made = store.listing.behind()
        settle(store)
        store.put_records(OTHER, all_records(store, KEY)[2:], expected_seq=2)
        gone_on = store.listing.behind()
        settle(store)

        assert (made, gone_on) == ([OTHER], [OTHER])
        assert [row.summary and row.summary.seq for row in store.listing.page(Wanted()).rows] == [3, 3]

    def test_rows_outlive_the_store(self, store: Store, folder: Path) -> None:
        for key in KEYS[:4]:
            begun(store, key)
        settle(store)
        append(store, draft("session_changed", n=2, body={"title": "Nightly"}), key=KEYS[2])
        before = titles(store)
        store = self.reopen(store, folder)
        behind = store.listing.behind()
        kept = titles(store)
        settle(store)
        store.close()

        assert behind == [KEYS[2]]
        assert {key: title for key, title in kept.items() if key != KEYS[2]} == {
            key: title for key, title in before.items() if key != KEYS[2]
        }

    def test_what_another_one_writes_is_behind_here_until_its_row_is_saved(self, store: Store, folder: Path) -> None:
        self.need_durable()
        begun(store)
        settle(store)
        other = self.make_store(folder)
        try:
            append(other, draft(n=2))
            appended = store.listing.behind()
            save(other, KEY)
            saved = store.listing.behind()
            seen = store.listing.page(Wanted()).rows[0].summary
            append(other, draft(n=3))
            append(store, draft(n=4))
            save(store, KEY)
            own = store.listing.behind(), other.listing.behind()
            append(other, draft(n=5))
            begun(other, OTHER)
            last = sorted(store.listing.behind())
            other.delete(KEY)
            left = [row.key for row in settled(store).rows]
        finally:
            other.close()

        assert (appended, saved, own, last) == ([KEY], [], ([], []), sorted([KEY, OTHER]))
        assert seen is not None
        assert (seen.seq, left) == (2, [OTHER])

    def test_a_refresh_looks_at_every_session_and_a_full_one_reads_them_all(self, store: Store) -> None:
        for key in KEYS[:5]:
            begun(store, key)
        time.sleep(0.1)  # A store that goes by the times of files reads those of this moment again.
        settle(store)
        before = titles(store)
        told: list[tuple[int, int]] = []
        some = store.listing.refresh(on_progress=lambda done, count: told.append((done, count)))
        behind = store.listing.behind()
        full = store.listing.refresh(full=True)
        settle(store)

        assert (some.looked_at, some.read, some.removed, behind) == (5, 0, 0, [])
        assert all(0 <= done <= count == 5 for done, count in told)
        assert (full.looked_at, full.read) == (5, 5)
        assert (titles(store), store.listing.behind()) == (before, [])

    # Orders, pages, wishes.

    @pytest.mark.parametrize("seed", range(6))
    def test_every_page_of_every_order_is_as_the_contract_has_it(self, store: Store, seed: int) -> None:
        """A plain look at every row says what has to come."""
        chance = random.Random(seed)
        rows = filled(store, chance)
        wishes = [Wanted(), *(some_wishes(chance, rows) for _ in range(40))]
        wrong = [
            (wanted, sort, is_reversed)
            for wanted in wishes
            for sort in chance.sample(SORTS, 2)
            for is_reversed in (False, True)
            if paged(store, wanted, sort, is_reversed, chance.choice((1, 2, 3, 7, 50)))
            != expected(rows, wanted, sort, is_reversed)
        ]

        assert wrong == []

    @pytest.mark.parametrize("seed", range(3))
    def test_values_are_counted_as_the_contract_has_it(self, store: Store, seed: int) -> None:
        chance = random.Random(seed)
        rows = filled(store, chance)
        wishes = [Wanted(), *(some_wishes(chance, rows) for _ in range(25))]
        wrong = []
        for wanted in wishes:
            counted = store.listing.facets(wanted, FACETS)
            found = [row for row in rows if fits(row, wanted)]
            for name in FACETS:
                values = Counter(value for row in found for value in facet_values(row.summary, name))
                if [*counted[name].items()] != sorted(values.items(), key=lambda one: (-one[1], one[0])):
                    wrong.append((wanted, name, counted[name]))

        assert wrong == []

    @pytest.mark.parametrize("seed", range(3))
    def test_forks_are_those_that_name_their_parent(self, store: Store, seed: int) -> None:
        rows = filled(store, random.Random(seed))
        keys = [*KEYS, KEY, SessionKey("\ud83d", "a", "b")]
        found = {key: store.listing.forks(key) for key in keys}

        assert found == {key: sorted(row.key for row in rows if parent_key(row.summary) == key) for key in keys}

    def test_rows_that_change_are_found_by_what_they_say_now(self, store: Store) -> None:
        for key in KEYS[:3]:
            begun(store, key)
        settle(store)
        put_row(store, KEYS[0], title="Rotate the deploy key", labels=("ci", "pinned"), cwd="/src/upload")
        put_row(store, KEYS[0], title="Rotate the signing key", labels=("pinned",), cwd="/src/signing")
        now = [store.listing.page(wanted).total for wanted in (Wanted(query="signing"), Wanted(label="pinned"))]
        once = [
            store.listing.page(wanted).total
            for wanted in (Wanted(query="deploy"), Wanted(label="ci"), Wanted(cwd="/src/upload"))
        ]

        assert (now, once) == ([1, 1], [0, 0, 0])
        assert store.listing.facets(Wanted(), ["label", "cwd"]) == {
            "label": {"pinned": 1},
            "cwd": {"/src/signing": 1},
        }

    def test_what_was_listed_before_a_place_moves_no_page_after_it(self, store: Store) -> None:
        for key in KEYS:
            begun(store, key)
        settle(store)
        for number, key in enumerate(KEYS):
            put_row(store, key, last_active_at=FIRST_AT + number)
        first = store.listing.page(Wanted(), limit=5)
        put_row(store, first.rows[2].key, last_active_at=FIRST_AT + 1_000)
        after = place(first.rows[-1], "last_active")
        rest = store.listing.page(Wanted(), after=after, limit=PAGE_MAX)

        assert [row.key for row in (*first.rows, *rest.rows)] == [*reversed(KEYS)]
        assert rest.total == len(KEYS)

    def test_a_page_of_none_still_says_how_many_there_are(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER)
        settle(store)
        pages = [store.listing.page(Wanted(), limit=limit) for limit in (0, -5)]

        assert [(page.rows, page.total) for page in pages] == [([], 2), ([], 2)]


# Rows as the contract has them.


def worked_out(store: Store, key: SessionKey) -> Summary:
    """Return the row of a session as its log has it."""
    return Live(store, key, clock=lambda: FIRST_AT, entropy=os.urandom).summary()


def put(store: Store, key: SessionKey) -> None:
    row = worked_out(store, key)
    store.listing.put(key, row.seq, row)


def save(store: Store, key: SessionKey) -> None:
    """Save the summary of a session, as a writer does at a turn's end."""
    row = worked_out(store, key)
    store.save_summary(key, row.seq, text_of(row))


def settle(store: Store) -> None:
    """Work out every row that is behind."""
    for _ in range(10):
        behind = store.listing.behind()
        if not behind:
            return
        for key in behind:
            put(store, key)
    raise AssertionError("rows that were put are behind again and again")


def settled(store: Store) -> ListingPage:
    settle(store)
    return store.listing.page(Wanted())


def put_row(store: Store, key: SessionKey, *, forked_from: SessionKey | None = None, **fields: object) -> Summary:
    """Put a row that says something else than the log does."""
    row = msgspec.structs.replace(worked_out(store, key), **fields)
    if forked_from is not None:
        origin = {"app": forked_from.app, "user": forked_from.user, "session": forked_from.id}
        row = msgspec.structs.replace(row, forked_from=origin)
    store.listing.put(key, row.seq, row)
    return row


def behind_after(store: Store, *drafts: Draft) -> list[SessionKey]:
    append(store, *drafts)
    behind = store.listing.behind()
    settle(store)
    return behind


def titles(store: Store) -> dict[SessionKey, str | None]:
    rows = store.listing.page(Wanted(), limit=PAGE_MAX).rows
    return {row.key: row.summary.title if row.summary else row.problem for row in rows}


def text_of(row: Summary) -> str:
    return msgspec.json.encode(row).decode()


def filled(store: Store, chance: random.Random) -> list[ListingRow]:
    """Give a store sessions with rows of every kind, changed a few times, and return the rows."""
    rows: dict[SessionKey, ListingRow] = {}
    for key in KEYS:
        store.create(key, [started(app=key.app, user=key.user)])
    for _ in range(3):
        for key in KEYS:
            if key in rows and chance.random() < 0.5:
                continue
            row = None if chance.random() < 0.15 else some_row(store, key, chance)
            before = rows[key].summary if key in rows else None
            if row is not None and before is not None and chance.random() < 0.3:
                row = msgspec.structs.replace(before, last_active_at=chance.choice(TIMES))
            problem = None if row is not None else f"{key.id} is damaged"
            store.listing.put(key, 1, row, problem=problem)
            rows[key] = ListingRow(key, row, problem)
    forks = Counter(parent_key(row.summary) for row in rows.values())
    return [msgspec.structs.replace(row, fork_count=forks[row.key]) for row in rows.values()]


def some_row(store: Store, key: SessionKey, chance: random.Random) -> Summary:
    def one() -> str | None:
        return chance.choice([None, some_text(chance), "x", "é"])

    parent = chance.choice([*KEYS, KEY])
    origin = {"app": parent.app, "user": parent.user, "session": parent.id}
    return msgspec.structs.replace(
        worked_out(store, key),
        title=some_text(chance),
        preview=some_text(chance),
        status=chance.choice(["open", "open", "done", UNREADABLE]),
        agents=tuple(some_text(chance) for _ in range(chance.randrange(3))),
        labels=tuple(chance.choice(["ci", "pinned", "ci "]) for _ in range(chance.randrange(3))),
        created_at=chance.choice(TIMES),
        last_active_at=chance.choice(TIMES),
        cwd=one(),
        origin=one(),
        config=one(),
        config_type=one(),
        node=one(),
        group=one(),
        forked_from=chance.choice([None, None, origin, {"session": 3}, {"app": "chat"}]),
    )


def some_text(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(4)))


def some_wishes(chance: random.Random, rows: list[ListingRow]) -> Wanted:
    """Return wishes that some row fulfils, or that no row can, or that no sane caller has."""
    row = chance.choice(rows)

    def value(name: str) -> str | None:
        values = facet_values(row.summary, next(one for one in FACETS if one == name))
        return chance.choice([*values, "none of them", "\ud83d"]) if chance.random() < 0.15 else None

    words = [chance.choice(WORDS)[: chance.choice((1, 2, 3, 99))] for _ in range(chance.randrange(3))]
    words += [chance.choice(["\ud83d", "\0", '"', "AND", " "])] if chance.random() < 0.1 else []
    return Wanted(
        app=chance.choice([None, None, None, "desk", "chat", "Desk", "\udc00"]),
        user=chance.choice([None, None, "ada", "bo"]),
        begins=chance.choice(["", "a", "é", "0", "desk/", row.key.id, str(row.key), "\ud83d", "a\0"])
        if chance.random() < 0.2
        else None,
        query=" ".join(words) if chance.random() < 0.6 else None,
        since=chance.choice(STRANGE_TIMES) if chance.random() < 0.2 else None,
        until=chance.choice(STRANGE_TIMES) if chance.random() < 0.2 else None,
        **{name: value(name) for name in FACETS},
    )


def expected(rows: list[ListingRow], wanted: Wanted, sort: Sort, is_reversed: bool) -> list[tuple[SessionKey, int]]:
    words = words_of(wanted.query)
    placed = sorted(((place(row, sort, words), row) for row in rows if fits(row, wanted)), key=lambda one: one[0])
    keys = [(row.key, row.fork_count) for _, row in placed]
    return keys[::-1] if is_reversed else keys


def paged(
    store: Store, wanted: Wanted, sort: Sort, is_reversed: bool, size: int
) -> list[tuple[SessionKey, int]] | ListingPage:
    """Return what all pages hold, one after the other; a page that says something else of how many there are."""
    found: list[ListingRow] = []
    after: Place | None = None
    while True:
        page = store.listing.page(wanted, sort=sort, is_reversed=is_reversed, after=after, limit=size)
        found += page.rows
        if len(page.rows) < size:
            return [(row.key, row.fork_count) for row in found] if page.total == len(found) else page
        after = place(page.rows[-1], sort, words_of(wanted.query))
