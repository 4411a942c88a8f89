"""Tools by which an agent sets, lists and removes the triggers that have it answer again later.

A trigger is in the log and on the path: there after a restart, and gone where a rewind hides the turn that set it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from playhead.agents.quoting import one_line
from playhead.agents.tools import Tool, ToolFailed, Using
from playhead.agents.toolsets.making import made, text
from playhead.agents.triggers import ChannelMessage, FileChange, Schedule, Timer, trigger_types
from playhead.errors import InvalidName
from playhead.features.live import Clock
from playhead.features.triggers import Trigger
from playhead.model.body import text_in

TRIGGERS_MAX = 50
"""So many triggers are in force in a session before tools set no more."""
PROMPT_CHARS_MAX = 4_000
SHOWN_CHARS_MAX = 200

FIRES = "It fires while the session is open; what comes due meanwhile fires when it is resumed."

_PROMPT = text("What you are asked when it fires")


def trigger_tools(*, clock: Clock = time.time, zone: str = "UTC") -> tuple[Tool, ...]:
    """Return `set_timer`, `set_schedule`, `watch_file`, `watch_channel`, `list_triggers` and `remove_trigger`.

    clock: what a timer counts from. zone: the time zone of times that name none, and in which they are told. The
    session has to be opened with `trigger_types()`; where it was not, a call fails and says so.
    """
    where = {"type": "string", "default": zone, "description": "The time zone, such as Europe/Berlin"}
    return (
        made(
            "set_timer",
            f"Have yourself asked again at a time, once or again and again. {FIRES}",
            {
                "prompt": _PROMPT,
                "in_seconds": {"type": "number", "minimum": 0, "description": "How long from now; or give at"},
                "at": text(f"When, such as 2030-05-04T09:00; in {zone} where it names no offset"),
                "every_seconds": {"type": "number", "minimum": 1, "description": "And then again, every so often"},
            },
            lambda using, given: _set(using, lambda: _timer(given, clock, zone), zone),
            required=("prompt",),
        ),
        made(
            "set_schedule",
            f"Have yourself asked at the times of a cron expression, such as 0 9 * * 1-5. {FIRES}",
            {"prompt": _PROMPT, "cron": text("Five fields: minute, hour, day, month, day of the week"), "zone": where},
            lambda using, given: _set(using, lambda: _schedule(given, clock, zone), zone),
            required=("prompt", "cron"),
        ),
        made(
            "watch_file",
            f"Have yourself asked when a file changes, comes or goes. {FIRES}",
            {"prompt": _PROMPT, "path": text("The file, or a pattern for files of one folder, with the whole path")},
            lambda using, given: _set(
                using, lambda: FileChange.from_now(_prompt(given), os.path.normpath(given["path"])), zone
            ),
            required=("prompt", "path"),
        ),
        made(
            "watch_channel",
            f"Have yourself asked when somebody else says something on a channel of this session. {FIRES}",
            {
                "prompt": _PROMPT,
                "channel": text("The name of the channel"),
                "sender": text("Only for messages of this sender"),
                "reply": {"type": "boolean", "default": False, "description": "Send your answer on the channel"},
            },
            lambda using, given: _set(using, lambda: _channel(given), zone),
            required=("prompt", "channel"),
        ),
        made("list_triggers", "List the triggers that are in force in this session.", {}, partial(_list, zone)),
        made(
            "remove_trigger",
            "Remove a trigger of this session.",
            {"trigger": text("Its id, as list_triggers names it")},
            _remove,
            required=("trigger",),
        ),
    )


async def _set(using: Using, build: Callable[[], Trigger], zone: str) -> Any:
    """Set a trigger under an id that says its type and a number that no other in force has."""
    session = using.request.session
    await session.refresh()
    trigger = await asyncio.to_thread(build)  # It may look at files.
    try:
        id = await session.add_trigger(trigger, prefix=trigger_types().name_of(trigger), count_max=TRIGGERS_MAX)
    except InvalidName as error:
        raise ToolFailed(
            "no trigger can be set here, where nothing would watch it; in `playhead chat` and `playhead resume` it can"
        ) from error
    return {**_told(id, trigger, zone), "note": FIRES}


def _timer(given: dict[str, Any], clock: Clock, zone: str) -> Timer:
    now, every_s = clock(), given.get("every_seconds")
    if ("in_seconds" in given) == ("at" in given):
        raise ToolFailed("give either in_seconds or at")
    at = now + given["in_seconds"] if "in_seconds" in given else _time(given["at"], zone)
    if at < now:
        raise ToolFailed(f"that time is over: {given.get('at', given.get('in_seconds'))}")
    return Timer(prompt=_prompt(given), at=at, every_s=every_s)


def _time(said: str, zone: str) -> float:
    try:
        at = datetime.fromisoformat(said)
        return (at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(zone))).timestamp()
    except (ValueError, OverflowError, LookupError, OSError) as error:
        raise ToolFailed(f"{one_line(said, chars_max=SHOWN_CHARS_MAX)} is no time such as 2030-05-04T09:00") from error


def _schedule(given: dict[str, Any], clock: Clock, zone: str) -> Schedule:
    return Schedule.from_now(_prompt(given), given["cron"], now=clock(), zone=given.get("zone") or zone)


def _channel(given: dict[str, Any]) -> ChannelMessage:
    return ChannelMessage(
        prompt=_prompt(given),
        channel=given["channel"].strip().removeprefix("#"),
        sender=given.get("sender") or None,
        reply=given.get("reply", False),
    )


def _prompt(given: dict[str, Any]) -> str:
    prompt: str = given["prompt"]
    if not 1 <= len(prompt.strip()) <= PROMPT_CHARS_MAX:
        raise ToolFailed(f"a prompt has 1 to {PROMPT_CHARS_MAX:,} characters; this one has {len(prompt):,}")
    return prompt


async def _list(zone: str, using: Using, arguments: dict[str, Any]) -> Any:
    session = using.request.session
    await session.refresh()
    force = await session.triggers()
    return {
        "triggers": [_told(id, trigger, zone) for id, trigger in force.triggers.items()],
        "problems": [{"trigger": one.id, "reason": one.reason} for one in force.problems],
    }


async def _remove(using: Using, arguments: dict[str, Any]) -> Any:
    id = arguments["trigger"].strip()
    session = using.request.session
    await session.refresh()
    force = await session.triggers()
    if id not in force.set_by:
        there = ", ".join(one_line(known, chars_max=SHOWN_CHARS_MAX) for known in force.set_by) or "none"
        raise ToolFailed(f"there is no trigger {one_line(id, chars_max=SHOWN_CHARS_MAX)!r}; there are: {there}")
    await session.remove_trigger(id)
    return {"trigger": id, "type": text_in(force.set_by[id].body, "type")}


def _told(id: str, trigger: Trigger, zone: str) -> dict[str, Any]:
    """Return what is told of a trigger. One of a program's own may have no prompt, and no label or a failing one.

    zone: the time zone in which a timer's time is told."""
    waits_for = type(trigger).__name__
    with contextlib.suppress(Exception):
        label = partial(trigger.label, zone) if isinstance(trigger, Timer) else trigger.label  # type: ignore[attr-defined]
        waits_for = str(label())
    return {
        "trigger": id,
        "waits_for": one_line(waits_for, chars_max=SHOWN_CHARS_MAX),
        "prompt": one_line(str(getattr(trigger, "prompt", "")), chars_max=SHOWN_CHARS_MAX),
    }
