"""What a shell is offered where a command takes a session."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from playhead.cli.naming import title_of
from playhead.cli.rows import rows
from playhead.cli.settings import Settings, store_place
from playhead.cli.text import fitted
from playhead.features.listing import Wanted
from playhead.session import open as open_sessions

SESSIONS_MAX = 50
LOOKED_AT_MAX = 2_000
"""So many sessions are looked at where most of them have names that no shell can be given."""

TITLE_COLUMNS_MAX = 60

# zsh evaluates what it is given and bash splits it, so only characters that mean nothing to any shell reach them: a
# title is somebody else's text, and so is the id of an imported session.
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_NOT_PLAIN = re.compile(r"[^\w .,/+-]+")


def completed_sessions(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the sessions whose names begin like this, each with its title, the most recently active first.

    `SESSIONS_MAX` at most. Whatever goes wrong, nothing is offered: a shell that completes a word has no place for an
    error, and the command that is then called reports it.
    """
    try:
        return _completed(ctx, incomplete)
    except Exception:
        return []


def _completed(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    place = store_place(_store_flag(ctx), Settings(dict(os.environ), os.getcwd()))
    scheme, _, path = place.url.partition(":")
    if scheme not in ("bundles", "sqlite") or not Path(path).exists():
        return []
    with open_sessions(place.url) as sessions:
        beginning = rows(sessions, Wanted(begins=incomplete or None), first=SESSIONS_MAX)
        named = ((str(row.key), row) for row in islice(beginning, LOOKED_AT_MAX))
        fitting = ((name, row) for name, row in named if name.startswith(incomplete) and _PLAIN_ID.fullmatch(name))
        return [(name, _described(title_of(row))) for name, row in islice(fitting, SESSIONS_MAX)]


def _store_flag(ctx: Any) -> str | None:
    """Return what `--store` says in the line so far, before the command's name or after it."""
    while ctx is not None:
        if ctx.params.get("store"):
            return str(ctx.params["store"])
        ctx = ctx.parent
    return None


def _described(title: str) -> str:
    return fitted(" ".join(_NOT_PLAIN.sub(" ", title).split()), TITLE_COLUMNS_MAX)
