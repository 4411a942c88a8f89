"""Tables: rows aligned under headings for a person, tab-separated for a program; and lines of facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from playhead.cli import text as texts

Style = Literal["bold", "dim", "mark", "red", "green", "yellow", "cyan"]

_GAP = "  "


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with a style, which shows only where there is colour."""

    text: str
    style: Style


Piece = str | Styled


@dataclass(frozen=True, slots=True)
class Column:
    """A column. title: its heading. is_flexible: is cut where the terminal is narrow. is_right: stands to the right, as
    numbers do. columns_min: a flexible one is not cut below this while another column can leave. columns_max: how wide
    it gets at most. leaves: its turn to leave a terminal that is too narrow for all, the highest first; 0 stays."""

    title: str
    is_flexible: bool = False
    is_right: bool = False
    style: Style | None = None
    columns_min: int = 8
    columns_max: int = 10_000
    leaves: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One value in two spellings: shown to a person, and exact for a program that reads the pipe."""

    shown: str
    exact: str
    style: Style | None = None


def tab_separated(row: Sequence[Cell | str]) -> str:
    """Return a row for a program: exact values, each on one line and without tabs of its own."""
    return "\t".join(texts.one_line(cell.exact if isinstance(cell, Cell) else cell) for cell in row)


@dataclass(frozen=True, slots=True)
class Aligned:
    """A table for a person. lines: the heading and the rows as pieces to write, none where there are no rows. left_out:
    the headings of the columns that the terminal has no room for."""

    lines: list[list[Piece]]
    left_out: list[str]


def aligned(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], width: int) -> Aligned:
    """Return the rows aligned under their headings, fitted to `width` columns."""
    if not rows:
        return Aligned([], [])
    shown = [[texts.one_line(cell.shown if isinstance(cell, Cell) else cell) for cell in row] for row in rows]
    widths = _widths(columns, shown, width)
    heading = _fitted([column.title for column in columns], columns, widths)
    lines = [_joined([Styled(text, "dim") for text in heading])]
    for texts_of_row, row in zip(shown, rows, strict=True):
        pieces: list[Piece] = []
        for index, text in zip(widths, _fitted(texts_of_row, columns, widths), strict=True):
            cell = row[index]
            style = (cell.style if isinstance(cell, Cell) else None) or columns[index].style
            pieces.append(Styled(text, style) if style else text)
        lines.append(_joined(pieces))
    left_out = [column.title for index, column in enumerate(columns) if column.title and index not in widths]
    return Aligned(lines, left_out)


def filled(facts: Iterable[Styled], columns: int) -> Iterator[list[Piece]]:
    """Yield facts in lines, two spaces between them; one that has no room in a line begins the next, indented."""
    line: list[Piece] = []
    used = 0
    for fact in facts:
        wide = texts.width(fact.text)
        if line and used + len(_GAP) + wide > columns:
            yield line
            line, used = [_GAP * 2], len(_GAP * 2)
        elif line:
            line.append(_GAP)
            used += len(_GAP)
        line.append(fact)
        used += wide
    if line:
        yield line


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> dict[int, int]:
    """Return the columns that there is room for, by their index, each with its width.

    A rigid one is as wide as its widest cell. Where there are too many, they leave in their turns; then the widest
    flexible ones are cut. Where even so there is no room, these give way to the rigid ones, which name the row.
    """
    whole = {
        index: min(max(texts.width(column.title), *(texts.width(row[index]) for row in rows)), column.columns_max)
        for index, column in enumerate(columns)
    }
    flexible = {index for index, column in enumerate(columns) if column.is_flexible}
    least = {
        index: min(wide, max(columns[index].columns_min, texts.width(columns[index].title)))
        if index in flexible
        else wide
        for index, wide in whole.items()
    }
    kept = dict(whole)
    leaving = sorted((index for index in kept if columns[index].leaves), key=lambda index: columns[index].leaves)
    while leaving and _taken(least[index] for index in kept) > width:
        del kept[leaving.pop()]
    if _taken(least[index] for index in kept) > width:
        least |= dict.fromkeys(flexible, 0)
    for level in range(width, -1, -1):
        cut = {
            index: max(min(wide, level), least[index]) if index in flexible else wide for index, wide in kept.items()
        }
        if not level or _taken(cut.values()) <= width:
            return {index: wide for index, wide in cut.items() if wide}
    raise AssertionError("a level of 0 is always returned")


def _taken(widths: Iterable[int]) -> int:
    """Return the terminal columns of a row: its cells and the gaps between them; a cell without a width takes none."""
    wide = [one for one in widths if one]
    return sum(wide) + len(_GAP) * max(len(wide) - 1, 0)


def _fitted(cells: Sequence[str], columns: Sequence[Column], widths: Mapping[int, int]) -> list[str]:
    """Return each kept cell cut and filled to its column's width; the last one keeps no blanks at its end."""
    last = max(widths, default=0)
    fitted = []
    for index, wide in widths.items():
        text = texts.fitted(cells[index], wide)
        if columns[index].is_right:
            text = " " * (wide - texts.width(text)) + text
        fitted.append(text if index == last else texts.padded(text, wide))
    return fitted


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        joined += [_GAP, piece] if joined else [piece]
    return joined
