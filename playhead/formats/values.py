"""JSON values of a source, read without trusting them: importers meet every shape."""

from __future__ import annotations

from typing import Any

Json = Any
"""A JSON value. `Any`: each function checks what it needs."""


def text(value: Json) -> str | None:
    """Return the value if it is a string of at least one character, else None."""
    return value if isinstance(value, str) and value else None


def mapping(value: Json) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Json) -> list[Any]:
    """Return the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def is_deeper(value: Json, levels: int) -> bool:
    """Return True for a value nested in more levels than so many. Looks level by level, so depth costs no stack."""
    level: list[Json] = [value]
    for _ in range(levels):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
