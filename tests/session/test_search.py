"""A question finds the event, in one session or all, and is never answered from a stale index in silence."""

import pytest

from playhead.errors import InvalidName
from playhead.search.find import Found
from playhead.session import Sessions


def places(found: Found) -> list[tuple[str, int]]:
    return [(hit.session, hit.seq) for hit in found.hits]


@pytest.fixture
def filled(sessions: Sessions) -> Sessions:
    with sessions.create("upload").turn("Why does test_upload fail with ERR_CONNECTION_RESET?") as turn:
        call = turn.tool_call("run_tests", {"path": "tests/upload/test_retry.py"})
        turn.tool_result(call, {"log": "socket closed by peer"}, is_error=True)
        with turn.subagent("researcher", "read the retry policy") as run:
            run.say("the backoff is exponential")
        turn.say("The proxy resets idle connections.")
    with sessions.create("kitchen").turn("数据库连接失败了怎么办") as turn:
        turn.say("请重启服务 and have a café crème 🚀")
    return sessions


@pytest.mark.parametrize(
    ("query", "session"),
    [
        ("upload", "upload"),
        ("fail why", "upload"),
        ("err_connection_reset", "upload"),
        ("connection reset", "upload"),
        ("test_retry.py", "upload"),
        ("tests/upload", "upload"),
        ("backoff", "upload"),
        ('"closed by peer"', "upload"),
        ("expon*", "upload"),
        ("数据库", "kitchen"),
        ("连接失败", "kitchen"),
        ("cafe", "kitchen"),
        ("🚀", "kitchen"),
        ("role:tool peer", "upload"),
        ("tool:run_tests peer", "upload"),
        ("agent:coordinator/researcher:1 backoff", "upload"),
        ("nothing OR crème", "kitchen"),
        ("is:error peer", "upload"),
        ("session:kitchen crème", "kitchen"),
    ],
)
def test_what_a_person_types_finds_the_session(filled: Sessions, query: str, session: str) -> None:
    """K14, K15, K19."""
    found = filled.search(query)

    assert found.hits, query
    assert found.hits[0].session == session


def test_all_that_was_recorded_is_found(sessions: Sessions) -> None:
    """K14: messages, reasoning, tools, jobs, sub-agents, channels, triggers, summaries, questions, artifact names."""
    session = sessions.create("s", title="marble title")
    with session.turn("granite prompt") as turn:
        turn.think("basalt reasoning")
        call = turn.tool_call("quarry", {"stone": "gneiss argument"})
        turn.tool_result(call, {"report": ["slate result"]})
        turn.tool_result("call-2", "obsidian failure", is_error=True)
        turn.fire("nightly", prompt="flint trigger")
        turn.inject("chert reminder", source="hook")
        job = turn.job("grind", {"grain": "emery"})
        job.done("pumice dust")
        with turn.subagent("researcher", "dolerite task") as run:
            run.say("schist finding")
        turn.set_state({"mineral": "feldspar"})
        session.send("review", "travertine message", sender="coordinator", turn=turn.turn_id)
        session.save_artifact("limestone.png", b"bytes")
        turn.say("diorite answer")
    first, last = session.event(1).id, session.event(session.seq).id
    session.append("compaction", {"from": first, "to": last, "summary": "gabbro summary"})
    asked = {"interrupt": "ask-1", "reason": "confirmation", "question": "andesite question"}
    session.append("interrupt_requested", asked)
    words = (
        "marble granite basalt quarry gneiss slate obsidian flint chert emery pumice dolerite schist feldspar "
        "travertine limestone diorite gabbro andesite"
    )
    missing = [word for word in words.split() if not sessions.search(word).hits]

    assert missing == []


@pytest.mark.parametrize("query", ['"unbalanced', "AND", "NEAR(", "*", "col:", "a:b:c", "\0", "'; DROP TABLE", "-", ""])
def test_nothing_that_can_be_typed_is_an_error(filled: Sessions, query: str) -> None:
    """K15."""
    filled.search(query)


def test_a_search_sees_the_last_event_also_in_the_middle_of_a_turn(sessions: Sessions) -> None:
    """K16, S6."""
    session = sessions.create("s")
    with session.turn("begin") as turn:
        event = turn.say("the zeppelin has landed")
        found = sessions.search("zeppelin")

    assert places(found) == [("s", event.seq)]
    assert found.indexed_up_to == {"s": event.seq}


def test_filters_hold_and_exclude_each_other(filled: Sessions) -> None:
    """K14."""
    by_time = filled.search("upload", until=0.0)
    live = filled.search("upload", branch="live")
    filled.get("upload").rewind(turn=1)

    assert by_time.hits == []
    assert live.hits
    assert filled.search("upload", branch="live").hits == []
    assert {hit.is_live for hit in filled.search("test_upload").hits} == {False}
    assert filled.search("upload", role="tool", tool="no_such").hits == []
    assert filled.search("agent:user upload", agent="coordinator").hits == []


def test_filters_alone_answer_with_the_newest_events(filled: Sessions) -> None:
    found = filled.search("role:assistant", k=2)

    assert [hit.role for hit in found.hits] == ["assistant", "assistant"]
    assert found.hits[0].at >= found.hits[1].at


def test_a_hit_in_a_forks_copy_is_left_out_beside_the_event_itself(filled: Sessions) -> None:
    """K14."""
    fork = filled.get("upload").fork()
    with fork.turn("and the proxy?") as turn:
        turn.say("It idles.")
    found = filled.search("resets idle connections")

    assert ("upload", 9) in places(found) or any(hit.session == "upload" for hit in found.hits)
    ids = [hit.event_id for hit in found.hits]
    assert len(ids) == len(set(ids))
    assert filled.search("resets idle", session=fork.id).hits[0].session == fork.id


def test_a_snippet_marks_what_matched_in_the_stored_text(filled: Sessions) -> None:
    """K16."""
    hit = filled.search("proxy").hits[0]
    marked = [hit.snippet.text[start:end] for start, end in hit.snippet.marks]

    assert marked == ["proxy"]
    assert hit.snippet.text == "The proxy resets idle connections."


def test_an_index_that_was_dropped_is_built_again(filled: Sessions) -> None:
    """S6."""
    before = places(filled.search("upload"))
    filled.store.text.drop()

    assert places(filled.search("upload")) == before


def test_an_unknown_mode_is_an_error_that_names_the_modes(filled: Sessions) -> None:
    with pytest.raises(InvalidName, match="auto, fts"):
        filled.search("x", mode="psychic")


def test_base64_and_signatures_are_never_found(sessions: Sessions) -> None:
    with sessions.create("s").turn([{"type": "blob", "mime_type": "image/png", "content": "aGVsbG93b3JsZA"}]) as turn:
        turn.say([{"type": "reasoning", "content": "hm", "extra": {"signature": "sigsigsig"}}])

    assert sessions.search("aGVsbG93b3JsZA").hits == []
    assert sessions.search("sigsigsig").hits == []


@pytest.mark.parametrize("mode", ["auto", "semantic", "hybrid"])
def test_without_vectors_every_mode_falls_back_to_the_full_text_and_says_so(filled: Sessions, mode: str) -> None:
    """K18."""
    found = filled.search("upload", mode=mode)

    assert found.mode == "fts"
    assert places(found) == places(filled.search("upload", mode="fts"))


def test_a_question_finds_the_middle_of_a_talk_about_it_before_a_lone_remark(sessions: Sessions) -> None:
    """K14: what an event's neighbours say counts for it, where the question is a sentence."""
    talk = ["the parrot flew", "the harbour parrot", "the parrot slept"]
    said = [*talk, *["it rained and nothing happened"] * 20, "the harbour parrot", "so it goes"]
    with sessions.create("talk") as session:
        for text in said:
            session.append("message", {"role": "user", "parts": [{"type": "text", "content": text}]})
        middle = session.events(kinds=["message"])[1].seq

    hits = sessions.search("where was the parrot of the harbour", kind="message").hits

    assert hits[0].seq == middle
    assert len(hits) == 4  # Nothing comes in that does not match.
