"""The live fold: where everything that matters on a path stands, kept up to date one event at a time.

It holds positions (seq) and a few counters, never text. All views and the resume start from it, a snapshot is a saved
copy of it, and a full replay must give the same slots as a snapshot and the tail after it.

Slots (see `model/snapshot.py` for how they are saved); SEP is a line feed:

    path                      ranges of the path
    turns                     [count, id of the last turn, its first seq, 1 while it is open]
    counts                    [user messages, agent messages, tool calls, input tokens, output tokens]
    said                      [first user text, last user text, last agent text] of the main conversation
    replies                   {SCOPE: [message id, agent, input tokens, output tokens]} of the turn's last replies
    agents                    names of the first agents that wrote (sub-agents without their run number), in order
    conv:SCOPE                ranges of the conversation, in reading order (SCOPE is empty for the main one)
    comp:SCOPE                [[compaction's seq, first covered seq, last covered seq]] in force
    sys:SCOPE                 [[system messages before the first other message], newest one after it or 0]
    call:SCOPE SEP ID         seq of a tool call without a response
    state:SCOPE SEP KEY       seq of the event that set the key last
    int:ID                    seq of a waiting interrupt
    job:ID                    seq of the last change of a job that runs
    trig:ID                   seq of the last change of a trigger in force
    chan:NAME                 [count, seq of the last message]
    art:NAME                  seq of the newest version
    run:LABEL                 number of the last run of a sub-agent

Where a name follows SCOPE, line feeds in the scope are escaped, so that the first SEP ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from playhead.model import path as paths
from playhead.model.body import names_in, objects_in, parts_in, text_in, token_count
from playhead.model.event import SHARED_SCOPES, Event, begins_turn, is_fact
from playhead.model.ids import run_of, without_runs
from playhead.model.parts import call_id, content_of
from playhead.model.path import Ranges
from playhead.model.snapshot import Slots, copied
from playhead.views.reply import reply_key

SEP = "\n"

AGENTS_MAX = 100
"""Most agents that are listed: a program that names every run anew must not make every snapshot longer."""

REPLIES_MAX = 16
"""Scopes whose last reply is remembered, the newest: more than speak at the same time."""

ENDED = frozenset({"completed", "failed", "cancelled", "interrupted"})
"""Statuses after which a job or a turn runs no longer."""


class Fold:
    """The fold of one path. `apply` events in path order; facts are ignored.

    Values in `slots` are replaced, or grow at their end where they are ranges: a snapshot of them stays as it is.
    Not safe for use by several threads at once.
    """

    def __init__(self, slots: Slots | None = None) -> None:
        self.slots: Slots = slots if slots is not None else {}

    def copy(self) -> Fold:
        """Return a fold that goes its own way from here."""
        return Fold(copied(self.slots))

    def apply_all(self, events: Iterable[Event], seq_of: Mapping[str, int] | None = None) -> Fold:
        """Apply events in path order and return self. `seq_of` resolves ids of events before the first of them."""
        known = dict(seq_of or {})
        for event in events:
            known[event.id] = event.seq
            self.apply(event, known)
        return self

    def apply(self, event: Event, seq_of: Mapping[str, int]) -> None:
        """Take in the next event of the path.

        `seq_of` resolves the event ids that its body refers to (`references` lists them). It may know ids that are not
        on the path: they count for nothing.
        """
        if is_fact(event.kind, event.body):
            return
        paths.extend(self.slots.setdefault("path", []), event.seq)
        if event.turn is not None:
            self._count_turn(event)
        if event.agent is not None:
            self._note_agent(event.agent)
        handler = _HANDLERS.get(event.kind)
        if handler is not None:
            handler(self, event, seq_of)

    # What the fold knows, as plain values.

    @property
    def path(self) -> Ranges:
        """Ranges of the path, ascending; [] before the first event."""
        ranges: Ranges = self.slots.get("path", [])
        return ranges

    @property
    def head(self) -> int:
        """Seq of the last event of the path, 0 before the first."""
        return self.path[-1][1] if self.path else 0

    @property
    def turn_count(self) -> int:
        """Turns that began on the path. `views/turns.py` lists them."""
        return int(self.slots["turns"][0]) if "turns" in self.slots else 0

    @property
    def open_turn(self) -> str | None:
        """Id of the turn that began and has not ended, or None."""
        turns = self.slots.get("turns")
        return turns[1] if turns and turns[3] else None

    def conversation(self, scope: str | None) -> Ranges:
        """Positions of the conversation of a scope (None for the main one), in reading order."""
        ranges: Ranges = self.slots.get(f"conv:{scope or ''}", [])
        return ranges

    def named(self, prefix: str) -> dict[str, Any]:
        """Return the slots of one kind (`int`, `job`, `trig`, `chan`, `art`, `run`, `call` …), less its prefix."""
        start = f"{prefix}:"
        return {slot[len(start) :]: value for slot, value in self.slots.items() if slot.startswith(start)}

    def state_positions(self) -> dict[str, dict[str, int]]:
        """Return {state scope: {key: seq of the event that set it}}."""
        found: dict[str, dict[str, int]] = {}
        for name, seq in self.named("state").items():
            scope, key = _unscoped(name)
            found.setdefault(scope, {})[key] = seq
        return found

    def open_calls(self) -> dict[tuple[str | None, str], int]:
        """Return the tool calls without a response: (scope, call id) to the seq of the message that made it."""
        calls: dict[tuple[str | None, str], int] = {}
        for name, seq in self.named("call").items():
            scope, call = _unscoped(name)
            calls[scope or None, call] = seq
        return calls

    # One method per kind that moves a slot.

    def _count_turn(self, event: Event) -> None:
        turns = self.slots.get("turns", [0, None, 0, 0])
        if begins_turn(event, turns[1]):
            turns = self.slots["turns"] = [turns[0] + 1, event.turn, event.seq, 0]
            self.slots.pop("replies", None)
        if event.turn != turns[1]:
            return
        if event.kind == "turn_started":
            self.slots["turns"] = [*turns[:3], 1]
        elif event.kind == "turn_ended":
            self.slots["turns"] = [*turns[:3], 0]
            self.slots.pop("replies", None)

    def _note_agent(self, label: str) -> None:
        name = without_runs(label)
        agents: list[str] = self.slots.get("agents", [])
        if name not in agents and len(agents) < AGENTS_MAX:
            self.slots["agents"] = [*agents, name]
        if name != label:
            self._note_run(label)

    def _note_run(self, label: str) -> None:
        run = run_of(label)
        if run is not None:
            slot = f"run:{run[0]}"
            self.slots[slot] = max(run[1], self.slots.get(slot, 0))

    def _message(self, event: Event, seq_of: Mapping[str, int]) -> None:
        scope = event.scope or ""
        role, parts = event.body.get("role"), parts_in(event.body)
        if role == "system" and not event.body.get("injected"):
            self._note_system(event.seq, scope)
        paths.extend(self.slots.setdefault(f"conv:{scope}", []), event.seq)
        call_count, answered = 0, []
        for part in parts:
            kind = part.get("type")
            if kind == "tool_call":
                call_count += 1
                if (id := call_id(part)) is not None:
                    self.slots[_scoped("call", scope, id)] = event.seq
            elif kind == "tool_call_response":
                answered.append(call_id(part))
        for id in answered:
            if id is not None:
                self.slots.pop(_scoped("call", scope, id), None)
        self._count_message(event, role, parts, call_count=call_count)

    def _note_system(self, seq: int, scope: str) -> None:
        slot = f"sys:{scope}"
        leading, _ = self.slots.get(slot, [[], 0])
        if paths.count(self.conversation(scope)) == len(leading):
            self.slots[slot] = [[*leading, seq], 0]
        else:
            self.slots[slot] = [leading, seq]

    def _count_message(self, event: Event, role: Any, parts: list[dict[str, Any]], *, call_count: int) -> None:
        is_main = event.scope is None
        users, agents, calls, tokens_in, tokens_out = self.slots.get("counts", [0, 0, 0, 0, 0])
        is_user = role == "user" and not event.body.get("injected") and not _only_responses(parts)
        is_first, more_in, more_out = self._count_reply(event)
        self.slots["counts"] = [
            users + (is_main and is_user),
            agents + (is_main and is_first and role == "assistant"),
            calls + call_count,
            tokens_in + more_in,
            tokens_out + more_out,
        ]
        if is_main and (is_user or role == "assistant"):
            self._note_said(event.seq, parts, is_user=is_user)

    def _count_reply(self, event: Event) -> tuple[bool, int, int]:
        """Return whether a message begins a reply, and the input and output tokens that it adds.

        A reply in pieces repeats its usage, growing, on each of them: what the last pieces said is not added again.
        """
        tokens_in = tokens_out = 0
        if "usage" in event.body:
            tokens_in = token_count(event.body, "input_tokens") or 0
            tokens_out = token_count(event.body, "output_tokens") or 0
        key = reply_key(event)
        if key is None:
            return True, tokens_in, tokens_out
        replies, scope, reply = self.slots.get("replies", {}), event.scope or "", [key[0], key[1]]
        *last, seen_in, seen_out = replies.get(scope, ["", None, 0, 0])
        if last != reply:
            seen_in = seen_out = 0
        if tokens_out < seen_out:
            tokens_in, tokens_out = seen_in, seen_out
        others = [(name, one) for name, one in replies.items() if name != scope][1 - REPLIES_MAX :]
        self.slots["replies"] = {**dict(others), scope: [*reply, tokens_in, tokens_out]}
        return last != reply, tokens_in - seen_in, tokens_out - seen_out

    def _note_said(self, seq: int, parts: list[dict[str, Any]], *, is_user: bool) -> None:
        if not any(content_of(part).strip() for part in parts if part.get("type") == "text"):
            return
        first, last_user, last_agent = self.slots.get("said", [0, 0, 0])
        self.slots["said"] = [first or seq, seq, last_agent] if is_user else [first, last_user, seq]

    def _compaction(self, event: Event, seq_of: Mapping[str, int]) -> None:
        scope = event.scope or ""
        if text_in(event.body, "summary") is None:
            return  # Redacted: there is nothing left that could stand in for the stretch.
        in_force: list[list[int]] = self.slots.get(f"comp:{scope}", [])
        stretch = self._stretch(event, seq_of, in_force)
        if stretch is None:
            # What it covers cannot be told, so nothing is hidden, and the summary is read where it was written.
            paths.extend(self.slots.setdefault(f"conv:{scope}", []), event.seq)
            return
        first, last = stretch
        superseded = [earlier for earlier in in_force if first <= earlier[1] and earlier[2] <= last]
        kept = [earlier for earlier in in_force if earlier not in superseded]
        leading, newest = self.slots.get(f"sys:{scope}", [[], 0])
        pieces = _stretches(first, last, around={earlier[0] for earlier in kept} | {*leading, newest})
        ranges, place = _cut(self.conversation(scope), [*pieces, *((earlier[0], earlier[0]) for earlier in superseded)])
        if place is None:
            return  # All of it is covered already by a summary that stays.
        self.slots[f"conv:{scope}"] = [*ranges[:place], [event.seq, event.seq], *ranges[place:]]
        self.slots[f"comp:{scope}"] = [*kept, [event.seq, first, last]]

    def _stretch(self, event: Event, seq_of: Mapping[str, int], in_force: list[list[int]]) -> tuple[int, int] | None:
        """Return the first and the last seq that a compaction covers, or None where its ends are not on the path.

        A summary as an end means the stretch that it stands in for.
        """
        covered = {seq: (first, last) for seq, first, last in in_force}
        ends = [seq_of.get(text_in(event.body, field) or "", 0) for field in ("from", "to")]
        if not all(paths.lies_on(self.path, seq) for seq in ends):
            return None
        first, last = covered.get(ends[0], (ends[0], 0))[0], covered.get(ends[1], (0, ends[1]))[1]
        return (first, last) if first <= last else None

    def _state(self, event: Event, seq_of: Mapping[str, int]) -> None:
        for scope, keys in names_in(event.body, "removed").items():
            for key in keys:
                self.slots.pop(_scoped("state", scope, key), None)
        self._set_state(event, "delta")

    def _started(self, event: Event, seq_of: Mapping[str, int]) -> None:
        self._set_state(event, "state")

    def _set_state(self, event: Event, field: str) -> None:
        for scope, values in objects_in(event.body, field).items():
            if scope not in SHARED_SCOPES:
                for key in values:
                    self.slots[_scoped("state", scope, key)] = event.seq

    def _interrupt_requested(self, event: Event, seq_of: Mapping[str, int]) -> None:
        id = text_in(event.body, "interrupt")
        if id is not None:
            self.slots[f"int:{id}"] = event.seq

    def _interrupt_answered(self, event: Event, seq_of: Mapping[str, int]) -> None:
        id = text_in(event.body, "interrupt")
        if id is None:
            # Redacted. It still was an answer, and all but certainly the one to the newest question.
            waiting = self.named("int")
            id = max(waiting, key=waiting.__getitem__, default="")
        self.slots.pop(f"int:{id}", None)

    def _job(self, event: Event, seq_of: Mapping[str, int]) -> None:
        id = text_in(event.body, "job")
        if id is not None and text_in(event.body, "status") in ENDED:
            self.slots.pop(f"job:{id}", None)
        elif id is not None:
            self.slots[f"job:{id}"] = event.seq
        self._note_run(text_in(event.body, "agent") or "")

    def _trigger(self, event: Event, seq_of: Mapping[str, int]) -> None:
        id = text_in(event.body, "trigger")
        if id is not None and event.body.get("status") == "removed":
            self.slots.pop(f"trig:{id}", None)
        elif id is not None:
            self.slots[f"trig:{id}"] = event.seq

    def _trigger_fired(self, event: Event, seq_of: Mapping[str, int]) -> None:
        if text_in(event.body, "prompt") is not None:
            paths.extend(self.slots.setdefault(f"conv:{event.scope or ''}", []), event.seq)

    def _channel(self, event: Event, seq_of: Mapping[str, int]) -> None:
        name = text_in(event.body, "channel")
        if name is not None:
            slot = f"chan:{name}"
            self.slots[slot] = [self.slots.get(slot, [0, 0])[0] + 1, event.seq]

    def _artifact(self, event: Event, seq_of: Mapping[str, int]) -> None:
        name = text_in(event.body, "name")
        if name is not None:
            self.slots[f"art:{name}"] = event.seq


def references(events: Iterable[Event]) -> set[str]:
    """Return the ids of earlier events that folding these needs to resolve."""
    compactions = [event.body for event in events if event.kind == "compaction"]
    ids = {text_in(body, field) for body in compactions for field in ("from", "to")}
    return {id for id in ids if id is not None}


def _cut(ranges: Ranges, stretches: Iterable[tuple[int, int]]) -> tuple[Ranges, int | None]:
    """Return the ranges less all stretches, and the index where the first of what is gone stood (None for nothing)."""
    place: int | None = None
    for first, last in stretches:
        ranges, index = paths.without(ranges, first, last)
        if index is not None:
            place = index if place is None else min(place, index)
    return ranges, place


def _stretches(first: int, last: int, *, around: Iterable[int]) -> list[tuple[int, int]]:
    """Cut `first` to `last` into pieces that leave out the seqs in `around`."""
    pieces = []
    for seq in sorted(seq for seq in around if first <= seq <= last):
        if first < seq:
            pieces.append((first, seq - 1))
        first = seq + 1
    if first <= last:
        pieces.append((first, last))
    return pieces


def _only_responses(parts: list[dict[str, Any]]) -> bool:
    return bool(parts) and all(part.get("type") == "tool_call_response" for part in parts)


def _scoped(prefix: str, scope: str, name: str) -> str:
    if "%" in scope or SEP in scope:
        scope = scope.replace("%", "%25").replace(SEP, "%0A")
    return f"{prefix}:{scope}{SEP}{name}"


def _unscoped(name: str) -> tuple[str, str]:
    scope, _, rest = name.partition(SEP)
    return scope.replace("%0A", SEP).replace("%25", "%"), rest


_HANDLERS: Mapping[str, Callable[[Fold, Event, Mapping[str, int]], None]] = {
    "session_started": Fold._started,
    "message": Fold._message,
    "compaction": Fold._compaction,
    "state_changed": Fold._state,
    "interrupt_requested": Fold._interrupt_requested,
    "interrupt_answered": Fold._interrupt_answered,
    "job_changed": Fold._job,
    "trigger_changed": Fold._trigger,
    "trigger_fired": Fold._trigger_fired,
    "channel_message": Fold._channel,
    "artifact_saved": Fold._artifact,
}
