"""What the two ADK peers share: the workload as ADK events, appended to and loaded from one of its session services.

The events are built before the clock runs: an append costs what the service costs, not what pydantic takes to build
one. A resume is a new service and `get_session` as ADK's runner calls it, with no limit on the events.
"""
# mypy: disable-error-code="import-not-found"

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.events.event_actions import EventCompaction
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.genai import types

from benchmarks.measure import AppendCost, Meter
from benchmarks.peers import script
from benchmarks.workload import LIVE_TURNS, TURN_EVENTS, WorkloadEvent, compacted_count, summary

KEY = {"app_name": "benchmark", "user_id": "user", "session_id": "session"}
RECENT_EVENTS = LIVE_TURNS * TURN_EVENTS  # what a compaction leaves in the conversation

OpenService = Callable[[Path], BaseSessionService]


def measure(name: str, open_service: OpenService) -> None:
    """Run the operation that the command line names, on the service that `open_service` opens in a directory."""

    def append(batch: list[WorkloadEvent], directory: Path) -> AppendCost:
        return asyncio.run(_append(open_service(directory), batch, directory))

    def compact(count: int, directory: Path) -> None:
        asyncio.run(_compact(open_service(directory), count))

    def resume(directory: Path) -> int:
        return asyncio.run(_load(open_service(directory), None))

    def resume_recent(directory: Path) -> int:
        return asyncio.run(_load(open_service(directory), GetSessionConfig(num_recent_events=RECENT_EVENTS)))

    script.main(script.Peer(name, "google-adk", _json, append, compact, resume, resume_recent))


async def _append(service: BaseSessionService, batch: list[WorkloadEvent], directory: Path) -> AppendCost:
    session = await service.create_session(**KEY)
    rows = [_event(event) for event in batch]
    with Meter() as meter:
        for row in rows:
            await service.append_event(session, row)
            meter.lap()
        await service.close()
    return meter.append_cost(len(batch), directory)


async def _compact(service: BaseSessionService, count: int) -> None:
    session = await service.get_session(**KEY)
    covered = compacted_count(count)
    if covered:
        content = types.Content(role="model", parts=[types.Part(text=summary())])
        first, last = session.events[0].timestamp, session.events[covered - 1].timestamp
        compaction = EventCompaction(start_timestamp=first, end_timestamp=last, compacted_content=content)
        await service.append_event(session, Event(author="user", actions=EventActions(compaction=compaction)))
    await service.close()


async def _load(service: BaseSessionService, config: GetSessionConfig | None) -> int:
    session = await service.get_session(**KEY, config=config)
    await service.close()
    return len(session.events)


def _json(event: WorkloadEvent) -> str:
    return str(_event(event).model_dump_json(exclude_none=True))


def _event(event: WorkloadEvent) -> Event:
    """Return the event in ADK's terms, with everything the workload event holds."""
    body = event["body"]
    more: dict[str, Any] = {"author": event["agent"], "invocation_id": f"turn-{event['turn']}"}
    if event["kind"] == "state_changed":
        return Event(**more, actions=EventActions(state_delta=body["delta"]["session"]))
    if event["kind"] != "message":
        return Event(**more, custom_metadata=body)
    if "usage" in body:
        usage = body["usage"]
        more["usage_metadata"] = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=usage["input_tokens"],
            candidates_token_count=usage["output_tokens"],
            cached_content_token_count=usage["cached_tokens"],
        )
        more["model_version"] = body["model"]
        more["finish_reason"] = types.FinishReason.STOP
    role = "model" if body["role"] == "assistant" else "user"
    return Event(**more, content=types.Content(role=role, parts=[_part(part) for part in body["parts"]]))


def _part(part: dict[str, Any]) -> types.Part:
    match part["type"]:
        case "tool_call":
            call = types.FunctionCall(id=part["id"], name=part["name"], args=part["arguments"])
            return types.Part(function_call=call)
        case "tool_call_response":
            answer = types.FunctionResponse(id=part["id"], name="tool", response=part["response"])
            return types.Part(function_response=answer)
    return types.Part(text=part["content"], thought=True if part["type"] == "reasoning" else None)
