"""A session's conversation as a message history of Pydantic AI, in the JSON form that its type adapter reads.

The log says in its own words what every agent can read: text, reasoning, calls, results. What only Pydantic AI knows of
a message (signatures of its provider, where one part ended and the next began, whether a result asks to try again) lies
beside it under `extra`, and is left aside where it does not fit what the log says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from playhead.agents.messages import CUT_OFF, clean, is_base64, orphan_text
from playhead.model.body import list_in, number_in, object_in, text_in
from playhead.model.codec import encode_json
from playhead.model.parts import call_id, content_of, text_of
from playhead.views.conversation import INTERRUPTED, Message

KEY = "pydantic_ai"
"""Under this name of `extra` lies what only Pydantic AI reads."""
SHOWN = "shown"
"""What is marked so is there for people: the model said it in another way already."""

Document = dict[str, Any]
"""A message or a part as Pydantic AI writes it as JSON. `Any`: its shape depends on its kind."""

_TEXTS = {"text": "text", "thinking": "reasoning"}
# What is said elsewhere in the log, or is about one run alone.
_LEFT_OUT = frozenset(
    {
        "conversation_id",
        "failed_attempts",
        "finish_reason",
        "history_digest",
        "kind",
        "metadata",
        "model_id",
        "model_name",
        "run_id",
        "state",
        "timestamp",
        "usage",
        "workspace_ref",
    }
)


def history(conversation: Sequence[Message], results: Iterable[Message] = ()) -> list[Document]:
    """Return the messages of a conversation, oldest first: requests and responses in turn.

    results: the conversation as it was recorded, whose messages have what is known of each single result. The system
    prompt is left out: the agent brings its own.
    """
    details = _details_of(results)
    messages: list[Document] = []
    is_cut_off = False
    for message in conversation:
        if is_cut_off and message.role != "tool":
            _ask(messages, [{"part_kind": "user-prompt", "content": CUT_OFF}])
            is_cut_off = False
        if message.role == "assistant":
            response, answers = _response(message), _results(message, details)
            if response["parts"]:
                messages.append(response)
            _ask(messages, _answering(messages, answers))
            is_cut_off = message.interrupted and bool(message.text.strip())
        elif message.role == "tool":
            _ask(messages, _answering(messages, _results(message, details)))
        elif message.role != "system" or message.injected is not None:
            _ask(messages, _prompts(message))
    if is_cut_off:
        _ask(messages, [{"part_kind": "user-prompt", "content": CUT_OFF}])
    return [_cleaned(message) for message in messages]


def reply_details(response: Mapping[str, Any]) -> Document | None:
    """Return what the log does not say of a response of Pydantic AI, or None where it says all.

    Texts are left out but for their lengths, and arguments of calls: both are in the log.
    """
    told = _pruned(response)
    told["parts"] = [_part_details(part) for part in list_in(response, "parts")]
    kinds = [part["part_kind"] for part in told["parts"]]
    said = [kind for kind in ("thinking", "text") if kind in kinds]
    is_plain = kinds == said + ["tool-call"] * kinds.count("tool-call")
    # Who provided a reply matters for what is its provider's alone, and then that stands with a part.
    if is_plain and all(set(part) <= {"part_kind", "chars", "tool_name", "tool_call_id"} for part in told["parts"]):
        return None
    return told


def result_details(part: Mapping[str, Any]) -> Document | None:
    """Return what the log does not say of a result of a call, or None where it says all."""
    told = _pruned(part)
    for name in ("content", "part_kind", "tool_name", "tool_call_id"):
        told.pop(name, None)
    return None if told in ({}, {"outcome": "success"}) else told


def _pruned(document: Mapping[str, Any]) -> Document:
    return {
        name: value for name, value in document.items() if name not in _LEFT_OUT and value not in (None, {}, [], ())
    }


def _part_details(part: Mapping[str, Any]) -> Document:
    told = _pruned(part)
    if part["part_kind"] in _TEXTS:
        told["chars"] = len(told.pop("content", ""))
    elif part["part_kind"] == "tool-call":
        told.pop("args", None)
    return told


def _details_of(results: Iterable[Message]) -> dict[tuple[str, str], Document]:
    """Return what is known of each result, by its call and what it says."""
    found: dict[tuple[str, str], Document] = {}
    for message in results:
        told = object_in(message.extra or {}, KEY)
        for part in message.parts:
            if told and part.get("type") == "tool_call_response":
                found[_id(part), encode_json(part.get("response"))] = told
    return found


def _ask(messages: list[Document], parts: list[Document]) -> None:
    """Add parts to the request at the end; results come before what is said."""
    if not parts:
        return
    if not messages or messages[-1]["kind"] != "request":
        messages.append({"kind": "request", "parts": []})
    messages[-1]["parts"] += parts


def _answering(messages: Sequence[Document], results: list[Document]) -> list[Document]:
    """Return results as such where they answer the last response, else as text: every result needs its call."""
    response: Document = next((one for one in reversed(messages) if one["kind"] == "response"), {"parts": []})
    made = {part["tool_call_id"] for part in response["parts"] if part["part_kind"] == "tool-call"}
    found = []
    for result in results:
        if result["tool_call_id"] in made:
            found.append(result)
        else:
            said = {"type": "tool_call_response", "name": result["tool_name"], "response": result["content"]}
            found.append({"part_kind": "user-prompt", "content": orphan_text(said)})
    return found


def _prompts(message: Message) -> list[Document]:
    """Return what a person, or the program, says."""
    content: list[Any] = []
    found: list[Document] = []
    for part in message.parts:
        own = object_in(object_in(part, "extra"), KEY)
        if text_in(own, "part_kind"):
            found.append(own)
        elif part.get("type") == "text":
            content.append(text_of([part]))
        elif part.get("type") != "reasoning":
            content.append(_media(part))
    content = [one for one in content if one]
    if content:
        said = "".join(content) if all(isinstance(one, str) for one in content) else content
        found.append({"part_kind": "user-prompt", "content": said} | _timestamp(message.at))
    return found


def _media(part: Mapping[str, Any]) -> Any:
    """Return an image or a file as Pydantic AI takes it, or a line in its place."""
    media_type, data = text_in(part, "mime_type") or "", text_in(part, "content")
    if part.get("type") == "blob" and data is not None and is_base64(data) and "/" in media_type:
        return {"kind": "binary", "data": data, "media_type": media_type}
    kind = media_type or text_in(part, "modality") or text_in(part, "type") or "file"
    where = text_in(part, "uri") or text_in(part, "file_id")
    return f"[{kind}: {where}]" if where else f"[{kind}]"


def _results(message: Message, details: Mapping[tuple[str, str], Document]) -> list[Document]:
    return [_result(part, message, details) for part in message.parts if part.get("type") == "tool_call_response"]


def _result(part: Mapping[str, Any], message: Message, details: Mapping[tuple[str, str], Document]) -> Document:
    response = part.get("response")
    outcome = "success"
    if part.get("is_error"):
        outcome = "interrupted" if response == INTERRUPTED else "failed"
    plain = {
        "part_kind": "tool-return",
        "tool_name": text_in(part, "name") or "tool",
        "tool_call_id": _id(part),
        "content": response,
        "outcome": outcome,
    }
    return plain | _timestamp(message.at) | details.get((_id(part), encode_json(response)), {})


def _response(message: Message) -> Document:
    """Return a reply: with what Pydantic AI knew of it where that fits what the log says, else as the log says it."""
    said = [part for part in message.parts if SHOWN not in object_in(object_in(part, "extra"), KEY)]
    message = msgspec.structs.replace(message, parts=said)
    told: Document = {}
    for part in said:
        told = told or object_in(object_in(part, "extra"), KEY)
    parts = _detailed(message, list_in(told, "parts")) if told else None
    response: Document = {"kind": "response", "parts": _plain(message) if parts is None else parts}
    if parts is not None:
        response |= {name: value for name, value in told.items() if name != "parts"}
    optional = {"model_name": message.model, "finish_reason": _FINISHES.get(message.finish_reason or "")}
    response |= {name: value for name, value in optional.items() if value is not None}
    return response | _timestamp(message.at)


_FINISHES = {name: name for name in ("stop", "length", "content_filter", "tool_call", "error")} | {
    "tool_calls": "tool_call"
}


def _plain(message: Message) -> list[Document]:
    parts: list[Document] = []
    for part in message.parts:
        kind, content = part.get("type"), content_of(part)
        if kind == "reasoning" and content:
            parts.append({"part_kind": "thinking", "content": content})
        elif kind == "text" and content:
            parts.append({"part_kind": "text", "content": content})
        elif kind == "tool_call":
            parts.append(_call(part))
    return parts


def _detailed(message: Message, told: Sequence[Any]) -> list[Document] | None:
    """Return the parts of a reply as they were, or None where they do not fit its texts and calls."""
    left = {kind: "".join(content_of(part) for part in message.parts if part.get("type") == kind) for kind in _KINDS}
    calls = {_id(part): part for part in message.parts if part.get("type") == "tool_call"}
    own_count, parts = 0, []
    for one in told:
        part = dict(one) if isinstance(one, dict) else {}
        kind = text_in(part, "part_kind")
        if kind is None:
            return None
        if kind in _TEXTS:
            chars = int(number_in(part, "chars") or 0)
            part.pop("chars", None)
            said = left[_TEXTS[kind]]
            part["content"], left[_TEXTS[kind]] = said[:chars], said[chars:]
        elif kind == "tool-call":
            if (recorded := calls.get(text_in(part, "tool_call_id") or "")) is None:
                return None
            part["args"] = _call(recorded)["args"]
            own_count += 1
        else:
            own_count += kind == "builtin-tool-call"
        parts.append(part)
    return parts if not any(left.values()) and own_count == len(calls) else None


_KINDS = tuple(_TEXTS.values())


def _call(part: Mapping[str, Any]) -> Document:
    arguments = part.get("arguments")
    args = arguments if isinstance(arguments, str | dict) or arguments is None else {"value": arguments}
    name = text_in(part, "name") or "tool"
    return {"part_kind": "tool-call", "tool_name": name, "args": args, "tool_call_id": _id(part)}


def _id(part: Mapping[str, Any]) -> str:
    return call_id(part) or f"call-of-{text_in(part, 'name') or 'tool'}"


def _timestamp(at: float) -> Document:
    try:
        return {"timestamp": datetime.fromtimestamp(at, UTC).isoformat()}
    except (ValueError, OverflowError, OSError):
        return {}


def _cleaned(value: Any) -> Any:
    """Return a JSON value with every text in it as UTF-8 can carry it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _cleaned(one) for name, one in value.items()}
    return [_cleaned(one) for one in value] if isinstance(value, list | tuple) else value
