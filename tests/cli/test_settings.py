"""Settings: the nearest word counts, a project's file does no harm, and what makes no sense is named with its place."""

import os
from pathlib import Path

import pytest

from playhead.cli.settings import FILE_BYTES_MAX, SETTINGS, Found, Settings, StorePlace, store_place
from tests.cli.conftest import CommandLine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a folder in it, both without settings."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


@pytest.fixture
def user_file(tmp_home: Path) -> Path:
    """Where the person's own settings are; nothing is there yet."""
    file = tmp_home / "playhead" / "config.toml"
    file.parent.mkdir()
    return file


def _settings(folder: Path, **environment: str) -> Settings:
    return Settings({"PLAYHEAD_HOME": os.environ["PLAYHEAD_HOME"], **environment}, folder)


@pytest.mark.parametrize(
    ("flag", "environment", "expected"),
    [
        ("sqlite:a.db", {"PLAYHEAD_STORE": "memory:", "PLAYHEAD_HOME": "/h"}, StorePlace("sqlite:a.db", "--store")),
        (None, {"PLAYHEAD_STORE": "sqlite:b.db", "PLAYHEAD_HOME": "/h"}, StorePlace("sqlite:b.db", "PLAYHEAD_STORE")),
        (None, {"PLAYHEAD_HOME": "/h"}, StorePlace(f"bundles:{Path('/h/sessions')}", "PLAYHEAD_HOME")),
        (
            "",
            {"PLAYHEAD_STORE": "", "PLAYHEAD_HOME": "/h"},
            StorePlace(f"bundles:{Path('/h/sessions')}", "PLAYHEAD_HOME"),
        ),
    ],
)
def test_the_nearest_word_about_the_store_counts(
    flag: str | None, environment: dict[str, str], expected: StorePlace, tmp_path: Path
) -> None:
    assert store_place(flag, Settings(environment, tmp_path)) == expected


def test_a_tilde_after_the_scheme_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    nothing, variable = Settings({}, tmp_path), Settings({"PLAYHEAD_STORE": "sqlite:~/a.db"}, tmp_path)

    assert store_place("bundles:~/mine", nothing).url == f"bundles:{tmp_path / 'mine'}"
    assert store_place(None, variable).url == f"sqlite:{tmp_path / 'a.db'}"
    assert store_place("bundles:./~backup", nothing).url == "bundles:./~backup"


def test_without_a_word_the_sessions_are_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    settings = Settings({}, tmp_path)
    place = store_place(None, settings)

    assert place.named_by == "default"
    assert place.url.startswith("bundles:")
    assert Path(place.url.removeprefix("bundles:")).parts[-2:] == ("playhead", "sessions")
    assert settings.personal_path.parts[-2:] == ("playhead", "config.toml")
    assert list(tmp_path.iterdir()) == []


def test_the_flag_counts_before_the_variable_the_project_and_the_person(project: Path, user_file: Path) -> None:
    nothing = _settings(project / "src").found("model")
    user_file.write_text('model = "of the person"\n')
    personal = _settings(project / "src").found("model")
    (project / ".playhead.toml").write_text('model = "of the project"\n')
    of_project = _settings(project / "src").found("model")
    (project / "src" / ".playhead.toml").write_text("# The nearest file counts, and it says nothing.\n")
    of_nearest = _settings(project / "src").found("model")
    variable = _settings(project, PLAYHEAD_MODEL="of the variable")

    assert nothing == Found(None, "default")
    assert personal == Found("of the person", str(user_file))
    assert of_project == Found("of the project", str(project / ".playhead.toml"))
    assert of_nearest == personal
    assert variable.found("model") == Found("of the variable", "PLAYHEAD_MODEL")
    assert variable.found("model", "of the flag") == Found("of the flag", "--model")


def test_a_project_runs_no_code_sends_nothing_elsewhere_and_stays_in_its_folder(
    project: Path, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.parent))
    (project / "out").symlink_to(project.parent)
    user_file.write_text('agent = "mine:agent"\nbase_url = "http://localhost:11434/v1"\n')
    (project / ".playhead.toml").write_text(
        'agent = "evil:agent"\nbase_url = "http://evil.example/v1"\nquiet = true\n'
        'documents = "out/secrets"\nmodel = "small"\nstore = "bundles:../elsewhere"\n'
    )
    settings = Settings({}, project)
    file = settings.project
    first, second = settings.refusal("agent"), settings.refusal("agent")

    assert file is not None
    assert set(file.refused) == {"agent", "base_url", "quiet", "documents", "store"}
    assert file.values == {"model": "small"}
    assert _settings(project).found("agent").value == "mine:agent"
    assert _settings(project).found("base_url").value == "http://localhost:11434/v1"
    assert first == f"agent in {file.path} is passed over: it names code that would be run."
    assert second is None
    assert Settings({"PLAYHEAD_AGENT": "mine:agent"}, project).refusal("agent") is None


@pytest.mark.parametrize(
    "store", ["memory:", "postgresql://db.example/sessions", "bundles:/var/sessions", "sqlite:~/a.db"]
)
def test_a_project_keeps_its_sessions_in_files_of_its_own_or_says_nothing_of_them(
    project: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(project.parent))
    (project / ".playhead.toml").write_text(f'store = "{store}"\n')

    assert store_place(None, Settings({}, project)).named_by == "default"


def test_a_project_may_keep_its_sessions_and_documents_inside(project: Path) -> None:
    (project / ".playhead.toml").write_text('store = "bundles:.sessions"\ndocuments = "docs"\n')
    settings = Settings({}, project / "src")
    place = store_place(None, settings)

    assert place == StorePlace(f"bundles:{project / '.sessions'}", str(project / ".playhead.toml"))
    assert settings.found("documents").value == str(project / "docs")


def test_playhead_home_keeps_its_sessions_whatever_a_project_says(project: Path, user_file: Path) -> None:
    (project / ".playhead.toml").write_text('store = "bundles:.sessions"\n')
    without = store_place(None, _settings(project))
    user_file.write_text('store = "sqlite:all.db"\n')
    own = store_place(None, _settings(project))

    assert without == StorePlace(f"bundles:{user_file.parent / 'sessions'}", "PLAYHEAD_HOME")
    assert own == StorePlace(f"sqlite:{user_file.parent / 'all.db'}", str(user_file))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file away")
def test_the_file_of_another_user_in_a_shared_folder_says_nothing(
    project: Path, tmp_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / ".playhead.toml"
    file.write_text('model = "theirs"\n')
    os.chown(file, 12_345, 12_345)
    settings = _settings(project)

    assert settings.found("model").value is None
    assert settings.refusal("model") == (
        f"model in {file} is passed over: the file belongs to another user of this machine."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('model = "m"\nmodle = "x"\n', 'line 2: there is no setting "modle"; did you mean model?'),
        ("[agent]\nx = 1\n", "line 1: agent is a text, not {'x': 1}"),
        ("[tools]\nx = 1\n", 'line 1: there is no setting "tools"; there are store, agent, '),
        ("model = 3\n", "line 1: model is a text, not 3"),
        ('quiet = "yes"\n', "line 1: quiet is true or false, not 'yes'"),
        ('\nmodel = "\\u001b[2J"\n', "line 2: model holds a control character"),
        ('api_key = "sk-1"\n', "line 1: api_key is not kept in a file; put the key into the environment"),
        ('OPENAI_API_KEY = "sk-1"\n', "line 1: OPENAI_API_KEY is not kept in a file"),
        ('base_url = "https://ada:secret@host/v1"\n', "line 1: base_url is an address that begins with http"),
        ('base_url = "file:///etc"\n', "line 1: base_url is an address that begins with http"),
        ('store = "sessions.db"\n', "line 1: store is bundles:DIR or sqlite:FILE"),
        ('model = "m\n', "is no TOML"),
        ("# " + "x" * FILE_BYTES_MAX, "is larger than"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_with_the_line(
    cli: CommandLine, user_file: Path, text: str, said: str
) -> None:
    user_file.write_text(text)
    answer = cli("list")

    assert answer.code == 2
    assert answer.err.startswith(f"error: {user_file}")
    assert said in answer.err
    assert "secret" not in answer.err and "sk-1" not in answer.err


def test_a_file_that_is_no_text_and_a_pipe_in_its_place_are_named_as_well(cli: CommandLine, user_file: Path) -> None:
    user_file.write_bytes(b"model = '\xff'")
    binary = cli("list")
    user_file.unlink()
    os.mkfifo(user_file)
    pipe = cli("list")

    assert (binary.code, binary.err) == (2, f"error: {user_file} is not UTF-8 text\n")
    assert (pipe.code, pipe.err) == (2, f"error: {user_file} is no regular file\n")


def test_commands_obey_the_settings_and_note_what_is_passed_over(
    cli: CommandLine, user_file: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / ".playhead.toml").write_text('store = "bundles:/var/elsewhere"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.parent))
    monkeypatch.setenv("XDG_DATA_HOME", str(project.parent))
    refused = cli("list", PLAYHEAD_HOME="")
    user_file.write_text("quiet = true\n")
    silent = cli("list")
    switched = cli("list", PLAYHEAD_QUIET="0")

    assert refused.err.count("is passed over: a project names places inside its own folder only.") == 1
    assert silent.err == ""
    assert switched.err.startswith("No sessions in ")
    assert cli("list", PLAYHEAD_QUIET="maybe").code == 2


def test_every_setting_has_a_variable_of_its_own() -> None:
    variables = {one.variable for one in SETTINGS.values()}

    assert len(variables) == len(SETTINGS)
    assert "PLAYHEAD_BASE_URL" in variables
    assert "PLAYHEAD_HOME" not in variables


def test_links_that_lead_in_a_circle_are_no_reason_to_fail(project: Path, tmp_home: Path) -> None:
    (project / "docs").symlink_to("docs")
    (project / ".playhead.toml").write_text('documents = "docs"\n')
    settings = _settings(project)

    assert settings.found("documents") == Found(None, "default")
    assert "inside its own folder" in (settings.refusal("documents") or "")


@pytest.mark.parametrize("call", [["--store", "", "list"], ["list", "--store", " "]])
def test_an_empty_store_is_a_mistake_and_no_other_store_is_taken(
    cli: CommandLine, upload: str, call: list[str]
) -> None:
    answer = cli(*call)

    assert (answer.code, answer.out) == (2, "")
    assert "--store is empty" in answer.err
