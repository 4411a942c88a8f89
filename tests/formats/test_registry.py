"""What wrote a file shows by what is in it, and a folder may hold the sessions of several programs."""

import json
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest

import playhead
from playhead.cli.import_ import FormatName
from playhead.formats import jsonl, registry
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


@pytest.mark.parametrize("data", [b"", b"\x00" * 5000, b"# Notes\n\nText.\n", b'{"a": 1}\n', b"PK\x03\x04 no zip"])
def test_a_file_of_no_format_is_named_with_what_is_read_here(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    found, (unread,) = registry.look(file)

    assert found == []
    assert str(file) in unread.error
    assert "Claude Code, Codex, aider, ChatGPT export, Playhead JSON Lines" in unread.error


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
