"""`playhead import`: what another program left, once, with a report of what could not be read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead import Sessions
from playhead.errors import StoreFull
from tests.cli.conftest import CLAUDE_SESSION, CommandLine, claude_record
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

IMPORTED = f"claude-code.{CLAUDE_SESSION}"


def test_without_a_path_the_persons_own_folder_is_read(cli: CommandLine, sessions: Sessions, claude_home: Path) -> None:
    answer = cli("import", CLAUDE_CONFIG_DIR=str(claude_home))
    messages = [(message.role, message.text) for message in sessions.get(IMPORTED).conversation()]

    assert answer.code == 0
    assert [row[0] for row in answer.rows] == [IMPORTED]
    assert "Left out: " in answer.err
    assert "line 2, byte " in answer.err
    assert "1 of them new." in answer.err
    assert messages == [("user", "Why does test_upload fail?"), ("assistant", "It times out.")]


def test_a_second_import_finds_nothing_new(cli: CommandLine, sessions: Sessions, claude_home: Path) -> None:
    cli("import", str(claude_home))
    before = sessions.get(IMPORTED).seq
    again = cli("import", str(claude_home))

    assert (again.code, again.out) == (0, "")
    assert again.err == "Nothing new in 1 session.\n"
    assert sessions.get(IMPORTED).seq == before


def test_what_was_written_since_is_added_and_nothing_twice(
    cli: CommandLine, sessions: Sessions, claude_home: Path
) -> None:
    cli("import", str(claude_home))
    (file,) = claude_home.rglob("*.jsonl")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(claude_record(3, "user", "Raise the limit."))
    document = cli("import", str(claude_home), "--json").json
    prompts = [message.text for message in sessions.get(IMPORTED).conversation() if message.role == "user"]

    assert document["added_count"] > 0
    assert document["new_session_count"] == 0
    assert prompts == ["Why does test_upload fail?", "Raise the limit."]


def test_a_dry_run_reads_everything_and_writes_nothing(cli: CommandLine, sessions: Sessions, claude_home: Path) -> None:
    document = cli("import", str(claude_home), "--dry-run", "--json").json
    before = sessions.list().total
    after = cli("import", str(claude_home), "--json").json

    assert before == 0
    assert document["is_dry_run"] is True
    assert document["sessions"][0]["counts"] == after["sessions"][0]["counts"]
    assert document["added_count"] == after["added_count"]


def test_a_session_that_was_deleted_here_comes_back_whole_and_only_if_asked_for(
    cli: CommandLine, sessions: Sessions, claude_home: Path
) -> None:
    cli("import", str(claude_home))
    sessions.delete(IMPORTED)
    (file,) = claude_home.rglob("*.jsonl")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(claude_record(3, "user", "Raise the limit."))
    unasked = cli("import", str(claude_home))
    document = cli("import", str(claude_home), "--json").json
    total = sessions.list().total
    cli("import", str(claude_home), "--again")

    assert f"{IMPORTED} was deleted here and stays so" in unasked.err
    assert document["purged"] == [IMPORTED]
    assert total == 0
    assert len(sessions.get(IMPORTED).conversation()) == 3


def test_left_out_stretches_end_with_6_only_where_one_is_strict(cli: CommandLine, claude_home: Path) -> None:
    assert cli("import", str(claude_home), "--dry-run").code == 0
    assert cli("import", str(claude_home), "--dry-run", "--strict").code == 6


@pytest.mark.parametrize("place", ["missing.jsonl", "missing-folder"])
def test_a_path_that_is_not_there_is_a_failure_that_names_it(cli: CommandLine, tmp_path: Path, place: str) -> None:
    answer = cli("import", str(tmp_path / place))

    assert (answer.code, answer.out) == (1, "")
    assert place in answer.err


def test_a_machine_without_the_program_says_where_it_looked(cli: CommandLine, tmp_home: Path) -> None:
    answer = cli("import")

    assert answer.code == 1
    assert str(tmp_home / ".claude") in answer.err


def test_a_folder_without_a_session_is_a_failure_that_names_it_and_stops_no_other(
    cli: CommandLine, claude_home: Path, tmp_path: Path
) -> None:
    empty, other = tmp_path / "empty", tmp_path / "other"
    for folder in (empty, other):
        folder.mkdir()
    (other / "measured.jsonl").write_text('{"at": 1}\n')
    alone = cli("import", str(empty))
    both = cli("import", str(other), str(claude_home))

    assert (alone.code, alone.out) == (1, "")
    assert alone.err.splitlines() == [f"error: there are no sessions in {empty}"]
    assert both.code == 1
    assert [row[0] for row in both.rows] == [IMPORTED]
    assert f"measured.jsonl in {other} is of no format that is read here" in both.err


def test_a_source_that_cannot_be_read_does_not_stop_the_others(
    cli: CommandLine, sessions: Sessions, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    other = file.with_name("00000000-0000-4000-8000-00000000000a.jsonl")
    other.write_bytes(b"\x00\x01 this is no session\n" * 10)
    answer = cli("import", str(claude_home))
    document = cli("import", str(claude_home), "--json").json

    assert answer.code == 1
    assert str(other) in answer.err
    assert sessions.get(IMPORTED).turn_count == 1
    assert [Path(failure["source"]) for failure in document["failures"]] == [other]


def test_a_session_in_use_is_left_for_the_next_time(cli: CommandLine, sessions: Sessions, claude_home: Path) -> None:
    cli("import", str(claude_home))
    (file,) = claude_home.rglob("*.jsonl")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(claude_record(3, "user", "Raise the limit."))
    with sessions.get(IMPORTED).turn("I am here", label="the other window"):
        busy = cli("import", str(claude_home))
    free = cli("import", str(claude_home))

    assert busy.code == 1
    assert "the other window" in busy.err
    assert free.code == 0
    assert free.rows[0][0] == IMPORTED


def test_an_interrupted_import_keeps_what_it_wrote_and_goes_on_from_there(
    cli: CommandLine, sessions: Sessions, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    for number in range(40):
        id = f"{number:08x}-0000-4000-8000-000000000000"
        lines = [claude_record(one, "user", f"Prompt {one}", session=id) for one in range(1, 60)]
        file.with_name(f"{id}.jsonl").write_text("".join(lines), encoding="utf-8")
    program = (
        "import os, signal, sys\n"
        "from playhead.session import Sessions\n"
        "ingest, done = Sessions.ingest, []\n"
        "def interrupted_at_the_tenth(*given, **named):\n"
        "    done.append(ingest(*given, **named))\n"
        "    if len(done) == 10:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return done[-1]\n"
        "Sessions.ingest = interrupted_at_the_tenth\n"
        "from playhead.cli.main import main\n"
        "sys.exit(main())\n"
    )
    stopped = subprocess.run(
        [sys.executable, "-c", program, "import", str(claude_home)], cwd=PROJECT, capture_output=True, text=True
    )
    kept = sessions.list(limit=100).total
    document = cli("import", str(claude_home), "--json").json

    assert stopped.returncode == 130
    assert "Interrupted. What was imported stays; run it again to go on from there. 3" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert kept == 10
    assert document["is_interrupted"] is False
    assert sessions.list(limit=100).total == 41


def test_real_sessions_are_imported_searched_and_shown(cli: CommandLine, sessions: Sessions, shared_data: Path) -> None:
    """P4."""
    document = cli("import", str(shared_data / "home" / ".claude"), "--json").json
    again = cli("import", str(shared_data / "home" / ".claude"))
    shown = [cli("show", row["id"]) for row in document["sessions"]]
    verified = cli("verify", "--all")

    assert len(document["sessions"]) == 10
    assert document["failures"] == []
    assert "Nothing new" in again.err
    assert [answer.code for answer in shown] == [0] * 10
    assert verified.code == 0
    assert cli("search", "merge issues").rows != []


def test_progress_is_shown_at_a_terminal_and_nowhere_else(cli: CommandLine, claude_home: Path) -> None:
    answer = cli("import", str(claude_home), "--dry-run")
    shown = in_a_terminal("import", str(claude_home), "--dry-run").shown
    quiet = in_a_terminal("import", str(claude_home), "--dry-run", "--quiet").shown

    assert "Reading" not in answer.out + answer.err + quiet
    assert "Reading 1 of 1" in shown


def test_what_stands_in_the_way_of_all_sources_ends_it_behind_a_report_of_what_came_in(
    cli: CommandLine, sessions: Sessions, claude_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    for number in range(4):
        id = f"{number:08x}-0000-4000-8000-000000000000"
        file.with_name(f"{id}.jsonl").write_text(claude_record(1, "user", "Hello", session=id), encoding="utf-8")
    ingest = Sessions.ingest
    done: list[object] = []

    def full_at_the_third(store: Sessions, *given: Any, **named: Any) -> Any:
        if len(done) % 3 == 2:
            raise StoreFull("sessions: no space left; nothing was written, free some and retry")
        done.append(ingest(store, *given, **named))
        return done[-1]

    monkeypatch.setattr(Sessions, "ingest", full_at_the_third)
    answer = cli("import", str(claude_home))
    in_store = sessions.list().total
    document = cli("import", str(claude_home), "--json")
    monkeypatch.setattr(Sessions, "ingest", ingest)
    after = cli("import", str(claude_home))

    assert (answer.code, len(answer.rows), in_store) == (1, 2, 2)
    assert answer.err.splitlines()[-3:] == [
        "Added 2 events to 2 sessions, 2 of them new.",
        "Stopped. What was imported stays; run it again to go on from there. 3 sessions of 5 to go.",
        "error: sessions: no space left; nothing was written, free some and retry",
    ]
    assert document.code == 1
    assert (document.json["unchanged_count"], document.json["unreached_count"]) == (2, 3)
    assert "no space left" in document.json["stopped"]
    assert (after.code, sessions.list().total) == (0, 5)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type":"user","sessionId":"s","message":' + '{"x":' * 5000 + "1" + "}" * 5000 + "}", "nested too deeply"),
        ('{"type":"user","sessionId":"s","message":"torn', "unterminated string"),
    ],
    ids=["nested without end", "torn"],
)
@pytest.mark.parametrize("options", [(), ("--format", "claude-code")], ids=["told by its content", "named"])
def test_a_session_of_which_nothing_can_be_read_is_named_with_the_line_and_the_reason(
    cli: CommandLine, tmp_path: Path, line: str, reason: str, options: tuple[str, ...]
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(line + "\n")
    answer = cli("import", str(file), *options)

    assert (answer.code, answer.out) == (1, "")
    assert len(answer.err.splitlines()) == 1
    assert f"{file} holds no record of Claude Code: line 1, byte 0, " in answer.err
    assert reason in answer.err


def test_the_place_for_a_path_is_not_left_empty(cli: CommandLine, claude_home: Path) -> None:
    answer = cli("import", "", str(claude_home))

    assert (answer.code, answer.out) == (2, "")
    assert "empty" in answer.err


def test_a_last_line_that_is_being_written_is_told_from_one_that_is_damaged(
    cli: CommandLine, claude_home: Path
) -> None:
    (file,) = claude_home.rglob("*.jsonl")
    with file.open("a", encoding="utf-8") as stream:
        stream.write(claude_record(3, "user", "Raise the limit.")[:60])
    answer = cli("import", str(claude_home))
    skipped = cli("import", str(claude_home), "--again", "--json").json["sessions"]
    notes = [line for line in answer.err.splitlines() if str(file) in line]

    assert [note.partition(":")[0] for note in notes] == ["Left out", "Not read yet"]
    assert notes[1].endswith("60 bytes: the last line has no end; the next import looks at it again.")
    assert "1 stretch was left out." in answer.err
    assert [one["is_pending"] for session in skipped for one in session["skipped"]] == [False, True]
