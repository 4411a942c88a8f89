"""The picker: what it shows, what keys do, and how little of ten thousand sessions a key touches."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from playhead import Sessions
from playhead.cli import picker, picker_screen, text as texts
from playhead.cli.picker import PREVIEW_EVENTS, preview
from playhead.cli.picker_rows import Rows, haystack, row_text
from playhead.cli.picker_screen import shown
from playhead.errors import StoreDamaged
from playhead.features.listing import Listed, Page
from playhead.model.ids import SessionKey
from playhead.views.summary import Summary
from tests.cli.conftest import ESCAPES
from tests.cli.terminals import in_a_terminal

NOW = 1_785_585_600.0
MANY = 10_000


def listed(number: int, *, title: str | None = None, labels: tuple[str, ...] = ()) -> Listed:
    """Return the row of a session that was active `number` minutes ago."""
    summary = Summary(
        seq=10,
        title=title or f"Upload {number}",
        is_titled=True,
        preview=f"Why does upload {number} fail?",
        last_user="",
        last_agent="",
        status="open",
        agents=("coordinator",),
        labels=labels,
        turn_count=3,
        user_message_count=3,
        agent_message_count=3,
        tool_call_count=0,
        event_count=10,
        input_tokens=0,
        output_tokens=0,
        created_at=NOW,
        last_active_at=NOW - 60.0 * number,
        cwd=f"/home/ada/project-{number % 7}",
    )
    return Listed(SessionKey("default", "default", f"session-{number:05}"), summary)


@pytest.fixture
def many() -> Rows:
    rows = Rows(NOW)
    rows.fill([listed(number) for number in range(MANY)])
    return rows


def test_a_paint_formats_the_rows_in_view_and_no_others(many: Rows) -> None:
    """C-08."""
    first = many.in_view(30, 100)
    counts = [many.formatted_count]
    for key in ("4", "42", "424"):
        many.filter(key)
        many.in_view(30, 100)
        counts.append(many.formatted_count)

    assert len(first) == 30
    assert counts[:3] == [30, 60, 90]
    assert counts[3] - counts[2] == many.counts[0] < 30


def test_the_choice_moves_and_stays_in_view(many: Rows) -> None:
    many.in_view(10, 80)
    many.move(25)
    middle, view = many.chosen, many.in_view(10, 80)
    many.move(MANY)
    last = many.chosen
    many.in_view(10, 80)
    many.move(-2 * MANY)
    first, top = many.chosen, many.in_view(10, 80)

    assert middle is not None and middle.id == "session-00025"
    assert [is_chosen for _, is_chosen in view] == [False] * 9 + [True]
    assert last is not None and last.id == "session-09999"
    assert first is not None and first.id == "session-00000"
    assert top[0][1]


def test_a_filter_that_grows_and_shrinks_leaves_what_it_says(many: Rows) -> None:
    lefts = []
    for query in ("up", "upload 99", "upload 9999", "upload 99", "", "no such words"):
        many.filter(query)
        lefts.append(many.counts[0])

    assert lefts[0] == lefts[4] == MANY
    assert lefts[2] == 1
    assert lefts[1] == lefts[3] > 1
    assert lefts[5] == 0
    assert many.chosen is None
    assert many.in_view(10, 80) == []


def test_the_filter_finds_what_list_finds(sessions: Sessions, upload: str, hostile: str) -> None:
    """W-08."""
    rows = Rows(NOW)
    rows.fill(sessions.list().items)
    found: dict[str, tuple[int, int]] = {}
    for query in ("flaky", "UPLOAD test", "ada", "researcher", "nothing like it", "", "owned"):
        rows.filter(query)
        found[query] = (rows.counts[0], sessions.list(query=query).total)

    assert {query: pair for query, pair in found.items() if pair[0] != pair[1]} == {}
    assert found["flaky"] == (1, 1)


@pytest.mark.parametrize(
    "title", ["plain", "日本語の長いタイトル" * 10, f"evil {ESCAPES}", "e\u0301" * 90, "\u202eabc"]
)
@pytest.mark.parametrize("width", [20, 40, 79, 200])
def test_a_row_is_as_wide_as_the_terminal_and_safe(title: str, width: int) -> None:
    text = row_text(listed(5, title=title), NOW, width)

    assert texts.width(text) == width
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\x08", "\u202e", "\n"}


def test_a_row_shows_what_a_list_shows() -> None:
    pinned = row_text(listed(5, labels=("pinned",)), NOW, 100)
    unreadable = row_text(Listed(SessionKey("default", "default", "broken"), None, "not a database"), NOW, 100)

    assert pinned.startswith("★ Upload 5")
    assert pinned.split()[-5:] == ["coordinator", "open", "3", "5", "min"]
    assert "(not a database)" in unreadable and "unreadable" in unreadable
    assert haystack(listed(5)).startswith("upload 5\n")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (20, "  Upload 5 fails on…"),
        (30, "  Upload 5 fails on CI       3"),
        (40, "  Upload 5 fails on…  open             3"),
        (50, "  Upload 5 fails on CI  open             3   5 min"),
    ],
)
def test_on_a_narrow_terminal_the_title_keeps_its_room(width: int, shown: str) -> None:
    assert row_text(listed(5, title="Upload 5 fails on CI"), NOW, width) == shown


def test_a_title_of_which_nothing_can_be_seen_is_shown_as_its_id() -> None:
    assert row_text(listed(5, title="\u200b\u200d\u2060"), NOW, 80).split()[0] == "session-00005"


def test_a_list_that_is_empty_says_what_to_do(tmp_home: Path) -> None:
    without = in_a_terminal("resume", typed=[("no session yet", "\x03")]).shown
    begun = in_a_terminal("run", "hello", "--agent", "tests.cli.agents:echo")
    unmatched = in_a_terminal("resume", typed=[("1 session", "zebra"), ("No session has all these words", "\x03")])

    assert "playhead import" in without
    assert begun.code == 0
    assert unmatched.code == 130


def test_a_preview_is_broken_between_words(sessions: Sessions) -> None:
    answer = "The upload test times out after thirty seconds, so raise the limit to sixty."
    with sessions.create("wordy-0001", title="Wordy") as session, session.turn("Why?") as turn:
        turn.say(answer)
    lines = preview(sessions, SessionKey("default", "default", "wordy-0001"), 40).splitlines()
    said = [line for line in lines if line.startswith("  ") and line.strip() != "Why?"]

    assert max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in said) == answer


def test_a_preview_reads_the_tail_and_not_the_log(
    sessions: Sessions, upload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.create("long-0001", title="Long") as session:
        for number in range(40):
            with session.turn(f"Prompt {number}") as turn:
                turn.say(f"Answer {number}")
    read = 0
    events = sessions.store.events

    def counted(*arguments: object, **options: object) -> list[object]:
        nonlocal read
        found = events(*arguments, **options)  # type: ignore[arg-type]
        read += len(found)
        return found  # type: ignore[return-value]

    monkeypatch.setattr(sessions.store, "events", counted)
    text = preview(sessions, SessionKey("default", "default", "long-0001"), 80)

    assert text.splitlines()[0] == "long-0001"
    assert "Answer 39" in text and "Prompt 20" not in text
    assert read <= 3 * PREVIEW_EVENTS


def test_a_preview_of_what_cannot_be_read_says_why_and_a_hostile_one_is_safe(sessions: Sessions, hostile: str) -> None:
    gone = preview(sessions, SessionKey("default", "default", "gone-0001"), 80)
    text = preview(sessions, SessionKey("default", "default", hostile), 80)

    assert "gone-0001" in gone
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\x08"}


@pytest.mark.parametrize(
    ("typed", "picked"),
    [
        ("\r", "session-00000"),
        ("\x1b[B\x1b[B\x1b[A\r", "session-00001"),
        ("upload 42\x7f\x7f77\r", "session-00077"),
        ("\x1b[F\r", "session-00099"),
        ("\x1b[F\x1b[H\r", "session-00000"),
        ("\x1b[6~\r", "session-00038"),
        ("\t\x1b[6~\t\r", "session-00018"),
        ("nothing like it\r\x03", None),
        ("\x04", None),
    ],
)
def test_keys_move_filter_and_pick(typed: str, picked: str | None) -> None:
    rows = Rows(NOW)
    rows.fill([listed(number) for number in range(100)])
    with create_pipe_input() as source:
        source.send_text(typed)
        key = shown(
            rows,
            load=lambda: _never(),
            preview=lambda key, width: _done("the end of it"),
            source=source,
            screen=DummyOutput(),
        )

    assert (key.id if key is not None else None) == picked


def test_rows_that_come_later_keep_what_was_typed() -> None:
    rows = Rows(NOW)
    rows.filter("upload 77")
    before = rows.in_view(10, 80)
    rows.fill([listed(number) for number in range(100)])

    assert before == []
    assert rows.counts == (1, 100)
    assert rows.query == "upload 77"


def test_pages_that_come_leave_what_is_typed_chosen_and_in_view() -> None:
    rows = Rows(NOW)
    rows.filter("upload 7")
    rows.add([listed(number) for number in range(100)])
    rows.move(5)
    chosen = rows.chosen
    before = rows.in_view(4, 80)
    rows.add([listed(number) for number in range(50, 200)])  # Some moved in the list and come again.
    after = rows.in_view(4, 80)
    whole = Rows(NOW)
    whole.fill([listed(number) for number in range(200)])
    whole.filter("upload 7")

    assert rows.chosen == chosen
    assert after == before
    assert rows.counts == whole.counts
    assert 0 < whole.counts[0] < whole.counts[1] == 200


def test_what_cannot_be_read_is_listed_and_no_word_finds_it() -> None:
    rows = Rows(NOW)
    rows.fill([listed(1), Listed(SessionKey("default", "default", "broken"), None, "not a database")])
    counts = [rows.counts[0]]
    for query in ("broken", "database", ""):
        rows.filter(query)
        counts.append(rows.counts[0])

    assert counts == [2, 0, 0, 2]


def test_the_list_is_shown_page_by_page() -> None:
    pages = iter([_page(0, 40), _page(40, 80)])
    with create_pipe_input() as source:
        rows = Rows(NOW)
        loads: list[int] = []

        def load() -> "Future[Page[Listed]]":
            loads.append(rows.counts[1])
            if (page := next(pages, None)) is None:
                source.send_text("\x1b[F\r")
                return _never()
            future: Future[Page[Listed]] = Future()
            future.set_result(page)
            return future

        key = shown(rows, load=load, preview=lambda key, width: _done(""), source=source, screen=DummyOutput())

    assert loads == [0, 40, 80]
    assert key is not None and key.id == "session-00079"


def test_a_store_that_cannot_be_read_ends_the_picker_with_what_is_wrong() -> None:
    failed: Future[Page[Listed]] = Future()
    failed.set_exception(StoreDamaged("the store is damaged"))
    with create_pipe_input() as source, pytest.raises(StoreDamaged, match="the store is damaged"):
        shown(Rows(NOW), load=lambda: failed, preview=lambda key, width: _done(""), source=source, screen=DummyOutput())


def test_of_many_sessions_the_first_page_is_read_and_leaving_reads_no_other(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-08."""
    for number in range(30):
        sessions.create(f"session-{number:05}").close()
    monkeypatch.setattr(picker, "FIRST_ROWS", 5)
    asked: list[Any] = []

    def leaving(rows: Rows, *, load: Any, preview: Any) -> None:
        asked.append(load().result())

    monkeypatch.setattr(picker_screen, "shown", leaving)
    picker.picked(sessions, now=NOW)

    assert [(len(page.items), page.total) for page in asked] == [(5, 30)]


def _page(start: int, end: int) -> Page[Listed]:
    """Return a page that is not the last one."""
    return Page([listed(number) for number in range(start, end)], "more", 200)


def _done(text: str) -> "Future[str]":
    future: Future[str] = Future()
    future.set_result(text)
    return future


def _never() -> "Future[Page[Listed]]":
    """Return a reading of the sessions that does not end while the test lasts."""
    return Future()
