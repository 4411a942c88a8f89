"""The terminal: results to stdout, the rest to stderr, colour by custom, and nothing raw."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from playhead.cli.table import Column, Styled
from playhead.cli.terminal import Terminal, json_text
from tests.conftest import PROJECT


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _on_a_screen(environment: Mapping[str, str]) -> tuple[Terminal, Screen]:
    out = Screen()
    return Terminal(out, io.StringIO(), environment), out


def _in_a_pipe(environment: Mapping[str, str]) -> tuple[Terminal, io.StringIO]:
    out = io.StringIO()
    return Terminal(out, io.StringIO(), environment), out


@pytest.mark.parametrize(
    ("environment", "is_screen", "has_color"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_follows_the_customs(environment: dict[str, str], is_screen: bool, has_color: bool) -> None:
    terminal, out = _on_a_screen(environment) if is_screen else _in_a_pipe(environment)
    terminal.line(Styled("waiting", "yellow"))

    assert ("\x1b[" in out.getvalue()) is has_color
    assert "waiting" in out.getvalue()


def test_colour_is_ours_and_escapes_in_the_text_are_shown() -> None:
    terminal, out = _on_a_screen({})
    terminal.line("title \x1b]0;owned\x07", Styled("\x1b[2J", "red"))

    assert out.getvalue() == "title ␛]0;owned␇\x1b[31m␛[2J\x1b[0m\n"


@pytest.mark.parametrize(("environment", "columns"), [({"COLUMNS": "132"}, 132), ({"COLUMNS": "x"}, 80), ({}, 80)])
def test_the_width_is_what_columns_says(environment: dict[str, str], columns: int) -> None:
    terminal, _ = _in_a_pipe(environment)

    assert terminal.width == columns


def test_a_table_has_headings_on_a_screen_and_none_in_a_pipe() -> None:
    screen, shown = _on_a_screen({"NO_COLOR": "1"})
    pipe, piped = _in_a_pipe({})
    for terminal in (screen, pipe):
        terminal.table([Column("ID"), Column("TITLE")], [["0q3k", "Flaky test"]])

    assert shown.getvalue() == "ID    TITLE\n0q3k  Flaky test\n"
    assert piped.getvalue() == "0q3k\tFlaky test\n"


def test_columns_that_a_narrow_screen_has_no_room_for_are_named() -> None:
    out, err = Screen(), io.StringIO()
    terminal = Terminal(out, err, {"COLUMNS": "20", "NO_COLOR": "1"})
    terminal.table([Column("TITLE"), Column("TURNS", leaves=1)], [["Flaky upload test", "4"]])

    assert out.getvalue() == "TITLE\nFlaky upload test\n"
    assert err.getvalue() == "No room here for TURNS: a wider terminal or --json has more.\n"


def test_json_shows_every_script_and_no_control_character() -> None:
    value = {"text": "日本 \x1b[2J \x9b2J \u2028 half \ud800 fdp.\u202eexe \u2067"}
    text = json_text(value)

    assert "日本" in text
    assert not set(text) & {"\x1b", "\x9b", "\u2028", "\ud800", "\u202e", "\u2067"}
    assert json.loads(text) == value


def test_json_is_one_line_in_a_pipe_and_indented_on_a_screen() -> None:
    pipe, piped = _in_a_pipe({})
    screen, shown = _on_a_screen({})
    for terminal in (pipe, screen):
        terminal.json({"sessions": [], "total": 0})

    assert piped.getvalue().count("\n") == 1
    assert shown.getvalue().count("\n") > 1
    assert json.loads(piped.getvalue()) == json.loads(shown.getvalue())


def test_exact_text_is_exact_for_a_program_and_safe_for_a_person() -> None:
    pipe, piped = _in_a_pipe({})
    screen, shown = _on_a_screen({})
    for terminal in (pipe, screen):
        terminal.exact("a\x1b[2Jb\r\n")

    assert piped.getvalue() == "a\x1b[2Jb\r\n"
    assert shown.getvalue() == "a␛[2Jb\n"


def test_notes_and_progress_go_to_stderr_and_stop_when_quiet() -> None:
    out, err = io.StringIO(), Screen()
    terminal = Terminal(out, err, {"COLUMNS": "30"})
    terminal.progress("Reading a file whose name is much longer than the line")
    terminal.note("3 sessions.")
    loud = err.getvalue()
    terminal.is_quiet = True
    terminal.progress("more")
    terminal.note("more")

    assert out.getvalue() == ""
    assert err.getvalue() == loud
    assert loud.endswith("\r\x1b[K3 sessions.\n")
    assert "much longer" not in loud


@pytest.mark.parametrize("environment", [{}, {"TERM": "dumb"}])
def test_progress_is_shown_only_where_a_line_can_be_written_over(environment: dict[str, str]) -> None:
    err: io.StringIO = Screen() if environment else io.StringIO()
    terminal = Terminal(io.StringIO(), err, environment)
    terminal.progress("Reading")
    terminal.end_progress()

    assert err.getvalue() == ""


def test_a_pager_gets_the_text_where_there_is_a_screen(tmp_path: Path) -> None:
    read_by_pager = tmp_path / "paged.txt"
    terminal, out = _on_a_screen({**os.environ, "PAGER": f"tee {read_by_pager}", "NO_COLOR": "1"})
    with terminal.paged():
        terminal.line("a page \x1b[2J")
    terminal.line("after it")

    assert read_by_pager.read_text(encoding="utf-8") == "a page ␛[2J\n"
    assert out.getvalue() == "after it\n"


def test_leaving_the_pager_early_is_no_failure() -> None:
    terminal, out = _on_a_screen({**os.environ, "PAGER": "true"})
    with terminal.paged():
        for _ in range(20_000):
            terminal.line("a long page")
    terminal.line("after it")

    assert out.getvalue() == "after it\n"


def test_without_a_pager_or_a_screen_the_text_goes_straight_out() -> None:
    missing, shown = _on_a_screen({"PAGER": "no-such-pager-anywhere"})
    pipe, piped = _in_a_pipe({**os.environ, "PAGER": "false"})
    for terminal in (missing, pipe):
        with terminal.paged():
            terminal.line("text")

    assert shown.getvalue() == piped.getvalue() == "text\n"


def test_a_stream_that_cannot_hold_a_character_gets_its_escape() -> None:
    program = "import os; from playhead.cli.terminal import here_and_now; here_and_now(os.environ).line('日本 ok')"
    answer: subprocess.CompletedProcess[Any] = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )

    assert answer.returncode == 0
    assert answer.stdout == b"\\u65e5\\u672c ok\n"
