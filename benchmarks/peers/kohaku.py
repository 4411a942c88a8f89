"""KohakuTerrarium's SessionStore: `python -m benchmarks.peers.kohaku append --count 2000 --dir EMPTY`.

One workload event becomes one event of its own types, stamped with turn, branch and the path of earlier turns as a live
agent stamps it. A live agent writes more: each user message twice, an answer once as text and once as a message, and at
each turn's end the conversation twice. That is left out, so the figures flatter it. It flushes as it comes, every
fourth event.
"""
# mypy: disable-error-code="import-not-found"

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kohakuterrarium.core.agent_message_history import replay_with_settled_tools
from kohakuterrarium.session.resume import inject_saved_state
from kohakuterrarium.session.resume_open import open_store_with_migration
from kohakuterrarium.session.store import SessionStore

from benchmarks.measure import AppendCost, Meter
from benchmarks.peers import script
from benchmarks.workload import TURN_EVENTS, WorkloadEvent, compacted_count, summary

AGENT = "coordinator"
FILE = "session.kohakutr"


def append(batch: list[WorkloadEvent], directory: Path) -> AppendCost:
    """Append the events to a new session, one `append_event` each, and close it."""
    rows = [(*_event(event), event["turn"]) for event in batch]
    paths = [_path_before(turn) for turn in range(batch[-1]["turn"] + 1)]
    store = SessionStore(directory / FILE, writer_lock=True)
    store.init_meta("benchmark", "agent", str(directory), str(directory), [AGENT])
    with Meter() as meter:
        for kind, data, turn in rows:
            store.append_event(AGENT, kind, data, turn_index=turn, branch_id=1, parent_branch_path=paths[turn])
            meter.lap()
        store.close()
    return meter.append_cost(len(batch), directory)


def compact(count: int, directory: Path) -> None:
    """Record a compaction of the older turns and save the snapshot that its sink saves at a turn's end."""
    covered = compacted_count(count)
    turn = (count - 1) // TURN_EVENTS + 1
    tag: dict[str, Any] = {"turn_index": turn, "branch_id": 1, "parent_branch_path": _path_before(turn)}
    store = SessionStore(directory / FILE, writer_lock=True)
    if covered:
        source = _path_before(covered // TURN_EVENTS + 1)
        replaced = {"round": 1, "summary": summary(), "replaced_from_event_id": 1, "replaced_to_event_id": covered}
        data = {**replaced, "compact_path": source, "compact_source_path": source, "compact_result_event_ids": []}
        store.append_event(AGENT, "compact_complete", data, **tag)
    messages = replay_with_settled_tools(store.get_events(AGENT), include_metadata=True, resumable=True)
    store.save_branch_snapshot(AGENT, messages, branch=tag, watermark=store.max_event_id(AGENT))
    store.close()


def resume(directory: Path) -> int:
    """Open the session as its resume does, and restore everything it restores into an agent that is already built."""
    store = open_store_with_migration(directory / FILE, writer_lock=True)
    agent = SimpleNamespace(config=SimpleNamespace(name=AGENT), controller=SimpleNamespace(conversation=None))
    inject_saved_state(agent, store, AGENT)
    store.close()
    return len(agent.controller.conversation.get_messages())


def _path_before(turn: int) -> list[tuple[int, int]]:
    """Return the turns before this one, each on its first branch."""
    return [(earlier, 1) for earlier in range(1, turn)]


def _json(event: WorkloadEvent) -> str:
    kind, data = _event(event)
    return json.dumps({"type": kind, **data}, separators=(",", ":"), ensure_ascii=False)


def _event(event: WorkloadEvent) -> tuple[str, dict[str, Any]]:
    """Return the event's type and data in KohakuTerrarium's terms, with everything the workload event holds."""
    body = event["body"]
    match event["kind"]:
        case "turn_started":
            return "processing_start", dict(body)
        case "turn_ended":
            return "processing_end", dict(body)
        case "state_changed":
            return "scratchpad_write", {"agent": event["agent"], **body}
    extra = {key: value for key, value in body.items() if key not in ("role", "parts")}
    part = body["parts"][-1]
    match part["type"]:
        case "reasoning":
            return "assistant_reasoning", {"reasoning_content": part["content"], **extra}
        case "tool_call":
            call = {"name": part["name"], "call_id": part["id"], "args": part["arguments"]}
            return "tool_call", {**call, "text": body["parts"][0]["content"], **extra}
        case "tool_call_response":
            answer = part["response"]
            return "tool_result", {"name": "tool", "call_id": part["id"], **answer, **extra}
    if body["role"] == "user":
        return "user_message", {"content": part["content"], **extra}
    return "text_chunk", {"content": part["content"], "chunk_seq": 0, **extra}


if __name__ == "__main__":
    script.main(script.Peer("KohakuTerrarium SessionStore", "kohakuterrarium", _json, append, compact, resume))
