"""Content items to message parts and back, and the texts in which tools are called and answer.

An item's text becomes that of the part; what is left of the item travels in `extra.item`. An image inside a message is
a `blob` part, or a `uri` part where it lies elsewhere. An item of an unknown sort keeps everything but its text in
`extra`, where nothing is looked for.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from playhead.formats.codex.data import blob_data, blob_part, is_data_address
from playhead.formats.values import Json, mapping, sequence, text

DEPTH_MAX = 200
"""Most brackets of a text that is read as JSON: what nests deeper could not be written again."""

_ITEM = "codex.item"
_TEXT_TYPES = frozenset({"input_text", "output_text", "text", "Text", "inputText", "summary_text", "reasoning_text"})
_ADDRESSES = {"input_image": "image_url", "image": "url", "input_audio": "audio_url"}
"""Types of items with a file, to the field that holds it."""

_exit_code = re.compile(r"^(?:Process exited with code|Exit code:) (-?[0-9]{1,10})\s*$", re.MULTILINE)
_HEADER_CHARS_MAX = 4000
_FAILURES = (
    "apply_patch verification failed",
    "exec_command failed",
    "execution error",
    "failed to parse function arguments",
    "unsupported call",
    "aborted by user",
)
"""How an output begins that is the program's own report of a failure."""


def parts_of(items: list[Json], *, type: str = "text") -> list[dict[str, Any]]:
    """Return the parts of content items. type: of the parts that hold text, `text` or `reasoning`."""
    return [_part(item, type) for item in items]


def items_of(parts: list[dict[str, Any]]) -> list[Json]:
    """Return the items that `parts_of` was given; parts that were no item are passed over."""
    return [_item(part) for part in parts if "item" in mapping(part.get("extra"))]


def texts_of(items: Json) -> list[str]:
    """Return the texts of content items, in order; of a content that is one text, that."""
    if isinstance(items, str):
        return [items]
    return [item["text"] for item in sequence(items) if isinstance(item, dict) and isinstance(item.get("text"), str)]


def parsed_text(value: str) -> tuple[Json, bool] | None:
    """Return the object or array that a text is in JSON, and whether writing it gives the same text again.

    None where it is no JSON, or JSON that could not be kept.
    """
    if not value.lstrip().startswith(("{", "[")) or value.count("[") + value.count("{") > DEPTH_MAX:
        return None
    try:
        found = json.loads(value, parse_constant=_refused, parse_float=_finite)
        return found, written(found) == value
    except (ValueError, RecursionError):
        return None


def written(value: Json) -> str:
    """Return a JSON value as Codex writes the arguments of a call: compact, and not only ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_failure(output: Json) -> bool:
    """Return True where a tool's output says that it failed: by its exit code, a flag, or the program's own words."""
    if isinstance(output, list):
        return any(is_failure(piece) for piece in texts_of(output)[:1])
    if isinstance(output, dict):
        code = mapping(output.get("metadata")).get("exit_code")
        return output.get("success") is False or is_bad_code(code) or is_failure(output.get("content"))
    if not isinstance(output, str):
        return False
    header = output[:_HEADER_CHARS_MAX].partition("\nOutput:")[0]
    found = _exit_code.search(header)
    return int(found[1]) != 0 if found else output.startswith(_FAILURES)


def is_bad_code(code: Json) -> bool:
    """Return True for an exit code other than 0."""
    return isinstance(code, int) and not isinstance(code, bool) and code != 0


def _part(item: Json, type: str) -> dict[str, Any]:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(kind, str):
        return {"type": _ITEM, "extra": {"item": item}}
    if kind in _TEXT_TYPES and isinstance(item.get("text"), str):
        return {"type": type, "content": item["text"], "extra": {"item": _without(item, "text")}}
    field = _ADDRESSES.get(kind, "")
    if is_data_address(item.get(field)):
        part = blob_part(item[field])
        part["extra"]["item"] = _without(item, field)
        return part
    if text(item.get(field)):
        return {"type": "uri", "uri": item[field], "extra": {"item": _without(item, field)}}
    if isinstance(item.get("text"), str):
        return {"type": _ITEM, "text": item["text"], "extra": {"item": _without(item, "text")}}
    return {"type": _ITEM, "extra": {"item": item}}


def _item(part: dict[str, Any]) -> Json:
    rest = part["extra"]["item"]
    match part["type"]:
        case "text" | "reasoning":
            return rest | {"text": part["content"]}
        case "blob":
            return rest | {_ADDRESSES[rest["type"]]: blob_data(part)}
        case "uri":
            return rest | {_ADDRESSES[rest["type"]]: part["uri"]}
    return rest | {"text": part["text"]} if "text" in part else rest


def _without(item: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != field}


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is beyond any float")
    return value
