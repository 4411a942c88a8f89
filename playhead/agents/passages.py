"""A question to the passages of sessions that answer it: found by search, quoted word for word, each with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from playhead.agents.quoting import reference
from playhead.agents.stretches import Stretch, telling_stretch
from playhead.errors import PlayheadError
from playhead.model.body import object_in, parts_in, text_in
from playhead.model.event import Event
from playhead.model.ids import DEFAULT_APP, DEFAULT_USER, SessionKey
from playhead.model.parts import text_of
from playhead.search.find import Hit
from playhead.search.indexer import searchable_text
from playhead.search.query import STOP_WORDS, Query, parse
from playhead.session import Sessions

BUILT_IN = "playhead-built-in"
"""What results of the built-in agent's own tools carry as `extra.by`, so that its copies are never quoted again."""

HITS_MAX = 48
"""So many hits are weighed for one answer."""
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


class Passage(msgspec.Struct, frozen=True):
    """A stretch of an event, exactly as it is stored.

    id: `SESSION#SEQ`. who: the agent, or the role where no agent is named. tool: the tool whose call or result it is.
    is_here: it is of the session that asks. is_live: it lies on its session's current path.
    """

    id: str
    text: str
    title: str
    who: str
    at: float
    tool: str | None = None
    is_here: bool = False
    is_live: bool = True
    is_cut_before: bool = False
    is_cut_after: bool = False


class Passages(msgspec.Struct, frozen=True):
    """An answer. passages: the best ones, best first. more_count: further ones that `without` leads to.
    session_count: sessions searched, the one that asks among them. problem_count: those not searched to their end."""

    passages: list[Passage]
    more_count: int
    session_count: int
    problem_count: int


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
) -> Passages:
    """Return the passages of a person's sessions that answer a question. Searches this app and this user alone.

    here: id of the session that asks. turn: id of the turn that asks, whose own events (the question!) are left out.
    without: ids of passages that were shown already. What a person or an agent said weighs more than what tools gave
    back, a question less than a statement, an abandoned branch less than the current path. Passages that say the same
    are shown once.
    """
    found = sessions.search(query, app=app, user=user, k=HITS_MAX + len(without))
    # Only what marks words is of interest here, and no date does.
    asked = parse(query, now=datetime.fromtimestamp(0, UTC))
    hits = [hit for hit in found.hits if turn is None or hit.turn != turn]
    weighed = [one for hit in hits if (one := _weighed(sessions, hit, asked)) is not None]
    weighed.sort(key=lambda one: -one.weight)
    near = [one for one in weighed if one.weight >= weighed[0].weight * SHARE_MIN]
    fresh = [one for one in _distinct(near, asked=_words(query)) if reference(one.key, one.event.seq) not in without]
    chosen = _chosen(fresh, count)
    titles = {key: _title(sessions, key) for key in {one.key for one in chosen}}
    return Passages(
        passages=[_passage(one, titles[one.key], here=here) for one in chosen],
        more_count=len(fresh) - len(chosen),
        session_count=found.session_count,
        problem_count=len(found.problems),
    )


class _Weighed(NamedTuple):
    """A hit with its event, the text that it is quoted from, the stretch to quote, and how much it weighs."""

    weight: float
    hit: Hit
    key: SessionKey
    event: Event
    text: str
    stretch: Stretch

    @property
    def said(self) -> str:
        return self.text[self.stretch.start : self.stretch.end]


def _weighed(sessions: Sessions, hit: Hit, asked: Query) -> _Weighed | None:
    """Return the hit weighed, or None where it is no one's words, or a copy that the built-in agent made."""
    key = SessionKey(hit.app, hit.user, hit.session)
    try:
        event = _event(sessions, key, hit.seq)
        if event.kind not in _KINDS or _is_copy(sessions, key, event):
            return None
    except PlayheadError:
        return None  # Deleted since the search found it: what is gone is not quoted.
    text, stretch, weight = _telling(event, asked)
    weighed = _Weighed(hit.score * weight, hit, key, event, text, stretch)
    if not weighed.said.strip():
        return None
    if event.body.get("role") == "user" and weighed.said.rstrip().endswith(("?", "？")):
        weight *= QUESTION_WEIGHT
    if not hit.is_live:
        weight *= ABANDONED_WEIGHT
    return weighed._replace(weight=hit.score * weight)


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
    """Whether the event is what the built-in agent's own tool gave back, or its answer, which quotes that."""
    if _is_own_result(event):
        return True
    if event.body.get("role") != "assistant" or not event.parent:
        return False
    return _is_own_result(_event(sessions, key, event.parent))


def _is_own_result(event: Event) -> bool:
    return event.body.get("role") == "tool" and object_in(event.body, "extra").get("by") == BUILT_IN


def _distinct(weighed: Iterable[_Weighed], *, asked: frozenset[str]) -> list[_Weighed]:
    """Leave out what a better passage says already, and what says nothing beyond the question."""
    kept: list[tuple[_Weighed, frozenset[str]]] = []
    for one in weighed:
        words = _words(one.said)
        if not words <= asked and not any(_are_alike(words, other) for _, other in kept):
            kept.append((one, words))
    return [one for one, _ in kept]


def _are_alike(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= ALIKE_MIN * min(len(words), len(other))


def _words(text: str) -> frozenset[str]:
    """Return the words that say something, or all of them where none does."""
    words = frozenset(_WORD.findall(text.casefold()))
    return words - STOP_WORDS or words


def _chosen(weighed: Sequence[_Weighed], count: int) -> list[_Weighed]:
    """Return the best `count` in their order, few of one session while there are others."""
    of_session: Counter[SessionKey] = Counter()
    first: list[int] = []
    rest: list[int] = []
    for index, one in enumerate(weighed):
        of_session[one.key] += 1
        (first if of_session[one.key] <= OF_ONE_SESSION_MAX else rest).append(index)
    return [weighed[index] for index in sorted([*first, *rest][:count])]


def _passage(one: _Weighed, title: str, *, here: str | None) -> Passage:
    text, stretch = one.text, one.stretch
    return Passage(
        id=reference(one.key, one.event.seq),
        text=one.said,
        title=title,
        who=one.event.agent or text_in(one.event.body, "role") or one.event.kind,
        at=one.event.at,
        tool=one.hit.tool,
        is_here=one.key.id == here,
        is_live=one.hit.is_live,
        is_cut_before=bool(text[: stretch.start].strip()),
        is_cut_after=bool(text[stretch.end :].strip()),
    )


def _title(sessions: Sessions, key: SessionKey) -> str:
    try:
        # Opened to be looked at only: closing it would write.
        return sessions.get(key.id, app=key.app, user=key.user).summary().title
    except PlayheadError:
        return ""


def _event(sessions: Sessions, key: SessionKey, seq: int) -> Event:
    return sessions.store.events_at(key, [[seq, seq]])[0]
