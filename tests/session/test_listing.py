"""Lists show every session once, in one order, with nothing hidden."""

from pathlib import Path

import pytest

from playhead.errors import InvalidName
from playhead.session import Sessions


def filled(sessions: Sessions, count: int) -> list[str]:
    ids = []
    for number in range(count):
        with sessions.create(title=f"Session {number:02}", cwd=f"/project/{number % 2}") as session:
            with session.turn(f"prompt {number}") as turn:
                turn.say("answer")
            ids.append(session.id)
    return ids


def test_a_row_says_what_a_list_needs(sessions: Sessions) -> None:
    """K20."""
    with sessions.create(title="Flaky", labels=["ci"], cwd="/project") as session:
        with session.turn("Why  does\nit fail?") as turn:
            call = turn.tool_call("run", {})
            turn.tool_result(call, 1)
            turn.say("It times out.", usage={"input_tokens": 7, "output_tokens": 3})
    row = sessions.list().items[0].summary

    assert row is not None
    assert (row.title, row.preview, row.last_agent) == ("Flaky", "Why does it fail?", "It times out.")
    assert (row.turn_count, row.user_message_count, row.tool_call_count) == (1, 1, 1)
    assert (row.input_tokens, row.output_tokens) == (7, 3)
    assert (row.labels, row.agents, row.cwd, row.status) == (("ci",), ("coordinator",), "/project", "open")
    assert row.event_count == session.seq


def test_a_session_without_a_title_is_called_after_its_first_prompt(sessions: Sessions) -> None:
    sessions.create("empty")
    with sessions.create("asked").turn("How do I begin?"):
        pass
    titles = {row.id: row.summary.title for row in sessions.list().items if row.summary}

    assert titles == {"empty": "New session", "asked": "How do I begin?"}


def test_pages_hold_every_session_once_and_the_cursor_survives_a_change(sessions: Sessions) -> None:
    """K20."""
    ids = filled(sessions, 7)
    seen, cursor = [], None
    while True:
        page = sessions.list(limit=3, cursor=cursor)
        seen += [row.id for row in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert seen == ids[::-1]
    assert page.total == 7


def test_every_order_is_the_one_it_says(sessions: Sessions) -> None:
    """K23."""
    ids = filled(sessions, 3)
    sessions.get(ids[0]).rename("A first title")

    assert [row.id for row in sessions.list(sort="last_active").items] == [ids[0], ids[2], ids[1]]
    assert [row.id for row in sessions.list(sort="created").items] == ids[::-1]
    assert [row.id for row in sessions.list(sort="title").items] == ids


def test_filters_narrow_and_nothing_else_hides_a_session(sessions: Sessions) -> None:
    """K23."""
    ids = filled(sessions, 4)
    sessions.get(ids[1]).set_status("archived")

    assert {row.id for row in sessions.list(cwd="/project/0").items} == {ids[0], ids[2]}
    assert [row.id for row in sessions.list(status="archived").items] == [ids[1]]
    assert [row.id for row in sessions.list(query="session 03").items] == [ids[3]]
    assert {row.id for row in sessions.list(agent="coordinator").items} == set(ids)
    assert sessions.list(agent="nobody").items == []


def test_a_wrong_order_or_cursor_is_an_error_that_says_so(sessions: Sessions) -> None:
    filled(sessions, 2)
    cursor = sessions.list(limit=1).next_cursor
    with pytest.raises(InvalidName, match="sort must be one of"):
        sessions.list(sort="colour")
    for bad, sort in (("nonsense", "last_active"), ("é", "last_active"), (cursor, "title")):
        with pytest.raises(InvalidName, match="cursor"):
            sessions.list(cursor=bad, sort=sort)


def test_a_listing_row_that_is_behind_is_worked_out_again(sessions: Sessions) -> None:
    """K21."""
    session = sessions.create("s")
    session.append("message", {"role": "user", "parts": [{"type": "text", "content": "hello"}]}, agent="user")
    row = sessions.list().items[0].summary

    assert row is not None
    assert (row.seq, row.last_user) == (2, "hello")


def test_a_file_that_cannot_be_read_is_a_row_that_says_why(tmp_path: Path) -> None:
    """K21."""
    import playhead

    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("good")
        (tmp_path / "bad.playhead").write_bytes(b"not a database at all" * 100)
        (tmp_path / "empty.playhead").write_bytes(b"")
        rows = {row.id: row.problem for row in sessions.list().items}
        found = sessions.search("anything")

    assert rows["good"] is None
    assert "not an SQLite file" in (rows["bad"] or "")
    assert rows["empty"]
    assert found.session_count == 1


def test_a_deleted_session_is_gone_and_its_id_can_be_used_again(sessions: Sessions) -> None:
    """K23."""
    session = sessions.create("s")
    with session.turn("find the canary") as turn:
        turn.say("tweet")
    session.save_artifact("a", b"bytes")
    assert sessions.search("canary").hits
    sessions.delete("s")
    again = sessions.create("s")

    assert sessions.search("canary").hits == []
    assert again.artifacts() == {}
    assert (again.seq, again.turn_count) == (1, 0)
    assert sessions.store.artifacts.hashes(again.key) == []


def test_a_list_of_bundles_says_what_each_takes_on_disk(tmp_path: Path) -> None:
    """K24."""
    import playhead

    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("small")
        with sessions.create("large").turn("Read it") as turn:
            turn.say("word " * 100_000)
        sizes = {row.id: row.size_bytes or 0 for row in sessions.list().items}
        total = sessions.store.size_bytes()

    assert 0 < sizes["small"] < 500_000 < sizes["large"]
    assert total >= sum(sizes.values())


def test_a_directory_that_is_moved_takes_its_sessions_along(tmp_path: Path) -> None:
    """K22."""
    import playhead

    with playhead.open(f"bundles:{tmp_path / 'here'}") as sessions:
        ids = filled(sessions, 3)
        sessions.get(ids[0]).save_artifact("plot", b"bytes")
        before = [row.summary for row in sessions.list().items]
    (tmp_path / "here").rename(tmp_path / "there")
    with playhead.open(f"bundles:{tmp_path / 'there'}") as sessions:
        after = [row.summary for row in sessions.list().items]
        artifact = sessions.get(ids[0]).artifact("plot")
        found = {hit.session for hit in sessions.search("prompt").hits}

    assert after == before
    assert artifact == b"bytes"
    assert found == set(ids)


def test_deleting_a_bundle_gives_its_space_back_at_once(tmp_path: Path) -> None:
    """Z16."""
    import playhead

    with playhead.open(f"bundles:{tmp_path}") as sessions:
        sessions.create("kept")
        with sessions.create("gone").turn("Read it") as turn:
            turn.say("word " * 200_000)
        sessions.get("gone").save_artifact("plot", b"bytes" * 100_000)
        before = sessions.store.size_bytes()
        sessions.delete("gone")
        after = sessions.store.size_bytes()

    assert before > 1_500_000
    assert before - after > 1_300_000
