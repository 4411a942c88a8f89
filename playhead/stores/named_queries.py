"""SQL files to named queries: each query stands under its own `-- name:` line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)


@cache
def named_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """Return {name: SQL} of a package's query file, comments left out. Raises `ValueError` for a name used twice."""
    pieces = _NAME.split(read_sql(package, file))[1:]
    names = pieces[::2]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name is used twice in {package}/{file}")
    return {name: _COMMENT.sub("", sql).strip().rstrip(";") for name, sql in zip(names, pieces[1::2], strict=True)}


@cache
def read_sql(package: str, file: str) -> str:
    """Return the text of a `.sql` file that ships inside `package`."""
    return resources.files(package).joinpath(*file.split("/")).read_text(encoding="utf-8")
