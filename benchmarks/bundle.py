"""What a bundle costs: the smallest file, its creation, and an open session that nobody writes to.

Creation is compared with running the schema in a new file, as a store would that had no image of an empty database to
copy. Open sessions are measured in a fresh process: memory that another benchmark has freed would hide theirs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time_ns

import apsw

import playhead
from benchmarks.measure import Result, report
from playhead.stores.named_queries import read_sql
from playhead.stores.sqlite.connect import PACKAGE

CREATED = 200
IDLE = 20
"""Sessions held open at a time; a store keeps up to 24 bundles open."""


def results(count: int) -> list[Result]:
    """Return what bundles cost, `count` of them created."""
    with tempfile.TemporaryDirectory() as directory:
        schema_ms = schema_cpu_ms(Path(directory, "schemas"), count)
        url = f"bundles:{directory}/sessions"
        created_ms = creation_cpu_ms(url, count)
        sizes = [path.stat().st_size for path in Path(directory, "sessions").glob("*.playhead")]
        idle = idle_in_fresh_process(url)
    return [
        Result("smallest bundle", max(sizes) / 1024, "KiB"),
        Result("running the schema in a new file: CPU", schema_ms, "ms"),
        Result("creating a session: CPU (× the schema)", created_ms, "ms", schema_ms),
        Result("idle open session: file descriptors", idle["descriptors"], ""),
        Result("idle open session: memory", idle["rss_bytes"] / 1024, "KiB"),
    ]


def schema_cpu_ms(directory: Path, count: int) -> float:
    """Return the CPU time of opening a new database file, running the schema, and closing it."""
    directory.mkdir()
    schema = read_sql(PACKAGE, "schema.sql")
    before_ns = process_time_ns()
    for number in range(count):
        connection = apsw.Connection(str(directory / f"{number}.db"))
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF")
        connection.execute(schema)
        connection.close()
    return (process_time_ns() - before_ns) / 1e6 / count


def creation_cpu_ms(url: str, count: int) -> float:
    """Return the CPU time of `Sessions.create`, the first of the process left out."""
    with playhead.open(url) as sessions:
        sessions.create("first")
        before_ns = process_time_ns()
        for number in range(count):
            sessions.create(f"session-{number}")
        return (process_time_ns() - before_ns) / 1e6 / count


def idle_in_this_process(url: str) -> dict[str, float]:
    """Return the file descriptors and resident bytes that an open session adds, which was appended to once."""
    with playhead.open(url) as sessions:
        kept = [sessions.get("first")]
        kept[0].append("note", {"name": "warm"})
        descriptors, rss = len(os.listdir("/proc/self/fd")), _rss_bytes()
        for number in range(IDLE):
            kept.append(sessions.get(f"session-{number}"))
            kept[-1].append("note", {"name": "written to"})
        return {
            "descriptors": (len(os.listdir("/proc/self/fd")) - descriptors) / IDLE,
            "rss_bytes": (_rss_bytes() - rss) / IDLE,
        }


def idle_in_fresh_process(url: str) -> dict[str, float]:
    """Return what `idle_in_this_process` measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bundle", "--only", url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _rss_bytes() -> int:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) * 1024


def main() -> None:
    """Print what a bundle costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=CREATED, help=f"bundles to create, at least {IDLE}")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(idle_in_this_process(arguments.only)))
        return
    report(results(arguments.count), as_json=arguments.json)


if __name__ == "__main__":
    main()
