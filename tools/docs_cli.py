"""Write docs/cli.md from the help of the commands, or check that it says what they say.

Usage: python tools/docs_cli.py [--check]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from typer.main import get_command

from playhead.cli.failures import EXIT_CODES
from playhead.cli.main import COMMANDS, Commands, app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HELP_COLUMNS = 100

INTRODUCTION = """\
# The command line

<!-- Written by tools/docs_cli.py from the help of the commands: change the help, then run it. -->

`pip install "playhead[cli]"` brings the `playhead` command. Each command is described below by its own help, which
`playhead COMMAND --help` prints as well.

## Where the sessions are

The first of these that is set names the store:

1. `--store URL`, before or after the command's name: `bundles:DIR` or `sqlite:FILE`
2. `PLAYHEAD_STORE`, a URL of the same kind
3. `PLAYHEAD_HOME`, a folder: the `store` of the `config.toml` inside it, else its folder `sessions`
4. `store` in the nearest `.playhead.toml` from the current folder upwards, where that lies inside the project
5. `store` in your own `config.toml`, which `playhead config path` names
6. the folder that the system keeps for a user's data, such as `~/.local/share/playhead/sessions`

`playhead config show --origin` says what is in force, and where each value comes from. A project's `.playhead.toml`
runs no code and sends nothing elsewhere: it cannot name an agent, an endpoint, or a place outside its own folder.

## How a session is named

Wherever a command takes a session, the first of these that fits names it:

1. its whole id; `APP/USER/ID` for the session of another app or user
2. `@last` for the one that was active last, `@-2` for the one before, and so on
3. the beginning of its id, four characters at least; for an imported session also of the id that its program gave it
4. its title, in upper or lower case

What fits several sessions names none of them: the candidates are printed and the exit code is 5.

## What is printed

Results go to stdout, all else to stderr. On a terminal, rows stand under headings, and times are ages; in a pipe, rows
are tab-separated without headings, and times are UTC. `--json` prints one JSON object with the same facts. Its fields
are documented, a file for each command, in [schemas](schemas); new ones may come, none of these goes. `--jsonl`, where
there is one, prints the same objects a line at a time.

Control characters in what others wrote are shown and not sent: a terminal gets `␛` for an escape. Only `show --raw` in
a pipe gives text byte for byte. `NO_COLOR`, `FORCE_COLOR`, `CLICOLOR`, `TERM=dumb`, `COLUMNS` and `PAGER` are followed.
"""


def page() -> str:
    """Return the whole page."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    root = cast(Commands, get_command(app))
    # Parsing is resilient here: a help page needs no arguments.
    front = root.make_context("playhead", [], resilient_parsing=True, terminal_width=HELP_COLUMNS)
    sections = [
        INTRODUCTION,
        f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}",
        f"## playhead\n\n{_block(root.get_help(front))}",
    ]
    for name in COMMANDS:
        command = root.get_command(front, name)
        context = command.make_context(name, [], parent=front, resilient_parsing=True, terminal_width=HELP_COLUMNS)
        sections.append(f"## playhead {name}\n\n{_block(command.get_help(context))}")
    return "\n".join(sections)


def main(arguments: Sequence[str]) -> int:
    """Write the page; with `--check`, return 1 if it is not up to date."""
    wanted = page()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print("docs/cli.md does not say what the commands' help says; run: python tools/docs_cli.py", file=sys.stderr)
    return 1


def _block(help_text: str) -> str:
    lines = [line.rstrip() for line in help_text.strip("\n").splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
