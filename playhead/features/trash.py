"""The trash: sessions that were put away and can come back, until somebody purges them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import msgspec

from playhead.errors import PlayheadError, SessionNotFound, StoreFull, TrashNotFound
from playhead.features.live import Clock, Entropy, Live
from playhead.model.codec import encode_json
from playhead.model.ids import SessionKey, session_key, time_ordered_id
from playhead.stores.base import ROWS_PAGE_MAX, Store, TrashedRow
from playhead.views.summary import Summary

PURGED = "purged"
"""Topic of the store's notes that name sessions which were deleted for good; see `purged_name`."""


class Trashed(msgspec.Struct, frozen=True):
    """One session in the trash.

    trash_id: what it goes by there, since its own id is free. key: its key when it was put there. at: when that was
    (UTC seconds). title: as it was last listed, "" where that is not known. event_count: of its whole log. problem: why
    it cannot be read, or None. size_bytes: on disk, where the store can tell.
    """

    trash_id: str
    key: SessionKey
    at: float
    title: str
    event_count: int
    problem: str | None = None
    size_bytes: int | None = None

    @property
    def id(self) -> str:
        return self.key.id


def trash(store: Store, key: SessionKey, *, clock: Clock, entropy: Entropy) -> str:
    """Put a session into the trash and return its trash id."""
    # Its title is shown from the saved row. Whatever is wrong with a session, it can go to the trash.
    with contextlib.suppress(Exception):
        Live(store, key, clock=clock, entropy=entropy).save_summary()
    now = clock()
    trash_id = time_ordered_id(now, entropy(6))
    store.trash(key, trash_id=trash_id, at=now)
    return trash_id


def trashed(store: Store) -> tuple[Trashed, ...]:
    """Return all that is in the trash, what was put there last first."""
    found = [_trashed(row) for row in _all_rows(store)]
    return tuple(sorted(found, key=lambda one: (one.at, one.trash_id), reverse=True))


def restore(store: Store, trash_id: str, *, id: str | None) -> SessionKey:
    """Bring a session back under its own id or another one, and return its key."""
    key = store.trashed_row(trash_id).key
    back = session_key(key.id if id is None else id, app=key.app, user=key.user)
    store.restore(trash_id, back)
    return back


def purge(store: Store, trash_id: str, *, clock: Clock, entropy: Entropy) -> None:
    """Remove a session of the trash for good. The store remembers it, unless another one has its id by now."""
    _purge(store, trash_id, store.trashed_row(trash_id).key, clock=clock, entropy=entropy)


def empty(store: Store, *, before: float | None, clock: Clock, entropy: Entropy) -> tuple[Trashed, ...]:
    """Purge all that was put there before a time (UTC seconds; None: all), and return what this call removed."""
    gone: list[Trashed] = []
    problems: list[PlayheadError] = []
    for one in trashed(store):
        if before is not None and one.at >= before:
            continue
        try:
            _purge(store, one.trash_id, one.key, clock=clock, entropy=entropy)
            gone.append(one)
        except TrashNotFound:
            pass  # Somebody else has purged or restored it meanwhile.
        except PlayheadError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    return tuple(gone)


def _purge(store: Store, trash_id: str, key: SessionKey, *, clock: Clock, entropy: Entropy) -> None:
    try:
        store.tip(key)
    except SessionNotFound:
        _remove_noted(store, key, lambda: store.purge(trash_id), clock=clock, entropy=entropy)
    else:
        store.purge(trash_id)


def delete(store: Store, key: SessionKey, *, clock: Clock, entropy: Entropy) -> None:
    """Remove a session for good, past the trash. The store remembers it."""
    try:
        is_free = store.holder(key) is None
    except SessionNotFound:
        is_free = False
    if is_free:
        _remove_noted(store, key, lambda: store.delete(key), clock=clock, entropy=entropy)
    else:
        store.delete(key)  # It raises what is wrong, and clears away what a deletion that was cut off left.


def _remove_noted(store: Store, key: SessionKey, remove: Callable[[], None], *, clock: Clock, entropy: Entropy) -> None:
    """Note that a session is removed for good, then remove it: a kill in between brings nothing back that was to go.

    On a full disk it is removed first, which may make room for the note. Raises `StoreFull` where it did not: the
    session is gone then, and an import may bring it back.
    """
    try:
        note_purged(store, key, clock=clock, entropy=entropy)
    except StoreFull:
        remove()
        try:
            note_purged(store, key, clock=clock, entropy=entropy)
        except StoreFull as error:
            raise StoreFull(
                f"session {key.id!r} is removed, but there is no room to note that: an import of it brings it back"
            ) from error
    else:
        remove()


def was_removed(store: Store, key: SessionKey) -> bool:
    """Return True where a session is not there because it was deleted, or lies in the trash."""
    with contextlib.suppress(SessionNotFound):
        store.tip(key)
        return False
    is_purged = store.notes.get(PURGED, purged_name(key.app, key.user, key.id)) is not None
    return is_purged or store.is_trashed(key)


def note_purged(store: Store, key: SessionKey, *, clock: Clock, entropy: Entropy) -> None:
    """Remember that a session was removed for good, so that an import does not bring it back unasked."""
    now = clock()
    name = purged_name(key.app, key.user, key.id)
    store.notes.put(PURGED, name, {"at": now}, id=time_ordered_id(now, entropy(6)), at=now)


def purged_name(app: str, user: str, id: str) -> str:
    """Return the name of the note that says a session was deleted: its key as a JSON list, which is unambiguous."""
    return encode_json([app, user, id])


def _all_rows(store: Store) -> Iterator[TrashedRow]:
    after: str | None = None
    while page := store.trashed(after=after, limit=ROWS_PAGE_MAX):
        yield from page
        after = page[-1].trash_id


def _trashed(row: TrashedRow) -> Trashed:
    title = ""
    if row.summary is not None:
        with contextlib.suppress(msgspec.DecodeError):
            title = msgspec.json.decode(row.summary, type=Summary).title
    return Trashed(row.trash_id, row.key, row.at, title, row.seq, row.problem, row.size_bytes)
