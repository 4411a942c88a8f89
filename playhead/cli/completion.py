"""The `completion` command: the script that lets a shell complete commands, options and sessions."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption

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
