"""Claude Code sessions: where their files lie, and each session with its sub-agents as events.

A session is `<uuid>.jsonl` in a project folder. Its sub-agents have files of their own in `<uuid>/subagents/`, or, in
older versions, beside it. Nothing is read from the folder's name, which is ambiguous: the working directory is in the
records. Files are opened for reading only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats.claude_code.thread import MEMORY_VERSION, Memory, Run, Thread
from playhead.formats.growing import Change, Files, change_of, first_of
from playhead.formats.ids import clean, session_id, stated_id
from playhead.formats.imported import ImportedSession, Skipped, SourcePosition
from playhead.formats.jsonlines import JsonLines, Record
from playhead.formats.values import mapping, text

ORIGIN = "claude-code"

SIDECAR_BYTES_MAX = 64 * 1024
"""Largest sidecar of a sub-agent that is read."""

HEAD_BYTES = 4 * 1024 * 1024
LOOKED_AT_MAX = 20
"""Records and torn stretches that tell whether a file is Claude Code's, all in its first `HEAD_BYTES`."""

_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_of_session = re.compile(rb'(?<!\\)"sessionId"\s{0,3}:\s{0,3}"')
_of_type = re.compile(rb'(?<!\\)"type"\s{0,3}:\s{0,3}"(?:user|assistant|system|summary|progress|attachment)"')
_TYPES_WITHOUT_SESSION = frozenset({"summary", "file-history-snapshot", "file-history-delta"})


class Source(msgspec.Struct, frozen=True):
    """The files of one session: its own, and those of its sub-agents."""

    path: Path
    agents: tuple[Path, ...] = ()


def default_root(environment: Mapping[str, str], home: Path) -> Path:
    """Return the folder that Claude Code keeps its projects in, given the environment and the home directory."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"


def discover(root: Path) -> list[Source]:
    """Return the sessions under `root`, in the order of their paths; [] where there are none.

    root: a `.claude` folder, its `projects` folder, one project's folder, or one session file of any name. Raises
    `ImportFailed` where there is no such file or folder, or it is the file of a sub-agent.
    """
    if root.is_file():
        if root.stem.startswith("agent-"):
            raise ImportFailed(f"{root} is the file of a sub-agent; import the session that it belongs to")
        return [Source(root, _agent_files(root, _old_agents(root.parent)))]
    if not root.is_dir():
        raise ImportFailed(f"there is no file or folder {root}")
    projects = root / "projects"
    top = projects if projects.is_dir() else root
    try:
        folders = sorted(path for path in top.iterdir() if path.is_dir())
    except OSError as error:
        raise ImportFailed(f"{top} cannot be listed: {error.strerror}") from error
    found: list[Source] = []
    for folder in (top, *folders):
        sessions = [path for path in _entries(folder) if _is_session_file(path)]
        if sessions:
            old = _old_agents(folder)
            found.extend(Source(path, _agent_files(path, old)) for path in sessions if not _begins_sidechain(path))
    return found


def recognised(path: Path) -> bool:
    """Return True where a file begins as Claude Code's do. A record too large or too deep to be read, or torn, goes by
    the fields that stand in its bytes."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES + 1)
    except OSError:
        return False
    # A line that goes on behind the head is not taken apart: it may be a whole export of another program.
    whole = head[: head.rfind(b"\n") + 1] if len(head) > HEAD_BYTES else head
    looked_at = 0
    for item in islice(JsonLines(BytesIO(whole), str(path)), LOOKED_AT_MAX):
        looked_at += 1
        if isinstance(item, Record):
            if _begins_file(item.value):
                return True
        elif _speaks_of_session(whole[item.offset : item.offset + item.length]):
            return True
    return looked_at < LOOKED_AT_MAX and _speaks_of_session(head[len(whole) :])


def _begins_file(value: dict[str, Any]) -> bool:
    return isinstance(value.get("type"), str) and ("sessionId" in value or value["type"] == "file-history-snapshot")


def _speaks_of_session(data: bytes) -> bool:
    is_object = data.lstrip()[:1] == b"{"
    return is_object and _of_session.search(data) is not None and _of_type.search(data) is not None


def is_side_file(path: Path) -> bool:
    """Return True for the file of a sub-agent: by its name, or where it begins with a sidechain."""
    return path.stem.startswith("agent-") or _begins_sidechain(path)


def _is_session_file(path: Path) -> bool:
    """Return True for a file that is named like a session and is not empty: the program leaves empty ones behind."""
    if path.suffix != ".jsonl" or not _uuid.fullmatch(path.stem):
        return False
    try:
        return path.stat().st_size > 0
    except OSError:
        return True  # It is there and cannot be looked at: reading it says why.


def read(source: Source, position: Mapping[str, SourcePosition] | None = None) -> ImportedSession | None:
    """Return what a session's files hold beyond `position`, or None where that is nothing.

    position: file name to how far it was read, as `ImportedSession.positions` gave it. Where the files only grew, the
    events and counts are of what came since; where one was shortened or changed, they are of all again, under the same
    ids. None is also the answer for a first read that finds neither a message nor a title: the program leaves such
    files behind when it is opened and closed.

    Raises `ImportFailed` where the session's file cannot be opened or holds no record; a damaged record never does.
    """
    known = dict(position or {})
    changes = {_change(path, known.get(str(path))) for path in source.agents}
    try:
        changes.add(change_of(source.path, known.get(str(source.path))))
    except OSError as error:
        raise ImportFailed(f"{source.path} cannot be read: {error.strerror}") from error
    memory = _memory(known.get(str(source.path)))
    if memory is None or "other" in changes:
        known, memory = {}, Memory()
    elif changes == {"none"}:
        return None
    files = _Files(known, is_record=_is_record)
    runs = [run for path in source.agents if (run := files.run(path)) is not None]
    thread = Thread(memory, runs)
    for record in files.records(source.path):
        thread.add(record)
    thread.finish(file_at=files.positions[str(source.path)].mtime_ns / 1e9)
    if known and not thread.events and not files.skipped:
        return None
    if not known and not thread.census.counts.records:
        raise ImportFailed(f"{source.path} holds no record of Claude Code{first_of(files.skipped)}")
    if not known and memory.facts.title is None and not any(event.kind == "message" for event in thread.events):
        return None
    return _session(source, memory, thread, files)


def _session(source: Source, memory: Memory, thread: Thread, files: _Files) -> ImportedSession:
    counts = thread.census.counts
    counts.skipped = files.skipped_count
    main = files.positions[str(source.path)]
    carry = main.carry | {"memory": thread.carry()}
    files.positions[str(source.path)] = msgspec.structs.replace(main, carry=carry)
    stated = _stated(source.path, memory)
    started: dict[str, Any] = {"origin": ORIGIN, "source": clean(source.path.name), "config": dict(memory.facts.config)}
    started |= stated_id(stated)
    if memory.facts.cwd is not None:
        started["cwd"] = memory.facts.cwd
    return ImportedSession(
        id=session_id(ORIGIN, stated),
        at=memory.first_at or main.mtime_ns / 1e9,
        started=started,
        events=thread.events,
        title=memory.facts.title,
        labels=(memory.facts.tag,) if memory.facts.tag else (),
        counts=counts,
        skipped=files.skipped,
        warnings=thread.warnings(),
        positions=files.positions,
    )


def _stated(path: Path, memory: Memory) -> str:
    """Return the session's own id: the file's name, or what the records say where the file was given another one."""
    stated = memory.facts.session
    return stated if stated and not _uuid.fullmatch(path.stem) else clean(path.stem) or "unnamed"


class _Files(Files):
    """The files of one session: its own, and those of its sub-agents."""

    def run(self, path: Path) -> Run | None:
        """Return what is new in a sub-agent's file, or None where it cannot be read; that is reported."""
        try:
            records = list(self.records(path))
        except ImportFailed as error:
            self.report(Skipped(str(path), 1, 0, 0, str(error)))
            return None
        agent_id = clean(path.stem.removeprefix("agent-")) or path.stem
        sidecar = _sidecar(path)
        return Run(agent_id, records, clean(sidecar.get("toolUseId")), clean(sidecar.get("agentType")))


def _change(path: Path, known: SourcePosition | None) -> Change:
    """Return what happened to a sub-agent's file; one that cannot be looked at counts as it was."""
    try:
        return change_of(path, known)
    except OSError:
        return "none"


def _memory(known: SourcePosition | None) -> Memory | None:
    """Return the memory of an earlier read, or None where there is none that this version understands."""
    try:
        memory = msgspec.convert((known.carry if known else {}).get("memory"), Memory)
    except msgspec.ValidationError:
        return None
    return memory if memory.version == MEMORY_VERSION else None


def _is_record(value: dict[str, Any]) -> bool:
    """Return True for an object behind torn text that is a record by itself, and no piece of the torn one."""
    return text(value.get("type")) is not None and ("sessionId" in value or value["type"] in _TYPES_WITHOUT_SESSION)


# Where files lie.


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        # A folder that may not be listed holds no session for this person; the others are still found.
        return []


def _agent_files(session: Path, old: Mapping[str, list[Path]]) -> tuple[Path, ...]:
    """Return the files of a session's sub-agents, new place and old, in the order of their paths."""
    folder = session.parent / session.stem / "subagents"
    new = sorted(path for path in folder.rglob("agent-*.jsonl") if path.is_file()) if folder.is_dir() else []
    return (*new, *old.get(session.stem, ()))


def _old_agents(folder: Path) -> dict[str, list[Path]]:
    """Return the sub-agents' files that lie beside the sessions: id of their session to files."""
    found: dict[str, list[Path]] = {}
    for path in _entries(folder):
        if path.suffix == ".jsonl" and path.stem.startswith("agent-"):
            if session := text(_first_record(path).get("sessionId")):
                found.setdefault(session, []).append(path)
    return found


def _begins_sidechain(path: Path) -> bool:
    """Return True for a file that begins with a sidechain: a sub-agent's, under a session's name."""
    return _first_record(path).get("isSidechain") is True


def _first_record(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            items: Iterable[Record | Skipped] = JsonLines(stream, str(path))
            return next((item.value for item in items if isinstance(item, Record)), {})
    except OSError:
        return {}


def _sidecar(path: Path) -> dict[str, Any]:
    """Return what `agent-<id>.meta.json` says of a sub-agent, {} where it is absent or unreadable."""
    try:
        with path.with_suffix(".meta.json").open("rb") as stream:
            return mapping(json.loads(stream.read(SIDECAR_BYTES_MAX)))
    except (OSError, ValueError, RecursionError):
        return {}
