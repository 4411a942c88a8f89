"""A session on the page of a terminal: its heading, and its transcript entry by entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from playhead.cli.moments import local
from playhead.cli.table import Piece, Style, Styled, filled
from playhead.cli.terminal import Terminal, json_text
from playhead.cli.text import fitted, one_line, plain
from playhead.session import Session
from playhead.views.transcript import Entry, ToolUse
from playhead.views.turns import TurnSpan

ToolDetail = Literal["none", "short", "full"]

_INDENT = "  "
_MARKER_NAMES = {
    "compaction": "compacted",
    "interrupt": "asks",
    "answer": "answered",
    "sub_agent": "sub-agent",
    "job": "job",
    "trigger": "trigger",
    "channel": "channel",
    "artifact": "artifact",
}
_TOOL_MARKS = {"running": "…", "completed": "✓", "failed": "✗", "interrupted": "✗"}
_VALUE_CHARS_MAX = 400


def is_typed(entry: Entry) -> bool:
    """Return True for what a person wrote. A sub-agent's task and a note to the agent are user messages as well, and
    somebody else wrote them."""
    return entry.kind == "message" and entry.role == "user" and entry.agent == "user"


def print_heading(terminal: Terminal, session: Session) -> None:
    """Write what the session is: title, id, and the facts of its listing row."""
    summary = session.summary()
    terminal.line(Styled(one_line(summary.title), "bold"))
    facts = [
        one_line(str(session.key)),
        f"{summary.turn_count} turn{'' if summary.turn_count == 1 else 's'}",
        one_line(summary.status),
        one_line(" ".join(summary.agents)),
        one_line(summary.cwd or ""),
        local(summary.last_active_at),
    ]
    shown = [Styled(fact, "dim") for fact in facts if fact]
    if not terminal.is_interactive:
        terminal.line(Styled("  ".join(fact.text for fact in shown), "dim"))
        return
    for line in filled(shown, terminal.width):
        terminal.line(*line)


def print_entries(
    terminal: Terminal, entries: Iterable[Entry], *, tools: ToolDetail, turns: Sequence[TurnSpan] = ()
) -> None:
    """Write entries, each after an empty line, and a rule with its number where a turn begins."""
    left = list(reversed(turns))
    for entry in entries:
        while left and left[-1].first_seq <= entry.seq:
            number = left.pop().number
            if not (left and left[-1].first_seq <= entry.seq):
                terminal.line()
                terminal.line(Styled(f"── turn {number} ──", "dim"))
        if entry.kind == "message":
            _print_message(terminal, entry, tools)
        else:
            _print_marker(terminal, entry)


def _print_message(terminal: Terminal, entry: Entry, tools: ToolDetail) -> None:
    shown_tools = entry.tools if tools != "none" else ()
    if not (entry.text or shown_tools or entry.attachments or entry.is_interrupted):
        return
    is_person = is_typed(entry)
    who = "you" if is_person else entry.agent or "note to the agent"
    terminal.line()
    terminal.line(
        Styled(f"#{entry.seq}", "dim"),
        " ",
        Styled(one_line(who), "green" if is_person else "cyan"),
        Styled(f"  {local(entry.at)}", "dim"),
    )
    if entry.text:
        _print_block(terminal, entry.text)
    for tool in shown_tools:
        _print_tool(terminal, tool, tools)
    for part in entry.attachments:
        terminal.line(_INDENT, Styled(f"[{part.get('mime_type') or part.get('type')}]", "dim"))
    if entry.is_interrupted:
        terminal.line(_INDENT, Styled("(interrupted before it was finished)", "yellow"))


def _print_marker(terminal: Terminal, entry: Entry) -> None:
    name = _MARKER_NAMES.get(entry.kind, entry.kind)
    terminal.line()
    head: list[Piece] = [Styled(f"#{entry.seq}", "dim"), " ", Styled(name, "yellow")]
    if "\n" in entry.text or len(entry.text) > terminal.width:
        terminal.line(*head)
        _print_block(terminal, entry.text)
    else:
        terminal.line(*head, f"  {entry.text}")


def _print_tool(terminal: Terminal, tool: ToolUse, detail: ToolDetail) -> None:
    mark = _TOOL_MARKS.get(tool.status, "…")
    style: Style = "red" if tool.status in ("failed", "interrupted") else "dim"
    if detail == "full":
        terminal.line(_INDENT, Styled(f"{mark} {one_line(tool.name)}", style))
        _print_block(terminal, _value_text(tool.arguments), depth=2)
        if tool.response is not None:
            terminal.line(_INDENT * 2, Styled("→", "dim"))
            _print_block(terminal, _value_text(tool.response), depth=2)
        return
    arguments = _value_line(tool.arguments) if tool.arguments not in (None, {}) else ""
    text = f"{mark} {tool.name}({arguments})"
    if tool.response is not None:
        text += f" → {_value_line(tool.response)}"
    terminal.line(_INDENT, Styled(fitted(one_line(text), terminal.width - len(_INDENT)), style))


def _print_block(terminal: Terminal, text: str, *, depth: int = 1) -> None:
    for line in plain(text).rstrip("\n").split("\n"):
        terminal.line(_INDENT * depth + line if line else "")


def _value_text(value: Any) -> str:
    """Return a tool's arguments or response to be read whole."""
    return value if isinstance(value, str) else json_text(value, indent=2)


def _value_line(value: Any) -> str:
    """Return the beginning of a value in a line; a large one is not written out whole to be cut.

    What is empty, or all white space, is written as JSON: nothing at all would look like a fault.
    """
    if isinstance(value, str) and value[:_VALUE_CHARS_MAX].strip():
        return value[:_VALUE_CHARS_MAX]
    if isinstance(value, str):
        return json.dumps(value[:_VALUE_CHARS_MAX])
    if isinstance(value, dict) and value:
        return ", ".join(f"{key}={_value_line(item)}" for key, item in list(value.items())[:8])
    if isinstance(value, list) and value:
        return ", ".join(_value_line(item) for item in value[:8])
    return json.dumps(value)
