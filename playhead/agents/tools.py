"""A tool that an agent may call within a turn, described so that a model can choose it, and how a call is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from playhead.agents.protocol import Request
from playhead.aio import AsyncSpeaker
from playhead.errors import PlayheadError


@dataclass(frozen=True, slots=True)
class Using:
    """Where a tool is called: what was asked, and who calls it (a turn, or a sub-agent's run within one)."""

    request: Request
    speaker: AsyncSpeaker


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. parameters: the JSON Schema of its arguments, an object. call: takes the arguments as they came, and
    returns what JSON can hold; for what the caller should be told as a failure it raises `ToolFailed` or a
    `PlayheadError`."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Using, dict[str, Any]], Awaitable[Any]]


class ToolFailed(Exception):
    """A tool could not do what was asked. Its text is what the agent is told."""


@dataclass(frozen=True, slots=True)
class Used:
    """What came of a call: the response, or with `is_error` the text of the failure."""

    response: Any
    is_error: bool = False


async def use(tool: Tool, using: Using, arguments: dict[str, Any], *, call_id: str | None = None) -> Used:
    """Call a tool; the call is in the log before it runs, what it gave back after.

    An expected failure (`ToolFailed`, `PlayheadError`) is a result that says so. Anything else that it raises, and what
    goes wrong with the recording itself, goes through, and the turn's end closes the call.
    """
    call = await using.speaker.tool_call(tool.name, arguments, id=call_id)
    try:
        response = msgspec.to_builtins(await tool.call(using, arguments))
    except (ToolFailed, PlayheadError) as error:
        await using.speaker.tool_result(call, str(error), is_error=True)
        return Used(str(error), is_error=True)
    await using.speaker.tool_result(call, response)
    return Used(response)
