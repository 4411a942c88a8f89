"""The `timeline` command: a line for every event of a session, all branches, with what each took."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated

import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.moments import iso, moment
from playhead.cli.naming import named_event
from playhead.cli.table import Piece, Style, Styled, tab_separated
from playhead.cli.terminal import Terminal
from playhead.cli.text import fitted, one_line, padded, width
from playhead.features.live import all_events
from playhead.model.event import FACT_KINDS, KINDS
from playhead.session import Session
from playhead.views.timeline import TimelineRow, rows

ROWS_MAX = 1_000_000
AGENT_COLUMNS = 14
LABEL_COLUMNS_MIN = 8
JsonLinesOption = Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a line, as each is read")]


def run(
    here: Here,
    session: SessionArgument,
    errors: Annotated[bool, typer.Option("--errors", help="Only what failed or was cut off")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", "--type", metavar="KIND", help="Only events of this kind; may be given several times"),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="LABEL", help="Only what this agent wrote")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only from this time on: 2h, yesterday, 2026-08-01")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Without what a rewind hides")] = False,
    last: Annotated[
        int | None, typer.Option("--last", "-n", metavar="N", min=1, max=ROWS_MAX, help="Only the last N of them")
    ] = None,
    json: JsonOption = False,
    jsonl: JsonLinesOption = False,
) -> None:
    """Print the timeline from the first event, or from the one that SESSION#SEQ names."""
    if json and jsonl:
        raise Failure("--json and --jsonl exclude each other; give one of them", code=2)
    check_kinds(kind or ())
    from_time = None if since is None else moment(since, here.now(), option="--since")

    def is_wanted(row: TimelineRow) -> bool:
        return (
            (not errors or row.is_error)
            and (not kind or row.kind in kind)
            and (agent is None or row.agent == agent)
            and (from_time is None or row.at >= from_time)
            and (not live or row.is_on_path or row.kind in FACT_KINDS)
        )

    with here.open_existing() as sessions:
        key, seq = named_event(sessions, session)
        opened = sessions.get(key.id, app=key.app, user=key.user)
        if seq is not None:
            opened.event(seq)  # Raises where there is none.
        # Read from the first event on, so that whatever ends is timed from where it began.
        found = (row for row in rows(all_events(sessions.store, key), opened.positions) if is_wanted(row))
        wanted: Iterator[TimelineRow] = (row for row in found if seq is None or row.seq >= seq)
        if last is not None:
            wanted = iter(deque(wanted, maxlen=last))
        _print(here.terminal, opened, wanted, json=json, jsonl=jsonl)


def check_kinds(kinds: Iterable[str]) -> None:
    """Raise `Failure` for a kind that no event has: the list of kinds is closed."""
    for kind in kinds:
        if kind not in KINDS:
            raise Failure(f'"{kind}" is no kind of event; there are {", ".join(sorted(KINDS))}', code=2)


COMMAND = Command(
    run,
    about=(
        "All branches are in it; what a rewind hides is marked with ~, what failed with !. A line says "
        "how long a call, a turn, a job or a question took where it ends. In a pipe each event is one line: seq, "
        "time (UTC), agent, kind, seconds, output tokens, marks, text."
    ),
    examples=(
        "playhead timeline @last",
        "playhead timeline @last --errors",
        "playhead timeline upload-0001#4 --kind message --last 20",
        "playhead timeline @last --jsonl | jq -r 'select(.duration_s > 5) | .label'",
    ),
    exits=(3, 5, 6),
)


def _print(terminal: Terminal, session: Session, found: Iterator[TimelineRow], *, json: bool, jsonl: bool) -> None:
    if json:
        terminal.json({"session": session_document(session), "rows": [document(row) for row in found]})
    elif jsonl:
        for row in found:
            terminal.json_line(document(row))
    else:
        with terminal.paged():
            for row in found:
                print_row(terminal, row)


def print_row(terminal: Terminal, row: TimelineRow) -> None:
    """Write one row: aligned for a person, tab-separated for a program."""
    is_hidden = not row.is_on_path and row.kind not in FACT_KINDS  # Facts lie on no path, and hold on all of them.
    marks = f"{'!' if row.is_error else ''}{'~' if is_hidden else ''}"
    if not terminal.is_interactive:
        took = "" if row.duration_s is None else f"{row.duration_s:.3f}"
        tokens = "" if row.tokens is None else str(row.tokens)
        cells = [str(row.seq), iso(row.at), row.agent or "", row.kind, took, tokens, marks, row.label]
        terminal.line(tab_separated(cells))
        return
    agent = padded(fitted(one_line(row.agent or ""), AGENT_COLUMNS), AGENT_COLUMNS)
    facts = f"{_took(row.duration_s):>7} {'' if row.tokens is None else f'{row.tokens} tok':>9} {marks:<2}"
    head: list[Piece] = [
        Styled(f"{f'#{row.seq}':>7}", "dim"),
        f" {_clock(row.at)} ",
        Styled(agent, "cyan"),
        f" {facts} ",
    ]
    used = 7 + 10 + AGENT_COLUMNS + 1 + width(facts) + 1
    label = fitted(one_line(row.label), max(terminal.width - used, LABEL_COLUMNS_MIN))
    style: Style | None = "red" if row.is_error else "dim" if is_hidden else None
    terminal.line(*head, Styled(label, style) if style else label)


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _clock(at: float) -> str:
    """Return the time of day on this machine's clock; blanks where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at).strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return " " * 8
