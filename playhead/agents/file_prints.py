"""What tells a file from what it was: prints of the files at a path or pattern, within named limits."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Mapping
from itertools import islice

from playhead.errors import InvalidTrigger

PATH_CHARS_MAX = 4_096

FILES_MAX = 200
"""So many files may match a pattern. Of more, those that are left out would seem to come and go."""

FOLDER_ENTRIES_MAX = 10_000
"""So many entries may lie in a folder whose files are watched by a pattern."""

HASHED_BYTES_MAX = 65_536
"""A file up to this size is told apart by its content, a larger one by size, time of change and inode."""

Print = tuple[int, int, int]
"""What tells a file from what it was without reading it: size in bytes, time of change (ns), inode."""

FilePrint = tuple[int, int, int, str]
"""The same, and of a small file a hash, else ""."""


def look_at(path: str, seen: Mapping[str, FilePrint] | None = None) -> dict[str, FilePrint]:
    """Return the files at a path or pattern: name to print, sorted by name; `{}` for none.

    seen: prints of before; where size, time and inode are the same, the file is not read. Raises `InvalidTrigger` where
    the folder cannot be read, where it has more than `FOLDER_ENTRIES_MAX` entries, and where more than `FILES_MAX` of
    them match.
    """
    check_path(path)
    folder, pattern = os.path.split(path)
    found: dict[str, FilePrint] = {}
    try:
        names = _matching(folder, pattern) if _is_pattern(pattern) else [pattern]
        for name in names:
            shown = os.fsencode(name).decode("utf-8", "replace")
            if (now := _print(os.path.join(folder, name), (seen or {}).get(shown))) is not None:
                found[shown] = now
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidTrigger(f"{path} cannot be looked at: {error.strerror}") from error
    return found


def _matching(folder: str, pattern: str) -> list[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, FOLDER_ENTRIES_MAX + 1)]
    if len(names) > FOLDER_ENTRIES_MAX:
        raise InvalidTrigger(f"{folder} has more than {FOLDER_ENTRIES_MAX:,} entries; watch a file of it, by its name")
    matching = sorted(fnmatch.filter(names, pattern))
    if len(matching) > FILES_MAX:
        raise InvalidTrigger(f"{len(matching):,} names match {pattern!r}; a pattern watches {FILES_MAX} at the most")
    return matching


def _print(path: str, seen: FilePrint | None) -> FilePrint | None:
    """Return the print of a regular file, or None. What is no regular file is never opened: a pipe would block."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return None
        plain = print_of(found)
        if seen is not None and seen[:3] == plain:
            return seen
        return (*plain, _hash(path) if found.st_size <= HASHED_BYTES_MAX else "")
    except (FileNotFoundError, NotADirectoryError):
        return None


def print_of(found: os.stat_result) -> Print:
    """Return the print of a file that was looked at. An inode fits the integers of any store."""
    return found.st_size, found.st_mtime_ns, found.st_ino & (2**63 - 1)


def _hash(path: str) -> str:
    """Return a hash of a small file, "" where it cannot be read (its size and times still tell)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return hashlib.sha256(file.read(HASHED_BYTES_MAX)).hexdigest()[:32]
    except OSError:
        return ""


def differs(before: FilePrint, now: FilePrint) -> bool:
    """Two hashes decide; a file that was only touched has not changed."""
    return before[3] != now[3] if before[3] and now[3] else before[:3] != now[:3]


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def check_path(path: str) -> None:
    """Raise `InvalidTrigger` where a path cannot be watched."""
    folder, name = os.path.split(path)
    if len(path) > PATH_CHARS_MAX or "\0" in path or not name:
        raise InvalidTrigger("a path to watch names a file, and has no NUL and no more than 4,096 characters")
    if not os.path.isabs(path):
        raise InvalidTrigger(f"a path to watch must be absolute, not {path!r}")
    if _is_pattern(folder):
        raise InvalidTrigger(f"only the last part of a path to watch may be a pattern, unlike in {path!r}")
