"""Where the store is: the flag, then the variables, then the user's data folder."""

from pathlib import Path

import pytest

from playhead.cli.settings import StorePlace, store_place


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
    flag: str | None, environment: dict[str, str], expected: StorePlace
) -> None:
    assert store_place(flag, environment) == expected


def test_a_tilde_after_the_scheme_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert store_place("bundles:~/mine", {}).url == f"bundles:{tmp_path / 'mine'}"
    assert store_place(None, {"PLAYHEAD_STORE": "sqlite:~/a.db"}).url == f"sqlite:{tmp_path / 'a.db'}"
    assert store_place("bundles:./~backup", {}).url == "bundles:./~backup"


def test_without_a_word_the_sessions_are_in_the_users_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    place = store_place(None, {})

    assert place.named_by == "default"
    assert place.url.startswith("bundles:")
    assert Path(place.url.removeprefix("bundles:")).parts[-2:] == ("playhead", "sessions")
    assert list(tmp_path.iterdir()) == []
