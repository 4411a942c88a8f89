"""Artifacts stay in their folder, whatever stands in its place or beside them."""

from pathlib import Path

import pytest

import playhead
from playhead.errors import PlayheadError
from playhead.stores.artifacts import content_name

SECRET = b"outside of the store"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / content_name(SECRET)).write_bytes(SECRET)
    return place


def test_a_link_in_place_of_the_folder_is_neither_written_nor_read_through(folder: Path, outside: Path) -> None:
    """K7."""
    with playhead.open(f"bundles:{folder}") as sessions:
        session = sessions.create("s")
        (folder / "s.artifacts").symlink_to(outside)
        with pytest.raises(PlayheadError):
            session.save_artifact("report.txt", b"inside")
        with pytest.raises(PlayheadError):
            sessions.store.artifacts.get(session.key, content_name(SECRET))

        assert session.artifacts() == {}
        assert [path.name for path in outside.iterdir()] == [content_name(SECRET)]


def test_a_link_among_the_artifacts_is_neither_read_nor_written_through(folder: Path, outside: Path) -> None:
    """K7."""
    target = outside / content_name(SECRET)
    with playhead.open(f"bundles:{folder}") as sessions:
        session = sessions.create("s")
        session.save_artifact("first.txt", b"first")
        (folder / "s.artifacts" / content_name(SECRET)).symlink_to(target)
        planted = outside / "planted"
        (folder / "s.artifacts" / content_name(b"second")).symlink_to(planted)
        with pytest.raises(PlayheadError):
            sessions.store.artifacts.get(session.key, content_name(SECRET))
        session.save_artifact("second.txt", b"second")

        assert session.artifact("second.txt") == b"second"
        assert not planted.exists()
        assert target.read_bytes() == SECRET


def test_deleting_a_session_leaves_what_a_link_leads_to(folder: Path, outside: Path) -> None:
    """K7."""
    with playhead.open(f"bundles:{folder}") as sessions:
        session = sessions.create("s")
        session.save_artifact("first.txt", b"first")
        (folder / "s.artifacts" / "link").symlink_to(outside)
        sessions.delete("s")

    assert not (folder / "s.artifacts").exists()
    assert (outside / content_name(SECRET)).read_bytes() == SECRET


@pytest.mark.parametrize("name", ["../../escape.txt", "/etc/passwd", "a/b", "..", "\x00"])
def test_whatever_an_artifact_is_called_its_bytes_lie_in_the_folder(folder: Path, name: str) -> None:
    """K7: the file's name is the hash of its content, so that no name leads anywhere."""
    with playhead.open(f"bundles:{folder}") as sessions:
        session = sessions.create("s")
        session.save_artifact(name, b"bytes")
        read = session.artifact(name)

    assert read == b"bytes"
    assert [path.name for path in (folder / "s.artifacts").iterdir()] == [content_name(b"bytes")]
    assert {path.name for path in folder.parent.iterdir()} == {"sessions"}
