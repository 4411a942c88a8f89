"""The sessions of an export into a store: the same events with the same hashes, and the same artifacts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from playhead.errors import ImportFailed, PlayheadError, SessionNotFound
from playhead.features.live import Live
from playhead.formats.jsonl.reading import Export, SessionFound
from playhead.model.codec import SALT_BYTES
from playhead.model.ids import ID_CHARS_MAX, SessionKey
from playhead.session import Sessions
from playhead.stores.base import Record, Tip
from playhead.stores.records import EMPTY_TIP

OnConflict = Literal["skip", "rename", "merge"]
"""What becomes of a session whose key is taken: it is left out; it gets the next free id; or what it has beyond the
session in the store is added to that one."""

Outcome = Literal["new", "renamed", "merged", "same", "skipped"]

RENAMES_MAX = 10_000


class SessionImported(msgspec.Struct, frozen=True):
    """What became of one session of an export.

    key: what it is called in the store. added_count: events that were added (or would be, in a dry run).
    artifact_count: artifacts that it came with. is_masked: its texts were masked, so its hashes are new. is_cut: the
    file is damaged, and this much of it was whole.
    """

    source: SessionKey
    key: SessionKey
    outcome: Outcome
    added_count: int
    event_count: int
    artifact_count: int
    title: str | None = None
    is_masked: bool = False
    is_cut: bool = False


def import_jsonl(
    sessions: Sessions,
    source: Path | BinaryIO,
    *,
    on_conflict: OnConflict = "skip",
    salvage: bool = False,
    dry_run: bool = False,
    entropy: Callable[[int], bytes] = os.urandom,
) -> list[SessionImported]:
    """Bring in every session of an export, in the order of the file, each in one transaction.

    The whole file is proved first. Where it is damaged, `ImportFailed` says how far it is whole and nothing is written;
    with `salvage` that much is brought in. `merge` adds to a session whose log is the beginning of the exported one
    and leaves one alone that goes on further; where the two part, `ImportFailed` names both places, and nothing was
    written. Doing it again with `merge` or `skip` adds nothing. Raises `SessionBusy` while somebody is in a
    turn of a session.
    """
    with Export(source) as export:
        if export.damage is not None and not salvage:
            raise ImportFailed(f"{export.damage}; {_whole(export)}")
        if on_conflict == "merge":
            for found in export.sessions:
                _plan(sessions, export, found, on_conflict)
        return [
            _import(sessions, export, found, on_conflict, dry_run=dry_run, entropy=entropy) for found in export.sessions
        ]


class _Plan(msgspec.Struct, frozen=True):
    """What is to be done with a session: what its outcome will be, its key, and where its log in the store ends."""

    outcome: Outcome
    key: SessionKey
    tip: Tip = EMPTY_TIP


def _import(
    sessions: Sessions,
    export: Export,
    found: SessionFound,
    on_conflict: OnConflict,
    *,
    dry_run: bool,
    entropy: Callable[[int], bytes],
) -> SessionImported:
    plan = _plan(sessions, export, found, on_conflict)
    added_count = found.event_count - plan.tip.seq if plan.outcome in ("new", "renamed", "merged") else 0
    if added_count and not dry_run:
        sessions.store.put_records(
            plan.key,
            export.records(found, after=plan.tip.seq, previous=plan.tip.hash, salt=lambda: entropy(SALT_BYTES)),
            expected_seq=plan.tip.seq,
            artifacts=export.artifacts(found),
        )
        # The listing row and the snapshot: a list and a resume need not read the whole log. They can be made later.
        with contextlib.suppress(PlayheadError):
            Live(sessions.store, plan.key, clock=time.time, entropy=entropy).save_caches()
    first = found.first_line
    return SessionImported(
        source=first.key,
        key=plan.key,
        outcome=plan.outcome,
        added_count=added_count,
        event_count=found.event_count,
        artifact_count=found.artifact_count,
        title=first.title,
        is_masked=first.masked,
        is_cut=found.is_cut,
    )


def _plan(sessions: Sessions, export: Export, found: SessionFound, on_conflict: OnConflict) -> _Plan:
    """Decide what is to be done. Raises `ImportFailed` where two logs that are to be merged part."""
    key = found.first_line.key
    tip = _tip(sessions, key)
    if tip is None:
        return _Plan("new", key)
    if on_conflict == "skip":
        return _Plan("skipped", key, tip)
    if on_conflict == "rename":
        return _Plan("renamed", _free(sessions, key))
    _check_same(sessions, export, found, key, tip)
    return _Plan("merged" if found.event_count > tip.seq else "same", key, tip)


def _check_same(sessions: Sessions, export: Export, found: SessionFound, key: SessionKey, tip: Tip) -> None:
    """Raise `ImportFailed` unless one of the two logs is the beginning of the other."""
    stored = _stored(sessions, key, until=min(tip.seq, found.event_count))
    exported = export.records(found, salt=lambda: bytes(SALT_BYTES))
    for here, there in zip(stored, exported, strict=False):
        if not _is_same(here, there, masked=found.first_line.masked):
            raise ImportFailed(
                f"session {key.id!r} parts after event {here.seq - 1}: event {here.seq} is {here.kind} {here.id!r} in "
                f"the store and {there.kind} {there.id!r} in {export.name}; bring it in under another id (rename)"
            )


def _is_same(here: Record, there: Record, *, masked: bool) -> bool:
    if not masked:
        return here.hash == there.hash
    fields = ("seq", "parent", "id", "at", "kind", "agent", "turn", "scope", "body", "is_fact")
    return all(getattr(here, field) == getattr(there, field) for field in fields)


def _stored(sessions: Sessions, key: SessionKey, *, until: int) -> Iterator[Record]:
    after = 0
    while after < until and (page := sessions.store.records(key, after=after)):
        yield from (record for record in page if record.seq <= until)
        after = page[-1].seq


def _free(sessions: Sessions, key: SessionKey) -> SessionKey:
    """Return the first of `ID-2`, `ID-3` … that no session has."""
    for number in range(2, RENAMES_MAX):
        ending = f"-{number}"
        renamed = msgspec.structs.replace(key, id=key.id[: ID_CHARS_MAX - len(ending)] + ending)
        if _tip(sessions, renamed) is None:
            return renamed
    raise ImportFailed(f"session {key.id!r} is there under {RENAMES_MAX} names already")


def _tip(sessions: Sessions, key: SessionKey) -> Tip | None:
    try:
        return sessions.store.tip(key)
    except SessionNotFound:
        return None


def _whole(export: Export) -> str:
    """Say how much of a damaged file is whole."""
    whole = [found for found in export.sessions if not found.is_cut]
    cut = [found for found in export.sessions if found.is_cut]
    said = f"{len(whole)} session{'' if len(whole) == 1 else 's'} before that are whole"
    if cut:
        said += f", and session {cut[0].first_line.id!r} up to event {cut[0].event_count}"
    return f"{said}; they can be salvaged"
