"""The events of one run of aider, made from its blocks.

What was typed is a message of the user, and a turn begins with it; what is typed with nothing in between, such as
`/clear` and the prompt after it, is one turn. Answers are messages of the agent. What the program printed behind what
was typed is what came of a command, a message of the tool `aider`; what it says of itself and of answers (its version,
edits, commits, tokens) is a note. Nothing but the start of the run has a time in the history, so all its events have
that one.

An event's id is the hash of its block's first line, and the number of such blocks so far: it stays the same while the
file grows. `restore_block` gives the lines back.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from playhead.formats.aider.blocks import END, TYPED, Block
from playhead.formats.imported import Counts, ImportedEvent
from playhead.formats.titles import title_line
from playhead.model.body import object_in, parts_in, text_in
from playhead.model.parts import content_of

ORIGIN = "aider"
TOOL = "aider"
USER = "user"
AGENT = "coordinator"

_command = re.compile(r"(/[a-z][a-z-]*)(?=\s|$)|!")
_version = re.compile(r"Aider v(\S+)$")
_model = re.compile(r"(?:Main model|Models?): (\S+?)(?:,| with |$)")
# Begins once in a run of digits, and has an end: a line may be megabytes of them.
_tokens = re.compile(r"(?<![\d.,])([\d.,]{0,30}\d)([kM]?) (sent|cache write|cache hit|received)")
_cost = re.compile(r"Cost: \$([\d.]*\d) (?:message|request)")
_scale = {"": 1, "k": 1_000, "M": 1_000_000}
_USAGE = {
    "sent": "input_tokens",
    "received": "output_tokens",
    "cache write": "cache_creation_input_tokens",
    "cache hit": "cache_read_input_tokens",
}
_INTERRUPTED = "^C KeyboardInterrupt"
_PREFIXES = {"typed": TYPED, "output": "> ", "answer": ""}


class Memory(NamedTuple):
    """What an earlier read of a run left to know. pieces: blocks that grew since they were read first, as the ids of
    their events and how many lines each piece had. unbilled: answers that were written down without their usage."""

    pieces: Mapping[str, Sequence[int]] = {}
    unbilled: frozenset[str] = frozenset()


class RunEvents:
    """Takes the blocks of one run in order; has events, counts, and what the program said of itself.

    counts: `records` are blocks. `user_prompts` are stretches of input: what was typed with nothing but empty lines in
    between counts once, and so does a turn.
    """

    def __init__(self, *, at: float, memory: Memory | None = None) -> None:
        self.events: list[ImportedEvent] = []
        self.counts = Counts()
        self.config: dict[str, str] = {}
        self.title: str | None = None
        self.last_piece: tuple[str, tuple[int, ...]] | None = None
        self._at = at
        self._memory = memory or Memory()
        self._copies: Counter[str] = Counter()
        self._turn: str | None = None
        self._before: str | None = None
        self._answer: int | None = None
        self._is_result = False
        self._model: str | None = None
        self._command_title: str | None = None

    @property
    def is_worth_keeping(self) -> bool:
        """True where anybody said anything: a run that was started and ended again leaves its greeting alone."""
        return any(event.kind == "message" for event in self.events)

    @property
    def unbilled(self) -> str | None:
        """Id of the last answer, if its usage has not been printed yet."""
        answer = self.events[self._answer] if self._answer is not None else None
        return answer.id if answer is not None and "usage" not in answer.body else None

    def take(self, block: Block, *, is_last: bool) -> None:
        """Take in the next block."""
        self.counts.records += 1
        id = self._id(block)
        if block.kind == "typed" and self._before != "typed":
            self._turn = id
            self.counts.user_prompts += 1
        self.counts.assistant_messages += block.kind == "answer"
        ends = self._memory.pieces.get(id, ())
        pieces = list(_pieces(block, ends))
        for number, piece in enumerate(pieces, start=1):
            self._take_piece(piece, id, number)
        if is_last:
            *earlier, last = (len(piece.lines) for piece in pieces)
            self.last_piece = id, (*earlier, last - _blank_count(block.lines))
        self._before = block.kind

    def finish(self) -> None:
        """Name the run after its first command where nothing else was typed."""
        self.title = self.title or self._command_title

    def _take_piece(self, block: Block, first: str, number: int) -> None:
        id = first if number == 1 else f"{first}+{number}"
        text, layout = _cleaned(block)
        extra: dict[str, Any] = {ORIGIN: {"line": block.line, "kind": block.kind, **layout}}
        if block.kind == "typed":
            self._typed(text, id, extra)
        elif block.kind == "answer":
            self._answered(text, id, first, extra)
        else:
            self._printed(text, id, extra)

    def _typed(self, text: str, id: str, extra: dict[str, Any]) -> None:
        body: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "content": text}], "extra": extra}
        line = title_line(text)
        if (command := _command.match(text)) is not None:
            body["injected"] = ORIGIN
            extra[ORIGIN]["command"] = command[0]
            self._command_title = self._command_title or line
        else:
            self.title = self.title or line
        self._answer, self._is_result = None, True
        self._emit("message", body, id, agent=USER)

    def _answered(self, text: str, id: str, first: str, extra: dict[str, Any]) -> None:
        body: dict[str, Any] = {"role": "assistant", "parts": [{"type": "text", "content": text}], "extra": extra}
        if self._model is not None:
            body["model"] = self._model
        if id != first:
            body["message_id"] = first
        self._answer, self._is_result = len(self.events), False
        self._emit("message", body, id, agent=AGENT)

    def _printed(self, text: str, id: str, extra: dict[str, Any]) -> None:
        self._hear(text)
        late_usage = self._bill(text)
        if not self._is_result and late_usage is None:
            self._emit("note", {"name": f"{ORIGIN}.output", "text": text, "extra": extra}, id, agent=None)
            return
        part = {"type": "tool_call_response", "name": TOOL, "response": text}
        body: dict[str, Any] = {"role": "tool", "parts": [part], "extra": extra}
        self._emit("message", body if late_usage is None else body | {"usage": late_usage}, id, agent=AGENT)

    def _hear(self, text: str) -> None:
        """Take in what the program says of itself: its version, and the model that answers from here on."""
        for line in text.split("\n"):
            if (version := _version.match(line)) is not None:
                self.config.setdefault("version", version[1])
            elif (model := _model.match(line)) is not None:
                self._model = model[1]
                self.config.setdefault("model", model[1])

    def _bill(self, text: str) -> dict[str, Any] | None:
        """Give the answer before this output its usage; return it where the answer was written down without it."""
        if self._answer is None:
            return None
        answer = self.events[self._answer]
        if text.startswith(_INTERRUPTED):
            answer.body["interrupted"] = True
        for line in text.split("\n"):
            if line.startswith("Tokens: ") and "usage" not in answer.body and (usage := _usage(line)):
                if answer.id in self._memory.unbilled:
                    return usage
                answer.body["usage"] = usage
        return None

    def _emit(self, kind: str, body: dict[str, Any], id: str, *, agent: str | None) -> None:
        self.events.append(ImportedEvent(kind, body, id, self._at, agent=agent, turn=self._turn))

    def _id(self, block: Block) -> str:
        digest = hashlib.sha256(block.lines[0].encode("utf-8", "surrogatepass")).hexdigest()[:24]
        base = f"{block.kind}-{digest}"
        self._copies[base] += 1
        return f"{base}-{self._copies[base]}"


def restore_block(event: ImportedEvent) -> tuple[str, ...] | None:
    """Return the lines that an event was made of, or None for an event of another origin."""
    layout = object_in(object_in(event.body, "extra"), ORIGIN)
    kind = text_in(layout, "kind")
    if kind is None:
        return None
    lines = _text(event.body).split("\n")
    marks = layout.get("marks") or [[len(lines), _PREFIXES[kind], "" if kind == "answer" else END]]
    around = ((prefix, suffix) for count, prefix, suffix in marks for _ in range(count))
    written = [_written(prefix, line, suffix) for line, (prefix, suffix) in zip(lines, around, strict=True)]
    return (*written, *layout.get("blank", [""]))


def _text(body: Mapping[str, Any]) -> str:
    part = next(iter(parts_in(body)), {})
    return text_in(body, "text") or content_of(part) or str(part.get("response", ""))


def _written(prefix: str, line: str, suffix: str) -> str:
    # An empty output is `>` and two spaces: the program strips it before it adds them.
    return f">{suffix}" if prefix == "> " and not line else f"{prefix}{line}{suffix}"


def _cleaned(block: Block) -> tuple[str, dict[str, Any]]:
    """Return the text of a block, and what else is needed to write its lines again: `marks`, where not all of them are
    as the program writes a single line (count, beginning, end), and `blank`, where not one empty line follows."""
    length = len(block.lines) - _blank_count(block.lines)
    lines, blank = block.lines[:length], list(block.lines[length:])
    layout: dict[str, Any] = {} if blank == [""] else {"blank": blank}
    if block.kind == "answer":
        return "\n".join(lines), layout
    taken = [_taken(line, _PREFIXES[block.kind]) for line in lines]
    marks = [[len(list(same)), *around] for around, same in groupby((prefix, suffix) for prefix, _, suffix in taken)]
    if marks != [[len(lines), _PREFIXES[block.kind], END]]:
        layout["marks"] = marks
    return "\n".join(text for _, text, _ in taken), layout


def _taken(line: str, prefix: str) -> tuple[str, str, str]:
    """Return a line's beginning, its text and its end, as `_written` puts them together."""
    end = END if line.endswith(END) else ""
    inner = line.removesuffix(end) if end else line
    if inner == ">" and prefix == "> ":
        return prefix, "", end
    if inner.startswith(prefix) and (prefix != "> " or len(inner) > len(prefix)):
        return prefix, inner[len(prefix) :], end
    return "", inner, end


def _pieces(block: Block, ends: Iterable[int]) -> Iterator[Block]:
    """Yield a block in the pieces in which earlier reads met it, and what has grown since as one more.

    Empty lines at the end are no growth: they are part of what the program writes next.
    """
    length = len(block.lines) - _blank_count(block.lines)
    start = 0
    for count in ends:
        if start + count >= length:
            break
        yield Block(block.kind, block.line + start, block.lines[start : start + count])
        start += count
    yield Block(block.kind, block.line + start, block.lines[start:])


def _blank_count(lines: Sequence[str]) -> int:
    """Return how many empty lines end a block. Its first line is never one."""
    count = 0
    while count < len(lines) - 1 and not lines[-1 - count].strip():
        count += 1
    return count


def _usage(line: str) -> dict[str, Any]:
    """Return the usage that a `Tokens:` line states, {} where it states none."""
    usage: dict[str, Any] = {}
    for digits, scale, name in _tokens.findall(line):
        try:
            usage[_USAGE[name]] = round(float(digits.replace(",", "")) * _scale[scale])
        except (ValueError, OverflowError):
            continue  # `1.2.3 sent`: no number that the program writes.
    if usage and (cost := _cost.search(line)) is not None:
        try:
            usage["cost_usd"] = float(cost[1])
        except ValueError:
            return usage
    return usage
