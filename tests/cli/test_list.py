"""`playhead list`: the rows of every other list, filtered and counted."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from playhead import Sessions
from playhead.cli.text import width
from playhead.features.live import Live
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal


@pytest.fixture
def three(sessions: Sessions) -> Sessions:
    """From the oldest to the newest: one finished, one in another folder, one whose turn never ended."""
    config = {"name": "zoo-keeper", "type": "group", "node": "mac", "group": "night"}
    with sessions.create("first-0001", title="Zebra", cwd="/home/ada/zoo", origin="codex", config=config) as session:
        with session.turn("Feed it") as turn:
            turn.say("Fed.")
    with sessions.create("second-0001", title="apple", cwd="/home/ada/orchard", labels=["fruit"]) as session:
        with session.turn("Pick it", agent="picker") as turn:
            turn.say("Picked.")
    with sessions.create("third-0001", title="Mango", cwd="/home/ada/orchard") as session:
        session.append("turn_started", {"cause": "user"}, agent="coordinator", turn="turn-1")
    return sessions


def _ids(rows: list[list[str]]) -> list[str]:
    return [row[0] for row in rows]


def test_a_pipe_gets_tab_separated_rows_with_ids_alone_newest_first(cli: CommandLine, three: Sessions) -> None:
    answer = cli("list")

    assert answer.code == 0
    assert _ids(answer.rows) == ["third-0001", "second-0001", "first-0001"]
    assert answer.rows[1][:5] == ["second-0001", "apple", "picker", "1", "open"]
    assert answer.rows[1][5].endswith("Z")
    assert answer.err == ""


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--sort", "title"], ["second-0001", "third-0001", "first-0001"]),
        (["--sort", "created"], ["third-0001", "second-0001", "first-0001"]),
        (["--sort", "created", "--reverse"], ["first-0001", "second-0001", "third-0001"]),
        (["--sort", "relevance"], ["third-0001", "second-0001", "first-0001"]),
        (["--sort", "relevance", "--query", "e"], ["second-0001", "first-0001", "third-0001"]),
        (["--reverse"], ["first-0001", "second-0001", "third-0001"]),
        (["--reverse", "-n", "1"], ["first-0001"]),
        (["--origin", "codex"], ["first-0001"]),
        (["--config", "zoo-keeper"], ["first-0001"]),
        (["--config-type", "group"], ["first-0001"]),
        (["--node", "mac", "--group", "night"], ["first-0001"]),
        (["--node", "mac", "--group", "day"], []),
        (["--user", "default", "--app", "default"], ["third-0001", "second-0001", "first-0001"]),
        (["--user", "ada"], []),
        (["--agent", "picker"], ["second-0001"]),
        (["--agent", "nobody"], []),
        (["--project", "/home/ada/orchard"], ["third-0001", "second-0001"]),
        (["--project", "/home/ada/orchard/../zoo"], ["first-0001"]),
        (["--project", "all"], ["third-0001", "second-0001", "first-0001"]),
        (["--status", "interrupted"], ["third-0001"]),
        (["--since", "2026-08-01"], ["third-0001", "second-0001", "first-0001"]),
        (["--since", "2126-08-01"], []),
        (["--until", "2026-08-01"], []),
        (["--until", "2126-08-01"], ["third-0001", "second-0001", "first-0001"]),
        (["--label", "fruit"], ["second-0001"]),
        (["--label", "frui"], []),
        (["--query", "ORCHARD mango"], ["third-0001"]),
        (["--query", "fruit"], ["second-0001"]),
        (["--status", "open", "--label", "fruit", "--query", "apple", "--since", "2026-08-01"], ["second-0001"]),
        (["-n", "1"], ["third-0001"]),
        (["-n", "1", "--all"], ["third-0001", "second-0001", "first-0001"]),
    ],
)
def test_options_narrow_order_and_cut_the_list(
    cli: CommandLine, three: Sessions, options: list[str], ids: list[str]
) -> None:
    answer = cli("list", *options)

    assert answer.code == 0
    assert _ids(answer.rows) == ids


@pytest.mark.parametrize("sort", ["last_active", "created", "title"])
def test_the_rows_and_their_order_are_those_of_the_library(cli: CommandLine, three: Sessions, sort: str) -> None:
    three.create("apple-0002", title="APPLE").close()
    rows = three.list(sort=sort).items

    assert _ids(cli("list", "--sort", sort.replace("_", "-")).rows) == [row.id for row in rows]
    assert _ids(cli("list", "--query", "apple").rows) == [row.id for row in three.list(query="apple").items]


def test_a_session_is_running_while_somebody_is_in_its_turn(cli: CommandLine, three: Sessions) -> None:
    with three.get("first-0001").turn("Again") as turn:
        during = cli("list", "--status", "running").rows
        interrupted = cli("list", "--status", "interrupted").rows
        turn.say("Done.")

    assert _ids(during) == ["first-0001"]
    assert _ids(interrupted) == ["third-0001"]
    assert cli("list", "--status", "running").rows == []


def test_what_is_in_the_trash_is_listed_on_request_and_nowhere_else(cli: CommandLine, three: Sessions) -> None:
    trash_id = three.trash("second-0001")
    found = cli("list", "--trashed")

    assert _ids(cli("list").rows) == ["third-0001", "first-0001"]
    assert [row[:3] for row in found.rows] == [[trash_id, "second-0001", "apple"]]
    assert cli("list", "--trashed", "--json").json == cli("restore", "--list", "--json").json
    assert cli("list", "--trashed", "--label", "fruit").code == 2


def test_the_current_folder_is_a_project(
    cli: CommandLine, sessions: Sessions, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("project").resolve()
    sessions.create("here-0001", cwd=str(here)).close()
    sessions.create("elsewhere-0001", cwd=str(here.parent)).close()
    monkeypatch.chdir(here)

    assert _ids(cli("list", "--project", ".").rows) == ["here-0001"]
    assert _ids(cli("list", "--cwd").rows) == ["here-0001"]
    assert _ids(cli("list", "--project", "..").rows) == ["elsewhere-0001"]
    assert cli("list", "--project", "..", "--cwd").code == 2


def test_what_is_cut_off_is_counted_and_never_silent(cli: CommandLine, three: Sessions) -> None:
    text, document, since = cli("list", "-n", "1"), cli("list", "-n", "1", "--json").json, cli("list", "--since", "1d")

    assert text.err == "1 of 3 sessions; --all shows the rest.\n"
    assert (len(document["sessions"]), document["total"]) == (1, 3)
    assert cli("list", "-n", "1", "--quiet").err == ""
    assert since.code == 0


def test_an_empty_store_says_so_and_is_no_failure(cli: CommandLine, store_url: str) -> None:
    answer = cli("list")

    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"No sessions in {store_url}.\n"
    assert cli("list", "--json").json == {"sessions": [], "total": 0, "next_cursor": None, "refreshed": None}
    assert cli("list", "--label", "x").err == f"No sessions that are asked for in {store_url}.\n"


def test_more_sessions_than_a_page_are_all_listed_once(cli: CommandLine, sessions: Sessions) -> None:
    for number in range(53):
        sessions.create(f"session-{number:04}").close()
    all_ids = _ids(cli("list", "--all").rows)

    assert len(cli("list").rows) == 50
    assert len(all_ids) == len(set(all_ids)) == 53


def test_what_is_printed_is_all_that_is_read(
    cli: CommandLine, sessions: Sessions, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(53):
        sessions.create(f"session-{number:04}").close()
    cli("list")
    read: list[int] = []
    listing = type(sessions.store.listing)
    page = listing.page

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        found = page(self, *arguments, **options)
        read.append(len(found.rows))
        return found

    monkeypatch.setattr(listing, "page", counted)
    monkeypatch.setattr(Live, "__init__", lambda *arguments, **options: pytest.fail("a session was opened"))
    few, next_few = cli("list", "-n", "3", "--json").json, cli("list", "-n", "3", "--reverse").rows

    assert (len(few["sessions"]), len(next_few), few["total"]) == (3, 3, 53)
    assert sum(read) <= 2 * (3 + 1)


def test_a_cursor_goes_on_behind_what_was_printed(cli: CommandLine, three: Sessions) -> None:
    first = cli("list", "-n", "2", "--json").json
    rest = cli("list", "--cursor", first["next_cursor"], "--json").json
    wrong = [
        cli("list", "--cursor", "nonsense"),
        cli("list", "--cursor", first["next_cursor"], "--reverse"),
        cli("list", "--cursor", first["next_cursor"], "--sort", "title"),
        cli("list", "--cursor", first["next_cursor"], "--trashed"),
    ]

    assert [row["id"] for row in first["sessions"] + rest["sessions"]] == ["third-0001", "second-0001", "first-0001"]
    assert (rest["total"], rest["next_cursor"]) == (3, None)
    assert [(answer.code, answer.out) for answer in wrong] == [(2, "")] * 4


@pytest.mark.parametrize("flag", ["--refresh", "--full-rescan"])
def test_the_store_is_compared_with_its_rows_on_request(
    cli: CommandLine, three: Sessions, store_url: str, tmp_path: Path, flag: str
) -> None:
    three.close()
    cli("list")
    place = Path(store_url.removeprefix("bundles:"))
    (place / "first-0001.playhead").unlink()
    shutil.copy(place / "second-0001.playhead", tmp_path / "kept.playhead")
    (place / "second-0001.playhead").unlink()
    gone, gone_text = cli("list", flag, "--json").json, cli("list", flag)
    shutil.copy(tmp_path / "kept.playhead", place / "second-0001.playhead")
    back = cli("list", flag, "--json").json

    assert [row["id"] for row in gone["sessions"]] == ["third-0001"]
    assert gone["refreshed"]["removed"] == 2
    assert gone_text.err.startswith("Looked at 1 session, and read ")
    assert [row["id"] for row in back["sessions"]] == ["third-0001", "second-0001"]
    assert back["refreshed"]["looked_at"] == 2
    assert back["refreshed"]["read"] == 2 or flag == "--refresh"


def test_a_refresh_shows_on_stderr_how_far_it_is(three: Sessions) -> None:
    """C-04."""
    shown = in_a_terminal("list", "--full-rescan", NO_COLOR="1").shown

    assert "Looking at session " in shown
    assert "Looked at 3 sessions" in shown


def test_a_session_that_cannot_be_read_is_a_row_that_says_why(
    cli: CommandLine, sessions: Sessions, store_url: str
) -> None:
    sessions.create("whole-0001", title="Whole").close()
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    answer, document = cli("list"), cli("list", "--json").json
    broken = [row for row in document["sessions"] if row["problem"]]

    assert answer.code == 0
    assert len(answer.rows) == 2
    assert [row[4] for row in answer.rows].count("unreadable") == 1
    assert len(broken) == 1
    assert broken[0]["title"] is None


def test_at_a_terminal_rows_stand_under_headings_with_ages(sessions: Sessions) -> None:
    id = "claude-code.0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    sessions.create(id, title="A title that should be read in full, if it can").close()
    sessions.create("other-0001", title="Other").close()
    shown = in_a_terminal("list", NO_COLOR="1").shown.splitlines()

    assert shown[0].split() == ["ID", "TITLE", "AGENTS", "TURNS", "STATUS", "ACTIVE"]
    assert shown[2].startswith("claude-code.0b7c2f8e  A title that should be read in full, if it can")
    assert all(len(line) <= 100 for line in shown)


@pytest.mark.parametrize(
    ("columns", "headings"),
    [
        (80, ["ID", "TITLE", "AGENTS", "TURNS", "STATUS", "ACTIVE"]),
        (60, ["ID", "TITLE", "STATUS"]),
        (40, ["ID", "TITLE"]),
        (20, ["ID"]),
    ],
)
def test_no_row_is_wider_than_the_terminal(sessions: Sessions, columns: int, headings: list[str]) -> None:
    id = "claude-code.0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    with sessions.create(id, title="A title that should be read in full, if it can") as session:
        session.append("turn_started", {"cause": "user"}, agent="coordinator", turn="turn-1")
    heading, row = in_a_terminal("list", NO_COLOR="1", COLUMNS=str(columns)).shown.splitlines()[:2]

    assert heading.split() == headings
    assert row.startswith("claude-code.0b7c2f8e")
    assert max(width(heading), width(row)) <= columns


def test_a_store_is_named_before_or_after_the_command(cli: CommandLine, sessions: Sessions, tmp_home: Path) -> None:
    sessions.create("default-0001").close()
    other = f"sqlite:{tmp_home}/other.db"

    assert cli("--store", other, "list").out == ""
    assert cli("list", "--store", other).out == ""
    assert cli("list", PLAYHEAD_STORE=other).out == ""
    assert _ids(cli("list").rows) == ["default-0001"]


def test_a_status_that_no_session_has_is_a_mistake_unless_it_is_a_known_one(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    sessions.get(upload).set_status("in review")
    unknown, own, known = (cli("list", "--status", status) for status in ("bogus", "in review", "waiting"))

    assert (unknown.code, own.code, known.code) == (2, 0, 0)
    assert "waiting" in unknown.err
    assert upload in own.out
