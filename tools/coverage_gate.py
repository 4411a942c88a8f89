"""Fail when the tests leave branches of the given folders untaken, and say which.

Usage: python tools/coverage_gate.py COVERAGE.json FOLDER...
Reads the JSON report of coverage.py, measured with branches. Each folder has to reach the threshold by itself, in
lines and in branches: a file without branches that no test imports counts as well.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

THRESHOLD_PERCENT = 95.0


@dataclass(frozen=True, slots=True)
class Folder:
    """What the tests reach in one folder, and what they leave out, one line of text per file."""

    name: str
    branch_count: int
    branches_taken: int
    line_count: int
    lines_run: int
    gaps: tuple[str, ...]

    @property
    def branch_percent(self) -> float:
        return _percent(self.branches_taken, self.branch_count)

    @property
    def line_percent(self) -> float:
        return _percent(self.lines_run, self.line_count)

    @property
    def is_covered(self) -> bool:
        return min(self.branch_percent, self.line_percent) >= THRESHOLD_PERCENT


# The report is read as coverage.py writes it, so its values stay `Any` until they are counted.
def measure(report: dict[str, Any], folder: str) -> Folder:
    """Return what the report says about the files under `folder`.

    Raises ValueError if the report has no such file, or was measured without branches: neither is a pass.
    """
    prefix = folder.rstrip("/") + "/"
    files = {name: data for name, data in sorted(report["files"].items()) if name.replace("\\", "/").startswith(prefix)}
    if not files:
        raise ValueError(f"The coverage report names no file under {prefix}: is the folder still called that?")
    summaries = [data["summary"] for data in files.values()]
    if any("num_branches" not in summary for summary in summaries):
        raise ValueError("The coverage report was made without branches: run pytest with branch coverage on.")
    return Folder(
        name=folder,
        branch_count=sum(summary["num_branches"] for summary in summaries),
        branches_taken=sum(summary["covered_branches"] for summary in summaries),
        line_count=sum(summary["num_statements"] for summary in summaries),
        lines_run=sum(summary["covered_lines"] for summary in summaries),
        gaps=tuple(gap for name, data in files.items() if (gap := _gap(name, data))),
    )


def main(arguments: Sequence[str]) -> int:
    """Print one line per folder, the gaps of those that fall short, and return 1 if any does."""
    if len(arguments) < 2:
        print("usage: coverage_gate.py COVERAGE.json FOLDER...", file=sys.stderr)
        return 2
    report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    try:
        folders = [measure(report, name) for name in arguments[1:]]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for folder in folders:
        print(
            f"{folder.name}: {folder.branch_percent:.1f} % of {folder.branch_count} branches, "
            f"{folder.line_percent:.1f} % of {folder.line_count} lines"
        )
        if not folder.is_covered:
            print(f"  below {THRESHOLD_PERCENT:.0f} %; the tests miss:")
            print("\n".join(f"  {gap}" for gap in folder.gaps))
    return 0 if all(folder.is_covered for folder in folders) else 1


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 100.0


def _gap(name: str, data: dict[str, Any]) -> str:
    # The branches of a line that never runs say nothing more. One that leaves its function has a target of 0 or below.
    branches = [
        f"{source}->{target if target > 0 else 'exit'}"
        for source, target in data["missing_branches"]
        if source not in data["missing_lines"]
    ]
    pieces = []
    if data["missing_lines"]:
        pieces.append("lines " + ", ".join(_ranges(data["missing_lines"])))
    if branches:
        pieces.append("branches " + ", ".join(branches))
    return f"{name}: {'; '.join(pieces)}" if pieces else ""


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Return "3-5" for 3, 4, 5 and "9" for 9 alone; numbers are ascending."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
