"""The Markdown page: what was said stays as it was, and nothing in it breaks out of its place."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from playhead import Sessions
from playhead.formats.markdown import code, fenced, markdown, said
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
        ("`<div>` <div> ``a ` <b>``", "`<div>` &lt;div> ``a ` <b>``"),
        ("```html\n<div>\n```\n<div>", "```html\n<div>\n```\n&lt;div>"),
        ("` unclosed <b>", "` unclosed &lt;b>"),
        ("a < b, 1 <2", "a < b, 1 <2"),
        ("`a\n\n<b>`", "`a\n\n&lt;b>`"),
        ("\\`<b>`", "\\`&lt;b>`"),
        ("``` not `a` fence\n<b>", "``` not `a` fence\n&lt;b>"),
        ("\x1b[2J\x07", "␛[2J␇"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_was_said_ends_what_it_begins_and_holds_no_html(text: str, page: str) -> None:
    assert said(text) == page


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

    assert "| `a\\|b` |" in "".join(markdown(session))
