"""What a resume costs at 1,000, 10,000 and 100,000 events with the same live conversation, in a fresh process each.

Rows read are counted as the database returns them: noise cannot touch that figure.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import groupby

import playhead
from benchmarks import peers
from benchmarks.append import STORES
from benchmarks.measure import Result, report, resume_cost
from benchmarks.workload import compacted_count, events, summary, whole_turns_count
from playhead.stores.sqlite.connect import Database

COUNTS = (1_000, 10_000, 100_000)
PEER_COUNT_MAX = 10_000
"""KohakuTerrarium needs more memory than this machine has to resume 100,000 events."""


def fill(url: str, count: int) -> None:
    """Write a session of whole turns, with a compaction that leaves the last two of them in the conversation."""
    count = whole_turns_count(count)
    covered = compacted_count(count)
    with playhead.open(url) as sessions, sessions.create("s") as session:
        first = last = None
        seen = 0
        for number, group in groupby(events(count), key=lambda event: event["turn"]):
            drafts = []
            for event in group:
                seen += 1
                draft = session._live.draft(
                    event["kind"], event["body"], agent=event["agent"], turn=f"turn-{event['turn']}"
                )
                drafts.append(draft)
                first = first or draft.id
                last = draft.id if seen <= covered else last
            session.append_all(drafts)
            if number % 20 == 0:
                session._live.save_snapshot()
        if last is not None:
            session.append("compaction", {"from": first, "to": last, "summary": summary()}, agent="coordinator")


def resume_once(url: str) -> int:
    """Open the store, resume the session and have its conversation; return how many messages it has."""
    with playhead.open(url) as sessions:
        return len(sessions.resume("s").conversation())


def rows_read(url: str) -> int:
    """Return how many rows of events and snapshots the database gave for one resume."""
    read = 0
    query = Database.query

    def counting(self: Database, name: str, *arguments: object, **options: object) -> object:
        nonlocal read
        rows = query(self, name, *arguments, **options)  # type: ignore[arg-type]
        if name in ("events", "events_range", "path_tail", "facts", "snapshot_chain"):
            read += len(rows)
        return rows

    Database.query = counting  # type: ignore[assignment,method-assign]
    try:
        resume_once(url)
    finally:
        Database.query = query  # type: ignore[method-assign]
    return read


def _child(url: str, count: int) -> dict[str, float]:
    """Measure in a process that did not write the session."""
    command = [sys.executable, "-m", "benchmarks.resume", "--child", url, "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def results(counts: tuple[int, ...], *, with_peers: bool = False, build: bool = False) -> list[Result]:
    """Return the figures of one run."""
    found: list[Result] = []
    for name, pattern in STORES.items():
        first: dict[str, float] | None = None
        for count in counts:
            with tempfile.TemporaryDirectory() as directory:
                url = pattern.format(directory)
                fill(url, count)
                figures = _child(url, count)
            first = first or figures
            found += [
                Result(f"{name}: resume at {count:,}, CPU", figures["cpu_ms"], "ms", first["cpu_ms"]),
                Result(f"{name}: resume at {count:,}, first in process", figures["first_ms"], "ms", first["first_ms"]),
                Result(f"{name}: resume at {count:,}, rows read", figures["rows"], "rows", first["rows"]),
                Result(f"{name}: resume at {count:,}, messages", figures["items"], "messages"),
            ]
    for peer in peers.PEERS if with_peers else ():
        for count in counts:
            figures = peers.run(peer, "resume", count, build=build) or {} if count <= PEER_COUNT_MAX else {}
            if figures:
                found.append(Result(f"{peer}: resume at {count:,}, CPU", figures["cpu_ms_resume"], "ms"))
    return found


def main() -> None:
    """Print what a resume costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--counts", type=int, nargs="*", default=list(COUNTS), help="lengths of the history")
    parser.add_argument("--peers", action="store_true", help="measure the peers too; builds their environment")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        cost = resume_cost(lambda: resume_once(arguments.child), arguments.count)
        figures = {"cpu_ms": cost.cpu_ms_resume, "first_ms": cost.cpu_ms_resume_first, "items": cost.items_loaded}
        print(json.dumps(figures | {"rows": rows_read(arguments.child)}))
        return
    found = results(tuple(arguments.counts), with_peers=arguments.peers, build=arguments.peers)
    report(found, as_json=arguments.json)


if __name__ == "__main__":
    main()
