"""Terminal escape injection: what others wrote never reaches the terminal as a command to it."""

import json
import re
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.cli.failures import message
from playhead.errors import InvalidName
from tests.cli.conftest import ESCAPES, CommandLine
from tests.cli.terminals import in_a_terminal

RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
OUR_OWN = re.compile(r"\x1b\[(?:0|1|2|1;33|3[1-6])m|\x1b\[K|\r(?=\n)|\r(?=\x1b\[K)")
"""What Playhead itself sends: its few colours, the erasing of a progress line, and the line ends of a terminal."""

COMMANDS = [
    ["list"],
    ["list", "--json"],
    ["show", "hostile-0001"],
    ["show", "hostile-0001", "--tools", "full"],
    ["show", "hostile-0001", "--json"],
    ["show", "hostile-0001", "--tree"],
    ["show", "hostile-0001", "--event", "2"],
    ["show", "hostile-0001", "--event", "6"],
    ["search", "prompt", "response", "answer", "value"],
    ["search", "prompt", "-C", "3"],
    ["search", "prompt", "--json"],
    ["rewind", "hostile-0001", "--to", "1", "--dry-run"],
    ["rewind", "hostile-0001", "--to", "1", "--dry-run", "--json"],
    ["fork", "hostile-0001"],
    ["timeline", "hostile-0001"],
    ["timeline", "hostile-0001", "--json"],
    ["timeline", "hostile-0001", "--jsonl"],
    ["tail", "hostile-0001"],
    ["tail", "hostile-0001", "--jsonl"],
    ["diff", "hostile-0001", "hostile-0002"],
    ["diff", "hostile-0001", "hostile-0002", "--stat"],
    ["diff", "hostile-0001", "hostile-0002", "--json"],
    ["show", "hostile-0001", "--last", "1"],
    ["verify", "--all"],
    ["resume", "hostile-0001", "--json"],
    ["resume", "hostile-0001"],
    ["show", f"no such {ESCAPES}"],
    ["show", "hostile"],
    ["--store", f"bundles\x1b[2J:{ESCAPES}", "list"],
    ["list", "--since", ESCAPES],
    [f"command{ESCAPES}"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command).encode("ascii", "replace").decode())
def test_in_a_pipe_nothing_raw_comes_out(
    cli: CommandLine, sessions: Sessions, hostile: str, command: list[str]
) -> None:
    sessions.create("hostile-0002", title=f"another {ESCAPES}").close()
    answer = cli(*command)

    assert RAW.findall(answer.out) == []
    assert RAW.findall(answer.err) == []
    assert answer.out or answer.err


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["show", "hostile-0001", "--tools", "full"],
        ["show", "hostile-0001", "--raw"],
        ["show", "hostile-0001", "--raw", "--event", "4"],
        ["search", "prompt", "-C", "3"],
        ["show", "hostile"],
    ],
    ids=" ".join,
)
def test_on_a_terminal_only_our_own_colours_come_out(
    tmp_home: Path, sessions: Sessions, hostile: str, command: list[str]
) -> None:
    sessions.create("hostile-0002", title=f"another {ESCAPES}").close()
    shown = in_a_terminal(*command).shown

    assert "␛" in shown
    assert RAW.findall(OUR_OWN.sub("", shown)) == []


def test_json_gives_the_text_back_as_it_was_stored(cli: CommandLine, hostile: str) -> None:
    document = cli("show", hostile, "--json").json

    assert document["session"]["title"] == f"{ESCAPES} title"
    assert ESCAPES in json.dumps(document, ensure_ascii=False).replace("\\u001b", "\x1b").replace(
        "\\b", "\x08"
    ).replace("\\u0007", "\x07").replace("\\u007f", "\x7f")


def test_the_message_of_an_error_is_safe_as_well(cli: CommandLine, hostile: str) -> None:
    answer = cli("--store", "sqlite:\x1b]0;x\x07\0.db", "list")

    assert answer.code != 0
    assert RAW.findall(answer.err) == []
    assert "\x1b" in message(InvalidName("a \x1b name"))
