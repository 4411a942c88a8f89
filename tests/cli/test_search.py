"""`playhead search`: hits in every session, with what stands around them."""

import json

import pytest

from playhead import Sessions
from playhead.cli.text import width
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal


@pytest.fixture
def two(sessions: Sessions, upload: str) -> Sessions:
    """The upload session, and one that mentions timeouts and kiwis."""
    with sessions.create("garden-0001", title="Garden") as session:
        with session.turn("When do kiwis ripen?") as turn:
            turn.say("In autumn, if no timeout of the frost comes.")
    return sessions


def test_a_hit_is_a_row_that_names_its_session_and_event(cli: CommandLine, two: Sessions) -> None:
    answer = cli("search", "connection reset")
    (row,) = answer.rows

    assert answer.code == 0
    assert row[:2] == ["upload-0001", "6"]
    assert row[3:6] == ["coordinator", "message", "Flaky upload test"]
    assert "connection reset by peer" in row[6]
    assert answer.err == "1 hit in 2 sessions.\n"


def test_words_need_no_quotes_and_exclusions_follow_two_hyphens(cli: CommandLine, two: Sessions) -> None:
    every = {row[0] for row in cli("search", "timeout", "frost").rows}
    without = [row[0] for row in cli("search", "limit", "--", "-seconds").rows]

    assert "garden-0001" in every
    assert without
    assert set(without) == {"upload-0001"}


@pytest.mark.parametrize(
    ("options", "sessions_hit"),
    [
        (["--session", "Garden"], {"garden-0001"}),
        (["--session", "uplo"], {"upload-0001"}),
        (["--role", "user"], {"upload-0001"}),
        (["--agent", "coordinator/researcher:1"], set()),
        (["--kind", "note"], set()),
        (["--tool", "run_tests"], set()),
        (["--since", "2126-01-01"], set()),
        (["--until", "2126-01-01"], {"upload-0001", "garden-0001"}),
        (["--live"], {"upload-0001", "garden-0001"}),
        (["--mode", "fts"], {"upload-0001", "garden-0001"}),
    ],
)
def test_options_narrow_the_search(cli: CommandLine, two: Sessions, options: list[str], sessions_hit: set[str]) -> None:
    answer = cli("search", "timeouts limit frost", *options)

    assert answer.code == 0
    assert {row[0] for row in answer.rows} == sessions_hit


def test_the_live_path_leaves_out_what_was_rewound(cli: CommandLine, two: Sessions) -> None:
    two.get("garden-0001").rewind(turn=1)

    assert [row[0] for row in cli("search", "kiwis").rows] == ["garden-0001"]
    assert cli("search", "kiwis", "--live").rows == []


def test_context_stands_around_each_hit_in_the_order_of_the_log(cli: CommandLine, two: Sessions) -> None:
    rows = cli("search", "connection reset", "-C", "2").rows
    hit = cli("search", "connection reset", "-C", "2", "--json").json["hits"][0]

    assert [int(row[1]) for row in rows] == [4, 5, 6, 7, 8]
    assert [row[-1] for row in rows] == ["context", "context", "hit", "context", "context"]
    assert [row["seq"] for row in hit["before"] + hit["after"]] == [4, 5, 7, 8]


def test_the_number_of_hits_is_bounded(cli: CommandLine, two: Sessions) -> None:
    assert len(cli("search", "timeout limit upload", "-k", "2").rows) == 2
    assert cli("search", "timeout", "-k", "0").code == 2


def test_at_a_terminal_a_hit_has_its_place_above_it_and_its_matches_marked(two: Sessions) -> None:
    colored = in_a_terminal("search", "kiwis", "-C", "1").shown.splitlines()
    plain = in_a_terminal("search", "kiwis", NO_COLOR="1").shown.splitlines()

    assert any("\x1b[1;33mkiwis\x1b[0m" in line for line in colored)
    assert plain[0].startswith("garden-0001  #4  user  ")
    assert plain[0].endswith("  Garden")
    assert plain[1] == "    When do «kiwis» ripen?"


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_a_hit_is_no_wider_than_the_terminal_and_loses_nothing_but_the_end_of_its_title(
    sessions: Sessions, columns: int
) -> None:
    with sessions.create("claude-code.0b7c2f8e-5d1a-4c1e", title="A title of more than thirty characters") as session:
        with session.turn("When do kiwis ripen, where does the frost come from and who is told of it in time?") as turn:
            turn.say("In autumn.")
    shown = in_a_terminal("search", "kiwis", "-C", "1", NO_COLOR="1", COLUMNS=str(columns)).shown
    lines = shown.splitlines()
    hit = " ".join(lines[:-1])

    assert max(width(line) for line in lines if "in 1 session" not in line) <= columns
    assert [word for word in ("claude-code.0b7c2f8e", "#4", "user", "A title of", "«kiwis»") if word not in hit] == []
    assert "When do «kiwis» ripen, where does the frost" in " ".join(shown.split())


def test_nothing_found_is_a_failure_only_where_one_asks_for_it(cli: CommandLine, two: Sessions) -> None:
    calm, strict = cli("search", "xylophone"), cli("search", "xylophone", "--fail-empty")

    assert (calm.code, calm.out) == (0, "")
    assert (strict.code, strict.out) == (1, "")
    assert cli("search", "kiwis", "--fail-empty").code == 0


@pytest.mark.parametrize("query", ['"unbalanced', "AND", "NEAR(", "a:b:c", "*", "foo_bar C++", "日本", "(", "' OR 1=1"])
def test_no_query_is_an_error(cli: CommandLine, two: Sessions, query: str) -> None:
    answer = cli("search", query)

    assert answer.code == 0
    assert "error" not in answer.err


def test_the_json_has_the_marks_and_how_far_the_index_reaches(cli: CommandLine, two: Sessions) -> None:
    """K16."""
    document = cli("search", "kiwis", "--json").json
    hit = document["hits"][0]
    start, end = hit["snippet"]["marks"][0]

    assert document["query"] == "kiwis"
    assert document["mode"] == "fts"
    assert hit["snippet"]["text"][start:end] == "kiwis"
    assert hit["title"] == "Garden"
    assert document["indexed_up_to"] == {"garden-0001": two.get("garden-0001").seq}
    assert document["problems"] == {}


def test_a_first_word_that_is_a_whole_id_or_a_rank_searches_that_session_alone(cli: CommandLine, two: Sessions) -> None:
    whole, rank, title = (cli("search", first, "kiwis", "--json").json for first in ("garden-0001", "@last", "Garden"))

    assert [(hit["session"], whole["query"]) for hit in whole["hits"]] == [("garden-0001", "kiwis")]
    assert rank["query"] == "kiwis"
    assert len({*rank["indexed_up_to"]}) == 1
    assert title["query"] == "Garden kiwis"


def test_jsonl_prints_the_hits_of_json_one_a_line(cli: CommandLine, two: Sessions) -> None:
    lines = [json.loads(line) for line in cli("search", "kiwis", "--jsonl").out.splitlines()]

    assert lines == cli("search", "kiwis", "--json").json["hits"]
    assert cli("search", "kiwis", "--json", "--jsonl").code == 2


def test_what_tools_gave_back_is_narrowed_by_the_name_that_others_use(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    found = cli("search", "connection reset", "--type", "tool_result", "--json").json["hits"]

    assert [hit["role"] for hit in found] == ["tool"]
