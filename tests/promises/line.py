"""The line between a child process and its test."""

from __future__ import annotations

import json
import socket
from typing import Any


class Line:
    """A child's line to the test: one JSON value for each line of text, in both directions."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._heard = self._socket.makefile("rb")

    def say(self, *values: Any) -> None:
        """Send an acknowledgement. What was sent is not lost when this process is killed."""
        self._socket.sendall(json.dumps(values).encode() + b"\n")

    def hear(self) -> Any:
        """Wait for a word of the test; None when it hung up."""
        line = self._heard.readline()
        return json.loads(line) if line else None
