"""Titles from a source's own words: one line of sensible length."""

from __future__ import annotations

from typing import Any

from playhead.formats.ids import replace_surrogates

TITLE_CHARS_MAX = 200


def title_line(value: Any) -> str | None:
    """Return a text as one line of at most `TITLE_CHARS_MAX` characters, or None where nothing is left of it."""
    if not isinstance(value, str):
        return None
    return replace_surrogates(" ".join(value[: TITLE_CHARS_MAX * 4].split())[:TITLE_CHARS_MAX]) or None
