"""What Codex's records say of their thread as a whole: title, directory, model, version, and where it came from."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead.formats.codex.records import Opened
from playhead.formats.ids import clean
from playhead.formats.titles import title_line
from playhead.formats.values import mapping, text

SUB_AGENT = "sub-agent"
"""Label of a session that another one's agent began."""


class Facts(msgspec.Struct):
    """The facts so far. title: the name that the thread was given, which the index beside the files goes before.

    parent: what is known of the thread that began this one. forked_from: id of the thread whose history it copies.
    """

    title: str | None = None
    first_prompt: str | None = None
    copied_prompt: str | None = None
    cwd: str | None = None
    model: str | None = None
    is_paginated: bool = False
    config: dict[str, str] = {}
    parent: dict[str, Any] = {}
    forked_from: str | None = None
    is_sub_agent: bool = False

    @property
    def own_title(self) -> str | None:
        """The title of a thread without a name: its first prompt, or, for a sub-agent that was given none, what it is.

        A fork that is nothing but a copy so far has the first prompt of that.
        """
        names = (self.parent.get(name) for name in ("path", "name", "task"))
        return self.first_prompt or next((title_line(name) for name in names if name), None) or self.copied_prompt

    def take_meta(self, payload: dict[str, Any]) -> None:
        """Take in the thread's own `session_meta`."""
        self.cwd = self.cwd or text(payload.get("cwd"))
        self.is_paginated = payload.get("history_mode") == "paginated"
        git = mapping(payload.get("git"))
        stated = {
            "version": payload.get("cli_version"),
            "originator": payload.get("originator"),
            "provider": payload.get("model_provider"),
            "gitBranch": git.get("branch"),
            "gitCommit": git.get("commit_hash"),
            "gitRepository": git.get("repository_url"),
        }
        self.config.update({name: value for name, value in stated.items() if isinstance(value, str) and value})
        self._take_parent(payload)

    def take(self, found: Opened) -> None:
        """Take in what a record of the thread itself says."""
        if found.type == "turn_context":
            self.cwd = self.cwd or text(found.payload.get("cwd"))
            self.model = text(found.payload.get("model")) or self.model
            if self.model and "model" not in self.config:
                self.config["model"] = self.model

    def take_name(self, found: Opened, thread: str | None) -> None:
        """Take in a name that the thread was given. thread: its own id."""
        if clean(found.payload.get("thread_id")) in (None, thread):
            self.title = title_line(found.payload.get("thread_name")) or self.title

    def take_prompt(self, texts: list[str], *, is_copied: bool) -> None:
        """Take in a prompt; the thread's own first one is its title where it was given no name."""
        if is_copied:
            self.copied_prompt = self.copied_prompt or title_line(" ".join(texts))
        else:
            self.first_prompt = self.first_prompt or title_line(" ".join(texts))

    def _take_parent(self, payload: dict[str, Any]) -> None:
        source = mapping(payload.get("source"))
        of_agent = source.get("subagent")
        spawn = mapping(mapping(of_agent).get("thread_spawn"))
        parent = clean(payload.get("parent_thread_id")) or clean(spawn.get("parent_thread_id"))
        self.is_sub_agent = bool(of_agent) or parent is not None
        self.forked_from = clean(payload.get("forked_from_id"))
        about = {
            "task": of_agent if isinstance(of_agent, str) else mapping(of_agent).get("other"),
            "path": spawn.get("agent_path") or payload.get("agent_path"),
            "name": spawn.get("agent_nickname") or payload.get("agent_nickname"),
            "role": spawn.get("agent_role") or payload.get("agent_role"),
        }
        self.parent = {name: value for name, value in about.items() if text(value)} | (
            {"thread": parent} if parent else {}
        )
