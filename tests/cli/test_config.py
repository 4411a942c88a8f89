"""`playhead config`: what holds and who said so, and a file that is changed line by line."""

import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from playhead.cli.config import edited
from playhead.cli.failures import Failure
from tests.cli.conftest import CommandLine


@pytest.fixture
def file(tmp_home: Path) -> Path:
    """The person's own settings; nothing is there yet."""
    return tmp_home / "playhead" / "config.toml"


def test_show_says_what_holds_and_on_request_who_said_so(
    cli: CommandLine, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("config", "set", "model", "small")
    (tmp_path / ".playhead.toml").write_text('agent = "evil:agent"\n')
    shown = cli("config", PLAYHEAD_BASE_URL="http://ada:pw@localhost/v1")
    values = {row[0]: row[1] for row in shown.rows}
    origins = {row[0]: row[1:] for row in cli("config", "show", "--origin").rows}

    assert values["model"] == "small"
    assert values["base_url"] == "http://…@localhost/v1"
    assert origins["model"] == ["small", str(file)]
    assert origins["quiet"] == ["false", "default"]
    assert origins["store"] == [f"bundles:{file.parent / 'sessions'}", "PLAYHEAD_HOME"]
    assert shown.err == f"agent in {tmp_path / '.playhead.toml'} is passed over: it names code that would be run.\n"


def test_set_get_and_unset_go_round(cli: CommandLine, file: Path) -> None:
    absent = cli("config", "get", "model")
    done = cli("config", "set", "model", "small one")
    found = cli("config", "get", "model")
    removed = cli("config", "unset", "model")

    assert (absent.code, absent.err) == (1, "error: model is not set, and has no default\n")
    assert (done.out, done.err) == ("", f"model is small one in {file}.\n")
    assert found.out == "small one\n"
    assert removed.err == f"model is no longer set in {file}.\n"
    assert file.read_text() == ""
    assert cli("config", "unset", "model").err == f"model is not set in {file}.\n"


def test_the_file_and_its_folder_are_for_their_owner_alone(cli: CommandLine, file: Path) -> None:
    cli("config", "set", "quiet", "true")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]


def test_a_link_to_the_file_stays_a_link(cli: CommandLine, file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_text("# mine\n")
    file.parent.mkdir()
    file.symlink_to(elsewhere)
    cli("config", "set", "model", "small")

    assert file.is_symlink()
    assert elsewhere.read_text() == '# mine\nmodel = "small"\n'


def test_places_are_kept_whole_wherever_they_were_set(
    cli: CommandLine, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("config", "set", "documents", "docs")
    cli("config", "set", "store", "sqlite:all.db")

    assert tomllib.loads(file.read_text()) == {
        "documents": str(tmp_path / "docs"),
        "store": f"sqlite:{tmp_path / 'all.db'}",
    }


def test_a_change_that_does_not_count_here_says_so(cli: CommandLine) -> None:
    answer = cli("config", "set", "model", "small", PLAYHEAD_MODEL="large")

    assert answer.err.splitlines()[1] == "Here PLAYHEAD_MODEL says otherwise, and counts."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["set", "modle", "x"], 'there is no setting "modle"; did you mean model?'),
        (["set", "api_key", "sk-1"], "api_key is not kept in a file"),
        (["set", "quiet", "maybe"], "quiet is true or false"),
        (["set", "base_url", "ftp://host"], "base_url is an address that begins with http:// or https://"),
        (["set", "model", "\x1b[2J"], "model holds a control character"),
        (["set", "model", " "], "model is a text"),
        (["set", "model"], "write: playhead config set KEY VALUE"),
        (["get"], "write: playhead config get KEY"),
        (["show", "model"], "write: playhead config show"),
        (["get", "modle"], 'there is no setting "modle"'),
        (["polish"], "polish"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    cli: CommandLine, file: Path, arguments: list[str], said: str
) -> None:
    answer = cli("config", *arguments)

    assert answer.code == 2
    assert said in answer.err
    assert not file.exists()


def test_a_broken_file_stops_commands_and_config_still_says_where_it_is(cli: CommandLine, file: Path) -> None:
    file.parent.mkdir()
    file.write_text("model = \n")

    assert cli("list").code == 2
    assert cli("config", "path").out == f"{file}\n"
    assert cli("config", "set", "model", "x").code == 2
    assert file.read_text() == "model = \n"


def test_a_file_that_commands_refuse_is_mended_with_config(cli: CommandLine, file: Path) -> None:
    file.parent.mkdir()
    file.write_text("quiet = true\nmodel = 3\n")
    before = cli("list")
    mended = cli("config", "set", "model", "small")

    assert before.code == 2
    assert mended.code == 0
    assert cli("list").code == 0


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ('# mine\nmodel = "a"  # the usual\nquiet = true\n', "b", '# mine\nmodel = "b"  # the usual\nquiet = true\n'),
        ("  'model'='a'#x\n", 'b"c\\', '  \'model\'="b\\"c\\\\"#x\n'),
        ("quiet = true", "b", 'quiet = true\nmodel = "b"\n'),
        ("quiet = true\r\n", "b", 'quiet = true\r\nmodel = "b"\r\n'),
        ("[later]\nx = 1\n", "b", 'model = "b"\n[later]\nx = 1\n'),
        ('model = "a"\nquiet = true\n', None, "quiet = true\n"),
        ("model = 3 # odd\n", "b", 'model = "b" # odd\n'),
        ("", None, ""),
    ],
)
def test_only_the_line_of_the_key_changes(before: str, value: str | None, after: str) -> None:
    assert edited(before, "model", value, path=Path("config.toml")) == after


@pytest.mark.parametrize("value", ["b", None])
@pytest.mark.parametrize("text", ['model = """\na\n"""\n', "note = '''\nmodel = 1\n'''\n", '"mod\\u0065l" = "a"\n'])
def test_a_file_that_is_written_in_another_way_is_left_to_its_owner(text: str, value: str | None) -> None:
    with pytest.raises(Failure) as refused:
        edited(text, "model", value, path=Path("config.toml"))

    assert "edit it by hand" in str(refused.value)


_LINES = st.sampled_from(
    [
        "# note",
        'model = "a"',
        "model = 'a' # x",
        "quiet = true",
        '"model" = 1',
        "[table]",
        "model.x = 1",
        'x = """',
        '"""',
    ]
)
_VALUES = st.none() | st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_LINES, max_size=6).map("\n".join), _VALUES)
def test_a_change_says_what_was_wanted_or_is_refused(text: str, value: str | None) -> None:
    try:
        before = tomllib.loads(text)
        after = tomllib.loads(edited(text, "model", value, path=Path("config.toml")))
    except (Failure, tomllib.TOMLDecodeError):
        return

    assert after.get("model") == value
    assert {**before, "model": value} == {**after, "model": value}


@pytest.mark.parametrize(("call", "said"), [("open", "Permission denied"), ("fsync", "No space left on device")])
def test_a_file_that_cannot_be_written_is_named_and_stays_as_it_was(
    cli: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch, call: str, said: str
) -> None:
    cli("config", "set", "model", "small")
    before = file.read_text()
    number = errno.EACCES if call == "open" else errno.ENOSPC
    true_open = os.open

    def refused(path: object, *arguments: Any) -> int:
        if call == "open" and not str(path).endswith(".new"):
            return true_open(path, *arguments)  # type: ignore[arg-type]
        raise OSError(number, os.strerror(number), *([path] if call == "open" else []))

    with monkeypatch.context() as refusing:
        refusing.setattr(os, call, refused)
        answer = cli("config", "set", "model", "large")

    assert answer.code == 1
    assert answer.err == f"error: {file} cannot be written: {said}; it is as it was\n"
    assert file.read_text() == before
    assert os.listdir(file.parent) == [file.name]


def test_a_folder_that_cannot_be_made_is_reported_in_a_sentence(cli: CommandLine, tmp_home: Path) -> None:
    (tmp_home / "playhead").write_text("a file in the way")
    answer = cli("config", "set", "model", "small")

    assert answer.code != 0
    assert answer.err.startswith("error: ")
    assert "mistake in Playhead" not in answer.err
    assert os.listdir(tmp_home) == ["playhead"]
