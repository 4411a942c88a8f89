"""Who may read a store's files: nobody but their owner, who must be able to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from playhead.features.doctor.findings import FIX, Finding
from playhead.stores.files import os_errors
from playhead.stores.sqlite.layout import all_files, place_of

FILE_MODE = 0o600
FOLDER_MODE = 0o700
NAMED_MAX = 3
"""So many files are named in a finding; their number says the rest."""


def mode_findings(url: str) -> Iterator[Finding]:
    """Yield a finding for files that others can open, one for those that their owner cannot, one for those of another
    user."""
    place = str(place_of(url)[1])
    wrong = _wrong(url)
    open_to_others = [path for path, mode in wrong if mode & 0o077]
    shut = [path for path, mode in wrong if not mode & 0o077]
    if open_to_others:
        what = f"other users of this machine can open {_named(open_to_others)}"
        yield Finding("permissions", place, what, f"`{FIX}` takes that from them", is_mendable=True)
    if shut:
        what = f"you cannot read and write {_named(shut)}, though they are yours"
        yield Finding("permissions", place, what, f"`{FIX}` allows it", is_mendable=True)
    if others := [path for path, _ in all_files(url) if not _is_own(path)]:
        what = f"{_named(others)} belong to another user"
        yield Finding("permissions", place, what, "have their owner, or the system's, give them to you (`chown`)")


def mend_modes(url: str) -> int:
    """Give every own file and folder the mode that it should have; return how many had another one."""
    count = 0
    while wrong := _wrong(url):  # A folder that is opened up may hold more.
        for path, _ in wrong:
            with os_errors(path):
                os.chmod(path, FOLDER_MODE if path.is_dir() else FILE_MODE)
            count += 1
    return count


def _wrong(url: str) -> list[tuple[Path, int]]:
    """Return own files and folders whose mode is another one, with it. Links have none of their own."""
    found = []
    for path, is_folder in all_files(url):
        state = _state(path)
        if state is None or not _is_own(path) or not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            continue
        mode = stat.S_IMODE(state.st_mode) & 0o777
        wanted = FOLDER_MODE if is_folder else FILE_MODE
        if os.name == "posix" and mode != wanted:
            found.append((path, mode))
    return found


def _is_own(path: Path) -> bool:
    state = _state(path)
    return state is None or not hasattr(os, "geteuid") or state.st_uid == os.geteuid()


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None  # It went away, or its folder cannot be entered, which is a finding of its own.


def _named(paths: list[Path]) -> str:
    shown = ", ".join(str(path) for path in paths[:NAMED_MAX])
    return shown if len(paths) <= NAMED_MAX else f"{shown} and {len(paths) - NAMED_MAX} more"
