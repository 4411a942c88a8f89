"""Claude Code files for tests, made record by record, and a small log that gives events their seq and parent."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playhead.features.ingest import STARTED_ID
from playhead.formats.claude_code import Source, read
from playhead.formats.imported import ImportedEvent, ImportedSession, SourcePosition
from playhead.model.codec import decode_body, encode_body
from playhead.model.event import Draft, Event, check_draft, head_after

SESSION = "0b7e1c52-64a5-4a53-9d0e-2f8a3c9b1d70"
BEGIN = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Json = dict[str, Any]


class Script:
    """Records of one session, each after the one before unless a parent is named."""

    def __init__(self, session: str = SESSION, *, first: int = 1) -> None:
        self.session = session
        self.records: list[Json] = []
        self._number = first - 1
        self._last: str | None = None

    def add(self, type: str, /, **fields: Any) -> Json:
        """Add a record with the common fields; `parent` names another record or None."""
        self._number += 1
        parent = fields.pop("parent", self._last)
        record: Json = {
            "parentUuid": parent["uuid"] if isinstance(parent, dict) else parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ana/shop",
            "sessionId": self.session,
            "version": "2.1.40",
            "gitBranch": "main",
            "type": type,
            "uuid": f"{self._number:08d}-0000-4000-8000-{self._number:012d}",
            "timestamp": (BEGIN + timedelta(seconds=self._number)).isoformat().replace("+00:00", ".000Z"),
            **fields,
        }
        self.records.append(record)
        self._last = record["uuid"]
        return record

    def bare(self, type: str, /, **fields: Any) -> Json:
        """Add a record without id, time and parent."""
        record: Json = {"type": type, **fields}
        self.records.append(record)
        return record

    def prompt(self, text: Any, /, **fields: Any) -> Json:
        return self.add("user", message={"role": "user", "content": text}, **fields)

    def say(self, *blocks: Any, reply: str | None = None, output: int = 10, **fields: Any) -> Json:
        """Add a reply's record; a block given as text is a text block."""
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        message = {
            "model": "claude-opus-4-6",
            "id": reply or f"msg_{self._number + 1}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": output},
        }
        return self.add("assistant", message=message, requestId=f"req_{self._number + 1}", **fields)

    def call(self, name: str, id: str, input: Any, **fields: Any) -> Json:
        return self.say({"type": "tool_use", "id": id, "name": name, "input": input}, **fields)

    def result(self, id: str, content: Any, *, is_error: bool | None = None, **fields: Any) -> Json:
        block = {"tool_use_id": id, "type": "tool_result", "content": content}
        if is_error is not None:
            block["is_error"] = is_error
        return self.add("user", message={"role": "user", "content": [block]}, **fields)

    def lines(self) -> list[bytes]:
        return [json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") for record in self.records]

    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines())

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.session}.jsonl"
        path.write_bytes(self.data())
        return path


def a_day_of_work() -> Script:
    """Return a session with everything in it: prompts, tools, files, sub-agents, a compaction and the program's own."""
    s = Script()
    s.bare("summary", summary="Shop checkout", leafUuid="not-here")
    s.bare(
        "file-history-snapshot", messageId="00000001-0000-4000-8000-000000000001", snapshot={"trackedFileBackups": {}}
    )
    s.prompt("Why does test_upload fail on CI?", permissionMode="default")
    s.say({"type": "thinking", "thinking": "Look at the log first.", "signature": "SIG"}, reply="msg_a", output=1)
    s.say("I will look at the log.", reply="msg_a", output=5)
    s.call("Bash", "toolu_1", {"command": "cat ci.log"}, reply="msg_a", output=40)
    s.add("progress", data={"type": "bash_progress", "output": "…"}, parentToolUseID="toolu_1", toolUseID="p0")
    s.result("toolu_1", "connection reset by peer", toolUseResult={"stdout": "connection reset", "interrupted": False})
    s.call("Read", "toolu_2", {"file_path": "shot.png"})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    s.result("toolu_2", [image], toolUseResult={"type": "image", "file": {"base64": PNG, "type": "image/png"}})
    s.call("Task", "toolu_3", {"description": "Find retries", "prompt": "Find retries", "subagent_type": "Explore"})
    told = {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": "Find retries"}]},
        "uuid": "i1",
    }
    seen = {
        "type": "assistant",
        "message": {"id": "msg_s", "role": "assistant", "content": [{"type": "text", "text": "None"}]},
    }
    for message in (told, seen):
        data = {"type": "agent_progress", "message": message, "agentId": "a77", "prompt": "Find retries"}
        s.add("progress", data=data, parentToolUseID="toolu_3", toolUseID="agent_msg")
    s.result(
        "toolu_3",
        [{"type": "text", "text": "There are none."}],
        toolUseResult={"status": "completed", "agentId": "a77"},
    )
    s.say("The upload has no retry.")
    s.add("system", subtype="turn_duration", durationMs=9000, isMeta=False)
    s.prompt("<local-command-caveat>Caveat: …</local-command-caveat>", isMeta=True)
    s.prompt("<command-name>/model</command-name>")
    s.prompt("<local-command-stdout>Set model</local-command-stdout>")
    s.prompt([{"type": "text", "text": "Add one, like in this picture"}, image], imagePasteIds=[1])
    s.call("Edit", "toolu_4", {"file_path": "upload.py"}, reply="msg_b")
    s.call("Bash", "toolu_5", {"command": "make test"}, reply="msg_b")
    s.bare("attachment", attachment={"type": "queued_command", "prompt": "and log it", "commandMode": "prompt"})
    s.result("toolu_4", "ok", toolUseResult="ok")
    s.result("toolu_5", "1 failed", is_error=True, toolUseResult="Error: 1 failed")
    s.prompt([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    s.add(
        "system",
        subtype="compact_boundary",
        content="Conversation compacted",
        parent=None,
        logicalParentUuid=s.records[-1]["uuid"],
        compactMetadata={"trigger": "auto", "preTokens": 174247},
    )
    s.prompt("The upload got a retry; one test fails.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    s.bare("last-prompt", lastPrompt="Fix the test", sessionId=SESSION)
    s.bare("last-prompt", lastPrompt="Fix the test", sessionId=SESSION)
    s.prompt("Fix the test", permissionMode="acceptEdits")
    s.say({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}, "Done.")
    s.add("from-the-future", anything=[1, {"two": None}])
    return s


def imported(path: Path, position: Mapping[str, SourcePosition] | None = None, *agents: Path) -> ImportedSession:
    """Return what a file holds; fails where there is nothing."""
    session = read(Source(path, agents), position)
    assert session is not None
    return session


def log(events: Iterable[ImportedEvent]) -> list[Event]:
    """Return the events as a store would have them: checked, encoded, with seq and parent, and heads moved."""
    started = Draft("session_started", {"app": "default", "user": "default"}, STARTED_ID, 0.0)
    stored: list[Event] = []
    seq_of: dict[str, int] = {}
    head = 0

    def append(draft: Draft) -> None:
        nonlocal head
        check_draft(draft)
        body = decode_body(encode_body(draft.body))
        parent = head if draft.parent is None else draft.parent
        event = Event(
            len(stored) + 1, parent, draft.id, draft.at, draft.kind, draft.agent, draft.turn, draft.scope, body
        )
        assert draft.id not in seq_of
        seq_of[draft.id] = event.seq
        stored.append(event)
        head = head_after(event)

    append(started)
    for event in events:
        if event.after is not None:
            target = seq_of[event.after]
            move = {"to": event.after, "why": "edit"}
            append(Draft("head_moved", move, f"move-{event.id}", event.at, parent=target))
        append(Draft(event.kind, event.body, event.id, event.at, event.agent, event.turn, event.scope))
    return stored
