"""What a list costs on a thousand, ten thousand and a hundred thousand sessions: pages, filters, updates, comparing.

Pages are asked of an open store, by `Sessions.list` as a program calls it. Beside their CPU time stand the rows that
SQLite returned and the steps its machine took, which no other work on the machine can disturb. A cold page is the first
of a new process, opening the store included and importing playhead left out. An update is the row that a turn's end
saves, beside a bare commit of as many bytes. Comparing looks at every session; beside it stand a scan of the directory
with a `stat` of each file, and an opening of each file that is read again.

A store is made once for each kind and count, and kept where `--folder` says so: a hundred thousand bundles take 3.3 GB.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import apsw
import msgspec

import playhead
from benchmarks import crowd, peers
from benchmarks.measure import Result, call_cpu_ms, disk_bytes, percentile, report
from benchmarks.sessions import STORES
from benchmarks.workload import VOCABULARY
from playhead.features.listing import PAGE_MAX
from playhead.session import Session
from playhead.stores.sqlite.catalogue_file import path_in

COUNTS = (1_000, 10_000, 100_000)
PAGE = 50
SMALL_PAGE = 20
COLD_STARTS = 9
CALLS = 20
UPDATES = 300
UPDATED = 20
"""Sessions that are updated in turn; a store keeps up to 24 bundles open."""

PEER_FILES = 1_000
"""The peer's files take 832 KiB each, so it compares no more of them, whatever the count."""

PEER_ENTRIES_MAX = 10_000

COMMON, RARE, SHORT = VOCABULARY[0], VOCABULARY[3_000], "qu"

SORTS: dict[str, dict[str, Any]] = {
    "by last activity": {},
    "by creation": {"sort": "created"},
    "by title": {"sort": "title"},
    "by title, reversed": {"sort": "title", "reverse": True},
}
NARROWED: dict[str, dict[str, Any]] = {
    "a user": {"user": crowd.user(1)},
    "a user, by title": {"user": crowd.user(1), "sort": "title"},
    "a status": {"status": "archived"},
    "an agent": {"agent": "reviewer"},
    "a label": {"label": "pinned"},
    "a directory": {"cwd": "/home/ada/projects/7"},
    "the last week": {"since": crowd.FIRST_AT + 7 * 86_400},
    "a common word": {"query": COMMON},
    "a common word, best first": {"query": COMMON, "sort": "relevance"},
    "a rare word": {"query": RARE},
    "two characters": {"query": SHORT},
    "two words of a user": {"query": f"{COMMON} {VOCABULARY[20]}", "user": crowd.user(1)},
}

_COLD = """
import sys, time, playhead
before = time.process_time_ns()
with playhead.open(sys.argv[1]) as sessions:
    page = sessions.list(limit=50)
    spent = time.process_time_ns() - before
assert len(page.items) == 50, page
print(spent / 1e6)
"""


def results(kind: str, session_count: int, folder: Path) -> list[Result]:
    """Return what lists cost in a store of this kind with so many sessions; it is made under the folder if need be."""
    before_ns = perf_counter_ns()
    url = crowd.ready(folder, kind, session_count)
    print(f"{url} was ready after {(perf_counter_ns() - before_ns) / 1e9:.0f} s", file=sys.stderr)
    found = _first_reading(url, session_count) if kind == "bundles" else []
    with playhead.open(url) as sessions:
        sessions.refresh()
        cold_ms = _cold_ms(url)
        found += [
            Result(f"a page of {PAGE}, cold", cold_ms, "ms"),
            *_pages(sessions, session_count),
            *_narrowed(sessions),
            *_updates(sessions, folder),
            *_compared(sessions, session_count),
            Result("the overview", call_cpu_ms(sessions.overview), "ms"),
        ]
    found += _counted(url)
    return [Result(f"{kind} {session_count:,}: {one.name}", one.value, one.unit, one.reference) for one in found]


def _first_reading(url: str, session_count: int) -> list[Result]:
    """Return what it costs to list a directory without a catalogue, beside an opening of each of its files."""
    place = Path(url.removeprefix("bundles:"))
    shutil.rmtree(path_in(place).parent, ignore_errors=True)
    thousands = session_count / 1_000
    opened_ms = call_cpu_ms(lambda: [_look_into(path) for path in place.glob("*.playhead")], repeats=1) / thousands
    with playhead.open(url) as sessions:
        before_ns = process_time_ns()
        total = sessions.list(limit=PAGE).total
        read_ms = (process_time_ns() - before_ns) / 1e6 / thousands
    assert total == session_count, f"{total} sessions are listed, {session_count} were made"
    kept = disk_bytes(path_in(place).parent) / session_count
    return [
        Result("first reading of a thousand (× opening each)", read_ms, "ms", opened_ms),
        Result("the catalogue, for each session", kept, "B"),
    ]


def _look_into(path: Path) -> object:
    connection = apsw.Connection(f"{path.as_uri()}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return connection.execute("SELECT id, summary FROM sessions").fetchall()
    finally:
        connection.close()


def _cold_ms(url: str) -> float:
    """Return the CPU time of opening the store and listing a page in a new process."""
    command = [sys.executable, "-c", _COLD, url]
    spent = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(COLD_STARTS)]
    return percentile(map(float, spent), 50)


def _pages(sessions: playhead.Sessions, session_count: int) -> Iterator[Result]:
    yield Result(f"a page of {SMALL_PAGE}", _page_ms(sessions, limit=SMALL_PAGE), "ms")
    for name, asked in SORTS.items():
        yield Result(f"a page of {PAGE} {name}", _page_ms(sessions, **asked), "ms")
    for name in ("by last activity", "by title"):
        asked = SORTS[name]
        cursor = _cursor_at(sessions, session_count // 2, **asked)
        yield Result(f"a page {name} from the middle", _page_ms(sessions, cursor=cursor, **asked), "ms")


def _cursor_at(sessions: playhead.Sessions, place: int, **asked: Any) -> str | None:
    """Return the cursor of the page that begins after so many rows."""
    cursor = None
    while place > 0:
        page = sessions.list(limit=min(place, PAGE_MAX), cursor=cursor, **asked)
        place, cursor = place - len(page.items), page.next_cursor
    return cursor


def _narrowed(sessions: playhead.Sessions) -> Iterator[Result]:
    for name, asked in NARROWED.items():
        total = sessions.list(limit=1, **asked).total
        yield Result(f"{name} ({total:,})", _page_ms(sessions, **asked), "ms")


def _page_ms(sessions: playhead.Sessions, *, limit: int = PAGE, **asked: Any) -> float:
    return call_cpu_ms(lambda: sessions.list(limit=limit, **asked), times=CALLS)


def _updates(sessions: playhead.Sessions, folder: Path) -> list[Result]:
    """Return what it costs to save a row, and the page that is asked for next; the other store object sees it too."""
    updated = [sessions.get(row.id, user=row.key.user) for row in sessions.list(limit=UPDATED).items]
    with playhead.open(sessions.url) as others:
        others.list(limit=PAGE)
        saved_us, page_ms, others_ms = [], [], []
        for number in range(UPDATES):
            session = updated[number % len(updated)]
            session.append("note", {"name": "update"})
            text = _row(session)
            save = partial(sessions.store.save_summary, session.key, session.seq, text)
            saved_us.append(_cpu_ms(save) * 1e3)
            page_ms.append(_cpu_ms(lambda: sessions.list(limit=PAGE)))
            others_ms.append(_cpu_ms(lambda: others.list(limit=PAGE)))
    bare_us = percentile(_bare_commits_us(text, folder), 50)
    for session in updated:
        session.close()
    return [
        Result("an update (× a bare commit)", percentile(saved_us, 50), "µs", bare_us),
        Result(f"a page of {PAGE} after an update", percentile(page_ms, 50), "ms"),
        Result(f"a page of {PAGE} after another store's update", percentile(others_ms, 50), "ms"),
    ]


def _row(session: Session) -> str:
    return msgspec.json.encode(session.summary()).decode()


def _bare_commits_us(text: str, folder: Path) -> list[float]:
    """Return the CPU times of commits that insert a row's JSON into a table of two columns."""
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        connection = apsw.Connection(f"{directory}/rows.db")
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, row TEXT NOT NULL)")
        found = [
            _cpu_ms(lambda: connection.execute("INSERT INTO rows (row) VALUES (?)", (text,))) * 1e3
            for _ in range(UPDATES)
        ]
        connection.close()
    return found


def _cpu_ms(work: Callable[[], object]) -> float:
    before_ns = process_time_ns()
    work()
    return (process_time_ns() - before_ns) / 1e6


def _compared(sessions: playhead.Sessions, session_count: int) -> Iterator[Result]:
    """Yield what it costs to compare every session with its row where nothing changed."""
    each_us = 1e3 / session_count
    compared_us = call_cpu_ms(sessions.refresh, repeats=3) * each_us
    scheme, _, place = sessions.url.partition(":")
    if scheme != "bundles":
        yield Result("comparing a session, nothing changed", compared_us, "µs")
        return
    scanned_us = call_cpu_ms(lambda: _scan(place), repeats=3) * each_us
    yield Result("comparing a file, nothing changed (× scan)", compared_us, "µs", scanned_us)


def _scan(place: str) -> list[tuple[str, int, int]]:
    """Return the name, time and size of each bundle: what any comparing has to read."""
    with os.scandir(place) as entries:
        return [
            (entry.name, state.st_mtime_ns, state.st_size)
            for entry in entries
            if entry.name.endswith(".playhead")
            for state in [entry.stat(follow_symlinks=False)]
        ]


def _counted(url: str) -> Iterator[Result]:
    """Yield the rows that SQLite returned for pages of an open store, and the steps of its machine."""
    asked: dict[str, dict[str, Any]] = {
        f"a page of {PAGE}": {},
        f"a page of {PAGE} by title": {"sort": "title"},
        "a user": NARROWED["a user"],
        "a status": NARROWED["a status"],
        "a rare word": NARROWED["a rare word"],
    }
    with counting() as counts, playhead.open(url) as sessions:
        for name, options in asked.items():
            sessions.list(limit=PAGE, **options)
            counts.clear()
            sessions.list(limit=PAGE, **options)
            yield Result(f"{name}: rows read", counts["rows"], "")
            yield Result(f"{name}: steps of SQLite", counts["steps"], "")


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count the rows that SQLite returns, and its machine's steps, on connections that are opened meanwhile."""
    counts: Counter[str] = Counter()

    def note(event: dict[str, Any]) -> None:
        if event["code"] == apsw.SQLITE_TRACE_ROW:
            counts["rows"] += 1
        else:
            counts["steps"] += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def trace(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_ROW | apsw.SQLITE_TRACE_PROFILE, note)

    apsw.connection_hooks.append(trace)
    try:
        yield counts
    finally:
        apsw.connection_hooks.remove(trace)


def peer_results(counts: Sequence[int]) -> list[Result]:
    """Return what the peer's index costs at these counts, building its environment if need be."""
    found: list[Result] = []
    for count in (one for one in counts if one <= PEER_ENTRIES_MAX):
        listed = peers.run_index("kohaku_index", "list", count, build=True)
        if listed is not None:
            named = f"KohakuTerrarium {count:,}"
            found += [
                Result(f"{named}: a page of {PAGE}", listed["first_page_cpu_ms"], "ms"),
                Result(f"{named}: a page from the middle", listed["middle_page_cpu_ms"], "ms"),
                Result(f"{named}: a common word", listed["search_cpu_ms"], "ms"),
                Result(f"{named}: an update", listed["update_cpu_us"], "µs"),
                Result(f"{named}: the index, for each session", listed["bytes_per_entry"], "B"),
            ]
    compared = peers.run_index("kohaku_index", "reconcile", PEER_FILES, build=True)
    if compared is not None:
        named = f"KohakuTerrarium {PEER_FILES:,}"
        found += [
            Result(f"{named}: first reading of a thousand", compared["full_cpu_ms_per_1000"], "ms"),
            Result(f"{named}: comparing a file, nothing changed", compared["unchanged_cpu_us_per_file"], "µs"),
            Result(f"{named}: a page of {PAGE}, cold", compared["cold_first_page_cpu_ms"], "ms"),
        ]
    return found


def main() -> None:
    """Print what lists cost."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sessions", type=_counts, default=COUNTS, help="sessions in a store: 1000,10000 and so on")
    parser.add_argument("--store", choices=STORES, default="bundles", help="kind of the stores")
    parser.add_argument("--folder", type=Path, help="where stores are kept for the next run; without it they are not")
    parser.add_argument("--peers", action="store_true", help="measure the peer too; builds its environment")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for count in arguments.sessions:
        report(short_results(count, arguments.store, arguments.folder), as_json=arguments.json)
    if arguments.peers:
        report(peer_results(arguments.sessions), as_json=arguments.json)


def short_results(session_count: int, kind: str = "bundles", folder: Path | None = None) -> list[Result]:
    """Return the results of a store that is kept in a folder, or removed again where there is none."""
    if folder is not None:
        return results(kind, session_count, folder)
    with tempfile.TemporaryDirectory() as made:
        return results(kind, session_count, Path(made))


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(","))


if __name__ == "__main__":
    main()
