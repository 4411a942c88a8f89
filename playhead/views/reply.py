"""Which messages are pieces of one reply: a model's answer that was recorded as it came, text and calls apart."""

from __future__ import annotations

from playhead.model.body import text_in
from playhead.model.event import Event

ReplyKey = tuple[str, str | None, str | None]
"""Message id, agent and turn. Ids alone are not enough: some providers count them anew in every turn."""


def reply_key(event: Event) -> ReplyKey | None:
    """Return what all pieces of a reply share, or None for an event that is no reply.

    A piece names its reply by `message_id`: an id of the model's provider, or the event id of the first piece, which
    then has no `message_id` itself.
    """
    if event.kind != "message" or event.body.get("role") != "assistant":
        return None
    return text_in(event.body, "message_id") or event.id, event.agent, event.turn
