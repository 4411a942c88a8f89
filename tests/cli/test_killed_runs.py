"""`playhead run` killed at any point (SIGKILL): what it had shown is in the log, and the session goes on."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import playhead
from tests.cli.conftest import CommandLine
from tests.conftest import PROJECT

AGENT = "tests.cli.agents:working"
LINES_MAX = 110
"""More lines than a whole turn prints: some of the runs come to their end."""
PAUSE_S_MAX = 0.01

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills processes with a signal")


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_killed_loses_nothing_it_had_shown_and_goes_on(
    cli: CommandLine, store_url: str, tmp_home: Path, seed: int
) -> None:
    """C-06."""
    lost = _lost(cli, store_url, random.Random(seed))

    assert lost == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_runs_that_are_killed_lose_nothing_and_go_on(
    cli: CommandLine, store_url: str, tmp_home: Path
) -> None:
    """C-06."""
    points = random.Random(100)
    lost = [problem for _ in range(100) for problem in _lost(cli, store_url, points)]

    assert lost == []


def _lost(cli: CommandLine, store_url: str, points: random.Random) -> list[str]:
    """Kill a run at a random point, go on with its session, and return what is not as it should be."""
    shown = _killed(points.randrange(LINES_MAX), points.uniform(0, PAUSE_S_MAX))
    if not shown:
        return []  # Killed before anything was promised.
    resumed = cli("resume", "--last", "--json")
    went_on = cli("run", "and now?", "--session", "@last", "--agent", "tests.cli.agents:echo")
    if (resumed.code, went_on.code) != (0, 0):
        return [f"{resumed.err} {went_on.err}"]
    with playhead.open(store_url) as sessions:
        session = sessions.get("@last")
        stored = {event.id for event in session.events(limit=1_000)}
        said = "".join(message.text for message in session.conversation() if message.role == "assistant")
        problems = list(sessions.verify(session.id).problems)
    events = [line["event"] for line in shown if line["type"] == "event"]
    text = "".join(line["text"] for line in shown if line["type"] == "text")
    problems += [f"{event['kind']} #{event['seq']} is gone" for event in events if event["id"] not in stored]
    problems += [] if said.startswith(text) else [f"{text!r} was shown, and {said!r} is stored"]
    problems += [] if said.endswith("You said: and now?") else [f"it did not go on: {said!r}"]
    return problems


def _killed(line_count: int, pause_s: float) -> list[dict[str, Any]]:
    """Kill a run after so many lines and a pause; return all that it had printed in whole lines."""
    command = [sys.executable, "-m", "playhead._entry", "run", "Look at the cases", "--agent", AGENT, "--jsonl"]
    with subprocess.Popen(
        command, cwd=PROJECT, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None, "it was asked to be a pipe"
        lines = [line for _, line in zip(range(line_count), process.stdout, strict=False)]
        time.sleep(pause_s)
        process.kill()
        lines += process.stdout.readlines()
    return [json.loads(line) for line in lines if line.endswith(b"\n")]
