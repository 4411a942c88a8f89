"""What a person tells the built-in agent to do, rather than to find, by a few plain forms.

    remember that …, my notes, forget note 2
    remind me in 10 minutes to …           also: at 15:30, tomorrow at 9, every 2 hours, every weekday at 9
    every monday at 9: …                   what follows the colon is answered then, like a prompt
    tell me when /path/to/FILE changes     also: when FILE changes: …
    tell me when something comes on #ops   also: when something comes on #ops: …
    answer on #ops                         searches for what is said there, and answers on it
    my reminders, cancel reminder 2
    send to #ops: …

A time names its zone where it is not the agent's own: every day at 9 in Europe/Berlin. Forms that begin with
`remind me` and are none of these are told what there is; everything else that is no such form is no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

REMINDER = "Reminder: "
"""How the prompt of a trigger begins that is to be said, not answered."""

ORDER_CHARS_MAX = 10_000
"""What is longer was pasted, and is no order."""
WHEN_WORDS_MAX = 8
WEEKDAYS = "sunday monday tuesday wednesday thursday friday saturday".split()


@dataclass(frozen=True, slots=True)
class When:
    """A time. after_s: so long from now. every_s: and again every so often. cron: or at the times of an expression.

    hour, minute, day: or at a time of day, `day` days from today; None for the next time that it is so late. zone: the
    time zone of what is given by the clock, "" for the agent's own.
    """

    after_s: float | None = None
    every_s: float | None = None
    cron: str = ""
    hour: int = 0
    minute: int = 0
    day: int | None = None
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Remember:
    """To keep a note."""

    text: str


@dataclass(frozen=True, slots=True)
class Recall:
    """To see the notes."""


@dataclass(frozen=True, slots=True)
class Forget:
    """To drop a note."""

    name: str


@dataclass(frozen=True, slots=True)
class Later:
    """To be asked a prompt later, or told what it says where it is a reminder."""

    when: When
    prompt: str


@dataclass(frozen=True, slots=True)
class WatchFile:
    """To be asked when a file changes."""

    path: str
    prompt: str


@dataclass(frozen=True, slots=True)
class WatchChannel:
    """To be asked when something is said on a channel. reply: what is said is searched for, and answered there."""

    channel: str
    prompt: str
    reply: bool = False


@dataclass(frozen=True, slots=True)
class ListTriggers:
    """To see what is to come."""


@dataclass(frozen=True, slots=True)
class RemoveTrigger:
    """To remove a trigger, by its id or by the number at the end of it."""

    name: str


@dataclass(frozen=True, slots=True)
class Send:
    """To say something on a channel."""

    channel: str
    text: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """To be reminded, in a form that is none of those there are. is_over: of a time in the past."""

    is_over: bool = False


Order = Remember | Recall | Forget | Later | WatchFile | WatchChannel | ListTriggers | RemoveTrigger | Send | Unclear


def ordered(said: str) -> Order | None:
    """Return what a prompt tells the agent to do, None where it is no order. said: in one line, single spaces."""
    if len(said) > ORDER_CHARS_MAX:
        return None
    said = said.removeprefix("please ").removeprefix("Please ")
    if found := _REMEMBER.fullmatch(said):
        return Remember(found["text"])
    if found := _FORGET.fullmatch(said):
        return Forget(found["name"])
    if found := _SEND.fullmatch(said) or _SEND_LAST.fullmatch(said):
        return Send(found["channel"], found["text"])
    plain = said.rstrip(".?! ").casefold()
    if plain in _RECALL:
        return Recall()
    if _LIST.fullmatch(plain):
        return ListTriggers()
    if found := _REMOVE.fullmatch(said.rstrip(".?! ")):
        return RemoveTrigger(found["name"])
    return _watched(said) or _later(said)


def when_of(text: str) -> When | None:
    """Return the time that a few words say, None where they say none."""
    plain = text.strip(" ,:.").casefold()
    zone = ""
    if found := _ZONE.search(plain):
        # Zones are named by their own capitals.
        zone, plain = text.strip(" ,:.")[found.start("zone") : found.end("zone")], plain[: found.start()]
    if (found := _CLOCK.fullmatch(plain)) and (time := _time(found["time"])) is not None:
        days, (hour, minute) = found["days"], time
        if days == "today" or days == "tomorrow" or not days:
            day = {"today": 0, "tomorrow": 1}.get(days or "")
            return When(hour=hour, minute=minute, day=day, zone=zone)
        return When(cron=f"{minute} {hour} * * {_days(days)}", zone=zone)
    if zone:
        return None
    if found := _DURATION.fullmatch(plain):
        seconds = _seconds(found["count"], found["unit"])
        return When(after_s=seconds, every_s=seconds if found["how"] == "every" else None)
    return None


def _watched(said: str) -> Order | None:
    if found := _ANSWER.fullmatch(said):
        return WatchChannel(found["channel"], "Answer what is said.", reply=True)
    if found := _TELL_CHANNEL.fullmatch(said):
        return WatchChannel(found["channel"], f"{REMINDER}there is something on #{found['channel']}.")
    if found := _WHEN_CHANNEL.fullmatch(said):
        return WatchChannel(found["channel"], found["prompt"])
    if found := _TELL_FILE.fullmatch(said):
        return WatchFile(_unquoted(found["path"]), f"{REMINDER}{_unquoted(found['path'])} has changed.")
    if found := _WHEN_FILE.fullmatch(said):
        return WatchFile(_unquoted(found["path"]), found["prompt"])
    return None


def _later(said: str) -> Order | None:
    """Return a reminder, or a prompt for later: `remind me WHEN to …`, `remind me to … WHEN`, `WHEN: …`."""
    if found := _REMIND.fullmatch(said):
        read = next(_split(found["rest"]), None)
        return (
            Unclear(_OVER.match(found["rest"]) is not None) if read is None else Later(read[0], f"{REMINDER}{read[1]}")
        )
    before, mark, rest = _first_mark(said)
    when = when_of(before) if mark else None
    if when is None or not rest.strip():
        return None
    if found := _REMIND.fullmatch(rest.strip()):
        return Later(when, f"{REMINDER}{_about(found['rest'])}")
    return Later(when, rest.strip())


def _split(rest: str) -> Iterator[tuple[When, str]]:
    """Yield the ways to read a time and what to be reminded of, the one with the time first before the others."""
    words = rest.split(" ")
    for count in range(min(WHEN_WORDS_MAX, len(words) - 1), 0, -1):
        if (when := when_of(" ".join(words[:count]))) is not None:
            yield when, _about(" ".join(words[count:]))
    for count in range(min(WHEN_WORDS_MAX, len(words) - 1), 0, -1):
        if (when := when_of(" ".join(words[-count:]))) is not None:
            yield when, _about(" ".join(words[:-count]))


def _about(what: str) -> str:
    return _ABOUT.sub("", what, count=1).strip()


def _first_mark(said: str) -> tuple[str, str, str]:
    """Split at the first colon or comma that stands before a space, so that `15:30` stays whole."""
    found = _MARK.search(said)
    return (said, "", "") if found is None else (said[: found.start()], found[0], said[found.end() :])


def _time(text: str) -> tuple[int, int] | None:
    """Return hour and minute, None for what no clock shows."""
    if text in ("noon", "midnight"):
        return (12, 0) if text == "noon" else (0, 0)
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), found["half"]
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None


def _days(days: str) -> str:
    named = {"day": "*", "weekday": "1-5", "weekend": "0,6"}
    day = days.removeprefix("every ").removesuffix("s")
    return named.get(day) or str(WEEKDAYS.index(day))


def _seconds(count: str | None, unit: str) -> float:
    number = {"half an": 0.5, "half a": 0.5, "a": 1, "an": 1, None: 1}.get(count)
    return (float(count or 0) if number is None else number) * _UNITS[unit[0]]


def _unquoted(path: str) -> str:
    return path.strip("\"'“”`")


_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_CHANNEL = r"#(?P<channel>[\w.-]{1,100})"
_PATH = r"(?:the )?(?:file )?(?P<path>\"[^\"]+\"|“[^”]+”|\S{0,500}[/\\.]\S{0,500})"
_DURATION = re.compile(
    r"(?P<how>in|every)(?: (?P<count>[0-9]{1,6}(?:\.[0-9]{1,3})?|an?|half an?))?"
    r" (?P<unit>(?:second|sec|minute|min|hour|day|week)s?)"
)
_TIME = re.compile(r"(?P<hour>[0-9]{1,2})(?:[:.](?P<minute>[0-9]{2}))? ?(?P<half>am|pm)?(?: o.?clock)?")
_CLOCK = re.compile(
    rf"(?:(?P<days>today|tomorrow|every (?:day|weekday|weekend|(?:{'|'.join(WEEKDAYS)})))s? )?at (?P<time>.{{1,20}})"
)
_ZONE = re.compile(r" in (?P<zone>utc|[a-z_]+(?:/[a-z0-9_+-]+){1,2})$")
_MARK = re.compile(r"[:,](?= )")
_ABOUT = re.compile(r"^(?:to|that|about|of)\b:? ?", re.IGNORECASE)
_REMIND = re.compile(r"remind me (?P<rest>.+)", re.IGNORECASE)
_OVER = re.compile(
    rf"(?:in )?[-−][0-9]|yesterday\b|last (?:night|week|month|year|{'|'.join(WEEKDAYS)})\b|\S{{1,9}} [a-z]{{1,9}} ago\b"
    r"|.{0,500} in [-−][0-9]\S{0,9} [a-z]{1,9}\W?$",
    re.IGNORECASE,
)
_REMEMBER = re.compile(r"(?:remember|note|keep in mind)(?: that |: )(?P<text>.*[^?])", re.IGNORECASE)
_FORGET = re.compile(r"forget (?:the |my )?note (?P<name>\S{1,100}?)[.!]?", re.IGNORECASE)
_RECALL = {"my notes", "your notes", "notes", "show my notes", "list my notes", "what do you remember", "scratchpad"}
_LIST = re.compile(r"(?:(?:list|show|what are)(?: me)? )?(?:(?:my|the|all) )?(?:reminders|triggers|timers|schedules)")
_REMOVE = re.compile(
    r"(?:cancel|remove|delete|stop) (?:(?:the |my )?(?:reminder|trigger|timer|schedule|watch) (?P<name>\S+))",
    re.IGNORECASE,
)
_SEND = re.compile(
    rf"(?:send|say|post|tell|write)(?: (?:to|on|in))? {_CHANNEL}:? (?:that )?(?P<text>.+)", re.IGNORECASE
)
_SEND_LAST = re.compile(rf"(?:send|say|post|write) (?P<text>.+) (?:to|on|in) {_CHANNEL}", re.IGNORECASE)
_ANSWER = re.compile(
    rf"answer (?:(?:questions|messages|what comes|what is said) )?(?:on|in) {_CHANNEL}[.!]?", re.IGNORECASE
)
_COMES = r"(?:something|anything|a message|somebody|someone|anybody)[a-z ]{0,20}(?: on| in)"
_TELL_CHANNEL = re.compile(rf"(?:tell|notify|warn) me (?:when|if) {_COMES} {_CHANNEL}[.!]?", re.IGNORECASE)
_WHEN_CHANNEL = re.compile(rf"when {_COMES} {_CHANNEL}[:,] (?P<prompt>.+)", re.IGNORECASE)
_CHANGES = r"(?:changes|has changed|is changed|is written|appears|comes|goes)"
_TELL_FILE = re.compile(rf"(?:tell|notify|warn) me (?:when|if) {_PATH} {_CHANGES}[.!]?", re.IGNORECASE)
_WHEN_FILE = re.compile(rf"when {_PATH} {_CHANGES}[:,] (?P<prompt>.+)", re.IGNORECASE)
