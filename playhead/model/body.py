"""Reading bodies without trusting them: a field that has not the expected shape reads as absent.

A body was checked by the version that appended it, which may be a newer one, and a redacted event has none. Whoever
shows events reads their bodies through these functions, and so never fails on one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text_in(body: Mapping[str, Any], field: str) -> str | None:
    """Return the text of a field, or None where it is absent, empty or something else."""
    value = body.get(field)
    return value if isinstance(value, str) and value else None


def object_in(body: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the JSON object of a field, `{}` where it is absent or something else."""
    value = body.get(field)
    return value if isinstance(value, dict) else {}


def list_in(body: Mapping[str, Any], field: str) -> list[Any]:
    """Return the JSON array of a field, `[]` where it is absent or something else."""
    value = body.get(field)
    return value if isinstance(value, list) else []


def number_in(body: Mapping[str, Any], field: str) -> float | None:
    """Return the number of a field, or None where it is absent or something else."""
    value = body.get(field)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def parts_in(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message, less what is no part."""
    return [part for part in list_in(body, "parts") if isinstance(part, dict)]


def objects_in(body: Mapping[str, Any], field: str) -> dict[str, dict[str, Any]]:
    """Return the object of objects of a field (`{scope: {key: value}}`), less what is no object in it."""
    return {name: value for name, value in object_in(body, field).items() if isinstance(value, dict)}


def names_in(body: Mapping[str, Any], field: str) -> dict[str, list[str]]:
    """Return the object of lists of names of a field (`{scope: [key]}`), less what is no list or no name in it."""
    return {
        scope: [name for name in names if isinstance(name, str)]
        for scope, names in object_in(body, field).items()
        if isinstance(names, list)
    }


def token_count(body: Mapping[str, Any], name: str) -> int | None:
    """Return a count of a message's token usage (`input_tokens`, `output_tokens`), or None where it is not known."""
    value = object_in(body, "usage").get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
