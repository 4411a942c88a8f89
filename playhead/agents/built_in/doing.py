"""What the built-in agent does when a person tells it to: notes, reminders and other triggers, messages on channels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from playhead.agents.built_in import orders
from playhead.agents.built_in.calling import Caller
from playhead.agents.built_in.wording import OVER, UNCLEAR, notes_listed, trigger_set, triggers_listed
from playhead.agents.quoting import one_line
from playhead.agents.tools import Tool, ToolFailed, Using
from playhead.agents.toolsets.channels import channel_tools
from playhead.agents.toolsets.scratchpad import notes_of, scratchpad_tools
from playhead.agents.toolsets.triggers import trigger_tools
from playhead.features.live import Clock
from playhead.model.body import text_in
from playhead.model.ids import ID_CHARS_MAX

PATH_CHARS_MAX = 200
"""So much of a path is shown."""


class Doing:
    """Carries orders out with the tool sets that any agent may have. zone, clock: as in `DefaultAgent`."""

    def __init__(self, *, zone: str, clock: Clock) -> None:
        self._zone = zone
        self._clock = clock
        tools = (*scratchpad_tools(), *channel_tools(), *trigger_tools(clock=clock, zone=zone))
        self._tools: dict[str, Tool] = {tool.name: tool for tool in tools}

    async def done(self, order: orders.Order, caller: Caller) -> str:
        """Do what was ordered, and return what is said of it. Raises `ToolFailed` where it cannot be done."""
        match order:
            case orders.Remember(text):
                name = _next_note(await notes_of(Using(caller.request, caller.speaker)))
                await self._use(caller, "scratchpad_write", name=name, text=text)
                return f"Noted. To see what there is, say: my notes\nTo drop it, say: forget note {name}"
            case orders.Recall():
                return notes_listed(await self._use(caller, "scratchpad_read"))
            case orders.Forget(name):
                await self._use(caller, "scratchpad_write", name=name, text="")
                return f"Removed: note {one_line(name, chars_max=ID_CHARS_MAX)}"
            case orders.Later(when, prompt):
                tool, arguments = self._timed(when, prompt)
                return trigger_set(await self._use(caller, tool, **arguments))
            case orders.WatchFile(path, prompt):
                where = await _whole_path(path, caller)
                return trigger_set(await self._use(caller, "watch_file", path=where, prompt=prompt))
            case orders.WatchChannel(channel, prompt, reply):
                arguments = {"channel": channel, "prompt": prompt, "reply": reply}
                return trigger_set(await self._use(caller, "watch_channel", **arguments))
            case orders.ListTriggers():
                return triggers_listed(await self._use(caller, "list_triggers"))
            case orders.RemoveTrigger(name):
                removed = await self._use(caller, "remove_trigger", trigger=await _trigger_named(name, caller))
                return f"Removed: {one_line(removed['trigger'], chars_max=ID_CHARS_MAX)}"
            case orders.Send(channel, text):
                await self._use(caller, "send_message", channel=channel, text=text)
                return f"Sent to #{channel}."
            case orders.Unclear(is_over):
                return OVER if is_over else UNCLEAR

    async def _use(self, caller: Caller, tool: str, **arguments: Any) -> Any:
        return await caller.use(self._tools[tool], arguments)

    def _timed(self, when: orders.When, prompt: str) -> tuple[str, dict[str, Any]]:
        """Return the tool that sets a time, and its arguments."""
        zone = when.zone or self._zone
        if when.cron:
            return "set_schedule", {"prompt": prompt, "cron": when.cron, "zone": zone}
        if when.after_s is None:
            return "set_timer", {"prompt": prompt, "at": _next(when, self._clock(), zone)}
        again = {"every_seconds": when.every_s} if when.every_s is not None else {}
        return "set_timer", {"prompt": prompt, "in_seconds": when.after_s, **again}


async def _whole_path(path: str, caller: Caller) -> str:
    """Return a path as one from the root: one that is not is meant from the folder that the session was begun in."""
    if os.path.isabs(path):
        return path
    folder = text_in((await caller.request.session.event(1)).body, "cwd")
    if not folder or path.startswith("~"):
        raise ToolFailed(f"say the whole path of {one_line(path, chars_max=PATH_CHARS_MAX)}, from / on")
    return os.path.join(folder, path)


async def _trigger_named(name: str, caller: Caller) -> str:
    """Return the id of a trigger that was named by it, or by the number at its end."""
    ids = (await caller.request.session.triggers()).set_by
    numbered = [id for id in ids if id.rpartition("-")[2] == name]
    return numbered[0] if name not in ids and len(numbered) == 1 else name


def _next_note(notes: Mapping[str, Any]) -> str:
    """Return the number of the next note, above all that there are."""
    return str(max([int(name) for name in notes if name.isdecimal() and len(name) < 9], default=0) + 1)


def _next(when: orders.When, now: float, zone: str) -> str:
    """Return the time that is meant, as people write it: today's where none is named, tomorrow's where that is over."""
    try:
        here = datetime.fromtimestamp(now, UTC if zone == "UTC" else ZoneInfo(zone))
    except (LookupError, ValueError, OSError) as error:
        raise ToolFailed(f"there is no time zone {zone!r}") from error
    at = here.replace(hour=when.hour, minute=when.minute, second=0, microsecond=0) + timedelta(days=when.day or 0)
    if when.day is None and at <= here:
        at += timedelta(days=1)
    return at.isoformat()
