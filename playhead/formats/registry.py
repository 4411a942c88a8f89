"""The formats that are read: what each is called, where its program keeps sessions, and how a file of it is told apart.

A file is told by what is in it, not by its name alone. A folder may hold sessions of several formats; each looks in it
for the layout that its program makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats import aider, chatgpt, claude_code, codex, jsonl
from playhead.formats.imported import ImportedSession, SourcePosition
from playhead.formats.importing import Read
from playhead.formats.jsonlines import JsonLines, Record

RECORDS_LOOKED_AT = 20
"""So many records at the beginning of a file tell what it is."""

HEAD_BYTES = 4 * 1024 * 1024


class Found(msgspec.Struct, frozen=True):
    """A session of a source, not read yet.

    format: name of its format. path: what is named to a person, and looked at to find the session again. files: what
    it is made of. part: names it where the path holds many. read: see `importing.Read`; None for a format whose files
    are brought in as they are.
    """

    format: str
    path: Path
    files: tuple[Path, ...]
    read: Read | None
    part: str | None = None

    @property
    def position_name(self) -> str:
        """The name under which the store notes how far it was read."""
        return self.part if self.part is not None else str(self.path.resolve())


class Format(msgspec.Struct, frozen=True):
    """One format. places: where its program keeps sessions, given the environment, the home directory and the current
    folder; they need not be there. recognised: True for a file of this format, by its beginning. discover: the
    sessions of a file or folder, [] where there are none; raises `ImportFailed` where it cannot be read.
    """

    name: str
    title: str
    places: Callable[[Mapping[str, str], Path, Path], Sequence[Path]]
    recognised: Callable[[Path], bool]
    discover: Callable[[Path], Sequence[Found]]


class Unread(msgspec.Struct, frozen=True):
    """A place that could not be looked at, and why."""

    path: Path
    error: str


def look(path: Path, format: str | None = None) -> tuple[list[Found], list[Unread]]:
    """Return the sessions of a file or folder, and what could not be looked at. format: None to tell by the content."""
    found: dict[tuple[str, str], Found] = {}
    unread: list[Unread] = []
    try:
        formats = [FORMATS[format]] if format else _formats_of(path)
    except ImportFailed as error:
        return [], [Unread(path, str(error))]
    for one in formats:
        for place in (path, *_kept_in(path, one)):
            try:
                found |= {(session.format, session.position_name): session for session in one.discover(place)}
            except ImportFailed as error:
                unread.append(Unread(place, str(error)))
    return list(found.values()), unread


def places(environment: Mapping[str, str], home: Path, folder: Path) -> dict[str, list[Path]]:
    """Return where sessions lie by default: the name of each format to its places, whether they are there or not."""
    found = {one.name: list(dict.fromkeys(one.places(environment, home, folder))) for one in FORMATS.values()}
    return {name: paths for name, paths in found.items() if paths}


def titles() -> str:
    """Return the names of all formats as a person knows them, in one line."""
    return ", ".join(one.title for one in FORMATS.values())


def _formats_of(path: Path) -> list[Format]:
    if path.is_dir():
        return list(FORMATS.values())
    if not path.is_file():
        raise ImportFailed(f"there is no file or folder {path}")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}") from error
    recognised = next((one for one in FORMATS.values() if one.recognised(path)), None)
    if recognised is None:
        raise ImportFailed(f"{path} is of no format that is read here: {titles()}; --format says which it is")
    return [recognised]


def _kept_in(path: Path, format: Format) -> Iterator[Path]:
    """Yield the places of a format's program in a folder that is laid out like a home directory."""
    if path.is_dir():
        for place in format.places({}, path, path):
            if place.is_dir() and place != path and place.is_relative_to(path):
                yield place


# The formats.


def _first_records(path: Path) -> list[dict[str, Any]]:
    """Return the first records of a file of JSON lines, [] where it is none."""
    try:
        with path.open("rb") as stream:
            items = JsonLines(BytesIO(stream.read(HEAD_BYTES)), str(path))
            return [item.value for item in islice(items, RECORDS_LOOKED_AT) if isinstance(item, Record)]
    except OSError:
        return []


def _is_claude_code(path: Path) -> bool:
    return any(
        isinstance(record.get("type"), str) and ("sessionId" in record or record["type"] == "file-history-snapshot")
        for record in _first_records(path)
    )


def _claude_code(path: Path) -> list[Found]:
    return [
        Found("claude-code", source.path, (source.path, *source.agents), _bound(claude_code.read, source))
        for source in claude_code.discover(path)
    ]


def _codex(path: Path) -> list[Found]:
    return [Found("codex", source.path, (source.path,), _bound(codex.read, source)) for source in codex.discover(path)]


def _aider(path: Path) -> list[Found]:
    return [
        Found("aider", run.path, (run.path,), _bound(aider.read, run), f"{run.path.resolve()}#{run.key}")
        for run in aider.discover(path)
    ]


def _chatgpt(path: Path) -> list[Found]:
    return [
        Found("chatgpt", one.path, one.files, _bound(chatgpt.read, one), one.position_name)
        for one in chatgpt.discover(path)
    ]


def _jsonl(path: Path) -> list[Found]:
    if not path.is_dir():
        return [Found("jsonl", path, (path,), None)]
    try:
        files = sorted(one for one in path.iterdir() if one.name.endswith((".jsonl", ".jsonl.gz")) and one.is_file())
    except OSError as error:
        raise ImportFailed(f"{path} cannot be listed: {error.strerror}") from error
    return [Found("jsonl", file, (file,), None) for file in files if jsonl.is_export(file)]


def _bound(read: Callable[[Any, dict[str, SourcePosition]], ImportedSession | None], source: Any) -> Read:
    """Return the reader of one source. `Any`: each format has a source of its own type, and its reader takes it."""
    return lambda known: read(source, known)


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "claude-code",
            "Claude Code",
            lambda environment, home, folder: [claude_code.default_root(environment, home)],
            _is_claude_code,
            _claude_code,
        ),
        Format(
            "codex",
            "Codex",
            lambda environment, home, folder: [codex.default_root(environment, home)],
            codex.recognised,
            _codex,
        ),
        Format(
            "aider",
            "aider",
            lambda environment, home, folder: aider.places(environment, folder),
            aider.recognised,
            _aider,
        ),
        Format("chatgpt", "ChatGPT export", lambda environment, home, folder: [], chatgpt.recognised, _chatgpt),
        Format("jsonl", "Playhead JSON Lines", lambda environment, home, folder: [], jsonl.is_export, _jsonl),
    )
}
"""Every format by its name, in the order in which a file is tried."""
