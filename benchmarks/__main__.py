"""A short version of every benchmark, in one table: `make bench`.

`python -m benchmarks.NAME` runs one of them whole, with `--json` for a program to read; `append`, `listing` and
`resume` take `--peers`.
"""

import argparse
from collections.abc import Callable
from functools import partial

from benchmarks import append, bundle, cli, listing, picker, resume, search, snapshot, stream
from benchmarks.measure import Result, report

SHORT: dict[str, Callable[[], list[Result]]] = {
    "append": partial(append.results, 3_000, repeats=3),
    "append: on disk": partial(append.disk_results, (1_000, 10_000)),
    "resume": partial(resume.results, (1_000, 10_000)),
    "stream": partial(stream.results, 5_000),
    "snapshot": partial(snapshot.results, 100),
    "bundle": partial(bundle.results, 50),
    "search": partial(search.results, 3_000, 50),
    "cli": partial(cli.results, 50),
    "picker": partial(picker.results, 1_000),
    "listing": partial(listing.short_results, 1_000),
}


def main() -> None:
    """Print every figure of a short run."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    for name, results in SHORT.items():
        if not arguments.json:
            print(f"\n{name}")
        report(results(), as_json=arguments.json)


if __name__ == "__main__":
    main()
