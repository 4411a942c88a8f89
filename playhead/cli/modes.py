"""How a terminal takes what is typed: without an echo while an answer is written, and put back as it was in the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

if sys.platform != "win32":
    import termios

_LOCAL_FLAGS = 3
_INPUT_FLAGS = 0


class Modes:
    """The modes of the terminal that is read from, as they were when this was made. Does nothing for anything else."""

    def __init__(self, source: TextIO | None) -> None:
        self._descriptor: int | None = None
        if sys.platform == "win32" or source is None:
            return
        with suppress(OSError, ValueError, termios.error):
            descriptor = source.fileno()
            self._before = termios.tcgetattr(descriptor)
            self._descriptor = descriptor

    def restore(self) -> None:
        """Put the modes back, whatever has changed them. Safe to call from any thread."""
        if sys.platform != "win32" and self._descriptor is not None:
            with suppress(OSError, termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    @contextmanager
    def keeping_typed(self) -> Iterator[None]:
        """Have what is typed wait, unseen, for whoever reads next. Ctrl-C and Ctrl-Z mean what they do, and lose none
        of it."""
        if sys.platform == "win32" or self._descriptor is None:
            yield
            return
        modes = list(self._before)
        modes[_LOCAL_FLAGS] = modes[_LOCAL_FLAGS] & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH
        # Enter has to stay one key for the editor that reads it later, and not become a line feed.
        modes[_INPUT_FLAGS] &= ~termios.ICRNL
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSANOW, modes)
        try:
            yield
        finally:
            self.restore()
