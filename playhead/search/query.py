"""What a person types to a question: words, "exact phrases", -exclusions, OR, beginnings* and field:value.

Nothing that can be typed is an error. What is no operator where it stands (a lone quote, `AND`, `NEAR(`, an unknown
field, a date that is none) is searched as plain words.

    deploy key            either word; rows with both rank first
    "connection reset"    required, in this order
    -staging              rows with it are left out
    timeout OR deadline   one of them is required
    connec*               every word that begins so
    agent:planner         a filter; `agent:"my agent"` for a name with spaces

A `-` before another `-` or a number excludes nothing: `--dry-run` and `-1` are what people look for. Where nothing else
was typed, what was excluded is looked for instead. Filters cannot be excluded; `-agent:planner` leaves out rows that
hold these words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from playhead.search import snippet
from playhead.search.snippet import Snippet
from playhead.search.tokenize import analyze_query_term, chunks, loose_query_terms, read

QUERY_CHARS_MAX = 4_000
"""What is typed beyond this is left out."""
QUERY_TERMS_MAX = 64
"""Different things asked for in one question; further ones are left out."""
PHRASE_TERMS_MAX = 64
"""Of a longer phrase, the beginning is searched."""

STOP_WORDS = frozenset(
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can could did do does doing down during each few for from further had has have having he her here hers him "
    "his how i if in into is it its just me more most my no nor not of off on once only or other our out over own "
    "same she should so some such than that the their them then there these they this those through to too under "
    "until up very was we were what when where which while who whom why will with would you your "
    "d ll m re s t ve ain aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren wouldn".split()
)
"""English words that say nothing about a text. Left out of the plain words, unless nothing else was typed."""


@dataclass(frozen=True, slots=True)
class Term:
    """Something to look for, as it was typed. is_prefix: every word that begins so."""

    text: str
    is_phrase: bool = False
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must also satisfy: one of the values of every field that has any.

    flags: what was typed after `is:`. since (typed `since:` or `after:`) is inclusive, until (`before:`) exclusive,
    both in UTC seconds; of several, the narrowest counts.
    """

    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart. Without `terms`, `phrases` and `any_groups` it may still have filters.

    terms: plain words; a row needs none of them, and those with more rank first. phrases: all required. any_groups: of
    each group, one is required. excluded: rows with one of them are left out.
    """

    terms: tuple[Term, ...] = ()
    phrases: tuple[Term, ...] = ()
    any_groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    filters: Filters = Filters()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for and nothing to filter by."""
        return not (self.terms or self.phrases or self.any_groups) and self.filters == Filters()


def parse(typed: str, *, now: datetime) -> Query:
    """Return what was asked. Never raises.

    now: what `7d` and `yesterday` are counted from. Dates without a time zone are read in its zone, or in UTC where it
    has none.
    """
    items = list(_items(_shortened(typed).translate(_STRAIGHT_QUOTES), now))
    excluded = tuple(dict.fromkeys(item.term for item in items if isinstance(item, _Exclusion)))
    groups = _joined_by_or(items)
    filters = _filters([item for item in items if isinstance(item, _Narrowing)])
    if excluded and not groups and filters == Filters():
        groups, excluded = [[term] for term in excluded], ()
    groups = groups[:QUERY_TERMS_MAX]
    alone = dict.fromkeys(group[0] for group in groups if len(group) == 1)
    return Query(
        terms=tuple(term for term in alone if not term.is_phrase),
        phrases=tuple(term for term in alone if term.is_phrase),
        any_groups=tuple(tuple(dict.fromkeys(group[:QUERY_TERMS_MAX])) for group in groups if len(group) > 1),
        excluded=excluded[:QUERY_TERMS_MAX],
        filters=filters,
    )


def fts5_match(query: Query, *, is_strict: bool = False) -> str | None:
    """Return the FTS5 expression that finds the rows, or None where nothing in the question can be searched.

    Plain words may also be there in parts (`app` for `src/app/main.py`), which rank last; `is_strict` wants them whole.
    Everything is quoted, so nothing that was typed is read as an operator.
    """
    required = [_any_of([phrase]) for phrase in query.phrases] + [_any_of(group) for group in query.any_groups]
    ranked = _any_of(_ranked(query), is_loose=not is_strict)
    if required:
        positive = " AND ".join(f"({one})" for one in required)
        if ranked:
            # FTS5 has nothing optional: a row with the required ones alone has to match as well.
            positive = f"{positive} AND ({required[0]} OR {ranked})"
    else:
        positive = ranked
    if not positive:
        return None
    without = fts5_excluded(query)
    return f"({positive}) NOT ({without})" if without else positive


def fts5_excluded(query: Query) -> str | None:
    """Return the FTS5 expression for the rows to leave out, or None for none.

    `fts5_match` has them in already; this is for a question of filters and exclusions alone.
    """
    return _any_of(query.excluded) or None


def highlight(text: str, query: Query, width: int) -> Snippet:
    """Return the window of at most `width` characters of a text that shows most of the question, with marks.

    Takes time in proportion to the text, up to `ANALYZE_CHARS_MAX` characters.
    """
    return snippet.cut(text, _wanted(query), width)


# Reading


@dataclass(frozen=True, slots=True)
class _Exclusion:
    term: Term


@dataclass(frozen=True, slots=True)
class _Narrowing:
    field: str
    value: str | float


class _Or:
    """The word OR: an operator between two things to look for, a word elsewhere."""


_Item = Term | _Exclusion | _Narrowing | _Or

_ITEM = re.compile(r'(?P<minus>-)?(?:(?P<field>[A-Za-z]+):)?"(?P<quoted>[^"]*)"(?P<star>\*)?|(?P<word>\S+)')
_STRAIGHT_QUOTES = str.maketrans(dict.fromkeys("“”„‟", '"'))
_FIELDS = {
    "agent": "agents",
    "kind": "kinds",
    "role": "roles",
    "tool": "tools",
    "turn": "turns",
    "session": "sessions",
    "branch": "branches",
    "is": "flags",
    "since": "since",
    "after": "since",
    "before": "until",
}
_CASELESS = {"kinds", "roles", "flags"}


def _shortened(typed: str) -> str:
    if len(typed) <= QUERY_CHARS_MAX:
        return typed
    whole_words = typed[:QUERY_CHARS_MAX].rsplit(None, 1)
    return whole_words[0] if whole_words else ""


def _items(typed: str, now: datetime) -> Iterator[_Item]:
    """Yield what was typed, in order. What has nothing to search in it (`*`, `"`) is left out."""
    for found in _ITEM.finditer(typed):
        word = found["word"]
        for item in _read_quoted(found, now) if word is None else [_read_word(word, now)]:
            term = item.term if isinstance(item, _Exclusion) else item
            if not isinstance(term, Term) or analyze_query_term(term.text):
                yield item


def _read_quoted(found: re.Match[str], now: datetime) -> list[_Item]:
    field, quoted = found["field"], found["quoted"]
    term = Term(quoted, is_phrase=True, is_prefix=found["star"] is not None)
    if found["minus"]:
        return [_Exclusion(replace(term, text=f"{field}:{quoted}" if field else quoted))]
    if not field:
        return [term]
    narrowing = _read_field(field, quoted, now)
    return [narrowing] if narrowing else [Term(field), term]


def _read_word(word: str, now: datetime) -> _Item:
    if word in ("OR", "|"):
        return _Or()
    name, colon, value = word.partition(":")
    narrowing = _read_field(name, value.strip('"'), now) if colon else None
    if narrowing:
        return narrowing
    term = Term(word.rstrip("*"), is_prefix=word.endswith("*"))
    is_exclusion = len(word) > 1 and word[0] == "-" and word[1] != "-" and not word[1:].isdigit()
    return _Exclusion(replace(term, text=term.text[1:])) if is_exclusion else term


def _read_field(name: str, value: str, now: datetime) -> _Narrowing | None:
    """Return the filter, or None where the field is unknown or the value is none for it."""
    field = _FIELDS.get(name.lower())
    if field is None or not value:
        return None
    if field in ("since", "until"):
        moment = read_moment(value, now=now)
        return None if moment is None else _Narrowing(field, moment)
    return _Narrowing(field, value.lower() if field in _CASELESS else value)


def _joined_by_or(items: Sequence[_Item]) -> list[list[Term]]:
    """Return the things to look for, those joined by OR together."""
    groups: list[list[Term]] = []
    is_joining = False
    for before, item, after in zip([None, *items], items, [*items[1:], None], strict=False):
        if isinstance(item, Term):
            if is_joining:
                groups[-1].append(item)
            else:
                groups.append([item])
            is_joining = False
        elif isinstance(item, _Or):
            is_joining = isinstance(before, Term) and isinstance(after, Term)
            # Between filters of one field it says what is meant anyway.
            if not is_joining and not isinstance(before, _Narrowing) and not isinstance(after, _Narrowing):
                groups.append([Term("OR")])
    return groups


def _filters(narrowings: Sequence[_Narrowing]) -> Filters:
    def names(field: str) -> tuple[str, ...]:
        found = (one.value for one in narrowings if one.field == field)
        return tuple(dict.fromkeys(value for value in found if isinstance(value, str)))

    def moments(field: str) -> list[float]:
        return [one.value for one in narrowings if one.field == field and isinstance(one.value, float)]

    return Filters(
        agents=names("agents"),
        kinds=names("kinds"),
        roles=names("roles"),
        tools=names("tools"),
        turns=names("turns"),
        sessions=names("sessions"),
        branches=names("branches"),
        flags=names("flags"),
        since=max(moments("since"), default=None),
        until=min(moments("until"), default=None),
    )


# Dates

_AGO = re.compile(r"([0-9]{1,6})(m|min|h|d|w|mo|y)")
_UNIT_HOURS = {"m": 1 / 60, "min": 1 / 60, "h": 1, "d": 24, "w": 7 * 24, "mo": 30 * 24, "y": 365 * 24}
_YEAR_AND_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


def read_moment(value: str, *, now: datetime) -> float | None:
    """Return the UTC seconds of an ISO date or time (its beginning), of `7d` ago (m, h, d, w, mo, y), `today` or
    `yesterday`; None where it is none of these. A month is 30 days and a year 365.
    """
    value = value.strip()
    zone = now.tzinfo or UTC
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=zone)
    try:
        if value.lower() == "now":
            return now.replace(tzinfo=zone).timestamp()
        if value.lower() == "today":
            return today.timestamp()
        if value.lower() == "yesterday":
            return (today - timedelta(days=1)).timestamp()
        if ago := _AGO.fullmatch(value.lower()):
            return now.replace(tzinfo=zone).timestamp() - int(ago[1]) * _UNIT_HOURS[ago[2]] * 3600
        if month := _YEAR_AND_MONTH.fullmatch(value):
            return datetime(int(month[1]), int(month[2] or 1), 1, tzinfo=zone).timestamp()
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return None


# Asking


def _ranked(query: Query) -> list[Term]:
    """Return the plain words without stop words, or all of them where there is nothing else."""
    telling = [term for term in query.terms if not _is_stop_word(term)]
    return telling or ([] if query.phrases or query.any_groups else list(query.terms))


def _is_stop_word(term: Term) -> bool:
    words = [word for chunk in chunks(term.text) for word in read(chunk).words]
    return not term.is_prefix and STOP_WORDS.issuperset(words)


def _any_of(terms: Sequence[Term], *, is_loose: bool = False) -> str:
    """Return the expression for rows that hold one of the terms, in one of the ways there are; "" for no terms."""
    ways: dict[str, None] = {}
    for term in terms:
        ways |= dict.fromkeys(map(_quoted, analyze_query_term(term.text, is_prefix=term.is_prefix)))
    if is_loose:
        for term in terms:
            parts = loose_query_terms(term.text)
            ways |= dict.fromkeys(_quoted(way) for way in parts if not STOP_WORDS.issuperset(way))
    return " OR ".join(ways)


def _quoted(way: Sequence[str]) -> str:
    is_prefix = len(way) <= PHRASE_TERMS_MAX and way[-1].endswith("*")
    words = " ".join(way[:PHRASE_TERMS_MAX]).rstrip("*").replace('"', '""')
    return f'"{words}" *' if is_prefix else f'"{words}"'


@lru_cache(maxsize=64)
def _wanted(query: Query) -> tuple[snippet.Wanted, ...]:
    exact = [*query.phrases, *(term for group in query.any_groups for term in group)]
    return (
        *(snippet.wanted(term.text, is_prefix=term.is_prefix, is_exact=True) for term in exact),
        *(snippet.wanted(term.text, is_prefix=term.is_prefix) for term in _ranked(query)),
    )
