"""Runs the peers: other session stores, each a script in an interpreter and a process of its own.

Their figures come from the same workload, with default settings, so that a benchmark of Playhead can put them beside
its own. `requirements.txt` names their versions, `environment` installs them, and nothing here imports them.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import environment

PEERS = {
    "kohaku": "KohakuTerrarium SessionStore",
    "adk_database": "ADK DatabaseSessionService",
    "adk_sqlite": "ADK SqliteSessionService",
}
OPERATIONS = ("append", "bytes", "resume")
INDEXES = {"kohaku_index": "KohakuTerrarium's session index"}
"""Peers that keep the rows of a list beside their sessions."""

INDEX_OPERATIONS = ("list", "reconcile")
RUN_TIMEOUT_S = 3_600

_ROOT = Path(__file__).parents[2]


def run(name: str, operation: str, count: int, *, build: bool = False) -> dict[str, Any] | None:
    """Return the figures of one peer, or None after printing to stderr why there are none.

    `append` and `bytes` give what `measure.AppendCost` gives, `resume` what `measure.ResumeCost` gives, each beside the
    peer's name and version. `build` makes the peers' environment if it is absent; without it a benchmark stays offline.
    """
    if name not in PEERS or operation not in OPERATIONS:
        raise ValueError(f"peer {name!r}, operation {operation!r}: expected one of {[*PEERS]} and one of {OPERATIONS}")
    return _figures(PEERS[name], name, operation, count, what="events", build=build)


def run_index(name: str, operation: str, count: int, *, build: bool = False) -> dict[str, Any] | None:
    """Return the figures of one peer's index of `count` sessions, or None after printing to stderr why there are none.

    `list` gives what the rows cost once they are there, `reconcile` what comparing them with that many files costs.
    """
    if name not in INDEXES or operation not in INDEX_OPERATIONS:
        raise ValueError(
            f"index {name!r}, operation {operation!r}: expected one of {[*INDEXES]} and one of {INDEX_OPERATIONS}"
        )
    return _figures(INDEXES[name], name, operation, count, what="sessions", build=build)


def _figures(title: str, name: str, operation: str, count: int, *, what: str, build: bool) -> dict[str, Any] | None:
    interpreter = environment.build() if build else environment.python()
    if interpreter is None:
        _explain(title, "the peers' environment is absent; --peers builds it")
        return None
    with tempfile.TemporaryDirectory() as directory:
        options = ["--count", str(count), "--dir", directory, "--json"]
        command = [str(interpreter), "-m", f"benchmarks.peers.{name}", operation, *options]
        try:
            done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _explain(title, f"{operation} of {count:,} {what} took longer than {RUN_TIMEOUT_S} s")
            return None
    if done.returncode != 0:
        _explain(title, f"{operation} of {count:,} {what} failed:\n{done.stderr.strip()[-2_000:]}")
        return None
    # A peer may print lines of its own; ours is the last.
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _explain(title: str, reason: str) -> None:
    print(f"{title} is left out: {reason}", file=sys.stderr)
