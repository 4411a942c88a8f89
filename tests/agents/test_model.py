"""An agent on any OpenAI-compatible endpoint: what it sends is what the log says, and nothing that comes is lost.

Everything is asked of a local endpoint that speaks the real wire format.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playhead import AsyncSession, AsyncSessions, Event, open_async
from playhead.agents.messages import CUT_OFF
from playhead.agents.model import agent as model_module, endpoint as model_endpoint, reply as model_reply, retrying
from playhead.agents.model.agent import CALLS_MAX, DELEGATE_INSTRUCTIONS, INSTRUCTIONS, ModelAgent
from playhead.agents.protocol import Request, answered, for_blocking, run_subagent
from playhead.agents.tools import Tool, ToolFailed, Using
from playhead.errors import ExtraMissing, InvalidName, ModelFailed
from playhead.session import open as open_sessions
from playhead.views.conversation import INTERRUPTED, Message
from tests.agents.fake_endpoint import (
    MODEL,
    FakeEndpoint,
    Gate,
    Step,
    calls,
    chunk,
    cuts,
    hangs_up,
    refuses,
    replies,
    says,
    sends,
    streams,
    texts_of,
)
from tests.conftest import PROJECT

pytest.importorskip("openai", reason="the openai extra is not installed")

KEY = "sk-test-0123456789abcdef"
WAIT_S = 30
RETRY = {"Retry-After": "0.01"}


async def weather(using: Using, arguments: dict[str, Any]) -> Any:
    if arguments["city"] == "Atlantis":
        raise ToolFailed("there is no such city")
    return {"city": arguments["city"], "celsius": 20}


WEATHER = Tool(
    "weather",
    "Tell the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
    weather,
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "PAUSE_S", 0.001)


@pytest.fixture(autouse=True)
def no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@dataclass
class Asked:
    """What came of a prompt: the pieces that were given out, what was raised, and the log."""

    pieces: list[str]
    error: BaseException | None
    events: list[Event]
    conversation: list[Message] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def ending(self) -> dict[str, Any]:
        return [event.body for event in self.events if event.kind == "turn_ended"][-1]

    def bodies(self, role: str) -> list[dict[str, Any]]:
        return [one.body for one in self.events if one.kind == "message" and one.body["role"] == role]

    @property
    def said(self) -> list[tuple[str, bool]]:
        return [(one.text, one.interrupted) for one in self.conversation if one.role == "assistant"]


Scene = Callable[[AsyncSessions, AsyncSession], Coroutine[Any, Any, Any]]


def play(scene: Scene, url: str = "memory:") -> Any:
    async def run() -> Any:
        async with await open_async(url) as sessions:
            return await asyncio.wait_for(scene(sessions, await sessions.create("here")), WAIT_S)

    return asyncio.run(run())


async def ask(agent: ModelAgent, sessions: AsyncSessions, session: AsyncSession, prompt: str = "Hello") -> Asked:
    """Have the agent answer in a turn; what it raises is returned."""
    pieces: list[str] = []
    error: BaseException | None = None
    before = session.seq
    try:
        await answered(agent, sessions, session, prompt, on_text=pieces.append)
    except Exception as raised:
        error = raised
    return Asked(pieces, error, await session.events(after=before), await session.conversation())


def asked(*script: Step, prompt: str = "Hello", **options: Any) -> tuple[Asked, FakeEndpoint]:
    """Have a new agent answer one prompt in a new session."""

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Asked:
        return await ask(ModelAgent("fake-1", base_url=endpoint.url, **options), sessions, session, prompt)

    with FakeEndpoint(*script) as endpoint:
        outcome: Asked = play(scene)
    return outcome, endpoint


def test_an_answer_is_recorded_as_it_comes_with_its_model_its_usage_and_why_it_ended() -> None:
    outcome, endpoint = asked(says("Four ", "minutes.", thoughts=["They want", " tea."]), api_key=KEY)
    sent = endpoint.received[0]

    assert outcome.error is None
    assert outcome.pieces == ["Four ", "minutes."]
    assert outcome.bodies("assistant") == [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "They want tea."}, {"type": "text", "content": "Four minutes."}],
            "model": MODEL,
            "usage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15},
            "finish_reason": "stop",
        }
    ]
    assert (sent.path, sent.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (sent.body["model"], sent.body["stream"]) == ("fake-1", True)
    assert sent.body["stream_options"] == {"include_usage": True}
    assert texts_of(sent.messages) == [("system", INSTRUCTIONS), ("user", "Hello")]
    assert "tools" not in sent.body


def test_nothing_is_given_out_before_it_is_recorded(tmp_path: Path) -> None:
    missing: list[str] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> None:
        def on_text(text: str) -> None:
            store = session._session._store
            kept = "".join(chunk for left in store.streams.left(session.key) for _, chunk in left.chunks)
            if text not in kept:
                missing.append(text)

        await answered(ModelAgent("m", base_url=endpoint.url), sessions, session, "Hello", on_text=on_text)

    with FakeEndpoint(says("One ", "two ", "three.")) as endpoint:
        play(scene, f"bundles:{tmp_path}/sessions")

    assert missing == []
    assert len(endpoint.received) == 1


def test_calls_are_recorded_run_and_answered_until_the_model_ends() -> None:
    outcome, endpoint = asked(
        calls(("a", "weather", '{"city": "Rome"}'), ("b", "weather", '{"city": "Atlantis"}'), text="I look."),
        calls(("a", "weather", '{"city": "Paris"}')),
        says("20 degrees."),
        tools=[WEATHER],
    )
    last = endpoint.sent()

    assert outcome.error is None
    assert outcome.text == "I look.20 degrees."
    assert [(one["role"], one["content"]) for one in last[2:]] == [
        ("assistant", "I look."),
        ("tool", '{"city": "Rome", "celsius": 20}'),
        ("tool", "Error: there is no such city"),
        ("assistant", None),
        ("tool", '{"city": "Paris", "celsius": 20}'),
    ]
    assert [one["id"] for one in last[2]["tool_calls"]] == ["a", "b"]
    assert endpoint.received[0].body["tools"] == [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Tell the weather.", "parameters": WEATHER.parameters},
        }
    ]
    usage = [body["usage"]["output_tokens"] for body in outcome.bodies("assistant") if "usage" in body]
    assert usage == [3, 3, 3]


def test_calls_of_one_reply_are_all_in_the_log_before_the_first_runs_and_run_side_by_side() -> None:
    recorded: list[list[str]] = []
    arrived: list[str] = []
    both = asyncio.Event()

    async def meet(using: Using, arguments: dict[str, Any]) -> Any:
        last = (await using.request.session.events(newest_first=True, limit=1))[0]
        recorded.append([part["name"] for part in last.body["parts"] if part["type"] == "tool_call"])
        arrived.append(arguments["who"])
        if len(arrived) == 2:
            both.set()
        await both.wait()
        return "met"

    outcome, _ = asked(
        calls(("a", "meet", '{"who": "Ada"}'), ("b", "meet", '{"who": "Bob"}')),
        says("They met."),
        tools=[Tool("meet", "Meet.", {"type": "object"}, meet)],
    )

    assert outcome.error is None
    assert recorded == [["meet", "meet"], ["meet", "meet"]]
    assert sorted(arrived) == ["Ada", "Bob"]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("weather", '{"city": ', "the arguments are not a JSON object; call it again with one"),
        ("weather", "{}", "the argument 'city' is missing"),
        ("weather", '{"city": 7}', "the argument 'city' must be string, not int"),
        ("climate", "{}", "there is no tool 'climate'; there are: weather"),
    ],
)
def test_a_call_that_cannot_be_run_is_told_to_the_model(name: str, arguments: str, told: str) -> None:
    outcome, endpoint = asked(calls(("a", name, arguments)), says("Sorry."), tools=[WEATHER])
    result = outcome.bodies("tool")[0]["parts"][0]

    assert outcome.error is None
    assert (result["response"], result["is_error"]) == (told, True)
    assert endpoint.sent()[-1]["content"] == f"Error: {told}"


def test_calls_without_ids_get_ids_of_their_own() -> None:
    outcome, endpoint = asked(
        calls(("", "weather", '{"city": "Rome"}'), ("", "weather", '{"city": "Bonn"}')),
        calls(("", "weather", '{"city": "Oslo"}')),
        says("Fine."),
        tools=[WEATHER],
    )
    ids = [part["id"] for body in outcome.bodies("tool") for part in body["parts"]]

    assert outcome.error is None
    assert len(set(ids)) == 3
    assert [json.loads(one["content"])["city"] for one in endpoint.sent() if one["role"] == "tool"] == [
        "Rome",
        "Bonn",
        "Oslo",
    ]


def test_a_model_that_asks_for_too_much_at_once_gets_a_part_of_it() -> None:
    many = [(f"c{number}", "weather", '{"city": "Rome"}') for number in range(CALLS_MAX + 1)]
    outcome, _ = asked(calls(*many, fragment_chars=100), says("Fine."), tools=[WEATHER])
    refused = [body["parts"][0]["id"] for body in outcome.bodies("tool") if body["parts"][0].get("is_error")]

    assert outcome.error is None
    assert refused == [f"c{CALLS_MAX}"]


def test_a_model_that_never_answers_is_stopped_and_that_is_said() -> None:
    step = calls(("a", "weather", '{"city": "Rome"}'))
    outcome, endpoint = asked(*[step] * 5, tools=[WEATHER], rounds_max=3)
    notes = [event.body for event in outcome.events if event.kind == "note"]

    assert len(endpoint.received) == 3
    assert outcome.ending == {"status": "completed"}
    assert "3 times" in outcome.text
    assert [note["name"] for note in notes] == ["model_stopped"]
    assert notes[0]["text"] in outcome.text


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (says("It beg", finish="length"), "It beg\n[The answer was cut off: it reached the most"),
        (says("It beg", finish="content_filter"), "It beg\n[The answer was cut off by the endpoint's content filter"),
        (says(), "\n[The model gave an empty answer"),
    ],
)
def test_an_answer_that_ends_oddly_says_so(step: Step, text: str) -> None:
    outcome, _ = asked(step)

    assert outcome.error is None
    assert outcome.text.startswith(text)
    assert outcome.bodies("assistant")[0]["usage"]["output_tokens"] == 3
    assert [event.body["name"] for event in outcome.events if event.kind == "note"] == ["model_stopped"]


def test_a_tool_that_fails_by_mistake_ends_the_turn_and_the_next_prompt_goes_on() -> None:
    async def broken(using: Using, arguments: dict[str, Any]) -> Any:
        raise ZeroDivisionError("a mistake")

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> tuple[Asked, Asked]:
        tools = [Tool("broken", "", {"type": "object"}, broken), WEATHER]
        agent = ModelAgent("m", base_url=endpoint.url, tools=tools)
        return await ask(agent, sessions, session), await ask(agent, sessions, session, "Again")

    with FakeEndpoint(calls(("a", "broken", "{}")), says("I am here.")) as endpoint:
        first, second = play(scene)

    assert isinstance(first.error, ZeroDivisionError)
    assert first.ending == {"status": "failed", "error": "ZeroDivisionError: a mistake"}
    assert second.text == "I am here."
    assert [one["content"] for one in endpoint.sent()[2:]] == [None, f"Error: {INTERRUPTED}", "Again"]


# The system prompt.


def test_the_system_prompt_is_recorded_once_and_again_where_it_changes() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[Event]:
        for instructions in ("Be brief.", "Be brief.", "Be thorough.", ""):
            agent = ModelAgent("m", base_url=endpoint.url, instructions=instructions)
            await ask(agent, sessions, session)
        return await session.events(kinds=["message"])

    with FakeEndpoint(*[says("Yes.")] * 4) as endpoint:
        events = play(scene)
    prompts = [event.body["parts"][0]["content"] for event in events if event.body["role"] == "system"]

    assert prompts == ["Be brief.", "Be thorough."]
    assert [endpoint.sent(number)[0]["content"] for number in range(4)] == [
        "Be brief.",
        "Be brief.",
        "Be thorough.",
        "Be thorough.",
    ]


def test_settings_reach_the_endpoint_as_they_are() -> None:
    _, endpoint = asked(says("Yes."), settings={"temperature": 0, "top_k": 40})

    assert (endpoint.received[0].body["temperature"], endpoint.received[0].body["top_k"]) == (0, 40)


# Sub-agents.


def test_a_task_is_done_by_a_run_of_its_own_and_its_report_is_the_result() -> None:
    outcome, endpoint = asked(
        calls(("a", "delegate", '{"task": "Find the weather in Rome."}')),
        calls(("a", "weather", '{"city": "Rome"}')),
        says("It is 20 degrees in Rome."),
        says("Warm."),
        tools=[WEATHER],
        delegates=True,
        prompt="How is Rome?",
    )
    main, run = endpoint.received[0], endpoint.received[1]
    inside = [event for event in outcome.events if event.scope == "coordinator/delegate:1" and event.kind == "message"]

    assert outcome.error is None
    assert outcome.text == "Warm."
    assert [one["function"]["name"] for one in main.body["tools"]] == ["weather", "delegate"]
    assert [one["function"]["name"] for one in run.body["tools"]] == ["weather"]
    assert texts_of(run.messages) == [("system", DELEGATE_INSTRUCTIONS), ("user", "Find the weather in Rome.")]
    assert [event.body["role"] for event in inside] == ["user", "system", "assistant", "tool", "assistant"]
    assert texts_of(endpoint.sent())[-2:] == [("assistant", None), ("tool", "It is 20 degrees in Rome.")]


def test_a_sub_agent_that_fails_is_told_and_ends_as_failed() -> None:
    outcome, endpoint = asked(
        calls(("a", "delegate", '{"task": "Find it."}')), refuses(404, "no such model"), says("I could not."),
        delegates=True,
    )  # fmt: skip
    jobs = [event.body["status"] for event in outcome.events if event.kind == "job_changed"]

    assert outcome.text == "I could not."
    assert jobs == ["running", "failed"]
    assert "no such model" in endpoint.sent()[-1]["content"]


def test_it_answers_as_a_sub_agent_of_another_agent_too_and_then_does_its_task_itself() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> tuple[str, list[Message]]:
        agent = ModelAgent("m", base_url=endpoint.url, instructions="Be brief.", tools=[WEATHER], delegates=True)
        async with await session.turn("How is Rome?") as turn:
            report = await run_subagent(agent, "scout", "Look at Rome.", Request("", sessions, session), turn)
        return report, await session.conversation("coordinator/scout:1")

    with FakeEndpoint(calls(("a", "weather", '{"city": "Rome"}')), says("20 degrees.")) as endpoint:
        report, conversation = play(scene)

    assert report == "20 degrees."
    assert [one.role for one in conversation] == ["user", "system", "assistant", "tool", "assistant"]
    assert [one["function"]["name"] for one in endpoint.received[0].body["tools"]] == ["weather"]
    assert texts_of(endpoint.sent(0)) == [("system", "Be brief."), ("user", "Look at Rome.")]


# What an endpoint refuses.


@pytest.mark.parametrize(
    ("status", "message", "code", "words"),
    [
        (401, f"Incorrect API key provided: {KEY}.", "invalid_api_key", ["did not accept the API key (401)", "[key]"]),
        (403, "not for you", None, ["does not let this API key use it (403)", "not for you"]),
        (404, "The model `fake-1` does not exist", "model_not_found", ["check the model's name and the base URL"]),
        (400, "temperature must be below 2", None, ["did not take the request (400)", "temperature must be below 2"]),
        (
            400,
            "This model's maximum context length is 8192 tokens. However, you requested 9120 tokens.",
            "context_length_exceeded",
            ["the conversation is too long for it", "8192 tokens", "9120 tokens"],
        ),
        (413, "Prompt is too long: 9,120 tokens", None, ["the conversation is too long for it", "9,120 tokens"]),
    ],
)
def test_a_refusal_is_one_sentence_that_says_what_to_check(
    status: int, message: str, code: str | None, words: list[str]
) -> None:
    outcome, endpoint = asked(refuses(status, message, code=code), api_key=KEY)

    assert isinstance(outcome.error, ModelFailed)
    assert outcome.error.status == status
    assert all(word in str(outcome.error) for word in words)
    assert len(endpoint.received) == 1
    assert outcome.ending["status"] == "failed"
    assert outcome.said == []


def test_the_key_is_in_no_error_no_traceback_and_no_event() -> None:
    outcome, _ = asked(
        refuses(401, f"Incorrect API key provided: {KEY}\x1b[2J\nsecond line"), api_key=f" {KEY}\n", prompt="Hello"
    )
    error = outcome.error
    chain = []
    while error is not None:
        chain.append("".join(traceback.format_exception(error)) + repr(error.args))
        error = error.__cause__ or error.__context__
    log = json.dumps([event.body for event in outcome.events])

    assert len(chain) == 1
    assert KEY not in "".join(chain) + log + repr(ModelAgent("m", api_key=KEY))
    assert "\x1b" not in str(outcome.error)
    assert "\n" not in str(outcome.error)


def test_a_key_as_short_as_a_word_leaves_other_words_alone() -> None:
    outcome, _ = asked(refuses(401, "The key no is not one of ours, nor known."), api_key="no")

    assert "The key [key] is not one of ours, nor known." in str(outcome.error)


@pytest.mark.parametrize("step", [refuses(429, "slow down", headers=RETRY), refuses(503, "overloaded", headers=RETRY)])
def test_what_is_refused_for_now_is_tried_again(step: Step) -> None:
    outcome, endpoint = asked(step, step, says("Here I am."))

    assert outcome.error is None
    assert outcome.text == "Here I am."
    assert len(endpoint.received) == 3


def test_a_retry_waits_as_long_as_the_endpoint_asks() -> None:
    begun = time.monotonic()
    outcome, _ = asked(refuses(429, "slow down", headers={"Retry-After": "1"}), says("Yes."))
    waited = time.monotonic() - begun

    assert outcome.text == "Yes."
    assert waited >= 1


@pytest.mark.parametrize(
    ("step", "words", "count"),
    [
        (refuses(429, "slow down", headers=RETRY), "takes no more requests for now (429 after 3 attempts)", 3),
        (refuses(502, "", headers=RETRY), "failed (502 after 3 attempts); try again later", 3),
        (refuses(429, "pay", code="insufficient_quota"), "has used up what it paid for (429). It said", 1),
    ],
)
def test_what_is_refused_for_long_is_given_up(step: Step, words: str, count: int) -> None:
    outcome, endpoint = asked(*[step] * 3, retries_max=2)

    assert isinstance(outcome.error, ModelFailed)
    assert words in str(outcome.error)
    assert len(endpoint.received) == count


def test_a_server_that_takes_no_stream_options_is_asked_without() -> None:
    outcome, endpoint = asked(
        refuses(400, "Unrecognized request argument: stream_options"),
        calls(("a", "weather", '{"city": "Rome"}')),
        says("Yes.", usage=None),
        tools=[WEATHER],
    )

    assert outcome.text == "Yes."
    assert ["stream_options" in one.body for one in endpoint.received] == [True, False, False]
    assert "usage" not in outcome.bodies("assistant")[-1]


def test_a_server_that_cannot_be_reached_is_named_without_a_password_in_its_address() -> None:
    async def scene(sessions: AsyncSessions, session: AsyncSession) -> Asked:
        agent = ModelAgent("m", base_url="http://ada:secret@127.0.0.1:9/v1?key=secret", retries_max=0)
        return await ask(agent, sessions, session)

    outcome = play(scene)

    assert isinstance(outcome.error, ModelFailed)
    assert "http://127.0.0.1:9/v1 could not be reached" in str(outcome.error)
    assert "secret" not in str(outcome.error)
    assert outcome.ending["status"] == "failed"


def test_a_server_that_hangs_up_is_called_again() -> None:
    outcome, endpoint = asked(hangs_up(), says("Sorry, that was me."))

    assert outcome.text == "Sorry, that was me."
    assert len(endpoint.received) == 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (sends(200, "<html>Log in to the hotel's network</html>"), "sent a web page, not a model's reply"),
        (lambda wire: wire.head(200, {"Content-Type": "text/plain", "Content-Length": "0"}), "sent text/plain, not"),
        (lambda wire: wire.document(200, {"status": "ok"}), "sent a document without a reply, not a model's reply"),
        (
            lambda wire: wire.document(200, {"error": {"message": f"no route\n for {KEY}"}}),
            "sent a document without a reply: no route for [key], not a model's reply",
        ),
    ],
)
def test_what_is_no_reply_of_a_model_is_told_at_once_with_what_to_check(step: Step, words: str) -> None:
    outcome, endpoint = asked(step, says("never asked for"), api_key=KEY)

    assert isinstance(outcome.error, ModelFailed)
    assert words in str(outcome.error)
    assert "check the base URL, which mostly ends in /v1" in str(outcome.error)
    assert len(endpoint.received) == 1


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<html><head><title>502 Bad &amp; Gateway</title></head><body><hr>nginx</body></html>", "502 Bad & Gateway"),
        ("<!DOCTYPE html>\n<body class=x><h1>Out of order</h1></body>", "Out of order"),
        ("<html>" + "<p>nothing here" * 1_000, ""),
        ("upstream connect error", "upstream connect error"),
    ],
)
def test_a_page_that_refuses_is_told_by_its_title(page: str, said: str) -> None:
    outcome, _ = asked(sends(502, page), retries_max=0)
    ends = f"failed (502); try again later{'. It said: ' if said else ''}{said}"

    assert str(outcome.error).endswith(ends)


def test_every_wait_is_told_before_it_begins() -> None:
    told: list[str] = []
    script = [refuses(429, headers=RETRY), refuses(503), hangs_up(), says("Here I am.")]
    outcome, endpoint = asked(*script, on_wait=told.append)

    assert outcome.text == "Here I am."
    assert told == [
        f"{endpoint.url} takes no more requests for now (429); waiting 0.01 s, as it asks (attempt 2 of 4).",
        f"{endpoint.url} failed (503); waiting 0.002 s (attempt 3 of 4).",
        f"{endpoint.url} cannot be reached; waiting 0.004 s (attempt 4 of 4).",
    ]


def test_an_answer_that_is_asked_for_again_is_told_as_well() -> None:
    told: list[str] = []
    outcome, _ = asked(cuts(), says("Once."), on_wait=told.append)

    assert outcome.text == "Once."
    assert told == ["The answer broke off before it began; waiting 0.001 s (attempt 2 of 4)."]


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 01 Jul 2026 12:00:20 GMT"}, 20.0),
        ({"retry-after": "Wed, 01 Jul 2026 11:00:00 GMT"}, None),
        ({"retry-after": "3600"}, retrying.WAIT_S_MAX),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_an_endpoint_asks_to_wait(headers: dict[str, str], wait_s: float | None) -> None:
    assert retrying.asked_s(headers, now=1_782_907_200.0) == wait_s


@pytest.mark.parametrize(
    ("status", "headers", "may_pass"),
    [(429, {}, True), (500, {}, True), (400, {}, False), (500, {"x-should-retry": "false"}, False)],
)
def test_an_endpoint_may_say_whether_it_is_worthwhile_to_ask_again(
    status: int, headers: dict[str, str], may_pass: bool
) -> None:
    assert retrying.may_pass(status, headers) is may_pass


# What breaks off.


def test_an_answer_that_breaks_off_is_kept_and_the_turn_fails() -> None:
    outcome, endpoint = asked(cuts("It begins ", "well"), says("never asked for"))

    assert isinstance(outcome.error, ModelFailed)
    assert outcome.error.broke_off
    assert "broke its answer off: the connection was lost" in str(outcome.error)
    assert outcome.said == [("It begins well", True)]
    assert outcome.bodies("assistant")[0]["model"] == MODEL
    assert outcome.ending["status"] == "failed"
    assert len(endpoint.received) == 1


def test_an_answer_that_breaks_off_before_it_begins_is_asked_for_again() -> None:
    outcome, endpoint = asked(cuts(), streams(chunk({"role": "assistant"})), says("Once."))

    assert outcome.error is None
    assert outcome.said == [("Once.", False)]
    assert len(endpoint.received) == 3


def test_calls_that_break_off_are_not_run() -> None:
    def step(wire: Any) -> None:
        wire.begin_stream()
        function = {"name": "weather", "arguments": '{"city": "Rome"}'}
        wire.event(chunk({"tool_calls": [{"index": 0, "id": "a", "function": function}]}))
        wire.cut()

    outcome, endpoint = asked(step, step, tools=[WEATHER], retries_max=1)

    assert isinstance(outcome.error, ModelFailed)
    assert outcome.bodies("tool") == []
    assert outcome.said == []
    assert len(endpoint.received) == 2


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("{not json", "it sent what is no JSON"),
        ('{"choices": ' + "[" * 100_000, "it sent what is no JSON"),
        ({"error": {"message": "the model crashed", "code": 500}}, "the model crashed"),
    ],
    ids=["no JSON", "too deep", "an error in the stream"],
)
def test_a_chunk_that_is_none_breaks_the_answer_off(event: object, words: str) -> None:
    outcome, _ = asked(streams(chunk({"content": "It beg"}), event, chunk({"content": "ins"})))

    assert isinstance(outcome.error, ModelFailed)
    assert words in str(outcome.error)
    assert outcome.said == [("It beg", True)]


def test_an_answer_that_stops_without_a_reason_is_not_taken_for_whole() -> None:
    outcome, _ = asked(streams(chunk({"content": "Half an"}), done=False))

    assert isinstance(outcome.error, ModelFailed)
    assert outcome.said == [("Half an", True)]


def test_a_connection_that_is_lost_after_the_end_takes_nothing_with_it() -> None:
    def step(wire: Any) -> None:
        wire.begin_stream()
        wire.event(chunk({"content": "All of it."}, finish="stop"))
        wire.cut()

    outcome, _ = asked(step)

    assert outcome.error is None
    assert outcome.said == [("All of it.", False)]


def test_an_endpoint_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "REPLY_CHARS_MAX", 100)
    outcome, _ = asked(streams(*[chunk({"content": "on and on "})] * 1_000))

    assert isinstance(outcome.error, ModelFailed)
    assert "no end" in str(outcome.error)
    assert 100 < len(outcome.said[0][0]) < 200


def test_an_endpoint_that_asks_for_calls_without_end_is_stopped() -> None:
    fragment = {"type": "function", "function": {"name": "weather", "arguments": "{}"}}
    many = [{"index": index, "id": f"c{index}", **fragment} for index in range(model_reply.CALLS_MAX + 1)]
    outcome, _ = asked(streams(chunk({"tool_calls": many}), chunk(finish="tool_calls")), tools=[WEATHER], retries_max=0)

    assert isinstance(outcome.error, ModelFailed)
    assert "did not end" in str(outcome.error)
    assert outcome.bodies("assistant") == []


def test_names_and_ids_without_end_are_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "REPLY_CHARS_MAX", 1_000)
    called = {"index": 0, "id": "i" * 600, "function": {"name": "n" * 600}}
    outcome, _ = asked(streams(chunk({"tool_calls": [called]}), chunk(finish="stop")), retries_max=0)

    assert "it had 1,200 characters and no end" in str(outcome.error)


@pytest.mark.parametrize("step", [replies("x" * 5_000), streams(chunk({"content": "x" * 5_000}))])
def test_a_chunk_that_does_not_end_is_not_read_to_its_end(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_endpoint, "CHUNK_BYTES_MAX", 2_000)
    outcome, _ = asked(step, retries_max=0)

    assert isinstance(outcome.error, ModelFailed)
    assert "it sent more than 2,000 bytes without an end" in str(outcome.error)


def test_a_long_reply_of_short_chunks_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_endpoint, "CHUNK_BYTES_MAX", 2_000)
    outcome, _ = asked(says(*["Four minutes. "] * 100))

    assert outcome.error is None
    assert outcome.text == "Four minutes. " * 100


def test_what_a_reply_said_and_the_calls_that_it_asked_for_are_one_message() -> None:
    outcome, _ = asked(
        calls(("a", "weather", '{"city": "Rome"}'), text="I look."), says("20 degrees."), tools=[WEATHER]
    )
    first = outcome.bodies("assistant")[0]

    assert [part["type"] for part in first["parts"]] == ["text", "tool_call"]
    assert (first["finish_reason"], first["usage"]["output_tokens"]) == ("tool_calls", 3)
    assert len(outcome.bodies("assistant")) == 2


def test_a_server_that_cannot_stream_answers_whole() -> None:
    outcome, _ = asked(replies("Four minutes."))

    assert outcome.pieces == ["Four minutes."]
    assert outcome.bodies("assistant")[0]["usage"]["output_tokens"] == 3


def test_a_server_that_stays_silent_is_given_up() -> None:
    gate = Gate()
    before, _ = asked(gate.before(says("too late")), timeout_s=0.2, retries_max=0)
    gate.opened.set()
    gate = Gate()
    between, _ = asked(gate.after("It begins "), timeout_s=0.2, retries_max=0)
    gate.opened.set()

    assert "was silent for 0.2 s" in str(before.error)
    assert "was silent for 0.2 s" in str(between.error)
    assert between.said == [("It begins ", True)]


# Stopping and going on.


def test_cancelling_closes_the_connection_at_once_and_keeps_what_came() -> None:
    gate = Gate()

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> tuple[float, list[Message], Any]:
        heard: list[str] = []
        agent = ModelAgent("m", base_url=endpoint.url)
        task = asyncio.ensure_future(answered(agent, sessions, session, "Hello", on_text=heard.append))
        while not heard:
            await asyncio.sleep(0.005)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - begun
        ended = (await session.events(newest_first=True, limit=1))[0].body
        return took, await session.conversation(), ended

    with FakeEndpoint(gate.after("It begins ")) as endpoint:
        took, conversation, ended = play(scene)
        gate.opened.set()

    assert took < 2
    assert (conversation[-1].text, conversation[-1].interrupted) == ("It begins ", True)
    assert ended == {"status": "cancelled"}


def test_cancelling_before_the_first_piece_leaves_the_prompt_alone() -> None:
    gate = Gate()

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[str]:
        agent = ModelAgent("m", base_url=endpoint.url)
        task = asyncio.ensure_future(answered(agent, sessions, session, "Hello", on_text=print))
        await asyncio.to_thread(gate.reached.wait, WAIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [one.role for one in await session.conversation()]

    with FakeEndpoint(gate.before(says("too late"))) as endpoint:
        roles = play(scene)
        gate.opened.set()

    assert roles == ["user", "system"]


def test_cancelling_stops_the_tools_that_run() -> None:
    stopped: list[str] = []

    async def scene(sessions: AsyncSessions, session: AsyncSession) -> list[Any]:
        running = asyncio.Event()

        async def slow(using: Using, arguments: dict[str, Any]) -> Any:
            running.set()
            try:
                await asyncio.sleep(WAIT_S)
            finally:
                stopped.append("slow")

        agent = ModelAgent("m", base_url=endpoint.url, tools=[Tool("slow", "", {"type": "object"}, slow)])
        task = asyncio.ensure_future(answered(agent, sessions, session, "Hello", on_text=print))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [one["content"] for one in endpoint.sent()]

    with FakeEndpoint(calls(("a", "slow", "{}"))) as endpoint:
        play(scene)

    assert stopped == ["slow"]


CHILD = """
import asyncio, sys
from playhead import open_async
from playhead.agents.model import ModelAgent
from playhead.agents.protocol import answered
from playhead.agents.tools import Tool

async def weather(using, arguments):
    return {"city": arguments["city"], "celsius": 20}

async def main(store, endpoint):
    sessions = await open_async(store)
    agent = ModelAgent("m", base_url=endpoint, tools=[Tool("weather", "Tell the weather.", {}, weather)])
    session = await sessions.create("there")
    await answered(agent, sessions, session, "How is Rome?", on_text=lambda text: print(text, flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill a process at once")
def test_a_session_that_was_killed_sends_what_an_unbroken_one_would_and_the_notes_of_it(tmp_path: Path) -> None:
    """K12: the model of a resumed session is told what it would have been told, and what was cut off."""
    url = f"bundles:{tmp_path}/sessions"
    script = [calls(("a", "weather", '{"city": "Rome"}'), text="I look."), says("Warm."), says("Bye.")]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}

    async def unbroken(sessions: AsyncSessions, session: AsyncSession) -> None:
        agent = ModelAgent("m", base_url=whole.url, tools=[WEATHER])
        await ask(agent, sessions, session, "How is Rome?")
        await ask(agent, sessions, session, "Thanks")

    async def resumed() -> str:
        async with await open_async(url) as sessions:
            session = await sessions.resume("there")
            await ask(ModelAgent("m", base_url=broken.url, tools=[WEATHER]), sessions, session, "Thanks")
            return session.resumed.recovered_text

    with FakeEndpoint(*script) as whole:
        play(unbroken)
    gate = Gate()
    with FakeEndpoint(script[0], gate.after("War"), says("Bye.")) as broken:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, url, broken.url], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert child.stdout is not None
        with child, child.stdout:
            heard = [child.stdout.readline() for _ in range(2)]
            child.kill()
        gate.opened.set()
        recovered = asyncio.run(resumed())
    expected = whole.sent()
    expected[-2:] = [
        {"role": "assistant", "content": "War"},
        {"role": "user", "content": f"{CUT_OFF}\n\nThanks"},
    ]

    assert heard == ["I look.\n", "War\n"]
    assert recovered == "War"
    assert broken.sent() == expected


def test_it_answers_a_blocking_program_too() -> None:
    with FakeEndpoint(says("Four ", "minutes.")) as endpoint, open_sessions("memory:") as sessions:
        session = sessions.create("here")
        with session.turn("How long?") as turn:
            agent = ModelAgent("m", base_url=endpoint.url)
            pieces = list(for_blocking(agent)(sessions, session, turn, "How long?"))

    assert pieces == ["Four ", "minutes."]


# How it is made.


def test_what_it_cannot_work_with_is_refused_at_once() -> None:
    with pytest.raises(InvalidName, match="a model needs a name"):
        ModelAgent("")
    for url in ("localhost:8080", "ftp://localhost/v1", "http://", "http://[::1", "http://localhost:99999/v1"):
        with pytest.raises(InvalidName, match="a base URL is such as"):
            ModelAgent("m", base_url=url)
    for key in ("sk two", "sk-é", "sk-\x00"):
        with pytest.raises(InvalidName, match="the API key has characters") as raised:
            ModelAgent("m", api_key=key)
        assert key not in str(raised.value)
    with pytest.raises(InvalidName, match="two tools are called 'weather'"):
        ModelAgent("m", tools=[WEATHER, WEATHER])
    with pytest.raises(InvalidName, match="two tools are called 'delegate'"):
        ModelAgent("m", tools=[Tool("delegate", "", {}, weather)], delegates=True)
    with pytest.raises(InvalidName, match="'messages' of a request is the agent's to set"):
        ModelAgent("m", settings={"messages": []})


def test_the_client_library_is_loaded_with_the_first_answer_and_not_before() -> None:
    code = "import sys, playhead.agents.model as m; m.ModelAgent('m'); print([n for n in sys.modules if n == 'openai'])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT, check=True)

    assert loaded.stdout == "[]\n"


def test_it_is_called_by_its_model_or_another_name() -> None:
    assert ModelAgent("m").name == "m"
    assert ModelAgent("m", name="planner").name == "planner"


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    outcome, endpoint = asked(says("never"))

    assert isinstance(outcome.error, ExtraMissing)
    assert "pip install 'playhead[openai]'" in str(outcome.error)
    assert endpoint.received == []


def test_an_endpoint_without_a_key_is_sent_none_and_nothing_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    outcome, endpoint = asked(says("Yes."))
    headers = endpoint.received[0].headers

    assert outcome.text == "Yes."
    assert "authorization" not in headers
    assert [name for name in headers if "organization" in name or "project" in name] == []
