"""`playhead export`: files that are whole or not there, and JSON Lines that come in again."""

import errno
import gzip
import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import playhead
from playhead import Sessions
from playhead.formats.exporting import export_session
from playhead.formats.jsonl import Written, import_jsonl
from tests.cli.conftest import ESCAPES, CommandLine
from tests.cli.terminals import in_a_terminal
from tests.conftest import PROJECT

SCHEMA = json.loads((PROJECT / "docs" / "schemas" / "export.json").read_text(encoding="utf-8"))


def _bundle(store_url: str, id: str, ending: str = ".playhead") -> Path:
    return Path(store_url.removeprefix("bundles:")) / f"{id}{ending}"


def test_what_is_piped_out_comes_in_again_with_equal_hashes(
    cli: CommandLine, sessions: Sessions, upload: str, hostile: str, tmp_path: Path
) -> None:
    answer = cli("export", upload, hostile, upload)
    path = tmp_path / "sessions.jsonl"
    path.write_text(answer.out, encoding="utf-8")
    with playhead.open("memory:") as other:
        taken = import_jsonl(other, path)
        heads = [other.verify(one.key.id).head_hash for one in taken]

    assert (answer.code, answer.err) == (0, "")
    assert [one.key.id for one in taken] == [upload, hostile]
    assert heads == [sessions.verify(upload).head_hash, sessions.verify(hostile).head_hash]


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.jsonl", '{"type":"session"'),
        ("a.md", "# Flaky upload test"),
        ("A.MARKDOWN", "# Flaky upload test"),
        ("a.html", "<!doctype html>"),
        ("a.htm", "<!doctype html>"),
    ],
)
def test_the_format_is_that_of_the_files_name(
    cli: CommandLine, upload: str, tmp_path: Path, name: str, begins: str
) -> None:
    path = tmp_path / name
    answer = cli("export", upload, "-o", str(path))

    assert (answer.code, answer.out) == (0, "")
    assert path.read_text(encoding="utf-8").startswith(begins)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"Wrote 1 session (20 events) to {path}." in answer.err
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == [name]


def test_a_name_that_ends_in_gz_is_compressed_and_always_the_same(
    cli: CommandLine, upload: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    cli("export", upload, "-o", str(first))
    cli("export", upload, "-o", str(second))

    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).decode() == cli("export", upload).out


def test_a_file_that_is_there_is_overwritten_only_by_force(cli: CommandLine, upload: str, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("mine")
    refused = cli("export", upload, "-o", str(path))
    kept = path.read_text()
    forced = cli("export", upload, "-o", str(path), "--force")

    assert (refused.code, kept) == (1, "mine")
    assert "--force overwrites it" in refused.err
    assert forced.code == 0
    assert path.read_text(encoding="utf-8").startswith("# Flaky")
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["a.md"]


def test_force_takes_the_place_of_a_link_and_not_of_what_it_leads_to(
    cli: CommandLine, upload: str, tmp_path: Path
) -> None:
    mine, link, pipe = tmp_path / "mine.txt", tmp_path / "a.md", tmp_path / "b.md"
    mine.write_text("mine")
    link.symlink_to(mine)
    os.mkfifo(pipe)
    at_link, at_pipe = (cli("export", upload, "-o", str(path), "--force") for path in (link, pipe))

    assert (at_link.code, at_pipe.code) == (1, 1)
    assert "no regular file" in at_link.err and "no regular file" in at_pipe.err
    assert mine.read_text() == "mine"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_where_the_export_fails_no_file_is_left(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path
) -> None:
    target = tmp_path / "a.md"
    answer = cli("export", upload, "-o", str(target), "--branch", "999")
    nowhere = cli("export", upload, "-o", str(tmp_path / "absent" / "a.md"))

    assert (answer.code, nowhere.code) == (3, 1)
    assert "has no event 999" in answer.err
    assert nowhere.err == f"error: {tmp_path}/absent/a.md cannot be written: No such file or directory\n"
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == []


def test_a_folder_gets_a_file_for_each_session_with_a_safe_name_of_its_own(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path
) -> None:
    sessions.create("../../etc/passwd", title="Odd")
    sessions.create("UPLOAD-0001", title="Shouted")
    folder = tmp_path / "out"
    answer = cli("export", "--all", "-f", "html", "-o", f"{folder}/", "--json")
    files = sorted(path.name for path in folder.iterdir())

    assert answer.code == 0
    assert [name.partition("~")[0] for name in files] == ["etc-passwd", "upload-0001.html", "upload-0001"]
    assert len({name.lower() for name in files}) == 3
    assert sorted(one["file"] for one in answer.json["sessions"]) == [str(folder / name) for name in files]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not (tmp_path.parent / "etc").exists()


@pytest.mark.parametrize("names", [["--all"], ["upload-0001", "hostile-0001"]])
@pytest.mark.parametrize("format", ["jsonl", "md", "html"])
def test_several_sessions_make_a_folder_of_a_name_without_an_ending(
    cli: CommandLine, upload: str, hostile: str, tmp_path: Path, format: str, names: list[str]
) -> None:
    answer = cli("export", *names, "-f", format, "-o", str(tmp_path / "out" / "pages"))

    assert answer.code == 0
    assert {path.name for path in (tmp_path / "out" / "pages").iterdir()} == {
        f"{upload}.{format}",
        f"{hostile}.{format}",
    }


def test_one_session_and_a_name_that_is_there_are_files(
    cli: CommandLine, upload: str, hostile: str, tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("mine")
    one = cli("export", upload, "-f", "md", "-o", str(tmp_path / "one"))
    there = cli("export", "--all", "-f", "md", "-o", str(tmp_path / "there"))
    ending = cli("export", "--all", "-f", "md", "-o", str(tmp_path / "all.txt"))

    assert [answer.code for answer in (one, there, ending)] == [0, 1, 0]
    assert (tmp_path / "one").is_file() and (tmp_path / "all.txt").is_file()
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_an_export_that_is_broken_off_names_the_file_and_counts_those_before_it(
    cli: CommandLine,
    sessions: Sessions,
    upload: str,
    hostile: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    problem: BaseException,
) -> None:
    calls = iter([None, problem])

    def broken_off(*arguments: Any, **options: Any) -> Written:
        found = next(calls)
        if found is not None:
            raise found
        return export_session(*arguments, **options)

    monkeypatch.setattr("playhead.cli.export.export_session", broken_off)
    answer = cli("export", upload, hostile, "-o", f"{tmp_path}/out/")
    said = f"{tmp_path}/out/{hostile}.jsonl cannot be written: No space left on device"

    assert answer.code == (1 if isinstance(problem, OSError) else 130)
    assert answer.err.splitlines() == [
        f"1 of 2 sessions went to {tmp_path}/out before that.",
        f"error: {said if isinstance(problem, OSError) else 'interrupted'}",
    ]
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"{upload}.jsonl"]


def test_one_of_anything_is_said_in_the_singular(cli: CommandLine, sessions: Sessions, tmp_path: Path) -> None:
    sessions.create("bare-0001").close()
    sessions.create("bare-0002").close()
    first = cli("export", "bare-0001", "-o", f"{tmp_path}/")
    again = cli("export", "--all", "-o", f"{tmp_path}/")

    assert first.err == f"Wrote 1 session (1 event) to {tmp_path}.\n"
    assert again.err.startswith("error: 1 of the files is there already; --force overwrites it\n")


def test_no_file_of_a_folder_is_written_where_one_is_there(
    cli: CommandLine, sessions: Sessions, upload: str, tmp_path: Path
) -> None:
    sessions.create("other-0001")
    (tmp_path / "upload-0001.md").write_text("mine")
    answer = cli("export", "--all", "-f", "md", "-o", str(tmp_path))

    assert answer.code == 1
    assert str(tmp_path / "upload-0001.md") in answer.err
    assert not (tmp_path / "other-0001.md").exists()


def test_a_session_that_cannot_be_read_does_not_stop_an_export_of_all(
    cli: CommandLine, upload: str, store_url: str, tmp_path: Path
) -> None:
    _bundle(store_url, "broken-0001").write_bytes(b"this is no database" * 100)
    answer = cli("export", "--all", "-o", str(tmp_path / "all.jsonl"), "--json")
    document = answer.json

    assert answer.code == 6
    assert [(one["id"], one["file"] is None) for one in document["sessions"]] == [
        (upload, False),
        ("broken-0001", True),
    ]
    assert "broken-0001 was left out" in answer.err
    jsonschema.validate(document, SCHEMA)


def test_several_sessions_go_into_one_file_of_jsonl_or_markdown_and_not_of_html(
    cli: CommandLine, upload: str, hostile: str, tmp_path: Path
) -> None:
    markdown = cli("export", upload, hostile, "-f", "md")
    html = cli("export", upload, hostile, "-o", str(tmp_path / "a.html"))

    assert markdown.out.count("\n# ") + markdown.out.startswith("# ") == 2
    assert "\x1b" not in markdown.out
    assert html.code == 2
    assert "give -o DIR/" in html.err


def test_another_branch_can_be_written(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload) as session:
        end = session.head
        session.rewind(turn=3)
    out = cli("export", upload, "-f", "md", "--branch", str(end)).out

    assert "Then raise the limit." in out
    assert "Then raise the limit." not in cli("export", upload, "-f", "md").out


def test_artifacts_can_be_left_out(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    sessions.get(upload).save_artifact("core", b"bytes")

    assert '"type":"artifact"' in cli("export", upload).out
    assert '"type":"artifact"' not in cli("export", upload, "--no-artifacts").out


def test_an_artifact_that_is_missing_is_told(cli: CommandLine, sessions: Sessions, upload: str, store_url: str) -> None:
    sessions.get(upload).save_artifact("core", b"bytes")
    (file,) = _bundle(store_url, upload, ".artifacts").iterdir()
    file.unlink()
    answer = cli("export", upload)

    assert answer.code == 0
    assert "1 artifact is missing" in answer.err
    assert '"type":"artifact"' not in answer.out


@pytest.mark.parametrize("format", ["jsonl", "md", "html"])
def test_secrets_the_home_directory_and_the_users_name_are_masked_in_every_format(
    cli: CommandLine, sessions: Sessions, tmp_path: Path, format: str
) -> None:
    with sessions.create("s-0001", title="Key of zebedee", cwd="/home/zebedee/work") as session:
        with session.turn("export DB_PASSWORD=tr0ub4dor and customer-4711") as turn:
            call = turn.tool_call("login", {"password": "tr0ub4dor", "home": "/data/homes/zeb/x"})
            turn.tool_result(call, "postgres://zebedee:tr0ub4dor@db/x")
    path = tmp_path / f"a.{format}"
    options = ["--redact", "--redact-pattern", r"customer-(\d+)", "--json"]
    answer = cli("export", "s-0001", "-o", str(path), *options, USER="zebedee", HOME="/data/homes/zeb")
    text = path.read_text(encoding="utf-8")
    counts = {one["kind"]: one["count"] for one in answer.json["masked"]}

    assert answer.code == 0
    assert [secret for secret in ("tr0ub4dor", "4711", "zebedee", "/data/homes/zeb") if secret in text] == []
    assert set(counts) == {"password", "password in an address", "home directory", "user name", "own pattern"}
    assert "look the text over" in answer.err
    jsonschema.validate(answer.json, SCHEMA)


def test_nothing_is_masked_unasked(cli: CommandLine, upload: str, tmp_path: Path) -> None:
    answer = cli("export", upload, "-o", str(tmp_path / "a.md"), "--json")

    assert answer.json["masked"] is None
    assert "/home/ada/upload" in (tmp_path / "a.md").read_text(encoding="utf-8")
    jsonschema.validate(answer.json, SCHEMA)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name the sessions to export, or give --all"),
        (["upload-0001", "--all"], "name the sessions to export, or give --all"),
        (["upload-0001", "--json"], "give -o FILE"),
        (["upload-0001", "--branch", "4"], "JSON Lines hold every branch"),
        (["upload-0001", "-o", "a.txt"], "does not tell the format"),
        (["upload-0001", "--redact-pattern", "("], "is no regular expression"),
        (["upload-0001", "-f", "pdf"], "pdf"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(cli: CommandLine, upload: str, options: list[str], said: str) -> None:
    answer = cli("export", *options)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_a_session_that_is_not_there_is_not_found_before_anything_is_written(
    cli: CommandLine, upload: str, tmp_path: Path
) -> None:
    answer = cli("export", upload, "absent-0001", "-o", str(tmp_path / "a.jsonl"))

    assert answer.code == 3
    assert not (tmp_path / "a.jsonl").exists()


def test_exporting_changes_nothing(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    before = sessions.verify(upload)
    for format in ("jsonl", "md", "html"):
        cli("export", upload, "-f", format)

    assert sessions.verify(upload) == before


def test_bytes_pass_through_stdout_whatever_its_encoding(
    cli: CommandLine, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.create("s-0001", title="日本語 é") as session:
        with session.turn("日本語 é \ud83d") as turn:
            turn.say("€")
    whole = cli("export", "s-0001").out
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "playhead._entry", "export", "s-0001"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)

    assert done.stdout.decode("utf-8") == whole
    assert "日本語 é".encode() in done.stdout


def test_a_reader_that_goes_away_ends_the_export_without_a_word(sessions: Sessions, tmp_home: Path) -> None:
    with sessions.create("long-0001", title="Long") as session:
        with session.turn("Tell me everything") as turn:
            for number in range(300):
                turn.say(f"everything {number} " + "and more " * 200)
    line = f"{shlex.quote(sys.executable)} -m playhead._entry export long-0001"
    done = {
        format: subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{line} -f {format} | head -1"],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        for format in ("jsonl", "md", "html")
    }

    assert {format: (one.returncode, one.stderr) for format, one in done.items()} == dict.fromkeys(done, (0, ""))
    assert done["md"].stdout == "# Long\n"


def test_on_a_terminal_markdown_is_shown_safely_and_nothing_else_is(hostile: str) -> None:
    markdown = in_a_terminal("export", hostile, "-f", "md")
    lines, page = in_a_terminal("export", hostile), in_a_terminal("export", hostile, "-f", "html")

    assert markdown.code == 0
    assert "# " in markdown.shown and "prompt" in markdown.shown
    assert [one for one in ESCAPES.split() if one in markdown.shown] == []
    assert (lines.code, page.code) == (2, 2)
    assert "nothing to read on a terminal" in lines.shown and "nothing to read on a terminal" in page.shown


def test_a_page_holds_no_escape_sequence_in_a_pipe_either(cli: CommandLine, hostile: str) -> None:
    for format in ("md", "html"):
        answer = cli("export", hostile, "-f", format)

        assert answer.code == 0
        assert [one for one in ("\x1b", "\x07", "\x9b", "\x08") if one in answer.out] == []


def test_in_a_folder_one_session_that_is_damaged_leaves_the_others_whole(
    cli: CommandLine, sessions: Sessions, upload: str, store_url: str, tmp_path: Path
) -> None:
    sessions.create("other-0001", title="Other").append("note", {"name": "n"})
    change = "UPDATE events SET at = at + 1 WHERE row % 4294967296 = 2"
    damage = [sys.executable, "-m", "tests.features.damage", str(_bundle(store_url, "other-0001")), "as it is", change]
    subprocess.run(damage, cwd=PROJECT, check=True)
    answer = cli("export", "--all", "-o", f"{tmp_path}/", "--json")

    assert answer.code == 6
    assert {one["id"]: one["problem"] is None for one in answer.json["sessions"]} == {upload: True, "other-0001": False}
    assert "event 2" in answer.err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"{upload}.jsonl"]


def test_on_a_file_system_without_hard_links_nothing_is_overwritten_either(
    cli: CommandLine, upload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*paths: object) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr("playhead.formats.exporting.os.link", no_links)
    first, second = (cli("export", upload, "-o", str(tmp_path / "a.md")) for _ in range(2))

    assert (first.code, second.code) == (0, 1)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.md"]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_what_is_exported_is_imported_into_an_empty_store_as_it_was(
    cli: CommandLine, sessions: Sessions, upload: str, hostile: str, tmp_path: Path, ending: str
) -> None:
    sessions.get(upload).save_artifact("core", b"bytes")
    sessions.get(upload).rewind(turn=3)
    file, other = tmp_path / f"all{ending}", f"sqlite:{tmp_path}/other.db"
    exported = cli("export", "--all", "-o", str(file))
    imported = cli("import", str(file), "--store", other)
    checked = ["id", "ok", "event_count", "head_hash"]
    before, after = (
        sorted([one[field] for field in checked] for one in cli("verify", "--all", "--json", *store).json["sessions"])
        for store in ([], ["--store", other])
    )
    rows = [
        {row["id"]: row["title"] for row in cli("list", "--json", *store).json["sessions"]}
        for store in ([], ["--store", other])
    ]

    assert (exported.code, imported.code) == (0, 0)
    assert len(before) == 2
    assert after == before
    assert rows[0] == rows[1]
    assert cli("show", upload, "--tree", "--store", other).out == cli("show", upload, "--tree").out
