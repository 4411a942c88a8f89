"""What a piece of work costs: CPU time, latency, bytes written and kept, memory.

CPU times, bytes and ratios compare between machines and survive a busy one; wall times do not. So every result may
carry a reference measured in the same run, and the table shows how many times the reference it is. Bytes written and
memory are read from /proc, so the benchmarks run on Linux. Peers import this file: only the standard library is used.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns
from types import TracebackType
from typing import NamedTuple, Self

REPEAT_LIMIT_S = 10.0  # once the repeats of a resume have taken this long, there are no more


class Written(NamedTuple):
    """Bytes this process has written since it began, all its threads together."""

    calls: int  # handed to write(): exact, whatever the page cache does later
    device: int  # pages dirtied: counts memory-mapped writes, and a page dirtied twice before it is flushed only once


@dataclass(frozen=True, slots=True)
class AppendCost:
    """What it cost to append `count` events and close. Latencies are per step: one event or one batch."""

    count: int
    cpu_us_per_event: float
    p50_us: float
    p95_us: float
    bytes_written_per_event: float
    bytes_to_device_per_event: float
    bytes_on_disk_per_event: float


@dataclass(frozen=True, slots=True)
class ResumeCost:
    """What it cost to open a session of `count` events and have its conversation: the median of the repeats.

    The first is apart: it pays for what a process does once, such as filling a driver's caches.
    """

    count: int
    cpu_ms_resume: float
    cpu_ms_resume_first: float
    wall_ms_resume: float
    peak_rss_mb: float
    items_loaded: int


@dataclass(frozen=True, slots=True)
class Result:
    """One figure with its unit, and the figure of the same run it is compared with, if any."""

    name: str
    value: float
    unit: str
    reference: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the reference the value is; None without a reference or with one of 0."""
        return self.value / self.reference if self.reference else None


class Meter:
    """Measures the steps inside a `with`: call `lap` after each one. Not to be shared between threads.

    The setup of a store goes before the `with`; closing it goes inside, after the last lap, so that a last flush or
    checkpoint counts as CPU and bytes (spread over the events) and not as anybody's latency.
    """

    def __init__(self) -> None:
        self._laps: list[int] = []
        self._skipped: set[int] = set()
        self._cpu_ns = 0
        self._written = Written(0, 0)

    def __enter__(self) -> Self:
        self._written = written()
        self._cpu_ns = process_time_ns()
        self._laps.append(perf_counter_ns())
        return self

    def lap(self) -> None:
        """Note that a step has ended."""
        self._laps.append(perf_counter_ns())

    def skip(self) -> None:
        """Begin a step here: what happened since the last lap counts as CPU and bytes, and as nobody's latency."""
        self._skipped.add(len(self._laps))
        self.lap()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cpu_ns = process_time_ns() - self._cpu_ns
        after = written()
        self._written = Written(after.calls - self._written.calls, after.device - self._written.device)

    def append_cost(self, count: int, directory: Path) -> AppendCost:
        """Return what the `count` events cost, with what `directory`, which holds nothing else, takes on disk now."""
        steps_us = [
            (self._laps[index] - self._laps[index - 1]) / 1e3
            for index in range(1, len(self._laps))
            if index not in self._skipped
        ]
        return AppendCost(
            count=count,
            cpu_us_per_event=self._cpu_ns / 1e3 / count,
            p50_us=percentile(steps_us, 50),
            p95_us=percentile(steps_us, 95),
            bytes_written_per_event=self._written.calls / count,
            bytes_to_device_per_event=self._written.device / count,
            bytes_on_disk_per_event=disk_bytes(directory) / count,
        )


def resume_cost(resume: Callable[[], int], count: int, *, repeats: int = 5) -> ResumeCost:
    """Return the cost of `resume`, which opens, loads and closes a session of `count` events and returns the items.

    The peak memory means something only in a process that did not write the session.
    """
    cpu_ms: list[float] = []
    wall_ms: list[float] = []
    items = 0
    while len(cpu_ms) < repeats and sum(wall_ms) < REPEAT_LIMIT_S * 1e3:
        cpu_ns, wall_ns = process_time_ns(), perf_counter_ns()
        items = resume()
        wall_ms.append((perf_counter_ns() - wall_ns) / 1e6)
        cpu_ms.append((process_time_ns() - cpu_ns) / 1e6)
    return ResumeCost(count, median(cpu_ms), cpu_ms[0], median(wall_ms), peak_rss_bytes() / 1e6, items)


def call_cpu_ms(work: Callable[[], object], *, repeats: int = 5, times: int = 1) -> float:
    """Return the CPU time of a call: the median of the repeats, each of which calls it so many times."""
    spent_ms: list[float] = []
    for _ in range(repeats):
        before_ns = process_time_ns()
        for _ in range(times):
            work()
        spent_ms.append((process_time_ns() - before_ns) / 1e6 / times)
    return median(spent_ms)


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the nearest-rank percentile (0 to 100), or 0.0 if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[max(1, ceil(len(ordered) * percent / 100)) - 1]


def written() -> Written:
    """Return the bytes this process has written so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return Written(calls=int(fields["wchar"]), device=int(fields["write_bytes"]))


def disk_bytes(directory: Path) -> int:
    """Return the size of all files under the directory, by their length: allocation differs between file systems."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def peak_rss_bytes() -> int:
    """Return the most memory this process has held. getrusage will not do: it starts at what the parent held."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def report(results: Iterable[Result], *, as_json: bool = False) -> None:
    """Print the results, as a table or as one JSON object a line with the same facts."""
    for result in results:
        if as_json:
            print(json.dumps({**asdict(result), "ratio": result.ratio}))
        else:
            times = "" if result.ratio is None else f"{result.ratio:>10.2f} ×"
            print(f"{result.name:<48}{result.value:>14,.1f} {result.unit:<12}{times}".rstrip())
