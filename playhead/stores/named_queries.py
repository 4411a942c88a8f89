"""SQL files to named queries: each query stands under its own `-- name:` line.

Where a query says `{other}`, the text of the query of that name stands: what several of them share is written once.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from functools import cache

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)
_OTHER = re.compile(r"\{(\w+)\}")


@cache
def named_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """Return {name: SQL} of a package's query file, comments left out. Raises `ValueError` for a name used twice, and
    `KeyError` for one that is used and not there."""
    pieces = _NAME.split(read_sql(package, file))[1:]
    names = pieces[::2]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name is used twice in {package}/{file}")
    found = {name: _COMMENT.sub("", sql).strip().rstrip(";") for name, sql in zip(names, pieces[1::2], strict=True)}
    return {name: _whole(sql, found) for name, sql in found.items()}


def _whole(sql: str, queries: Mapping[str, str]) -> str:
    """Return a query with what it shares with others put in; what is shared may share more."""
    return _OTHER.sub(lambda other: _whole(queries[other[1]], queries), sql)


@cache
def read_sql(package: str, file: str) -> str:
    """Return the text of a `.sql` file that ships inside `package`."""
    found = pkgutil.get_data(package, file)
    assert found is not None, "it ships inside the package"
    return found.decode()
