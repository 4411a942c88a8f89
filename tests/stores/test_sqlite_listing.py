"""The rows of lists of a shared file: made where they are missing, in memory where they cannot be written, and always
those of the sessions that there are."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from playhead.errors import InvalidName
from playhead.features.listing import Wanted, list_sessions
from playhead.model.ids import SessionKey
from playhead.stores.listing import NOT_YET, SORTS, UNREADABLE, Sort
from playhead.stores.named_queries import named_queries
from playhead.stores.sqlite.connect import PACKAGE
from playhead.stores.sqlite.listing import SqliteListingTable
from playhead.stores.sqlite.mending import drop_caches
from playhead.stores.sqlite.salvage import saved_from
from playhead.stores.sqlite.shared import SharedStore
from playhead.testing.disk import FullDisk
from playhead.testing.drafts import draft
from playhead.testing.listing_suite import KEYS, put_row, save, settle, titles, worked_out
from playhead.testing.store_harness import append, begun
from tests.promises.hindrances import bound_by_modes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SharedStore]:
    store = SharedStore(path)
    for key in KEYS[:6]:
        begun(store, key)
    settle(store)
    put_row(store, KEYS[0], title="Rotate the deploy key", labels=("ci",), forked_from=KEYS[1])
    yield store
    store.close()


def by_hand(path: Path, *statements: str) -> None:
    """Do something to a file as a stranger does, who has SQLite and knows nothing of us."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Take away the right to write to a file, and to its folder."""
    os.chmod(path, 0o400)
    os.chmod(path.parent, 0o500)
    try:
        yield
    finally:
        os.chmod(path.parent, 0o700)
        os.chmod(path, 0o600)


def without_rows(path: Path) -> None:
    """Make a file one of before there were rows in it."""
    connection = apsw.Connection(str(path))
    for kind in ("trigger", "table"):
        ours = f"type = '{kind}' AND name GLOB 'listing*' AND name NOT GLOB 'listing_words_*'"
        found = connection.execute(f"SELECT name FROM sqlite_schema WHERE {ours}").fetchall()
        for (name,) in found:
            connection.execute(f"DROP {kind} {name}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def everything(store: SharedStore) -> list[tuple[object, ...]]:
    """Return all that lists say: every order, what is counted, and forks."""
    pages = [
        [(row.key, row.summary, row.problem, row.fork_count) for row in store.listing.page(Wanted(), sort=sort).rows]
        for sort in SORTS
    ]
    counted = store.listing.facets(Wanted(), ["status", "label"])
    return [(*pages, counted, store.listing.forks(KEYS[1]), store.listing.page(Wanted(query="deploy k")).total)]


def test_a_file_of_before_there_were_rows_gets_them_when_it_is_opened(store: SharedStore, path: Path) -> None:
    for key in KEYS[:3]:
        save(store, key)
    append(store, draft("session_changed", n=2, body={"title": "Nightly"}), key=KEYS[2])
    store.close()
    without_rows(path)
    opened = SharedStore(path)
    found = opened.listing.page(Wanted())
    behind = opened.listing.behind()
    settle(opened)
    rows = titles(opened)
    opened.close()

    assert {row.problem for row in found.rows} == {NOT_YET}
    assert behind == sorted(KEYS[2:6]), "a saved summary that holds is the row"
    assert (len(rows), rows[KEYS[2]]) == (6, "Nightly")


def test_a_file_that_can_only_be_read_is_listed_as_it_is(store: SharedStore, path: Path) -> None:
    expected = everything(store)
    append(store, draft("session_changed", n=2, body={"title": "Nightly"}), key=KEYS[3])
    store.close()
    with bound_by_modes(), read_only(path):
        opened = SharedStore(path)
        behind = opened.listing.behind()
        settle(opened)
        listed = everything(opened)
        found = [opened.listing.page(wanted).total for wanted in (Wanted(query="nightl"), Wanted(app="desk"), Wanted())]
        reversed_first = opened.listing.page(Wanted(), sort="title", is_reversed=True, limit=2).rows
        opened.close()

    assert behind == [KEYS[3]]
    assert listed != expected
    assert found == [1, sum(key.app == "desk" for key in KEYS[:6]), 6]
    assert next(row.summary and row.summary.title for row in reversed_first) == "Rotate the deploy key"


def test_a_file_of_before_there_were_rows_that_can_only_be_read_is_listed_too(store: SharedStore, path: Path) -> None:
    everyone = list(KEYS[:6])
    for key in everyone:
        save(store, key)
    store.close()
    without_rows(path)
    with bound_by_modes(), read_only(path):
        opened = SharedStore(path)
        first = opened.listing.page(Wanted(), limit=2)
        settle(opened)
        listed, refreshed = everything(opened), opened.listing.refresh()
        again = opened.listing.behind(), opened.listing.refresh(full=True).read, len(opened.listing.behind())
        settle(opened)
        opened.listing.put(KEYS[0], 1, None, problem="it is damaged")
        unreadable = opened.listing.page(Wanted(status=UNREADABLE)).rows
        opened.close()
    opened = SharedStore(path)
    settle(opened)
    expected = everything(opened)
    opened.close()

    assert (len(first.rows), first.total) == (2, 6)
    assert (refreshed.looked_at, refreshed.read) == (6, 0)
    assert again == ([], 6, 6)
    assert [row.problem for row in unreadable] == ["it is damaged"]
    assert listed == expected


@pytest.mark.parametrize("left_bytes", [0, 4_096, 20_000])
def test_on_a_full_disk_rows_are_in_memory_until_there_is_room(path: Path, left_bytes: int) -> None:
    with FullDisk() as disk:
        store = SharedStore(path, vfs=disk.name)
        for key in KEYS[:6]:
            begun(store, key)
        disk.limit_bytes = left_bytes
        settle(store)
        listed = everything(store)
        disk.release()
        store.listing._retry_at = 0.0
        put_row(store, KEYS[5], title="There is room")
        in_memory = len(store.listing._in_memory)
        store.close()
    opened = SharedStore(path)
    behind, kept = opened.listing.behind(), titles(opened)
    opened.close()

    assert len(listed[0][0]) == 6  # type: ignore[arg-type]
    assert (in_memory, behind, len(kept)) == (0, [], 6)
    assert kept[KEYS[5]] == "There is room"


def test_a_row_in_memory_makes_way_for_what_another_one_writes(store: SharedStore, path: Path) -> None:
    store.listing._retry_at = float("inf")
    put_row(store, KEYS[0], title="In memory")
    put_row(store, KEYS[1], title="In memory too")
    put_row(store, KEYS[2], title="And this")
    here = titles(store)
    other = SharedStore(path)
    append(other, draft("session_changed", n=2, body={"title": "Nightly"}), key=KEYS[0])
    save(other, KEYS[0])
    other.delete(KEYS[1])
    there = titles(other)
    other.close()
    now = titles(store)

    assert (here[KEYS[0]], here[KEYS[1]], here[KEYS[2]]) == ("In memory", "In memory too", "And this")
    assert (now[KEYS[0]], now[KEYS[2]]) == ("Nightly", "And this")
    assert KEYS[1] not in now
    assert there[KEYS[2]] != "And this"


def test_what_somebody_does_by_hand_is_in_the_list(store: SharedStore, path: Path) -> None:
    number = store.number_of(KEYS[0])
    renamed = SessionKey("desk", "ada", "renamed by hand")
    by_hand(
        path,
        "INSERT INTO permits VALUES ('by hand')",
        f"DELETE FROM events WHERE row >> 32 = {store.number_of(KEYS[1])}",
        "DELETE FROM permits",
        f"DELETE FROM sessions WHERE number = {store.number_of(KEYS[1])}",
        f"UPDATE sessions SET id = 'renamed by hand' WHERE number = {number}",
        f"UPDATE sessions SET user = x'00ff' WHERE number = {store.number_of(KEYS[2])}",
    )
    behind = store.listing.behind()
    settle(store)
    rows = titles(store)
    nameless = [key for key in rows if key.app == ""]

    assert behind == [renamed]
    assert set(rows) == {renamed, *KEYS[3:6], *nameless}
    assert [rows[key] for key in nameless] == ["its key is no text: the file is damaged"]
    assert [row.problem for row in store.sessions() if row.key.app == ""] == [rows[key] for key in nameless]


def test_a_session_whose_end_is_damaged_stays_listed_and_is_not_tried_again(store: SharedStore, path: Path) -> None:
    append(store, draft(n=2), key=KEYS[0])
    row = (store.number_of(KEYS[0]) or 0) * 2**32 + 2
    damage = f"UPDATE events SET parent = 'x' WHERE row = {row}"
    by_hand(path, "INSERT INTO permits VALUES ('by hand')", damage, "DELETE FROM permits")
    listed = list_sessions(store, Wanted(status=UNREADABLE))
    behind = store.listing.behind()

    assert [row.key for row in listed.items] == [KEYS[0]]
    assert "damaged" in (listed.items[0].problem or "")
    assert behind == []


def test_dropped_caches_are_worked_out_again(store: SharedStore, path: Path) -> None:
    for key in KEYS[:6]:
        save(store, key)
    before = titles(store)
    drop_caches(path)
    behind = store.listing.behind()
    settle(store)

    assert behind == sorted(KEYS[:6])
    assert sorted(titles(store)) == sorted(before)


def test_a_summary_that_is_harmed_by_hand_is_worked_out_again(store: SharedStore, path: Path) -> None:
    append(store, draft(n=2), key=KEYS[3])
    save(store, KEYS[3])
    by_hand(path, f"UPDATE sessions SET summary = '{{' WHERE number = {store.number_of(KEYS[3])}")
    page = store.listing.page(Wanted())
    settle(store)
    again = store.listing.page(Wanted())

    assert (page.is_settled, again.is_settled) == (False, True)
    assert titles(store)[KEYS[3]] == worked_out(store, KEYS[3]).title


def test_a_full_refresh_makes_the_tables_anew_that_somebody_harmed(store: SharedStore, path: Path) -> None:
    expected = everything(store)
    by_hand(
        path,
        "DELETE FROM listing_facets",
        "UPDATE listing_values SET count = 77",
        "INSERT INTO listing_words (listing_words) VALUES ('delete-all')",
        f"DELETE FROM listing WHERE number = {store.number_of(KEYS[4])}",
    )
    store.listing.refresh(full=True)
    settle(store)
    put_row(store, KEYS[0], title="Rotate the deploy key", labels=("ci",), forked_from=KEYS[1])

    assert everything(store) == expected


def test_rows_of_other_versions_of_the_program_are_worked_out_again(store: SharedStore, path: Path) -> None:
    """As after an update: the rows hold, but say less than rows say today."""
    number = store.number_of(KEYS[4])
    with store.database.write():
        older = msgspec.structs.replace(worked_out(store, KEYS[4]), version=0)
        SqliteListingTable(store.database).put(number or 0, KEYS[4], older)

    assert store.listing.behind() == [KEYS[4]]


def test_no_entry_of_the_rows_is_taken_for_a_sessions_key_by_a_salvage(store: SharedStore, path: Path) -> None:
    for key in KEYS[2:6]:
        put_row(store, key, forked_from=KEYS[0])
    keys = {store.number_of(key): key for key in KEYS[:6]}
    store.close()
    by_hand(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    saved = saved_from(path)

    assert {log.number: log.row.key for log in saved.logs if log.row} == keys


NO_PLACES: tuple[tuple[object, ...], ...] = (
    *((), (1.0,), (None,) * 4, (1.0, 2, "b", "c"), ("t", "a", "b", "\ud83d"), ({}, [], "", "")),
    *((1.0, 2.0, "a", "b", "c", "d"), (float("nan"), "a", "b", "c")),
)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("after", NO_PLACES)
def test_what_is_no_place_in_an_order_is_refused(store: SharedStore, sort: Sort, after: tuple[object, ...]) -> None:
    with pytest.raises(InvalidName):
        store.listing.page(Wanted(), sort=sort, after=after)


def test_a_place_far_beyond_every_row_is_one(store: SharedStore) -> None:
    low, high = (-(10**400), "", "", ""), (10**400, "", "", "")

    assert len(store.listing.page(Wanted(), after=low).rows) == 6
    assert store.listing.page(Wanted(), after=high).rows == []
    assert len(store.listing.page(Wanted(), after=high, is_reversed=True).rows) == 6


WRITER = """
import sys
from pathlib import Path
from playhead.errors import StaleWriter
from playhead.stores.sqlite.shared import SharedStore
from playhead.testing.drafts import draft
from playhead.testing.listing_suite import KEYS, save
from playhead.testing.store_harness import append

store, first = SharedStore(Path(sys.argv[1])), int(sys.argv[2])
for n in range(60):
    key = KEYS[n % 6]
    while True:
        try:
            append(store, draft(n=first + n), key=key)
            break
        except StaleWriter:
            pass
    if n % 3 == 0:
        save(store, key)
store.close()
"""


def test_no_row_stays_behind_unseen_while_two_processes_write(store: SharedStore, path: Path, tmp_path: Path) -> None:
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    writers = [subprocess.Popen([sys.executable, str(script), str(path), str(n)]) for n in (1_000, 2_000)]
    looks = 0
    while any(writer.poll() is None for writer in writers):
        settle_once(store)
        looks += 1
    settle(store)
    listed = {row.key: row.summary.seq for row in store.listing.page(Wanted()).rows if row.summary is not None}

    assert [writer.returncode for writer in writers] == [0, 0]
    assert looks > 0
    assert listed == {key: store.tip(key).seq for key in KEYS[:6]}
    assert store.database.connection.execute("SELECT count(*) FROM listing_marks").fetchall() == [(0,)]


def settle_once(store: SharedStore) -> None:
    for key in store.listing.behind():
        row = worked_out(store, key)
        store.listing.put(key, row.seq, row)


def test_a_writer_that_dies_leaves_its_sessions_behind(store: SharedStore, path: Path) -> None:
    dying = (
        "import os, sys; from pathlib import Path; from playhead.stores.sqlite.shared import SharedStore;"
        "from playhead.testing.drafts import draft; from playhead.testing.listing_suite import KEYS;"
        "from playhead.testing.store_harness import append;"
        "append(SharedStore(Path(sys.argv[1])), draft(n=2), key=KEYS[1]); os._exit(9)"
    )
    died = subprocess.run([sys.executable, "-c", dying, str(path)], check=False)

    assert died.returncode == 9
    assert store.listing.behind() == [KEYS[1]]


def test_every_query_of_the_rows_finds_what_it_looks_for_by_an_index(store: SharedStore) -> None:
    """A scan of all rows is right for words of two letters and for rows that are repaired, and nowhere else."""
    names = ("behind", "rows", "forks", "known_of", "page_last_active", "page_created_reversed", "count_key", "value")
    scanned = {}
    for name in names:
        sql = named_queries(PACKAGE)[f"listing_{name}"]
        bindings = dict.fromkeys(re.findall(r":(\w+)", sql))
        plan = store.database.connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
        scanned[name] = [step[3] for step in plan if str(step[3]).startswith("SCAN l")]

    assert scanned == {name: ["SCAN listing_marks"] if name == "behind" else [] for name in names}
