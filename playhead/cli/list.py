"""The `list` command: the rows that every other list shows, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import row_document
from playhead.cli.moments import age, iso, moment
from playhead.cli.naming import short_names, title_of
from playhead.cli.table import Cell, Column, Style
from playhead.features.listing import PAGE_MAX, Listed
from playhead.session import Sessions

COUNT_DEFAULT = 50

Sort = Literal["last-active", "created", "title"]


def run(
    here: Here,
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many rows")] = COUNT_DEFAULT,
    all: Annotated[bool, typer.Option("--all", help="All rows")] = False,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="Only sessions in which this agent wrote")
    ] = None,
    project: Annotated[
        str, typer.Option("--project", metavar="PATH", help="Only sessions of this folder; . is the current one")
    ] = "all",
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only sessions active since 7d, yesterday, 2026-08-01")
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only sessions that are open, waiting, interrupted")
    ] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="What the order goes by")] = "last-active",
    json: JsonOption = False,
) -> None:
    """Print the rows that the options leave, and say how many there are beyond them."""
    now = here.now()
    asked = _Asked(
        sort=sort,
        agent=agent,
        cwd=None if project == "all" else str((Path(here.folder) / Path(project).expanduser()).resolve()),
        status=status,
        since=None if since is None else moment(since, now, option="--since"),
        count=None if all else count,
    )
    with here.open_existing() as sessions:
        rows, total = _found(sessions, asked)
    if json:
        here.terminal.json({"sessions": [row_document(row) for row in rows], "total": total})
        return
    names = short_names(row.key for row in rows)
    here.terminal.table(_COLUMNS, (_row(row, names[row.key], now) for row in rows))
    if total == 0:
        here.terminal.note(f"No sessions in {here.store_url}.")
    elif len(rows) < total:
        here.terminal.note(f"{len(rows)} of {total} sessions; --all shows the rest.")


COMMAND = Command(
    run,
    about=(
        "On a terminal the rows stand under headings, with how long ago each session was active. In a pipe they are "
        "tab-separated without headings: id, title, agents, turns, status, last active (UTC). A long id is cut on a "
        "terminal to what is enough to name its session."
    ),
    examples=(
        "playhead list",
        "playhead list --status waiting",
        "playhead list --project . --since 7d",
        "playhead list --all --json | jq -r '.sessions[].id'",
    ),
)

_COLUMNS = (
    Column("ID", style="cyan"),
    Column("TITLE", is_flexible=True),
    Column("AGENTS", is_flexible=True, columns_max=24),
    Column("TURNS", is_right=True),
    Column("STATUS"),
    Column("ACTIVE", is_right=True),
)
_STATUS_STYLES: dict[str, Style] = {"waiting": "yellow", "interrupted": "red", "unreadable": "red"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the options ask for. since: UTC seconds. count: None for all rows."""

    sort: Sort
    agent: str | None
    cwd: str | None
    status: str | None
    since: float | None
    count: int | None


def _found(sessions: Sessions, asked: _Asked) -> tuple[list[Listed], int]:
    """Return the rows to show, and how many fit in all."""
    rows: list[Listed] = []
    cursor: str | None = None
    while True:
        page = sessions.list(
            sort=asked.sort.replace("-", "_"),
            agent=asked.agent,
            cwd=asked.cwd,
            status=asked.status,
            cursor=cursor,
            limit=PAGE_MAX,
        )
        rows += (row for row in page.items if asked.since is None or _active_at(row) >= asked.since)
        cursor = page.next_cursor
        if cursor is None:
            return rows[: asked.count], len(rows)
        # A time leaves rows out after the page was made, so only reading on tells how many fit.
        if asked.since is None and asked.count is not None and len(rows) >= asked.count:
            return rows[: asked.count], page.total


def _active_at(row: Listed) -> float:
    return row.summary.last_active_at if row.summary is not None else 0.0


def _row(row: Listed, name: str, now: float) -> list[Cell | str]:
    summary = row.summary
    id = Cell(name, str(row.key))
    if summary is None:
        unreadable = Cell("unreadable", "unreadable", style="red")
        return [id, Cell(title_of(row), title_of(row), style="dim"), "", "", unreadable, ""]
    return [
        id,
        summary.title,
        " ".join(summary.agents),
        str(summary.turn_count),
        Cell(summary.status, summary.status, style=_STATUS_STYLES.get(summary.status)),
        Cell(age(summary.last_active_at, now), iso(summary.last_active_at)),
    ]
