"""A store on a full disk, or that may not be written: what reads works, and nothing is called damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playhead import Sessions
from tests.cli.conftest import Answered, CommandLine
from tests.cli.json_schema import problems
from tests.conftest import PROJECT
from tests.promises.hindrances import bound_by_modes, full_disk

READING = (
    ("show", "@last"),
    ("timeline", "@last"),
    ("tail", "@last"),
    ("search", "upload"),
    ("stats",),
    ("verify", "--all"),
    ("db", "check"),
    ("db", "shell", "@last", "--sql", "SELECT count(*) FROM log"),
    ("export", "@last"),
    ("index",),
)


@pytest.fixture
def place(cli: CommandLine, sessions: Sessions, upload: str, store_url: str) -> Path:
    """The folder of a store with one session, indexed and open nowhere."""
    sessions.search("upload")
    sessions.close()
    return Path(store_url.removeprefix("bundles:"))


def _read_only(place: Path) -> None:
    for path in place.iterdir():
        path.chmod(0o400)
    place.chmod(0o500)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_what_reads_says_the_same_of_a_store_that_cannot_be_written(
    cli: CommandLine, place: Path, arguments: tuple[str, ...]
) -> None:
    before = cli(*arguments)
    with bound_by_modes():
        _read_only(place)
        answer = cli(*arguments)
        place.chmod(0o700)

    assert before.code == 0 and before.out
    assert (answer.code, _facts(answer)) == (0, _facts(before))


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_what_reads_says_the_same_on_a_full_disk(cli: CommandLine, place: Path, arguments: tuple[str, ...]) -> None:
    before = cli(*arguments)
    names = sorted(path.name for path in place.iterdir())
    with full_disk():
        answer = cli(*arguments)

    assert (answer.code, _facts(answer)) == (0, _facts(before))
    assert sorted(path.name for path in place.iterdir()) == names


def test_lists_lose_no_session(cli: CommandLine, place: Path, upload: str) -> None:
    with full_disk():
        full = cli("list")
    with bound_by_modes():
        _read_only(place)
        read_only = cli("list")
        place.chmod(0o700)

    assert [(answer.code, answer.rows[0][0]) for answer in (full, read_only)] == [(0, upload)] * 2
    assert "unreadable" not in full.out + read_only.out


def test_what_writes_says_what_is_in_the_way(cli: CommandLine, place: Path, upload: str) -> None:
    writing = (("title", upload, "Another"), ("resume", upload), ("fork", upload))
    with full_disk():
        full = [cli(*arguments) for arguments in writing]
    with bound_by_modes():
        _read_only(place)
        refused = [cli(*arguments) for arguments in (*writing, ("rm", upload))]
        place.chmod(0o700)

    assert [(answer.code, "no space left" in answer.err) for answer in full] == [(1, True)] * 3
    assert [answer.code for answer in refused] == [1] * 4
    assert all("cannot be written" in one.err or "check who owns it" in one.err for one in refused)


def test_a_file_that_the_system_does_not_open_is_unread_and_not_damaged(
    cli: CommandLine, place: Path, upload: str
) -> None:
    """S12."""
    file = next(path for path in place.iterdir() if path.name.startswith(upload))
    with bound_by_modes():
        file.chmod(0o000)
        checked, checked_json = cli("db", "check"), cli("db", "check", "--json")
        verified, verified_json = cli("verify", "--all"), cli("verify", "--all", "--json")
        file.chmod(0o600)

    assert [one.code for one in (checked, checked_json, verified, verified_json)] == [1] * 4
    assert [row[1] for row in checked.rows + verified.rows] == ["unread"] * 2
    assert checked_json.json["files"][0]["is_unread"] and verified_json.json["sessions"][0]["is_unread"]
    assert "could not be read" in checked.err and "could not be read" in verified.err
    assert _unlike_schema("db", checked_json.json) == _unlike_schema("verify", verified_json.json) == []


def test_room_is_made_on_a_full_disk(cli: CommandLine, place: Path, upload: str) -> None:
    with full_disk():
        trashed = cli("rm", upload)
        listed = cli("list")
        emptied = cli("rm", "--empty-trash", "--yes")
    left = [path.name for path in place.rglob("*") if upload in path.name]

    assert (trashed.code, listed.code, listed.out) == (0, 0, "")
    assert emptied.code == 1 and "is removed, but there is no room to note that" in emptied.err
    assert left == []


def test_a_disk_without_room_is_what_the_doctor_names(
    cli: CommandLine, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.features.doctor.examining._free_bytes", lambda place: 0)
    with full_disk():
        answer = cli("doctor")

    assert answer.code == 1
    assert [(row[0], row[1]) for row in answer.rows] == [("fault", "disk")]
    assert "--fix" not in answer.err


def _facts(answer: Answered) -> list[list[str]]:
    """Return the rows without the bytes on disk, where what takes part for the moment counts as well."""
    return [row for row in answer.rows if row[0] != "bytes on disk"]


def _unlike_schema(name: str, document: Any) -> list[str]:
    schema = PROJECT / "docs" / "schemas" / f"{name}.json"
    return problems(document, json.loads(schema.read_text(encoding="utf-8")))
