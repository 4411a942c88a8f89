"""The trash inside a database: a session's row set aside under a key that no session can have.

Its events stay where they are. One changed row is the whole of it, so a session is in the trash or it is not; and
whoever has the session open appends nothing more, since its key is gone and its fence is another one.

The row has an empty app and user, the trash id as its id, and in `holder`, where others name who is in a turn:
`{"trashed": [app, user, id, at]}`, and `"files": [app, user, id]` while files of it may lie under the name of that key.
"""

from __future__ import annotations

from typing import Any

import msgspec

from playhead.errors import InvalidName, SessionExists, StoreDamaged, TrashNotFound
from playhead.model.ids import SessionKey
from playhead.stores.base import ROWS_PAGE_MAX, TrashedRow
from playhead.stores.names import trash_key
from playhead.stores.sqlite.log import SqliteLog, sound_number


class Aside(msgspec.Struct, frozen=True):
    """A row that was set aside. key and at: which session it was, and when it was set aside (UTC seconds). files: the
    key under whose name files of it may lie, or None where all lie under that of its trash id. problem: why key and at
    are not known, or None."""

    number: int
    trash_id: str
    key: SessionKey
    at: float
    files: SessionKey | None = None
    summary: str | None = None
    problem: str | None = None


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    trashed: tuple[str, str, str, float]
    files: tuple[str, str, str] | None = None


def set_aside(log: SqliteLog, key: SessionKey, trash_id: str, *, at: float, files: SessionKey | None) -> None:
    """Take a session out of sight, in one transaction that also drops its text index.

    Raises `SessionNotFound`, `SessionBusy`, and `InvalidName` where the trash id is taken.
    """
    record = _text(key, at, files)
    with log.database.write(through_power_loss=log.durability == "power"):
        number = log.need_number(key)
        log.need_free(key, number)
        if log.number_of(trash_key(trash_id)) is not None:
            raise InvalidName(f"the trash holds something by the id {trash_id!r} already")
        log.unindex(number)
        log.database.query("set_aside", {"number": number, "trash_id": trash_id, "record": record})
    log.forget(key)


def take_back(log: SqliteLog, aside: Aside, key: SessionKey) -> None:
    """Bring a session that was set aside back under a key. Raises `SessionExists` and `TrashNotFound`."""
    with log.database.write(through_power_loss=log.durability == "power"):
        number = need_aside(log, aside.trash_id).number
        if log.number_of(key) is not None:
            raise SessionExists(key.id)
        log.database.query("take_back", {"number": number, "app": key.app, "user": key.user, "id": key.id})
    log.forget(key)


def give_key(log: SqliteLog, key: SessionKey) -> None:
    """Give the one session of a bundle that was not set aside another key, where it has another one."""
    rows = log.sessions(limit=1)
    if not rows or rows[0].key == key or rows[0].problem is not None:
        return
    with log.database.write(through_power_loss=log.durability == "power"):
        number = log.need_number(rows[0].key)
        log.database.query("take_back", {"number": number, "app": key.app, "user": key.user, "id": key.id})
    log.forget(rows[0].key)


def note_files(log: SqliteLog, aside: Aside, files: SessionKey | None) -> None:
    """Note under whose name files of it may lie from now on."""
    with log.database.write(through_power_loss=log.durability == "power"):
        record = _text(aside.key, aside.at, files)
        log.database.query("note_aside", {"number": aside.number, "record": record})


def need_aside(log: SqliteLog, trash_id: str) -> Aside:
    """Return what is set aside under a trash id. Raises `TrashNotFound`."""
    row = log.database.row("aside", {"trash_id": trash_id})
    if row is None:
        raise TrashNotFound(trash_id, store=log.database.path)
    return _aside(row)


def asides(log: SqliteLog, *, after: str | None = None, limit: int = ROWS_PAGE_MAX) -> list[Aside]:
    """Return what is set aside in order of trash ids, those after `after`."""
    bindings = {"after": after, "limit": max(0, min(limit, ROWS_PAGE_MAX))}
    return [_aside(row) for row in log.database.query("list_aside", bindings)]


def trashed_row(log: SqliteLog, aside: Aside) -> TrashedRow:
    """Return what a list of the trash says of it."""
    problem, seq = aside.problem, 0
    try:
        seq = log.tip_of(aside.key, sound_number(aside.number, aside.key)).seq
    except StoreDamaged as error:
        problem = str(error)
    return TrashedRow(aside.trash_id, aside.key, aside.at, seq, aside.summary, problem)


def _aside(row: tuple[Any, ...]) -> Aside:
    number, trash_id, holder, summary = row
    summary = summary if isinstance(summary, str) else None
    try:
        record = msgspec.json.decode(holder, type=_Record)
        (app, user, id, at), files = record.trashed, record.files
        key, moving = SessionKey(app, user, id), SessionKey(*files) if files is not None else None
    except (msgspec.MsgspecError, RecursionError, TypeError, UnicodeDecodeError):
        problem = "it does not say which session it was: the file is damaged"
        return Aside(number, trash_id, SessionKey("", "", trash_id), 0.0, None, summary, problem)
    return Aside(number, trash_id, key, at, moving, summary)


def _text(key: SessionKey, at: float, files: SessionKey | None) -> str:
    moving = None if files is None else (files.app, files.user, files.id)
    return msgspec.json.encode(_Record((key.app, key.user, key.id, float(at)), moving)).decode()
