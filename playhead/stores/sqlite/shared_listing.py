"""The rows of lists of a shared file: kept beside the sessions in the same transactions, and in memory where the file
cannot be written.

Which rows are behind needs no look at every session. Whoever writes to a log leaves a mark in the same transaction, and
whoever keeps a row that holds takes it away in the same transaction: a mark is there while a session may be ahead.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec

from playhead.errors import OF_THE_SYSTEM, StoreDamaged
from playhead.model.ids import SessionKey
from playhead.stores.base import ROWS_PAGE_MAX
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
    by_count,
    facet_values,
    fits,
    is_current,
    parent_key,
    place,
    words_of,
)
from playhead.stores.sqlite.connect import LISTING_FILES, Database, Row
from playhead.stores.sqlite.listing import SqliteListingTable, is_text
from playhead.stores.sqlite.log import NO_KEY, NUMBER_MAX, SqliteLog, bounds_of, json_list, nameless_key, sound_number
from playhead.views.summary import SUMMARY_VERSION, Summary

RETRY_S = 1.0
"""A file that could not be written is left alone so long: a list of many sessions must not try for each of them."""


class Kept(msgspec.Struct, frozen=True):
    """A row: up to which event of the session it holds, and what is wrong where there is no summary."""

    key: SessionKey
    seq: int
    summary: Summary | None
    problem: str | None = None

    def holds(self, end: int | None) -> bool:
        """Return True for a row that need not be worked out again. end: of the log, None where it cannot be told."""
        if self.summary is None:
            return self.problem != NOT_YET and (end is None or self.seq == end)
        return end is not None and self.seq == end and is_current(self.summary, end)


class SharedListing:
    """The `Listing` of a shared file. Safe for any thread and for several processes."""

    def __init__(self, log: SqliteLog) -> None:
        self._log = log
        self._database = log.database
        self._has_tables = False
        self._in_memory: dict[int, Kept] = {}
        """Rows that could not be written, by the numbers of their sessions; they stand for those in the file."""
        self._due: set[int] = set()
        """Sessions that are to be read again, however their rows are."""
        self._retry_at = 0.0

    def begin(self) -> None:
        """Make the tables where they are missing. Where that cannot be, all rows are in memory until it can."""
        self._has_tables = self._database.row("has_listing") == (1,)
        if not self._has_tables and self._database.is_to_be_written():
            self._keep({})

    def behind(self, *, limit: int = PAGE_MAX) -> list[SessionKey]:
        tried: set[int] = set()
        while True:
            with self._reading():
                stale = self._behind(max(0, limit))
            # Out of the trash, or of a file that had no rows: its summary still holds, so nobody has to read the log.
            saved = {number: kept for number, kept in stale.items() if kept.summary is not None and number not in tried}
            if not saved:
                return sorted(kept.key for kept in stale.values())[: max(0, limit)]
            self._keep(saved)
            tried |= saved.keys()

    def put(self, key: SessionKey, seq: int, summary: Summary | None, *, problem: str | None = None) -> None:
        number = self._log.number_of(key) if is_text(key.app, key.user, key.id) else None
        if number is None:
            return
        if summary is None:
            seq = self._seq_of_unreadable(key, number, seq)
        self._keep({number: Kept(key, seq, summary, problem)})

    def page(
        self,
        wanted: Wanted,
        *,
        sort: Sort = "last_active",
        is_reversed: bool = False,
        after: Place | None = None,
        limit: int = 50,
    ) -> ListingPage:
        with self._reading():
            found, total = self._table.page(
                wanted, sort=sort, is_reversed=is_reversed, after=after, limit=limit, without=[*self._in_memory]
            )
            rows, is_settled = self._rows(found)
            if self._in_memory:
                words = words_of(wanted.query)
                others = [one for one in self._rows_in_memory() if fits(one, wanted)]
                placed = [(place(one, sort, words), one) for one in others]
                left = [one for where, one in placed if after is None or _is_behind(where, after, is_reversed)]
                rows = sorted([*rows, *left], key=lambda row: place(row, sort, words), reverse=is_reversed)
                rows = [self._with_forks(row) for row in rows[: max(0, min(limit, PAGE_MAX))]]
                total += len(others)
        return ListingPage(rows, total, is_settled)

    def facets(self, wanted: Wanted, names: Sequence[Facet]) -> dict[Facet, dict[str, int]]:
        with self._reading():
            found = self._table.facets(wanted, names, without=[*self._in_memory])
            others = [row for row in self._rows_in_memory() if fits(row, wanted)]
        for name in names if others else ():
            counted = Counter(found[name])
            counted.update(value for row in others for value in facet_values(row.summary, name))
            found[name] = by_count(counted)
        return found

    def forks(self, key: SessionKey) -> list[SessionKey]:
        with self._reading():
            return self._forks(key)

    def activity(self) -> Activity:
        with self._reading():
            others = [kept.summary.last_active_at for kept in self._in_memory.values() if kept.summary is not None]
            return self._table.activity(without=[*self._in_memory]).joined(Activity.of(others))

    def session_bytes(self) -> int | None:
        self._database.need_open()
        return None

    def refresh(self, *, full: bool = False, on_progress: Progress | None = None) -> Refreshed:
        """Compare a page of sessions at a time, so that no writer waits for all of them."""
        with self._reading():
            count = self._table.count() + len(self._in_memory)
        removed, looked_at, after = self._mend(full=full), 0, 0
        due: set[int] = set()
        while True:
            with self._reading():
                states = self._states(after)
            due |= {number for number, (kept, end) in states.items() if full or not kept.holds(end)}
            looked_at += len(states)
            if on_progress is not None:
                on_progress(looked_at, max(count, looked_at))
            if not states:
                break
            after = max(states)
        self._due |= due
        return Refreshed(looked_at=looked_at, read=len(due), removed=removed, unreadable=0)

    def follow(self, key: SessionKey, number: int, seq: int, summary: str) -> None:
        """Make the row of a session whose summary was saved just now. The caller is in that transaction."""
        row = self._database.row("listing_known_of", {"number": number}) if self._has_tables else None
        if row is None:
            return
        end, is_readable, kept_seq, saved_seq = row[4:8]
        found = decoded(summary)
        # Nothing changes where a later one was saved, or one who listed worked out as much.
        if saved_seq != seq or (kept_seq is not None and (found is None or seq <= kept_seq)):
            return
        if found is not None and kept_seq is not None:
            self._database.query("listing_end_keep", {"number": number})
        if found is not None or is_readable:
            self._table.put(number, key, found)
        self._mark(number, Kept(key, seq, found, None if found else NOT_YET), end)

    def take_in(self, key: SessionKey) -> None:
        """Make the row of a session that came out of the trash from the summary that it kept, where that holds."""
        with self._reading():
            number = self._log.number_of(key)
            row = self._database.row("listing_saved", {"number": number}) if self._has_tables else None
        summary = decoded(row[0]) if row else None
        if number is not None and row and summary is not None:
            self._keep({number: Kept(key, row[1], summary)})

    # What is behind.

    def _behind(self, limit: int) -> dict[int, Kept]:
        """Return sessions whose rows do not hold, by number, `limit` at least if there are as many. Where the summary
        that was saved with a session holds, it is given."""
        found: dict[int, Kept] = {}
        for number in self._due | self._in_memory.keys():
            kept, end = self._state(number)
            if kept is not None and (number in self._due or not kept.holds(end)):
                found[number] = Kept(kept.key, 0, None, NOT_YET)
        self._due &= found.keys() | self._in_memory.keys()
        bindings = {"version": str(SUMMARY_VERSION), "limit": limit + len(self._in_memory) + len(self._due)}
        if not self._has_tables or not limit or self._database.row("listing_is_any_marked", bindings) == (0,):
            return found
        for number, app, user, id, end, summary in self._database.query("listing_behind", bindings):
            if number not in self._in_memory and number not in self._due:
                saved = decoded(summary)
                key = SessionKey(app, user, id)
                found[number] = Kept(key, end or 0, saved, None if saved else NOT_YET)
        return found

    def _state(self, number: int) -> tuple[Kept | None, int | None]:
        """Return the row of a session, and where its log ends; None for one that is not there."""
        kept = self._in_memory.get(number)
        if kept is not None:
            return kept, self._end(number)
        row = self._database.row("listing_state", {"number": number}) if self._has_tables else None
        return _state(row) if row else (None, None)

    def _states(self, after: int) -> dict[int, tuple[Kept, int | None]]:
        """Return rows by the numbers of their sessions, those above a number, and where their logs end."""
        bindings = {"after": after, "limit": ROWS_PAGE_MAX}
        if self._has_tables:
            found = {int(row[0]): _state(row) for row in self._database.query("listing_states", bindings)}
        else:
            numbers = sorted(number for number in self._in_memory if number > after)[:ROWS_PAGE_MAX]
            found = {number: (self._in_memory[number], self._end(number)) for number in numbers}
        return {number: (self._in_memory.get(number, kept), end) for number, (kept, end) in found.items()}

    def _end(self, number: int) -> int | None:
        """Return where the log of a session ends as far as its rows tell, None where there are none."""
        row = self._database.row("tip", bounds_of(number)) if 0 < number <= NUMBER_MAX else None
        return int(row[0]) if row else None

    def _seq_of_unreadable(self, key: SessionKey, number: int, seq: int) -> int:
        """Return up to which event it holds that a session cannot be read: where the last one is damaged, whoever tried
        to read it cannot tell."""
        with self._database.read():
            try:
                self._log.tip_of(key, sound_number(number, key))
            except StoreDamaged:
                return max(seq, self._end(number) or 0)
        return seq

    # Keeping rows.

    def _keep(self, rows: Mapping[int, Kept]) -> None:
        """Write rows, and those that could not be written before; where it still cannot be, keep them in memory."""
        with self._database.lock:
            self._database.need_open()
            newer = {
                number: kept
                for number, kept in rows.items()
                if number not in self._in_memory or kept.seq >= self._in_memory[number].seq
            }
            if not self._is_written(self._in_memory | newer):
                for number, kept in newer.items():
                    known, _ = self._state(number)
                    if known is not None and kept.seq >= known.seq:
                        self._in_memory[number] = kept
            self._due -= rows.keys()

    def _is_written(self, rows: Mapping[int, Kept]) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        try:
            with self._database.write():
                if not self._has_tables:
                    self._make_tables()
                for number, kept in rows.items():
                    self._write(number, kept)
        except OF_THE_SYSTEM:
            self._retry_at = time.monotonic() + RETRY_S
            return False
        self._has_tables = True
        self._in_memory.clear()
        return True

    def _write(self, number: int, kept: Kept) -> None:
        """Write a row, unless a newer one is there. The caller is in a transaction that writes."""
        row = self._database.row("listing_known_of", {"number": number})
        if row is None or SessionKey(*row[:3]) != kept.key or kept.seq < row[3]:
            return
        text = msgspec.json.encode(kept.summary).decode() if kept.summary is not None else None
        if text is None or row[7:] != (kept.seq, text):
            bindings = {"number": number, "seq": kept.seq, "summary": text, "problem": kept.problem}
            self._database.query("listing_keep", bindings)
        elif row[6] is not None:
            self._database.query("listing_end_keep", {"number": number})
        self._table.put(number, kept.key, kept.summary)
        self._mark(number, kept, row[4])

    def _mark(self, number: int, kept: Kept, end: int | None) -> None:
        """Take the mark of a session away where its row holds, or leave one."""
        if kept.holds(end):
            self._database.query("listing_unmark", {"number": number})
        else:
            is_due = kept.seq == end and kept.problem != NOT_YET
            self._database.query("listing_mark", {"number": number, "is_due": is_due})

    def _make_tables(self) -> None:
        """Make the tables, with every session as one whose row was not worked out yet. The caller is in a
        transaction."""
        for file in LISTING_FILES:
            self._database.run_script(file)
        self._database.query("listing_fill")
        self._database.query("listing_mark_unread")

    def _mend(self, *, full: bool) -> int:
        """Bring the rows in line with the sessions that there are, and return how many went. full: work out anew
        whatever is derived from rows."""
        if not self._has_tables or not self._is_written({}):
            return 0
        with contextlib.suppress(*OF_THE_SYSTEM), self._database.write():
            removed = len(self._database.query("listing_drop_strays"))
            self._database.query("listing_fill")
            self._database.query("listing_mark_unread")
            if full:
                self._database.run_script("listing_again.sql")
            return removed
        return 0

    # Reading rows.

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """A read transaction in which the rows in memory are those that the file lacks."""
        with self._database.lock, self._database.read():
            if not self._has_tables:
                self._has_tables = self._database.row("has_listing") == (1,)
            if not self._has_tables:
                self._take_all()
            for number, kept in [*self._in_memory.items()] if self._has_tables else ():
                row = self._database.row("listing_known_of", {"number": number})
                if row is None or SessionKey(*row[:3]) != kept.key or row[3] > kept.seq:
                    del self._in_memory[number]
            yield

    def _take_all(self) -> None:
        """Take every session into memory, for a file that has no tables of rows and cannot be given them."""
        found: dict[int, Kept] = {}
        after = -1
        while rows := self._database.query("listing_every_session", {"after": after, "limit": ROWS_PAGE_MAX}):
            for number, app, user, id, summary, seq in rows:
                key, kept = SessionKey(app, user, id), self._in_memory.get(number)
                if kept is None or kept.key != key or (isinstance(seq, int) and seq > kept.seq):
                    saved = decoded(summary)
                    kept = Kept(key, seq, saved) if saved and isinstance(seq, int) else Kept(key, 0, None, NOT_YET)
                found[number] = kept
            after = rows[-1][0]
        for number in [row[0] for row in self._database.query("list_nameless", {"limit": ROWS_PAGE_MAX})]:
            found[number] = Kept(nameless_key(number), 0, None, NO_KEY)
        self._in_memory = found

    def _rows(self, found: Sequence[tuple[int, int]]) -> tuple[list[ListingRow], bool]:
        """Return rows in the order of their numbers, and whether each could be read."""
        if not found:
            return [], True
        numbers = json_list([number for number, _ in found])
        kept = {row[0]: _kept(row) for row in self._database.query("listing_rows", {"numbers": numbers})}
        lost = {number for number, (_, is_lost) in kept.items() if is_lost}
        self._due |= lost
        rows = [_row(kept[number][0], fork_count) for number, fork_count in found if number in kept]
        return rows, not lost

    def _rows_in_memory(self) -> list[ListingRow]:
        return [_row(kept) for kept in self._in_memory.values()]

    def _forks(self, key: SessionKey) -> list[SessionKey]:
        others = [kept.key for kept in self._in_memory.values() if parent_key(kept.summary) == key]
        return sorted([*self._table.forks(key, without=[*self._in_memory]), *others])

    def _with_forks(self, row: ListingRow) -> ListingRow:
        return msgspec.structs.replace(row, fork_count=len(self._forks(row.key)))

    @property
    def _table(self) -> SqliteListingTable:
        return SqliteListingTable(self._database if self._has_tables else _no_rows())


def decoded(text: object) -> Summary | None:
    """Return a saved summary, or None where there is none that can be read: it is only a cache."""
    if isinstance(text, str):
        with contextlib.suppress(msgspec.MsgspecError, RecursionError):
            return _read_summary.decode(text)
    return None


_read_summary = msgspec.json.Decoder(Summary)


def _kept(row: Row) -> tuple[Kept, bool]:
    """Return a row of the tables, and whether the summary that it was worked out from is lost."""
    number, app, user, id, seq, is_readable, text, is_kept, problem = row[:9]
    key = SessionKey(app, user, id)
    if is_readable:
        summary = decoded(text)
        return (Kept(key, seq, summary), False) if summary else (Kept(key, 0, None, NOT_YET), True)
    if key == nameless_key(number):
        return Kept(key, 0, None, NO_KEY), False
    return Kept(key, seq, None, problem if is_kept else NOT_YET), False


def _state(row: Row) -> tuple[Kept, int | None]:
    kept, _ = _kept(row)
    return kept, row[9] if kept.problem != NO_KEY else None


def _row(kept: Kept, fork_count: int = 0) -> ListingRow:
    return ListingRow(kept.key, kept.summary, kept.problem, None, fork_count)


def _is_behind(where: Place, after: Place, is_reversed: bool) -> bool:
    return where < tuple(after) if is_reversed else where > tuple(after)


@cache
def _no_rows() -> Database:
    """Return the tables of a listing without a row, which stand for those that a file lacks."""
    return Database.in_memory(is_shared=True, has_rows=True)
