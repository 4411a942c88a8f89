"""What the picker costs on ten thousand sessions: reading them, the first paint, and each key.

A key is a character more of the filter, or an arrow, with the rows that are formatted for the paint after it. The whole
is the application on a screen that keeps nothing, from its start until a session is picked, rows being there.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter_ns

from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import playhead
from benchmarks.measure import Result, percentile, report
from playhead.cli.picker_rows import Rows
from playhead.cli.picker_screen import shown
from playhead.features.listing import Listed, Wanted, all_sessions

SESSIONS = 10_000
HEIGHT, WIDTH = 50, 160
TYPED = "upload 777"
ARROWS = 200


def results(session_count: int) -> list[Result]:
    """Return what the picker costs on a store of `session_count` sessions."""
    with tempfile.TemporaryDirectory() as directory:
        with playhead.open(f"sqlite:{directory}/sessions.db") as sessions:
            for number in range(session_count):
                sessions.create(f"session-{number:05}", title=f"Upload {number}", cwd="/home/ada").close()
            listed: list[Listed] = []
            reading_ms = _wall_ms(lambda: listed.extend(_listed(sessions)))
    rows = Rows(time.time())
    filling_ms = _wall_ms(lambda: rows.fill(listed))
    first_ms = _wall_ms(lambda: rows.in_view(HEIGHT, WIDTH))
    typed_ms = [_key_ms(rows, lambda end=end: rows.filter(TYPED[:end])) for end in range(1, len(TYPED) + 1)]  # type: ignore[misc]
    cleared_ms = _key_ms(rows, lambda: rows.filter(""))
    arrows_ms = [_key_ms(rows, lambda: rows.move(1)) for _ in range(ARROWS)]
    return [
        Result("picker: reading the sessions", reading_ms, "ms"),
        Result("picker: taking the rows", filling_ms, "ms"),
        Result("picker: first rows in view", first_ms, "ms"),
        Result("picker: a character of the filter, slowest", max(typed_ms), "ms"),
        Result("picker: the filter cleared", cleared_ms, "ms"),
        Result("picker: an arrow, p95", percentile(arrows_ms, 95), "ms"),
        Result("picker: start, paint and pick", _wall_ms(lambda: _picked(rows)), "ms"),
    ]


def _listed(sessions: playhead.Sessions) -> list[Listed]:
    return all_sessions(sessions.store, Wanted(), clock=time.time, entropy=os.urandom)


def _key_ms(rows: Rows, key: Callable[[], None]) -> float:
    """Return the time of a key, with the rows of the paint after it."""

    def press() -> None:
        key()
        rows.in_view(HEIGHT, WIDTH)

    return _wall_ms(press)


def _picked(rows: Rows) -> None:
    with create_pipe_input() as source:
        source.send_text("\r")
        shown(rows, load=Future, preview=lambda key, width: Future(), source=source, screen=DummyOutput())


def _wall_ms(work: Callable[[], object]) -> float:
    before = perf_counter_ns()
    work()
    return (perf_counter_ns() - before) / 1e6


def main() -> None:
    """Print what the picker costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="sessions in the store")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    report(results(arguments.sessions), as_json=arguments.json)


if __name__ == "__main__":
    main()
