"""Modes that bind and disks that are full, for tests that meet a file which cannot be written, whoever they run as."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VERSION = 0x20080522
"""`_LINUX_CAPABILITY_VERSION_3`: sets of 64 capabilities, each in two halves of 32 bits."""

_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which the system's own user passes over modes."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Half(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """Let modes bind this thread while the block runs, also where it is the system's own user's."""
    if not hasattr(os, "geteuid"):
        pytest.skip("files have no modes here")
    if os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("the system's own user may write to everything here")
    header, halves = _Header(_VERSION, 0), (_Half * 2)()
    _call("capget", header, halves)
    before = halves[0].effective
    halves[0].effective = before & ~_OVERRIDES
    _call("capset", header, halves)
    try:
        yield
    finally:
        halves[0].effective = before
        _call("capset", header, halves)


ROOM_BYTES = 100
"""Enough for the first bytes of an index of a write-ahead log, which SQLite leaves where no more fit."""


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file be written beyond its first bytes: what a full disk does to one who opens a database."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _call(name: str, header: _Header, halves: ctypes.Array[_Half]) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(ctypes.byref(header), halves) != 0:
        pytest.skip(f"{name}: {os.strerror(ctypes.get_errno())}")
