"""A real FTS5 table, with the tokenizer that every store uses, to put documents and questions to."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import apsw
import pytest

from playhead.search.query import Query, fts5_match, parse
from playhead.search.tokenize import analyze

NOW = datetime(2024, 5, 8, 15, 30, tzinfo=UTC)


class Index:
    """Documents, and which of them an expression finds, best first."""

    def __init__(self) -> None:
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(
            """CREATE VIRTUAL TABLE text USING fts5(body, tokenize = "porter unicode61 remove_diacritics 2")"""
        )
        self._connection.execute("CREATE VIRTUAL TABLE term USING fts5vocab(text, instance)")

    def fill(self, documents: Sequence[str]) -> None:
        """Hold these documents and no others."""
        self._connection.execute("DELETE FROM text")
        with self._connection:
            self._connection.executemany(
                "INSERT INTO text (rowid, body) VALUES (?, ?)",
                [(row, analyze(text)) for row, text in enumerate(documents)],
            )

    def match(self, expression: str | None) -> list[int]:
        """Return the documents an expression finds, by their place in the list, best first; `[]` for no expression."""
        if expression is None:
            return []
        rows = self._connection.execute("SELECT rowid FROM text WHERE text MATCH ? ORDER BY rank, rowid", (expression,))
        return [row[0] for row in rows]

    def ask(self, typed: str, *, is_strict: bool = False) -> list[int]:
        """Return the documents that a person finds who types this."""
        return self.match(fts5_match(asked(typed), is_strict=is_strict))

    def terms(self) -> list[list[str]]:
        """Return what each document is kept as."""
        kept: dict[int, list[str]] = {}
        for document, term in self._connection.execute("SELECT doc, term FROM term ORDER BY doc, offset"):
            kept.setdefault(document, []).append(term)
        return [kept[row] for row in sorted(kept)]

    def close(self) -> None:
        self._connection.close()


def asked(typed: str) -> Query:
    """Return the question, with "now" on the afternoon of 8 May 2024, UTC."""
    return parse(typed, now=NOW)


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    """An index to fill; module-wide, since tests fill it anew."""
    index = Index()
    yield index
    index.close()
