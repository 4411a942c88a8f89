"""What a search costs: full text in one long session, and over a thousand sessions in one file.

The index is complete before the clock runs; what it costs to build is a figure of its own. Each kind of question is
asked in many wordings, since one word may be lucky. A very common word is one of the sixty commonest of the vocabulary.
"""

import argparse
import tempfile
from functools import partial
from random import Random
from time import process_time_ns

import playhead
from benchmarks.measure import Result, percentile, report
from benchmarks.sessions import STORES, fill
from benchmarks.workload import TURN_EVENTS, VOCABULARY, events
from playhead.session import Sessions

EVENTS = 10_000
SESSIONS = 1_000
TURNS_EACH = 3
QUESTIONS_EACH = 20

COMMON, MIDDLING, RARE = VOCABULARY[:60], VOCABULARY[300:3_000], VOCABULARY[6_000:]


def questions() -> dict[str, list[str]]:
    """Return the questions of each kind."""
    rng = Random("questions")
    return {
        "a rare word": [rng.choice(RARE) for _ in range(QUESTIONS_EACH)],
        "two words": [" ".join(rng.sample(MIDDLING, 2)) for _ in range(QUESTIONS_EACH)],
        "a very common word": [rng.choice(COMMON) for _ in range(QUESTIONS_EACH)],
    }


def results(event_count: int, session_count: int) -> list[Result]:
    """Return what searching a session of `event_count` events and a file of `session_count` sessions costs."""
    return [*in_one_session(event_count), *over_sessions(session_count)]


def in_one_session(count: int) -> list[Result]:
    """Search one session of `count` events in a bundle."""
    with tempfile.TemporaryDirectory() as directory, playhead.open(STORES["bundles"].format(directory)) as sessions:
        with sessions.create("long") as session:
            fill(session, events(count))
        return _asked(sessions, f"one session of {count:,} events", count, session="long")


def over_sessions(count: int) -> list[Result]:
    """Search `count` sessions of a few turns each in one `sqlite:` file."""
    size = TURNS_EACH * TURN_EVENTS
    with tempfile.TemporaryDirectory() as directory, playhead.open(STORES["sqlite"].format(directory)) as sessions:
        batch = list(events(count * size))
        for number in range(count):
            with sessions.create(f"session-{number:04}") as session:
                fill(session, batch[number * size : (number + 1) * size])
        return _asked(sessions, f"{count:,} sessions, {len(batch):,} events", len(batch))


def _asked(sessions: Sessions, where: str, event_count: int, *, session: str | None = None) -> list[Result]:
    """Index everything, ask everything, and return the CPU times."""
    ask = partial(sessions.search, session=session)
    before_ns = process_time_ns()
    ask("anything")
    index_us = (process_time_ns() - before_ns) / 1e3 / event_count
    found = [Result(f"{where}: index", index_us, "µs/event")]
    mixed: list[float] = []
    for kind, texts in questions().items():
        spent_ms, hits = [], 0
        for text in texts:
            before_ns = process_time_ns()
            hits += len(ask(text).hits)
            spent_ms.append((process_time_ns() - before_ns) / 1e6)
        mixed += spent_ms
        found += [
            Result(f"  {kind}: CPU, median", percentile(spent_ms, 50), "ms"),
            Result(f"  {kind}: CPU, p95", percentile(spent_ms, 95), "ms"),
            Result(f"  {kind}: hits, mean", hits / len(texts), ""),
        ]
    return [*found, Result("  all together: CPU, p95", percentile(mixed, 95), "ms")]


def main() -> None:
    """Print what a search costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="events of the one session")
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="sessions of the file")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    report(results(arguments.events, arguments.sessions), as_json=arguments.json)


if __name__ == "__main__":
    main()
