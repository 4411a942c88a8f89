"""The tools that an agent has unless it is given others."""

from __future__ import annotations

from playhead.agents.documents import Documents
from playhead.agents.tools import Tool
from playhead.agents.toolsets.channels import channel_tools
from playhead.agents.toolsets.documents import document_tools
from playhead.agents.toolsets.memory import memory_tools
from playhead.agents.toolsets.scratchpad import scratchpad_tools
from playhead.agents.toolsets.triggers import trigger_tools


def default_tools(
    *, documents: Documents | None = None, stays_open: bool = False, zone: str = "UTC"
) -> tuple[Tool, ...]:
    """Return tools to search, read and list sessions, of the asking session's app and user alone, and a scratchpad.

    documents: a folder to search and read as well. stays_open: the session is open between prompts (`Runtime`), so that
    triggers fire and others say something on channels: there are tools for these too. zone: the time zone of times that
    name none.
    """
    tools = [*memory_tools(), *scratchpad_tools()]
    if documents is not None:
        tools += document_tools(documents)
    if stays_open:
        tools += [*channel_tools(), *trigger_tools(zone=zone)]
    return tuple(tools)
