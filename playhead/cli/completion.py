"""The `completion` command: the script that lets a shell complete commands, options and sessions."""

from __future__ import annotations

import os
import re
import time
from typing import Annotated, Any, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.naming import title_of
from playhead.cli.settings import Settings
from playhead.cli.terminal import here_and_now
from playhead.cli.text import fitted
from playhead.features.listing import Wanted, all_sessions

SESSIONS_MAX = 50
TITLE_COLUMNS_MAX = 60

Shell = Literal["bash", "zsh", "fish", "pwsh"]


def run(
    here: Here,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh, fish or pwsh", show_default=False)],
    json: JsonOption = False,
) -> None:
    """Print the script."""
    # Loaded on use: it looks for the shell that it runs in, which no other command needs.
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="playhead", complete_var="_PLAYHEAD_COMPLETE", shell=shell)
    if json:
        here.terminal.json({"shell": shell, "script": script})
        return
    here.terminal.exact(script + "\n")


COMMAND = Command(
    run,
    about=(
        "The script completes commands, options, and sessions by the beginning of their ids, with their titles beside "
        "them where the shell shows such. Load it in the file that your shell reads as it starts:\n\n"
        "\b\n"
        '  bash  ~/.bashrc:  eval "$(playhead completion bash)"\n'
        '  zsh   ~/.zshrc, after compinit:  eval "$(playhead completion zsh)"\n'
        "  fish  ~/.config/fish/config.fish:  playhead completion fish | source\n"
        "  pwsh  $PROFILE:  playhead completion pwsh | Out-String | Invoke-Expression"
    ),
    examples=("playhead completion bash", "playhead completion zsh > /dev/null"),
    needs_settings=False,
)

# zsh evaluates what it is given and bash splits it, so only characters that mean nothing to any shell reach them: a
# title is somebody else's text, and so is the id of an imported session.
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_NOT_PLAIN = re.compile(r"[^\w .,/+-]+")


def completed_sessions(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the sessions whose names begin like this, each with its title, the most recently active first.

    `SESSIONS_MAX` at most. Whatever goes wrong, nothing is offered: a shell that completes a word has no place for an
    error, and the command that is then called reports it.
    """
    try:
        return _completed(ctx, incomplete)
    except Exception:
        return []


def _completed(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    environment, folder = dict(os.environ), os.getcwd()
    terminal = here_and_now(environment)
    terminal.is_quiet = True
    here = Here(terminal, environment, folder, Settings(environment, folder), _store_flag(ctx))
    with here.open_existing() as sessions:
        rows = all_sessions(sessions.store, Wanted(), clock=time.time, entropy=os.urandom)
    named = ((str(row.key), row) for row in rows)
    fitting = [(name, row) for name, row in named if name.startswith(incomplete) and _PLAIN_ID.fullmatch(name)]
    return [(name, _described(title_of(row))) for name, row in fitting[:SESSIONS_MAX]]


def _store_flag(ctx: Any) -> str | None:
    """Return what `--store` says in the line so far, before the command's name or after it."""
    while ctx is not None:
        if ctx.params.get("store"):
            return str(ctx.params["store"])
        ctx = ctx.parent
    return None


def _described(title: str) -> str:
    return fitted(" ".join(_NOT_PLAIN.sub(" ", title).split()), TITLE_COLUMNS_MAX)
