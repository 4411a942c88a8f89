"""Other people's text on a page: nothing in it is obeyed, and sizes and times read as people write them."""

import pytest

from playhead.formats.shown import at_utc, one_line, size_text, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\u240dc"),
        ("\x1b[2J\x7f\x9b2J", "\u241b[2J\u2421\u241b[2J"),
        ("\ud83d", "\ufffd"),
        ("photo\u202egnp.exe", "photo\ufffdgnp.exe"),
        ("\u202dabc", "\ufffdabc"),
        ("\u05e9\u05dc\u05d5\u05dd \u2067abc\u2069", "\u05e9\u05dc\u05d5\u05dd \u2067abc\u2069"),
    ],
)
def test_what_a_screen_would_obey_is_shown_instead(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_one_line_is_one_and_turns_nothing_around() -> None:
    assert one_line(" a\n\n b\t\u2067c\u2069 ") == "a b c"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (4_200_000, "4.2 MB"),
        (5 * 10**15, "5000.0 TB"),
        (-1, ""),
        ("7", ""),
        (None, ""),
    ],
)
def test_a_size_reads_as_people_write_it(size: object, text: str) -> None:
    assert size_text(size) == text


def test_a_time_is_utc_and_empty_where_no_calendar_reaches() -> None:
    assert at_utc(1_785_585_600.0) == "2026-08-01 12:00 UTC"
    assert at_utc(1_785_585_601.5, seconds=True) == "2026-08-01 12:00:01 UTC"
    assert at_utc(1e300) == ""
