"""Event ids for records: unique, valid Unicode, and the same in every read of the same files.

Each id also knows its group, a number that an importer gives its meaning (for Claude Code the prompt that a record goes
back to along the chain of parents, or a sub-agent). A later read of a file that grew is given 12 hex digits of each id
and its group, and no more.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

ID_CHARS_MAX = 200
"""Longer ids of a source become their hash."""

SESSION_ID_CHARS_MAX = 128
"""A longer id of a source is no part of a session's id as it is."""

_KEY_BYTES = 6
_READABLE_CHARS = 40
_plain = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*", re.ASCII)
_other = re.compile(r"[^A-Za-z0-9_-]+")
_surrogate = re.compile("[\ud800-\udfff]")


class IdMemory(msgspec.Struct):
    """What is remembered. groups: each group's keys in one string. copies: how often an id was met, if not once."""

    groups: dict[str, str] = {}
    copies: dict[str, int] = {}


class Ids:
    """The ids of a session so far, each with its group."""

    def __init__(self, memory: IdMemory) -> None:
        self._copies = dict(memory.copies)
        self._group_of = {key: int(group) for group, joined in memory.groups.items() for key in _split(joined)}

    def memory(self) -> IdMemory:
        """Return what the next read has to know."""
        groups: dict[str, list[str]] = {}
        for found, group in self._group_of.items():
            groups.setdefault(str(group), []).append(found)
        return IdMemory({group: "".join(keys) for group, keys in groups.items()}, self._copies)

    def group(self, id: str | None) -> int | None:
        """Return the group of an id, or None where no record had it so far."""
        return None if id is None else self._group_of.get(key(id))

    def note(self, id: str, group: int) -> bool:
        """Remember an id that becomes no event of its own; return True where it was known."""
        found = key(id)
        is_known = found in self._group_of
        self._group_of.setdefault(found, group)
        return is_known

    def claim(self, base: str, group: int) -> str:
        """Return the base as an id, with `.2`, `.3` … behind it where it is taken."""
        found = key(base)
        if found in self._group_of:
            return self._numbered(base, ".", self._copies.get(found, 1), group)
        self._group_of[found] = group
        return base

    def claim_line(self, raw: bytes, group: int) -> str:
        """Return an id for a record without one: the hash of its bytes, and which of those that are equal it is."""
        base = f"line-{hashlib.sha256(raw).hexdigest()[:24]}"
        return self._numbered(base, "-", self._copies.get(key(base), 0), group)

    def _numbered(self, base: str, separator: str, number: int, group: int) -> str:
        # Nearly always the first step; a source that spells such an id itself costs one more.
        while True:
            number += 1
            id = f"{base}{separator}{number}"
            if key(id) not in self._group_of:
                break
        self._copies[key(base)] = number
        self._group_of[key(id)] = group
        return id


def clean(value: Any) -> str | None:
    """Return a text that may be an id: valid Unicode, no NUL, of sensible length. None where there is no text."""
    if not isinstance(value, str):
        return None
    cleaned = replace_surrogates(value).replace("\0", "")
    if len(cleaned) > ID_CHARS_MAX:
        return hashlib.sha256(cleaned.encode()).hexdigest()
    return cleaned or None


def session_id(origin: str, stated: str) -> str:
    """Return the id of the session that a source calls `stated`: `origin.stated` where that is plain to type.

    One with spaces, slashes, dots in a row, control characters or letters of other scripts becomes what is plain of it
    and its hash, the same at every import; `stated_id` keeps it.
    """
    if is_plain(stated):
        return f"{origin}.{stated}"
    readable = _other.sub("-", stated).strip("-")[:_READABLE_CHARS].rstrip("-")
    digest = hashlib.sha256(stated.encode()).hexdigest()[:16]
    return f"{origin}.{readable}-{digest}" if readable else f"{origin}.{digest}"


def stated_id(stated: str) -> dict[str, Any]:
    """Return what `session_started` says of an id that its session could not be given; {} for a plain one."""
    return {} if is_plain(stated) else {"extra": {"import": {"id": stated}}}


def is_plain(stated: str) -> bool:
    """Return True for an id of letters, digits, `_`, `-` and single dots, that begins with a letter or a digit."""
    return len(stated) <= SESSION_ID_CHARS_MAX and _plain.fullmatch(stated) is not None


def replace_surrogates(value: str) -> str:
    """Return a text in which halves of surrogate pairs are U+FFFD."""
    return value if value.isascii() else _surrogate.sub("\ufffd", value)


def key(id: str) -> str:
    """Return 12 hex digits that stand for a text."""
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).hexdigest()


def _split(joined: str) -> list[str]:
    return [joined[start : start + 2 * _KEY_BYTES] for start in range(0, len(joined), 2 * _KEY_BYTES)]
