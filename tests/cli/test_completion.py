"""`playhead completion`: scripts that load in their shells, words that are completed, titles that do no harm there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from playhead import Sessions
from playhead.cli.completing import SESSIONS_MAX, completed_sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

SHELLS = ["bash", "zsh", "fish", "pwsh"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A search path whose first folder has a `playhead` of this checkout."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "playhead").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m playhead._entry "$@"\n', encoding="utf-8")
    (folder / "playhead").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _shell(name: str, script: str, path: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    command = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(
        [*command.get(name, [name, "-NoProfile", "-Command"]), script],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def _bash(words: str, path: str, cwd: Path) -> list[str]:
    """Return what bash offers for the last of these words."""
    script = (
        'eval "$(playhead completion bash)"\n'
        f"COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_playhead_completion playhead\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = _shell("bash", script, path, cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def _zsh(line: str, path: str) -> str:
    """Return what stands on the terminal once a person typed this line and a tab."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    # The prompt is put together, so that the echo of this line is not taken for it.
    start = 'PS1="READY"">"; autoload -Uz compinit && compinit -u -D; eval "$(playhead completion zsh)"\n'
    return in_a_terminal(
        program="import os; os.execvp('zsh', ['zsh', '-f'])",
        typed=[("first>", start), ("READY>", f"{line}\t\t"), ("safe-0008", "\x03"), ("READY>", "exit\n")],
        PS1="first>",
        PATH=path,
        PYTHONPATH=str(PROJECT),
    ).shown


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_loads_in_its_shell(cli: CommandLine, shell: str, path: str, tmp_path: Path) -> None:
    """C-01."""
    script = cli("completion", shell).out
    before = {"zsh": "autoload -Uz compinit && compinit -u -D\n"}.get(shell, "")
    done = _shell(shell, before + script, path, tmp_path)

    assert "playhead" in script
    assert (done.returncode, done.stderr) == (0, "")


def test_only_shells_that_are_known_have_a_script(cli: CommandLine) -> None:
    assert cli("completion", "tcsh").code == 2
    assert cli("completion").code == 2


def test_bash_completes_commands_options_and_sessions(path: str, tmp_path: Path, upload: str, hostile: str) -> None:
    assert _bash("playhead re", path, tmp_path)[:1] == ["resume"]
    assert "--label" in _bash("playhead list --l", path, tmp_path)
    assert _bash("playhead show up", path, tmp_path) == [upload]
    assert _bash("playhead tag upload-0001 ''", path, tmp_path) == [hostile, upload]
    assert _bash("playhead show nobody", path, tmp_path) == []


def test_the_store_that_the_line_names_is_looked_into(path: str, tmp_path: Path, upload: str) -> None:
    other = f"sqlite:{tmp_path / 'other.db'}"

    assert _bash(f"playhead --store '{other}' show up", path, tmp_path) == []
    assert _bash(f"playhead show --store '{other}' up", path, tmp_path) == []
    assert not (tmp_path / "other.db").exists()


def test_titles_stand_beside_the_ids_where_the_shell_shows_them(
    sessions: Sessions, upload: str, path: str, tmp_path: Path
) -> None:
    done = _shell("fish", "playhead completion fish | source; complete -C 'playhead show up'", path, tmp_path)

    assert done.stdout == f"{upload}\tFlaky upload test\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_no_title_and_no_id_is_run_by_a_shell(sessions: Sessions, path: str, tmp_path: Path, shell: str) -> None:
    """S8."""
    done = tmp_path / "done"
    attacks = [
        f"$(touch {done})",
        f"`touch {done}`",
        f"\\$(touch {done})",
        f'"; touch {done}; "',
        f"'; touch {done}; '",
        f"\\'$(touch {done})",
        f'\\"$(touch {done})',
        f"${{(e):-$(touch {done})}}",
        f"x:[$(touch {done})]",
    ]
    for number, text in enumerate(attacks):
        sessions.create(f"safe-{number:04}", title=text).close()
        sessions.create(f"safe-{text}", title="An id").close()
    scripts = {
        "bash": 'eval "$(playhead completion bash)"\nCOMP_WORDS=(playhead show safe) COMP_CWORD=2\n'
        '_playhead_completion playhead\necho "${COMPREPLY[@]}"',
        "fish": "playhead completion fish | source; complete -C 'playhead show safe'",
    }
    shown = _zsh("playhead show safe", path) if shell == "zsh" else _shell(shell, scripts[shell], path, tmp_path).stdout

    assert "safe-0000" in shown
    assert "An id" not in shown
    assert not done.exists()


def test_so_many_sessions_are_offered_and_no_more(sessions: Sessions, path: str, tmp_path: Path) -> None:
    for number in range(SESSIONS_MAX + 3):
        sessions.create(f"session-{number:04}").close()

    assert len(_bash("playhead show session", path, tmp_path)) == SESSIONS_MAX
    assert _bash("playhead show session-0001", path, tmp_path) == ["session-0001"]


def test_of_many_sessions_those_that_are_offered_are_read(
    sessions: Sessions, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(SESSIONS_MAX + 30):
        sessions.create(f"session-{number:04}").close()
    sessions.create("other-0001").close()
    sessions.list(limit=1)
    read: list[int] = []
    listing = type(sessions.store.listing)
    page = listing.page

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        found = page(self, *arguments, **options)
        read.append(len(found.rows))
        return found

    monkeypatch.setattr(listing, "page", counted)
    line = SimpleNamespace(params={"store": store_url}, parent=None)
    many, read_of_many = completed_sessions(cast(typer.Context, line), "sess"), sum(read)
    read.clear()
    one, read_of_one = completed_sessions(cast(typer.Context, line), "oth"), sum(read)

    assert (len(many), [name for name, _ in one]) == (SESSIONS_MAX, ["other-0001"])
    assert read_of_many <= SESSIONS_MAX + 1
    assert read_of_one == 1


def test_what_goes_wrong_is_no_word_in_the_line(tmp_home: Path, path: str, tmp_path: Path) -> None:
    (tmp_home / "playhead").mkdir()
    (tmp_home / "playhead" / "config.toml").write_text("store = 3\n")

    assert _bash("playhead show up", path, tmp_path) == []
