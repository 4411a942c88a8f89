"""The `verify` command: prove that sessions are undamaged, or say what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure
from playhead.cli.naming import all_rows, named, short_names
from playhead.cli.table import Cell, Column
from playhead.errors import OF_THE_SYSTEM, PlayheadError
from playhead.model.ids import SessionKey
from playhead.session import Sessions

INTEGRITY_PROBLEM = 6


def run(
    here: Here,
    session: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Named as in `show`", show_default=False),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Every session of the store")] = False,
    json: JsonOption = False,
) -> int:
    """Check each session and print what was found; end with 6 where anything is wrong, with 1 where one could not be
    read for what the system says."""
    if all == bool(session):
        raise Failure("name the sessions to verify, or give --all", code=2)
    with here.open_existing() as sessions:
        keys = [row.key for row in all_rows(sessions)] if all else [named(sessions, one) for one in session or ()]
        results = []
        for index, key in enumerate(keys, start=1):
            here.terminal.progress(f"Verifying {index} of {len(keys)}: {key}")
            results.append(_verified(sessions, key))
        here.terminal.end_progress()
    ok = [one for one in results if one["ok"]]
    unread = [one for one in results if one["is_unread"]]
    if json:
        here.terminal.json({"sessions": results, "ok_count": len(ok), "problem_count": len(results) - len(ok)})
    else:
        names = short_names(keys)
        here.terminal.table(_COLUMNS, (row for one in results for row in _rows(one, names)))
        here.terminal.note(_summed_up(len(ok), len(results), unread_count=len(unread)))
    if len(ok) + len(unread) < len(results):
        return INTEGRITY_PROBLEM
    return 1 if unread else 0


COMMAND = Command(
    run,
    about=(
        "Checks the hash chain, that parents lead back to the first event, and that a full replay gives what the "
        "snapshots say. A row is printed for every problem, and one for every session without any. A session that the "
        "system keeps from being read (a full disk, a missing right) is unread, not damaged: the end is 1 then."
    ),
    examples=(
        "playhead verify @last",
        "playhead verify --all",
        "playhead verify --all --json | jq '.sessions[] | select(.ok | not)'",
    ),
    exits=(3, 5, 6),
)

_COLUMNS = (
    Column("ID", style="cyan"),
    Column("STATE"),
    Column("EVENTS", is_right=True, leaves=1),
    Column("SNAPSHOTS", is_right=True, leaves=2),
    Column("PROBLEM", is_flexible=True, columns_min=30),
)

_NOT_COUNTED = {"event_count": None, "redacted_count": None, "snapshot_count": None, "head_hash": None}


def _verified(sessions: Sessions, key: SessionKey) -> dict[str, Any]:
    """Return what `--json` says of one session. One that cannot be opened is a problem, not the end of the check; where
    the system keeps it from being read, nothing is known of it."""
    found: dict[str, Any] = {"id": key.id, "app": key.app, "user": key.user, "is_unread": False}
    try:
        verified = sessions.verify(key.id, app=key.app, user=key.user)
    except OF_THE_SYSTEM as error:
        return {**found, "is_unread": True, "ok": False, "problems": [str(error)], **_NOT_COUNTED}
    except PlayheadError as error:
        return {**found, "ok": False, "problems": [str(error)], **_NOT_COUNTED}
    counted = {name: getattr(verified, name) for name in _NOT_COUNTED}
    return {**found, "ok": verified.ok, "problems": list(verified.problems), **counted}


def _summed_up(ok_count: int, count: int, *, unread_count: int) -> str:
    if not count:
        return "There is no session to verify."
    if count == 1:
        return f"The session {'could not be read' if unread_count else 'is whole' if ok_count else 'is damaged'}."
    unread = f"; {unread_count} could not be read" if unread_count else ""
    return f"{ok_count} of {count} sessions {'is' if ok_count == 1 else 'are'} whole{unread}."


def _rows(result: dict[str, Any], names: dict[SessionKey, str]) -> Iterator[list[Cell | str]]:
    key = SessionKey(result["app"], result["user"], result["id"])
    counts = ["" if one is None else str(one) for one in (result["event_count"], result["snapshot_count"])]
    state = Cell("whole", "whole", style="green") if result["ok"] else Cell("damaged", "damaged", style="red")
    if result["is_unread"]:
        state = Cell("unread", "unread", style="yellow")
    for problem in result["problems"] or [""]:
        yield [Cell(names[key], str(key)), state, *counts, problem]
