"""A question to the passages of sessions that answer it: found by search, quoted word for word, each with its place."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from playhead.agents.quoting import reference
from playhead.agents.stretches import Stretch, telling_stretch
from playhead.errors import PlayheadError
from playhead.model.body import parts_in, text_in
from playhead.model.event import Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.model.parts import call_id, content_of, text_of
from playhead.search.find import Hit
from playhead.search.indexer import searchable_text
from playhead.search.query import STOP_WORDS, Query, Term, highlight, parse
from playhead.session import Sessions

OWN_CALL = "playhead-built-in-"
"""How ids of the built-in agent's own tool calls begin, so that its copies of others' words are never quoted again."""

HITS_MAX = 64
"""So many hits are weighed for one answer; more, up to `HITS_WIDENED_MAX`, where these hold too little to quote."""
HITS_WIDENED_MAX = 1_000
PASSAGES_MAX = 5
PASSAGE_CHARS_MAX = 360
OF_ONE_SESSION_MAX = 2
"""So many passages of one session, while other sessions have some."""
SHARE_MIN = 0.3
"""A passage that weighs less than this share of the best one is left out."""
ALIKE_MIN = 0.85
"""Two passages that share this much of the shorter one's words say the same."""

INJECTED_WEIGHT = 0.4
SUMMARY_WEIGHT = 0.8
TOOL_WEIGHT = 0.5
QUESTION_WEIGHT = 0.6
ABANDONED_WEIGHT = 0.7
"""What a passage weighs that nobody said, that a summary says, that a tool was given or gave back; and what is left of
the weight of a question, and of what lies on no current path. What a person or an agent said weighs 1."""

_KINDS = {"message", "compaction", "channel_message", "job_changed", "interrupt_requested", "interrupt_answered"}
_WORD = re.compile(r"\w+")
_ASKING = re.compile(
    r"\s*(?:please )?(?:compare|everything|find|show|list|tell me|what|where|who|why|how|which)\b", re.IGNORECASE
)

T = TypeVar("T")


class Passage(msgspec.Struct, frozen=True):
    """A stretch of an event, exactly as it is stored.

    id: `SESSION#SEQ`, or `PATH:LINES` of a document. who: the agent, or the role where no agent is named. tool: the
    tool whose call or result it is. is_thought: it is of reasoning that a model showed. is_here: it is of the session
    that asks. is_live: it lies on its session's current path. start: where in the event's text it begins, in characters
    from 0. weight: how well it answers, from 0 to 1, comparable between sessions and documents. topic: of several that
    were asked for, the one that it is about.
    """

    id: str
    text: str
    title: str
    who: str
    at: float
    tool: str | None = None
    is_thought: bool = False
    is_here: bool = False
    is_live: bool = True
    is_cut_before: bool = False
    is_cut_after: bool = False
    is_document: bool = False
    start: int = 0
    weight: float = 1.0
    topic: str = ""


class Passages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer. passages: the best ones, best first. more_count: further ones that `without` leads to.
    session_count: sessions searched, the one that asks among them. problem_count: those not searched to their end.
    What is none is not in the log."""

    passages: list[Passage]
    session_count: int
    more_count: int = 0
    problem_count: int = 0


def find_passages(
    sessions: Sessions,
    query: str,
    *,
    app: str = DEFAULT_APP,
    user: str = DEFAULT_USER,
    here: str | None = None,
    turn: str | None = None,
    without: Collection[str] = (),
    count: int = PASSAGES_MAX,
    is_source: Callable[[Hit], bool] | None = None,
) -> Passages:
    """Return the passages of a person's sessions that answer a question. Searches this app and this user alone.

    here: id of the session that asks. turn: id of the turn that asks, whose own events (the question!) are left out.
    without: ids of passages that were shown already. is_source: tells which hits may be quoted, all of them unless it
    is given. What a person or an agent said weighs more than what tools gave back, a question less than a statement, an
    abandoned branch less than the current path. Passages that say the same are shown once.
    """
    hit_count = HITS_MAX + len(without)
    while True:
        found = sessions.search(query, app=app, user=user, k=hit_count)
        told = [hit for hit in found.hits if turn is None or hit.turn != turn]
        told = told if is_source is None else [hit for hit in told if is_source(hit)]
        fresh = [(weight, one) for weight, one in _quotable(sessions, told, query) if one.id not in without]
        if len(fresh) >= count or len(found.hits) < hit_count or hit_count >= HITS_WIDENED_MAX:
            break
        # Earlier questions of this kind, and the answers to them, match best and are no answers.
        hit_count = min(hit_count * 4, HITS_WIDENED_MAX)
    chosen = _few_of_one(fresh, lambda weighed: weighed[1].key, count)
    titles = {key: _title(sessions, key) for key in {one.key for _, one in chosen}}
    return Passages(
        passages=[_passage(one, titles[one.key], weight=weight, here=here) for weight, one in chosen],
        more_count=len(fresh) - len(chosen),
        session_count=found.session_count,
        problem_count=len(found.problems),
    )


def best_of(found: Iterable[Passage], count: int) -> list[Passage]:
    """Return the best `count` of passages from several searches, best first, each thing once, few of one source."""
    ranked = sorted(found, key=lambda one: -one.weight)
    best = ranked[0].weight if ranked else 0.0
    telling = [one for one in ranked if one.weight >= best * SHARE_MIN]
    return _few_of_one(_distinct(telling, lambda one: one.text), lambda one: _source(one.id), count)


def _source(id: str) -> str:
    """Return the session or the document of a passage."""
    return id.rpartition("#")[0] or id.rpartition(":")[0]


_Weighed = tuple[float, "_Candidate"]


def _quotable(sessions: Sessions, hits: Sequence[Hit], query: str) -> list[_Weighed]:
    """Return what is worth quoting of the hits with its weight, best first, each thing once."""
    # Only what marks words is of interest here, and no date does.
    asked = parse(query, now=datetime.fromtimestamp(0, UTC))
    candidates = [one for hit in hits if (one := _candidate(sessions, hit, asked)) is not None]
    # What only repeats the question would be the best of them all.
    telling = [one for one in candidates if not _words(one.said) <= _words(query)]
    return _distinct(_ranked(telling, len(_wanted(asked))), lambda weighed: weighed[1].said)


class _Candidate(NamedTuple):
    """A hit with its event and what could be quoted of it.

    text: what it is quoted from. weight: by who said it, and how. covers: which of the things that were asked for (by
    number) the quote holds.
    """

    hit: Hit
    event: Event
    text: str
    stretch: Stretch
    weight: float
    covers: frozenset[int]

    @property
    def key(self) -> SessionKey:
        return SessionKey(self.hit.app, self.hit.user, self.hit.session)

    @property
    def id(self) -> str:
        return reference(self.key, self.event.seq)

    @property
    def said(self) -> str:
        return self.text[self.stretch.start : self.stretch.end]


def _candidate(sessions: Sessions, hit: Hit, asked: Query) -> _Candidate | None:
    """Return what could be quoted of a hit; None where it is no one's words, or a copy that the built-in agent made."""
    key = SessionKey(hit.app, hit.user, hit.session)
    try:
        event = _event(sessions, key, hit.seq)
        if event.kind not in _KINDS or _is_copy(sessions, key, event):
            return None
    except PlayheadError:
        return None  # Deleted since the search found it: what is gone is not quoted.
    text, stretch, weight = _telling(event, asked)
    said = text[stretch.start : stretch.end]
    if not said.strip():
        return None
    if event.body.get("role") == "user" and _asks(text):
        weight *= QUESTION_WEIGHT
    if not hit.is_live:
        weight *= ABANDONED_WEIGHT
    is_held = (bool(highlight(said, Query(terms=(term,)), len(said)).marks) for term in _wanted(asked))
    covers = frozenset(number for number, held in enumerate(is_held) if held)
    return _Candidate(hit, event, text, stretch, weight, covers)


def _asks(text: str) -> bool:
    """Whether a prompt asks for something, rather than to say it."""
    return text.rstrip().endswith(("?", "？")) or _ASKING.match(text) is not None


def _wanted(asked: Query) -> list[Term]:
    """Return what was asked for, less the plain words that say nothing."""
    telling = [term for term in asked.terms if not STOP_WORDS.issuperset(_WORD.findall(term.text.casefold()))]
    return [*telling, *asked.phrases, *(term for group in asked.any_groups for term in group)]


def _ranked(candidates: Sequence[_Candidate], wanted_count: int) -> list[_Weighed]:
    """Return the candidates worth quoting, best first: those that hold most of what was asked, and its rarest words.

    The scores of the search count as an order only. Where every bundle has an index of its own, a word is as common as
    its session makes it, and scores of two sessions do not compare. What nobody holds counts as well: a passage with
    one of three words is no whole answer, also where there is none that is better.
    """
    holders = Counter(number for one in candidates for number in one.covers)
    worth = {number: math.log(1 + len(candidates) / max(holders[number], 1)) for number in range(wanted_count)}
    whole = sum(worth.values())

    def weight(place: int, one: _Candidate) -> float:
        share = sum(worth[number] for number in one.covers) / whole if whole else 1.0
        return one.weight * share / (1 + place / HITS_MAX)

    weighed = [(weight(place, one), one) for place, one in enumerate(candidates)]
    best = max((weight for weight, _ in weighed), default=0.0)
    ranked = sorted(weighed, key=lambda one: -one[0])
    return [(weight, one) for weight, one in ranked if weight >= best * SHARE_MIN]


def _telling(event: Event, asked: Query) -> tuple[str, Stretch, float]:
    """Return the text to quote from, the stretch to quote, and its weight: what was said, where that answers."""
    if event.kind == "message":
        said = text_of(parts_in(event.body))
        stretch = telling_stretch(said, asked, PASSAGE_CHARS_MAX)
        if stretch.is_match:
            return said, stretch, INJECTED_WEIGHT if _is_injected(event) else 1.0
    everything = searchable_text(event)
    weight = SUMMARY_WEIGHT if event.kind == "compaction" else TOOL_WEIGHT
    return everything, telling_stretch(everything, asked, PASSAGE_CHARS_MAX), weight


def _is_injected(event: Event) -> bool:
    """Whether nobody said it: a system prompt, a reminder, a tool's text."""
    return bool(event.body.get("injected")) or event.body.get("role") in ("system", "tool")


def _is_copy(sessions: Sessions, key: SessionKey, event: Event) -> bool:
    """Whether the event is a call of the built-in agent's own tools, its result, the answer that quotes that, or of a
    sub-agent that it sent out for it."""
    if _is_own_tool(event) or _is_of_own_run(sessions, key, event):
        return True
    if event.body.get("role") != "assistant" or not event.parent:
        return False
    return _is_own_tool(_event(sessions, key, event.parent))


def _is_of_own_run(sessions: Sessions, key: SessionKey, event: Event) -> bool:
    """Whether the event is of a sub-agent's run that a call of the built-in agent's own tools began."""
    run = event.scope or (text_in(event.body, "agent") if event.kind == "job_changed" else None)
    # A run's first event is known by its id.
    begun = sessions.store.seq_of(key, [f"run-{run}"]).values() if run else ()
    parents = [_event(sessions, key, seq).parent for seq in begun]
    return any(_is_own_tool(_event(sessions, key, parent)) for parent in parents if parent)


def _is_own_tool(event: Event) -> bool:
    return any((call_id(part) or "").startswith(OWN_CALL) for part in parts_in(event.body))


def _distinct(ranked: Iterable[T], said: Callable[[T], str]) -> list[T]:
    """Leave out what something better says already."""
    kept: list[tuple[T, frozenset[str]]] = []
    for one in ranked:
        words = _words(said(one))
        if not any(_are_alike(words, other) for _, other in kept):
            kept.append((one, words))
    return [one for one, _ in kept]


def _are_alike(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= ALIKE_MIN * min(len(words), len(other))


def _words(text: str) -> frozenset[str]:
    """Return the words that say something, or all of them where none does."""
    words = frozenset(_WORD.findall(text.casefold()))
    return words - STOP_WORDS or words


def _few_of_one(ranked: Sequence[T], source: Callable[[T], Hashable], count: int) -> list[T]:
    """Return the best `count` in their order, few of one source while there are others."""
    of_source: Counter[Hashable] = Counter()
    first: list[int] = []
    rest: list[int] = []
    for index, one in enumerate(ranked):
        of_source[source(one)] += 1
        (first if of_source[source(one)] <= OF_ONE_SESSION_MAX else rest).append(index)
    return [ranked[index] for index in sorted([*first, *rest][:count])]


def _passage(one: _Candidate, title: str, *, weight: float, here: str | None) -> Passage:
    text, stretch = one.text, one.stretch
    return Passage(
        id=one.id,
        text=one.said,
        title=title,
        who=one.event.agent or text_in(one.event.body, "role") or one.event.kind,
        at=one.event.at,
        tool=one.hit.tool,
        is_thought=any(one.said in content_of(part) for part in parts_in(one.event.body) if _is_reasoning(part)),
        is_here=one.key.id == here,
        is_live=one.hit.is_live,
        is_cut_before=bool(text[: stretch.start].strip()),
        is_cut_after=bool(text[stretch.end :].strip()),
        start=stretch.start,
        weight=round(weight, 4),
    )


def _is_reasoning(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "reasoning"


def _title(sessions: Sessions, key: SessionKey) -> str:
    try:
        # Opened to be looked at only: closing it would write.
        return sessions.get(key.id, app=key.app, user=key.user).summary().title
    except PlayheadError:
        return ""


def _event(sessions: Sessions, key: SessionKey, seq: int) -> Event:
    return sessions.store.events_at(key, [[seq, seq]])[0]
