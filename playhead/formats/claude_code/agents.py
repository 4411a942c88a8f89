"""Sub-agents of a Claude Code session: which run a record belongs to, and when each run began and ended.

A run is known by the tool call that launched it, by its agent id, or, in old files, only by the chain of its records.
The three are brought together here as they turn up, in whatever order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from playhead.formats.claude_code.blocks import content_text
from playhead.formats.claude_code.records import message_of
from playhead.formats.ids import clean, key
from playhead.formats.values import mapping, text
from playhead.model.ids import LABEL_CHARS_MAX, agent_path

MAIN_AGENT = "coordinator"
UNNAMED = "agent"

NAME_CHARS_MAX = 80
PARENT_CHARS_MAX = LABEL_CHARS_MAX - 300
"""Longest path of an agent whose sub-agents are placed below it; those of a longer one stand below the main agent."""

_LAUNCHERS = frozenset({"Task", "Agent"})
_ENDED = {"completed": "completed", "failed": "failed", "killed": "cancelled", "stopped": "cancelled"}
_tag = re.compile(r"<(task-id|tool-use-id|status)>([^<]*)</\1>")


class Job(msgspec.Struct):
    """A sub-agent's run. agent: its path. parent: path of the agent that called it, None for the main one."""

    agent: str
    name: str
    parent: str | None = None
    status: str = "running"
    agent_id: str | None = None
    prompt: str | None = None
    is_bound: bool = False


class AgentMemory(msgspec.Struct):
    """What is remembered of sub-agents from one read to the next.

    jobs: by the call that launched each. agents: agent id to path. runs: the last run's number for each label.
    """

    jobs: dict[str, Job] = {}
    agents: dict[str, str] = {}
    runs: dict[str, int] = {}


class SubAgents:
    """Keeps the runs; `on_change(call, job, task)` is told when one begins (with its task, if known) and ends."""

    def __init__(self, memory: AgentMemory, on_change: Callable[[str, Job, str | None], None]) -> None:
        self.memory = memory
        self._on_change = on_change

    def scope(self, record: dict[str, Any], parent_scope: str | None) -> str | None:
        """Return the path of the run that a record of the session's file belongs to, or None for the main agent.

        parent_scope: the path that the record's parent belongs to, None for the main conversation or an unknown parent.
        """
        data = mapping(record.get("data"))
        if record.get("type") == "progress" and data.get("type") == "agent_progress":
            return self.bind(clean(data.get("agentId")), clean(record.get("parentToolUseID")))
        if record.get("isSidechain") is not True:
            return None
        agent_id = clean(record.get("agentId"))
        if agent_id is not None and agent_id in self.memory.agents:
            return self.memory.agents[agent_id]
        if agent_id is None and parent_scope is not None:
            return parent_scope
        call = self._call_with_prompt(record) or agent_id or f"sidechain-{clean(record.get('uuid')) or 'unknown'}"
        return self.bind(agent_id, call)

    def bind(self, agent_id: str | None, call: str | None, *, name: str | None = None) -> str:
        """Return the path of the run with this id or this call, which are one from now on; of a new run if need be."""
        memory = self.memory
        if agent_id is not None and agent_id in memory.agents:
            return memory.agents[agent_id]
        call = call or agent_id or "unknown"
        if call not in memory.jobs:
            self._open(call, name, parent=None)
        job = memory.jobs[call]
        job.is_bound = True
        if agent_id is not None:
            job.agent_id = job.agent_id or agent_id
            memory.agents[agent_id] = job.agent
        return job.agent

    def launch(self, part: dict[str, Any], scope: str | None, *, is_known: bool) -> None:
        """Begin a run, where a tool call in `scope` launches one. is_known: a sub-agent's file names it."""
        call = clean(part["id"])
        if call is None or call in self.memory.jobs or (part["name"] not in _LAUNCHERS and not is_known):
            return
        given = mapping(part.get("arguments"))
        self._open(
            call,
            clean(given.get("subagent_type")),
            parent=scope,
            agent=self.memory.agents.get(clean(given.get("resume")) or ""),
            given=given,
        )

    def answer(self, part: dict[str, Any], record: dict[str, Any]) -> None:
        """End a run whose call got its response, unless the response only says that it goes on in the background."""
        call = clean(part["id"])
        if call is None or call not in self.memory.jobs:
            return
        result = mapping(record.get("toolUseResult"))
        if (agent_id := clean(result.get("agentId"))) is not None:
            self.bind(agent_id, call)
        if result.get("isAsync") is not True and result.get("status") != "async_launched":
            self._end(call, "failed" if part.get("is_error") else "completed")

    def hear(self, record: dict[str, Any]) -> None:
        """End the run that a record brings the news of, if it brings any."""
        told = _news(record)
        call = told.get("tool-use-id")
        if told and call not in self.memory.jobs:
            task = told.get("task-id")
            jobs = self.memory.jobs.items()
            call = next((name for name, job in jobs if task and job.agent_id == task), None)
        if call is not None and told.get("status") in _ENDED:
            self._end(call, _ENDED[told["status"]])

    def _call_with_prompt(self, record: dict[str, Any]) -> str | None:
        """Return the call that a sidechain answers: the one with its prompt, else the oldest that has none yet."""
        found = message_of(record)
        prompt = key(content_text(found.content)) if found else None
        waiting = {call: job for call, job in self.memory.jobs.items() if job.status == "running" and not job.is_bound}
        same = (call for call, job in waiting.items() if prompt is not None and job.prompt == prompt)
        return next(same, next(iter(waiting), None))

    def _open(
        self,
        call: str,
        name: str | None,
        *,
        parent: str | None,
        agent: str | None = None,
        given: dict[str, Any] | None = None,
    ) -> None:
        name = (name or UNNAMED)[:NAME_CHARS_MAX]
        if agent is None:
            above = parent if parent is not None and len(parent) <= PARENT_CHARS_MAX else MAIN_AGENT
            label = agent_path(above, name, 0).rpartition(":")[0]
            number = self.memory.runs[label] = self.memory.runs.get(label, 0) + 1
            agent = f"{label}:{number}"
        prompt = text((given or {}).get("prompt"))
        job = Job(agent=agent, name=name, parent=parent, prompt=key(prompt) if prompt else None)
        self.memory.jobs[call] = job
        self._on_change(call, job, text((given or {}).get("description")))

    def _end(self, call: str, status: str) -> None:
        job = self.memory.jobs[call]
        if job.status == "running":
            job.status = status
            self._on_change(call, job, None)


def _news(record: dict[str, Any]) -> dict[str, str]:
    """Return what a record tells of a background task: tags to texts, {} where it tells nothing."""
    content = record.get("content") if record.get("type") == "queue-operation" else None
    if record.get("type") in ("user", "attachment"):
        found = message_of(record)
        content = content_text(found.content) if found else None
    if not isinstance(content, str) or not content.startswith("<task-notification>"):
        return {}
    told: dict[str, str] = {}
    for name, value in _tag.findall(content):
        told.setdefault(name, value.strip())
    return told
