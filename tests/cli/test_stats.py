"""`playhead stats`: the counts as rows for a person and a program, and real sessions counted as their files say."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from playhead import Sessions
from playhead.cli.text import width
from tests.cli.conftest import CommandLine
from tests.cli.terminals import in_a_terminal


@pytest.fixture
def answered(sessions: Sessions) -> str:
    """A session with a reply whose model, tokens and cost are known; its id."""
    with sessions.create("answered-0001") as session:
        with session.turn("Why?") as turn:
            turn.say("So.", model="large", usage={"input_tokens": 12_345, "output_tokens": 6, "cost": 0.125})
    return session.id


def test_the_counts_are_rows_of_name_and_number(cli: CommandLine, answered: str) -> None:
    rows = {row[0]: row[1] for row in cli("stats").rows}

    assert rows["sessions"] == rows["turns"] == rows["prompts"] == rows["replies"] == "1"
    assert rows["input tokens"] == "12345"
    assert rows["cost in US dollars"] == "0.125000"
    assert int(rows["bytes on disk"]) > 0


def test_a_person_reads_numbers_in_groups_of_three(answered: str) -> None:
    shown = in_a_terminal("stats", "--by", "model", NO_COLOR="1").shown.splitlines()

    assert shown[-2].split() == ["none", "1", "1", "1", "0", "0", "0", "0", "0", "0", "0"]
    assert shown[-1].split() == ["large", "1", "1", "0", "1", "0", "0", "12,345", "6", "0", "0", "0.12"]


def test_on_a_narrow_terminal_numbers_leave_before_the_names_of_models_are_cut(sessions: Sessions) -> None:
    models = ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250514"]
    with sessions.create("answered-0001") as session:
        for model in models:
            with session.turn("Why?") as turn:
                turn.say("So.", model=model, usage={"input_tokens": 12_345_678, "output_tokens": 6_000_000})
    shown = in_a_terminal("stats", "--by", "model", NO_COLOR="1", COLUMNS="60").shown.splitlines()
    rows = [line.split() for line in shown if line.startswith("claude-")]

    assert sorted(row[0] for row in rows) == sorted(models)
    assert {tuple(row[1:]) for row in rows} == {("1", "12,345,678", "6,000,000")}
    assert all(width(line) <= 60 for line in shown if line.startswith("claude-"))
    assert any(line.startswith("No room here for SESSIONS, PROMPTS,") for line in shown)


def test_tools_have_columns_of_their_own(cli: CommandLine, upload: str) -> None:
    assert cli("stats", "--by", "tool").rows == [["run_tests", "1", "1", "1", "0"]]


def test_days_are_those_of_this_machine_and_old_ones_can_be_left_out(
    cli: CommandLine, answered: str, sessions: Sessions
) -> None:
    day = datetime.fromtimestamp(sessions.get(answered).summary().created_at).strftime("%Y-%m-%d")

    assert [row[0] for row in cli("stats", "--by", "day").rows] == [day]
    assert cli("stats", "--days", "100000").rows[0] == ["sessions", "1"]
    assert cli("stats", "--days", "0").code == 2
    assert cli("stats", "--by", "mood").code == 2


def test_an_empty_store_counts_nothing(cli: CommandLine) -> None:
    answer = cli("stats", "--json")

    assert answer.code == 0
    assert set(answer.json["total"].values()) == {0, None}


def test_what_cannot_be_read_is_said(cli: CommandLine, answered: str, store_url: str) -> None:
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    answer = cli("stats")

    assert answer.code == 0
    assert answer.err == "1 session cannot be read and counts nowhere; see `playhead list`.\n"


def test_names_of_tools_and_models_reach_no_terminal_raw(hostile: str) -> None:
    shown = [in_a_terminal("stats", "--by", by, NO_COLOR="1").shown for by in ("tool", "model", "agent")]

    assert [text for text in shown if "\x1b[2J" in text or "\x07" in text or "\x9b" in text] == []


def test_real_sessions_of_claude_code_count_what_their_files_say(cli: CommandLine, shared_data: Path) -> None:
    claude = shared_data / "home" / ".claude"
    imported = cli("import", "--format", "claude-code", str(claude / "projects"), "--json")
    total = cli("stats", "--json").json["total"]
    expected = _usage_in(claude)

    assert imported.code == 0
    assert total["output_tokens"] == sum(tokens for _, tokens in expected.values())
    assert total["input_tokens"] == sum(tokens for tokens, _ in expected.values())
    assert total["cost_usd"] is None


def test_an_overview_counts_sessions_by_what_lists_say_of_them_and_adds_up(
    cli: CommandLine, sessions: Sessions, answered: str, upload: str, store_url: str
) -> None:
    sessions.create("imported-0001", origin="codex", config={"name": "night", "type": "group"}).close()
    sessions.create("gone-0001", title="Gone").close()
    sessions.trash("gone-0001")
    sessions.get(answered).save_artifact("trace.txt", b"x" * 5_000)
    (Path(store_url.removeprefix("bundles:")) / "broken-0001.playhead").write_bytes(b"this is no database" * 100)
    found, listed = cli("stats", "--overview", "--json").json, cli("list", "--json").json
    text = cli("stats", "--overview")
    rows = {(what, which): count for what, which, count in text.rows}
    bytes_of = {which: int(count or 0) for (what, which), count in rows.items() if what == "bytes"}
    sizes = [found[name] for name in ("session_bytes", "artifacts_bytes", "trashed_bytes", "other_bytes")]

    assert found["session_count"] == listed["total"] == 4
    assert (found["unreadable_count"], found["trashed_count"]) == (1, 1)
    assert found["by_status"] == {"open": 3, "unreadable": 1}
    assert (found["by_origin"], found["by_config_type"]) == ({"codex": 1}, {"group": 1})
    assert sum(found["by_age"].values()) + found["unreadable_count"] == found["session_count"]
    assert found["agents"]["coordinator"] == 2
    assert sum(size or 0 for size in sizes) == found["total_bytes"]
    assert found["artifacts_bytes"] >= 5_000
    assert (rows["sessions", ""], rows["status", "open"], rows["trash", ""]) == ("4", "3", "1")
    assert sum(bytes_of.values()) == 2 * bytes_of["in all"] > 0
    assert rows["active", "newest"].startswith("2026-08-01T")
    assert text.err == "See `playhead list --status unreadable` for what cannot be read.\n"


def test_an_overview_of_nothing_is_all_noughts(cli: CommandLine) -> None:
    found, rows = cli("stats", "--overview", "--json").json, cli("stats", "--overview").rows

    assert (found["session_count"], found["trashed_count"], found["by_status"]) == (0, 0, {})
    assert found["oldest_at"] is found["newest_at"] is found["average_age_s"] is None
    assert ["sessions", "", "0"] in rows


def test_an_overview_is_of_the_whole_store(cli: CommandLine, upload: str) -> None:
    assert cli("stats", "--overview", "--by", "agent").code == 2
    assert cli("stats", "--overview", "--days", "3").code == 2


def test_a_person_reads_an_overview_in_columns(upload: str) -> None:
    shown = in_a_terminal("stats", "--overview", NO_COLOR="1").shown.splitlines()

    assert shown[0].split() == ["WHAT", "WHICH", "COUNT"]
    assert any(line.split() == ["status", "open", "1"] for line in shown)
    assert any(line.split()[:3] == ["active", "within", "a"] for line in shown)


def _usage_in(claude: Path) -> dict[str, tuple[int, int]]:
    """Return the largest usage of each reply in Claude Code's own files: message id to input and output tokens."""
    replies: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for file in claude.rglob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                for reply in _replies_in(json.loads(line)):
                    usage = reply["usage"]
                    tokens = (usage.get("input_tokens", 0), usage.get("output_tokens", 0))
                    replies[reply["id"]] = max(replies[reply["id"]], tokens, key=lambda one: one[1])
    return dict(replies)


def _replies_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the replies of a model anywhere in a record: progress of a sub-agent wraps them."""
    if isinstance(value, dict):
        if value.get("role") == "assistant" and isinstance(value.get("usage"), dict) and "id" in value:
            yield value
        for inner in value.values():
            yield from _replies_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _replies_in(inner)
