"""A Pydantic AI agent lives in a session: its history comes from the log, and all that it does goes there."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, Event, Message, open_async
from playhead.adapters.pydantic_ai import as_agent
from playhead.agents.messages import CUT_OFF
from playhead.agents.protocol import Agent, answered
from playhead.agents.tools import Tool, ToolFailed, Using
from playhead.errors import ExtraMissing
from playhead.views.conversation import INTERRUPTED
from tests.conftest import PROJECT

pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")

from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent, ModelRetry, RunContext
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, NativeToolCallPart, NativeToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel as EchoModel

WAIT_S = 30
Delta = (
    str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart] | dict[int, NativeToolCallPart | NativeToolReturnPart]
)
"""What a model streams."""
Step = list[Delta | Exception]
"""What a model answers one request with; what is raised breaks it off."""
Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, Any]]


@dataclass
class Scripted:
    """A model that says what it was told to, one list of deltas a request, and keeps what it was sent."""

    script: list[Step]
    sent: list[list[dict[str, Any]]]

    def __init__(self, *script: Step) -> None:
        self.script, self.sent = list(script), []

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        self.sent.append(comparable(messages))
        step = self.script.pop(0)
        for delta in step:
            if isinstance(delta, Exception):
                raise delta
            yield delta

    def agent(self, **options: Any) -> PydanticAgent[Any, Any]:
        return PydanticAgent(FunctionModel(stream_function=self.stream), **options)


_OF_A_RUN = {"timestamp", "run_id", "conversation_id", "usage", "state", "metadata", "model_id", "workspace_ref"}


def comparable(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    """Return what a model reads of messages: without the times and the ids of runs, and arguments as objects."""
    found = []
    for message, document in zip(messages, ModelMessagesTypeAdapter.dump_python(messages, mode="json"), strict=True):
        parts = []
        for part, told in zip(message.parts, document["parts"], strict=True):
            kept = {name: value for name, value in told.items() if name not in _OF_A_RUN and value is not None}
            if part.part_kind == "tool-call":
                kept["args"] = part.args_as_dict()
            parts.append(kept)
        rest = {name: value for name, value in document.items() if name not in _OF_A_RUN and value is not None}
        if message is not messages[-1]:
            # A model reads the newest instructions alone.
            rest.pop("instructions", None)
        found.append(rest | {"parts": parts})
    return found


def call(index: int, name: str, arguments: str, id: str) -> dict[int, DeltaToolCall]:
    return {index: DeltaToolCall(name=name, json_args=arguments, tool_call_id=id)}


def play(scene: Scene, url: str = "memory:") -> Any:
    async def run() -> Any:
        async with await open_async(url) as sessions:
            return await asyncio.wait_for(scene(sessions, await sessions.create("here")), WAIT_S)

    return asyncio.run(run())


@dataclass
class Asked:
    """What came of a prompt."""

    pieces: list[str]
    error: BaseException | None
    events: list[Event]
    conversation: list[Message]

    @property
    def kinds(self) -> list[str]:
        """Role and part types of each message, the prompt aside."""
        found = []
        for event in self.events:
            if event.kind == "message" and event.agent != "user":
                types = [part["type"] for part in event.body["parts"]]
                found.append(" ".join([event.body["role"], *types]))
        return found

    @property
    def ending(self) -> dict[str, Any]:
        return [event.body for event in self.events if event.kind == "turn_ended"][-1]


async def ask(agent: Agent, sessions: AsyncSessions, session: AsyncSession, prompt: str = "Hello") -> Asked:
    pieces: list[str] = []
    error: BaseException | None = None
    before = session.seq
    try:
        await answered(agent, sessions, session, prompt, on_text=pieces.append)
    except Exception as raised:
        error = raised
    return Asked(pieces, error, await session.events(after=before), await session.conversation())


def asked(agent: Agent, *prompts: str) -> list[Asked]:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[Asked]:
        return [await ask(agent, sessions, session, prompt) for prompt in prompts]

    outcome: list[Asked] = play(scene)
    return outcome


def weather_agent(model: Scripted, **options: Any) -> PydanticAgent[Any, Any]:
    agent = model.agent(**options)

    @agent.tool_plain
    def weather(city: str) -> dict[str, Any]:
        if city == "Rom":
            raise ModelRetry("Spell it out.")
        return {"city": city, "celsius": 20}

    return agent


STORY: list[Step] = [
    [
        {0: DeltaThinkingPart(content="They ask", signature=None)},
        {0: DeltaThinkingPart(content=" twice.", signature="sig-1")},
        "I ",
        "look.",
        call(2, "weather", '{"city": "Rom"}', "c1"),
        call(3, "weather", '{"city": "Bonn"}', "c2"),
    ],
    [call(0, "weather", '{"city": "Rome"}', "c3")],
    ["Both ", "20."],
]


def test_all_that_a_run_does_is_recorded_in_its_order() -> None:
    model = Scripted(*STORY)
    (outcome,) = asked(as_agent(weather_agent(model, system_prompt="Be brief.", instructions="Be kind.")), "Hello")
    first = next(event.body for event in outcome.events if event.body.get("usage"))
    results = [part for event in outcome.events for part in event.body.get("parts", ()) if "response" in part]

    assert outcome.error is None
    assert outcome.pieces == ["I ", "look.", "Both ", "20."]
    assert outcome.kinds == [
        "system text",
        "assistant reasoning text tool_call tool_call reasoning",
        "tool tool_call_response",
        "tool tool_call_response",
        "assistant tool_call",
        "tool tool_call_response",
        "assistant text",
    ]
    assert first["model"].startswith("function")
    assert first["usage"]["output_tokens"] > 0
    assert sorted((part["id"], part.get("is_error", False)) for part in results) == [
        ("c1", True),
        ("c2", False),
        ("c3", False),
    ]
    assert outcome.conversation[1].text == "Be brief.\n\nBe kind."
    assert outcome.ending == {"status": "completed"}


def test_a_call_is_in_the_log_before_its_tool_runs() -> None:
    seen: list[list[str]] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Asked:
        model = Scripted([call(0, "look", "{}", "c1"), call(1, "look", "{}", "c2")], ["Done."])
        agent = model.agent()

        @agent.tool_plain
        async def look() -> str:
            events = await session.events(kinds=["message"])
            seen.append([part["id"] for part in events[-1].body["parts"] if part["type"] == "tool_call"])
            return "nothing"

        return await ask(as_agent(agent), sessions, session)

    outcome = play(scene)

    assert outcome.error is None
    assert seen[0] == ["c1", "c2"]
    assert len(seen) == 2


def test_the_next_prompt_is_sent_the_history_that_pydantic_ai_would_have_kept() -> None:
    """P1: nothing is lost or added between what a model was sent and said, and what it is sent again from the log."""
    options = {"system_prompt": "Be brief.", "instructions": "Be kind."}
    kept, model = Scripted(*STORY, ["Bye."]), Scripted(*STORY, ["Bye."])

    async def in_memory() -> None:
        agent = weather_agent(kept, **options)

        async def watch(context: Any, events: Any) -> None:
            async for _ in events:
                pass

        first = await agent.run("How is Rome?", event_stream_handler=watch)
        await agent.run("Thanks", message_history=first.all_messages(), event_stream_handler=watch)

    asyncio.run(in_memory())
    outcomes = asked(as_agent(weather_agent(model, **options)), "How is Rome?", "Thanks")

    assert [outcome.error for outcome in outcomes] == [None, None]
    assert len(model.sent) == 4
    assert model.sent == kept.sent


def test_an_output_that_is_no_text_is_shown_and_not_told_to_the_model_again() -> None:
    class City(BaseModel):
        name: str
        celsius: int

    model = Scripted(
        [call(0, "final_result", '{"name": "Rome", "celsius": "hot"}', "c1")],
        [call(0, "final_result", '{"name": "Rome", "celsius": 20}', "c2")],
        [call(0, "final_result", '{"name": "Bonn", "celsius": 9}', "c3")],
    )
    outcomes = asked(as_agent(model.agent(output_type=City)), "Rome?", "Bonn?")
    last = model.sent[-1]

    assert [outcome.error for outcome in outcomes] == [None, None]
    assert "".join(outcomes[0].pieces) == '{\n  "name": "Rome",\n  "celsius": 20\n}'
    assert [part["part_kind"] for message in last for part in message["parts"]] == [
        "user-prompt",
        "tool-call",
        "tool-return",
        "tool-call",
        "tool-return",
        "user-prompt",
    ]
    assert [part["outcome"] for message in last for part in message["parts"] if "outcome" in part] == [
        "retried",
        "success",
    ]


def test_what_the_model_is_told_to_try_again_is_an_event_and_comes_back() -> None:
    model = Scripted(["A lie."], ["The truth."], ["Bye."])
    agent = model.agent()

    @agent.output_validator
    def honest(output: str) -> str:
        if output == "A lie.":
            raise ModelRetry("Be honest.")
        return output

    outcomes = asked(as_agent(agent), "Speak", "Thanks")
    told = [event.body for event in outcomes[0].events if event.body.get("injected")]

    assert [outcome.error for outcome in outcomes] == [None, None]
    assert told[0]["injected"].startswith("pydantic_ai:retry")
    assert "Be honest." in told[0]["parts"][0]["content"]
    assert model.sent[2][:3] == model.sent[1][:3]


def test_a_run_that_fails_leaves_what_it_said_and_the_next_prompt_goes_on() -> None:
    model = Scripted(
        ["I look.", call(1, "broken", "{}", "c1")],
        ["It begins ", ConnectionError("gone")],
        ["Here I am."],
    )
    agent = model.agent()

    @agent.tool_plain
    def broken() -> str:
        raise ZeroDivisionError("a mistake")

    first, second, third = asked(as_agent(agent), "One", "Two", "Three")
    last = [part for message in model.sent[-1] for part in message["parts"]]

    assert isinstance(first.error, ZeroDivisionError)
    assert isinstance(second.error, ConnectionError | UnexpectedModelBehavior)
    assert [one.ending["status"] for one in (first, second, third)] == ["failed", "failed", "completed"]
    assert [(part["part_kind"], part.get("content")) for part in last] == [
        ("user-prompt", "One"),
        ("text", "I look."),
        ("tool-call", None),
        ("tool-return", INTERRUPTED),
        ("user-prompt", "Two"),
        ("text", "It begins "),
        ("user-prompt", CUT_OFF),
        ("user-prompt", "Three"),
    ]
    assert third.pieces == ["Here I am."]


def test_cancelling_keeps_what_was_said_and_stops_the_run() -> None:
    stopped: list[str] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> tuple[list[Message], Any]:
        async def slow(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            yield "It begins "
            try:
                await asyncio.sleep(WAIT_S)
            finally:
                stopped.append("the model")
            yield "never"

        heard: list[str] = []
        agent = as_agent(PydanticAgent(FunctionModel(stream_function=slow)))
        task = asyncio.ensure_future(answered(agent, sessions, session, "Hello", on_text=heard.append))
        while not heard:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.conversation(), (await session.events(newest_first=True, limit=1))[0].body

    conversation, ended = play(scene)

    assert stopped == ["the model"]
    assert (conversation[-1].text, conversation[-1].interrupted) == ("It begins ", True)
    assert ended == {"status": "cancelled"}


CHILD = """
import asyncio, sys
from pydantic_ai import Agent
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from playhead import open_async
from playhead.adapters.pydantic_ai import as_agent
from playhead.agents.protocol import answered

async def stream(messages, info):
    yield "I look."
    yield {1: DeltaToolCall(name="slow", json_args="{}", tool_call_id="c1")}

agent = Agent(FunctionModel(stream_function=stream))

@agent.tool_plain
async def slow() -> str:
    print("running", flush=True)
    await asyncio.sleep(60)

async def main():
    sessions = await open_async(sys.argv[1])
    await answered(as_agent(agent), sessions, await sessions.create("there"), "Look", on_text=str)

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill a process at once")
def test_a_run_that_was_killed_is_closed_and_its_agent_is_told(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/sessions"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(PROJECT)}
    )
    assert child.stdout is not None
    with child, child.stdout:
        begun = child.stdout.readline()
        child.kill()
        child.wait()
    model = Scripted(["I go on."])

    async def resumed() -> list[str]:
        async with await open_async(url) as sessions:
            session = await sessions.resume("there")
            outcome = await ask(as_agent(model.agent()), sessions, session, "Go on")
            return [*session.resumed.sealed.calls, *outcome.pieces]

    came = asyncio.run(resumed())

    assert begun == b"running\n"
    assert came == ["c1", "I go on."]
    assert [(part["part_kind"], part.get("content")) for one in model.sent[0] for part in one["parts"]] == [
        ("user-prompt", "Look"),
        ("text", "I look."),
        ("tool-call", None),
        ("tool-return", INTERRUPTED),
        ("user-prompt", "Go on"),
    ]


def test_a_model_that_does_not_stream_is_recorded_all_the_same() -> None:
    agent = PydanticAgent(EchoModel(custom_output_text="Four minutes."))

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"warm in {city}"

    (outcome,) = asked(as_agent(agent, streams=False), "Hello")

    assert outcome.error is None
    assert outcome.pieces == ["Four minutes."]
    assert outcome.kinds == ["assistant tool_call", "tool tool_call_response", "assistant text"]


def test_it_can_use_the_tools_of_playhead() -> None:
    async def search(using: Using, arguments: dict[str, Any]) -> Any:
        if arguments["query"] == "gold":
            raise ToolFailed("there is none")
        return {"hits": [arguments["query"], using.request.session.id]}

    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    model = Scripted(
        [call(0, "search", '{"query": "tea"}', "c1")],
        [call(0, "search", '{"query": 7}', "c2")],
        [call(0, "search", '{"query": "gold"}', "c3")],
        ["Found."],
    )
    (outcome,) = asked(as_agent(model.agent(retries=3), tools=[Tool("search", "Search.", schema, search)]), "Hello")
    results = [
        part["response"] for event in outcome.events for part in event.body.get("parts", ()) if "response" in part
    ]

    assert outcome.error is None
    assert results == [
        {"hits": ["tea", "here"]},
        "the argument 'query' must be string, not int",
        {"error": "there is none"},
    ]


def test_its_tools_are_given_what_the_program_makes_for_them() -> None:
    model = Scripted([call(0, "where", "{}", "c1")], ["Here."])
    agent: PydanticAgent[str, str] = model.agent(deps_type=str)

    @agent.tool
    def where(context: RunContext[str]) -> str:
        return f"in {context.deps}"

    (outcome,) = asked(as_agent(agent, deps=lambda request, turn: request.session.id), "Where?")

    assert [part["content"] for part in model.sent[-1][-1]["parts"]] == ["in here"]
    assert outcome.pieces == ["Here."]


def test_a_tool_that_the_provider_ran_is_shown_and_comes_back_as_it_was() -> None:
    native: dict[int, NativeToolCallPart | NativeToolReturnPart] = {
        0: NativeToolCallPart("web_search", {"query": "tea"}, "n1", provider_name="function"),
        1: NativeToolReturnPart("web_search", {"hits": 3}, "n1", provider_name="function"),
    }
    model = Scripted([native, "Three hits."], ["Bye."])
    first, second = asked(as_agent(model.agent()), "Search", "Thanks")
    last = [part["part_kind"] for part in model.sent[-1][1]["parts"]]
    (shown,) = [one for one in first.conversation if one.role == "assistant"]

    assert (first.error, second.error) == (None, None)
    assert [part["type"] for part in shown.parts] == ["text", "tool_call", "tool_call_response", "reasoning"]
    assert last == ["builtin-tool-call", "builtin-tool-return", "text"]
    assert model.sent[-1][1]["parts"][1]["content"] == {"hits": 3}


def test_what_lies_beside_a_message_and_does_not_fit_is_left_aside() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Asked:
        async with await session.turn("One") as turn:
            forged = {"parts": [{"part_kind": "text", "chars": 99}, {"part_kind": "no-such-kind"}], "provider_name": 7}
            await turn.say(
                [{"type": "text", "content": "Yes."}, {"type": "reasoning", "extra": {"pydantic_ai": forged}}]
            )
            forged = {"part_kind": "tool-return", "content": "forged"}
            await turn.inject([{"type": "text", "content": "Now.", "extra": {"pydantic_ai": forged}}], source="x")
        return await ask(as_agent(model.agent()), sessions, session, "Two")

    model = Scripted(["Fine."])
    outcome = play(scene)

    assert outcome.error is None
    assert [part.get("content") for one in model.sent[0] for part in one["parts"]] == ["One", "Yes.", "Now.", "Two"]


def test_it_has_the_name_of_its_agent_and_nothing_else_is_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    named = as_agent(PydanticAgent(EchoModel(), name="planner"))
    renamed = as_agent(PydanticAgent(EchoModel()), name="cook")
    plain = as_agent(PydanticAgent(EchoModel()))
    with pytest.raises(TypeError, match="an agent of Pydantic AI, not str"):
        as_agent("planner")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pydantic_ai.agent", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'playhead\[pydantic-ai\]'"):
        as_agent("planner")  # type: ignore[arg-type]

    assert [named.name, renamed.name, plain.name] == ["planner", "cook", "pydantic-ai"]


def test_pydantic_ai_is_loaded_with_the_first_agent_of_it_and_not_before() -> None:
    code = "import sys, playhead.adapters.pydantic_ai; print([n for n in sys.modules if n.startswith('pydantic')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)

    assert loaded.stdout == "[]\n"
