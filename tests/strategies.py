"""Hypothesis strategies: JSON of every sort, and whole logs that rewind, compact, pause, interleave and repeat ids.

A log is drawn as a list of steps, each a verb and a few small numbers; `build` carries them out. The numbers choose
among what is there (modulo), from pools small enough that calls meet responses and ids come twice. So a failing log
shrinks to a short list of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from playhead.model.event import Event
from tests.log import Log, call, response

texts = st.text(st.characters(), max_size=12)
"""Any text, halves of surrogate pairs and NUL included."""

finite = st.floats(allow_nan=False, allow_infinity=False)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(min_value=-(2**200), max_value=2**200) | finite | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)

json_objects = st.dictionaries(texts, json_values, max_size=5)

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
"""Texts that may be an id or a name."""

SCOPES = (None, None, None, "coordinator/researcher:1", "coordinator/re%2Fviewer:2", "odd\nscope")
TURNS = (None, "turn-1", "turn-2", "turn-3")
AGENTS = (None, "user", "coordinator", "coordinator/researcher:1", "coordinator/researcher:12/reader:3")
CALLS = ("call-1", "call-2", "call-3", 7, None, "")
MESSAGES = (None, None, "msg-1", "msg-2")
STATUSES = ("running", "completed", "failed", "interrupted", "queued")

Step = tuple[str, int, int, int]

_T = TypeVar("_T")


class Steps:
    """Carries out steps on a log."""

    def __init__(self) -> None:
        self.log = Log()

    def take(self, step: Step) -> Event:
        verb, a, b, c = step
        event: Event = getattr(self, verb)(a, b, c)
        return event

    def user(self, a: int, b: int, c: int) -> Event:
        return self.log.user(f"Why does test {a} fail?", scope=_of(SCOPES, b), turn=_of(TURNS, c), by="user")

    def inject(self, a: int, b: int, c: int) -> Event:
        role = ("user", "system")[c % 2]
        return self.log.message(role, "Two minutes are left.", scope=_of(SCOPES, b), injected="clock")

    def system(self, a: int, b: int, c: int) -> Event:
        return self.log.message("system", f"You are a careful engineer, version {a}.", scope=_of(SCOPES, b))

    def reply(self, a: int, b: int, c: int) -> Event:
        usage = {"input_tokens": 100 + a, "output_tokens": c}
        return self.log.assistant(
            f"Because of step {a}." if a % 3 else "",
            scope=_of(SCOPES, b),
            by=_of(AGENTS, c),
            turn=_of(TURNS, a),
            usage=usage if a % 2 else None,
            message_id=_of(MESSAGES, b),
        )

    def calls(self, a: int, b: int, c: int) -> Event:
        parts = [call(_of(CALLS, a + index), ("run_tests", "read")[index % 2]) for index in range(1 + c % 3)]
        return self.log.assistant(*parts, scope=_of(SCOPES, b), by="coordinator", message_id=_of(MESSAGES, c))

    def respond(self, a: int, b: int, c: int) -> Event:
        parts = [response(_of(CALLS, a + index), f"result {a}") for index in range(1 + c % 2)]
        return self.log.message(("tool", "user", "assistant")[c % 3], *parts, scope=_of(SCOPES, b))

    def compact(self, a: int, b: int, c: int) -> Event:
        # Ends on the path are the rule; elsewhere in the log, nowhere, or the wrong way round they must do no harm.
        path = self.log.path()
        ids = [event.id for event in path] * 3 + [event.id for event in self.log.events] + ["no-such-event"]
        first, last = _of(ids, a * 7), _of(ids, b * 7)
        if c % 8 and path and first in self.log.seq_of() and last in self.log.seq_of():
            first, last = sorted((first, last), key=self.log.seq_of().__getitem__)
        body = {"from": first, "to": last, "summary": f"Summary {a}." if c % 5 else ""}
        return self.log.add("compaction", body, scope=_of(SCOPES, c))

    def rewind(self, a: int, b: int, c: int) -> Event:
        return self.log.move(_of(self.log.path(), a))

    def seek(self, a: int, b: int, c: int) -> Event:
        placed = {event.parent for event in self.log.events} | {self.log.head}
        return self.log.move(_of(sorted(placed - {0}), a))

    def start_turn(self, a: int, b: int, c: int) -> Event:
        return self.log.add("turn_started", cause="user", turn=_of(TURNS, a))

    def end_turn(self, a: int, b: int, c: int) -> Event:
        return self.log.add("turn_ended", status=_of(STATUSES, b), turn=_of(TURNS, a))

    def ask(self, a: int, b: int, c: int) -> Event:
        return self.log.add("interrupt_requested", interrupt=f"ask-{a % 3}", reason="confirmation", turn=_of(TURNS, b))

    def answer(self, a: int, b: int, c: int) -> Event:
        return self.log.add("interrupt_answered", interrupt=f"ask-{a % 4}", status="resolved", answer=b)

    def job(self, a: int, b: int, c: int) -> Event:
        kind = ("tool", "sub-agent", "background")[c % 3]
        return self.log.add(
            "job_changed", job=f"job-{a % 3}", kind=kind, status=_of(STATUSES, b), agent=_of(AGENTS, c), scope=None
        )

    def set_state(self, a: int, b: int, c: int) -> Event:
        scope = ("session", "agent:coordinator", "odd\n%scope")[b % 3]
        return self.log.add("state_changed", {"delta": {scope: {f"key\n{a % 3}": c}}})

    def drop_state(self, a: int, b: int, c: int) -> Event:
        scope = ("session", "agent:coordinator", "odd\n%scope")[b % 3]
        body: dict[str, Any] = {"removed": {scope: [f"key\n{a % 3}"]}}
        return self.log.add("state_changed", body | ({"delta": {"session": {"key\n1": a}}} if c % 3 == 0 else {}))

    def share_state(self, a: int, b: int, c: int) -> Event:
        scope = ("user", "app")[b % 2]
        return self.log.add("state_changed", {("delta" if c % 3 else "removed"): {scope: {f"key{a % 3}": c}}})

    def trigger(self, a: int, b: int, c: int) -> Event:
        return self.log.add(
            "trigger_changed", trigger=f"timer-{a % 3}", type="timer", status=("active", "removed")[b % 2]
        )

    def fire(self, a: int, b: int, c: int) -> Event:
        prompt = {"prompt": "It is nine o'clock."} if c % 3 else {}
        return self.log.add("trigger_fired", {"trigger": f"timer-{a % 3}", **prompt}, scope=_of(SCOPES, b))

    def send(self, a: int, b: int, c: int) -> Event:
        return self.log.add("channel_message", channel=f"plans {a % 2}", sender="coordinator", content=f"Step {b}")

    def save(self, a: int, b: int, c: int) -> Event:
        return self.log.add("artifact_saved", name=f"chart-{a % 3}.png", hash=f"sha256-{b}", size=c)

    def rename(self, a: int, b: int, c: int) -> Event:
        return self.log.add("session_changed", title=f"Flaky test {a}", labels=["ci"], status="open")

    def tombstone(self, a: int, b: int, c: int) -> Event:
        return self.log.add("redacted", events=[_of(self.log.events, a).id], reason="a key")

    def note(self, a: int, b: int, c: int) -> Event:
        return self.log.add("note", name="model_changed", by=_of(AGENTS, a), turn=_of(TURNS, b))


VERBS = tuple(name for name, value in vars(Steps).items() if not name.startswith("_") and name != "take")

# Verbs that shape paths and conversations come more often than those that stand alone.
_FREQUENT = ("user", "reply", "calls", "respond", "compact", "compact", "rewind", "seek", "system")

steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from((*VERBS, *_FREQUENT)), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)
)


def build(taken: Sequence[Step], after_each: Callable[[Log, Event], None] = lambda log, event: None) -> Log:
    """Return the log of some steps. `after_each` is called with the log and each new event."""
    machine = Steps()
    for step in taken:
        after_each(machine.log, machine.take(step))
    return machine.log


def many(step: st.SearchStrategy[_T], *, size_max: int = 60) -> st.SearchStrategy[list[_T]]:
    """Lists that are long by themselves and still shrink to short ones."""
    return st.lists(step, max_size=8) | st.lists(step, min_size=size_max // 3, max_size=size_max)


logs: st.SearchStrategy[Log] = many(steps).map(build)
"""Any log."""


def _of(pool: Sequence[_T], number: int) -> _T:
    return pool[number % len(pool)]
