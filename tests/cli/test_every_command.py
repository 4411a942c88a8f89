"""What holds of every command alike: what it sends to a pipe, where its progress goes, and how it names sessions."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import playhead
from playhead import Sessions
from playhead.cli.main import COMMANDS
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.cli.test_escapes import RAW
from tests.conftest import PROJECT

PLAYHEAD = f"{shlex.quote(sys.executable)} -m playhead._entry"

CALLS: dict[str, list[list[str]]] = {
    "import": [["import", "--dry-run"]],
    "list": [["list"], ["list", "--json"]],
    "show": [["show", "hostile-0001", "--tools", "full"]],
    "search": [["search", "prompt", "-C", "2"], ["search", "prompt", "--jsonl"]],
    "timeline": [["timeline", "hostile-0001"]],
    "tail": [["tail", "hostile-0001"]],
    "diff": [["diff", "hostile-0001", "upload-0001"], ["diff", "hostile-0001", "upload-0001", "--stat"]],
    "run": [["run", "say \x1b[2J", "--session", "hostile-0001"], ["run", "hello", "--no-session", "--jsonl"]],
    "chat": [["chat", "--session", "hostile-0001"]],
    "resume": [["resume", "hostile-0001"]],
    "rewind": [["rewind", "hostile-0001", "--to", "1", "-n"]],
    "fork": [["fork", "hostile-0001"]],
    "title": [["title", "hostile-0001"], ["title", "hostile-0001", "plain"]],
    "tag": [["tag", "hostile-0001", "--add", "plain"]],
    "pin": [["pin", "hostile-0001"]],
    "archive": [["archive", "hostile-0001"]],
    "rm": [["rm", "hostile-0001", "-n"], ["rm", "hostile-0001"]],
    "restore": [["restore"], ["restore", "@last"]],
    "export": [["export", "hostile-0001", "--format", "md"], ["export", "hostile-0001", "--format", "html"]],
    "stats": [["stats"], ["stats", "--by", "tool"], ["stats", "--overview"]],
    "config": [["config", "show", "--origin"]],
    "completion": [["completion", "bash"]],
    "index": [["index"], ["index", "rebuild"]],
    "db": [["db", "check"], ["db", "path"]],
    "doctor": [["doctor"]],
    "verify": [["verify", "--all"]],
}
"""How each command is called on a store whose every text holds escape sequences."""


def test_every_command_is_tried() -> None:
    assert set(CALLS) == set(COMMANDS)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_raw_and_no_colour_goes_into_a_pipe(
    cli: CommandLine, sessions: Sessions, upload: str, hostile: str, claude_home: Path, name: str
) -> None:
    """C-03, C-15. What an export holds is for a program; its pages are held to more in their own tests."""
    if name == "restore":
        sessions.trash(hostile)
    found = {}
    for call in CALLS[name]:
        answer = cli(*call, text="what is a lease\n", CLAUDE_CONFIG_DIR=str(claude_home))
        out = "" if name == "export" else answer.out
        if answer.code != 0 or RAW.findall(out) or RAW.findall(answer.err):
            found[" ".join(call)] = (answer.code, RAW.findall(out), answer.err)

    assert found == {}


@pytest.mark.parametrize("command", ["verify --all", "index rebuild", "db check", "export --all --format md -o {}"])
def test_progress_goes_to_stderr_alone(sessions: Sessions, upload: str, tmp_path: Path, command: str) -> None:
    """C-04: in a terminal, with stdout in a file."""
    for number in range(3):
        sessions.create(f"more-000{number}").close()
    out = tmp_path / "out"
    line = f"{PLAYHEAD} {command.format(tmp_path / 'exported')} > {out}"
    program = f"import subprocess, sys; sys.exit(subprocess.call(['bash', '-c', {line!r}]))"
    shown = in_a_terminal(program=program)

    assert shown.code == 0
    assert "\r" not in out.read_text(encoding="utf-8")
    assert "\x1b" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command",
    [
        "timeline long-0001 | head -1",
        "timeline long-0001 --jsonl | head -1",
        "tail long-0001 -n 1000 | head -1",
        "diff long-0001 upload-0001 | head -1",
        "export long-0001 | head -1",
        "export long-0001 --format html | head -1",
        "list | head -1",
        "chat --session long-0001 <<< 'everything' | head -1",
        "stats --json | head -c 1",
    ],
)
def test_a_reader_that_goes_away_ends_any_command_without_a_word(sessions: Sessions, upload: str, command: str) -> None:
    """C-05."""
    with sessions.create("long-0001") as session, session.turn("Tell me everything") as turn:
        for number in range(400):
            turn.say(f"everything {number} " + "and more " * 100)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{PLAYHEAD} {command.replace(' |', ' --quiet |')}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_last_session_is_the_first_of_every_list(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    """C-07, C-08: list, resume, names and the picker have one order."""
    for number in range(5):
        sessions.create(f"later-000{number}").close()
    sessions.get(upload).append("note", {"name": "touched"})
    listed = [row["id"] for row in cli("list", "--all", "--json").json["sessions"]]
    shown = in_a_terminal("resume", typed=[("Esc leave", "\r"), (">\x08", "\x04")], NO_COLOR="1").shown

    assert listed[0] == upload
    assert cli("resume", "--last", "--json").json["session"]["id"] == listed[0]
    assert [cli("show", f"@-{rank}", "--json").json["session"]["id"] for rank in (1, 2, 3)] == listed[:3]
    assert "Flaky upload test" in shown


@pytest.mark.parametrize(
    "command",
    [
        ["show", "{}"],
        ["timeline", "{}"],
        ["tail", "{}"],
        ["diff", "{}"],
        ["resume", "{}"],
        ["run", "hello", "--session", "{}"],
        ["chat", "--session", "{}"],
        ["rewind", "{}", "--to", "1"],
        ["fork", "{}"],
        ["title", "{}"],
        ["tag", "{}", "--add", "x"],
        ["pin", "{}"],
        ["archive", "{}"],
        ["rm", "{}"],
        ["export", "{}"],
        ["index", "status", "{}"],
        ["verify", "{}"],
        ["search", "x", "--session", "{}"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_names_sessions_by_one_rule(
    cli: CommandLine, sessions: Sessions, upload: str, command: list[str]
) -> None:
    """C-10: an unknown name ends with 3, an ambiguous one with 5 and the candidates, and nothing is guessed."""
    sessions.create("upload-0002").close()
    before = [(row.id, row.summary.event_count if row.summary else 0) for row in sessions.list(sort="title").items]
    unknown, ambiguous = (
        cli(*[part.format(name) for part in command], text="") for name in ("nothing-like-it", "upload-000")
    )

    assert (unknown.code, ambiguous.code) == (3, 5)
    assert "upload-0001" in ambiguous.err and "upload-0002" in ambiguous.err
    assert [
        (row.id, row.summary.event_count if row.summary else 0) for row in sessions.list(sort="title").items
    ] == before


@pytest.mark.parametrize(
    "command",
    [
        ["resume", "upload-0001"],
        ["run", "hello", "--session", "upload-0001"],
        ["rewind", "upload-0001", "--to", "1"],
        ["rm", "upload-0001"],
    ],
    ids=lambda command: command[0],
)
def test_a_session_that_somebody_is_in_a_turn_of_is_busy_and_the_holder_is_named(
    cli: CommandLine, store_url: str, sessions: Sessions, upload: str, command: list[str]
) -> None:
    """C-10."""
    with playhead.open(store_url) as others, others.get(upload).turn("Go on", label="the other terminal"):
        answer = cli(*command)

    assert answer.code == 4
    assert str(os.getpid()) in answer.err
    assert "the other terminal" in answer.err
