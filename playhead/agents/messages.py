"""A session's conversation as the messages that an OpenAI-compatible endpoint takes.

What is sent is made of the log alone, so a resumed session sends what an uninterrupted one would, and the notes of what
was cut off. Endpoints differ in what they refuse; the messages keep to what all of them take: one system message, which
comes first, no two user or assistant messages in a row, no empty ones, and after every call its result.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from playhead.model.body import text_in
from playhead.model.parts import call_id, content_of, text_of
from playhead.views.conversation import INTERRUPTED, Message

CALL_ID_CHARS_MAX = 40
NAME_CHARS_MAX = 64
RESULT_CHARS_MAX = 100_000
"""Of a tool's result, so many characters are sent."""

CUT_OFF = "[The assistant's message above was cut off: the process stopped, or somebody interrupted it.]"
"""What the model is told of a message of its own that did not come to its end."""

_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}

ChatMessage = dict[str, Any]
"""A message on the wire. `Any`: its shape depends on the role."""


def system_prompt(conversation: Iterable[Message]) -> str | None:
    """Return the system prompt in force: the last that was set, or None."""
    prompts = [message.text for message in conversation if message.role == "system" and message.injected is None]
    return prompts[-1] if prompts else None


def chat_messages(
    conversation: Sequence[Message], *, sends_media: bool = True, sends_reasoning: bool = False
) -> list[ChatMessage]:
    """Return the messages of a conversation on the wire, oldest first, the system prompt in force before all others.

    sends_media: images and sounds go as they are, else as a line that says what they were. sends_reasoning: what the
    model thought goes back to it as `reasoning_content`, which a few endpoints ask for and most refuse.
    """
    sent = _Sent()
    if prompt := system_prompt(conversation):
        sent.messages.append({"role": "system", "content": clean(prompt)})
    is_cut_off = False
    unread = list(conversation)[::-1]
    while unread:
        message = unread.pop()
        if is_cut_off and message.role != "tool":
            sent.user(CUT_OFF)
            is_cut_off = False
        if message.role == "assistant":
            answers = [part for part in message.parts if part.get("type") == "tool_call_response"]
            if unread and unread[-1].role == "tool":
                answers += unread.pop().parts
            for orphan in sent.assistant(message, answers, sends_reasoning=sends_reasoning):
                sent.user(orphan_text(orphan))
            is_cut_off = message.interrupted and bool(message.text.strip())
        elif message.role != "system" or message.injected is not None:
            sent.user(*_contents(message.parts, sends_media=sends_media))
    if is_cut_off:
        sent.user(CUT_OFF)
    return sent.messages


class _Sent:
    """The messages so far, and the ids of calls that they use."""

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self._ids: set[str] = set()
        self._call_count = 0

    def user(self, *contents: str | dict[str, Any]) -> None:
        """Add what a person, or the program in between, says; a user message that is last takes it in."""
        blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in contents]
        blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == "user":
            blocks = [*_blocks(self.messages.pop()["content"]), *blocks]
        self.messages.append({"role": "user", "content": _text_if_possible(blocks)})

    def assistant(
        self, message: Message, answers: Sequence[Mapping[str, Any]], *, sends_reasoning: bool
    ) -> list[Mapping[str, Any]]:
        """Add a reply with its calls and their results; return the answers that answer none of them."""
        text = clean(message.text)
        for part in message.parts:
            if part.get("type") in ("blob", "file", "uri"):
                text += f"\n{_placeholder(part)}"
        reply: ChatMessage = {"role": "assistant", "content": text if text.strip() else None}
        results, left = [], list(answers)
        for call in message.parts:
            if call.get("type") == "tool_call":
                answer = next((one for one in left if _key(one) == _key(call)), None)
                if answer is not None:
                    left.remove(answer)
                id = self._id(call)
                results.append({"role": "tool", "tool_call_id": id, "content": _result_text(answer)})
                reply.setdefault("tool_calls", []).append(_call(call, id))
        thoughts = "".join(content_of(part) for part in message.parts if part.get("type") == "reasoning")
        if sends_reasoning and thoughts:
            reply["reasoning_content"] = clean(thoughts)
        if reply["content"] is None and not results:
            return left
        if self.messages and self.messages[-1]["role"] == "assistant":
            earlier = self.messages.pop()["content"]
            reply["content"] = earlier if reply["content"] is None else f"{earlier}\n\n{reply['content']}"
        self.messages += [reply, *results]
        return left

    def _id(self, call: Mapping[str, Any]) -> str:
        """Return an id for a call that the endpoint takes and that no other call of the conversation has."""
        self._call_count += 1
        id = clean(call_id(call) or "")
        if not id or len(id) > CALL_ID_CHARS_MAX or id in self._ids:
            id = f"call_{self._call_count}"
            while id in self._ids:
                id += "_"
        self._ids.add(id)
        return id


def function_name(name: str) -> str:
    """Return a tool's name as an endpoint takes it: letters, digits, `_` and `-`, 64 of them at the most."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:NAME_CHARS_MAX] or "_"


def _call(part: Mapping[str, Any], id: str) -> dict[str, Any]:
    name = function_name(text_in(part, "name") or "")
    return {"id": id, "type": "function", "function": {"name": name, "arguments": _arguments(part.get("arguments"))}}


def _arguments(value: Any) -> str:
    """Return the arguments of a call as the text of a JSON object, which is all that some endpoints can read again."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = {"text": value}
    if value is None:
        value = {}
    return _json(value if isinstance(value, dict) else {"value": value})


def _result_text(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return f"Error: {INTERRUPTED}"
    text = _response_text(answer)
    return f"Error: {text}" if answer.get("is_error") else text


def _response_text(answer: Mapping[str, Any]) -> str:
    response = answer.get("response")
    text = clean(response) if isinstance(response, str) else _json(response)
    if len(text) > RESULT_CHARS_MAX:
        return f"{text[:RESULT_CHARS_MAX]}\n[cut here: {len(text):,} characters in all]"
    return text


def orphan_text(part: Mapping[str, Any]) -> str:
    """Return as text what answers no call that is there."""
    if part.get("type") != "tool_call_response":
        return clean(content_of(part))
    return f"Result of an earlier call of {text_in(part, 'name') or 'a tool'}:\n{_response_text(part)}"


def _contents(parts: Iterable[Mapping[str, Any]], *, sends_media: bool) -> list[str | dict[str, Any]]:
    """Return what a message holds: its text, as it stands, and its images and sounds."""
    contents: list[str | dict[str, Any]] = []
    for part in parts:
        if part.get("type") == "text":
            text = clean(text_of([part]))
            if contents and isinstance(contents[-1], str):
                contents[-1] += text
            else:
                contents.append(text)
        elif part.get("type") == "tool_call_response":
            contents.append(orphan_text(part))
        elif part.get("type") != "reasoning":
            contents.append((_media(part) if sends_media else None) or _placeholder(part))
    return contents


def _media(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an image or a sound as it is sent, or None where no endpoint takes it."""
    media_type = (text_in(part, "mime_type") or "").lower()
    if part.get("type") == "uri":
        uri = text_in(part, "uri") or ""
        is_image = media_type in _IMAGES or (not media_type and part.get("modality") == "image")
        if is_image and re.match(r"https?://[^\s]+\Z", uri):
            return {"type": "image_url", "image_url": {"url": uri}}
        return None
    data = text_in(part, "content")
    if part.get("type") != "blob" or data is None or not is_base64(data):
        return None
    if media_type in _IMAGES:
        return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
    if media_type in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUNDS[media_type]}}
    return None


def _placeholder(part: Mapping[str, Any]) -> str:
    """Return a line in the place of what cannot be sent: what it is, and where."""
    kind = text_in(part, "mime_type") or text_in(part, "modality") or text_in(part, "type") or "file"
    where = text_in(part, "uri") or text_in(part, "file_id")
    return clean(f"[{kind}: {where}]" if where else f"[{kind}]")


def is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text_if_possible(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the blocks as one text where they are nothing else: some endpoints take no lists."""
    if all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks


def _key(part: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a call and its result share: their id, or the tool's name where there is none."""
    id = call_id(part)
    return ("id", id) if id is not None else ("name", text_in(part, "name") or "")


def _json(value: Any) -> str:
    return clean(json.dumps(value, ensure_ascii=False))


def clean(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, or replaced where the other half is missing."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def tool_document(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is told of a tool."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": dict(parameters)}}


def usage_of(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the usage that an endpoint told, under the names of the log, without what is no number; None for none."""
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    usage: dict[str, Any] = {}
    for name, value in said.items():
        if isinstance(value, Mapping):
            value = {key: one for key, one in value.items() if _is_count(one)}
        if _is_count(value) or (value and isinstance(value, dict)):
            usage[names.get(name, name)] = value
    return usage or None


def _is_count(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
