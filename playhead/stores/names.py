"""File names for sessions: generated, never taken from an id as it is."""

from __future__ import annotations

import hashlib
import re

from playhead.errors import InvalidName
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey

STEM_CHARS_MAX = 100
"""Longest id that may name its file; suffixes and side files stay below the 255 bytes that file systems allow."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?")
_WINDOWS_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


STORE_LOG = "_store.playhead"
"""The store log of a directory of bundles, which is a file among them."""

CATALOGUE = ".catalogue"
"""The folder of a bundle directory's catalogue. What SQLite makes and removes in it leaves the directory's own time."""

HIDDEN = "+"
"""What the id of a row begins with that is no session, yet or any more. No trash id does."""

_TRASH_ID = re.compile(r"[a-z0-9]{1,64}")


def is_trash_id(text: object) -> bool:
    """Return True for what may name a session in the trash, and a folder."""
    return isinstance(text, str) and _TRASH_ID.fullmatch(text) is not None


def check_trash_id(text: str) -> str:
    """Return a trash id unchanged. Raises `InvalidName` where it cannot be one."""
    if not is_trash_id(text):
        raise InvalidName(f"a trash id is 1 to 64 of the characters a to z and 0 to 9, not {text!r}")
    return text


def trash_key(trash_id: str) -> SessionKey:
    """Return the key of a session in the trash. No other session can have it, since no app has an empty name."""
    return SessionKey("", "", trash_id)


def building_key(key: SessionKey) -> SessionKey:
    """Return the key of a session that is being built, until it gets its own. No list shows it, nor the trash."""
    return SessionKey("", "", f"{HIDDEN}{file_stem(key)}")


def removing_key(number: int) -> SessionKey:
    """Return the key of a session that is being removed, which no session that is being built has."""
    return SessionKey("", "", f"{HIDDEN}#{number}")


def as_text(name: str) -> str:
    """Return a file's name, or a path, with a sign for each byte of it that is no UTF-8."""
    return name.encode("utf-8", "replace").decode()


def file_stem(key: SessionKey) -> str:
    """Return the name, without suffix, of a session's files: a pure function of its key.

    An id of lower-case letters, digits, `.`, `_` and `-` that belongs to the default app and user names its file
    itself. Every other key gets a readable slug and 20 hex digits of the SHA-256 of the whole key: no two keys meet in
    one file on a file system that ignores case, and none can leave its folder.
    """
    id = key.id
    is_plain = (
        key.app == DEFAULT_APP
        and key.user == DEFAULT_USER
        and len(id) <= STEM_CHARS_MAX
        and _PLAIN.fullmatch(id)
        and not _WINDOWS_DEVICE.fullmatch(id)
        and "~" not in id
    )
    if is_plain:
        return id
    slug = re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-")[:40]
    digest = hashlib.sha256("\0".join((key.app, key.user, id)).encode()).hexdigest()[:20]
    return f"{slug or 'session'}~{digest}"
