"""The words of the built-in agent's answers: everything around the quotes, and nothing about what they say."""

from __future__ import annotations

import msgspec

from playhead.agents.memory import EventText
from playhead.agents.passages import Passage, Passages
from playhead.agents.quoting import counted, moment, one_line, quoted, shown_reference

PREFACE = "I am the built-in agent: I quote your sessions and write nothing of my own."

HELP = f"""{PREFACE} I work offline and without a model.

Ask a question, and I look for its words in all your sessions and quote what I find, with its place. These I also know:

- "exact phrases", -exclusions, beginnings* and agent:NAME or since:7d, as in `playhead search`
- more: further passages of the last answer
- the second one: one of them, whole
- show SESSION#SEQ: any event, whole
- what did I do last: the sessions that were active last"""

IMPORT = "`playhead import` brings in what Claude Code left on this machine"

WHO_CHARS_MAX = 80
TITLE_CHARS_MAX = 80
ASKED_CHARS_MAX = 120


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


def passages_found(found: Passages, query: str, *, is_further: bool) -> str:
    """Return the answer to a question: the passages that were found, numbered, or that there are none."""
    looked_for = f"“{one_line(query, chars_max=ASKED_CHARS_MAX)}”"
    searched = f"Searched {counted(found.session_count, 'session')}"
    if found.problem_count:
        searched += f", {found.problem_count:,} of them not to the end"
    if not found.passages and found.session_count <= 1:
        return (
            f"{PREFACE}\n\nThere is nothing to quote yet. I looked for {looked_for}, and this is the only session. "
            f"{IMPORT}, and every session that is recorded here is searched as well."
        )
    if not found.passages:
        kept = "nothing further" if is_further else "nothing"
        return (
            f"{PREFACE}\n\nI found {kept}. I looked for {looked_for}. {searched}. "
            "I find words, not meanings: another word for it may be the one that was used."
        )
    blocks = [_passage(number, passage) for number, passage in enumerate(found.passages, 1)]
    offers = [f"show {shown_reference(found.passages[0].id)}", "to read one whole"]
    if found.more_count:
        offers = ["“more”", f"for {counted(found.more_count, 'further passage')}, or", *offers]
    return "\n\n".join([PREFACE, *blocks, f"{searched} for {looked_for}. Say {' '.join(offers)}."])


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
