"""The triggers that come with Playhead: a timer, a schedule, a file that changes, a message on a channel.

Each is a value: what it waits for, the words that the agent is sent, and how far it has come. Deciding whether it has
fired takes the time, or what was found, as an argument. Whatever is read back from a file is checked before it is used.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol, Self
from zoneinfo import ZoneInfo

import msgspec

from playhead.agents.file_prints import FILES_MAX, FilePrint, check_path, differs, look_at
from playhead.agents.quoting import moment, one_line, quoted
from playhead.aio import AsyncSession
from playhead.errors import ExtraMissing, InvalidTrigger
from playhead.features.triggers import Firing, Reply, Trigger, TriggerTypes
from playhead.model import path as paths
from playhead.model.event import Event
from playhead.stores.base import EVENTS_PAGE_MAX

PROMPT_CHARS_MAX = 20_000
CRON_CHARS_MAX = 200
NAME_CHARS_MAX = 512

SECONDS_MAX = 253_402_300_799
"""UTC seconds of the last second of the year 9999."""

EVERY_S_MIN = 1.0

LATE_S = 60.0
"""A firing that comes later than this says so to the agent."""

OCCASIONS_COUNTED_MAX = 1_000
"""Of the occasions of a schedule that were missed, so many are counted."""

NAMES_SHOWN_MAX = 20
"""So many names of files that changed are told to the agent."""

MESSAGES_MAX = 50
"""So many messages of a channel are answered in one turn; the next ones in another."""
MESSAGES_PAGE = EVENTS_PAGE_MAX
"""So many messages are asked for at once: a store reads a page whole."""
MESSAGE_CHARS_MAX = 4_000
"""So much of a message is shown to the agent; the log has all of it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a trigger is looked at with. now: UTC seconds. set_by: the event that set the trigger as it is.

    agent: who would answer. What that agent says itself fires nothing. known: what the trigger keeps for its next look
    by the same runtime, so as not to read again what fires nothing; it is empty after a restart, and where the trigger
    was set anew.
    """

    now: float
    session: AsyncSession
    set_by: Event
    agent: str
    known: dict[str, Any] = field(default_factory=dict)


class Watchable(Trigger, Protocol):
    """A trigger that a runtime can watch."""

    def due_at(self) -> float | None:
        """Return when it fires next, in UTC seconds, or None where that is not known beforehand."""

    def label(self) -> str:
        """Return what it waits for, in a few words."""

    async def firing(self, look: Look) -> Firing | None:
        """Return what it fires for now, or None. Looking writes nothing, and twice finds the same twice."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the triggers here share: their words, and the way into the log and back.

    prompt: what the agent is asked when it fires.
    """

    prompt: str

    def __post_init__(self) -> None:
        _check(1 <= len(self.prompt.strip()) <= PROMPT_CHARS_MAX, "its prompt is empty or too long")
        self._check()

    def _check(self) -> None:
        """Raise `InvalidTrigger` where a field is out of bounds."""

    def to_resume_dict(self) -> dict[str, Any]:
        """Return all that is needed to build this trigger again."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept

    @classmethod
    def from_resume_dict(cls, data: dict[str, Any]) -> Self:
        """Build the trigger again. Raises `InvalidTrigger` for data that is none of this type."""
        try:
            return msgspec.convert(data, cls)
        except (msgspec.ValidationError, RecursionError) as error:
            raise InvalidTrigger(str(error)) from error


class Timer(_Kept, frozen=True, kw_only=True):
    """Fires once at a time, or from then on every so many seconds. at: UTC seconds, when it fires next."""

    at: float
    every_s: float | None = None

    def _check(self) -> None:
        _check(_is_time(self.at), "its time is in no calendar")
        _check(
            self.every_s is None or EVERY_S_MIN <= self.every_s <= SECONDS_MAX,
            f"it may fire every {EVERY_S_MIN:g} seconds at the most",
        )

    def due_at(self) -> float | None:
        return self.at

    def label(self, zone: str = "UTC") -> str:
        """Return what it waits for. zone: the time zone to say it in."""
        at = moment(self.at, zone, is_exact=True)
        return f"at {at}" if self.every_s is None else f"every {self.every_s:g} s from {at}"

    async def firing(self, look: Look) -> Firing | None:
        return self.fired(look.now)

    def fired(self, now: float) -> Firing | None:
        """Return what it fires for at a time. Occasions that were missed are one firing, which says how many."""
        if now < self.at:
            return None
        if self.every_s is None:
            return _timed(self.prompt, due_at=self.at, now=now, missed=0, then=None)
        missed = int((now - self.at) // self.every_s)
        due_at = min(self.at + missed * self.every_s, now)
        following = due_at + self.every_s
        if following <= now:  # The sum of two floats may fall short, and the next look would fire again.
            following = now + self.every_s
        then = msgspec.structs.replace(self, at=following) if _is_time(following) else None
        return _timed(self.prompt, due_at=due_at, now=now, missed=missed, then=then)


class Schedule(_Kept, frozen=True, kw_only=True):
    """Fires at the times of a cron expression (`0 9 * * 1-5`) in a time zone. Needs the package `cronsim`.

    at: UTC seconds, when it fires next; `from_now` finds the first. Clock changes are as in cron: a time that the
    change leaves out comes at once after it, and one that comes twice fires once.
    """

    cron: str
    at: float
    zone: str = "UTC"

    @classmethod
    def from_now(cls, prompt: str, cron: str, *, now: float, zone: str = "UTC") -> Self:
        """Return a schedule that fires first after `now`. Raises `InvalidTrigger` where it never would."""
        at = next_time(cron, zone, after=now)
        if at is None:
            raise InvalidTrigger(f"the schedule {cron!r} has no time in the years to come")
        return cls(prompt=prompt, cron=cron, at=at, zone=zone)

    def _check(self) -> None:
        _check(_is_time(self.at), "its time is in no calendar")
        next_time(self.cron, self.zone, after=self.at)

    def due_at(self) -> float | None:
        return self.at

    def label(self) -> str:
        return f"{self.cron} ({self.zone}), next at {moment(self.at, self.zone)}"

    async def firing(self, look: Look) -> Firing | None:
        return self.fired(look.now)

    def fired(self, now: float) -> Firing | None:
        """Return what it fires for at a time. Occasions that were missed are one firing, which says how many."""
        if now < self.at:
            return None
        count, due_at, following = 1, self.at, next_time(self.cron, self.zone, after=self.at)
        while following is not None and following <= now and count < OCCASIONS_COUNTED_MAX:
            count, due_at, following = count + 1, following, next_time(self.cron, self.zone, after=following)
        if following is not None and following <= now:
            following = next_time(self.cron, self.zone, after=now)
        then = msgspec.structs.replace(self, at=following) if following is not None else None
        return _timed(self.prompt, due_at=due_at, now=now, missed=count - 1, then=then)


class FileChange(_Kept, frozen=True, kw_only=True):
    """Fires when a file changes, comes or goes, also while nobody was looking.

    path: absolute; its last part may be a pattern (`/reports/*.csv`), for the files of that one folder. seen: what was
    there when it was set or fired last, as `look_at` returns it. once: it is over when it has fired.
    """

    path: str
    seen: dict[str, tuple[int, int, int, str]] = {}
    once: bool = False

    @classmethod
    def from_now(cls, prompt: str, path: str, *, once: bool = False) -> Self:
        """Return a trigger that fires for what changes from now on. Raises `InvalidTrigger`."""
        return cls(prompt=prompt, path=path, seen=look_at(path), once=once)

    def _check(self) -> None:
        check_path(self.path)
        _check(len(self.seen) <= FILES_MAX, f"it may watch {FILES_MAX} files at the most")
        names = (*self.seen, *(seen[3] for seen in self.seen.values()))
        _check(all(len(name) <= NAME_CHARS_MAX for name in names), "the name of a file is too long")

    def due_at(self) -> float | None:
        return None

    def label(self) -> str:
        return f"when {self.path} changes"

    async def firing(self, look: Look) -> Firing | None:
        return self.fired(await asyncio.to_thread(look_at, self.path, self.seen))

    def fired(self, found: Mapping[str, FilePrint]) -> Firing | None:
        """Return what it fires for, given what is there now."""
        changes = {
            "changed": [name for name in found if name in self.seen and differs(self.seen[name], found[name])],
            "added": [name for name in found if name not in self.seen],
            "gone": [name for name in self.seen if name not in found],
        }
        if not any(changes.values()):
            return None
        lines = [f"{what}: {_listed(names)}" for what, names in changes.items() if names]
        about = f"In the folder {os.path.dirname(self.path)}\n" + quoted("\n".join(lines))
        payload: dict[str, Any] = {"path": self.path}
        payload |= {what: names[:NAMES_SHOWN_MAX] for what, names in changes.items() if names}
        then = None if self.once else msgspec.structs.replace(self, seen=dict(found))
        return Firing(f"{self.prompt}\n\n{about}", self.prompt, payload, then)


class ChannelMessage(_Kept, frozen=True, kw_only=True):
    """Fires for messages that come on a channel of the session, each of them once.

    sender: only messages of this one. after: id of the last message that it has fired for; "" for none, where those
    count that came after it was set. reply: the agent's answer is sent on the channel. once: over when it has fired.
    """

    channel: str
    sender: str | None = None
    after: str = ""
    reply: bool = False
    once: bool = False

    def _check(self) -> None:
        names = (self.channel, self.sender or "", self.after)
        _check(all(len(name) <= NAME_CHARS_MAX for name in names), "one of its names is too long")
        _check(bool(self.channel), "it names no channel")

    def due_at(self) -> float | None:
        return None

    def label(self) -> str:
        return f"on channel {self.channel}" + (f", from {self.sender}" if self.sender else "")

    async def firing(self, look: Look) -> Firing | None:
        if look.known.get("seq") == look.session.seq:
            return None  # Nothing was appended since a look that found nothing.
        passed: Event | None = look.known.get("passed")
        if passed is not None and not paths.lies_on(await look.session.positions(), passed.seq):
            passed = None  # The head was moved: other messages may lie before it now.
        seq, is_more = look.session.seq, True
        after = passed.id if passed is not None else self.after or look.set_by.id
        wanted: list[Event] = []
        while is_more and len(wanted) < MESSAGES_MAX:
            page = await look.session.messages(self.channel, after=after, limit=MESSAGES_PAGE)
            wanted += [message for message in page if self._is_for(message, look.agent)]
            is_more = len(page) == MESSAGES_PAGE
            passed = page[-1] if page and not wanted else passed
            after = page[-1].id if page else after
        look.known["passed"] = passed
        if not wanted:
            look.known["seq"] = seq
        return self.fired(wanted[:MESSAGES_MAX])

    def fired(self, messages: Sequence[Event]) -> Firing | None:
        """Return what it fires for, given the messages that came, oldest first."""
        if not messages:
            return None
        last = messages[-1]
        said = "\n".join(f"{_one_line(message.body.get('sender'))}:\n{_said(message)}" for message in messages)
        payload = {
            "channel": self.channel,
            "messages": [{"event": message.id, "sender": message.body.get("sender")} for message in messages],
        }
        return Firing(
            f"{self.prompt}\n\nOn the channel {_one_line(self.channel)}\n{said}",
            self.prompt,
            payload,
            None if self.once else msgspec.structs.replace(self, after=last.id),
            "channel",
            Reply(self.channel, last.id) if self.reply else None,
        )

    def _is_for(self, message: Event, agent: str) -> bool:
        sender = str(message.body.get("sender"))
        is_own = sender == agent or sender.startswith(f"{agent}/")
        return not is_own and self.sender in (None, sender)


def trigger_types() -> TriggerTypes:
    """Return the trigger types that come with Playhead, for `Sessions.get` and `resume`; more can be registered."""
    return TriggerTypes({"timer": Timer, "schedule": Schedule, "file": FileChange, "channel": ChannelMessage})


def next_time(cron: str, zone: str, *, after: float) -> float | None:
    """Return the first time of a cron expression after a time, in UTC seconds; None where there is none in 50 years.

    Raises `InvalidTrigger` for what is no expression or no zone, and `ExtraMissing` where `cronsim` is not installed.
    """
    _check(len(cron) <= CRON_CHARS_MAX and len(zone) <= CRON_CHARS_MAX, "its schedule is too long")
    _check(len(cron.split()) == 5, f"{cron!r} is no schedule of five fields")
    try:
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError as error:
        raise ExtraMissing("cronsim", extra="cli") from error
    try:
        begins = datetime.fromtimestamp(after, UTC if zone == "UTC" else ZoneInfo(zone))
    except (ValueError, OverflowError, OSError, LookupError) as error:
        raise InvalidTrigger(f"there is no time zone {zone!r}, or no such time in it") from error
    try:
        # In the hour that comes twice the first ones may lie before `after`; a day has no more times than this.
        for at in islice(CronSim(cron, begins), 4_000):
            if at.timestamp() > after:
                return at.timestamp()
    except (CronSimError, ValueError, OverflowError) as error:
        raise InvalidTrigger(f"{cron!r} is no schedule: {error}") from error
    return None


def _timed(prompt: str, *, due_at: float, now: float, missed: int, then: Trigger | None) -> Firing:
    """Return the firing for the newest occasion that is due."""
    late_s = now - due_at
    payload = {"due_at": due_at, "fired_at": now, "drift_s": round(late_s, 3), "missed": missed}
    notes = [f"It was due at {moment(due_at)}."] if late_s > LATE_S else []
    if missed:
        times = f"{missed:,} earlier times" if missed > 1 else "one earlier time"
        notes.append(f"It could not fire {times}.")
    return Firing("\n\n".join([prompt, *([" ".join(notes)] if notes else [])]), prompt, payload, then)


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - NAMES_SHOWN_MAX
    return ", ".join(names[:NAMES_SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")


def _said(message: Event) -> str:
    content = message.body.get("content")
    text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
    return quoted(text[:MESSAGE_CHARS_MAX], is_cut_after=len(text) > MESSAGE_CHARS_MAX)


def _one_line(name: Any) -> str:
    return one_line(str(name), chars_max=NAME_CHARS_MAX)


def _is_time(at: float) -> bool:
    return math.isfinite(at) and 0 <= at <= SECONDS_MAX


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidTrigger(f"this trigger cannot be: {what}")
