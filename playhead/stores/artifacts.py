"""Binary outputs beside a session: written whole, named by their content, and never outside their folder.

Every access goes through a descriptor of the folder itself, so a symbolic link in its place or among the files is
refused, whatever happens to the path meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from playhead.errors import ArtifactDamaged, ArtifactNotFound
from playhead.model.ids import SessionKey
from playhead.stores.base import ArtifactRef, Durability
from playhead.stores.files import (
    disk_bytes,
    make_private_directory,
    open_regular,
    opened_directory,
    os_errors,
    place_nameless,
    write_all,
)

_NAME = re.compile(r"sha256-[0-9a-f]{64}")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def content_name(data: bytes) -> str:
    """Return the name of some bytes: `sha256-` and the 64 hex digits of their SHA-256."""
    return f"sha256-{hashlib.sha256(data).hexdigest()}"


class FileArtifacts:
    """Artifacts as files in one folder for each session. Thread-safe.

    folder_of: says which folder. folders: those of all sessions that are there. need: raises `SessionNotFound` or
    `StoreClosed` where there is nothing to keep them for.
    """

    def __init__(
        self,
        folder_of: Callable[[SessionKey], Path],
        *,
        folders: Callable[[], Iterable[Path]] = tuple,
        need: Callable[[SessionKey], object],
        durability: Durability,
    ) -> None:
        self._folder_of = folder_of
        self._folders = folders
        self._need = need
        self._durability = durability

    def put(self, key: SessionKey, data: bytes) -> ArtifactRef:
        self._need(key)
        return self.place(key, data)

    def place(self, key: SessionKey, data: bytes) -> ArtifactRef:
        """Keep bytes for a session that is about to be created."""
        name = content_name(data)
        folder = self._folder_of(key)
        make_private_directory(folder, durable=self._durability == "power")
        with os_errors(folder), opened_directory(folder, flags=_NOFOLLOW) as directory:
            if not _is_kept(name, data, directory):
                self._place(name, data, directory)
        return ArtifactRef(hash=name, size=len(data))

    def get(self, key: SessionKey, hash: str) -> bytes:
        self._need(key)
        if not _NAME.fullmatch(hash):
            raise ArtifactNotFound(key.id, hash)
        folder = self._folder_of(key)
        with os_errors(folder):
            try:
                with opened_directory(folder, flags=_NOFOLLOW) as directory:
                    data = _read(hash, directory)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise ArtifactNotFound(key.id, hash) from error
        if content_name(data) != hash:
            raise ArtifactDamaged(f"artifact {hash} of session {key.id!r} holds other bytes than its name says")
        return data

    def hashes(self, key: SessionKey) -> list[str]:
        self._need(key)
        folder = self._folder_of(key)
        with os_errors(folder):
            try:
                with opened_directory(folder, flags=_NOFOLLOW) as directory:
                    return sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def total_bytes(self) -> int:
        return disk_bytes(*self._folders())

    def remove(self, key: SessionKey) -> None:
        """Remove every artifact of a session, and the folder."""
        folder = self._folder_of(key)
        with os_errors(folder):
            try:
                with opened_directory(folder, flags=_NOFOLLOW) as directory:
                    for name in os.listdir(directory):
                        os.unlink(name, dir_fd=directory)
                folder.rmdir()
            except (FileNotFoundError, NotADirectoryError):
                return

    def _place(self, name: str, data: bytes, directory: int) -> None:
        is_durable = self._durability == "power"
        if place_nameless(name, data, directory=directory, durable=is_durable):
            if is_durable:
                os.fsync(directory)
            return
        temporary = f".{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
        try:
            try:
                write_all(descriptor, data)
                if is_durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            raise
        if is_durable:
            os.fsync(directory)


def _read(name: str, directory: int) -> bytes:
    with os.fdopen(open_regular(name, os.O_RDONLY, directory=directory), "rb") as file:
        return file.read()


def _is_kept(name: str, data: bytes, directory: int) -> bool:
    """Return True where the bytes are there already; anything else under the name is damage, so replace it."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == len(data) and _read(name, directory) == data
