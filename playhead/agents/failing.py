"""What an agent's code may raise that would take more with it than its own turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def failing_alone() -> Iterator[None]:
    """Have what would take the event loop down, or pass for the wish of whoever runs it, be a failure of the block.

    A `SystemExit`, and a cancellation that nobody asked for, become a `RuntimeError` that says so.
    """
    try:
        with ending_no_program():
            yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled, and by nobody but itself") from error


@contextmanager
def ending_no_program() -> Iterator[None]:
    """Have a `SystemExit` be a `RuntimeError` that says so: a task that exits breaks the whole event loop off."""
    try:
        yield
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise RuntimeError(f"it called sys.exit({code}), where an agent returns or raises an error") from error
