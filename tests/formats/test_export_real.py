"""Exports of the real sessions beside the project: they come in again whole, and their pages are harmless."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead import Sessions
from playhead.formats import claude_code
from playhead.formats.html import html
from playhead.formats.jsonl import import_jsonl, write_session
from playhead.formats.markdown import markdown
from playhead.formats.redaction import Redactor
from playhead.model.ids import SessionKey
from playhead.testing.replay import all_records
from tests.formats.exported_samples import opened
from tests.formats.test_html import Page


@pytest.fixture(scope="module")
def sessions(shared_data: Path) -> Iterator[Sessions]:
    with opened("memory:") as found:
        for source in claude_code.discover(shared_data / "home" / ".claude"):
            one = claude_code.read(source)
            if one is not None:
                found.ingest(one.id, one.events, at=one.at, started=one.started, title=one.title, labels=one.labels)
        yield found


@pytest.fixture(scope="module")
def keys(sessions: Sessions) -> list[SessionKey]:
    found = [row.key for row in sessions.list(limit=1_000).items]

    assert found
    return found


def test_real_sessions_come_back_with_equal_records_artifacts_and_rows(
    sessions: Sessions, keys: list[SessionKey]
) -> None:
    file = io.BytesIO()
    for key in keys:
        write_session(sessions, key, file)
    with opened("memory:") as other:
        taken = import_jsonl(other, file)
        store = other.store
        wrong = [key for key in keys if all_records(store, key) != all_records(sessions.store, key)]
        wrong += [key for key in keys if store.artifacts.hashes(key) != sessions.store.artifacts.hashes(key)]
        wrong += [key for key in keys if other.get(key.id).summary() != sessions.get(key.id).summary()]

    assert [one.key for one in taken] == keys
    assert wrong == []


def test_the_pages_of_real_sessions_are_harmless_and_have_every_event(
    sessions: Sessions, keys: list[SessionKey]
) -> None:
    problems = {}
    for key in keys:
        session = sessions.get(key.id)
        page = Page("".join(html(session)))
        missing = {f"e{seq}" for seq in range(1, session.seq + 1)} - set(page.all("id"))
        problems[key] = [*page.problems, *sorted(missing)]

    assert {key: found for key, found in problems.items() if found} == {}


def test_the_markdown_of_real_sessions_has_a_heading_for_every_turn(sessions: Sessions, keys: list[SessionKey]) -> None:
    counted = {key: sessions.get(key.id).turn_count for key in keys}
    pages = {key: "".join(markdown(sessions.get(key.id))) for key in keys}

    assert {key: page.count("\n## Turn ") for key, page in pages.items()} == counted


def test_masking_real_sessions_leaves_no_home_directory_and_finds_no_secret_that_is_none(
    sessions: Sessions, keys: list[SessionKey]
) -> None:
    redactor = Redactor()
    texts = [json for key in keys for json in _texts(sessions, key, redactor)]

    assert [text for text in texts if b"/home/dev" in text or b"/Users/" in text] == []
    # Whoever made these sessions public took the secrets out first: what else is masked would be a mistake.
    assert set(redactor.counts) <= {"home directory", "file"}


def _texts(sessions: Sessions, key: SessionKey, redactor: Redactor) -> list[bytes]:
    file = io.BytesIO()
    write_session(sessions, key, file, redactor=redactor)
    return file.getvalue().splitlines()
