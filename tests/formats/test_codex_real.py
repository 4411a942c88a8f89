"""Codex: the real threads beside the project, against the table about them, a plain count, and a store's views."""

import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.formats.codex import Source, discover, read, recognised, restore_records
from playhead.formats.imported import ImportedSession
from playhead.formats.importing import Imported, import_source
from playhead.model.codec import encode_body
from playhead.model.path import branches
from playhead.session import Session, Sessions
from playhead.views.conversation import conversation_of_path
from tests.formats.claude_code_samples import log

COUNTED = ("records", "user prompts", "agent messages", "tool calls", "compactions")
TRIMMED = "019fc8be-3658-7ca3-9e29-000000000000"
"""A file whose publisher kept one record of each shape, with most of the values taken out."""

Counted = dict[str, int]


@pytest.fixture(scope="module")
def sources(shared_data: Path) -> dict[str, Source]:
    return {source.path.name: source for source in discover(shared_data / "home" / ".codex")}


@pytest.fixture(scope="module")
def threads(sources: dict[str, Source]) -> dict[str, ImportedSession]:
    found = {name: read(source) for name, source in sources.items()}
    return {name: session for name, session in found.items() if session is not None}


@pytest.fixture(scope="module")
def stored(sources: dict[str, Source]) -> Iterator[tuple[Sessions, dict[str, Session]]]:
    with playhead.open("memory:") as sessions:
        found = {name: _bring_in(sessions, source) for name, source in sources.items()}
        yield sessions, {name: sessions.get(one.session.id) for name, one in found.items() if one is not None}


@pytest.fixture(scope="module")
def table(shared_data: Path) -> dict[str, Counted]:
    """What the table of the data says of each Codex file; a number that it leaves out is 0."""
    text = (shared_data / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `home/\.codex/\S*/([^/`]+\.jsonl)` \| codex: ([^;|]*);", text, re.MULTILINE)
    return {
        name: {what: int(found.group(1)) if (found := re.search(rf"(\d+) {what}", said)) else 0 for what in COUNTED}
        for name, said in rows
    }


def test_every_file_of_the_table_is_found_and_read(
    sources: dict[str, Source], threads: dict[str, ImportedSession], table: dict[str, Counted]
) -> None:
    assert len(table) == 6
    assert sorted(sources) == sorted(threads) == sorted(table)
    assert all(recognised(source.path) for source in sources.values())
    assert all(not session.skipped for session in threads.values())
    assert {name for name, session in threads.items() if session.warnings} == {_named(sources, TRIMMED)}


def test_the_counts_are_those_of_the_table(threads: dict[str, ImportedSession], table: dict[str, Counted]) -> None:
    for name, session in threads.items():
        counts = session.counts
        counted = (
            counts.records,
            counts.user_prompts,
            counts.assistant_messages,
            counts.tool_calls,
            counts.compactions,
        )

        assert dict(zip(COUNTED, counted, strict=True)) == table[name], name


def test_a_plain_count_of_the_lines_gives_the_table_too(sources: dict[str, Source], table: dict[str, Counted]) -> None:
    for name, source in sources.items():
        records = list(_raw_records(source.path))
        kinds = [(record["type"], record["payload"].get("type")) for record in records]
        said = {
            "records": len(records),
            "user prompts": kinds.count(("event_msg", "user_message")),
            "agent messages": kinds.count(("event_msg", "agent_message")),
            "tool calls": kinds.count(("response_item", "function_call"))
            + kinds.count(("response_item", "custom_tool_call")),
            "compactions": kinds.count(("compacted", None)),
        }

        assert said == table[name], name


def test_the_views_of_the_stored_session_give_the_table_too(
    stored: tuple[Sessions, dict[str, Session]], table: dict[str, Counted]
) -> None:
    sessions, all_sessions = stored
    for name, session in all_sessions.items():
        events = sessions.store.events(session.key, after=0, limit=1000)
        raw = {event.seq: event.body["extra"]["codex"] for event in events if "extra" in event.body}
        path = [event for event in events if event.kind not in ("compaction", "head_moved", "session_changed")]
        messages = conversation_of_path(path, sealed=False)
        entries = session.transcript()
        rows = session.timeline(limit=1000)
        called = [p for m in messages if m.role == "assistant" for p in m.parts if p["type"] == "tool_call"]
        of_codex = {"web_search", "tool_search", "image_generation", "local_shell"}
        said = {
            "records": len(raw),
            "user prompts": sum(m.role == "user" and m.injected is None for m in messages),
            "agent messages": sum(p["type"] == "text" for m in messages if m.role == "assistant" for p in m.parts),
            "tool calls": sum(call["name"] not in of_codex for call in called),
            "compactions": sum(entry.kind == "compaction" for entry in entries)
            + sum(row.label == "codex.compacted" for row in rows),
        }

        assert said == table[name], name
        assert session.summary().user_message_count == table[name]["user prompts"], name


def test_importing_again_adds_nothing(
    stored: tuple[Sessions, dict[str, Session]], sources: dict[str, Source], tmp_path: Path
) -> None:
    sessions, _ = stored
    for source in sources.values():
        copy = tmp_path / source.path.name
        copy.write_bytes(source.path.read_bytes())
        elsewhere = _bring_in(sessions, Source(copy))

        assert _bring_in(sessions, source) is None
        assert elsewhere is not None
        assert (elsewhere.added_count, elsewhere.known_count) == (0, len(elsewhere.session.events))


def test_every_record_of_every_file_comes_back_from_the_store(
    stored: tuple[Sessions, dict[str, Session]], sources: dict[str, Source]
) -> None:
    """P4."""
    sessions, all_sessions = stored
    for name, source in sources.items():
        events = sessions.store.events(all_sessions[name].key, after=0, limit=1000)

        assert list(restore_records(events)) == list(_raw_records(source.path))


def test_the_conversation_holds_what_the_events_say_and_in_their_order(
    sources: dict[str, Source], threads: dict[str, ImportedSession]
) -> None:
    """The items that only repeat it, rules and surroundings are not in it."""
    for name, source in sources.items():
        if TRIMMED in name:
            continue
        fields = {"user_message": "user", "agent_message": "assistant"}
        told = [
            (fields[record["payload"]["type"]], record["payload"]["message"])
            for record in _raw_records(source.path)
            if record["payload"].get("type") in fields
        ]
        messages = conversation_of_path(log(threads[name].events), sealed=False)

        assert [(m.role, p["content"]) for m in messages for p in m.parts if p["type"] == "text"] == told
        assert all(m.injected is None for m in messages)


def test_tokens_add_up_to_the_last_sum_that_the_file_states(
    sources: dict[str, Source], stored: tuple[Sessions, dict[str, Session]]
) -> None:
    _, all_sessions = stored
    for name, source in sources.items():
        if TRIMMED in name:
            continue
        counts = [r["payload"]["info"] for r in _raw_records(source.path) if r["payload"].get("type") == "token_count"]
        last = [info["total_token_usage"] for info in counts if info][-1]
        row = all_sessions[name].summary()

        assert (row.input_tokens, row.output_tokens) == (last["input_tokens"], last["output_tokens"]), name


def test_turns_follow_the_tasks_and_failures_the_exit_codes(
    sources: dict[str, Source], threads: dict[str, ImportedSession], stored: tuple[Sessions, dict[str, Session]]
) -> None:
    _, all_sessions = stored
    seen = {}
    for name, source in sources.items():
        records = list(_raw_records(source.path))
        failed = sum(
            bool(re.search(r"^Process exited with code [1-9]", str(record["payload"].get("output")), re.MULTILINE))
            for record in records
            if record["payload"].get("type") == "function_call_output"
        )
        marked = sum(
            bool(part.get("is_error"))
            for event in threads[name].events
            for part in event.body.get("parts", ())
            if event.body.get("extra", {}).get("codex", {})["payload"]["type"] == "function_call_output"
        )
        seen[name[28:36]] = (all_sessions[name].turn_count, all_sessions[name].summary().status)

        assert marked == failed, name
        assert len(branches(log(threads[name].events), len(records) + 1)) == 1

    assert seen == {
        "019d78fc": (2, "open"),
        "019ed836": (2, "interrupted"),
        "019ed917": (2, "interrupted"),
        "019f03e0": (9, "interrupted"),
        "019f05f8": (3, "interrupted"),
        "019fc8be": (3, "interrupted"),
    }


def test_the_log_takes_hardly_more_room_than_the_files(
    sources: dict[str, Source], threads: dict[str, ImportedSession]
) -> None:
    """S5. Records are small here, a kilobyte each, and an event names its reply and its model besides."""
    stored = sum(len(encode_body(event.body)) for session in threads.values() for event in session.events)
    given = sum(source.path.stat().st_size for source in sources.values())

    assert stored < 1.1 * given


def test_a_real_file_that_grew_gives_the_same_events_in_two_reads(
    sources: dict[str, Source], threads: dict[str, ImportedSession], tmp_path: Path
) -> None:
    for name, source in sources.items():
        data = source.path.read_bytes()
        copy = tmp_path / name
        for cut in (len(data) // 3, len(data) // 2, len(data) - 100):
            copy.write_bytes(data[:cut])
            # A third of a file may hold nothing that anybody said, and is no session yet.
            first = read(Source(copy))
            copy.write_bytes(data)
            second = read(Source(copy), first.positions if first else None)
            assert second is not None

            assert [*(first.events if first else []), *second.events] == threads[name].events


def test_all_real_threads_are_read_in_about_a_second(sources: dict[str, Source]) -> None:
    spent = []
    for _ in range(3):
        begun = time.process_time()
        for source in sources.values():
            read(source)
        spent.append(time.process_time() - begun)

    assert min(spent) < 1.5


def _bring_in(sessions: Sessions, source: Source) -> Imported | None:
    found = import_source(sessions, source.path, partial(read, source), at=0.0)
    assert found is None or isinstance(found, Imported)
    return found


def _named(sources: dict[str, Source], thread: str) -> str:
    return next(name for name in sources if thread in name)


def _raw_records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n"):
        if line:
            yield json.loads(line)
