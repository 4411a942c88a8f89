"""The blocks of a run of aider: what was typed, what the program printed, and what the model answered.

A history is Markdown in which nothing is escaped, so an answer may hold lines that look like a prompt. Three marks tell
them apart. aider ends every line that was typed (`#### `), and every output (`> `), with two spaces. It puts an empty
line before what was typed. And where the answer has an open code fence, the next fence tells: one that closes it proves
that the line stood inside, while one that opens another, or none, shows that the answer was cut off within the fence.

An output may have several lines, of which only the first begins with `> ` and only the last ends with two spaces.
Histories whose blanks at line ends were stripped by an editor are read by the beginnings of their lines alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

TYPED = "#### "
END = "  "

OUTPUT_LINES_MAX = 20_000
"""Longest output of several lines; one without an end within these is only its first line."""

BlockKind = Literal["typed", "output", "answer"]

_fence = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Block(NamedTuple):
    """Lines that belong together. line: its first one's number in the run, from 1. lines: without line feeds; the empty
    ones behind the block are its last."""

    kind: BlockKind
    line: int
    lines: tuple[str, ...]


class _Fence(NamedTuple):
    mark: str
    is_bare: bool

    def closes(self, opening: str) -> bool:
        return self.is_bare and self.mark[0] == opening[0] and len(self.mark) >= len(opening)


def blocks_of(lines: Sequence[str]) -> list[Block]:
    """Return the blocks of a run, given its lines without the header. Empty lines before the first block are left out.

    Joined in their order the blocks have every other line, each once.
    """
    return _Reader(lines).blocks()


class _Reader:
    """Goes over the lines of one run once; the fence that follows each line is known beforehand."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        marked = [line for line in lines if line.startswith((TYPED, ">"))]
        self._is_stripped = not any(line.endswith(END) for line in marked)
        self._next_fence = _next_fences(lines)
        self._open: str | None = None

    def blocks(self) -> list[Block]:
        found: list[tuple[BlockKind, int]] = []
        index = 0
        while index < len(self._lines):
            before = found[-1][0] if found else None
            kind, end = self._stretch(index, before)
            if kind is not None and (kind != before or self._begins(kind, index)):
                found.append((kind, index))
            index = end
        starts = [start for _, start in found] + [len(self._lines)]
        return [
            Block(kind, start + 1, tuple(self._lines[start:end]))
            for (kind, start), end in zip(found, starts[1:], strict=True)
        ]

    def _stretch(self, index: int, before: BlockKind | None) -> tuple[BlockKind | None, int]:
        """Return what the line at `index` is and where its stretch ends; None for an empty line, which ends nothing."""
        line = self._lines[index]
        if not line.strip():
            return None, index + 1
        if self._is_typed(index, before):
            self._open = None
            return "typed", index + 1
        if (end := self._output_end(index)) and not self._is_fenced(index):
            self._open = None
            return "output", end
        self._take_fence(line)
        return "answer", index + 1

    def _begins(self, kind: BlockKind, index: int) -> bool:
        """Return True where a block follows another of its kind: a second prompt, or output after an empty line."""
        return kind != "answer" and not self._lines[index - 1].strip()

    def _is_typed(self, index: int, before: BlockKind | None) -> bool:
        line = self._lines[index]
        if not line.startswith(TYPED) or not (self._is_stripped or line.endswith(END)):
            return False
        previous = self._lines[index - 1] if index else ""
        is_placed = not previous.strip() or (before == "typed" and previous.startswith(TYPED))
        return is_placed and not self._is_fenced(index)

    def _output_end(self, index: int) -> int:
        """Return the index behind an output that begins here, 0 where none does."""
        line = self._lines[index]
        if not line.startswith("> ") and line.rstrip() != ">":
            return 0
        if self._is_stripped or line.endswith(END):
            return index + 1
        previous = self._lines[index - 1] if index else ""
        if not previous.endswith(END) or not previous.strip():
            return (
                0  # A quotation in an answer: output of several lines follows right behind what was typed or printed.
            )
        for end in range(index + 1, min(index + OUTPUT_LINES_MAX, len(self._lines))):
            if self._lines[end].endswith(END) and self._lines[end].strip():
                return end + 1
        return index + 1

    def _is_fenced(self, index: int) -> bool:
        """Return True for a line inside a code fence of an answer that is closed further on."""
        if self._open is None:
            return False
        following = self._next_fence[index]
        return self._is_stripped or (following is not None and following.closes(self._open))

    def _take_fence(self, line: str) -> None:
        fence = _fence_of(line)
        if fence is None:
            return
        if self._open is None:
            self._open = fence.mark
        elif fence.closes(self._open):
            self._open = None


def _fence_of(line: str) -> _Fence | None:
    found = _fence.match(line)
    return _Fence(found[1], not found[2].strip()) if found else None


def _next_fences(lines: Sequence[str]) -> list[_Fence | None]:
    """Return for each line the first fence behind it."""
    following: list[_Fence | None] = [None] * len(lines)
    nearest: _Fence | None = None
    for index in range(len(lines) - 1, -1, -1):
        following[index] = nearest
        nearest = _fence_of(lines[index]) or nearest
    return following
