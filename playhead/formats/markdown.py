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
    at_utc,
    in_short,
    one_line,
    printed,
    size_text,
    visible,
    who,
    whole,
)
from playhead.formats.redaction import Redactor
from playhead.model.body import text_in
from playhead.session import Session
from playhead.views.transcript import Entry, ToolUse

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# A span of code within one paragraph, or the beginning of something that a reader of Markdown may take for HTML.
_SPAN_OR_TAG = re.compile(r"(?<![\\`])(`{1,8})(?!`)(?:(?!\n[ \t]*\n)[\s\S])*?(?<!`)\1(?!`)|<(?=[A-Za-z/!?])")
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
            (code(text_in(body, "name") or ""), code(text_in(body, "media_type") or ""), size_text(body.get("size")),
             code(text_in(body, "hash") or ""))
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
                    code(one.ends_with),
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
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def said(text: str) -> str:
    """Return Markdown that ends what it begins: a code block that was left open is closed, and HTML is text."""
    lines: list[str] = []
    loose: list[str] = []
    fence = ""
    for line in visible(text).strip("\n").split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            lines.append(line)
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            lines += [*_without_tags(loose), line]
            loose, fence = [], found[1]
        else:
            loose.append(line)
    lines += _without_tags(loose)
    return "\n".join([*lines, fence] if fence else lines)


def _without_tags(lines: list[str]) -> list[str]:
    if not lines:
        return []
    return _SPAN_OR_TAG.sub(lambda found: found[0] if found[1] else "&lt;", "\n".join(lines)).split("\n")


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
