"""An agent of Pydantic AI as an agent of Playhead: its history comes from the log, and what it does goes there.

Text and reasoning are recorded as they stream, calls before their tools run, results as they come, and so is all else
that the model is told (a request to try again, what a tool adds to its result). A run that fails, is cancelled or dies
leaves a log that the next prompt goes on from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from playhead.adapters.pydantic_ai_history import KEY, SHOWN, history, reply_details, result_details
from playhead.agents import protocol
from playhead.agents.messages import system_prompt, usage_of
from playhead.agents.model.reply import arguments_in
from playhead.agents.protocol import Agent, Request
from playhead.agents.tools import Tool, ToolFailed, Using, misfit
from playhead.aio import AsyncTurn
from playhead.errors import ExtraMissing, PlayheadError
from playhead.turn import ToolCall
from playhead.views.conversation import Message

if TYPE_CHECKING:
    from pydantic_ai import AbstractToolset, Agent as PydanticAgent
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelRequestPart, ModelResponse

DepsOf = Callable[[Request, AsyncTurn], Any]
"""Makes what an agent's tools are given (its `deps`) for a prompt."""


def as_agent(
    agent: PydanticAgent[Any, Any],
    *,
    name: str | None = None,
    deps: DepsOf | None = None,
    tools: Sequence[Tool] = (),
    streams: bool = True,
) -> Agent:
    """Return an agent of Pydantic AI as one that sessions know. Its name is its own unless another is given.

    deps: makes what its tools are given. tools: those of Playhead that it may call besides its own. streams: False for
    a model that answers only whole. An output that is no text is shown as JSON. Raises `TypeError` for what is no such
    agent, and `ExtraMissing` where Pydantic AI is not installed.
    """
    try:
        from pydantic_ai.agent import AbstractAgent
    except ModuleNotFoundError as error:
        raise ExtraMissing("Pydantic AI", extra="pydantic-ai") from error
    if not isinstance(agent, AbstractAgent):
        raise TypeError(f"as_agent takes an agent of Pydantic AI, not {type(agent).__name__}")

    async def drive(request: Request, turn: AsyncTurn) -> None:
        await _Run(request, turn).drive(agent, deps=deps, tools=tools, streams=streams)

    # A plain function has a task of its own: what Pydantic AI enters in one task it must leave in the same.
    return protocol.as_agent(drive, name=name or agent.name or "pydantic-ai")


class _Run:
    """One run: what of it is in the log already."""

    def __init__(self, request: Request, turn: AsyncTurn) -> None:
        self._request = request
        self._turn = turn
        self._prompt: str | None = None
        self._calls: dict[str, ToolCall] = {}
        self._parts: set[int] = set()
        self._is_from_log = True

    async def drive(
        self, agent: PydanticAgent[Any, Any], *, deps: DepsOf | None, tools: Sequence[Tool], streams: bool
    ) -> None:
        from pydantic_ai.capabilities import ReinjectSystemPrompt

        earlier = await self._history()
        run = agent.iter(
            # The prompt is the end of the history, unless nothing was asked.
            None if earlier and earlier[-1].kind == "request" else self._request.prompt or None,
            message_history=earlier,
            deps=deps(self._request, self._turn) if deps is not None else None,
            toolsets=[_toolset(tools, Using(self._request, self._turn))] if tools else None,
            capabilities=[ReinjectSystemPrompt()],
        )
        async with run as going:
            async for node in going:
                if agent.is_model_request_node(node):
                    await self._asked(node.request)
                    if streams:
                        self._parts = set()
                        async with node.stream(going.ctx) as stream:
                            await self._system(going.all_messages())
                            async for event in stream:
                                await self._piece(event)
                elif agent.is_call_tools_node(node):
                    await self._system(going.all_messages())
                    await self._replied(node.model_response)
                    async with node.stream(going.ctx) as events:
                        async for event in events:
                            if event.event_kind in ("function_tool_result", "output_tool_result"):
                                await self._returned(event.part)
            last = going.all_messages()[-1]
            if last.kind == "request":
                await self._asked(last)
            result = going.result
        for call in self._calls.values():
            await self._turn.tool_result(call, "It was not run: nobody was there to allow it.", is_error=True)
        if result is not None and not isinstance(result.output, str):
            await self._show(result.output)

    async def _history(self) -> list[ModelMessage]:
        from pydantic import ValidationError
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        conversation = await self._request.session.conversation(self._turn.agent)
        self._prompt = system_prompt(conversation)
        recorded = await self._request.session.conversation(self._turn.agent, sealed=False)
        try:
            return ModelMessagesTypeAdapter.validate_python(history(conversation, recorded))
        except ValidationError:
            # What lies beside the messages is of another version, or was tampered with. The messages say enough.
            bare = [_without_extra(message) for message in conversation]
            return ModelMessagesTypeAdapter.validate_python(history(bare))

    async def _system(self, messages: Sequence[ModelMessage]) -> None:
        """Record the system prompt that the model is sent, where it is new."""
        requests = [message for message in messages if message.kind == "request"]
        if not requests:
            return
        texts = [str(part.content) for part in requests[0].parts if part.part_kind == "system-prompt"]
        if requests[-1].instructions:
            texts.append(requests[-1].instructions)
        prompt = "\n\n".join(texts)
        if prompt and prompt != self._prompt:
            await self._turn.system(prompt)
            self._prompt = prompt

    async def _asked(self, request: ModelRequest) -> None:
        """Record what a request holds that is not in the log yet. The first of a run came from there."""
        for part in request.parts:
            if part.part_kind == "tool-return":
                await self._returned(part)
            elif not self._is_from_log:
                await self._told(part)
        self._is_from_log = False

    async def _told(self, part: ModelRequestPart) -> None:
        """Record what the model is told besides results: to try again, or what a tool adds."""
        document = _request_document(part)
        content = document.get("content")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        said = {"type": "text", "content": text, "extra": {KEY: document}}
        await self._turn.inject([said], source=f"{KEY}:{part.part_kind}")

    async def _piece(self, event: Any) -> None:
        """Record a piece of a reply."""
        if event.event_kind == "part_start":
            if event.index in self._parts:
                # The reply begins anew, with another model for instance. What came of it stays, as what it is.
                await self._turn.finish_stream(interrupted=True)
                self._parts = set()
            self._parts.add(event.index)
            kind, text = event.part.part_kind, getattr(event.part, "content", "")
        elif event.event_kind == "part_delta":
            kind, text = event.delta.part_delta_kind, getattr(event.delta, "content_delta", "")
        else:
            return
        if kind in ("text", "thinking") and isinstance(text, str):
            await self._turn.stream(text, part="text" if kind == "text" else "reasoning")

    async def _replied(self, response: ModelResponse) -> None:
        """Record a reply at its end: what was streamed, and what is known only then (its usage, its calls, what is
        Pydantic AI's alone), all in one message, so that a process that is killed leaves no half of it."""
        document = _documents([response])[0]
        facts: dict[str, Any] = {"model": response.model_name, "finish_reason": response.finish_reason}
        facts["usage"] = usage_of({name: count for name, count in document.get("usage", {}).items() if count})
        calls = [part for part in document["parts"] if part["part_kind"] in ("tool-call", "builtin-tool-call")]
        answers = [part for part in document["parts"] if part["part_kind"] == "builtin-tool-return"]
        parts = [_call_part(part) for part in calls] + [_answer_part(part) for part in answers]
        if (details := reply_details(document)) is not None:
            parts.append({"type": "reasoning", "content": "", "extra": {KEY: details}})
        event = await self._turn.finish_stream(then=parts, **facts)
        if event is None:
            event = await self._turn.say([*_texts(document), *parts], **facts)
        for part in calls:
            if part["part_kind"] == "tool-call":
                id = part["tool_call_id"]
                self._calls[id] = ToolCall(id=id, name=part["tool_name"], seq=event.seq)

    async def _returned(self, part: ModelRequestPart) -> None:
        """Record the result of a call, unless it is in the log."""
        document = _request_document(part)
        call = self._calls.pop(document.get("tool_call_id", ""), None)
        if call is None:
            return
        is_error = document.get("outcome", "success") != "success" or document["part_kind"] == "retry-prompt"
        details = result_details(document)
        extra = None if details is None else {KEY: details}
        await self._turn.tool_result(call, document.get("content"), is_error=is_error, extra=extra)

    async def _show(self, output: Any) -> None:
        """Say what came of the run where the model said it in a call: people read it, the model is not told again."""
        from pydantic_core import to_json

        text = to_json(output, indent=2, fallback=str).decode()
        await self._turn.say([{"type": "text", "content": text, "extra": {KEY: {SHOWN: True}}}])


def _documents(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    documents: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return documents


def _request_document(part: ModelRequestPart) -> dict[str, Any]:
    from pydantic_ai.messages import ModelRequest

    document: dict[str, Any] = _documents([ModelRequest(parts=[part])])[0]["parts"][0]
    return document


def _texts(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = {"text": "text", "thinking": "reasoning"}
    found = [part for part in document["parts"] if part["part_kind"] in kinds and part["content"]]
    return [{"type": kinds[part["part_kind"]], "content": part["content"]} for part in found]


def _call_part(part: Mapping[str, Any]) -> dict[str, Any]:
    arguments = part.get("args")
    if isinstance(arguments, str):
        found = arguments_in(arguments)
        arguments = arguments if found is None else found
    return {"type": "tool_call", "id": part["tool_call_id"], "name": part["tool_name"], "arguments": arguments}


def _answer_part(part: Mapping[str, Any]) -> dict[str, Any]:
    said = {"id": part["tool_call_id"], "name": part["tool_name"], "response": part.get("content")}
    return {"type": "tool_call_response", **said}


def _without_extra(message: Message) -> Message:
    parts = [{name: value for name, value in part.items() if name != "extra"} for part in message.parts]
    return msgspec.structs.replace(message, parts=parts, extra=None)


def _toolset(tools: Sequence[Tool], using: Using) -> AbstractToolset[Any]:
    """Return tools of Playhead as Pydantic AI calls them. It records the calls; here they are only run."""
    from pydantic_ai import FunctionToolset, ModelRetry, Tool as PydanticTool

    def made(tool: Tool) -> PydanticTool[Any]:
        async def call(**arguments: Any) -> Any:
            if wrong := misfit(arguments, tool.parameters):
                raise ModelRetry(wrong)
            try:
                return msgspec.to_builtins(await tool.call(using, arguments))
            except (ToolFailed, PlayheadError) as error:
                return {"error": str(error)}

        return PydanticTool.from_schema(call, tool.name, tool.description, dict(tool.parameters))

    return FunctionToolset([made(tool) for tool in tools])
