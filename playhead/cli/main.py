"""The command line's front: the list of commands, each loaded only when it is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from playhead import __version__
from playhead.cli.failures import guarded
from playhead.cli.options import CONTEXT_SETTINGS, DebugOption, QuietOption, Shared, StoreOption
from playhead.cli.terminal import here_and_now

COMMANDS: dict[str, tuple[str, str]] = {
    "import": ("import_", "Bring in the sessions that another program left on this machine"),
    "list": ("list", "List sessions, the most recent first"),
    "show": ("show", "Show a session, one of its events, or its branches"),
    "search": ("search", "Search every event of every session"),
    "run": ("run", "Answer one prompt and print the answer"),
    "chat": ("chat", "Converse, in a session that keeps all of it"),
    "resume": ("resume", "Go on with a session"),
    "timeline": ("timeline", "Print a line for every event, with what each took"),
    "tail": ("tail", "Print the last events, and follow those that come"),
    "diff": ("diff", "Compare two sessions, or two branches of one"),
    "rewind": ("rewind", "Hide a turn and all after it; nothing is deleted"),
    "fork": ("fork", "Begin a new session with a copy of this one"),
    "title": ("title", "Show or set the title of a session"),
    "tag": ("tag", "Show, add and remove labels of sessions"),
    "pin": ("pin", "Mark sessions with a star, to have them at hand"),
    "archive": ("archive", "Mark sessions as done with; they stay listed"),
    "rm": ("rm", "Put sessions into the trash, or remove them for good"),
    "restore": ("restore", "List the trash, and bring sessions back"),
    "stats": ("stats", "Count turns, messages, tool calls, tokens and bytes"),
    "config": ("config", "Show and change the settings"),
    "completion": ("completion", "Print the script that completes commands in a shell"),
    "export": ("export", "Write sessions to files that others can read, or take in again"),
    "index": ("index", "Show how far search reaches, or build its index again"),
    "db": ("db", "Copy, check and look into the files of the store"),
    "verify": ("verify", "Prove that sessions are undamaged"),
    "doctor": ("doctor", "Find what is wrong with the store, and mend what can be mended"),
}
"""Name to the module that holds its `COMMAND`, and what it does in one line.

The lines stand here so that `--help` prints them without loading what the commands need.
"""

GROUPS: dict[str, tuple[str, ...]] = {
    "Talk to an agent": ("run", "chat", "resume"),
    "Look": ("list", "search", "show", "timeline", "tail", "diff", "stats"),
    "Go back and branch off": ("rewind", "fork"),
    "Put in order": ("title", "tag", "pin", "archive", "rm", "restore"),
    "Bring in and take out": ("import", "export"),
    "Keep well": ("verify", "doctor", "index", "db"),
    "Set up": ("config", "completion"),
}
"""Under which heading the front page has a command."""

HELP_COLUMNS_MIN = 52
"""Help is written this wide by itself; a terminal that is narrower says so."""

EPILOG = """\b
Examples:
  playhead import
  playhead list --since 7d
  playhead search "connection reset"
  playhead resume --last

\b
Every command has its own help, with examples and exit codes: playhead list --help
Where the sessions are: --store, else PLAYHEAD_STORE, else PLAYHEAD_HOME, else the settings (see playhead config),
else the user's data folder"""


class Commands(TyperGroup):
    """The group of all commands. Loads a command's module when the command is looked up, and guards the whole call."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        # Loaded on use: what one command needs (the store, an agent) is not paid for by the others.
        from playhead.cli.command import built

        module, summary = COMMANDS[cmd_name]
        return built(cmd_name, summary, import_module(f"playhead.cli.{module}").COMMAND)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one is answered with the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            nearest = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            ctx.fail(f'there is no command "{args[0]}"{hint}')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(len(name) for name in COMMANDS)
        for heading, names in GROUPS.items():
            rows = [(name.ljust(widest), COMMANDS[name][1]) for name in names if name in COMMANDS]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line. Ends the process with the exit code, or returns it where `standalone_mode` is off."""
        terminal = here_and_now(os.environ)
        if terminal.width < HELP_COLUMNS_MIN:
            extra.setdefault("terminal_width", terminal.width - 2)
        if "_PLAYHEAD_COMPLETE" in os.environ:
            # Loaded on use: only a shell that completes a word asks. Typer itself does it with options of its own only.
            from typer._completion_classes import completion_init

            completion_init()
        inner = super().main
        code = guarded(
            lambda: inner(args, prog_name, complete_var, False, windows_expand_args, **extra),
            terminal,
        )
        if standalone_mode:
            sys.exit(code)
        return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments (the process's own where None) and return its exit code."""
    code: int = app(args=arguments, prog_name="playhead", standalone_mode=False)
    return code


app = typer.Typer(
    cls=Commands,
    add_completion=False,  # The `completion` command does that.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        here_and_now(os.environ).line(f"playhead {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=EPILOG)
def _front(
    ctx: typer.Context,
    store: StoreOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Keep, find and go on with the sessions of AI agents"""
    ctx.obj = Shared(store, is_quiet=quiet, is_debugging=debug)
    if ctx.invoked_subcommand is None:
        here_and_now(os.environ).line(ctx.get_help())


if __name__ == "__main__":
    sys.exit(main())
