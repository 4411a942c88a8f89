"""What a resume costs at 1,000, 10,000 and 100,000 events with the same live conversation, each in a fresh process.

A resume opens the store, takes the session up (`Sessions.resume`, lease included) and has the conversation that a model
is sent. The history is whole turns, each with its snapshot, and then a compaction that leaves the last two turns in the
conversation. Rows are counted as the database returns them, which no other work on the machine can disturb.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any

import playhead
from benchmarks import peers
from benchmarks.measure import Result, report, resume_cost
from benchmarks.sessions import STORES, draft, turns
from benchmarks.workload import compacted_count, events, summary, whole_turns_count
from playhead.stores.sqlite.connect import Database

COUNTS = (1_000, 10_000, 100_000)
PEERS_COUNT_MAX = 10_000
"""The peers resume no longer sessions: at 100,000 events one of them needs more than `script.MEMORY_BYTES_MAX`."""

REPEATS = 15

EVENT_QUERIES = frozenset({"events", "events_newest_first", "events_range", "path_tail", "facts"})
SNAPSHOT_QUERIES = frozenset({"snapshot_chain"})

_ID = "session"


def fill(url: str, count: int) -> None:
    """Write a session of `count` events in whole turns, with a snapshot after each, and a compaction."""
    covered = compacted_count(count)
    ids: list[str] = []
    with playhead.open(url) as sessions, sessions.create(_ID) as session:
        for turn in turns(events(whole_turns_count(count))):
            ids += [event.id for event in session.append_all([draft(event) for event in turn])]
            session.close()  # Saves the snapshot and the listing row, as the end of a turn does.
        if covered:
            body = {"from": ids[0], "to": ids[covered - 1], "summary": summary()}
            session.append("compaction", body, agent="coordinator")


def resume(url: str) -> int:
    """Open the store, resume the session and return how many messages its conversation has."""
    with playhead.open(url) as sessions:
        return len(sessions.resume(_ID).conversation())


def rows_read(url: str) -> Counter[str]:
    """Return how many rows the database gives for one resume, by query."""
    read: Counter[str] = Counter()
    query = Database.query

    def counting(database: Database, name: str, *arguments: Any, **options: Any) -> list[Any]:
        rows = query(database, name, *arguments, **options)
        read[name] += len(rows)
        return rows

    Database.query = counting  # type: ignore[assignment, method-assign]
    try:
        resume(url)
    finally:
        Database.query = query  # type: ignore[method-assign]
    return read


def in_this_process(url: str, count: int) -> dict[str, float]:
    """Return the figures of a resume in this process, which should not have written the session."""
    cost = resume_cost(lambda: resume(url), count, repeats=REPEATS)
    read = rows_read(url)
    return {
        "cpu_ms": cost.cpu_ms_resume,
        "cpu_ms_first": cost.cpu_ms_resume_first,
        "peak_rss_mb": cost.peak_rss_mb,
        "messages": cost.items_loaded,
        "event_rows": sum(rows for name, rows in read.items() if name in EVENT_QUERIES),
        "snapshot_rows": sum(rows for name, rows in read.items() if name in SNAPSHOT_QUERIES),
        "rows": read.total(),
    }


def in_fresh_process(url: str, count: int) -> dict[str, float]:
    """Return what `in_this_process` measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.resume", "--only", url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def results(counts: Sequence[int]) -> list[Result]:
    """Return what a resume costs at these lengths, each figure beside that of the shortest."""
    found = []
    for store, pattern in STORES.items():
        shortest: dict[str, float] = {}
        for count in counts:
            with tempfile.TemporaryDirectory() as directory:
                url = pattern.format(directory)
                fill(url, count)
                figures = in_fresh_process(url, count)
            at = f"{store}: resume at {count:,}"
            units = {
                "cpu_ms": ("CPU", "ms"),
                "cpu_ms_first": ("first CPU", "ms"),
                "messages": ("messages", ""),
                "event_rows": ("rows of events read", "rows"),
                "snapshot_rows": ("rows of snapshots read", "rows"),
                "rows": ("all rows read", "rows"),
                "peak_rss_mb": ("peak memory", "MB"),
            }
            for name, (label, unit) in units.items():
                found.append(Result(f"{at}, {label}", figures[name], unit, shortest.get(name)))
            shortest = shortest or figures
    return found


def peer_results(counts: Sequence[int]) -> list[Result]:
    """Return what a resume costs the peers up to `PEERS_COUNT_MAX` events; building them if need be."""
    found = []
    for count in counts:
        if count > PEERS_COUNT_MAX:
            print(f"The peers are left out at {count:,} events: see PEERS_COUNT_MAX.", file=sys.stderr)
    for peer in peers.PEERS:
        shortest: dict[str, Any] = {}
        for count in counts:
            figures = peers.run(peer, "resume", count, build=True) if count <= PEERS_COUNT_MAX else None
            if figures is None:
                continue
            for name, label, unit in (("cpu_ms_resume", "CPU", "ms"), ("peak_rss_mb", "peak memory", "MB")):
                found.append(Result(f"{peer}: resume at {count:,}, {label}", figures[name], unit, shortest.get(name)))
            shortest = shortest or figures
    return found


def main() -> None:
    """Print what a resume costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--counts", type=int, nargs="*", default=COUNTS, help="lengths of the history")
    parser.add_argument("--peers", action="store_true", help="measure the peers too; builds their environment")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        url, count = arguments.only
        print(json.dumps(in_this_process(url, int(count))))
        return
    found = results(arguments.counts)
    if arguments.peers:
        found += peer_results(arguments.counts)
    report(found, as_json=arguments.json)


if __name__ == "__main__":
    main()
