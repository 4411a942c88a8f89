"""What a person writes first is an agent, or the error says what to write instead."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from playhead import AsyncTurn, open_async
from playhead.agents.protocol import Request, answered, as_agent


async def parrot(request: Request, turn: AsyncTurn) -> None:
    await turn.stream(f"You said: {request.prompt}")


class Cook:
    """A function that is an object."""

    async def __call__(self, request: Request, turn: AsyncTurn) -> None:
        await turn.say("Soup.")

    async def bake(self, request: Request, turn: AsyncTurn) -> None:
        await turn.say("Bread.")


async def seasoned(spice: str, request: Request, turn: AsyncTurn) -> None:
    await turn.say(f"{spice}.")


@pytest.mark.parametrize(
    ("function", "text"),
    [(parrot, "You said: Hello"), (Cook(), "Soup."), (Cook().bake, "Bread."), (partial(seasoned, "Salt"), "Salt.")],
)
def test_functions_methods_and_objects_that_are_called_are_agents(function: Any, text: str) -> None:
    heard: list[str] = []

    async def run() -> None:
        async with await open_async("memory:") as sessions:
            session = await sessions.create("here")
            await answered(as_agent(function), sessions, session, "Hello", on_text=heard.append)

    asyncio.run(run())

    assert heard == [text]


def sync(request: Request, turn: AsyncTurn) -> None:
    """Forget `async`."""


async def generator(request: Request, turn: AsyncTurn) -> AsyncIterator[str]:
    yield "Hello"


async def alone(request: Request) -> None:
    """Forget the turn."""


async def more(request: Request, turn: AsyncTurn, temperature: float) -> None:
    """Want what nobody gives."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (sync, "sync is not async; an agent's function is such as `async def answer"),
        (generator, "generator yields; an agent's function says what it has to say with `await turn.stream"),
        (alone, r"alone does not take a request and a turn \(too many positional arguments\)"),
        (more, r"more does not take a request and a turn \(missing a required argument: 'temperature'\)"),
        ("parrot", "an agent's function is such as `async def answer"),
        (Cook, "Cook is not async"),
    ],
)
def test_what_cannot_answer_is_refused_with_what_to_write(function: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        as_agent(function)
