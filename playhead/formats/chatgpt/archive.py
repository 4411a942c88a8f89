"""The files of an export, from its zip, its folder, or one of its files: the conversations, and what was attached.

A zip is read where it lies and nothing of it is unpacked to disk. It was downloaded, so it is not trusted: names that
lead out of it, links, encrypted files and files that are far larger than their packed bytes make it refused as a whole.
The account's own data (`user.json`) is never opened.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from playhead.errors import ImportFailed

CONVERSATIONS_BYTES_MAX = 1024 * 1024 * 1024
"""Largest file of conversations that is read; it is held in memory."""

ATTACHMENT_BYTES_MAX = 64 * 1024 * 1024
"""Largest attachment that is kept; of a larger one its name is."""

ENTRIES_MAX = 200_000
RATIO_MAX = 200
"""Conversations pack to a tenth or so. What unpacks to more than this many times its size is no export."""
RATIO_COUNTS_FROM = 16 * 1024 * 1024
HEAD_BYTES = 256 * 1024

ID_CHARS_MAX = 256
ID_ENDS_MAX = 32
"""How far into the name of an attachment its id is looked for: so many characters, and so many places to end at."""

_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""What stands before a file in a zip: a mark, and the lengths of the name and of what else follows."""
_LOCAL_MARK = b"PK\x03\x04"
_UTF8 = 0x800
"""Flag of a file in a zip whose name is UTF-8."""

_conversations = re.compile(r"conversations([-_]\d+)?\.json")
_ZIP = b"PK\x03\x04"
_drive = re.compile(r"[A-Za-z]:")


class Member(msgspec.Struct, frozen=True):
    """One file of an export. read: returns its bytes. Raises `ImportFailed` where they cannot be had."""

    name: str
    size: int
    read: Callable[[], bytes]


class Export(msgspec.Struct, frozen=True):
    """The files of an export that matter. attachments: by every beginning of their names that may be their id."""

    path: Path
    mtime_ns: int
    conversations: list[Member]
    attachments: dict[str, Member]

    def attachment(self, id: str) -> Member | None:
        """Return the file that was attached under this id: the export puts the id before its name."""
        return self.attachments.get(id)


def is_export(path: Path) -> bool:
    """Return True for a file of conversations, or a zip with one in it. Only its head is read."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                name = next((name for name in archive.namelist() if _conversations.fullmatch(_base(name))), None)
                if name is None:
                    return False
                with archive.open(name) as stream:
                    return _has_conversations(stream.read(HEAD_BYTES))
        with path.open("rb") as file:
            return _has_conversations(file.read(HEAD_BYTES))
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError):
        return False


def fault_of(path: Path) -> str | None:
    """Return why a zip is no export that can be read, as a sentence; None for a file that does not begin as a zip."""
    try:
        with path.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                return None
        if not zipfile.is_zipfile(path):
            return f"{path} is a torn zip file: the list of its files, which stands at the end, is missing"
        names = [member.name for member in opened(path).conversations]
    except (OSError, ImportFailed) as error:
        return str(error)
    if names:
        return f"{path} is no export of ChatGPT: {names[0]!r} in it holds no conversations"
    return f"{path} is a zip file without conversations.json, which an export of ChatGPT has"


def opened(path: Path) -> Export:
    """Return the files of an export. Raises `ImportFailed` where it cannot be read, or should not be."""
    with _failures(path):
        if path.is_dir():
            return _folder(path, path.iterdir(), None)
        if zipfile.is_zipfile(path):
            return _zip(path)
        return _folder(path, path.parent.iterdir(), path)


def exports_in(folder: Path) -> list[Path]:
    """Return the exports in a folder: itself, if it has conversations, and zips of that sort."""
    with _failures(folder):
        files = sorted(path for path in folder.iterdir() if path.is_file())
    has_own = any(_conversations.fullmatch(path.name) and is_export(path) for path in files)
    return [*([folder] if has_own else []), *(path for path in files if path.suffix == ".zip" and is_export(path))]


def _has_conversations(head: bytes) -> bool:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    is_list = start.startswith(b"[") or re.match(rb'\{\s*"conversations"', start) is not None
    return is_list and b'"mapping"' in head


def _folder(path: Path, files: Iterable[Path], only: Path | None) -> Export:
    conversations: list[Member] = []
    others: list[Member] = []
    for file in sorted(files):
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) and file != only:
            continue  # A link may lead anywhere; the export has none.
        if file == only or (only is None and _conversations.fullmatch(file.name)):
            conversations.append(_file_member(file, file.stat().st_size, CONVERSATIONS_BYTES_MAX))
        elif file.suffix != ".json":
            others.append(_file_member(file, status.st_size, ATTACHMENT_BYTES_MAX))
    newest = (only or path).stat().st_mtime_ns
    return Export(path, newest, conversations, _by_id(others))


def _file_member(file: Path, size: int, bytes_max: int) -> Member:
    def read() -> bytes:
        with _failures(file), file.open("rb") as stream:
            data = stream.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise ImportFailed(f"{file} has more than {bytes_max} bytes, which is the most that is read")
        return data

    return Member(file.name, size, read)


def _zip(path: Path) -> Export:
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > ENTRIES_MAX:
        raise ImportFailed(f"{path} holds {len(entries)} files; an export has {ENTRIES_MAX} at most")
    for entry in entries:
        if (fault := _fault(entry)) is not None:
            raise ImportFailed(f"{path} is refused: {entry.filename!r} {fault}")
    found = [entry for entry in entries if _conversations.fullmatch(_base(entry.filename))]
    return Export(
        path,
        path.stat().st_mtime_ns,
        [_zip_member(path, entry, CONVERSATIONS_BYTES_MAX) for entry in sorted(found, key=lambda one: one.filename)],
        _by_id(
            _zip_member(path, entry, ATTACHMENT_BYTES_MAX) for entry in entries if not entry.filename.endswith(".json")
        ),
    )


def _fault(entry: zipfile.ZipInfo) -> str | None:
    """Return why a zip with this file in it is not read, None where nothing is wrong with it."""
    name = entry.orig_filename  # As it stands in the zip: `filename` is cut at a NUL.
    if name.startswith("/") or "\\" in name or "\0" in name or _drive.match(name) or ".." in name.split("/"):
        return "is a name that leads out of the export"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "is a link"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if entry.file_size > RATIO_COUNTS_FROM and entry.file_size > RATIO_MAX * max(entry.compress_size, 1):
        return f"unpacks to {entry.file_size} bytes from {entry.compress_size}"
    return None


def _zip_member(path: Path, entry: zipfile.ZipInfo, bytes_max: int) -> Member:
    def read() -> bytes:
        if entry.file_size > bytes_max:
            raise ImportFailed(f"{path}: {entry.filename!r} has {entry.file_size} bytes; {bytes_max} are read at most")
        with _failures(path), path.open("rb") as file, _unpacked(file, entry) as stream:
            return stream.read(bytes_max)

    return Member(entry.filename, entry.file_size, read)


def _unpacked(file: BinaryIO, entry: zipfile.ZipInfo) -> zipfile.ZipExtFile:
    """Return one file of an open zip, to be read. The list of all files is not read again: it may have 200,000."""
    file.seek(entry.header_offset)
    head = file.read(_LOCAL_HEADER.size)
    if len(head) < _LOCAL_HEADER.size:
        raise zipfile.BadZipFile(f"{entry.filename!r} is not where the list says")
    mark, name_length, more_length = _LOCAL_HEADER.unpack(head)
    name = file.read(name_length)
    if mark != _LOCAL_MARK or name.decode("utf-8" if entry.flag_bits & _UTF8 else "cp437") != entry.orig_filename:
        raise zipfile.BadZipFile(f"{entry.filename!r} is not where the list says")
    file.seek(more_length, os.SEEK_CUR)
    return zipfile.ZipExtFile(file, "r", entry)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _by_id(members: Iterable[Member]) -> dict[str, Member]:
    """Return attachments by all that may be their ids: every beginning of a name behind which no letter or digit comes.
    Of several the first; one that is empty or too large to be kept is none."""
    found: dict[str, Member] = {}
    for member in members:
        if 0 < member.size <= ATTACHMENT_BYTES_MAX:
            name = _base(member.name)
            ends = (end for end in range(1, min(len(name), ID_CHARS_MAX) + 1) if not name[end : end + 1].isalnum())
            for end in islice(ends, ID_ENDS_MAX):
                found.setdefault(name[:end], member)
    return found


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    """Turn what the system and the zip reader raise into `ImportFailed`."""
    try:
        yield
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise ImportFailed(f"{path} is no whole zip file: {error}") from error
