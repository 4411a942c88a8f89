"""The catalogue of a directory of bundles: the row of each, known without opening it, and how it stays true.

Three things keep it true, each by itself:
- Who writes says so. A bundle is watched from before the first append to it: for as long as a write-ahead log lies
  beside it, every look compares what the files are like with what they were like when they were read. At a turn's end,
  and when the bundle is closed, the writer's row is pushed.
- The directory says so. Its own time changes whenever a name comes or goes, a write-ahead log's too; then its names are
  compared with those in here. Bundles copied in or removed by hand, and all that happened without a catalogue, show so.
- Whoever shows a row looks at its file first. A bundle that was overwritten in its place shows there, or at a refresh,
  which compares them all.

What files are like is compared for equality only, never by age, so no clock can mislead it. It takes the time in that
the system noted the last change of any kind, which nobody can set. Where that is so lately that another change may bear
the same time, the bundle stays watched.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from playhead.errors import (
    PlayheadError,
    StoreClosed,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.stores.base import SessionRow
from playhead.stores.files import os_errors
from playhead.stores.listing import (
    NOT_YET,
    PAGE_MAX,
    Activity,
    Facet,
    ListingPage,
    ListingRow,
    Place,
    Progress,
    Refreshed,
    Sort,
    Wanted,
    is_current,
)
from playhead.stores.names import STORE_LOG, file_stem
from playhead.stores.sqlite.bundle_trash import SUFFIX
from playhead.stores.sqlite.catalogue_file import DAMAGE, CatalogueFile
from playhead.stores.sqlite.connect import Row
from playhead.stores.sqlite.listing import SqliteListingTable
from playhead.stores.sqlite.log import json_list, this_process
from playhead.views.summary import Summary

UNSETTLED = "~"
"""Stands before the print of a bundle that was changed too lately: what changes it now may leave it the same print."""

EMPTIED = "the bundle holds no session"
"""The problem of a bundle whose deletion was cut off: it is no session, and no list shows it."""

TRASHED = "the bundle is in the trash"
"""The problem of a bundle that was set aside and not moved yet; the id of its row's key is the trash id."""

HIDDEN = (EMPTIED, TRASHED)

READINGS_MAX = 5
"""So often a bundle is read again while somebody writes to it; then its row is as of the last reading."""

TICK_NS = 20_000_000
"""Two changes so close to each other may bear the same time: the system's clock for files goes in ticks."""

COARSE_TICK_NS = 2_000_000_000
"""The same on a file system that keeps whole seconds, or two of them."""

WAL_REST_NS = 250_000_000
"""A write-ahead log shows a write a moment before readers of the database see it: one that has not rested so long may
hold more than was read."""

SCAN_FREE_S = 0.005
"""A look through the names that takes no longer is done as often as the directory changes."""

SCAN_SHARE = 4
"""After a longer one, this many times as long passes until the next, unless it is asked for."""

AT_A_TIME = 200
"""So many bundles are taken in in one transaction."""

SHOWN_KEPT = 1_000
"""So many rows are kept as they were shown; beyond that, all are read anew."""

PAGE_TRIES_MAX = 3
"""So often a page is asked for again where rows of it turned out to be old."""

MEMORY_S = 60.0
"""How long a catalogue that could not be written is kept in memory until the file is tried again."""

TRIES_MAX = 5

_log = logging.getLogger("playhead")

T = TypeVar("T")


class _Incomplete(Exception):
    """The file is a new one, and nobody has looked through the directory for it yet."""


class State(msgspec.Struct, frozen=True):
    """What a bundle's files were like. print: all that is compared. changed_at: when the system noted the last change
    of the file, in nanoseconds. has_wal: whether a write-ahead log lies beside it, be it empty. written_at: when one
    that is not empty was written last, else 0."""

    print: str
    inode: int
    changed_at: int
    has_wal: bool
    written_at: int
    size_bytes: int

    def is_settled(self, now: int) -> bool:
        """Return True where what changes from now on shows. now: from before the files were looked at."""
        return _is_past(self.changed_at, now) and (not self.written_at or self.written_at + WAL_REST_NS < now)


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


class _Reading(msgspec.Struct, frozen=True):
    """What was read of a bundle. seen: the stamp that its row had before, None where it had none."""

    name: str
    state: State
    row: SessionRow
    is_settled: bool
    seen: int | None


class _Shown:
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
        unknown = [number for number, _ in stamps if number not in found]
        for row in file.query("bundles_numbered", {"numbers": json_list(unknown)}) if unknown else ():
            bundle = _bundle(row)
            found[bundle.number] = (bundle, bundle.listing_row())
        self._file, self._known = file, {**known, **found} if unknown else known
        return found


class Catalogue:
    """The `Listing` of a directory of bundles. Safe for any thread and any number of processes.

    read: returns what is in a bundle, and whether that holds for as long as the file does not change.
    """

    def __init__(self, folder: Path, *, read: Callable[[Path], tuple[SessionRow, bool]]) -> None:
        self._folder = folder
        self._place = os.path.join(folder, "")
        self._read_bundle = read
        self._looking = threading.RLock()
        self._opening = threading.Lock()
        self._opened: CatalogueFile | None = None
        self._is_closed = False
        self._memory_until = 0.0
        self._seen_at = 0
        self._next_scan_at = 0.0
        self._recent: dict[str, tuple[str, int]] = {}
        """The prints of bundles that were read too soon after a change, and when that was, by a clock that only goes
        on. They are read again for whoever asks later."""
        self._asked = threading.local()
        self._shown = _Shown()

    # As a `Listing`.

    def behind(self, *, limit: int = PAGE_MAX, on_progress: Progress | None = None) -> list[SessionKey]:
        self._asked.at = time.monotonic_ns()
        self.look(on_progress)
        return self._ask(
            lambda file: [
                SessionKey(*key)
                for key in _sound(file.query("behind_bundles", {"limit": max(0, limit)}), list[tuple[str, str, str]])
            ]
        )

    def put(self, key: SessionKey, seq: int, summary: Summary | None, *, problem: str | None = None) -> None:
        text = msgspec.json.encode(summary).decode() if summary is not None else None

        def verb(file: CatalogueFile) -> None:
            with file.write():
                found = file.row("bundle_of", _key(key))
                bundle = _named(file, found[0]) if found is not None else None
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
                        "stamp": _stamp(),
                    },
                )
                SqliteListingTable(file).put(bundle.number, key, summary if problem is None else None)

        self._on(verb)

    def page(
        self,
        wanted: Wanted,
        *,
        sort: Sort = "last_active",
        is_reversed: bool = False,
        after: Place | None = None,
        limit: int = 50,
    ) -> ListingPage:
        def verb(file: CatalogueFile) -> tuple[list[tuple[Bundle, ListingRow]], int, bool]:
            with file.read():
                is_any_unplaced = bool(file.query("is_any_unplaced")[0][0])
                found, total = SqliteListingTable(file).page(
                    wanted, sort=sort, is_reversed=is_reversed, after=after, limit=max(0, min(limit, PAGE_MAX))
                )
                shown = self._shown.rows(file, [number for number, _ in found])
            rows = [(shown[number], forks) for number, forks in found if number in shown]
            return [(bundle, _with_forks(row, forks)) for (bundle, row), forks in rows], total, is_any_unplaced

        # What was read since this thread asked what is behind, on its way to this page, is as of now.
        since = getattr(self._asked, "at", None) or time.monotonic_ns()
        self._asked.at = None
        for number in range(PAGE_TRIES_MAX):
            found, total, is_any_unplaced = self._ask(verb)
            is_changed = number == PAGE_TRIES_MAX - 1 or self._looked_at([bundle for bundle, _ in found], since)
            if not is_changed:
                break
        behind = frozenset(bundle.key for bundle, _ in found if bundle.is_behind)
        return ListingPage([row for _, row in found], total, not (is_changed or behind or is_any_unplaced), behind)

    def facets(self, wanted: Wanted, names: Sequence[Facet]) -> dict[Facet, dict[str, int]]:
        return self._ask(lambda file: SqliteListingTable(file).facets(wanted, names))

    def forks(self, key: SessionKey) -> list[SessionKey]:
        return self._ask(lambda file: SqliteListingTable(file).forks(key))

    def activity(self) -> Activity:
        return self._ask(lambda file: SqliteListingTable(file).activity())

    def session_bytes(self) -> int | None:
        return self._ask(lambda file: int(file.query("bundle_bytes")[0][0]))

    def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        with self._looking:
            removed = self._scan(self._folder_time(), on_progress)
            known = self._on(_names_in)
            changed: dict[str, int] = {}
            gone: list[str] = []
            for name, _, _, print_, stamp in known:
                state = state_of(self._path(name))
                if state is None:
                    gone.append(name)
                elif full or state.print != print_:
                    changed[name] = stamp
            removed += self._drop(gone)
            self._take(changed, is_anew=full, on_progress=on_progress)
            count, unreadable = self._ask(lambda file: file.query("count_bundles")[0])
            return Refreshed(looked_at=int(count), read=len(changed), removed=removed, unreadable=int(unreadable))

    # As the store's own list.

    def look(self, on_progress: Progress | None = None, *, is_scan_due: bool = False, is_for_key: bool = False) -> None:
        """Take in what came, went and was written since the last look. Raises what is wrong with the directory.

        is_scan_due: look through the names if any came or went, however lately that was done. is_for_key: it is only
        asked which session a bundle holds. That changes with its file, so what was read just now is not read again.
        """
        with self._looking:
            changed_at = self._folder_time()
            if not self._is_seen(changed_at) and (is_scan_due or time.monotonic() >= self._next_scan_at):
                self._scan(changed_at, on_progress)
            watched = self._on(lambda file: _sound(file.query("watched_bundles"), list[tuple[str, str, int]]))
            self._look_at(((name, print_, stamp, True) for name, print_, stamp in watched), is_for_key=is_for_key)

    def rows(self, *, app: str | None, user: str | None, after: SessionKey | None, limit: int) -> list[SessionRow]:
        """Return the row of each session in key order, those after `after`."""
        bindings = {
            "app": app,
            "user": user,
            "after_app": after.app if after else None,
            "after_user": after.user if after else None,
            "after_id": after.id if after else None,
            "limit": limit,
        }
        self.look()
        return [bundle.row() for bundle in self._true("bundles_in_order", bindings)]

    def find(self, key: SessionKey) -> Path | None:
        """Return the file that holds a session, whatever its name, or None."""
        return self._first("readable_of", key)

    def known(self, key: SessionKey) -> Path | None:
        """Return the file that is listed as holding a session, or None. Nothing is looked at for it."""
        found = self._ask(lambda file: file.row("bundle_of", _key(key)))
        return self._path(found[0]) if found is not None else None

    def unreadable(self, key: SessionKey) -> Path | None:
        """Return the file that is listed under a key although it cannot be read, or None."""
        return self._first("unreadable_of", key)

    def hidden(self) -> list[Path]:
        """Return the bundles that no list shows: they were set aside and not moved yet, or emptied and not removed."""
        self.look(is_scan_due=True)
        return [self._path(bundle.name) for bundle in self._true("hidden_bundles", {})]

    def _first(self, query: str, key: SessionKey) -> Path | None:
        for is_scan_due in (False, True):
            self.look(is_scan_due=is_scan_due, is_for_key=True)
            found = self._true(query, _key(key))
            if found:
                return self._path(found[0].name)
        return None

    def _true(self, query: str, bindings: Mapping[str, Any]) -> list[Bundle]:
        """Return rows, once their files were looked at."""
        since = time.monotonic_ns()
        for _ in range(PAGE_TRIES_MAX):
            found = self._ask(lambda file: [_bundle(row) for row in file.query(query, bindings)])
            if not self._looked_at(found, since):
                break
        return found

    # Who writes says so. None of these fails: what is not said here is found out.

    def watch(self, path: Path) -> None:
        """Say that a bundle is about to be written to. The caller has it open, so that its write-ahead log lies beside
        it; for as long as that does, every look compares."""

        def verb(file: CatalogueFile) -> None:
            with file.write():
                file.query("watch", {"name": _stored(path.name), "stamp": _stamp()})

        self._say(verb)

    def push(self, path: Path, read: Callable[[], SessionRow]) -> None:
        """Take in what a writer has just written. read: looks into the bundle, which the caller has open."""
        now, state = time.time_ns(), _state_or_none(path)
        if state is not None:
            reading = _Reading(_stored(path.name), state, read(), state.is_settled(now), None)
            self._say(lambda file: self._put_over(file, reading))

    def placed(self, path: Path, row: SessionRow) -> None:
        """Take in a bundle that was just placed whole. Somebody may have found it and written to it before its files
        are looked at here, so it is read again once."""
        state = _state_or_none(path)
        if state is not None:
            reading = _Reading(_stored(path.name), state, row, False, None)
            self._say(lambda file: self._put_over(file, reading))

    def changed(self, path: Path) -> None:
        """Look at one bundle anew: it was removed, moved, or set aside."""

        def verb(_: CatalogueFile) -> None:
            if _state_or_none(path) is None:
                self._drop([_stored(path.name)])
            else:
                self._take({_stored(path.name): self._stamp_of(_stored(path.name))})

        self._say(verb)

    @contextlib.contextmanager
    def closing(self, path: Path, read: Callable[[], SessionRow]) -> Iterator[None]:
        """Close a bundle in the block, and take in what its files are like afterwards: closing it folds its write-ahead
        log into the file. read: looks into the bundle, before it is closed."""
        row, seen = None, None
        with contextlib.suppress(PlayheadError):
            seen = self._stamp_of(_stored(path.name))
            row = read()
        yield
        state = _state_or_none(path)
        if row is None or seen is None or state is None or state.has_wal:
            return  # Somebody else has it open: it stays watched.
        reading = _Reading(_stored(path.name), state, row, True, seen)
        self._say(lambda _: self._keep([reading]))

    def close(self) -> None:
        with self._opening:
            self._is_closed = True
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    # The file.

    def _say(self, verb: Callable[[CatalogueFile], None]) -> None:
        try:
            self._on(verb)
        except PlayheadError as error:
            _log.warning("the catalogue of %s was not told of a change: %s", self._folder, error)

    def _on(self, verb: Callable[[CatalogueFile], T]) -> T:
        """Run a verb on the file, which is made anew where it is damaged or was removed, and kept in memory from then
        on where it cannot be written."""
        for _ in range(TRIES_MAX):
            file = self._file()
            try:
                return verb(file)
            except DAMAGE as error:
                _log.warning("the catalogue of %s is made anew: %s", self._folder, error)
                self._let_go(file, is_damaged=True)
            except StoreLocked:
                raise
            except (StoreFull, StoreReadOnly, StoreUnavailable) as error:
                if file.is_in_place() and not file.is_in_memory:
                    _log.warning("the catalogue of %s is kept in memory: %s", self._folder, error)
                    self._go_on_in_memory(file)
                else:
                    self._let_go(file)
            except StoreClosed:
                if self._is_closed:
                    raise
        raise StoreUnavailable(f"the catalogue of {self._folder} is replaced again and again; retry")

    def _ask(self, verb: Callable[[CatalogueFile], T]) -> T:
        """Run a verb that answers from the rows. A file that was made anew since the last look has none, so the
        directory is looked through for it first."""

        def asked(file: CatalogueFile) -> tuple[T, CatalogueFile]:
            if not file.is_complete:
                file.is_complete = file.row("looks") is not None
            if not file.is_complete:
                raise _Incomplete
            return verb(file), file

        for number in range(TRIES_MAX):
            try:
                answer, file = self._on(asked)
                # Whoever removes a database may take its write-ahead log first, and rows with it.
                if file.is_in_memory or file.is_in_place() or number == TRIES_MAX - 1:
                    return answer
            except _Incomplete:
                self.look(is_scan_due=True)
        _log.warning("the catalogue of %s is kept in memory: it is replaced again and again", self._folder)
        self._go_on_in_memory(self._file())
        self.look(is_scan_due=True)
        return self._on(verb)

    def _file(self) -> CatalogueFile:
        file = self._opened
        if file is not None and not self._is_to_be_left(file):
            return file
        with self._opening:
            if self._is_closed:
                raise StoreClosed(f"the catalogue of {self._folder} is closed")
            file = self._opened
            if file is not None and self._is_to_be_left(file):
                file.close()
                file = self._opened = None
            if file is None:
                file = CatalogueFile.of(self._folder)
                self._take_over(file)
            return file

    def _is_to_be_left(self, file: CatalogueFile) -> bool:
        return time.monotonic() > self._memory_until if file.is_in_memory else not file.is_in_place()

    def _take_over(self, file: CatalogueFile) -> None:
        self._opened = file
        self._seen_at = 0
        self._next_scan_at = 0.0
        if file.is_in_memory:
            self._memory_until = time.monotonic() + MEMORY_S

    def _let_go(self, file: CatalogueFile, *, is_damaged: bool = False) -> None:
        """Close a file that is of no use, so that it is opened, or made, anew."""
        with self._opening:
            if self._opened is file:
                self._opened = None
            if is_damaged:
                file.remove()
            file.close()

    def _go_on_in_memory(self, file: CatalogueFile) -> None:
        with self._opening:
            if self._opened is not file:
                return
            try:
                copy = file.copied()
            except PlayheadError:
                copy = CatalogueFile.empty()
            file.close()
            self._take_over(copy)

    # Looking.

    def _folder_time(self) -> int:
        with os_errors(self._folder):
            return os.stat(self._folder).st_ctime_ns  # Which nobody can set, unlike the other one.

    def _is_seen(self, changed_at: int) -> bool:
        """Return True where no name came or went since the last look through them, of whichever process."""
        self._file()  # One that was removed is noticed here.
        if changed_at != self._seen_at:
            row = self._on(lambda file: file.row("looks"))
            self._seen_at = row[0] if row and row[1] == _boot() else 0
        return changed_at == self._seen_at

    def _scan(self, changed_at: int, on_progress: Progress | None = None) -> int:
        """Compare the names in the directory with those in here, and return how many went."""
        began_at, now, looked_for = time.monotonic(), time.time_ns(), self._file()
        found, with_wal = self._names()
        known = {row[0]: row for row in self._on(_names_in)}
        removed = self._drop([name for name in known if name not in found])
        came = {name: None for name in found if name not in known}
        other = {name: known[name][4] for name in found if name in known and known[name][1] != found[name]}
        watched = [name for name in with_wal if name in known and not known[name][2]]
        self._next_scan_at = self._quiet_until(began_at)
        self._take({**came, **other}, on_progress=on_progress)
        is_told = _is_past(changed_at, now)  # A name that comes later bears another time then.

        def verb(file: CatalogueFile) -> None:
            if file is not looked_for:
                return  # It was made anew meanwhile, and is not complete.
            with file.write():
                if watched:
                    file.query("watch_all", {"names": json_list(watched), "stamp": _stamp()})
                if is_told or not file.is_complete:
                    file.query("set_looks", {"seen_at": changed_at if is_told else 0, "boot": _boot()})
            file.is_complete = True
            self._seen_at = changed_at if is_told else 0

        if watched or is_told or not looked_for.is_complete:
            self._on(verb)
        return removed

    def _names(self) -> tuple[dict[str, int], set[str]]:
        """Return the inode of each bundle in the directory by name, and those beside which a write-ahead log lies."""
        found: dict[str, int] = {}
        with_wal: set[str] = set()
        with os_errors(self._folder), os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name
                if is_bundle(name):
                    found[_stored(name)] = entry.inode()
                elif name.endswith(f"{SUFFIX}-wal"):
                    with_wal.add(_stored(name.removesuffix("-wal")))
        return found, with_wal

    def _quiet_until(self, began_at: float) -> float:
        took = time.monotonic() - began_at
        return time.monotonic() + took * SCAN_SHARE if took > SCAN_FREE_S else 0.0

    def _looked_at(self, bundles: Iterable[Bundle], since: int) -> bool:
        """Look at the files of rows that are about to be shown, and return whether any row was not true.

        since: a bundle that was read then or later need not be read again for being changed lately.
        """
        doubtful = [one for one in bundles if one.is_watched or one.print != _print_of(self._place + one.name)]
        if not doubtful:
            return False
        with self._looking:
            return self._look_at(
                ((one.name, one.print, one.stamp, bool(one.is_watched)) for one in doubtful), since=since
            )

    def _look_at(
        self, bundles: Iterable[tuple[str, str, int, bool]], *, is_for_key: bool = False, since: int | None = None
    ) -> bool:
        """Compare files with what is known of them: (name, print, stamp, whether it is watched) of each."""
        changed: dict[str, int | None] = {}
        gone: list[str] = []
        quiet: list[tuple[str, int]] = []
        for name, print_, stamp, is_watched in bundles:
            state = state_of(self._path(name))
            if state is None:
                gone.append(name)
            elif print_ == f"{UNSETTLED}{state.print}" and (is_for_key or self._is_read(name, state.print, since)):
                pass
            elif state.print != print_:
                changed[name] = stamp
            elif is_watched and not state.has_wal:
                quiet.append((name, stamp))
        if quiet:
            self._on(lambda file: self._unwatch(file, quiet))
        is_any_gone = self._drop(gone) > 0
        return self._take(changed) or is_any_gone

    def _is_read(self, name: str, print_: str, since: int | None) -> bool:
        """Return True where this process has read a bundle since then, with its files as they are now."""
        known, at = self._recent.get(name, ("", 0))
        return since is not None and known == print_ and at >= since

    def _unwatch(self, file: CatalogueFile, names: Sequence[tuple[str, int]]) -> None:
        with file.write():
            for name, seen in names:
                file.query("unwatch", {"name": name, "seen": seen, "stamp": _stamp()})

    def _take(
        self, names: Mapping[str, int | None], *, is_anew: bool = False, on_progress: Progress | None = None
    ) -> bool:
        """Read bundles and take them in, and return whether any row is another one now.

        names: the stamp that each one's row had before its file was looked at. Where somebody wrote the row since then,
        nobody can tell whose reading is the older one: it is read again.
        """
        is_any, looked_at = False, 0
        pending = dict(names)
        for _ in range(READINGS_MAX):
            again: list[str] = []
            every = list(pending.items())
            for first in range(0, len(every), AT_A_TIME):
                if on_progress is not None:
                    on_progress(looked_at, looked_at + len(every) - first)
                found = [self._read(name, seen) for name, seen in every[first : first + AT_A_TIME]]
                readings = [reading for reading in found if reading is not None]
                is_changed, left = self._on(partial(self._put_all, readings=readings, is_anew=is_anew))
                is_any |= is_changed
                again += left
                looked_at += len(found)
            if not again:
                break
            pending = {name: self._stamp_of(name) for name in again}
        if on_progress is not None and looked_at:
            on_progress(looked_at, looked_at)
        return is_any

    def _keep(self, readings: Sequence[_Reading]) -> None:
        """Take in what was read, and read again what has to be."""
        _, again = self._on(partial(self._put_all, readings=readings))
        if again:
            self._take({name: self._stamp_of(name) for name in again})

    def _path(self, name: str) -> Path:
        return self._folder / _file_name(name)

    def _read(self, name: str, seen: int | None) -> _Reading | None:
        path = self._path(name)
        self._recent.pop(name, None)
        began_at, now = time.monotonic_ns(), time.time_ns()
        state = state_of(path)
        for _ in range(READINGS_MAX):
            if state is None:
                return None
            row, is_settled = self._read_bundle(path)
            # A bundle at rest is read without locks: what somebody wrote to meanwhile has to be read again.
            after = state_of(path)
            if after is not None and after.print == state.print:
                if not (is_settled := is_settled and state.is_settled(now)):
                    self._recent[name] = (state.print, began_at)
                return _Reading(name, state, row, is_settled, seen)
            began_at, now, state = time.monotonic_ns(), time.time_ns(), after
        return _Reading(name, state, row, False, seen) if state is not None else None

    # Rows.

    def _put_all(
        self, file: CatalogueFile, readings: Sequence[_Reading], *, is_anew: bool = False
    ) -> tuple[bool, list[str]]:
        """Write rows, and return whether any says something else than before, and which bundles have to be read again:
        those whose rows somebody wrote meanwhile, and what were copies of others and may count now."""
        is_any = False
        again: list[str] = []
        with file.write():
            for reading in readings:
                bundle = _named(file, reading.name)
                if (bundle.stamp if bundle else None) == reading.seen:
                    is_any |= self._put(file, bundle, reading, again, is_anew=is_anew)
                else:
                    is_any = True
                    if bundle is None or not reading.is_settled or bundle.print != reading.state.print:
                        again.append(reading.name)
        return is_any, again

    def _put_over(self, file: CatalogueFile, reading: _Reading) -> None:
        """Take in what this process knows of a bundle, whatever its row says."""
        again: list[str] = []
        with file.write():
            self._put(file, _named(file, reading.name), reading, again)
        if again:
            self._take({one: self._stamp_of(one) for one in again})

    def _put(
        self,
        file: CatalogueFile,
        bundle: Bundle | None,
        reading: _Reading,
        again: list[str],
        *,
        is_anew: bool = False,
    ) -> bool:
        """Write a row, and return whether it says anything else than before. again: takes the names of bundles that
        were copies of this one and may count now. The caller is in a transaction."""
        row, state = reading.row, reading.state
        key, problem, copy_of = row.key, row.problem, None
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
            counting = file.row("bundle_of", _key(key))
            if counting is not None and counting[0] != reading.name:
                if _counts_before(reading.name, counting[0], key):
                    self._make_copy(file, counting[0], reading.name)
                    again += [name for (name,) in file.query("copies_of", {"name": counting[0]})]
                else:
                    copy_of = counting[0]
                    key, problem = _key_by_name(_file_name(reading.name)), _copy_problem(reading.name, copy_of)
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
                "stamp": _stamp(),
                "is_watched": state.has_wal or not reading.is_settled,
                **_key(key),
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

    def _make_copy(self, file: CatalogueFile, name: str, of: str) -> None:
        """Say of a bundle that another one with the same session counts. The caller is in a transaction."""
        bundle = _named(file, name)
        assert bundle is not None, "it was found in this transaction"
        bindings = msgspec.structs.asdict(bundle) | _key(_key_by_name(_file_name(name)))
        del bindings["number"]
        bindings |= {"copy_of": of, "problem": _copy_problem(name, of), "is_behind": False, "stamp": _stamp()}
        file.query("put_bundle", bindings)
        SqliteListingTable(file).put(bundle.number, _key_by_name(_file_name(name)), None)

    def _drop(self, names: Sequence[str]) -> int:
        """Drop the rows of bundles that are gone, and return how many there were."""
        gone = [name for name in names if not os.path.lexists(self._path(name))]
        if not gone:
            return 0

        def verb(file: CatalogueFile) -> tuple[int, list[str]]:
            count, again = 0, []
            with file.write():
                for name in gone:
                    again += [one for (one,) in file.query("copies_of", {"name": name})]
                    found = file.row("remove_bundle", {"name": name})
                    if found is not None:
                        SqliteListingTable(file).remove(found[0])
                        count += 1
            return count, again

        count, again = self._on(verb)
        if again:
            self._take({name: self._stamp_of(name) for name in again})
        return count

    def _stamp_of(self, name: str) -> int | None:
        bundle = self._on(lambda file: _named(file, name))
        return bundle.stamp if bundle is not None else None


def is_bundle(name: str) -> bool:
    """Return True for the name of a bundle's file."""
    return name.endswith(SUFFIX) and not name.startswith(".") and name != STORE_LOG


def state_of(path: Path | str) -> State | None:
    """Return what a bundle's files are like, None where there is none. An empty write-ahead log is as good as none: it
    comes and goes with every reader. Raises what is wrong where the system does not say."""
    try:
        main = os.lstat(path)
    except OSError as error:
        if isinstance(error, _GONE):
            return None
        with os_errors(Path(path)):
            raise
    print_, written_at, size = _figures(main), 0, _bytes_of(main)
    has_wal = True
    try:
        wal = os.lstat(f"{path}-wal")
    except OSError:
        has_wal = False
    else:
        if wal.st_size:
            # Without the time of any change: where root opens a database, SQLite gives its write-ahead log an owner.
            print_ = f"{print_} {wal.st_ino}.{wal.st_size}.{wal.st_mtime_ns}"
            size, written_at = size + _bytes_of(wal), wal.st_mtime_ns
    return State(print_, main.st_ino, main.st_ctime_ns, has_wal, written_at, size)


_GONE = (FileNotFoundError, NotADirectoryError)


def _state_or_none(path: Path) -> State | None:
    with contextlib.suppress(PlayheadError):
        return state_of(path)
    return None


def _print_of(path: str) -> str:
    """Return the print of a bundle without a write-ahead log."""
    try:
        return _figures(os.lstat(path))
    except OSError:
        return ""


def _figures(found: os.stat_result) -> str:
    return f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _bytes_of(found: os.stat_result) -> int:
    return found.st_blocks * 512 if hasattr(found, "st_blocks") else found.st_size


def _is_past(changed_at: int, now: int) -> bool:
    """Return True where what changes from now on bears a later time than this one."""
    return changed_at + (COARSE_TICK_NS if changed_at % 1_000_000_000 == 0 else TICK_NS) < now


def _counts_before(name: str, other: str, key: SessionKey) -> bool:
    """Return True for the bundle that counts where two hold the same session: the one with the session's own name, else
    the first by name."""
    own = f"{file_stem(key)}{SUFFIX}"
    return name == own or (other != own and name < other)


def _copy_problem(name: str, of: str) -> str:
    return f"{name} holds the same session as {of}"


def _stored(name: str) -> str:
    """Return a file's name as the catalogue keeps it. One that is no UTF-8 is kept in hex, after a sign that no name
    has."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"/{os.fsencode(name).hex()}"
    return name


def _file_name(stored: str) -> str:
    return os.fsdecode(bytes.fromhex(stored[1:])) if stored.startswith("/") else stored


def _key_by_name(name: str) -> SessionKey:
    return SessionKey(DEFAULT_APP, DEFAULT_USER, name.removesuffix(SUFFIX))


def _named(file: CatalogueFile, name: str) -> Bundle | None:
    row = file.row("bundle_named", {"name": name})
    return _bundle(row) if row is not None else None


def _names_in(file: CatalogueFile) -> list[tuple[str, int, int, str, int]]:
    """Return name, inode, whether it is watched, print and stamp of each bundle."""
    return _sound(file.query("bundle_names"), list[tuple[str, int, int, str, int]])


def _with_forks(row: ListingRow, count: int) -> ListingRow:
    return msgspec.structs.replace(row, fork_count=count) if count else row


def _bundle(row: Row) -> Bundle:
    return _sound(row, Bundle)


def _sound(values: Sequence[Any], type: type[T]) -> T:
    """Return what the catalogue says, once it is of the types that it should be: a page of it may have been lost."""
    try:
        return msgspec.convert(values, type)
    except msgspec.ValidationError as error:
        raise StoreDamaged(f"a row of it holds what no row does: {error}") from error


def _key(key: SessionKey) -> dict[str, str]:
    # The id of one that cannot be read is of its file's name, which need be no Unicode.
    return {"app": key.app, "user": key.user, "id": key.id.encode("utf-8", "replace").decode()}


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


def _stamp() -> int:
    return secrets.randbits(62)


def _decoded(text: str | None) -> Summary | None:
    if text is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return _read_summary.decode(text)
    return None


_read_summary = msgspec.json.Decoder(Summary)


@cache
def _boot() -> str:
    """Name this run of the machine, where the system can tell: a loss of power ends it, and with it what was not
    written yet."""
    return str(this_process().get("boot", ""))
