"""What all tests share: a home of their own, the real data beside the project, and how Hypothesis searches."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

PROJECT = Path(__file__).resolve().parent.parent

# Before any test imports it: pytest shows what a failed assertion of the shipped suite compared.
pytest.register_assert_rewrite("playhead.testing")

# Neither profile has a deadline: these tests write to disk, and a busy machine is not a failing test.
# "ci" tries the same examples every time, so that a change is judged by what it changes; "default" keeps exploring.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real sessions of other programs, kept beside the project and not in it; skips where they are absent."""
    folder = PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real sessions (../shared/data) is not beside this checkout")
    return folder


@pytest.fixture
def tmp_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory that every way of asking for one leads to, with PLAYHEAD_HOME inside it."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("XDG_", "PLAYHEAD_"))]:
        monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("PLAYHEAD_HOME", str(home / "playhead"))
    return home
