"""aider's history files: where they lie, the runs in them, and each run as a session of its own.

A run goes from one header (`# aider chat started at …`) to the next; what stands before the first is one as well. The
session is named after the file's resolved path and the run's start, so a history that is moved comes as new sessions.
A run in which nobody said anything is no session. Times are local and have no zone: they are read as UTC, and
`session_started` says so. Files are opened for reading only.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats.aider.blocks import blocks_of
from playhead.formats.aider.events import ORIGIN, Memory, RunEvents
from playhead.formats.imported import UNFINISHED, ImportedSession, Skipped, SourcePosition
from playhead.formats.times import parsed

NAME = ".aider.chat.history.md"
NAMED_BY = "AIDER_CHAT_HISTORY_FILE"

FILE_BYTES_MAX = 1024 * 1024 * 1024
HEAD_BYTES = 256 * 1024
"""So much of a file is looked at to tell whether it is a history. The first header may come late."""

_prompt = re.compile(rb"^#### \S", re.MULTILINE)
_header = re.compile(rb"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t\r]*$", re.MULTILINE)


class Run(msgspec.Struct, frozen=True):
    """One run in a history. key: its start, and its number among those of the same second; `before` for what stands
    before the first header. line, offset: of its first byte in the file. data: its whole lines, header included.
    unfinished: bytes of a last line that has no end yet."""

    path: Path
    key: str
    stamp: str | None
    line: int
    offset: int
    data: bytes
    mtime_ns: int
    unfinished: int = 0

    @property
    def id(self) -> str:
        """The session's id."""
        place = hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:8]
        return f"{ORIGIN}.{place}.{self.key}"


def places(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """Return where a history lies for whoever works in `folder`: where the environment says, else in the folder that
    git calls the root, and in `folder` itself. They need not be there."""
    if named := environment.get(NAMED_BY):
        return [folder / named]
    root = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    return [one / NAME for one in dict.fromkeys((root, folder))]


def recognised(path: Path) -> bool:
    """Return True for a file that begins like a history: it has a header in its first quarter of a megabyte."""
    try:
        with path.open("rb") as stream:
            return _header.search(stream.read(HEAD_BYTES)) is not None
    except OSError:
        return False


def discover(path: Path) -> list[Run]:
    """Return the runs of a history, or of those in a folder and the folders in it, in the order of the file.

    Raises `ImportFailed` where there is no such file or folder, it cannot be read, or a file is no history.
    """
    if path.is_dir():
        return [run for file in _histories(path) for run in discover(file)]
    try:
        with path.open("rb") as stream:
            status = os.fstat(stream.fileno())
            if status.st_size > FILE_BYTES_MAX:
                raise ImportFailed(f"{path} has {status.st_size} bytes; {FILE_BYTES_MAX} are read at most")
            data = stream.read(FILE_BYTES_MAX)
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}") from error
    if data.strip() and not _is_history(path, data):
        raise ImportFailed(f"{path} is no history of aider: neither a run nor a prompt begins in it")
    whole = data[: data.rfind(b"\n") + 1]
    return _runs(path, whole, status.st_mtime_ns, unfinished=len(data) - len(whole))


def read(run: Run, position: Mapping[str, SourcePosition] | None = None) -> ImportedSession | None:
    """Return a run as a session, or None where it is as `position` says it was, or nobody said anything in it.

    A run that grew is returned whole: its events have the ids that they had. What came to the last block since (output
    of a command that was still running) is an event of its own.
    """
    known = (position or {}).get(str(run.path))
    digest = hashlib.sha256(run.data).hexdigest()
    if known is not None and known.last_line == digest:
        return None
    memory = _memory(known, run) if known is not None else Memory()
    at, trouble = _started_at(run)
    events = RunEvents(at=at, memory=memory)
    text, warnings = _decoded(run.data)
    lines = text.removesuffix("\n").split("\n")
    # A file that was copied to another system and back may have gained carriage returns.
    blocks = blocks_of([line.removesuffix("\r") for line in (lines[1:] if run.stamp else lines)])
    for block in blocks:
        events.take(block, is_last=block is blocks[-1])
    events.finish()
    if not events.is_worth_keeping:
        return None
    if trouble in ("missing", "impossible"):
        warnings.append(f"the start of the run is {trouble}")
    session = _session(run, events, at=at, trouble=trouble)
    session.warnings = warnings
    session.positions = {str(run.path): _position(run, events, digest=digest, memory=memory)}
    return session


def _session(run: Run, events: RunEvents, *, at: float, trouble: str | None) -> ImportedSession:
    started: dict[str, Any] = {"origin": ORIGIN, "source": _printable(run.path.name), "config": dict(events.config)}
    if run.path.name == NAME:
        started["cwd"] = _printable(str(run.path.resolve().parent))
    if run.stamp is not None:
        started["config"]["started_at"] = run.stamp
    started["extra"] = {"import": {"at": trouble}}
    skipped = []
    if run.unfinished:
        line, offset = run.line + run.data.count(b"\n"), run.offset + len(run.data)
        skipped.append(Skipped(str(run.path), line, offset, run.unfinished, UNFINISHED, is_pending=True))
    events.counts.skipped = len(skipped)
    return ImportedSession(
        run.id, at, started, events.events, title=events.title, counts=events.counts, skipped=skipped
    )


def _position(run: Run, events: RunEvents, *, digest: str, memory: Memory) -> SourcePosition:
    pieces = {id: list(ends) for id, ends in memory.pieces.items()}
    if events.last_piece is not None:
        pieces[events.last_piece[0]] = list(events.last_piece[1])
    unbilled = {*memory.unbilled, *([events.unbilled] if events.unbilled else [])}
    carry = {"pieces": pieces, "unbilled": sorted(unbilled)}
    return SourcePosition(len(run.data), run.mtime_ns, len(run.data), digest, carry)


def _decoded(data: bytes) -> tuple[str, list[str]]:
    """Return a run as text, and a warning for what had to be replaced in it."""
    try:
        text, warnings = data.decode(), list[str]()
    except UnicodeDecodeError:
        text, warnings = data.decode("utf-8", "replace"), ["bytes that are not UTF-8 were replaced"]
    if "\0" in text:
        warnings.append("NUL bytes were replaced")
    return text.replace("\0", "\ufffd"), warnings


def _histories(folder: Path) -> list[Path]:
    """Return the histories in a folder and in the folders directly in it."""
    try:
        folders = [folder, *sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())]
    except OSError as error:
        raise ImportFailed(f"{folder} cannot be listed: {error.strerror}") from error
    return [one / NAME for one in folders if os.access(one / NAME, os.F_OK) and (one / NAME).is_file()]


def _runs(path: Path, data: bytes, mtime_ns: int, *, unfinished: int) -> list[Run]:
    headers = [found for found in _header.finditer(data) if _stands_alone(data, found)]
    starts = [(found.start(), found[1].decode()) for found in headers]
    if data[: starts[0][0] if starts else len(data)].strip():
        starts.insert(0, (0, ""))
    times: Counter[str] = Counter()
    runs: list[Run] = []
    line, counted = 1, 0
    for index, (start, stamp) in enumerate(starts):
        is_last = index == len(starts) - 1
        end = len(data) if is_last else starts[index + 1][0]
        line, counted = line + data.count(b"\n", counted, start), start
        times[stamp] += 1
        key = re.sub("[-:]", "", stamp).replace(" ", "T") or "before"
        key = key if times[stamp] == 1 else f"{key}.{times[stamp]}"
        rest = unfinished if is_last else 0
        runs.append(Run(path, key, stamp or None, line, start, data[start:end], mtime_ns, rest))
    return runs


def _is_history(path: Path, data: bytes) -> bool:
    """Return True where a run or a prompt begins. Under the program's own name any text may be what is left of one."""
    if _header.search(data) or _prompt.search(data):
        return True
    return path.name == NAME and b"\0" not in data


def _stands_alone(data: bytes, found: re.Match[bytes]) -> bool:
    """Return True for a header with an empty line on either side, as the program writes it. Looks at these lines alone:
    a history of a gigabyte has many headers."""
    end = max(found.start() - 1, 0)
    before = data[data.rfind(b"\n", 0, end) + 1 : end]
    return not before.strip() and data[found.end() + 1 : found.end() + 2] in (b"", b"\n", b"\r")


def _started_at(run: Run) -> tuple[float, str | None]:
    """Return the time of a run in UTC seconds, and what is wrong with it. Without a possible one it is the file's."""
    at, trouble = parsed(run.stamp)
    return run.mtime_ns / 1e9 if at is None else at, trouble


def _memory(known: SourcePosition, run: Run) -> Memory:
    """Return what the last read left to know of a run that only grew since; nothing where it was changed."""
    if hashlib.sha256(run.data[: known.offset]).hexdigest() != known.last_line:
        return Memory()
    try:
        pieces = msgspec.convert(known.carry.get("pieces"), dict[str, list[int]])
        unbilled = msgspec.convert(known.carry.get("unbilled"), frozenset[str])
    except msgspec.ValidationError:
        return Memory()
    return Memory(pieces, unbilled)


def _printable(text: str) -> str:
    """Return a file name as text that JSON can hold: bytes in it that are no UTF-8 are replaced."""
    return os.fsencode(text).decode("utf-8", "replace")
