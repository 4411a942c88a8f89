"""Tables: aligned for a person, tab-separated for a program."""

from collections.abc import Sequence

import pytest

from playhead.cli.table import Cell, Column, Piece, Styled, aligned, tab_separated
from playhead.cli.text import width

COLUMNS = (Column("ID"), Column("TITLE", is_flexible=True), Column("TURNS", is_right=True))


def _text(pieces: list[Piece]) -> str:
    return "".join(piece.text if isinstance(piece, Styled) else piece for piece in pieces)


def _lines(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], width: int) -> list[str]:
    return [_text(pieces) for pieces in aligned(columns, rows, width).lines]


def test_columns_line_up_under_their_headings() -> None:
    rows = [["0q3k", "Flaky upload test", "4"], ["1f", "日本語のメモ", "12"]]
    lines = _lines(COLUMNS, rows, 80)

    assert lines == [
        "ID    TITLE              TURNS",
        "0q3k  Flaky upload test      4",
        "1f    日本語のメモ          12",
    ]


def test_the_flexible_column_gives_way_and_ids_stay_whole() -> None:
    id = "claude-code.0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    rows = [[id, "A title that is far too long for the terminal it is shown on", "4"]]
    heading, row = _lines(COLUMNS, rows, 80)

    assert row.startswith(id)
    assert width(row) <= 80
    assert "…" in row
    assert width(heading) <= 80


def test_a_terminal_too_narrow_for_the_ids_still_gets_them_whole() -> None:
    lines = _lines(COLUMNS, [["0123456789abcdefghij", "A title", "1"]], 20)

    assert "0123456789abcdefghij" in lines[1]


def test_the_widest_flexible_column_is_cut_first() -> None:
    columns = (Column("ID"), Column("TITLE", is_flexible=True), Column("AGENTS", is_flexible=True))
    heading, row = _lines(columns, [["0q3k", "A title of thirty-one characters", "coordinator"]], 36)
    equal = _lines(columns, [["0q3k", "A title of thirty-one characters", "coordinator and its aides"]], 36)[1]

    assert row == "0q3k  A title of thirt…  coordinator"
    assert equal == "0q3k  A title of th…  coordinator a…"
    assert width(heading) <= 36


WITH_LEAVING = (
    Column("ID"),
    Column("TITLE", is_flexible=True, columns_min=12),
    Column("TURNS", is_right=True, leaves=1),
    Column("EVENTS", is_right=True, leaves=2),
)


@pytest.mark.parametrize(
    ("columns", "left_out"), [(80, []), (33, []), (32, ["EVENTS"]), (25, ["EVENTS"]), (20, ["TURNS", "EVENTS"])]
)
def test_columns_leave_a_narrow_terminal_in_their_turns(columns: int, left_out: list[str]) -> None:
    found = aligned(WITH_LEAVING, [["0q3k", "Flaky upload test", "4", "20"]], columns)

    assert found.left_out == left_out
    assert all(width(_text(pieces)) <= columns for pieces in found.lines)
    assert _text(found.lines[1]).startswith("0q3k  Flaky ")


def test_a_column_without_a_heading_that_is_empty_takes_no_room() -> None:
    assert _lines((Column(""), Column("TURN")), [["", "4"]], 80) == ["TURN", "4"]
    assert _lines((Column(""),), [[""]], 80) == ["", ""]


def test_no_rows_give_no_heading() -> None:
    assert _lines(COLUMNS, [], 80) == []


def test_a_program_gets_exact_values_one_row_a_line() -> None:
    row: list[Cell | str] = ["0q3k", "two\nlines\tand a tab", Cell("3 h", "2026-08-01T12:00:00Z")]

    assert tab_separated(row) == "0q3k\ttwo lines and a tab\t2026-08-01T12:00:00Z"


def test_hostile_text_in_a_cell_is_shown_and_keeps_its_column() -> None:
    rows = [["0q3k", "\x1b[31mred\x1b[0m", "1"], ["1f", "plain", "2"]]
    first, second = _lines(COLUMNS, rows, 80)[1:]

    assert "\x1b" not in first
    assert "␛[31mred␛[0m" in first
    assert width(first) == width(second)
