"""The passages that answer a question: the best words of people and agents, of several sessions, each once."""

import pytest

from playhead import Sessions
from playhead.agents.built_in.passages import (
    OF_ONE_SESSION_MAX,
    PASSAGE_CHARS_MAX,
    PASSAGES_MAX,
    Passage,
    find_passages,
)
from playhead.errors import SessionNotFound


def ids(passages: list[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def test_what_was_said_comes_before_what_a_tool_gave_back(sessions: Sessions) -> None:
    with sessions.create("a").turn("Look.") as turn:
        call = turn.tool_call("grep", {"pattern": "x"})
        turn.tool_result(call, "quokka enclosure: 12 matches in zoo.txt, 3 in animals.txt")
        said = turn.say("The quokka lives in the enclosure by the gate.")
    found = find_passages(sessions, "quokka enclosure").passages

    assert [passage.tool for passage in found] == [None, "grep"]
    assert found[0].id == f"a#{said.seq}"


def test_a_statement_comes_before_a_question(sessions: Sessions) -> None:
    with sessions.create("a").turn("Where does the quokka live in winter?") as turn:
        said = turn.say("In winter the quokka will live in a warm house.")
    found = find_passages(sessions, "where will the quokka live").passages

    assert found[0].id == f"a#{said.seq}"


def test_reasoning_is_marked(sessions: Sessions) -> None:
    with sessions.create("a").turn("Look.") as turn:
        turn.think("Perhaps the quokka is a marsupial.")
    found = find_passages(sessions, "quokka").passages

    assert [passage.is_thought for passage in found] == [True]


def test_passages_that_say_the_same_are_shown_once(sessions: Sessions) -> None:
    for name in "abc":
        with sessions.create(name).turn("Look.") as turn:
            turn.say(f"The quokka lives in the enclosure by the northern gate. ({name})")
    found = find_passages(sessions, "quokka").passages

    assert len(found) == 1


def test_what_only_repeats_the_question_is_no_answer(sessions: Sessions) -> None:
    with sessions.create("a").turn("The quokka?") as turn:
        turn.say("Quokka!")
    found = find_passages(sessions, "What is the quokka?")

    assert found.passages == []
    assert found.session_count == 1


def test_one_session_does_not_fill_the_answer_while_others_have_something(sessions: Sessions) -> None:
    colours = "amber beige coral denim ebony fuchsia".split()
    with sessions.create("loud").turn("Look.") as turn:
        for colour in colours:
            turn.say(f"A quokka of {colour} fur sat in tree number {colours.index(colour)} near {colour * 2}.")
    with sessions.create("quiet").turn("Look.") as turn:
        quiet = turn.say("Nobody here has a quokka, and the wombat is shy.")
    found = find_passages(sessions, "quokka")
    alone = find_passages(sessions, "quokka fur")

    assert f"quiet#{quiet.seq}" in ids(found.passages)
    assert len(found.passages) == PASSAGES_MAX
    assert len([id for id in ids(alone.passages) if id.startswith("loud#")]) > OF_ONE_SESSION_MAX


def test_the_turn_that_asks_is_left_out_and_its_session_is_marked(sessions: Sessions) -> None:
    with sessions.create("here") as session:
        with session.turn("The quokka is called Lilo.") as turn:
            turn.say("Noted.")
        with session.turn("What is the quokka of the zoo called?") as asking:
            found = find_passages(sessions, "quokka called", here="here", turn=asking.turn_id).passages
            careless = find_passages(sessions, "quokka called", here="here").passages

    assert [(passage.text, passage.is_here) for passage in found] == [("The quokka is called Lilo.", True)]
    assert "What is the quokka of the zoo called?" in [passage.text for passage in careless]


def test_an_abandoned_branch_comes_after_the_current_path_and_says_so(sessions: Sessions) -> None:
    with sessions.create("a") as session:
        with session.turn("Look.") as turn:
            turn.say("The quokka was seen at the old well by night.")
        session.rewind(turn=1)
        with session.turn("Look again.") as turn:
            turn.say("The quokka was seen at the new bridge at noon.")
    found = find_passages(sessions, "quokka seen").passages

    assert [(passage.is_live, "bridge" in passage.text) for passage in found] == [(True, True), (False, False)]


def test_further_passages_leave_out_those_that_were_shown(filled: Sessions) -> None:
    first = find_passages(filled, "upload", count=1)
    more = find_passages(filled, "upload", count=1, without=ids(first.passages))

    assert first.more_count >= 1
    assert len(more.passages) == 1
    assert ids(more.passages) != ids(first.passages)
    assert more.more_count == first.more_count - 1


def test_a_passage_is_exactly_what_is_stored_and_short(filled: Sessions) -> None:
    found = find_passages(filled, "connection reset upload deploy vault").passages
    stored = {
        passage.id: str(filled.get(passage.id.partition("#")[0]).event(int(passage.id.partition("#")[2])).body)
        for passage in found
    }

    assert found
    assert all(len(passage.text) <= PASSAGE_CHARS_MAX for passage in found)
    assert all(passage.text.split("\n")[0].strip() in stored[passage.id] for passage in found)
    assert [passage.is_cut_after for passage in found if passage.tool == "run_tests" and "reset" in passage.text] == [
        True
    ]


@pytest.mark.parametrize(
    "query", ["", "\0", '"unbalanced', "agent:coordinator", "is:error", "-staging", "* : (", "\ud800"]
)
def test_nothing_that_can_be_asked_is_an_error(filled: Sessions, query: str) -> None:
    found = find_passages(filled, query)

    assert found.session_count == 3
    assert found.problem_count == 0


def test_a_session_that_goes_away_meanwhile_is_not_quoted(filled: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    read = filled.store.events_at

    def gone(key, positions):  # type: ignore[no-untyped-def]
        if key.id == "deploy-0001":
            raise SessionNotFound(key.id)
        return read(key, positions)

    search = Sessions.search

    def then_gone(*args, **options):  # type: ignore[no-untyped-def]
        found = search(*args, **options)
        monkeypatch.setattr(filled.store, "events_at", gone)
        return found

    monkeypatch.setattr(Sessions, "search", then_gone)
    found = find_passages(filled, "deploy key vault upload")

    assert found.passages
    assert not [passage for passage in found.passages if passage.id.startswith("deploy-0001")]
