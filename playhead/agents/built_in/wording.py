"""The words of the built-in agent's answers: everything around the quotes, and nothing about what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from playhead.agents.built_in.orders import REMINDER
from playhead.agents.built_in.passages import Passage
from playhead.agents.built_in.research import Report
from playhead.agents.documents.files import HIDDEN, left_out_told
from playhead.agents.documents.folder import DocumentText, Status
from playhead.agents.memory import EventText
from playhead.agents.quoting import counted, moment, one_line, quoted, shown_reference, visible
from playhead.features.triggers import Firing

PREFACE = "I am the built-in agent: I quote your sessions and write nothing of my own."

PREFACE_DOCUMENTS = "I am the built-in agent: I quote your sessions and documents and write nothing of my own."

HELP = f"""{PREFACE} I work offline and without a model.

Ask a question, and I look for its words in all your sessions, and in your documents where I was given a folder, and \
quote what I find, with its place. These I also know:

- "exact phrases", -exclusions, beginnings* and agent:NAME or since:7d, as in `playhead search`
- more: further passages of the last answer
- the second one: one of them, whole
- show SESSION#SEQ: any event, whole; show PATH:LINE: a document from there on
- what did I do last: the sessions that were active last
- compare A and B, everything about A: a longer search, which a researcher does for me
- remember that …, my notes, forget note 2: notes of this session
- remind me in 10 minutes to …, at 15:30, tomorrow at 9, every weekday at 9: I say it then
- every monday at 9: PROMPT: I answer the prompt then
- tell me when FILE changes, tell me when something comes on #CHANNEL
- when FILE changes: PROMPT, when something comes on #CHANNEL: PROMPT
- answer on #CHANNEL: I look for what is said there, and answer on it
- my reminders, cancel reminder 2
- send to #CHANNEL: TEXT

Reminders and the like come while the session is open, in `playhead chat` or `playhead resume`; what is due meanwhile \
comes when it is resumed."""

TIMES = (
    "I know: remind me in 10 minutes to …, remind me at 15:30 to …, tomorrow at 9, "
    "every 2 hours, every weekday at 9, every monday at 9, each also with a time zone: at 9 in Europe/Berlin."
)
UNCLEAR = f"I did not understand when. {TIMES}"
OVER = f"That time is over, and a reminder is for a time to come. {TIMES}"
NO_ORDERS = "This is what a trigger asked. I answer its questions; to set, send or keep something is for you to ask."

IMPORT = "`playhead import` brings in the sessions that other programs left on this machine"

WHO_CHARS_MAX = 80
TITLE_CHARS_MAX = 80
ASKED_CHARS_MAX = 120
REMINDER_CHARS_MAX = 4_000


class Recent(msgspec.Struct, frozen=True):
    """A session of a list. last_user: the beginning of the last prompt, "" where there was none."""

    id: str
    title: str
    last_user: str
    turn_count: int
    last_active_at: float


class RecentSessions(msgspec.Struct, frozen=True):
    """Sessions, the most recently active first, without the one that asks. total: how many there are, that one too."""

    sessions: list[Recent]
    total: int


def passages_found(found: Report, query: str, *, is_further: bool) -> str:
    """Return the answer to a question: the passages that were found, numbered, or that there are none."""
    preface = PREFACE if found.documents is None else PREFACE_DOCUMENTS
    looked_for = f"“{one_line(query, chars_max=ASKED_CHARS_MAX)}”"
    searched = _searched(found)
    if not found.passages and found.session_count <= 1 and found.documents is None:
        return (
            f"{preface}\n\nThere is nothing to quote yet. I looked for {looked_for}, and this is the only session. "
            f"{IMPORT}, and every session that is recorded here is searched as well."
        )
    if not found.passages:
        kept = "nothing further" if is_further else "nothing"
        return (
            f"{preface}\n\nI found {kept}. I looked for {looked_for}. {searched}. "
            "I find words, not meanings: another word for it may be the one that was used."
        )
    blocks = _blocks(found)
    offers = [f"show {shown_reference(found.passages[0].id)}", "to read one whole"]
    if found.more_count:
        offers = ["“more”", f"for {counted(found.more_count, 'further passage')}, or", *offers]
    return "\n\n".join([preface, *blocks, f"{searched} for {looked_for}. Say {' '.join(offers)}."])


def document_read(found: DocumentText) -> str:
    """Return the answer to a wish to read a document: some of its lines, and which they are."""
    lines = [PREFACE_DOCUMENTS, "", f"{shown_reference(found.id)}  document, {moment(found.at)}", quoted(found.text)]
    if found.next_line is not None or found.line > 1:
        lines += ["", f"Lines {found.line:,} to {found.last_line:,} of {found.line_count:,}."]
    if found.next_line is not None:
        lines[-1] += " Say “more” for what follows."
    return "\n".join(lines)


def notes_listed(notes: Mapping[str, Any]) -> str:
    """Return the answer to a wish to see the notes."""
    if not notes:
        return "There are no notes in this session. Say “remember that …” to keep one."
    lines = [f"{one_line(name, chars_max=WHO_CHARS_MAX)}:\n{quoted(str(text))}" for name, text in notes.items()]
    return "\n\n".join([f"{counted(len(notes), 'note')} in this session:", *lines])


def trigger_set(set: Mapping[str, Any]) -> str:
    """Return the answer to an order that set a trigger."""
    waits_for, id = one_line(str(set["waits_for"]), chars_max=WHO_CHARS_MAX), set["trigger"]
    return f"It is set {waits_for}.\n{set['note']}\nTo remove it, say: cancel reminder {id}"


def triggers_listed(found: Mapping[str, Any]) -> str:
    """Return the answer to a wish to see what is to come."""
    lines = [
        f"{one_line(one['trigger'], chars_max=WHO_CHARS_MAX)}  {one_line(one['waits_for'], chars_max=ASKED_CHARS_MAX)}"
        f"\n{quoted(one['prompt'])}"
        for one in found["triggers"]
    ]
    lines += [
        f"{one_line(one['trigger'], chars_max=WHO_CHARS_MAX)}  did not come back: "
        f"{one_line(one['reason'], chars_max=ASKED_CHARS_MAX)}"
        for one in found["problems"]
    ]
    if not lines:
        return "Nothing is set in this session. Say “remind me in 10 minutes to …” to set a reminder."
    return "\n\n".join([f"{counted(len(lines), 'thing is', 'things are')} set in this session:", *lines])


def reminded(firing: Firing) -> str:
    """Return what is said when a reminder is due: its words, and what it fired for."""
    words = one_line(firing.words.removeprefix(REMINDER), chars_max=REMINDER_CHARS_MAX)
    return "\n\n".join([f"{REMINDER}{words}", *occasion(firing)])


def occasion(firing: Firing) -> list[str]:
    """Return what a trigger tells of the occasion, as a paragraph; [] where it tells nothing."""
    told = visible(firing.prompt.removeprefix(firing.words or firing.prompt)).strip()
    return [told] if told else []


def event_read(found: EventText) -> str:
    """Return the answer to a wish to read an event: its text, and how much of it that is."""
    heading = f"{shown_reference(found.id)}  {one_line(found.who, chars_max=WHO_CHARS_MAX)}, {moment(found.at)}"
    if not found.text:
        return f"{PREFACE}\n\n{heading}\nThere is no text in it."
    is_cut = found.next_offset is not None
    lines = [PREFACE, "", heading, quoted(found.text, is_cut_before=found.offset > 0, is_cut_after=is_cut)]
    if found.offset or is_cut:
        end = found.offset + len(found.text)
        lines += ["", f"Characters {found.offset + 1:,} to {end:,} of {found.chars:,}."]
    if is_cut:
        lines[-1] += " Say “more” for what follows."
    return "\n".join(lines)


def sessions_listed(found: RecentSessions) -> str:
    """Return the answer to a wish to see the sessions."""
    if not found.sessions:
        return f"{PREFACE}\n\nThere is no session here but this one. {IMPORT}."
    blocks = [_recent(number, session) for number, session in enumerate(found.sessions, 1)]
    heading = f"The {counted(len(found.sessions), 'session')} that were active last, of {found.total:,}:"
    if len(found.sessions) == 1:
        heading = "The other session here:"
    return "\n\n".join([PREFACE, heading, *blocks])


def _searched(found: Report) -> str:
    """Return what was searched, and what of it was not."""
    said = f"Searched {counted(found.session_count, 'session')}"
    if found.problem_count:
        said += f", {found.problem_count:,} of them not to the end"
    if found.documents is not None:
        said += f"{',' if found.problem_count else ''} and {_documents(found.documents)}"
    return said


def _documents(status: Status) -> str:
    said = counted(status.file_count, "document")
    asides = [f"{counted(status.waiting_count, 'file')} still to be read: ask again later"] * bool(status.waiting_count)
    # Nobody expects an answer from hidden files.
    left_out = left_out_told({reason: count for reason, count in status.left_out.items() if reason != HIDDEN})
    asides += [f"left out: {left_out}"] * bool(left_out)
    return f"{said} ({'; '.join(asides)})" if asides else said


def _blocks(found: Report) -> list[str]:
    """Return the passages, numbered, under the topics that were asked for where these are several."""
    numbered = list(enumerate(found.passages, 1))
    if not found.topics:
        return [_passage(number, passage) for number, passage in numbered]
    blocks = []
    for topic in found.topics:
        heading = f"On “{one_line(topic, chars_max=ASKED_CHARS_MAX)}”:"
        own = [_passage(number, passage) for number, passage in numbered if passage.topic == topic]
        blocks += [heading, *own] if own else [f"{heading} nothing."]
    return blocks


def _passage(number: int, passage: Passage) -> str:
    facts = [one_line(passage.who, chars_max=WHO_CHARS_MAX), moment(passage.at)]
    if passage.is_thought:
        facts.append("thinking")
    if passage.tool:
        facts.append(f"tool {one_line(passage.tool, chars_max=WHO_CHARS_MAX)}")
    if passage.is_here:
        facts.append("earlier in this session")
    elif passage.title:
        facts.append(f"in {_title(passage.title)}")
    if not passage.is_live:
        facts.append("on an abandoned branch")
    quote = quoted(passage.text, is_cut_before=passage.is_cut_before, is_cut_after=passage.is_cut_after)
    return f"{number}. {shown_reference(passage.id)}  {', '.join(facts)}\n{quote}"


def _recent(number: int, session: Recent) -> str:
    facts = [
        _title(session.title),
        counted(session.turn_count, "turn"),
        f"last active {moment(session.last_active_at)}",
    ]
    line = f"{number}. {shown_reference(session.id)}  {', '.join(facts)}"
    asked = one_line(session.last_user, chars_max=ASKED_CHARS_MAX)
    return f"{line}\nLast asked: “{asked}”" if asked else line


def _title(title: str) -> str:
    return f"“{one_line(title, chars_max=TITLE_CHARS_MAX)}”"
