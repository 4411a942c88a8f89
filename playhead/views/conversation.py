"""The conversation: the messages that a model is sent, from the events that a fold points at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from playhead.model import path as paths
from playhead.model.body import object_in, parts_in, text_in, token_count
from playhead.model.event import Event
from playhead.model.parts import call_id, text_of
from playhead.views.fold import Fold
from playhead.views.reply import ReplyKey, reply_key

INTERRUPTED = "Interrupted before it finished; its result is unknown."
"""What a model is told about a call that never got a response."""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation.

    role: `system`, `user`, `assistant` or `tool`. parts: JSON objects of the message schema (`model/parts.py`).
    seqs: the events it was made of, in log order; a merged message has several. agent and turn: those of the first.
    kind: the kind of its event; a `compaction` comes as a user message that holds the summary.
    """

    role: str
    parts: list[dict[str, Any]]
    seqs: tuple[int, ...]
    agent: str | None = None
    turn: str | None = None
    at: float = 0.0
    kind: str = "message"
    model: str | None = None
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    interrupted: bool = False
    injected: str | None = None
    message_id: str | None = None
    extra: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text parts joined; reasoning and tools are left out."""
        return text_of(self.parts)


def conversation(events: Iterable[Event], *, sealed: bool = True) -> list[Message]:
    """Return the messages of a conversation, given its events in reading order (as `Fold.conversation` lists them).

    Pieces of one reply become one message, at the place of the first (`reply_key` says which belong together).

    With `sealed` the result is one that every model accepts; the log is not touched. A message that calls tools is
    followed at once by one `tool` message with exactly one response for each call, in the order of the calls: the last
    that came before the id was used again, wherever it came, or one that says that the call was interrupted. A response
    whose call is not here (a summary may have taken it) becomes text of the user. Empty messages (redacted ones) are
    left out.
    """
    messages = _merged(events)
    return _sealed(messages) if sealed else messages


def conversation_of_path(path: Sequence[Event], scope: str | None = None, *, sealed: bool = True) -> list[Message]:
    """Return the conversation of a scope by full replay of a path (events from the first to the head)."""
    fold = Fold().apply_all(path)
    by_seq = {event.seq: event for event in path}
    return conversation((by_seq[seq] for seq in paths.seqs(fold.conversation(scope))), sealed=sealed)


def _message(event: Event) -> Message:
    body = event.body
    if event.kind == "message":
        role, parts = text_in(body, "role") or "user", parts_in(body)
    else:
        said = text_in(body, "summary" if event.kind == "compaction" else "prompt")
        role, parts = "user", [{"type": "text", "content": said}] if said else []
    return Message(
        role=role,
        parts=parts,
        seqs=(event.seq,),
        agent=event.agent,
        turn=event.turn,
        at=event.at,
        kind=event.kind,
        model=text_in(body, "model"),
        usage=object_in(body, "usage") or None,
        finish_reason=text_in(body, "finish_reason"),
        interrupted=bool(body.get("interrupted")),
        injected=text_in(body, "injected"),
        message_id=text_in(body, "message_id"),
        extra=object_in(body, "extra") or None,
    )


def _merged(events: Iterable[Event]) -> list[Message]:
    merged: list[Message] = []
    places: dict[ReplyKey, int] = {}
    for event in events:
        message, key = _message(event), reply_key(event)
        place = len(merged) if key is None else places.setdefault(key, len(merged))
        if place < len(merged):
            merged[place] = _joined(merged[place], message)
        else:
            merged.append(message)
    return merged


def _joined(first: Message, more: Message) -> Message:
    """Join two pieces of one reply; usage is that of the piece with the most output tokens (pieces are cumulative)."""
    is_further = more.usage is not None and _output_tokens(more) >= _output_tokens(first)
    return msgspec.structs.replace(
        first,
        parts=[*first.parts, *more.parts],
        seqs=(*first.seqs, *more.seqs),
        usage=more.usage if is_further else first.usage,
        model=first.model or more.model,
        finish_reason=more.finish_reason or first.finish_reason,
        interrupted=first.interrupted or more.interrupted,
    )


def _output_tokens(message: Message) -> int:
    return token_count({"usage": message.usage}, "output_tokens") or 0


class _Call:
    """A tool call and the last response to it: its part, and the message that brought it."""

    def __init__(self, part: dict[str, Any]) -> None:
        self.part = part
        self.response: dict[str, Any] | None = None
        self.source: Message | None = None


_Calls = dict[tuple[str, str], list[_Call]]
"""For each key the calls of the newest message that made one with it, in their order; mostly there is one."""


def _sealed(messages: list[Message]) -> list[Message]:
    newest: _Calls = {}
    # All messages are taken in before the first is given out: a response may come late.
    taken = [_take(message, newest) for message in messages]
    sealed: list[Message] = []
    for message, calls in taken:
        if message.parts:
            sealed.append(message)
        if calls:
            sealed.append(_responses(message, calls))
    return sealed


def _take(message: Message, newest: _Calls) -> tuple[Message, list[_Call]]:
    """Hand a message's responses to their calls; return what is left of it, and its own calls that need a response."""
    calls = [_Call(part) for part in message.parts if part.get("type") == "tool_call"]
    newest |= {_key(call.part): [] for call in calls}
    for call in calls:
        newest[_key(call.part)].append(call)
    left: list[dict[str, Any]] = []
    for part in message.parts:
        if part.get("type") != "tool_call_response":
            left.append(part)
        elif (answered := _answered(part, newest)) is None:
            left.append({"type": "text", "content": _orphan_text(part)})
        else:
            if answered in calls and answered.response is None:
                # A tool of the model's provider answered within the reply: call and response stay where they are.
                left.append(part)
            answered.response, answered.source = part, message
    role = "user" if message.role == "tool" and left else message.role
    open_calls = [call for call in calls if call.source is not message]
    return msgspec.structs.replace(message, role=role, parts=left), open_calls


def _answered(part: dict[str, Any], newest: _Calls) -> _Call | None:
    """Return the call that a response answers: the first with its key that has none yet, else the last."""
    calls = newest.get(_key(part), [])
    return next((call for call in calls if call.response is None), calls[-1] if calls else None)


def _responses(caller: Message, calls: list[_Call]) -> Message:
    """Return the one message that answers the open calls of a message."""
    sources = [call.source for call in calls if call.source is not None]
    first = sources[0] if sources else caller
    return Message(
        role="tool",
        parts=[call.response or _interrupted(call.part) for call in calls],
        seqs=tuple(sorted({seq for source in sources for seq in source.seqs})),
        agent=first.agent,
        turn=first.turn,
        at=first.at,
        extra=first.extra if first.role == "tool" else None,
    )


def _interrupted(call: dict[str, Any]) -> dict[str, Any]:
    named = {field: call[field] for field in ("id", "name") if call.get(field) is not None}
    return {"type": "tool_call_response", **named, "response": INTERRUPTED, "is_error": True}


def _key(part: dict[str, Any]) -> tuple[str, str]:
    """Return what a call and its response share: their id, or the tool's name where a framework gives no ids."""
    id = call_id(part)
    return ("id", id) if id is not None else ("name", text_in(part, "name") or "")


def _orphan_text(part: dict[str, Any]) -> str:
    response = part.get("response")
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    return f"Result of an earlier call of {text_in(part, 'name') or 'a tool'}:\n{text}"
