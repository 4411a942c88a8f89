"""The Markdown page: what was said stays as it was, and nothing in it breaks out of its place."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from playhead import Sessions
from playhead.formats.markdown import code, fenced, markdown, quoted, said
from playhead.formats.redaction import Redactor
from tests.formats.exported_samples import opened, upload
from tests.formats.test_html import PAYLOADS, hostile


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with opened("memory:") as found:
        yield found


def test_the_page_reads_from_the_title_to_the_branches(sessions: Sessions) -> None:
    text = "".join(markdown(upload(sessions)))
    heads = re.findall(r"^#+ .*", text, re.MULTILINE)

    assert heads == ["# Flaky upload test", "## Turn 1", "## Turn 2", "## Artifacts", "## Branches"]
    for line in (
        "- Folder: `/home/ada/upload`",
        "> Why does `test_upload` fail?",
        "> # Not a heading of the page",
        "<details><summary><code>✗ run_tests(path=tests/upload, retries=100.0)</code></summary>",
        "<details><summary>Sub-agent coordinator/researcher:1: completed · #8</summary>",
        "Nothing before **March**.",
        "It times out after 30 seconds.",
        "> - at 30 s",
    ):
        assert line in text.splitlines()
    assert "**Question to a person** · #" in text
    assert "| `times.png` | `image/png` |" in text
    assert "Leave it then." not in text


def test_a_fence_is_longer_than_any_in_what_it_holds(sessions: Sessions) -> None:
    text = "".join(markdown(upload(sessions)))

    assert "`````\n```\nissue 91\n````\n`````" in text


@given(st.text(st.sampled_from("`~ \nx"), max_size=40))
def test_what_is_in_a_block_of_code_cannot_end_it(text: str) -> None:
    opening, *inside, closing = fenced(text).split("\n")

    assert opening == closing
    assert [line for line in inside if opening in line] == []


@given(st.text(st.sampled_from("`|~ \nx\x1b"), max_size=20))
def test_code_in_a_line_cannot_end_itself(text: str) -> None:
    made = code(text)
    ticks = re.match("`+", made)

    assert ticks is not None
    assert made.count("\n") == 0
    assert len(re.findall(rf"(?<!`){ticks[0]}(?!`)", made)) == 2


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("plain *text*", "plain *text*"),
        ("```python\nx = 1", "```python\nx = 1\n```"),
        ("````\n```\nx", "````\n```\nx\n````"),
        ("~~~\n```\n~~~\nafter", "~~~\n```\n~~~\nafter"),
        ("<div>", "&lt;div>"),
        ("`a` `x < y` ``a ` b``", "`a` `x < y` ``a ` b``"),
        ("`<div>` <div>", "<code>&lt;div&gt;</code> &lt;div>"),
        ("``a ` <b>|*_\\``", "<code>a &#96; &lt;b&gt;&#124;&#42;&#95;&#92;</code>"),
        ("` <b> ` `  `", "<code>&lt;b&gt;</code> `  `"),
        ("```html\n<div>\n```\n<div>", "```html\n<div>\n```\n&lt;div>"),
        ("` unclosed <b>", "` unclosed &lt;b>"),
        ("a < b, 1 <2", "a < b, 1 <2"),
        ("`a\n\n<b>`", "`a\n\n&lt;b>`"),
        ("`a\n<b>` `<i>`", "`a\n&lt;b>` `&lt;i>`"),
        ("\\`<b>`", "\\`&lt;b>`"),
        ("- a:\n\n  ```html\n  <b>\n\n  ```\n- c", "- a:\n\n  ```html\n  <b>\n\n  ```\n- c"),
        ("1. a:\n   ```\n   <b>\n     ```\n<i>", "1. a:\n   ```\n   <b>\n   ```\n&lt;i>"),
        ("- a\n\n  ```\n<b>", "- a\n\n  ```\n  ```\n&lt;b>"),
        (" ```\nx\n```\n<b>", " ```\n ```\nx\n```\n<b>\n```"),
        ("- a:\n    ```\n    <b>\n    ```\n<i>", "- a:\n    ```\n    &lt;b>\n    ```\n&lt;i>"),
        ("> ```\n> <b>\n> ```\n```\n<i>", "> ```\n> &lt;b>\n> ```\n```\n<i>\n```"),
        ("```\na\n```\xa0\n<b>", "```\na\n```\xa0\n<b>\n```"),
        ("- ```\n  ```\n  <b>", "````\n- ```\n  ```\n  <b>\n````"),
        ("\t<b>\n  \t~~~", "    &lt;b>\n    ~~~"),
        ("``` not `a` fence\n<b>", "``` not `a` fence\n&lt;b>"),
        ("\x1b[2J\x07", "␛[2J␇"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_was_said_ends_what_it_begins_and_holds_no_html(text: str, page: str) -> None:
    assert said(text) == page


MARKS = [
    *("`", "``", "```", "~~~", "- ", "1. ", "> ", "# ", "|", "\\", " ", "  ", "\t", "\xa0", "***", "$", "'", "x"),
    *("<b>", "<!--", "-->", "<https://x", "](", ")", "[", "[a]: "),
    *("\n", "\n\n", "\n```", "\n  ```", "\n   ~~~", "\n    ", "\n|-|-|\n"),
]
"""What readers of Markdown make blocks and spans of, to be put together anyhow."""


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(MARKS), max_size=24).map("".join), st.booleans())
@example("# a `\n<script>alert(1)</script> `", False)
@example("- a\n\n  ```\n<script>alert(1)</script>\n", False)
@example("- `\n- <img src=x onerror=alert(1)> `", False)
@example("a `x\n> <img src=x onerror=alert(1)>`", False)
@example("| `\n***\n<img src=x onerror=alert(1)> `", False)
@example("[a](`) `x` <img src=x onerror=alert(1)>`", False)
@example("- ```\n  ```\n  <img src=x onerror=alert(1)>", False)
@example("para\n    ```\n    <img src=x onerror=alert(1)>", True)
@example("- x\n     ```\n  ```\n  <img src=x onerror=alert(1)>", False)
@example("```\n```\xa0\n```\n<img src=x onerror=alert(1)>\n```", True)
def test_no_reader_of_markdown_finds_html_in_what_was_said_nor_misses_what_follows(text: str, is_quoted: bool) -> None:
    """Read by a parser that lets HTML through. `<code>` is the page's own: it is around what looks like a tag."""
    said_it = quoted(said(text)) if is_quoted else said(text)
    tokens = READER.parse(f"{said_it}\n\n**end**")
    found = [token for block in tokens for token in (block, *(block.children or ())) if token.type in HTML]
    last = [token.content for token in tokens if token.type == "inline"][-1]

    assert [token.content for token in found if token.content not in ("<code>", "</code>")] == []
    assert [token.type for token in found] == ["html_inline"] * len(found)
    assert last == "**end**"


READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HTML = ("html_block", "html_inline")


@pytest.mark.parametrize("text", PAYLOADS)
def test_whatever_a_session_holds_the_outline_of_the_page_is_its_own(sessions: Sessions, text: str) -> None:
    page = "".join(markdown(hostile(sessions, text)))
    outside, fence = [], ""
    for line in page.split("\n"):
        found = re.fullmatch(r"(?:> ?)*(`{3,}|~{3,})(.*)", line)
        if fence:
            fence = "" if found and found[1].startswith(fence) and not found[2].strip() else fence
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        else:
            outside.append(line)
    in_no_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(outside))
    tags = re.findall(r"</?(?:details|summary)>", in_no_code)

    assert fence == ""
    assert tags.count("<details>") == tags.count("</details>") == tags.count("<summary>") > 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", page)
    assert page.encode()


def test_artifacts_can_be_left_out_and_texts_masked(sessions: Sessions) -> None:
    session = upload(sessions)

    assert "## Artifacts" not in "".join(markdown(session, artifacts=False))
    assert "/home/ada" not in "".join(markdown(session, redactor=Redactor(homes=["/home/ada"])))


def test_the_same_log_always_gives_the_same_text(sessions: Sessions) -> None:
    session = upload(sessions)

    assert list(markdown(session)) == list(markdown(sessions.get(session.id)))


def test_a_table_holds_what_has_bars_in_it(sessions: Sessions) -> None:
    session = sessions.create("s")
    session.save_artifact("a|b", b"x")

    assert "| <code>a&#124;b</code> |" in "".join(markdown(session))
