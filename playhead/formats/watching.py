"""Watching files and folders: what changed since the last look, by sizes and times alone.

Nothing is opened. A look at a thousand files takes some milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from playhead.errors import ImportFailed

FILES_MAX = 100_000
"""So many files are watched at the most: a whole disk is not looked through every second."""

DEPTH_MAX = 12
"""Folders within folders that are looked at. Codex has four levels, and sub-agents of Claude Code the same."""

_PASSED_OVER = frozenset({".git", "node_modules", "__pycache__", ".venv"})

Mark = tuple[int, int]


class Watch:
    """Files under some places, as they were at the last look. The first look is at the start."""

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = list(places)
        self._marks = self._looked()

    def changed(self) -> set[Path]:
        """Return the files that came or changed since the last look. Files that went are of no interest.

        Raises `ImportFailed` where there are more than `FILES_MAX`.
        """
        before, self._marks = self._marks, self._looked()
        return {path for path, mark in self._marks.items() if before.get(path) != mark}

    def _looked(self) -> dict[Path, Mark]:
        marks: dict[Path, Mark] = {}
        for place in self._places:
            for path, status in files_at(place):
                marks[path] = (status.st_size, status.st_mtime_ns)
                if len(marks) > FILES_MAX:
                    raise ImportFailed(f"{place} has more than {FILES_MAX} files to watch; name what is in it")
        return marks


def files_at(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files at a place. One that goes away meanwhile, or may not be looked at, is left out."""
    try:
        status = place.stat()
    except OSError:
        return
    if not place.is_dir():
        yield place, status
        return
    waiting = [(place, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if depth < DEPTH_MAX and entry.name not in _PASSED_OVER:
                        waiting.append((Path(entry.path), depth + 1))
                elif entry.is_file():
                    yield Path(entry.path), entry.stat()
            except OSError:
                continue
