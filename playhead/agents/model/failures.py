"""What went wrong between an agent and a model's endpoint, as one sentence that says what to look at.

What an endpoint answers is other people's text: it is cut, put in one line, and the key is taken out of it.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from playhead.agents.quoting import one_line
from playhead.errors import ModelFailed

SAID_CHARS_MAX = 300
"""Of what the endpoint said, so much is told."""
KEY_CHARS_MIN = 8
"""What is shorter is no secret but a placeholder, such as endpoints on one's own machine are given."""

PAGE_CHARS_MAX = 4_000
"""Of a web page, so much is looked at for its title."""

_PAGE = re.compile(r"<(!doctype html|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<(?P<tag>title|h1)\b[^>]{0,200}>(?P<title>[^<]{1,200})</(?P=tag)>", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input is too long",
    re.IGNORECASE,
)


def shown_endpoint(base_url: str) -> str:
    """Return a base URL as it may be shown and kept: without a name and a password in it, and without its query."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def without_key(text: str, key: str | None) -> str:
    """Return the text with the key replaced, wherever it stands; one as short as a word only where it is a word."""
    if not key:
        return text
    if len(key) >= KEY_CHARS_MIN:
        return text.replace(key, "[key]")
    return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "[key]", text)


def refused(error: Any, *, model: str, endpoint: str, key: str | None, attempts: int) -> ModelFailed:
    """Return what an error status means. error: the client library's, with `status_code` and `body`.

    attempts: how often it was tried, where trying again could help.
    """
    status: int = error.status_code
    said = one_line(without_key(_said(error), key), chars_max=SAID_CHARS_MAX)
    told = f". It said: {said}" if said else ""
    tried = f" after {attempts} attempts" if attempts > 1 else ""
    if status in (400, 413, 422) and (error.code == "context_length_exceeded" or _TOO_LONG.search(said)):
        reason = "the conversation is too long for it; rewind the session, or fork it at an earlier turn"
    elif status == 401:
        reason = f"{endpoint} did not accept the API key (401); check the key, and that it belongs to this endpoint"
    elif status == 403:
        reason = f"{endpoint} does not let this API key use it (403)"
    elif status == 404:
        reason = f"{endpoint} does not know it (404); check the model's name and the base URL"
    elif status == 429 and error.code == "insufficient_quota":
        reason = f"the account at {endpoint} has used up what it paid for (429)"
    elif status == 429:
        reason = f"{endpoint} takes no more requests for now (429{tried}); wait a while and try again"
    elif status >= 500:
        reason = f"{endpoint} failed ({status}{tried}); try again later"
    else:
        reason = f"{endpoint} did not take the request ({status})"
    return ModelFailed(model, reason + told, status=status)


def passing(status: int, *, endpoint: str) -> str:
    """Return what an endpoint did that may be over in a moment."""
    return f"{endpoint} takes no more requests for now (429)" if status == 429 else f"{endpoint} failed ({status})"


def no_model(what: str, *, model: str, endpoint: str, key: str | None) -> ModelFailed:
    """Return that something answered, and no model. what: what came in place of a reply."""
    what = one_line(without_key(what, key), chars_max=SAID_CHARS_MAX)
    return ModelFailed(
        model, f"what is at {endpoint} sent {what}, not a model's reply; check the base URL, which mostly ends in /v1"
    )


def unreachable(error: BaseException, *, model: str, endpoint: str, key: str | None, attempts: int) -> ModelFailed:
    """Return that no reply came. error: the client library's; what it was raised from says why."""
    why = str(error.__cause__ or "")
    why = one_line(without_key(why, key), chars_max=SAID_CHARS_MAX)
    because = f" ({why})" if why else ""
    tried = f" in {attempts} attempts" if attempts > 1 else ""
    return ModelFailed(
        model, f"{endpoint} could not be reached{tried}{because}; check the base URL, and that the server runs"
    )


def too_slow(*, model: str, endpoint: str, timeout_s: float) -> ModelFailed:
    """Return that the endpoint stayed silent for too long."""
    return ModelFailed(model, f"{endpoint} was silent for {timeout_s:g} s; try again, or allow it more time")


def broken_off(why: str, *, model: str, endpoint: str, key: str | None) -> ModelFailed:
    """Return that an answer had begun to come and was cut short."""
    why = one_line(without_key(why, key), chars_max=SAID_CHARS_MAX)
    return ModelFailed(model, f"{endpoint} broke its answer off: {why}", broke_off=True)


def _said(error: Any) -> str:
    """Return what the endpoint said of it: the message of its error document, the title of a page."""
    body = error.body
    if isinstance(body, str) and _PAGE.search(body[:PAGE_CHARS_MAX]):
        found = _TITLE.search(body[:PAGE_CHARS_MAX])
        return unescape(found["title"]) if found else ""
    return message_in(body)


def message_in(body: Any) -> str:
    """Return the message of an error document, "" where there is none."""
    for _ in range(2):
        if isinstance(body, dict):
            body = next((body[name] for name in ("message", "error", "detail") if body.get(name)), "")
    return body if isinstance(body, str) else ""
