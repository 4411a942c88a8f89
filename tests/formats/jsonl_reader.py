"""A second reader of JSON Lines: written from docs/jsonl.md alone, with nothing of Playhead in it."""

import base64
import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any


def read(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield each session: its first line, its events (bodies as text and parsed) and artifacts. Checks the hashes."""
    for text in lines:
        head, mark, rest = text.decode().rstrip("\n").partition(',"body":')
        line = json.loads(head + "}" if mark else head)
        if mark:
            line["body_text"] = rest[:-1]
        match line["type"]:
            case "session":
                assert (line["format"], line["version"]) == ("playhead", 1)
                session = {"session": line, "events": [], "artifacts": {}}
                previous = bytes(32)
            case "event":
                previous = chained(previous, line)
                assert line["hash"] == previous.hex()
                line["body"] = json.loads(line["body_text"]) if "body_text" in line else None
                session["events"].append(line)
            case "artifact":
                pieces = session["artifacts"].setdefault(line["hash"], bytearray())
                assert len(pieces) == line["offset"]
                pieces += base64.b64decode(line["data"])
            case "end":
                assert [line["event_count"], line["artifact_count"]] == [
                    len(session["events"]),
                    len(session["artifacts"]),
                ]
                assert line["hash"] == session["session"]["hash"] == previous.hex()
                assert all(
                    f"sha256-{hashlib.sha256(data).hexdigest()}" == name for name, data in session["artifacts"].items()
                )
                yield session
            case other:
                raise AssertionError(other)


def chained(previous: bytes, line: dict[str, Any]) -> bytes:
    """Return the hash of an event, as docs/file-format.md says."""
    if "digest" in line:
        digest = bytes.fromhex(line["digest"])
    else:
        digest = hashlib.sha256(bytes.fromhex(line["salt"]) + line["body_text"].encode()).digest()
    envelope = struct.pack(">QQd", line["seq"], line["parent"], line["at"])
    for name in ("id", "kind", "agent", "turn", "scope"):
        if name in line:
            raw = line[name].encode()
            envelope += struct.pack(">I", len(raw)) + raw
        else:
            envelope += b"\xff\xff\xff\xff"
    return hashlib.sha256(previous + envelope + digest).digest()
