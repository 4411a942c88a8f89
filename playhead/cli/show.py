"""The `show` command: a session as a person reads it, one of its events, or its branches."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from playhead.cli.command import Command, Here, JsonOption, SessionArgument
from playhead.cli.documents import document, session_document
from playhead.cli.failures import Failure
from playhead.cli.moments import iso, local
from playhead.cli.naming import named_event
from playhead.cli.page import ToolDetail, print_entries, print_heading
from playhead.cli.table import Column
from playhead.cli.terminal import Terminal, json_text
from playhead.errors import TurnNotFound
from playhead.features.reading import DEFAULT_AGENT, View, scope_of
from playhead.model.body import text_in
from playhead.model.event import Event
from playhead.model.parts import text_of
from playhead.session import Session
from playhead.views.timeline import label
from playhead.views.transcript import Entry, transcript
from playhead.views.turns import TurnSpan, turns

WINDOW_EVENTS = 200
"""So many of the last events are read first for the last turns; four times as many where those do not reach."""


def run(
    here: Here,
    session: SessionArgument,
    event: Annotated[
        int | None, typer.Option("--event", metavar="SEQ", min=1, help="Only this event, whole, with its body")
    ] = None,
    branch: Annotated[
        int | None, typer.Option("--branch", metavar="SEQ", min=1, help="The path that ends at this event")
    ] = None,
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="Only this turn of the path; -1 is the last one")
    ] = None,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="Only the last N turns")] = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="LABEL", help="A sub-agent's run, such as coordinator/researcher:1")
    ] = DEFAULT_AGENT,
    tools: Annotated[ToolDetail, typer.Option("--tools", help="How much of tool calls and their results")] = "short",
    raw: Annotated[bool, typer.Option("--raw", help="The text alone, exactly as it is stored")] = False,
    tree: Annotated[bool, typer.Option("--tree", help="The branches, in place of the text")] = False,
    json: JsonOption = False,
) -> None:
    """Print what the options pick; the transcript of the current path where they pick nothing."""
    if (event is not None) + (branch is not None) + tree > 1:
        raise Failure("--event, --branch and --tree each pick something else; give one of them", code=2)
    if (event is not None) + tree + (turn is not None) + (last is not None) > 1:
        raise Failure("--event, --tree, --turn and --last each pick something else; give one of them", code=2)
    with here.open_existing() as sessions:
        key, seq = named_event(sessions, session)
        if event is None and branch is None and not tree and turn is None and last is None:
            event = seq
        opened = sessions.get(key.id, app=key.app, user=key.user)
        if event is not None:
            _show_event(here.terminal, opened, opened.event(event), raw=raw, json=json)
        elif tree:
            _show_tree(here.terminal, opened, json=json)
        else:
            _check_agent(opened, agent)
            view = opened if branch is None else opened.at(branch)
            path, spans = _whole(view) if turn is None and last is None else _turns_of(view, turn, last or 1)
            entries = transcript(path, scope=scope_of(agent))
            _show_transcript(here.terminal, opened, spans, entries, tools=tools, raw=raw, json=json)


COMMAND = Command(
    run,
    about=(
        "Without options it prints the transcript of the current path, with tool calls cut to a line. The number after "
        "# is an event's seq: SESSION#SEQ shows that event whole, and --event, --branch and `playhead fork --at` take "
        "it; `playhead rewind --to` takes the number of a turn. --tree lists every branch by the event that it ends at."
    ),
    examples=(
        "playhead show @last",
        "playhead show @last --last 2 --tools full",
        "playhead show @last --event 4 --json",
        "playhead show upload-0001#4",
        "playhead show @last --tree",
    ),
    exits=(3, 5, 6),
)


def _check_agent(session: Session, agent: str) -> None:
    """Raise `Failure` with the agents that there are, where none is called like this."""
    runs = [label for event in session.events(kinds=["job_changed"]) if (label := text_in(event.body, "agent"))]
    known = dict.fromkeys([DEFAULT_AGENT, *session.summary().agents, *runs])
    if agent not in known:
        raise Failure(f'session {session.key} has no agent "{agent}"; these wrote in it', code=3, lines=list(known))


def _whole(view: View) -> tuple[list[Event], list[TurnSpan]]:
    path = view.path()
    return path, turns(path)


def _turns_of(view: View, turn: int | None, last: int) -> tuple[list[Event], list[TurnSpan]]:
    """Return the events and the spans of one turn, or of the `last` ones. Reads the path from its end, no further than
    it has to. Raises `TurnNotFound`."""
    total = view.turn_count
    first = max(total - last + 1, 1)
    until = total
    if turn is not None:
        first = until = total + 1 + turn if turn < 0 else turn
        if not 1 <= first <= total:
            raise TurnNotFound(view.id, turn, turn_count=total)
    window = WINDOW_EVENTS
    while True:
        events = view.newest_events(window)
        is_all = len(events) < window
        found = turns(events)
        # The first turn of a window may have begun before it, so it counts only where the window is the whole path.
        spans = [msgspec.structs.replace(span, number=span.number + total - len(found)) for span in found]
        if is_all or (len(spans) > 1 and spans[0].number < first):
            kept = [span for span in spans if first <= span.number <= until]
            if not kept:
                return [], []
            return [event for event in events if kept[0].first_seq <= event.seq <= kept[-1].last_seq], kept
        window *= 4


def _show_transcript(
    terminal: Terminal,
    session: Session,
    spans: list[TurnSpan],
    entries: list[Entry],
    *,
    tools: ToolDetail,
    raw: bool,
    json: bool,
) -> None:
    if json:
        found = {"session": session_document(session), "turns": [document(span) for span in spans]}
        terminal.json({**found, "entries": [document(entry) for entry in entries]})
    elif raw:
        for entry in entries:
            if entry.text:
                terminal.exact(entry.text + "\n")
    else:
        with terminal.paged():
            print_heading(terminal, session)
            print_entries(terminal, entries, tools=tools, turns=spans)


def _show_event(terminal: Terminal, session: Session, event: Event, *, raw: bool, json: bool) -> None:
    if json:
        terminal.json({"session": session_document(session), "event": document(event)})
        return
    if raw:
        terminal.exact(_raw_text(event))
        if terminal.is_interactive:
            terminal.line()
        return
    facts = {
        "event": f"#{event.seq}",
        "id": event.id,
        "kind": event.kind,
        "agent": event.agent,
        "turn": event.turn,
        "scope": event.scope,
        "at": f"{local(event.at)}  {iso(event.at)}",
        "parent": f"#{event.parent}" if event.parent else None,
    }
    for name, value in facts.items():
        if value is not None:
            terminal.line(f"{name:<8}{value}")
    terminal.line()
    terminal.line(json_text(event.body, indent=2))


def _show_tree(terminal: Terminal, session: Session, *, json: bool) -> None:
    branches = session.branches()
    if json:
        terminal.json({"session": session_document(session), "branches": [document(branch) for branch in branches]})
        return
    terminal.table(
        _TREE_COLUMNS,
        (
            [
                str(branch.tip_seq),
                "current" if branch.is_current else f"from {branch.fork_seq}",
                str(branch.turn_count),
                str(branch.event_count),
                label(session.event(branch.tip_seq)),
            ]
            for branch in branches
        ),
    )


_TREE_COLUMNS = (
    Column("ENDS AT", is_right=True, style="cyan"),
    Column("BRANCH"),
    Column("TURNS", is_right=True, leaves=1),
    Column("EVENTS", is_right=True, leaves=2),
    Column("ENDS WITH", is_flexible=True, columns_min=20),
)


def _raw_text(event: Event) -> str:
    """Return what the event says, nothing around it: a message's text, a tool's response, else the body as JSON."""
    body = event.body
    if event.kind == "compaction":
        return str(body["summary"])
    parts = body.get("parts") or [] if event.kind == "message" else []
    text = text_of(parts)
    if text:
        return text
    responses = [part.get("response") for part in parts if part.get("type") == "tool_call_response"]
    if responses:
        return "\n".join(one if isinstance(one, str) else json_text(one) for one in responses)
    return json_text(body)
