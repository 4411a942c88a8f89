"""The place of each Claude Code record in its session: id, time, turn, branch and scope.

Records arrive in file order and leave as events in that order. The chain of `parentUuid` is never a filter: walking it
loses parallel tool results and whole compacted histories. It says two things only: to which run a side record belongs,
and whether a prompt goes on from an earlier place than the one before it (an edit or a rewind).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from playhead.formats.claude_code import records
from playhead.formats.claude_code.agents import MAIN_AGENT, AgentMemory, Job, SubAgents
from playhead.formats.claude_code.blocks import content_text
from playhead.formats.claude_code.counts import Census
from playhead.formats.claude_code.facts import Facts
from playhead.formats.claude_code.records import Kind
from playhead.formats.ids import IdMemory, Ids, clean
from playhead.formats.imported import ImportedEvent
from playhead.formats.jsonlines import Record
from playhead.formats.times import parsed
from playhead.formats.troubles import Troubles
from playhead.formats.values import mapping, text

MEMORY_VERSION = 1
USER = "user"


class Boundary(msgspec.Struct):
    """A compaction that was announced and whose summary is to come. last: the event before the announcement."""

    last: str
    reason: str | None = None
    tokens: int | None = None
    kept_from: str | None = None


class Memory(msgspec.Struct):
    """All that a later read of files that grew needs to know of this one: some 12 bytes for each record, and a little.

    opening: the first event. prompt: number of the prompt that the path goes back to at its end. first, last: first
    message and last event of each scope ("" for the main conversation). calls: tool calls without a response, to their
    names. billed: each scope's last reply whose usage was written down. scopes: in order of arrival.
    """

    version: int = MEMORY_VERSION
    opening: str | None = None
    first_at: float | None = None
    at: float | None = None
    turn: str | None = None
    is_local_command: bool = False
    prompt_count: int = 0
    prompt: int = 0
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    boundaries: dict[str, Boundary] = {}
    calls: dict[str, str] = {}
    billed: dict[str, str] = {}
    scopes: list[str] = []
    agents: AgentMemory = msgspec.field(default_factory=AgentMemory)
    facts: Facts = msgspec.field(default_factory=Facts)
    ids: IdMemory = msgspec.field(default_factory=IdMemory)


class Run(msgspec.Struct):
    """The records of a sub-agent's own file. call, name: the call that launched it and its type, if a sidecar says."""

    agent_id: str
    records: list[Record]
    call: str | None = None
    name: str | None = None


class Thread:
    """Takes records in file order; has events, warnings and counts.

    runs: sub-agents with files of their own. Each is placed after the call that launched it, so that its events carry
    that turn; a run that an earlier read knows comes first, and one that nothing names comes last.
    """

    def __init__(self, memory: Memory, runs: Iterable[Run] = ()) -> None:
        self.memory = memory
        self.events: list[ImportedEvent] = []
        self.census = Census()
        self._agents = SubAgents(memory.agents, self._job_changed)
        self._runs = {run.agent_id: run for run in runs}
        self._run_of_call = {run.call: run.agent_id for run in self._runs.values() if run.call}
        self._ids = Ids(memory.ids)
        self._group_of_scope = {scope: -1 - index for index, scope in enumerate(memory.scopes)}
        self._index_of: dict[str, int] = {}
        self._billed_at: dict[tuple[str, str], int] = {}
        self._undated = 0
        self._file = ""
        self._troubles = Troubles()
        for agent_id in [run for run in self._runs if run in memory.agents.agents]:
            self._take_run(agent_id)

    def add(self, record: Record) -> None:
        """Take in the next record of the session's file."""
        value = record.value
        reported = clean(mapping(value.get("toolUseResult")).get("agentId"))
        if reported in self._runs:
            self._agents.bind(reported, _answered_call(value))
            self._take_run(reported)
        parent = self._parent(record)
        scope = self._agents.scope(value, self._scope_of_group(parent[1]) if parent else None)
        is_repeated = self._is_known(value)
        self.census.take(value, is_repeated=is_repeated)
        self._place(record, scope, parent, is_repeated=is_repeated)
        if scope is None:
            self.memory.facts.take(value)

    def finish(self, *, file_at: float) -> None:
        """Place the runs that no record named, and give what came before the first known time that time.

        file_at: the file's own time, where no record has one.
        """
        for agent_id in list(self._runs):
            self._take_run(agent_id)
        at = file_at if self.memory.first_at is None else self.memory.first_at
        for index in range(self._undated):
            self.events[index] = msgspec.structs.replace(self.events[index], at=at)

    def carry(self) -> dict[str, Any]:
        """Return the memory as JSON, for `Memory` to be read from on another time."""
        carried: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self.memory, ids=self._ids.memory()))
        return carried

    def warnings(self) -> list[str]:
        """Return one sentence for each sort of trouble, with its count and its first places."""
        return self._troubles.sentences()

    def _take_run(self, agent_id: str) -> None:
        """Place the records of a sub-agent's own file here."""
        run = self._runs.pop(agent_id, None)
        if run is None or not run.records:
            return
        scope = self._agents.bind(run.agent_id, run.call, name=run.name)
        before, self._file = self._file, f"agent {run.agent_id} "
        for record in run.records:
            self.census.take_side(record.value)
            self._place(record, scope, self._parent(record), is_repeated=self._is_known(record.value))
        self._file = before

    # One record becomes one event.

    def _place(self, record: Record, scope: str | None, parent: tuple[str, int] | None, *, is_repeated: bool) -> None:
        value = record.value
        for repair in record.repairs:
            self._warn(repair, record)
        kind = _kind(value)
        starts_turn = scope is None and self._starts_turn(value, kind) and not is_repeated
        after = self._begin_prompt(parent) if starts_turn else None
        id = self._id(record, self._group(scope, parent, starts_turn=starts_turn))
        at, trouble = self._time(record)
        event_kind, body = self._body(value, kind, scope, id, is_repeated=is_repeated)
        _remark(body, value, id, trouble)
        if starts_turn:
            self.memory.turn = id
        self._emit(event_kind, body, id=id, at=at, agent=_author(kind, event_kind, scope), scope=scope, after=after)
        if event_kind == "message":
            self._follow_calls(body, value, scope)
        self._agents.hear(value)

    def _body(
        self, value: dict[str, Any], kind: Kind | None, scope: str | None, id: str, *, is_repeated: bool
    ) -> tuple[str, dict[str, Any]]:
        room = scope or ""
        if kind == "summary" and not is_repeated and (summary := self._compaction(value, room)) is not None:
            return "compaction", summary
        body = records.message_body(value, "assistant" if kind is None else "tool" if kind == "result" else "user")
        if body is not None and (self._was_read_elsewhere(value) or (is_repeated and not self._is_new(value, body))):
            body = None
        if body is None:
            if value.get("type") == "system" and value.get("subtype") == "compact_boundary":
                self._announce_compaction(value, room)
            return "note", records.note_body(value, repeated=is_repeated)
        if kind in records.NOT_TYPED or kind == "summary":
            body["injected"] = records.INJECTED
        self._name_responses(body)
        self._bill(body, room)
        self.memory.first.setdefault(room, id)
        return "message", body

    def _emit(
        self,
        kind: str,
        body: dict[str, Any],
        *,
        id: str,
        at: float,
        agent: str | None,
        scope: str | None,
        after: str | None = None,
    ) -> None:
        self._index_of[id] = len(self.events)
        self.events.append(
            ImportedEvent(kind, body, id, at, agent=agent, turn=self.memory.turn, scope=scope, after=after)
        )
        self.memory.opening = self.memory.opening or id
        self.memory.last[scope or ""] = id

    def _follow_calls(self, body: dict[str, Any], value: dict[str, Any], scope: str | None) -> None:
        """Begin and end the runs of sub-agents that a message calls for and answers."""
        for part in body["parts"]:
            if part["type"] == "tool_call":
                agent_id = self._run_of_call.get(clean(part["id"]) or "")
                self._agents.launch(part, scope, is_known=agent_id is not None)
                if agent_id is not None:
                    self._take_run(agent_id)
            elif part["type"] == "tool_call_response":
                self._agents.answer(part, value)

    def _job_changed(self, call: str, job: Job, task: str | None) -> None:
        body: dict[str, Any] = {"job": call, "kind": "sub-agent", "name": job.name, "agent": job.agent}
        body["status"] = job.status
        if task:
            body["args"] = {"description": task}
        if job.agent_id:
            body["extra"] = {records.IMPORT: {"agentId": job.agent_id}}
        id = self._ids.claim(clean(f"job-{call}-{job.status}") or call, self.memory.prompt)
        at = self.memory.at
        if at is None:
            self._undated += 1
        self._emit("job_changed", body, id=id, at=at or 0.0, agent=job.parent or MAIN_AGENT, scope=job.parent)

    # Ids and times.

    def _is_known(self, value: dict[str, Any]) -> bool:
        return self._ids.group(clean(value.get("uuid"))) is not None

    def _id(self, record: Record, group: int) -> str:
        uuid = clean(record.value.get("uuid"))
        return self._ids.claim_line(record.raw, group) if uuid is None else self._ids.claim(uuid, group)

    def _time(self, record: Record) -> tuple[float, str | None]:
        """Return a record's time in UTC seconds, and what is wrong with it. A bad one is that of the record before."""
        memory = self.memory
        at, trouble = parsed(record.value.get("timestamp"))
        if trouble and trouble != "missing":
            self._warn(f"a time is {trouble}", record)
        if at is not None:
            memory.at = at
            memory.first_at = at if memory.first_at is None else memory.first_at
        elif memory.at is None:
            # `finish` gives it the first time that becomes known.
            self._undated += 1
        return memory.at or 0.0, trouble

    # Turns and branches.

    def _starts_turn(self, value: dict[str, Any], kind: Kind | None) -> bool:
        """Return True for what a person typed, a slash command for the model, and news that wakes the agent."""
        if value.get("type") != "user":
            return False
        was_announced = self.memory.is_local_command
        found = records.message_of(value)
        written = content_text(found.content)[:40] if found else ""
        # Before a command that is not for the model, the program writes a caveat for it.
        self.memory.is_local_command = kind == "meta" and "caveat" in written.lower()
        if kind == "command":
            return not was_announced and not written.startswith("<bash-")
        return kind in ("typed", "notification")

    def _begin_prompt(self, parent: tuple[str, int] | None) -> str | None:
        """Count a prompt; return the id it follows where that is not the end of the path: an edit or a rewind."""
        memory = self.memory
        after = parent[0] if parent is not None and 0 <= parent[1] != memory.prompt else None
        if after is not None and memory.opening is not None:
            # The first message may be on the branch that is left; the first event is on every one.
            memory.first[""] = memory.opening
        memory.prompt_count += 1
        memory.prompt = memory.prompt_count
        return after

    def _parent(self, record: Record) -> tuple[str, int] | None:
        """Return the id of a record's parent and its group, or None where no earlier record is meant."""
        value = record.value
        named = value.get("parentUuid")
        parent = clean(value.get("logicalParentUuid") if named is None else named)
        if parent is None:
            return None
        group = self._ids.group(parent)
        if parent == clean(value.get("uuid")):
            self._warn("a record names itself as its parent, and no branch is made of it", record)
        elif group is None:
            self._warn("a record names a parent that is not before it, and no branch is made of it", record)
        else:
            return parent, group
        return None

    def _group(self, scope: str | None, parent: tuple[str, int] | None, *, starts_turn: bool) -> int:
        if scope is not None:
            if scope not in self._group_of_scope:
                self.memory.scopes.append(scope)
                self._group_of_scope[scope] = -len(self.memory.scopes)
            return self._group_of_scope[scope]
        if not starts_turn and parent is not None and parent[1] >= 0:
            return parent[1]
        return self.memory.prompt

    def _scope_of_group(self, group: int) -> str | None:
        return self.memory.scopes[-1 - group] if group < 0 else None

    # What was said before.

    def _is_new(self, value: dict[str, Any], body: dict[str, Any]) -> bool:
        """Return True where a repeated uuid comes with another message than the first time.

        A resumed session may write its last record once more, with another version or directory. Where the first time
        was an earlier read, it counts as the same.
        """
        index = self._index_of.get(clean(value.get("uuid")) or "")
        return index is not None and self.events[index].body.get("parts") != body["parts"]

    def _was_read_elsewhere(self, value: dict[str, Any]) -> bool:
        """Return True for relayed progress whose message was read already, from the sub-agent's own file."""
        if value.get("type") != "progress":
            return False
        inner = clean(mapping(mapping(value.get("data")).get("message")).get("uuid"))
        return inner is not None and self._ids.note(inner, self.memory.prompt)

    def _name_responses(self, body: dict[str, Any]) -> None:
        for part in body["parts"]:
            if part["type"] == "tool_call":
                self.memory.calls[part["id"]] = part["name"]
            elif part["type"] == "tool_call_response" and (name := self.memory.calls.pop(part["id"], None)):
                part["name"] = name

    def _bill(self, body: dict[str, Any], scope: str) -> None:
        """Leave the usage of a reply with the piece that has most output: each piece states the sum up to itself."""
        reply, usage = body.get("message_id"), body.get("usage")
        if reply is None or usage is None:
            return
        before = self._billed_at.get((scope, reply))
        if before is not None and _output_tokens(self.events[before].body["usage"]) <= _output_tokens(usage):
            records.return_usage(self.events[before].body)
        elif before is not None or self.memory.billed.get(scope) == reply:
            # The second: an earlier read has written it down, and events do not change.
            records.return_usage(body)
            return
        self.memory.billed[scope] = reply
        self._billed_at[scope, reply] = len(self.events)

    # Compactions.

    def _announce_compaction(self, value: dict[str, Any], scope: str) -> None:
        metadata = mapping(value.get("compactMetadata"))
        tokens = metadata.get("preTokens")
        if scope in self.memory.last:
            self.memory.boundaries[scope] = Boundary(
                last=self.memory.last[scope],
                reason=text(metadata.get("trigger")),
                tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None,
                kept_from=clean(mapping(metadata.get("preservedSegment")).get("headUuid")),
            )

    def _compaction(self, value: dict[str, Any], scope: str) -> dict[str, Any] | None:
        """Return the body for a summary, or None where no message stands before it that it could stand in for."""
        first, last = self.memory.first.get(scope), self.memory.last.get(scope)
        if first is None or last is None:
            return None
        boundary = self.memory.boundaries.pop(scope, None) or Boundary(last)
        body = records.compaction_body(value, first=first, last=self._last_covered(first, boundary))
        if body is not None and boundary.reason is not None:
            body["reason"] = boundary.reason
        if body is not None and boundary.tokens is not None:
            body["tokens_before"] = boundary.tokens
        return body

    def _last_covered(self, first: str, boundary: Boundary) -> str:
        """Return the last event that a summary covers: the one before the messages that were kept, if any were."""
        kept = self._index_of.get(boundary.kept_from or "", 0)
        return self.events[kept - 1].id if kept > self._index_of.get(first, -1) + 1 else boundary.last

    def _warn(self, problem: str, record: Record) -> None:
        self._troubles.add(problem, f"{self._file}line {record.line}")


def _kind(value: dict[str, Any]) -> Kind | None:
    """Return what a record with a message is, or None for an agent's reply and for a record without one."""
    relayed = mapping(mapping(value.get("data")).get("message")) if value.get("type") == "progress" else {}
    if "assistant" in (value.get("type"), relayed.get("type")):
        return None
    found = records.message_of(value)
    return None if found is None else records.user_kind(value, found.content)


def _author(kind: Kind | None, event_kind: str, scope: str | None) -> str | None:
    """Return who wrote an event: a person or, to a sub-agent, the agent above it; the agent; None for the program."""
    if event_kind == "note":
        return scope
    if event_kind == "compaction" or kind is None or kind == "result":
        return scope or MAIN_AGENT
    if kind in ("typed", "command", "interruption", "mixed"):
        return USER if scope is None else scope.rpartition("/")[0]
    return scope


def _remark(body: dict[str, Any], value: dict[str, Any], id: str, trouble: str | None) -> None:
    """Write down where an event's id or time is not simply the record's."""
    if "uuid" not in value:
        records.imported(body)["uuid"] = False
    elif id == value["uuid"]:
        body["extra"][records.RAW].pop("uuid", None)
    if trouble:
        records.imported(body)["at"] = trouble


def _answered_call(value: dict[str, Any]) -> str | None:
    found = records.message_of(value)
    blocks = found.content if found and isinstance(found.content, list) else []
    return next((call for block in blocks if (call := clean(mapping(block).get("tool_use_id")))), None)


def _output_tokens(usage: dict[str, Any]) -> float:
    tokens = usage.get("output_tokens")
    return tokens if isinstance(tokens, int | float) else 0
