"""What `make run` shows: sessions imported, listed and searched, a turn killed in its middle, and resumed whole.

Every step runs the real command in a process of its own and says how to run it by hand. The store is one of its own,
`build/demo` under the working directory; sources are only read.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import playhead
from playhead.agents.built_in.default import DefaultAgent
from playhead.agents.protocol import answered
from playhead.cli.terminal import Terminal, here_and_now
from playhead.formats.registry import FORMATS, Found, look, places

FOLDER = Path("build") / "demo"
PIECES_BEFORE_THE_KILL = 75
WORDS_PER_SECOND = 60.0
"""Slow enough to be killed in the middle, fast enough not to bore."""

PAGES_MAX = 12
"""So many of the project's own pages become sessions where the person has none."""

RECORD = "--record"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration, or with `--record URL PROMPT` the turn that it kills. Returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == [RECORD]:
        return asyncio.run(_record(*given[1:]))
    terminal = here_and_now(os.environ)
    try:
        return _Demo(terminal, os.environ, Path.home()).run()
    except KeyboardInterrupt:
        terminal.note("Interrupted. The demonstration's sessions stay in build/demo.")
        return 130


class _Demo:
    """The steps, in order. Each prints what it does and the command that does it."""

    def __init__(self, terminal: Terminal, environment: Mapping[str, str], home: Path) -> None:
        self._terminal = terminal
        self._environment = dict(environment)
        self._home = home
        self._url = f"bundles:{FOLDER / 'sessions'}"
        self._step = 0

    def run(self) -> int:
        self._say("Playhead: durable sessions for AI agents. This shows the whole of it in a minute.")
        self._say(f"The sessions are in {FOLDER / 'sessions'}, one file each. To use the same ones by hand:")
        self._say(f"   $ export PLAYHEAD_STORE={self._url}")
        self._say("   $ alias playhead=.venv/bin/playhead")
        self._fill()
        self._title("List and search")
        self._command("list", "-n", "8")
        word = self._word_to_look_for()
        self._command("search", word, "-k", "5")
        text = self._killed_turn(f"What do my sessions say about {word}?")
        if not self._resumed(text):
            return 1
        self._title("Proof")
        if self._command("verify", "--all") != 0:
            return 1
        return self._chat()

    def _fill(self) -> None:
        found = self._found()
        if found:
            programs = ", ".join(sorted({FORMATS[one.format].title for one in found}))
            self._title("Import the sessions that other programs left on this machine")
            self._say(f"   There are {len(found)}, of {programs}. They are only read.")
            self._command("import", "--yes")
            return
        self._title("Make some sessions")
        self._say("   No other program has left any here, so a small agent reads this project's own pages.")
        self._say("   With sessions of your own: $ playhead import")
        pages = sorted([*Path.cwd().glob("*.md"), *Path.cwd().glob("docs/*.md")])[:PAGES_MAX]
        with playhead.open(self._url) as sessions:
            known = {row.id for row in sessions.list(limit=1_000).items}
            for page in pages:
                if f"reading-{page.stem.lower()}" not in known:
                    _read_page(sessions, page)
        self._say(f"   {len(pages)} pages were read, a session each.")

    def _found(self) -> list[Found]:
        """Return the sessions that `playhead import` would find by itself."""
        known = places(self._environment, self._home, Path.cwd())
        roots = [(path, name) for name, paths in known.items() for path in paths if path.exists()]
        return [one for path, name in roots for one in look(path, name)[0]]

    def _word_to_look_for(self) -> str:
        """Return a word that several answers have, so that the search and the question find something to show."""
        with playhead.open(self._url) as sessions:
            for word in ("test", "session", "file", "error"):
                if len(sessions.search(word, role="assistant", k=5).hits) >= 3:
                    return word
        return "session"

    def _killed_turn(self, prompt: str) -> str:
        """Start a turn in a process of its own, kill it in the middle of its answer, and return what it had said."""
        self._title("A turn of the built-in agent, in a process of its own, killed in the middle of its answer")
        self._say(f"   $ playhead run -p {shlex.quote(prompt)}")
        command = [sys.executable, "-m", "playhead.cli.demo", RECORD, self._url, prompt]
        said: list[str] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
            assert child.stdout is not None, "it was asked to be a pipe"
            self._terminal.start("   ")
            for line in child.stdout:
                said.append(json.loads(line))  # A line stands for a piece that is already durable.
                self._terminal.start(said[-1].replace("\n", "\n   "))
                if len(said) == PIECES_BEFORE_THE_KILL:
                    child.send_signal(signal.SIGKILL)
                    break
            child.stdout.read()
        self._terminal.line()
        self._say(f"   Process {child.pid} was killed (SIGKILL) after {len(said)} pieces.")
        return "".join(said)

    def _resumed(self, text: str) -> bool:
        """Resume with the real command, then compare what is in the log with what was seen before the kill."""
        self._title("Resume")
        self._command("resume", "--last")
        with playhead.open(self._url) as sessions:
            last = [message for message in sessions.get("@last").conversation() if message.interrupted]
        if not last or not last[-1].text.startswith(text):
            self._terminal.error("what was shown before the kill is not in the log: please report this")
            return False
        self._say(f"   All {len(text)} characters that were shown before the kill are in the log, in a message marked")
        self._say("   as interrupted. The call and the turn are closed. Nothing was lost, nothing had to be repaired.")
        return True

    def _chat(self) -> int:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            self._title("That was it")
            self._say("   In a terminal you would now be in a chat with this session: $ playhead resume --last")
            return 0
        self._title("Your turn: a chat with the agent in the session that was killed (Ctrl-D leaves)")
        return self._command("resume", "--last")

    def _title(self, text: str) -> None:
        self._step += 1
        self._terminal.line()
        self._terminal.line(f"{self._step}. {text}")

    def _say(self, text: str) -> None:
        self._terminal.line(text)

    def _command(self, *arguments: str) -> int:
        """Run a command of the command line as a person would, and return its exit code."""
        self._say(f"   $ playhead {shlex.join(arguments)}")
        sys.stdout.flush()
        environment = {**self._environment, "PLAYHEAD_STORE": self._url}
        return subprocess.run([sys.executable, "-m", "playhead.cli.main", *arguments], env=environment).returncode


async def _record(url: str, prompt: str) -> int:
    """Answer one prompt in a new session, and print each piece of the answer once it is durable, as a line of JSON."""

    def show(text: str) -> None:
        print(json.dumps(text), flush=True)

    async with await playhead.open_async(url) as sessions:
        session = await sessions.create(title=prompt)
        await answered(DefaultAgent(words_per_second=WORDS_PER_SECOND), sessions, session, prompt, on_text=show)
    return 0


def _read_page(sessions: playhead.Sessions, page: Path) -> None:
    """Record how a page of the project was read: a question, a tool call with the page as its result, an answer."""
    text = page.read_text(encoding="utf-8")
    title = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), page.stem)
    passages = [part for part in text.split("\n\n") if len(part) > 80 and not part.startswith(("#", "|", "`", "<"))]
    with sessions.create(f"reading-{page.stem.lower()}", title=f"Reading: {title}", cwd=str(page.parent)) as session:
        with session.turn(f"What does {page.name} say?") as turn:
            call = turn.tool_call("read_file", {"path": page.name})
            turn.tool_result(call, text)
            turn.say(f"{title}, in its own words:\n\n" + "\n\n".join(passages[:4]))


if __name__ == "__main__":
    sys.exit(main())
