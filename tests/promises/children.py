"""Children of a test: processes that do what they are told, and can be killed, stopped and outlived."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from tests.conftest import PROJECT

PATIENCE_S = 60.0
"""A child that says nothing for so long fails its test."""


class Child:
    """One child process. `said` is everything that it said and the test heard, in order."""

    def __init__(self, nursery: Nursery, pid: int, line: socket.socket) -> None:
        self._nursery = nursery
        self.pid = pid
        self._line = line
        self._rest = b""
        self.said: list[list[Any]] = []

    def hear(self) -> list[Any] | None:
        """Return the next thing that it says, or None when it is gone."""
        while b"\n" not in self._rest:
            try:
                piece = self._line.recv(65_536)
            except ConnectionResetError:
                return None
            if not piece:
                return None
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\n")
        said: list[Any] = json.loads(first)
        self.said.append(said)
        return said

    def hear_until(self, word: str) -> list[Any]:
        """Return the first thing that begins with `word`. The child has to say it."""
        while (said := self.hear()) is not None:
            if said[0] == word:
                return said
        raise AssertionError(f"the child ended before it said {word!r}; it said {self.said[-5:]}")

    def tell(self, word: Any) -> None:
        self._line.sendall(json.dumps(word).encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> list[list[Any]]:
        """Kill it as `kill -9` does, wait until it is gone, and return all that it ever said."""
        self.signal(signal.SIGKILL)
        self.end()
        return self.said

    def end(self) -> int:
        """Hear it out, wait until it is gone, and return its exit status (negative: the signal that ended it)."""
        while self.hear() is not None:
            pass
        return self.reap()

    def reap(self) -> int:
        """Wait until it is gone, whoever else may still hold its line, and return its exit status."""
        self._line.close()
        return self._nursery.reap(self.pid)


class Nursery:
    """Starts children by forking them from one warm process. Use it in a `with` block."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.promises.nursery", str(theirs.fileno())],
            cwd=PROJECT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._requests.settimeout(PATIENCE_S)
        self._answers = self._requests.makefile("rb")

    def start(self, call: str, **arguments: Any) -> Child:
        """Fork a child that calls `module:function` of the tests with its line and these arguments."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.settimeout(PATIENCE_S)
        request = json.dumps({"call": f"tests.promises.{call}", "with": arguments}).encode()
        socket.send_fds(self._requests, [request], [theirs.fileno()])
        theirs.close()
        return Child(self, self._answer(), ours)

    def run(self, call: str, **arguments: Any) -> list[list[Any]]:
        """Let a child do something to its end, and return what it said. It has to end well."""
        child = self.start(call, **arguments)
        status = child.end()
        assert status == 0, f"{call} ended with {status} after it said {child.said[-5:]}"
        return child.said

    def reap(self, pid: int) -> int:
        self._requests.sendall(json.dumps({"reap": pid}).encode())
        return self._answer()

    def close(self) -> None:
        self._requests.shutdown(socket.SHUT_RDWR)
        self._answers.close()
        self._requests.close()
        self._process.wait(PATIENCE_S)

    def _answer(self) -> int:
        answer = self._answers.readline()
        assert answer, "the nursery is gone"
        return int(json.loads(answer))
