"""What the tests of exports share: a clock, a session with something of everything, and its lines."""

import io
import struct
import zlib
from collections.abc import Callable

import playhead
from playhead import Session, Sessions
from playhead.formats.jsonl import write_session
from playhead.formats.redaction import Redactor

UPLOAD = "upload-0001"


def ticking(at: float = 1_785_585_600.0) -> Callable[[], float]:
    """Return a clock that moves on at every look."""

    def clock() -> float:
        nonlocal at
        at += 1.7
        return at

    return clock


def opened(url: str) -> Sessions:
    return playhead.open(url, clock=ticking())


def upload(sessions: Sessions, *, id: str = UPLOAD) -> Session:
    """Make a session with tools, a sub-agent, a rewind, artifacts, an interrupt, a compaction and odd numbers."""
    state = {"whole": 1.0, "tiny": 1e-300, "large": 2**80, "half": "\ud83d", "é": "\u2028"}
    with sessions.create(id, title="Flaky upload test", cwd="/home/ada/upload", labels=["ci"], state=state) as session:
        with session.turn("Why does `test_upload` fail?\n\n# Not a heading of the page") as turn:
            turn.think("Run it first.")
            call = turn.tool_call("run_tests", {"path": "tests/upload", "retries": 1e2})
            turn.tool_result(call, {"failed": 1, "output": "\x1b[31mconnection reset\x1b[0m"}, is_error=True)
            with turn.subagent("researcher", "Look for earlier reports.") as researcher:
                found = researcher.tool_call("search", {"query": "upload"})
                researcher.tool_result(found, "```\nissue 91\n````")
                researcher.say("Nothing before **March**.")
            turn.say("It times out after 30 seconds.", usage={"input_tokens": 812, "output_tokens": 9})
        with session.turn("Leave it then.") as turn:
            turn.say("Left.")
        session.rewind(turn=2)
        with session.turn("Raise the limit.") as turn:
            turn.say("Done.")
        session.save_artifact("times.png", png(), media_type="image/png")
        session.save_artifact("empty.bin", b"")
        first, last = session.events(kinds=["message"], limit=2)
        session.append("compaction", {"from": first.id, "to": last.id, "summary": "It times out.\n\n- at 30 s"})
        session.append("interrupt_requested", {"interrupt": "push", "reason": "approval", "question": "Push it?"})
        session.append("interrupt_answered", {"interrupt": "push", "status": "resolved", "answer": "yes"})
        session.send("ops", "limit raised", sender="coordinator")
        session.set_state({"tone": "brief"}, scope="user")
    return session


def png(width: int = 8, height: int = 8) -> bytes:
    """Return a small picture."""
    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def lines_of(sessions: Sessions, *made: Session, redactor: Redactor | None = None) -> bytes:
    """Return the JSON Lines of sessions."""
    out = io.BytesIO()
    for session in made:
        write_session(sessions, session.key, out, redactor=redactor)
    return out.getvalue()
