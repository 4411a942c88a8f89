"""What a page for people shows of a session: facts, turns, what sub-agents did, artifacts and branches.

Markdown and HTML are two ways to write the same `Printed`. Times are UTC and nothing depends on the machine, so the
same log always gives the same page.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from playhead.features.reading import View
from playhead.formats.redaction import Redactor
from playhead.formats.shown import at_utc, one_line, visible
from playhead.model.body import object_in, text_in
from playhead.model.event import Event
from playhead.model.path import Branch
from playhead.session import Session
from playhead.views.timeline import label
from playhead.views.transcript import Entry, transcript
from playhead.views.turns import TurnSpan, turns

VALUE_CHARS_MAX = 160
"""Longest summary of a tool's arguments; the whole of them is below it."""

DEPTH_MAX = 20
"""Deepest nesting of runs within runs; one that lies deeper is shown after the turns."""

TOOL_MARKS = {"running": "…", "completed": "✓", "failed": "✗", "interrupted": "✗"}
MARKERS = {
    "compaction": "Summary that the model is sent in place of what came before",
    "interrupt": "Question to a person",
    "answer": "Answer",
    "sub_agent": "Sub-agent",
    "job": "Job",
    "trigger": "Trigger",
    "channel": "Channel",
    "artifact": "Artifact",
    "redacted": "Taken out of the log",
}
"""What a page calls an entry that is no message."""


class Shown(msgspec.Struct, frozen=True):
    """An entry of the transcript, and, where it is a sub-agent's run, what is in that run."""

    entry: Entry
    run: tuple[Shown, ...] = ()


class TurnShown(msgspec.Struct, frozen=True):
    """A turn with its entries. turn is None for what came before the first."""

    turn: TurnSpan | None
    entries: tuple[Shown, ...]


class BranchShown(msgspec.Struct, frozen=True):
    """A branch, and the line of the event that it ends at."""

    branch: Branch
    ends_with: str


class Printed(msgspec.Struct, frozen=True):
    """A page. facts: name and text, in the order of reading. other_scopes: entries of scopes that no entry leads to.
    artifacts: bodies of the events that saved them, the newest version of each name."""

    title: str
    facts: tuple[tuple[str, str], ...]
    turns: tuple[TurnShown, ...]
    other_scopes: tuple[tuple[str, tuple[Shown, ...]], ...]
    artifacts: tuple[dict[str, Any], ...]
    branches: tuple[BranchShown, ...]


def printed(session: Session, *, branch: int | None = None, redactor: Redactor | None = None) -> Printed:
    """Return the page of the current path, or of the one that ends at event `branch`. Reads that whole path.

    Raises `EventNotFound` for a branch that is none.
    """
    view: View = session if branch is None else session.at(branch)
    path = [masked(event, redactor) for event in view.path()]
    by_scope = _by_scope(path)
    main = _run(None, by_scope)
    rest = []
    while by_scope:
        scope = next(iter(by_scope))
        rest.append((scope or "", _run(scope, by_scope)))
    artifacts = [event for event in path if event.kind == "artifact_saved" and event.body]
    newest = {text_in(event.body, "name"): event.body for event in artifacts}
    return Printed(
        title=_masked(session.summary().title, redactor),
        facts=_facts(session, redactor),
        turns=_in_turns(main, turns(path)),
        other_scopes=tuple((scope, entries) for scope, entries in rest if entries),
        artifacts=tuple(newest.values()),
        branches=_branches(session, redactor),
    )


def masked(event: Event, redactor: Redactor | None) -> Event:
    """Return an event with its texts masked, where that was asked for."""
    if redactor is None:
        return event
    return msgspec.structs.replace(
        event,
        body=redactor.body(event.body),
        agent=redactor.optional(event.agent),
        scope=redactor.optional(event.scope),
    )


def whole(value: Any) -> str:
    """Return a tool's arguments or response to be read whole: text as it is, anything else as indented JSON."""
    return visible(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False))


def in_short(value: Any) -> str:
    """Return the beginning of a value in one line. A large one is not written out whole to be cut."""
    line = one_line(_short(value, depth_left=3))
    return line if len(line) <= VALUE_CHARS_MAX else line[: VALUE_CHARS_MAX - 1] + "…"


def who(entry: Entry) -> str:
    """Return who says a message: the person is `You`, and what nobody typed is a note or a task."""
    if entry.role == "user":
        if entry.agent == "user":
            return "You"
        return "Note to the agent" if entry.scope is None else "Task"
    return one_line(entry.agent or entry.role or "Note")


def _by_scope(path: Iterable[Event]) -> dict[str | None, list[Event]]:
    """Return the events of each scope, with the ends of the turns that it took part in."""
    by_scope: dict[str | None, list[Event]] = {}
    scopes_of: defaultdict[str | None, dict[str | None, None]] = defaultdict(dict)
    for event in path:
        scopes_of[event.turn].setdefault(event.scope)
        for scope in scopes_of[event.turn] if event.kind == "turn_ended" else (event.scope,):
            by_scope.setdefault(scope, []).append(event)
    return by_scope


def _run(scope: str | None, by_scope: dict[str | None, list[Event]], *, depth: int = 0) -> tuple[Shown, ...]:
    """Return the entries of a scope, which is taken out, and of the sub-agents' runs in it. No run is shown twice."""
    found = []
    for entry in transcript(by_scope.pop(scope, []), scope=scope):
        label = text_in(entry.data or {}, "agent") if entry.kind == "sub_agent" else None
        is_run = label is not None and label in by_scope and depth < DEPTH_MAX
        found.append(Shown(entry, _run(label, by_scope, depth=depth + 1) if is_run else ()))
    return tuple(found)


def _in_turns(entries: Iterable[Shown], spans: list[TurnSpan]) -> tuple[TurnShown, ...]:
    """Return every turn with the entries from its first event on, and before them, if there is any, what came first."""
    placed: list[tuple[TurnSpan | None, list[Shown]]] = [(None, []), *((span, []) for span in spans)]
    index = 0
    for shown in entries:
        while index < len(spans) and spans[index].first_seq <= shown.entry.seq:
            index += 1
        placed[index][1].append(shown)
    return tuple(TurnShown(span, tuple(found)) for span, found in placed if span is not None or found)


def _facts(session: Session, redactor: Redactor | None) -> tuple[tuple[str, str], ...]:
    row = session.summary()
    parent = object_in({"forked_from": row.forked_from}, "forked_from")
    tokens = f"{row.input_tokens} in, {row.output_tokens} out" if row.input_tokens or row.output_tokens else ""
    said = {
        "Session": str(session.key),
        "Began": at_utc(row.created_at),
        "Last active": at_utc(row.last_active_at),
        "Status": row.status,
        "Agents": ", ".join(row.agents),
        "Labels": ", ".join(row.labels),
        "Folder": row.cwd or "",
        "Brought in from": row.origin or "",
        "Fork of": f"{parent.get('session', '')} at event {parent.get('seq', '')}" if parent else "",
        "Size": f"{row.turn_count} turns, {row.event_count} events",
        "Tokens": tokens,
    }
    return tuple((name, one_line(_masked(text, redactor))) for name, text in said.items() if text)


def _branches(session: Session, redactor: Redactor | None) -> tuple[BranchShown, ...]:
    found = session.branches()
    return tuple(BranchShown(branch, label(masked(session.event(branch.tip_seq), redactor))) for branch in found)


def _short(value: Any, *, depth_left: int) -> str:
    if isinstance(value, str):
        return value[: 4 * VALUE_CHARS_MAX]
    if isinstance(value, Mapping):
        if not depth_left:
            return "{…}"
        items = list(value.items())[:8]
        return ", ".join(f"{name}={_short(item, depth_left=depth_left - 1)}" for name, item in items)
    if isinstance(value, list):
        return ", ".join(_short(item, depth_left=depth_left - 1) for item in value[:8]) if depth_left else "[…]"
    return "" if value is None else json.dumps(value)


def _masked(text: str, redactor: Redactor | None) -> str:
    return text if redactor is None else redactor.text(text)
