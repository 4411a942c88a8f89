"""Out: one session in one of the formats, and a file that is there whole or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, cast

from playhead.formats.html import html
from playhead.formats.jsonl import Written, write_session
from playhead.formats.markdown import markdown
from playhead.formats.redaction import Redactor
from playhead.model.ids import SessionKey
from playhead.session import Session, Sessions

ExportFormat = Literal["jsonl", "md", "html"]

_BY_ENDING: dict[str, ExportFormat] = {
    ".jsonl": "jsonl",
    ".md": "md",
    ".markdown": "md",
    ".html": "html",
    ".htm": "html",
}

_PAGES: dict[str, Callable[..., Iterator[str]]] = {"md": markdown, "html": html}


def format_of(path: Path) -> ExportFormat | None:
    """Return the format that a file's name ends in, also before `.gz`, or None for any other name."""
    name = path.name.lower().removesuffix(".gz")
    return next((format for ending, format in _BY_ENDING.items() if name.endswith(ending)), None)


def export_session(
    sessions: Sessions,
    key: SessionKey,
    out: BinaryIO,
    *,
    format: ExportFormat,
    branch: int | None = None,
    artifacts: bool = True,
    redactor: Redactor | None = None,
) -> Written:
    """Write a session in UTF-8 and return what was written. Reads it and changes nothing.

    branch: for a page, the event that ends the path to show; JSON Lines hold all branches. redactor: masks secrets.
    Raises `SessionNotFound`, `EventNotFound`, and what the formats say that they raise.
    """
    if format == "jsonl":
        return write_session(sessions, key, out, artifacts=artifacts, redactor=redactor)
    session = sessions.get(key.id, app=key.app, user=key.user)
    for piece in page(session, format=format, branch=branch, artifacts=artifacts, redactor=redactor):
        out.write(piece.encode())
    return Written(key, session.seq, len(session.artifacts()) if artifacts else 0)


def page(
    session: Session,
    *,
    format: Literal["md", "html"],
    branch: int | None = None,
    artifacts: bool = True,
    redactor: Redactor | None = None,
) -> Iterator[str]:
    """Yield a session as a page for people, in pieces of whole lines."""
    return _PAGES[format](session, branch=branch, artifacts=artifacts, redactor=redactor)


@contextmanager
def placed(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, mode 0600, that gets its name when the block has ended well; else nothing is left of it.

    What is written to a name that ends in `.gz` is compressed. Raises `FileExistsError` where the name is taken and
    `overwrite` is not set, and always where it is not a regular file's; else what the system raises.
    """
    _check_free(path, overwrite=overwrite)
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if path.name.lower().endswith(".gz"):
                # Neither a time nor a name inside: the same sessions give the same bytes.
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, path)
        else:
            _link(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _check_free(path: Path, *, overwrite: bool) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not overwrite:
        raise FileExistsError(errno.EEXIST, "there is a file of this name already", str(path))
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "there is something of this name that is no regular file", str(path))


def _link(temporary: Path, path: Path) -> None:
    """Give the file its name, which nobody else may have taken meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no hard links. A rename overwrites, so look once more; the window is this short.
        _check_free(path, overwrite=False)
        os.rename(temporary, path)
