"""A process that forks children on request, so that hundreds of them can be started and killed within seconds.

It imports Playhead once and opens no store itself, so a fork is as clean as a fresh interpreter and a hundred times
cheaper. Run as `python -m tests.promises.nursery FD`, it reads requests from a socket: `{"call": "module:function",
"with": {...}}` with one descriptor attached forks a child that calls the function with its line and these arguments;
`{"reap": pid}` waits until that child is gone and answers its exit status.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import socket
import sys
import traceback
from typing import Any

from tests.promises.line import Line

WARM = ("tests.promises.recorder", "tests.promises.verbs")
"""Loaded before the first fork, for all children."""

REQUEST_BYTES_MAX = 1_000_000


def main(descriptor: int) -> None:
    """Serve requests until the test process hangs up."""
    requests = socket.socket(fileno=descriptor)
    for module in WARM:
        importlib.import_module(module)
    while True:
        request, descriptors = _receive(requests)
        if request is None:
            return
        if "reap" in request:
            _, status = os.waitpid(request["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                requests.close()
                _live(request, descriptors[0])
        for one in descriptors:
            os.close(one)
        requests.sendall(json.dumps(answer).encode() + b"\n")


def _receive(requests: socket.socket) -> tuple[Any, list[int]]:
    size = socket.CMSG_SPACE(array.array("i").itemsize)
    message, ancillary, _, _ = requests.recvmsg(REQUEST_BYTES_MAX, size)
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return (json.loads(message) if message else None), list(descriptors)


def _live(request: dict[str, Any], descriptor: int) -> None:
    """Be the child: call the function and leave without running what the nursery has to clean up."""
    code = 1
    try:
        module, _, name = request["call"].partition(":")
        getattr(importlib.import_module(module), name)(Line(descriptor), **request["with"])
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
