"""A store from its URL: `bundles:DIR`, `sqlite:FILE` or `memory:`."""

from __future__ import annotations

from pathlib import Path

from playhead.errors import InvalidName
from playhead.stores.base import Durability, Store
from playhead.stores.memory import MemoryStore
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.shared import SharedStore

SCHEMES = ("bundles:DIR", "sqlite:FILE", "memory:")


def open_store(url: str, *, durability: Durability = "process", vfs: str | None = None) -> Store:
    """Open (and create where it is new) the store that `url` names.

    durability: `process` survives the death of the process; `power` also a loss of power, at each turn's end.
    vfs: the name of an SQLite VFS to go through, for fault tests. Raises `InvalidName` for a URL that names no store.
    """
    if durability not in ("process", "power"):
        raise InvalidName(f"durability must be 'process' or 'power', not {durability!r}")
    scheme, colon, rest = url.partition(":")
    if colon and scheme == "memory" and not rest:
        return MemoryStore()
    if colon and rest and scheme == "bundles":
        return BundleStore(_path(rest), durability=durability, vfs=vfs)
    if colon and rest and scheme == "sqlite":
        return SharedStore(_path(rest), durability=durability, vfs=vfs)
    raise InvalidName(f"{url!r} names no store; use one of {', '.join(SCHEMES)}")


def _path(rest: str) -> Path:
    """Return the path of a URL. As SQLAlchemy has it, `sqlite:///x` is relative and `sqlite:////x` is `/x`."""
    if "\0" in rest:
        raise InvalidName("a path cannot hold a NUL character")
    if rest == ":memory:":
        raise InvalidName("a store in memory is opened by the URL 'memory:'")
    if rest.startswith("~"):
        raise InvalidName(f"{rest!r}: the library knows no home directory; expand '~' first, or write './~…'")
    if rest.startswith("///"):
        rest = rest[3:]
    return Path(rest)
