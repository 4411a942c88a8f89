"""The `search` command: every event of every session, or of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from playhead.cli.command import Command, Here, JsonOption
from playhead.cli.documents import document
from playhead.cli.failures import Failure
from playhead.cli.moments import age, iso, moment
from playhead.cli.naming import named, short_names, surely_named
from playhead.cli.table import Piece, Styled, filled, tab_separated
from playhead.cli.terminal import Terminal
from playhead.cli.text import fitted, one_line, width
from playhead.cli.timeline import check_kinds
from playhead.model.ids import SessionKey
from playhead.search.find import Hit
from playhead.session import Session, Sessions
from playhead.views.timeline import TimelineRow

HITS_DEFAULT = 20
HITS_MAX = 1_000
CONTEXT_MAX = 100
TITLE_COLUMNS_MIN = 20

_INDENT = "    "


def run(
    here: Here,
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="[SESSION] QUERY", help='Words, "exact phrases", -without, OR, begin*', show_default=False
        ),
    ],
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only in this session, named as in `show`")
    ] = None,
    mode: Annotated[
        Literal["auto", "fts", "semantic", "hybrid"],
        typer.Option("--mode", help="Without vectors each searches by words, and the answer says so"),
    ] = "auto",
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only what this agent wrote")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", "--type", metavar="KIND", help="Only events of this kind: message, tool_result, note"),
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Only messages of this role: user, assistant, tool")
    ] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="Only calls and results of this tool")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Only from this time on: 7d, yesterday, 2026-08-01")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="WHEN", help="Only before this time")] = None,
    live: Annotated[bool, typer.Option("--live", help="Only what lies on a current path")] = False,
    context: Annotated[
        int, typer.Option("-C", "--context", metavar="N", min=0, max=CONTEXT_MAX, help="Events around each hit")
    ] = 0,
    count: Annotated[
        int, typer.Option("-k", "--count", metavar="N", min=1, max=HITS_MAX, help="Hits at most")
    ] = HITS_DEFAULT,
    json: JsonOption = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object a line, one for each hit")] = False,
    fail_empty: Annotated[bool, typer.Option("--fail-empty", help="End with 1 where nothing was found")] = False,
) -> int:
    """Print the hits, the best first."""
    if json and jsonl:
        raise Failure("--json and --jsonl exclude each other; give one of them", code=2)
    if kind == "tool_result" and role is None:
        kind, role = "message", "tool"  # What others call it: here it is a message of a tool.
    check_kinds([kind] if kind is not None else ())
    now = here.now()
    with here.open_existing() as sessions:
        key, words = _narrowed(sessions, query) if session is None else (named(sessions, session), query)
        found = sessions.search(
            " ".join(words),
            mode=mode,
            k=count,
            agent=agent,
            kind=kind,
            role=role,
            tool=tool,
            since=None if since is None else moment(since, now, option="--since"),
            until=None if until is None else moment(until, now, option="--until"),
            branch="live" if live else "all",
            session=None if key is None else key.id,
            app=None if key is None else key.app,
            user=None if key is None else key.user,
        )
        hits = _placed(sessions, found.hits, context)
    if jsonl:
        for hit in hits:
            here.terminal.json_line(_hit_document(hit))
    elif json:
        here.terminal.json(
            {
                "query": " ".join(words),
                "mode": found.mode,
                "hits": [_hit_document(hit) for hit in hits],
                "session_count": found.session_count,
                "indexed_up_to": found.indexed_up_to,
                "problems": found.problems,
            }
        )
    else:
        _print_hits(here.terminal, hits, now, has_context=context > 0)
        count = found.session_count
        where = f"session {key}" if key is not None else f"{count} session{'' if count == 1 else 's'}"
        here.terminal.note(f"{len(hits)} hit{'' if len(hits) == 1 else 's'} in {where}.")
    if mode in ("semantic", "hybrid") and found.mode == "fts":
        here.terminal.note("There are no vectors here: this was searched by words.")
    for id, problem in found.problems.items():
        here.terminal.note(f"{id} was not searched to its end: {problem}")
    return 1 if fail_empty and not hits else 0


COMMAND = Command(
    run,
    about=(
        "Words may stand in any order; hits that have the most of them come first. No query is an error: what makes no "
        "sense as an operator is searched as words. Write -- before a word that begins with a hyphen. A first word "
        "that is a session's whole id, or @last, searches that session alone. In a pipe each hit is one line: session, "
        "seq, time (UTC), agent, kind, title, text; with -C a last column says hit or context."
    ),
    examples=(
        'playhead search "connection reset"',
        "playhead search vacuum lock -C 1",
        "playhead search @last timeout",
        "playhead search deploy -- -staging",
        "playhead search TimeoutError --role tool --since 7d --json | jq -r '.hits[].session'",
    ),
    exits=(3, 5),
)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A hit with the title of its session and the events around it."""

    hit: Hit
    key: SessionKey
    title: str
    before: list[TimelineRow]
    after: list[TimelineRow]


def _narrowed(sessions: Sessions, query: list[str]) -> tuple[SessionKey | None, list[str]]:
    """Return the session that the first word names, by its whole id or as `@last` and `@-N`, and the rest of the query.

    Half an id or a title may as well be a word to look for, so only `--session` takes those.
    """
    if len(query) > 1 and (key := surely_named(sessions, query[0])) is not None:
        return key, query[1:]
    return None, query


def _placed(sessions: Sessions, hits: Iterable[Hit], context: int) -> list[_Placed]:
    """Look up what stands around each hit. Every session is opened once."""
    opened: dict[SessionKey, tuple[Session, str]] = {}
    placed = []
    for hit in hits:
        key = SessionKey(hit.app, hit.user, hit.session)
        if key not in opened:
            session = sessions.get(key.id, app=key.app, user=key.user)
            opened[key] = session, session.summary().title
        session, title = opened[key]
        first = max(hit.seq - context, 1)
        rows = session.timeline(after=first - 1, limit=hit.seq + context - first + 1) if context else []
        before = [row for row in rows if row.seq < hit.seq]
        after = [row for row in rows if row.seq > hit.seq]
        placed.append(_Placed(hit, key, title, before, after))
    return placed


def _hit_document(placed: _Placed) -> dict[str, Any]:
    return {
        **document(placed.hit),
        "title": placed.title,
        "before": [document(row) for row in placed.before],
        "after": [document(row) for row in placed.after],
    }


def _print_hits(terminal: Terminal, hits: Sequence[_Placed], now: float, *, has_context: bool) -> None:
    names = short_names(placed.key for placed in hits)
    for placed in hits:
        if terminal.is_interactive:
            _print_for_a_person(terminal, placed, one_line(names[placed.key]), now)
        else:
            _print_for_a_program(terminal, placed, has_context=has_context)


def _print_for_a_person(terminal: Terminal, placed: _Placed, name: str, now: float) -> None:
    hit = placed.hit
    who = " ".join(dict.fromkeys(one for one in (hit.agent, hit.role or hit.kind) if one))
    who = fitted(one_line(who), terminal.width - len(_INDENT))
    place = [Styled(f"#{hit.seq}", "dim"), Styled(who, "dim"), Styled(age(hit.at, now), "dim")]
    title_columns = terminal.width - width("  ".join([name, *(one.text for one in place)])) - len("  ")
    if title_columns < TITLE_COLUMNS_MIN:
        title_columns = terminal.width - len(_INDENT)
    title = Styled(fitted(one_line(placed.title), title_columns), "bold")
    for line in filled([Styled(name, "cyan"), *place, title], terminal.width):
        terminal.line(*line)
    for row in placed.before:
        _print_context(terminal, row)
    snippet = _marked(hit.snippet.text, hit.snippet.marks, has_color=terminal.has_color)
    for line in _wrapped(snippet, terminal.width - len(_INDENT)):
        terminal.line(_INDENT, *line)
    for row in placed.after:
        _print_context(terminal, row)


def _wrapped(pieces: Iterable[Piece], columns: int) -> Iterator[list[Piece]]:
    """Yield the lines of a text that is broken between words. A word that is wider than a line is left whole."""
    line: list[Piece] = []
    used = 0
    for word in _words(pieces):
        wide = sum(width(piece if isinstance(piece, str) else piece.text) for piece in word)
        if line and used + 1 + wide > columns:
            yield line
            line, used = [], 0
        if line:
            line.append(" ")
            used += 1
        line += word
        used += wide
    yield line


def _words(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the words of a text, each as the pieces that it is made of: a mark may begin or end inside of one."""
    word: list[Piece] = []
    for piece in pieces:
        for text in re.findall(r"\s+|\S+", piece if isinstance(piece, str) else piece.text):
            if not text.isspace():
                word.append(text if isinstance(piece, str) else Styled(text, piece.style))
            elif word:
                yield word
                word = []
    if word:
        yield word


def _print_context(terminal: Terminal, row: TimelineRow) -> None:
    text = fitted(f"{_INDENT}#{row.seq} {one_line(row.agent or row.kind)}: {one_line(row.label)}", terminal.width)
    terminal.line(Styled(text, "dim"))


def _print_for_a_program(terminal: Terminal, placed: _Placed, *, has_context: bool) -> None:
    hit = placed.hit
    around = [*placed.before, None, *placed.after]
    for row in around:
        if row is None:
            cells = [str(hit.seq), iso(hit.at), hit.agent or "", hit.kind, placed.title, hit.snippet.text]
        else:
            cells = [str(row.seq), iso(row.at), row.agent or "", row.kind, placed.title, row.label]
        if has_context:
            cells.append("hit" if row is None else "context")
        terminal.line(tab_separated([str(placed.key), *cells]))


def _marked(text: str, marks: Iterable[tuple[int, int]], *, has_color: bool) -> list[Piece]:
    """Return the text in one line with its matches marked: by colour, or by « and » where there is none."""
    pieces: list[Piece] = []
    end = 0
    for start, stop in marks:
        pieces += [_folded(text[end:start]), Styled(_folded(text[start:stop]), "mark")]
        end = stop
    pieces.append(_folded(text[end:]))
    return pieces if has_color else [f"«{one.text}»" if isinstance(one, Styled) else one for one in pieces]


def _folded(text: str) -> str:
    """Return text in one line, with the single spaces at its ends that keep it apart from what it was cut from."""
    inner = one_line(text)
    if not inner:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{inner}{' ' if text[-1].isspace() else ''}"
