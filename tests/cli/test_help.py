"""The help: every command has examples that run and its exit codes, and the documentation says the same."""

import importlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from playhead import Sessions
from playhead.cli.failures import EXIT_CODES
from playhead.cli.main import COMMANDS, GROUPS, app
from tests.cli.conftest import CommandLine
from tests.conftest import PROJECT
from tools.docs_cli import PAGE, main as docs, page

# Modules of the package that hold no command: what the commands share, and the demonstration.
SHARED = {"__init__", "main", "command", "options", "settings", "failures", "naming", "moments", "terminal", "text"}
SHARED |= {"table", "page", "documents", "asking", "answering", "demo"}
SHARED |= {
    "agents",
    "import_report",
    "conversing",
    "happenings",
    "loading",
    "picker",
    "picker_rows",
    "picker_screen",
    "slash",
}
SHARED |= {"completing", "history", "modes", "rows", "wrapping"}


GOES_ON_S = 3


def _command(name: str) -> Any:
    return importlib.import_module(f"playhead.cli.{COMMANDS[name][0]}").COMMAND


def test_every_file_of_the_command_line_is_a_command_or_what_commands_share() -> None:
    files = {file.stem for file in (PROJECT / "playhead" / "cli").glob("*.py")}

    assert files - SHARED == {module for module, _ in COMMANDS.values()}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_tells_what_a_command_does_how_to_call_it_and_how_it_ends(cli: CommandLine, name: str) -> None:
    answer, short = cli(name, "--help"), cli(name, "-h")
    command = _command(name)
    text = " ".join(answer.out.split())

    assert answer.code == 0
    assert answer.out == short.out
    assert COMMANDS[name][1] in text
    assert [example for example in command.examples if example not in answer.out] == []
    assert [code for code in command.exits if EXIT_CODES[code] not in text] == []
    assert command.examples
    assert "--json" in text and "--store" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_written_in_the_imperative_without_a_full_stop(name: str) -> None:
    options = [parameter for parameter in get_command(app).get_command(None, name).params if parameter.help]  # type: ignore[attr-defined]

    assert [option.name for option in options if option.help.endswith(".")] == []
    assert not COMMANDS[name][1].endswith(".")
    assert all(example.split()[0] in ("playhead", "echo") for example in _command(name).examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_in_the_help_runs(
    name: str, tmp_home: Path, tmp_path: Path, sessions: Sessions, upload: str, claude_home: Path
) -> None:
    if name == "run" and importlib.util.find_spec("playhead.agents.built_in.default") is None:
        pytest.skip("the built-in agent is not part of this checkout")
    if shutil.which("jq") is None:
        pytest.skip("the examples use jq, which is not installed")
    sessions.ingest("older-0001", [], at=1_000_000_000.0)
    sessions.get(upload).fork(id="upload-0002")
    shutil.copytree(claude_home, tmp_home / ".claude")
    shutil.copytree(claude_home, tmp_home / "backup" / ".claude")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "playhead").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m playhead._entry "$@"\n', encoding="utf-8")
    (folder / "playhead").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(PROJECT)}
    failed = {}
    for example in _command(name).examples:
        code, said = _tried(example, environment, tmp_path)
        if code != (130 if _goes_on(example) else 0):
            failed[example] = (code, said)

    assert failed == {}


def _goes_on(example: str) -> bool:
    """Return True for an example that goes on until Ctrl-C."""
    return any(option in example.split() for option in ("-f", "--watch"))


def _tried(example: str, environment: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run an example as a person would; one that goes on is interrupted once it stands. Return its code and stderr."""
    process = subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", example],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=GOES_ON_S if _goes_on(example) else 60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    # A shell whose last command was interrupted dies of the signal too.
    return 128 - process.returncode if process.returncode < 0 else process.returncode, said


def test_the_front_page_lists_every_command(cli: CommandLine) -> None:
    asked, bare = cli("--help"), cli()

    assert [
        name for name, (_, summary) in COMMANDS.items() if f"{name} " not in asked.out or summary not in asked.out
    ] == []
    assert (bare.code, bare.out) == (0, asked.out)


def test_completion_is_offered_by_the_command_and_by_no_option(cli: CommandLine) -> None:
    assert "-completion" not in cli("--help").out
    assert "completion " in cli("--help").out


@pytest.mark.parametrize("columns", [20, 30, 40, 50])
def test_help_is_as_narrow_as_the_terminal(cli: CommandLine, columns: int) -> None:
    about = cli("pin", "--help", COLUMNS=str(columns)).out.partition("Arguments:")[0].splitlines()

    assert max(len(line) for line in about[1:]) <= columns
    assert len(about) > 80 // columns


def test_every_command_is_under_one_heading_of_the_front_page() -> None:
    grouped = [name for names in GROUPS.values() for name in names]

    assert sorted(grouped) == sorted(COMMANDS)


def test_the_version_is_one_line(cli: CommandLine) -> None:
    import playhead

    assert cli("--version").out == cli("-V").out == f"playhead {playhead.__version__}\n"


def test_the_documentation_says_what_the_help_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/docs_cli.py"
    assert [name for name in COMMANDS if f"\n## playhead {name}\n" not in page()] == []
    assert [code for code in EXIT_CODES if f"\n| {code} |" not in page()] == []


def test_a_page_that_has_drifted_is_reported_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drifted = tmp_path / "cli.md"
    drifted.write_text("# Another page\n", encoding="utf-8")
    monkeypatch.setattr("tools.docs_cli.PAGE", drifted)
    codes = [docs(["--check"]), docs([]), docs(["--check"])]

    assert codes == [1, 0, 0]
    assert "python tools/docs_cli.py" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "pwsh"])
def test_completion_scripts_load(shell: str, tmp_home: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "playhead._entry"],
        env={**os.environ, "_PLAYHEAD_COMPLETE": f"source_{shell}"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert script.returncode == 0, script.stderr
    assert "playhead" in script.stdout
    if shutil.which(shell) and shell != "pwsh":
        checked = subprocess.run([shell, "-n"], input=script.stdout, capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, checked.stderr


def test_a_word_is_completed(tmp_home: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "playhead._entry"],
        env={**os.environ, "_PLAYHEAD_COMPLETE": "complete_bash", "COMP_WORDS": "playhead re", "COMP_CWORD": "1"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert answer.stdout.split() == ["resume", "rewind", "restore"]
