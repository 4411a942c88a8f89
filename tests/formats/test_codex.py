"""Codex: what becomes of each sort of record, of turns, branches, forks and sub-agents, and where files are found."""

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.errors import ImportFailed
from playhead.formats.codex import (
    Source,
    compressed,
    default_root,
    discover,
    read,
    recognised,
    restore_record,
    restore_records,
)
from playhead.formats.codex.data import blob_data, blob_part, is_data_address
from playhead.formats.codex.said import Pending, is_repeated
from playhead.formats.imported import ImportedSession
from playhead.formats.importing import Imported, import_source
from playhead.model.path import branches
from playhead.session import Sessions
from playhead.views.conversation import Message, conversation_of_path
from playhead.views.fold import Fold
from playhead.views.turns import turns
from tests.formats.claude_code_samples import log
from tests.formats.codex_samples import BEGIN, PNG, RULES, THREAD, Rollout, a_day_of_work, imported

CHILD = "019d0a00-0000-7000-8000-00000000000b"


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with playhead.open("memory:") as opened:
        yield opened


def bring_in(sessions: Sessions, source: Source) -> Imported:
    found = import_source(sessions, source.path, partial(read, source), at=0.0)
    assert isinstance(found, Imported)
    return found


def said(session: ImportedSession) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in messages(session) if m.text]


def messages(session: ImportedSession) -> list[Message]:
    return conversation_of_path([event for event in log(session.events) if event.kind != "compaction"])


# Records and events.


def test_every_record_is_one_event_and_comes_back_from_it(tmp_path: Path) -> None:
    """P4."""
    day = a_day_of_work()

    session = imported(day.write(tmp_path))

    assert len(session.events) == len(day.records) == session.counts.records
    assert list(restore_records(session.events)) == day.records
    assert (session.id, session.skipped, session.warnings) == (f"codex.{THREAD}", [], [])


def test_a_record_comes_back_from_the_store_too(tmp_path: Path, sessions: Sessions) -> None:
    day = a_day_of_work()

    bring_in(sessions, day.write(tmp_path))
    events = sessions.store.events(sessions.get(f"codex.{THREAD}").key, after=0, limit=200)

    assert list(restore_records(events)) == day.records
    assert restore_record(events[0]) is None


def test_what_is_said_is_in_the_conversation_once_whichever_record_comes_first(tmp_path: Path) -> None:
    usual, turned = Rollout(), Rollout()
    for rollout in (usual, turned):
        rollout.meta()
        rollout.begin("t1")
        rollout.prompt("continue")
        rollout.say("Done.")
        rollout.end("t1")
        rollout.begin("t2")
        rollout.prompt("continue")
        rollout.say("Done.")
    pairs = [
        index for index, r in enumerate(turned.records) if r["payload"].get("type") in ("user_message", "agent_message")
    ]
    for index in pairs:
        other = index - 1 if turned.records[index]["payload"]["type"] == "user_message" else index + 1
        turned.records[index], turned.records[other] = turned.records[other], turned.records[index]

    first, second = imported(usual.write(tmp_path / "a")), imported(turned.write(tmp_path / "b"))

    assert said(first) == said(second) == [("user", "continue"), ("assistant", "Done.")] * 2
    assert (first.counts.user_prompts, first.counts.assistant_messages) == (2, 2)
    assert [e.body["name"] for e in first.events if e.body.get("name", "").endswith(".repeated")] == [
        "codex.event_msg.user_message.repeated",
        "codex.response_item.message.repeated",
    ] * 2


def test_a_prompt_with_a_picture_is_known_by_its_own_words(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    marks = [{"type": "input_text", "text": "<image name=[Image #1]>"}, {"type": "input_text", "text": "</image>"}]
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8="}
    rollout.prompt("What is this?", marks[0], picture, marks[1])

    session = imported(rollout.write(tmp_path))

    assert [event.kind for event in session.events] == ["note", "message", "note"]
    assert session.events[1].body["parts"][1] == {
        "type": "blob",
        "content": "aGVsbG8=",
        "mime_type": "image/png",
        "modality": "image",
        "extra": {"header": "data:image/png;base64", "item": {"type": "input_image"}},
    }


def test_completed_items_are_the_messages_of_paginated_threads_and_copies_in_others(tmp_path: Path) -> None:
    seen = {}
    for mode in ("paginated", "legacy"):
        rollout = Rollout()
        rollout.meta(history_mode=mode)
        for kind, text in (("UserMessage", "Ready?"), ("AgentMessage", "Ready.")):
            rollout.event("item_completed", item={"type": kind, "id": "i", "content": [{"type": "Text", "text": text}]})
        rollout.item("message", role="assistant", content=[{"type": "output_text", "text": "Ready."}])
        session = imported(rollout.write(tmp_path / mode))
        seen[mode] = (said(session), [e.body.get("text") for e in session.events if e.kind == "note"])
        assert list(restore_records(session.events)) == rollout.records

    assert seen == {
        "paginated": ([("user", "Ready?"), ("assistant", "Ready.")], [None, None]),
        "legacy": ([("assistant", "Ready.")], [None, "Ready?", "Ready."]),
    }


def test_rules_surroundings_and_base_instructions_are_neither_said_nor_found(
    tmp_path: Path, sessions: Sessions
) -> None:
    bring_in(sessions, a_day_of_work().write(tmp_path))

    found = {word: len(sessions.search(word).hits) for word in ("gap", "zanzibar", "permissions", "upload", "gAAAAA*")}

    # The prompt, the title that is made of it, and the plan.
    assert found == {"gap": 0, "zanzibar": 0, "permissions": 0, "upload": 3, "gAAAAA*": 0}
    assert sessions.get(f"codex.{THREAD}").conversation()[0].text == "We looked for a reset."


def test_each_text_is_found_in_one_event(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, a_day_of_work().write(tmp_path))

    counts = {
        phrase: len(sessions.search(f'"{phrase}"').hits)
        for phrase in (
            "Look at the log first",
            "I will look at the log",
            "The peer closes the connection",
            "And now",
            "connection reset by peer",
            "We looked for a reset",
            "stream disconnected",
            "Retry the upload",
            "Broken pipes",
            "Off by one",
            "Green builds",
            "send_mail",
            "Nothing found upstream",
        )
    }

    assert set(counts.values()) == {1}


def test_base64_lies_in_one_place_however_often_the_file_repeats_it(tmp_path: Path) -> None:
    day = a_day_of_work()

    session = imported(day.write(tmp_path))
    stored = json.dumps([event.body for event in session.events])
    content = PNG.partition(",")[2]

    # A prompt and a tool's output are messages that are read by themselves; the event and the compaction repeat it.
    assert (day.data().decode().count(content), stored.count(content)) == (4, 2)
    assert stored.count("iVBORw0KGgo" * 120) == 1
    blobs = [p for e in session.events for p in e.body.get("parts", ()) if p["type"] == "blob"]
    assert [blob.get("modality") for blob in blobs] == ["image", "image", None]


def test_a_text_that_looks_like_a_stand_in_is_left_alone(tmp_path: Path) -> None:
    day = a_day_of_work()
    stored = json.dumps([event.body for event in imported(day.write(tmp_path / "a")).events])
    stand_in = "playhead:sha256:" + stored.partition("playhead:sha256:")[2][:64]
    day.add("world_state", {"state": [stand_in, PNG]})
    day.item("function_call_output", call_id="c9", output=[stand_in, PNG])
    day.prompt(stand_in)

    session = imported(day.write(tmp_path / "b"))

    assert list(restore_records(session.events)) == day.records


# Tools and replies.


def test_the_items_of_one_request_are_one_reply_with_its_tokens(tmp_path: Path) -> None:
    session = imported(a_day_of_work().write(tmp_path))

    replies = [m for m in messages(session) if m.role == "assistant"]
    first = replies[0]

    assert [part["type"] for part in first.parts] == ["reasoning", "text", "tool_call", "tool_call"]
    assert (first.usage or {})["output_tokens"] == 20
    assert (first.model, first.agent) == ("gpt-5.4", "coordinator")
    assert [(reply.usage or {}).get("output_tokens") for reply in replies] == [20, 30, None, None, None, 40]
    assert Fold().apply_all(log(session.events)).slots["counts"][3:] == [450, 90]


def test_a_count_of_tokens_that_repeats_the_last_one_is_not_counted_again(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()
    for total in (120, 120, 240):
        rollout.say(f"Up to {total}.")
        rollout.tokens(100, 20, total)
    rollout.event("token_count", info=None, rate_limits={"primary": None})

    session = imported(rollout.write(tmp_path))

    assert [e.body["usage"]["output_tokens"] for e in session.events if "usage" in e.body] == [20, 20]
    assert list(restore_records(session.events)) == rollout.records


def test_arguments_are_read_as_json_and_come_back_letter_by_letter(tmp_path: Path) -> None:
    given = [
        '{"cmd":"ls","n":1}',
        '{ "cmd" : "ls" }',
        '{"a":1,"a":2}',
        '{"n":1e400}',
        '{"n":NaN}',
        "[" * 500 + "]" * 500,
        "*** Begin Patch",
        "12",
        "",
        None,
        {"cmd": "ls"},
    ]
    rollout = Rollout()
    for number, arguments in enumerate(given):
        rollout.item("function_call", name="shell", arguments=arguments, call_id=f"c{number}")

    session = imported(rollout.write(tmp_path))
    read_as = [event.body["parts"][0]["arguments"] for event in session.events]

    assert list(restore_records(session.events)) == rollout.records
    assert read_as[:3] == [{"cmd": "ls", "n": 1}, {"cmd": "ls"}, {"a": 2}]
    assert read_as[3:] == given[3:]


@pytest.mark.parametrize(
    ("output", "is_error"),
    [
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nExit code: 3\n", False),
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\nfine", True),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\n", True),
        ("Process exited with code -9", True),
        ('{"output":"no","metadata":{"exit_code":127}}', True),
        ('{"output":"yes","metadata":{"exit_code":0}}', False),
        ("apply_patch verification failed: no such file", True),
        ({"content": "no", "success": False}, True),
        ([{"type": "input_text", "text": "Exit code: 1\nOutput:\n"}], True),
        ("Plan updated", False),
        (None, False),
    ],
)
def test_a_tool_that_failed_is_marked(tmp_path: Path, output: Any, is_error: bool) -> None:
    rollout = Rollout()
    rollout.call("c1", "make")
    rollout.item("function_call_output", call_id="c1", output=output)

    session = imported(rollout.write(tmp_path))
    response = session.events[1].body["parts"][0]

    assert response.get("is_error", False) is is_error
    assert (response["name"], response["id"]) == ("exec_command", "c1")
    assert list(restore_records(session.events)) == rollout.records


def test_an_event_about_a_failure_marks_the_output_that_follows_it(tmp_path: Path) -> None:
    session = imported(a_day_of_work().write(tmp_path))

    errors = [p["id"] for e in session.events for p in e.body.get("parts", ()) if p.get("is_error")]

    assert errors == ["c1", "c3"]


def test_a_completed_command_marks_its_output_as_well(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta(history_mode="paginated")
    for code in (0, 2):
        rollout.call(f"c{code}", "make")
        rollout.event("item_completed", item={"type": "CommandExecution", "id": f"c{code}", "exit_code": code})
        rollout.item("function_call_output", call_id=f"c{code}", output="make: done")

    session = imported(rollout.write(tmp_path))

    assert [p["id"] for e in session.events for p in e.body.get("parts", ()) if p.get("is_error")] == ["c2"]


def test_searches_and_pictures_of_the_provider_are_calls_with_their_outcome(tmp_path: Path) -> None:
    session = imported(a_day_of_work().write(tmp_path))
    fold = Fold().apply_all(log(session.events))

    called = [p["name"] for e in session.events for p in e.body.get("parts", ()) if p["type"] == "tool_call"]

    assert called == [
        "exec_command",
        "exec_command",
        "apply_patch",
        "local_shell",
        "web_search",
        "tool_search",
        "image_generation",
        "spawn_agent",
    ]
    assert [call for _, call in fold.open_calls()] == ["c6"]
    assert session.counts.tool_calls == 4


# Turns, compactions and branches.


def test_tasks_are_turns_with_their_end(tmp_path: Path) -> None:
    day = a_day_of_work()
    day.begin("t3")
    day.end("t3", error={"message": "quota exceeded"})
    day.begin("t4")
    day.prompt("Still there?")

    spans = turns(log(imported(day.write(tmp_path)).events))

    assert [(span.id, span.cause, span.status) for span in spans] == [
        ("t1", "user", "completed"),
        ("t2", "user", "cancelled"),
        ("t3", "user", "failed"),
        ("t4", "user", "open"),
    ]


def test_a_prompt_begins_a_turn_where_there_are_no_tasks_and_the_task_that_follows_it_is_the_same_turn(
    tmp_path: Path,
) -> None:
    rollout = Rollout()
    rollout.meta()
    rollout.prompt("One")
    rollout.say("1")
    rollout.prompt("Two")
    rollout.begin("t2")
    rollout.say("2")
    rollout.prompt("Also this")
    rollout.end("t2")

    session = imported(rollout.write(tmp_path))
    spans = turns(log(session.events))

    assert [span.status for span in spans] == ["open", "completed"]
    assert [e.body["parts"][0]["content"] for e in session.events if e.turn == spans[1].id and e.agent == "user"] == [
        "Two",
        "Also this",
    ]


def test_a_summary_takes_the_place_of_what_was_before_it_and_an_encrypted_one_of_nothing(tmp_path: Path) -> None:
    seen = {}
    for message in ("We greeted each other.", ""):
        rollout = Rollout()
        rollout.meta()
        rollout.prompt("Hello")
        rollout.say("Hello.")
        rollout.add("compacted", {"message": message, "replacement_history": [{"type": "message"}]})
        rollout.prompt("And now?")
        session = imported(rollout.write(tmp_path / str(bool(message))))
        seen[message] = [m.text for m in conversation_of_path(log(session.events)) if m.text]
        assert session.counts.compactions == 1
        assert list(restore_records(session.events)) == rollout.records

    assert seen == {
        "We greeted each other.": ["We greeted each other.", "And now?"],
        "": ["Hello", "Hello.", "And now?"],
    }


def with_rollback(count: Any = 1) -> Rollout:
    rollout = Rollout()
    rollout.meta()
    for number in (1, 2, 3):
        rollout.begin(f"t{number}")
        rollout.prompt(f"Prompt {number}")
        rollout.say(f"Answer {number}")
        rollout.end(f"t{number}")
    rollout.event("thread_rolled_back", num_turns=count)
    return rollout


def test_a_rollback_leaves_the_last_turns_on_a_branch(tmp_path: Path, sessions: Sessions) -> None:
    rollout = with_rollback(2)
    rollout.begin("t4")
    rollout.prompt("Prompt 4")

    bring_in(sessions, rollout.write(tmp_path))
    session = sessions.get(f"codex.{THREAD}")
    events = sessions.store.events(session.key, after=0, limit=200)

    assert [m.text for m in session.conversation()] == ["Prompt 1", "Answer 1", "Prompt 4"]
    assert (session.turn_count, len(branches(events, events[-1].seq))) == (2, 2)
    assert list(restore_records(events)) == rollout.records
    assert [hit.snippet.text for hit in sessions.search('"Prompt 3"').hits] == ["Prompt 3"]


def test_a_rollback_in_a_later_read_leads_back_as_well(tmp_path: Path, sessions: Sessions) -> None:
    rollout = with_rollback()
    records = rollout.records
    for end in range(1, len(records) + 1):
        rollout.records = records[:end]
        source = rollout.write(tmp_path)
        import_source(sessions, source.path, partial(read, source), at=0.0)
    session = sessions.get(f"codex.{THREAD}")

    assert [m.text for m in session.conversation()] == ["Prompt 1", "Answer 1", "Prompt 2", "Answer 2"]
    assert session.turn_count == 2


def test_a_rollback_of_everything_leaves_an_empty_conversation(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, with_rollback(99).write(tmp_path))

    assert sessions.get(f"codex.{THREAD}").conversation() == []


@pytest.mark.parametrize("count", [-1, None, "2", True, 1.5])
def test_a_rollback_of_no_number_of_turns_moves_nothing_and_is_reported(tmp_path: Path, count: Any) -> None:
    session = imported(with_rollback(count).write(tmp_path))

    assert [event.after for event in session.events if event.after] == []
    assert session.warnings == [
        "a rollback names no turns that are there, and no branch is made of it (records: 1; line 25)"
    ]


# Forks and sub-agents.


def parent() -> Rollout:
    rollout = Rollout()
    rollout.meta()
    rollout.begin("019d0000-0001-7000-8000-000000000001")
    rollout.prompt("Where is the xylophone?")
    rollout.say("In the attic.")
    rollout.tokens(100, 20, 120)
    rollout.end("019d0000-0001-7000-8000-000000000001")
    return rollout


def child(copied: Rollout, *, has_numbers: bool = False, own_turn: str | None = None, **meta: Any) -> Rollout:
    """The file of a fork: its own head, the parent's records written anew, and a turn of its own."""
    fork = Rollout(CHILD, begin=BEGIN + timedelta(hours=1))
    fork.meta(**meta)
    for record in copied.records:
        again = fork.add(record["type"], record["payload"])
        again["timestamp"] = fork.records[0]["timestamp"]
    begins = len(fork.records)
    fork.begin(own_turn)
    fork.prompt("And the drum?")
    fork.say("In the cellar.")
    fork.tokens(150, 30, 300)
    if has_numbers:
        fork.records[0]["payload"]["subagent_history_start_ordinal"] = begins
        for number, record in enumerate(fork.records):
            record["ordinal"] = number
    return fork


FORKS: dict[str, dict[str, Any]] = {
    "by the number of its first record": {"has_numbers": True, "own_turn": "t9"},
    "by the age of its first turn": {"own_turn": "019d0a00-0001-7000-8000-000000000009"},
    "by when its first turn begins": {},
}


@pytest.mark.parametrize("how", FORKS)
def test_the_copied_history_of_a_fork_is_told_from_its_own(tmp_path: Path, sessions: Sessions, how: str) -> None:
    first = parent()
    if how == "by when its first turn begins":
        for record in first.records:
            record["payload"].pop("turn_id", None)
    fork = child(first, forked_from_id=THREAD, **FORKS[how])
    bring_in(sessions, first.write(tmp_path))

    outcome = bring_in(sessions, fork.write(tmp_path))
    session = sessions.get(f"codex.{CHILD}")
    copied = [e for e in outcome.session.events if e.body["extra"].get("import", {}).get("copied")]

    assert list(restore_records(outcome.session.events)) == fork.records
    assert len(copied) == len(first.records)
    assert {e.id for e in copied} == {e.id for e in imported(first.write(tmp_path)).events}
    assert [m.text for m in session.conversation()] == [
        "Where is the xylophone?",
        "In the attic.",
        "And the drum?",
        "In the cellar.",
    ]
    counts = outcome.session.counts
    assert (counts.user_prompts, counts.assistant_messages, counts.records) == (1, 1, len(fork.records))
    assert sum(e.body["usage"]["output_tokens"] for e in outcome.session.events if "usage" in e.body) == 30
    assert {hit.session for hit in sessions.search("xylophone").hits} == {f"codex.{THREAD}"}
    assert {hit.session for hit in sessions.search("drum").hits} == {f"codex.{CHILD}"}
    assert outcome.session.title == "And the drum?"


def test_a_fork_that_is_nothing_but_a_copy_so_far_has_no_prompts_of_its_own(tmp_path: Path) -> None:
    fork = child(parent(), forked_from_id=THREAD)
    fork.records = fork.records[: 1 + len(parent().records)]

    session = imported(fork.write(tmp_path))

    assert (session.counts.user_prompts, session.started["forked_from"]["session"]) == (0, f"codex.{THREAD}")


def test_a_sub_agent_is_a_session_of_its_own_that_names_who_began_it(tmp_path: Path) -> None:
    spawn = {
        "parent_thread_id": THREAD,
        "depth": 1,
        "agent_path": "/root/scout",
        "agent_nickname": "Ada",
        "agent_role": None,
    }
    fork = child(Rollout(), parent_thread_id=THREAD, source={"subagent": {"thread_spawn": spawn}}, own_turn="t1")

    session = imported(fork.write(tmp_path))

    assert session.labels == ("sub-agent",)
    assert session.started["parent"] == {
        "path": "/root/scout",
        "name": "Ada",
        "app": "default",
        "user": "default",
        "session": f"codex.{THREAD}",
    }
    assert "forked_from" not in session.started
    assert [e.body["cause"] for e in session.events if e.kind == "turn_started"] == ["sub-agent"]
    assert imported(a_day_of_work().write(tmp_path)).counts.sub_agents == 1


def test_a_sub_agent_that_was_sent_no_prompt_is_titled_by_what_it_is(tmp_path: Path) -> None:
    rollout = Rollout(CHILD)
    rollout.meta(source={"subagent": "review"})
    rollout.item(
        "agent_message", author="/root", recipient="/root/scout", content=[{"type": "input_text", "text": "Look"}]
    )
    rollout.say("Looks good.")

    session = imported(rollout.write(tmp_path))

    assert (session.title, session.labels, session.started["parent"]) == ("review", ("sub-agent",), {"task": "review"})
    assert said(session) == [("user", "Look"), ("assistant", "Looks good.")]
    assert session.counts.user_prompts == 0


def test_a_second_head_in_a_thread_that_goes_on_is_no_copy(tmp_path: Path) -> None:
    rollout = parent()
    rollout.meta(CHILD)
    rollout.prompt("Go on")

    session = imported(rollout.write(tmp_path))

    assert said(session)[-1] == ("user", "Go on")
    assert session.counts.user_prompts == 2
    assert session.id == f"codex.{THREAD}"


# What is known of a thread.


def test_a_session_knows_its_directory_version_model_and_branch(tmp_path: Path) -> None:
    session = imported(a_day_of_work().write(tmp_path))

    assert session.started == {
        "origin": "codex",
        "source": f"rollout-2026-03-14T10-00-00-{THREAD}.jsonl",
        "cwd": "/home/ana/shop",
        "config": {
            "version": "0.142.2",
            "originator": "codex_cli_rs",
            "provider": "openai",
            "gitBranch": "main",
            "gitCommit": "a1b2",
            "model": "gpt-5.4",
        },
    }
    assert session.at == BEGIN.timestamp() + 1
    assert session.title == "Why does the upload fail?"


def test_the_last_name_in_the_index_is_the_title_and_a_new_one_is_news(tmp_path: Path, sessions: Sessions) -> None:
    a_day_of_work().write(tmp_path / "sessions" / "2026" / "03" / "14")
    index = tmp_path / "session_index.jsonl"
    names = [
        {"id": THREAD, "thread_name": "First"},
        {"id": CHILD, "thread_name": "Other"},
        {"id": THREAD, "thread_name": 7},
    ]
    index.write_text("".join(json.dumps(name) + "\n" for name in names) + "torn {")
    bring_in(sessions, discover(tmp_path)[0])
    before = sessions.get(f"codex.{THREAD}").facts.title

    index.write_text(json.dumps({"id": THREAD, "thread_name": "Uploads"}) + "\n")
    again = bring_in(sessions, discover(tmp_path)[0])

    assert (before, sessions.get(f"codex.{THREAD}").facts.title) == ("First", "Uploads")
    assert (again.added_count, again.session.title) == (0, "Uploads")
    source = discover(tmp_path / "sessions")[0]
    assert (source.title, read(source, again.session.positions)) == ("Uploads", None)


def test_a_thread_may_be_named_in_its_own_file(tmp_path: Path) -> None:
    rollout = parent()
    rollout.event("thread_name_updated", thread_id=CHILD, thread_name="Somebody else's")
    rollout.event("thread_name_updated", thread_id=THREAD, thread_name="Attic\nthings")

    assert imported(rollout.write(tmp_path)).title == "Attic things"


# Files.


def test_threads_are_found_in_both_folders_and_each_once(tmp_path: Path) -> None:
    day = tmp_path / "sessions" / "2026" / "03" / "14"
    first = parent().write(day)
    parent().write(tmp_path / "archived_sessions")
    other = Rollout(CHILD)
    other.meta()
    archived = other.write(tmp_path / "archived_sessions")
    first.path.with_suffix(".jsonl.zst").write_bytes(compressed.MAGIC * 10_000)
    (day / f"rollout-2026-03-14T11-00-00-{CHILD[:-1]}c.jsonl").write_bytes(b"")
    (day / "notes.jsonl").write_bytes(b"{}\n")

    found = [source.path for source in discover(tmp_path)]

    assert found == [archived.path, first.path]
    assert [source.path for source in discover(first.path)] == [first.path]
    assert default_root({}, tmp_path) == tmp_path / ".codex"
    assert default_root({"CODEX_HOME": str(tmp_path / "c")}, Path("/")) == tmp_path / "c"
    with pytest.raises(ImportFailed, match="no file or folder"):
        discover(tmp_path / "absent")


def test_a_thread_that_moved_between_two_imports_is_not_doubled(tmp_path: Path, sessions: Sessions) -> None:
    bring_in(sessions, parent().write(tmp_path / "sessions" / "2026" / "03" / "14"))

    again = bring_in(sessions, parent().write(tmp_path / "archived_sessions"))

    assert (again.added_count, again.is_new) == (0, False)
    assert sessions.list().total == 1


def test_a_file_that_only_grew_gives_what_is_new_and_nothing_twice(tmp_path: Path) -> None:
    day = a_day_of_work()
    whole = imported(day.write(tmp_path / "whole"))
    data = day.data()
    ends = [index + 1 for index, byte in enumerate(data) if byte == 10]
    for cut in [*ends, *(end - 20 for end in ends[1:])]:
        path = tmp_path / day.write(tmp_path).path.name
        path.write_bytes(data[:cut])
        first = read(Source(path))
        path.write_bytes(data)
        second = read(Source(path), first.positions if first else None)
        events = [*(first.events if first else []), *(second.events if second else [])]

        assert [(e.id, e.kind, e.at, e.agent, e.turn, e.after) for e in events] == [
            (e.id, e.kind, e.at, e.agent, e.turn, e.after) for e in whole.events
        ]
        assert list(restore_records(events)) == day.records


@pytest.mark.parametrize("change", ["shortened", "changed", "a memory of another version"])
def test_a_file_that_did_not_only_grow_is_read_again_and_nothing_doubles(
    tmp_path: Path, sessions: Sessions, change: str
) -> None:
    day = a_day_of_work()
    source = day.write(tmp_path)
    before = bring_in(sessions, source).session
    if change == "shortened":
        day.records = day.records[:20]
    elif change == "changed":
        day.records[-1]["payload"]["answer"] = 43
    else:
        position = before.positions[str(source.path)]
        position.carry["memory"]["version"] = 0
        source.path.touch()
        assert len(imported(source, {str(source.path): position}).events) == len(day.records)
        return
    day.write(tmp_path)

    outcome = bring_in(sessions, source)

    assert outcome.session.counts.records == len(day.records)
    assert outcome.added_count == (1 if change == "changed" else 0)


def test_a_thread_that_was_opened_and_closed_is_no_session(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.meta()

    assert read(rollout.write(tmp_path)) is None


@pytest.mark.parametrize("content", [b"", b"[1, 2]\n", b'{"type": "user", "sessionId": "s"}\n', b"\0" * 100])
def test_a_file_without_a_record_of_codex_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"rollout-2026-03-14T10-00-00-{THREAD}.jsonl"
    path.write_bytes(content)

    with pytest.raises(ImportFailed, match="holds no record of Codex"):
        read(Source(path))


def test_a_file_under_any_name_is_known_by_its_first_lines(tmp_path: Path) -> None:
    contents = {
        "day.jsonl": parent().data(),
        "torn.jsonl": parent().data()[200:],
        "old.jsonl": b'{"id": "a", "timestamp": "2025-05-01T10:00:00Z", "instructions": null}\n',
        "claude.jsonl": b'{"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Hi"}}\n',
        "pi.jsonl": b'{"type": "message", "id": "1", "message": {"role": "user"}}\n',
        "aider.md": b"# aider chat started at 2026-01-01 10:00:00\n",
        "empty.jsonl": b"",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)

    assert [name for name in contents if recognised(tmp_path / name)] == ["day.jsonl", "torn.jsonl", "old.jsonl"]
    assert imported(Source(tmp_path / "day.jsonl")).id == f"codex.{THREAD}"
    renamed = (tmp_path / "day.jsonl").rename(tmp_path / f"rollout-2026-03-14T10-00-00-{CHILD}.jsonl")
    assert imported(Source(renamed)).id == f"codex.{THREAD}"
    assert imported(Source(renamed)).counts.user_prompts == 1
    assert not recognised(tmp_path)


def test_the_oldest_files_have_no_envelope(tmp_path: Path) -> None:
    path = tmp_path / f"rollout-2025-05-01-{THREAD}.jsonl"
    records: list[dict[str, Any]] = [
        {"id": THREAD, "timestamp": "2025-05-01T10:00:00Z", "instructions": "Zanzibar", "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": RULES}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "A greeting"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))

    session = imported(Source(path))

    assert list(restore_records(session.events)) == records
    assert said(session) == [("user", "Hello"), ("assistant", "Hello.")]
    assert {event.at for event in session.events} == {1746093600.0}
    assert session.started["config"] == {"gitBranch": "main"}
    assert (session.counts.user_prompts, session.counts.assistant_messages, session.counts.tool_calls) == (1, 1, 1)
    assert session.warnings == []


# Compressed files.


def test_a_compressed_file_that_cannot_be_unpacked_here_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "_library", lambda: None)
    path = tmp_path / "sessions" / f"rollout-2026-03-14T10-00-00-{THREAD}.jsonl.zst"
    path.parent.mkdir()
    path.write_bytes(compressed.MAGIC + b"whatever")

    (source,) = discover(tmp_path)

    assert recognised(path)
    with pytest.raises(ImportFailed, match="install zstandard"):
        read(source)


class Test_compressed_files:
    """Where this Python can read zstd."""

    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        return pytest.importorskip("zstandard", reason="zstandard is not installed")

    def write(self, library: Any, folder: Path, data: bytes) -> Source:
        path = folder / f"rollout-2026-03-14T10-00-00-{THREAD}.jsonl.zst"
        path.write_bytes(library.ZstdCompressor(level=3).compress(data))
        return Source(path)

    def test_give_the_same_session_as_plain_ones(self, tmp_path: Path, library: Any, sessions: Sessions) -> None:
        day = a_day_of_work()
        plain = day.write(tmp_path)
        bring_in(sessions, plain)
        source = self.write(library, tmp_path, day.data())

        found = imported(source)
        again = bring_in(sessions, source)

        assert found.events == imported(plain).events
        assert (again.added_count, again.is_new) == (0, False)
        assert read(source, found.positions) is None
        assert recognised(source.path)
        assert [s.path for s in discover(tmp_path)] == [plain.path]

    def test_are_read_again_when_they_change(self, tmp_path: Path, library: Any) -> None:
        day = a_day_of_work()
        first = imported(self.write(library, tmp_path, day.data()))
        day.prompt("One more")

        again = imported(self.write(library, tmp_path, day.data()), first.positions)

        assert list(restore_records(again.events)) == day.records

    def test_that_are_damaged_or_much_too_large_are_refused(
        self, tmp_path: Path, library: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source = self.write(library, tmp_path, a_day_of_work().data())
        data = source.path.read_bytes()
        source.path.write_bytes(data[:40] + bytes(200) + data[240:])
        with pytest.raises(ImportFailed, match="damaged"):
            read(source)
        source.path.write_bytes(data)
        monkeypatch.setattr(compressed, "UNPACKED_BYTES_MAX", 1000)
        with pytest.raises(ImportFailed, match="more than 1000 bytes"):
            read(source)


def test_text_that_only_begins_like_a_data_address_costs_no_more_than_its_length() -> None:
    texts = [f"data:{'a' * 400_000}", f"data:{';base64' * 60_000}", f"data:image/png;base64{' ' * 400_000}"]
    started = time.process_time()
    found = [is_data_address(text) for text in texts]
    spent_s = time.process_time() - started

    assert found == [False] * 3
    assert spent_s < 2  # The square of the length would be minutes.


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("data:image/png;base64,aGVs\nbG8=", {"mime_type": "image/png", "modality": "image"}),
        ("data:text/plain;charset=utf-8;base64,aGVs", {"mime_type": "text/plain"}),
        ("data:;base64,", {}),
    ],
)
def test_a_data_address_comes_back_as_it_was(address: str, part: dict[str, str]) -> None:
    made = blob_part(address)

    assert is_data_address(address)
    assert {name: made[name] for name in ("mime_type", "modality") if name in made} == part
    assert blob_data(made) == address


@pytest.mark.parametrize(
    "text", ["data:image/png,aGVs", "data:image/ png;base64,aGVs", "data:;base64,a,b", "DATA:;base64,"]
)
def test_what_is_no_data_address_in_base64_is_text(text: str) -> None:
    assert not is_data_address(text)
    assert blob_data(blob_part(text)) == text


def test_marks_in_a_message_that_are_never_closed_cost_no_more_than_its_length() -> None:
    pending: list[Pending] = []
    texts = ["<proposed_plan>" * 4_000 + "</oai-mem-citation>", "<oai-mem-citation>" * 4_000]
    started = time.process_time()
    is_known = is_repeated(pending, "assistant", "item", texts)
    spent_s = time.process_time() - started

    assert not is_known
    assert spent_s < 0.5  # The square of the length would be several seconds.


@pytest.mark.parametrize(
    ("item", "event"),
    [
        ("Done.<oai-mem-citation>a\nb</oai-mem-citation>", "Done."),
        ("<proposed_plan>1. Raise it.</proposed_plan> So be it.", "So be it."),
        ("<proposed_plan>a<oai-mem-citation>b</proposed_plan>c<oai-mem-citation>d</oai-mem-citation>", "c"),
        ("<proposed_plan>a <oai-mem-citation>b</oai-mem-citation>", "<proposed_plan>a"),
        ("a<proposed_plan>b</proposed_plan>c<proposed_plan>d", "ac<proposed_plan>d"),
        ("a</proposed_plan>b<proposed_plan>", "a</proposed_plan>b<proposed_plan>"),
    ],
)
def test_an_event_repeats_an_item_without_the_blocks_that_are_shown_elsewhere(item: str, event: str) -> None:
    pending: list[Pending] = []
    first = is_repeated(pending, "assistant", "item", [item])

    assert not first
    assert is_repeated(pending, "assistant", "event", [event])
