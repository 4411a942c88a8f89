"""File names for sessions: generated, never taken from an id as it is."""

from __future__ import annotations

import hashlib
import re

from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey

STEM_CHARS_MAX = 100
"""Longest id that may name its file; suffixes and side files stay below the 255 bytes that file systems allow."""

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?")
_WINDOWS_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


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
