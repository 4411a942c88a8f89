"""What the peers' scripts share: their arguments, a session built beforehand, and the one JSON line they print.

`append` and `bytes` write a new session. `resume` first lets a child process write and compact one, so that the memory
it reports is that of the resume, and nothing is in the process that a restarted agent would not have.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import AppendCost, resume_cost
from benchmarks.workload import TURN_EVENTS, WorkloadEvent, events, json_bytes, whole_turns_count

# A peer that holds a whole session in many copies must not take the machine's memory: at 100,000 events one of them
# took 24 GB. Beyond this bound it fails, and is left out with that reason.
MEMORY_BYTES_MAX = 8 * 1024**3

_BYTES = ("count", "bytes_written_per_event", "bytes_to_device_per_event", "bytes_on_disk_per_event")


@dataclass(frozen=True, slots=True)
class Peer:
    """A session store under measurement: its name in the figures, its package, and what can be measured.

    `as_json` gives an event in the peer's own terms, which shows how much longer than the workload's they are.
    `append` writes the events one by one into a new session in the empty directory. `compact` then replaces the older
    ones with a summary, as the peer does it. `resume` opens that session, loads its conversation and returns how many
    items that is; `resume_recent`, where the peer offers it, loads only the newest events instead.
    """

    name: str
    package: str
    as_json: Callable[[WorkloadEvent], str]
    append: Callable[[list[WorkloadEvent], Path], AppendCost]
    compact: Callable[[int, Path], None]
    resume: Callable[[Path], int]
    resume_recent: Callable[[Path], int] | None = None


def main(peer: Peer) -> None:
    """Run the operation that the command line names and print its figures."""
    parser = argparse.ArgumentParser(description=f"Measure {peer.name}.")
    parser.add_argument("operation", choices=("append", "bytes", "resume", "prepare"))
    parser.add_argument("--count", type=int, default=1_000, help="events in the session")
    parser.add_argument("--dir", type=Path, required=True, help="an empty directory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, the last line printed")
    arguments = parser.parse_args()
    if arguments.count < TURN_EVENTS:
        parser.error(f"--count is {arguments.count}: a session needs one whole turn, {TURN_EVENTS} events")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    figures: dict[str, Any] = {"peer": peer.name, "version": version(peer.package), "operation": arguments.operation}
    if arguments.operation in ("resume", "prepare"):
        arguments.count = whole_turns_count(arguments.count)
    if arguments.operation == "resume":
        _prepare(arguments)
        figures |= _resume(peer, arguments.count, arguments.dir)
    else:
        batch = list(events(arguments.count, arguments.seed))
        cost = asdict(peer.append(batch, arguments.dir))
        if arguments.operation == "prepare":
            peer.compact(arguments.count, arguments.dir)
        figures |= {key: cost[key] for key in _BYTES} if arguments.operation == "bytes" else cost
        figures["json_bytes_per_event"] = sum(map(json_bytes, batch)) / len(batch)
        figures["own_json_bytes_per_event"] = sum(len(peer.as_json(event).encode()) for event in batch) / len(batch)
    print(json.dumps(figures) if arguments.json else "\n".join(f"{key:<28}{value}" for key, value in figures.items()))


def _prepare(arguments: argparse.Namespace) -> None:
    module = sys.modules["__main__"].__spec__
    assert module is not None, "run a peer's script with -m"
    options = ["--count", str(arguments.count), "--seed", str(arguments.seed), "--dir", str(arguments.dir)]
    subprocess.run([sys.executable, "-m", module.name, "prepare", *options], check=True, stdout=sys.stderr)


def _resume(peer: Peer, count: int, directory: Path) -> dict[str, Any]:
    figures = asdict(resume_cost(partial(peer.resume, directory), count))
    if peer.resume_recent is not None:
        recent = resume_cost(partial(peer.resume_recent, directory), count)
        figures |= {"cpu_ms_resume_recent": recent.cpu_ms_resume, "items_loaded_recent": recent.items_loaded}
    return figures
