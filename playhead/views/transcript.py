"""The transcript: what a person reads, from the events of a path."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from playhead.model.body import parts_in, text_in
from playhead.model.event import Event
from playhead.model.parts import call_id, content_of, text_of
from playhead.views.fold import ENDED
from playhead.views.reply import ReplyKey, reply_key


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call with its response.

    status: `running`, `completed`, `failed`, or `interrupted` where its turn is over and it got no response.
    response_seq: the event of the last response.
    """

    call_id: str | None
    name: str
    arguments: Any
    response: Any = None
    status: str = "running"
    response_seq: int | None = None


class Entry(msgspec.Struct, frozen=True):
    """One thing on the page.

    kind: `message`, or a marker: `compaction`, `interrupt`, `answer`, `sub_agent`, `job`, `trigger`, `channel`,
    `artifact`, and `redacted` for what was taken out of the log. seq: its first event. seqs: all events it shows, in
    log order. text: what to read. tools: calls with their responses, in the order of the calls. data: the marker's body
    (the newest one of a job).
    """

    kind: str
    seq: int
    at: float
    agent: str | None
    turn: str | None
    scope: str | None
    role: str = ""
    text: str = ""
    reasoning: str = ""
    tools: tuple[ToolUse, ...] = ()
    attachments: tuple[dict[str, Any], ...] = ()
    seqs: tuple[int, ...] = ()
    is_interrupted: bool = False
    data: dict[str, Any] | None = None


def transcript(path: Iterable[Event], *, scope: str | None = None, system: bool = False) -> list[Entry]:
    """Return what a person reads of one scope (None for the main conversation), in path order.

    Compacted stretches stay visible, with a marker where the summary was made. System messages are left out unless
    `system` is set. Tool responses appear with their calls, and all changes of a job in one entry, where it began. Jobs
    that run a tool show only when they went wrong: the tool's call shows already.
    """
    page = _Page()
    for event in path:
        if event.kind == "turn_ended":
            page.end_turn(event)
        if event.scope != scope or event.kind not in _SHOWN:
            continue
        if not event.body:
            page.add(_entry(event, "redacted"))
        elif event.kind == "job_changed":
            page.job(event)
        elif event.kind != "message":
            kind, text = _MARKERS[event.kind](event.body)
            page.add(_entry(event, kind, text=text, data=event.body))
        elif system or event.body.get("role") != "system":
            page.message(event)
    return page.entries


class _Page:
    """Entries so far, and where each reply, call and job stands among them, and the calls of each turn that goes on."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._replies: dict[ReplyKey, int] = {}
        self._calls: dict[str, int] = {}
        self._jobs: dict[str, int] = {}
        self._running: dict[str | None, set[int]] = {}

    def add(self, entry: Entry) -> int:
        """Put an entry at the end and return its index."""
        self.entries.append(entry)
        return len(self.entries) - 1

    def message(self, event: Event) -> None:
        parts = parts_in(event.body)
        rest = [part for part in parts if part.get("type") != "tool_call_response"]
        if rest or not parts:
            self._say(event, rest)
        for part in parts:
            if part.get("type") == "tool_call_response":
                self._respond(event, part)

    def job(self, event: Event) -> None:
        body = event.body
        status, is_tool = text_in(body, "status"), body.get("kind") == "tool"
        if is_tool and (status not in ENDED or status == "completed"):
            return
        id = text_in(body, "job") or ""
        kind = "sub_agent" if body.get("kind") == "sub-agent" else "job"
        text = f"{text_in(body, 'agent') or text_in(body, 'name') or id}: {status or ''}"
        at = self._jobs.get(id)
        if at is None:
            self._jobs[id] = self.add(_entry(event, kind, text=text, data=body))
        else:
            entry = self.entries[at]
            self.entries[at] = msgspec.structs.replace(entry, text=text, data=body, seqs=(*entry.seqs, event.seq))
        if status in ENDED:
            # An id that comes again is another job.
            self._jobs.pop(id)

    def end_turn(self, event: Event) -> None:
        """Mark the calls that the turn left without a response; a response that comes late still counts."""
        if event.body.get("status") == "interrupted":
            return  # It waits for a person, and so may its calls.
        for at in self._running.pop(event.turn, ()):
            entry = self.entries[at]
            tools = tuple(
                msgspec.structs.replace(tool, status="interrupted") if tool.status == "running" else tool
                for tool in entry.tools
            )
            self.entries[at] = msgspec.structs.replace(entry, tools=tools)

    def _say(self, event: Event, parts: list[dict[str, Any]]) -> None:
        entry = _entry(
            event,
            "message",
            role=text_in(event.body, "role") or "",
            text=text_of(parts),
            reasoning="\n".join(content_of(part) for part in parts if part.get("type") == "reasoning"),
            tools=tuple(_call(part) for part in parts if part.get("type") == "tool_call"),
            attachments=tuple(part for part in parts if part.get("type") in ("blob", "file", "uri")),
            is_interrupted=bool(event.body.get("interrupted")),
        )
        key, at = reply_key(event), len(self.entries)
        if key is not None:
            at = self._replies.setdefault(key, at)
        if at == len(self.entries):
            self.add(entry)
        else:
            self.entries[at] = _joined(self.entries[at], entry)
        if entry.tools:
            self._running.setdefault(event.turn, set()).add(at)
        self._calls.update({tool.call_id: at for tool in entry.tools if tool.call_id is not None})

    def _respond(self, event: Event, part: dict[str, Any]) -> None:
        id = call_id(part)
        status = "failed" if part.get("is_error") else "completed"
        at = self._calls.get(id) if id is not None else None
        if at is None:
            # A response whose call is not on the page (an import that began in the middle) is shown by itself.
            tool = ToolUse(id, text_in(part, "name") or "tool", None, part.get("response"), status, event.seq)
            self.add(_entry(event, "message", role="tool", tools=(tool,)))
            return
        entry = self.entries[at]
        index = _answered(entry.tools, id)
        tool = msgspec.structs.replace(
            entry.tools[index], response=part.get("response"), status=status, response_seq=event.seq
        )
        tools = (*entry.tools[:index], tool, *entry.tools[index + 1 :])
        seqs = tuple(dict.fromkeys((*entry.seqs, event.seq)))
        self.entries[at] = msgspec.structs.replace(entry, tools=tools, seqs=seqs)


def _entry(event: Event, kind: str, **fields: Any) -> Entry:
    return Entry(
        kind=kind,
        seq=event.seq,
        at=event.at,
        agent=event.agent,
        turn=event.turn,
        scope=event.scope,
        seqs=(event.seq,),
        **fields,
    )


def _joined(first: Entry, more: Entry) -> Entry:
    """Join two pieces of one reply."""
    return msgspec.structs.replace(
        first,
        text="\n\n".join(text for text in (first.text, more.text) if text),
        reasoning="\n\n".join(text for text in (first.reasoning, more.reasoning) if text),
        tools=first.tools + more.tools,
        attachments=first.attachments + more.attachments,
        seqs=first.seqs + more.seqs,
        is_interrupted=first.is_interrupted or more.is_interrupted,
    )


def _call(part: Mapping[str, Any]) -> ToolUse:
    return ToolUse(call_id=call_id(part), name=text_in(part, "name") or "tool", arguments=part.get("arguments"))


def _answered(tools: tuple[ToolUse, ...], id: str | None) -> int:
    """Return the index of the call that a response answers: the first by this id that has none yet, else the last."""
    same = [index for index, tool in enumerate(tools) if tool.call_id == id]
    return next((index for index in same if tools[index].response_seq is None), same[-1])


def _text(value: Any) -> str:
    """Return what a person wrote or picked: text as it is, anything else as JSON, "" for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _channel(body: Mapping[str, Any]) -> tuple[str, str]:
    return "channel", f"#{_text(body.get('channel'))} {_text(body.get('sender'))}: {_text(body.get('content'))}"


_MARKERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, str]]] = {
    "compaction": lambda body: ("compaction", _text(body.get("summary"))),
    "interrupt_requested": lambda body: ("interrupt", _text(body.get("question") or body.get("reason"))),
    "interrupt_answered": lambda body: ("answer", _text(body.get("answer") or body.get("status"))),
    "trigger_fired": lambda body: ("trigger", _text(body.get("prompt") or body.get("trigger"))),
    "channel_message": _channel,
    "artifact_saved": lambda body: ("artifact", _text(body.get("name"))),
}

_SHOWN = frozenset({"message", "job_changed", *_MARKERS})
