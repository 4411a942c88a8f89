"""The `list` command: the rows that every other list shows, in the same order."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import row_document
from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso, moment
from playhead.cli.naming import short_names, title_of
from playhead.cli.pin import STAR
from playhead.cli.table import Cell, Column, Style
from playhead.features.listing import PINNED, Listed, Wanted, all_sessions
from playhead.session import Sessions

COUNT_DEFAULT = 50
TITLE_COLUMNS_MIN = 20

Sort = Literal["last-active", "created", "title"]


STATUSES = ("open", "running", "waiting", "interrupted", "archived", "unreadable")


def run(
    here: Here,
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many rows")] = COUNT_DEFAULT,
    all: Annotated[bool, typer.Option("--all", help="All rows")] = False,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="WORDS", help="Only sessions with these words in title, prompt, labels, folder"
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only sessions in which this agent wrote")
    ] = None,
    project: Annotated[
        str, typer.Option("--project", metavar="PATH", help="Only sessions of this folder; . is the current one")
    ] = "all",
    cwd: Annotated[bool, typer.Option("--cwd", help="Only sessions of the current folder")] = False,
    label: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help=f"Only sessions with this label; {PINNED} for pins")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="STATUS", help="Only sessions that are open, running, waiting, interrupted, …"
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only sessions active since 7d, yesterday, 2026-08-01")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Only sessions that were active last before then")
    ] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="What the order goes by")] = "last-active",
    trashed: Annotated[
        bool, typer.Option("--trashed", help="What is in the trash instead, as `playhead restore` lists it")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the rows that the options leave, and say how many there are beyond them."""
    now = here.now()
    if cwd and project not in ("all", "."):
        raise Failure("--cwd and --project each name a folder; give one of them", code=2)
    folder = "." if cwd else project
    wanted = Wanted(
        query=query,
        status=status,
        agent=agent,
        cwd=None if folder == "all" else str((Path(here.folder) / Path(folder).expanduser()).resolve()),
        label=label,
        since=None if since is None else moment(since, now, option="--since"),
        until=None if until is None else moment(until, now, option="--until"),
    )
    if trashed:
        if wanted != Wanted():
            raise Failure("--trashed shows the whole trash; give no other filter with it", code=2)
        # Loaded on use: the trash is another command's, and one way of listing it is enough.
        from playhead.cli.restore import run as restore

        restore(here, list_=True, json=json)
        return
    with here.open_existing() as sessions:
        # Read at once and not in pages, each of which would look at every session again.
        found = all_sessions(sessions.store, wanted, sort=sort.replace("-", "_"), clock=time.time, entropy=os.urandom)
        if not found and status is not None and status not in STATUSES and status not in _own_statuses(sessions):
            raise Failure(f'no session has the status "{status}"; there are {", ".join(STATUSES)}', code=2)
    rows = found if all else found[:count]
    if json:
        here.terminal.json({"sessions": [row_document(row) for row in rows], "total": len(found)})
        return
    names = short_names(row.key for row in rows)
    # A pipe has the same columns at every call; on a terminal a column without a word in it only takes room.
    has_labels = not here.terminal.is_interactive or any(_labels(row) for row in rows)
    here.terminal.table(
        _columns(has_labels), (_row(row, names[row.key], now)[: 7 if has_labels else 6] for row in rows)
    )
    if not found:
        narrowed = "" if wanted == Wanted() else " that are asked for"
        here.terminal.note(f"No sessions{narrowed} in {here.store_url}.")
    elif len(rows) < len(found):
        here.terminal.note(f"{len(rows)} of {len(found)} sessions; --all shows the rest.")


def _own_statuses(sessions: Sessions) -> set[str]:
    """Return the statuses that sessions have: programs may set their own."""
    rows = all_sessions(sessions.store, Wanted(), clock=time.time, entropy=os.urandom)
    return {row.summary.status for row in rows if row.summary is not None}


COMMAND = Command(
    run,
    about=(
        "On a terminal the rows stand under headings, with how long ago each session was active. In a pipe they are "
        "tab-separated without headings: id, title, agents, turns, status, last active (UTC), labels with commas "
        "between them. A long id is cut on a terminal to what is enough to name its session, and a ★ is before the "
        "title of a pinned one.\n\n"
        "A status is open, running (somebody is in a turn), waiting (for an answer of a person), interrupted (a turn "
        "began and did not end), archived, or unreadable. Nothing is left out that no option leaves out."
    ),
    examples=(
        "playhead list",
        "playhead list --status waiting",
        "playhead list --project . --since 7d",
        "playhead list --label pinned --query upload",
        "playhead list --trashed",
        "playhead list --all --json | jq -r '.sessions[].id'",
    ),
)

_STATUS_STYLES: dict[str, Style] = {
    "running": "green",
    "waiting": "yellow",
    "interrupted": "red",
    "unreadable": "red",
    "archived": "dim",
}


def _columns(has_labels: bool) -> tuple[Column, ...]:
    columns = (
        Column("ID", style="cyan"),
        Column("TITLE", is_flexible=True, columns_min=TITLE_COLUMNS_MIN),
        Column("AGENTS", is_flexible=True, columns_max=24, leaves=5),
        Column("TURNS", is_right=True, leaves=3),
        Column("STATUS", leaves=1),
        Column("ACTIVE", is_right=True, leaves=2),
    )
    return (*columns, Column("LABELS", is_flexible=True, columns_max=24, leaves=4)) if has_labels else columns


def _row(row: Listed, name: str, now: float) -> list[Cell | str]:
    summary = row.summary
    id = Cell(name, str(row.key))
    if summary is None:
        unreadable = Cell("unreadable", "unreadable", style="red")
        return [id, Cell(title_of(row), title_of(row), style="dim"), "", "", unreadable, "", ""]
    star = STAR if PINNED in summary.labels else ""
    return [
        id,
        Cell(f"{star}{summary.title}", summary.title),
        " ".join(summary.agents),
        str(summary.turn_count),
        Cell(summary.status, summary.status, style=_STATUS_STYLES.get(summary.status)),
        Cell(age(summary.last_active_at, now), iso(summary.last_active_at)),
        Cell(", ".join(_labels(row)), ",".join(summary.labels)),
    ]


def _labels(row: Listed) -> list[str]:
    """Return the labels that a column shows: `pinned` is the star before the title."""
    return [label for label in row.summary.labels if label != PINNED] if row.summary is not None else []
