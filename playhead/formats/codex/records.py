"""One Codex record to the body of one event, and the body back to the record.

Nothing is lost, and no text can be found in two events. What has a place in our schema moves there: content becomes
parts, the arguments and the output of a call those of the part, the tokens of a request `usage`. The rest of the record
stays under `extra.codex`, where nothing is looked for. `extra.import` says where the plain rule does not hold:

    content: "text"         the content was a string, not items
    summary, content: n     so many of the parts of reasoning were in either field
    id                      the field that a call's id stood in, where that is not `call_id`; null where there was none
    json: true              a text was read as JSON, and writing it gives the text again
    text: [path]            where a note's text stood in the payload
    data: true              the record has stand-ins for base64 that the parts or an earlier event keep
    files: true             what a tool was given or gave back has stand-ins for base64 in the parts that follow
    at                      why the time is not the record's own
    copied: true            the record repeats the history of the thread that this one was forked from
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from playhead.formats.codex.data import blob_data, blob_part, data_in, digest_of, filled, with_stand_ins
from playhead.formats.codex.parts import is_failure, items_of, parsed_text, parts_of, texts_of, written
from playhead.formats.imported import ImportedEvent
from playhead.formats.values import Json, mapping, sequence, text
from playhead.model.event import Event

RAW = "codex"
IMPORT = "import"
INJECTED = "codex"
"""Value of `injected` in messages that the program wrote; a person's own prompts have none."""

ENVELOPES = frozenset(
    {
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
    }
)
ITEMS = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
        "image_generation_call",
        "agent_message",
        "compaction",
        "context_compaction",
        "ghost_snapshot",
    }
)
"""Types of response items. In files of 2025 they stand in their lines without an envelope."""

CALLS: Mapping[str, tuple[str, str]] = {
    "function_call": ("", "arguments"),
    "custom_tool_call": ("", "input"),
    "local_shell_call": ("local_shell", "action"),
    "tool_search_call": ("tool_search", "arguments"),
    "web_search_call": ("web_search", "action"),
    "image_generation_call": ("image_generation", "revised_prompt"),
}
"""Items that call a tool: its name where the item has none, and the field of what it is given."""

ANSWERED_INSIDE = frozenset({"web_search_call", "image_generation_call"})
"""Calls of tools that the model's provider runs: no other item brings their outcome."""

OUTPUTS: Mapping[str, str] = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "tool_search_output": "tools",
}

SAID: Mapping[tuple[str, str], tuple[str, str]] = {
    ("event_msg", "user_message"): ("user", "message"),
    ("event_msg", "agent_message"): ("assistant", "message"),
    ("event_msg", "agent_reasoning"): ("assistant", "text"),
    ("event_msg", "agent_reasoning_raw_content"): ("assistant", "text"),
}
"""Events that hold one text of the conversation: its role and its field."""

_NOTE_TEXT: Mapping[str, tuple[str, ...]] = {
    "error": ("message",),
    "stream_error": ("message",),
    "warning": ("message",),
    "undo_completed": ("message",),
    "thread_name_updated": ("thread_name",),
    "thread_goal_updated": ("goal", "objective"),
    "entered_review_mode": ("user_facing_hint",),
    "inter_agent_communication": ("content",),
}
_NOTE_DATA: Mapping[str, str] = {"exited_review_mode": "review_output", "web_search_end": "results"}
"""Where records that become notes keep what a person would read or look for, and what nothing else says."""

_FAILED = frozenset({"error", "stream_error"})


class Opened(NamedTuple):
    """A record's type, the type of its payload ("" where it has none), and the payload. is_bare: it has no envelope."""

    type: str
    kind: str
    payload: dict[str, Any]
    is_bare: bool

    @property
    def name(self) -> str:
        """The record's sort in one word, `event_msg.token_count`."""
        return f"{self.type}.{self.kind}" if self.kind else self.type

    @property
    def is_known(self) -> bool:
        """True for a record that is Codex's and could be nobody else's."""
        return self.type in ENVELOPES


def opened(record: dict[str, Any]) -> Opened:
    """Return what a record is, in whichever of the two forms it was written."""
    type, payload = text(record.get("type")), record.get("payload")
    if type is not None and isinstance(payload, dict):
        return Opened(type, text(payload.get("type")) or "", payload, False)
    if type in ITEMS and "payload" not in record and (type != "message" or "role" in record):
        return Opened("response_item", type or "", record, True)
    if type is None and text(record.get("id")) and text(record.get("timestamp")) and "instructions" in record:
        return Opened("session_meta", "", record, True)
    return Opened(type or "record", "", {}, False)


# Records to bodies. Each returns None where the record is not what its type says; it then becomes a note.


def message_body(record: dict[str, Any], role: str) -> dict[str, Any] | None:
    """Return the body of the `message` of a content, of an event that holds a text, or of a completed item."""
    found = opened(record)
    if (said := SAID.get((found.type, found.kind))) is not None:
        value = found.payload.get(said[1])
        if not isinstance(value, str):
            return None
        part = {"type": "reasoning" if said[1] == "text" else "text", "content": value}
        return _body(record, {"role": role, "parts": [part]}, *_without(found.payload, said[1]))
    path = _content_path(found)
    content = dig(found.payload, path)
    if not isinstance(content, str | list):
        return None
    rest = mapping(without(found.payload, path))
    if isinstance(content, str):
        parts: list[dict[str, Any]] = [{"type": "text", "content": content}]
        return _body(record, {"role": role, "parts": parts}, rest, {"content": "text"})
    return _body(record, {"role": role, "parts": parts_of(content)}, rest, {})


def reasoning_body(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the body for reasoning that can be read, or None where all of it is encrypted."""
    payload = opened(record).payload
    summary, content = payload.get("summary"), payload.get("content")
    shown = [*sequence(summary), *sequence(content)]
    if not any(piece.strip() for piece in texts_of(shown)):
        return None
    rest = dict(payload)
    remarks = {}
    for name, items in (("summary", summary), ("content", content)):
        if isinstance(items, list):
            del rest[name]
            remarks[name] = len(items)
    return _body(record, {"role": "assistant", "parts": parts_of(shown, type="reasoning")}, rest, remarks)


def call_body(record: dict[str, Any], id: str) -> dict[str, Any] | None:
    """Return the body for a call of a tool. id: of the event, for a call that has none of its own."""
    found = opened(record)
    given_name, field = CALLS[found.kind]
    rest = dict(found.payload)
    part: dict[str, Any] = {"type": "tool_call"}
    own_id = next((name for name in ("call_id", "id") if text(rest.get(name))), None)
    part["id"] = rest.pop(own_id) if own_id else id
    remarks: dict[str, Any] = {"id": own_id} if own_id != "call_id" else {}
    if given_name:
        part["name"] = given_name
    elif text(rest.get("name")):
        part["name"] = rest.pop("name")
    else:
        return None
    parts = [part]
    if found.kind in ANSWERED_INSIDE:
        status = text(rest.get("status")) or "completed"
        parts.append({"type": "tool_call_response", "id": part["id"], "name": part["name"], "response": status})
    if field in rest:
        part["arguments"], files = _without_files(_taken(rest, field, remarks, only_with=None), remarks)
        parts.extend(files)
    return _body(record, {"role": "assistant", "parts": parts}, rest, remarks)


def output_body(record: dict[str, Any], name: str | None, *, has_failed: bool) -> dict[str, Any] | None:
    """Return the body for what a tool gave back. name: of the tool. has_failed: another record says so."""
    found = opened(record)
    field = OUTPUTS[found.kind]
    rest = dict(found.payload)
    if not text(rest.get("call_id")) or field not in rest:
        return None
    part: dict[str, Any] = {"type": "tool_call_response", "id": rest.pop("call_id")}
    if name is not None:
        part["name"] = name
    remarks: dict[str, Any] = {}
    part["response"], files = _without_files(_taken(rest, field, remarks, only_with="output"), remarks)
    if has_failed or rest.get("success") is False or is_failure(part["response"]):
        part["is_error"] = True
    return _body(record, {"role": "tool", "parts": [part, *files]}, rest, remarks)


def usage_body(record: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a piece of a reply that says nothing but what the request cost."""
    payload = opened(record).payload
    path = ("info", "last_token_usage")
    body: dict[str, Any] = {"role": "assistant", "parts": [], "usage": dig(payload, path)}
    return _body(record, body, mapping(without(payload, path)), {})


def compaction_body(record: dict[str, Any], *, first: str, last: str) -> dict[str, Any] | None:
    """Return the body of a compaction, or None where its summary is empty: it is encrypted, and nobody can read it."""
    payload = opened(record).payload
    if not text(payload.get("message")):
        return None
    body = {"from": first, "to": last, "summary": payload["message"]}
    return _body(record, body, *_without(payload, "message"))


def turn_body(record: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an event that begins or ends a turn, with the whole record."""
    return fields | {"extra": {RAW: dict(record)}}


def note_body(record: dict[str, Any], *, copy: bool = False) -> dict[str, Any]:
    """Return the body of the `note` that keeps a record. copy: another record says the same, so nothing of it shows."""
    found = opened(record)
    body: dict[str, Any] = {"name": f"codex.{found.name}{'.repeated' if copy else ''}", "extra": {RAW: dict(record)}}
    if copy or found.is_bare:
        return body
    word = found.kind or found.type
    path = _item_text(found.payload) if word == "item_completed" else _NOTE_TEXT.get(word)
    if path is not None and text(value := dig(found.payload, path)):
        body["text"] = value
        body["extra"][RAW] = without(record, ("payload", *path))
        imported(body)["text"] = list(path)
    if (field := _NOTE_DATA.get(word)) is not None and field in found.payload:
        body["data"] = found.payload[field]
        body["extra"][RAW] = without(record, ("payload", field))
    if word in _FAILED:
        body["is_error"] = True
    return body


def imported(body: dict[str, Any]) -> dict[str, Any]:
    """Return the importer's remarks on an event's body, to be written to."""
    remarks: dict[str, Any] = body["extra"].setdefault(IMPORT, {})
    return remarks


def keep_data_once(body: dict[str, Any], kept: Iterable[str]) -> list[str]:
    """Put stand-ins where a body's record repeats base64, and return the digests of what it keeps itself.

    kept: digests of what earlier events keep. What a message's record holds beside its parts becomes a part of it.
    """
    parts = body.get("parts")
    own = [digest_of(blob_data(part)) for part in parts or () if part["type"] == "blob"]
    known = {*kept, *own}
    rest = [data for data in data_in(body["extra"][RAW]) if digest_of(data) not in known]
    if parts is not None:
        parts.extend(map(blob_part, rest))
        known.update(map(digest_of, rest))
    raw = with_stand_ins(body["extra"][RAW], known)
    if raw is not body["extra"][RAW]:
        body["extra"][RAW] = raw
        imported(body)["data"] = True
    return [*own, *map(digest_of, rest)]


# And back.


def restore_record(event: ImportedEvent | Event, data: Mapping[str, str] | None = None) -> dict[str, Any] | None:
    """Return the record that an event was made of, equal to the original; None for an event that was no record.

    data: digest to base64, of what earlier events keep; `restore_records` gathers it.
    """
    body = event.body
    raw = mapping(body.get("extra")).get(RAW)
    if raw is None:
        return None
    remarks = mapping(body["extra"].get(IMPORT))
    blobs = [blob_data(part) for part in body.get("parts", ()) if part["type"] == "blob"]
    own = {digest_of(blob): blob for blob in blobs}
    record: dict[str, Any] = filled(raw, {**(data or {}), **own}) if "data" in remarks else raw
    if event.kind == "message":
        return _closed(record, _restored_payload(opened(record), body, remarks, own))
    if event.kind == "compaction":
        return _closed(record, opened(record).payload | {"message": body["summary"]})
    if event.kind == "note" and "text" in remarks:
        record = put(record, ("payload", *remarks["text"]), body["text"])
    if event.kind == "note" and "data" in body:
        record = put(record, ("payload", _NOTE_DATA[opened(record).kind]), body["data"])
    return record


def restore_records(events: Iterable[ImportedEvent | Event]) -> Iterator[dict[str, Any]]:
    """Yield the records that a session's events were made of, in order. events: all of them, from the first."""
    data: dict[str, str] = {}
    for event in events:
        record = restore_record(event, data)
        if record is not None:
            data.update((digest_of(found), found) for found in data_in(record))
            yield record


def _restored_payload(
    found: Opened, body: dict[str, Any], remarks: dict[str, Any], files: Mapping[str, str]
) -> dict[str, Any]:
    payload, parts = dict(found.payload), body["parts"]
    if (said := SAID.get((found.type, found.kind))) is not None:
        return payload | {said[1]: parts[0]["content"]}
    if found.kind == "token_count":
        return mapping(put(payload, ("info", "last_token_usage"), body["usage"]))
    if found.kind == "reasoning":
        items = items_of(parts)
        for name in ("summary", "content"):
            if name in remarks:
                payload[name], items = items[: remarks[name]], items[remarks[name] :]
        return payload
    if found.kind in CALLS:
        return _restored_call(found.kind, payload, parts[0], remarks, files)
    if found.kind in OUTPUTS:
        payload["call_id"] = parts[0]["id"]
        _give_back(payload, OUTPUTS[found.kind], parts[0]["response"], remarks, files)
        return payload
    path = _content_path(found)
    content: Json = parts[0]["content"] if remarks.get("content") == "text" else items_of(parts)
    return mapping(put(payload, path, content))


def _restored_call(
    kind: str, payload: dict[str, Any], part: dict[str, Any], remarks: dict[str, Any], files: Mapping[str, str]
) -> dict[str, Any]:
    given_name, field = CALLS[kind]
    if own_id := remarks.get("id", "call_id"):
        payload[own_id] = part["id"]
    if not given_name:
        payload["name"] = part["name"]
    if "arguments" in part:
        _give_back(payload, field, part["arguments"], remarks, files)
    return payload


def _taken(rest: dict[str, Any], field: str, remarks: dict[str, Any], *, only_with: str | None) -> Json:
    """Take a field out of a payload and return its value, read as JSON where it is a text of that.

    The field stays where the text could not be written again just so. only_with: a name that the JSON has to hold.
    """
    value = rest[field]
    read = parsed_text(value) if isinstance(value, str) else None
    if read is not None and (only_with is None or (isinstance(read[0], dict) and only_with in read[0])):
        if read[1]:
            del rest[field]
            remarks["json"] = True
        return read[0]
    del rest[field]
    return value


def _without_files(value: Json, remarks: dict[str, Any]) -> tuple[Json, list[dict[str, Any]]]:
    """Return what a tool was given or gave back with stand-ins for the files in it, and their parts."""
    files = data_in(value)
    if not files:
        return value, []
    remarks["files"] = True
    return with_stand_ins(value, {digest_of(file) for file in files}), list(map(blob_part, files))


def _give_back(
    payload: dict[str, Any], field: str, value: Json, remarks: dict[str, Any], files: Mapping[str, str]
) -> None:
    if field not in payload:
        value = filled(value, files) if "files" in remarks else value
        payload[field] = written(value) if "json" in remarks else value


def _body(
    record: dict[str, Any], body: dict[str, Any], payload: dict[str, Any], remarks: dict[str, Any]
) -> dict[str, Any]:
    body["extra"] = {RAW: _closed(record, payload)}
    if remarks:
        body["extra"][IMPORT] = remarks
    return body


def _closed(record: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    return payload if opened(record).is_bare else record | {"payload": payload}


def _without(payload: dict[str, Any], field: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {name: value for name, value in payload.items() if name != field}, {}


def _content_path(found: Opened) -> tuple[str, ...]:
    return ("item", "content") if found.kind == "item_completed" else ("content",)


def _item_text(payload: dict[str, Any]) -> tuple[str | int, ...] | None:
    """Return where a completed item has the text of a message or a plan."""
    item = mapping(payload.get("item"))
    if isinstance(item.get("text"), str):
        return ("item", "text")
    content = sequence(item.get("content"))
    return next(
        (("item", "content", i, "text") for i, one in enumerate(content) if text(mapping(one).get("text"))), None
    )


# Walks into a record.

_Path = tuple[str | int, ...]


def dig(value: Json, path: _Path) -> Json:
    """Return what lies at a path of names and indexes, or None where nothing does."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def put(value: Json, path: _Path, new: Json) -> Json:
    """Return a copy of a value with another one at `path`; what lies beside the path is shared."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return value | {step: put(value.get(step), rest, new)}
    return [put(item, rest, new) if index == step else item for index, item in enumerate(value)]


def without(value: Json, path: _Path) -> Json:
    """Return a copy of a value without the field at `path`; what lies beside the path is shared."""
    step, rest = path[0], path[1:]
    if not rest:
        return {name: item for name, item in value.items() if name != step}
    if isinstance(step, str):
        return value | {step: without(value[step], rest)}
    return [without(item, rest) if index == step else item for index, item in enumerate(value)]


def said_texts(found: Opened) -> list[str]:
    """Return the texts by which the two records of one message are known as one: each of its own, and all together."""
    if (said := SAID.get((found.type, found.kind))) is not None:
        value = found.payload.get(said[1])
        return [value] if isinstance(value, str) else []
    content = (
        dig(found.payload, ("item", "content")) if found.kind == "item_completed" else found.payload.get("content")
    )
    return texts_of(content)


def fingerprint(record: dict[str, Any]) -> bytes:
    """Return what a record says, less when and where it was written: equal for a record and its copy in a fork."""
    found = opened(record)
    says = record if found.is_bare or not found.payload else {"type": found.type, "payload": found.payload}
    return json.dumps(says, sort_keys=True, separators=(",", ":")).encode()
