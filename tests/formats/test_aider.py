"""aider's histories: what was typed, printed and answered is told apart, and a file that grows is read on."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import playhead
from playhead import Sessions
from playhead.errors import ImportFailed
from playhead.formats import aider
from playhead.formats.aider.blocks import blocks_of
from playhead.formats.aider.events import RunEvents
from playhead.formats.imported import ImportedEvent, ImportedSession
from playhead.formats.importing import Imported, import_source
from playhead.model.parts import content_of

STARTED = "\n# aider chat started at 2026-07-03 09:15:00\n\n"
GREETING = "> aider --model sonnet  \n> Aider v0.86.1  \n> Main model: claude-sonnet-4-5 with diff edit format  \n"
ASKED = "\n#### Why does test_upload fail?  \n"
ANSWERED = "\nIt times out after 30 seconds.\n\n"
TOKENS = "> Tokens: 2.1k sent, 1,300 cache hit, 300 received. Cost: $0.01 message, $0.10 session.  \n"


@pytest.fixture
def sessions() -> Sessions:
    """A store in memory."""
    return playhead.open("memory:")


def history(folder: Path, *pieces: str) -> Path:
    file = folder / ".aider.chat.history.md"
    file.write_text("".join(pieces), encoding="utf-8")
    return file


def only(file: Path) -> ImportedSession:
    (run,) = aider.discover(file)
    session = aider.read(run)
    assert session is not None
    return session


def said(events: Sequence[ImportedEvent]) -> list[tuple[str, str]]:
    """Who said what: the role of a message, or `note`, and the text."""
    return [
        (str(event.body.get("role", event.kind)), str(event.body.get("text") or _text(event.body["parts"][0])))
        for event in events
    ]


def restored(session: ImportedSession) -> str:
    """Return the lines that a session's events were made of."""
    return "\n".join(line for event in session.events for line in aider.restore_block(event) or ())


def bring_in(sessions: Sessions, run: aider.Run) -> int | None:
    """Import a run and return how many events that added, or None where nothing was there to import."""
    found = import_source(sessions, run.path, lambda known: aider.read(run, known), at=1.0, name=run.id)
    return found.added_count if isinstance(found, Imported) else None


def _text(part: dict[str, object]) -> object:
    return content_of(part) or part.get("response")


def test_a_run_is_a_session_with_its_turn_its_answer_and_its_usage(tmp_path: Path) -> None:
    session = only(history(tmp_path, STARTED, GREETING, ASKED, ANSWERED, TOKENS))
    note, prompt, answer, tokens = session.events

    assert session.title == "Why does test_upload fail?"
    assert session.id.startswith("aider.")
    assert session.id.endswith(".20260703T091500")
    assert session.started["config"]["model"] == "claude-sonnet-4-5"
    assert session.started["config"]["version"] == "0.86.1"
    assert session.started["extra"]["import"]["at"] == "without a zone, and read as UTC"
    assert session.at == 1_783_070_100.0
    assert (note.kind, note.turn) == ("note", None)
    assert (prompt.agent, prompt.turn) == ("user", prompt.id)
    assert (answer.agent, answer.turn, answer.body["model"]) == ("coordinator", prompt.id, "claude-sonnet-4-5")
    assert answer.body["usage"] == {
        "input_tokens": 2_100,
        "cache_read_input_tokens": 1_300,
        "output_tokens": 300,
        "cost_usd": 0.01,
    }
    assert (tokens.kind, session.counts.user_prompts, session.counts.assistant_messages) == ("note", 1, 1)


def test_what_was_typed_in_several_lines_is_one_prompt(tmp_path: Path) -> None:
    session = only(history(tmp_path, STARTED, "\n#### Fix this:  \n####   \n####   raise KeyError  \n", ANSWERED))

    assert said(session.events)[0] == ("user", "Fix this:\n\n  raise KeyError")


def test_a_command_and_the_prompt_behind_it_are_one_turn_and_the_command_is_marked(tmp_path: Path) -> None:
    session = only(history(tmp_path, STARTED, "\n#### /clear  \n", ASKED, ANSWERED, "\n#### /Users/ada is full  \n"))
    clear, prompt, _, path = session.events

    assert clear.body["injected"] == "aider"
    assert clear.body["extra"]["aider"]["command"] == "/clear"
    assert "injected" not in prompt.body
    assert "injected" not in path.body
    assert clear.turn == prompt.turn
    assert session.counts.user_prompts == 2
    assert session.title == "Why does test_upload fail?"


def test_output_of_several_lines_belongs_to_its_command_and_not_to_the_answer(tmp_path: Path) -> None:
    output = "> ==== test session starts ====\n\n#### no prompt: in the middle of output\n1 failed in 0.1s  \n"
    session = only(history(tmp_path, STARTED, "\n#### /test pytest  \n", output, ANSWERED))

    assert said(session.events) == [
        ("user", "/test pytest"),
        ("tool", "==== test session starts ====\n\n#### no prompt: in the middle of output\n1 failed in 0.1s"),
        ("assistant", "It times out after 30 seconds."),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "#### A heading",
        "> A quotation",
        "####No blank",
        "```\n\n#### typed  \n\n> printed  \n```",
        "text\n#### joined  ",
    ],
    ids=["heading", "quotation", "no blank", "in a code fence", "behind a line of text"],
)
def test_what_only_looks_like_a_prompt_stays_in_the_answer(tmp_path: Path, line: str) -> None:
    answer = f"Look:\n\n{line}\n\nThat is all."
    session = only(history(tmp_path, STARTED, ASKED, f"\n{answer}\n\n", TOKENS))

    assert said(session.events)[1] == ("assistant", answer)


def test_a_prompt_behind_an_answer_that_was_cut_off_in_a_code_fence_is_one(tmp_path: Path) -> None:
    torn = "\nupload.py\n```python\n<<<<<<< SEARCH\ndef upload():\n"
    next_answer = "\nupload.py\n```python\npass\n```\n"
    session = only(
        history(tmp_path, STARTED, ASKED, torn, "\n\n#### /undo  \n> Removed: 1a2b3c  \n", ASKED, next_answer)
    )

    assert [role for role, _ in said(session.events)] == ["user", "assistant", "user", "tool", "user", "assistant"]


def test_a_history_whose_line_ends_were_stripped_is_read_by_the_beginnings(tmp_path: Path) -> None:
    pieces = [STARTED, GREETING, ASKED, "\nLook:\n\n```\n\n#### typed\n```\n", TOKENS, "\n#### And now?  \n", ANSWERED]
    stripped = "\n".join(line.rstrip() for line in "".join(pieces).split("\n"))
    session = only(history(tmp_path, stripped))

    assert [role for role, _ in said(session.events)] == ["note", "user", "assistant", "note", "user", "assistant"]
    assert session.counts.user_prompts == 2


def test_runs_of_the_same_second_and_text_before_the_first_run_are_sessions_of_their_own(tmp_path: Path) -> None:
    file = history(tmp_path, ASKED, ANSWERED, STARTED, ASKED, STARTED, ASKED, STARTED, GREETING)
    runs = aider.discover(file)
    read = [aider.read(run) for run in runs]

    assert [run.key for run in runs] == ["before", "20260703T091500", "20260703T091500.2", "20260703T091500.3"]
    assert [session is None for session in read] == [False, False, False, True]
    assert read[0] is not None
    assert read[0].warnings == ["the start of the run is missing"]


def test_a_header_in_an_answer_begins_no_run(tmp_path: Path) -> None:
    quoted = "\nThe file has:\n# aider chat started at 2024-01-01 00:00:00\nat its top.\n\n"

    assert len(aider.discover(history(tmp_path, STARTED, ASKED, quoted))) == 1


def test_a_time_that_cannot_be_is_reported_and_the_run_kept(tmp_path: Path) -> None:
    session = only(history(tmp_path, "# aider chat started at 2026-13-45 99:00:00\n\n", ASKED, ANSWERED))

    assert session.warnings == ["the start of the run is impossible"]
    assert session.id.endswith(".20261345T990000")
    assert len(session.events) == 2


def test_a_history_that_grows_is_read_on_and_nothing_doubles(tmp_path: Path, sessions: Sessions) -> None:
    whole = [
        STARTED,
        GREETING,
        ASKED,
        ANSWERED,
        TOKENS,
        "\n#### /run ls  \n",
        "> a.py  \n",
        "> b.py  \n",
        ASKED,
        ANSWERED,
    ]
    added = []
    for end in range(2, len(whole) + 1):
        (run,) = aider.discover(history(tmp_path, *whole[:end]))
        added.append(bring_in(sessions, run))
    session = sessions.get(run.id)
    typed = [message.text for message in session.conversation() if message.agent == "user"]
    answers = [message.text for message in session.conversation() if message.role == "assistant"]

    # The greeting alone is no session. The second line of output came after the first one was read.
    assert added == [None, 2, 1, 1, 1, 1, 1, 1, 1]
    assert typed == ["Why does test_upload fail?", "/run ls", "Why does test_upload fail?"]
    assert answers == ["It times out after 30 seconds.", "It times out after 30 seconds."]
    assert [hit.snippet.text for hit in sessions.search("b.py").hits] == ["b.py"]
    assert session.summary().output_tokens == 300
    assert session.turn_count == 3
    assert bring_in(sessions, run) is None


def test_a_last_line_without_an_end_waits_until_it_has_one(tmp_path: Path) -> None:
    file = history(tmp_path, STARTED, ASKED, "\nIt times")
    session = only(file)
    (skipped,) = session.skipped

    assert said(session.events) == [("user", "Why does test_upload fail?")]
    assert skipped.offset + skipped.length == file.stat().st_size
    assert skipped.line == 7


def test_a_history_that_was_edited_is_read_again_without_doubling(tmp_path: Path, sessions: Sessions) -> None:
    for pieces in ([STARTED, ASKED, ANSWERED], [STARTED, GREETING, ASKED, ANSWERED, "\n#### And now?  \n"]):
        (run,) = aider.discover(history(tmp_path, *pieces))
        bring_in(sessions, run)
    prompts = [message.text for message in sessions.get(run.id).conversation() if message.role == "user"]

    assert prompts.count("Why does test_upload fail?") == 1
    assert "And now?" in prompts


def test_bytes_that_are_no_text_are_replaced_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "history.md"
    file.write_bytes((STARTED + ASKED).encode() + b"\nIt is \xff\xfe \x00 bytes.\n")
    session = only(file)

    assert said(session.events)[1] == ("assistant", "It is \ufffd\ufffd \ufffd bytes.")
    assert session.warnings == ["bytes that are not UTF-8 were replaced", "NUL bytes were replaced"]
    assert "cwd" not in session.started


@pytest.mark.parametrize("place", ["missing.md", "missing/"])
def test_a_place_that_is_not_there_is_a_failure(tmp_path: Path, place: str) -> None:
    with pytest.raises(ImportFailed, match="missing"):
        aider.discover(tmp_path / place)


def test_the_environment_names_the_history_else_it_lies_in_the_git_root_and_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "src" / "upload"
    folder.mkdir(parents=True)

    assert aider.places({}, folder) == [tmp_path / ".aider.chat.history.md", folder / ".aider.chat.history.md"]
    assert aider.places({"AIDER_CHAT_HISTORY_FILE": "chat.md"}, folder) == [folder / "chat.md"]


@given(
    st.lists(
        st.sampled_from(["#### typed  ", "#### no", "> out  ", "> more", "text", "", "```py", "```", "end  ", ">  "])
    )
)
def test_every_line_is_in_one_block_and_an_event_gives_its_lines_back(lines: list[str]) -> None:
    blocks = blocks_of(lines)
    found = RunEvents(at=0.0)
    for block in blocks:
        found.take(block, is_last=False)
    given_back = [line for event in found.events for line in aider.restore_block(event) or ()]
    first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))

    assert [line for block in blocks for line in block.lines] == lines[first:]
    assert given_back == lines[first:]
    assert len({event.id for event in found.events}) == len(found.events)


def test_the_real_history_has_the_runs_and_prompts_that_its_readme_says(shared_data: Path, sessions: Sessions) -> None:
    file = shared_data / "aider" / ".aider.chat.history.md"
    text = file.read_text(encoding="utf-8")
    runs = aider.discover(file)
    read = [(run, session) for run in runs if (session := aider.read(run)) is not None]
    for _, session in read:
        sessions.ingest(session.id, session.events, at=session.at, started=session.started, title=session.title)
    changed = [run.key for run, session in read if restored(session).strip("\n") not in run.data.decode()]
    opened = [sessions.get(session.id) for _, session in read]
    typed = [m for one in opened for m in one.conversation() if m.agent == "user" and m.role == "user"]
    lines = sum(message.text.count("\n") + 1 for message in typed)

    assert changed == []
    assert len(runs) == text.count("# aider chat started at ") == 103
    assert sum(session.counts.user_prompts for _, session in read) == 135
    assert sum(one.turn_count for one in opened) == 135
    assert lines == sum(line.startswith("#### ") for line in text.split("\n"))
    assert [one.verify().problems for one in opened if one.verify().problems] == []
    assert sum(len(session.warnings) + len(session.skipped) for _, session in read) == 0


def test_a_history_of_many_runs_costs_no_more_than_its_length(tmp_path: Path) -> None:
    run = f"{STARTED}{ASKED}\n{'x' * 1500}\n\n"
    (tmp_path / "large").mkdir()
    small, large = history(tmp_path, run * 500), history(tmp_path / "large", run * 8000)
    spent = []
    for file in (small, large):
        started = time.process_time()
        count = len(aider.discover(file))
        spent.append(time.process_time() - started)

    assert count == 8000
    assert spent[1] < 64 * max(spent[0], 0.005)  # 16 times the text; the square of that would be 256 times the work.


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (STARTED, 1),
        (STARTED.lstrip("\n"), 1),
        (f"{STARTED.rstrip()}\n", 1),
        (f"x{STARTED}", 1),
        (f"x\n{STARTED}", 2),
        (f"x{STARTED.lstrip()}", 1),
        (f"\n \t{STARTED}", 1),
        ("x\n# aider chat started at 2026-07-03 09:15:00\n\n", 1),
        (f"{STARTED.rstrip()}\nx\n", 1),
        (f"{STARTED}# aider chat started at 2026-07-03 09:15:01\n\n", 2),
        (f"{STARTED.rstrip()}\r\n\r\n", 1),
    ],
)
def test_a_header_begins_a_run_where_an_empty_line_is_on_either_side(tmp_path: Path, text: str, count: int) -> None:
    assert len(aider.discover(history(tmp_path, text))) == count


def test_a_line_of_digits_that_are_no_tokens_costs_no_more_than_its_length(tmp_path: Path) -> None:
    file = history(tmp_path, STARTED, ASKED, ANSWERED, f"> Tokens: {'1,' * 10_000} sent, 5 received.  \n")
    started = time.process_time()
    session = only(file)
    spent_s = time.process_time() - started
    usages = [event.body["usage"] for event in session.events if event.body.get("usage")]

    assert usages == [{"output_tokens": 5}]
    assert spent_s < 1  # The square of the length would be several seconds.
