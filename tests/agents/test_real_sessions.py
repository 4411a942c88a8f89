"""The built-in agent over real sessions of Claude Code: every quote stands where it says, whatever is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.agents.memory import HIT_CHARS_MAX, search_memory
from playhead.formats import claude_code
from playhead.session import open as open_sessions
from tests.agents.conftest import ask, ungrounded

QUESTIONS = (
    "why did the merge with main conflict?",
    "How are git hooks logged?",
    "website redesign proposals",
    "go test ./... FAIL",
    "日本語 スキル",
    "TodoWrite",
    "cmd/entire/cli/strategy/manual_commit_session.go",
    "is:error",
)


@pytest.fixture(scope="module")
def imported(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    with open_sessions(f"bundles:{tmp_path_factory.mktemp('real')}/sessions") as sessions:
        for source in claude_code.discover(shared_data / "home" / ".claude"):
            read = claude_code.read(source)
            assert read is not None
            sessions.ingest(read.id, read.events, at=read.at, started=read.started, title=read.title)
        yield sessions


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_quote_of_a_real_session_stands_in_its_event(imported: Sessions, question: str) -> None:
    session = imported.create()
    answers = [ask(session, imported, prompt) for prompt in (question, "more", "and the first one?", "more")]

    assert answers[0].ids
    assert all(id.startswith("claude-code.") for answer in answers for id in answer.ids)
    assert [ungrounded(answer.text, imported) for answer in answers] == [[], [], [], []]


def test_answers_come_from_several_sessions(imported: Sessions) -> None:
    answer = ask(imported.create(), imported, "which agent is active in the session")

    assert len({id.partition("#")[0] for id in answer.ids}) >= 2


def test_the_memory_of_real_sessions_is_quoted_in_stretches(imported: Sessions) -> None:
    found = search_memory(imported, "git hooks", k=20)
    quoted = [block.split("\n> ", 1)[1] for block in found.split("\n\n") if "\n> " in block]

    assert len(quoted) >= 15
    assert max(map(len, quoted)) <= HIT_CHARS_MAX * 3
    assert ungrounded(found, imported) == []
