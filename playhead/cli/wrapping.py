"""Running text that comes in pieces, broken into lines between words: a terminal alone breaks in the middle of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from playhead.cli.text import plain, width

WORD_ROOM = 24
"""Where so many columns are left, the beginning of a word is shown before its end is known."""

_FENCE = ("```", "~~~")
_CODE_INDENT = 4
_TAB = 8


class Wrapping:
    """Breaks one text after the other. columns: how wide the terminal is now.

    A word that comes in pieces is shown as it comes while there is room for a long one, else once it is whole. Code
    (between fences, or indented by four) and rows of a table are left as they are, as is a word longer than a line: a
    person may want to copy them.
    """

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self._is_fenced = False
        self._word = ""
        self._begin_line()

    def add(self, piece: str) -> str:
        """Return what can be shown now that this piece has come."""
        columns, out = self._columns(), []
        for character in plain(piece):
            if character == "\n":
                out += [self._word_out(columns), "\n"]
                self._begin_line()
            elif character == " ":
                out.append(self._word_out(columns))
                self._gap += " "
            elif character == "\t":
                out.append(self._word_out(columns))
                self._gap += " " * (_TAB - (self._column + len(self._gap)) % _TAB)
            else:
                is_wide = unicodedata.east_asian_width(character) in "WF"
                if is_wide:
                    out.append(self._word_out(columns))
                self._word += character
                if is_wide:  # It is a word of its own: such scripts are broken anywhere.
                    out.append(self._word_out(columns))
        may_open = not self._column and self._word.startswith(("`", "~"))
        if not may_open and self._column + len(self._gap) + width(self._word) + WORD_ROOM <= columns:
            out.append(self._word_out(columns, is_whole=False))
        return "".join(out)

    def end(self) -> str:
        """Return what was held back, and begin another text."""
        held = self._word_out(self._columns())
        self._is_fenced = False
        self._begin_line()
        return held

    def _begin_line(self) -> None:
        self._column = 0
        self._gap = ""
        self._is_verbatim = self._is_fenced
        self._is_in_word = False

    def _word_out(self, columns: int, *, is_whole: bool = True) -> str:
        """Return the word that was held, on the next line where this one has no room for it."""
        word, self._word = self._word, ""
        if not word:
            self._is_in_word = self._is_in_word and not is_whole
            return ""
        if self._column == 0 and not self._is_in_word:
            self._look_at_beginning(word)
        taken, gap = width(word), self._gap
        self._gap = ""
        has_room = self._column + len(gap) + taken <= columns
        if self._is_verbatim or self._is_in_word or not self._column or has_room:
            self._column += len(gap) + taken
            if self._column > columns and not self._is_verbatim:
                self._column %= columns
            shown = gap + word
        else:
            self._column = taken % columns if taken > columns else taken
            shown = "\n" + word
        self._is_in_word = not is_whole
        return shown

    def _look_at_beginning(self, word: str) -> None:
        """See from a line's first word whether the line is left as it is."""
        if word.startswith(_FENCE):
            self._is_fenced = not self._is_fenced
            self._is_verbatim = True
        elif len(self._gap) >= _CODE_INDENT or word.startswith("|"):
            self._is_verbatim = True


def wrapped(text: str, columns: int) -> str:
    """Return a whole text broken between words."""
    wrapping = Wrapping(lambda: columns)
    return wrapping.add(text) + wrapping.end()
