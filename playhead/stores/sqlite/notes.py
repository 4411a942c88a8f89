"""The store log in SQLite: notes that belong to no session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.model.codec import decode_body, encode_body
from playhead.model.ids import check_name
from playhead.stores.sqlite.connect import Database

NAME_CHARS_MAX = 8_192
"""Longest topic, name or id of a note; a path of a source file is the longest that there is."""


class SqliteNotes:
    """Notes in one database that has the tables of `notes.sql`.

    database: returns it, making it first where that is asked for; None where it is not there and was not asked for.
    begin: makes it with what it is given to put there, and returns whether it was not there before. A note that comes
    in that way needs no more room than the file: no write-ahead log and no index of one.
    """

    def __init__(
        self,
        database: Callable[[bool], Database | None],
        *,
        begin: Callable[[Callable[[Database], None]], bool] = lambda put: False,
    ) -> None:
        self._database = database
        self._begin = begin

    def put(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        self._put(topic, name, body, id, at, is_only=False)

    def replace(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        self._put(topic, name, body, id, at, is_only=True)

    def _put(self, topic: str, name: str, body: dict[str, Any], id: str, at: float, *, is_only: bool) -> None:
        for text, what in ((topic, "topic"), (name, "name"), (id, "note id")):
            check_name(text, what, chars_max=NAME_CHARS_MAX)
        bindings = {"topic": topic, "name": name, "id": id, "at": at, "body": encode_body(body)}

        def put(database: Database) -> None:
            with database.write():
                database.query("put_note", bindings)
                if is_only:
                    database.query("drop_earlier_notes", {"topic": topic, "name": name})

        if self._begin(put):
            return
        database = self._database(True)
        assert database is not None, "it was asked to be made"
        put(database)

    def get(self, topic: str, name: str) -> dict[str, Any] | None:
        database = self._database(False)
        row = database.row("get_note", {"topic": topic, "name": name}) if database else None
        return decode_body(row[0]) if row else None

    def all(self, topic: str) -> dict[str, dict[str, Any]]:
        database = self._database(False)
        rows = database.query("all_notes", {"topic": topic}) if database else []
        return {name: decode_body(body) for name, body in rows if isinstance(name, str)}
