"""`playhead import` with several programs: what is found, who is asked, and exports of our own."""

import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import Sessions
from playhead.formats import jsonl
from tests.cli.conftest import CLAUDE_SESSION, ESCAPES, CommandLine, claude_record
from tests.cli.terminals import in_a_terminal

AIDER = "\n# aider chat started at 2026-07-03 09:15:00\n\n\n#### Why does it fail?  \n\nIt times out.\n\n"
CLAUDE = f"claude-code.{CLAUDE_SESSION}"
QUESTION = "Import which?"


@pytest.fixture
def two_programs(claude_home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody with sessions of Claude Code and a history of aider."""
    history = tmp_path / ".aider.chat.history.md"
    history.write_text(AIDER, encoding="utf-8")
    return {"CLAUDE_CONFIG_DIR": str(claude_home), "AIDER_CHAT_HISTORY_FILE": str(history)}


def exported(*titles: str) -> bytes:
    """Return an export of our own, with a session of one event for each title."""
    out = io.BytesIO()
    with playhead.open("memory:") as sessions:
        for number, title in enumerate(titles):
            session = sessions.create(f"ours-{number:04}", title=title)
            jsonl.write_session(sessions, session.key, out)
    return out.getvalue()


def test_without_a_path_all_programs_are_read_and_counted_apart(
    cli: CommandLine, sessions: Sessions, two_programs: dict[str, str]
) -> None:
    answer = cli("import", **two_programs)
    document = cli("import", "--again", "--json", **two_programs).json
    formats = {one["format"]: one for one in document["formats"]}

    assert answer.code == 0
    assert "Found 1 session of Claude Code" in answer.err
    assert "aider: 1 session, 2 events added, 1 new." in answer.err
    assert sessions.list().total == 2
    assert sorted(formats) == ["aider", "claude-code"]
    assert {one["format"] for one in document["sessions"]} == {"aider", "claude-code"}
    assert formats["aider"]["source_count"] == 1


def test_only_one_program_is_read_where_a_format_is_named(
    cli: CommandLine, sessions: Sessions, two_programs: dict[str, str]
) -> None:
    cli("import", "--format", "aider", **two_programs)
    nothing = cli("import", "--format", "chatgpt", **two_programs)

    assert [row.id.partition(".")[0] for row in sessions.list().items] == ["aider"]
    assert (nothing.code, "name the files" in nothing.err) == (2, True)


@pytest.mark.parametrize(
    ("typed", "imported"),
    [("\n", 2), ("2\n", 1), ("1, 2\n", 2), ("n\n", 0), ("\x04", 0), ("7\n", 0)],
    ids=["enter", "one", "both", "none", "end of input", "no such number, and then none"],
)
def test_a_person_at_a_terminal_is_asked_which(
    sessions: Sessions, two_programs: dict[str, str], typed: str, imported: int
) -> None:
    lines = [(QUESTION, typed), *([(QUESTION, "n\n")] if typed == "7\n" else [])]
    answer = in_a_terminal("import", typed=lines, **two_programs)

    assert answer.code == 0
    assert "PROGRAM" in answer.shown
    assert "Claude Code" in answer.shown
    assert sessions.list().total == imported
    assert ("Nothing was imported." in answer.shown) is (imported == 0)


@pytest.mark.parametrize("option", ["--yes", "--json", "--dry-run"])
def test_nobody_is_asked_who_agreed_reads_json_or_writes_nothing(
    tmp_home: Path, two_programs: dict[str, str], option: str
) -> None:
    answer = in_a_terminal("import", option, typed=(), **two_programs)

    assert answer.code == 0
    assert QUESTION not in answer.shown


def test_ctrl_c_at_the_question_imports_nothing(sessions: Sessions, two_programs: dict[str, str]) -> None:
    answer = in_a_terminal("import", typed=[(QUESTION, "\x03")], **two_programs)

    assert answer.code == 130
    assert sessions.list().total == 0


def test_a_file_of_no_format_is_named_and_the_others_are_imported(
    cli: CommandLine, sessions: Sessions, two_programs: dict[str, str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("Nothing that anybody said.\n")
    answer = cli("import", str(notes), two_programs["AIDER_CHAT_HISTORY_FILE"])
    document = cli("import", str(notes), "--json").json

    assert answer.code == 1
    assert "Claude Code, Codex, aider, ChatGPT export" in answer.err
    assert answer.err.count(str(notes)) == 1
    assert sessions.list().total == 1
    assert [failure["source"] for failure in document["failures"]] == [str(notes)]


def test_a_zip_from_chatgpt_is_imported_and_a_bad_one_refused(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Why?"]}}
    nodes: dict[str, Any] = {"a": {"parent": None, "children": [], "message": message}}
    text = json.dumps([{"conversation_id": "c-1", "title": ESCAPES, "mapping": nodes, "current_node": "a"}])
    for name, entry in (("good.zip", "chat.html"), ("bad.zip", "../chat.html")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("conversations.json", text)
            archive.writestr(entry, "x")
    good = cli("import", str(tmp_path / "good.zip"))
    bad = cli("import", str(tmp_path / "bad.zip"))

    assert (good.code, good.rows[0][0]) == (0, "chatgpt.c-1")
    assert "\x1b" not in good.out + good.err
    assert (bad.code, bad.out) == (1, "")
    assert "leads out of the export" in bad.err
    assert sessions.get("chatgpt.c-1").turn_count == 1


def test_what_playhead_exported_comes_back_and_a_taken_id_is_left_alone(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    file = tmp_path / "backup.jsonl"
    file.write_bytes(exported("First", "Second"))
    first = cli("import", str(file), "--json").json
    hashes = sessions.store.tip(sessions.get("ours-0000").key).hash
    again = cli("import", str(file))
    merged = cli("import", str(file), "--on-conflict", "merge", "--json").json
    renamed = cli("import", str(file), "--on-conflict", "rename")

    assert [(one["id"], one["is_new"], one["counts"]) for one in first["sessions"]] == [
        ("ours-0000", True, None),
        ("ours-0001", True, None),
    ]
    assert again.code == 0
    assert "ours-0000 is there already and was left alone; --on-conflict merge or rename" in again.err
    assert (merged["sessions"], merged["unchanged_count"]) == ([], 2)
    assert [row[0] for row in renamed.rows] == ["ours-0000-2", "ours-0001-2"]
    assert sessions.store.tip(sessions.get("ours-0000-2").key).hash == hashes
    assert sessions.list().total == 4


def test_a_damaged_export_is_refused_and_salvaged_only_if_asked_for(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    file = tmp_path / "backup.jsonl"
    file.write_bytes(exported("First", "Second")[:-30])
    refused = cli("import", str(file))
    before = sessions.list().total
    salvaged = cli("import", str(file), "--salvage")

    assert (refused.code, before) == (1, 0)
    assert "salvage" in refused.err
    assert salvaged.code == 0
    assert sessions.list().total == 2


def test_every_real_file_of_these_formats_is_imported_with_the_counts_of_its_readme(
    cli: CommandLine, sessions: Sessions, shared_data: Path
) -> None:
    """P4, C-12."""
    paths = [str(shared_data / place) for place in ("home", "aider", "exports/chatgpt")]
    document = cli("import", *paths, "--json").json
    again = cli("import", *paths, "--json").json
    prompts: dict[str, int] = {}
    for one in document["sessions"]:
        prompts[one["format"]] = prompts.get(one["format"], 0) + one["counts"]["user_prompts"]
    sources = {one["format"]: one["source_count"] for one in document["formats"]}

    assert sources == {"claude-code": 10, "codex": 6, "aider": 103, "chatgpt": 2}
    assert prompts["aider"] == 135
    assert prompts["claude-code"] == 6 + 11 + 2 + 7 + 3 + 4 + 1 + 13 + 1 + 2
    assert prompts["codex"] == 2 + 2 + 6 + 10 + 2 + 3
    assert document["failures"] == []
    assert (again["added_count"], again["sessions"], again["unchanged_count"]) == (0, [], 71)
    assert document["silent_count"] == again["silent_count"] == 50
    assert cli("verify", "--all").code == 0


def test_an_export_goes_through_a_pipe_into_another_store_event_for_event(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path
) -> None:
    """P7, C-11: equal hashes, in an empty store."""
    url = f"bundles:{tmp_path}/elsewhere"
    exported = cli("export", upload)
    taken = cli("--store", url, "import", "-", "--json", text=exported.out)
    with playhead.open(url) as others:
        copied = others.verify(upload)

    assert taken.code == 0
    assert copied.head_hash == sessions.verify(upload).head_hash
    assert cli("--store", url, "import", "-", text=exported.out[: len(exported.out) // 2]).code == 1
    assert cli("import", "-", "elsewhere").code == 2


def test_a_session_in_the_trash_does_not_come_back_by_an_import(
    cli: CommandLine, sessions: Sessions, claude_home: Path
) -> None:
    def imported(*options: str) -> Any:
        return cli("import", "--json", *options, CLAUDE_CONFIG_DIR=str(claude_home)).json

    id = imported()["sessions"][0]["id"]
    sessions.trash(id)
    with next(claude_home.glob("projects/*/*.jsonl")).open("a", encoding="utf-8") as file:
        file.write(claude_record(3, "user", "And on Windows?"))
    left_alone, again = imported(), imported("--again")

    assert left_alone["purged"] == [id]
    assert [one["id"] for one in again["sessions"]] == [id]


def test_runs_in_which_nobody_said_anything_are_counted(cli: CommandLine, tmp_path: Path) -> None:
    history = tmp_path / "history.md"
    history.write_text(AIDER + "\n# aider chat started at 2026-07-03 10:00:00\n\n" * 2, encoding="utf-8")
    answer = cli("import", str(history))
    again = cli("import", str(history))
    document = cli("import", str(history), "--again", "--json").json

    assert "2 sessions were passed over: nobody said anything in them." in answer.err
    assert again.err.splitlines()[0] == "Nothing new in 1 session."
    assert (document["silent_count"], document["formats"][0]["silent_count"]) == (2, 2)


def test_bytes_that_are_no_history_are_none_under_any_name_of_their_format(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    noise = bytes(number * 7919 % 256 for number in range(5000))
    for name in ("noise.md", ".aider.chat.history.md"):
        (tmp_path / name).write_bytes(noise)
        answer = cli("import", str(tmp_path / name), "--format", "aider")

        assert (answer.code, answer.out) == (1, "")
        assert "is no history of aider" in answer.err
    assert sessions.list().total == 0


@pytest.mark.parametrize("arguments", [("-",), ("FIFO",), ("--format", "jsonl", "FILE")])
def test_what_is_no_export_of_ours_is_told_so_in_our_own_words(
    cli: CommandLine, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    text = claude_record(1, "user", "Hello")
    file, fifo = tmp_path / "session.jsonl", tmp_path / "fifo"
    file.write_text(text, encoding="utf-8")
    with fed(fifo, text.encode()):
        named = [str({"FIFO": fifo, "FILE": file}.get(one, one)) for one in arguments]
        answer = cli("import", *named, text=text)

    assert (answer.code, answer.out) == (1, "")
    assert "is no Playhead export" in answer.err
    assert "$" not in answer.err
    assert ("name the file" in answer.err) is (arguments[-1] != "FILE")


def test_an_export_is_read_from_a_named_pipe_and_nothing_else_is(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    with fed(fifo, exported("First")):
        answer = cli("import", str(fifo))
    other = cli("import", str(fifo), "--format", "codex")
    watched = cli("import", str(fifo), "--watch")
    device = cli("import", os.devnull)

    assert (answer.code, [row[0] for row in answer.rows]) == (0, ["ours-0000"])
    assert (other.code, "is a pipe" in other.err) == (1, True)
    assert (watched.code, "cannot be watched" in watched.err) == (2, True)
    assert (device.code, "is neither a file nor a folder" in device.err) == (1, True)


@contextmanager
def fed(fifo: Path, data: bytes) -> Iterator[None]:
    """A named pipe that somebody writes to, for whoever opens it."""

    def write() -> None:
        with suppress(BrokenPipeError):
            fifo.write_bytes(data)

    os.mkfifo(fifo)
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        # Where nobody opened it, this lets the writer go.
        os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))
        writer.join(5)


def test_a_session_with_a_hostile_id_gets_a_plain_one_and_says_what_it_was_called(
    cli: CommandLine, sessions: Sessions, tmp_path: Path
) -> None:
    stated = f"../../../etc/pa{ESCAPES}"
    file = tmp_path / "session.jsonl"
    file.write_text(claude_record(1, "user", "Hello", session=stated), encoding="utf-8")
    id = cli("import", str(file), "--json").json["sessions"][0]["id"]
    again = cli("import", str(file), "--json").json
    (started,) = (event for event in sessions.get(id).events() if event.kind == "session_started")

    assert re.fullmatch(r"claude-code\.[a-zA-Z0-9-]{1,60}", id)
    assert started.body["extra"] == {"import": {"id": stated}}
    assert (again["added_count"], again["unchanged_count"]) == (0, 1)
