"""Codex files for tests, made record by record as the program writes them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playhead.formats.codex import Source, read
from playhead.formats.imported import ImportedSession, SourcePosition

THREAD = "019d0000-0000-7000-8000-00000000000a"
BEGIN = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
PNG = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 60
RULES = "# AGENTS.md instructions for /home/ana/shop\n\n<INSTRUCTIONS>\nMind the gap.\n</INSTRUCTIONS>"

Json = dict[str, Any]


class Rollout:
    """Records of one thread, a second apart."""

    def __init__(self, thread: str = THREAD, *, begin: datetime = BEGIN) -> None:
        self.thread = thread
        self.records: list[Json] = []
        self._at = begin

    def add(self, type: str, payload: Any, /, **fields: Any) -> Json:
        self._at += timedelta(seconds=1)
        stamp = self._at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record: Json = {"timestamp": stamp, "type": type, "payload": payload, **fields}
        self.records.append(record)
        return record

    def meta(self, thread: str | None = None, /, **fields: Any) -> Json:
        known = {
            "id": thread or self.thread,
            "timestamp": "2026-03-14T09:00:00.000Z",
            "cwd": "/home/ana/shop",
            "originator": "codex_cli_rs",
            "cli_version": "0.142.2",
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": "You are a coding agent. Zanzibar."},
            "git": {"commit_hash": "a1b2", "branch": "main"},
        }
        return self.add("session_meta", known | fields)

    def event(self, type: str, /, **fields: Any) -> Json:
        return self.add("event_msg", {"type": type, **fields})

    def item(self, type: str, /, **fields: Any) -> Json:
        return self.add("response_item", {"type": type, **fields})

    def begin(self, turn: str | None) -> None:
        """Begin a task, with what Codex tells the model first."""
        self.event("task_started", **({"turn_id": turn} if turn else {}), model_context_window=258400)
        if len(self.records) < 4:
            self.item("message", role="developer", content=[_text("<permissions instructions>\nAsk first.")])
            self.item(
                "message", role="user", content=[_text(RULES), _text("<environment_context>\n</environment_context>")]
            )
        self.add("turn_context", {"turn_id": turn, "cwd": "/home/ana/shop", "model": "gpt-5.4"})

    def end(self, turn: str | None, /, type: str = "task_complete", **fields: Any) -> Json:
        return self.event(type, **({"turn_id": turn} if turn else {}), **fields)

    def prompt(self, text: str, *extra: Json, **fields: Any) -> None:
        self.item("message", role="user", content=[*extra, _text(text)])
        self.event("user_message", message=text, **{"images": [], "local_images": [], "text_elements": [], **fields})

    def say(self, text: str, phase: str = "commentary") -> None:
        self.event("agent_message", message=text, phase=phase, memory_citation=None)
        content = [{"type": "output_text", "text": text}]
        self.item("message", role="assistant", content=content, phase=phase)

    def think(self, *summary: str) -> None:
        pieces = [{"type": "summary_text", "text": text} for text in summary]
        self.item("reasoning", summary=pieces, content=None, encrypted_content="gAAAAA" * 300)

    def call(self, call: str, command: str) -> None:
        arguments = json.dumps({"cmd": command}, separators=(",", ":"))
        self.item("function_call", name="exec_command", arguments=arguments, call_id=call)

    def output(self, call: str, text: str, code: int = 0) -> None:
        output = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}"
        self.item("function_call_output", call_id=call, output=output)

    def tokens(self, input: int, output: int, total: int) -> Json:
        last = {
            "input_tokens": input,
            "cached_input_tokens": 0,
            "output_tokens": output,
            "total_tokens": input + output,
        }
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last, "model_context_window": 258400}
        return self.event("token_count", info=info, rate_limits=None)

    def lines(self) -> list[bytes]:
        return [json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() for record in self.records]

    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines())

    def write(self, folder: Path) -> Source:
        """Write the file under the name that Codex gives it."""
        path = folder / f"rollout-2026-03-14T10-00-00-{self.thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data())
        return Source(path)


def a_day_of_work() -> Rollout:
    """A thread with a record of nearly every sort."""
    day = Rollout()
    day.meta()
    day.begin("t1")
    day.prompt("Why does the upload fail?", {"type": "input_image", "image_url": PNG, "detail": "auto"}, images=[PNG])
    day.event("agent_reasoning", text="Look at the log first.")
    day.think("Look at the log first.")
    day.say("I will look at the log.")
    day.call("c1", "cat ci.log")
    day.call("c2", "ls -l\n")
    day.tokens(100, 20, 120)
    day.event("exec_command_end", call_id="c1", exit_code=1, aggregated_output="connection reset by peer", stdout="")
    day.output("c1", "connection reset by peer", 1)
    day.output("c2", "ci.log")
    day.tokens(100, 20, 120)
    day.item("custom_tool_call", name="apply_patch", input="*** Begin Patch\n", call_id="c3", status="completed")
    day.event("patch_apply_end", call_id="c3", success=False, stdout="", stderr="no such file", changes={})
    day.item("custom_tool_call_output", call_id="c3", output='{"output":"no","metadata":{"exit_code":0}}')
    day.tokens(150, 30, 300)
    day.item("local_shell_call", call_id="c4", status="completed", action={"type": "exec", "command": ["pwd"]})
    picture = [{"type": "input_text", "text": "a picture"}, {"type": "input_image", "image_url": PNG}]
    day.item("function_call_output", call_id="c4", output=picture)
    day.item("web_search_call", id="ws1", status="completed", action={"type": "search", "query": "reset by peer"})
    day.event("web_search_end", call_id="ws1", query="reset by peer", results=[{"title": "Broken pipes"}])
    day.item("tool_search_call", call_id="c5", execution="client", arguments={"query": "mail"})
    day.item("tool_search_output", call_id="c5", status="completed", tools=[{"name": "send_mail"}])
    day.item("image_generation_call", id="ig1", status="completed", revised_prompt="a cat", result="iVBORw0KGgo" * 120)
    day.event("image_generation_end", call_id="ig1", result="iVBORw0KGgo" * 120, revised_prompt="a cat")
    day.item("function_call", name="spawn_agent", namespace="collab", arguments="not json", call_id="c6")
    day.event("collab_agent_spawn_end", call_id="c6", new_thread_id="019d0000-0001-7000-8000-00000000000b", prompt="Go")
    day.item("agent_message", author="/root/scout", recipient="/root", content=[_text("Nothing found upstream.")])
    day.say("The peer closes the connection.", "final_answer")
    day.tokens(200, 40, 540)
    day.end("t1", last_agent_message="The peer closes the connection.")
    day.begin("t2")
    day.prompt("And now?")
    day.item("message", role="user", content=[_text("<user_shell_command>\nls\n</user_shell_command>")])
    day.add("world_state", {"full": False, "state": {"environments": {}}})
    day.add(
        "compacted", {"message": "We looked for a reset.", "replacement_history": [picture[1], {"type": "compaction"}]}
    )
    day.event("context_compacted")
    day.event("error", message="stream disconnected", codex_error_info=None)
    day.event("item_completed", item={"type": "Plan", "id": "p1", "text": "1. Retry the upload"}, turn_id="t2")
    day.event("entered_review_mode", target={"type": "uncommittedChanges"}, user_facing_hint="the current changes")
    day.event("exited_review_mode", review_output={"findings": [{"title": "Off by one"}], "overall_correctness": "ok"})
    day.event("thread_goal_updated", goal={"objective": "Green builds", "status": "active"})
    day.add("inter_agent_communication", {"author": "/root", "content": "Keep looking."})
    day.event("from_the_future", answer=42)
    day.end("t2", "turn_aborted", reason="interrupted")
    day.add("from_the_future", {"answer": 42})
    return day


def imported(source: Source, position: dict[str, SourcePosition] | None = None) -> ImportedSession:
    session = read(source, position)
    assert session is not None
    return session


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}
