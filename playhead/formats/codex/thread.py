"""The place of each Codex record in its session: id, time, turn, reply and branch.

Records arrive in file order and leave as events in that order, one for each. A turn is what Codex calls a task; in
files without tasks every prompt begins one. The items of one request to the model are pieces of one reply, which ends
with the count of its tokens, or before what the agent does once its tools have answered. `thread_rolled_back` leads
back to before the last prompts.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from playhead.features.ingest import STARTED_ID
from playhead.formats.codex import records
from playhead.formats.codex.copies import Copies
from playhead.formats.codex.counts import Census
from playhead.formats.codex.data import DATA_CHARS_MIN
from playhead.formats.codex.facts import Facts
from playhead.formats.codex.parts import is_bad_code
from playhead.formats.codex.records import Opened
from playhead.formats.codex.said import Form, Pending, is_repeated, user_kind, was_said
from playhead.formats.ids import IdMemory, Ids, clean
from playhead.formats.imported import ImportedEvent
from playhead.formats.jsonlines import Record
from playhead.formats.times import parsed
from playhead.formats.troubles import Troubles
from playhead.formats.values import mapping, text

MEMORY_VERSION = 1
MAIN_AGENT = "coordinator"
USER = "user"

FAILED_MAX = 1000
"""Calls that are known to have failed and whose output is to come."""

DATA_MAX = 10_000
"""Files inside records that are recognised when they come again."""

_ENDED = {"task_complete": "completed", "turn_complete": "completed", "turn_aborted": "cancelled"}


class Turn(msgspec.Struct):
    """The turn that records belong to. id: of its events. task: Codex's own id. before: the event before its first.

    stage: `running` between a task's beginning and its end, `prompted` after a prompt without a task, `ended`.
    is_fresh: the agent has done nothing in it yet. has_prompt: somebody has said something in it.
    """

    id: str | None = None
    task: str | None = None
    before: str = STARTED_ID
    stage: str = "ended"
    is_fresh: bool = False
    has_prompt: bool = False


class Memory(msgspec.Struct):
    """All that a later read of a file that grew needs to know of this one: some 12 bytes for each record, and a little.

    opening: the first event; last: the last one. before_prompts: for each prompt on the path the event that a rollback
    of it leads back to. reply: id of the first event of the reply that is going on; is_answered: a tool has answered in
    it. spent: the tokens of the thread at the last count. calls: tool calls without an output, to their names. failed:
    calls whose failure was told before their output. pending: what may be said once more in another form. data: digests
    of the files that events keep. title: the one in the index beside the files.
    """

    version: int = MEMORY_VERSION
    opening: str | None = None
    last: str = STARTED_ID
    first_at: float | None = None
    at: float | None = None
    turn: Turn = msgspec.field(default_factory=Turn)
    before_prompts: list[str] = []
    reply: str | None = None
    is_answered: bool = False
    spent: Any = None
    calls: dict[str, str] = {}
    failed: list[str] = []
    pending: list[Pending] = []
    data: list[str] = []
    title: str | None = None
    copies: Copies = msgspec.field(default_factory=Copies)
    facts: Facts = msgspec.field(default_factory=Facts)
    ids: IdMemory = msgspec.field(default_factory=IdMemory)


class Thread:
    """Takes records in file order; has events, warnings and counts. thread: the id in the file's name, or None."""

    def __init__(self, memory: Memory, thread: str | None) -> None:
        self.memory = memory
        self.events: list[ImportedEvent] = []
        self.census = Census()
        self._thread = thread
        self._ids = Ids(memory.ids)
        self._data = set(memory.data)
        self._undated = 0
        self._troubles = Troubles()

    def add(self, record: Record) -> None:
        """Take in the next record."""
        for repair in record.repairs:
            self._warn(repair, record)
        found = records.opened(record.value)
        at, trouble = self._time(record, found)
        copies = self.memory.copies
        is_copied = False
        if copies.is_own_meta(found, self._thread, is_first_line=record.line == 1):
            copies.begin(found.payload, self.memory.at)
            self.memory.facts.take_meta(found.payload)
        else:
            is_copied = copies.takes(found, record.value, self.memory.at)
            if is_copied and found.type == "session_meta" and self.memory.facts.forked_from is None:
                self.memory.facts.forked_from = clean(found.payload.get("id"))
        if not is_copied:
            self.memory.facts.take(found)
        self.census.take(found, is_copied=is_copied)
        id = self._ids.claim(f"record-{hashlib.sha256(records.fingerprint(record.value)).hexdigest()[:24]}", 0)
        self._place(record, found, id, at, trouble=trouble, is_copied=is_copied)

    def finish(self, *, file_at: float) -> None:
        """Give what came before the first known time that time. file_at: the file's own, where no record has one."""
        at = file_at if self.memory.first_at is None else self.memory.first_at
        for index in range(self._undated):
            self.events[index] = msgspec.structs.replace(self.events[index], at=at)

    def carry(self) -> dict[str, Any]:
        """Return the memory as JSON, for `Memory` to be read from on another time."""
        memory = msgspec.structs.replace(self.memory, ids=self._ids.memory(), data=sorted(self._data)[:DATA_MAX])
        carried: dict[str, Any] = msgspec.to_builtins(memory)
        return carried

    def warnings(self) -> list[str]:
        """Return one sentence for each sort of trouble, with its count and its first places."""
        return self._troubles.sentences()

    def _place(
        self, record: Record, found: Opened, id: str, at: float, *, trouble: str | None, is_copied: bool
    ) -> None:
        made = self._made(record, found, id, is_copied=is_copied)
        if trouble is not None and not found.is_bare:
            records.imported(made.body)["at"] = trouble
        if is_copied:
            records.imported(made.body)["copied"] = True
        if len(record.raw) > DATA_CHARS_MIN:
            self._data.update(records.keep_data_once(made.body, self._data))
        memory = self.memory
        memory.opening = memory.opening or id
        memory.last = id
        self.events.append(ImportedEvent(made.kind, made.body, id, at, made.agent, made.turn, None, made.after))

    def _made(self, record: Record, found: Opened, id: str, *, is_copied: bool) -> _Made:
        """Return what a record becomes, and move turn and reply on."""
        value = record.value
        match (found.type, found.kind):
            case ("event_msg", "task_started" | "turn_started"):
                return self._begin_task(value, found, id)
            case ("event_msg", "task_complete" | "turn_complete" | "turn_aborted"):
                return self._end_task(value, found)
            case ("event_msg", "thread_rolled_back"):
                return self._roll_back(record, found)
            case ("event_msg", "token_count"):
                return self._count_tokens(value, found, id, is_copied=is_copied)
            case ("event_msg", "user_message" | "agent_message" | "agent_reasoning" | "agent_reasoning_raw_content"):
                return self._say(
                    value, found, id, records.SAID[found.type, found.kind][0], "event", is_copied=is_copied
                )
            case ("event_msg", "item_completed"):
                return self._complete(value, found, id, is_copied=is_copied)
            case ("response_item", "message"):
                return self._say(value, found, id, found.payload.get("role"), "item", is_copied=is_copied)
            case ("response_item", "reasoning"):
                return self._reason(value, found, id)
            case ("response_item", "agent_message"):
                return self._mail(value, found)
            case ("response_item", kind) if kind in records.CALLS:
                return self._call(value, id)
            case ("response_item", kind) if kind in records.OUTPUTS:
                return self._answer(value, found)
            case ("compacted", _):
                return self._compact(value)
            case ("event_msg", "thread_name_updated") if not is_copied:
                self.memory.facts.take_name(found, self.memory.copies.own or self._thread)
        self._hear_of_failure(found)
        return self._note(value)

    # What is said.

    def _say(self, value: dict[str, Any], found: Opened, id: str, role: Any, form: Form, *, is_copied: bool) -> _Made:
        texts = records.said_texts(found)
        if role not in ("user", "assistant"):
            return self._note(value)
        kind = user_kind(texts) if role == "user" else "typed"
        if kind == "context":
            return self._note(value)
        is_thought = found.kind.startswith("agent_reasoning")
        body = records.message_body(value, role)
        if body is None:
            return self._note(value)
        if is_repeated(self.memory.pending, "thought" if is_thought else role, form, texts):
            return self._note(value, copy=True)
        if role == "assistant":
            return self._piece(body, id)
        self._close_reply()
        if kind == "news":
            body["injected"] = records.INJECTED
            return _Made("message", body, None, self.memory.turn.id)
        self._begin_prompt(id)
        self.memory.facts.take_prompt(texts, is_copied=is_copied)
        return _Made("message", body, USER, self.memory.turn.id)

    def _complete(self, value: dict[str, Any], found: Opened, id: str, *, is_copied: bool) -> _Made:
        """Take in a completed item. In paginated threads it is what an event is in others; elsewhere a copy."""
        item = mapping(found.payload.get("item"))
        role = {"UserMessage": "user", "AgentMessage": "assistant"}.get(text(item.get("type")) or "")
        if is_bad_code(item.get("exit_code")):
            self._note_failure(item.get("id"))
        if role is None:
            return self._note(value)
        if self.memory.facts.is_paginated:
            return self._say(value, found, id, role, "completed", is_copied=is_copied)
        return self._note(value, copy=was_said(self.memory.pending, role, records.said_texts(found)))

    def _reason(self, value: dict[str, Any], found: Opened, id: str) -> _Made:
        body = records.reasoning_body(value)
        if body is None:
            self._begin_piece(id)
            return self._note(value)
        pieces = [part["content"] for part in body["parts"] if part["type"] == "reasoning"]
        heard = [is_repeated(self.memory.pending, "thought", "item", [piece]) for piece in pieces]
        return self._note(value, copy=True) if all(heard) else self._piece(body, id)

    def _mail(self, value: dict[str, Any], found: Opened) -> _Made:
        """Take in what another agent sent to this one."""
        body = records.message_body(value, "user")
        if body is None or is_repeated(self.memory.pending, "mail", "item", records.said_texts(found)):
            return self._note(value, copy=body is not None)
        self._close_reply()
        body["injected"] = records.INJECTED
        return _Made("message", body, None, self.memory.turn.id)

    def _note(self, value: dict[str, Any], *, copy: bool = False) -> _Made:
        return _Made("note", records.note_body(value, copy=copy), None, self.memory.turn.id)

    # Replies and what tools do.

    def _begin_piece(self, id: str) -> str:
        """Return the id of the reply that an item of the agent belongs to, which may be its own."""
        memory = self.memory
        if memory.reply is None or memory.is_answered:
            memory.reply, memory.is_answered = id, False
        memory.turn.is_fresh = False
        return memory.reply

    def _piece(self, body: dict[str, Any], id: str) -> _Made:
        reply = self._begin_piece(id)
        if reply != id:
            body["message_id"] = reply
        if self.memory.facts.model:
            body["model"] = self.memory.facts.model
        return _Made("message", body, MAIN_AGENT, self.memory.turn.id)

    def _close_reply(self) -> None:
        self.memory.reply, self.memory.is_answered = None, False

    def _call(self, value: dict[str, Any], id: str) -> _Made:
        body = records.call_body(value, id)
        if body is None:
            return self._note(value)
        call = body["parts"][0]
        if len(body["parts"]) == 1 or body["parts"][1]["type"] != "tool_call_response":
            self.memory.calls[call["id"]] = call["name"]
        return self._piece(body, id)

    def _answer(self, value: dict[str, Any], found: Opened) -> _Made:
        call = text(found.payload.get("call_id")) or ""
        has_failed = call in self.memory.failed
        body = records.output_body(value, self.memory.calls.pop(call, None), has_failed=has_failed)
        if body is None:
            return self._note(value)
        if has_failed:
            self.memory.failed.remove(call)
        self.memory.is_answered = self.memory.reply is not None
        return _Made("message", body, MAIN_AGENT, self.memory.turn.id)

    def _hear_of_failure(self, found: Opened) -> None:
        """Remember a call of which an event says that it failed: its output, which comes later, may not say so."""
        payload, result = found.payload, mapping(found.payload.get("result"))
        has_failed = {
            "exec_command_end": is_bad_code(payload.get("exit_code")),
            "patch_apply_end": payload.get("success") is False,
            "dynamic_tool_call_response": payload.get("success") is False,
            "mcp_tool_call_end": "Err" in result or mapping(result.get("Ok")).get("isError") is True,
        }
        if has_failed.get(found.kind):
            self._note_failure(payload.get("call_id"))

    def _note_failure(self, call: Any) -> None:
        if isinstance(call, str) and call in self.memory.calls and call not in self.memory.failed:
            self.memory.failed.append(call)
            del self.memory.failed[:-FAILED_MAX]

    def _count_tokens(self, value: dict[str, Any], found: Opened, id: str, *, is_copied: bool) -> _Made:
        """Give the tokens of a request to its reply. A count in which the thread's sum has not moved is no request."""
        info = mapping(found.payload.get("info"))
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        spent = total if isinstance(total, dict) else last
        if not isinstance(last, dict) or spent == self.memory.spent:
            return self._note(value)
        self.memory.spent = spent
        if is_copied:
            return self._note(value)
        body = records.usage_body(value)
        if (reply := self.memory.reply) is not None:
            body["message_id"] = reply
        self._close_reply()
        return _Made("message", body, MAIN_AGENT, self.memory.turn.id)

    def _compact(self, value: dict[str, Any]) -> _Made:
        """Let a summary stand in for all before it. One that is encrypted can stand in for nothing, and is a note."""
        memory = self.memory
        self._close_reply()
        body = None
        if memory.opening is not None:
            body = records.compaction_body(value, first=memory.opening, last=memory.last)
        return self._note(value) if body is None else _Made("compaction", body, MAIN_AGENT, memory.turn.id)

    # Turns and branches.

    def _begin_task(self, value: dict[str, Any], found: Opened, id: str) -> _Made:
        memory, turn = self.memory, self.memory.turn
        self._close_reply()
        task = clean(found.payload.get("turn_id"))
        if turn.stage == "prompted" and turn.is_fresh:
            turn.task, turn.stage = task, "running"  # Its prompt was written first.
        else:
            memory.turn = Turn(id=task or id, task=task, before=memory.last, stage="running", is_fresh=True)
        cause = "sub-agent" if memory.facts.is_sub_agent else USER
        return _Made("turn_started", records.turn_body(value, {"cause": cause}), MAIN_AGENT, memory.turn.id)

    def _end_task(self, value: dict[str, Any], found: Opened) -> _Made:
        turn = self.memory.turn
        task = clean(found.payload.get("turn_id"))
        error = text(mapping(found.payload.get("error")).get("message"))
        fields = {"status": "failed", "error": error} if error else {"status": _ENDED[found.kind]}
        body = records.turn_body(value, fields)
        if task is not None and task != turn.task:
            return _Made("turn_ended", body, MAIN_AGENT, task)
        self._close_reply()
        turn.stage = "ended"
        self.memory.pending.clear()
        return _Made("turn_ended", body, MAIN_AGENT, turn.id)

    def _begin_prompt(self, id: str) -> None:
        memory = self.memory
        if memory.turn.stage != "running":
            memory.turn = Turn(id=id, before=memory.last, stage="prompted", is_fresh=True)
        memory.before_prompts.append(memory.last if memory.turn.has_prompt else memory.turn.before)
        memory.turn.has_prompt = True

    def _roll_back(self, record: Record, found: Opened) -> _Made:
        """Lead back to before the last prompts: what follows goes on there, and what was said since is a branch."""
        memory = self.memory
        count = found.payload.get("num_turns")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1 or not memory.before_prompts:
            if count != 0:
                self._warn("a rollback names no turns that are there, and no branch is made of it", record)
            return self._note(record.value)
        kept = max(len(memory.before_prompts) - count, 0)
        after = memory.before_prompts[kept]
        del memory.before_prompts[kept:]
        self._close_reply()
        memory.pending.clear()
        memory.turn = Turn(before=after)
        if after == STARTED_ID:
            memory.opening = None
        return msgspec.structs.replace(self._note(record.value), after=after)

    # Times.

    def _time(self, record: Record, found: Opened) -> tuple[float, str | None]:
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

    def _warn(self, problem: str, record: Record) -> None:
        self._troubles.add(problem, f"line {record.line}")


class _Made(msgspec.Struct, frozen=True):
    """What a record becomes. after: the event that it follows, None for the one before it."""

    kind: str
    body: dict[str, Any]
    agent: str | None
    turn: str | None
    after: str | None = None
