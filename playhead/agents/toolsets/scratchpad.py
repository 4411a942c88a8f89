"""Tools for an agent's notes to itself: state of the agent, which a rewind takes back."""

from __future__ import annotations

from typing import Any

from playhead.agents.tools import Tool, ToolFailed, Using
from playhead.agents.toolsets.making import made, text

NOTES_MAX = 50
NOTE_CHARS_MAX = 10_000
NAME_CHARS_MAX = 100


def scratchpad_tools() -> tuple[Tool, ...]:
    """Return `scratchpad_read` and `scratchpad_write`. A sub-agent shares the notes of the agent that sent it out."""
    return (
        made("scratchpad_read", "Read all notes of your scratchpad in this session.", {}, _read),
        made(
            "scratchpad_write",
            "Keep a note in your scratchpad, which you have in this session as long as it lasts. "
            "It takes the place of the note of that name; an empty text removes it.",
            {"name": text("What the note is about"), "text": text("What to keep")},
            _write,
            required=("name", "text"),
        ),
    )


async def notes_of(using: Using) -> dict[str, Any]:
    """Return the notes: name to text."""
    return (await using.request.session.state()).get(_scope(using), {})


async def _read(using: Using, arguments: dict[str, Any]) -> Any:
    return await notes_of(using)


async def _write(using: Using, arguments: dict[str, Any]) -> str:
    name, said = arguments["name"].strip(), arguments["text"]
    if not name or len(name) > NAME_CHARS_MAX or name.startswith("temp:"):
        raise ToolFailed(f"a note's name has 1 to {NAME_CHARS_MAX} characters, and does not begin with temp:")
    if len(said) > NOTE_CHARS_MAX:
        raise ToolFailed(f"a note has at most {NOTE_CHARS_MAX:,} characters; this one has {len(said):,}")
    notes = await notes_of(using)
    if not said:
        if name not in notes:
            raise ToolFailed(f"there is no note {name!r}; there are: {', '.join(notes) or 'none'}")
        await using.speaker.set_state({}, scope=_scope(using), removed=[name])
        return "Removed."
    if name not in notes and len(notes) >= NOTES_MAX:
        raise ToolFailed(f"the scratchpad holds {NOTES_MAX} notes at most; remove one first")
    await using.speaker.set_state({name: said}, scope=_scope(using))
    return "Kept."


def _scope(using: Using) -> str:
    """Return the state scope of the agent that answers; its sub-agents share it."""
    return f"agent:{using.speaker.agent.partition('/')[0]}"
