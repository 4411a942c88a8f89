"""Moments: what people write for a time, and how long ago is shown."""

from datetime import UTC, datetime

import pytest

from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso, local, moment

NOW = datetime(2026, 8, 22, 12, 0).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", NOW - 1_800),
        ("12h", NOW - 43_200),
        ("7d", NOW - 604_800),
        ("2 W", NOW - 1_209_600),
        ("today", datetime(2026, 8, 22).timestamp()),
        ("Yesterday", datetime(2026, 8, 21).timestamp()),
        ("2026-08-01", datetime(2026, 8, 1).timestamp()),
        ("2026-08-01 14:05", datetime(2026, 8, 1, 14, 5).timestamp()),
        ("2026-08-01T14:05:00+02:00", datetime(2026, 8, 1, 12, 5, tzinfo=UTC).timestamp()),
    ],
)
def test_a_time_is_an_age_a_day_or_a_date(text: str, expected: float) -> None:
    assert moment(text, NOW, option="--since") == expected


@pytest.mark.parametrize("text", ["", "soon", "7", "-7d", "7days ago", "2026-13-01", "99999999d"])
def test_anything_else_names_the_option_and_what_it_takes(text: str) -> None:
    with pytest.raises(Failure) as failed:
        moment(text, NOW, option="--since")

    assert failed.value.code == 2
    assert str(failed.value).startswith("--since does not understand")
    assert "7d" in str(failed.value)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "now"),
        (59, "now"),
        (60, "1 min"),
        (10_800, "3 h"),
        (86_400 * 6, "6 d"),
        (86_400 * 13, "1 w"),
        (86_400 * 40, "1 mo"),
        (86_400 * 800, "2 y"),
        (-500, "now"),
    ],
)
def test_an_age_has_one_unit_and_the_future_is_now(seconds: float, shown: str) -> None:
    assert age(NOW - seconds, NOW) == shown


def test_times_that_no_calendar_reaches_are_left_blank() -> None:
    assert (iso(1e18), local(1e18), iso(float("nan"))) == ("", "", "")
    assert iso(0.9) == "1970-01-01T00:00:00Z"
