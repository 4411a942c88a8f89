"""The documentation is true: its examples run, its links lead somewhere, and its guarantees name tests that exist.

On README.md and every page of docs/, blocks marked ```python share one namespace, and every line of a ```console
block that begins with `$ playhead` runs through the command line. A page is read from top to bottom in one temporary
directory, with one empty home, so a command can list what the Python above it wrote. Two HTML comments, on the line
before a block, change this:

    <!-- skip: why this block cannot run here -->
    <!-- exit: 3 -->    the last command of the block ends with this code
"""

import ast
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROJECT

COMMAND_TIMEOUT_S = 60
# What runs, and what is only shown. A block in another language would silently be neither.
LANGUAGES_RUN = {"python", "console"}
LANGUAGES_SHOWN = {"", "text", "json", "sql", "toml", "yaml", "html", "mermaid"}

RUNNABLE_PAGES = [page for page in [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))] if page.is_file()]
ALL_PAGES = sorted({*RUNNABLE_PAGES, *PROJECT.glob("*.md"), *(PROJECT / "changes").glob("*.md")})
GUARANTEES = PROJECT / "docs" / "guarantees.md"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where its text begins, what it is, and what the comment before it says."""

    line: int
    language: str
    text: str
    comment: str

    @property
    def skip_reason(self) -> str | None:
        found = re.fullmatch(r"<!--\s*skip:(.*)-->", self.comment)
        return found[1].strip() if found else None

    @property
    def exit_code(self) -> int:
        found = re.fullmatch(r"<!--\s*exit:\s*(\d+)\s*-->", self.comment)
        return int(found[1]) if found else 0


def blocks(page_text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found = []
    lines = page_text.splitlines()
    start, fence, language = 0, "", ""
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(`{3,}|~{3,})\s*(\S*)", line)
        if mark and not fence:
            start, fence, language = number, mark[1], mark[2]
        elif fence and line.strip() == fence:
            comment = lines[start - 2].strip() if start > 1 else ""
            text = "".join(f"{inner}\n" for inner in lines[start : number - 1])
            found.append(Block(start + 1, language, text, comment))
            fence = ""
    return found


def commands(block: Block) -> list[str]:
    """Return the `playhead` commands of a console block, each with the lines that continue it."""
    whole = block.text.replace("\\\n", " ")
    return [line[2:].strip() for line in whole.splitlines() if re.match(r"\$ playhead\b", line)]


def links(page_text: str) -> list[str]:
    """Return the targets of a page's links and images, leaving out whatever is code."""
    prose = re.sub(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", "", page_text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"(`+).+?\1", "", prose)
    inline = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", prose)
    by_reference = re.findall(r"^\s*\[[^\]]+\]:\s*(\S+)", prose, flags=re.MULTILINE)
    return [*inline, *by_reference]


def anchors(page_text: str) -> set[str]:
    """Return the names that a link can jump to: each heading as code hosts spell it."""
    without_code = re.sub(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", "", page_text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6}\s+(.+?)\s*#*$", without_code, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", RUNNABLE_PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_example_on_a_page_runs(
    page: Path, tmp_path: Path, tmp_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{_folder_with_playhead(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    namespace: dict[str, Any] = {"__name__": "__main__"}

    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.relative_to(PROJECT)}, line {block.line}"
        if block.skip_reason is not None:
            continue
        if block.language == "python":
            _run_python(block, where, namespace)
        elif block.language == "console":
            _run_commands(block, where)


@pytest.mark.parametrize("page", RUNNABLE_PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_block_is_marked_as_something_that_runs_or_is_only_shown(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    unknown = [
        f"line {block.line}: {block.language}"
        for block in found
        if block.language not in LANGUAGES_RUN | LANGUAGES_SHOWN
    ]
    without_reason = [f"line {block.line}" for block in found if block.skip_reason == ""]

    assert unknown == []
    assert without_reason == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    broken = [target for target in links(page.read_text(encoding="utf-8")) if not _leads_somewhere(page, target)]

    assert broken == []


def test_every_guarantee_has_its_number_once() -> None:
    numbers = [number for number, _ in _guarantees()]
    last = {"K": 24, "Z": 17, "P": 7, "S": 12}
    expected = [f"{letter}{n}" for letter in last for n in range(1, last[letter] + 1)]

    assert numbers == expected


def test_every_guarantee_says_whether_it_holds() -> None:
    without_status = [number for number, text in _guarantees() if len(_STATUS.findall(text)) != 1]

    assert without_status == []


def test_every_guarantee_that_holds_names_tests_and_each_of_them_names_the_guarantee() -> None:
    documented = _documented_tests()
    claimed = {
        number: re.findall(r"\btest_\w+", " ".join(_TESTS.findall(text)))
        for number, text in _guarantees()
        if _STATUS.findall(text) != ["planned"]
    }
    without_tests = [number for number, names in claimed.items() if not names]
    unknown = sorted({name for names in claimed.values() for name in names} - set(documented))
    silent = [
        f"{name} does not name {number}"
        for number, names in claimed.items()
        for name in names
        if name in documented and not re.search(rf"\b{number}\b", documented[name])
    ]

    assert without_tests == []
    assert unknown == []
    assert silent == []


def test_a_guarantee_that_is_only_planned_names_no_tests() -> None:
    planned = [number for number, text in _guarantees() if _STATUS.findall(text) == ["planned"] and "test_" in text]

    assert planned == []


def test_the_reader_of_pages_finds_blocks_commands_and_what_is_said_of_them() -> None:
    page = (
        "# Title\n\n```python\nx = 1\n```\n\n<!-- skip: needs a key -->\n```python\ny = 2\n```\n"
        "<!-- exit: 3 -->\n```console\n$ playhead show \\\n    nothing\nno such session\n$ ls\n$ playheads\n```\n"
        "````text\n```python\nshown only\n```\n````\n"
    )
    first, skipped, console, shown = blocks(page)

    assert (first.line, first.text, first.skip_reason, first.exit_code) == (4, "x = 1\n", None, 0)
    assert skipped.skip_reason == "needs a key"
    assert [re.sub(" +", " ", command) for command in commands(console)] == ["playhead show nothing"]
    assert console.exit_code == 3
    assert shown.language == "text"


def test_the_reader_of_pages_tells_links_from_code() -> None:
    page = (
        'See [one](a.md#part), ![two](b.png "B") and [three][3], not `[four](c.md)`.\n\n'
        "[3]: d.md\n```text\n[5](e.md)\n```\n"
    )

    assert links(page) == ["a.md#part", "b.png", "d.md"]
    assert anchors("## 4. Storage `promises`!\n") == {"4-storage-promises"}


def test_an_example_that_fails_is_reported_with_its_page_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{_folder_with_playhead(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    wrong_command = Block(9, "console", "$ playhead no-such-command\n", "")
    raising = Block(4, "python", "ok = True\nraise LookupError('gone')\n", "")

    with pytest.raises(pytest.fail.Exception) as failed:
        _run_commands(wrong_command, "README.md, line 9")
    with pytest.raises(LookupError) as raised:
        _run_python(raising, "README.md, line 4", {})
    last_frame = traceback.extract_tb(raised.tb)[-1]

    assert str(failed.value).startswith("README.md, line 9: `playhead no-such-command` ended with ")
    assert (last_frame.filename, last_frame.lineno) == ("README.md, line 4", 5)


_STATUS = re.compile(r"\*\*(holds|in\s+part|planned)\*\*")
_TESTS = re.compile(r"\(tests:\s([^)]*)\)")


def _run_python(block: Block, where: str, namespace: dict[str, Any]) -> None:
    # Blank lines before the text make a traceback's line numbers those of the page.
    exec(compile("\n" * (block.line - 1) + block.text, where, "exec"), namespace)


def _run_commands(block: Block, where: str) -> None:
    lines = commands(block)
    for line, expected in zip(lines, [0] * (len(lines) - 1) + [block.exit_code], strict=True):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
        )
        if done.returncode != expected:
            pytest.fail(f"{where}: `{line}` ended with {done.returncode}, not {expected}.\n{done.stdout}{done.stderr}")


def _folder_with_playhead(tmp_path: Path) -> Path:
    """Return a new folder with a `playhead` command that runs this checkout with this Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "playhead"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m playhead._entry "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    return folder


def _leads_somewhere(page: Path, target: str) -> bool:
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return True  # Another site, which a test does not call.
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file.read_text(encoding="utf-8"))


def _guarantees() -> list[tuple[str, str]]:
    """Return the numbered items of the page: ("K1", its text with its status)."""
    items = re.split(r"^- \*\*([KZPS]\d+)\*\*", GUARANTEES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return list(zip(items[1::2], items[2::2], strict=True))


def _documented_tests() -> dict[str, str]:
    """Return what each test says of itself: its name to its own docstring and that of its module."""
    documented: dict[str, str] = {}
    for file in _python_files("tests", "playhead/testing"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                said = (documented.get(node.name), ast.get_docstring(tree), ast.get_docstring(node))
                documented[node.name] = "\n".join(text for text in said if text)
    return documented


def _python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((PROJECT / folder).rglob("*.py"))
