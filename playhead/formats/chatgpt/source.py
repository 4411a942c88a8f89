"""ChatGPT's conversations as sessions: one each, with all of its branches.

A session is named after its conversation, whichever export it came in: a newer one adds what was said since, and the
head follows to where the conversation stands now. An older one adds what is missing and moves nothing.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from playhead.errors import ImportFailed
from playhead.features.ingest import STARTED_ID
from playhead.formats.chatgpt.archive import Export, exports_in, is_export, opened
from playhead.formats.chatgpt.conversations import id_of, pieces, value
from playhead.formats.chatgpt.messages import ORIGIN, Made, made, seconds_of
from playhead.formats.chatgpt.tree import Tree, tree
from playhead.formats.ids import clean, session_id, stated_id
from playhead.formats.imported import Counts, File, ImportedEvent, ImportedSession, SourcePosition
from playhead.formats.titles import title_line
from playhead.formats.troubles import Troubles
from playhead.formats.values import text
from playhead.model.body import number_in, parts_in
from playhead.model.parts import content_of
from playhead.stores.artifacts import content_name

CALL_STEPS_MAX = 200
"""So many messages above a tool's result are looked at for the call that it answers."""

_UNTITLED = frozenset({"new chat", "new conversation"})


class Conversation(msgspec.Struct, frozen=True):
    """One conversation in an export, not read yet. number counts from 1 in the export."""

    export: Export
    number: int
    id: str
    data: bytes | msgspec.Raw

    @property
    def path(self) -> Path:
        """The export's zip, folder or file."""
        return self.export.path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the export's conversations."""
        members = self.export.conversations
        return tuple(self.path / member.name for member in members) if self.path.is_dir() else (self.path,)

    @property
    def position_name(self) -> str:
        """The name under which its position is noted: the same for every export that it comes in."""
        return f"{ORIGIN}:{self.id}"


def recognised(path: Path) -> bool:
    """Return True for an export's zip, or a file of conversations."""
    return is_export(path)


def discover(path: Path) -> list[Conversation]:
    """Return the conversations of an export, in its order; of a folder, those of every export in it.

    Raises `ImportFailed` where there is no such file or folder, it cannot be read, or a zip is not to be trusted.
    """
    if not path.exists():
        raise ImportFailed(f"there is no file or folder {path}")
    found: list[Conversation] = []
    for one in exports_in(path) if path.is_dir() else [path]:
        export = opened(one)
        for member in export.conversations:
            for piece in pieces(member):
                found.append(Conversation(export, len(found) + 1, id_of(piece), piece))
    return found


def read(conversation: Conversation, position: Mapping[str, SourcePosition] | None = None) -> ImportedSession | None:
    """Return a conversation as a session, or None where it is as `position` says it was, or nobody said anything.

    Raises `ImportFailed` for what is no conversation; an odd message never does.
    """
    known = (position or {}).get(conversation.position_name)
    digest = hashlib.sha256(bytes(conversation.data)).hexdigest()
    if known is not None and known.last_line == digest:
        return None
    try:
        found = value(conversation.data)
    except ImportFailed as error:
        raise ImportFailed(f"{conversation.path}: conversation {conversation.number} is left out: {error}") from error
    troubles = Troubles()
    events = _Events(conversation, found, tree(found["mapping"], found.get("current_node"), troubles), troubles)
    if not any(event.kind == "message" for event in events.events):
        return None
    updated_at = number_in(found, "update_time")
    is_older = known is not None and _is_before(updated_at, known.carry.get("updated_at"))
    carry = known.carry if known is not None and is_older else {"updated_at": updated_at}
    size = len(bytes(conversation.data))
    return ImportedSession(
        id=session_id(ORIGIN, conversation.id),
        at=events.first_at,
        started=_started(conversation, found),
        events=events.events,
        title=_title(found, events),
        counts=events.counts,
        warnings=troubles.sentences(),
        positions={conversation.position_name: SourcePosition(size, conversation.export.mtime_ns, size, digest, carry)},
        head=None if is_older else events.head,
        files=events.files,
    )


def _started(conversation: Conversation, found: dict[str, Any]) -> dict[str, Any]:
    config = {"model": text(found.get("default_model_slug")), "gizmo": text(found.get("gizmo_id"))}
    marks = {name: True for name in ("is_archived", "is_starred") if found.get(name) is True}
    stated = {name: one for name, one in config.items() if one is not None}
    started = {"origin": ORIGIN, "source": clean(conversation.path.name), "config": stated | marks}
    return started | stated_id(conversation.id)


def _title(found: dict[str, Any], events: _Events) -> str | None:
    """Return the title; a conversation that was given none is called after the first prompt that is shown."""
    title = title_line(found.get("title"))
    if title is not None and title.lower() not in _UNTITLED:
        return title
    first = next((event for event in events.events if event.id == events.first_prompt), None)
    said = next((part for part in parts_in(first.body) if part["type"] == "text"), {}) if first else {}
    return title_line(content_of(said)) or title


def _is_before(at: float | None, known: Any) -> bool:
    return at is not None and isinstance(known, int | float) and at < known


class _Events:
    """The events of a conversation, in the order of its tree; `head` is the id of the one that it stands at."""

    def __init__(self, conversation: Conversation, found: dict[str, Any], order: Tree, troubles: Troubles) -> None:
        self.events: list[ImportedEvent] = []
        self.files: list[File] = []
        self.counts = Counts()
        self.first_prompt: str | None = None
        self._export = conversation.export
        self._nodes = found["mapping"]
        self._troubles = troubles
        self._parent = order.parent
        self._shown = order.shown
        self._event_of: dict[str, ImportedEvent] = {}
        self._last_of: dict[str, str] = {}
        self._call_of: dict[str, str] = {}
        self._answered: dict[str, str] = {}
        self._taken = {STARTED_ID}
        self._names: dict[str, File] = {}
        self.first_at = self._first_at(found, order, conversation.export.mtime_ns / 1e9)
        for node in order.order:
            self._take(node, self._nodes[node]["message"])
        self.head = self._last_of[order.head] if order.head is not None else None

    def _take(self, node: str, message: dict[str, Any]) -> None:
        self.counts.records += 1
        above = self._parent[node]
        before = self._event_of[above] if above is not None else None
        id = self._claimed(clean(node) or "node")
        self._names = {}
        event = made(message, id, self._file_id)
        at, trouble = self._time(message, node, before)
        if trouble:
            event.body["extra"].setdefault("import", {})["at"] = trouble
        turn = id if event.is_prompt else before.turn if before is not None else None
        if event.is_prompt and node in self._shown:
            self.first_prompt = self.first_prompt or id
        self._count(event)
        if event.answers is not None:
            self._answer(node, event)
        after = self._last_of[above] if above is not None else STARTED_ID
        placed = ImportedEvent(event.kind, event.body, id, at, agent=event.agent, turn=turn, after=after)
        self.events.append(placed)
        self._event_of[node] = placed
        self._last_of[node] = id
        call = next((part for part in parts_in(event.body) if part["type"] == "tool_call"), None)
        if call is not None:
            self._call_of[node] = call["name"]
        for name, file in self._names.items():
            self._save(node, name, file, placed)

    def _count(self, event: Made) -> None:
        calls = [part for part in parts_in(event.body) if part["type"] == "tool_call"]
        self.counts.tool_calls += len(calls)
        self.counts.user_prompts += event.is_prompt
        self.counts.assistant_messages += event.body.get("role") == "assistant" and not calls

    def _answer(self, node: str, event: Made) -> None:
        """Give a tool's result the id of its call: the nearest above it to this tool that has no result yet.

        A tool that says more than one thing answers with the first; what follows stands by itself.
        """
        tool = str(event.answers).partition(".")[0]
        answered: set[str] = set()
        above = self._parent[node]
        for _ in range(CALL_STEPS_MAX):
            if above is None or above == self._event_of[above].turn:
                return
            if (call := self._answered.get(above)) is not None:
                answered.add(call)
            name = self._call_of.get(above, "").partition(".")[0]
            id = self._event_of[above].id
            if name == tool and id not in answered:
                event.body["parts"][0]["id"] = id
                self._answered[node] = id
                return
            above = self._parent[above]

    # Times, ids and files.

    def _time(self, message: dict[str, Any], node: str, before: ImportedEvent | None) -> tuple[float, str | None]:
        """Return a message's time in UTC seconds, and what is wrong with it. A bad one is that of the message above."""
        at = message.get("create_time")
        fallback = before.at if before is not None else self.first_at
        if at is None:
            return fallback, "missing"
        if (seconds := seconds_of(at)) is None:
            self._troubles.add("a time is impossible", node)
            return fallback, "impossible"
        return seconds, None

    def _first_at(self, found: dict[str, Any], order: Tree, file_at: float) -> float:
        stated = [found.get("create_time")]
        stated += [self._nodes[node]["message"].get("create_time") for node in order.order]
        return next((seconds for at in stated if (seconds := seconds_of(at)) is not None), file_at)

    def _claimed(self, base: str) -> str:
        id, number = base, 1
        while id in self._taken:
            number += 1
            id = f"{base}.{number}"
        self._taken.add(id)
        return id

    def _file_id(self, id: str) -> str | None:
        """Return the name that the store will have for an attachment which the export holds."""
        member = self._export.attachment(id)
        if member is None:
            return None
        try:
            data = member.read()
        except ImportFailed as error:
            self._troubles.add(f"an attachment was left out ({error})", id)
            return None
        hash = content_name(data)
        self._names.setdefault(member.name.rpartition("/")[2], File(hash, len(data), member.read))
        return hash

    def _save(self, node: str, name: str, file: File, message: ImportedEvent) -> None:
        body = {"name": clean(name) or file.hash, "version": 1, "size": file.size, "hash": file.hash}
        body["media_type"] = mimetypes.guess_type(name)[0] or "application/octet-stream"
        id = self._claimed(f"{message.id}-file-{len(self.files) + 1}")
        writer = {"agent": message.agent, "turn": message.turn, "after": self._last_of[node]}
        self.events.append(ImportedEvent("artifact_saved", body, id, message.at, **writer))
        self._last_of[node] = id
        self.files.append(file)
