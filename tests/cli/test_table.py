"""Tables: aligned for a person, tab-separated for a program."""

from playhead.cli.table import Cell, Column, Piece, Styled, aligned, tab_separated
from playhead.cli.text import width

COLUMNS = (Column("ID"), Column("TITLE", is_flexible=True), Column("TURNS", is_right=True))


def _text(pieces: list[Piece]) -> str:
    return "".join(piece.text if isinstance(piece, Styled) else piece for piece in pieces)


def test_columns_line_up_under_their_headings() -> None:
    rows = [["0q3k", "Flaky upload test", "4"], ["1f", "日本語のメモ", "12"]]
    lines = [_text(pieces) for pieces in aligned(COLUMNS, rows, 80)]

    assert lines == [
        "ID    TITLE              TURNS",
        "0q3k  Flaky upload test      4",
        "1f    日本語のメモ          12",
    ]


def test_the_flexible_column_gives_way_and_ids_stay_whole() -> None:
    id = "claude-code.0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    rows = [[id, "A title that is far too long for the terminal it is shown on", "4"]]
    heading, row = (_text(pieces) for pieces in aligned(COLUMNS, rows, 80))

    assert row.startswith(id)
    assert width(row) <= 80
    assert "…" in row
    assert width(heading) <= 80


def test_a_terminal_too_narrow_for_the_ids_still_gets_them_whole() -> None:
    lines = [_text(pieces) for pieces in aligned(COLUMNS, [["0123456789abcdefghij", "A title", "1"]], 20)]

    assert "0123456789abcdefghij" in lines[1]


def test_no_rows_give_no_heading() -> None:
    assert aligned(COLUMNS, [], 80) == []


def test_a_program_gets_exact_values_one_row_a_line() -> None:
    row: list[Cell | str] = ["0q3k", "two\nlines\tand a tab", Cell("3 h", "2026-08-01T12:00:00Z")]

    assert tab_separated(row) == "0q3k\ttwo lines and a tab\t2026-08-01T12:00:00Z"


def test_hostile_text_in_a_cell_is_shown_and_keeps_its_column() -> None:
    rows = [["0q3k", "\x1b[31mred\x1b[0m", "1"], ["1f", "plain", "2"]]
    first, second = (_text(pieces) for pieces in aligned(COLUMNS, rows, 80)[1:])

    assert "\x1b" not in first
    assert "␛[31mred␛[0m" in first
    assert width(first) == width(second)
