"""Bringing a database's schema up to date: numbered migrations, applied in order, each in one transaction.

A migration never changes once it has shipped. `schema.sql` equals all of them applied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources

from playhead.errors import NewerFormat
from playhead.stores.named_queries import read_sql


@cache
def migrations(package: str) -> tuple[tuple[int, str], ...]:
    """Return (version, SQL) of every migration that ships inside `package`, lowest version first."""
    folder = resources.files(package).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple((int(name.split("_", 1)[0]), read_sql(package, f"migrations/{name}")) for name in names)


def latest_version(package: str) -> int:
    """Return the version of the newest migration."""
    return migrations(package)[-1][0]


def migrate(what: str, package: str, *, found: int, apply: Callable[[int, str], None]) -> None:
    """Apply every migration above version `found`. `apply(version, sql)` runs one in a transaction and records it.

    Raises `NewerFormat`, with `what` named, where the database is of a version above the newest migration; it is left
    untouched then.
    """
    steps = migrations(package)
    newest = steps[-1][0]
    if found > newest:
        raise NewerFormat(what, found=found, supported=newest)
    for version, sql in steps:
        if version > found:
            apply(version, sql)
