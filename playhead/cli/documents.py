"""What `--json` prints: session rows, events and entries as JSON objects with stable fields (see docs/schemas)."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead.features.listing import Listed
from playhead.model.ids import SessionKey
from playhead.session import Session
from playhead.views.summary import Summary

SUMMARY_FIELDS = (
    "title",
    "is_titled",
    "preview",
    "last_user",
    "last_agent",
    "status",
    "agents",
    "labels",
    "turn_count",
    "user_message_count",
    "agent_message_count",
    "tool_call_count",
    "event_count",
    "input_tokens",
    "output_tokens",
    "created_at",
    "last_active_at",
    "cwd",
    "origin",
    "forked_from",
    "waiting_count",
    "config",
    "config_type",
    "node",
    "group",
)


def row_document(row: Listed) -> dict[str, Any]:
    """Return a listing row. Of a session that cannot be read `problem` says why, and the summary's fields are null."""
    return {
        **_facts(row.key, row.summary),
        "fork_count": row.fork_count,
        "size_bytes": row.size_bytes,
        "problem": row.problem,
    }


def session_document(session: Session) -> dict[str, Any]:
    """Return the facts of an open session: those of its listing row, less what only the store knows."""
    return {**_facts(session.key, session.summary()), "head": session.head}


def document(value: msgspec.Struct) -> dict[str, Any]:
    """Return an event, an entry, a branch or a hit as JSON has it: the fields of its class."""
    built: dict[str, Any] = msgspec.to_builtins(value)
    return built


def _facts(key: SessionKey, summary: Summary | None) -> dict[str, Any]:
    values = document(summary) if summary is not None else {}
    return {"id": key.id, "app": key.app, "user": key.user, **{name: values.get(name) for name in SUMMARY_FIELDS}}
