"""Snapshots: a fold saved at an event, as positions and a few counters, never as a copy of what was said.

A fold is a flat mapping of *slots* to small JSON values. A snapshot on disk holds the slots that changed since the
snapshot it is based on (`base_seq`), or all of them (`base_seq` 0). The snapshots from a complete one to the newest,
each based on the one before, are a *chain*; reading it back gives the fold.

Which snapshot the next one is based on goes by its number, like the digits of a counter: most are based on the one
before, every 32nd on the one 32 before, every 1,024th on the one 1,024 before. So a chain has at most `CHAIN_MAX`
links however long the session, and all snapshots together grow with its length: a complete one every so often would
make them grow with its square, since each repeats all that was ever said where. Only after a compaction that left
little of a long conversation comes a complete one early: who resumes then need not read where all of it stood.

Two kinds of slot hold ranges (`path`, and `conv:` with a scope). Their change is written as `[kept, added]`: the number
of leading ranges that stay, and the ranges that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from playhead.errors import NewerFormat
from playhead.model.path import Ranges

SNAPSHOT_VERSION = 1

RUN = 32
"""A snapshot is based on the one 1, `RUN`, `RUN`² … before it."""

LEVELS = 3
"""`RUN` to this power (32,768) snapshots lie between two complete ones."""

CHAIN_MAX = LEVELS * (RUN - 1) + 1
"""The longest chain that `next_snapshot` makes."""

SHRUNK_RANGES_MIN = 256
SHRUNK_TIMES = 4
"""A complete snapshot comes early where the chain holds so many ranges, and so many times those that are left."""

Slots = dict[str, Any]
"""Slot name to JSON value. `Any` because each slot has its own small shape; `views/fold.py` lists them."""


class Snapshot(msgspec.Struct, frozen=True):
    """One saved fold. Values in it are never changed in place.

    seq: the event on the path at which it was taken. base_seq: the snapshot that its changes build on, 0 when it is
    complete. number: how many were taken on its path since the complete one, 0 for a complete one. changed and dropped:
    slots to set, to remove.
    """

    seq: int
    base_seq: int
    number: int
    changed: Slots
    dropped: tuple[str, ...] = ()
    version: int = SNAPSHOT_VERSION


def is_ranges(slot: str) -> bool:
    """Return True for the slots whose value is ranges of seq."""
    return slot.startswith("conv:") or slot == "path"


def copied(slots: Mapping[str, Any]) -> Slots:
    """Return slots that stay as they are while a fold goes on with the given ones."""
    return {slot: list(value) if is_ranges(slot) else value for slot, value in slots.items()}


def full(seq: int, slots: Mapping[str, Any]) -> Snapshot:
    """Return a complete snapshot of these slots."""
    return Snapshot(seq=seq, base_seq=0, number=0, changed=copied(slots))


def delta(
    seq: int, base: Snapshot, old: Mapping[str, Any], new: Mapping[str, Any], *, number: int | None = None
) -> Snapshot:
    """Return the snapshot of `new` as its changes to `old`, the slots at `base`. number: by default the next one."""
    changed: Slots = {}
    for slot, value in new.items():
        if slot not in old:
            changed[slot] = [0, list(value)] if is_ranges(slot) else value
        elif old[slot] != value:
            changed[slot] = _ranges_change(old[slot], value) if is_ranges(slot) else value
    return Snapshot(
        seq=seq,
        base_seq=base.seq,
        number=base.number + 1 if number is None else number,
        changed=changed,
        dropped=tuple(slot for slot in old if slot not in new),
    )


def next_snapshot(chain: Sequence[Snapshot], slots: Mapping[str, Any], *, seq: int) -> Snapshot:
    """Return the snapshot of `slots` to save at `seq`, after those of `chain` (`[]` for the first of a session).

    A snapshot that `chain` already has at `seq` is replaced. A complete one is returned where there is nothing to
    build on, or where most of what `chain` holds is there no more.
    """
    while chain and chain[-1].seq >= seq:
        chain = chain[:-1]
    if not is_usable(chain) or _is_shrunk(chain, slots):
        return full(seq, slots)
    number = chain[-1].number + 1
    step = 1
    while number % (step * RUN) == 0:
        step *= RUN
    if step >= RUN**LEVELS:
        return full(seq, slots)
    beneath = [snapshot for snapshot in chain if snapshot.number <= number - step]
    return delta(seq, beneath[-1], restore(beneath), slots, number=number)


def extended(chain: Sequence[Snapshot], snapshot: Snapshot) -> list[Snapshot]:
    """Return the chain that leads to `snapshot`, which was made to follow `chain`."""
    return [*(earlier for earlier in chain if earlier.seq <= snapshot.base_seq), snapshot]


def is_usable(chain: Sequence[Snapshot]) -> bool:
    """Return True where `restore` can read the chain: not empty, whole, and of no newer version.

    Where it is False the log still holds everything: replay the path.
    """
    if not chain or any(snapshot.version > SNAPSHOT_VERSION for snapshot in chain):
        return False
    return [snapshot.base_seq for snapshot in chain] == [0, *(snapshot.seq for snapshot in chain[:-1])]


def is_sound(chain: Iterable[Snapshot]) -> bool:
    """Return True where every slot of the chain has the shape that a fold gives it, so that the fold can go on from it.

    What is read from a file that somebody sent may be anything. Where it is False, replay the path.
    """
    return all(_is_sound_slot(slot, value, snapshot) for snapshot in chain for slot, value in snapshot.changed.items())


def _is_sound_slot(slot: str, value: Any, snapshot: Snapshot) -> bool:
    kind = slot.partition(":")[0]
    try:
        if not is_ranges(slot):
            msgspec.convert(value, _SHAPES.get(kind, Any))
            return True
        if snapshot.base_seq:
            _, value = msgspec.convert(value, tuple[_Seq, list[Any]])
        return all(1 <= first <= last <= snapshot.seq for first, last in msgspec.convert(value, list[tuple[int, int]]))
    except (msgspec.ValidationError, RecursionError):
        return False


_Seq = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
_Count = Annotated[int, msgspec.Meta(ge=0)]

_SHAPES: Mapping[str, Any] = {
    "turns": tuple[_Count, str | None, _Seq, int],
    "counts": tuple[_Count, _Count, _Count, _Count, _Count],
    "said": tuple[_Seq, _Seq, _Seq],
    "replies": dict[str, tuple[str | None, str | None, _Count, _Count]],
    "agents": list[str],
    "comp": list[tuple[_Seq, _Seq, _Seq]],
    "sys": tuple[list[_Seq], _Seq],
    "call": _Seq,
    "state": _Seq,
    "int": _Seq,
    "job": _Seq,
    "trig": _Seq,
    "chan": tuple[_Count, _Seq],
    "art": _Seq,
    "run": _Count,
}
"""The shape of a slot, by what stands before its colon; ranges aside. A slot of another name may hold anything."""


def restore(chain: Iterable[Snapshot]) -> Slots:
    """Return the slots of the last snapshot of `chain`, which begins with a complete one and runs oldest first.

    `{}` for an empty chain. Raises `NewerFormat` for a snapshot of a newer version and `ValueError` where one is
    missing from the chain; in both cases it can be left aside, since the log holds everything.
    """
    slots: Slots = {}
    before = 0
    for snapshot in chain:
        if snapshot.version > SNAPSHOT_VERSION:
            raise NewerFormat(f"snapshot at {snapshot.seq}", found=snapshot.version, supported=SNAPSHOT_VERSION)
        if snapshot.base_seq != before:
            raise ValueError(
                f"the snapshot at {snapshot.seq} builds on {snapshot.base_seq}, but {before} comes before it"
            )
        before = snapshot.seq
        if snapshot.base_seq == 0:
            slots = copied(snapshot.changed)
            continue
        for slot, value in snapshot.changed.items():
            if is_ranges(slot):
                kept, added = value
                slots[slot] = slots.get(slot, [])[:kept] + added
            else:
                slots[slot] = value
        for slot in snapshot.dropped:
            slots.pop(slot, None)
    return slots


def _is_shrunk(chain: Iterable[Snapshot], slots: Mapping[str, Any]) -> bool:
    """Return True where the slots hold few ranges beside those in the chain, as after a compaction."""
    held = sum(
        len(value if snapshot.base_seq == 0 else value[1])
        for snapshot in chain
        for slot, value in snapshot.changed.items()
        if is_ranges(slot)
    )
    left = sum(len(value) for slot, value in slots.items() if is_ranges(slot))
    return held >= max(SHRUNK_RANGES_MIN, SHRUNK_TIMES * left)


def _ranges_change(old: Ranges, new: Ranges) -> list[Any]:
    """Return `[kept, added]`."""
    kept = 0
    for before, after in zip(old, new, strict=False):
        if before != after:
            break
        kept += 1
    return [kept, new[kept:]]
