"""Content blocks to message parts and back.

A block's own fields become those of the part; the others travel in the part's `extra`. Images and documents become
`blob`, `uri` or `file` parts, so that base64 lies nowhere else: those inside a tool's response follow it as parts, and
a stand-in `{"type": "image", "part": 0}` marks their place. A block of an unknown type stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.formats.values import Json, mapping, text

_WRAPPED = "claude_code.block"
_PART_TYPES = frozenset({"text", "reasoning", "tool_call", "tool_call_response", "blob", "file", "uri", _WRAPPED})


def parts_of(content: str | list[Json]) -> list[dict[str, Any]]:
    """Return the parts of a content, which is a string or blocks."""
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    parts: list[dict[str, Any]] = []
    for block in content:
        files: list[dict[str, Any]] = []
        parts.append(_part(block, files))
        parts.extend(files)
    return parts


def blocks_of(parts: list[dict[str, Any]]) -> list[Json]:
    """Return the blocks that `parts_of` was given."""
    blocks: list[Json] = []
    following = iter(parts)
    for part in following:
        if part["type"] == "tool_call_response" and isinstance(part.get("response"), list):
            response = [_file_block(next(following)) if _is_stand_in(item) else item for item in part["response"]]
            part = part | {"response": response}
        blocks.append(_block(part))
    return blocks


def first_result(content: Json) -> dict[str, Any]:
    """Return the first tool result of a content, or an empty object."""
    blocks = content if isinstance(content, list) else []
    return next((block for block in blocks if is_result(block)), {})


def is_result(block: Json) -> bool:
    """Return True for a tool result."""
    return isinstance(block, dict) and block.get("type") == "tool_result"


def content_text(content: Json) -> str:
    """Return the text of a content: the string, or its text blocks joined by line feeds."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    found = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(piece for piece in found if isinstance(piece, str))


def _part(block: Json, files: list[dict[str, Any]]) -> dict[str, Any]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return {"type": _WRAPPED, "block": block}
    kind: str = block["type"]
    part = _response(block, files) if kind == "tool_result" else None
    if part is None and kind in _MAKERS:
        part = _MAKERS[kind](block)
    if part is not None:
        return part
    # A block that only looks like one of our parts would be taken for one.
    return {"type": _WRAPPED, "block": block} if kind in _PART_TYPES else block


def _with_rest(part: dict[str, Any], block: dict[str, Any], *moved: str) -> dict[str, Any]:
    rest = {name: value for name, value in block.items() if name != "type" and name not in moved}
    return part | {"extra": rest} if rest else part


def _text(block: dict[str, Any]) -> dict[str, Any] | None:
    if not isinstance(block.get("text"), str):
        return None
    return _with_rest({"type": "text", "content": block["text"]}, block, "text")


def _reasoning(block: dict[str, Any]) -> dict[str, Any] | None:
    if not isinstance(block.get("thinking"), str):
        return None
    return _with_rest({"type": "reasoning", "content": block["thinking"]}, block, "thinking")


def _call(block: dict[str, Any]) -> dict[str, Any] | None:
    if not text(block.get("id")) or not text(block.get("name")):
        return None
    part = {"type": "tool_call", "id": block["id"], "name": block["name"]}
    if "input" in block:
        part["arguments"] = block["input"]
    return _with_rest(part, block, "id", "name", "input")


def _response(block: dict[str, Any], files: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not text(block.get("tool_use_id")):
        return None
    part: dict[str, Any] = {"type": "tool_call_response", "id": block["tool_use_id"]}
    moved = ["tool_use_id", "content"]
    if "content" in block:
        response = _without_files(block["content"], files)
        if response is None:
            return None
        part["response"] = response[0]
    if isinstance(block.get("is_error"), bool):
        part["is_error"] = block["is_error"]
        moved.append("is_error")
    return _with_rest(part, block, *moved)


def _without_files(content: Json, files: list[dict[str, Any]]) -> tuple[Json] | None:
    """Return a response with its images and documents moved to `files`, or None where it cannot be told from such."""
    if not isinstance(content, list):
        return (content,)
    if any(_is_stand_in(item) for item in content):
        return None
    kept: list[Json] = []
    for item in content:
        file = _file(item) if isinstance(item, dict) and item.get("type") in ("image", "document") else None
        if file is None:
            kept.append(item)
        else:
            kept.append({"type": item["type"], "part": len(files)})
            files.append(file)
    return (kept,)


def _is_stand_in(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"type", "part"}


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    source = mapping(block.get("source"))
    kind, place = {"base64": ("blob", "data"), "url": ("uri", "url"), "file": ("file", "file_id")}.get(
        str(source.get("type")), ("", "")
    )
    if not kind or not isinstance(source.get(place), str):
        return None
    target = {"blob": "content", "uri": "uri", "file": "file_id"}[kind]
    part: dict[str, Any] = {"type": kind, target: source[place]}
    rest = {name: value for name, value in source.items() if name not in ("type", place)}
    if text(rest.get("media_type")):
        part["mime_type"] = rest.pop("media_type")
    if block["type"] == "image":
        part["modality"] = "image"
    extra = {name: value for name, value in block.items() if name != "source"}
    part["extra"] = extra | {"source": rest} if rest else extra
    return part


_MAKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
    "text": _text,
    "thinking": _reasoning,
    "tool_use": _call,
    "image": _file,
    "document": _file,
}


def _block(part: dict[str, Any]) -> Json:
    kind, extra = part["type"], part.get("extra", {})
    if kind == _WRAPPED:
        return part["block"]
    if kind == "text":
        return {"type": "text", "text": part["content"]} | extra
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part["content"]} | extra
    if kind in ("blob", "uri", "file"):
        return _file_block(part)
    names = {
        "tool_call": (("id", "id"), ("name", "name"), ("input", "arguments")),
        "tool_call_response": (("tool_use_id", "id"), ("content", "response"), ("is_error", "is_error")),
    }.get(kind)
    if names is None:
        return part
    block = {"type": "tool_use" if kind == "tool_call" else "tool_result"}
    return block | {name: part[target] for name, target in names if target in part} | extra


def _file_block(part: dict[str, Any]) -> dict[str, Any]:
    kind, place, target = {
        "blob": ("base64", "data", "content"),
        "uri": ("url", "url", "uri"),
        "file": ("file", "file_id", "file_id"),
    }[part["type"]]
    source = {"type": kind, place: part[target]}
    if "mime_type" in part:
        source["media_type"] = part["mime_type"]
    extra: dict[str, Any] = part["extra"]
    return extra | {"source": source | extra.get("source", {})}
