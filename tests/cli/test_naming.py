"""Naming a session: one rule for every command, exit code 5 for several and 3 for none."""

from typing import Any

import pytest

from playhead import Sessions
from playhead.cli import naming
from playhead.cli.failures import Failure
from playhead.cli.naming import named, short_names
from playhead.model.ids import SessionKey
from tests.cli.conftest import CommandLine


def _create(sessions: Sessions, id: str, title: str, *, app: str = "default", user: str = "default") -> None:
    sessions.create(id, title=title, app=app, user=user).close()


@pytest.fixture
def several(sessions: Sessions) -> Sessions:
    """Four sessions, from the oldest to the newest: 4f9a, 4f9b, one imported, one of another user."""
    _create(sessions, "4f9a0000", "Deploy notes")
    _create(sessions, "4f9b0000", "Deploy key rotation")
    _create(sessions, "claude-code.0b7c2f8e-5d1a", "Fix the parser")
    _create(sessions, "9d3e0000", "Reading list", user="ada")
    return sessions


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("4f9a0000", "4f9a0000"),
        ("4f9a", "4f9a0000"),
        ("4f9b00", "4f9b0000"),
        ("9d3e", "9d3e0000"),
        ("@last", "9d3e0000"),
        ("@-1", "9d3e0000"),
        ("@-2", "claude-code.0b7c2f8e-5d1a"),
        ("@-4", "4f9a0000"),
        ("0b7c", "claude-code.0b7c2f8e-5d1a"),
        ("claude-code.0b", "claude-code.0b7c2f8e-5d1a"),
        ("Deploy notes", "4f9a0000"),
        ("  deploy   KEY rotation ", "4f9b0000"),
        ("default/ada/9d3e0000", "9d3e0000"),
    ],
)
def test_a_session_answers_to_its_id_a_prefix_its_rank_and_its_title(several: Sessions, name: str, id: str) -> None:
    assert named(several, name).id == id


def test_a_whole_id_comes_before_prefixes_and_titles(sessions: Sessions) -> None:
    _create(sessions, "plan", "First")
    _create(sessions, "plan-2", "plan")

    assert named(sessions, "plan") == SessionKey("default", "default", "plan")


def test_a_whole_id_of_another_user_comes_before_prefixes(sessions: Sessions) -> None:
    _create(sessions, "plan", "First", user="ada")
    _create(sessions, "plan-2", "Second")

    assert named(sessions, "plan") == SessionKey("default", "ada", "plan")


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("4f9a", ["4f9a0000", "4f9a1111"]),
        ("notes", ["4f9a0000", "5c5c0000"]),
    ],
)
def test_a_name_that_fits_several_lists_them_and_takes_none(
    sessions: Sessions, name: str, candidates: list[str]
) -> None:
    _create(sessions, "4f9a0000", "Notes")
    _create(sessions, "4f9a1111", "Other")
    _create(sessions, "5c5c0000", "notes")
    with pytest.raises(Failure) as failed:
        named(sessions, name)

    assert failed.value.code == 5
    assert sorted(line.split()[0] for line in failed.value.lines) == candidates


def test_a_prefix_of_one_session_that_is_the_title_of_another_fits_two(sessions: Sessions) -> None:
    _create(sessions, "plan-2026", "First")
    _create(sessions, "4f9a0000", "plan")
    with pytest.raises(Failure) as failed:
        named(sessions, "plan")

    assert failed.value.code == 5


def test_the_same_id_of_two_users_is_told_apart_by_the_whole_key(sessions: Sessions) -> None:
    _create(sessions, "plan", "First", user="ada")
    _create(sessions, "plan", "Second", user="bob")
    with pytest.raises(Failure) as failed:
        named(sessions, "plan")

    assert failed.value.code == 5
    assert named(sessions, "default/bob/plan") == SessionKey("default", "bob", "plan")


def test_many_candidates_are_cut_with_their_number(sessions: Sessions) -> None:
    for number in range(13):
        _create(sessions, f"batch-{number:02}", f"Run {number}")
    with pytest.raises(Failure) as failed:
        named(sessions, "batch")

    assert len(failed.value.lines) == 11
    assert failed.value.lines[-1] == "… and 3 more"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("4f9a0001", "4f9a0000"), ("Fix the parsr", "claude-code.0b7c2f8e-5d1a"), ("parser", "claude-code.0b7c2f8e-5d1a")],
)
def test_an_unknown_name_is_answered_with_the_nearest(several: Sessions, name: str, nearest: str) -> None:
    with pytest.raises(Failure) as failed:
        named(several, name)

    assert failed.value.code == 3
    assert failed.value.lines[0].split()[0] == nearest


@pytest.mark.parametrize(
    "name", ["4f9", "", "@-0x", "@first", "../4f9a0000", "4f9a\0", "x" * 2_000, "\ud800", "%", "4f9*"]
)
def test_a_name_that_is_no_name_finds_nothing_and_breaks_nothing(several: Sessions, name: str) -> None:
    with pytest.raises(Failure) as failed:
        named(several, name)

    assert failed.value.code == 3


def test_a_piece_from_the_middle_of_an_id_or_a_title_finds_nothing(several: Sessions) -> None:
    """S9."""
    for name in ("9a0000", "key rotation", "2f8e"):
        with pytest.raises(Failure) as failed:
            named(several, name)

        assert failed.value.code == 3


def test_a_long_id_is_cut_in_tables_to_what_still_names_its_session(several: Sessions) -> None:
    keys = [row.key for row in several.list().items]
    names = short_names(keys)
    alike = [SessionKey("default", "default", f"claude-code.aaaaaaaa-{number}") for number in (1, 2)]

    assert names[keys[1]] == "claude-code.0b7c2f8e"
    assert [named(several, names[key]) for key in keys] == keys
    assert list(short_names(alike).values()) == [key.id for key in alike]


@pytest.mark.parametrize("name", ["@last", "@-2"])
def test_in_an_empty_store_nothing_is_last(sessions: Sessions, name: str) -> None:
    with pytest.raises(Failure, match="there is none yet") as failed:
        named(sessions, name)

    assert failed.value.code == 3


def test_a_rank_beyond_the_oldest_says_how_many_there_are(several: Sessions) -> None:
    with pytest.raises(Failure, match="there are 4") as failed:
        named(several, "@-5")

    assert failed.value.code == 3


def test_every_command_reports_unknown_and_ambiguous_names_alike(cli: CommandLine, several: Sessions) -> None:
    commands = [["show"], ["fork"], ["verify"], ["resume"], ["rewind", "--to", "1"], ["search", "x", "--session"]]
    unknown = [cli(*command, "nobody") for command in commands]
    _create(several, "4f9a9999", "Another")
    ambiguous = [cli(*command, "4f9a") for command in commands]

    assert [answer.code for answer in unknown] == [3] * len(commands)
    assert [answer.code for answer in ambiguous] == [5] * len(commands)
    assert all(answer.out == "" and answer.err.startswith("error: ") for answer in unknown + ambiguous)
    assert all("4f9a0000" in answer.err and "4f9a9999" in answer.err for answer in ambiguous)


def test_a_rank_means_the_rank_also_where_a_session_is_called_like_one(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    sessions.create("@last").close()
    sessions.get(upload).append("note", {"name": "touched"})
    by_rank, by_key = (cli("show", name, "--json").json["session"]["id"] for name in ("@last", "default/default/@last"))

    assert (by_rank, by_key) == (upload, "@last")
    assert cli("show", "@-0").code == cli("show", "last").code == 3


@pytest.mark.parametrize("id", ["@last", "@-2", "a/b", "a#12", "-x", "a b", "a\x1b[2J", ""])
def test_nothing_comes_back_under_an_id_that_could_not_be_typed_again(
    cli: CommandLine, sessions: Sessions, upload: str, id: str
) -> None:
    sessions.trash(upload)
    refused, taken = cli("restore", "@last", "--as", id), cli("restore", "@last", "--as", "again-0001")

    assert refused.code == 2
    assert (taken.code, taken.out) == (0, "again-0001\n")


@pytest.mark.parametrize("command", ["show", "timeline", "fork"])
def test_a_title_that_ends_like_an_event_names_its_session(
    cli: CommandLine, sessions: Sessions, upload: str, command: str
) -> None:
    sessions.create("issue-0001", title="Fix issue #42").close()
    by_title, by_event = cli(command, "fix issue #42"), cli(command, "Flaky upload test#4")

    assert (by_title.code, by_event.code) == (0, 0)
    assert cli("show", "fix issue #42", "--json").json["session"]["id"] == "issue-0001"


@pytest.fixture
def read(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each page of a listing had that was read since."""
    counts: list[int] = []
    page = sessions.store.listing.page

    def counted(*arguments: Any, **options: Any) -> Any:
        found = page(*arguments, **options)
        counts.append(len(found.rows))
        return found

    monkeypatch.setattr(sessions.store.listing, "page", counted)
    return counts


@pytest.mark.parametrize(
    ("name", "id", "row_count"),
    [
        ("@-3", "many-0117", 4),  # One more tells that there are others.
        ("many-0007", "many-0007", 0),
        ("default/default/many-0007", "many-0007", 0),
        ("claude-code.0b", "claude-code.0b7c2f8e", 1),
        ("0b7c", "claude-code.0b7c2f8e", 1),
        ("RUN 42", "many-0042", 1),
    ],
)
def test_of_many_sessions_a_name_reads_those_that_it_can_mean(
    sessions: Sessions, read: list[int], name: str, id: str, row_count: int
) -> None:
    _create(sessions, "claude-code.0b7c2f8e", "Fix the parser")
    for number in range(120):
        _create(sessions, f"many-{number:04}", f"Run {number}")
    sessions.list(limit=1)
    read.clear()

    assert named(sessions, name).id == id
    assert sum(read) == row_count


def test_an_event_of_a_session_that_is_named_for_certain_costs_no_listing(
    sessions: Sessions, upload: str, read: list[int]
) -> None:
    whole = naming.named_event(sessions, f"{upload}#4")
    none = len(read)
    beginning = naming.named_event(sessions, "uplo#4")
    title = naming.named_event(sessions, "Flaky upload test#4")

    assert none == 0
    assert len(read) > 0
    assert whole == beginning == title
