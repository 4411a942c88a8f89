"""The events every benchmark writes: a seeded, realistic mix with English-like text.

A turn is 37 events: it starts, a person asks, the agent takes eleven steps of thought (or a state change), tool call
and tool result, then answers, and the turn ends. An event is a plain dict of `kind`, `agent`, `turn` and `body`, about
840 bytes of compact JSON on average. Lengths are log-normal and words follow a Zipf-like curve, so that an index and a
compressor meet what they meet in life: a few very common words, many rare ones, now and then a very long tool result.

The same count and seed always give the same events. Only the standard library is used: the peers import this file.
"""

import json
from collections.abc import Iterator
from itertools import accumulate, count as count_from, islice
from math import exp, fsum
from random import Random
from statistics import median
from typing import Any, TypedDict

TURN_EVENTS = 37
STEPS_PER_TURN = 11
STATE_STEPS = (2, 6, 9)  # steps that change the state where the others think aloud
STATE_KEYS = 24  # the state is overwritten, not grown: a session of any length has the same keys
LIVE_TURNS = 2  # turns a compaction leaves in the conversation, wherever a resume is measured

VOCABULARY_WORDS = 12_000
TEXT_CHARS_MAX = 12_000

_COMMON = (
    "the of and to a in is it that for was on are as with be at this have from or by not but what all were when we "
    "there can an your which their if will each about how up out them then many some so these would other into has "
    "more two test file error run value code function line return class module call result request response server "
    "client user session event message tool data query table index path name type time build deploy commit branch "
    "config cache token timeout retry connection memory thread lock queue job worker log trace stack number string "
    "list key update read write open close start stop fail pass check change add remove move find search show set "
    "get new old first last next same"
).split()
_ONSETS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sp st t th tr v w".split()
_VOWELS = "a a e e i i o o u ai ea ee ou".split()
_CODAS = ["", "", "", "", "n", "r", "l", "s", "t", "m", "nd", "st", "ck"]
_ENDINGS = ["", "", "", "ing", "ed", "er", "s", "tion", "ly", "ment", "able", "al", "ity", "ous"]

_TOOLS = "run_tests read_file edit_file search_code shell list_directory fetch_page query_database".split()


class WorkloadEvent(TypedDict):
    """One event as the benchmarks hand it to a store: kind and body as the event model has them, turns from 1."""

    kind: str
    agent: str
    turn: int
    body: dict[str, Any]


def events(count: int, seed: int = 1) -> Iterator[WorkloadEvent]:
    """Yield `count` events, oldest first; the last turn may be cut short. The same arguments give the same events."""
    rng = Random(seed)
    turns = (_turn(rng, turn) for turn in count_from(1))
    return islice((event for turn in turns for event in turn), count)


def text_chunks(count: int, seed: int = 1) -> Iterator[str]:
    """Yield `count` pieces of a streamed answer, each one to three words with the space before them."""
    rng = Random(seed)
    for _ in range(count):
        yield "".join(" " + word for word in _words(rng, rng.randint(1, 3)))


def whole_turns_count(count: int) -> int:
    """Return the most events up to `count` that end with a turn: a resume is measured between two turns."""
    return count // TURN_EVENTS * TURN_EVENTS


def compacted_count(count: int) -> int:
    """Return how many of the first `count` events a compaction covers: all whole turns but the last `LIVE_TURNS`."""
    return max(0, whole_turns_count(count) - LIVE_TURNS * TURN_EVENTS)


def summary(seed: int = 1) -> str:
    """Return the text that stands in for the compacted events, about 2,000 characters."""
    return prose(Random(seed), 2_000)


def json_bytes(event: WorkloadEvent) -> int:
    """Return the size of the event as compact JSON: what every stored or written byte is compared with."""
    return len(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode())


def prose(rng: Random, chars: int) -> str:
    """Return sentences of 6 to 18 words, about `chars` characters in all."""
    words = _words(rng, max(1, round(chars / _WORD_CHARS)))
    start = 0
    while start < len(words):
        words[start] = words[start].capitalize()
        end = min(start + rng.randint(6, 18), len(words)) - 1
        if end - start > 9:
            words[start + 5] += ","
        words[end] += "."
        start = end + 1
    return " ".join(words)


def vocabulary() -> list[str]:
    """Return the words from the commonest to the rarest: short known words first, then made-up ones, all distinct."""
    rng = Random("vocabulary")
    words = dict.fromkeys(_COMMON)
    while len(words) < VOCABULARY_WORDS:
        syllables = rng.randint(1, 2 if len(words) < 3_000 else 3)  # rarer words are longer, as in any language
        stem = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables))
        words[stem + rng.choice(_ENDINGS)] = None
    return list(words)


VOCABULARY = vocabulary()
# Zipf with Mandelbrot's offset, which keeps the first few words from being half of the text.
_WEIGHTS = [1 / (rank + 2.7) for rank in range(VOCABULARY_WORDS)]
_CUMULATIVE_WEIGHTS = list(accumulate(_WEIGHTS))
_WORD_CHARS = fsum((len(word) + 1) * weight for word, weight in zip(VOCABULARY, _WEIGHTS, strict=True)) / fsum(_WEIGHTS)


def _words(rng: Random, count: int) -> list[str]:
    return rng.choices(VOCABULARY, cum_weights=_CUMULATIVE_WEIGHTS, k=count)


def _turn(rng: Random, turn: int) -> Iterator[WorkloadEvent]:
    yield _event("turn_started", "user", turn, {"cause": "user"})
    yield _message("user", "user", turn, [_text(rng, 260)])
    for step in range(STEPS_PER_TURN):
        call_id, tool = f"call_{turn}_{step}", rng.choice(_TOOLS)
        if step in STATE_STEPS:
            delta = {f"plan:{rng.randrange(STATE_KEYS)}": prose(rng, 150), "step": step}
            yield _event("state_changed", "coordinator", turn, {"delta": {"session": delta}})
        else:
            yield _message("coordinator", "assistant", turn, [{**_text(rng, 480), "type": "reasoning"}])
        call = {"type": "tool_call", "id": call_id, "name": tool, "arguments": _arguments(rng)}
        yield _message("coordinator", "assistant", turn, [_text(rng, 90), call], **_model(rng, "tool_calls"))
        answer = {"type": "tool_call_response", "id": call_id, "response": _output(rng)}
        yield _message("coordinator", "tool", turn, [answer])
    yield _message("coordinator", "assistant", turn, [_text(rng, 900)], **_model(rng, "stop"))
    yield _event("turn_ended", "coordinator", turn, {"status": "completed", "usage": _usage(rng, 40_000)})


def _event(kind: str, agent: str, turn: int, body: dict[str, Any]) -> WorkloadEvent:
    return {"kind": kind, "agent": agent, "turn": turn, "body": body}


def _message(agent: str, role: str, turn: int, parts: list[dict[str, Any]], **more: Any) -> WorkloadEvent:
    return _event("message", agent, turn, {"role": role, "parts": parts, **more})


def _text(rng: Random, chars: int) -> dict[str, Any]:
    return {"type": "text", "content": prose(rng, _length(rng, chars, 0.6))}


def _length(rng: Random, mean: int, spread: float) -> int:
    return min(round(mean * rng.lognormvariate(-spread * spread / 2, spread)), TEXT_CHARS_MAX)


def _arguments(rng: Random) -> dict[str, Any]:
    return {"path": _path(rng), "query": prose(rng, _length(rng, 60, 0.6)), "limit": rng.randint(1, 200)}


def _path(rng: Random) -> str:
    return "/".join(_words(rng, 3)) + rng.choice((".py", ".ts", ".md", ".sql"))


def _output(rng: Random) -> dict[str, Any]:
    """Return a tool's answer of 1,500 characters on average: lines found in files four times in ten, else prose."""
    chars = _length(rng, 1_500, 1.0)
    if rng.random() < 0.4:
        lines = (f"{_path(rng)}:{rng.randint(1, 900)}: {' '.join(_words(rng, 7))}" for _ in range(max(1, chars // 78)))
        return {"output": "\n".join(lines), "exit_code": 0}
    return {"output": prose(rng, chars), "exit_code": int(rng.random() < 0.1)}


def _model(rng: Random, finish_reason: str) -> dict[str, Any]:
    return {"model": "model-large-1", "finish_reason": finish_reason, "usage": _usage(rng, 4_000)}


def _usage(rng: Random, input_tokens: int) -> dict[str, int]:
    tokens = round(input_tokens * exp(rng.gauss(0, 0.3)))
    return {"input_tokens": tokens, "output_tokens": rng.randint(20, 900), "cached_tokens": tokens * 3 // 4}


def main() -> None:
    """Print the size of what the benchmarks write."""
    sizes = sorted(json_bytes(event) for event in events(10_000))
    mean = sum(sizes) / len(sizes)
    print(f"{len(sizes):,} events of {mean:.0f} B on average; median {median(sizes):.0f} B, largest {sizes[-1]:,} B")


if __name__ == "__main__":
    main()
