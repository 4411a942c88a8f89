"""How the built-in agent uses a tool: the call is in the log before it runs, what it gave back or raised after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from playhead.agents.built_in.passages import OWN_CALL
from playhead.agents.protocol import Request
from playhead.agents.tools import Tool, ToolFailed, Using, use
from playhead.aio import AsyncSpeaker

T = TypeVar("T")


class Caller:
    """Calls tools in the name of a speaker. The ids of its calls tell that the built-in agent made them."""

    def __init__(self, request: Request, speaker: AsyncSpeaker) -> None:
        self.request = request
        self.speaker = speaker
        self._call_count = 0

    async def call(self, name: str, arguments: Mapping[str, Any], work: Callable[[], Awaitable[T]]) -> T:
        """Return what the work returns. Raises `ToolFailed` with the text of an expected failure."""
        self._call_count += 1
        scope = self.speaker.scope or ""
        # A turn mostly has one call, whose id is the plainest.
        place = f"-{scope}-{self._call_count}" if scope or self._call_count > 1 else ""
        results: list[T] = []

        async def worked(using: Using, given: dict[str, Any]) -> T:
            results.append(await work())
            return results[0]

        tool = Tool(name, "", {}, worked)
        id = f"{OWN_CALL}{self.speaker.turn_id}{place}"
        used = await use(tool, Using(self.request, self.speaker), dict(arguments), call_id=id)
        if used.is_error:
            raise ToolFailed(str(used.response))
        return results[0]

    async def use(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        """Call a tool of a tool set. Raises as `call` does."""
        return await self.call(tool.name, arguments, lambda: tool.call(Using(self.request, self.speaker), arguments))
