"""Claude Code: what each record becomes, how prompts, branches, sub-agents and compactions are told, and reading on."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from playhead.errors import ImportFailed
from playhead.formats.claude_code import Source, default_root, discover, read, restore_record
from playhead.formats.imported import ImportedEvent, ImportedSession, SourcePosition
from playhead.model.event import Event
from playhead.model.path import branches, path as path_of
from playhead.views.conversation import conversation_of_path
from playhead.views.fold import Fold
from playhead.views.transcript import transcript
from tests.formats.claude_code_samples import PNG, SESSION, Script, a_day_of_work, imported, log

PROMPTS = "Why does test_upload fail on CI?"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "projects" / "-home-ana-shop"


def _on_path(events: list[Event]) -> list[Event]:
    """Return the path to where the log's head stands."""
    by_seq = {event.seq: event for event in events}
    last = events[-1]
    return path_of(by_seq, last.parent if last.kind == "head_moved" else last.seq)


def _messages(session: ImportedSession, scope: str | None = None) -> list[tuple[str, str]]:
    path = _on_path(log(session.events))
    return [(message.role, message.text) for message in conversation_of_path(path, scope, sealed=False)]


def _named(session: ImportedSession, name: str) -> ImportedEvent:
    return next(event for event in session.events if event.body.get("name") == name)


# What each record becomes.


def test_every_record_becomes_one_event_in_file_order_and_comes_back_whole(project: Path) -> None:
    script = a_day_of_work()

    session = imported(script.write(project))
    restored = [restore_record(event) for event in session.events]

    assert [record for record in restored if record is not None] == script.records
    assert [event.kind for event, record in zip(session.events, restored, strict=True) if record is None] == [
        "job_changed",
        "job_changed",
    ]
    assert (session.id, session.counts.records) == (f"claude-code.{SESSION}", len(script.records))
    assert (session.skipped, len(log(session.events))) == ([], len(session.events) + 1)


def test_a_reply_in_pieces_is_one_message_with_the_last_count_of_tokens(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    events = [event for event in log(session.events) if event.kind != "compaction"]
    reply = next(m for m in conversation_of_path(events) if m.message_id == "msg_a")

    assert reply.parts == [
        {"type": "reasoning", "content": "Look at the log first.", "extra": {"signature": "SIG"}},
        {"type": "text", "content": "I will look at the log."},
        {"type": "tool_call", "id": "toolu_1", "name": "Bash", "arguments": {"command": "cat ci.log"}},
    ]
    assert (reply.usage, reply.model, reply.agent) == (
        {"input_tokens": 100, "output_tokens": 40},
        "claude-opus-4-6",
        "coordinator",
    )
    assert [
        e.body["usage"]["output_tokens"]
        for e in session.events
        if e.body.get("message_id") == "msg_a" and "usage" in e.body
    ] == [40]


def test_a_tool_result_is_a_message_of_the_tool_with_its_name_and_its_failure(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    results = [e for e in session.events if e.body.get("role") == "tool" and e.scope is None]

    assert [e.agent for e in results] == ["coordinator"] * 5
    assert results[0].body["parts"] == [
        {"type": "tool_call_response", "id": "toolu_1", "response": "connection reset by peer", "name": "Bash"}
    ]
    assert results[0].body["extra"]["claude_code"]["toolUseResult"]["stdout"] == "connection reset"
    assert "toolUseResult" not in results[3].body["extra"]["claude_code"]
    assert results[4].body["parts"][0]["is_error"] is True


def test_base64_lies_in_blobs_and_nowhere_else(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    blobs = [part for e in session.events for part in e.body.get("parts", ()) if part["type"] == "blob"]
    text = json.dumps([e.body for e in session.events])
    response = next(
        e.body["parts"][0]
        for e in session.events
        if e.body.get("parts", [{}])[0].get("id") == "toolu_2" and e.body["role"] == "tool"
    )

    assert [(blob["mime_type"], blob["modality"], blob["content"]) for blob in blobs] == [
        ("image/png", "image", PNG)
    ] * 2
    assert text.count(PNG) == 2
    assert response["response"] == [{"type": "image", "part": 0}]


def test_what_the_program_wrote_is_marked_and_does_not_count_as_a_prompt(project: Path) -> None:
    session = imported(a_day_of_work().write(project))
    fold = Fold().apply_all(log(session.events))

    injected = [
        (e.agent, e.body["parts"][0]["content"][:16]) for e in session.events if e.body.get("injected") == "claude-code"
    ]

    assert injected == [
        (None, "<local-command-c"),
        ("user", "<command-name>/m"),
        (None, "<local-command-s"),
        ("user", "[Request interru"),
    ]
    assert fold.slots["counts"][0] == 4
    assert session.counts.user_prompts == 7


def test_everything_else_is_a_note_that_keeps_the_record_and_shows_its_text(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    notes = [e for e in session.events if e.kind == "note"]
    future = _named(session, "claude-code.from-the-future")
    boundary = _named(session, "claude-code.system.compact_boundary")

    assert [note.body["name"] for note in notes] == [
        "claude-code.summary",
        "claude-code.file-history-snapshot",
        "claude-code.progress.bash_progress",
        "claude-code.system.turn_duration",
        "claude-code.system.compact_boundary",
        "claude-code.last-prompt",
        "claude-code.last-prompt",
        "claude-code.from-the-future",
    ]
    assert future.body["extra"]["claude_code"]["anything"] == [1, {"two": None}]
    assert boundary.body["text"] == "Conversation compacted"
    assert notes[0].body["text"] == "Shop checkout"


def test_blocks_of_unknown_types_are_kept_and_never_taken_for_our_parts(project: Path) -> None:
    script = Script()
    blocks = [
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "tool_call", "id": ["not", "hashable"]},
        {"type": "text", "text": None},
        {"type": "tool_use", "id": 7, "name": "Bash"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}, "cache_control": 1},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "title": "Spec"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}},
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "part": 0}]},
        "bare text",
        None,
    ]
    script.say(*blocks[:8], {"type": ["odd"]})
    script.prompt(blocks)

    session = imported(script.write(project))
    parts = session.events[1].body["parts"]

    assert [part["type"] for part in parts] == [
        "redacted_thinking",
        "claude_code.block",
        "claude_code.block",
        "tool_use",
        "uri",
        "file",
        "document",
        "tool_result",
        "claude_code.block",
        "claude_code.block",
    ]
    assert [restore_record(event) for event in session.events] == script.records
    assert len(conversation_of_path(log(session.events))) == 2


def test_a_prompt_queued_while_tools_ran_is_the_persons_and_stays_in_the_turn(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    queued = next(e for e in session.events if e.body.get("parts") == [{"type": "text", "content": "and log it"}])
    before = session.events[session.events.index(queued) - 1]

    assert (queued.kind, queued.agent, queued.body["role"], queued.turn) == ("message", "user", "user", before.turn)
    assert "injected" not in queued.body
    assert queued.id.startswith("line-")


# Ids, times and turns.


def test_ids_are_the_records_own_and_lines_without_one_are_named_by_their_hash(project: Path) -> None:
    session = imported(a_day_of_work().write(project))

    first, second = (e for e in session.events if e.body.get("name") == "claude-code.last-prompt")
    prompt = next(e for e in session.events if e.body.get("parts") == [{"type": "text", "content": PROMPTS}])

    assert prompt.id == "00000001-0000-4000-8000-000000000001"
    assert first.id[:-1] == second.id[:-1]
    assert (len(first.id), first.id[-2:], second.id[-2:]) == (len("line-") + 24 + 2, "-1", "-2")
    assert len({event.id for event in session.events}) == len(session.events)


def test_a_record_written_again_under_its_uuid_is_a_note_and_another_message_is_not(project: Path) -> None:
    script = Script()
    script.prompt("Is it done?")
    done = script.say("Done.")
    script.records.append(done | {"version": "2.1.41", "cwd": "/elsewhere"})
    script.records.append(done | {"message": done["message"] | {"content": [{"type": "text", "text": "Not yet."}]}})

    session = imported(script.write(project))

    assert [(e.kind, e.id.removeprefix(done["uuid"])) for e in session.events[1:]] == [
        ("message", ""),
        ("note", ".2"),
        ("message", ".3"),
    ]
    assert session.events[2].body["name"] == "claude-code.assistant.repeated"
    assert _messages(session) == [("user", "Is it done?"), ("assistant", "Done.Not yet.")]
    assert [restore_record(event) for event in session.events] == script.records


def test_ids_are_valid_unicode_and_of_sensible_length(project: Path) -> None:
    script = Script()
    uuids = ["\ud800half", "nul\0", "x" * 1000, ""]
    for uuid in uuids:
        script.prompt("Hello", uuid=uuid)
        script._last = None

    path = script.write(project)
    path.write_text("\n".join(json.dumps(record) for record in script.records) + "\n")
    session = imported(path)

    assert [e.id for e in session.events[:2]] == ["\ufffdhalf", "nul"]
    assert len(session.events[2].id) == 64
    assert session.events[3].id.startswith("line-")
    assert [restore_record(event) for event in session.events] == script.records


def test_times_are_utc_and_a_bad_one_is_that_of_the_record_before(project: Path) -> None:
    script = Script()
    script.bare("summary", summary="No time yet")
    script.prompt("one", timestamp="2026-03-14T09:00:00.250Z")
    script.prompt("two", timestamp="2026-03-14T11:00:00+02:00")
    script.prompt("three", timestamp="not a time")
    script.prompt("four", timestamp=1773478800000)
    script.prompt("five", timestamp="0001-01-01T00:00:00Z")
    script.prompt("six", timestamp="2026-03-14T10:00:00")
    del script.prompt("seven")["timestamp"]

    session = imported(script.write(project))

    assert [e.at - 1773478800 for e in session.events] == [0.25, 0.25, 0, 0, 0, 0, 3600, 3600]
    assert [e.body["extra"].get("import", {}).get("at") for e in session.events] == [
        "missing",
        None,
        None,
        "impossible",
        "impossible",
        "impossible",
        "without a zone, and read as UTC",
        "missing",
    ]
    assert session.at == 1773478800.25
    assert session.warnings == [
        "a time is impossible (records: 3; line 4, line 5, line 6)",
        "a time is without a zone, and read as UTC (records: 1; line 7)",
    ]
    assert [restore_record(event) for event in session.events] == script.records


def test_a_warning_names_the_first_places_and_counts_all(project: Path) -> None:
    script = Script()
    for _ in range(8):
        script.prompt("Hello", timestamp="noon")

    session = imported(script.write(project))

    assert session.warnings == ["a time is impossible (records: 8; line 1, line 2, line 3, line 4, line 5, …)"]


def test_a_file_without_any_time_has_the_time_of_the_file(project: Path) -> None:
    script = Script()
    del script.prompt("Hello")["timestamp"]
    path = script.write(project)
    os.utime(path, (1773478800, 1773478800))

    session = imported(path)

    assert (session.at, [e.at for e in session.events]) == (1773478800.0, [1773478800.0])


def test_each_prompt_begins_a_turn_and_a_local_command_does_not(project: Path) -> None:
    script = Script()
    script.bare("mode", mode="normal", sessionId=SESSION)
    first = script.prompt("<command-message>review</command-message>\n<command-name>/review</command-name>")
    script.prompt([{"type": "text", "text": "Base directory for this skill: …"}], isMeta=True)
    script.say("Reviewed.")
    script.prompt("<local-command-caveat>Caveat: …</local-command-caveat>", isMeta=True)
    script.prompt("<command-name>/model</command-name>")
    script.prompt("<local-command-stdout>Set model</local-command-stdout>")
    second = script.prompt("Now fix it")
    script.prompt([{"type": "text", "text": "[Request interrupted by user]"}])
    third = script.prompt("<task-notification>\n<task-id>b1</task-id></task-notification>")

    session = imported(script.write(project))

    assert [e.turn for e in session.events] == [
        None,
        *[first["uuid"]] * 6,
        *[second["uuid"]] * 2,
        third["uuid"],
    ]


# Branches.


def test_an_edited_prompt_makes_a_branch_after_the_reply_before_it(project: Path) -> None:
    script = Script()
    script.prompt("Plan the change")
    plan = script.say("Here is the plan.")
    script.prompt("Use SQLite")
    script.say("SQLite it is.")
    edited = script.prompt("Use PostgreSQL", parent=plan)
    script.say("PostgreSQL it is.")

    session = imported(script.write(project))
    events = log(session.events)

    assert [(e.id, e.after) for e in session.events if e.after] == [(edited["uuid"], plan["uuid"])]
    assert [text for _, text in _messages(session)] == [
        "Plan the change",
        "Here is the plan.",
        "Use PostgreSQL",
        "PostgreSQL it is.",
    ]
    assert [(b.turn_count, b.event_count) for b in branches(events, events[-1].seq)] == [(2, 5), (1, 2)]


def test_going_back_to_a_branch_that_was_left_is_a_branch_too(project: Path) -> None:
    script = Script()
    opening = script.add("attachment", attachment={"type": "hook_success", "content": "ready"})
    script.prompt("one")
    left = script.say("first")
    script.prompt("two", parent=opening)
    script.say("second")
    back = script.prompt("three", parent=left)

    session = imported(script.write(project))

    assert [e.after for e in session.events if e.after] == [opening["uuid"], left["uuid"]]
    assert [text for _, text in _messages(session)] == ["one", "first", "three"]
    assert session.events[-1].id == back["uuid"]


def test_parallel_calls_hooks_and_late_progress_make_no_branch(project: Path) -> None:
    script = Script()
    script.prompt("Run both")
    one = script.call("Bash", "t1", {}, reply="m")
    two = script.call("Bash", "t2", {}, reply="m")
    script.result("t2", "b", parent=two)
    first = script.result("t1", "a", parent=one)
    script.add("progress", data={"type": "hook_progress"}, parent=two)
    script.say("Both ran.", parent=first)
    script.prompt("Thanks")
    script.add("progress", data={"type": "bash_progress"}, parent=one)
    script.prompt("Next", parent=script.records[-2])

    session = imported(script.write(project))

    assert [e.after for e in session.events if e.after] == []
    assert session.warnings == []


def test_dangling_own_and_circular_parents_are_warned_of_and_make_no_branch(project: Path) -> None:
    script = Script()
    script.prompt("one", parent="nobody")
    own = script.prompt("two")
    own["parentUuid"] = own["uuid"]
    third, fourth = script.prompt("three"), script.prompt("four")
    third["parentUuid"], fourth["parentUuid"] = fourth["uuid"], third["uuid"]
    script.prompt("five", parent=17)

    session = imported(script.write(project))

    assert [e.after for e in session.events] == [None] * 5
    assert [text for _, text in _messages(session)] == ["one", "two", "three", "four", "five"]
    assert session.warnings == [
        "a record names a parent that is not before it, and no branch is made of it (records: 2; line 1, line 3)",
        "a record names itself as its parent, and no branch is made of it (records: 1; line 2)",
    ]


# Compactions.


def test_a_compaction_stands_in_for_all_before_it_and_the_log_keeps_it(project: Path) -> None:
    script = a_day_of_work()
    session = imported(script.write(project))
    path = log(session.events)

    body = next(e.body for e in session.events if e.kind == "compaction")
    interrupted = next(e for e in session.events if "[Request" in str(e.body.get("parts")))

    assert {name: value for name, value in body.items() if name != "extra"} == {
        "from": "00000001-0000-4000-8000-000000000001",
        "to": interrupted.id,
        "summary": "The upload got a retry; one test fails.",
        "reason": "auto",
        "tokens_before": 174247,
    }
    assert _messages(session) == [
        ("user", "The upload got a retry; one test fails."),
        ("user", "Fix the test"),
        ("assistant", "Done."),
    ]
    assert any(entry.text == PROMPTS for entry in transcript(path))


def test_messages_that_a_compaction_kept_stay_in_the_conversation(project: Path) -> None:
    script = Script()
    script.prompt("one")
    script.say("first")
    kept = script.prompt("two")
    last = script.say("second")
    segment = {"headUuid": kept["uuid"], "anchorUuid": "s", "tailUuid": last["uuid"]}
    script.add("system", subtype="compact_boundary", compactMetadata={"preservedSegment": segment})
    script.prompt("Summary of one", isCompactSummary=True)
    script.prompt("three")

    session = imported(script.write(project))

    assert [text for _, text in _messages(session)] == ["Summary of one", "two", "second", "three"]


def test_a_boundary_without_a_summary_is_a_note_and_a_summary_without_a_boundary_compacts(project: Path) -> None:
    script = Script()
    script.prompt("Nothing stands before me", isCompactSummary=True)
    script.prompt("one")
    script.add("system", subtype="compact_boundary", compactMetadata=None)
    script.say("first")
    script.prompt("one and first", isCompactSummary=True)
    script.prompt("two")
    script.prompt([{"type": "text", "text": "all of it"}], isCompactSummary=True)

    session = imported(script.write(project))

    assert [e.kind for e in session.events].count("compaction") == 2
    assert session.events[0].body["injected"] == "claude-code"
    assert [text for _, text in _messages(session)] == ["all of it"]
    assert [restore_record(event) for event in session.events] == script.records


def test_a_compaction_after_an_edit_covers_the_branch_it_is_on(project: Path) -> None:
    script = Script()
    opening = script.add("attachment", attachment={"type": "hook_success", "content": "ready"})
    script.prompt("one")
    script.prompt("two", parent=opening)
    script.say("second")
    script.prompt("two and second", isCompactSummary=True)

    session = imported(script.write(project))

    assert [text for _, text in _messages(session)] == ["two and second"]


# Sub-agents.


def test_a_relayed_sub_agent_has_its_own_conversation_and_shows_in_the_transcript(project: Path) -> None:
    session = imported(a_day_of_work().write(project))
    path = log(session.events)
    explorer = "coordinator/Explore:1"

    jobs = [e for e in session.events if e.kind == "job_changed"]
    inside = [e for e in session.events if e.scope == explorer]

    assert [(e.id, e.agent, e.scope, e.body["agent"], e.body["status"]) for e in jobs] == [
        ("job-toolu_3-running", "coordinator", None, explorer, "running"),
        ("job-toolu_3-completed", "coordinator", None, explorer, "completed"),
    ]
    assert [(e.agent, e.body["role"]) for e in inside] == [("coordinator", "user"), (explorer, "assistant")]
    assert _messages(session, explorer) == [("user", "Find retries"), ("assistant", "None")]
    assert [entry.text for entry in transcript(path) if entry.kind == "sub_agent"][-1] == f"{explorer}: completed"
    assert Fold().apply_all(path).named("run") == {"coordinator/Explore": 1}


def test_sidechains_of_old_files_are_told_apart_by_their_prompts(project: Path) -> None:
    script = Script()
    script.prompt("Look at both")
    one = script.call("Task", "t1", {"prompt": "Look at A", "subagent_type": "general-purpose"}, reply="m")
    two = script.call("Task", "t2", {"prompt": "Look at B", "subagent_type": "general-purpose"}, reply="m")
    b = script.prompt("Look at B", isSidechain=True, parent=None)
    a = script.prompt("Look at A", isSidechain=True, parent=None)
    script.say("B is fine", isSidechain=True, parent=b)
    script.say("A is not", isSidechain=True, parent=a)
    script.result("t1", "A is not", parent=one)
    script.result("t2", "B is fine", is_error=True, parent=two)
    script.prompt("Lost", isSidechain=True, parent=None)

    session = imported(script.write(project))
    jobs = [e.body for e in session.events if e.kind == "job_changed"]

    assert _messages(session, "coordinator/general-purpose:1") == [("user", "Look at A"), ("assistant", "A is not")]
    assert _messages(session, "coordinator/general-purpose:2") == [("user", "Look at B"), ("assistant", "B is fine")]
    assert _messages(session, "coordinator/agent:1") == [("user", "Lost")]
    assert [(job["job"], job["status"]) for job in jobs[:4]] == [
        ("t1", "running"),
        ("t2", "running"),
        ("t1", "completed"),
        ("t2", "failed"),
    ]
    assert session.counts.user_prompts == 1


def test_sidechains_with_an_agent_id_are_told_apart_by_it(project: Path) -> None:
    script = Script()
    script.prompt("Look at both")
    script.call("Task", "t1", {"prompt": "Look", "subagent_type": "Explore"}, reply="m")
    script.call("Task", "t2", {"prompt": "Look", "subagent_type": "Explore"}, reply="m")
    for agent_id in ("a1", "a2", "a1", "a2"):
        script.say(f"I am {agent_id}", isSidechain=True, agentId=agent_id, parent=None)

    session = imported(script.write(project))

    assert _messages(session, "coordinator/Explore:1") == [("assistant", "I am a1")] * 2
    assert _messages(session, "coordinator/Explore:2") == [("assistant", "I am a2")] * 2
    assert session.counts.sub_agents == 2


def test_an_agent_in_the_background_ends_when_its_notification_comes(project: Path) -> None:
    script = Script()
    script.prompt("Research it")
    script.call("Agent", "t1", {"description": "Research", "prompt": "…", "subagent_type": "a/b:c"})
    script.result(
        "t1", "Async agent launched", toolUseResult={"isAsync": True, "status": "async_launched", "agentId": "a9"}
    )
    script.say("I will wait.")
    told = (
        "<task-notification>\n<task-id>a9</task-id>\n<tool-use-id>REDACTED</tool-use-id>\n"
        "<status>killed</status>\n</task-notification>"
    )
    script.bare("queue-operation", operation="enqueue", content=told, sessionId=SESSION)
    script.prompt(told, origin={"kind": "task-notification"})

    session = imported(script.write(project))
    jobs = [e for e in session.events if e.kind == "job_changed"]

    assert [(e.body["agent"], e.body["status"]) for e in jobs] == [
        ("coordinator/a%2Fb%3Ac:1", "running"),
        ("coordinator/a%2Fb%3Ac:1", "cancelled"),
    ]
    assert session.events.index(jobs[1]) < len(session.events) - 1


def _with_agent_file(project: Path, *, folder: str, meta: bool) -> tuple[Script, Path]:
    """Write a session whose sub-agent has a file of its own, and which relays it as well; the agent calls another."""
    script = Script()
    script.prompt("Look around")
    script.call("Task", "t1", {"prompt": "Look", "subagent_type": "Explore"})
    agent = Script(first=100)
    agent.prompt("Look", isSidechain=True, agentId="a5")
    agent.call("Task", "t2", {"prompt": "Deeper", "subagent_type": "Explore"}, isSidechain=True, agentId="a5")
    inner = {"type": "user", "uuid": agent.records[0]["uuid"], "message": agent.records[0]["message"]}
    data = {"type": "agent_progress", "message": inner, "agentId": "a5"}
    script.add("progress", data=data, parentToolUseID="t1")
    script.result("t1", "Seen", toolUseResult={"status": "completed", "agentId": "a5"})
    script.prompt("And now?")
    place = project / folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "agent-a5.jsonl").write_bytes(agent.data())
    if meta:
        (place / "agent-a5.meta.json").write_text(json.dumps({"agentType": "Explore", "toolUseId": "t1"}))
    return script, script.write(project)


@pytest.mark.parametrize(
    ("folder", "meta"), [(f"{SESSION}/subagents", True), (f"{SESSION}/subagents/workflows/w1", False), (".", False)]
)
def test_a_sub_agents_own_file_is_read_in_the_turn_that_launched_it(project: Path, folder: str, meta: bool) -> None:
    script, path = _with_agent_file(project, folder=folder, meta=meta)

    sources = discover(project)
    session = read(sources[0])
    assert session is not None
    inside = [e for e in session.events if e.scope == "coordinator/Explore:1" and e.body.get("role")]
    deeper = [e for e in session.events if e.kind == "job_changed" and e.body["job"] == "t2"]

    assert [(source.path, len(source.agents)) for source in sources] == [(path, 1)]
    assert {e.turn for e in inside} == {script.records[0]["uuid"]}
    assert [text for _, text in _messages(session, "coordinator/Explore:1")] == ["Look", ""]
    assert [(e.agent, e.scope, e.body["agent"]) for e in deeper] == [
        ("coordinator/Explore:1", "coordinator/Explore:1", "coordinator/Explore:1/Explore:1")
    ]
    assert len(session.events) == len(script.records) + 2 + 3
    assert session.counts.records == len(script.records) + 2


# Titles and other facts.


def test_the_title_is_the_tools_own_choice(project: Path) -> None:
    script = Script()
    script.prompt("<command-name>/clear</command-name>")
    script.prompt("Only a hint", isMeta=True)
    script.prompt([{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}])
    script.prompt("Fix   the\nupload")
    found = [imported(script.write(project)).title]
    for type, field, text in (
        ("summary", "summary", "Upload"),
        ("last-prompt", "lastPrompt", "and the test"),
        ("ai-title", "aiTitle", "Upload retries"),
        ("custom-title", "customTitle", "Retry"),
        ("custom-title", "customTitle", "Retries"),
        ("ai-title", "aiTitle", "Late"),
    ):
        script.bare(type, **{field: text})
        found.append(imported(script.write(project)).title)

    assert found == ["Fix the upload", "Upload", "and the test", "Upload retries", "Retry", "Retries", "Retries"]


def test_the_session_says_where_and_with_what_it_began(project: Path) -> None:
    script = a_day_of_work()
    script.bare("tag", tag="urgent", sessionId=SESSION)

    session = imported(script.write(project))

    assert session.started == {
        "origin": "claude-code",
        "source": f"{SESSION}.jsonl",
        "cwd": "/home/ana/shop",
        "config": {"version": "2.1.40", "gitBranch": "main", "model": "claude-opus-4-6"},
    }
    assert session.labels == ("urgent",)


# Finding the files.


def test_the_root_is_that_of_the_environment_or_of_the_home(tmp_path: Path) -> None:
    assert default_root({}, tmp_path) == tmp_path / ".claude" / "projects"
    assert default_root({"CLAUDE_CONFIG_DIR": ""}, tmp_path) == tmp_path / ".claude" / "projects"
    assert default_root({"CLAUDE_CONFIG_DIR": "/data/claude"}, tmp_path) == Path("/data/claude/projects")


def test_sessions_are_found_from_every_level_and_other_files_are_not(project: Path) -> None:
    path = a_day_of_work().write(project)
    side = Script("1b7e1c52-64a5-4a53-9d0e-2f8a3c9b1d71")
    side.prompt("Look", isSidechain=True)
    side.write(project)
    (project / SESSION / "tool-results").mkdir(parents=True)
    (project / SESSION / "tool-results" / "out.txt").write_text("long")
    (project / "memory").mkdir()
    (project / "sessions-index.json").write_text("{}")
    (project / "notes.jsonl").write_text("{}\n")
    (project.parent.parent / "history.jsonl").write_text('{"display":"x"}\n')
    empty = project.parent / "-empty"
    empty.mkdir()

    roots = (project.parent.parent, project.parent, project, path)

    assert [discover(root) for root in roots] == [[Source(path)]] * 4
    assert discover(empty) == []


def test_a_root_that_cannot_be_one_is_refused(project: Path) -> None:
    _with_agent_file(project, folder=".", meta=False)
    (project / "empty.jsonl").write_text("")
    (project / "prose.jsonl").write_text("no JSON here\n")

    for root, part in ((project / "absent", "no file or folder"), (project / "agent-a5.jsonl", "sub-agent")):
        with pytest.raises(ImportFailed, match=part):
            discover(root)
    for name, part in (("absent.jsonl", "cannot be read"), ("empty.jsonl", "no record"), ("prose.jsonl", "no record")):
        with pytest.raises(ImportFailed, match=part):
            read(Source(project / name))


def test_a_file_without_a_message_or_a_title_is_no_session(project: Path) -> None:
    script = Script()
    script.bare("file-history-snapshot", messageId="x", snapshot={})
    path = script.write(project)
    script.bare("custom-title", customTitle="Kept")

    assert read(Source(path)) is None
    assert imported(script.write(project)).title == "Kept"


def test_a_copy_under_another_name_is_the_same_session(project: Path) -> None:
    path = a_day_of_work().write(project)
    copy = path.rename(project / "my upload session.jsonl")

    assert imported(copy).id == f"claude-code.{SESSION}"


# Reading on.


def test_a_file_that_grew_is_read_on_with_the_same_result_as_at_once(project: Path) -> None:
    script = a_day_of_work()
    whole = imported(script.write(project))
    path, data, lines = project / f"{SESSION}.jsonl", script.data(), script.lines()

    for count in range(1, len(lines)):
        path.write_bytes(b"\n".join(lines[:count]) + b"\n")
        first = read(Source(path))
        path.write_bytes(data)
        second = read(Source(path), first.positions if first else None)
        assert second is not None
        events = [*(first.events if first else ()), *second.events]

        assert [(e.id, e.kind, e.agent, e.turn, e.scope, e.after) for e in events] == [
            (e.id, e.kind, e.agent, e.turn, e.scope, e.after) for e in whole.events
        ]
        # The two lines at the beginning have no time; the first read gives them that of the file until there is one.
        assert [e.at for e in events[2:]] == [e.at for e in whole.events[2:]]
        assert (second.title, second.started, second.at) == (whole.title, whole.started, whole.at)
        assert [r for r in map(restore_record, events) if r] == script.records


def test_reading_on_finds_nothing_new_until_something_is(project: Path) -> None:
    script = a_day_of_work()
    path = script.write(project)
    first = imported(path)
    os.utime(path, ns=(0, 0))
    script.prompt("One more thing")

    assert read(Source(path), first.positions) is None
    with path.open("ab") as stream:
        stream.write(script.lines()[-1][:40])
    unfinished = imported(path, first.positions)
    path.write_bytes(script.data())
    second = imported(path, unfinished.positions)

    assert (unfinished.events, [s.reason[:27] for s in unfinished.skipped]) == ([], ["the last line is unfinished"])
    assert [e.body["parts"][0]["content"] for e in second.events] == ["One more thing"]
    assert second.events[0].after is None
    assert read(Source(path), second.positions) is None


def test_a_branch_and_a_repeated_record_are_seen_across_two_reads(project: Path) -> None:
    script = Script()
    script.prompt("Plan the change")
    plan = script.say("Here is the plan.")
    script.prompt("Use SQLite")
    done = script.say("Done.")
    first = imported(script.write(project))
    script.records.append(done | {"version": "2.1.41"})
    script.prompt("Use PostgreSQL", parent=plan)

    second = imported(script.write(project), json_copy(first))

    assert [(e.kind, e.after) for e in second.events] == [("note", None), ("message", plan["uuid"])]
    assert second.events[0].id == done["uuid"] + ".2"


@pytest.mark.parametrize("change", ["shorter", "rewritten", "no memory", "other version"])
def test_a_file_that_did_not_only_grow_is_read_again_under_the_same_ids(project: Path, change: str) -> None:
    script = a_day_of_work()
    path = script.write(project)
    first = imported(path)
    position = json_copy(first)
    if change == "shorter":
        path.write_bytes(b"\n".join(script.lines()[:10]) + b"\n")
    elif change == "rewritten":
        path.write_bytes(script.data()[:-30] + b" " * 29 + b"\n" + script.data())
    elif change == "no memory":
        del position[str(path)].carry["memory"]
    else:
        position[str(path)].carry["memory"]["version"] = 99

    again = imported(path, position)

    assert [e.id for e in again.events[:10]] == [e.id for e in first.events[:10]]


def test_a_sub_agents_file_that_grew_is_read_on_alone(project: Path) -> None:
    _, path = _with_agent_file(project, folder=f"{SESSION}/subagents", meta=True)
    source = discover(path)[0]
    first = read(source)
    assert first is not None
    more = Script(first=200)
    more.say("Still looking", isSidechain=True, agentId="a5", parent=None)
    with source.agents[0].open("ab") as stream:
        stream.write(more.data())

    second = read(source, json_copy(first))

    assert second is not None
    assert [(e.scope, e.turn, e.agent) for e in second.events] == [
        ("coordinator/Explore:1", first.events[-1].turn, "coordinator/Explore:1")
    ]
    assert read(source, second.positions) is None


def test_a_sub_agents_file_that_nothing_names_comes_last_under_its_type(project: Path) -> None:
    path = a_day_of_work().write(project)
    agent = Script(first=300)
    agent.prompt("Look", isSidechain=True, agentId="a8", timestamp="no time")
    lost = project / "agent-a8.jsonl"
    lost.write_bytes(agent.data())
    (project / "agent-a8.meta.json").write_text('{"agentType": "Plan", "toolUseId": 7}')

    session = imported(path, None, lost)

    assert [(e.kind, e.scope, e.agent) for e in session.events[-2:]] == [
        ("job_changed", None, "coordinator"),
        ("message", "coordinator/Plan:1", "coordinator"),
    ]
    assert session.warnings == ["a time is impossible (records: 1; agent a8 line 1)"]


def test_an_unreadable_sub_agents_file_is_reported_and_the_session_is_read(project: Path) -> None:
    path = a_day_of_work().write(project)

    session = imported(path, None, project / "agent-gone.jsonl")

    assert [(s.source, s.length) for s in session.skipped] == [(str(project / "agent-gone.jsonl"), 0)]
    assert len(session.events) == len(a_day_of_work().records) + 2


def test_the_memory_of_a_read_stays_small(project: Path) -> None:
    script = Script()
    for number in range(500):
        script.prompt(f"Prompt {number}")
        script.say("x" * 200)

    carry = imported(script.write(project)).positions[str(project / f"{SESSION}.jsonl")].carry

    assert len(json.dumps(carry)) < 30 * len(script.records)


def json_copy(session: ImportedSession) -> dict[str, SourcePosition]:
    """Return a session's positions as they come back from where they were stored."""
    return msgspec.json.decode(msgspec.json.encode(session.positions), type=dict[str, SourcePosition])
