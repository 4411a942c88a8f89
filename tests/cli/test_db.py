"""`playhead db`: the files of a store."""

from pathlib import Path

import playhead
from playhead import Sessions
from tests.cli.conftest import ESCAPES, CommandLine
from tests.cli.terminals import in_a_terminal


def _place(store_url: str) -> Path:
    return Path(store_url.partition(":")[2])


def test_path_prints_where_the_store_is_and_makes_nothing(cli: CommandLine, store_url: str) -> None:
    text, facts = cli("db", "path"), cli("db", "path", "--json").json

    assert text.out == f"{_place(store_url)}\n"
    assert (facts["exists"], facts["database_count"]) == (False, 0)
    assert not _place(store_url).exists()


def test_a_backup_is_a_store_of_its_own_and_says_how_to_open_it(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    answer, again, forced = (cli("db", "backup", str(target), *options) for options in ([], [], ["--force", "--json"]))
    with playhead.open(f"bundles:{target}") as copied:
        copied_hash = copied.verify(upload).head_hash

    assert (answer.code, answer.out) == (0, f"{target}\n")
    assert f"--store bundles:{target}" in answer.err
    assert again.code == 1
    assert "--force" in again.err
    assert forced.json["problems"] == {}
    assert copied_hash == sessions.verify(upload).head_hash


def test_a_check_names_the_file_that_is_damaged(
    cli: CommandLine, sessions: Sessions, upload: str, store_url: str
) -> None:
    whole = cli("db", "check", "--json")
    (_place(store_url) / "broken-0001.playhead").write_bytes(b"no database" * 500)
    broken = cli("db", "check")

    assert (whole.code, whole.json["problem_count"]) == (0, 0)
    assert broken.code == 6
    assert [row[1] for row in broken.rows if row[0].endswith("broken-0001.playhead")] == ["damaged"]
    assert "playhead doctor" in broken.err


def test_sql_reads_one_session_and_what_it_gives_is_made_safe(
    cli: CommandLine, sessions: Sessions, hostile: str
) -> None:
    read = cli("db", "shell", hostile, "--sql", "SELECT count(*) FROM events")
    title = cli("db", "shell", hostile, "--sql", "SELECT body FROM log WHERE kind = 'session_changed'")
    write = cli("db", "shell", hostile, "--sql", "DELETE FROM events")

    assert (read.code, read.out.strip()) == (0, str(sessions.get(hostile).seq))
    assert "\x1b" not in title.out and "title" in title.out
    assert write.code == 1
    assert ESCAPES


def test_a_prompt_takes_sql_until_exit(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal(
        "db", "shell", upload, typed=[("sql>", "SELECT 20 +\n"), ("...>", "3;\n"), ("23", ".exit\n")], NO_COLOR="1"
    )

    assert shown.code == 0
    assert "nothing can be changed" in shown.shown


def test_what_makes_no_sense_is_said(cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path) -> None:
    calls = {
        ("db", "backup"): 2,
        ("db", "path", "here"): 2,
        ("db", "shell", "--sql", "SELECT 1"): 2,
        ("db", "shell", upload): 2,
        ("db", "shell", upload, "--json"): 2,
        ("db", "shell", "nothing", "--sql", "SELECT 1"): 3,
        ("db", "mend"): 2,
        ("--store", "memory:", "db", "path"): 2,
        ("--store", f"sqlite:{tmp_path}/no.db", "db", "check"): 3,
    }

    assert {call: cli(*call).code for call in calls} == calls


def test_one_file_for_all_sessions_needs_no_name(cli: CommandLine, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/all.db"
    with playhead.open(url) as sessions:
        sessions.create("s1").close()
    read = cli("--store", url, "db", "shell", "--sql", "SELECT id FROM sessions")
    named = cli("--store", url, "db", "shell", "s1", "--sql", "SELECT id FROM sessions")

    assert (read.code, read.out.strip()) == (0, "s1")
    assert named.code == 2
