"""Whether a JSON value is what a schema says: the words of JSON Schema that our schemas use."""

from collections.abc import Callable, Iterator
from typing import Any

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return where a value departs from a schema, `[]` where it does not.

    Stricter than the schema is for its readers: a field that it does not name is a problem as well, so that nothing is
    printed that nobody documented.
    """
    return list(_problems(value, schema, schema, "$"))


def _problems(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "oneOf" in schema:
        found = [list(_problems(value, one, root, place)) for one in schema["oneOf"]]
        yield from [] if [] in found else min(found, key=len)
        return
    types = schema.get("type", [])
    if types and not any(_TYPES[one](value) for one in ([types] if isinstance(types, str) else types)):
        yield f"{place}: {value!r} is not {types}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), root, f"{place}[{index}]")
    elif isinstance(value, dict):
        yield from _problems_of_fields(value, schema, root, place)


def _problems_of_fields(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], place: str
) -> Iterator[str]:
    known = schema.get("properties")
    for name in schema.get("required", []):
        if name not in value:
            yield f"{place}: {name} is missing"
    for name, item in value.items():
        if known is not None and name not in known:
            yield f"{place}: {name} is documented nowhere"
        else:
            field = known[name] if known is not None else schema.get("additionalProperties", {})
            yield from _problems(item, field, root, f"{place}.{name}")
