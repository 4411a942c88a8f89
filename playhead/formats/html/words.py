"""What was said, as HTML that can do nothing: no markup of its own, no address but http, https and mailto, no image."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from playhead.errors import ExtraMissing
from playhead.formats.shown import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKDOWN_CHARS_MAX = 50_000
"""A longer text is shown as it is. What was said is shorter; a file that was pasted whole is no Markdown."""

NESTING_MAX = 20

HEADING_SHIFT = 2
"""The page's title and the turns are headings of the first two levels, so those in a message begin at the third."""

_COLUMNS = {
    "text-align:left": "to-start",
    "text-align:center": "to-middle",
    "text-align:right": "to-end",
}

_SAFE_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20]+", re.IGNORECASE)


def words(text: str) -> str:
    """Return Markdown as HTML. Raises `ExtraMissing` where the library for it is not installed."""
    text = visible(text)
    if len(text) > MARKDOWN_CHARS_MAX:
        return plain_words(text)
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + HEADING_SHIFT, 6)}"
        token.info = ""
        if style := str(token.attrs.pop("style", "")):
            # The library writes how a column is set as a style, which the page's policy forbids.
            token.attrs["class"] = _COLUMNS.get(style, "")
        if token.children:
            token.children = [made for child in token.children for made in _harmless(child)]
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def plain_words(text: str) -> str:
    """Return text as HTML in the lines that it has."""
    return f'<div class="plain">{escape(visible(text))}</div>'


def link(address: str, text: str) -> str:
    """Return a link as HTML, or the text alone where the address is of another kind than http, https and mailto."""
    if not is_safe(address):
        return escape(visible(text))
    return f'<a href="{escape(visible(address))}" rel="noreferrer noopener">{escape(visible(text))}</a>'


def is_safe(address: str) -> bool:
    """Return True for an address that a page may lead to when somebody clicks."""
    return _SAFE_ADDRESS.fullmatch(address) is not None


@cache
def _parser() -> MarkdownIt:
    try:
        # Loaded here: only this page needs it, and the command line starts without it.
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ExtraMissing("markdown-it-py", extra="cli") from error
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "maxNesting": NESTING_MAX}).enable(
        ["table", "strikethrough"]
    )
    parser.validateLink = is_safe  # type: ignore[assignment, method-assign]  # It is meant to be replaced; the type does not say so.
    return parser


def _harmless(token: Token) -> list[Token]:
    """Return a token as it may stand on the page: an image from elsewhere becomes a link to it, which nobody follows
    before a person clicks."""
    from markdown_it.token import Token

    if token.type == "link_open":
        token.attrs = {"href": str(token.attrs.get("href", "")), "rel": "noreferrer noopener"}
    if token.type != "image":
        return [token]
    address = str(token.attrs.get("src", ""))
    text = Token("text", "", 0, content=f"[image: {token.content or address}]")
    if not is_safe(address):
        return [text]
    attrs: dict[str, str | int | float] = {"href": address, "rel": "noreferrer noopener"}
    return [Token("link_open", "a", 1, attrs=attrs), text, Token("link_close", "a", -1)]
