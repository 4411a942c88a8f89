"""Asking a store for the whole of a session, page by page, and proving what it says: the chain, and snapshots.

A resume (snapshot and tail) must give what a full replay gives; `resumed` and `replayed` are the two sides of that.
"""

from __future__ import annotations

from playhead.model import codec, path as paths
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.model.snapshot import Slots, Snapshot, next_snapshot, restore
from playhead.stores.base import Record, Store
from playhead.views.fold import Fold, references


def all_events(store: Store, key: SessionKey) -> list[Event]:
    """Return every event of a session, in seq order."""
    found: list[Event] = []
    end = store.tip(key).seq
    while len(found) < end and (page := store.events(key, after=len(found))):
        found += page
    return found


def all_records(store: Store, key: SessionKey) -> list[Record]:
    """Return every event of a session as it is stored, in seq order."""
    found: list[Record] = []
    end = store.tip(key).seq
    while len(found) < end and (page := store.records(key, after=len(found))):
        found += page
    return found


def broken_links(store: Store, key: SessionKey) -> list[int]:
    """Return the seqs whose stored hash is not what their record gives; `[]` is a sound chain."""
    broken: list[int] = []
    previous = codec.FIRST_HASH
    for count, record in enumerate(all_records(store, key), 1):
        digest = record.digest
        if digest is None:
            digest = codec.body_digest(record.salt or b"", record.body or "")
        envelope = codec.envelope_bytes(
            seq=count,
            parent=record.parent,
            at=record.at,
            id=record.id,
            kind=record.kind,
            agent=record.agent,
            turn=record.turn,
            scope=record.scope,
        )
        if record.seq != count or codec.chain_hash(previous, envelope, digest) != record.hash:
            broken.append(count)
        previous = record.hash
    return broken


def replayed(store: Store, key: SessionKey, head: int) -> Slots:
    """Return the fold of the path to `head`, from its first event on."""
    events = {event.seq: event for event in all_events(store, key)}
    walked = paths.path(events, head)
    return Fold().apply_all(walked, store.seq_of(key, references(walked))).slots


def resumed(store: Store, key: SessionKey, head: int) -> Slots:
    """Return the fold of the path to `head`, from the newest snapshot on."""
    chain, tail = store.tail(key, head)
    return Fold(restore(chain)).apply_all(tail, store.seq_of(key, references(tail))).slots


def snapshot_at(store: Store, key: SessionKey, head: int) -> Snapshot:
    """Return the snapshot to save at `head`, after the newest one of its path."""
    chain, _ = store.tail(key, head)
    return next_snapshot(chain, resumed(store, key, head), seq=head)
