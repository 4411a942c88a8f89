"""Tables: rows aligned under headings for a person, tab-separated for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from playhead.cli import text as texts

Style = Literal["bold", "dim", "mark", "red", "green", "yellow", "cyan"]

_GAP = "  "
_FLEXIBLE_COLUMNS_MIN = 8


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with a style, which shows only where there is colour."""

    text: str
    style: Style


Piece = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A column. title: its heading. is_flexible: gives way where the terminal is narrow. is_right: stands to the right,
    as numbers do. columns_max: how wide it gets at most."""

    title: str
    is_flexible: bool = False
    is_right: bool = False
    style: Style | None = None
    columns_max: int = 10_000


@dataclass(frozen=True, slots=True)
class Cell:
    """One value in two spellings: shown to a person, and exact for a program that reads the pipe."""

    shown: str
    exact: str
    style: Style | None = None


def tab_separated(row: Sequence[Cell | str]) -> str:
    """Return a row for a program: exact values, each on one line and without tabs of its own."""
    return "\t".join(texts.one_line(cell.exact if isinstance(cell, Cell) else cell) for cell in row)


def aligned(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], width: int) -> list[list[Piece]]:
    """Return the heading and the rows as pieces to write, fitted to `width` columns; `[]` for no rows."""
    if not rows:
        return []
    shown = [[texts.one_line(cell.shown if isinstance(cell, Cell) else cell) for cell in row] for row in rows]
    widths = _widths(columns, shown, width)
    heading = [Styled(text, "dim") for text in _fitted([column.title for column in columns], columns, widths)]
    lines = [_joined(heading)]
    for texts_of_row, row in zip(shown, rows, strict=True):
        pieces: list[Piece] = []
        for text, column, cell in zip(_fitted(texts_of_row, columns, widths), columns, row, strict=True):
            style = (cell.style if isinstance(cell, Cell) else None) or column.style
            pieces.append(Styled(text, style) if style else text)
        lines.append(_joined(pieces))
    return lines


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return each column's width: that of its widest cell, flexible ones cut, narrowest first, to fit the terminal."""
    widths = [
        min(max(texts.width(column.title), *(texts.width(row[index]) for row in rows)), column.columns_max)
        for index, column in enumerate(columns)
    ]
    flexible = [index for index, column in enumerate(columns) if column.is_flexible]
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - width
    for left, index in zip(range(len(flexible), 0, -1), sorted(flexible, key=lambda one: widths[one]), strict=True):
        share = -(-excess // left)
        cut = max(min(share, widths[index] - max(texts.width(columns[index].title), _FLEXIBLE_COLUMNS_MIN)), 0)
        widths[index] -= cut
        excess -= cut
    return widths


def _fitted(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    """Return each cell cut and filled to its column's width; the last one keeps no blanks at its end."""
    last = len(columns) - 1
    fitted = []
    for index, (cell, column, wide) in enumerate(zip(cells, columns, widths, strict=True)):
        text = texts.fitted(cell, wide)
        if column.is_right:
            text = " " * (wide - texts.width(text)) + text
        fitted.append(text if index == last else texts.padded(text, wide))
    return fitted


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        joined += [_GAP, piece] if joined else [piece]
    return joined
