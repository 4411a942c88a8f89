"""An agent of a person's own: from `MODULE:NAME`, as they typed or configured it, to what answers.

Only what the person names is imported. What goes wrong in their module is theirs to read, so it is shown as it is.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from playhead.agents.protocol import Agent, Request, as_agent, pieces_of
from playhead.aio import AsyncTurn
from playhead.cli.failures import Failure, blame, places, said
from playhead.cli.text import one_line

ACCEPTED = "an object with a name and an answer method, an async function of (request, turn), or a Pydantic AI agent"


def loaded(name: str, folder: str | None) -> Agent:
    """Return the agent that `module:attribute` names.

    folder: where its module is looked for first; None for nowhere but where Python keeps packages. Raises `Failure`
    that says what is wrong with the name, with the module, or with what it names. What the agent raises later, when it
    answers, is marked as its own (`failures.blame`).
    """
    module_name, colon, path = name.partition(":")
    if not (colon and module_name and path) or not all(part.isidentifier() for part in _parts(module_name, path)):
        raise Failure(f'"{name}" names no agent; write MODULE:NAME, such as mine:agent for agent in mine.py', code=2)
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    module = _imported(module_name, folder)
    try:
        return _Own(_agent(_found(module, path), name), one_line(name))
    except Failure:
        raise
    except BaseException as error:  # A property, or whatever else the module runs where it is looked at.
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _failure(f"{name} cannot be looked at", error) from error


@dataclass(frozen=True, slots=True)
class _Own:
    """An agent of a person's own: what it raises is marked as its own. called: as the person named it."""

    agent: Agent
    called: str

    @property
    def name(self) -> str:
        return self.agent.name

    async def answer(self, request: Request, turn: AsyncTurn) -> AsyncGenerator[str]:
        try:
            async with aclosing(pieces_of(self.agent, request, turn)) as pieces:
                async for text in pieces:
                    if not isinstance(text, str):
                        raise TypeError(f"it yields text, piece by piece, and not {type(text).__name__}")
                    yield text
        except Exception as error:
            blame(error, self.called)
            raise


def _parts(*names: str) -> Iterable[str]:
    return (part for name in names for part in name.split("."))


def _imported(name: str, folder: str | None) -> ModuleType:
    """Import a person's module. Whatever it raises is theirs to read: it is shown with the place that raised it."""
    try:
        return import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            where = f"in {one_line(folder)} and " if folder is not None else ""
            raise Failure(
                f"there is no module {name}; it was looked for {where}where Python keeps packages", code=2
            ) from None
        raise _failure(f"{name} cannot be imported", error) from error
    except BaseException as error:  # One that exits, too: the program would end without a word.
        raise _failure(f"{name} cannot be imported", error) from error


def _failure(what: str, error: BaseException) -> Failure:
    why = f"it calls sys.exit({error.code!r})" if isinstance(error, SystemExit) else said(error)
    where = places(error)
    if isinstance(error, SyntaxError):
        where = [f"in {one_line(error.filename or '?')}, line {error.lineno}"]
    return Failure(f"{what}: {why}", code=1, lines=where)


def _found(module: ModuleType, path: str) -> Any:
    try:
        return reduce(getattr, path.split("."), cast(Any, module))
    except AttributeError:
        raise Failure(
            f"there is no {path} in {module.__name__} ({getattr(module, '__file__', None) or 'no file'})",
            code=2,
            lines=_nearest(module, path),
        ) from None


def _nearest(module: ModuleType, path: str) -> list[str]:
    """Return a line with the names of a module that look like the one that was asked for."""
    names = [name for name in vars(module) if not name.startswith("_")]
    near = get_close_matches(path, names, n=3)
    return [f"did you mean {', '.join(near)}?"] if near else []


def _agent(found: Any, name: str) -> Agent:
    """Return what was found as an agent. Raises `Failure` that says what it is and what is accepted."""
    if any(one.__module__.split(".")[0] == "pydantic_ai" for one in type(found).__mro__):
        return _pydantic_agent(found, name)
    if inspect.isclass(found):
        raise Failure(f"{name} is a class; name an object of it, such as agent = {found.__name__}()", code=2)
    if inspect.isroutine(found):
        return _function(found, name)
    answer = getattr(found, "answer", None)
    if inspect.isasyncgenfunction(answer) and isinstance(getattr(found, "name", None), str):
        return cast(Agent, found)
    lack = "has no answer method" if answer is None else "has an answer method that is no async generator"
    if inspect.isasyncgenfunction(answer):
        lack = "has no name"
    raise Failure(f"{name} is no agent: it {lack}", code=2, lines=[f"accepted is {ACCEPTED}"])


def _function(function: Any, name: str) -> Agent:
    if inspect.isasyncgenfunction(function):
        lack = "yields; let it record its answer, with await turn.stream(…), and yield nothing"
    elif not inspect.iscoroutinefunction(function):
        lack = "is not async; write async def"
    elif not _takes_two(function):
        lack = f"takes {inspect.signature(function)}; it is called with the request and the turn"
    else:
        return as_agent(function)
    raise Failure(f"{name} is no agent: the function {lack}", code=2, lines=[f"accepted is {ACCEPTED}"])


def _takes_two(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return False
    return True


def _pydantic_agent(found: Any, name: str) -> Agent:
    # Loaded on use: whoever has such an agent has the package.
    from playhead.adapters.pydantic_ai import as_agent as as_pydantic_agent

    try:
        return as_pydantic_agent(found)
    except TypeError:
        raise Failure(
            f"{name} is something of Pydantic AI, but no agent", code=2, lines=[f"accepted is {ACCEPTED}"]
        ) from None
