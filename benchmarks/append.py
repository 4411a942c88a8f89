"""What an append costs through the public API, with everything on: hash chain, lease, unique ids, fold.

Three ways to append: one event at a time (`Session.append`, a commit each), a turn's events in one append, and the
verbs of a turn with its end, where snapshot, listing row and text index are brought up to date. Beside them in the same
run: the bare insert of the same JSON (`raw.py`); a bare insert of the same row, with all columns of our table and its
unique index, which shows what our own layer adds; and with `--peers` the stores of other systems.

JSON means the whole workload event as compact JSON: kind, agent, turn and body.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median_low
from time import process_time_ns

import apsw
import msgspec

import playhead
from benchmarks import peers, raw
from benchmarks.measure import AppendCost, Meter, Result, report
from benchmarks.sessions import STORES, draft, record, turn_id, turns
from benchmarks.workload import WorkloadEvent, events, json_bytes, whole_turns_count

COUNT = 10_000
DISK_COUNTS = (1_000, 10_000, 100_000)
REPEATS = 5
"""Each way runs so often, in turn with the others; its run with the median CPU time counts."""

_SAME_ROW = """
CREATE TABLE events (
  row INTEGER PRIMARY KEY, parent INTEGER NOT NULL, id TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, agent TEXT,
  turn TEXT, scope TEXT, body TEXT, salt BLOB, digest BLOB, hash BLOB NOT NULL, fact INTEGER
);
CREATE UNIQUE INDEX events_by_id ON events (row >> 32, id)
"""

Way = Callable[[Path], "Cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a way of appending cost. turn_ends_cpu_us: the part of the CPU time per event spent in the ends of turns."""

    append: AppendCost
    turn_ends_cpu_us: float = 0.0


def append_each(batch: Sequence[WorkloadEvent], url: str, directory: Path) -> Cost:
    """Append every event by itself, outside a turn. Without a text index."""
    with playhead.open(url.format(directory)) as sessions:
        session = sessions.create()
        with Meter() as meter:
            for event in batch:
                session.append(event["kind"], event["body"], agent=event["agent"], turn=turn_id(event))
                meter.lap()
            session.close()
            sessions.close()
    return Cost(meter.append_cost(len(batch), directory))


def append_turns(batch: Sequence[WorkloadEvent], url: str, directory: Path) -> Cost:
    """Append each turn's events in one transaction. Without a text index."""
    with playhead.open(url.format(directory)) as sessions:
        session = sessions.create()
        with Meter() as meter:
            for turn in turns(batch):
                session.append_all([draft(event) for event in turn])
                meter.lap()
            session.close()
            sessions.close()
    return Cost(meter.append_cost(len(batch), directory))


def speak_turns(batch: Sequence[WorkloadEvent], url: str, directory: Path) -> Cost:
    """Record turns as an agent does, verb by verb, and end each: lease, snapshot, listing row and text index."""
    ends_ns = 0
    with playhead.open(url.format(directory)) as sessions:
        session = sessions.create()
        with Meter() as meter:
            for _, asked, *steps in turns(batch):
                with session.turn(asked["body"]["parts"], id=turn_id(asked)) as turn:
                    meter.skip()
                    for event in steps:
                        if event["kind"] != "turn_ended":
                            record(turn, event)
                            meter.lap()
                    before_ns = process_time_ns()
                    turn.end()
                    ends_ns += process_time_ns() - before_ns
            sessions.close()
    return Cost(meter.append_cost(len(batch), directory), ends_ns / 1e3 / len(batch))


def insert_same_row(batch: Sequence[WorkloadEvent], directory: Path) -> Cost:
    """Insert bare rows of our own table's shape: no fold, no hash, no check."""
    encode = msgspec.json.Encoder().encode
    connection = apsw.Connection(str(directory / "events.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    connection.execute(_SAME_ROW)
    salt, hash, insert = os.urandom(16), os.urandom(32), f"INSERT INTO events VALUES ({', '.join('?' * 13)})"
    with Meter() as meter:
        for seq, event in enumerate(batch, start=1):
            body = encode(event["body"]).decode()
            kind, agent, turn = event["kind"], event["agent"], turn_id(event)
            row = ((1 << 32) + seq, seq - 1, f"{seq:020}", 1.0, kind, agent, turn, None, body, salt, None, hash, None)
            connection.execute(insert, row)
            meter.lap()
        connection.close()
    return Cost(meter.append_cost(len(batch), directory))


def ways(batch: Sequence[WorkloadEvent]) -> dict[str, Way]:
    """Return every way to keep the events, by name."""

    def limit(name: str, directory: Path) -> Cost:
        return Cost(raw.LIMITS[name](batch, directory))

    found: dict[str, Way] = {name: partial(limit, name) for name in raw.LIMITS}
    found["same row"] = partial(insert_same_row, batch)
    for store, url in STORES.items():
        found[f"{store}: append"] = partial(append_each, batch, url)
        found[f"{store}: a turn in one append"] = partial(append_turns, batch, url)
        found[f"{store}: verbs of a turn"] = partial(speak_turns, batch, url)
    return found


def measured(way: Way) -> Cost:
    """Run a way in a temporary directory that is removed again."""
    with tempfile.TemporaryDirectory() as directory:
        return way(Path(directory))


def results(count: int, *, repeats: int = REPEATS) -> list[Result]:
    """Return what appending `count` events costs, in whole turns."""
    batch = list(events(whole_turns_count(count)))
    json_mean = _json_mean(batch)
    rounds = [{name: measured(way) for name, way in ways(batch).items()} for _ in range(repeats)]
    costs = {name: _typical([one[name] for one in rounds]) for name in rounds[0]}
    bare, bare_turn = costs["apsw, commit per event"].append, costs["apsw, commit per turn"].append
    same_row = costs["same row"].append
    found = [
        Result("JSON of an event", json_mean, "B"),
        Result("write(): CPU", costs["write()"].append.cpu_us_per_event, "µs/event"),
        Result("bare insert: CPU", bare.cpu_us_per_event, "µs/event"),
        Result("bare insert: p50", bare.p50_us, "µs"),
        Result("bare insert: written", bare.bytes_written_per_event, "B/event"),
        Result("bare insert of a turn: CPU", bare_turn.cpu_us_per_event, "µs/event"),
        Result("same row: CPU (× bare insert)", same_row.cpu_us_per_event, "µs/event", bare.cpu_us_per_event),
        Result("same row: p50", same_row.p50_us, "µs", bare.p50_us),
        Result("same row: written", same_row.bytes_written_per_event, "B/event", bare.bytes_written_per_event),
    ]
    for store in STORES:
        each, batched = costs[f"{store}: append"].append, costs[f"{store}: a turn in one append"].append
        spoken, ends_us = costs[f"{store}: verbs of a turn"].append, costs[f"{store}: verbs of a turn"].turn_ends_cpu_us
        verbs_us = spoken.cpu_us_per_event - ends_us
        bare_us = bare.cpu_us_per_event
        found += [
            Result(f"{store}: append, CPU (× bare insert)", each.cpu_us_per_event, "µs/event", bare_us),
            Result(f"{store}: append, CPU (× same row)", each.cpu_us_per_event, "µs/event", same_row.cpu_us_per_event),
            Result(f"{store}: append, p50", each.p50_us, "µs", bare.p50_us),
            Result(f"{store}: append, p95", each.p95_us, "µs", bare.p95_us),
            Result(f"{store}: append, written (× JSON)", each.bytes_written_per_event, "B/event", json_mean),
            Result(f"{store}: append, to the device", each.bytes_to_device_per_event, "B/event", json_mean),
            Result(
                f"{store}: a turn in one append, CPU", batched.cpu_us_per_event, "µs/event", bare_turn.cpu_us_per_event
            ),
            Result(f"{store}: a turn in one append, written", batched.bytes_written_per_event, "B/event", json_mean),
            Result(f"{store}: verbs of a turn, CPU", verbs_us, "µs/event", bare_us),
            Result(f"{store}: verbs of a turn, p50", spoken.p50_us, "µs", bare.p50_us),
            Result(f"{store}: ends of turns, CPU", ends_us, "µs/event", bare_us),
        ]
    return found


def disk_results(counts: Sequence[int]) -> list[Result]:
    """Return the bytes that an event takes on disk at these lengths, without and with the text index."""
    found = []
    for count in counts:
        batch = list(events(whole_turns_count(count)))
        json_mean = _json_mean(batch)
        for store, url in STORES.items():
            plain = measured(partial(append_turns, batch, url)).append.bytes_on_disk_per_event
            indexed = measured(partial(speak_turns, batch, url)).append.bytes_on_disk_per_event
            found += [
                Result(f"{store}: on disk at {count:,} (× JSON)", plain, "B/event", json_mean),
                Result(f"{store}: with text index at {count:,}", indexed, "B/event", json_mean),
            ]
    return found


def peer_results(count: int, bare_us: float) -> list[Result]:
    """Return what the peers pay for the same events, beside the bare insert's CPU time; building them if need be."""
    found = []
    for peer in peers.PEERS:
        figures = peers.run(peer, "append", count, build=True)
        if figures is not None:
            json_mean = figures["json_bytes_per_event"]
            found += [
                Result(f"{peer}: append, CPU (× bare insert)", figures["cpu_us_per_event"], "µs/event", bare_us),
                Result(f"{peer}: append, p50", figures["p50_us"], "µs"),
                Result(f"{peer}: append, p95", figures["p95_us"], "µs"),
                Result(f"{peer}: append, written (× JSON)", figures["bytes_written_per_event"], "B/event", json_mean),
                Result(f"{peer}: on disk (× JSON)", figures["bytes_on_disk_per_event"], "B/event", json_mean),
            ]
    return found


def _json_mean(batch: Sequence[WorkloadEvent]) -> float:
    return sum(map(json_bytes, batch)) / len(batch)


def _typical(costs: Sequence[Cost]) -> Cost:
    """Return the run with the median CPU time."""
    middle = median_low(cost.append.cpu_us_per_event for cost in costs)
    return next(cost for cost in costs if cost.append.cpu_us_per_event == middle)


def main() -> None:
    """Print what an append costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="events to append")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs of each way")
    parser.add_argument("--disk-counts", type=int, nargs="*", default=DISK_COUNTS, help="lengths to measure on disk")
    parser.add_argument("--peers", action="store_true", help="measure the peers too; builds their environment")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    found = results(arguments.count, repeats=arguments.repeats) + disk_results(arguments.disk_counts)
    if arguments.peers:
        bare_us = next(result.value for result in found if result.name == "bare insert: CPU")
        found += peer_results(arguments.count, bare_us)
    report(found, as_json=arguments.json)


if __name__ == "__main__":
    main()
