"""What lies where in a store on disk, and to what each file belongs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from playhead.model.ids import SessionKey
from playhead.stores.files import os_errors
from playhead.stores.names import CATALOGUE, STORE_LOG, file_stem
from playhead.stores.sqlite.bundle_trash import SUFFIX, TRASH

KEPT_SUFFIX = ".damaged"
"""Of a database that was replaced by what could be saved of it. Nothing opens it any more."""

Role = Literal[
    "database", "store log", "catalogue", "trashed", "part", "artifacts", "stream", "lock", "leftover", "kept", "other"
]
"""catalogue: a folder that is made anew whenever it is not there. part: a write-ahead log, its index, or a journal.
lock: of somebody who is in a turn, or was. leftover: of something that was being made. kept: a damaged database that
was replaced. other: nothing of ours."""

_PARTS = ("-wal", "-shm", "-journal")
_KEPT = re.compile(r"(.+?)(?:\.[0-9]+)?\.damaged(?:-wal)?")
_LEFTOVER = re.compile(r"\..+\.(?:new|old|making)")


class Lying(msgspec.Struct, frozen=True):
    """A file or folder of a store. owner: the database that it belongs to, whether or not that is there."""

    path: Path
    role: Role
    owner: Path | None = None


def place_of(url: str) -> tuple[str, Path]:
    """Return the scheme and the path of a store's URL."""
    scheme, _, place = url.partition(":")
    return scheme, Path(place)


def lying_in(url: str) -> list[Lying]:
    """Return what lies in a store, in order of paths. Raises what `os_errors` makes of a folder that cannot be read."""
    scheme, place = place_of(url)
    return list(_in_folder(place) if scheme == "bundles" else _beside(place))


def artifacts_of(url: str, database: Path, key: SessionKey) -> Path:
    """Return the folder of a session's artifacts, whether or not it is there."""
    if url.startswith("bundles:"):
        return database.with_name(f"{database.name.removesuffix(SUFFIX)}.artifacts")
    return Path(f"{database}.artifacts") / file_stem(key)


def lock_of(url: str, database: Path, number: int) -> Path:
    """Return the file whose lock is held by who is in a turn of the session of this number."""
    if url.startswith("bundles:"):
        return database.with_name(f"{database.name}.lock")
    return Path(f"{database}.locks") / str(number)


def kept_as(database: Path) -> Path:
    """Return a free name for a database that is about to be replaced."""
    kept, number = Path(f"{database}{KEPT_SUFFIX}"), 1
    while os.path.lexists(kept):
        number += 1
        kept = Path(f"{database}.{number}{KEPT_SUFFIX}")
    return kept


def all_files(url: str) -> Iterator[tuple[Path, bool]]:
    """Yield every file and folder of a store, links not followed, and whether it is a folder."""
    scheme, place = place_of(url)
    roots = [place] if scheme == "bundles" else [lying.path for lying in _own_roots(place)]
    for root in roots:
        if os.path.lexists(root):
            yield root, root.is_dir() and not root.is_symlink()
        if root.is_dir() and not root.is_symlink():
            for folder, folders, names in os.walk(root):
                yield from ((Path(folder) / name, not (Path(folder) / name).is_symlink()) for name in folders)
                yield from ((Path(folder) / name, False) for name in names)


def _in_folder(folder: Path) -> Iterator[Lying]:
    for path in _entries(folder):
        name = path.name
        if name == TRASH:
            yield from _in_trash(path)
        elif name == STORE_LOG:
            yield Lying(path, "store log", path)
        elif name == CATALOGUE:
            yield Lying(path, "catalogue")
        elif _LEFTOVER.fullmatch(name):
            yield Lying(path, "leftover")
        elif name.endswith(SUFFIX) and not name.startswith("."):
            yield Lying(path, "database", path)
        elif (kept := _KEPT.fullmatch(name)) is not None:
            yield Lying(path, "kept", path.with_name(kept[1]))
        elif (part := _part_of(path)) is not None:
            yield Lying(path, "part", part)
        elif name.endswith(f"{SUFFIX}.lock"):
            yield Lying(path, "lock", path.with_name(name.removesuffix(".lock")))
        elif name.endswith(".artifacts"):
            yield Lying(path, "artifacts", path.with_name(f"{name.removesuffix('.artifacts')}{SUFFIX}"))
        elif name.endswith(".stream"):
            yield Lying(path, "stream", path.with_name(f"{name.removesuffix('.stream')}{SUFFIX}"))
        else:
            yield Lying(path, "other")


def _in_trash(folder: Path) -> Iterator[Lying]:
    for entry in _entries(folder):
        if entry.is_dir() and not entry.is_symlink():
            yield from (Lying(path, "trashed", path) for path in _entries(entry) if path.name.endswith(SUFFIX))


def _beside(file: Path) -> Iterator[Lying]:
    yield Lying(file, "database", file)
    for lying in _own_roots(file):
        if lying.path == file or not os.path.lexists(lying.path):
            continue
        if lying.role in ("part", "kept", "leftover"):
            yield lying
            continue
        for path in _entries(lying.path):
            if path.name.startswith("."):
                yield Lying(path, "leftover")
            elif lying.role != "stream" or path.name.endswith(".stream"):
                yield Lying(path, lying.role, file)


def _own_roots(file: Path) -> Iterator[Lying]:
    """Yield the file of a shared store and what lies beside it under its name. The folder is somebody else's."""
    yield Lying(file, "database", file)
    yield from (Lying(Path(f"{file}{suffix}"), "part", file) for suffix in _PARTS)
    yield Lying(Path(f"{file}.artifacts"), "artifacts", file)
    yield Lying(Path(f"{file}.streams"), "stream", file)
    yield Lying(Path(f"{file}.locks"), "lock", file)
    for path in _entries(file.parent) if file.parent.is_dir() else ():
        name = path.name
        if (kept := _KEPT.fullmatch(name)) is not None and kept[1] == file.name:
            yield Lying(path, "kept", file)
        elif name.startswith(f".{file.name}.") and _LEFTOVER.fullmatch(name):
            yield Lying(path, "leftover")


def _part_of(path: Path) -> Path | None:
    for suffix in _PARTS:
        if path.name.endswith(f"{SUFFIX}{suffix}"):
            return path.with_name(path.name.removesuffix(suffix))
    return None


def _entries(folder: Path) -> list[Path]:
    with os_errors(folder):
        return sorted(folder / name for name in os.listdir(folder))
