"""What wrote a file shows by what is in it, and a folder may hold the sessions of several programs."""

import io
import json
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any, get_args

import pytest

import playhead
from playhead.cli.import_ import FormatName
from playhead.formats import jsonl, registry
from playhead.formats.claude_code.source import HEAD_BYTES
from tests.cli.conftest import CLAUDE_SESSION, claude_record

CODEX = "rollout-2026-06-18T00-52-03-019ed836-b1da-78f1-8a0c-e598363d10f4.jsonl"


def codex_lines() -> str:
    meta = {"id": "019ed836-b1da-78f1-8a0c-e598363d10f4", "timestamp": "2026-06-18T00:52:03Z", "cwd": "/home/ada"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why does it fail?"}]}
    records = [("session_meta", meta), ("response_item", said)]
    return "".join(
        json.dumps({"timestamp": "2026-06-18T00:52:03Z", "type": type, "payload": payload}) + "\n"
        for type, payload in records
    )


def chatgpt_text() -> str:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Why does it fail?"]}}
    nodes: dict[str, Any] = {"a": {"parent": None, "children": [], "message": message}}
    return json.dumps([{"conversation_id": "c", "mapping": nodes, "current_node": "a"}])


AIDER = "# aider chat started at 2026-07-03 09:15:00\n\n\n#### Why does it fail?  \n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """One file of each format in one folder, under names that say nothing."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    texts = {
        "claude-code": claude_record(1, "user", "Why does it fail?"),
        "codex": codex_lines(),
        "aider": AIDER,
        "chatgpt": chatgpt_text(),
    }
    found = {name: folder / f"{number}.txt" for number, name in enumerate([*texts, "jsonl"])}
    for name, text in texts.items():
        found[name].write_text(text, encoding="utf-8")
    with playhead.open("memory:") as sessions, found["jsonl"].open("wb") as out:
        session = sessions.create("ours")
        jsonl.write_session(sessions, session.key, out)
    return found


@pytest.mark.parametrize("name", registry.FORMATS)
def test_a_file_is_told_by_its_content_and_by_no_other_format(files: dict[str, Path], name: str) -> None:
    found, unread = registry.look(files[name])
    recognised = [one.name for one in registry.FORMATS.values() if one.recognised(files[name])]

    assert [one.format for one in found] == [name]
    assert recognised == [name]
    assert unread == []


@pytest.mark.parametrize("data", [b"\x00" * 5000, b"# Notes\n\nText.\n", b'{"a": 1}\n', b"PK no zip"])
def test_a_file_of_no_format_is_named_with_what_is_read_here(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    found, (unread,) = registry.look(file)

    assert found == []
    assert str(file) in unread.error
    assert "Claude Code, Codex, aider, ChatGPT export, Playhead JSON Lines" in unread.error


def zipped(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_", "."), data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (zipped(conversations_json=b"[]" * 99)[:-30], "is a torn zip file"),
        (zipped(notes_txt=b"Notes"), "is a zip file without conversations.json"),
        (zipped(conversations_json=b'[{"a": 1}]'), "'conversations.json' in it holds no conversations"),
        (zipped(conversations_json=b" " * 40_000_000), "'conversations.json' unpacks to 40000000 bytes"),
    ],
    ids=["empty", "torn", "another zip", "other conversations", "a bomb"],
)
def test_a_file_that_cannot_be_an_export_is_named_with_what_is_wrong_with_it(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    file = tmp_path / "export.zip"
    file.write_bytes(data)
    found, (unread,) = registry.look(file)

    assert found == []
    assert str(file) in unread.error
    assert reason in unread.error


def test_a_folder_with_sessions_of_several_programs_has_all_of_them(tmp_path: Path, files: dict[str, Path]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {
        "claude-code": f"{CLAUDE_SESSION}.jsonl",
        "codex": CODEX,
        "aider": ".aider.chat.history.md",
        "chatgpt": "conversations.json",
        "jsonl": "backup.jsonl",
    }
    for name, file in files.items():
        shutil.copy(file, folder / names[name])
    found, unread = registry.look(folder)
    only = [one.format for one in registry.look(folder, "aider")[0]]

    assert sorted(one.format for one in found) == sorted(names)
    assert unread == []
    assert only == ["aider"]


def test_a_folder_laid_out_like_a_home_is_looked_through(tmp_path: Path, files: dict[str, Path]) -> None:
    claude = tmp_path / ".claude" / "projects" / "-home-ada" / f"{CLAUDE_SESSION}.jsonl"
    codex = tmp_path / ".codex" / "sessions" / "2026" / "06" / "18" / CODEX
    for file, name in ((claude, "claude-code"), (codex, "codex")):
        file.parent.mkdir(parents=True)
        shutil.copy(files[name], file)
    (tmp_path / "mixed").rename(tmp_path / ".mixed")

    assert sorted(one.format for one in registry.look(tmp_path)[0]) == ["claude-code", "codex"]


def test_a_folder_is_looked_through_for_files_that_lie_anywhere_under_any_name(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    folder = tmp_path / "backup"
    names = {
        "claude-code": "h/talk about uploads.jsonl",
        "codex": "n/m/o/old.jsonl",
        "aider": "n/m/.aider.chat.history.md",
        "chatgpt": "z/n/m/conversations.json",
        "jsonl": "z/ours.jsonl",
    }
    for name, place in names.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(files[name], folder / place)
    (folder / "z" / "good.zip").write_bytes(zipped(conversations_json=chatgpt_text().encode()))
    (folder / "h" / "agent-1.jsonl").write_text(claude_record(1, "user", "A task"), encoding="utf-8")
    (folder / "h" / "package.json").write_text("{}")
    (folder / "h" / "empty.jsonl").touch()
    for number in range(5):
        (folder / "h" / f"measured-{number}.jsonl").write_text('{"at": 1}\n')
    found, (other,) = registry.look(folder)
    twice = registry.look(folder)[0]
    placed, _ = registry.look(folder, is_searched=False)

    assert sorted((one.format, str(one.path.relative_to(folder))) for one in found) == sorted(
        [*names.items(), ("chatgpt", "z/good.zip")]
    )
    assert other.is_other
    assert other.error.startswith(f"5 files in {folder} are of no format that is read here: h/measured-0.jsonl, ")
    assert [one.key for one in twice] == [one.key for one in found]
    assert placed == []


def test_a_file_that_cannot_be_read_hides_none_that_lies_beside_it(tmp_path: Path, files: dict[str, Path]) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "work" / name).mkdir(parents=True)
        shutil.copy(files["aider"], tmp_path / "work" / name / ".aider.chat.history.md")
    (tmp_path / "work" / "b" / ".aider.chat.history.md").write_bytes(b"\0" * 100)
    found, unread = registry.look(tmp_path / "work")

    assert [one.path.parent.name for one in found] == ["a", "c"]
    assert [one.path.name for one in unread if not one.is_other] == ["work"]
    assert "no history of aider" in unread[0].error


def test_of_two_exports_in_a_folder_each_is_read(tmp_path: Path) -> None:
    for name in ("2026-01.zip", "2026-02.zip"):
        (tmp_path / name).write_bytes(zipped(conversations_json=chatgpt_text().encode()))

    assert [one.path.name for one in registry.look(tmp_path)[0]] == ["2026-01.zip", "2026-02.zip"]


def test_a_thread_that_lies_there_twice_is_read_once(tmp_path: Path, files: dict[str, Path]) -> None:
    for folder in ("sessions/2026", "archived_sessions", "elsewhere"):
        (tmp_path / "codex" / folder).mkdir(parents=True)
        shutil.copy(files["codex"], tmp_path / "codex" / folder / CODEX)

    assert [one.format for one in registry.look(tmp_path / "codex")[0]] == ["codex"]


@pytest.mark.parametrize("size", [9_000_000, 70_000_000])
def test_a_session_whose_first_record_is_large_is_recognised(tmp_path: Path, size: int) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(claude_record(1, "user", "x" * size) + claude_record(2, "user", "Hello"), encoding="utf-8")

    assert [one.format for one in registry.look(file)[0]] == ["claude-code"]


def test_a_large_export_on_one_line_is_told_and_read_in_a_short_time(tmp_path: Path) -> None:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Why does it fail? " * 5]}}
    nodes: dict[str, Any] = {
        f"node-{number}": {"parent": f"node-{number - 1}" if number else None, "children": [], "message": message}
        for number in range(20_000)
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([{"conversation_id": "c", "mapping": nodes, "current_node": "node-19999"}]))
    began = time.process_time()
    told = [registry.look(file)[0][0].format, *(one.name for one in registry.FORMATS.values() if one.recognised(file))]
    took_s = time.process_time() - began

    assert file.stat().st_size > HEAD_BYTES
    assert told == ["chatgpt", "chatgpt"]
    assert took_s < 4


def test_places_follow_the_environment(tmp_path: Path) -> None:
    environment = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "AIDER_CHAT_HISTORY_FILE": "/a.md"}
    named = registry.places(environment, tmp_path, tmp_path)
    usual = registry.places({}, tmp_path, tmp_path)

    assert named["claude-code"] == [Path("/c/projects")]
    assert named["codex"][0].is_relative_to("/x")
    assert named["aider"] == [Path("/a.md")]
    assert all(path.is_relative_to(tmp_path) for paths in usual.values() for path in paths)
    assert set(usual) == {"claude-code", "codex", "aider"}


def test_the_command_line_offers_every_format() -> None:
    assert get_args(FormatName) == ("auto", *registry.FORMATS)


def test_every_real_file_is_told_from_the_others(shared_data: Path) -> None:
    places = {
        "claude-code": shared_data / "home" / ".claude",
        "codex": shared_data / "home" / ".codex",
        "aider": shared_data / "aider",
        "chatgpt": shared_data / "exports" / "chatgpt",
    }
    files = {file: name for name, place in places.items() for file in place.rglob("*") if file.is_file()}
    told = {file: [one.name for one in registry.FORMATS.values() if one.recognised(file)] for file in files}
    others = [file for file in shared_data.rglob("*") if file.is_file() and file not in files and file.suffix != ".py"]
    mistaken = [file for file in others if any(one.recognised(file) for one in registry.FORMATS.values())]

    assert {file: names for file, names in told.items() if names != [files[file]]} == {}
    assert len(files) == 18
    assert mistaken == []
