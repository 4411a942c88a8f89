"""The formats that are read: what each is called, where its program keeps sessions, and how a file of it is told apart.

A file is told by what is in it, not by its name alone. A folder may hold sessions of several formats: each looks in it
for the layout that its program makes, and then the files are looked at that lie anywhere else in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.formats import aider, chatgpt, claude_code, codex, jsonl
from playhead.formats.imported import ImportedSession, SourcePosition
from playhead.formats.importing import Read
from playhead.formats.watching import FILES_MAX, files_at

OTHERS_NAMED_MAX = 3
"""So many files of no format are named; their count is always whole."""

_SIDE_FILES = frozenset({"history.jsonl", codex.INDEX})
"""What the programs keep beside their sessions: nobody misses a session in it."""


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

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other source. One session may come in several: an export, and a newer one."""
        return self.format, str(self.path.resolve()), self.position_name


class Format(msgspec.Struct, frozen=True):
    """One format. places: where its program keeps sessions, given the environment, the home directory and the current
    folder; they need not be there. endings: what the names of its files end with, wherever they lie. recognised: True
    for a file of this format, by its beginning. discover: the sessions of a file or folder, [] where there are none;
    raises `ImportFailed` where it cannot be read.
    """

    name: str
    title: str
    places: Callable[[Mapping[str, str], Path, Path], Sequence[Path]]
    endings: tuple[str, ...]
    recognised: Callable[[Path], bool]
    discover: Callable[[Path], Sequence[Found]]


class Unread(msgspec.Struct, frozen=True):
    """A place that could not be looked at, and why. is_other: it lies in a folder, is of no format, and may well be
    nobody's session."""

    path: Path
    error: str
    is_other: bool = False


def look(path: Path, format: str | None = None, *, is_searched: bool = True) -> tuple[list[Found], list[Unread]]:
    """Return the sessions of a file or folder, and what could not be looked at.

    format: None to tell by the content. is_searched: False to look in a folder only for what lies as its program puts
    it there. A pipe is taken for what `playhead export` wrote: nothing else can be read from one.
    """
    try:
        _check_place(path, format)
        formats = [FORMATS[format]] if format else _formats_of(path)
    except ImportFailed as error:
        return [], [Unread(path, str(error))]
    looked = _Looked(formats)
    for one in formats:
        for place in (path, *_kept_in(path, one)):
            looked.take(one, place)
    if is_searched and path.is_dir():
        looked.search(path, names_others=format is None)
    return list(looked.found.values()), list(looked.unread.values())


class _Looked:
    """What was found so far, and what could not be looked at, each once."""

    def __init__(self, formats: Sequence[Format]) -> None:
        self.found: dict[tuple[str, str, str], Found] = {}
        self.unread: dict[str, Unread] = {}
        self._formats = formats

    def take(self, format: Format, place: Path) -> None:
        """Take in the sessions of a file or folder."""
        try:
            self.found |= {session.key: session for session in format.discover(place)}
        except ImportFailed as error:
            self._failed(place, str(error))
        except OSError as error:
            self._failed(place, f"{place} cannot be read: {error.strerror}")

    def search(self, folder: Path, *, names_others: bool) -> None:
        """Take in the sessions in a folder that lie elsewhere than where their programs keep them.

        names_others: say of files that are named like sessions, and are of no format, that they were passed over.
        """
        known = {file.resolve() for one in self.found.values() for file in one.files}
        # Codex has a thread twice where it was compressed or archived; `codex.discover` took the better one.
        threads = {_thread(one.path) for one in self.found.values() if one.format == "codex"}
        others: list[Path] = []
        for file in sorted(self._named_like_sessions(folder)):
            if file.resolve() in known:
                continue
            format = next(
                (one for one in self._formats if file.name.endswith(one.endings) and one.recognised(file)), None
            )
            if format is None:
                if not file.name.endswith(".json") and file.name not in _SIDE_FILES:
                    others.append(file)
            elif format.name == "codex" and _thread(file) in threads:
                continue
            elif format.name != "claude-code" or not claude_code.is_side_file(file):
                self.take(format, file)
        if others and names_others:
            self.unread[""] = Unread(folder, _other_files(folder, others), is_other=True)

    def _named_like_sessions(self, folder: Path) -> Iterator[Path]:
        endings = tuple({ending for one in self._formats for ending in one.endings})
        for number, (file, status) in enumerate(files_at(folder)):
            if number == FILES_MAX:
                self._failed(
                    folder, f"{folder} has more than {FILES_MAX} files; name the folders in it that have sessions"
                )
                return
            if status.st_size and file.name.endswith(endings):
                yield file

    def _failed(self, place: Path, error: str) -> None:
        self.unread.setdefault(error, Unread(place, error))


def _thread(path: Path) -> str:
    return path.name.removesuffix(".zst")


def _other_files(folder: Path, files: Sequence[Path]) -> str:
    named = ", ".join(str(file.relative_to(folder)) for file in files[:OTHERS_NAMED_MAX])
    if len(files) == 1:
        return f"{named} in {folder} is of no format that is read here"
    more = f" and {len(files) - OTHERS_NAMED_MAX} more" if len(files) > OTHERS_NAMED_MAX else ""
    return f"{len(files)} files in {folder} are of no format that is read here: {named}{more}"


def places(environment: Mapping[str, str], home: Path, folder: Path) -> dict[str, list[Path]]:
    """Return where sessions lie by default: the name of each format to its places, whether they are there or not."""
    found = {one.name: list(dict.fromkeys(one.places(environment, home, folder))) for one in FORMATS.values()}
    return {name: paths for name, paths in found.items() if paths}


def titles() -> str:
    """Return the names of all formats as a person knows them, in one line."""
    return ", ".join(one.title for one in FORMATS.values())


def _check_place(path: Path, format: str | None) -> None:
    """Raise `ImportFailed` for a place that is not there, is neither a file nor a folder, or cannot be read."""
    try:
        if path.is_dir():
            return
        if not path.exists():
            raise ImportFailed(f"there is no file or folder {path}")
        if path.is_fifo():
            if format not in (None, "jsonl"):
                raise ImportFailed(f"{path} is a pipe: only what `playhead export` wrote can be read from one")
        elif not path.is_file():
            raise ImportFailed(f"{path} is neither a file nor a folder")
        else:
            with path.open("rb"):
                pass
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}") from error


def _formats_of(path: Path) -> list[Format]:
    if path.is_dir():
        return list(FORMATS.values())
    if path.is_fifo():  # Looking into it would take away what is in it.
        return [FORMATS["jsonl"]]
    recognised = next((FORMATS[name] for name in _TRIED if FORMATS[name].recognised(path)), None)
    if recognised is not None:
        return [recognised]
    if path.stat().st_size == 0:
        raise ImportFailed(f"{path} is empty")
    if (fault := chatgpt.fault_of(path)) is not None:
        raise ImportFailed(fault)
    raise ImportFailed(f"{path} is of no format that is read here: {titles()}; --format says which it is")


def _kept_in(path: Path, format: Format) -> Iterator[Path]:
    """Yield the places of a format's program in a folder that is laid out like a home directory."""
    if path.is_dir():
        for place in format.places({}, path, path):
            if place.is_dir() and place != path and place.is_relative_to(path):
                yield place


# The formats.


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
            (".jsonl",),
            claude_code.recognised,
            _claude_code,
        ),
        Format(
            "codex",
            "Codex",
            lambda environment, home, folder: [codex.default_root(environment, home)],
            (".jsonl", ".jsonl.zst"),
            codex.recognised,
            _codex,
        ),
        Format(
            "aider",
            "aider",
            lambda environment, home, folder: aider.places(environment, folder),
            (aider.NAME,),
            aider.recognised,
            _aider,
        ),
        Format(
            "chatgpt",
            "ChatGPT export",
            lambda environment, home, folder: [],
            (".json", ".zip"),
            chatgpt.recognised,
            _chatgpt,
        ),
        Format(
            "jsonl",
            "Playhead JSON Lines",
            lambda environment, home, folder: [],
            (".jsonl", ".jsonl.gz"),
            jsonl.is_export,
            _jsonl,
        ),
    )
}
"""Every format by its name."""

_TRIED = ("jsonl", "chatgpt", "aider", "claude-code", "codex")
"""The order in which a file is tried: those first that look at little of it."""
