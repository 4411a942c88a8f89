"""Files, safely: private modes, whole or not at all, and the system's errors in Playhead's words."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from playhead.errors import NotAStore, StoreFull, StoreReadOnly, StoreUnavailable

HAS_NAMELESS = hasattr(os, "O_TMPFILE")
"""True where the system can write a file before it gives it a name (Linux)."""


def place_file(path: Path, content: bytes, *, durable: bool) -> bool:
    """Write a new file whole, mode 0600, or return False where the name is taken.

    It is written without a name where the system can do that, else under another one, and linked into place: no process
    ever sees half of it, and two creators cannot overwrite each other. `durable` makes the file and its name survive a
    loss of power.
    """
    make_private_directory(path.parent, durable=durable)
    with os_errors(path):
        is_placed = None
        if HAS_NAMELESS:
            with opened_directory(path.parent) as directory:
                is_placed = place_nameless(path.name, content, directory=directory, durable=durable)
        if is_placed is None:
            is_placed = _place_renamed(path, content, durable=durable)
        if durable and is_placed:
            sync_directory(path.parent)
    return is_placed


def place_nameless(name: str, content: bytes, *, directory: int, durable: bool) -> bool | None:
    """Place a file that has no name until it is whole, so that a kill leaves nothing behind.

    directory: a descriptor of its folder. Returns False where the name is taken, and None where the system or the file
    system cannot do it; nothing was placed then.
    """
    if not HAS_NAMELESS:
        return None
    try:
        descriptor = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600, dir_fd=directory)
    except OSError:
        return None
    try:
        _write_new(descriptor, content, durable=durable)
        try:
            # `src_dir_fd` is only given so that the link in /proc is followed; the path is absolute.
            source = f"/proc/self/fd/{descriptor}"
            os.link(source, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=True)
        except FileExistsError:
            return False
        except OSError:
            return None
    finally:
        os.close(descriptor)
    return True


def _place_renamed(path: Path, content: bytes, *, durable: bool) -> bool:
    """Place a file that is written under another name. A kill may leave that one behind, hidden and of no effect."""
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        try:
            _write_new(descriptor, content, durable=durable)
        finally:
            os.close(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # The file system has no hard links. A rename overwrites, so look first; the window is this short.
            if path.exists():
                return False
            os.rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def rename(source: Path, target: Path, *, durable: bool) -> bool:
    """Give a file or a folder another name; return False where it is not there, or the name is taken.

    The caller sees to it that nobody else takes the name meanwhile. `durable` makes both survive a loss of power.
    """
    with os_errors(source):
        if not os.path.lexists(source) or os.path.lexists(target):
            return False
        make_private_directory(target.parent, durable=durable)
        os.rename(source, target)
        if durable:
            for folder in {source.parent, target.parent}:
                sync_directory(folder)
    return True


def second_name(source: Path, target: Path, *, durable: bool) -> bool:
    """Let a file lie under another name as well, in place of what is there; return False where it is not there itself.

    Where the file system has no hard links it is copied. `durable` makes the new name survive a loss of power.
    """
    with os_errors(source):
        unlink(target)
        if not os.path.lexists(source):
            return False
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError:
            _copy(source, target, durable=durable)
        if durable:
            sync_directory(target.parent)
    return True


def _copy(source: Path, target: Path, *, durable: bool) -> None:
    with os.fdopen(open_regular(source, os.O_RDONLY), "rb") as reader:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as writer:
            shutil.copyfileobj(reader, writer)
            writer.flush()
            if durable:
                os.fsync(descriptor)


def _write_new(descriptor: int, content: bytes, *, durable: bool) -> None:
    write_all(descriptor, content)
    if durable:
        os.fsync(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte; the system may take fewer at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def open_regular(path: Path | str, flags: int, *, directory: int | None = None) -> int:
    """Open a file that has to be a regular one, mode 0600 where it is made. A link, a folder or a pipe in its place is
    refused; opening a pipe would wait for whoever is at its other end."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags | careful, 0o600, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreUnavailable(f"{path} is no regular file; it is left as it is")
    return descriptor


def unlink(path: Path) -> None:
    """Remove a file where there is one. A name that no file can have is one of none."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise


def sync_file(path: Path) -> None:
    """Make what was written to a file survive a loss of power."""
    with os_errors(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_directory(folder: Path) -> None:
    """Make names in a folder survive a loss of power."""
    with opened_directory(folder) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def opened_directory(folder: Path, *, flags: int = 0) -> Iterator[int]:
    """A descriptor of a folder for as long as the block runs."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def make_private_directory(folder: Path, *, durable: bool = False) -> None:
    """Create a directory, and the parents it lacks, with mode 0700. One that is there is left as it is.

    `durable` makes the names of new ones survive a loss of power.
    """
    with os_errors(folder):
        if not folder.is_dir():
            if folder.parent != folder:
                make_private_directory(folder.parent, durable=durable)
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            if durable:
                sync_directory(folder.parent)


@contextlib.contextmanager
def os_errors(path: object) -> Iterator[None]:
    """Translate the system's file errors into Playhead's, at the store's edge."""
    try:
        yield
    except PermissionError as error:
        raise StoreReadOnly(f"{path}: {error.strerror}; check who owns it and its mode") from error
    except OSError as error:
        if isinstance(error, StoreFull | StoreUnavailable):
            raise
        if error.errno in NO_SPACE:
            raise StoreFull(f"{path}: no space left; free some and retry") from error
        if error.errno in _NOT_A_FOLDER:
            raise NotAStore(f"{path}: {error.strerror}; a store cannot be here") from error
        if error.errno in _READ_ONLY:
            raise StoreReadOnly(f"{path}: the file system is read-only") from error
        raise StoreUnavailable(f"{path}: {error.strerror or error}") from error


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


def disk_bytes(*paths: Path) -> int:
    """Return the bytes that files and all that folders hold take on disk. What is absent, and what nobody may look at,
    counts nothing."""
    total = 0
    for path in paths:
        total += _members_bytes(path) if os.path.isdir(path) else _file_bytes(path)
    return total


def members(folder: Path) -> list[Path]:
    """Return what is in a folder, in no order; nothing where it is absent or nobody may look into it."""
    with contextlib.suppress(OSError):
        return [folder / name for name in os.listdir(folder)]
    return []


def _members_bytes(folder: Path | str) -> int:
    total = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            total += _file_bytes(entry.path)
            if entry.is_dir(follow_symlinks=False):
                total += _members_bytes(entry.path)
    return total


def _file_bytes(path: Path | str) -> int:
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_blocks * 512 if hasattr(found, "st_blocks") else found.st_size


NO_SPACE = _numbers("ENOSPC", "EDQUOT", "EFBIG")
_READ_ONLY = _numbers("EROFS")
_NOT_A_FOLDER = _numbers("ENOTDIR", "EEXIST", "EISDIR")
