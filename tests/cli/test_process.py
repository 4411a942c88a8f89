"""The command as a process: what it loads, how fast it starts, and how it behaves at the ends of its pipes."""

import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from playhead import Sessions, _entry
from tests.conftest import PROJECT

PLAYHEAD = f"{shlex.quote(sys.executable)} -m playhead._entry"

# What no command that only reads may load: a second SQLite library, numbers, web and agent frameworks, rich's tables.
TOO_MUCH = {"fastapi", "google", "httpx", "langgraph", "numpy", "openai", "psycopg", "rich", "sqlite3", "starlette"}
TOO_MUCH |= {
    "textual",
    "uvicorn",
    "prompt_toolkit",
    "pydantic_ai",
    "markdown_it",
    "playhead.agents.built_in.default",
    "playhead.server",
}

# A busy machine counts more for the same work; an idle one needs a third of these.
VERSION_CPU_S = 0.75
LIST_CPU_S = 1.5


@pytest.fixture
def long_session(sessions: Sessions) -> str:
    """A session whose transcript is many times what a pipe holds."""
    with sessions.create("long-0001", title="Long") as session:
        with session.turn("Tell me everything") as turn:
            for number in range(300):
                turn.say(f"everything {number} " + "and more " * 200)
    return session.id


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=PROJECT, capture_output=True, text=True, timeout=60, env=os.environ
    )


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--version"], ["--help"], ["list", "--help"], ["list"], ["search", "limit"], ["show", "@last"]),
        *(["timeline", "@last"], ["tail", "@last"], ["stats"], ["verify", "@last"], ["title", "@last"]),
    ],
)
def test_reading_loads_no_heavy_package(upload: str, arguments: list[str]) -> None:
    """C-02."""
    program = (
        "import sys\nfrom playhead.cli.main import main\ncode = main(sys.argv[1:])\n"
        "sys.stderr.write('\\n'.join(sys.modules))\nsys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=60
    )
    loaded = set(done.stderr.splitlines())

    assert done.returncode == 0
    assert done.stdout
    assert "playhead.cli.main" in loaded
    assert loaded & TOO_MUCH == set()


@pytest.mark.parametrize(("arguments", "cpu_s_max"), [("--version", VERSION_CPU_S), ("list", LIST_CPU_S)])
def test_starting_costs_little(upload: str, arguments: str, cpu_s_max: float) -> None:
    costs = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _shell(f"{PLAYHEAD} {arguments}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    assert min(costs) <= cpu_s_max


@pytest.mark.parametrize(
    "command",
    [
        "show long-0001 | head -1",
        "show long-0001 --json | head -c 1",
        "show long-0001 --raw | head -1",
        "search everything -k 300 -C 20 | head -1",
        "search everything -k 300 -C 20 --json | head -c 10",
    ],
)
def test_a_reader_that_goes_away_ends_the_command_without_a_word(long_session: str, command: str) -> None:
    done = _shell(f"{PLAYHEAD} {command.replace(' |', ' --quiet |')}")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_an_interrupt_while_it_starts_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.util.find_spec", interrupted)

    assert _entry.main() == 130
    assert capsys.readouterr().err == "Interrupted.\n"


def test_a_full_disk_is_reported_once(upload: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    done = _shell(f"{PLAYHEAD} show {upload} > /dev/full")

    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_closed_streams_are_no_failure(upload: str) -> None:
    assert _shell(f"{PLAYHEAD} list >&-").returncode == 0
    assert _shell(f"{PLAYHEAD} list 2>&-").returncode == 0
    assert _shell(f"{PLAYHEAD} show nobody 2>&-").returncode == 3


def test_piped_output_has_no_colour_and_a_forced_one_has(upload: str) -> None:
    piped, forced = _shell(f"{PLAYHEAD} show {upload} | cat"), _shell(f"FORCE_COLOR=1 {PLAYHEAD} show {upload} | cat")
    forbidden = _shell(f"NO_COLOR=1 FORCE_COLOR=1 {PLAYHEAD} show {upload} | cat")

    assert "\x1b" not in piped.stdout
    assert "\x1b[1mFlaky upload test\x1b[0m" in forced.stdout
    assert forbidden.stdout == piped.stdout


def test_a_terminal_of_another_encoding_gets_escapes_and_no_crash(upload: str, sessions: Sessions) -> None:
    sessions.get(upload).rename("日本語 title")
    done = _shell(f"PYTHONIOENCODING=latin-1 {PLAYHEAD} list")

    assert done.returncode == 0
    assert "\\u65e5\\u672c\\u8a9e title" in done.stdout
