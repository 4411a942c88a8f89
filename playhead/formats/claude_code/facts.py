"""What Claude Code's records say of their session as a whole: title, tag, id, directory, version, branch and model."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead.formats.claude_code.blocks import content_text
from playhead.formats.claude_code.records import message_of, user_kind
from playhead.formats.ids import clean
from playhead.formats.titles import title_line
from playhead.formats.values import mapping, text

_TITLES = ("customTitle", "aiTitle", "lastPrompt", "summary", "firstPrompt")
_TITLE_OF = {"custom-title": "customTitle", "ai-title": "aiTitle", "last-prompt": "lastPrompt", "summary": "summary"}
_SYNTHETIC = "<synthetic>"
"""The model of a reply that the program made up, such as the text of an error."""


class Facts(msgspec.Struct):
    """The facts so far: the last title of each sort, the first prompt, and the first of everything else."""

    titles: dict[str, str] = {}
    tag: str | None = None
    session: str | None = None
    cwd: str | None = None
    config: dict[str, str] = {}

    @property
    def title(self) -> str | None:
        """The session's title by the tool's own order of precedence, or None where there is none."""
        return next((self.titles[name] for name in _TITLES if name in self.titles), None)

    def take(self, record: dict[str, Any]) -> None:
        """Take in what a record of the main conversation says."""
        type = text(record.get("type")) or ""
        title = title_line(record.get(_TITLE_OF[type])) if type in _TITLE_OF else None
        if title:
            self.titles[_TITLE_OF[type]] = title
        if type == "user" and "firstPrompt" not in self.titles:
            self._take_first_prompt(record)
        if type == "tag":
            self.tag = clean(record.get("tag"))
        self.session = self.session or clean(record.get("sessionId"))
        self.cwd = self.cwd or text(record.get("cwd"))
        model = mapping(record.get("message")).get("model") if type == "assistant" else None
        stated = {"version": record.get("version"), "gitBranch": record.get("gitBranch"), "model": model}
        for name, value in stated.items():
            if name not in self.config and text(value) and value != _SYNTHETIC:
                self.config[name] = str(value)

    def _take_first_prompt(self, record: dict[str, Any]) -> None:
        found = message_of(record)
        if found and user_kind(record, found.content) == "typed" and (line := title_line(content_text(found.content))):
            self.titles["firstPrompt"] = line
