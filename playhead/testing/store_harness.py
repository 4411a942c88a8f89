"""What a store brings to the shared suite: how it is opened, whether it lasts, and how its artifacts can be harmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey, session_key
from playhead.stores.base import Store
from playhead.testing.drafts import draft, started

KEY = session_key("flaky-test")


class StoreHarness:
    """The base of the suite's parts. Each test has an empty `folder`, and a `store` opened in it."""

    is_durable: ClassVar[bool] = True
    """True where opening the same folder again gives the same sessions."""

    def make_store(self, folder: Path) -> Store:
        """Open the store that lives in `folder`; create it where there is none."""
        raise NotImplementedError

    def reopen(self, store: Store, folder: Path) -> Store:
        """Close the store and open it again; skips the test for a store that does not last."""
        self.need_durable()
        store.close()
        return self.make_store(folder)

    def damage_artifact(self, store: Store, folder: Path, key: SessionKey, hash: str) -> bool:
        """Change the kept bytes behind the store's back; return False where that cannot be done."""
        files = [file for file in folder.rglob(hash) if file.is_file()]
        for file in files:
            file.write_bytes(b"other bytes")
        return bool(files)

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        # Not at the top of what the test may write to, so that a file that escapes from it is seen.
        folder = tmp_path / "of" / "sessions"
        folder.mkdir(parents=True)
        return folder

    @pytest.fixture
    def store(self, folder: Path) -> Iterator[Store]:
        store = self.make_store(folder)
        yield store
        store.close()

    def need_durable(self) -> None:
        if not self.is_durable:
            pytest.skip("this store does not outlive its close")


def begun(store: Store, key: SessionKey = KEY, *, count: int = 1) -> list[Event]:
    """Create a session whose log holds `count` events: its beginning, and messages numbered from 2."""
    first = started(app=key.app, user=key.user)
    return store.create(key, [first, *messages(2, count)])


def messages(first: int, last: int) -> list[Draft]:
    """Return drafts of messages, numbered from `first` to `last` inclusive."""
    return [draft(n=n, text=f"message {n}") for n in range(first, last + 1)]


def append(store: Store, *drafts: Draft, key: SessionKey = KEY) -> list[Event]:
    """Append at the end of the log, wherever that is."""
    return store.append(key, drafts, expected_seq=store.tip(key).seq)


def written(store: Store, key: SessionKey = KEY) -> tuple[object, Sequence[Event]]:
    """Return all that an append could have changed, to compare before and after."""
    return store.tip(key), store.events(key)
