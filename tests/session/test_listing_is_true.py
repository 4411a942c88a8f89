"""Every list shows every session as it is now, whoever wrote it, in every order, with every filter, on every page."""

import base64
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from playhead import Sessions
from playhead.errors import InvalidName, SessionNotFound, StoreClosed, StoreDamaged, StoreUnavailable
from playhead.features.listing import (
    Listed,
    Wanted,
    all_sessions,
    facets,
    first_sessions,
    newest_key,
    refresh_listing,
)
from playhead.model.ids import SessionKey
from playhead.stores.listing import FACETS, NOT_YET, SORTS, Facet, Listing, facet_values, fits, place, words_of
from playhead.stores.open import open_store
from tests.session.conftest import Clock

DAY_S = 86_400.0


def ids(rows: list[Listed]) -> list[str]:
    return [row.id for row in rows]


def paged(sessions: Sessions, *, limit: int, **wanted: Any) -> list[str]:
    """Return the ids of every page, one after the other."""
    found: list[str] = []
    cursor = None
    while True:
        page = sessions.list(limit=limit, cursor=cursor, **wanted)
        assert len(page.items) <= limit
        found += ids(page.items)
        cursor = page.next_cursor
        if cursor is None:
            assert page.total == len(found)
            return found


@pytest.fixture
def several(sessions: Sessions, clock: Clock) -> Sessions:
    """Sessions that differ in all that a list can be asked for."""
    shapes: list[dict[str, Any]] = [
        {"title": "Flaky upload test", "cwd": "/home/ada/upload", "labels": ["ci", "pinned"], "origin": "claude_code"},
        {"title": "upload: retries", "cwd": "/home/ada/upload", "labels": ["ci"], "origin": "codex"},
        {"title": "Ärger mit Zügen", "user": "ada", "config": {"name": "travel", "type": "agent", "node": "n1"}},
        {"title": "flaky, again", "app": "desk", "config": {"path": "desk.yaml", "type": "team", "group": "night"}},
        {"cwd": "/home/ada", "config": {"name": "travel", "type": "agent"}},
    ]
    for number, shape in enumerate(shapes):
        clock.now += DAY_S
        with sessions.create(f"s-{number}", **shape) as session:
            if number % 2 == 0:
                with session.turn(f"What of upload {number}?", agent="helper" if number else "coordinator") as turn:
                    turn.say("It is flaky.")
    return sessions


def rows_of(sessions: Sessions) -> list[Listed]:
    return all_sessions(sessions.store, Wanted())


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"app": "desk"},
        {"user": "ada"},
        {"query": "FLAKY"},
        {"query": "upload fl"},
        {"query": "ärger"},
        {"query": "nowhere"},
        {"query": "claude_code"},
        {"query": "yaml night"},
        {"status": "open"},
        {"agent": "helper"},
        {"label": "pinned"},
        {"cwd": "/home/ada/upload"},
        {"origin": "codex"},
        {"config": "travel"},
        {"config_type": "team"},
        {"node": "n1"},
        {"group": "night"},
        {"since": 1_767_225_600.0 + 2.5 * DAY_S},
        {"until": 1_767_225_600.0 + 2.5 * DAY_S},
        {"query": "upload", "label": "ci", "since": 1_767_225_600.0 + 1.5 * DAY_S},
    ],
)
def test_every_filter_order_and_page_gives_what_its_definition_says(several: Sessions, wanted: dict[str, Any]) -> None:
    """K23."""
    rows = [row for row in rows_of(several) if fits(row, Wanted(**wanted))]
    words = words_of(wanted.get("query"))
    for sort in SORTS:
        for is_reversed in (False, True):
            expected = ids(sorted(rows, key=lambda row: place(row, sort, words), reverse=is_reversed))
            asked: dict[str, Any] = {"sort": sort, "is_reversed": is_reversed}

            assert paged(several, limit=2, sort=sort, reverse=is_reversed, **wanted) == expected
            assert ids(all_sessions(several.store, Wanted(**wanted), **asked)) == expected
            assert ids(first_sessions(several.store, Wanted(**wanted), count=3, **asked)[0]) == expected[:3]
            assert first_sessions(several.store, Wanted(**wanted), count=1, **asked)[1] == len(expected)


def test_a_filter_that_is_empty_means_any(several: Sessions) -> None:
    names = [name for name in Wanted.__struct_fields__ if name not in ("since", "until")]
    blank = msgspec.convert(dict.fromkeys(names, ""), Wanted)

    assert len(all_sessions(several.store, blank)) == 5


def test_relevance_begins_with_a_word_in_the_title(sessions: Sessions) -> None:
    for id, title, cwd in (("cwd", "One", "/canary"), ("title", "A canary", "/home/ada"), ("asked", "", "/home/ada")):
        with sessions.create(id, title=title or None, cwd=cwd) as session:
            session.rename(title or "Two")
            with session.turn("Is there a canary?" if id == "asked" else "Hello"):
                pass

    assert ids(sessions.list(query="canary", sort="relevance").items) == ["title", "asked", "cwd"]
    assert ids(sessions.list(query="canary", sort="relevance", reverse=True).items) == ["cwd", "asked", "title"]
    assert ids(sessions.list(sort="relevance").items) == ids(sessions.list().items)


def test_what_another_program_wrote_is_in_the_next_list(reopen: Callable[[], Sessions], clock: Clock) -> None:
    """K21, K22."""
    ours, theirs = reopen(), reopen()
    ours.create("s", title="Ours").close()
    before = ours.list().items[0].summary
    other = theirs.get("s")
    other.append("message", {"role": "user", "parts": [{"type": "text", "content": "hello"}]}, agent="user")
    appended = ours.list().items[0].summary
    other.rename("Theirs")
    renamed = ours.list(query="theirs").items
    theirs.create("t")
    both = {row.id: row.summary.seq if row.summary else 0 for row in ours.list().items}
    theirs.delete("s")

    assert before is not None and (before.seq, before.title) == (2, "Ours")
    assert appended is not None and (appended.seq, appended.last_user) == (3, "hello")
    assert ids(renamed) == ["s"]
    assert both == {"s": 4, "t": 1}
    assert ids(ours.list().items) == ["t"]


def test_what_was_written_before_a_kill_is_in_the_next_list(reopen: Callable[[], Sessions]) -> None:
    """K21: nothing was pushed, since nobody closed anything."""
    killed = reopen()
    session = killed.create("s")
    session.turn("Why?")
    rows = reopen().list().items

    assert rows[0].summary is not None
    assert (rows[0].summary.seq, rows[0].summary.preview) == (session.seq, "Why?")


def test_a_list_writes_to_no_session(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        sessions.create(f"s-{number}").append("note", {"name": "step"})

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a list wrote to a session")

    for name in ("append", "save_summary", "save_snapshot", "put_records", "acquire"):
        monkeypatch.setattr(sessions.store, name, refuse)
    page, rows = sessions.list(), rows_of(sessions)
    sessions.overview()

    assert [row.summary.seq for row in page.items if row.summary] == [2, 2, 2]
    assert len(rows) == 3
    monkeypatch.undo()


def test_whoever_is_in_a_turn_is_running_and_who_left_one_open_is_interrupted(
    reopen: Callable[[], Sessions], clock: Clock
) -> None:
    theirs = reopen()
    for number in range(6):
        theirs.create(f"s-{number}", labels=["even"] if number % 2 == 0 else [])
    alive = [theirs.get(f"s-{number}").turn("Go on") for number in (0, 3)]
    left = theirs.get("s-4")
    left.append("turn_started", {"cause": "user"}, agent="coordinator", turn="left")
    theirs.get("s-5").set_status("running")
    ours = reopen()
    shown = {row.id: row.summary.status for row in ours.list().items if row.summary}
    counted = facets(ours.store, Wanted(), ["status", "label"])
    of_running = facets(ours.store, Wanted(status="running"), ["status", "label"])
    running = {
        "newest first": paged(ours, limit=1, status="running"),
        "reversed": paged(ours, limit=2, status="running", reverse=True),
        "by title": paged(ours, limit=1, status="running", sort="created"),
        "labelled": ids(ours.list(status="running", label="even").items),
    }
    interrupted = ours.list(status="interrupted")
    alive[0].end()

    assert shown == {"s-0": "running", "s-1": "open", "s-2": "open"} | {
        "s-3": "running",
        "s-4": "interrupted",
        "s-5": "running",
    }
    assert counted["status"] == {"running": 3, "open": 2, "interrupted": 1}
    assert counted["label"] == {"even": 3}
    assert of_running == {"status": {"running": 3}, "label": {"even": 1}}
    assert running["newest first"] == running["reversed"][::-1] == ["s-5", "s-3", "s-0"]
    assert running["by title"] == ["s-5", "s-3", "s-0"]
    assert running["labelled"] == ["s-0"]
    assert (ids(interrupted.items), interrupted.total) == (["s-4"], 1)
    assert ids(ours.list(status="running").items) == ["s-5", "s-3"]
    alive[1].end()


def test_counts_are_of_what_is_wanted(several: Sessions) -> None:
    rows = rows_of(several)
    for wanted in (Wanted(), Wanted(query="upload"), Wanted(config="travel"), Wanted(status="open", user="ada")):
        expected: dict[Facet, dict[str, int]] = {name: {} for name in FACETS}
        for row in rows:
            for name in FACETS if fits(row, wanted) else ():
                for value in facet_values(row.summary, name):
                    expected[name][value] = expected[name].get(value, 0) + 1

        assert facets(several.store, wanted, FACETS) == expected


def test_a_fork_is_counted_by_its_parent(sessions: Sessions) -> None:
    parent = sessions.create("parent")
    parent.fork(id="one").fork(id="grandchild")
    parent.fork(id="two")

    assert {row.id: row.fork_count for row in sessions.list().items} == {
        "parent": 2,
        "one": 1,
        "two": 0,
        "grandchild": 0,
    }
    assert [key.id for key in sessions.store.listing.forks(parent.key)] == ["one", "two"]


def test_the_last_session_is_the_first_of_the_list(sessions: Sessions, clock: Clock) -> None:
    nothing = newest_key(sessions.store, app="default", user="default")
    for number in range(3):
        clock.now += 1.0
        sessions.create(f"s-{number}")
    sessions.create("other", user="ada")
    sessions.get("s-1").rename("Now the last")

    assert nothing is None
    assert sessions.resume("@last").id == "s-1" == sessions.list(user="default", limit=1).items[0].id
    assert sessions.get("@last", user="ada").id == "other"
    with pytest.raises(SessionNotFound):
        sessions.resume("@last", user="nobody")


# Cursors


def encoded(pieces: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(pieces)).decode().rstrip("=")


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_cursor_belongs_to_one_order(several: Sessions, sort: str, reverse: bool) -> None:
    cursor = several.list(limit=1, sort=sort, reverse=reverse).next_cursor
    for other in SORTS:
        for way in (False, True):
            if (other, way) == (sort, reverse):
                assert several.list(limit=1, sort=other, reverse=way, cursor=cursor).items
                continue
            with pytest.raises(InvalidName, match="another order"):
                several.list(sort=other, reverse=way, cursor=cursor)


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        {},
        7,
        ["last_active"],
        ["last_active", False],
        ["last_active", 0, -1.0, "a", "b", "c"],
        ["last_active", False, "-1.0", "a", "b", "c"],
        ["last_active", False, True, "a", "b", "c"],
        ["last_active", False, None, "a", "b", "c"],
        ["last_active", False, -1.0, "a", "b"],
        ["last_active", False, -1.0, "a", "b", "c", "d"],
        ["last_active", False, -1.0, "a", 2, "c"],
        ["last_active", False, [-1.0], "a", "b", "c"],
        [["last_active"], False, -1.0, "a", "b", "c"],
        ["relevance", False, 1, -1.0, "a", "b", "c"],
        ["title", False, -1.0, "a", "b", "c"],
    ],
)
def test_a_cursor_that_no_list_gave_is_an_error(sessions: Sessions, pieces: object) -> None:
    sessions.create("s")
    with pytest.raises(InvalidName, match="cursor"):
        sessions.list(cursor=encoded(pieces))


@pytest.mark.parametrize(
    "pieces",
    [
        ["relevance", False, 2**80, -1.0, "a", "b", "c"],
        ["relevance", False, -1.5, -1.0, "a", "b", "c"],
        ["relevance", False, True, -1.0, "a", "b", "c"],
        ["relevance", False, -1, -1.0, "a", "b"],
        ["relevance", False, -1.0, "a", "b", "c"],
    ],
)
def test_a_cursor_of_a_rank_that_no_list_gave_is_an_error(sessions: Sessions, pieces: object) -> None:
    sessions.create("s")
    with pytest.raises(InvalidName, match="cursor"):
        sessions.list(cursor=encoded(pieces), sort="relevance", query="word")


@given(cursor=st.one_of(st.text(max_size=40), st.binary(max_size=60).map(lambda b: base64.b64encode(b).decode())))
@settings(max_examples=60)
def test_any_text_is_a_cursor_or_a_clear_error(cursor: str) -> None:
    with Sessions(open_store("memory:")) as sessions:
        sessions.create("s")
        with pytest.raises(InvalidName, match="cursor"):
            sessions.list(cursor=cursor)


def test_a_cursor_goes_on_where_its_row_was_also_when_that_is_gone(several: Sessions) -> None:
    whole = ids(several.list(sort="created", limit=5).items)
    page = several.list(sort="created", limit=2)
    last = page.items[-1].key
    several.delete(last.id, app=last.app, user=last.user)

    assert ids(several.list(sort="created", cursor=page.next_cursor).items) == whole[2:]


def test_more_than_a_page_of_rows_is_listed_whole(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("features", "stores"):
        monkeypatch.setattr(f"playhead.{name}.listing.PAGE_MAX", 4)
    for number in range(11):
        sessions.create(f"s-{number:02}")
    expected = [f"s-{number:02}" for number in range(11)][::-1]
    told: list[tuple[int, int]] = []
    sessions.refresh(on_progress=lambda done, count: told.append((done, count)))

    assert ids(all_sessions(sessions.store, Wanted())) == expected
    assert ids(first_sessions(sessions.store, Wanted(), count=9)[0]) == expected[:9]
    assert first_sessions(sessions.store, Wanted(), count=0) == ([], 11)
    assert paged(sessions, limit=4) == expected
    assert told[-1][0] in (10, 11)


# Rows that are behind


@dataclass
class Scripted:
    """A listing that says what a test wants, and asks another for the rest."""

    real: Listing
    behind: Callable[..., list[SessionKey]]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_a_session_that_is_written_to_all_the_while_hides_no_other(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.features.listing.PAGE_MAX", 2)
    busy = [sessions.create(f"busy-{number}").key for number in range(3)]
    late = sessions.create("late")
    late.append("note", {"name": "step"})
    real = sessions.store.listing
    asked: list[int] = []

    def behind(*, limit: int) -> list[SessionKey]:
        asked.append(limit)
        return sorted({*busy, *real.behind(limit=limit)})[:limit]

    monkeypatch.setattr(sessions.store, "listing", Scripted(real, behind))
    shown = {row.id: row.summary.seq for row in sessions.list().items if row.summary}

    assert shown["late"] == 2
    assert len(asked) <= 12


def test_a_failure_to_look_is_logged_and_the_rows_that_there_are_are_served(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """K21."""
    session = sessions.create("s", title="Before")
    sessions.list()
    session.append("note", {"name": "step"})

    def behind(**_: object) -> list[SessionKey]:
        raise StoreUnavailable("the directory cannot be read")

    def refresh(**_: object) -> None:
        raise StoreUnavailable("the directory cannot be looked through")

    scripted = Scripted(sessions.store.listing, behind)
    scripted.refresh = refresh  # type: ignore[attr-defined]
    monkeypatch.setattr(sessions.store, "listing", scripted)
    with caplog.at_level(logging.WARNING, logger="playhead"):
        page = sessions.list(refresh=True)
    with pytest.raises(StoreUnavailable, match="looked through"):
        sessions.refresh()

    assert ids(page.items) == ["s"]
    assert [record.getMessage().split(" may be stale: ")[1] for record in caplog.records] == [
        "the directory cannot be looked through",
        "the directory cannot be read",
    ]


def test_a_failure_to_look_is_raised_where_no_rows_are_known(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def behind(**_: object) -> list[SessionKey]:
        raise StoreUnavailable("the directory cannot be read")

    monkeypatch.setattr(sessions.store, "listing", Scripted(sessions.store.listing, behind))
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        sessions.list()


def test_a_closed_store_lists_nothing(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.list()
    sessions.close()
    with pytest.raises(StoreClosed):
        sessions.list()
    with pytest.raises(StoreClosed):
        sessions.overview()


@pytest.mark.parametrize("error", [StoreDamaged("event 1 is damaged"), KeyError(1), TypeError("no object")])
def test_a_session_whose_log_cannot_be_read_is_a_row_that_says_why(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """K21: it is not tried again until it changes."""
    sessions.create("good").append("note", {"name": "step"})
    bad = sessions.create("bad")
    bad.append("note", {"name": "step"})
    tried = []
    real = sessions.store.facts

    def facts_of(key: SessionKey, **options: Any) -> list[Any]:
        if key.id == "bad":
            tried.append(key)
            raise error
        return real(key, **options)

    monkeypatch.setattr(sessions.store, "facts", facts_of)
    rows = {row.id: row for row in sessions.list().items}
    count = len(tried)
    again = sessions.list(status="unreadable")
    overview = sessions.overview()
    looked_again = len(tried) - count
    monkeypatch.setattr(sessions.store, "facts", real)
    sessions.get("bad").rename("Whole again")

    assert rows["good"].problem is None
    assert rows["bad"].summary is None
    assert str(error) in (rows["bad"].problem or "")
    assert (ids(again.items), again.total, looked_again) == (["bad"], 1, 0)
    assert (overview.unreadable_count, overview.by_status) == (1, {"open": 1, "unreadable": 1})
    assert [row.summary.title for row in sessions.list(query="whole").items if row.summary] == ["Whole again"]


def test_a_row_that_cannot_be_kept_is_let_go(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.create("s")
    sessions.list()
    real = sessions.store.listing

    def put(*_: object, **__: object) -> None:
        raise StoreUnavailable("nothing can be kept")

    scripted = Scripted(real, real.behind)
    scripted.put = put  # type: ignore[attr-defined]
    monkeypatch.setattr(sessions.store, "listing", scripted)
    sessions.create("t")

    shown = {row.id: row.problem for row in sessions.list().items}

    # Who can tell which rows of a page are behind has them read for it.
    assert shown == {"s": None, "t": None if sessions.url.startswith("bundles:") else NOT_YET}


def test_refreshing_says_what_it_did(sessions: Sessions) -> None:
    """K21."""
    for number in range(3):
        sessions.create(f"s-{number}").close()
    sessions.list()
    sessions.get("s-1").append("note", {"name": "step"})
    told: list[tuple[int, int]] = []
    quick = sessions.refresh()
    full = refresh_listing(sessions.store, full=True, on_progress=lambda done, count: told.append((done, count)))
    page = sessions.list(full_rescan=True)

    assert (quick.looked_at, quick.unreadable) == (3, 0)
    assert 1 <= quick.read <= 3
    assert (full.looked_at, full.read, full.removed) == (3, 3, 0)
    assert told and all(0 <= done <= count for done, count in told)
    assert len(page.items) == 3
