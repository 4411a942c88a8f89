"""A model's endpoint on this machine that speaks the real wire format and answers as a test has scripted it.

Each request is answered by the next step of the script, and kept: what the model was sent, and with which headers. The
answers are what OpenAI-compatible servers send: server-sent events over chunked HTTP/1.1, error documents, whole JSON
replies, and all that goes wrong with them.

    with FakeEndpoint(calls(("call_1", "search", '{"query": "tea"}')), says("Four ", "minutes.")) as endpoint:
        agent = ModelAgent("fake-1", base_url=endpoint.url)
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

MODEL = "fake-1-2026-11-01"
"""The name that the endpoint gives its model; it is more exact than the one that it is asked for."""
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Received:
    """A request that came. headers: their names in small letters."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])


@dataclass(slots=True)
class Wire:
    """The connection that a step answers on."""

    handler: BaseHTTPRequestHandler
    request: Received

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()

    def document(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        """Send one JSON document, or a text as it is."""
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        kind = "text/html" if isinstance(value, str) else "application/json"
        self.head(status, {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})})
        self.handler.wfile.write(data)

    def begin_stream(self) -> None:
        self.head(200, {"Content-Type": "text/event-stream; charset=utf-8", "Transfer-Encoding": "chunked"})

    def send(self, data: bytes) -> None:
        """Send one chunk of the HTTP body."""
        self.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.handler.wfile.flush()

    def event(self, value: object) -> None:
        """Send one server-sent event: an object, or a text as it is."""
        text = value if isinstance(value, str) else json.dumps(value)
        self.send(f"data: {text}\n\n".encode())

    def end_stream(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection in the middle of a chunk."""
        self.handler.wfile.write(b'40\r\ndata: {"id": "cut-off", "cho')
        self.handler.wfile.flush()
        with contextlib.suppress(OSError):
            self.handler.connection.shutdown(socket.SHUT_RDWR)
        self.handler.close_connection = True


Step = Callable[[Wire], None]
"""Answers one request."""


def chunk(
    delta: Mapping[str, Any] | None = None, *, finish: str | None = None, usage: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a chunk of a streamed reply; without a delta and an end it has no choices, as the chunk with the usage."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_767_225_600, "model": MODEL}
    return {**head, "choices": choices, **({} if usage is None else {"usage": usage})}


def streams(*events: object, done: bool = True) -> Step:
    """Send these events as they are: chunks, or texts that are no JSON."""

    def step(wire: Wire) -> None:
        wire.begin_stream()
        for event in [*events, *(["[DONE]"] if done else [])]:
            wire.event(event)
        wire.end_stream()

    return step


def says(
    *texts: str, thoughts: Iterable[str] = (), finish: str = "stop", usage: Mapping[str, Any] | None = USAGE
) -> Step:
    """Stream a text in these pieces, and first what was thought. The usage comes in a chunk of its own."""
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": thought}) for thought in thoughts]
    events += [chunk({"content": text}) for text in texts]
    events.append(chunk(finish=finish))
    if usage is not None:
        events.append(chunk(usage=usage))
    return streams(*events)


def calls(*asked: tuple[str, str, str], text: str = "", fragment_chars: int = 5) -> Step:
    """Stream calls (id, name, arguments) side by side, a fragment of each in turn, as parallel calls arrive."""
    events = [chunk({"content": text})] if text else []
    for index, (id, name, _) in enumerate(asked):
        function = {"name": name, "arguments": ""}
        events.append(chunk({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}))
    longest = max(len(arguments) for _, _, arguments in asked)
    for start in range(0, longest, fragment_chars):
        for index, (_, _, arguments) in enumerate(asked):
            if piece := arguments[start : start + fragment_chars]:
                events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    return streams(*events, chunk(finish="tool_calls"), chunk(usage=USAGE))


def cuts(*texts: str) -> Step:
    """Stream these pieces, then lose the connection in the middle of a chunk."""

    def step(wire: Wire) -> None:
        wire.begin_stream()
        for text in texts:
            wire.event(chunk({"content": text}))
        wire.cut()

    return step


def replies(text: str, *, finish: str = "stop") -> Step:
    """Send the reply whole, as a server does that cannot stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": USAGE}
    return lambda wire: wire.document(200, whole)


def refuses(
    status: int, message: str = "", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Step:
    """Refuse with an error document."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return lambda wire: wire.document(status, {"error": error}, headers)


def sends(status: int, text: str) -> Step:
    """Send a text that is no JSON, as a proxy does."""
    return lambda wire: wire.document(status, text)


def hangs_up() -> Step:
    """Close the connection without a word."""

    def step(wire: Wire) -> None:
        wire.handler.close_connection = True
        with contextlib.suppress(OSError):
            wire.handler.connection.shutdown(socket.SHUT_RDWR)

    return step


@dataclass(frozen=True, slots=True)
class Gate:
    """A place in the script where the endpoint waits for the test, and the test for the endpoint."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def before(self, step: Step) -> Step:
        """Wait before the first byte."""

        def waiting(wire: Wire) -> None:
            self.wait()
            step(wire)

        return waiting

    def after(self, *texts: str) -> Step:
        """Stream these pieces, then wait, then end the reply."""

        def waiting(wire: Wire) -> None:
            wire.begin_stream()
            for text in texts:
                wire.event(chunk({"content": text}))
            self.wait()
            for event in (chunk(finish="stop"), "[DONE]"):
                wire.event(event)
            wire.end_stream()

        return waiting

    def wait(self) -> None:
        self.reached.set()
        self.opened.wait(WAIT_S)


class FakeEndpoint:
    """The endpoint, for the length of a `with` block. received: the requests so far, in the order of their coming."""

    def __init__(self, *script: Step) -> None:
        self.received: list[Received] = []
        self.lost: list[str] = []
        """Errors that the endpoint met while it answered: a client that went away."""
        self._script = list(script)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def then(self, *steps: Step) -> None:
        """Add steps to the end of the script."""
        with self._lock:
            self._script += steps

    def sent(self, number: int = -1) -> list[dict[str, Any]]:
        """Return the messages of a request: of the last, or counted from 0."""
        return self.received[number].messages

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _next(self, request: Received) -> Step:
        with self._lock:
            self.received.append(request)
            if self._script:
                return self._script.pop(0)
        return refuses(400, "the script of this test has no further step")


def _handler(endpoint: FakeEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            endpoint._connections.add(self.connection)

        def finish(self) -> None:
            endpoint._connections.discard(self.connection)
            with contextlib.suppress(OSError):
                super().finish()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.path, headers, body)
            try:
                endpoint._next(request)(Wire(self, request))
            except OSError as error:
                endpoint.lost.append(type(error).__name__)
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing: a test's output is its own."""

    return Handler


def texts_of(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Return role and content of each message."""
    return [(message["role"], message["content"]) for message in messages]
