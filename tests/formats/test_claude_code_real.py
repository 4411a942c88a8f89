"""Claude Code: the real sessions beside the project, against the table about them and a plain count of their lines."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.formats.claude_code import Source, discover, read, restore_record
from playhead.formats.imported import ImportedSession
from playhead.formats.jsonlines import GLUED
from playhead.model.path import branches, path as path_of
from playhead.views.conversation import Message, conversation_of_path
from playhead.views.facts import facts
from playhead.views.fold import Fold
from playhead.views.summary import summary, wanted_seqs
from playhead.views.timeline import timeline
from playhead.views.transcript import transcript
from tests.formats.claude_code_samples import log

COUNTED = (
    "records",
    "user prompts",
    "assistant messages",
    "tool calls",
    "sub agents",
    "compactions",
    "sidechain records",
    "images",
    "glued lines",
)
Counted = dict[str, int]


@pytest.fixture(scope="module")
def sources(shared_data: Path) -> list[Source]:
    return discover(shared_data / "home" / ".claude")


@pytest.fixture(scope="module")
def sessions(sources: list[Source]) -> dict[str, ImportedSession]:
    found = {source.path.name: read(source) for source in sources}
    return {name: session for name, session in found.items() if session is not None}


@pytest.fixture(scope="module")
def table(shared_data: Path) -> dict[str, Counted]:
    """What the table of the data says of each Claude Code file; a number that it leaves out is 0."""
    text = (shared_data / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `home/\.claude/\S*/([^/`]+\.jsonl)` \| claude: ([^;|]*);", text, re.MULTILINE)
    return {
        name: {what: int(found.group(1)) if (found := re.search(rf"(\d+) {what}", said)) else 0 for what in COUNTED}
        for name, said in rows
    }


def test_every_file_of_the_table_is_found_and_read(
    sources: list[Source], sessions: dict[str, ImportedSession], table: dict[str, Counted]
) -> None:
    assert len(table) == 10
    assert sorted(source.path.name for source in sources) == sorted(table)
    assert sorted(sessions) == sorted(table)
    assert all(not session.skipped for session in sessions.values())


def test_the_counts_are_those_of_the_table(sessions: dict[str, ImportedSession], table: dict[str, Counted]) -> None:
    for name, session in sessions.items():
        counts, said = session.counts, table[name]

        assert counts.records == said["records"], name
        assert counts.user_prompts == said["user prompts"], name
        assert counts.assistant_messages == said["assistant messages"], name
        assert counts.tool_calls == said["tool calls"], name
        assert counts.sub_agents == said["sub agents"], name
        assert counts.compactions == said["compactions"], name
        assert sum(GLUED in warning for warning in session.warnings) == said["glued lines"], name


def test_a_plain_count_of_the_lines_gives_the_table_too(sources: list[Source], table: dict[str, Counted]) -> None:
    for source in sources:
        records = list(_raw_records(source.path))
        users = [r for r in records if r["type"] == "user"]
        replies = [r for r in records if r["type"] == "assistant"]
        blocks = [
            b for r in (*users, *replies) if isinstance(r["message"]["content"], list) for b in r["message"]["content"]
        ]
        said = {
            "records": len(records),
            "user prompts": sum(_is_prompt(r) for r in users),
            "assistant messages": len({r["message"]["id"] for r in replies}),
            "tool calls": sum(b["type"] == "tool_use" for b in blocks),
            "sub agents": len({*re.findall(r'"agentId": "([^"]+)"', json.dumps(records))}),
            "compactions": sum(r.get("subtype") == "compact_boundary" for r in records),
            "sidechain records": sum(r.get("isSidechain") is True for r in records),
            "images": sum(b["type"] == "image" for b in blocks),
            "glued lines": len(records) - sum(1 for line in source.path.read_bytes().split(b"\n") if line),
        }

        assert said == table[source.path.name]


def test_the_views_of_the_log_give_the_table_too(
    sessions: dict[str, ImportedSession], table: dict[str, Counted]
) -> None:
    for name, session in sessions.items():
        events = log(session.events)
        path = path_of({event.seq: event for event in events}, events[-1].seq)
        scopes = list(dict.fromkeys(event.scope for event in path))
        raw = {event.seq: _raw(event.body) for event in path}
        messages = [m for scope in scopes for m in _in_full(path, scope) if m.kind == "message" and m.seqs]
        replies = [m for m in messages if m.role == "assistant" and raw[m.seqs[0]]["type"] == "assistant"]
        prompts = [m for m in _in_full(path, None) if m.role == "user" and not _is_of_the_program(raw[m.seqs[0]])]
        ended = {e.body["extra"]["import"]["agentId"] for e in path if e.kind == "job_changed" and "extra" in e.body}
        said = {
            "records": len(raw) - sum(record == {} for record in raw.values()),
            "user prompts": len(prompts),
            "assistant messages": len(replies),
            "tool calls": sum(part["type"] == "tool_call" for m in replies for part in m.parts),
            "sub agents": len(ended),
            "compactions": sum(entry.kind == "compaction" for entry in transcript(path)),
            "sidechain records": sum(record.get("isSidechain") is True for record in raw.values()),
            "images": sum(part["type"] == "blob" for m in messages for part in m.parts),
        }

        assert said == {what: count for what, count in table[name].items() if what in said}, name


def test_every_record_of_every_file_comes_back_from_its_event(
    sources: list[Source], sessions: dict[str, ImportedSession]
) -> None:
    """P4."""
    for source in sources:
        restored = [restore_record(event) for event in sessions[source.path.name].events]

        assert [record for record in restored if record is not None] == list(_raw_records(source.path))


def test_the_log_takes_hardly_more_room_than_the_files(
    sources: list[Source], sessions: dict[str, ImportedSession]
) -> None:
    """S5."""
    stored = sum(len(json.dumps(event.body)) for session in sessions.values() for event in session.events)
    given = sum(len(json.dumps(record)) for source in sources for record in _raw_records(source.path))

    assert stored < 1.01 * given


def test_parallel_tool_calls_make_no_branch(sources: list[Source], sessions: dict[str, ImportedSession]) -> None:
    forks = 0
    for source in sources:
        parents = [r["parentUuid"] for r in _raw_records(source.path) if r.get("parentUuid")]
        forks += len(parents) - len(set(parents))
        events = log(sessions[source.path.name].events)

        assert [event for event in sessions[source.path.name].events if event.after] == []
        assert len(branches(events, events[-1].seq)) == 1
    # The chains do fork, at parallel calls, hooks and progress: a walk along them would lose records.
    assert forks > 100


def test_the_prompts_of_the_files_follow_each_other_in_the_chain_too(sources: list[Source]) -> None:
    """So that no branch is the right answer: each prompt's ancestors hold the prompt before it."""
    for source in sources:
        parent_of: dict[str, str | None] = {}
        before: str | None = None
        for record in _raw_records(source.path):
            if "uuid" in record:
                parent_of.setdefault(record["uuid"], record["parentUuid"] or record.get("logicalParentUuid"))
            if record["type"] == "user" and record.get("permissionMode") and not record["isSidechain"]:
                ancestors = set()
                step: str | None = record["uuid"]
                while step is not None and step not in ancestors:
                    ancestors.add(step)
                    step = parent_of.get(step)

                assert before is None or before in ancestors
                before = record["uuid"]


def test_turns_follow_the_prompts_and_sub_agents_and_titles_show(sessions: dict[str, ImportedSession]) -> None:
    seen = {}
    for name, session in sessions.items():
        events = log(session.events)
        fold = Fold().apply_all(events)
        by_seq = {event.seq: event for event in events}
        row = summary(fold, facts(events), {s: by_seq[s] for s in wanted_seqs(fold)}, seq=len(events), last_at=0.0)
        seen[name[:8]] = (fold.turn_count, row.user_message_count, row.agents, session.title)
        assert len(timeline(events)) == len(events)
        assert fold.named("job") == {}

    assert {name: found[0] for name, found in seen.items()} == {
        "130d7b7e": 5,
        "170cebcc": 10,
        "97007e37": 2,
        "53ea1606": 3,
        "d161f8df": 1,
        "bf77db8f": 4,
        "88e16f61": 1,
        "415c4d06": 10,
        "a4e5b271": 1,
        "93a9705e": 2,
    }
    assert seen["170cebcc"][2] == (
        "coordinator",
        "coordinator/entire-engineering%3Aresearch%3Abest-practices-researcher",
    )
    assert seen["a4e5b271"][2] == ("coordinator", "coordinator/general-purpose")
    assert seen["bf77db8f"][3] == "Website redesign proposals"
    assert seen["d161f8df"][1:] == (1, ("coordinator",), 'Align the terminology - Use "Display all" only on this page')


def test_tokens_of_a_reply_in_pieces_are_counted_once(
    sources: list[Source], sessions: dict[str, ImportedSession]
) -> None:
    for source in sources:
        largest: dict[str, int] = {}
        for record in _raw_records(source.path):
            if record["type"] == "assistant":
                message = record["message"]
                spent = message["usage"]["output_tokens"]
                largest[message["id"]] = max(spent, largest.get(message["id"], 0))
        events = sessions[source.path.name].events
        counted = [e.body for e in events if "usage" in e.body and _raw(e.body)["type"] == "assistant"]

        assert sum(body["usage"]["output_tokens"] for body in counted) == sum(largest.values())


def test_a_real_file_that_grew_gives_the_same_events_in_two_reads(
    sources: list[Source], sessions: dict[str, ImportedSession], tmp_path: Path
) -> None:
    for source in sources:
        data = source.path.read_bytes()
        copy = tmp_path / source.path.name
        for cut in (len(data) // 3, len(data) // 2, len(data) - 100):
            copy.write_bytes(data[:cut])
            first = read(Source(copy))
            assert first is not None
            copy.write_bytes(data)
            second = read(Source(copy), first.positions)
            assert second is not None
            events = [*first.events, *second.events]
            whole = sessions[source.path.name]

            assert [(e.id, e.kind, e.at, e.agent, e.turn, e.scope, e.after) for e in events] == [
                (e.id, e.kind, e.at, e.agent, e.turn, e.scope, e.after) for e in whole.events
            ]
            assert [r for r in map(restore_record, events) if r is not None] == list(_raw_records(copy))


def test_all_real_sessions_are_read_in_well_under_a_second(sources: list[Source]) -> None:
    spent = []
    for _ in range(3):
        begun = time.process_time()
        for source in sources:
            read(source)
        spent.append(time.process_time() - begun)

    assert min(spent) < 1.0


def _raw_records(path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for line in path.read_bytes().split(b"\n"):
        text = line.decode().strip()
        end = 0
        while end < len(text):
            record, end = decoder.raw_decode(text, end)
            yield record


def _is_prompt(record: dict[str, Any]) -> bool:
    content = record["message"]["content"]
    is_result = isinstance(content, list) and all(block["type"] == "tool_result" for block in content)
    return not is_result and not record["isSidechain"] and not _is_of_the_program(record)


def _is_of_the_program(record: dict[str, Any]) -> bool:
    return bool(record.get("isMeta") or record.get("isCompactSummary"))


def _raw(body: dict[str, Any]) -> dict[str, Any]:
    raw: dict[str, Any] = (body.get("extra") or {}).get("claude_code") or {}
    return raw


def _in_full(path: list[Any], scope: str | None) -> list[Message]:
    """Return the conversation of a scope as if nothing had been compacted."""
    return conversation_of_path([event for event in path if event.kind != "compaction"], scope, sealed=False)
