"""A folder of documents to answer from: its text files, found by the search of the sessions and named by path and line.

The texts are the messages of one session in a store in memory, so that they are searched, ranked and quoted exactly as
sessions are. Like any session it only grows: what a file said before it changed stays in it and is passed over, until
that is more than what counts; then it begins anew. Nothing is written to the folder or anywhere else.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from playhead.agents.built_in.passages import PASSAGES_MAX, Passage, find_passages
from playhead.agents.documents.files import (
    NO_TEXT,
    OVER,
    TEXT_BYTES_MAX,
    FileFound,
    NotText,
    chunks,
    files_of,
    text_of_file,
)
from playhead.agents.file_prints import Print
from playhead.agents.quoting import one_line, reference
from playhead.errors import InvalidName
from playhead.model.event import Draft
from playhead.search.indexer import bring_up_to_date
from playhead.session import Session, Sessions, open as open_sessions

STEP_BYTES = 200_000
"""So much text is indexed in one step, between which other work goes on."""
LINES_DEFAULT = 100
LINES_MAX = 1_000
READ_CHARS_MAX = 20_000
FILE_BYTES_MIN = 1_000
"""A file counts as so much text at least: to open one takes time, and some files say wrongly that they are empty."""
NAMES_MAX = 200
"""So many names are listed at a time."""
GONE_CHUNKS_MIN = 1_000
"""Fewer chunks of files that changed are never worth beginning anew."""

WHO = "document"


class Status(msgspec.Struct, frozen=True):
    """How far a folder is indexed. file_count: files that can be searched. waiting_count, waiting_bytes: those that are
    still to be read, each of `FILE_BYTES_MIN` at least. left_out: why something is left out, to how many."""

    file_count: int
    waiting_count: int
    waiting_bytes: int
    left_out: dict[str, int]


class DocumentPassages(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer. passages: the best ones, best first. more_count: further ones that `without` leads to. status: of the
    folder as it was searched."""

    passages: list[Passage]
    status: Status
    more_count: int = 0


class DocumentText(msgspec.Struct, frozen=True):
    """Some lines of a document. id: `PATH:FIRST-LAST`. line, last_line: the first and the last of them, from 1.
    line_count: how many the document has. next_line: where to read on, or None at its end."""

    id: str
    name: str
    text: str
    line: int
    last_line: int
    line_count: int
    next_line: int | None
    at: float


class Documents:
    """The text files below a folder. Safe for any thread; calls take turns, and block while they read.

    `look` says what is new, `index` reads it in steps; `find` and `read` know what was indexed, and open no file: a
    name that is none of the index's names nothing. Raises `InvalidName` where there is no such folder.

    on_long: is told, in a sentence and on the event loop, where so much is to be read that an answer may come before.
    """

    def __init__(self, folder: str | os.PathLike[str], *, on_long: Callable[[str], None] | None = None) -> None:
        path = Path(os.path.realpath(folder))
        if not path.is_dir():
            raise InvalidName(f"there is no folder {one_line(str(folder), chars_max=200)!r} to take documents from")
        self.folder = path
        self.on_long = on_long
        self._lock = threading.Lock()
        self._waiting: dict[str, FileFound] = {}
        self._left_out: Counter[str] = Counter()
        self._unread: dict[str, tuple[Print, str]] = {}
        self._begin()

    def _begin(self) -> None:
        self._sessions: Sessions = open_sessions("memory:")
        self._session: Session = self._sessions.create("documents")
        self._files: dict[str, _Indexed] = {}
        # The seq of a chunk to the file and the line that it begins at; what is not here counts no more.
        self._places: dict[int, tuple[str, int]] = {}
        self._gone_count = 0
        self._bytes = 0

    def look(self) -> Status:
        """Look at the folder: forget the files that are gone, and note those that are new or changed.

        Raises `InvalidName` where the folder is gone or cannot be read.
        """
        with self._lock:
            try:
                scan = files_of(str(self.folder))
            except OSError as error:
                where = one_line(str(self.folder), chars_max=200)
                raise InvalidName(f"the folder {where} cannot be read: {error.strerror}") from error
            found: dict[str, FileFound] = {}
            for file in scan.files:
                found.setdefault(file.name, file)
            for name in [name for name in self._files if name not in found]:
                self._forget(name)
            self._unread = {name: known for name, known in self._unread.items() if name in found}
            self._left_out = scan.left_out
            self._waiting = {name: file for name, file in found.items() if not self._is_known(file)}
            return self._status()

    def status(self) -> Status:
        """Return how far the folder is indexed, as it was when it was looked at last."""
        with self._lock:
            return self._status()

    def has(self, name: str) -> bool:
        """Return True where there is a document of this name."""
        with self._lock:
            return name in self._files

    def index(self, bytes_max: int = STEP_BYTES) -> Status:
        """Read and index some of what waits, at least one file of it."""
        with self._lock:
            room = bytes_max
            while self._waiting and room > 0:
                file = self._waiting.pop(next(iter(self._waiting)))
                room -= max(self._take(file), file.print[0], FILE_BYTES_MIN)
            if not self._waiting:
                if self._gone_count > max(len(self._places), GONE_CHUNKS_MIN):
                    self._begin_anew()
                # A listing row and a snapshot: without them every search would read the whole log.
                self._session.close()
            bring_up_to_date(self._sessions.store, self._session.key)
            return self._status()

    def find(self, query: str, *, without: Collection[str] = (), count: int = PASSAGES_MAX) -> DocumentPassages:
        """Return the passages of what is indexed that answer a question. without: ids of those that were shown."""
        with self._lock:
            key = self._session.key
            shown = {reference(key, seq) for id in without if (seq := self._chunk_at(id)) is not None}
            found = find_passages(
                self._sessions, query, without=shown, count=count, is_source=lambda hit: hit.seq in self._places
            )
            passages = [self._placed(one) for one in found.passages]
            return DocumentPassages(passages, self._status(), found.more_count)

    def read(self, name: str, line: int = 1, count: int = LINES_DEFAULT) -> DocumentText:
        """Return lines of a document from one on, `READ_CHARS_MAX` characters of them at most. Raises `InvalidName`."""
        with self._lock:
            file = self._files.get(name)
            if file is None:
                raise InvalidName(f"there is no document {one_line(name, chars_max=200)!r} in the folder")
            lines = file.text.removesuffix("\n").split("\n")
            first = max(1, min(line, len(lines)))
            last, size = first, len(lines[first - 1])
            while last < min(len(lines), first + max(1, min(count, LINES_MAX)) - 1):
                size += len(lines[last]) + 1
                if size > READ_CHARS_MAX:
                    break
                last += 1
            return DocumentText(
                id=_id(name, first, last),
                name=name,
                # One line may be longer than all that is read at a time.
                text="\n".join(lines[first - 1 : last])[:READ_CHARS_MAX],
                line=first,
                last_line=last,
                line_count=len(lines),
                next_line=last + 1 if last < len(lines) else None,
                at=file.at,
            )

    def names(self, *, after: str = "", limit: int = NAMES_MAX) -> list[str]:
        """Return a page of the names of the documents, in order."""
        with self._lock:
            return [name for name in sorted(self._files) if name > after][: max(1, min(limit, NAMES_MAX))]

    def _is_known(self, file: FileFound) -> bool:
        """Whether a file is as it was when it was read; one that could not be read is left out again."""
        unread = self._unread.get(file.name)
        if unread is not None and unread[0] == file.print:
            self._left_out[unread[1]] += 1
            return True
        known = self._files.get(file.name)
        return known is not None and known.print == file.print

    def _take(self, file: FileFound) -> int:
        """Put a file in the place of what it was, or leave it out. Returns how many characters it has."""
        self._forget(file.name)
        try:
            text = text_of_file(file, str(self.folder))
            if self._bytes + len(text) > TEXT_BYTES_MAX:
                raise NotText(OVER)
            # Half a surrogate pair, which some encodings can spell, is no text that a log takes.
            text.encode()
        except (NotText, UnicodeEncodeError) as error:
            reason = str(error) if isinstance(error, NotText) else NO_TEXT
            self._unread[file.name] = (file.print, reason)
            self._left_out[reason] += 1
            return 0
        self._unread.pop(file.name, None)
        self._add(file.name, text, file.print, file.at)
        return len(text)

    def _add(self, name: str, text: str, print: Print, at: float) -> None:
        found = list(chunks(text))
        drafts = [
            Draft(
                kind="message",
                body={"role": "assistant", "parts": [{"type": "text", "content": chunk.text}]},
                id=f"{len(self._places) + self._gone_count}-{number}",
                at=at,
                agent=WHO,
            )
            for number, chunk in enumerate(found)
        ]
        seqs = [event.seq for event in self._session.append_all(drafts)] if drafts else []
        self._places.update({seq: (name, chunk.line) for seq, chunk in zip(seqs, found, strict=True)})
        self._files[name] = _Indexed(text, print, at, seqs, [chunk.line for chunk in found])
        self._bytes += len(text)

    def _forget(self, name: str) -> None:
        file = self._files.pop(name, None)
        if file is not None:
            for seq in file.seqs:
                del self._places[seq]
            self._gone_count += len(file.seqs)
            self._bytes -= len(file.text)

    def _begin_anew(self) -> None:
        files = self._files
        self._sessions.close()
        self._begin()
        for name, file in files.items():
            self._add(name, file.text, file.print, file.at)

    def _placed(self, passage: Passage) -> Passage:
        """Return a passage of the session as one of its document."""
        name, line = self._places[int(passage.id.rpartition("#")[2])]
        file = self._files[name]
        chunk = self._session.event(file.seqs[bisect_right(file.lines, line) - 1]).body["parts"][0]["content"]
        first = line + chunk.count("\n", 0, passage.start)
        return msgspec.structs.replace(
            passage,
            id=_id(name, first, first + passage.text.count("\n")),
            title="",
            who=WHO,
            at=file.at,
            is_document=True,
        )

    def _chunk_at(self, id: str) -> int | None:
        """Return the seq of the chunk that a passage of this id is in; None where it is none of a document."""
        name, line = document_place(id) or ("", 0)
        file = self._files.get(name)
        index = bisect_right(file.lines, line) - 1 if file else -1
        return file.seqs[index] if file and index >= 0 else None

    def _status(self) -> Status:
        left_out = {reason: count for reason, count in sorted(self._left_out.items()) if count}
        sizes = [max(file.print[0], FILE_BYTES_MIN) for file in self._waiting.values()]
        return Status(len(self._files), len(sizes), sum(sizes), left_out)


class _Indexed(msgspec.Struct, frozen=True):
    """A file as it was read. seqs: of its chunks, in order. lines: where each of them begins."""

    text: str
    print: Print
    at: float
    seqs: list[int]
    lines: list[int]


def document_place(id: str) -> tuple[str, int] | None:
    """Return the name and the first line of what `PATH:FIRST` or `PATH:FIRST-LAST` names, None for what names none."""
    name, colon, lines = id.strip().rpartition(":")
    first, _, last = lines.partition("-")
    if not (colon and name) or not _is_line(first) or (last and not _is_line(last)):
        return None
    return name, int(first)


def _is_line(digits: str) -> bool:
    return digits.isascii() and digits.isdigit() and len(digits) <= 9


def _id(name: str, first: int, last: int) -> str:
    return f"{name}:{first}" if first == last else f"{name}:{first}-{last}"
