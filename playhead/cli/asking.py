"""One line typed by a person, with the editing and history that the terminal offers."""

from __future__ import annotations

from contextlib import suppress

# Imported for what it does to `input`: arrow keys and history. Not every platform has it.
with suppress(ImportError):
    import readline  # noqa: F401


def asked(prompt: str) -> str | None:
    """Return the next line without its line feed, or None at the end of input (Ctrl-D).

    `KeyboardInterrupt` goes through. The prompt is plain text: colour would confuse the line editor's counting.
    """
    try:
        return input(prompt)
    except EOFError:
        return None
