"""The `list` command: the rows that every other list shows, in the same order."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document, row_document
from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso, moment
from playhead.cli.naming import short_names, title_of
from playhead.cli.pin import STAR
from playhead.cli.rows import taken
from playhead.cli.table import Cell, Column, Style
from playhead.features.listing import PINNED, Listed, Page, Wanted, facets
from playhead.session import Sessions
from playhead.stores.listing import Refreshed, Sort as Order

COUNT_DEFAULT = 50
TITLE_COLUMNS_MIN = 20

Sort = Literal["last-active", "created", "title", "relevance"]

STATUSES = ("open", "running", "waiting", "interrupted", "archived", "unreadable")


def run(
    here: Here,
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many rows")] = COUNT_DEFAULT,
    all: Annotated[bool, typer.Option("--all", help="All rows")] = False,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="WORDS", help="Only sessions with these words in title, prompt, labels, folder, …"
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
    origin: Annotated[
        str | None, typer.Option("--origin", metavar="NAME", help="Only sessions that came from this program")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="NAME", help="Only sessions of the configuration of this name")
    ] = None,
    config_type: Annotated[
        str | None,
        typer.Option("--config-type", metavar="TYPE", help="Only sessions whose configuration is of this type"),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Only sessions that ran on this machine")
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="NAME", help="Only sessions that ran in this group")
    ] = None,
    app: Annotated[str | None, typer.Option("--app", metavar="APP", help="Only sessions of this app")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Only sessions of this user")] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="What the order goes by")] = "last-active",
    reverse: Annotated[bool, typer.Option("--reverse", help="The last of the order first")] = False,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", metavar="CURSOR", help="Go on behind the rows whose --json has this next_cursor"),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Compare every session with its row first, and read those that changed")
    ] = False,
    full_rescan: Annotated[
        bool, typer.Option("--full-rescan", help="Read every session again first, whatever its row says")
    ] = False,
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
        app=app,
        user=user,
        query=query,
        status=status,
        agent=agent,
        cwd=None if folder == "all" else str((Path(here.folder) / Path(folder).expanduser()).resolve()),
        label=label,
        origin=origin,
        config=config,
        config_type=config_type,
        node=node,
        group=group,
        since=None if since is None else moment(since, now, option="--since"),
        until=None if until is None else moment(until, now, option="--until"),
    )
    if trashed:
        if wanted != Wanted() or cursor is not None:
            raise Failure("--trashed shows the whole trash; give no other filter with it", code=2)
        # Loaded on use: the trash is another command's, and one way of listing it is enough.
        from playhead.cli.restore import run as restore

        restore(here, list_=True, json=json)
        return
    with here.open_existing() as sessions:
        refreshed = _refreshed(here, sessions, is_full=full_rescan) if refresh or full_rescan else None
        found = _found(
            here,
            sessions,
            wanted,
            count=None if all else count,
            sort=cast(Order, sort.replace("-", "_")),
            is_reversed=reverse,
            cursor=cursor,
        )
        if not found.total and status is not None and status not in STATUSES and status not in _own_statuses(sessions):
            raise Failure(f'no session has the status "{status}"; there are {", ".join(STATUSES)}', code=2)
    if json:
        here.terminal.json(
            {
                "sessions": [row_document(row) for row in found.items],
                "total": found.total,
                "next_cursor": found.next_cursor,
                "refreshed": None if refreshed is None else document(refreshed),
            }
        )
        return
    names = short_names(row.key for row in found.items)
    # A pipe has the same columns at every call; on a terminal a column without a word in it only takes room.
    has_labels = not here.terminal.is_interactive or any(_labels(row) for row in found.items)
    here.terminal.table(
        _columns(has_labels), (_row(row, names[row.key], now)[: 7 if has_labels else 6] for row in found.items)
    )
    if refreshed is not None:
        here.terminal.note(_summed_up(refreshed))
    if not found.total:
        narrowed = "" if wanted == Wanted() else " that are asked for"
        here.terminal.note(f"No sessions{narrowed} in {here.store_url}.")
    elif found.next_cursor is not None:
        here.terminal.note(f"{len(found.items)} of {found.total} sessions; --all shows the rest.")


def _found(
    here: Here,
    sessions: Sessions,
    wanted: Wanted,
    *,
    count: int | None,
    sort: Order,
    is_reversed: bool,
    cursor: str | None,
) -> Page[Listed]:
    """Return the rows to print. Only these are read, and sessions whose rows are not known yet, which shows."""
    try:
        return taken(
            sessions,
            wanted,
            count=count,
            sort=sort,
            is_reversed=is_reversed,
            cursor=cursor,
            on_progress=lambda done, total: here.terminal.progress(f"Reading session {done} of {total}"),
        )
    finally:
        here.terminal.end_progress()


def _refreshed(here: Here, sessions: Sessions, *, is_full: bool) -> Refreshed:
    try:
        return sessions.refresh(
            full=is_full,
            on_progress=lambda done, total: here.terminal.progress(f"Looking at session {done} of {total}"),
        )
    finally:
        here.terminal.end_progress()


def _summed_up(refreshed: Refreshed) -> str:
    looked_at = f"{refreshed.looked_at} session{'' if refreshed.looked_at == 1 else 's'}"
    parts = [f"Looked at {looked_at}, and read {refreshed.read} again"]
    if refreshed.removed:
        parts.append(f"{refreshed.removed} of the list {'is' if refreshed.removed == 1 else 'are'} gone")
    if refreshed.unreadable:
        parts.append(f"{refreshed.unreadable} cannot be read")
    return f"{'; '.join(parts)}."


def _own_statuses(sessions: Sessions) -> set[str]:
    """Return the statuses that sessions have: programs may set their own."""
    return set(facets(sessions.store, Wanted(), ["status"], clock=time.time, entropy=os.urandom)["status"])


COMMAND = Command(
    run,
    about=(
        "On a terminal the rows stand under headings, with how long ago each session was active. In a pipe they are "
        "tab-separated without headings: id, title, agents, turns, status, last active (UTC), labels with commas "
        "between them. A long id is cut on a terminal to what is enough to name its session, and a ★ is before the "
        "title of a pinned one.\n\n"
        "A status is open, running (somebody is in a turn), waiting (for an answer of a person), interrupted (a turn "
        "began and did not end), archived, or unreadable. Nothing is left out that no option leaves out.\n\n"
        "`relevance` puts those first that have the words of --query in their title, then those that have them in the "
        "first prompt. The list needs no refresh to be right, whoever writes, and however files come and go; --refresh "
        "is for a bundle that was edited in its place, --full-rescan for a catalogue that was."
    ),
    examples=(
        "playhead list",
        "playhead list --status waiting",
        "playhead list --project . --since 7d",
        "playhead list --label pinned --query upload --sort relevance",
        "playhead list --origin claude-code --sort created --reverse",
        "playhead list --trashed",
        "playhead list --refresh",
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
