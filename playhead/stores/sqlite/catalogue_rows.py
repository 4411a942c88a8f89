"""The rows of the catalogue of a directory of bundles: what is written of each, in one transaction, and how it is read.

Each row bears a stamp, which changes with every write to it. Whoever read a bundle writes its row only where that is
the one that was there before: nobody can tell which of two readings is the older one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from playhead.errors import StoreDamaged
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.stores.base import SessionRow
from playhead.stores.listing import NOT_YET, ListingRow, is_current
from playhead.stores.names import STORE_LOG, as_text, file_stem
from playhead.stores.sqlite.bundle_trash import SUFFIX
from playhead.stores.sqlite.catalogue_file import CatalogueFile
from playhead.stores.sqlite.connect import Row
from playhead.stores.sqlite.listing import SqliteListingTable
from playhead.stores.sqlite.log import json_list
from playhead.stores.sqlite.prints import State
from playhead.views.summary import Summary

UNSETTLED = "~"
"""Stands before the print of a bundle that was changed too lately: what changes it now may leave it the same print."""

EMPTIED = "the bundle holds no session"
"""The problem of a bundle whose deletion was cut off: it is no session, and no list shows it."""

TRASHED = "the bundle is in the trash"
"""The problem of a bundle that was set aside and not moved yet; the id of its row's key is the trash id."""

HIDDEN = (EMPTIED, TRASHED)

NAME_CHARS_MAX = 255
"""No file system has longer names."""

SHOWN_KEPT = 1_000
"""So many rows are kept as they were shown; beyond that, all are read anew."""

T = TypeVar("T")


class Bundle(msgspec.Struct, frozen=True, array_like=True):
    """A row of the catalogue, as SQLite has it; `catalogue.sql` explains the fields."""

    number: int
    name: str
    inode: int
    print: str
    stamp: int
    is_watched: int
    app: str
    user: str
    id: str
    seq: int
    at: float
    summary: str | None
    summary_seq: int
    problem: str | None
    trouble: str | None
    copy_of: str | None
    is_listed: int
    is_behind: int
    size_bytes: int

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.app, self.user, self.id)

    def row(self) -> SessionRow:
        """Return what the store's own list says of it."""
        return SessionRow(self.key, self.seq, self.at, self.summary, self.summary_seq, self.problem, self.size_bytes)

    def listing_row(self) -> ListingRow:
        """Return what lists show. Raises `StoreDamaged` where it should have a summary that is lost."""
        problem = self.problem or self.trouble
        summary = _decoded(self.summary) if problem is None else None
        if summary is None and problem is None:
            if not self.is_behind:
                raise StoreDamaged(f"the summary of {self.name} in it cannot be read")
            problem = NOT_YET
        return ListingRow(self.key, summary, problem, self.size_bytes)


class Reading(msgspec.Struct, frozen=True):
    """What was read of a bundle. seen: the stamp that its row had before, None where it had none. stamp: the one that
    its row gets."""

    name: str
    state: State
    row: SessionRow
    is_settled: bool
    seen: int | None
    stamp: int = msgspec.field(default_factory=lambda: new_stamp())


class ShownRows:
    """Rows that were shown before, as they are as long as their stamps do not change. Safe for any thread."""

    def __init__(self) -> None:
        self._file: CatalogueFile | None = None
        self._known: dict[int, tuple[Bundle, ListingRow]] = {}

    def rows(self, file: CatalogueFile, numbers: Sequence[int]) -> dict[int, tuple[Bundle, ListingRow]]:
        """Return the row of each bundle that is there, by its number. The caller is in a transaction that reads."""
        known = self._known if self._file is file and len(self._known) <= SHOWN_KEPT else {}
        stamps = file.query("stamps_numbered", {"numbers": json_list(numbers)})
        found = {
            number: known[number] for number, stamp in stamps if number in known and known[number][0].stamp == stamp
        }
        if len(stamps) < len(set(numbers)):
            raise StoreDamaged("a list in it names a bundle that is not there")
        unknown = [number for number, _ in stamps if number not in found]
        for row in file.query("bundles_numbered", {"numbers": json_list(unknown)}) if unknown else ():
            bundle = as_bundle(row)
            found[bundle.number] = (bundle, bundle.listing_row())
        self._file, self._known = file, {**known, **found} if unknown else known
        return found


def put_summary(
    file: CatalogueFile, key: SessionKey, seq: int, text: str | None, summary: Summary | None, problem: str | None
) -> None:
    """Keep the row that somebody worked out of a log up to `seq`, unless a newer one is there."""
    with file.write():
        found = file.row("bundle_of", key_bindings(key))
        bundle = named(file, found[0]) if found is not None else None
        kept = _decoded(bundle.summary) if bundle is not None else None
        if bundle is None or seq < max(bundle.seq, kept.seq if kept is not None else 0):
            return
        file.query(
            "set_bundle_summary",
            {
                "number": bundle.number,
                "summary": text,
                "summary_seq": seq if text is not None else 0,
                "trouble": problem,
                "is_behind": problem is None and not is_current(summary, bundle.seq),
                "stamp": new_stamp(),
            },
        )
        SqliteListingTable(file).put(bundle.number, key, summary if problem is None else None)


def put_readings(file: CatalogueFile, readings: Sequence[Reading], *, is_anew: bool = False) -> tuple[bool, list[str]]:
    """Write rows, and return whether any says something else than before, and which bundles have to be read again:
    those whose rows somebody wrote meanwhile, and what were copies of others and may count now."""
    is_any = False
    again: list[str] = []
    with file.write():
        for reading in readings:
            bundle = named(file, reading.name)
            if (bundle.stamp if bundle else None) == reading.seen:
                is_any |= _put(file, bundle, reading, again, is_anew=is_anew)
            else:
                is_any = True
                # Of a write-ahead log the later reading may say more, although it looks the same.
                is_same = bundle is not None and reading.is_settled and bundle.print == reading.state.print
                if not is_same or reading.state.written_at:
                    again.append(reading.name)
    return is_any, again


def put_over(file: CatalogueFile, reading: Reading) -> list[str]:
    """Write what this process knows of a bundle, whatever its row says; return bundles that have to be read again."""
    again: list[str] = []
    with file.write():
        _put(file, named(file, reading.name), reading, again)
    return again


def _put(
    file: CatalogueFile,
    bundle: Bundle | None,
    reading: Reading,
    again: list[str],
    *,
    is_anew: bool = False,
) -> bool:
    """Write a row, and return whether it says anything else than before. again: takes the names of bundles that
    were copies of this one and may count now. The caller is in a transaction."""
    row, state = reading.row, reading.state
    key, problem, copy_of = SessionKey(row.key.app, row.key.user, as_text(row.key.id)), row.problem, None
    text, summary_seq = row.summary, row.summary_seq
    summary = _decoded(text)
    trouble = None
    if bundle is not None and bundle.inode == state.inode and not is_anew:
        kept = _decoded(bundle.summary)
        is_same = (bundle.seq, bundle.at) == (row.seq, row.at)
        if kept is not None and (is_same or _is_of(kept, row)) and _is_better(kept, summary, row.seq):
            # Whoever listed worked it out, which the bundle does not know of.
            text, summary_seq, summary = bundle.summary, kept.seq, kept
        if bundle.seq == row.seq and bundle.print in (state.print, f"{UNSETTLED}{state.print}"):
            trouble = bundle.trouble
    if problem is None:
        counting = file.row("bundle_of", key_bindings(key))
        if counting is not None and counting[0] != reading.name:
            if _counts_before(reading.name, counting[0], key):
                _make_copy(file, counting[0], reading.name)
                again += [name for (name,) in file.query("copies_of", {"name": counting[0]})]
            else:
                copy_of = counting[0]
                key, problem = _key_by_name(file_name(reading.name)), _copy_problem(reading.name, copy_of)
    is_listed = problem not in HIDDEN
    is_behind = is_listed and not (problem or trouble or is_current(summary, row.seq))
    if bundle is not None and bundle.problem is None and bundle.is_listed and (problem or bundle.key != key):
        again += [name for (name,) in file.query("copies_of", {"name": reading.name})]
    found = file.row(
        "put_bundle",
        {
            "name": reading.name,
            "inode": state.inode,
            "print": state.print if reading.is_settled else f"{UNSETTLED}{state.print}",
            "stamp": reading.stamp,
            "is_watched": state.has_wal or not reading.is_settled,
            **key_bindings(key),
            "seq": row.seq,
            "at": row.at,
            "summary": text,
            "summary_seq": summary_seq,
            "problem": problem,
            "trouble": trouble,
            "copy_of": copy_of,
            "is_listed": is_listed,
            "is_behind": is_behind,
            "size_bytes": state.size_bytes,
        },
    )
    assert found is not None, "RETURNING gives a row or raises"
    if bundle is not None and _told(bundle) == (key, row.seq, row.at, text, problem, trouble, is_listed):
        return False
    table = SqliteListingTable(file)
    if is_listed:
        table.put(found[0], key, summary if problem is None and trouble is None else None)
    else:
        table.remove(found[0])
    return True


def _make_copy(file: CatalogueFile, name: str, of: str) -> None:
    """Say of a bundle that another one with the same session counts. The caller is in a transaction."""
    bundle = named(file, name)
    if bundle is None:
        raise StoreDamaged(f"{name} is in an index of it and not in its table")
    bindings = msgspec.structs.asdict(bundle) | key_bindings(_key_by_name(file_name(name)))
    del bindings["number"]
    bindings |= {"copy_of": of, "problem": _copy_problem(name, of), "is_behind": False, "stamp": new_stamp()}
    file.query("put_bundle", bindings)
    SqliteListingTable(file).put(bundle.number, _key_by_name(file_name(name)), None)


def drop(file: CatalogueFile, names: Sequence[str]) -> tuple[int, list[str]]:
    """Drop rows, and return how many there were, and the bundles that were copies of them and may count now."""
    count, again = 0, []
    with file.write():
        for name in names:
            again += [one for (one,) in file.query("copies_of", {"name": name})]
            found = file.row("remove_bundle", {"name": name})
            if found is not None:
                SqliteListingTable(file).remove(found[0])
                count += 1
    return count, again


def unwatch(file: CatalogueFile, names: Sequence[tuple[str, int]]) -> None:
    with file.write():
        for name, seen in names:
            file.query("unwatch", {"name": name, "seen": seen, "stamp": new_stamp()})


def _counts_before(name: str, other: str, key: SessionKey) -> bool:
    """Return True for the bundle that counts where two hold the same session: the one with the session's own name, else
    the first by name."""
    own = f"{file_stem(key)}{SUFFIX}"
    return name == own or (other != own and name < other)


def _copy_problem(name: str, of: str) -> str:
    return f"{name} holds the same session as {of}"


def stored_name(name: str) -> str:
    """Return a file's name as the catalogue keeps it. One that is no UTF-8 is kept in hex, after a sign that no name
    has."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"/{os.fsencode(name).hex()}"
    return name


def file_name(stored: str) -> str:
    """Return the name of a file in the directory. Raises `StoreDamaged` for what is no bundle's name: a catalogue that
    came from elsewhere must not lead out of the directory."""
    try:
        name = os.fsdecode(bytes.fromhex(stored[1:])) if stored.startswith("/") else stored
    except ValueError as error:
        raise StoreDamaged("a row of it holds what is no name") from error
    if not is_bundle(name) or "/" in name or "\0" in name or os.path.basename(name) != name:
        raise StoreDamaged("a row of it holds what is no bundle's name")
    return name


def is_bundle(name: str) -> bool:
    """Return True for the name of a bundle's file."""
    return name.endswith(SUFFIX) and not name.startswith(".") and name != STORE_LOG and len(name) <= NAME_CHARS_MAX


def _key_by_name(name: str) -> SessionKey:
    return SessionKey(DEFAULT_APP, DEFAULT_USER, as_text(name.removesuffix(SUFFIX)))


def named(file: CatalogueFile, name: str) -> Bundle | None:
    row = file.row("bundle_named", {"name": name})
    return as_bundle(row) if row is not None else None


def names_in(file: CatalogueFile) -> list[tuple[str, int, int, str, int]]:
    """Return name, inode, whether it is watched, print and stamp of each bundle."""
    found = sound(file.query("bundle_names"), list[tuple[str, int, int, str, int]])
    for name, *_ in found:
        file_name(name)
    return found


def watched_in(file: CatalogueFile) -> list[tuple[str, str, int]]:
    """Return name, print and stamp of each bundle that somebody may be writing to."""
    found = sound(file.query("watched_bundles"), list[tuple[str, str, int]])
    for name, *_ in found:
        file_name(name)
    return found


def with_forks(row: ListingRow, count: int) -> ListingRow:
    return msgspec.structs.replace(row, fork_count=count) if count else row


def as_bundle(row: Row) -> Bundle:
    bundle = sound(row, Bundle)
    file_name(bundle.name)
    return bundle


def sound(values: Sequence[Any], type: type[T]) -> T:
    """Return what the catalogue says, once it is of the types that it should be: a page of it may have been lost."""
    try:
        return msgspec.convert(values, type)
    except msgspec.ValidationError as error:
        raise StoreDamaged(f"a row of it holds what no row does: {error}") from error


def key_bindings(key: SessionKey) -> dict[str, str]:
    return {"app": key.app, "user": key.user, "id": as_text(key.id)}


def _told(bundle: Bundle) -> tuple[object, ...]:
    """Return what lists say of a bundle."""
    return (
        bundle.key,
        bundle.seq,
        bundle.at,
        bundle.summary,
        bundle.problem,
        bundle.trouble,
        bundle.is_listed,
    )


def _is_of(kept: Summary, row: SessionRow) -> bool:
    """Return False for a summary of another log than the one that a bundle holds now."""
    return kept.seq < row.seq or (kept.seq == row.seq and kept.last_active_at == max(row.at, kept.created_at))


def _is_better(kept: Summary, saved: Summary | None, seq: int) -> bool:
    """Return True for a summary that says more of a log than the one that is saved in its bundle."""
    if saved is None or saved.seq > seq:
        return kept.seq <= seq
    return (kept.seq, is_current(kept, seq)) > (saved.seq, is_current(saved, seq))


def new_stamp() -> int:
    return secrets.randbits(62)


def _decoded(text: str | None) -> Summary | None:
    if text is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return _read_summary.decode(text)
    return None


_read_summary = msgspec.json.Decoder(Summary)
