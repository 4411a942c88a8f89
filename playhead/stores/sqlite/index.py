"""The text index in SQLite: a contentless FTS5 table whose row ids are the events' rows."""

from __future__ import annotations

from collections.abc import Sequence

from playhead.errors import StoreDamaged
from playhead.model.ids import SessionKey
from playhead.stores.base import TextFilter, TextMatch, TextRow
from playhead.stores.sqlite.log import SEQ_BITS, SEQ_MAX, SqliteLog, json_list

_ANY_FIRST, _ANY_LAST = 0, (2**31 << SEQ_BITS) - 1


class SqliteText:
    """Text index of the sessions in one database. The table is made by the first `add`."""

    def __init__(self, log: SqliteLog) -> None:
        self._log = log
        self._database = log.database

    def indexed_seq(self, key: SessionKey) -> int:
        with self._database.read():
            return self._indexed_seq(self._log.need_number(key))

    def add(self, key: SessionKey, rows: Sequence[TextRow], *, up_to: int) -> None:
        with self._database.write():
            number = self._log.need_number(key)
            if not self._exists():
                self._database.run_script("text.sql")
            base = number << SEQ_BITS
            after = self._indexed_seq(number)
            if up_to <= after:
                return
            bindings = [{"row": base + row.seq, "text": row.text} for row in rows if after < row.seq <= up_to]
            self._database.query_many("index_text", bindings)
            self._database.query("set_indexed_seq", {"number": number, "seq": up_to})

    def match(
        self, expression: str, *, keys: Sequence[SessionKey] | None = None, where: TextFilter, limit: int
    ) -> list[TextMatch]:
        with self._database.read():
            if not self._exists():
                return []
            first, last, numbers = _ANY_FIRST, _ANY_LAST, None
            if keys is not None:
                found = [number for number in map(self._log.number_of, keys) if number is not None]
                if not found:
                    return []
                first, last = min(found) << SEQ_BITS, (max(found) << SEQ_BITS) + SEQ_MAX
                numbers = json_list(found) if len(found) > 1 else None
            bindings = {
                "expression": expression,
                "first": first,
                "last": last,
                "numbers": numbers,
                "agents": json_list(where.agents or None),
                "kinds": json_list(where.kinds or None),
                "turns": json_list(where.turns or None),
                "since": where.since,
                "until": where.until,
                "limit": max(0, limit),
            }
            rows = self._database.query("match_text", bindings, refused=f"{expression!r} is no FTS5 expression")
        return [TextMatch(SessionKey(*key), seq, score) for *key, seq, score in rows if _is_key(*key)]

    def drop(self, key: SessionKey | None = None) -> None:
        with self._database.write():
            if key is None:
                self._database.query("drop_text_index")
                self._database.query("reset_indexed_seq")
                return
            number = self._log.need_number(key)
            if self._exists():
                base = number << SEQ_BITS
                self._database.query("unindex_session", {"first": base, "last": base + SEQ_MAX})
            self._database.query("set_indexed_seq", {"number": number, "seq": 0})

    def _indexed_seq(self, number: int) -> int:
        row = self._database.row("indexed_seq", {"number": number})
        if row is None:
            return 0
        if not isinstance(row[0], int):
            raise StoreDamaged(f"{self._database.path} does not say up to where session {number} is indexed")
        return row[0]

    def _exists(self) -> bool:
        return self._database.row("has_text_index") == (1,)


def _is_key(*names: object) -> bool:
    return all(isinstance(name, str) for name in names)
