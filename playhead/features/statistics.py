"""Statistics: what was done and what it took, counted from the logs of a store's sessions.

What is counted, and how:
- The whole log counts, all branches: a turn that was rewound was paid for as well.
- An event counts once. A fork begins with copies of its parent's events: those are passed over, unless the parent is
  not in the store; then the first session that holds a copy counts it.
- A reply that was recorded in pieces is one message, and counts the largest of the usages that its pieces state (pieces
  of one reply state the sum up to themselves). Tokens are what messages state and nothing is estimated:
  `input_tokens` and `output_tokens` of `usage`, and what of the input came from or went into a provider's cache, which
  some providers state apart from it.
- A cost counts where the log itself states one, in US dollars: `cost` of a message's usage, or the `costUSD` that
  Claude Code wrote beside it. Prices are looked up nowhere.
- Prompts are what people wrote: user messages of the main conversation that nobody put there for them. Replies and
  tool calls are those of all agents.
- A turn counts in each group that something of it falls into, and so does a session: with more than one group, their
  sum may exceed the total.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from playhead.errors import PlayheadError
from playhead.features.listing import each_session
from playhead.model.body import number_in, object_in, parts_in, text_in, token_count
from playhead.model.event import Event
from playhead.model.ids import SessionKey, without_runs
from playhead.model.parts import call_id
from playhead.stores.base import EVENTS_PAGE_MAX, Store
from playhead.stores.listing import ListingRow, Wanted
from playhead.views.reply import ReplyKey, reply_key

By = Literal["model", "agent", "day", "tool"]

OTHER = ""
"""The group of what has none: a prompt has no model, a message no tool."""

SLACK_S = 86_400.0
"""A session whose last event is so long before the time asked for is not read: clocks go back by less than that."""

_KINDS = ("message", "turn_started", "trigger_fired")


class Count(msgspec.Struct):
    """What was counted. cost_usd: None where no log states a cost."""

    session_count: int = 0
    turn_count: int = 0
    prompt_count: int = 0
    reply_count: int = 0
    tool_call_count: int = 0
    tool_error_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None

    def add(self, other: Count) -> None:
        for field in self.__struct_fields__[:-1]:
            setattr(self, field, getattr(self, field) + getattr(other, field))
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + other.cost_usd


class Statistics(msgspec.Struct, frozen=True):
    """total: of all sessions. groups: by what was asked for, in order of name; {} where nothing was. unreadable_count:
    sessions that could not be read and count nowhere. size_bytes: what the whole store takes on disk."""

    total: Count
    groups: dict[str, Count]
    unreadable_count: int
    size_bytes: int


def utc_day(at: float) -> str:
    """Return the day of UTC seconds, `2026-08-01`; "" where no calendar reaches."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return ""


def statistics(
    store: Store,
    *,
    by: By | None = None,
    since: float | None = None,
    until: float | None = None,
    day_of: Callable[[float], str] = utc_day,
    on_progress: Callable[[int, int], None] | None = None,
) -> Statistics:
    """Count a store's sessions, from what happened at since <= at < until (UTC seconds).

    Which sessions there are, their rows in the list say. Reads the messages of every session that was active in that
    time, a page at a time, and keeps of one session the ids of its turns, replies and open calls. Writes nothing to any
    session. day_of: the day that a moment belongs to. on_progress: called before each session with how many were read
    and how many there are. A session that cannot be read is left out whole.
    """
    rows = sorted(each_session(store, Wanted()), key=lambda row: row.key)
    read = [row for row in rows if _may_count(row, since)]
    copies = _Copies(store, {row.key for row in rows}, read)
    total, groups = Count(), dict[str, Count]()
    unreadable_count = 0
    for index, row in enumerate(read):
        if on_progress is not None:
            on_progress(index, len(read))
        session = _Session(by, day_of)
        try:
            for event in copies.without(row.key, _events(store, row.key)):
                if (since is None or event.at >= since) and (until is None or event.at < until):
                    session.take(event)
        except PlayheadError:
            unreadable_count += 1
            continue
        for name, count in session.finished().items():
            groups.setdefault(name, Count()).add(count)
        total.add(session.total)
    return Statistics(total, {name: groups[name] for name in sorted(groups)}, unreadable_count, store.size_bytes())


def _may_count(row: ListingRow, since: float | None) -> bool:
    """Return True for a session to read. What its row cannot say of it, its messages may: they are tried."""
    return row.summary is None or since is None or row.summary.last_active_at >= since - SLACK_S


def _events(store: Store, key: SessionKey) -> Iterator[Event]:
    after = 0
    while page := store.events(key, after=after, kinds=_KINDS):
        yield from page
        after = page[-1].seq
        if len(page) < EVENTS_PAGE_MAX:
            return


class _Copies:
    """Which events of forks are copies that count in another session.

    Where the parent is there, all copies are passed over. Where it is gone, any other session may hold the same event
    (another fork of it, or the session that it was a fork of itself), so the ids of those copies are kept, and each
    counts where it is first met.
    """

    def __init__(self, store: Store, keys: set[SessionKey], rows: Iterable[ListingRow]) -> None:
        self._copied_until: dict[SessionKey, int] = {}
        self._shared: set[str] = set()
        self._met: set[str] = set()
        for row in rows:
            with contextlib.suppress(PlayheadError):  # It is met again as it is read, and counted as unreadable.
                self._look(store, keys, row)

    def without(self, key: SessionKey, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events of a session that count in it."""
        copied_until = self._copied_until.get(key, 0)
        for event in events:
            if event.seq <= copied_until:
                continue
            if event.id in self._shared:
                if event.id in self._met:
                    continue
                self._met.add(event.id)
            yield event

    def _look(self, store: Store, keys: set[SessionKey], row: ListingRow) -> None:
        origin = _forked_from(store, row)
        if not origin:
            return
        last_id = str(origin.get("event"))
        copied_until = store.seq_of(row.key, [last_id]).get(last_id, 0)
        parent = SessionKey(*(str(origin.get(field)) for field in ("app", "user", "session")))
        if parent in keys:
            self._copied_until[row.key] = copied_until
            return
        for event in _events(store, row.key):
            if event.seq > copied_until:
                break
            self._shared.add(event.id)


def _forked_from(store: Store, row: ListingRow) -> dict[str, Any]:
    """Return where a session was forked from, {} for one that is no fork."""
    if row.summary is not None:
        return row.summary.forked_from or {}
    first = store.events(row.key, limit=1)
    return object_in(first[0].body, "forked_from") if first else {}


class _Reply(msgspec.Struct):
    """A reply, as far as its pieces were read. used: the largest usage that they state."""

    agent: str
    day: str
    turn: str | None
    model: str = OTHER
    used: Count = msgspec.field(default_factory=Count)


class _Session:
    """The counts of one session, event by event."""

    def __init__(self, by: By | None, day_of: Callable[[float], str]) -> None:
        self.total = Count()
        self._by = by
        self._day_of = day_of
        self._groups: dict[str, Count] = {}
        self._turns: set[str] = set()
        self._turns_of: dict[str, set[str]] = {}
        self._replies: dict[ReplyKey, _Reply] = {}
        self._calls: dict[tuple[str | None, str], tuple[str, _Reply | None]] = {}

    def take(self, event: Event) -> None:
        """Count an event."""
        if event.kind != "message":
            if event.turn is not None:
                self._add(Count(), self._plain_group(event), event.turn)
            return
        parts = parts_in(event.body)
        key = reply_key(event)
        reply = self._piece_of(event, key) if key is not None else None
        if _is_prompt(event, parts):
            self._add(Count(prompt_count=1), self._plain_group(event), event.turn)
        for part in parts:
            if part.get("type") == "tool_call":
                self._call(event, part, reply)
            elif part.get("type") == "tool_call_response":
                self._response(event, part)

    def finished(self) -> dict[str, Count]:
        """Return the groups, once no event is left; `total` is complete then as well."""
        for reply in self._replies.values():
            reply.used.reply_count = 1
            self._add(reply.used, self._group_of(reply), reply.turn)
        self.total.turn_count = len(self._turns)
        is_counted = self._turns or self.total != Count()
        self.total.session_count = 1 if is_counted else 0
        for name, count in self._groups.items():
            count.turn_count = len(self._turns_of.get(name, ()))
            count.session_count = 1
        return self._groups

    def _piece_of(self, event: Event, key: ReplyKey) -> _Reply:
        reply = self._replies.get(key)
        if reply is None:
            reply = _Reply(without_runs(event.agent or OTHER), self._day_of(event.at), event.turn)
            self._replies[key] = reply
        reply.model = reply.model or text_in(event.body, "model") or OTHER
        used = _usage(event.body)
        if used.output_tokens >= reply.used.output_tokens:
            for field in _USED_FIELDS:
                setattr(reply.used, field, getattr(used, field) or getattr(reply.used, field))
        return reply

    def _call(self, event: Event, part: dict[str, Any], reply: _Reply | None) -> None:
        name = text_in(part, "name") or OTHER
        id = call_id(part)
        if id is not None:
            self._calls[event.scope, id] = (name, reply)
        self._count_tool(event, name, reply, Count(tool_call_count=1))

    def _response(self, event: Event, part: dict[str, Any]) -> None:
        name, reply = self._calls.pop((event.scope, call_id(part) or ""), (text_in(part, "name") or OTHER, None))
        if part.get("is_error") is True:
            self._count_tool(event, name, reply, Count(tool_error_count=1))

    def _count_tool(self, event: Event, name: str, reply: _Reply | None, count: Count) -> None:
        if self._by == "tool":
            self._add(count, name, event.turn)
        elif reply is not None:
            reply.used.add(count)
        else:
            self._add(count, self._plain_group(event), event.turn)

    def _plain_group(self, event: Event) -> str | None:
        """Return the group of what is no reply; None for no group at all."""
        if self._by == "agent":
            return without_runs(event.agent or OTHER)
        if self._by == "day":
            return self._day_of(event.at)
        return OTHER if self._by == "model" else None

    def _group_of(self, reply: _Reply) -> str | None:
        groups = {"model": reply.model, "agent": reply.agent, "day": reply.day}
        return groups.get(self._by) if self._by is not None else None

    def _add(self, count: Count, group: str | None, turn: str | None) -> None:
        self.total.add(count)
        if turn is not None:
            self._turns.add(turn)
        if group is not None:
            self._groups.setdefault(group, Count()).add(count)
            if turn is not None:
                self._turns_of.setdefault(group, set()).add(turn)


def _is_prompt(event: Event, parts: list[dict[str, Any]]) -> bool:
    """Return True for a user message of the main conversation that was neither put there nor gives tools' results."""
    if event.scope is not None or event.body.get("role") != "user" or event.body.get("injected"):
        return False
    return not parts or any(part.get("type") != "tool_call_response" for part in parts)


_USED_FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd")


def _usage(body: dict[str, Any]) -> Count:
    """Return the tokens and the cost that a message states. Providers spell the cache in two ways."""
    reads = token_count(body, "cache_read_input_tokens") or token_count(body, "cache_read_tokens")
    writes = token_count(body, "cache_creation_input_tokens") or token_count(body, "cache_write_tokens")
    return Count(
        input_tokens=token_count(body, "input_tokens") or 0,
        output_tokens=token_count(body, "output_tokens") or 0,
        cache_read_tokens=reads or 0,
        cache_write_tokens=writes or 0,
        cost_usd=_cost(body),
    )


def _cost(body: dict[str, Any]) -> float | None:
    cost = number_in(object_in(body, "usage"), "cost")
    if cost is None:
        cost = number_in(object_in(object_in(body, "extra"), "claude_code"), "costUSD")
    return float(cost) if cost is not None and 0 <= cost < _COST_USD_MAX else None


_COST_USD_MAX = 1e9
"""A larger cost of one message is a mistake, and an integer beyond any float would be an error."""
