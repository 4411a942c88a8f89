"""The `restore` command: what is in the trash, and bringing it back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso
from playhead.cli.naming import CANDIDATES_MAX, PREFIX_CHARS_MIN, check_new_id
from playhead.cli.table import Cell, Column
from playhead.cli.text import one_line
from playhead.errors import SessionNotFound
from playhead.features.trash import Trashed
from playhead.model.ids import SessionKey, session_key
from playhead.session import Sessions


def run(
    here: Here,
    trashed: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRASHED",
            help="Each an id of the trash or of a session in it, the first four or more characters of one, or @last",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print what is in the trash; so does no argument")] = False,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Bring it back under this id, where its own is taken")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Bring sessions back as they were, or print what could be."""
    with here.open_existing() as sessions:
        rows = sessions.trashed()
        if list_ or not trashed:
            if as_ is not None or (list_ and trashed):
                raise Failure("name what to restore, or list the trash, but not both", code=2)
            _print(here, rows, json=json)
            return
        if as_ is not None:
            check_new_id(as_)
        chosen = list(dict.fromkeys(_named(rows, name) for name in trashed))
        if as_ is not None and len(chosen) > 1:
            raise Failure("--as names one session; restore the others in a call of their own", code=2)
        targets = [_target(sessions, one, as_) for one in chosen]
        if len(set(targets)) < len(targets):
            raise Failure("two of them had one id; restore one in a call of its own with --as", code=1)
        for one in chosen:
            sessions.restore(one.trash_id, id=as_)
    if json:
        document = [_document(one) | {"id": target.id} for one, target in zip(chosen, targets, strict=True)]
        here.terminal.json({"restored": document})
        return
    for one, target in zip(chosen, targets, strict=True):
        here.terminal.line(one_line(str(target)))
        here.terminal.note(f'"{one_line(_title(one))}" is back.')


COMMAND = Command(
    run,
    about=(
        "Without an argument it lists the trash, what was put there last first; in a pipe the rows are tab-separated "
        "without headings: trash id, session id, title, events, bytes, when (UTC). A session comes back with its "
        "artifacts and all its events. @last is what went into the trash last, so it undoes the last `rm`."
    ),
    examples=(
        "playhead restore",
        "playhead rm @last && playhead restore @last",
        "playhead rm upload-0001 && playhead restore upload-0001 --as upload-again",
        "playhead restore --list --json | jq -r '.trash[].trash_id'",
    ),
    exits=(3, 4, 5),
)

_COLUMNS = (
    Column("TRASHED AS", style="cyan"),
    Column("ID"),
    Column("TITLE", is_flexible=True),
    Column("EVENTS", is_right=True),
    Column("BYTES", is_right=True),
    Column("TRASHED", is_right=True),
)


def _named(rows: Sequence[Trashed], name: str) -> Trashed:
    """Return the one thing in the trash that `name` means. Raises `Failure` as every command does for a name."""
    if name == "@last" and rows:
        return rows[0]
    for spell in (_whole, _begins):
        fitting = [row for row in rows if spell(row, name)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            lines = [f"{row.trash_id}  {row.key}  {one_line(_title(row))}" for row in fitting[:CANDIDATES_MAX]]
            raise Failure(
                f'"{name}" fits {len(fitting)} sessions in the trash; name one of them by its trash id',
                code=5,
                lines=lines,
            )
    raise Failure(f'nothing in the trash answers to "{name}"; `playhead restore` shows what is there', code=3)


def _whole(row: Trashed, name: str) -> bool:
    return name in (row.trash_id, row.key.id, f"{row.key.app}/{row.key.user}/{row.key.id}")


def _begins(row: Trashed, name: str) -> bool:
    spellings = (row.trash_id, row.key.id, str(row.key))
    return len(name) >= PREFIX_CHARS_MIN and any(spelling.startswith(name) for spelling in spellings)


def _target(sessions: Sessions, one: Trashed, id: str | None) -> SessionKey:
    """Return the key under which it comes back. Raises `Failure` where that is taken."""
    target = session_key(one.key.id if id is None else id, app=one.key.app, user=one.key.user)
    with suppress(SessionNotFound):
        sessions.store.tip(target)
        raise Failure(f"session {target} is there by now; give --as and another id", code=1)
    return target


def _print(here: Here, rows: Sequence[Trashed], *, json: bool) -> None:
    if json:
        here.terminal.json({"trash": [_document(row) for row in rows]})
        return
    now = here.now()
    here.terminal.table(_COLUMNS, (_row(row, now) for row in rows))
    if not rows:
        here.terminal.note("The trash is empty.")


def _row(row: Trashed, now: float) -> list[Cell | str]:
    size = "" if row.size_bytes is None else str(row.size_bytes)
    when = Cell(age(row.at, now), iso(row.at))
    return [row.trash_id, str(row.key), _title(row), str(row.event_count), size, when]


def _title(row: Trashed) -> str:
    return f"({row.problem})" if row.problem is not None else row.title


def _document(row: Trashed) -> dict[str, Any]:
    return {
        "trash_id": row.trash_id,
        "id": row.key.id,
        "app": row.key.app,
        "user": row.key.user,
        "title": row.title,
        "event_count": row.event_count,
        "trashed_at": row.at,
        "size_bytes": row.size_bytes,
        "problem": row.problem,
    }
