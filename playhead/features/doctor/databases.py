"""What is wrong with one database and the sessions in it. Changes no byte of it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from playhead.errors import OF_THE_SYSTEM, PlayheadError
from playhead.features.doctor.findings import FIX, FROM_BACKUP, Finding, Kind
from playhead.features.live import Live, all_events
from playhead.features.verify import verify
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.search.indexer import searchable_text
from playhead.search.tokenize import analyze
from playhead.stores.base import SessionRow, Store
from playhead.stores.sqlite.layout import artifacts_of, lock_of
from playhead.stores.sqlite.looking import Looked, LookedLog, fingerprint, look_at, looked_log
from playhead.stores.sqlite.salvage import Saved, saved_from
from playhead.views.summary import Summary

LOOKS_MAX = 3
"""So often a database is looked at again where somebody wrote to it meanwhile and something seemed wrong."""

SHOWN_MAX = 3
"""So many problems of one kind are told of a session; `playhead verify` has them all."""

YOUNG_S = 600.0
"""What is younger may belong to somebody who is at work."""

_LOST = ("cannot be read", "holds what cannot be", "are missing", "was read up to", "is out of order")
"""Words of `verify` about events that are not there, or cannot be read."""

_CHANGED = "what it said before is kept nowhere, so nothing can bring it back; "
ARTIFACT_NAME = re.compile(r"sha256-[0-9a-f]{64}")


class Checked(msgspec.Struct):
    """What was seen of one database. keys: its sessions. facts: those of each that change shared state."""

    looked: Looked
    findings: list[Finding] = []
    keys: list[SessionKey] = []
    facts: list[tuple[SessionKey, Event]] = []
    trash_ids: list[str] = []
    moving: list[SessionKey] = []
    event_count: int = 0
    artifact_count: int = 0
    unindexed_count: int = 0
    holders: list[dict[str, Any]] = []


def check_database(url: str, path: Path, *, deep: bool, now: float, is_log_only: bool = False) -> Checked:
    """Look a database through, again where somebody wrote to it meanwhile and something seemed wrong.

    is_log_only: for the store log of a directory, which has no sessions.
    """
    for _ in range(LOOKS_MAX):
        before = fingerprint(path)
        checked = _checked(url, path, deep=deep, now=now, is_log_only=is_log_only)
        if not checked.findings or fingerprint(path) == before:
            break
    return checked


def holders_in(url: str, path: Path) -> list[dict[str, Any]]:
    """Return who is in a turn of a session of a database at this moment; `[]` where it cannot be read."""
    try:
        with looked_log(path, lambda number: lock_of(url, path, number)) as log:
            return [holder for row in log.rows() if (holder := _holder(log, row.key))]
    except PlayheadError:
        return []


def has_something_to_save(path: Path) -> bool:
    """Return True where a file that is no database, or not ours, holds events whose hashes follow each other."""
    return any(len(log.records) > len(log.unproven) for log in _saved(path).logs)


def _saved(path: Path) -> Saved:
    try:
        return saved_from(path)
    except PlayheadError:
        return Saved((), ())


def _checked(url: str, path: Path, *, deep: bool, now: float, is_log_only: bool) -> Checked:
    checked = Checked(look_at(path))
    if checked.looked.state != "whole":
        checked.findings.append(_about(path, checked.looked, is_log_only=is_log_only))
    if checked.looked.state not in ("whole", "damaged"):
        return checked
    try:
        with looked_log(path, lambda number: lock_of(url, path, number)) as log:
            if not is_log_only:
                _check_log(url, path, log, checked, deep=deep, now=now)
    except OF_THE_SYSTEM as error:
        checked.findings.append(shut(path, str(error)))
    except PlayheadError as error:
        if checked.looked.state == "whole":
            checked.findings.append(_damaged(path, _brief(path, str(error))))
    return checked


def _about(path: Path, looked: Looked, *, is_log_only: bool) -> Finding:
    """Return the finding about a file that is not one of ours and whole."""
    place, why = str(path), "; ".join(_brief(path, one) for one in looked.problems[:SHOWN_MAX])
    if looked.state == "newer":
        return Finding("newer format", place, why, "upgrade Playhead; until then the file is left alone")
    if looked.state == "shut":
        return shut(path, why)
    if is_log_only:
        return Finding("store log", place, f"the store log is damaged: {why}", _replaced(), is_mendable=True)
    if looked.state == "altered":
        return Finding("altered schema", place, why, _replaced(), is_mendable=True)
    if looked.state == "damaged":
        return _damaged(path, why)
    kind: Kind = "foreign database" if looked.state == "foreign" else "not a database"
    if path.is_file() and not path.is_symlink() and has_something_to_save(path):
        return _damaged(path, f"{why}, but events of a session stand in it")
    return Finding(kind, place, f"{why}, and nothing of a session stands in it", "move it out of the store")


def shut(path: Path, why: str) -> Finding:
    """Return the finding about what the system does not let anybody look through. Nothing is known of it."""
    return Finding("place", str(path), why, "check who owns the file, its mode, and what the system says of the disk")


def _damaged(path: Path, why: str) -> Finding:
    return Finding("damaged database", str(path), f"the database is damaged: {why}", _replaced(), is_mendable=True)


def _brief(path: Path, problem: str) -> str:
    """Return an error's text without the path, which a finding names anyway."""
    return problem.replace(f"{path} is damaged: ", "").replace(f"{path} ", "the file ")


def _replaced() -> str:
    return f"`{FIX}` puts all that can be read into a new file, and keeps this one"


def _check_log(url: str, path: Path, log: LookedLog, checked: Checked, *, deep: bool, now: float) -> None:
    for aside in log.trash():
        checked.trash_ids.append(aside.trash_id)
        checked.moving += [aside.files] if aside.files is not None else []
    if log.is_emptied and not log.is_shared:
        what = "the bundle holds no session: its deletion was cut off"
        advice = f"`{FIX}` removes it"
        checked.findings.append(Finding("emptied", str(path), what, advice, is_mendable=True))
        return
    for number in log.numbers_without_session():
        what = f"of session number {number} the events are there, but the row that says which session it is is gone"
        checked.findings.append(Finding("row lost", str(path), what, _replaced(), is_mendable=True))
    for row in log.rows():
        _Session(url, path, log, row, checked).check(deep=deep, now=now)


class _Session:
    """Checks one session of a database."""

    def __init__(self, url: str, path: Path, log: LookedLog, row: SessionRow, checked: Checked) -> None:
        self._url = url
        self._path = path
        self._log = log
        self._row = row
        self._key = row.key
        self._checked = checked

    def check(self, *, deep: bool, now: float) -> None:
        if self._row.problem is not None:
            self._found("events lost", [self._row.problem], _replaced(), is_mendable=True)
            return
        try:
            self._check_chain()
            self._check_lease()
            self._check_index(deep=deep)
            self._check_summary(deep=deep)
            self._check_artifacts(deep=deep, now=now)
            self._checked.keys.append(self._key)
        except OF_THE_SYSTEM:
            raise
        except PlayheadError as error:
            found = self._checked.findings
            if "lacks a part of its schema" in str(error):
                if not any(one.kind == "damaged database" for one in found):
                    found.append(_damaged(self._path, _brief(self._path, str(error))))
            elif not any(one.kind == "events lost" and one.session == self._key for one in found):
                self._found("events lost", [f"it cannot be read: {error}"], _replaced(), is_mendable=True)

    def _found(
        self,
        kind: Kind,
        problems: list[str],
        advice: str,
        *,
        is_fault: bool = True,
        is_mendable: bool = False,
        place: Path | None = None,
    ) -> None:
        is_replaced = self._checked.looked.state == "damaged" and kind in ("snapshot", "text index", "listing row")
        if problems and not is_replaced:
            problems = [_brief(self._path, problem) for problem in problems]
            more = f" (and {len(problems) - SHOWN_MAX} more)" if len(problems) > SHOWN_MAX else ""
            what = f"session {self._key.id}: {'; '.join(problems[:SHOWN_MAX])}{more}"
            finding = Finding(kind, str(place or self._path), what, advice, is_fault, is_mendable, self._key)
            self._checked.findings.append(finding)

    def _check_chain(self) -> None:
        # Of a store, verifying uses what reads.
        verified = verify(cast(Store, self._log), self._key)
        self._checked.event_count += verified.event_count
        snapshots = [one for one in verified.problems if one.startswith("the snapshot at")]
        index = [one for one in verified.problems if one.startswith("the text index")]
        rest = [one for one in verified.problems if one not in snapshots and one not in index]
        lost = [one for one in rest if any(words in one for words in _LOST)]
        changed = [one for one in rest if one not in lost]
        self._found("events lost", lost, _replaced(), is_mendable=True)
        self._found("events changed", changed, f"{_CHANGED}{FROM_BACKUP}")
        self._found("snapshot", snapshots, f"`{FIX}` makes the snapshots again", is_mendable=True)
        self._found("text index", index, f"`{FIX}` builds the index again", is_mendable=True)
        shared = (event for event in self._log.facts(self._key) if event.kind == "state_changed")
        self._checked.facts += [(self._key, event) for event in shared]

    def _check_lease(self) -> None:
        if (holder := _holder(self._log, self._key)) is not None:
            self._checked.holders.append(holder)
        elif (said := self._log.lease_of(self._key)) is not None:
            what = f"who was in a turn of it is gone without ending it ({said})"
            advice = "nothing has to be done: `playhead resume`, or the next turn, takes it up where it stopped"
            self._found("dead holder", [what], advice, is_fault=False, is_mendable=True)

    def _check_index(self, *, deep: bool) -> None:
        seq, indexed = self._log.tip(self._key).seq, self._log.text.indexed_seq(self._key)
        self._checked.unindexed_count += max(seq - indexed, 0)
        problems = []
        if indexed > 0 and not self._log.has_text_index():
            problems = [f"events up to {indexed} are said to be indexed, but there is no index: search finds none"]
        elif deep and 0 < indexed <= seq:
            wanted: set[int] = set()
            wordless: set[int] = set()
            for event in all_events(cast(Store, self._log), self._key):
                if event.seq <= indexed and (text := searchable_text(event)):
                    # Text without a word in it (two line feeds) gives nothing to find, and may have a row all the same.
                    (wanted if analyze(text) else wordless).add(event.seq)
            held = set(self._log.indexed_rows(self._key))
            problems = [f"event {one} is missing in the text index" for one in sorted(wanted - held)]
            odd = sorted(held - wanted - wordless)
            problems += [f"the text index holds event {one}, which has no text" for one in odd]
        self._found("text index", problems, f"`{FIX}` builds the index again", is_mendable=True)

    def _check_summary(self, *, deep: bool) -> None:
        row = self._row
        if row.summary is None:
            return
        problems = []
        try:
            saved = msgspec.json.decode(row.summary, type=Summary)
        except (msgspec.MsgspecError, RecursionError) as error:
            problems = [f"its listing row cannot be read: {error}"]
        else:
            if row.summary_seq > row.seq:
                problems = [f"its listing row holds up to event {row.summary_seq}, but the log ends at {row.seq}"]
            elif deep and row.summary_seq == row.seq:
                live = Live(cast(Store, self._log), self._key, clock=_no_clock, entropy=_no_entropy)
                if live.summary() != saved:
                    problems = ["its listing row says something else than the log"]
        self._found("listing row", problems, f"`{FIX}` makes it again", is_mendable=True)

    def _check_artifacts(self, *, deep: bool, now: float) -> None:
        folder = artifacts_of(self._url, self._path, self._key)
        advice = f"nothing in the store has its bytes; {FROM_BACKUP}"
        named = {}
        for event in all_artifacts(self._log, self._key):
            name, size = event.body.get("hash"), event.body.get("size")
            if isinstance(name, str) and ARTIFACT_NAME.fullmatch(name):
                named[name] = (event.seq, size)
        self._checked.artifact_count += len(named)
        for name, (seq, size) in sorted(named.items()):
            path = folder / name
            wrong = _wrong_bytes(path, name, size, deep=deep)
            kind: Kind = "artifact missing" if not os.path.lexists(path) else "artifact changed"
            if wrong:
                self._found(kind, [f"the artifact of event {seq} {wrong}"], advice, place=path)
        mentioned = named.keys() | {name for body in self._log.bodies_naming_bytes(self._key) for name in _names(body)}
        for path in _unnamed(folder, mentioned, now=now):
            what, advice_here = "no event names this artifact", f"`{FIX}` removes it from the store"
            self._found("artifact unnamed", [what], advice_here, is_fault=False, is_mendable=True, place=path)


def all_artifacts(log: LookedLog, key: SessionKey) -> Iterator[Event]:
    """Yield every `artifact_saved` of a session."""
    after = 0
    while page := log.events(key, after=after, kinds=["artifact_saved"]):
        yield from page
        after = page[-1].seq


def _wrong_bytes(path: Path, name: str, size: object, *, deep: bool) -> str | None:
    """Return what is wrong with an artifact's file, or None. Only `deep` reads it."""
    try:
        state = path.lstat()
    except OSError:
        return "is not there"
    if not stat.S_ISREG(state.st_mode):
        return "is no regular file"
    if isinstance(size, int) and state.st_size != size:
        return f"has {state.st_size} bytes in place of {size}"
    if deep:
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if f"sha256-{digest}" != name:
            return "holds other bytes than its name says"
    return None


def _unnamed(folder: Path, named: set[str], *, now: float) -> list[Path]:
    """Return the artifacts of a folder that nothing names, but for those that are so new that their event may come."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [folder / name for name in names if ARTIFACT_NAME.fullmatch(name) and name not in named]
    return [path for path in paths if is_old(path, now=now)]


def is_old(path: Path, *, now: float) -> bool:
    """Return True for what nobody can be making at this moment."""
    try:
        return now - path.lstat().st_mtime > YOUNG_S
    except OSError:
        return False


def _names(body: str) -> list[str]:
    return ARTIFACT_NAME.findall(body)


def _holder(log: LookedLog, key: SessionKey) -> dict[str, Any] | None:
    holder = log.holder(key)
    return None if holder is None else {"session": str(key), **holder}


def _no_clock() -> float:
    raise AssertionError("looking asks for no time")


def _no_entropy(count: int) -> bytes:
    raise AssertionError("looking makes no ids")
