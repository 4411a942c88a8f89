"""What a person wants of the built-in agent, by a few plain rules; everything else is a search.

    help                              what it can do
    list my sessions, what did I do last?
    show SESSION#SEQ                  one event, whole
    show PATH:LINE                    a document, from a line on
    the second one, and number 3?     the passage of that number in the last answer, whole
    more                              further passages, or the rest of what was being read
    and on Windows?                   a search for the last question's words and these
    compare A and B, A vs B           research, topic by topic
    everything about A                research, with more passages

A prompt goes on from the one before where it begins with `and`, `or`, `but`, `what about`, `how about`, or has no word
that says anything by itself (`why?`). What it is told to do rather than to find is in `orders.py`. With documents
beside the sessions every search is research: both have to be searched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playhead.agents.built_in.orders import Order, ordered
from playhead.agents.documents.folder import document_place
from playhead.model.body import list_in, number_in, object_in, text_in
from playhead.search.query import STOP_WORDS
from playhead.views.transcript import Entry

SEARCH, LIST, READ = "search_sessions", "list_sessions", "read_event"
SEARCH_DOCUMENTS, READ_DOCUMENT, RESEARCH = "search_documents", "read_document", "research"
"""The built-in agent's tools, as the log names them."""

QUERY_CHARS_MAX = 1_000
"""Of a question that others went on from, so much is looked for again."""
TOPIC_CHARS_MAX = 300
"""What is compared has a name that is no longer than this."""


@dataclass(frozen=True, slots=True)
class Help:
    """To be told what the agent can do."""


@dataclass(frozen=True, slots=True)
class ListSessions:
    """To see the sessions, the most recently active first."""


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """To read one event, from a character on."""

    id: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """To read a document, from a line on."""

    name: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class Search:
    """To find passages, without those that were shown already."""

    query: str
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Research:
    """To find passages where one search is not enough. topics: what to look for, one thing after another. is_broad:
    more passages than usual are wanted."""

    query: str
    topics: tuple[str, ...]
    without: tuple[str, ...] = ()
    is_broad: bool = False


@dataclass(frozen=True, slots=True)
class NothingThere:
    """To go on with something that is not there. why: a sentence."""

    why: str


Intent = Help | ListSessions | ReadEvent | ReadDocument | Search | Research | NothingThere | Order


@dataclass(frozen=True, slots=True)
class Before:
    """What a prompt can go on from. query: what was asked last. tool: of this agent, used for it, or "".

    shown: ids of the passages of the last answer, in order. without: of those before. more_count: passages left.
    reading: the event or document that was read, and where it goes on (None at its end).
    """

    query: str = ""
    tool: str = ""
    shown: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    more_count: int = 0
    reading: tuple[str, int | None] | None = None


def before(entries: Sequence[Entry], *, turn: str) -> Before:
    """Return what the last turn before `turn` leaves to go on from, given the end of the transcript."""
    earlier = [entry for entry in entries if entry.turn != turn and entry.kind == "message"]
    prompts = [index for index, entry in enumerate(earlier) if entry.role == "user" and entry.text.strip()]
    if not prompts:
        return Before()
    prompt = earlier[prompts[-1]].text
    for entry in earlier[prompts[-1] :]:
        for use in entry.tools:
            arguments, response = _object(use.arguments), _object(use.response)
            if use.name in (SEARCH, RESEARCH) and use.status == "completed":
                return Before(
                    query=text_in(arguments, "query") or prompt,
                    tool=SEARCH,
                    shown=tuple(_ids(response)),
                    without=tuple(id for id in list_in(arguments, "without") if isinstance(id, str)),
                    more_count=int(number_in(response, "more_count") or 0),
                )
            if use.name == READ and use.status == "completed" and (id := text_in(response, "id")):
                offset = number_in(response, "next_offset")
                return Before(query=prompt, tool=READ, reading=(id, None if offset is None else int(offset)))
            if use.name == READ_DOCUMENT and use.status == "completed" and (name := text_in(response, "name")):
                line = number_in(response, "next_line")
                reading = (name, None if line is None else int(line))
                return Before(query=prompt, tool=READ_DOCUMENT, reading=reading)
            if use.name == LIST:
                return Before(query=prompt, tool=LIST)
    return Before(query=prompt)


def understood(prompt: str, last: Before, *, has_documents: bool = False) -> Intent:
    """Return what the prompt asks for. last: what it may go on from. has_documents: there is a folder of them."""
    intent = _understood(prompt, last, has_documents=has_documents)
    return _researched(intent, has_documents=has_documents) if isinstance(intent, Search) else intent


def _understood(prompt: str, last: Before, *, has_documents: bool) -> Intent:
    said = " ".join(prompt.split())
    plain = " ".join(_SIGNS.sub(" ", said.replace("'", "")).split()).casefold()
    if said in ("?", "/help") or plain in _HELP:
        return Help()
    if _LIST.fullmatch(plain):
        return ListSessions()
    if shown := _SHOW.fullmatch(said):
        return ReadEvent(shown["id"])
    if has_documents and (shown := _SHOW_DOCUMENT.fullmatch(said)) and (place := document_place(shown["id"])):
        return ReadDocument(*place)
    if (order := ordered(said)) is not None:
        return order
    if plain in _MORE:
        return _more(last)
    if (number := _ordinal(plain)) is not None and last.tool:
        return _numbered(number, last)
    if last.query and _goes_on(plain):
        return Search(f"{last.query[:QUERY_CHARS_MAX]} {said}")
    return Search(prompt)


def _researched(search: Search, *, has_documents: bool) -> Search | Research:
    """Return a search as research where it is about several things, about everything, or has two places to look in."""
    said = " ".join(search.query.split()).rstrip(".?! ")
    for comparison in _COMPARISONS:
        if found := comparison.fullmatch(said):
            return Research(search.query, (found["one"], found["other"]), search.without)
    if found := _EVERYTHING.fullmatch(said):
        return Research(search.query, (found["one"],), search.without, is_broad=True)
    return Research(search.query, (search.query,), search.without) if has_documents else search


def _more(last: Before) -> Intent:
    if last.reading is not None:
        id, offset = last.reading
        if offset is None:
            return NothingThere("That was all of it.")
        return ReadDocument(id, offset) if last.tool == READ_DOCUMENT else ReadEvent(id, offset)
    if last.tool == SEARCH:
        if last.more_count:
            return Search(last.query, without=(*last.without, *last.shown))
        return NothingThere("There are no further passages.")
    return NothingThere("There is nothing to go on from.")


def _numbered(number: int, last: Before) -> Intent:
    if last.tool != SEARCH:
        return NothingThere("The last answer had no numbered passages. Say show SESSION#SEQ to read an event.")
    if number == -1:
        number = len(last.shown)
    if not 1 <= number <= len(last.shown):
        return NothingThere(f"The last answer has no passage {number}; it had {len(last.shown)}.")
    id = last.shown[number - 1]
    place = document_place(id)
    return ReadEvent(id) if place is None else ReadDocument(*place)


def _ordinal(plain: str) -> int | None:
    """Return the number that is meant, -1 for the last one; None where the prompt is more than a number."""
    found = _NUMBERED.fullmatch(plain)
    if found is None:
        return None
    digits = found["digits"]
    return int(digits) if digits else _ORDINALS[found["word"]]


def _goes_on(plain: str) -> bool:
    words = _WORD.findall(plain)
    return _CONTINUES.match(plain) is not None or STOP_WORDS.issuperset(words)


def _ids(response: dict[str, Any]) -> list[str]:
    passages = [one for one in list_in(response, "passages") if isinstance(one, dict)]
    return [id for one in passages if (id := text_in(one, "id"))]


def _object(value: Any) -> dict[str, Any]:
    """Return what a tool was given or gave back, `{}` where it is no JSON object."""
    return object_in({"value": value}, "value")


_HELP = {"help", "help me", "what can you do", "who are you", "what are you", "how does this work"}
_MORE = {"more", "more please", "show more", "show me more", "and more", "next", "go on", "continue", "anything else"}
_LIST = re.compile(
    r"(?:please )?(?:list|show)(?: me)?(?: all)?(?: (?:my|the))?(?: (?:last|latest|recent|newest|other))? sessions"
    r"|(?:my )?(?:(?:last|latest|recent|newest) )?sessions"
    r"|what (?:did|have) (?:i|we) (?:do|done|work on|worked on|been doing|been working on)"
    r"(?: last| lately| recently| before)?"
    r"|what (?:was i|were we) (?:doing|working on)(?: last| lately| recently| before)?"
)
_SHOW = re.compile(r"(?:(?:show|read|open)(?: me)?:? )?(?P<id>\S(?:.*\S)?#[0-9]{1,18})[.?!]?", re.IGNORECASE)
_SHOW_DOCUMENT = re.compile(
    r"(?:show|read|open)(?: me)?:? (?P<id>\S(?:.*\S)?:[0-9]{1,9}(?:-[0-9]{1,9})?)[.?!]?", re.IGNORECASE
)
_TOPIC = rf".{{1,{TOPIC_CHARS_MAX}}}?"
_COMPARISONS = (
    re.compile(
        rf"(?:please )?compare (?P<one>{_TOPIC}) (?:and|with|to|vs\.?|versus) (?P<other>{_TOPIC})", re.IGNORECASE
    ),
    re.compile(
        rf"(?:what(?: is|'s|’s| are)? )?(?:the )?differences? between (?P<one>{_TOPIC}) and (?P<other>{_TOPIC})",
        re.IGNORECASE,
    ),
    re.compile(rf"(?P<one>{_TOPIC}) (?:vs\.?|versus) (?P<other>{_TOPIC})", re.IGNORECASE),
)
_EVERYTHING = re.compile(
    r"(?:(?:please )?(?:tell me|show me|find|give me|list|collect) )?(?:everything|all)"
    rf"(?: that)?(?: (?:you know|we know|was said|we said|there is|is known))? (?:about|on) (?P<one>{_TOPIC})",
    re.IGNORECASE,
)
_ORDINALS = {
    word: number
    for number, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1)
} | {word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}
_ORDINALS["last"] = -1
_NUMBERED = re.compile(
    r"(?:(?:and|or|ok|show|read|open|me|what about|how about|what is|whats) )*"
    r"(?:the )?(?:(?:number|no|passage|quote|hit) )?\#?"
    rf"(?:(?P<digits>[0-9]{{1,3}})(?:st|nd|rd|th)?|(?P<word>{'|'.join(_ORDINALS)}))"
    r"(?: (?:one|passage|quote|hit))?(?: please)?"
)
_CONTINUES = re.compile(r"(?:and|or|but|what about|how about)\b")
_SIGNS = re.compile(r"[,;:!?.…\"“”]")
_WORD = re.compile(r"\w+")
