"""`playhead doctor`: what is wrong with the store, named for a person and for a program, and mended."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import playhead
from playhead import Sessions
from playhead.features.doctor import mending
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal
from tests.features.broken_stores import (
    ALL,
    ARTIFACT_NAME,
    BUNDLES,
    LONG_AGO,
    SESSIONS,
    Store,
    kill_a_writer,
    made_store,
)
from tests.features.test_doctor import tree


@pytest.fixture
def store(cli: CommandLine, store_url: str) -> Store:
    """The store that the command line uses by itself, with sessions in it and open nowhere."""
    place = Path(store_url.removeprefix("bundles:"))
    made = made_store(place.parent, "bundles")
    os.rename(made.place, place)
    return Store("bundles", place)


def broken(store: Store, *ways: str) -> None:
    for way in ways:
        ALL[f"bundles: {way}"][1].how(store)


def test_a_whole_store_has_no_fault_and_ends_with_0(cli: CommandLine, store: Store) -> None:
    text, facts = cli("doctor"), cli("doctor", "--deep", "--json").json

    assert (text.code, text.out) == (0, "")
    assert "3 sessions" in text.err and "1 in the trash" in text.err and "No fault was found" in text.err
    assert playhead.__version__ in text.err and "SQLite" in text.err
    assert (facts["session_count"], facts["artifact_count"], facts["trashed_count"]) == (3, 3, 1)
    assert (facts["findings"], facts["fault_count"], facts["mended"]) == ([], 0, [])


@pytest.mark.parametrize("name", BUNDLES)
def test_each_fault_ends_with_6_and_is_a_row_with_its_place_and_what_to_do(
    cli: CommandLine, store: Store, name: str
) -> None:
    """C-14."""
    broken(store, name)
    answer = cli("doctor")
    rows = [row for row in answer.rows if row[1] == BUNDLES[name].kind]

    assert answer.code == 6
    assert rows and all(len(row) == 5 and row[0] == "fault" and str(store.place) in row[2] for row in rows)


def test_many_faults_are_mended_at_once_after_one_backup_and_what_is_left_is_said(
    cli: CommandLine, store: Store
) -> None:
    broken(store, "a page of zeros in the log", "a stream of no session")
    (store.place / "home-0001.artifacts" / ARTIFACT_NAME).unlink()
    (store.place / "play-0001.playhead").chmod(0o644)
    before, looked = cli("doctor", "--json").json, cli("doctor")
    answer = cli("doctor", "--fix", "--json")
    after = cli("doctor")
    facts = answer.json

    assert looked.code == 6 and "playhead doctor --fix" in looked.err
    assert {one["kind"] for one in before["findings"]} >= {"events lost", "orphan", "artifact missing", "permissions"}
    assert answer.code == 6
    assert [one["kind"] for one in facts["findings"] if one["is_fault"]] == ["artifact missing"]
    assert len(facts["backups"]) == 1 and Path(facts["backups"][0]).is_dir()
    assert [step["is_done"] for step in facts["mended"]].count(False) == 1
    assert after.code == 6 and [row[1] for row in after.rows if row[0] == "fault"] == ["artifact missing"]


def test_what_was_done_and_where_the_backup_is_are_said_in_words(cli: CommandLine, store: Store) -> None:
    broken(store, "a page of zeros in the log")
    answer = cli("doctor", "--fix")

    assert answer.code == 0
    assert "Mended: work-0001.playhead was put together anew" in answer.err and "lost are events" in answer.err
    assert "The store as it was before: " in answer.err and "No fault is left." in answer.err
    assert cli("show", "work-0001").code == 0
    assert cli("verify", "--all").code == 0


def test_looking_changes_no_byte_also_where_a_writer_died(cli: CommandLine, store: Store) -> None:
    kill_a_writer(store)
    Path(f"{store.database}-shm").unlink()
    before = tree(store)
    answer = cli("doctor", "--deep")

    assert tree(store) == before
    assert not Path(f"{store.database}-shm").exists()
    assert answer.code == 0 and "dead holder" in answer.out


def test_a_person_reads_paragraphs_and_escapes_never_reach_the_terminal(cli: CommandLine, store: Store) -> None:
    (store.place / "odd\x1b]0;owned\x07.playhead").write_bytes(b"no database" * 500)
    shown = in_a_terminal("doctor", NO_COLOR="1")

    assert shown.code == 6
    assert "What to do:" in shown.shown
    assert "owned" in shown.shown and "\x1b]0;" not in shown.shown and "\x07" not in shown.shown


def test_settings_that_cannot_be_understood_are_a_finding(cli: CommandLine, store: Store) -> None:
    config = store.place.parent / "config.toml"
    config.write_text("modle = 'm'\n")
    answer = cli("doctor", "--json")
    named = cli("--store", store.url, "doctor", "--json")

    assert answer.code == named.code == 6
    assert [(one["kind"], one["place"]) for one in answer.json["findings"]] == [("settings", str(config))]
    assert (answer.json["store"], named.json["store"]) == (None, store.url)
    assert named.json["session_count"] == 3


def test_a_store_that_is_not_there_yet_is_no_fault_and_one_that_was_named_is_not_found(
    cli: CommandLine, tmp_path: Path
) -> None:
    default, named = cli("doctor"), cli("--store", f"bundles:{tmp_path}/nowhere", "doctor")

    assert (default.code, default.out) == (0, "")
    assert "There is no store" in default.err
    assert named.code == 3
    assert cli("--store", "memory:", "doctor").code == 2


def test_without_a_backup_nothing_is_mended(cli: CommandLine, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(store, "a page of zeros in the log")
    before = tree(store)

    def full(*_: object, **__: object) -> None:
        raise playhead.StoreFull("no space left")

    monkeypatch.setattr(mending, "back_up", full)
    answer = cli("doctor", "--fix")

    assert answer.code == 1
    assert "no backup could be made: no space left" in answer.err
    assert tree(store) == before


def test_ctrl_c_while_a_database_is_replaced_leaves_the_damaged_one_in_its_place(
    cli: CommandLine, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(store, "a page of zeros in the log")
    damaged = store.database.read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mending, "write_saved", interrupted)
    answer = cli("doctor", "--fix")

    assert answer.code == 130
    assert store.database.read_bytes() == damaged
    assert [path.name for path in store.place.iterdir() if path.name.endswith(".new")] == []


def test_leftovers_of_who_was_killed_are_notes_and_go(cli: CommandLine, store: Store) -> None:
    leftover = store.place / ".home-0001.playhead.0123456789abcdef.new"
    leftover.write_bytes(b"half")
    os.utime(leftover, (LONG_AGO, LONG_AGO))
    young = store.place / ".home-0001.playhead.fedcba9876543210.new"
    young.write_bytes(b"half")
    (store.place / ".home-0001.playhead.making").touch(mode=0o600)
    answer, fixed = cli("doctor"), cli("doctor", "--fix")
    kinds = [row[1] for row in answer.rows if row[0] == "note"]

    assert kinds == ["leftover", "leftover"]
    assert not leftover.exists() and not (store.place / ".home-0001.playhead.making").exists()
    assert young.exists()
    assert fixed.code == 0


def test_writers_at_work_are_no_faults(cli: CommandLine, store: Store) -> None:
    """What a look sees while others write is of no one moment; it is looked at again before anything is said."""
    is_over = threading.Event()

    def write(sessions: Sessions) -> None:
        session = sessions.get("home-0001")
        while not is_over.is_set():
            with session.turn("Go on") as turn:
                turn.say("word " * 500)

    with playhead.open(store.url) as sessions:
        writer = threading.Thread(target=write, args=(sessions,))
        writer.start()
        try:
            answers = [cli("doctor", "--json").json for _ in range(8)]
        finally:
            is_over.set()
            writer.join()

    assert [answer["findings"] for answer in answers if answer["fault_count"]] == []


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of a user who is not the system's, and this process as that user."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only the system's own user can become another one")
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, 65_534, 65_534)
    os.seteuid(65_534)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


def test_a_folder_that_cannot_be_read_is_named_and_made_readable_where_it_is_ones_own(cli: CommandLine) -> None:
    with as_nobody() as folder:
        made = made_store(folder, "bundles")
        made.place.chmod(0o000)
        answer = cli("--store", made.url, "doctor", PLAYHEAD_HOME=str(folder / "home"))
        fixed = cli("--store", made.url, "doctor", "--fix", PLAYHEAD_HOME=str(folder / "home"))
        mode = stat.S_IMODE(made.place.stat().st_mode)
        os.seteuid(0)
        os.chown(made.place, 0, 0)
        os.seteuid(65_534)
        others = cli("--store", made.url, "doctor", "--fix", PLAYHEAD_HOME=str(folder / "home"))

    assert answer.code == 6
    assert {row[1] for row in answer.rows} == {"permissions", "place"}
    assert (fixed.code, mode) == (0, 0o700)
    assert others.code == 6
    assert any("belong to another user" in row[3] for row in others.rows)


def test_one_file_for_all_sessions_is_mended_too(cli: CommandLine, tmp_path: Path) -> None:
    made = made_store(tmp_path, "sqlite")
    ALL["sqlite: a first page of zeros"][1].how(made)
    found, fixed = cli("--store", made.url, "doctor"), cli("--store", made.url, "doctor", "--fix")
    with playhead.open(made.url) as sessions:
        whole = {row.id: sessions.verify(row.id).ok for row in sessions.list().items}

    assert (found.code, fixed.code) == (6, 0)
    assert whole == dict.fromkeys(SESSIONS, True)
