"""Who said what: text that the program put into a prompt's place, and the two records of one message.

Codex writes what is said twice, as an item for the model and as an event for people (in newer threads as a completed
item). Whichever comes first is the message, and the other one repeats it. So the conversation and the search hold each
text once, and a read that ends between the two gives the same events as one that does not.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from playhead.formats.ids import key

Form = Literal["item", "event", "completed"]

PENDING_MAX = 64
"""Messages whose other record may still come. In real files it is the next record, or the one after that."""

_CONTEXT = re.compile(
    r"\s*(?:# AGENTS\.md instructions\b"
    r"|<(?:environment_context|environments_instructions|user_instructions|INSTRUCTIONS"
    r"|permissions instructions|collaboration_mode|skills_instructions|apps_instructions|plugins_instructions"
    r"|recommended_plugins|model_switch|personality_spec|multi_agent_mode|token_budget|realtime_conversation)\b)"
)
_NEWS = re.compile(r"\s*<(?:user_shell_command|subagent_notification|turn_aborted|skill|hook_prompt|goal_context)\b")

_ATTACHED = re.compile(r"\s*</?image\b[^>]*>\s*")
_BLOCK = re.compile("<(oai-mem-citation|proposed_plan)>")
"""What is in an item and not in its event: the marks around an attached image, and blocks that are shown elsewhere."""

UserKind = Literal["typed", "context", "news"]
"""What an item of the user is: a prompt; what the program tells the model of rules and surroundings; what it tells of
something that happened (a command that the person ran, a sub-agent that ended)."""


def user_kind(texts: list[str]) -> UserKind:
    """Return what the texts of a user's item are. An item with anything of a person's own is a prompt."""
    written = [piece for piece in texts if piece.strip()]
    if written and all(_CONTEXT.match(piece) for piece in written):
        return "context"
    if written and all(_CONTEXT.match(piece) or _NEWS.match(piece) for piece in written):
        return "news"
    return "typed"


class Pending(msgspec.Struct):
    """A message that was said in some forms, and the keys of its texts."""

    role: str
    keys: list[str]
    forms: list[Form]


def is_repeated(pending: list[Pending], role: str, form: Form, texts: list[str]) -> bool:
    """Return True where a message was said in another form before; remember it in either case."""
    keys = _keys(texts)
    for one in pending:
        if one.role == role and form not in one.forms and not keys.isdisjoint(one.keys):
            one.forms.append(form)
            return True
    pending.append(Pending(role, sorted(keys), [form]))
    del pending[:-PENDING_MAX]
    return False


def was_said(pending: list[Pending], role: str, texts: list[str]) -> bool:
    """Return True where a message was said in any form just now."""
    keys = _keys(texts)
    return any(one.role == role and not keys.isdisjoint(one.keys) for one in pending)


def _keys(texts: list[str]) -> set[str]:
    """Return keys of the texts joined, with and without what an event leaves out; and of each text of some length."""
    own = [piece for piece in texts if not _ATTACHED.fullmatch(piece)]
    whole = ["".join(texts), "".join(own), "\n".join(own), *own]
    return {key(_without_blocks(piece).strip()) for piece in whole}


def _without_blocks(text: str) -> str:
    """Return a text without its closed blocks. Each end is looked for once: a text may be megabytes of beginnings."""
    kept: list[str] = []
    unclosed: set[str] = set()
    done = 0
    for found in _BLOCK.finditer(text):
        name = found[1]
        if found.start() < done or name in unclosed:
            continue
        if (end := text.find(f"</{name}>", found.end())) < 0:
            unclosed.add(name)
            continue
        kept.append(text[done : found.start()])
        done = end + len(f"</{name}>")
    return "".join([*kept, text[done:]])
