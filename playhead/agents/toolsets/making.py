"""What the tool sets share: a tool from its arguments, and who asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from playhead.agents.tools import Tool, Using

Call = Callable[[Using, dict[str, Any]], Awaitable[Any]]


def made(
    name: str, description: str, properties: Mapping[str, Any], call: Call, *, required: tuple[str, ...] = ()
) -> Tool:
    """Return a tool that takes these arguments and no others. properties: name to JSON Schema."""
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return Tool(name=name, description=description, parameters=parameters, call=call)


def text(description: str) -> dict[str, Any]:
    """Return the schema of an argument that is a text."""
    return {"type": "string", "description": description}


def count(description: str, *, most: int, usual: int) -> dict[str, Any]:
    """Return the schema of an argument that counts from 1."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": usual, "description": description}


def who_asks(using: Using) -> dict[str, Any]:
    """Return the app and the user that a tool works for: those of the session that asks."""
    key = using.request.session.key
    return {"app": key.app, "user": key.user}
