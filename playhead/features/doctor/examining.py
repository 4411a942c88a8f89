"""Examining a store: every database, what lies beside them, and what they should agree on. Changes no byte."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead.errors import OF_THE_SYSTEM, PlayheadError
from playhead.features.doctor.databases import Checked, check_database, is_old, shut
from playhead.features.doctor.findings import FIX, Examination, Finding
from playhead.features.doctor.modes import mode_findings
from playhead.features.shared_state import unpublished
from playhead.model.ids import SessionKey
from playhead.stores.files import disk_bytes
from playhead.stores.names import STORE_LOG, file_stem, trash_key
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite.bundle_trash import TRASH
from playhead.stores.sqlite.connect import Database
from playhead.stores.sqlite.layout import Lying, lying_in, place_of
from playhead.stores.sqlite.looking import look_at
from playhead.stores.sqlite.notes import SqliteNotes

FREE_BYTES_MIN = 256 * 2**20
"""Below this the disk is worth a word: a long turn with its index may fill it."""

OnFile = Callable[[int, int, str], None]
"""Told before each database: its number from 1, how many there are, and its name."""


def examine(url: str, *, deep: bool, now: float, on_file: OnFile = lambda *_: None) -> Examination:
    """Look through a store that has files (`bundles:` or `sqlite:`), whether or not it can be opened.

    deep: also read every artifact, and compare the text index and listing rows with the log. now: UTC seconds.
    """
    scheme, place = place_of(url)
    if scheme == "bundles" and os.path.lexists(place) and not place.is_dir():
        return Examination((Finding("place", str(place), f"{place} is no folder", "name another place with --store"),))
    findings = list(mode_findings(url))
    try:
        lying = lying_in(url)
    except PlayheadError as error:
        what = f"the store cannot be read, so nothing of it was examined: {error}"
        return Examination((*findings, Finding("place", str(place), what, "give yourself the right to read it first")))
    checked = _databases(url, lying, deep=deep, now=now, on_file=on_file)
    findings += [finding for one in checked.values() for finding in one.findings]
    findings += _twice(checked)
    findings += _beside(url, lying, checked, now=now)
    findings += _store_log(url, lying, checked)
    findings += _trash(lying)
    free = _free_bytes(place)
    if free is not None and free < FREE_BYTES_MIN:
        what = f"only {free:,} bytes are free on the disk"
        findings.append(Finding("disk", str(place), what, "free some: an append that finds none is refused whole"))
    return Examination(
        findings=tuple(findings),
        database_count=sum(1 for one in lying if one.role in ("database", "store log", "trashed")),
        session_count=len({key for one in checked.values() for key in one.keys}),
        event_count=sum(one.event_count for one in checked.values()),
        artifact_count=sum(one.artifact_count for one in checked.values()),
        unindexed_count=sum(one.unindexed_count for one in checked.values()),
        trashed_count=sum(len(one.trash_ids) for one in checked.values())
        + sum(1 for one in lying if one.role == "trashed"),
        trash_bytes=disk_bytes(place / TRASH) if scheme == "bundles" else 0,
        size_bytes=disk_bytes(place, *_sides(url)),
        free_bytes=free,
        holders=tuple(holder for one in checked.values() for holder in one.holders),
    )


def _databases(url: str, lying: list[Lying], *, deep: bool, now: float, on_file: OnFile) -> dict[Path, Checked]:
    paths = [one for one in lying if one.role in ("database", "store log")]
    checked = {}
    for number, one in enumerate(paths, start=1):
        on_file(number, len(paths), one.path.name)
        checked[one.path] = check_database(url, one.path, deep=deep, now=now, is_log_only=one.role == "store log")
    return checked


def _twice(checked: dict[Path, Checked]) -> Iterator[Finding]:
    """Find files that hold the same session: a copy made by hand."""
    places: dict[SessionKey, list[Path]] = defaultdict(list)
    for path, one in checked.items():
        for key in one.keys:
            places[key].append(path)
    for key, paths in places.items():
        if len(paths) > 1:
            names = " and ".join(path.name for path in paths)
            advice = "only you can tell which one to keep: look with `playhead db shell`, and move the other one away"
            yield Finding("twice", str(paths[0]), f"{names} hold the same session", advice, session=key)


def _beside(url: str, lying: list[Lying], checked: dict[Path, Checked], *, now: float) -> Iterator[Finding]:
    """Find what lies in the store and belongs to nothing, or to nothing any more."""
    there: set[Path | None] = {one.path for one in lying if one.role in ("database", "store log")}
    kept = {one.owner for one in lying if one.role == "kept"}  # What lies beside those is theirs yet.
    building = [one.path.name for one in lying if one.role == "leftover"]
    for one in lying:
        place = str(one.path)
        owner_name = "" if one.owner is None else one.owner.name
        if one.role == "leftover" and _is_left(one.path, now=now):
            what = "something was being made here, and whoever made it is gone"
            yield Finding("leftover", place, what, f"`{FIX}` removes it", is_fault=False, is_mendable=True)
        elif one.role == "lock" and one.owner is not None and not _is_held(one.path):
            what = "the lock is nobody's: whoever held it died in a turn"
            advice = "nothing has to be done: the next turn takes it over"
            yield Finding("leftover", place, what, advice, is_fault=False, is_mendable=True)
        elif one.role == "part" and one.owner not in there and _is_abandoned(url, one, now=now):
            what = f"{owner_name} is not there, but a part of it is"
            yield Finding("orphan", place, what, f"`{FIX}` moves it into the backup", is_mendable=True)
        elif one.role == "part" and place.endswith("-shm") and not os.path.lexists(f"{one.owner}-wal"):
            what = f"the write-ahead log of {owner_name} is gone, and what was written last with it"
            advice = "nothing in the store has it; what is there is as of an earlier moment, and can be gone on with"
            yield Finding("write-ahead log missing", place, what, advice)
        elif one.role in ("artifacts", "stream") and not _has_owner(url, one, there | kept, checked):
            if not _is_abandoned(url, one, now=now):
                continue
            what = f"{'artifacts' if one.role == 'artifacts' else 'unfinished messages'} of a session that is not there"
            yield Finding("orphan", place, what, f"`{FIX}` removes them from the store", is_mendable=True)
        elif one.role == "kept":
            yield from _kept(one, there, building)


def _kept(one: Lying, there: set[Path | None], building: list[str]) -> Iterator[Finding]:
    """Tell of a damaged database that was replaced, and find a replacing that was cut off in between."""
    assert one.owner is not None, "a kept database was replaced"
    if one.path.name.endswith("-wal"):
        return
    if one.owner not in there and any(name.startswith(f".{one.owner.name}.") for name in building):
        what = f"replacing {one.owner.name} was cut off"
        yield Finding("cut off", str(one.path), what, f"`{FIX}` begins it again", is_mendable=True)
    else:
        what = f"the damaged database that {one.owner.name} was saved from"
        yield Finding("kept", str(one.path), what, "remove it when you do not need it any more", is_fault=False)


def _has_owner(url: str, one: Lying, there: set[Path | None], checked: dict[Path, Checked]) -> bool:
    """Return True where a session owns it, or may: of a database that cannot be read nobody knows the sessions."""
    if url.startswith("bundles:"):
        return one.owner in there
    assert one.owner is not None, "what lies beside a file belongs to it"
    found = checked.get(one.owner)
    if found is None or found.looked.state != "whole" or any(finding.kind == "row lost" for finding in found.findings):
        return True
    keys = [*found.keys, *map(trash_key, found.trash_ids), *found.moving]
    unread = any(finding.kind == "events lost" for finding in found.findings)
    return unread or one.path.name.removesuffix(".stream") in {file_stem(key) for key in keys}


def _is_abandoned(url: str, one: Lying, *, now: float) -> bool:
    """Return False for what somebody may be making or removing at this moment: side files come before their session."""
    if one.owner is None or url.startswith("sqlite:"):
        return is_old(one.path, now=now)
    is_busy = _is_held(one.owner.with_name(f".{one.owner.name}.making"))
    return not is_busy and not os.path.lexists(one.owner) and os.path.lexists(one.path)


def _store_log(url: str, lying: list[Lying], checked: dict[Path, Checked]) -> Iterator[Finding]:
    """Find shared state that sessions have written and the store log does not hold."""
    scheme, place = place_of(url)
    path = place / STORE_LOG if scheme == "bundles" else place
    facts = [fact for one in checked.values() for fact in one.facts]
    is_there = any(one.path == path for one in lying if one.role in ("database", "store log")) and path.exists()
    if not facts or (is_there and checked[path].looked.state != "whole"):
        return
    if not is_there:
        sessions = len({key for key, _ in facts})
        what = f"the store log is gone, with the state that {sessions} sessions share; what they wrote of it is theirs"
        yield Finding("store log", str(path), what, f"`{FIX}` makes it again from them", is_mendable=True)
        return
    try:
        with_notes = Database.look(str(path))
    except OF_THE_SYSTEM as error:
        yield shut(path, str(error))
        return
    try:
        notes = SqliteNotes(lambda make: with_notes)
        missing = sum(1 for key, event in facts for _ in unpublished(notes.get, key, event))
    except OF_THE_SYSTEM as error:
        yield shut(path, str(error))
        return
    except PlayheadError as error:
        what = f"the store log cannot be read: {error}"
        yield Finding("store log", str(path), what, f"`{FIX}` makes it again", is_mendable=scheme == "bundles")
        return
    finally:
        with_notes.close()
    if missing:
        what = f"the store log lacks {missing} changes of shared state that sessions have written"
        advice = f"`{FIX}` puts them there, and so does resuming those sessions"
        yield Finding("store log", str(path), what, advice, is_fault=False, is_mendable=True)


def _trash(lying: list[Lying]) -> Iterator[Finding]:
    """Find bundles in the trash that could not be brought back whole."""
    for one in lying:
        if one.role != "trashed" or (looked := look_at(one.path)).state == "whole":
            continue
        if looked.state == "shut":
            yield shut(one.path, looked.problems[0])
        else:
            what = f"a session in the trash is damaged: {looked.problems[0]}"
            advice = "bring it back with `playhead restore`, then examine again; or empty the trash"
            yield Finding("trash", str(one.path), what, advice)


def _is_left(path: Path, *, now: float) -> bool:
    """Return True for what nobody makes any more: its lock is free, or it has no lock and is old."""
    return not _is_held(path) if path.name.endswith(".making") else is_old(path, now=now)


def _is_held(path: Path) -> bool:
    try:
        return OsLock.is_held(path)
    except PlayheadError:
        return True


def _free_bytes(place: Path) -> int | None:
    try:
        return shutil.disk_usage(place if place.is_dir() else place.parent).free
    except OSError:
        return None


def _sides(url: str) -> list[Path]:
    scheme, place = place_of(url)
    return [Path(f"{place}{suffix}") for suffix in ("-wal", ".artifacts", ".streams")] if scheme == "sqlite" else []
