"""Away and back again on the command line, in every store: K23 of what a session is promised."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.promises.hindrances import full_disk


@pytest.fixture(params=["bundles", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    """A store of either kind with two sessions, the first with an artifact."""
    url = f"{request.param}:{tmp_home / 'kept'}"
    monkeypatch.setenv("PLAYHEAD_STORE", url)
    with playhead.open(url) as sessions:
        with sessions.create("upload-0001", title="Flaky upload test") as session:
            with session.turn("Why does it fail?") as turn:
                turn.say("It times out.")
            session.save_artifact("trace.txt", b"connection reset by peer")
        sessions.create("other-0001", title="Other").close()
        yield sessions


def listed(cli: CommandLine) -> list[str]:
    return sorted(row[0] for row in cli("list").rows)


def overview(cli: CommandLine) -> tuple[int, int]:
    """Return how many sessions there are, and how many in the trash."""
    found = cli("stats", "--overview", "--json").json
    return found["session_count"], found["trashed_count"]


def test_a_session_goes_with_its_artifacts_and_comes_back_with_them(cli: CommandLine, store: Sessions) -> None:
    gone = cli("rm", "upload-0001")
    away = (listed(cli), cli("search", "times").rows, cli("show", "upload-0001").code, overview(cli))
    undo = gone.err.splitlines()[-1].removeprefix("To undo: playhead ").split()
    back = cli(*undo)
    session = store.get("upload-0001")

    assert (gone.code, back.code, undo[0]) == (0, 0, "restore")
    assert away == (["other-0001"], [], 3, (1, 1))
    assert (listed(cli), overview(cli)) == (["other-0001", "upload-0001"], (2, 0))
    assert session.artifact("trace.txt") == b"connection reset by peer"
    assert len(cli("search", "times").rows) == 1
    assert cli("verify", "--all").code == 0


def test_the_id_of_what_is_in_the_trash_may_be_used_again(cli: CommandLine, store: Sessions) -> None:
    cli("rm", "upload-0001")
    store.create("upload-0001", title="Begun again").close()
    taken, beside = cli("restore", "@last"), cli("restore", "@last", "--as", "upload-old")
    titles = {row[0]: row[1] for row in cli("list").rows}

    assert (taken.code, beside.code) == (1, 0)
    assert titles == {"upload-0001": "Begun again", "upload-old": "Flaky upload test", "other-0001": "Other"}
    assert store.get("upload-old").artifact("trace.txt") == b"connection reset by peer"


def test_a_session_that_somebody_is_in_a_turn_of_stays(cli: CommandLine, store: Sessions) -> None:
    with playhead.open(store.url) as others, others.get("upload-0001").turn("Go on", label="the other terminal"):
        answers = [cli("rm", "upload-0001"), cli("rm", "other-0001", "upload-0001", "--purge", "-y")]
        during = listed(cli)

    assert [answer.code for answer in answers] == [4, 4]
    assert all("the other terminal" in answer.err for answer in answers)
    assert during == ["other-0001", "upload-0001"]


def test_what_is_purged_leaves_nothing_but_the_others(cli: CommandLine, store: Sessions) -> None:
    purged = cli("rm", "upload-0001", "--purge", "-y")
    gone = (listed(cli), overview(cli), cli("restore").rows)
    cli("rm", "other-0001")
    emptied = cli("rm", "--empty-trash", "-y")

    assert (purged.code, emptied.code) == (0, 0)
    assert gone == (["other-0001"], (1, 0), [])
    assert (listed(cli), overview(cli)) == ([], (0, 0))


def test_nothing_goes_by_a_name_that_is_not_its_id(cli: CommandLine, store: Sessions) -> None:
    codes = [cli("rm", name).code for name in ("Flaky upload test", "upload", "upl", "0001", "*", "UPLOAD-0001")]

    assert codes == [3, 0, 3, 3, 3, 3]
    assert listed(cli) == ["other-0001"]


def test_what_was_listed_before_is_listed_right_after(cli: CommandLine, store: Sessions) -> None:
    """The row of a session goes and comes with it, also where somebody else's list was read in between."""
    codes, lists = [], []
    with playhead.open(store.url) as others:
        for command in (["rm", "@last"], ["restore", "@last"], ["rm", "upload-0001"], ["restore", "upload-0001"]):
            codes.append(cli(*command).code)
            lists.append((sorted(row.id for row in others.list().items), listed(cli)))

    assert codes == [0, 0, 0, 0]
    assert [theirs for theirs, ours in lists if theirs != ours] == []
    assert [len(ours) for _, ours in lists] == [1, 2, 1, 2]
    assert listed(cli) == ["other-0001", "upload-0001"]


def test_a_full_disk_takes_no_session_away(cli: CommandLine, store: Sessions) -> None:
    store.close()
    with full_disk():
        cli("rm", "upload-0001")
        full = listed(cli)
    cli("restore", "@last")

    assert "other-0001" in full
    assert listed(cli) == ["other-0001", "upload-0001"]
    assert cli("verify", "--all").code == 0
