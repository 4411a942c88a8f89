"""How snapshots grow: bytes per turn over a session that is never compacted, the longest history there is."""

import argparse
import tempfile
from pathlib import Path

import apsw

import playhead
from benchmarks.measure import Result, report
from benchmarks.sessions import STORES, fill, turns
from benchmarks.workload import TURN_EVENTS, events

TURNS = 400


def snapshot_sizes(count: int) -> list[int]:
    """Return the bytes of each snapshot, one at the end of each of `count` turns, oldest first."""
    with tempfile.TemporaryDirectory() as directory:
        with playhead.open(STORES["sqlite"].format(directory)) as sessions:
            session = sessions.create()
            for turn in turns(events(count * TURN_EVENTS)):
                fill(session, turn)
                session.close()  # Saves the snapshot, as the end of a turn does.
        connection = apsw.Connection(str(Path(directory, "sessions.db")))
        sizes = [size for (size,) in connection.execute("SELECT octet_length(document) FROM snapshots ORDER BY row")]
        connection.close()
    return sizes


def results(count: int) -> list[Result]:
    """Return how snapshots grow over `count` turns."""
    sizes = snapshot_sizes(count)
    quarter = len(sizes) // 4
    first, last = sum(sizes[:quarter]) / quarter, sum(sizes[-quarter:]) / quarter
    return [
        Result(f"snapshots over {len(sizes)} turns", sum(sizes), "B"),
        Result("snapshot of a turn, mean", sum(sizes) / len(sizes), "B/turn"),
        Result("snapshot of a turn, largest", max(sizes), "B"),
        Result("mean of the last quarter (× the first)", last, "B/turn", first),
    ]


def main() -> None:
    """Print how snapshots grow."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="turns of the session, at least 4")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    report(results(arguments.turns), as_json=arguments.json)


if __name__ == "__main__":
    main()
