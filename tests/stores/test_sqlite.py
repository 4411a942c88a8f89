"""Many sessions in one SQLite file keep every promise of a store, and answer like the store in memory."""

from pathlib import Path

import pytest

from playhead.stores.base import Store
from playhead.stores.open import open_store
from playhead.testing.machine import store_machine
from playhead.testing.store_suite import StoreSuite


def opened(folder: Path) -> Store:
    return open_store(f"sqlite:{folder / 'sessions.db'}")


class TestSharedStore(StoreSuite):
    def make_store(self, folder: Path) -> Store:
        return opened(folder)


TestBesideTheMemoryStore = store_machine(opened)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
class TestBesideTheMemoryStoreForLonger(store_machine(opened, examples=1_000, steps=50)):  # type: ignore[misc]
    """The same machine, with room for long histories."""
