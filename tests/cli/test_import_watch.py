"""`playhead import --watch`: sources are followed as they grow, in a process of its own, until Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.cli import import_
from playhead.cli.import_report import Report
from playhead.formats import watching
from playhead.formats.registry import Found, Unread, look
from playhead.formats.watching import Watch
from tests.cli.conftest import CLAUDE_SESSION, CommandLine, claude_record
from tests.conftest import PROJECT
from tests.formats.test_chatgpt import BASE, conversation, exported
from tests.formats.test_registry import CODEX, codex_lines

TIMEOUT_S = 30
IMPORTED = f"claude-code.{CLAUDE_SESSION}"
RUN = "\n# aider chat started at 2026-07-03 09:15:0{second}\n\n\n#### Why does it fail?  \n\nIt times out.\n\n"
OTHER = "00000000-0000-4000-8000-00000000000b"


class Watching:
    """The command, running. out, err: files that it writes to."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.out, self.err = folder / "out", folder / "err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "playhead._entry", "import", "--watch", "--interval", "0.1", *arguments],
                cwd=PROJECT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_so():
            assert time.monotonic() < deadline, f"it never came: {self.out.read_text()!r} {self.err.read_text()!r}"
            assert self.process.poll() is None, self.err.read_text()
            time.sleep(0.02)

    def until_said(self, text: str, count: int = 1) -> None:
        """Wait until a text stands in one of the streams so often."""
        self.until(lambda: (self.out.read_text() + self.err.read_text()).count(text) >= count)

    def stop(self) -> int:
        """Send Ctrl-C, and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_S)


@pytest.fixture
def watching_in(tmp_home: Path, tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    """Starts the command; it is ended with the test."""
    started: list[Watching] = []

    def start(*arguments: str, **environment: str) -> Watching:
        started.append(Watching(tmp_path, *arguments, **environment))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)


def test_what_is_written_is_imported_as_it_comes_until_ctrl_c(
    watching_in: Callable[..., Watching], sessions: Sessions, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    watch = watching_in(CLAUDE_CONFIG_DIR=str(claude_home))
    watch.until_said("Watching for more")
    append(file, claude_record(3, "user", "Raise the limit."))
    watch.until_said(IMPORTED, count=2)
    append(file.with_name(f"{OTHER}.jsonl"), claude_record(1, "user", "A new session", session=OTHER))
    watch.until_said(OTHER)
    append(file, claude_record(4, "assistant", [{"type": "text", "text": "Done."}])[:50])
    append(file, claude_record(4, "assistant", [{"type": "text", "text": "Done."}])[50:])
    watch.until(lambda: len(sessions.get(IMPORTED).conversation()) == 4)
    code = watch.stop()
    rows = [line.split("\t") for line in watch.out.read_text().splitlines()]

    assert code == 130
    assert "Stopped watching. What was imported stays." in watch.err.read_text()
    assert "Traceback" not in watch.err.read_text()
    assert [row[0] for row in rows[:3]] == [IMPORTED, IMPORTED, f"claude-code.{OTHER}"]
    assert rows[1][2] == "1"
    assert sessions.get(IMPORTED).verify().problems == ()


def test_a_source_that_fails_is_tried_again_and_ends_nothing(
    watching_in: Callable[..., Watching], sessions: Sessions, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    watch = watching_in(str(claude_home))
    watch.until_said("Watching for more")
    with sessions.get(IMPORTED).turn("I am here", label="the other window"):
        append(file, claude_record(3, "user", "Raise the limit."))
        watch.until_said("the other window")
        time.sleep(0.4)
    said = watch.err.read_text().count("the other window")
    watch.until(lambda: sessions.search("raise the limit").hits != [])
    code = watch.stop()

    assert said == 1
    assert code == 130


def test_with_json_every_round_that_brought_something_is_a_line(
    watching_in: Callable[..., Watching], claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    watch = watching_in("--json", str(claude_home))
    watch.until_said("Watching for more")
    append(file, claude_record(3, "user", "Raise the limit."))
    watch.until(lambda: watch.out.read_text().count("\n") == 2)
    watch.stop()
    documents = [json.loads(line) for line in watch.out.read_text().splitlines()]

    assert [document["new_session_count"] for document in documents] == [1, 0]
    assert [document["added_count"] for document in documents] == [2, 1]


def test_a_program_that_begins_later_is_noticed(
    watching_in: Callable[..., Watching], sessions: Sessions, tmp_home: Path
) -> None:
    watch = watching_in()
    watch.until_said("Watching for more")
    folder = tmp_home / ".claude" / "projects" / "-home-ada"
    folder.mkdir(parents=True)
    append(folder / f"{CLAUDE_SESSION}.jsonl", claude_record(1, "user", "Hello"))
    watch.until_said(IMPORTED)
    watch.stop()

    assert sessions.get(IMPORTED).turn_count == 1


def test_runs_of_aider_and_sessions_of_codex_are_followed_as_well(
    watching_in: Callable[..., Watching], sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    folder = tmp_path / "link"
    folder.symlink_to("real")
    history, rollout = folder / ".aider.chat.history.md", folder / CODEX
    append(history, RUN.format(second=1))
    append(rollout, codex_lines())
    watch = watching_in(str(folder))
    watch.until_said("Watching for more")
    append(history, "> Applied edit to upload.py  \n")
    append(history, RUN.format(second=2))
    append(rollout, codex_lines().splitlines(keepends=True)[-1].replace("fail", "break"))
    watch.until(lambda: sessions.search("applied").hits != [] and sessions.search("break").hits != [])
    watch.until(lambda: sessions.list().total == 3)
    watch.stop()

    assert sorted(row.id.partition(".")[0] for row in sessions.list().items) == ["aider", "aider", "codex"]


def test_a_source_that_makes_no_sense_for_a_while_is_said_once_and_comes_in_when_it_does(
    watching_in: Callable[..., Watching], sessions: Sessions, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    whole = [conversation(BASE, "a2"), conversation(BASE, "a2", conversation_id="other")]
    file = exported(folder, whole[0])
    watch = watching_in(str(folder))
    watch.until_said("Watching for more")
    exported(folder, *whole)
    file.write_text(file.read_text()[:-20])
    watch.until_said("breaks off")
    time.sleep(1.5)
    said = watch.err.read_text().count("breaks off")
    exported(folder, *whole)
    watch.until(lambda: sessions.list().total == 2)
    watch.stop()

    assert said == 1


def test_a_change_is_not_lost_where_its_file_could_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is away for a moment, or that may not be opened, changes nothing in its files."""
    known, other, new = (tmp_path / f"00000000-0000-4000-8000-00000000000{number}.jsonl" for number in (1, 2, 3))
    for file in (known, other):
        append(file, claude_record(1, "user", "Hello"))
    roots = [import_._Root(tmp_path, None, is_named=True)]
    changes = Watch([tmp_path])
    found, unread = import_._found(roots, Report())
    followed = import_._Followed(roots, changes, found, unread)
    is_away = True

    def looked(path: Path, format: str | None = None) -> tuple[list[Found], list[Unread]]:
        return ([], [Unread(path, "away")]) if is_away else look(path, format)

    def changed() -> tuple[list[Path], list[str]]:
        report = Report()
        sources = followed.changed(report)
        return sorted(source.path for source in sources), [one["error"] for one in report.failures]

    monkeypatch.setattr(import_, "look", looked)
    append(known, claude_record(2, "user", "More"))
    rounds = [changed()]
    append(new, claude_record(1, "user", "Hello"))
    rounds.append(changed())
    is_away = False
    rounds += [changed() for _ in range(2 * import_.LOOKS_UNTIL_AGAIN)]

    assert len(found) == 2
    assert rounds[:2] == [([], ["away"])] * 2
    assert [one for one in rounds[2:] if one != ([], [])] == [([known, new], [])]


def test_a_last_line_that_is_being_written_is_said_once_and_comes_in_when_it_is_whole(
    watching_in: Callable[..., Watching], sessions: Sessions, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    line = claude_record(3, "user", "Raise the limit.")
    append(file, line[:40])
    watch = watching_in(str(claude_home))
    watch.until_said("Watching for more")
    said = watch.err.read_text().count("Not read yet")
    for end in range(41, 46):
        append(file, line[end - 1 : end])
        time.sleep(0.25)
    rounds = watch.err.read_text().partition("Watching for more")[2]
    append(file, line[45:])
    watch.until(lambda: sessions.search("raise the limit").hits != [])
    watch.stop()

    assert said == 1
    assert "Left out" not in rounds
    assert "Not read yet" not in rounds


def test_a_dry_run_cannot_watch(cli: CommandLine, claude_home: Path) -> None:
    answer = cli("import", str(claude_home), "--watch", "--dry-run")

    assert answer.code == 2


def test_a_look_finds_what_came_and_what_changed_and_forgets_what_went(tmp_path: Path) -> None:
    same, grown, gone = (tmp_path / name for name in ("same", "grown", "gone"))
    for file in (same, grown, gone):
        file.write_text("x")
    watch = Watch([tmp_path, tmp_path / "missing"])
    nothing = watch.changed()
    append(grown, "more")
    gone.unlink()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "new").write_text("x")
    changed = watch.changed()

    assert nothing == set()
    assert changed == {grown, tmp_path / "folder" / "new"}
    assert watch.changed() == set()


def test_more_files_than_can_be_watched_are_refused(
    cli: CommandLine, claude_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FILES_MAX", 0)
    answer = cli("import", str(claude_home), "--watch")

    assert answer.code == 1
    assert "files to watch" in answer.err
