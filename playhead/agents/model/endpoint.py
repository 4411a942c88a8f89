"""An OpenAI-compatible endpoint as the chunks of its replies: whatever goes wrong with it is a `ModelFailed`.

What it refuses for now (429, 5xx, a connection that fails) is tried again after a wait that it may ask for, of two
minutes at the most (`retrying`). Each wait is told, since nothing else happens meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from playhead.agents.model import failures, retrying
from playhead.errors import ExtraMissing, InvalidName, ModelFailed

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_S = 10.0
TIMEOUT_S = 120.0
"""An endpoint that is silent for so long, before the first piece or between two, has failed."""

OnWait = Callable[[str], None]
"""Is told, in a sentence, that the endpoint is asked again after a while, on the event loop."""

CHUNK_BYTES_MAX = 32 * 1_024 * 1_024
"""So long may one chunk of a reply be, or a reply that comes whole. It is held in memory until it is complete."""


class Endpoint:
    """Where a model answers. The key is sent there and told nowhere: not in an error, and not by this object.

    Raises `InvalidName` for what is no URL, no key or no setting.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        settings: Mapping[str, Any] | None,
        retries_max: int,
        timeout_s: float,
        on_wait: OnWait | None = None,
    ) -> None:
        self._model = model
        self._base_url = _checked_url(OPENAI_URL if base_url is None else base_url)
        self._shown = failures.shown_endpoint(self._base_url)
        self._key = _checked_key(api_key)
        self._settings = _checked_settings(settings or {})
        self._retries_max, self._timeout_s = retries_max, timeout_s
        self._on_wait = on_wait
        self._tells_usage = True

    async def client(self) -> AsyncOpenAI:
        """Return a client for one answer: it belongs to one event loop, and an agent may be used in several."""
        try:
            import openai
        except ModuleNotFoundError as error:
            raise ExtraMissing("the openai package", extra="openai") from error
        timeout = openai.Timeout(self._timeout_s, connect=min(CONNECT_S, self._timeout_s))
        client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._base_url,
            max_retries=0,  # It would wait without a word.
            timeout=timeout,
        )
        # The library takes these from the environment, and would tell them to any endpoint.
        client.organization = client.project = None
        return client

    async def chunks(self, client: AsyncOpenAI, body: Mapping[str, Any]) -> AsyncGenerator[Mapping[str, Any]]:
        """Send a request, and yield the chunks of the reply (or the whole of it) as plain objects.

        Raises `ModelFailed` for all that goes wrong; it holds on to no error of the client library.
        """
        import openai

        failure: ModelFailed | None = None
        try:
            async with await self._opened(client, body) as stream:
                data = stream.response.aiter_bytes()
                kind = stream.response.headers.get("content-type", "")
                if "html" in kind:
                    raise _NoModel("a web page")
                if "json" in kind:
                    # It does not stream, whatever it was asked, and sends the reply whole.
                    yield _reply(b"".join([one async for one in _bounded(data, is_whole=True)]))
                else:
                    # The library collects a chunk until it ends, however long that takes.
                    stream.response.aiter_bytes = lambda: _bounded(data, is_whole=False)
                    has_come = False
                    async for chunk in stream:
                        has_come = True
                        yield chunk.to_dict(warnings=False)
                    if not has_come and "event-stream" not in kind:
                        raise _NoModel(kind.partition(";")[0].strip() or "data of no type")
        except openai.APIStatusError as error:
            is_passing = retrying.may_pass(error.status_code, retrying.headers_of(error))
            attempts = 1 + (self._retries_max if is_passing else 0)
            failure = failures.refused(error, attempts=attempts, **self._told())
        except openai.APITimeoutError:
            failure = failures.too_slow(model=self._model, endpoint=self._shown, timeout_s=self._timeout_s)
        except _NoModel as error:
            failure = failures.no_model(str(error), **self._told())
        except _NotReached as error:
            failure = failures.unreachable(error, attempts=self._retries_max + 1, **self._told())
        except openai.APIConnectionError as error:
            failure = self.broken_off(f"the connection was lost ({error.__cause__})")
        except openai.OpenAIError as error:
            failure = self.broken_off(str(error))
        except _TooLong:
            failure = self.broken_off(f"it sent more than {CHUNK_BYTES_MAX:,} bytes without an end")
        except (ValueError, RecursionError) as error:
            failure = self.broken_off(f"it sent what is no JSON ({error})")
        if failure is not None:
            raise failure

    async def _opened(self, client: AsyncOpenAI, body: Mapping[str, Any]) -> Any:
        """Return the stream of a reply, once the endpoint has begun one."""
        import openai

        # Any from here on: the library's types know OpenAI's own endpoint, and a fixed set of fields.
        create: Any = client.chat.completions.create
        headers = {"Authorization": openai.Omit()} if self._key is None else {}
        body = {**body, "extra_body": self._settings, "extra_headers": headers}
        try:
            if not self._tells_usage:
                return await self._patiently(partial(create, **body))
            try:
                return await self._patiently(partial(create, **body, stream_options={"include_usage": True}))
            except openai.BadRequestError as error:
                if "stream_options" not in str(error.body):
                    raise
            self._tells_usage = False
            return await self._patiently(partial(create, **body))
        except openai.APITimeoutError:
            raise
        except openai.APIConnectionError as error:
            raise _NotReached from error.__cause__

    async def _patiently(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and again where the failure may pass. Raises the last failure, the client library's."""
        import openai

        attempts_max = self._retries_max + 1
        for attempt in range(1, attempts_max):
            try:
                return await send()
            except openai.APIStatusError as error:
                headers = retrying.headers_of(error)
                if error.code == "insufficient_quota" or not retrying.may_pass(error.status_code, headers):
                    raise
                why, asked_s = failures.passing(error.status_code, endpoint=self._shown), retrying.asked_s(headers)
            except openai.APITimeoutError:
                why, asked_s = f"{self._shown} was silent for {self._timeout_s:g} s", None
            except openai.APIConnectionError:
                why, asked_s = f"{self._shown} cannot be reached", None
            await self.wait(why, asked_s=asked_s, attempt=attempt, attempts_max=attempts_max)
        return await send()

    async def wait(self, why: str, *, attempt: int, attempts_max: int, asked_s: float | None = None) -> None:
        """Wait after an attempt (from 1) that failed, and tell it first."""
        wait_s = retrying.pause_s(attempt) if asked_s is None else asked_s
        if self._on_wait is not None:
            following = {"attempt": attempt + 1, "attempts_max": attempts_max}
            self._on_wait(retrying.told(why, wait_s=wait_s, is_asked=asked_s is not None, **following))
        await asyncio.sleep(wait_s)

    def broken_off(self, why: str) -> ModelFailed:
        """Return that an answer had begun to come and was cut short."""
        return failures.broken_off(why, **self._told())

    def _told(self) -> dict[str, Any]:
        return {"model": self._model, "endpoint": self._shown, "key": self._key}


class _NotReached(Exception):
    """No reply came at all. The cause says why."""


class _NoModel(Exception):
    """What came is no reply of a model. The text says what it is instead."""


class _TooLong(Exception):
    """What came is longer than a chunk may be."""


async def _bounded(data: AsyncIterator[bytes], *, is_whole: bool) -> AsyncGenerator[bytes]:
    """Yield the data. Raises `_TooLong` once a chunk of it, or the whole, is longer than `CHUNK_BYTES_MAX`."""
    size_bytes, last = 0, b""
    async for piece in data:
        # A mark may come in two pieces.
        ends = [found.end() for found in ([] if is_whole else _CHUNK_END.finditer(last + piece))]
        size_bytes += len(piece) if not ends else min(ends[0], len(piece))
        if size_bytes > CHUNK_BYTES_MAX:
            raise _TooLong
        if ends:
            size_bytes = len(last) + len(piece) - ends[-1]
        last = piece[-3:]
        yield piece


_CHUNK_END = re.compile(rb"\n\n|\r\r|\r\n\r\n")
"""What ends a server-sent event."""


def _reply(data: bytes) -> Mapping[str, Any]:
    """Return a reply that came whole. Raises `_NoModel` for another document, and `ValueError` for none."""
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} in place of an object")
    if not isinstance(value.get("choices"), list):
        said = failures.message_in(value)
        raise _NoModel(f"a document without a reply{': ' if said else ''}{said}")
    return value


def _checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    if taken := sorted(_OWN_FIELDS & set(settings)):
        raise InvalidName(f"{taken[0]!r} of a request is the agent's to set, and no setting")
    return dict(settings)


_OWN_FIELDS = frozenset({"messages", "model", "n", "stream", "stream_options", "tools"})


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        shown = url.partition("?")[0].rpartition("@")[2]
        raise InvalidName(f"a base URL is such as http://localhost:8080/v1, not {shown!r}")
    return url.strip()


def _checked_key(key: str | None) -> str | None:
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidName("the API key has characters in it that no key has; was something else copied with it?")
    return key or None
