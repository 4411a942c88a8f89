"""What commands cost as whole processes, on a store of some hundred or thousand sessions: CPU time, and what is loaded.

The reference is an interpreter that does nothing. No command needs the packages in `HEAVY`, so none should load one;
typer itself loads pydantic where that is installed, so the list leaves it out.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import playhead
from benchmarks.measure import Result, percentile, report
from benchmarks.sessions import STORES

SESSIONS = 300
REPEATS = 7
MADE_AT_A_TIME = 200
COMMANDS = {"--version": ["--version"], "list": ["list"], "search": ["search", "upload"]}
HEAVY = ("aiosqlite", "fastapi", "google.adk", "numpy", "rich", "sqlalchemy", "sqlite3", "uvicorn")

_MAIN = "import sys; from playhead._entry import main; sys.exit(main())"
_LOADED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
"""


def results(session_count: int, store: str = "bundles", repeats: int = REPEATS) -> list[Result]:
    """Return what each command costs on a store of `session_count` sessions."""
    with tempfile.TemporaryDirectory() as directory:
        url = STORES[store].format(directory)
        _fill(url, session_count)
        bare_ms = cpu_ms("pass", [], url, repeats)
        found = [Result("a bare interpreter: CPU", bare_ms, "ms")]
        for name, arguments in COMMANDS.items():
            loaded = modules(arguments, url)
            heavy = sorted(loaded.intersection(HEAVY))
            found += [
                Result(f"playhead {name}: CPU (× bare)", cpu_ms(_MAIN, arguments, url, repeats), "ms", bare_ms),
                Result(f"playhead {name}: modules loaded", len(loaded), ""),
                Result(f"playhead {name}: heavy packages {' '.join(heavy)}".rstrip(), len(heavy), ""),
            ]
    return found


def _fill(url: str, session_count: int) -> None:
    """Make the sessions. Those of a directory are made a few hundred at a time in folders of their own and then moved
    there: a bundle is a file like any other, and a small folder is quick to look through."""
    scheme, _, place = url.partition(":")
    step = MADE_AT_A_TIME if scheme == "bundles" else session_count
    for first in range(0, session_count, step):
        made = f"{place}.{first}" if first else place
        with playhead.open(f"{scheme}:{made}") as sessions:
            for number in range(first, min(first + step, session_count)):
                session = sessions.create(f"session-{number:05}", title=f"Upload {number}")
                with session.turn(f"Why does upload {number} fail?") as turn:
                    turn.say("The connection is reset after thirty seconds.")
        for file in Path(made).glob("session-*.playhead") if first else ():
            file.rename(Path(place) / file.name)


def cpu_ms(code: str, arguments: list[str], url: str, repeats: int) -> float:
    """Return the median CPU time of a process that runs this Python code."""
    spent_ms = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(code, arguments, url)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_ms.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return percentile(spent_ms, 50)


def modules(arguments: list[str], url: str) -> set[str]:
    """Return the names of the modules that a command has loaded when it ends."""
    return set(_run(_LOADED + _MAIN, arguments, url).stderr.split())


def _run(code: str, arguments: list[str], url: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PLAYHEAD_STORE": url}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def main() -> None:
    """Print what the command line costs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="sessions in the store")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="processes per figure")
    parser.add_argument("--store", choices=STORES, default="bundles", help="kind of the store")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    report(results(arguments.sessions, arguments.store, arguments.repeats), as_json=arguments.json)


if __name__ == "__main__":
    main()
