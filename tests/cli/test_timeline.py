"""`playhead timeline`: a line for every event of the log."""

import json

from playhead import Sessions
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal


def test_every_event_is_a_line_in_order(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    rows = cli("timeline", upload).rows

    assert [int(row[0]) for row in rows] == list(range(1, sessions.get(upload).seq + 1))
    assert rows[0][3] == "session_started"
    assert rows[-1][3] == "turn_ended"
    assert all(len(row) == 8 for row in rows)


def test_what_ends_says_how_long_it_took_also_where_only_the_end_is_printed(cli: CommandLine, upload: str) -> None:
    ended = cli("timeline", upload, "--kind", "turn_ended", "--last", "1").rows

    assert len(ended) == 1
    assert float(ended[0][4]) > 0


def test_a_row_says_what_its_tokens_are_and_whether_it_failed(cli: CommandLine, sessions: Sessions) -> None:
    with sessions.create("tokens-0001") as session, session.turn("Why?") as turn:
        turn.tool_result(turn.tool_call("run_tests"), "boom", is_error=True)
        turn.say("It fails.", usage={"input_tokens": 9, "output_tokens": 4})
    errors = cli("timeline", "tokens-0001", "--errors").rows
    said = cli("timeline", "tokens-0001", "--json").json["rows"][-2]

    assert [row[6] for row in errors] == ["!"]
    assert said["tokens"] == 4


def test_what_a_rewind_hides_is_marked_and_live_leaves_it_out(
    cli: CommandLine, sessions: Sessions, upload: str
) -> None:
    sessions.get(upload).rewind(turn=3)
    marked = [row for row in cli("timeline", upload).rows if "~" in row[6]]
    live = cli("timeline", upload, "--live").rows

    assert {"Then raise the limit."} <= {row[7] for row in marked}
    assert not any("~" in row[6] for row in live)
    assert live


def test_filters_narrow_it_and_an_event_begins_it(cli: CommandLine, upload: str) -> None:
    by_agent = cli("timeline", upload, "--agent", "coordinator/researcher:1").rows
    from_event = cli("timeline", f"{upload}#5").rows
    since = cli("timeline", upload, "--since", "2099-01-01")

    assert {row[2] for row in by_agent} == {"coordinator/researcher:1"}
    assert int(from_event[0][0]) == 5
    assert (since.code, since.out) == (0, "")


def test_jsonl_prints_the_rows_of_json_one_a_line(cli: CommandLine, upload: str) -> None:
    lines = [json.loads(line) for line in cli("timeline", upload, "--jsonl").out.splitlines()]

    assert lines == cli("timeline", upload, "--json").json["rows"]


def test_an_unknown_event_is_not_found_and_both_forms_of_json_exclude_each_other(cli: CommandLine, upload: str) -> None:
    unknown, both = cli("timeline", f"{upload}#999"), cli("timeline", upload, "--json", "--jsonl")

    assert (unknown.code, both.code) == (3, 2)


def test_a_person_sees_columns_that_fit_the_terminal(sessions: Sessions, upload: str) -> None:
    shown = in_a_terminal("timeline", upload, COLUMNS="70", NO_COLOR="1")
    lines = [line for line in shown.shown.replace("\r", "").split("\n") if line]

    assert shown.code == 0
    assert max(map(len, lines)) <= 70
    assert "#1" in lines[0] and "session started" in lines[0]
