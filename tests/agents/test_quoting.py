"""Whatever a session holds, a quote of it stays behind its fence and does nothing to a screen."""

import unicodedata

import pytest
from hypothesis import given, strategies as st

from playhead import InvalidName
from playhead.agents.quoting import moment, one_line, place, quoted, reference, visible
from playhead.model.ids import SessionKey
from tests.agents.conftest import ESCAPES


@given(st.text())
def test_every_line_of_a_quote_is_fenced(text: str) -> None:
    lines = quoted(text).splitlines()

    assert lines
    assert all(line == ">" or line.startswith("> ") for line in lines)


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_has_no_control_characters_and_as_many_characters(text: str) -> None:
    shown = visible(text)
    bad = [one for one in shown if unicodedata.category(one) in ("Cc", "Cs") and not one.isspace()]

    assert bad == []
    assert len(shown) == len(text)
    shown.encode()


def test_escape_sequences_and_turned_text_are_shown() -> None:
    assert visible(ESCAPES) == "␛[2J ␛]0;owned␇ \ufffd2J ␈␡ \ufffdgnissiknis"
    assert quoted("a\tb\r\nc") == "> a\tb\n> c"


def test_cuts_are_marked_inside_the_fence() -> None:
    assert quoted("  one\ntwo", is_cut_before=True, is_cut_after=True) == "> … one\n> two …"
    assert quoted("") == ">"


def test_one_line_folds_white_space_and_marks_a_cut() -> None:
    assert one_line(" a\n\n b\u2028c ", chars_max=5) == "a b c"
    assert one_line("abcdefgh", chars_max=5) == "abcd…"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (SessionKey("default", "default", "upload-0001"), "upload-0001#7"),
        (SessionKey("default", "default", "odd # name#3"), "odd # name#3#7"),
        (SessionKey("travel", "ada", "trip/1"), "travel/ada/trip/1#7"),
    ],
)
def test_a_reference_leads_back_to_its_event(key: SessionKey, name: str) -> None:
    assert reference(key, 7) == name
    assert place(name, app=key.app, user=key.user) == (key, 7)
    assert place(f"{key.id}#7", app=key.app, user=key.user) == (key, 7)


@pytest.mark.parametrize(
    "name", ["", "#", "#7", "upload", "upload#", "upload#x", "upload#-1", "upload#٣", "u#" + "1" * 19]
)
def test_what_names_no_event_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        place(name)


def test_a_moment_is_utc_and_never_fails() -> None:
    assert moment(1_785_585_600.0) == "2026-08-01 12:00 UTC"
    assert moment(1e300) == "?"


@pytest.mark.parametrize(
    ("zone", "is_exact", "shown"),
    [
        ("UTC", False, "2026-08-01 12:00 UTC"),
        ("UTC", True, "2026-08-01 12:00:09 UTC"),
        ("Europe/Berlin", True, "2026-08-01 14:00:09 Europe/Berlin"),
        ("Etc/UTC", False, "2026-08-01 12:00 UTC"),
        ("Mars/Olympus", False, "2026-08-01 12:00 UTC"),
        ("../../etc/passwd", False, "2026-08-01 12:00 UTC"),
    ],
)
def test_a_moment_is_shown_in_a_time_zone_with_its_name(zone: str, is_exact: bool, shown: str) -> None:
    assert moment(1_785_585_609.0, zone, is_exact=is_exact) == shown
