"""Text for a terminal: nothing that a terminal obeys gets through, and columns are counted as they are drawn."""

import unicodedata

import pytest
from hypothesis import given, strategies as st

from playhead.cli.text import fitted, one_line, padded, plain, width

HOSTILE = {
    "clear the screen": "before\x1b[2Jafter",
    "set the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "a link to elsewhere": "\x1b]8;;http://evil.example\x1b\\docs\x1b]8;;\x1b\\",
    "an eight-bit sequence": "\x9b2J",
    "write over the line": "rm -rf /\rls",
    "rub out": "safe\x08\x08\x08\x08evil\x7f",
    "answer back": "\x05\x1b[c",
    "half a surrogate pair": "a\ud800b",
    "nul": "a\x00b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_control_character_of_others_text_gets_through(text: str) -> None:
    shown, in_a_row = plain(text), one_line(text)

    assert [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"] == []
    assert [c for c in in_a_row if unicodedata.category(c) in ("Cc", "Cs")] == []


def test_control_characters_are_shown_and_not_dropped() -> None:
    assert plain("\x1b[2J") == "␛[2J"
    assert plain("\x9b2J") == "␛[2J"
    assert plain("a\x07\x7f") == "a␇␡"
    assert plain("line\r\nnext\rover") == "line\nnext␍over"
    assert plain("tab\tand\nline feed stay") == "tab\tand\nline feed stay"
    assert plain("half \ud83d pair") == "half \ufffd pair"


def test_a_row_has_no_line_feeds_tabs_or_turns_of_direction() -> None:
    assert one_line("  a\n\tb  ") == "a b"
    assert one_line("see \u2067abc\u2069") == "see abc"


def test_what_turns_letters_around_is_shown_in_rows_and_in_running_text() -> None:
    assert one_line("invoice\u202efdp.exe") == plain("invoice\u202efdp.exe") == "invoice\ufffdfdp.exe"
    assert plain("\u202dleft to right") == "\ufffdleft to right"
    assert plain("\u2067שלום\u2069 and on") == "\u2067שלום\u2069 and on"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_whatever_comes_in_is_safe_to_write(text: str) -> None:
    safe = plain(text)
    written = safe.encode("utf-8")

    assert written.decode("utf-8") == safe
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in safe)
    assert plain(safe) == safe


@pytest.mark.parametrize(
    ("text", "columns"),
    [("plain", 5), ("日本語", 6), ("é", 1), ("e\u0301", 1), ("👍", 2), ("zero\u200bwidth", 9), ("", 0)],
)
def test_width_is_what_a_terminal_draws(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(max_size=30), st.integers(0, 20))
def test_fitted_text_never_takes_more_columns_than_there_are(text: str, columns: int) -> None:
    safe = one_line(text)
    cut = fitted(safe, columns)

    assert width(cut) <= columns
    assert cut == safe or columns == 0 or cut.endswith("…")
    assert width(padded(cut, columns)) == columns


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert fitted("日本語", 5) == "日本…"
    assert fitted("日本語", 4) == "日…"
