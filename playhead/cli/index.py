"""The `index` command: up to where search finds what was said, and building that index again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.naming import all_rows, named, short_names
from playhead.cli.table import Cell, Column
from playhead.errors import PlayheadError
from playhead.model.ids import SessionKey
from playhead.search.indexer import bring_up_to_date
from playhead.session import Sessions

INTERRUPTED = 130


def run(
    here: Here,
    action: Annotated[
        Literal["status", "update", "rebuild"],
        typer.Argument(metavar="[ACTION]", help="status, update or rebuild", show_default=False),
    ] = "status",
    session: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Named as in `show`; every session where none is named"),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Say up to which event each session is indexed, after doing what ACTION says."""
    is_interrupted = False
    with here.open_existing() as sessions:
        keys = [named(sessions, one) for one in session or ()] or [
            row.key for row in all_rows(sessions) if row.problem is None
        ]
        problems: dict[SessionKey, str] = {}
        if action != "status":
            try:
                for number, key in enumerate(keys, start=1):
                    here.terminal.progress(f"Indexing {number} of {len(keys)}: {key}")
                    if problem := _index(sessions, key, anew=action == "rebuild"):
                        problems[key] = problem
            except KeyboardInterrupt:
                is_interrupted = True
        here.terminal.end_progress()
        found = [_status(sessions, key, problems.get(key)) for key in keys]
    _print(here, keys, found, json=json)
    if is_interrupted:
        here.terminal.note(
            "Interrupted. What is indexed stays; a search, or `playhead index update`, goes on from there."
        )
        return INTERRUPTED
    return 1 if any(one["problem"] for one in found) else 0


COMMAND = Command(
    run,
    about=(
        "The index is a cache of the log: a search brings it up to the last event by itself, and so does update, ahead "
        "of time. rebuild drops it and builds it again, which loses nothing. Without an action it only looks. One "
        "session's index is built at a time; Ctrl-C keeps what is done."
    ),
    examples=(
        "playhead index",
        "playhead index rebuild",
        "playhead index status @last --json",
    ),
    exits=(3, 5, 6, 130),
)


def _index(sessions: Sessions, key: SessionKey, *, anew: bool) -> str | None:
    """Index a session; return why that was not possible, or None."""
    try:
        if anew:
            sessions.store.text.drop(key)
        bring_up_to_date(sessions.store, key)
    except PlayheadError as error:
        return str(error)
    return None


def _status(sessions: Sessions, key: SessionKey, problem: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {"id": key.id, "app": key.app, "user": key.user, "indexed_seq": None, "last_seq": None}
    try:
        found["indexed_seq"], found["last_seq"] = sessions.store.text.indexed_seq(key), sessions.store.tip(key).seq
    except PlayheadError as error:
        problem = problem or str(error)
    return {**found, "problem": problem}


def _pending(status: dict[str, Any]) -> int:
    if status["indexed_seq"] is None:
        return 0
    return max(int(status["last_seq"]) - int(status["indexed_seq"]), 0)


_COLUMNS = (
    Column("ID", style="cyan"),
    Column("INDEXED", is_right=True),
    Column("EVENTS", is_right=True),
    Column("PENDING", is_right=True),
    Column("PROBLEM", is_flexible=True),
)


def _print(here: Here, keys: Sequence[SessionKey], found: list[dict[str, Any]], *, json: bool) -> None:
    pending = sum(_pending(one) for one in found)
    if json:
        here.terminal.json({"sessions": found, "pending_count": pending})
        return
    names = short_names(keys)
    here.terminal.table(
        _COLUMNS,
        (
            [
                Cell(names[key], str(key)),
                _count(one["indexed_seq"]),
                _count(one["last_seq"]),
                str(_pending(one)),
                one["problem"] or "",
            ]
            for key, one in zip(keys, found, strict=True)
        ),
    )
    plural = "" if len(found) == 1 else "s"
    events = "event is" if pending == 1 else "events are"
    here.terminal.note(f"{pending} {events} not indexed yet, in {len(found)} session{plural}; the next search does it.")


def _count(value: int | None) -> str:
    return "" if value is None else str(value)
