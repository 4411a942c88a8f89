"""Mending a store: a backup first, then what each finding can be mended by, in an order that loses nothing.

What is removed or replaced is in the backup; a database that is replaced is also kept beside the new one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from playhead.errors import PlayheadError
from playhead.features.doctor.databases import ARTIFACT_NAME, holders_in
from playhead.features.doctor.findings import Examination, Finding, Kind
from playhead.features.doctor.modes import mend_modes
from playhead.features.doctor.salvaging import Salvaged, write_saved
from playhead.features.live import Clock, Entropy, Live
from playhead.features.shared_state import republish
from playhead.model.body import text_in
from playhead.model.codec import decode_body
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.search.indexer import bring_up_to_date
from playhead.stores.artifacts import FileArtifacts
from playhead.stores.base import Store
from playhead.stores.files import os_errors
from playhead.stores.names import STORE_LOG, file_stem
from playhead.stores.open import open_store
from playhead.stores.oslock import OsLock
from playhead.stores.sqlite.backup import back_up
from playhead.stores.sqlite.bundle_trash import SUFFIX
from playhead.stores.sqlite.bundles import BundleStore
from playhead.stores.sqlite.layout import artifacts_of, lying_in, place_of
from playhead.stores.sqlite.looking import look_at
from playhead.stores.sqlite.mending import (
    drop_caches,
    put_back,
    put_notes,
    remove_emptied,
    replace_bundle,
    replace_shared,
    replace_store_log,
)
from playhead.stores.sqlite.salvage import Saved, SavedLog, saved_from
from playhead.stores.sqlite.shared import SharedStore

LABEL = "doctor"

_REPLACING: frozenset[Kind] = frozenset({"damaged database", "altered schema", "events lost", "row lost"})
_CACHES: frozenset[Kind] = frozenset({"snapshot", "text index", "listing row"})
_REMOVING: frozenset[Kind] = frozenset({"orphan", "leftover", "artifact unnamed"})


class Step(msgspec.Struct, frozen=True):
    """What was done about a finding, or why nothing could be. place: the file or folder. what: a sentence."""

    place: str
    is_done: bool
    what: str


class Mended(msgspec.Struct, frozen=True):
    """What was done. backup: where the store lies as it was before, or None where nothing but modes was changed."""

    steps: tuple[Step, ...]
    backup: str | None = None


OnStep = Callable[[str], None]
"""Told what is about to be done."""


def mend(url: str, found: Examination, *, clock: Clock, entropy: Entropy, on_step: OnStep = lambda _: None) -> Mended:
    """Mend what can be mended of what an examination found, and say of each other fault why it cannot be.

    The store should be open nowhere in this process. A session that somebody is in a turn of is left alone. Raises what
    `back_up` does where the backup cannot be made; then nothing but modes was changed.
    """
    return _Mending(url, clock, entropy, on_step).all(found)


class _Mending:
    """One course of mending, and the steps that it took."""

    def __init__(self, url: str, clock: Clock, entropy: Entropy, on_step: OnStep) -> None:
        self._url = url
        self._scheme, self._place = place_of(url)
        self._clock = clock
        self._entropy = entropy
        self._on_step = on_step
        self._steps: list[Step] = []
        self._backup: Path | None = None

    def all(self, found: Examination) -> Mended:
        mendable = [one for one in found.findings if one.is_mendable]
        if any(one.kind == "permissions" for one in mendable):
            self._try(str(self._place), self._modes)
        rest = [one for one in mendable if one.kind != "permissions"]
        if rest:
            self._back_up()
            self._cut_off(rest)
            self._databases(rest)
            self._store_log(rest)
            self._small(rest)
        is_readable_now = any(step.is_done and step.place == str(self._place) for step in self._steps)
        for one in found.faults:
            if not one.is_mendable and not (one.kind == "place" and is_readable_now):
                self._steps.append(Step(one.place, False, f"{one.what}. This cannot be mended here: {one.advice}"))
        return Mended(tuple(self._steps), None if self._backup is None else str(self._backup))

    def _try(self, place: str, work: Callable[[], str]) -> bool:
        """Do a step and note what came of it; an error of ours is why it could not be done."""
        self._on_step(place)
        try:
            self._steps.append(Step(place, True, work()))
        except PlayheadError as error:
            self._steps.append(Step(place, False, f"not mended: {error}"))
        except OSError as error:
            self._steps.append(Step(place, False, f"not mended: {error.strerror or error}"))
        return self._steps[-1].is_done

    def _modes(self) -> str:
        count = mend_modes(self._url)
        return f"{count} {'file is' if count == 1 else 'files and folders are'} for their owner alone now"

    def _back_up(self) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        target = self._place.with_name(f"{self._place.name}.before-mending-{stamp}")
        number = 1
        while os.path.lexists(target):
            number += 1
            target = self._place.with_name(f"{self._place.name}.before-mending-{stamp}-{number}")
        self._on_step(f"backing up to {target}")
        back_up(self._url, target)
        self._backup = target

    def _cut_off(self, findings: Sequence[Finding]) -> None:
        """Give databases back their names whose replacing was cut off, and replace them."""
        for one in findings:
            if one.kind == "cut off":
                kept = Path(one.place)
                owner = next(lying.owner for lying in lying_in(self._url) if lying.path == kept)
                assert owner is not None, "a kept database was replaced"

                self._try(one.place, partial(self._begun_again, kept, owner))

    def _begun_again(self, kept: Path, owner: Path) -> str:
        put_back(kept, owner)
        return self._replaced(owner)

    def _databases(self, findings: Sequence[Finding]) -> None:
        """Replace each database that cannot be mended in place, and make the caches of each other one again."""
        kinds: dict[str, set[Kind]] = {}
        for one in findings:
            kinds.setdefault(one.place, set()).add(one.kind)
        for place, wrong in kinds.items():
            path = Path(place)
            if wrong & _REPLACING:
                self._try(place, partial(self._replaced_or_indexed, path))
            elif wrong & _CACHES:
                self._try(place, partial(self._with_caches, path))

    def _replaced_or_indexed(self, path: Path) -> str:
        """Mend a database in place where only its text index is damaged, else replace it."""
        looked = look_at(path)
        if looked.state == "damaged" and all("text_index" in problem for problem in looked.problems):
            with contextlib.suppress(PlayheadError):  # Then more is damaged than it seems.
                drop_caches(path)
                if look_at(path).state == "whole":
                    return self._with_caches(path)
        return self._replaced(path)

    def _with_caches(self, path: Path) -> str:
        drop_caches(path)
        with contextlib.closing(open_store(self._url)) as store:
            for key in _keys(store):
                if not isinstance(store, BundleStore) or store.path_of(key) == path:
                    self._make_caches(store, key)
        return f"{path.name}: snapshots, text index and listing rows are made again from the log"

    def _make_caches(self, store: Store, key: SessionKey) -> None:
        Live(store, key, clock=self._clock, entropy=self._entropy).save_caches()
        bring_up_to_date(store, key)

    def _replaced(self, path: Path) -> str:
        """Put all that can be read of a database into a new one, which takes its place."""
        if holders := holders_in(self._url, path):
            who = holders[0]
            return self._refuse(f"session {who['session']} is in a turn (pid {who.get('pid', '?')}); end it first")
        if self._scheme == "sqlite" and any(
            one.role == "lock" and OsLock.is_held(one.path) for one in lying_in(self._url)
        ):
            return self._refuse("somebody is in a turn of one of its sessions; end it first")
        saved = saved_from(path)
        if not any(log.records for log in saved.logs):
            return self._refuse("no event can be read of it; it is left as it is, and a backup is all that can help")
        if self._scheme == "bundles" and any(
            log.row is not None and log.row.trash_id is not None for log in saved.logs
        ):
            return self._refuse("it is on its way into the trash; list the trash, restore it, and mend it then")
        outcomes: list[Salvaged] = []

        def write_one(store: Store) -> None:
            log = max(saved.logs, key=lambda one: len(one.records))
            outcomes.append(self._written(store, log, _key_of(log, path, is_bundle=True), path))

        def write_all(store: Store) -> None:
            assert isinstance(store, SharedStore), "it takes the place of one"
            for log in sorted(saved.logs, key=lambda one: one.row is None or one.row.trash_id is None):
                key = _free(store, _key_of(log, path, is_bundle=False))
                if log.row is None and (id := _id_of_folder(log, saved, path, key)) is not None:
                    key = _free(store, SessionKey(key.app, key.user, id))
                if log.records:
                    outcomes.append(self._written(store, log, key, path))
                    if log.row is None:
                        self._bring_artifacts(log, path, key)
                    if log.row is not None and log.row.trash_id is not None:
                        store.trash(key, trash_id=log.row.trash_id, at=log.row.trashed_at)
            put_notes(store.database, saved.notes)

        if self._scheme == "bundles":
            kept = replace_bundle(path, write_one)
        else:
            kept = replace_shared(path, write_all)
        said = "; ".join(one.sentence() for one in outcomes if not one.is_whole)
        whole = sum(1 for one in outcomes if one.is_whole)
        if whole:
            said = f"{whole} {'session is' if whole == 1 else 'sessions are'} as before, with every hash" + (
                f"; {said}" if said else ""
            )
        return f"{path.name} was put together anew: {said}. The damaged file is kept as {kept}"

    def _written(self, store: Store, log: SavedLog, key: SessionKey, path: Path) -> Salvaged:
        written = write_saved(store, log, key, source=path.name, clock=self._clock, entropy=self._entropy)
        self._make_caches(store, key)
        return written

    def _bring_artifacts(self, log: SavedLog, path: Path, key: SessionKey) -> None:
        """Put the artifacts of a session that has another id now where it looks for them."""
        kept = FileArtifacts(
            lambda key: artifacts_of(self._url, path, key), need=lambda key: None, durability="process"
        )
        for name in sorted(_artifact_names(log)):
            for found in sorted(Path(f"{path}.artifacts").glob(f"*/{name}")):
                if found.is_file() and not found.is_symlink():
                    kept.place(key, found.read_bytes())
                    break

    def _store_log(self, findings: Sequence[Finding]) -> None:
        """Make the store log again from what can be read of it, and from what sessions have written."""
        if not any(one.kind == "store log" for one in findings):
            return
        path = self._place / STORE_LOG

        def work() -> str:
            if self._scheme == "bundles" and path.exists() and look_at(path).state != "whole":
                replace_store_log(path, saved_from(path).notes)
            with contextlib.closing(open_store(self._url)) as store:
                for key in _keys(store):
                    republish(store, key)
            return "the store log holds what sessions have written of shared state"

        self._try(str(path), work)

    def _small(self, findings: Sequence[Finding]) -> None:
        for one in findings:
            path = Path(one.place)
            if one.kind == "emptied":
                self._try(one.place, partial(self._emptied, path))
            elif one.kind == "dead holder":
                self._try(one.place, partial(self._released, one))
            elif one.kind in _REMOVING and os.path.lexists(path):
                self._try(one.place, partial(self._removed, path))

    def _emptied(self, path: Path) -> str:
        remove_emptied(path)
        for suffix in (".artifacts", ".stream"):
            side = path.with_name(f"{path.name.removesuffix(SUFFIX)}{suffix}")
            if os.path.lexists(side):
                self._removed(side)
        return f"{path.name}, which held no session, is removed, with what lay beside it"

    def _released(self, finding: Finding) -> str:
        key = finding.session
        assert key is not None, "it is about a session"
        with contextlib.closing(open_store(self._url)) as store:
            store.release(store.acquire(key, label=LABEL, at=self._clock()))
        return f"session {key} is free; what was open in it is closed by the next resume"

    def _removed(self, path: Path) -> str:
        """Move what belongs to nothing into the backup, where it is not there already."""
        assert self._backup is not None, "the backup comes first"
        if path.name.endswith((".lock", ".making")) or path.parent.name.endswith(".locks"):
            return self._unlocked(path)
        root = self._place if self._scheme == "bundles" else self._place.parent
        target = Path(f"{self._backup}.removed") / path.relative_to(root)
        with os_errors(path):
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(path, target)
        return f"{path.name} is removed; it lies in {target}"

    def _unlocked(self, path: Path) -> str:
        """Remove a lock that is nobody's, as its next holder would: never one that somebody took meanwhile."""
        if (lock := OsLock.take(path)) is None:
            return self._refuse("somebody holds the lock by now")
        lock.release()
        return f"{path.name}, the lock of somebody who is gone, is removed"

    def _refuse(self, why: str) -> str:
        raise _NotMended(why)


class _NotMended(PlayheadError):
    """A step that cannot be done, and why."""


def _keys(store: Store) -> list[SessionKey]:
    """Return the key of every session that can be read."""
    found: list[SessionKey] = []
    after: SessionKey | None = None
    while page := store.sessions(after=after, limit=1_000):
        found += [row.key for row in page if row.problem is None]
        after = page[-1].key
    return found


def _key_of(log: SavedLog, path: Path, *, is_bundle: bool) -> SessionKey:
    """Return the key of a saved log. Where the session's row is lost, its first event tells the app and user, and the
    name of its file the id."""
    if log.row is not None and log.row.key is not None:
        return log.row.key
    app, user = DEFAULT_APP, DEFAULT_USER
    first = log.records[0] if log.records else None
    if first is not None and first.kind == "session_started" and first.body is not None:
        with contextlib.suppress(PlayheadError):
            body = decode_body(first.body)
            app, user = text_in(body, "app") or app, text_in(body, "user") or user
    id = path.name.removesuffix(SUFFIX) if is_bundle else f"salvaged-{log.number}"
    return SessionKey(app, user, id)


def _id_of_folder(log: SavedLog, saved: Saved, path: Path, key: SessionKey) -> str | None:
    """Return the id that the folder of its artifacts tells of a session whose row is lost, or None."""
    mine = _artifact_names(log)
    taken = {file_stem(one.row.key) for one in saved.logs if one.row is not None and one.row.key is not None}
    folders = Path(f"{path}.artifacts")
    names = os.listdir(folders) if mine and folders.is_dir() else []
    fitting = [name for name in names if name not in taken and mine.issubset(os.listdir(folders / name))]
    if len(fitting) != 1 or file_stem(SessionKey(key.app, key.user, fitting[0])) != fitting[0]:
        return None
    return fitting[0]


def _artifact_names(log: SavedLog) -> set[str]:
    """Return the names of the artifacts that a session's events name."""
    names = set()
    for record in log.records:
        if record.kind == "artifact_saved" and record.body is not None:
            with contextlib.suppress(PlayheadError):
                name = text_in(decode_body(record.body), "hash") or ""
                names |= {name} if ARTIFACT_NAME.fullmatch(name) else set()
    return names


def _free(store: SharedStore, key: SessionKey) -> SessionKey:
    """Return the key, or one like it where it is taken."""
    number = 1
    free = key
    while store.number_of(free) is not None:
        number += 1
        free = SessionKey(key.app, key.user, f"{key.id}-{number}")
    return free
