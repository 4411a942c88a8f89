"""Where the store is, and from where that is known: flag, then PLAYHEAD_STORE, then PLAYHEAD_HOME, then the user's data
folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

SESSIONS_FOLDER = "sessions"


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store's URL, and what named it: `--store`, `PLAYHEAD_STORE`, `PLAYHEAD_HOME` or `default`."""

    url: str
    named_by: str


def store_place(flag: str | None, environment: Mapping[str, str]) -> StorePlace:
    """Return where the sessions are. An empty variable counts as absent. Nothing is created."""
    if flag:
        return StorePlace(_at_home(flag), "--store")
    if environment.get("PLAYHEAD_STORE"):
        return StorePlace(_at_home(environment["PLAYHEAD_STORE"]), "PLAYHEAD_STORE")
    if environment.get("PLAYHEAD_HOME"):
        return StorePlace(f"bundles:{Path(environment['PLAYHEAD_HOME']) / SESSIONS_FOLDER}", "PLAYHEAD_HOME")
    folder = platformdirs.user_data_path("playhead", appauthor=False, ensure_exists=False) / SESSIONS_FOLDER
    return StorePlace(f"bundles:{folder}", "default")


def _at_home(url: str) -> str:
    """Return the URL with a `~` after its scheme replaced: a shell does that only at the beginning of a word."""
    scheme, colon, place = url.partition(":")
    if not place.startswith("~"):
        return url
    return f"{scheme}{colon}{Path(place).expanduser()}"
