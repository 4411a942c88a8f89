"""The `stats` command: what was done in the sessions of a store, and what it took."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso, local
from playhead.cli.table import Cell, Column
from playhead.features.overview import Overview
from playhead.features.statistics import By, Count, Statistics, statistics

DAYS_MAX = 100_000
DAY_S = 86_400
NAME_COLUMNS_MIN = 40


def run(
    here: Here,
    days: Annotated[
        int | None,
        typer.Option("--days", metavar="N", min=1, max=DAYS_MAX, help="Only what happened in the last N days"),
    ] = None,
    by: Annotated[By | None, typer.Option("--by", help="A row for every model, agent, day or tool")] = None,
    overview: Annotated[
        bool, typer.Option("--overview", help="What sessions there are, and what they take on disk; reads no log")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Count, and print the counts."""
    if overview:
        if days is not None or by is not None:
            raise Failure("--overview counts sessions as they are listed; give neither --days nor --by with it", code=2)
        _print_overview(here, json=json)
        return
    since = here.now() - days * DAY_S if days is not None else None
    with here.open_existing() as sessions:
        try:
            found = statistics(
                sessions.store,
                by=by,
                since=since,
                day_of=_local_day,
                on_progress=lambda done, count: here.terminal.progress(f"Counting session {done} of {count}"),
            )
        finally:
            here.terminal.end_progress()
    if json:
        here.terminal.json({"by": by, "since": since, **_document(found)})
    elif by is not None:
        has_cost = any(count.cost_usd is not None for count in found.groups.values())
        columns = _columns(by, has_cost=has_cost)
        rows = (_row(name, count, by) for name, count in found.groups.items())
        here.terminal.table(columns, ([cells[column.title] for column in columns] for cells in rows))
    else:
        here.terminal.table((Column("COUNT", is_flexible=True), Column("", is_right=True)), _lines(found))
    if found.unreadable_count:
        count = found.unreadable_count
        which = "1 session cannot be read and counts" if count == 1 else f"{count} sessions cannot be read and count"
        here.terminal.note(f"{which} nowhere; see `playhead list`.")


COMMAND = Command(
    run,
    about=(
        "Everything that was done counts once, rewound turns too; what a fork copied from its parent counts with the "
        "parent. Prompts are what people wrote; replies and tool calls are those of all agents. Tokens are what the "
        "messages state (a reply in pieces once), and a cost is shown only where the log itself states one, in US "
        "dollars. A turn counts in each row that something of it falls into, so rows may add up to more than all.\n\n"
        "--overview counts the sessions themselves, by status, by how long ago they were active, by origin, by type of "
        "configuration and by agent, and what the store takes on disk: what is in the trash apart, and `other` is "
        "what belongs to no session alone, such as indexes. A number that the store cannot tell is left empty."
    ),
    examples=(
        "playhead stats",
        "playhead stats --days 30 --by model",
        "playhead stats --by tool",
        "playhead stats --overview",
        "playhead stats --by day --json | jq -r '.groups[].name'",
    ),
)

# Heading to field. A tool is called and fails; nobody can tell how many tokens it took.
_ALL = {
    "SESSIONS": "session_count",
    "TURNS": "turn_count",
    "PROMPTS": "prompt_count",
    "REPLIES": "reply_count",
    "CALLS": "tool_call_count",
    "FAILED": "tool_error_count",
    "IN": "input_tokens",
    "OUT": "output_tokens",
    "CACHE IN": "cache_read_tokens",
    "CACHE OUT": "cache_write_tokens",
}
_OF_TOOLS = ("SESSIONS", "TURNS", "CALLS", "FAILED")
# On a narrow terminal the first of these stays, and the last leaves first.
_STAYING = ("TURNS", "USD", "OUT", "IN", "CALLS", "FAILED", "SESSIONS", "REPLIES", "PROMPTS", "CACHE IN", "CACHE OUT")
_NAMES = {
    "session_count": "sessions",
    "turn_count": "turns",
    "prompt_count": "prompts",
    "reply_count": "replies",
    "tool_call_count": "tool calls",
    "tool_error_count": "failed tool calls",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cache_read_tokens": "tokens read from a cache",
    "cache_write_tokens": "tokens written to a cache",
}


_AGES = {"1d": "within a day", "7d": "within 7 days", "30d": "within 30 days", "older": "longer ago"}
_BYTES = {
    "sessions": "session_bytes",
    "artifacts": "artifacts_bytes",
    "trash": "trashed_bytes",
    "other": "other_bytes",
    "in all": "total_bytes",
}


def _print_overview(here: Here, *, json: bool) -> None:
    with here.open_existing() as sessions:
        found = sessions.overview()
    if json:
        here.terminal.json(document(found))
        return
    columns = (Column("WHAT"), Column("WHICH", is_flexible=True, style="cyan"), Column("COUNT", is_right=True))
    here.terminal.table(columns, _overview_rows(found))
    if found.unreadable_count:
        here.terminal.note("See `playhead list --status unreadable` for what cannot be read.")


def _overview_rows(found: Overview) -> Iterator[list[Cell | str]]:
    yield ["sessions", "", _number(found.session_count)]
    for name, count in found.by_status.items():
        yield ["status", name, _number(count)]
    for name, count in found.by_age.items():
        yield ["active", Cell(_AGES.get(name, name), name), _number(count)]
    if found.oldest_at is not None and found.newest_at is not None and found.average_age_s is not None:
        yield ["active", "oldest", Cell(local(found.oldest_at), iso(found.oldest_at))]
        yield ["active", "newest", Cell(local(found.newest_at), iso(found.newest_at))]
        yield ["active", "average", Cell(age(0.0, found.average_age_s), f"{found.average_age_s:.0f}")]
    for what, counts in (("origin", found.by_origin), ("config type", found.by_config_type), ("agent", found.agents)):
        for name, count in counts.items():
            yield [what, name, _number(count)]
    yield ["trash", "", _number(found.trashed_count)]
    for name, field in _BYTES.items():
        size = getattr(found, field)
        yield ["bytes", name, "" if size is None else _number(size)]


def _document(found: Statistics) -> dict[str, Any]:
    groups = [{"name": name, **document(count)} for name, count in found.groups.items()]
    return {
        "total": document(found.total),
        "groups": groups,
        "unreadable_count": found.unreadable_count,
        "size_bytes": found.size_bytes,
    }


def _lines(found: Statistics) -> list[list[Cell | str]]:
    lines: list[list[Cell | str]] = [[name, _number(getattr(found.total, field))] for field, name in _NAMES.items()]
    if found.total.cost_usd is not None:
        lines.append(["cost in US dollars", _cost(found.total)])
    return [*lines, ["bytes on disk", _number(found.size_bytes)]]


def _columns(by: By, *, has_cost: bool) -> list[Column]:
    titles = [*(_OF_TOOLS if by == "tool" else _ALL), *(["USD"] if has_cost else [])]
    # Names of models and tools differ at their ends, so numbers leave a narrow terminal before a name is cut.
    name = Column(by.upper(), is_flexible=True, style="cyan", columns_min=NAME_COLUMNS_MIN)
    return [name, *(Column(title, is_right=True, leaves=_STAYING.index(title)) for title in titles)]


def _row(name: str, count: Count, by: By) -> dict[str, Cell | str]:
    numbers = {title: _number(getattr(count, field)) for title, field in _ALL.items()}
    return {by.upper(): Cell(name or "none", name), **numbers, "USD": _cost(count)}


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", str(value))


def _cost(count: Count) -> Cell:
    return Cell("", "") if count.cost_usd is None else Cell(f"{count.cost_usd:,.2f}", f"{count.cost_usd:.6f}")


def _local_day(at: float) -> str:
    """Return the day on this machine's clock; "" where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return ""
