"""Damages a database as a stranger would: with plain SQLite, in a process of its own.

`python -m tests.features.damage FILE HOW STATEMENT …` runs SQL without the guards that keep events as they are, and
with a function `digest_of(salt, body)`. HOW is `as it is`, or `hashed anew` to make every hash of the chain right again
afterwards, as one who knows the format can.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

from tests.promises.second_reader import events_of, hash_of, sha256

GUARDS = (
    "DROP TRIGGER IF EXISTS events_never_change",
    "DROP TRIGGER IF EXISTS events_never_go",
    "DROP INDEX IF EXISTS events_by_id",
)


def damage(file: str, how: str, statements: list[str]) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.create_function("digest_of", 2, lambda salt, body: sha256(salt + body.encode()))
        # The rows of lists need a newer SQLite than the standard library may have, so they are left as they were.
        triggers = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        followers = {name: sql for name, sql in triggers if name.startswith("listing_")}
        for statement in (*GUARDS, *(f"DROP TRIGGER {name}" for name in followers), *statements):
            database.execute(statement)
        for sql in followers.values():
            database.execute(sql)
        if how == "hashed anew":
            hash_anew(database)


def hash_anew(database: sqlite3.Connection) -> None:
    for (number,) in database.execute("SELECT number FROM sessions").fetchall():
        hash = bytes(32)
        for event in events_of(database, number):
            hash = hash_of(event, after=hash)
            database.execute("UPDATE events SET hash = ? WHERE row = ?", (hash, (number << 32) + event.seq))


if __name__ == "__main__":
    damage(sys.argv[1], sys.argv[2], sys.argv[3:])
