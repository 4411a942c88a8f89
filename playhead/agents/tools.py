"""A tool that an agent may call within a turn, described so that a model can choose it, and how a call is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from playhead.agents.protocol import Request
from playhead.aio import AsyncSpeaker
from playhead.errors import PlayheadError
from playhead.model.body import list_in, object_in
from playhead.turn import ToolCall


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
    return await carried_out(tool, using, call, arguments)


async def carried_out(tool: Tool, using: Using, call: ToolCall, arguments: dict[str, Any]) -> Used:
    """Run a tool whose call is in the log already, and record what it gave back. Raises as `use` does."""
    try:
        response = msgspec.to_builtins(await tool.call(using, arguments))
    except (ToolFailed, PlayheadError) as error:
        return await refused(using, call, str(error))
    await using.speaker.tool_result(call, response)
    return Used(response)


async def refused(using: Using, call: ToolCall, why: str) -> Used:
    """Record that a call failed, or that it was not run at all. why: what the agent is told."""
    await using.speaker.tool_result(call, why, is_error=True)
    return Used(why, is_error=True)


def misfit(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments that a model gave, as it is told, or "" where a tool can take them.

    Looks at the arguments themselves (missing, unknown, type, choice) and not into them: that is the tool's to do.
    """
    known = object_in(parameters, "properties")
    missing = [name for name in list_in(parameters, "required") if name not in arguments]
    if missing:
        return f"the argument {missing[0]!r} is missing"
    for name, value in arguments.items():
        schema = object_in(known, name)
        if name not in known and parameters.get("additionalProperties") is False:
            return f"there is no argument {name!r}; there are: {', '.join(known) or 'none'}"
        said = schema.get("type")
        kinds = [said] if isinstance(said, str) else list_in(schema, "type")
        if kinds and not any(_is_of(kind, value) for kind in kinds):
            return f"the argument {name!r} must be {' or '.join(map(str, kinds))}, not {type(value).__name__}"
        choices = list_in(schema, "enum")
        if choices and value not in choices:
            return f"the argument {name!r} must be one of {', '.join(map(str, choices))}"
    return ""


_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def _is_of(kind: Any, value: Any) -> bool:
    """Return True where a JSON value is of this type, or the type is none that is known."""
    if isinstance(value, bool):
        return kind == "boolean" or kind not in _TYPES
    return isinstance(value, _TYPES.get(kind, object))
