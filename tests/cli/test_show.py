"""`playhead show`: the transcript, one event, the branches."""

import pytest

from playhead import Event, Sessions
from playhead.cli.show import WINDOW_EVENTS
from playhead.features.reading import View
from tests.cli.conftest import ESCAPES, CommandLine
from tests.cli.terminals import in_a_terminal


def test_the_transcript_reads_from_the_first_prompt_to_the_last_answer(cli: CommandLine, upload: str) -> None:
    answer = cli("show", upload)
    said = [line for line in answer.out.splitlines() if line.startswith("  ")]

    assert answer.code == 0
    assert answer.out.startswith("Flaky upload test\nupload-0001  3 turns  open")
    assert said[0] == "  Why does test_upload fail on CI?"
    assert "  Raise the limit to 60." in said
    assert "── turn 3 ──" in answer.out
    assert "Nothing before March." not in answer.out


@pytest.mark.parametrize(
    ("detail", "present", "absent"),
    [
        ("none", [], ["run_tests", "connection reset"]),
        ("short", ["✓ run_tests(path=tests/upload) → failed=1"], ['"path": "tests/upload"']),
        ("full", ["✓ run_tests", '"path": "tests/upload"', "connection reset by peer"], []),
    ],
)
def test_tools_show_as_much_as_was_asked_for(
    cli: CommandLine, upload: str, detail: str, present: list[str], absent: list[str]
) -> None:
    out = cli("show", upload, "--tools", detail).out

    assert [text for text in present if text not in out] == []
    assert [text for text in absent if text in out] == []


def test_empty_values_of_tools_are_shown_and_look_like_no_fault(cli: CommandLine, sessions: Sessions) -> None:
    with sessions.create("tools-0001") as session, session.turn("Look") as turn:
        calls = [
            (
                "search_sessions",
                {"query": "x", "without": "", "within": " ", "of": [], "at": {}},
                {"found": [], "n": 0},
            ),
            ("bare", {}, []),
            ("silent", {}, ""),
            ("void", {}, {}),
        ]
        for name, arguments, response in calls:
            turn.tool_result(turn.tool_call(name, arguments), response)
    out = cli("show", "tools-0001", COLUMNS="200").out

    assert '✓ search_sessions(query=x, without="", within=" ", of=[], at={}) → found=[], n=0' in out
    assert "✓ bare() → []\n" in out
    assert '✓ silent() → ""\n' in out
    assert "✓ void() → {}\n" in out


def test_a_message_that_turns_its_letters_around_is_shown_as_it_is(cli: CommandLine, sessions: Sessions) -> None:
    with sessions.create("turned-0001") as session, session.turn("Open invoice\u202efdp.exe") as turn:
        turn.say("It is\u202d done")
    out = cli("show", "turned-0001").out

    assert "\u202e" not in out and "\u202d" not in out
    assert "  Open invoice\ufffdfdp.exe\n" in out


def test_the_facts_of_the_heading_are_broken_between_them_on_a_narrow_terminal(sessions: Sessions) -> None:
    id = "claude-code.0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a"
    sessions.create(id, title="Narrow", cwd="/home/ada/upload").close()
    shown = in_a_terminal("show", id, NO_COLOR="1", COLUMNS="60").shown.splitlines()

    assert shown[:3] == ["Narrow", f"{id}  0 turns", "    open  /home/ada/upload  2026-08-01 12:00"]


def test_a_sub_agents_run_has_a_transcript_of_its_own(cli: CommandLine, upload: str) -> None:
    out = cli("show", upload, "--agent", "coordinator/researcher:1").out

    assert "Look for earlier timeouts." in out
    assert "Nothing before March." in out
    assert "Why does test_upload" not in out
    assert " you " not in out


def test_an_event_shows_whole_with_its_place(cli: CommandLine, upload: str) -> None:
    answer, document = cli("show", upload, "--event", "4"), cli("show", upload, "--event", "4", "--json").json

    assert "event   #4" in answer.out
    assert "kind    message" in answer.out
    assert '"content": "Why does test_upload fail on CI?"' in answer.out
    assert document["event"]["seq"] == 4
    assert document["event"]["body"]["parts"][0]["content"] == "Why does test_upload fail on CI?"
    assert document["session"]["id"] == upload


def test_raw_text_is_exactly_what_was_stored(cli: CommandLine, sessions: Sessions) -> None:
    text = f"first line\r\n{ESCAPES}\n\n  日本語 \t end \n"
    with sessions.create("raw-0001") as session:
        with session.turn("hello") as turn:
            said = turn.say(text)
            call = turn.tool_call("read", {})
            result = turn.tool_result(call, text)
            other = turn.note("weather", sky="blue")

    assert cli("show", "raw-0001", "--raw", "--event", str(said.seq)).out == text
    assert cli("show", "raw-0001", "--raw", "--event", str(result.seq)).out == text
    assert cli("show", "raw-0001", "--raw", "--event", str(other.seq)).json == {"name": "weather", "sky": "blue"}
    assert cli("show", "raw-0001", "--raw").out == f"hello\n{text}\n"


def test_a_branch_is_read_by_the_event_it_ends_at(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    with sessions.get(upload) as session:
        end = session.head
        session.rewind(turn=3)
        with session.turn("Leave it as it is.") as turn:
            turn.say("Left.")
    tree = cli("show", upload, "--tree")
    current, left = tree.rows

    assert [current[1], left[0]] == ["current", str(end)]
    assert left[1].startswith("from ")
    assert "Leave it as it is." in cli("show", upload).out
    assert "Then raise the limit." not in cli("show", upload).out
    assert "Then raise the limit." in cli("show", upload, "--branch", left[0]).out
    assert [branch["tip_seq"] for branch in cli("show", upload, "--tree", "--json").json["branches"]] == [
        int(current[0]),
        end,
    ]


@pytest.mark.parametrize("option", ["--event", "--branch"])
def test_an_event_that_is_not_there_is_not_found(cli: CommandLine, upload: str, option: str) -> None:
    answer = cli("show", upload, option, "9999")

    assert (answer.code, answer.out) == (3, "")
    assert "has no event 9999" in answer.err


def test_options_that_pick_different_things_exclude_each_other(cli: CommandLine, upload: str) -> None:
    answer = cli("show", upload, "--event", "4", "--tree")

    assert (answer.code, answer.out) == (2, "")


def test_showing_writes_nothing(cli: CommandLine, sessions: Sessions, upload: str) -> None:
    before = sessions.get(upload).seq
    cli("show", upload)
    cli("show", upload, "--tree")

    assert sessions.get(upload).seq == before


def test_the_json_says_what_the_text_says(cli: CommandLine, upload: str) -> None:
    text, document = cli("show", upload).out, cli("show", upload, "--json").json
    shown = [entry["text"].splitlines()[0] for entry in document["entries"] if entry["role"] == "user"]

    assert [line for line in shown if line not in text] == []
    assert [turn["number"] for turn in document["turns"]] == [1, 2, 3]
    assert document["session"]["title"] == "Flaky upload test"


def test_a_session_with_an_event_behind_it_shows_that_event(cli: CommandLine, upload: str) -> None:
    assert cli("show", f"{upload}#4").out == cli("show", upload, "--event", "4").out
    assert cli("show", f"{upload}#999").code == 3


def test_an_id_that_looks_like_a_session_with_an_event_is_still_an_id(cli: CommandLine, sessions: Sessions) -> None:
    sessions.create("odd#1", title="Odd")

    assert cli("show", "odd#1").out.startswith("Odd")


def test_the_last_turns_are_read_from_the_end_of_the_path(cli: CommandLine, upload: str) -> None:
    last, two, turn = (
        cli("show", upload, *options, "--json").json for options in (["--last", "1"], ["--last", "2"], ["--turn", "-2"])
    )

    assert [span["number"] for span in last["turns"]] == [3]
    assert last["entries"][0]["text"] == "Then raise the limit."
    assert [span["number"] for span in two["turns"]] == [2, 3]
    assert [span["number"] for span in turn["turns"]] == [2]
    assert turn["entries"][0]["text"] == "Did anybody see this before?"
    assert [span["number"] for span in cli("show", upload, "--last", "99", "--json").json["turns"]] == [1, 2, 3]


def test_of_a_long_session_only_the_end_is_read_for_the_last_turn(
    cli: CommandLine, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.create("long-0001") as session:
        for number in range(150):
            with session.turn(f"Question {number}") as turn:
                turn.say(f"Answer {number}")
    read: list[int] = []
    newest_events = View.newest_events

    def counted(view: View, count: int) -> list[Event]:
        read.append(count)
        return newest_events(view, count)

    monkeypatch.setattr(View, "newest_events", counted)
    monkeypatch.setattr(View, "path", lambda _: pytest.fail("the whole path was read"))
    found = cli("show", "long-0001", "--last", "2", "--json").json

    assert read == [WINDOW_EVENTS]
    assert [span["number"] for span in found["turns"]] == [149, 150]


def test_a_turn_that_is_not_there_and_options_that_exclude_each_other(cli: CommandLine, upload: str) -> None:
    unknown, both, odd = (
        cli("show", upload, *options) for options in (["--turn", "9"], ["--turn", "1", "--last", "1"], ["--turn", "0"])
    )

    assert (unknown.code, both.code, odd.code) == (3, 2, 3)


def test_an_agent_that_never_wrote_is_not_found_and_those_that_did_are_named(cli: CommandLine, upload: str) -> None:
    nobody, run = cli("show", upload, "--agent", "nobody"), cli("show", upload, "--agent", "coordinator/researcher:9")
    there = cli("show", upload, "--agent", "coordinator/researcher:1")

    assert (nobody.code, nobody.out) == (3, "")
    assert (run.code, run.out) == (3, "")
    assert "coordinator/researcher:1" in nobody.err
    assert "Nothing before March." in there.out


@pytest.mark.parametrize("command", [["timeline", "upload-0001"], ["search", "x"]])
def test_a_kind_that_no_event_has_is_a_mistake(cli: CommandLine, upload: str, command: list[str]) -> None:
    answer = cli(*command, "--kind", "chatter")

    assert answer.code == 2
    assert "message" in answer.err
