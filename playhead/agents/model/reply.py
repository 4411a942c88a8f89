"""A model's reply as it arrives: pieces of text at once, calls of tools once they are whole.

Endpoints say the same things in different ways: calls arrive in fragments, side by side, with or without ids and
numbers; usage comes last, or never; reasoning has two names. What has not the expected shape reads as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from playhead.agents.messages import usage_of
from playhead.errors import InvalidEvent
from playhead.model.body import list_in, number_in, object_in, text_in
from playhead.model.codec import check_json, decode_json

CALLS_MAX = 1_000
"""So many calls of a reply are taken in. What comes of more is only counted."""

NAME_CHARS_MAX = 200
"""Of the model's name and the reason why it ended, as the endpoint tells them, so much is kept."""


class Piece(NamedTuple):
    """A piece of a message. part: `text` or `reasoning`."""

    part: Literal["text", "reasoning"]
    text: str


class Asked(NamedTuple):
    """A call that the model asked for. id: "" where it gave none. arguments: None where they are no JSON object, and
    then `said` has the text that came."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    said: str


class Reply:
    """What has come of one reply so far.

    model and usage: as the endpoint told them, None where it did not. finish_reason: None until the reply is whole.
    chars: how much came, all of its calls included, whatever of it is kept. has_too_many_calls: it asked for more than
    `CALLS_MAX`. is_begun: whether any of it was given out as a piece.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what came: the reply is asked for again."""
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.finish_reason: str | None = None
        self.chars = 0
        self.is_begun = False
        self.has_too_many_calls = False
        self._calls: list[_Fragments] = []
        self._last_of: dict[float | None, _Fragments] = {}

    def take(self, chunk: Mapping[str, Any]) -> list[Piece]:
        """Take in a chunk of a streamed reply, or a whole reply, and return the pieces of text that it brought."""
        self.model = (text_in(chunk, "model") or self.model or "")[:NAME_CHARS_MAX] or None
        self.usage = usage_of(object_in(chunk, "usage")) or self.usage
        pieces: list[Piece] = []
        for choice in list_in(chunk, "choices"):
            if not isinstance(choice, dict) or choice.get("index", 0) not in (0, None):
                continue
            said = object_in(choice, "delta") or object_in(choice, "message")
            pieces += _pieces(said)
            for fragment in list_in(said, "tool_calls"):
                if isinstance(fragment, dict):
                    self._take_fragment(fragment)
            self.finish_reason = (text_in(choice, "finish_reason") or self.finish_reason or "")[:NAME_CHARS_MAX] or None
        self.chars += sum(len(piece.text) for piece in pieces)
        self.is_begun = self.is_begun or bool(pieces)
        return pieces

    def calls(self) -> list[Asked]:
        """Return the calls that were asked for, in their order. Only a whole reply has whole calls."""
        asked, ids = [], set[str]()
        for call in self._calls:
            id = call.id if call.id not in ids else ""
            ids.add(id)
            said = "".join(call.said)
            asked.append(Asked(id, call.name, arguments_in(said), said))
        return asked

    def _take_fragment(self, fragment: Mapping[str, Any]) -> None:
        function = object_in(fragment, "function")
        id, name, said = text_in(fragment, "id"), text_in(function, "name"), function.get("arguments")
        text = said if isinstance(said, str) else "" if said is None else json.dumps(said)
        self.chars += len(text) + len(id or "") + len(name or "")
        index = number_in(fragment, "index")
        call = self._last_of.get(index)
        if index is None and call is None and self._calls and not id and not name:
            call = self._calls[-1]
        # Some endpoints number all calls 0, so a new id is a new call, whatever its number.
        if call is None or (id and call.id and id != call.id):
            if len(self._calls) == CALLS_MAX:
                self.has_too_many_calls = True
                return
            call = self._last_of[index] = _Fragments()
            self._calls.append(call)
        call.id = call.id or id or ""
        if name and name != call.name and not any(call.said):
            call.name += name
        call.said.append(text)


@dataclass(slots=True)
class _Fragments:
    """A call that is still arriving."""

    id: str = ""
    name: str = ""
    said: list[str] = field(default_factory=list, repr=False)


def arguments_in(text: str) -> dict[str, Any] | None:
    """Return the arguments of a call, `{}` for no text; None where they are no JSON object that a log can hold."""
    if not text.strip():
        return {}
    try:
        value = decode_json(text)
        check_json(value)
    except (InvalidEvent, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pieces(said: Mapping[str, Any]) -> list[Piece]:
    pieces = [Piece("reasoning", text_in(said, "reasoning_content") or text_in(said, "reasoning") or "")]
    content = said.get("content")
    if isinstance(content, str):
        pieces.append(Piece("text", content))
    for block in list_in(said, "content"):
        if isinstance(block, dict):
            is_thought = block.get("type") == "thinking"
            pieces.append(Piece("reasoning" if is_thought else "text", _block_text(block)))
    if refusal := text_in(said, "refusal"):
        pieces.append(Piece("text", refusal))
    return [piece for piece in pieces if piece.text]


def _block_text(block: Mapping[str, Any]) -> str:
    """Return the text of a content block, or of the blocks within a thinking one."""
    text = text_in(block, "text") or text_in(block, "thinking") or ""
    return text + "".join(_block_text(one) for one in list_in(block, "thinking") if isinstance(one, dict))
