"""The `rm` command: put sessions into the trash, or remove them for good."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from playhead.cli.asking import agreed
from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.completing import completed_sessions
from playhead.cli.failures import Failure
from playhead.cli.history import forget, history_file
from playhead.cli.naming import PREFIX_CHARS_MIN, named, short_names, surely_named, title_of
from playhead.cli.rows import row_of, rows
from playhead.cli.table import Cell, Column
from playhead.errors import NewerFormat, NotAStore, SessionBusy, SessionNotFound, StoreDamaged, TrashNotFound
from playhead.features.listing import Listed, Wanted
from playhead.features.trash import Trashed
from playhead.model.body import parts_in
from playhead.model.ids import SessionKey
from playhead.model.parts import text_of
from playhead.session import Sessions
from playhead.stores.listing import UNREADABLE

_UNREADABLE = (StoreDamaged, NotAStore, NewerFormat)


def run(
    here: Here,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION",
            help="Each a whole id, the first four or more characters of one, @last or @-2; never a title",
            show_default=False,
            autocompletion=completed_sessions,
        ),
    ] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Remove for good, past the trash; there is no undo")] = False,
    empty_trash: Annotated[
        bool, typer.Option("--empty-trash", help="Remove for good all that is in the trash; there is no undo")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would go, and change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove for good without asking")] = False,
    json: JsonOption = False,
) -> None:
    """Put the sessions into the trash; all names are looked up, and all sessions found free, before the first goes."""
    if empty_trash == bool(sessions):
        raise Failure("name the sessions to remove, or give --empty-trash", code=2)
    is_for_good = purge or empty_trash
    with here.open_existing() as opened:
        going = [_of_trash(one) for one in opened.trashed()] if empty_trash else _named_all(opened, sessions or ())
        if is_for_good and going and not dry_run and not yes and not agreed(here.terminal, _question(going)):
            raise Failure("nothing was removed", code=1)
        typed = _typed(opened, going) if is_for_good and not dry_run else set()
        gone = going if dry_run else [_removed(opened, one, is_for_good=is_for_good) for one in going]
    if is_for_good and gone and not dry_run:
        _forget(here, typed, is_all=all(one.trash_id is None for one in gone))
    if json:
        here.terminal.json(
            {
                "is_dry_run": dry_run,
                "is_for_good": is_for_good,
                "sessions": [one.document() for one in gone],
            }
        )
        return
    shorter = short_names(one.key for one in gone)
    here.terminal.table(
        _COLUMNS, ([Cell(shorter[one.key], str(one.key)), one.title, one.trash_id or ""] for one in gone)
    )
    here.terminal.note(_summed_up(gone, is_for_good=is_for_good, is_dry_run=dry_run))
    if not is_for_good and not dry_run:
        here.terminal.note(f"To undo: playhead restore {' '.join(one.trash_id or '' for one in gone)}")


COMMAND = Command(
    run,
    about=(
        "A session in the trash is in no list and no search; `restore` brings it back as it was. Its id may be used "
        "again meanwhile. Forks of it stay as they are.\n\n"
        "--purge and --empty-trash remove for good. They ask first; where nobody can be asked, they need --yes. "
        "--purge takes the prompts out of chat's line history as well; those of a session in the trash cannot be read, "
        "so --empty-trash says where that file is."
    ),
    examples=(
        "playhead rm @last --dry-run",
        "playhead rm @last",
        "playhead rm older-0001 --purge --yes",
        "playhead rm --empty-trash --yes",
    ),
    exits=(3, 4, 5),
)

_COLUMNS = (Column("ID", style="cyan"), Column("TITLE", is_flexible=True), Column("TRASHED AS", style="dim", leaves=1))


@dataclass(frozen=True, slots=True)
class _Going:
    """A session that goes. trash_id: what it goes by in the trash, None for one that is not there. problem: why it
    cannot be read, or None."""

    key: SessionKey
    title: str
    event_count: int | None
    trash_id: str | None = None
    problem: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "id": self.key.id,
            "app": self.key.app,
            "user": self.key.user,
            "title": None if self.problem else self.title,
            "event_count": self.event_count,
            "trash_id": self.trash_id,
            "problem": self.problem,
        }


def _named_all(sessions: Sessions, names: Sequence[str]) -> list[_Going]:
    """Return what the names mean, each once. Raises `SessionBusy` where somebody is in a turn of one."""
    going = [_of_row(_row(sessions, key)) for key in dict.fromkeys(_key_of(sessions, name) for name in names)]
    for one in going:
        holder = None if one.problem else sessions.store.holder(one.key)
        if holder is not None:
            raise SessionBusy(one.key.id, holder)
    return going


def _key_of(sessions: Sessions, name: str) -> SessionKey:
    """Return the key that `name` means. A title is not enough: two sessions may come to have the same one."""
    try:
        if (sure := surely_named(sessions, name)) is not None:
            return sure
        key = named(sessions, name)
    except _UNREADABLE:
        wanted = Wanted(begins=name, status=UNREADABLE)
        unreadable = [row.key for row in rows(sessions, wanted) if name in (row.key.id, str(row.key))]
        if len(unreadable) != 1:
            raise
        return unreadable[0]
    spellings = (key.id, str(key), key.id.partition(".")[2])
    is_begun = len(name) >= PREFIX_CHARS_MIN and any(spelling.startswith(name) for spelling in spellings)
    if is_begun:
        return key
    raise Failure(f'"{name}" is a title, and nothing is removed by its title; its id is {key}', code=3)


def _row(sessions: Sessions, key: SessionKey) -> Listed:
    row = row_of(sessions, key)
    if row is None:
        raise SessionNotFound(key.id, store=sessions.url)
    return row


def _of_row(row: Listed) -> _Going:
    event_count = None if row.summary is None else row.summary.event_count
    return _Going(row.key, title_of(row), event_count, problem=row.problem)


def _of_trash(one: Trashed) -> _Going:
    return _Going(one.key, one.title or f"({one.problem})", one.event_count, one.trash_id, one.problem)


def _removed(sessions: Sessions, one: _Going, *, is_for_good: bool) -> _Going:
    key = one.key
    if one.trash_id is not None:
        with suppress(TrashNotFound):  # Somebody else purged or restored it meanwhile.
            sessions.purge(one.trash_id)
        return one
    if not is_for_good:
        return _Going(key, one.title, one.event_count, sessions.trash(key.id, app=key.app, user=key.user), one.problem)
    if one.problem is None:
        sessions.delete(key.id, app=key.app, user=key.user)
    else:  # What cannot be read cannot be emptied: it goes as a file.
        sessions.purge(sessions.trash(key.id, app=key.app, user=key.user))
    return one


def _typed(sessions: Sessions, going: Sequence[_Going]) -> set[str]:
    """Return the prompts of the sessions that can be read: those of one in the trash cannot."""
    found: set[str] = set()
    for one in going:
        if one.trash_id is not None or one.problem is not None:
            continue
        session = sessions.get(one.key.id, app=one.key.app, user=one.key.user)
        seq = 0
        while page := session.events(after=seq, kinds=["message"]):
            texts = [text_of(parts_in(event.body)) for event in page if event.agent == "user"]
            # What would be a command is typed with one more slash.
            found.update(texts, (f"/{text}" for text in texts if text.startswith("/")))
            seq = page[-1].seq
    return found


def _forget(here: Here, typed: Collection[str], *, is_all: bool) -> None:
    """Take the prompts out of the line history as well, and say where there may be more.

    is_all: there can be none of other sessions.
    """
    file = history_file(here.environment)
    try:
        forget(file, typed)
        if not is_all and file.exists():
            here.terminal.note(f"What was typed in a chat may still be in its line history: {file}")
    except OSError as error:
        here.terminal.note(f"The line history still has what was typed: {file}: {error.strerror}")


def _question(going: Sequence[_Going]) -> str:
    if len(going) == 1:
        return f'Remove "{going[0].title}" ({going[0].key}) for good?'
    return f"Remove {len(going)} sessions for good?"


def _summed_up(gone: Sequence[_Going], *, is_for_good: bool, is_dry_run: bool) -> str:
    if not gone:
        return "The trash is empty."
    what = "1 session" if len(gone) == 1 else f"{len(gone)} sessions"
    if is_dry_run:
        where = "be removed for good" if is_for_good else "go to the trash"
        return f"{what} would {where}. Nothing was changed."
    verb = "is" if len(gone) == 1 else "are"
    return f"{what} {verb} removed for good." if is_for_good else f"{what} {verb} in the trash."
