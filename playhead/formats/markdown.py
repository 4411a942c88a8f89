"""A session as a Markdown page: the transcript as a colleague reads it.

What was said stays the Markdown that it was, less raw HTML, which is shown as text. Whatever else comes from the
session stands in code, so that it cannot become a part of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from playhead.formats.printed import (
    MARKERS,
    TOOL_MARKS,
    Printed,
    Shown,
    TurnShown,
    in_short,
    printed,
    who,
    whole,
)
from playhead.formats.redaction import Redactor
from playhead.formats.shown import at_utc, one_line, size_text, visible
from playhead.model.body import text_in
from playhead.session import Session
from playhead.views.transcript import Entry, ToolUse

_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_MARKED_FENCE = re.compile(r" *(?:(?:[-+*>]|[0-9]{1,9}[.)])[ \t]*)+(?:```|~~~)")
_TICKS = re.compile("`+")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
"""The beginning of what a reader of Markdown may take for HTML, or for an address."""
_IN_CODE = re.compile(r"[&<>`*_\[\]|~$#\\]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

_CODE_INDENT = 4
"""Spaces before a line that begin no block but one of code."""

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&#$])")


def markdown(
    session: Session, *, branch: int | None = None, artifacts: bool = True, redactor: Redactor | None = None
) -> Iterator[str]:
    """Yield the page in pieces, each of whole lines.

    branch: the event that ends the path to show, in place of the current one. artifacts: list them. Raises
    `EventNotFound` before the first piece. The same log always gives the same text.
    """
    page = printed(session, branch=branch, redactor=redactor)
    return (block + "\n\n" for block in _blocks(page, artifacts=artifacts))


def _blocks(page: Printed, *, artifacts: bool) -> Iterator[str]:
    yield f"# {_inline(page.title)}"
    yield "\n".join(f"- {name}: {code(text)}" for name, text in page.facts)
    for turn in page.turns:
        yield from _turn(turn)
    for scope, entries in page.other_scopes:
        yield f"## {_inline(scope)}"
        yield from _entries(entries)
    if artifacts and page.artifacts:
        yield "## Artifacts"
        rows = (
            (_cell(text_in(body, "name") or ""), _cell(text_in(body, "media_type") or ""), size_text(body.get("size")),
             _cell(text_in(body, "hash") or ""))
            for body in page.artifacts
        )  # fmt: skip
        yield _table(("Name", "Type", "Size", "Content"), rows)
    if len(page.branches) > 1:
        yield "## Branches"
        yield _table(
            ("Ends at", "Leaves at", "Turns", "Ends with"),
            (
                (
                    f"#{one.branch.tip_seq}",
                    "current" if one.branch.is_current else f"#{one.branch.fork_seq}",
                    str(one.branch.turn_count),
                    _cell(one.ends_with),
                )
                for one in page.branches
            ),
        )


def _turn(shown: TurnShown) -> Iterator[str]:
    if shown.turn is not None:
        turn = shown.turn
        cause = f", begun by {_inline(turn.cause)}" if turn.cause not in (None, "user") else ""
        status = "" if turn.status == "completed" else f", {_inline(turn.status)}"
        yield f"## Turn {turn.number}{cause}{status}"
    yield from _entries(shown.entries)


def _entries(entries: Iterable[Shown]) -> Iterator[str]:
    for shown in entries:
        entry = shown.entry
        if shown.run:
            name = escape(f"{MARKERS['sub_agent']} {one_line(entry.text)}", quote=False)
            yield f"<details><summary>{name} · #{entry.seq}</summary>"
            yield from _entries(shown.run)
            yield "</details>"
        else:
            yield from _message(entry) if entry.kind == "message" else _marker(entry)


def _message(entry: Entry) -> Iterator[str]:
    yield f"**{_inline(who(entry))}** · #{entry.seq} · {at_utc(entry.at)}"
    if entry.reasoning:
        yield f"<details><summary>Reasoning</summary>\n\n{quoted(said(entry.reasoning))}\n\n</details>"
    if entry.text:
        # A person's words are set off from the agent's: both may have headings and lists of their own.
        yield quoted(said(entry.text)) if entry.role == "user" else said(entry.text)
    for part in entry.attachments:
        yield f"Attached: {code(one_line(str(part.get('mime_type') or part.get('type'))))}{_place(part.get('uri'))}"
    for tool in entry.tools:
        yield _tool(tool)
    if entry.is_interrupted:
        yield "*Interrupted before it was finished.*"


def _marker(entry: Entry) -> Iterator[str]:
    name = MARKERS.get(entry.kind, entry.kind)
    head = f"**{name}** · #{entry.seq} · {at_utc(entry.at)}"
    if entry.kind == "compaction":
        yield f"---\n\n{head}"
        yield f"{quoted(said(entry.text))}\n\n---"
    elif "\n" in entry.text:
        yield head
        yield quoted(said(entry.text))
    else:
        yield f"{head}: {_inline(entry.text)}" if entry.text else head


def _tool(tool: ToolUse) -> str:
    mark = TOOL_MARKS.get(tool.status, "…")
    line = escape(f"{mark} {one_line(tool.name)}({in_short(tool.arguments)})", quote=False)
    blocks = [f"<details><summary><code>{line}</code></summary>"]
    if tool.arguments is not None:
        blocks.append(fenced(whole(tool.arguments), "" if isinstance(tool.arguments, str) else "json"))
    if tool.response is not None:
        blocks += ["Result:", fenced(whole(tool.response), "" if isinstance(tool.response, str) else "json")]
    elif tool.status == "interrupted":
        blocks.append("Interrupted: there is no result.")
    return "\n\n".join([*blocks, "</details>"])


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    """Return text as code in a table. With bars in it, it is HTML: readers disagree about a bar behind a backslash."""
    return _html_code(one_line(text)) if "|" in text else code(text)


def said(text: str) -> str:
    """Return Markdown that ends what it begins: a block of code that was left open is closed, and HTML is text.

    `<` stands only in blocks of code whose ends are certain, and in the page's own `<code>`, which takes the place of a
    span of code with a tag in it: no reader, however it pairs the backticks, finds HTML. A text in which nobody can
    tell where blocks of code end without reading its lists is shown as it is, as one block.
    """
    whole = visible(text).strip("\n")
    blocks = _Blocks()
    for line in whole.split("\n"):
        blocks.take(line)
        if blocks.is_unclear:
            return fenced(whole)
    return "\n".join(blocks.ended())


class _Blocks:
    """Takes the lines of a text, tells its blocks of code from everything else, and has the lines to be shown.

    A fence that is not indented is never in a list. One that is indented by up to three may be: the block is closed
    where a line is indented less, so that it ends there for every reader. A fence further in, or behind the mark of a
    list or a quotation, counts as text: if it is a fence, its list ends it at the next line that is not indented.
    """

    def __init__(self) -> None:
        self.is_unclear = False
        self._lines: list[str] = []
        self._loose: list[str] = []
        self._fence = ""
        self._indent = 0
        self._is_wary = False

    def take(self, line: str) -> None:
        """Take the next line."""
        flat = _leading_tabs_as_spaces(line)
        indent = len(flat) - len(flat.lstrip(" "))
        if not (self._fence and self._take_in_block(line, flat, indent)):
            self._take_outside(flat, indent)

    def ended(self) -> list[str]:
        """Return the lines, all blocks closed."""
        if self._fence:
            self._close()
        self._settle()
        return self._lines

    def _take_in_block(self, line: str, flat: str, indent: int) -> bool:
        """Take a line into the block, or as its end. Return False for a line that ends it and is no part of it."""
        text = flat.strip(" \t")
        is_end = text.startswith(self._fence) and not text.strip(self._fence[0])
        if self._indent == 0:
            # Behind the mark of a quotation a tab may be narrower, and what is far enough in to be no end would be one.
            self._lines.append(flat if is_end else line)
            if is_end and indent < _CODE_INDENT:
                self._fence = ""
            return True
        if is_end or (text and indent < self._indent):
            self._close()
            return is_end
        self._lines.append(flat)
        return True

    def _take_outside(self, flat: str, indent: int) -> None:
        if flat.strip(" ") and indent == 0:
            self._is_wary = False
        found = _FENCE.match(flat, indent)
        is_fence = found is not None and not (found[1][0] == "`" and "`" in found[2])
        if found is not None and is_fence and indent < _CODE_INDENT:
            # A bar in it may make it the head of a table.
            self.is_unclear = self._is_wary or "|" in found[2]
            self._settle()
            self._lines.append(flat)
            self._fence, self._indent = found[1], indent
            return
        self._is_wary = self._is_wary or is_fence or _MARKED_FENCE.match(flat) is not None
        self._loose.append(flat)

    def _close(self) -> None:
        self._lines.append(" " * self._indent + self._fence)
        self._fence = ""

    def _settle(self) -> None:
        self._lines += _without_tags(self._loose)
        self._loose = []


def _leading_tabs_as_spaces(line: str) -> str:
    text = line.lstrip(" \t")
    return line[: len(line) - len(text)].expandtabs(4) + text


def _without_tags(lines: list[str]) -> list[str]:
    """Return lines of text in which nothing begins a tag but `<code>`."""
    shown = []
    is_paired = True  # No span of code of this paragraph is open at the beginning of the line.
    for line in lines:
        if not line.strip(" "):
            is_paired = True
        pieces, is_paired = _spans(line) if is_paired else ([line], False)
        shown.append("".join(_as_code(piece) if index % 2 else _as_text(piece) for index, piece in enumerate(pieces)))
    return shown


def _spans(line: str) -> tuple[list[str], bool]:
    """Return a line in pieces, by turns text and a span of code, and whether every backtick of it has its like."""
    pieces, done, at = [], 0, 0
    runs = list(_TICKS.finditer(line))
    while at < len(runs):
        run = runs[at]
        if line[run.start() - 1 : run.start()] == "\\":
            break
        end = next((n for n in range(at + 1, len(runs)) if runs[n].end() - runs[n].start() == len(run[0])), None)
        if end is None:
            break
        pieces += [line[done : run.start()], line[run.start() : runs[end].end()]]
        done, at = runs[end].end(), end + 1
    return [*pieces, line[done:]], at == len(runs)


def _as_text(text: str) -> str:
    return _TAG.sub("&lt;", text)


def _as_code(span: str) -> str:
    """Return a span of code, as HTML where something in it looks like a tag: there it needs no backticks."""
    if not _TAG.search(span):
        return span
    inside = span.strip("`")
    has_edges = inside.startswith(" ") and inside.endswith(" ")
    return _html_code(inside[1:-1] if has_edges else inside)


def _html_code(text: str) -> str:
    return f"<code>{_IN_CODE.sub(lambda found: _ENTITIES.get(found[0]) or f'&#{ord(found[0])};', text)}</code>"


def quoted(text: str) -> str:
    """Return Markdown as a quotation."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code between fences that are longer than any in it."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """Return text as code within a line."""
    line = one_line(text)
    ticks = "`" * (_longest_run(line) + 1)
    space = " " if line[:1] in ("`", "") or line.endswith("`") else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def _place(uri: object) -> str:
    return f" {code(uri)}" if isinstance(uri, str) and uri else ""


def _inline(text: str) -> str:
    """Return text that is no Markdown, for a line of it."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
