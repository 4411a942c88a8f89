"""The raw limits: the least that any store on this machine pays to keep an event as JSON.

One table with an integer key and the event as JSON text; no index, no hash chain, no lease. `apsw` commits once per
event or once per turn, and `write()` appends lines to a file. Encoding is part of each, as it is of any store.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import msgspec

from benchmarks.measure import AppendCost, Meter, Result, report
from benchmarks.workload import TURN_EVENTS, WorkloadEvent, events, json_bytes

_INSERT = "INSERT INTO events (body) VALUES (?)"


def insert_each(batch: Sequence[WorkloadEvent], directory: Path) -> AppendCost:
    """Insert every event in a transaction of its own into a new database in the empty directory."""
    return _insert(batch, directory, events_per_commit=1)


def insert_turns(batch: Sequence[WorkloadEvent], directory: Path) -> AppendCost:
    """Insert a turn's worth of events in each transaction, into a new database in the empty directory."""
    return _insert(batch, directory, events_per_commit=TURN_EVENTS)


def write_each(batch: Sequence[WorkloadEvent], directory: Path) -> AppendCost:
    """Write every event as a line with one `write()`, to a new file in the empty directory. Nothing is synced."""
    encode = msgspec.json.Encoder().encode
    file = os.open(directory / "events.jsonl", os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600)
    with Meter() as meter:
        for event in batch:
            os.write(file, encode(event) + b"\n")
            meter.lap()
        os.close(file)
    return meter.append_cost(len(batch), directory)


LIMITS: dict[str, Callable[[Sequence[WorkloadEvent], Path], AppendCost]] = {
    "apsw, commit per event": insert_each,
    "apsw, commit per turn": insert_turns,
    "write()": write_each,
}


def limits(batch: Sequence[WorkloadEvent]) -> dict[str, AppendCost]:
    """Return the cost of each raw limit, by name, measured in temporary directories that are removed again."""
    costs = {}
    for name, limit in LIMITS.items():
        with tempfile.TemporaryDirectory() as directory:
            costs[name] = limit(batch, Path(directory))
    return costs


def _insert(batch: Sequence[WorkloadEvent], directory: Path, *, events_per_commit: int) -> AppendCost:
    encode = msgspec.json.Encoder().encode
    connection = apsw.Connection(str(directory / "events.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")
    execute = connection.execute
    with Meter() as meter:
        if events_per_commit == 1:
            for event in batch:
                execute(_INSERT, (encode(event).decode(),))
                meter.lap()
        else:
            for start in range(0, len(batch), events_per_commit):
                execute("BEGIN IMMEDIATE")
                for event in batch[start : start + events_per_commit]:
                    execute(_INSERT, (encode(event).decode(),))
                execute("COMMIT")
                meter.lap()
        connection.close()
    return meter.append_cost(len(batch), directory)


def main() -> None:
    """Print the raw limits."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="events to write")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    batch = list(events(arguments.count, arguments.seed))
    json_bytes_mean = sum(map(json_bytes, batch)) / len(batch)
    results = [Result("JSON of an event", json_bytes_mean, "B")]
    for name, cost in limits(batch).items():
        results += [
            Result(f"{name}: CPU", cost.cpu_us_per_event, "µs/event"),
            Result(f"{name}: p50 of a step", cost.p50_us, "µs"),
            Result(f"{name}: p95 of a step", cost.p95_us, "µs"),
            Result(f"{name}: written", cost.bytes_written_per_event, "B/event", json_bytes_mean),
            Result(f"{name}: to the device", cost.bytes_to_device_per_event, "B/event", json_bytes_mean),
            Result(f"{name}: on disk", cost.bytes_on_disk_per_event, "B/event", json_bytes_mean),
        ]
    report(results, as_json=arguments.json)


if __name__ == "__main__":
    main()
