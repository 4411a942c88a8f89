"""The text files of a folder: which there are, what they say, and the chunks in which they are searched.

File names and what is in the files are data. Nothing is opened but regular files below the folder: links are not
followed, pipes and devices never opened. What is text is told by the content, not by the name.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import islice
from typing import NamedTuple

from playhead.agents.file_prints import Print, print_of

FILES_MAX = 10_000
"""So many files of a folder are read."""
ENTRIES_MAX = 100_000
"""So many entries of a folder and of those below it are looked at."""
DEPTH_MAX = 32
FILE_BYTES_MAX = 2_000_000
TEXT_BYTES_MAX = 32_000_000
"""So much text is kept ready, of all files together; with its index it takes six times as much memory."""
PROBE_BYTES = 8_192
"""A file whose first bytes are no text is not read further."""
NAME_CHARS_MAX = 1_000

CHUNK_CHARS = 1_500
PARAGRAPH_CHARS = 500
"""A chunk of so many characters ends with its paragraph, one of `CHUNK_CHARS` with its line."""
LINE_CHARS_MAX = 4_000
"""A longer line is several chunks."""

LEFT_OUT = frozenset({"node_modules", "__pycache__"})
"""Folders that programs fill."""

HIDDEN, LINK, LARGE, NO_TEXT, UNREADABLE, OVER = (
    "hidden",
    "a link",
    "too large",
    "no text",
    "not readable",
    "beyond the limit",
)
"""Why something in a folder is left out."""

_COUNTED = {
    HIDDEN: ("hidden entry", "hidden entries"),
    LINK: ("link", "links"),
    LARGE: (f"file over {FILE_BYTES_MAX // 1_000_000} MB", f"files over {FILE_BYTES_MAX // 1_000_000} MB"),
    NO_TEXT: ("that is no text", "that are no text"),
    UNREADABLE: ("that cannot be read", "that cannot be read"),
}
_LIMITS = f"{FILES_MAX:,} files and {TEXT_BYTES_MAX // 1_000_000} MB of text"

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_HTML = (".html", ".htm", ".xhtml")
_TAG = re.compile(r"<[a-zA-Z/!?]")
_UNSEEN = re.compile(r"<(script|style|template|noscript)\b")


class FileFound(NamedTuple):
    """A file below a folder. name: its path within, with `/` between the parts. path: to open it by."""

    name: str
    path: str
    print: Print
    at: float


@dataclass(slots=True)
class Scan:
    """What is in a folder: files in the order of their names, and how many entries were left out for which reason."""

    files: list[FileFound] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class NotText(Exception):
    """A file cannot be read as text. Its text is the reason, one of those above."""


class Chunk(NamedTuple):
    """A stretch of a text. line: the number of the line that it begins in, from 1."""

    line: int
    text: str


def left_out_told(left_out: Mapping[str, int]) -> str:
    """Return how many entries are left out for which reason, in a few words; "" for none."""
    told = [f"{count:,} {_COUNTED[why][count != 1]}" for why, count in left_out.items() if why in _COUNTED and count]
    if count := left_out.get(OVER, 0):
        told.append(f"{count:,} beyond the limits of {_LIMITS}")
    return ", ".join(told)


def files_of(folder: str) -> Scan:
    """Return the files below a folder that may be text. Opens none of them. Raises `OSError`."""
    scan = Scan()
    room = ENTRIES_MAX
    waiting = [(folder, "", 0)]
    is_first = True
    while waiting and room > 0:
        path, prefix, depth = waiting.pop()
        try:
            with os.scandir(path) as found:
                entries = sorted(islice(found, room), key=lambda entry: entry.name)
        except OSError:
            if is_first:
                raise
            scan.left_out[UNREADABLE] += 1
            continue
        is_first = False
        room -= len(entries)
        for entry in entries:
            reason = _taken(entry, prefix, depth, scan, waiting)
            if reason:
                scan.left_out[reason] += 1
    scan.left_out[OVER] += len(waiting)
    scan.files.sort()
    if len(scan.files) > FILES_MAX:
        scan.left_out[OVER] += len(scan.files) - FILES_MAX
        del scan.files[FILES_MAX:]
    return scan


def _taken(
    entry: os.DirEntry[str], prefix: str, depth: int, scan: Scan, waiting: list[tuple[str, str, int]]
) -> str | None:
    """Take an entry in, as a file or as a folder to look into; return why it is left out, None where it is not."""
    if entry.name.startswith(".") or entry.name in LEFT_OUT:
        return HIDDEN
    name = f"{prefix}{_shown(entry.name)}"
    try:
        if entry.is_symlink():
            return LINK
        if entry.is_dir(follow_symlinks=False):
            if depth >= DEPTH_MAX:
                return OVER
            waiting.append((entry.path, f"{name}/", depth + 1))
            return None
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return UNREADABLE
    if not stat.S_ISREG(found.st_mode):
        return NO_TEXT
    if found.st_size > FILE_BYTES_MAX:
        return LARGE
    if len(name) > NAME_CHARS_MAX:
        return OVER
    scan.files.append(FileFound(name, entry.path, print_of(found), found.st_mtime))
    return None


def text_of_file(found: FileFound, folder: str) -> str:
    """Return what a file says, with `\\n` at the ends of its lines. Raises `NotText`.

    folder: resolved. A file that a link on the way took out of it meanwhile is not read.
    """
    try:
        # A pipe that took the file's place would block whoever opens it, and a link lead elsewhere.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(found.path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotText(NO_TEXT)
            if os.path.commonpath([os.path.realpath(found.path), folder]) != folder:
                raise NotText(LINK)
            data = file.read(PROBE_BYTES)
            if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise NotText(NO_TEXT)
            data += file.read(FILE_BYTES_MAX + 1 - len(data))
    except (OSError, ValueError) as error:
        raise NotText(UNREADABLE) from error
    if len(data) > FILE_BYTES_MAX:
        raise NotText(LARGE)
    text = _decoded(data).replace("\r\n", "\n").replace("\r", "\n")
    return html_text(text) if found.name.casefold().endswith(_HTML) else text


def _decoded(data: bytes) -> str:
    """Return bytes as text: UTF-8, UTF-16 with its mark, or Latin-1 where nothing in it is a control character."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if _CONTROLS.search(text):
        raise NotText(NO_TEXT)
    return text


def html_text(source: str) -> str:
    """Return what a page of HTML shows, every word in the line where it stands in the source.

    It takes tags, comments, scripts and styles out, and looks at each character once: a parser takes minutes for some
    pages that mean harm.
    """
    folded = source.casefold() if len(source.casefold()) == len(source) else source
    kept: list[str] = []
    at = 0
    while (opens := source.find("<", at)) >= 0:
        kept.append(source[at:opens])
        if not _TAG.match(source, opens):
            kept.append("<")
            at = opens + 1
            continue
        at = _after_markup(folded, opens)
        # What is taken out leaves its line feeds, and a space between the words around it.
        kept.append("\n" * source.count("\n", opens, at) or " ")
    kept.append(source[at:])
    # A line feed that was spelled as a character reference is none of the source.
    lines = (" ".join(unescape(line).split()) for line in "".join(kept).split("\n"))
    return "\n".join(lines)


def _after_markup(source: str, opens: int) -> int:
    """Return where the tag, comment, script or style that begins here is over: the end where it never is."""
    closing = ">"
    if source.startswith("<!--", opens):
        closing = "-->"
    elif unseen := _UNSEEN.match(source, opens):
        closing = f"</{unseen[1]}"
    end = source.find(closing, opens)
    if end >= 0 and closing.startswith("</"):
        end, closing = source.find(">", end), ">"
    return len(source) if end < 0 else end + len(closing)


def chunks(text: str) -> Iterator[Chunk]:
    """Yield the chunks of a text, in order: paragraphs together, as long as a chunk may be. Blank ones are left out."""
    held: list[str] = []
    begins, size = 1, 0
    for number, line in enumerate(text.split("\n"), 1):
        is_full = size + len(line) > CHUNK_CHARS or (size > PARAGRAPH_CHARS and not line.strip())
        if held and (is_full or line.startswith("#")):
            yield from _chunk(begins, held)
            held, size = [], 0
        if not held:
            begins = number
        held.append(line)
        size += len(line) + 1
    yield from _chunk(begins, held)


def _chunk(begins: int, lines: list[str]) -> Iterator[Chunk]:
    """Yield the text between the blank lines around it, in one chunk or in several where a line is too long."""
    told = [number for number, line in enumerate(lines) if line.strip()]
    if not told:
        return
    begins += told[0]
    text = "\n".join(lines[told[0] : told[-1] + 1])
    for start in range(0, len(text), LINE_CHARS_MAX):
        yield Chunk(begins + text.count("\n", 0, start), text[start : start + LINE_CHARS_MAX])


def _shown(name: str) -> str:
    """Return a file's name as text that can be kept; bytes that are no text in it are shown as U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")
