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
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from playhead.errors import PlayheadError
from playhead.model.ids import SessionKey
from playhead.stores.base import SessionRow
from playhead.stores.files import os_errors
from playhead.stores.listing import (
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
)
from playhead.stores.sqlite.bundle_trash import SUFFIX
from playhead.stores.sqlite.catalogue_file import CatalogueFile
from playhead.stores.sqlite.catalogue_kept import KeptCatalogue
from playhead.stores.sqlite.catalogue_rows import (
    UNSETTLED,
    Bundle,
    Reading,
    ShownRows,
    as_bundle,
    drop,
    file_name,
    is_bundle,
    key_bindings,
    named,
    names_in,
    new_stamp,
    put_over,
    put_readings,
    put_summary,
    sound,
    stored_name,
    unwatch,
    watched_in,
    with_forks,
)
from playhead.stores.sqlite.listing import SqliteListingTable
from playhead.stores.sqlite.log import json_list, this_process
from playhead.stores.sqlite.prints import is_past, print_of, state_of, state_or_none
from playhead.views.summary import Summary

READINGS_MAX = 5
"""So often a bundle is read again while somebody writes to it; then its row is as of the last reading."""

SCANS_MAX = 3
"""So often names are read again that came or went while they were read."""

SCAN_FREE_S = 0.005
"""A look through the names that takes no more CPU time, as with some thousands, is done as often as they change."""

SCAN_SHARE = 4
"""After a longer one, this many times as long passes until the next, unless it is asked for."""

TRUST_MAX_NS = 60_000_000_000
"""A write-ahead log shows a write before readers of the database see it, and whoever writes may be stopped in between.
So a bundle with one is read again when it has rested twice as long as at its last reading, and after this time anyway.
"""

AT_A_TIME = 200
"""So many bundles are taken in in one transaction."""

PAGE_TRIES_MAX = 3
"""So often a page is asked for again where rows of it turned out to be old."""

_log = logging.getLogger("playhead")

T = TypeVar("T")


class Catalogue:
    """The `Listing` of a directory of bundles. Safe for any thread and any number of processes.

    read: returns what is in a bundle, and whether that holds for as long as the file does not change.
    """

    def __init__(self, folder: Path, *, read: Callable[[Path], tuple[SessionRow, bool]]) -> None:
        self._folder = folder
        self._place = os.path.join(folder, "")
        self._read_bundle = read
        self._looking = threading.RLock()
        self._kept = KeptCatalogue(folder)
        self._recent: dict[str, tuple[str, int, int, int]] = {}
        """The prints of bundles that were read soon after a change or with a write-ahead log, when that was, and until
        when it is trusted, by a clock that only goes on, and the stamp of the row. Afterwards they are read again."""
        self._asked = threading.local()
        self._shown = ShownRows()

    # As a `Listing`.

    def behind(self, *, limit: int = PAGE_MAX, on_progress: Progress | None = None) -> list[SessionKey]:
        self._asked.at = time.monotonic_ns()
        self.look(on_progress)
        return self._ask(
            lambda file: [
                SessionKey(*key)
                for key in sound(file.query("behind_bundles", {"limit": max(0, limit)}), list[tuple[str, str, str]])
            ]
        )

    def put(self, key: SessionKey, seq: int, summary: Summary | None, *, problem: str | None = None) -> None:
        text = msgspec.json.encode(summary).decode() if summary is not None else None

        self._kept.on(lambda file: put_summary(file, key, seq, text, summary, problem))

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
            return [(bundle, with_forks(row, forks)) for (bundle, row), forks in rows], total, is_any_unplaced

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
            known = self._kept.on(names_in)
            changed: dict[str, int] = {}
            gone: list[str] = []
            for name, _, _, print_, stamp in known:
                state = state_of(self._path(name))
                if state is None:
                    gone.append(name)
                elif full or state.print != print_ or state.written_at:
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
            is_paused = not is_scan_due and time.monotonic() < self._kept.file().next_scan_at
            if not self._is_seen(changed_at) and not is_paused:
                self._scan(changed_at, on_progress)
            watched = self._kept.on(watched_in)
            self._recent = {name: self._recent[name] for name, *_ in watched if name in self._recent}
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
        found = self._ask(lambda file: file.row("bundle_of", key_bindings(key)))
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
            found = self._true(query, key_bindings(key))
            if found:
                return self._path(found[0].name)
        return None

    def _true(self, query: str, bindings: Mapping[str, Any]) -> list[Bundle]:
        """Return rows, once their files were looked at."""
        since = time.monotonic_ns()
        for _ in range(PAGE_TRIES_MAX):
            found = self._ask(lambda file: [as_bundle(row) for row in file.query(query, bindings)])
            if not self._looked_at(found, since):
                break
        return found

    # Who writes says so. None of these fails: what is not said here is found out.

    def watch(self, path: Path) -> None:
        """Say that a bundle is about to be written to. The caller has it open, so that its write-ahead log lies beside
        it; for as long as that does, every look compares."""

        def verb(file: CatalogueFile) -> None:
            with file.write():
                file.query("watch", {"name": stored_name(path.name), "stamp": new_stamp()})

        self._say(verb)

    def push(self, path: Path, read: Callable[[], SessionRow]) -> None:
        """Take in what a writer has just written. read: looks into the bundle, which the caller has open."""
        now, state = time.time_ns(), state_or_none(path)
        if state is not None:
            reading = Reading(stored_name(path.name), state, read(), state.is_settled(now), None)
            self._say(lambda file: self._put_over(file, reading))

    def placed(self, path: Path, row: SessionRow) -> None:
        """Take in a bundle that was just placed whole. Somebody may have found it and written to it before its files
        are looked at here, so it is read again once."""
        state = state_or_none(path)
        if state is not None:
            reading = Reading(stored_name(path.name), state, row, False, None)
            self._say(lambda file: self._put_over(file, reading))

    def stir(self, path: Path) -> None:
        """Say that a write took long: the write-ahead log showed it before anybody could read it."""
        with contextlib.suppress(OSError):
            os.utime(f"{path}-wal")

    def changed(self, path: Path) -> None:
        """Look at one bundle anew: it was removed, moved, or set aside."""

        def verb(_: CatalogueFile) -> None:
            if state_or_none(path) is None:
                self._drop([stored_name(path.name)])
            else:
                self._take({stored_name(path.name): self._stamp_of(stored_name(path.name))})

        self._say(verb)

    @contextlib.contextmanager
    def closing(self, path: Path, read: Callable[[], SessionRow]) -> Iterator[None]:
        """Close a bundle in the block, and take in what its files are like afterwards: closing it folds its write-ahead
        log into the file. read: looks into the bundle, before it is closed."""
        row, seen = None, None
        with contextlib.suppress(PlayheadError):
            seen = self._stamp_of(stored_name(path.name))
            row = read()
        yield
        state = state_or_none(path)
        if row is None or seen is None or state is None or state.has_wal:
            return  # Somebody else has it open: it stays watched.
        reading = Reading(stored_name(path.name), state, row, True, seen)
        self._say(lambda _: self._keep([reading]))

    def close(self) -> None:
        self._kept.close()

    def _say(self, verb: Callable[[CatalogueFile], None]) -> None:
        try:
            self._kept.on(verb)
        except PlayheadError as error:
            _log.warning("the catalogue of %s was not told of a change: %s", self._folder, error)

    def _ask(self, verb: Callable[[CatalogueFile], T]) -> T:
        return self._kept.ask(verb, look=lambda: self.look(is_scan_due=True))

    # Looking.

    def _folder_time(self) -> int:
        with os_errors(self._folder):
            return os.stat(self._folder).st_ctime_ns  # Which nobody can set, unlike the other one.

    def _is_seen(self, changed_at: int) -> bool:
        """Return True where no name came or went since the last look through them, of whichever process."""

        def verb(file: CatalogueFile) -> bool:
            if changed_at != file.seen_at:
                row = file.row("looks")
                file.seen_at = row[0] if row and row[1] == _boot() else 0
            return changed_at == file.seen_at

        return self._kept.on(verb)

    def _scan(self, changed_at: int, on_progress: Progress | None = None) -> int:
        """Compare the names in the directory with those in here, and return how many went."""
        began_at, now, looked_for = time.thread_time(), time.time_ns(), self._kept.file()
        found, with_wal = self._names()
        for _ in range(SCANS_MAX):
            # A name that is given to a file while they are read may be missed with its old one.
            if (again := self._folder_time()) == changed_at:
                break
            changed_at, now = again, time.time_ns()
            found, with_wal = self._names()
        known = {row[0]: row for row in self._kept.on(names_in)}
        removed = self._drop([name for name in known if name not in found])
        came = {name: None for name in found if name not in known}
        other = {name: known[name][4] for name in found if name in known and known[name][1] != found[name]}
        watched = [name for name in with_wal if name in known and not known[name][2]]
        looked_for.next_scan_at = self._quiet_until(began_at)
        self._take({**came, **other}, on_progress=on_progress)
        is_told = is_past(changed_at, now)  # A name that comes later bears another time then.

        def verb(file: CatalogueFile) -> None:
            if file is not looked_for:
                return  # It was made anew meanwhile, and is not complete.
            with file.write():
                if watched:
                    file.query("watch_all", {"names": json_list(watched), "stamp": new_stamp()})
                if is_told or not file.is_complete:
                    file.query("set_looks", {"seen_at": changed_at if is_told else 0, "boot": _boot()})
            file.is_complete = True
            file.seen_at = changed_at if is_told else 0

        if watched or is_told or not looked_for.is_complete:
            self._kept.on(verb)
        return removed

    def _names(self) -> tuple[dict[str, int], set[str]]:
        """Return the inode of each bundle in the directory by name, and those beside which a write-ahead log lies."""
        found: dict[str, int] = {}
        with_wal: set[str] = set()
        with os_errors(self._folder), os.scandir(self._folder) as entries:
            for entry in entries:
                name = entry.name
                if is_bundle(name):
                    found[stored_name(name)] = entry.inode()
                elif name.endswith(f"{SUFFIX}-wal"):
                    with_wal.add(stored_name(name.removesuffix("-wal")))
        return found, with_wal

    def _quiet_until(self, began_at: float) -> float:
        took = time.thread_time() - began_at
        return time.monotonic() + took * SCAN_SHARE if took > SCAN_FREE_S else 0.0

    def _looked_at(self, bundles: Iterable[Bundle], since: int) -> bool:
        """Look at the files of rows that are about to be shown, and return whether any row was not true.

        since: a bundle that was read then or later need not be read again for being changed lately.
        """
        doubtful = [one for one in bundles if one.is_watched or one.print != print_of(self._at(one.name))]
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
            elif print_.removeprefix(UNSETTLED) == state.print and (
                is_for_key or self._is_read(name, state.print, stamp, since)
            ):
                if is_watched and not state.has_wal and print_ == state.print:
                    quiet.append((name, stamp))
            elif state.print != print_ or state.written_at:
                changed[name] = stamp
            elif is_watched and not state.has_wal:
                quiet.append((name, stamp))
        if quiet:
            self._kept.on(lambda file: unwatch(file, quiet))
        is_any_gone = self._drop(gone) > 0
        return self._take(changed) or is_any_gone

    def _is_read(self, name: str, print_: str, stamp: int, since: int | None) -> bool:
        """Return True where this process has read a bundle since then, or lately enough, with its files as they are
        now, and its row is of that reading."""
        known, at, until, own = self._recent.get(name, ("", 0, 0, 0))
        return (known, own) == (print_, stamp) and ((since is not None and at >= since) or time.monotonic_ns() < until)

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
                is_changed, left = self._kept.on(partial(put_readings, readings=readings, is_anew=is_anew))
                is_any |= is_changed
                again += left
                looked_at += len(found)
            if not again:
                break
            pending = {name: self._stamp_of(name) for name in again}
        if on_progress is not None and looked_at:
            on_progress(looked_at, looked_at)
        return is_any

    def _keep(self, readings: Sequence[Reading]) -> None:
        """Take in what was read, and read again what has to be."""
        _, again = self._kept.on(partial(put_readings, readings=readings))
        if again:
            self._take({name: self._stamp_of(name) for name in again})

    def _at(self, name: str) -> str:
        """Return what `_path` does as text, which costs a tenth."""
        return self._place + (file_name(name) if name.startswith("/") else name)

    def _path(self, name: str) -> Path:
        return self._folder / file_name(name)

    def _read(self, name: str, seen: int | None) -> Reading | None:
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
                is_settled = is_settled and state.is_settled(now)
                reading = Reading(name, state, row, is_settled, seen)
                if state.written_at or not is_settled:
                    rest = min(now - state.written_at, TRUST_MAX_NS) if is_settled else 0
                    self._recent[name] = (state.print, began_at, began_at + rest, reading.stamp)
                return reading
            began_at, now, state = time.monotonic_ns(), time.time_ns(), after
        return Reading(name, state, row, False, seen) if state is not None else None

    def _put_over(self, file: CatalogueFile, reading: Reading) -> None:
        again = put_over(file, reading)
        if again:
            self._take({name: self._stamp_of(name) for name in again})

    def _drop(self, names: Sequence[str]) -> int:
        """Drop the rows of bundles that are gone, and return how many there were."""
        gone = [name for name in names if not os.path.lexists(self._path(name))]
        if not gone:
            return 0
        count, again = self._kept.on(lambda file: drop(file, gone))
        if again:
            self._take({name: self._stamp_of(name) for name in again})
        return count

    def _stamp_of(self, name: str) -> int | None:
        bundle = self._kept.on(lambda file: named(file, name))
        return bundle.stamp if bundle is not None else None


@cache
def _boot() -> str:
    """Name this run of the machine, where the system can tell: a loss of power ends it, and with it what was not
    written yet."""
    return str(this_process().get("boot", ""))
