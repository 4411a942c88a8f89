"""A short version of every benchmark, one table: `make bench`. `python -m benchmarks.NAME` runs one whole."""

from benchmarks import append, command_line, resume, session
from benchmarks.measure import report

COUNT = 3_000


def main() -> None:
    """Print all figures of a short run."""
    report(append.results(COUNT))
    report(resume.results((1_000, 10_000)))
    report(session.results())
    report(command_line.results())


if __name__ == "__main__":
    main()
