"""What a Claude Code file holds, counted from its records and not from the events they become."""

from __future__ import annotations

from typing import Any

from playhead.formats.claude_code.records import message_of, user_kind
from playhead.formats.imported import Counts
from playhead.formats.values import mapping, text

_NO_PROMPTS = frozenset({"summary", "meta", "result", "empty"})


class Census:
    """Counts as records arrive.

    records: all of them, those of the sub-agents' own files too. The rest is about the session's file alone, and a
    record that repeats an earlier uuid counts as a record only.

    user_prompts: user records outside sidechains, and prompts queued while tools ran; not what the program wrote for
    itself (`isMeta`, summaries) and not tool results alone. Slash commands, their output, interruption marks and
    notifications count. assistant_messages: replies, however many records each has; sidechains count, relayed progress
    does not. tool_calls: the `tool_use` blocks of those replies. sub_agents: different agent ids. compactions: their
    summaries.
    """

    def __init__(self) -> None:
        self.counts = Counts()
        self._replies: set[str] = set()
        self._agent_ids: set[str] = set()

    def take(self, record: dict[str, Any], *, is_repeated: bool) -> None:
        """Count a record of the session's file."""
        counts = self.counts
        counts.records += 1
        self._take_agent_ids(record)
        found = message_of(record)
        if found is None or is_repeated or record.get("type") == "progress":
            return
        if record.get("type") == "assistant":
            self._replies.add(text(found.holder.get("id")) or f"record {counts.records}")
            counts.assistant_messages = len(self._replies)
            blocks = found.content if isinstance(found.content, list) else []
            counts.tool_calls += sum(mapping(block).get("type") == "tool_use" for block in blocks)
            return
        kind = user_kind(record, found.content)
        counts.compactions += kind == "summary"
        if kind not in _NO_PROMPTS and record.get("isSidechain") is not True:
            counts.user_prompts += 1

    def take_side(self, record: dict[str, Any]) -> None:
        """Count a record of a sub-agent's own file."""
        self.counts.records += 1
        self._take_agent_ids(record)

    def _take_agent_ids(self, record: dict[str, Any]) -> None:
        for holder in (record, mapping(record.get("data")), mapping(record.get("toolUseResult"))):
            if agent_id := text(holder.get("agentId")):
                self._agent_ids.add(agent_id)
        self.counts.sub_agents = len(self._agent_ids)
