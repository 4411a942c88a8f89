"""An agent at work, as a child process: it records turns of every sort and acknowledges each verb that has returned."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import playhead
from playhead.errors import SessionNotFound
from playhead.turn import Speaker, Turn
from tests.promises.line import Line

TURNS_MAX = 200
"""A recorder that nobody kills stops by itself."""

CHUNK_TEXTS = ("Looking at ", "the log of ", "test_upload: ", "grüße, ", "日本語 ", "\n", "line 3 says ", '"reset" ')


def record(line: Line, *, url: str, id: str, seed: int) -> None:
    """Create the session, or resume it, and work on it until killed. What is said is durable by promise:

    `["event", seq, event id]`, `["chunk", stream, number, text]` and then `["streamed", stream, event id]`,
    `["state", scope, key, value]`, `["artifact", name, text]`, `["forked", session id]`, `["turn ended", turn id]`.
    """
    sessions = playhead.open(url)
    try:
        session = sessions.resume(id)
    except SessionNotFound:
        session = sessions.create(id, title="Flaky test", state={"runs": 0})
    line.say("event", session.seq, session.event(session.seq).id)
    _Agent(line, sessions, session, seed).work()


class _Agent:
    def __init__(self, line: Line, sessions: playhead.Sessions, session: playhead.Session, seed: int) -> None:
        self.line = line
        self.sessions = sessions
        self.session = session
        self.seed = seed
        self.rng = random.Random(seed)
        self.count = 0

    def work(self) -> None:
        for number in range(TURNS_MAX):
            self._between_turns()
            with self.session.turn(f"{self._text()} Why does test_upload fail? ({self.seed}.{number})") as turn:
                self._acknowledge_last()
                for _ in range(self.rng.randint(1, 6)):
                    self._step(turn)
            self.line.say("turn ended", turn.turn_id)

    def _between_turns(self) -> None:
        match self.rng.randrange(8):
            case 0:
                self._acknowledge(self.session.rename(f"Flaky test {self._next()}"))
            case 1 if self.session.turn_count > 3:
                self._acknowledge(self.session.rewind(turn=-1))
            case 2:
                name, value = f"shared-{self._fresh()}", self._text()
                self._acknowledge(self.session.set_state({name: value}, scope="user"))
                self.line.say("state", "user", name, value)
            case 3:
                name, text = f"report-{self._fresh()}.md", self._text() * 50
                self._acknowledge(self.session.save_artifact(name, text.encode(), media_type="text/markdown"))
                self.line.say("artifact", name, text)
            case 4 if self._next() % 4 == 0:
                self.line.say("forked", self.session.fork().id)
            case 5:
                self.session.search("upload OR reset")

    def _step(self, turn: Turn) -> None:
        match self.rng.randrange(7):
            case 0 | 1:
                self._stream(turn)
            case 2:
                self._tools(turn)
            case 3:
                with turn.subagent("researcher", f"Find the upload test. {self._text()}") as run:
                    self._acknowledge_last()
                    for _ in range(self.rng.randint(1, 3)):
                        self._stream(run) if self.rng.random() < 0.5 else self._tools(run)
                self._acknowledge_last()
            case 4:
                name, value = f"key-{self._fresh()}", self._text()
                self._acknowledge(turn.set_state({name: value, "temp:cursor": 1}))
            case 5:
                with self._job(turn):
                    self._acknowledge(turn.say(f"While that runs: {self._text()}"))
            case 6:
                self._acknowledge(turn.inject(f"Reminder {self._next()}: be brief.", source="hook"))

    def _stream(self, speaker: Speaker) -> None:
        stream = self._fresh()
        for number in range(self.rng.randint(1, 12)):
            text = f"<{stream}/{number}>{self.rng.choice(CHUNK_TEXTS)}"
            speaker.stream(text)
            self.line.say("chunk", stream, number, text)
        event = speaker.finish_stream()
        assert event is not None, "chunks were streamed"
        self.line.say("streamed", stream, event.id)
        self._acknowledge(event)

    def _tools(self, speaker: Speaker) -> None:
        self._acknowledge(speaker.think(f"I should run it. {self._text()}"))
        calls = [speaker.tool_call("run_tests", {"path": self._text()}) for _ in range(self.rng.randint(1, 3))]
        self._acknowledge_last()
        for call in calls:
            failed = self.rng.random() < 0.3
            self._acknowledge(speaker.tool_result(call, {"log": self._text() * 20}, is_error=failed))

    @contextlib.contextmanager
    def _job(self, turn: Turn) -> Iterator[None]:
        job = turn.job("build", {"target": "wheel"})
        self._acknowledge_last()
        yield
        self._acknowledge(job.done({"wheel": self._text()}))

    def _acknowledge(self, event: playhead.Event) -> None:
        self.line.say("event", event.seq, event.id)

    def _acknowledge_last(self) -> None:
        self._acknowledge(self.session.event(self.session.seq))

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _fresh(self) -> str:
        """Return a name that no other recorder uses, nor this one again."""
        return f"{self.seed}-{self._next()}"

    def _text(self) -> str:
        words = ["connection", "reset", "upload", "タイムアウト", "ключ", "retry\n", "'; DROP TABLE events; --", "🧪"]
        return " ".join(self.rng.choices(words, k=self.rng.randint(1, 12)))


def acknowledged(said: list[list[Any]], word: str) -> list[list[Any]]:
    """Return what a recorder said that begins with `word`, without it."""
    return [values for first, *values in said if first == word]
