"""Codex threads: where their rollout files lie, and each thread as a session.

A thread is `rollout-<local time>-<thread id>.jsonl` in `sessions/YYYY/MM/DD`, or in `archived_sessions`. Files that
have not been touched for a week may be compressed (`.jsonl.zst`). Where a thread is there twice, the plain file is
read, and of two alike the larger one. A thread that is moved or compressed between two imports keeps its ids, so that
nothing doubles.

Each sub-agent is a thread with a file of its own, and so a session of its own: it has the label `sub-agent`, and its
first event says under `parent` which session began it, as what. A thread that begins with a copy of its parent's
history names it under `forked_from`; the copied events have the ids that they have in the parent, so that a search
shows each of them once.

Names that people gave are in `session_index.jsonl`. Files are opened for reading only.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats.codex import compressed
from playhead.formats.codex.facts import SUB_AGENT
from playhead.formats.codex.records import opened
from playhead.formats.codex.thread import MEMORY_VERSION, Memory, Thread
from playhead.formats.growing import Change, Files, change_of, first_of
from playhead.formats.ids import clean, session_id, stated_id
from playhead.formats.imported import ImportedSession, Skipped, SourcePosition
from playhead.formats.jsonlines import JsonLines, Record
from playhead.formats.titles import title_line
from playhead.formats.values import text
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER

ORIGIN = "codex"

INDEX = "session_index.jsonl"
INDEX_LINES_MAX = 1_000_000

LOOKED_AT_MAX = 5
"""Records and torn stretches that tell whether a file is Codex's."""

_FOLDERS = ("sessions", "archived_sessions")
_FOLDERS_ABOVE_MAX = 4
"""Levels between a rollout file and the folder that is Codex's own: year, month, day, and `sessions`."""

_name = re.compile(r"rollout-[0-9T:-]*-?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl(?:\.zst)?", re.IGNORECASE)


class Source(msgspec.Struct, frozen=True):
    """One thread's file. title: the name that the index beside the files gives it."""

    path: Path
    title: str | None = None


def default_root(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder that Codex keeps its threads in, given the environment and the home directory."""
    return Path(environment.get("CODEX_HOME") or home / ".codex")


def discover(root: Path) -> list[Source]:
    """Return the threads under `root`, in the order of their paths; [] where there are none.

    root: Codex's own folder, any folder in it, or one rollout file of any name. Raises `ImportFailed` where there is no
    such file or folder.
    """
    if root.is_file():
        return [Source(root, _titles(root).get(_thread_of(root) or ""))]
    if not root.is_dir():
        raise ImportFailed(f"there is no file or folder {root}")
    best: dict[str, Path] = {}
    for path in _rollouts(root):
        thread = _thread_of(path) or path.name
        if thread not in best or _rank(path) > _rank(best[thread]):
            best[thread] = path
    titles: dict[Path | None, dict[str, str]] = {}
    found = []
    for thread, path in best.items():
        home = _home_of(path)
        if home not in titles:
            titles[home] = _titles(path)
        found.append(Source(path, titles[home].get(thread)))
    return sorted(found, key=lambda source: str(source.path))


def recognised(path: Path) -> bool:
    """Return True where a file begins as Codex's do. A compressed one that cannot be unpacked goes by its name."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(compressed.MAGIC))
        if path.suffix == compressed.SUFFIX and not compressed.can_unpack():
            return begin == compressed.MAGIC and _name.fullmatch(path.name) is not None
        with compressed.opened(path) as stream:
            items = itertools.islice(JsonLines(stream, str(path), is_record=_is_sure), LOOKED_AT_MAX)
            return any(isinstance(item, Record) and _is_sure(item.value) for item in items)
    except (OSError, ImportFailed):
        return False


def read(source: Source, position: Mapping[str, SourcePosition] | None = None) -> ImportedSession | None:
    """Return what a thread's file holds beyond `position`, or None where that is nothing.

    position: file name to how far it was read, as `ImportedSession.positions` gave it. Where the file only grew, the
    events and counts are of what came since; where it was shortened, changed or compressed, they are of all again,
    under the same ids. A new name in the index is news too. None is also the answer for a first read that finds neither
    a message nor a name: the program leaves such files behind when it is opened and closed.

    Raises `ImportFailed` where the file cannot be opened or unpacked, or holds no record of Codex; a damaged record
    never does.
    """
    name = str(source.path)
    known = {path: at for path, at in (position or {}).items() if path == name}
    memory = _memory(known.get(name))
    try:
        change = _change(source.path, known.get(name))
    except OSError as error:
        raise ImportFailed(f"{source.path} cannot be read: {error.strerror}") from error
    if memory is None or change == "other":
        known, memory = {}, Memory()
    elif change == "none":
        return None if source.title in (None, memory.title) else _renamed(source, memory, known)
    memory.title = source.title or memory.title
    files = Files(known, is_record=_is_sure, open=compressed.opened)
    thread = Thread(memory, _thread_of(source.path))
    for record in files.records(source.path):
        thread.add(record)
    thread.finish(file_at=files.positions[name].mtime_ns / 1e9)
    if known and not thread.events and not files.skipped:
        return None
    if not known and not thread.census.known_count:
        raise ImportFailed(f"{source.path} holds no record of Codex{first_of(files.skipped)}")
    if not known and memory.title is None and not any(event.kind == "message" for event in thread.events):
        return None
    counts = thread.census.counts
    counts.skipped = files.skipped_count
    session = _session(source, memory, files.positions, carried=thread.carry())
    session.events, session.counts = thread.events, counts
    session.skipped, session.warnings = files.skipped, thread.warnings()
    return session


def _renamed(source: Source, memory: Memory, known: dict[str, SourcePosition]) -> ImportedSession:
    memory.title = source.title
    return _session(source, memory, known, carried=msgspec.to_builtins(memory))


def _session(
    source: Source, memory: Memory, positions: dict[str, SourcePosition], *, carried: dict[str, Any]
) -> ImportedSession:
    facts = memory.facts
    position = positions[str(source.path)]
    carry = position.carry | {"memory": carried}
    stated = memory.copies.own or _thread_of(source.path) or clean(source.path.stem) or "unnamed"
    started: dict[str, Any] = {"origin": ORIGIN, "source": clean(source.path.name), "config": dict(facts.config)}
    started |= stated_id(stated)
    if facts.cwd is not None:
        started["cwd"] = facts.cwd
    if facts.forked_from is not None:
        started["forked_from"] = _session_key(facts.forked_from)
    if facts.parent:
        about = {name: value for name, value in facts.parent.items() if name != "thread"}
        started["parent"] = about | (_session_key(facts.parent["thread"]) if "thread" in facts.parent else {})
    return ImportedSession(
        id=session_id(ORIGIN, stated),
        at=memory.first_at or position.mtime_ns / 1e9,
        started=started,
        events=[],
        title=memory.title or facts.title or facts.own_title,
        labels=(SUB_AGENT,) if facts.is_sub_agent else (),
        positions={str(source.path): msgspec.structs.replace(position, carry=carry)},
    )


def _session_key(thread: str) -> dict[str, str]:
    return {"app": DEFAULT_APP, "user": DEFAULT_USER, "session": session_id(ORIGIN, thread)}


def _change(path: Path, known: SourcePosition | None) -> Change:
    """Return what happened to a file. Nothing can be said of the middle of a compressed one: it is read whole again."""
    if known is None or path.suffix != compressed.SUFFIX:
        return change_of(path, known)
    status = path.stat()
    return "none" if (status.st_size, status.st_mtime_ns) == (known.size, known.mtime_ns) else "other"


def _memory(known: SourcePosition | None) -> Memory | None:
    """Return the memory of an earlier read, or None where there is none that this version understands."""
    try:
        memory = msgspec.convert((known.carry if known else {}).get("memory"), Memory)
    except msgspec.ValidationError:
        return None
    return memory if memory.version == MEMORY_VERSION else None


def _is_sure(value: dict[str, Any]) -> bool:
    """Return True for a record that no other program writes: in Codex's envelope, or the head of its oldest files."""
    found = opened(value)
    if found.is_bare:
        return found.type == "session_meta"
    return found.is_known and bool(found.payload) and "timestamp" in value


# Where files lie.


def _thread_of(path: Path) -> str | None:
    """Return the thread's id by the file's name, or None where the file was given another name."""
    found = _name.fullmatch(path.name)
    return found[1].lower() if found else None


def _rollouts(root: Path) -> Iterator[Path]:
    """Yield the rollout files under a folder; the program leaves empty ones behind, and those are passed over."""
    for top in [folder for name in _FOLDERS if (folder := root / name).is_dir()] or [root]:
        for path in sorted(top.rglob("rollout-*")):
            if _name.fullmatch(path.name) and path.is_file() and _rank(path)[1]:
                yield path


def _rank(path: Path) -> tuple[bool, int]:
    """Return what decides between two files of one thread: whether it is plain, and its size in bytes."""
    try:
        size = path.stat().st_size
    except OSError:
        size = -1  # It is there and cannot be looked at: reading it says why.
    return path.suffix != compressed.SUFFIX, size


def _home_of(path: Path) -> Path | None:
    """Return Codex's own folder for a rollout file in it, or None for one that lies elsewhere."""
    above = path.parents[:_FOLDERS_ABOVE_MAX]
    return next((folder.parent for folder in above if folder.name in _FOLDERS), None)


def _titles(path: Path) -> dict[str, str]:
    """Return thread id to name, by the index of the folder that a file lies in; of several names the last one."""
    home = _home_of(path)
    titles: dict[str, str] = {}
    try:
        if home is None or not (home / INDEX).is_file():
            return titles
        with (home / INDEX).open("rb") as stream:
            for item in itertools.islice(JsonLines(stream, INDEX), INDEX_LINES_MAX):
                found: Record | Skipped = item
                if isinstance(found, Record) and (thread := text(found.value.get("id"))):
                    if title := title_line(found.value.get("thread_name")):
                        titles[thread.lower()] = title
    except OSError:
        return titles  # The names are a comfort: threads without one show their first prompt.
    return titles
