"""What a Codex file holds, counted from its records and not from the events they become."""

from __future__ import annotations

from playhead.formats.codex.records import Opened, said_texts
from playhead.formats.codex.said import user_kind
from playhead.formats.ids import clean
from playhead.formats.imported import Counts
from playhead.formats.values import mapping

_SPAWNED = {"collab_agent_spawn_end": "new_thread_id", "sub_agent_activity": "agent_thread_id"}


class Census:
    """Counts as records arrive. Copies of a parent's history count as records only.

    user_prompts, assistant_messages: what was said, by the events about it; in a file that has none, by the completed
    items, or else by the items. What the program wrote into the user's place is no prompt. tool_calls: calls of tools
    that Codex runs, not the searches and pictures of the model's provider. sub_agents: different threads that were
    begun from this one. compactions: `compacted` records.
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self.known_count = 0
        self._said: dict[str, dict[str, int]] = {
            role: {"event": 0, "completed": 0, "item": 0} for role in ("user", "assistant")
        }
        self._threads: set[str] = set()

    def take(self, found: Opened, *, is_copied: bool) -> None:
        """Count a record."""
        counts = self.counts
        counts.records += 1
        self.known_count += found.is_known
        if is_copied:
            return
        counts.tool_calls += found.kind in ("function_call", "custom_tool_call")
        counts.compactions += found.type == "compacted"
        if (role_and_form := _said(found)) is not None and not _is_injected(role_and_form[0], found):
            role, form = role_and_form
            self._said[role][form] += 1
            of_user, of_agent = self._said["user"], self._said["assistant"]
            counts.user_prompts = next((count for count in of_user.values() if count), 0)
            counts.assistant_messages = next((count for count in of_agent.values() if count), 0)
        if (thread := clean(found.payload.get(_SPAWNED.get(found.kind, "")))) is not None:
            self._threads.add(thread)
            counts.sub_agents = len(self._threads)


def _said(found: Opened) -> tuple[str, str] | None:
    """Return the role and the form of what a record says, or None for a record that says nothing."""
    match (found.type, found.kind):
        case ("event_msg", "user_message"):
            return "user", "event"
        case ("event_msg", "agent_message"):
            return "assistant", "event"
        case ("event_msg", "item_completed"):
            role = {"UserMessage": "user", "AgentMessage": "assistant"}.get(
                str(mapping(found.payload.get("item")).get("type"))
            )
            return (role, "completed") if role else None
        case ("response_item", "message"):
            said_by = found.payload.get("role")
            return (said_by, "item") if said_by in ("user", "assistant") else None
    return None


def _is_injected(role: str, found: Opened) -> bool:
    return role == "user" and user_kind(said_texts(found)) != "typed"
