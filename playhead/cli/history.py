"""The line history of a conversation: what was typed, in a file that its owner alone can read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import platformdirs

HISTORY_FILE = "history"
HISTORY_BYTES_MAX = 1_000_000
"""A longer history is cut to its newer half when it is opened."""

_ENTRY = b"\n\n#"
"""How an entry begins: a blank line, and a comment with its time."""


def history_file(environment: Mapping[str, str]) -> Path:
    """Return where past prompts are kept: with the sessions where PLAYHEAD_HOME says so, else in the state folder."""
    if environment.get("PLAYHEAD_HOME"):
        return Path(environment["PLAYHEAD_HOME"]) / "state" / HISTORY_FILE
    return platformdirs.user_state_path("playhead", appauthor=False, ensure_exists=False) / HISTORY_FILE


def private_history(file: Path) -> bool:
    """Make the file of past prompts one that only its owner reads, cut to its newer half where it grew too long.

    Returns False where it cannot be had; a conversation does without.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        file.chmod(0o600)
        if file.stat().st_size > HISTORY_BYTES_MAX:
            _shorten(file)
    except OSError:
        return False
    return True


def forget(file: Path, prompts: Collection[str]) -> int:
    """Take every entry with one of these texts out of the file, and return how many went. Raises `OSError`; the file is
    as it was then."""
    try:
        kept = file.read_bytes()
    except FileNotFoundError:
        return 0
    begun = (b"\n" + kept).split(_ENTRY)
    staying = [entry for entry in begun[1:] if _text_of(entry) not in prompts]
    gone_count = len(begun) - 1 - len(staying)
    if gone_count:
        _replace(file, b"".join(_ENTRY[1:] + entry for entry in staying))
    return gone_count


def _text_of(entry: bytes) -> str:
    """Return the text of an entry: its lines begin with a plus."""
    lines = entry.decode("utf-8", "replace").split("\n")
    return "\n".join(line[1:] for line in lines if line.startswith("+"))


def _shorten(file: Path) -> None:
    """Keep the newer half, from the beginning of an entry on: a blank line and a comment with its time."""
    kept = file.read_bytes()[-HISTORY_BYTES_MAX // 2 :]
    _, mark, entries = kept.partition(b"\n\n#")
    _replace(file, b"\n#" + entries if mark else b"")


def _replace(file: Path, content: bytes) -> None:
    part = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as out:
        out.write(content)
    part.replace(file)
