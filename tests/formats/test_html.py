"""The HTML page: nothing on it runs, asks for anything or leads anywhere unasked, whatever a session holds."""

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from playhead import Session, Sessions
from playhead.errors import EventNotFound, ExtraMissing
from playhead.formats.html import html, pictures, words
from playhead.formats.markdown import markdown
from playhead.formats.redaction import Redactor
from tests.formats.exported_samples import opened, png, upload

TAGS = set(
    "html head meta title style body div header h1 h2 h3 h4 h5 h6 dl dt dd bdi nav details summary ol ul li a main "
    "section article b em strong s code pre p blockquote table thead tbody tr th td hr br img span time".split()
)
ATTRIBUTES = {
    *("id", "class", "href", "rel", "dir", "aria-label", "lang", "start", "src", "alt"),
    *("charset", "http-equiv", "content", "name"),
}
VOID = {"meta", "br", "hr", "img"}
LOCAL = re.compile(r"#[et][0-9]+")
PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")

PAYLOADS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<img src=https://evil.example/pixel.png>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "<math><mtext></table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=//evil.example/x></object><embed src=//evil.example/x>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><input name=q><button>Go</button></form>",
    "<body onload=alert(1)>",
    "<style>body{background:url(//evil.example)}</style>",
    "<div style='background:url(//evil.example)'>x</div>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</pre></details></main></body></html><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    '"><script>alert(1)</script>',
    "' onmouseover='alert(1)",
    '" autofocus onfocus=alert(1) x="',
    "`onclick=alert(1)`",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](  javascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/x)",
    '[x](https://evil.example/"onclick="alert(1))',
    "[x](<https://evil.example/ onclick=alert(1)>)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "![x](https://evil.example/pixel.png)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](javascript:alert(1))",
    "[![x](https://evil.example/a.png)](javascript:alert(1))",
    "# <img src=x onerror=alert(1)>",
    '```"><script>alert(1)</script>\ncode\n```',
    "``` onclick=alert(1)\ncode",
    "|<script>alert(1)</script>|b|\n|-|-|\n|<img src=x onerror=alert(1)>|d|",
    "~~<u onclick=alert(1)>~~ **<b onclick=alert(1)>**",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62;",
    "\u2028<script\u2029>alert(1)</script>",
    "\x00<scr\x00ipt>alert(1)</script>",
    "\x1b[31m\x9b2J \u202e<script>\u202c \ud83d",
    "\ufeff<\uff1cscript>alert(1)",
    "> " * 300 + "<script>alert(1)</script>",
    "- " * 300 + "<script>alert(1)</script>",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= 1 %>",
    "https://evil.example/<script>alert(1)</script>",
]


class Page(HTMLParser):
    """What a browser would see of a page, as far as it matters here."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.problems: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in TAGS:
            self.problems.append(f"<{tag}> has no place on the page")
        self.problems += [f"<{tag} {name}={value}>" for name, value in attrs if not _is_allowed(tag, name, value or "")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else")

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        self.problems.append(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        self.problems.append(f"a declaration: {data}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, attribute: str, *, of: str | None = None) -> list[str]:
        return [found[attribute] or "" for tag, found in self.elements if attribute in found and of in (None, tag)]


def _is_allowed(tag: str, name: str, value: str) -> bool:
    if name not in ATTRIBUTES:
        return False
    if name == "href":
        return LOCAL.fullmatch(value) is not None or re.match(r"(https?://|mailto:)\S+\Z", value, re.I) is not None
    if name == "src":
        return tag == "img" and PICTURE.fullmatch(value) is not None
    return name != "id" or LOCAL.fullmatch(f"#{value}") is not None or value in ("artifacts", "branches", "log")


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with opened("memory:") as found:
        yield found


def _page(session: Session, **options: object) -> Page:
    return Page("".join(html(session, **options)))  # type: ignore[arg-type]  # Options of every type pass through.


def hostile(sessions: Sessions, text: str) -> Session:
    """Return a session that holds a text wherever one can be."""
    readable = re.sub("[\x00\ud800-\udfff]", "", text)[:100]
    with sessions.create(title=text, cwd=text, labels=[text], origin=text, state={text: text}) as session:
        with session.turn(text) as turn:
            turn.system(text)
            turn.think(text)
            call = turn.tool_call(text, {text: [text]}, id=readable)
            turn.tool_result(call, text, is_error=True)
            call = turn.tool_call(text, text)
            turn.tool_result(call, {text: text})
            with turn.subagent(readable, text) as run:
                run.say(text)
            parts = [
                {"type": "uri", "uri": text, "mime_type": text},
                {"type": "file", "file_id": text, "mime_type": text},
                {"type": "blob", "content": text, "mime_type": text},
                {"type": text or "x", "content": text},
            ]
            turn.say([{"type": "text", "content": text}, *parts])
            turn.say(text, model=text)
        session.save_artifact(readable, text.encode("utf-8", "replace"), media_type=text)
        session.save_artifact(f"{readable}.svg", b"<svg onload=alert(1)>", media_type="image/svg+xml")
        session.send(readable, text, sender=readable)
        session.append("compaction", {"from": session.event(3).id, "to": session.event(4).id, "summary": text})
        session.append("interrupt_requested", {"interrupt": readable, "reason": text, "question": text})
        session.append("interrupt_answered", {"interrupt": readable, "status": text, "answer": text})
        session.append("trigger_fired", {"trigger": readable, "prompt": text})
        session.append("note", {"name": text, "is_error": True}, agent=readable, scope=readable, turn=readable)
        session.append("message", {"role": "assistant", "parts": [{"type": "text", "content": text}]}, scope="odd")
    return session


def test_there_are_enough_payloads() -> None:
    assert len(set(PAYLOADS)) >= 40


@pytest.mark.parametrize("text", PAYLOADS)
def test_whatever_a_session_holds_the_page_runs_nothing_and_asks_for_nothing(sessions: Sessions, text: str) -> None:
    """P7."""
    page = _page(hostile(sessions, text))

    assert page.problems == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "".join(page.text))


@pytest.mark.parametrize("text", PAYLOADS)
def test_the_payload_is_there_to_be_read(sessions: Sessions, text: str) -> None:
    shown = re.sub(r"\s", "", "".join(_page(hostile(sessions, text)).text))
    words_of = re.findall(r"[A-Za-z]{4,}", text)

    assert [word for word in words_of if word not in shown] == []


def test_the_policy_forbids_everything_but_the_pages_own_style_and_pictures(sessions: Sessions) -> None:
    text = "".join(html(upload(sessions)))
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<title>") < text.index("<style>")
    assert not re.search(r"url\(|@import|expression|</", style)


def test_every_event_of_the_log_has_one_address_and_every_link_on_the_page_leads_somewhere(sessions: Sessions) -> None:
    session = upload(sessions)
    page = _page(session)
    ids = page.all("id")

    assert {f"e{seq}" for seq in range(1, session.seq + 1)} <= set(ids)
    assert [id for id, count in Counter(ids).items() if count > 1] == []
    assert [href for href in page.all("href") if href.startswith("#") and href[1:] not in ids] == []


def test_the_page_shows_turns_tools_sub_agents_branches_and_markers(sessions: Sessions) -> None:
    page = _page(upload(sessions))
    text = " ".join("".join(page.text).split())
    folded = [found.get("class") for tag, found in page.elements if tag == "details"]

    assert folded.count("tool failed") == 1
    assert folded.count("tool completed") == 1
    assert folded.count("run") == 1
    assert "thought" in folded
    for said in ("Turn 1", "Turn 2", "Why does `test_upload` fail?", "Nothing before March.", "Raise the limit."):
        assert said in text
    for said in ("Question to a person", "Push it?", "Answer", "Summary that the model", "Branches", "812 in, 9 out"):
        assert said in text
    assert "Leave it then." in text[text.index("Every event, also of other branches") :]
    assert "Leave it then." not in text[: text.index("Every event, also of other branches")]


def test_another_branch_is_shown_where_it_is_asked_for(sessions: Sessions) -> None:
    session = upload(sessions)
    (left,) = (branch for branch in session.branches() if not branch.is_current)
    text = "".join(_page(session, branch=left.tip_seq).text)

    assert "Left." in text[: text.index("Every event, also of other branches")]
    with pytest.raises(EventNotFound):
        html(session, branch=999)


def test_pictures_are_in_the_page_and_other_artifacts_are_named(sessions: Sessions) -> None:
    session = upload(sessions)
    session.save_artifact("report.pdf", b"%PDF-1.4")
    session.save_artifact("drawing.svg", b"<svg/>", media_type="image/svg+xml")
    with session.turn("And this?") as turn:
        content = base64.b64encode(png()).decode()
        turn.say([{"type": "blob", "content": content, "mime_type": "image/png"}])
    page, bare = _page(session), _page(session, artifacts=False)
    text = "".join(page.text)

    assert page.all("src") == [f"data:image/png;base64,{content}"] * 2
    assert "report.pdf" in text and "8 bytes" in text and "drawing.svg" in text
    assert len(bare.all("src")) == 1


def test_pictures_that_are_too_large_or_too_many_are_named_only(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = upload(sessions)
    for number in range(4):
        session.save_artifact(f"{number}.png", png() + bytes(number))
    session.save_artifact("large.png", png() + bytes(2_000))
    monkeypatch.setattr(pictures, "PICTURE_BYTES_MAX", 1_000)
    monkeypatch.setattr(pictures, "PICTURES_BYTES_MAX", 3 * len(png()) + 2)
    page = _page(session)

    assert len(page.all("src")) == 3
    assert "large.png" in "".join(page.text)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"BM", None),
        (b"", None),
    ],
)
def test_a_picture_is_told_by_its_bytes(data: bytes, kind: str | None) -> None:
    assert pictures.picture_type(data) == kind


def test_a_masked_page_holds_no_artifact_and_none_of_what_was_masked(sessions: Sessions) -> None:
    session = upload(sessions)
    session.rename("password=tr0ub4dor in /home/ada")
    text = "".join(html(session, redactor=Redactor(homes=["/home/ada"])))

    assert "/home/ada" not in text
    assert "tr0ub4dor" not in text
    assert "[masked: password]" in text
    assert "data:" not in text.replace("img-src data:", "")


def test_the_same_log_always_gives_the_same_page(sessions: Sessions) -> None:
    session = upload(sessions)

    assert list(html(session)) == list(html(sessions.get(session.id)))


def test_an_empty_session_has_a_page(sessions: Sessions) -> None:
    page = _page(sessions.create("empty"))

    assert page.problems == []
    assert "New session" in "".join(page.text)


def test_runs_within_runs_are_shown_however_deep_they_lie(sessions: Sessions) -> None:
    label = "coordinator"
    with sessions.create("deep") as session:
        for depth in range(60):
            inner = f"{label}/a:1"
            body = {"job": f"j{depth}", "kind": "sub-agent", "status": "completed", "agent": inner}
            session.append("job_changed", body, scope=label if depth else None)
            parts = [{"type": "text", "content": f"depth {depth}."}]
            session.append("message", {"role": "assistant", "parts": parts}, agent=inner, scope=inner)
            label = inner
    page = _page(session)
    text = "".join(page.text)

    assert page.problems == []
    assert [depth for depth in range(60) if f"depth {depth}." not in text] == []


def test_a_long_text_is_shown_as_it_is() -> None:
    text = "**x** " * (words.MARKDOWN_CHARS_MAX // 6 + 1)

    assert words.words(text) == f'<div class="plain">{text}</div>'
    assert words.words("**x**") == "<p><strong>x</strong></p>\n"


def test_without_the_library_for_markdown_it_is_named(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    words._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ExtraMissing, match="markdown-it-py"):
        html(sessions.create("s"))


def test_the_columns_of_a_table_stand_as_they_were_asked_to_and_the_policy_lets_them(sessions: Sessions) -> None:
    with sessions.create("table") as session, session.turn("How many?") as turn:
        turn.say("| a | b | c | d |\n|---|--:|:-:|:--|\n| 1 | 2 | 3 | 4 |")
    text = "".join(html(session))

    (table,) = re.findall(r"<thead>.*?</tbody>", text.partition("How many?")[2], re.DOTALL)[:1]

    assert not re.search(r"\sstyle=", text)
    assert re.findall(r"<t[hd]\b[^>]*>", table) == [
        "<th>",
        '<th class="to-end">',
        '<th class="to-middle">',
        '<th class="to-start">',
        "<td>",
        '<td class="to-end">',
        '<td class="to-middle">',
        '<td class="to-start">',
    ]
    for name in ("to-start", "to-middle", "to-end"):
        assert f".{name} {{" in text


def test_what_is_masked_is_counted_once_though_the_page_shows_an_event_twice(sessions: Sessions) -> None:
    with sessions.create("masked", cwd="/home/ada/upload") as session, session.turn("Look into /home/ada/x") as turn:
        turn.say("In /home/ada/x and /home/ada/y is nothing.")
    counts = []
    for pieces in (html, markdown):
        redactor = Redactor(homes=["/home/ada"])
        list(pieces(session, redactor=redactor))
        counts.append(redactor.counts)

    assert counts[0] == counts[1]
