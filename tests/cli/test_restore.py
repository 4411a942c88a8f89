"""`playhead restore`: what is in the trash, and bringing it back under a name that is free."""

import json

import jsonschema
import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

SCHEMA = json.loads((PROJECT / "docs" / "schemas" / "restore.json").read_text(encoding="utf-8"))


@pytest.fixture
def twice(cli: CommandLine, sessions: Sessions, upload: str) -> list[str]:
    """A session that was trashed, and another one of its id that was too; their trash ids, the older one first."""
    sessions.create("other-0001", title="Other").close()
    first = sessions.trash(upload)
    sessions.create(upload, title="Begun again").close()
    return [first, sessions.trash(upload)]


def test_without_an_argument_the_trash_is_listed_newest_first(cli: CommandLine, twice: list[str]) -> None:
    answer, same = cli("restore"), cli("restore", "--list")

    assert [row[:4] for row in answer.rows] == [
        [twice[1], "upload-0001", "Begun again", "2"],
        [twice[0], "upload-0001", "Flaky upload test", answer.rows[1][3]],
    ]
    assert same.out == answer.out
    assert answer.rows[0][5].startswith("2026-08-01T")


def test_an_empty_trash_says_so(cli: CommandLine, upload: str) -> None:
    answer = cli("restore")

    assert (answer.code, answer.out) == (0, "")
    assert "empty" in answer.err
    assert cli("restore", "--json").json == {"trash": []}


@pytest.mark.parametrize("name", ["@last", "other-0001", "othe", "default/default/other-0001"])
def test_a_session_comes_back_by_any_of_its_names(cli: CommandLine, sessions: Sessions, upload: str, name: str) -> None:
    sessions.create("other-0001", title="Other").close()
    sessions.trash(upload)
    trash_id = sessions.trash("other-0001")
    answer = cli("restore", name)
    sessions.trash("other-0001")

    assert (answer.code, answer.out) == (0, "other-0001\n")
    assert trash_id not in [one.trash_id for one in sessions.trashed()]
    assert [one.id for one in sessions.trashed()] == ["other-0001", upload]


def test_the_last_that_was_trashed_is_what_comes_back_first(cli: CommandLine, twice: list[str]) -> None:
    cli("restore", "@last")

    assert cli("show", "upload-0001", "--json").json["session"]["title"] == "Begun again"
    assert [row[0] for row in cli("restore").rows] == [twice[0]]


def test_an_id_that_is_in_the_trash_twice_is_ambiguous(cli: CommandLine, twice: list[str]) -> None:
    answer = cli("restore", "upload-0001")

    assert (answer.code, answer.out) == (5, "")
    assert all(trash_id in answer.err for trash_id in twice)
    assert len(cli("restore").rows) == 2


@pytest.mark.parametrize("name", ["nobody", "upl", "Begun again", "../x", "@-2", ""])
def test_what_is_not_in_the_trash_is_not_found(cli: CommandLine, twice: list[str], name: str) -> None:
    assert cli("restore", name).code == 3
    assert len(cli("restore").rows) == 2


def test_an_id_that_is_taken_needs_another_one(cli: CommandLine, sessions: Sessions, twice: list[str]) -> None:
    sessions.create("upload-0001", title="Third").close()
    refused = cli("restore", twice[0])
    answer = cli("restore", twice[0], "--as", "upload-old")

    assert (refused.code, refused.out) == (1, "")
    assert "--as" in refused.err
    assert answer.out == "upload-old\n"
    assert sessions.get("upload-old").title == "Flaky upload test"
    assert sessions.get("upload-0001").title == "Third"


def test_several_come_back_in_one_call_or_none_does(cli: CommandLine, sessions: Sessions, twice: list[str]) -> None:
    sessions.trash("other-0001")
    refusals = [
        cli("restore", "other-0001", "nobody").code,
        cli("restore", *twice).code,
        cli("restore", "other-0001", twice[0], "--as", "x").code,
        cli("restore", "--list", twice[0]).code,
        cli("restore", "--as", "x").code,
        cli("restore", twice[0], "--as", "").code,
    ]
    kept = len(sessions.trashed())
    answer = cli("restore", "other-0001", twice[0], "--json")

    assert refusals == [3, 1, 2, 2, 2, 2]
    assert kept == 3
    assert [one["id"] for one in answer.json["restored"]] == ["other-0001", "upload-0001"]


def test_what_json_prints_is_what_the_schema_says(cli: CommandLine, twice: list[str]) -> None:
    jsonschema.validate(cli("restore", "--json").json, SCHEMA)
    jsonschema.validate(cli("restore", twice[0], "--as", "x", "--json").json, SCHEMA)


def test_a_terminal_has_headings(cli: CommandLine, twice: list[str]) -> None:
    shown = in_a_terminal("restore", NO_COLOR="1").shown

    assert shown.splitlines()[0].split() == ["TRASHED", "AS", "ID", "TITLE", "EVENTS", "BYTES", "TRASHED"]
