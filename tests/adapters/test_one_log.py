"""P1: what one kind of agent recorded, another goes on from: a model, an agent of Pydantic AI, a plain function."""

import asyncio
from typing import Any

import pytest

from playhead import AsyncTurn, Message, open_async
from playhead.agents.messages import chat_messages
from playhead.agents.model import ModelAgent
from playhead.agents.protocol import Request, answered, as_agent
from playhead.agents.tools import Tool, Using
from tests.agents.fake_endpoint import FakeEndpoint, calls, says, texts_of

pytest.importorskip("openai", reason="the openai extra is not installed")
pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")

from playhead.adapters.pydantic_ai import as_agent as pydantic_agent
from tests.adapters.test_pydantic_ai import Scripted, call, weather_agent


async def weather(using: Using, arguments: dict[str, Any]) -> Any:
    return {"celsius": 20}


async def plain(request: Request, turn: AsyncTurn) -> None:
    await turn.tool_result(await turn.tool_call("look", {"at": "Oslo"}, id="p1"), "cold", is_error=True)
    await turn.say("It is cold in Oslo.")


WEATHER = Tool("weather", "", {"type": "object"}, weather)


def test_each_kind_of_agent_goes_on_from_what_the_others_recorded() -> None:
    """P1."""
    scripted = Scripted([call(0, "weather", '{"city": "Bonn"}', "c1")], ["Warm in Bonn."], ["Bye."])

    async def run(url: str) -> list[Message]:
        model = ModelAgent("m", base_url=url, instructions="Be a model.", tools=[WEATHER])
        other = pydantic_agent(weather_agent(scripted, system_prompt="Be typed."))
        async with await open_async("memory:") as sessions:
            session = await sessions.create("here")
            heard: list[str] = []
            for agent, prompt in (
                (model, "Rome?"),
                (other, "Bonn?"),
                (as_agent(plain), "Oslo?"),
                (other, "Bye"),
                (model, "Bye"),
            ):
                await answered(agent, sessions, session, prompt, on_text=heard.append)
            return await session.conversation()

    with FakeEndpoint(
        calls(("m1", "weather", '{"city": "Rome"}')), says("Warm in Rome."), says("Farewell.")
    ) as endpoint:
        conversation = asyncio.run(run(endpoint.url))
    to_pydantic = [(part["part_kind"], part.get("content")) for one in scripted.sent[-1] for part in one["parts"]]

    assert texts_of(endpoint.sent()) == [
        ("system", "Be a model."),
        ("user", "Rome?"),
        ("assistant", None),
        ("tool", '{"celsius": 20}'),
        ("assistant", "Warm in Rome."),
        ("user", "Bonn?"),
        ("assistant", None),
        ("tool", '{"city": "Bonn", "celsius": 20}'),
        ("assistant", "Warm in Bonn."),
        ("user", "Oslo?"),
        ("assistant", None),
        ("tool", "Error: cold"),
        ("assistant", "It is cold in Oslo."),
        ("user", "Bye"),
        ("assistant", "Bye."),
        ("user", "Bye"),
    ]
    assert to_pydantic == [
        ("system-prompt", "Be typed."),
        ("user-prompt", "Rome?"),
        ("tool-call", None),
        ("tool-return", {"celsius": 20}),
        ("text", "Warm in Rome."),
        ("user-prompt", "Bonn?"),
        ("tool-call", None),
        ("tool-return", {"city": "Bonn", "celsius": 20}),
        ("text", "Warm in Bonn."),
        ("user-prompt", "Oslo?"),
        ("tool-call", None),
        ("tool-return", "cold"),
        ("text", "It is cold in Oslo."),
        ("user-prompt", "Bye"),
    ]
    assert chat_messages(conversation)[:-1] == endpoint.sent()
