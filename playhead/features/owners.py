"""Who runs the jobs that go on beyond their turns: a lock tells an owner who goes on from one who is gone.

A job says in the log who owns it: the open session that began it. That one holds a lock of the operating system, on a
small file beside the store, for as long as it has jobs; the system frees it with the process. Whoever closes what was
left open asks the lock first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import weakref
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from playhead.errors import PlayheadError, StoreClosed
from playhead.features.live import Live
from playhead.model.body import text_in
from playhead.model.ids import SessionKey
from playhead.stores.base import Store
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite.log import this_process

_ID = re.compile(r"[0-9a-f]{32}")


class Owner:
    """An open session that has jobs."""

    def __init__(self, live: Live) -> None:
        # Not from the session's own entropy, which a test may fix: two owners of one id would share a lock.
        self.id = secrets.token_hex(16)
        self.pid = os.getpid()
        self._live = weakref.ref(live)
        path = _lock_path(live.store, live.key, self.id)
        self._lock = None if path is None else OsLock.take(path)
        # An object that nobody holds any more records nothing; at the end of the process its file goes too.
        self._end = weakref.finalize(live, _release, self._lock)

    def told(self) -> dict[str, Any]:
        """Return what a job says of its owner in the log."""
        return {"id": self.id, "host": _host()}

    def release(self) -> None:
        """Give the lock back. Calling it twice is fine."""
        self._end()

    def can_record(self, store: Store) -> bool:
        """Return True where the owner is still open, in a store of this process that is the same as this one."""
        live = self._live()
        if live is None or not self._end.alive or not (live.store is store or _is_same_place(live.store, store)):
            return False
        try:
            live.store.tip(live.key)
        except StoreClosed:
            self.release()
            return False
        except PlayheadError:
            pass  # It is open, and what is wrong may pass.
        return True


def owner_of(live: Live) -> Owner:
    """Return the owner that an open session is, whose lock is held from now on. The caller holds `live.lock`."""
    owner = _owners.get(live)
    if owner is None or owner.pid != os.getpid():
        owner = Owner(live)
        _owners[live] = _here[_name(live.key, owner.id)] = owner
    return owner


def disown(live: Live) -> None:
    """Give the lock of an open session back once it runs no job any more. The caller holds `live.lock`."""
    if not live.jobs and (owner := _owners.pop(live, None)) is not None:
        owner.release()


def goes_on(live: Live, told: Mapping[str, Any]) -> bool:
    """Return True where the owner that a job names still runs it. False where that cannot be known, as of an owner on
    another host. What a dead owner left is taken away. The caller holds the session's lease."""
    id = text_in(told, "id") or ""
    if not _ID.fullmatch(id) or told.get("host") != _host():
        return False
    here = _here.get(_name(live.key, id))
    if here is not None and here.pid == os.getpid():
        return here.can_record(live.store)
    path = _lock_path(live.store, live.key, id)
    if path is None or not path.exists():
        return False
    lock = OsLock.take(path)
    if lock is None:
        return True
    lock.release()
    return False


def _lock_path(store: Store, key: SessionKey, id: str) -> Path | None:
    """Return the file that an owner locks, None for a store that has no place on disk.

    Its name goes by the session as well, so that a fork or a copy, which has the same events, has none of its jobs.
    """
    scheme, _, place = store.url.partition(":")
    folder = {"bundles": Path(place) / ".jobs", "sqlite": Path(f"{place}.locks")}.get(scheme)
    return None if folder is None else folder / _name(key, id)


@cache
def _host() -> str:
    """Return what tells this machine, since it started, from others. Its name is nobody's business in an export."""
    process = this_process()
    return hashlib.sha256(str(process.get("boot", process["host"])).encode()).hexdigest()[:16]


def _name(key: SessionKey, id: str) -> str:
    digest = hashlib.sha256("\0".join((key.app, key.user, key.id, id)).encode("utf-8", "surrogatepass"))
    return f"job-{digest.hexdigest()[:32]}"


def _is_same_place(one: Store, other: Store) -> bool:
    return one.url == other.url and not one.url.startswith("memory:")


def _release(lock: OsLock | None) -> None:
    if lock is not None:
        with contextlib.suppress(OSError):
            lock.release()


_owners: weakref.WeakKeyDictionary[Live, Owner] = weakref.WeakKeyDictionary()
_here: weakref.WeakValueDictionary[str, Owner] = weakref.WeakValueDictionary()
