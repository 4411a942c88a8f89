"""A session as one HTML page: no script, no request to anywhere, and every event with an address of its own (`#e12`).

Everything that comes from the session is escaped text, Markdown that was made harmless (`words.py`), or a picture in
the page itself (`pictures.py`). The policy in the page's head forbids what none of it asks for.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from playhead.errors import ArtifactDamaged, ArtifactNotFound
from playhead.features.reading import View
from playhead.formats.html.pictures import Pictures, blob_bytes
from playhead.formats.html.words import link, plain_words, words
from playhead.formats.printed import (
    MARKERS,
    TOOL_MARKS,
    Printed,
    Shown,
    TurnShown,
    in_short,
    masked,
    printed,
    who,
    whole,
)
from playhead.formats.redaction import Redactor
from playhead.formats.shown import at_utc, one_line, size_text
from playhead.model.body import text_in
from playhead.model.event import is_fact
from playhead.model.path import lies_on, of_seqs
from playhead.session import Session
from playhead.stores.base import EVENTS_PAGE_MAX
from playhead.views.timeline import label
from playhead.views.transcript import Entry, ToolUse

CONTENTS_CHARS_MAX = 90
OFF = ' class="off"'
"""Marks the row of an event that lies on another branch."""


def html(
    session: Session, *, branch: int | None = None, artifacts: bool = True, redactor: Redactor | None = None
) -> Iterator[str]:
    """Yield the page in pieces, each of whole lines.

    branch: the event that ends the path to show, in place of the current one. artifacts: list them, with pictures in
    the page; none are shown where texts are masked, as nothing can be looked for in them. Raises `EventNotFound`, and
    `ExtraMissing` where the library for Markdown is not installed, before the first piece. The same log always gives
    the same page.
    """
    page = printed(session, branch=branch, redactor=redactor)
    words("")
    view: View = session if branch is None else session.at(branch)
    return _Page(session, view, page, artifacts=artifacts, redactor=redactor).pieces()


class _Page:
    """One page that is being written, and which events have an address on it already."""

    def __init__(
        self, session: Session, view: View, page: Printed, *, artifacts: bool, redactor: Redactor | None
    ) -> None:
        self._session = session
        self._view = view
        self._page = page
        self._has_artifacts = artifacts
        self._redactor = redactor
        self._pictures = Pictures()
        self._addressed: set[int] = set()
        self._newest = {text_in(body, "name"): body for body in page.artifacts}

    def pieces(self) -> Iterator[str]:
        page = self._page
        yield _head(one_line(page.title))
        facts = "".join(f"<dt>{escape(name)}</dt><dd><bdi>{escape(text)}</bdi></dd>" for name, text in page.facts)
        yield f'<header><h1 dir="auto">{escape(one_line(page.title))}</h1>\n<dl>{facts}</dl></header>\n'
        yield from self._contents()
        yield "<main>\n"
        for turn in page.turns:
            yield from self._turn(turn)
        for scope, entries in page.other_scopes:
            yield f"<section><h2>{_text(scope)}</h2>\n"
            yield from self._entries(entries)
            yield "</section>\n"
        yield "</main>\n"
        if self._has_artifacts and page.artifacts:
            yield '<section id="artifacts"><h2>Artifacts</h2>\n'
            for body in page.artifacts:
                yield f'<div class="list">{_described(body)}</div>\n'
            yield "</section>\n"
        if len(page.branches) > 1:
            yield from self._branches()
        yield from self._log()
        yield "</div>\n</body>\n</html>\n"

    def _contents(self) -> Iterator[str]:
        turns = [shown for shown in self._page.turns if shown.turn is not None]
        if len(turns) < 2:
            return
        yield f'<nav aria-label="Turns"><details><summary>{len(turns)} turns</summary>\n<ol>\n'
        for shown in turns:
            assert shown.turn is not None, "turns without a span were left out"
            yield f'<li><a href="#t{shown.turn.number}">{_text(_begins_with(shown))}</a></li>\n'
        yield "</ol></details></nav>\n"

    def _turn(self, shown: TurnShown) -> Iterator[str]:
        turn = shown.turn
        if turn is None:
            yield "<section>\n"
        else:
            cause = f", begun by {_text(turn.cause)}" if turn.cause not in (None, "user") else ""
            status = "" if turn.status == "completed" else f", {_text(turn.status)}"
            yield f'<section id="t{turn.number}"><h2>Turn {turn.number}{cause}{status}</h2>\n'
        yield from self._entries(shown.entries)
        yield "</section>\n"

    def _entries(self, entries: Iterable[Shown]) -> Iterator[str]:
        for shown in entries:
            entry = shown.entry
            if shown.run:
                yield f'<details class="run"{self._id(entry.seq)}><summary>{MARKERS["sub_agent"]} '
                yield f"<b>{_text(entry.text)}</b> {_seq_link(entry.seq)}</summary>\n{self._marks(entry.seqs)}"
                yield from self._entries(shown.run)
                yield "</details>\n"
            else:
                yield from self._message(entry) if entry.kind == "message" else self._marker(entry)

    def _message(self, entry: Entry) -> Iterator[str]:
        is_user = entry.role == "user"
        yield f'<article class="{"you" if is_user else "agent"}"{self._id(entry.seq)}>{_heading(who(entry), entry)}\n'
        if entry.reasoning:
            yield f'<details class="thought"><summary>Reasoning</summary>{plain_words(entry.reasoning)}</details>\n'
        if entry.text:
            # What a person typed stays as it was typed: a pasted log is no Markdown.
            yield f'<div class="text" dir="auto">{plain_words(entry.text) if is_user else words(entry.text)}</div>\n'
        for part in entry.attachments:
            yield f'<div class="list">{self._attachment(part)}</div>\n'
        for tool in entry.tools:
            yield self._tool(tool)
        if entry.is_interrupted:
            yield '<p class="cut">Interrupted before it was finished.</p>\n'
        yield f"{self._marks(entry.seqs)}</article>\n"

    def _marker(self, entry: Entry) -> Iterator[str]:
        name = MARKERS.get(entry.kind, entry.kind)
        yield f'<article class="marker"{self._id(entry.seq)}>{_heading(name, entry)}\n'
        if entry.kind == "artifact" and self._has_artifacts:
            yield self._artifact(entry.data or {})
        elif entry.text:
            text = words(entry.text) if entry.kind == "compaction" else plain_words(entry.text)
            yield f'<div class="text" dir="auto">{text}</div>\n'
        yield f"{self._marks(entry.seqs)}</article>\n"

    def _tool(self, tool: ToolUse) -> str:
        sign = TOOL_MARKS.get(tool.status, "…")
        status = tool.status if tool.status in TOOL_MARKS else "running"
        place = self._id(tool.response_seq) if tool.response_seq is not None else ""
        found = [
            f'<details class="tool {status}"{place}><summary><span class="sign">{sign}</span> '
            f'<b>{_text(tool.name)}</b> <span class="mono">{_text(in_short(tool.arguments))}</span></summary>\n'
        ]
        if tool.arguments is not None:
            found.append(f'<p class="what">Arguments</p><pre dir="auto">{escape(whole(tool.arguments))}</pre>\n')
        if tool.response is not None:
            found.append(f'<p class="what">Result</p><pre dir="auto">{escape(whole(tool.response))}</pre>\n')
        elif status == "interrupted":
            found.append('<p class="cut">Interrupted: there is no result.</p>\n')
        return "".join([*found, "</details>\n"])

    def _attachment(self, part: dict[str, Any]) -> str:
        kind = one_line(str(part.get("mime_type") or part.get("type")))
        uri = part.get("uri")
        if isinstance(uri, str) and uri:
            return f"{escape(kind)}: {link(uri, uri)}"
        data = blob_bytes(part.get("content"))
        address = self._pictures.address(data) if data else None
        if address is not None:
            return f'<img src="{address}" alt="{escape(kind)}">'
        named = part.get("file_id")
        size = size_text(len(data)) if data else ""
        return " ".join(text for text in (escape(kind), _text(str(named)) if named else "", size) if text)

    def _artifact(self, body: dict[str, Any]) -> str:
        """Return what an artifact is, and the picture where it is one. Only the newest of a name is looked at."""
        said, name = _described(body), text_in(body, "name") or ""
        if self._redactor is not None or self._newest.get(name) != body:
            return said
        try:
            address = self._pictures.address(self._view.artifact(name))
        except (ArtifactNotFound, ArtifactDamaged):
            return f'{said}<p class="cut">Its bytes are missing or damaged.</p>'
        return said if address is None else f'{said}<img src="{address}" alt="{escape(one_line(name))}">'

    def _branches(self) -> Iterator[str]:
        yield '<section id="branches"><h2>Branches</h2>\n<table><thead><tr><th>Ends at</th><th>Leaves at</th>'
        yield "<th>Turns</th><th>Ends with</th></tr></thead><tbody>\n"
        for shown in self._page.branches:
            branch = shown.branch
            leaves = "current" if branch.is_current else _seq_link(branch.fork_seq)
            yield f"<tr><td>{_seq_link(branch.tip_seq)}</td><td>{leaves}</td><td>{branch.turn_count}</td>"
            yield f"<td>{_text(shown.ends_with)}</td></tr>\n"
        yield "</tbody></table></section>\n"

    def _log(self) -> Iterator[str]:
        """Yield a row for every event of the log. The row is the address of an event that stands nowhere else."""
        path = of_seqs(event.seq for event in self._view.path())
        yield '<section id="log"><h2>Log</h2>\n<details><summary>Every event, also of other branches</summary>\n'
        yield '<table class="log"><tbody>\n'
        # What the page shows above was counted there.
        counted = self._redactor.again() if self._redactor is not None else None
        after = 0
        while page := self._session.events(after=after):
            for event in page:
                shown = masked(event, counted if lies_on(path, event.seq) else self._redactor)
                is_off = not lies_on(path, event.seq) and not is_fact(event.kind, event.body)
                place = self._id(event.seq)
                yield f"<tr{place}{OFF if is_off else ''}><td>{_seq_link(event.seq)}</td>"
                yield f"<td>{at_utc(event.at, seconds=True)}</td><td>{_text(event.kind)}</td>"
                yield f"<td>{_text(shown.agent or '')}</td><td>{_text(label(shown))}</td></tr>\n"
            after = page[-1].seq
            if len(page) < EVENTS_PAGE_MAX:
                break
        yield "</tbody></table></details></section>\n"

    def _id(self, seq: int) -> str:
        """Return the address of an event as an attribute, "" where it has one already."""
        if seq in self._addressed:
            return ""
        self._addressed.add(seq)
        return f' id="e{seq}"'

    def _marks(self, seqs: Iterable[int]) -> str:
        """Return addresses for the events that are shown in one place with another."""
        return "".join(f"<span{place}></span>" for seq in seqs if (place := self._id(seq)))


def _head(title: str) -> str:
    style = _style()
    policy = (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<div class="page">\n'
    )


@cache
def _style() -> str:
    return files("playhead.formats.html").joinpath("page.css").read_text(encoding="utf-8")


def _heading(name: str, entry: Entry) -> str:
    at = at_utc(entry.at)
    return f"<header><b>{_text(name)}</b>{_seq_link(entry.seq)}<time>{at}</time></header>"


def _described(body: dict[str, Any]) -> str:
    """Return what an artifact is called, its type and size, and the hash of its content."""
    facts = [one_line(text_in(body, "media_type") or ""), size_text(body.get("size"))]
    said = f"<b>{_text(text_in(body, 'name') or '')}</b> {escape(' · '.join(fact for fact in facts if fact))}"
    return f"{said}<br><code>{_text(text_in(body, 'hash') or '')}</code>"


def _seq_link(seq: int) -> str:
    return f'<a class="seq" href="#e{seq}">#{seq}</a>'


def _begins_with(shown: TurnShown) -> str:
    """Return the first words of a turn."""
    texts = (one_line(one.entry.text) for one in shown.entries if one.entry.text)
    text = next(texts, "(nothing was said)")
    return text if len(text) <= CONTENTS_CHARS_MAX else text[: CONTENTS_CHARS_MAX - 1] + "…"


def _text(text: str) -> str:
    """Return text for one line of the page. Its direction does not turn what stands beside it."""
    line = one_line(text)
    return escape(line) if line.isascii() else f"<bdi>{escape(line)}</bdi>"
