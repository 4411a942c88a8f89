"""`playhead rm`: into the trash by an exact name, for good only when asked, and all of it or nothing."""

import json
from pathlib import Path

import jsonschema
import pytest

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

SCHEMA = json.loads((PROJECT / "docs" / "schemas" / "rm.json").read_text(encoding="utf-8"))


@pytest.fixture
def other(sessions: Sessions) -> str:
    """A second session, the last one active; its id."""
    sessions.create("other-0001", title="Other").close()
    return "other-0001"


@pytest.fixture
def broken(store_url: str, upload: str) -> str:
    """A bundle that is no database; the id that lists give it."""
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    return "broken-0001"


def listed(cli: CommandLine) -> list[str]:
    return sorted(row[0] for row in cli("list").rows)


def in_trash(cli: CommandLine) -> list[str]:
    return sorted(row[1] for row in cli("restore").rows)


def test_a_session_goes_to_the_trash_and_the_way_back_is_printed(cli: CommandLine, upload: str, other: str) -> None:
    answer = cli("rm", upload)
    gone, found = listed(cli), cli("search", "connection").rows
    command = answer.err.splitlines()[-1].removeprefix("To undo: playhead ")
    back = cli(*command.split())

    assert (answer.code, back.code) == (0, 0)
    assert answer.rows[0][:2] == [upload, "Flaky upload test"]
    assert (gone, found) == ([other], [])
    assert listed(cli) == [other, upload]
    assert len(cli("search", "connection").rows) == 1


@pytest.mark.parametrize("name", ["upload-0001", "uplo", "@-2", "default/default/upload-0001"])
def test_a_session_is_named_by_its_id_the_beginning_of_it_or_its_rank(
    cli: CommandLine, upload: str, other: str, name: str
) -> None:
    assert cli("rm", name).code == 0
    assert in_trash(cli) == [upload]


@pytest.mark.parametrize("name", ["Flaky upload test", "flaky UPLOAD test", "upl", "nobody", "Flaky"])
def test_nothing_goes_by_its_title_or_a_guess(cli: CommandLine, upload: str, name: str) -> None:
    answer = cli("rm", name)

    assert (answer.code, answer.out) == (3, "")
    assert listed(cli) == [upload]


def test_an_ambiguous_name_is_an_error_with_the_candidates(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    sessions.create("upload-0002").close()
    answer = cli("rm", "upload-000")

    assert answer.code == 5
    assert "upload-0001" in answer.err and "upload-0002" in answer.err
    assert len(listed(cli)) == 2


def test_all_names_are_looked_up_and_found_free_before_the_first_goes(
    cli: CommandLine, sessions: Sessions, upload: str, other: str
) -> None:
    unknown = cli("rm", upload, "nobody")
    with sessions.get(other).turn("Wait", label="the other window"):
        busy = cli("rm", upload, other)
        busy_for_good = cli("rm", upload, other, "--purge", "--yes")

    assert (unknown.code, busy.code, busy_for_good.code) == (3, 4, 4)
    assert "the other window" in busy.err
    assert listed(cli) == [other, upload]


def test_a_session_that_is_named_twice_goes_once(cli: CommandLine, upload: str, other: str) -> None:
    document = cli("rm", "@last", other, "other", upload, "--json").json

    assert [one["id"] for one in document["sessions"]] == [other, upload]
    assert listed(cli) == []


@pytest.mark.parametrize("options", [[], ["--purge"]])
def test_a_dry_run_says_the_same_and_changes_nothing(cli: CommandLine, upload: str, options: list[str]) -> None:
    dry = cli("rm", upload, "--dry-run", *options)
    dry_document = cli("rm", upload, "-n", *options, "--json").json
    untouched = listed(cli), in_trash(cli)
    document = cli("rm", upload, "--yes", *options, "--json").json
    for one in document["sessions"]:
        one["trash_id"] = None

    assert dry.rows == [[upload, "Flaky upload test", ""]]
    assert "Nothing was changed." in dry.err
    assert untouched == ([upload], [])
    assert dry_document == document | {"is_dry_run": True}


def test_for_good_is_past_the_trash_and_says_so(cli: CommandLine, sessions: Sessions, upload: str, other: str) -> None:
    answer = cli("rm", upload, "--purge", "-y")

    assert (answer.code, in_trash(cli), listed(cli)) == (0, [], [other])
    assert "for good" in answer.err and "undo" not in answer.err
    assert sessions.was_removed(upload)


def test_the_trash_is_emptied(cli: CommandLine, sessions: Sessions, upload: str, other: str) -> None:
    cli("rm", upload)
    dry = cli("rm", "--empty-trash", "-n")
    kept = in_trash(cli)
    wet = cli("rm", "--empty-trash", "--yes")
    again = cli("rm", "--empty-trash", "--yes")

    assert [row[0] for row in dry.rows] == [row[0] for row in wet.rows] == kept == [upload]
    assert (in_trash(cli), listed(cli)) == ([], [other])
    assert (again.code, again.out, again.err) == (0, "", "The trash is empty.\n")


@pytest.mark.parametrize("options", [["--purge", "upload-0001"], ["--empty-trash"]])
def test_for_good_needs_a_yes_where_nobody_can_be_asked(
    cli: CommandLine, sessions: Sessions, upload: str, other: str, options: list[str]
) -> None:
    sessions.trash(other)
    answer = cli("rm", *options)

    assert answer.code == 2
    assert "--yes" in answer.err
    assert (listed(cli), in_trash(cli)) == ([upload], [other])


@pytest.mark.parametrize(("typed", "code", "left"), [("y", 0, []), ("n", 1, ["upload-0001"]), ("", 1, ["upload-0001"])])
def test_a_person_at_a_terminal_is_asked(cli: CommandLine, upload: str, typed: str, code: int, left: list[str]) -> None:
    shown = in_a_terminal("rm", upload, "--purge", typed=[("[y/N]", f"{typed}\n")])

    assert shown.code == code
    assert "Flaky upload test" in shown.shown
    assert listed(cli) == left


@pytest.mark.parametrize("options", [[], ["--empty-trash", "upload-0001"]])
def test_it_takes_names_or_the_whole_trash(cli: CommandLine, upload: str, options: list[str]) -> None:
    assert cli("rm", *options).code == 2
    assert listed(cli) == [upload]


def test_what_cannot_be_read_goes_and_comes_back_too(cli: CommandLine, upload: str, broken: str) -> None:
    gone = cli("rm", broken)
    left = listed(cli)
    back = cli("restore", "@last")
    after = listed(cli)
    for_good = cli("rm", broken, "--purge", "-y")

    assert (gone.code, back.code, for_good.code) == (0, 0, 0)
    assert (left, after) == ([upload], [broken, upload])
    assert (listed(cli), in_trash(cli)) == ([upload], [])


def test_escape_sequences_of_a_title_never_reach_the_terminal(cli: CommandLine, hostile: str) -> None:
    asked = in_a_terminal("rm", hostile, "--purge", typed=[("[y/N]", "n\n")], NO_COLOR="1")
    shown = in_a_terminal("rm", hostile, NO_COLOR="1")
    listing = in_a_terminal("restore", NO_COLOR="1")

    assert [one for one in (asked, shown, listing) if "\x1b" in one.shown or "\x9b" in one.shown] == []


@pytest.mark.parametrize("arguments", [["-n"], [], ["--purge", "-y"]])
def test_what_json_prints_is_what_the_schema_says(cli: CommandLine, upload: str, arguments: list[str]) -> None:
    jsonschema.validate(cli("rm", upload, *arguments, "--json").json, SCHEMA)


def test_where_there_is_no_store_nothing_is_made(cli: CommandLine, tmp_path: Path) -> None:
    answer = cli("rm", "upload-0001", "--store", f"bundles:{tmp_path / 'absent'}")

    assert answer.code == 3
    assert not (tmp_path / "absent").exists()
