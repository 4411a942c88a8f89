"""KohakuTerrarium's session index: `python -m benchmarks.peers.kohaku_index list --count 1000 --dir EMPTY`.

`list` fills an index through its own upsert, with entries such as a session of two messages has, and measures pages,
a search and an update. `reconcile` writes that many session files (one through its store, and copies of it: its index
goes by a file's name) and lets the index read them all, compare them again, and open in a new process, which compares
them first. What its web server adds to a page, a `stat` of each row's working directory, is left out.
"""
# mypy: disable-error-code="import-not-found"

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from random import Random
from time import process_time_ns
from typing import Any

from kohakuterrarium.session.store import SessionStore
from kohakuterrarium.studio.persistence.session_index import (
    SessionIndex,
    get_session_index_default,
    read_entry_from_disk,
    sidecar_path_for,
)
from kohakuterrarium.studio.persistence.session_index.reconcile import reconcile

from benchmarks.measure import call_cpu_ms, disk_bytes
from benchmarks.workload import VOCABULARY, prose

AGENT = "coordinator"
PAGE = 50
UPDATES = 100
_COLD = """
import sys, time
from pathlib import Path
from kohakuterrarium.studio.persistence.session_index import get_session_index_default
before = time.process_time_ns()
page = get_session_index_default(Path(sys.argv[1])).list(limit=50)
print((time.process_time_ns() - before) / 1e6)
"""


def listing(count: int, directory: Path) -> dict[str, Any]:
    """Return what pages and an update cost with `count` entries."""
    written = directory / "written"
    written.mkdir()
    entry = read_entry_from_disk(_session(written / "session-000000.kohakutr"))
    assert entry is not None, "it was written just now"
    rng = Random(1)
    entries = [
        replace(
            entry,
            filename=f"session-{number:06}.kohakutr",
            name=f"session-{number:06}",
            title=prose(rng, 40),
            preview=prose(rng, 160),
            last_active=f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}.{number:06}+00:00",
            pwd=f"/home/ada/projects/{number % 40}",
        )
        for number in range(count)
    ]
    before_ns = process_time_ns()
    index = SessionIndex(sidecar_path_for(directory))
    index.upsert_many(entries)
    filled_ns = process_time_ns() - before_ns
    updated = iter(entries * (UPDATES * 5 // count + 1))
    figures = {
        "filled_cpu_us_per_entry": filled_ns / 1e3 / count,
        "first_page_cpu_ms": call_cpu_ms(lambda: index.list(limit=PAGE), repeats=3),
        "middle_page_cpu_ms": call_cpu_ms(lambda: index.list(limit=PAGE, offset=count // 2), repeats=3),
        "search_cpu_ms": call_cpu_ms(lambda: index.list(search=VOCABULARY[0], limit=PAGE), repeats=3),
        "update_cpu_us": call_cpu_ms(lambda: index.upsert(next(updated)), repeats=5, times=UPDATES) * 1e3,
    }
    index.close()
    shutil.rmtree(written)
    return {**figures, "bytes_per_entry": disk_bytes(directory) / count}


def reconciling(count: int, directory: Path) -> dict[str, Any]:
    """Return what reading all of `count` files, comparing them again, and a first page in a new process cost."""
    first = _session(directory / "session-000000.kohakutr")
    for number in range(1, count):
        shutil.copyfile(first, directory / f"session-{number:06}.kohakutr")
    index = SessionIndex(sidecar_path_for(directory))
    before_ns = process_time_ns()
    found = reconcile(index, directory, full=True)
    full_ns = process_time_ns() - before_ns
    assert found.read == index.count() == count, "all were read"
    unchanged_ms = call_cpu_ms(lambda: reconcile(index, directory), repeats=3)
    index.close()
    get_session_index_default(directory).close()  # Now it counts as filled: a new process compares, and reads none.
    cold_ms = sorted(_cold_ms(directory) for _ in range(3))[1]
    return {
        "full_cpu_ms_per_1000": full_ns / 1e6 / count * 1e3,
        "unchanged_cpu_us_per_file": unchanged_ms * 1e3 / count,
        "cold_first_page_cpu_ms": cold_ms,
        "bytes_per_session": first.stat().st_size,
    }


def _session(path: Path) -> Path:
    """Write and close a session of one turn, with the snapshot from which the index takes its preview."""
    store = SessionStore(path, writer_lock=True)
    store.init_meta(path.stem, "agent", "agents/coordinator.yaml", "/home/ada/projects/1", [AGENT])
    asked, answered = prose(Random(1), 160), prose(Random(2), 400)
    store.append_event(AGENT, "user_message", {"content": asked}, turn_index=1, branch_id=1, parent_branch_path=[])
    store.append_event(AGENT, "text_chunk", {"content": answered}, turn_index=1, branch_id=1, parent_branch_path=[])
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    store.save_conversation(AGENT, messages)
    store.close()
    return path


def _cold_ms(directory: Path) -> float:
    done = subprocess.run([sys.executable, "-c", _COLD, str(directory)], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Run the operation that the command line names and print its figures."""
    parser = argparse.ArgumentParser(description="Measure KohakuTerrarium's session index.")
    parser.add_argument("operation", choices=("list", "reconcile"))
    parser.add_argument("--count", type=int, default=1_000, help="sessions in the index")
    parser.add_argument("--dir", type=Path, required=True, help="an empty directory")
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, the last line printed")
    arguments = parser.parse_args()
    measured = (listing if arguments.operation == "list" else reconciling)(arguments.count, arguments.dir)
    named = {"peer": "KohakuTerrarium session index", "version": version("kohakuterrarium")}
    figures = {**named, "operation": arguments.operation, "count": arguments.count, **measured}
    print(json.dumps(figures) if arguments.json else "\n".join(f"{key:<28}{value}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
