"""The listing row of a session: what a list shows of it without opening it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from playhead.model.body import object_in, parts_in, text_in
from playhead.model.event import Event
from playhead.model.parts import text_of
from playhead.views.facts import Facts
from playhead.views.fold import Fold

PREVIEW_CHARS_MAX = 200

SUMMARY_VERSION = 1
"""Version of a row's fields. A kept row of another version lacks some, so it is worked out again."""

TITLE_CHARS_MAX = 80
"""Longest title that is taken from what was said; one that was set may be as long as a preview."""


class Summary(msgspec.Struct, frozen=True):
    """What a list shows.

    seq: the event up to which it holds. title: as set, else the beginning of the first prompt, else `New session`.
    preview, last_user, last_agent: one line of the first prompt, the last one, the last reply; at most
    `PREVIEW_CHARS_MAX` characters each, "" where nobody wrote text. Counts are of the current path: turns, messages of
    the main conversation (user and agent), tool calls everywhere, tokens where known; `event_count` is of the whole
    log. status: as set, but for an open session `waiting` while an interrupt waits, `interrupted` where a turn began
    and did not end. created_at, last_active_at: UTC seconds. config, config_type, node, group: what the session's
    configuration calls itself (its `name`, else `path`), its `type`, and the machine and group it ran in. version: of
    these fields (`SUMMARY_VERSION`).
    """

    seq: int
    title: str
    preview: str
    last_user: str
    last_agent: str
    status: str
    agents: tuple[str, ...]
    labels: tuple[str, ...]
    turn_count: int
    user_message_count: int
    agent_message_count: int
    tool_call_count: int
    event_count: int
    input_tokens: int
    output_tokens: int
    created_at: float
    last_active_at: float
    is_titled: bool = False
    cwd: str | None = None
    origin: str | None = None
    forked_from: dict[str, Any] | None = None
    waiting_count: int = 0
    config: str | None = None
    config_type: str | None = None
    node: str | None = None
    group: str | None = None
    version: int = 0


def wanted_seqs(fold: Fold) -> list[int]:
    """Return the seqs of the events that `summary` reads, besides the facts: at most five."""
    said = fold.slots.get("said", [0, 0, 0])
    return sorted({seq for seq in (1, *said, fold.head) if seq})


def summary(fold: Fold, facts: Facts, events: Mapping[int, Event], *, seq: int, last_at: float) -> Summary:
    """Return the listing row, from the live fold and the events that `wanted_seqs` names.

    seq and last_at: seq and `at` of the log's last event.
    """
    started = events[1]
    first, last_user, last_agent = (_line(events.get(one)) for one in fold.slots.get("said", [0, 0, 0]))
    users, agents, calls, tokens_in, tokens_out = fold.slots.get("counts", [0, 0, 0, 0, 0])
    waiting = len(fold.named("int"))
    status = _readable(facts.status)
    if status == "open":
        status = "waiting" if waiting else "interrupted" if fold.open_turn else "open"
    names = [name for name in fold.slots.get("agents", []) if name != "user"]
    config = object_in(started.body, "config")
    return Summary(
        seq=seq,
        title=_cut(facts.title or "", PREVIEW_CHARS_MAX) or _cut(first, TITLE_CHARS_MAX) or "New session",
        preview=first,
        last_user=last_user,
        last_agent=last_agent,
        status=status,
        agents=tuple(names),
        labels=tuple(_readable(label) for label in facts.labels),
        turn_count=fold.turn_count,
        user_message_count=users,
        agent_message_count=agents,
        tool_call_count=calls,
        event_count=seq,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        created_at=started.at,
        last_active_at=max(last_at, started.at),
        is_titled=bool(facts.title),
        cwd=_readable(text_in(started.body, "cwd") or "") or None,
        origin=_readable(text_in(started.body, "origin") or "") or None,
        forked_from=_forked_from(started.body),
        waiting_count=waiting,
        config=_name_in(config, "name") or _name_in(config, "path"),
        config_type=_name_in(config, "type"),
        node=_name_in(config, "node"),
        group=_name_in(config, "group"),
        version=SUMMARY_VERSION,
    )


def _line(event: Event | None) -> str:
    """Return the beginning of what a message says, in one line."""
    return _cut(text_of(parts_in(event.body)), PREVIEW_CHARS_MAX) if event is not None else ""


def _cut(text: str, chars_max: int) -> str:
    # Only so much of a long text is looked at; four times the room leaves enough after white space is taken out.
    line = " ".join(_readable(text[: chars_max * 4]).split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def _name_in(config: Mapping[str, Any], field: str) -> str | None:
    """Return what a configuration says in a field, in one line; None where it says nothing."""
    return _cut(text_in(config, field) or "", PREVIEW_CHARS_MAX) or None


def _readable(text: str) -> str:
    """Return text that plain UTF-8 can hold: a row is kept and sent as it is, and half a surrogate pair is not text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _forked_from(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return where a session was forked from: a flat object of names and numbers, or None."""
    fields = object_in(body, "forked_from").items()
    named = {_readable(name): _readable(value) if isinstance(value, str) else value for name, value in fields}
    return {name: value for name, value in named.items() if isinstance(value, str | int)} or None
