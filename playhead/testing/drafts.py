"""Drafts of every kind for tests: one that is always the same, and Hypothesis strategies for all that could be.

`draft` builds the plain ones that a test names. `drafts` draws valid ones, with the small pools of ids that make calls
meet their responses and interrupts their answers, and with text and JSON that people and programs really send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from playhead.model.event import KINDS, Body, Draft
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER

FIRST_AT = 1_767_225_600.0
"""`at` of the draft numbered 0: 1 January 2026, UTC. Draft n is n seconds later."""

HOSTILE_TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "line\r\nline\u2028line",
    "\ud83d",
    "half \udc00 a pair",
    "null",
    "%_\\'\";--",
    "../../etc/passwd",
    "e\u0301 \u00e9",
    "👩‍👩‍👧 🏳️‍🌈",
    "\u202eright to left\u202c",
    "\ufeff\ufffe\uffff",
    "日本語のテキスト",
    "\U0010ffff",
)
"""Texts that trip careless code: empty, NUL, half a surrogate pair, line ends, quotes, look-alikes, direction marks."""

HOSTILE_NAMES = tuple(
    text for text in HOSTILE_TEXTS if text and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
)
"""Those of them that may be an id or a name: no NUL, no half of a surrogate pair."""


def draft(kind: str = "message", *, text: str = "How do I rotate the deploy key?", n: int = 1, **fields: Any) -> Draft:
    """Return the same valid draft for the same arguments. `n` tells its id and time from those of others.

    `fields` replaces fields of the draft (`agent`, `turn`, `parent` …), or its whole `body`.
    """
    given: dict[str, Any] = {"body": body(kind, text=text, n=n), "id": f"{kind}-{n}", "at": FIRST_AT + n}
    if kind == "head_moved":
        given["parent"] = 1
    return Draft(kind=kind, **{**given, **fields})


def started(*, n: int = 0, app: str = DEFAULT_APP, user: str = DEFAULT_USER) -> Draft:
    """Return the draft that begins a session."""
    return draft("session_started", n=n, body={"app": app, "user": user})


def moved(to: int, *, n: int, to_id: str = "message-1", why: str = "rewind") -> Draft:
    """Return the draft that moves the head to the event `to`."""
    return draft("head_moved", n=n, body={"to": to_id, "why": why}, parent=to)


def body(kind: str, *, text: str, n: int) -> Body:
    """Return a plain valid body for a kind."""
    bodies: Mapping[str, Body] = {
        "session_started": {"app": DEFAULT_APP, "user": DEFAULT_USER},
        "message": {"role": "user", "parts": [{"type": "text", "content": text}]},
        "turn_started": {"cause": "user"},
        "turn_ended": {"status": "completed"},
        "state_changed": {"delta": {"session": {f"key-{n}": text}}},
        "head_moved": {"to": "message-1", "why": "rewind"},
        "compaction": {"from": "message-1", "to": "message-2", "summary": text},
        "interrupt_requested": {"interrupt": f"int-{n}", "reason": "input_required", "question": text},
        "interrupt_answered": {"interrupt": f"int-{n}", "status": "answered", "answer": text},
        "job_changed": {"job": f"job-{n}", "kind": "tool", "status": "running"},
        "trigger_changed": {"trigger": f"trigger-{n}", "type": "timer", "status": "active"},
        "trigger_fired": {"trigger": f"trigger-{n}", "prompt": text},
        "channel_message": {"channel": "review", "sender": "coordinator", "content": text},
        "artifact_saved": {"name": "chart.png", "version": n, "hash": "sha256-" + "0" * 64, "size": 5},
        "session_changed": {"title": text},
        "redacted": {"events": [f"message-{n}"], "why": "a secret"},
        "note": {"name": "test", "text": text},
    }
    return bodies[kind]


@cache
def texts() -> SearchStrategy[str]:
    """Text as people write it, and as hostile programs send it."""
    words = st.sampled_from(["deploy key", "Why does test_upload fail?", "Grüße aus Köln", "connection reset"])
    return st.one_of(words, st.text(max_size=20), st.sampled_from(HOSTILE_TEXTS))


@cache
def some_texts() -> SearchStrategy[str]:
    """Text of at least one character."""
    return texts().filter(bool)


@cache
def names() -> SearchStrategy[str]:
    """Text that may be an id, an agent, a turn or a scope."""
    plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
    return st.one_of(st.sampled_from(HOSTILE_NAMES), plain)


@cache
def json_values() -> SearchStrategy[Any]:
    """Whatever JSON can hold, in small."""
    numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.just(2**100))
    leaves = st.one_of(st.none(), st.booleans(), numbers, texts())
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=6,
    )


def drafts(kinds: Collection[str] | None = None, *, ids: SearchStrategy[str] | None = None) -> SearchStrategy[Draft]:
    """Draw valid drafts of these kinds, or of any. A `head_moved` goes to the first event, which is always there."""
    wanted = KINDS if kinds is None else kinds
    # Failures shrink towards the first, and a message is the plainest.
    in_order = sorted(wanted, key=lambda kind: (kind != "message", kind))
    some = st.one_of([_drafts_of(kind, names() if ids is None else ids) for kind in in_order])

    @st.composite
    def drafts(draw: st.DrawFn) -> Draft:
        return draw(some)

    # Wrapped for its short name: Hypothesis writes a strategy out whole when it reports on one.
    return drafts()


@cache
def bodies(kind: str) -> SearchStrategy[Body]:
    """Draw valid bodies of one kind, some with fields that nobody reads."""
    if kind == "state_changed":
        return st.one_of(_state(_one_of("session", "agent:coordinator")), _state(_one_of("user", "app")))
    required, optional = _FIELDS[kind]
    extra = st.dictionaries(texts(), json_values(), max_size=2)
    return st.fixed_dictionaries(required, optional={**optional, "extra": extra})


def _drafts_of(kind: str, ids: SearchStrategy[str]) -> SearchStrategy[Draft]:
    return st.builds(
        Draft,
        kind=st.just(kind),
        body=bodies(kind),
        id=ids,
        at=st.floats(FIRST_AT, FIRST_AT + 86_400) | st.sampled_from([0, -1.5, 5e-324, 1e300]),
        agent=_AGENTS,
        turn=_TURNS,
        scope=_SCOPES,
        parent=st.just(1 if kind == "head_moved" else None),
    )


def _one_of(*values: str) -> SearchStrategy[str]:
    return st.sampled_from(values)


_AGENTS = st.none() | _one_of("user", "coordinator", "coordinator/researcher:1", "coordinator/researcher:2") | names()
_TURNS = st.none() | _one_of("t1", "t2", "t3") | names()
_SCOPES = st.none() | st.none() | _one_of("search:call-1", "coordinator/researcher:1") | names()
_CALLS = _one_of("call-1", "call-2", "call-3")
_EVENTS = _one_of("message-1", "message-2", "nobody")

_PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "content": texts()}),
    st.fixed_dictionaries({"type": st.just("reasoning"), "content": texts()}),
    st.fixed_dictionaries({"type": st.just("tool_call"), "id": _CALLS, "name": texts(), "arguments": json_values()}),
    st.fixed_dictionaries({"type": st.just("tool_call_response"), "id": _CALLS, "response": json_values()}),
    st.fixed_dictionaries(
        {"type": st.just("blob"), "content": st.just("aGVsbG8="), "mime_type": st.just("text/plain")}
    ),
    st.fixed_dictionaries({"type": st.just("something_new"), "whatever": json_values()}),
)
_USAGE = st.fixed_dictionaries(
    {}, optional={"input_tokens": st.integers(0, 2**70), "output_tokens": st.integers(0, 99)}
)
_KEYS = _one_of("title", "count", "seen") | texts().filter(lambda key: not key.startswith("temp:"))
_VALUES = st.dictionaries(_KEYS, json_values(), max_size=3)

_Fields = dict[str, SearchStrategy[Any]]

_FIELDS: Mapping[str, tuple[_Fields, _Fields]] = {
    "session_started": (
        {"app": some_texts(), "user": some_texts()},
        {"config": json_values(), "state": st.fixed_dictionaries({}, optional={"session": _VALUES})},
    ),
    "message": (
        {"role": _one_of("system", "user", "assistant", "tool"), "parts": st.lists(_PARTS, max_size=3)},
        {"model": texts(), "usage": _USAGE, "injected": st.booleans()},
    ),
    "turn_started": ({"cause": _one_of("user", "trigger", "channel", "resume")}, {}),
    "turn_ended": ({"status": _one_of("completed", "failed", "interrupted", "cancelled")}, {"usage": _USAGE}),
    "state_changed": ({}, {}),
    "head_moved": ({"to": _EVENTS, "why": _one_of("rewind", "edit", "regenerate", "switch")}, {}),
    "compaction": ({"from": _EVENTS, "to": _EVENTS, "summary": some_texts()}, {"decided_by": texts()}),
    "interrupt_requested": (
        {"interrupt": _one_of("int-1", "int-2"), "reason": some_texts()},
        {"question": texts(), "checkpoint": json_values()},
    ),
    "interrupt_answered": ({"interrupt": _one_of("int-1", "int-2"), "status": some_texts()}, {"answer": json_values()}),
    "job_changed": (
        {
            "job": _one_of("job-1", "job-2"),
            "kind": _one_of("tool", "sub-agent", "background"),
            "status": _one_of("running", "completed", "failed", "cancelled", "interrupted"),
        },
        {"agent": _one_of("coordinator/researcher:1", "coordinator/researcher:2"), "result": json_values()},
    ),
    "trigger_changed": (
        {"trigger": _one_of("tr-1", "tr-2"), "type": some_texts(), "status": _one_of("active", "removed")},
        {"resume": json_values()},
    ),
    "trigger_fired": ({"trigger": _one_of("tr-1", "tr-2")}, {"prompt": texts(), "payload": json_values()}),
    "channel_message": ({"channel": _one_of("review", "news"), "sender": some_texts()}, {"content": json_values()}),
    "artifact_saved": (
        {"name": _one_of("chart.png", "report.md"), "hash": st.just("sha256-" + "0" * 64), "size": st.integers(0)},
        {"version": st.integers(1, 9), "media_type": texts()},
    ),
    "session_changed": ({}, {"title": texts(), "labels": st.lists(texts(), max_size=2), "status": texts()}),
    "redacted": ({"events": st.lists(_EVENTS, max_size=2)}, {"why": texts()}),
    "note": ({"name": some_texts()}, {"value": json_values()}),
}


def _state(scopes: SearchStrategy[str]) -> SearchStrategy[Body]:
    """Draw the body of a state change in these scopes: what is set, what is removed, at least one of them."""
    delta = st.dictionaries(scopes, _VALUES, min_size=1, max_size=2)
    removed = st.dictionaries(scopes, st.lists(_KEYS, max_size=2), min_size=1, max_size=2)
    return st.one_of(
        st.fixed_dictionaries({"delta": delta}),
        st.fixed_dictionaries({"removed": removed}),
        st.fixed_dictionaries({"delta": delta, "removed": removed}),
    )
