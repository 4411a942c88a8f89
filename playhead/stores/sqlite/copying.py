"""Logs that come over from another store: read and proved outside any transaction, so that nobody waits for a slow
source, then written.

A new session is built under a key that no list shows, a page in each transaction, and gets its own key once all of it
is there: one changed row is the switch. What a log that goes on gets is spooled until it is proved, and inserted in one
transaction, since whoever has that session open must see all of it or nothing; that takes some 5 us for each event.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

import msgspec

from playhead.errors import EventConflict, InvalidEvent, SessionExists
from playhead.model.ids import SessionKey
from playhead.stores.base import Record, Tip
from playhead.stores.files import os_errors
from playhead.stores.records import EMPTY_TIP, Continuation, in_pages
from playhead.stores.sqlite.log import SqliteLog

SPOOL_BYTES_KEPT = 4 * 2**20
"""What is spooled stays in memory up to this many bytes."""

LENGTH_BYTES = 8

T = TypeVar("T")


class On(Protocol):
    """Runs a verb on the database that holds the session, again where that was closed or replaced under it."""

    def __call__(self, verb: Callable[[SqliteLog], T], /) -> T: ...


def build(log: SqliteLog, key: SessionKey, records: Iterable[Record], *, session: SessionKey) -> Tip:
    """Write a session that nobody sees yet under `key`, and return where its log ends. session: whose log it is.

    Where anything is raised, a part of it may be there: `remove` it.
    """
    continuation = Continuation(EMPTY_TIP, is_on_path=lambda seq: False)
    for page in in_pages(records):
        is_first = continuation.tip.seq == 0
        taken = [continuation.take(record) for record in page]
        with log.database.write():
            number = log.begin(key) if is_first else log.need_number(key)
            log.insert_records(session, number, taken)
    if continuation.tip.seq == 0:
        raise InvalidEvent("a session begins with its session_started")
    return continuation.tip


def switch(log: SqliteLog, built: SessionKey, key: SessionKey) -> None:
    """Give a session that was built its own key. Raises `SessionExists`."""
    with log.database.write(through_power_loss=log.durability == "power"):
        number = log.need_number(built)
        if log.number_of(key) is not None:
            raise SessionExists(key.id)
        log.database.query("take_back", {"number": number, "app": key.app, "user": key.user, "id": key.id})


def remove(log: SqliteLog, key: SessionKey) -> None:
    """Remove a session that nobody sees, a stretch of it in each transaction. Killed in between, the rest is there, and
    removing it again ends it."""
    while log.remove_stretch(key):
        pass


def go_on(
    key: SessionKey,
    records: Iterable[Record],
    *,
    expected_seq: int,
    keep_artifacts: Callable[[], None],
    folder: Path,
    on: On,
) -> Tip:
    """Add to a session as `Store.put_records` promises. folder: where what does not fit into memory is spooled."""
    start = on(lambda log: log.end_to_go_on(key, expected_seq))
    continuation = Continuation(start, is_on_path=lambda seq: on(lambda log: log.is_on_a_path(key, seq)))
    known: set[str] = set()
    with _Spool(folder) as spool:
        for page in in_pages(records):
            taken = [continuation.take(record) for record in page]
            _need_new(key, [record.id for record in taken], known, on)
            spool.add(taken)
        keep_artifacts()
        end = continuation.tip
        on(lambda log: log.insert_after(key, start, spool.pages(), end=end))
    return end


def _need_new(key: SessionKey, ids: Sequence[str], known: set[str], on: On) -> None:
    """Note the ids of a page. Raises `EventConflict` where one of them is there already."""
    stored = on(lambda log: log.seq_of(key, ids))
    twice = [id for id in ids if id in known or id in stored] or [id for id, n in Counter(ids).items() if n > 1]
    if twice:
        raise EventConflict(key.id, twice, "other events go by them")
    known.update(ids)


class _Spool:
    """Pages of records in a file without a name, which is gone with the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: tempfile.SpooledTemporaryFile[bytes] = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed on exit
            SPOOL_BYTES_KEPT, dir=str(folder), prefix=".records-"
        )
        self._decoder = msgspec.msgpack.Decoder(list[Record])

    def add(self, page: Sequence[Record]) -> None:
        content = msgspec.msgpack.encode(page)
        with os_errors(self._folder):
            self._file.write(len(content).to_bytes(LENGTH_BYTES, "big") + content)

    def pages(self) -> Iterator[list[Record]]:
        """Yield what was added, from the beginning."""
        with os_errors(self._folder):
            self._file.seek(0)
            while length := self._file.read(LENGTH_BYTES):
                yield self._decoder.decode(self._file.read(int.from_bytes(length, "big")))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # On a full disk closing writes once more.
            self._file.close()
