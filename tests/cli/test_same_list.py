"""The library, the command line and the picker: the same sessions in the same order for the same filter, in any store.

Stores are filled and filters are drawn at random, from seeds.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead import Sessions
from playhead.cli.picker_rows import Rows
from playhead.cli.rows import pages
from playhead.features.listing import Wanted
from playhead.model.ids import SessionKey
from tests.cli.conftest import CommandLine

BEGIN = 1_785_585_600.0
SESSIONS = 48
FILTERS = 24
WORDS = (
    "upload",
    "Upload",
    "Größe",
    "GRÖSSE",
    "日本語",
    "é",
    "e\u0301",
    "O'Brien",
    'say "no"',
    "100%",
    "a_b",
    "AND",
    "🎬",
    "-x",
    "*",
)
AGENTS = ("coordinator", "picker", "researcher/é")
LABELS = ("fruit", "pinned", "CI run")
FOLDERS = ("/home/ada/upload", "/home/ada/Größe")
PEOPLE = (("default", "default"), ("default", "ada"), ("chat", "ada"))
ORIGINS = ("claude-code", "codex")
STATUSES = ("open", "archived", "interrupted", "running", "waiting", "unreadable", "in review")
SORTS = ("last_active", "created", "title", "relevance")


class _Clock:
    """A clock that stands still now and then, and goes back sometimes: many sessions have one time."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._at = BEGIN

    def __call__(self) -> float:
        self._at += self._random.choice((0.0, 0.0, 0.0, 1.0, 60.0, -30.0))
        return self._at


@pytest.fixture(params=["bundles", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    place = f"{request.param}:{tmp_home / 'crowd'}"
    monkeypatch.setenv("PLAYHEAD_STORE", place)
    return place


@pytest.fixture(params=range(2))
def seed(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def crowd(url: str, seed: int) -> Iterator[Sessions]:
    """A store of sessions of all kinds; somebody is in a turn of some of them."""
    with playhead.open(url, clock=_Clock(seed)) as sessions:
        dice = random.Random(seed)
        turns = [turn for number in range(SESSIONS) if (turn := _made(sessions, dice, number)) is not None]
        if url.startswith("bundles:"):
            for number in range(3):
                place = Path(url.removeprefix("bundles:")) / f"broken-{number:04}.playhead"
                place.write_bytes(b"this is no database" * 100)
        yield sessions
        for turn in turns:
            turn.__exit__(None, None, None)


def _made(sessions: Sessions, dice: random.Random, number: int) -> Any:
    """Begin a session, and return the turn that somebody is in, or None."""
    app, user = dice.choice(PEOPLE)
    config = {"name": dice.choice(WORDS), "type": dice.choice(("agent", "group")), "node": "n1", "group": "g1"}
    session = sessions.create(
        f"{dice.choice(('', 'claude-code.', 'é.'))}session-{number:04}",
        title=" ".join(dice.choices(WORDS, k=dice.randrange(4))) or None,
        app=app,
        user=user,
        cwd=dice.choice((*FOLDERS, None)),
        labels=[label for label in LABELS if dice.random() < 0.3],
        origin=dice.choice((*ORIGINS, None)),
        config=dice.choice((config, None)),
    )
    if dice.random() < 0.6:
        with session.turn(" ".join(dice.choices(WORDS, k=3)), agent=dice.choice(AGENTS)) as turn:
            turn.say("Said.")
    kind = dice.randrange(8)
    if kind == 0:
        session.append("turn_started", {"cause": "user"}, agent="coordinator", turn="turn-cut-off")
    elif kind == 1:
        session.append("interrupt_requested", {"interrupt": "int-1", "reason": "confirmation", "question": "Go on?"})
    elif kind == 2:
        session.set_status(dice.choice(("archived", "in review")))
    elif kind == 3 and number % 3 == 0:
        turn = session.turn("Go on", agent="coordinator")
        turn.__enter__()
        return turn
    elif kind == 4:
        session.fork(title=dice.choice(WORDS)).close()
    session.close()
    return None


def _filters(dice: random.Random) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield filters as the library takes them, and the flags that say the same."""
    for _ in range(FILTERS):
        asked: dict[str, Any] = {}
        for name, values in (
            ("query", (" ".join(dice.choices(WORDS, k=dice.choice((1, 1, 2)))), dice.choice(WORDS)[:2])),
            ("status", STATUSES),
            ("agent", AGENTS),
            ("label", LABELS),
            ("cwd", FOLDERS),
            ("origin", ORIGINS),
            ("config", WORDS),
            ("config_type", ("agent", "group")),
            ("node", ("n1", "n2")),
            ("group", ("g1",)),
            ("app", ("default", "chat")),
            ("user", ("ada", "default")),
            ("since", (BEGIN + 60.0, BEGIN + 600.0)),
            ("until", (BEGIN + 300.0,)),
        ):
            if dice.random() < (0.35 if name == "query" else 0.12):
                asked[name] = dice.choice(values)
        asked["sort"] = dice.choice(SORTS)
        asked["reverse"] = dice.random() < 0.4
        yield asked, _flags(asked)


def _flags(asked: dict[str, Any]) -> list[str]:
    flags = []
    for name, value in asked.items():
        if name == "reverse":
            flags += ["--reverse"] if value else []
        elif name in ("since", "until"):
            flags.append(f"--{name}={datetime.fromtimestamp(value, UTC).isoformat()}")
        elif name == "cwd":
            flags.append(f"--project={value}")
        else:
            flags.append(f"--{name.replace('_', '-')}={value.replace('_', '-') if name == 'sort' else value}")
    return flags


def _in_pages(sessions: Sessions, asked: dict[str, Any], limit: int) -> tuple[list[SessionKey], set[int]]:
    """Return the keys of all pages of the library's list, and what the pages said of how many there are."""
    keys: list[SessionKey] = []
    totals = set()
    cursor: str | None = None
    while True:
        page = sessions.list(**asked, limit=limit, cursor=cursor)
        keys += [row.key for row in page.items]
        totals.add(page.total)
        cursor = page.next_cursor
        if cursor is None:
            return keys, totals


def _printed(cli: CommandLine, flags: Sequence[str]) -> tuple[list[SessionKey], int]:
    document = cli("list", "--all", "--json", *flags).json
    return [SessionKey(row["app"], row["user"], row["id"]) for row in document["sessions"]], document["total"]


def _in_the_picker(rows: Rows, query: str) -> list[SessionKey]:
    rows.filter(query)
    found = []
    for _ in range(rows.counts[0]):
        assert rows.chosen is not None
        found.append(rows.chosen)
        rows.move(1)
    return found


def test_the_library_and_the_command_line_list_the_same(cli: CommandLine, crowd: Sessions, seed: int) -> None:
    differing, found_count = {}, 0
    for asked, flags in _filters(random.Random(seed)):
        library, totals = _in_pages(crowd, asked, limit=7)
        printed, total = _printed(cli, flags)
        piped = [row[0] for row in cli("list", "--all", *flags).rows]
        found_count += len(library)
        if library != printed or piped != [str(key) for key in printed] or totals != {total} or len(printed) != total:
            differing[" ".join(flags)] = (library, printed, piped, totals, total)

    assert differing == {}
    assert found_count > SESSIONS


def test_the_picker_lists_the_same(cli: CommandLine, crowd: Sessions, seed: int) -> None:
    dice = random.Random(seed)
    queries = ["", " ", *WORDS, *(" ".join(dice.choices(WORDS, k=2)) for _ in range(6)), "up", "o", "n1", "codex"]
    rows = Rows(BEGIN)
    for page in pages(crowd, first=5):
        rows.add(page.items)
    found = {query: _in_the_picker(rows, query) for query in queries}
    listed = {query: _printed(cli, [f"--query={query}"])[0] for query in queries}

    assert found == listed
    assert len(found[""]) >= SESSIONS
    assert 0 < len(found["upload"]) < SESSIONS


def test_pages_of_the_command_line_hold_each_session_once(cli: CommandLine, crowd: Sessions) -> None:
    for order in (["--sort=title"], ["--query=upload", "--sort=relevance"], ["--reverse"]):
        whole, total = _printed(cli, order)
        paged: list[SessionKey] = []
        cursor: list[str] = []
        while True:
            document = cli("list", "-n", "5", "--json", *order, *cursor).json
            paged += [SessionKey(row["app"], row["user"], row["id"]) for row in document["sessions"]]
            if document["next_cursor"] is None:
                break
            cursor = [f"--cursor={document['next_cursor']}"]

        assert paged == whole
        assert len(set(paged)) == total


def test_the_last_session_is_the_same_everywhere(cli: CommandLine, crowd: Sessions) -> None:
    first = _printed(cli, [])[0][0]
    of_one_person = crowd.list(app="default", user="default", limit=1).items[0].key
    rows = Rows(BEGIN)
    rows.fill(page.items[0] for page in [next(pages(crowd, Wanted(), first=1))])

    assert cli("show", "@last", "--json").json["session"]["id"] == first.id
    assert rows.chosen == first
    assert crowd.get("@last").key == of_one_person
