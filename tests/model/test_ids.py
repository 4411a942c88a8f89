"""Ids and names: what may be one, how a new one is spelled, how agent paths are built and taken apart."""

import pytest
from hypothesis import given, strategies as st

from playhead.errors import InvalidName
from playhead.model.ids import (
    ID_CHARS_MAX,
    SessionKey,
    agent_path,
    check_name,
    escape_agent,
    run_of,
    session_key,
    time_ordered_id,
    unescape_agent,
    without_runs,
)
from tests.strategies import names

times = st.floats(min_value=-1e9, max_value=2e11, allow_nan=False)


@given(times, times, st.binary(min_size=6, max_size=6), st.binary(min_size=6, max_size=6))
def test_ids_sort_as_their_times_do(earlier: float, later: float, entropy_1: bytes, entropy_2: bytes) -> None:
    earlier, later = sorted((earlier, later))
    first, second = time_ordered_id(earlier, entropy_1), time_ordered_id(later, entropy_2)

    assert first[:9] <= second[:9]
    assert first < second or int(max(earlier, 0) * 1000) == int(max(later, 0) * 1000)
    assert {len(first), len(second)} == {20}
    assert set(first + second) <= set("0123456789abcdefghijklmnopqrstuv")


def test_an_id_is_spelled_the_same_for_the_same_time_and_entropy() -> None:
    assert time_ordered_id(0.0, bytes(6)) == "0" * 20
    assert time_ordered_id(1_767_225_600.123, bytes(range(6))) == "06dndml8fc0020g30g2g"
    assert time_ordered_id(1e300, b"\xff" * 6) == "v" * 19 + "g"


def test_entropy_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="6 bytes, not 5"):
        time_ordered_id(0.0, bytes(5))


@given(names)
def test_an_escaped_agent_name_comes_back_and_holds_no_separator(name: str) -> None:
    escaped = escape_agent(name)

    assert unescape_agent(escaped) == name
    assert not {"/", ":"} & set(escaped)


@given(names, names, st.integers(1, 999_999_999), st.integers(1, 999_999_999))
def test_an_agent_path_is_taken_apart_into_what_it_was_made_of(
    outer: str, inner: str, run: int, inner_run: int
) -> None:
    first = agent_path("coordinator", outer, run)
    second = agent_path(first, inner, inner_run)

    assert run_of(first) == (f"coordinator/{escape_agent(outer)}", run)
    assert run_of(second) == (f"{first}/{escape_agent(inner)}", inner_run)
    assert without_runs(second) == f"coordinator/{escape_agent(outer)}/{escape_agent(inner)}"


@pytest.mark.parametrize(
    "label", ["", "coordinator", "coordinator:2", "a/b", "a/b:", "a/b:x", "a/:1", "a/b:²", "a/b:" + "9" * 5_000]
)
def test_a_label_without_a_run_number_has_none(label: str) -> None:
    assert run_of(label) is None
    assert without_runs(label) == label


def test_a_session_key_reads_as_its_id_unless_it_belongs_to_somebody() -> None:
    assert str(session_key("flaky-test")) == "flaky-test"
    assert str(session_key("flaky-test", app="ci", user="ana")) == "ci/ana/flaky-test"
    assert session_key("b") > session_key("a") == SessionKey("default", "default", "a")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "at least one character"),
        (None, "at least one character"),
        (7, "at least one character"),
        ("x" * (ID_CHARS_MAX + 1), "512 characters at most; this one has 513"),
        ("a\0b", "NUL"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_a_name_that_some_store_could_not_keep_is_refused(name: str, problem: str) -> None:
    with pytest.raises(InvalidName, match=problem):
        session_key(name)
    with pytest.raises(InvalidName, match=problem):
        session_key("s", app=name)
    with pytest.raises(InvalidName, match=problem):
        session_key("s", user=name)


@given(names)
def test_any_other_name_is_kept_as_it_is(name: str) -> None:
    assert check_name(name, "a name") == name
