"""A tool's call is in the log before it runs, what it gave back after; what a model asks for is looked at first."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from playhead import AsyncSession, open_async
from playhead.agents.protocol import Request
from playhead.agents.tools import Tool, ToolFailed, Used, Using, misfit, use
from playhead.errors import InvalidName

PARAMETERS = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "k": {"type": "integer"},
        "weight": {"type": "number"},
        "mode": {"type": "string", "enum": ["auto", "fts"]},
        "agent": {"type": ["string", "null"]},
        "deep": {"type": "boolean"},
        "anything": {},
    },
    "required": ["query"],
    "additionalProperties": False,
}

Call = Callable[[Using, dict[str, Any]], Coroutine[Any, Any, Any]]


def used(call: Call, arguments: dict[str, Any]) -> tuple[Used | Exception, list[dict[str, Any]]]:
    """Use a tool in a turn; return what came of it and the parts that are in the log, the prompt aside."""

    async def run() -> tuple[Used | Exception, list[dict[str, Any]]]:
        async with await open_async("memory:") as sessions:
            session: AsyncSession = await sessions.create("here")
            outcome: Used | Exception
            try:
                async with await session.turn("Go") as turn:
                    using = Using(Request("Go", sessions, session), turn)
                    outcome = await use(Tool("search", "Search.", PARAMETERS, call), using, arguments, call_id="c1")
            except Exception as error:
                outcome = error
            events = await session.events(kinds=["message"])
            return outcome, [part for event in events[1:] for part in event.body["parts"]]

    return asyncio.run(run())


def test_a_call_and_its_result_are_recorded() -> None:
    at_the_call: list[str] = []

    async def search(using: Using, arguments: dict[str, Any]) -> Any:
        last = (await using.request.session.events(newest_first=True, limit=1))[0]
        at_the_call.append(last.body["parts"][0]["type"])
        return {"hits": [1, 2]}

    outcome, parts = used(search, {"query": "tea"})

    assert outcome == Used({"hits": [1, 2]})
    assert at_the_call == ["tool_call"]
    assert parts == [
        {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"query": "tea"}},
        {"type": "tool_call_response", "id": "c1", "name": "search", "response": {"hits": [1, 2]}},
    ]


@pytest.mark.parametrize("error", [ToolFailed("the index is away"), InvalidName("the index is away")])
def test_an_expected_failure_is_a_result(error: Exception) -> None:
    async def search(using: Using, arguments: dict[str, Any]) -> Any:
        raise error

    outcome, parts = used(search, {"query": "tea"})

    assert outcome == Used("the index is away", is_error=True)
    assert (parts[1]["response"], parts[1]["is_error"]) == ("the index is away", True)


def test_a_mistake_in_a_tool_goes_through() -> None:
    async def search(using: Using, arguments: dict[str, Any]) -> Any:
        raise ZeroDivisionError("a mistake")

    outcome, parts = used(search, {"query": "tea"})

    assert isinstance(outcome, ZeroDivisionError)
    assert [part["type"] for part in parts] == ["tool_call"]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"query": "tea"}, ""),
        ({"query": "tea", "k": 3, "weight": 1, "mode": "fts", "agent": None, "deep": True, "anything": []}, ""),
        ({"query": "tea", "weight": 0.5, "agent": "planner"}, ""),
        ({}, "the argument 'query' is missing"),
        ({"query": 7}, "the argument 'query' must be string, not int"),
        ({"query": "tea", "k": True}, "the argument 'k' must be integer, not bool"),
        ({"query": "tea", "k": 3.5}, "the argument 'k' must be integer, not float"),
        ({"query": "tea", "deep": 1}, "the argument 'deep' must be boolean, not int"),
        ({"query": "tea", "agent": 1}, "the argument 'agent' must be string or null, not int"),
        ({"query": "tea", "mode": "magic"}, "the argument 'mode' must be one of auto, fts"),
        (
            {"query": "tea", "limit": 3},
            "there is no argument 'limit'; there are: query, k, weight, mode, agent, deep, anything",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_explained(arguments: dict[str, Any], wrong: str) -> None:
    assert misfit(arguments, PARAMETERS) == wrong


def test_a_tool_that_says_nothing_of_its_arguments_takes_any() -> None:
    assert misfit({"a": 1, "b": None}, {}) == ""
    assert misfit({"a": 1}, {"properties": {"a": {"type": "quantity"}}}) == ""
