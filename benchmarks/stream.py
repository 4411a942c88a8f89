"""What a streamed chunk costs: `Turn.stream`, which survives the death of the process, beside one bare `write()`."""

import argparse
import os
import tempfile
from pathlib import Path
from time import perf_counter_ns, process_time_ns

import playhead
from benchmarks.measure import Result, percentile, report, written
from benchmarks.sessions import STORES
from benchmarks.workload import text_chunks

CHUNKS = 20_000


def write_bare(chunks: list[str]) -> float:
    """Write each chunk to a new file with one `write()` and return the CPU time of one in microseconds."""
    with tempfile.TemporaryDirectory() as directory:
        file = os.open(Path(directory, "chunks"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        before_ns = process_time_ns()
        for chunk in chunks:
            os.write(file, chunk.encode())
        spent_ns = process_time_ns() - before_ns
        os.close(file)
    return spent_ns / 1e3 / len(chunks)


def results(count: int) -> list[Result]:
    """Return what `count` streamed chunks cost."""
    chunks = list(text_chunks(count))
    text_bytes = sum(len(chunk.encode()) for chunk in chunks) / count
    bare_us = write_bare(chunks)
    found = [Result("text of a chunk", text_bytes, "B"), Result("bare write(): CPU", bare_us, "µs")]
    for store, url in STORES.items():
        laps_ns = []
        with tempfile.TemporaryDirectory() as directory, playhead.open(url.format(directory)) as sessions:
            with sessions.create().turn("Tell me everything") as turn:
                turn.stream(chunks[0])  # The first chunk opens the record.
                bytes_before, cpu_ns, lap_ns = written().calls, process_time_ns(), perf_counter_ns()
                for chunk in chunks:
                    turn.stream(chunk)
                    now_ns = perf_counter_ns()
                    laps_ns.append(now_ns - lap_ns)
                    lap_ns = now_ns
                cpu_us = (process_time_ns() - cpu_ns) / 1e3 / count
                bytes_written = (written().calls - bytes_before) / count
        found += [
            Result(f"{store}: chunk, CPU (× write())", cpu_us, "µs", bare_us),
            Result(f"{store}: chunk, p50", percentile(laps_ns, 50) / 1e3, "µs"),
            Result(f"{store}: chunk, p95", percentile(laps_ns, 95) / 1e3, "µs"),
            Result(f"{store}: chunk, written (× its text)", bytes_written, "B", text_bytes),
        ]
    return found


def main() -> None:
    """Print what a streamed chunk costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=CHUNKS, help="chunks to stream")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    report(results(arguments.count), as_json=arguments.json)


if __name__ == "__main__":
    main()
