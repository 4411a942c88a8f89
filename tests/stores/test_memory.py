"""The store in memory keeps every promise of a store, but for outliving its close."""

from pathlib import Path

from playhead.model.ids import SessionKey
from playhead.stores.base import Store
from playhead.stores.memory import MemoryStore
from playhead.testing.drafts import draft
from playhead.testing.store_harness import KEY, append, begun
from playhead.testing.store_suite import StoreSuite


class TestMemoryStore(StoreSuite):
    is_durable = False

    def make_store(self, folder: Path) -> Store:
        return MemoryStore()

    def damage_artifact(self, store: Store, folder: Path, key: SessionKey, hash: str) -> bool:
        assert isinstance(store, MemoryStore)
        store.artifacts._kept[key][hash] = b"other bytes"
        return True


def test_it_takes_nothing_on_disk() -> None:
    store = MemoryStore()
    begun(store, count=100)

    assert store.size_bytes() == 0
    assert (store.url, store.durability) == ("memory:", "process")


def test_two_stores_in_memory_share_nothing() -> None:
    first, second = MemoryStore(), MemoryStore()
    begun(first)

    assert second.sessions() == []


def test_salts_come_from_the_entropy_that_it_is_given() -> None:
    stores = [MemoryStore(entropy=lambda count: b"\7" * count) for _ in range(2)]
    for store in stores:
        begun(store, count=2)
        append(store, draft("note", n=3))
    hashes = [[record.hash for record in store.records(KEY)] for store in stores]

    assert hashes[0] == hashes[1]
