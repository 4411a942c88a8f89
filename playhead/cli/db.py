"""The `db` command: the files of a store: where they are, a copy of them, a check, and SQL to look inside."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.naming import named
from playhead.cli.table import Cell, Column, Style
from playhead.errors import OF_THE_SYSTEM, StoreExists
from playhead.stores.files import disk_bytes
from playhead.stores.sqlite.backup import BackedUp, back_up, check_file, databases
from playhead.stores.sqlite.bundles import BundleStore

# Imported for what it does to `input`: arrow keys and history. Not every platform has it.
with suppress(ImportError):
    import readline  # noqa: F401

if TYPE_CHECKING:
    from playhead.stores.sqlite.shell import SqlShell

INTEGRITY_PROBLEM = 6

Action = Literal["path", "backup", "check", "shell"]


def run(
    here: Here,
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="path, backup, check or shell")],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="backup: the new file or folder. shell: the session whose bundle to open",
            show_default=False,
        ),
    ] = None,
    sql: Annotated[
        str | None, typer.Option("--sql", metavar="SQL", help="shell: run this and end, in place of a prompt")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="backup: replace what is at the target")] = False,
    json: JsonOption = False,
) -> int:
    """Do what ACTION says with the files of the store."""
    if action in ("path", "check") and target is not None:
        raise Failure(f"`db {action}` takes no target; --store names another store", code=2)
    if action == "shell" and json:
        raise Failure("`db shell` prints what SQL gives; leave --json out", code=2)
    scheme, _, place = here.store_url.partition(":")
    if scheme not in ("bundles", "sqlite"):
        raise Failure(f"{here.store_url} has no files", code=2)
    if action != "path" and not Path(place).exists():
        raise Failure(f"there is no store at {place}; `playhead run` or `playhead import` makes one", code=3)
    match action:
        case "path":
            return _path(here, Path(place), json=json)
        case "backup":
            if target is None:
                raise Failure("say where the backup goes: `playhead db backup TARGET`", code=2)
            return _backup(here, Path(target).expanduser(), force=force, json=json)
        case "check":
            return _check(here, json=json)
        case "shell":
            return _shell(here, target, sql)


COMMAND = Command(
    run,
    about=(
        "path prints where the store is. backup copies it while others write to it: every session as of one moment, "
        "its artifacts, the trash and the store log; the copy opens as a store. check has SQLite look through every "
        "file (`playhead verify` proves the sessions in them). shell is an SQL prompt that can change nothing; the "
        "view `log` has the events in plain columns."
    ),
    examples=(
        "playhead db path",
        "playhead db backup ~/sessions-backup",
        "playhead db check",
        "playhead db shell @last --sql 'SELECT seq, kind, agent FROM log'",
    ),
    exits=(3, 5, 6, 130),
)


def _path(here: Here, place: Path, *, json: bool) -> int:
    if json:
        beside = [Path(f"{place}{suffix}") for suffix in ("-wal", ".artifacts", ".streams")]
        size = disk_bytes(place, *(beside if not place.is_dir() else ()))
        facts = {"url": here.store_url, "path": str(place), "exists": place.exists(), "size_bytes": size}
        here.terminal.json({**facts, "database_count": len(databases(here.store_url)) if place.exists() else 0})
    else:
        here.terminal.line(str(place))
    return 0


def _backup(here: Here, target: Path, *, force: bool, json: bool) -> int:
    def told(number: int, count: int, name: str) -> None:
        here.terminal.progress(f"Copying {number} of {count}: {name}")

    try:
        done = back_up(here.store_url, target, overwrite=force, on_file=told)
    except StoreExists as error:
        raise Failure(str(error) if force else f"{target} is there already; --force replaces it", code=1) from error
    finally:
        here.terminal.end_progress()
    if json:
        here.terminal.json(document(done))
    else:
        _print_backup(here, done)
    return INTEGRITY_PROBLEM if done.problems else 0


def _print_backup(here: Here, done: BackedUp) -> None:
    here.terminal.line(done.target)
    for name, problem in done.problems.items():
        here.terminal.error(f"{name} was copied as it lies there: {problem}")
    scheme = here.store_url.partition(":")[0]
    here.terminal.note(
        f"{done.database_count} database{'' if done.database_count == 1 else 's'} and {done.file_count} other files, "
        f"{done.size_bytes:,} bytes. To open it: playhead --store {scheme}:{done.target} list"
    )


def _check(here: Here, *, json: bool) -> int:
    found = []
    paths = databases(here.store_url)
    for number, path in enumerate(paths, start=1):
        here.terminal.progress(f"Checking {number} of {len(paths)}: {path.name}")
        found.append(_looked_through(path))
    here.terminal.end_progress()
    damaged = sum(1 for one in found if one.state == "damaged")
    ok = sum(1 for one in found if one.state == "whole")
    if json:
        files = [
            {
                "path": str(one.path),
                "ok": one.state == "whole",
                "is_unread": one.state == "unread",
                "problems": one.problems,
            }
            for one in found
        ]
        here.terminal.json({"files": files, "ok_count": ok, "problem_count": len(found) - ok})
    else:
        here.terminal.table(_COLUMNS, (row for one in found for row in _rows(one)))
        unread = len(found) - ok - damaged
        here.terminal.note(
            f"{ok} of {len(found)} files {'is' if ok == 1 else 'are'} whole"
            + (f"; {unread} could not be read." if unread else ".")
        )
        if damaged:
            here.terminal.note("To learn what can be saved: playhead doctor")
    return INTEGRITY_PROBLEM if damaged else 1 if ok < len(found) else 0


@dataclass(frozen=True, slots=True)
class _File:
    """A file that was looked through. unread: the system did not let anybody; that is no damage."""

    path: Path
    state: Literal["whole", "damaged", "unread"]
    problems: list[str]


def _looked_through(path: Path) -> _File:
    try:
        problems = check_file(path)
    except OF_THE_SYSTEM as error:
        return _File(path, "unread", [str(error)])
    return _File(path, "damaged" if problems else "whole", problems)


_STYLES: dict[str, Style] = {"whole": "green", "damaged": "red", "unread": "yellow"}

_COLUMNS = (Column("FILE", style="cyan"), Column("STATE"), Column("PROBLEM", is_flexible=True))


def _rows(file: _File) -> list[list[Cell | str]]:
    state = Cell(file.state, file.state, style=_STYLES[file.state])
    return [[Cell(file.path.name, str(file.path)), state, problem] for problem in file.problems or [""]]


def _shell(here: Here, target: str | None, sql: str | None) -> int:
    if sql is None and not here.terminal.can_ask:
        raise Failure("an SQL prompt needs a terminal; give the SQL with --sql", code=2)
    path = _database(here, target)
    # Loaded on use: it is thousands of lines that no other command needs.
    from playhead.stores.sqlite.shell import SqlShell

    with SqlShell(path, here.terminal.start) as shell:
        if sql is not None:
            return 0 if shell.run(sql) else 1
        here.terminal.note(f"{path}: nothing can be changed here. .exit leaves, .schema shows what there is.")
        return _prompt(shell)


def _prompt(shell: SqlShell) -> int:
    """Run what a person types until they leave. A statement may go over several lines and ends with a semicolon."""
    from playhead.stores.sqlite.shell import is_complete

    typed = ""
    while True:
        try:
            line = input("  ...> " if typed else "sql> ")
        except KeyboardInterrupt:
            typed = ""
            continue
        except EOFError:
            return 0
        if not typed and line.strip() in (".exit", ".quit"):
            return 0
        typed = f"{typed}\n{line}" if typed else line
        if is_complete(typed):
            shell.run(typed)
            typed = ""


def _database(here: Here, target: str | None) -> Path:
    """Return the file that holds the session, or the only one that there is."""
    files = databases(here.store_url)
    if here.store_url.startswith("sqlite:"):
        if target is not None:
            raise Failure("all sessions are in one file here; leave the session out", code=2)
        return files[0]
    if target is None:
        raise Failure("each session is a file here; name one: `playhead db shell SESSION`", code=2)
    with here.open_existing() as sessions:
        assert isinstance(sessions.store, BundleStore), "the URL says so"
        return sessions.store.path_of(named(sessions, target))
