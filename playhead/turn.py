"""A turn: one request and all that is done to answer it, recorded as it happens."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from playhead.errors import PlayheadError, StoreClosed, StoreFull
from playhead.features.live import Live
from playhead.features.resume import seal
from playhead.features.triggers import check_revision
from playhead.model.event import Draft, Event
from playhead.model.ids import agent_path
from playhead.model.parts import Part, documents, text_of
from playhead.search.indexer import bring_up_to_date
from playhead.stores.base import Lease

Parts = str | Sequence[Part | Mapping[str, Any] | str]
"""Content of a message: a text, or parts (typed, as JSON objects, or plain strings)."""


ERROR_CHARS_MAX = 2_000
"""So much of an error's text is recorded where a block failed."""


INDEXED_AT_END_MAX = 2_000
"""A turn's end indexes so many events at the most; a longer backlog (of an import) is the first search's."""


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call that was recorded. id: what its result refers to."""

    id: str
    name: str
    seq: int


class Speaker(ABC):
    """What the main agent and a sub-agent's run have in common: they speak, think, call tools and keep state.

    Pieces of one reply (text, then calls, before any result) share a `message_id`, so that a model is sent one message.
    """

    def __init__(self, live: Live, *, turn_id: str, agent: str, scope: str | None) -> None:
        self._live = live
        self.turn_id = turn_id
        self.agent = agent
        self.scope = scope
        self._reply: str | None = None
        self._stream: str | None = None
        self._streamed: list[tuple[str, list[str]]] = []
        self._is_ended = False
        self._last_text = ""

    @property
    def is_open(self) -> bool:
        """False once it has ended, whoever ended it."""
        return not self._is_ended

    # Speaking.

    def say(
        self,
        content: Parts,
        *,
        model: str | None = None,
        usage: Mapping[str, Any] | None = None,
        finish_reason: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record a whole message of the agent. Durable on return."""
        self.finish_stream()
        parts = _parts(content)
        self._last_text = text_of(parts) or self._last_text
        return self._assistant(parts, model=model, usage=usage, finish_reason=finish_reason, extra=extra)

    def think(self, text: str) -> Event:
        """Record reasoning that the model showed. Durable on return."""
        self.finish_stream()
        return self._assistant([{"type": "reasoning", "content": text}])

    def stream(self, text: str, *, part: str = "text") -> None:
        """Record a piece of a message that is still being written (`part` is `text` or `reasoning`).

        On return it survives the death of the process; it becomes part of one `message` when the stream is finished, or
        of a message marked `interrupted` when the process died and the session is resumed.
        """
        self._need_open()
        if not text:
            return
        if self._stream is None:
            now = self._live.clock()
            id = self._live.new_id(now)
            header: dict[str, Any] = {"agent": self.agent, "turn": self.turn_id, "scope": self.scope, "at": now}
            if self._reply is not None:
                header["body"] = {"message_id": self._reply}
            self._live.store.streams.begin(self._live.key, id, header)
            self._stream, self._streamed = id, []
        self._live.store.streams.add(self._live.key, self._stream, part, text)
        if self._streamed and self._streamed[-1][0] == part:
            self._streamed[-1][1].append(text)
        else:
            self._streamed.append((part, [text]))

    def finish_stream(
        self,
        *,
        model: str | None = None,
        usage: Mapping[str, Any] | None = None,
        finish_reason: str | None = None,
        interrupted: bool = False,
        then: Parts = (),
    ) -> Event | None:
        """Turn what was streamed into one message and return it; None where nothing was. Durable on return.

        then: parts that end the message, such as the calls of a reply, which are whole only when it is. Where nothing
        was streamed they are not recorded.
        """
        self._need_open()
        if self._stream is None:
            return None
        if not self._streamed:
            self._drop_stream()
            return None
        id, parts = self._stream, [{"type": kind, "content": "".join(texts)} for kind, texts in self._streamed]
        parts += _parts(then)
        event = self._assistant(
            parts, model=model, usage=usage, finish_reason=finish_reason, id=id, interrupted=interrupted
        )
        self._drop_stream()
        self._last_text = text_of(parts) or self._last_text
        return event

    def _drop_stream(self) -> None:
        """Drop the record of the stream, after its message is in the log under the same id: one that stays, for want of
        room or since the process died, is known by that id and dropped by the next holder of the lease."""
        if self._stream is not None:
            id, self._stream = self._stream, None
            with contextlib.suppress(StoreFull):
                self._live.store.streams.end(self._live.key, id)

    # Tools and jobs.

    def tool_call(self, name: str, arguments: Any = None, *, id: str | None = None) -> ToolCall:
        """Record that the agent calls a tool, before the tool runs. Durable on return."""
        self.finish_stream()
        call = id or f"call-{self._live.new_id()}"
        event = self._assistant([{"type": "tool_call", "id": call, "name": name, "arguments": arguments}])
        return ToolCall(id=call, name=name, seq=event.seq)

    def tool_result(
        self,
        call: ToolCall | str,
        response: Any,
        *,
        is_error: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record what a tool gave back; for a failure, `is_error` and the text of the error. Durable on return."""
        self.finish_stream()
        self._reply = None
        part: dict[str, Any] = {"type": "tool_call_response", "response": response}
        part["id"] = call.id if isinstance(call, ToolCall) else call
        if isinstance(call, ToolCall):
            part["name"] = call.name
        if is_error:
            part["is_error"] = True
        body: dict[str, Any] = {"role": "tool", "parts": [part]}
        return self._append("message", body | ({"extra": dict(extra)} if extra else {}))

    def job(self, name: str, args: Any = None, *, kind: str = "background", id: str | None = None) -> Job:
        """Record that a job began. Close it with `done`, `fail` or `cancel`; a crash closes it as interrupted."""
        job = Job(self, id or f"job-{self._live.new_id()}", kind=kind, name=name, agent=None)
        job._change("running", args=args)
        return job

    def subagent(self, name: str, task: Parts | None = None) -> SubAgent:
        """Begin a run of a sub-agent, recorded as it happens in a scope of its own. Use it in a `with` block.

        Its label is `AGENT/NAME:RUN`; run numbers never repeat in a session, also after a rewind.
        """
        self.finish_stream()
        return SubAgent._begin(self, name, task)

    # Everything else that reaches the model, or that the agent keeps.

    def system(self, text: str) -> Event:
        """Record the system prompt, where the agent's instructions are set or change."""
        return self._append("message", {"role": "system", "parts": _parts(text)})

    def inject(self, content: Parts, *, source: str, role: str = "user") -> Event:
        """Record input that nobody typed but the model is sent (a reminder, a hook's text, a queued prompt)."""
        self.finish_stream()
        self._reply = None
        return self._append("message", {"role": role, "parts": _parts(content), "injected": source})

    def set_state(self, values: Mapping[str, Any], *, scope: str = "session", removed: Sequence[str] = ()) -> Event:
        """Record state on the path: `scope` is `session` or `agent:NAME`. Keys that start with `temp:` are left out."""
        return self._append("state_changed", state_body(values, scope=scope, removed=removed))

    def fire(self, trigger: str, *, prompt: str | None = None, payload: Any = None) -> Event:
        """Record that a trigger fired; `prompt` is the text that the model is sent for it."""
        body = {"trigger": trigger, "prompt": prompt, "payload": payload}
        return self._append("trigger_fired", {name: value for name, value in body.items() if value is not None})

    def note(self, name: str, **fields: Any) -> Event:
        """Record anything that has no kind of its own."""
        return self._append("note", {"name": name, **fields})

    # Ending.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._close("completed", None)
        elif isinstance(error, KeyboardInterrupt | asyncio.CancelledError | GeneratorExit):
            self._close("cancelled", None)
        else:
            self._close("failed", f"{type(error).__name__}: {error}"[:ERROR_CHARS_MAX])

    @abstractmethod
    def _close(self, status: str, error: str | None) -> None:
        """End with this status; `error` says what was raised."""

    # How it is written.

    def _assistant(
        self,
        parts: list[dict[str, Any]],
        *,
        model: str | None = None,
        usage: Mapping[str, Any] | None = None,
        finish_reason: str | None = None,
        extra: Mapping[str, Any] | None = None,
        id: str | None = None,
        interrupted: bool = False,
    ) -> Event:
        body: dict[str, Any] = {"role": "assistant", "parts": parts}
        if self._reply is not None:
            body["message_id"] = self._reply
        optional = {"model": model, "usage": usage, "finish_reason": finish_reason, "extra": extra}
        body.update({name: value for name, value in optional.items() if value is not None})
        if interrupted:
            body["interrupted"] = True
        event = self._append("message", body, id=id)
        self._reply = self._reply or event.id
        return event

    def _append(self, kind: str, body: dict[str, Any], *, id: str | None = None) -> Event:
        return self._append_all([self._draft(kind, body, id=id)])[0]

    def _draft(self, kind: str, body: dict[str, Any], *, id: str | None = None) -> Draft:
        return self._live.draft(kind, body, agent=self.agent, turn=self.turn_id, scope=self.scope, id=id)

    def _append_all(self, drafts: Sequence[Draft]) -> list[Event]:
        self._need_open()
        return self._live.append(drafts)

    def _need_open(self) -> None:
        if self._is_ended:
            raise StoreClosed(f"turn {self.turn_id} has ended; begin another with session.turn(…)")


class Turn(Speaker):
    """One request and all that is done to answer it. Holds the session's lease until it ends.

    As a `with` block it ends as `completed`, as `failed` where the block raised, and as `cancelled` where it was
    interrupted from the keyboard or cancelled. What was streaming then is kept, marked `interrupted`.
    """

    def __init__(self, live: Live, lease: Lease, *, turn_id: str, agent: str) -> None:
        super().__init__(live, turn_id=turn_id, agent=agent, scope=None)
        self._lease = lease
        self._index_at_end = True

    @classmethod
    def begin(
        cls,
        live: Live,
        prompt: Parts | None,
        *,
        cause: str,
        agent: str,
        label: str,
        id: str | None = None,
        first: Callable[[str], Sequence[Draft]] | None = None,
        expected_seq: int | None = None,
    ) -> Self:
        """Take the lease, close what a dead holder left open, and record the prompt. It is durable on return.

        first: given the turn's id, returns what is recorded with the turn's beginning, in the same append.
        Raises `SessionBusy` where somebody alive is in a turn, and `StaleWriter` where the session is not at
        `expected_seq`; nothing was written then.
        """
        with live.lock:
            lease = live.store.acquire(live.key, label=label, at=live.clock())
            live.fence = lease.fence
            try:
                live.refresh()
                if expected_seq is not None:
                    check_revision(live, expected_seq)
                seal(live)
                turn_id = id or live.new_id()
                drafts = [live.draft("turn_started", {"cause": cause}, agent=agent, turn=turn_id)]
                if prompt is not None:
                    body = {"role": "user", "parts": _parts(prompt)}
                    drafts.append(live.draft("message", body, agent="user", turn=turn_id))
                drafts += first(turn_id) if first is not None else ()
                live.append(drafts)
            except BaseException:
                live.fence = None
                live.store.release(lease)
                raise
        return cls(live, lease, turn_id=turn_id, agent=agent)

    @property
    def number(self) -> int:
        """Which turn of the path it is, from 1."""
        return self._live.fold.turn_count

    def end(
        self, status: str = "completed", *, usage: Mapping[str, Any] | None = None, error: str | None = None
    ) -> None:
        """End the turn and give the lease back. A turn that has ended is left alone."""
        with self._live.lock:
            if self._is_ended:
                return
            try:
                self.finish_stream(interrupted=status != "completed")
                optional = {"usage": usage, "error": error}
                body = {"status": status} | {name: value for name, value in optional.items() if value is not None}
                self._append("turn_ended", body)
                self._live.save_caches()
            finally:
                self._is_ended = True
                self._live.fence = None
                self._live.store.release(self._lease)
        with contextlib.suppress(PlayheadError):  # The next search does it, and says so where it cannot.
            bring_up_to_date(self._live.store, self._live.key, events_max=INDEXED_AT_END_MAX)

    def _close(self, status: str, error: str | None) -> None:
        self.end(status, error=error)


class Job:
    """A job that runs beside the turn. Each change is one event."""

    def __init__(self, speaker: Speaker, id: str, *, kind: str, name: str, agent: str | None) -> None:
        self._speaker = speaker
        self.id = id
        self._fixed = {"job": id, "kind": kind, "name": name} | ({"agent": agent} if agent else {})

    def done(self, result: Any = None) -> Event:
        """Record that it completed, and what came of it."""
        return self._change("completed", result=result)

    def fail(self, error: str) -> Event:
        """Record that it failed, and how."""
        return self._change("failed", error=error)

    def cancel(self) -> Event:
        """Record that it was cancelled."""
        return self._change("cancelled")

    def _change(self, status: str, **fields: Any) -> Event:
        given = {name: value for name, value in fields.items() if value is not None}
        return self._speaker._append("job_changed", {**self._fixed, "status": status, **given})


class SubAgent(Speaker):
    """A sub-agent's run: it speaks in its own scope, so that the main conversation holds only what comes of it."""

    def __init__(self, parent: Speaker, job: Job, agent: str) -> None:
        super().__init__(parent._live, turn_id=parent.turn_id, agent=agent, scope=agent)
        self._parent = parent
        self._job = job
        self.result: Any = None

    @classmethod
    def _begin(cls, parent: Speaker, name: str, task: Parts | None) -> Self:
        live = parent._live
        with live.lock:
            label, run = agent_path(parent.agent, name, 1).rpartition(":")[0], 0
            run = int(live.fold.slots.get(f"run:{label}", 0)) + 1
            # A rewind hides earlier runs from the fold, never from the log: their first event's id is taken for ever.
            while live.store.seq_of(live.key, [f"run-{label}:{run}"]):
                run += 1
            agent = f"{label}:{run}"
            job = Job(parent, f"run-{agent}", kind="sub-agent", name=name, agent=agent)
            text = task if isinstance(task, str) else None
            body = {**job._fixed, "status": "running"} | ({"args": {"task": text}} if text is not None else {})
            drafts = [parent._draft("job_changed", body, id=f"run-{agent}")]
            if task is not None:
                prompt = {"role": "user", "parts": _parts(task)}
                drafts.append(live.draft("message", prompt, agent=parent.agent, turn=parent.turn_id, scope=agent))
            parent._append_all(drafts)
        return cls(parent, job, agent)

    def _need_open(self) -> None:
        super()._need_open()
        self._parent._need_open()  # A run does not outlive the turn, whose lease it writes under.

    def end(self, status: str = "completed", result: Any = None) -> None:
        """End the run. The result is what was given, else the last text that it said."""
        if self._is_ended:
            return
        self.finish_stream(interrupted=status != "completed")
        self._is_ended = True
        self.result = result if result is not None else self._last_text
        if status == "failed":
            self._job.fail(str(result))
        elif status == "cancelled":
            self._job.cancel()
        else:
            self._job.done(self.result)

    def _close(self, status: str, error: str | None) -> None:
        self.end(status, error)


def state_body(values: Mapping[str, Any], *, scope: str, removed: Sequence[str] = ()) -> dict[str, Any]:
    """Return the body of a `state_changed`; keys that start with `temp:` are left out of it."""
    kept = {key: value for key, value in values.items() if not key.startswith("temp:")}
    body: dict[str, Any] = {"delta": {scope: kept}} if kept or not removed else {}
    return body | ({"removed": {scope: list(removed)}} if removed else {})


def _parts(content: Parts) -> list[dict[str, Any]]:
    return documents([content]) if isinstance(content, str) else documents(content)
