"""The shared suite's part about what lies beside a log: streams, artifacts, notes and the text index."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.errors import (
    ArtifactDamaged,
    ArtifactNotFound,
    InvalidEvent,
    InvalidName,
    PlayheadError,
    SessionExists,
    SessionNotFound,
)
from playhead.model.ids import session_key
from playhead.stores.base import Store, TextFilter, TextRow
from playhead.testing.drafts import FIRST_AT, HOSTILE_NAMES, HOSTILE_TEXTS, draft, started
from playhead.testing.store_harness import KEY, StoreHarness, append, begun

OTHER = session_key("flaky-test", user="ada")
ANY = TextFilter()

HOSTILE_HASHES = (
    "",
    "../../etc/passwd",
    "/etc/passwd",
    "sha256-/../../etc/passwd",
    "sha256-" + "/" * 64,
    "sha256-" + "." * 64,
    "sha256-" + "g" * 64,
    "sha256-" + "0" * 63,
    "sha256-" + "0" * 65,
    "sha256-" + "0" * 64 + "\n",
    "sha256-" + "\u0660" * 64,
    "sha1-" + "0" * 64,
    "SHA256-" + "0" * 64,
    "0" * 64,
    "\0",
    "\ud83d",
    "%",
    "x" * 10_000,
)


class CompanionSuite(StoreHarness):
    """Promises about streams, artifacts, notes and the text index."""

    # Streams.

    def test_a_stream_that_was_begun_and_not_ended_is_left_with_its_chunks_in_order(self, store: Store) -> None:
        header = {"agent": "coordinator", "turn": "t1", "at": FIRST_AT, "extra": {"\ud83d": [None, 2**70]}}
        chunks = [("reasoning", "Let me "), ("text", "Hel"), ("text", ""), ("text", "lo\n\n"), ("reasoning", "end")]
        begun(store)
        store.streams.begin(KEY, "m1", header)
        for part, text in chunks:
            store.streams.add(KEY, "m1", part, text)
        (left,) = store.streams.left(KEY)

        assert (left.id, left.header, left.chunks) == ("m1", header, chunks)

    def test_several_streams_of_a_session_are_kept_apart(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER)
        for id in ("m2", "m1", "m10"):
            store.streams.begin(KEY, id, {"id": id})
        store.streams.begin(OTHER, "m1", {"id": "other"})
        for id in ("m1", "m2", "m1"):
            store.streams.add(KEY, id, "text", f"for {id};")
        store.streams.add(OTHER, "m1", "text", "for the other")
        store.streams.end(KEY, "m10")

        assert [(left.id, left.header, left.chunks) for left in store.streams.left(KEY)] == [
            ("m2", {"id": "m2"}, [("text", "for m2;")]),
            ("m1", {"id": "m1"}, [("text", "for m1;"), ("text", "for m1;")]),
        ]
        assert [left.chunks for left in store.streams.left(OTHER)] == [[("text", "for the other")]]

    def test_an_ended_stream_is_gone_and_its_id_can_be_used_again(self, store: Store) -> None:
        begun(store)
        for text in ("first", "second"):
            store.streams.begin(KEY, "m1", {})
            store.streams.add(KEY, "m1", "text", text)
            store.streams.end(KEY, "m1")
            store.streams.end(KEY, "m1")
        store.streams.end(KEY, "never begun")
        ended = store.streams.left(KEY)
        store.streams.begin(KEY, "m1", {"attempt": 3})

        assert ended == []
        assert [(left.header, left.chunks) for left in store.streams.left(KEY)] == [({"attempt": 3}, [])]

    def test_a_chunk_of_a_stream_that_was_not_begun_is_refused(self, store: Store) -> None:
        begun(store)
        for id in ("m1", "m1\n", ""):
            with pytest.raises(PlayheadError):
                store.streams.add(KEY, id, "text", "lost")

        assert store.streams.left(KEY) == []

    def test_a_header_that_json_cannot_hold_begins_nothing(self, store: Store) -> None:
        begun(store)
        with pytest.raises(InvalidEvent):
            store.streams.begin(KEY, "m1", {"at": float("nan")})

        assert store.streams.left(KEY) == []

    @pytest.mark.parametrize("text", HOSTILE_TEXTS)
    def test_chunks_and_ids_come_back_exactly(self, store: Store, text: str) -> None:
        """A provider may cut a message anywhere, between the two halves of a surrogate pair as well."""
        begun(store)
        store.streams.begin(KEY, f"m{text}", {text: text})
        store.streams.add(KEY, f"m{text}", "text", text)
        (left,) = store.streams.left(KEY)
        store.streams.end(KEY, f"m{text}")

        assert (left.id, left.header, left.chunks) == (f"m{text}", {text: text}, [("text", text)])
        assert store.streams.left(KEY) == []

    def test_streams_are_no_events(self, store: Store) -> None:
        begun(store)
        before = store.tip(KEY)
        store.streams.begin(KEY, "m1", {})
        store.streams.add(KEY, "m1", "text", "Hello")

        assert store.tip(KEY) == before
        assert store.seq_of(KEY, ["m1"]) == {}

    def test_streams_are_left_when_the_store_is_opened_again(self, store: Store, folder: Path) -> None:
        begun(store)
        for id in ("m1", "m2", "m3"):
            store.streams.begin(KEY, id, {"id": id})
            store.streams.add(KEY, id, "text", f"for {id}")
        store.streams.end(KEY, "m2")
        with contextlib.closing(self.reopen(store, folder)) as again:
            first = [(left.id, left.chunks) for left in again.streams.left(KEY)]
            again.streams.begin(KEY, "m4", {})
            again.streams.end(KEY, "m1")
            again.streams.add(KEY, "m4", "text", "for m4")
            second = [(left.id, left.chunks) for left in again.streams.left(KEY)]
            for id in ("m3", "m4"):
                again.streams.end(KEY, id)

            assert first == [("m1", [("text", "for m1")]), ("m3", [("text", "for m3")])]
            assert second == [("m3", [("text", "for m3")]), ("m4", [("text", "for m4")])]
            assert again.streams.left(KEY) == []

    # Artifacts.

    @pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n\0", bytes(range(256)) * 5_000])
    def test_an_artifact_comes_back_under_the_hash_of_its_bytes(self, store: Store, data: bytes) -> None:
        begun(store)
        ref = store.artifacts.put(KEY, data)

        assert (ref.hash, ref.size) == (f"sha256-{hashlib.sha256(data).hexdigest()}", len(data))
        assert store.artifacts.get(KEY, ref.hash) == data
        assert store.artifacts.hashes(KEY) == [ref.hash]

    def test_the_same_bytes_are_kept_once(self, store: Store) -> None:
        begun(store)
        refs = [store.artifacts.put(KEY, data) for data in (b"chart", b"report", b"chart")]

        assert refs[0] == refs[2]
        assert store.artifacts.hashes(KEY) == sorted({ref.hash for ref in refs})
        assert store.artifacts.get(KEY, refs[0].hash) == b"chart"

    def test_artifacts_belong_to_their_session(self, store: Store) -> None:
        begun(store)
        begun(store, OTHER)
        ref = store.artifacts.put(KEY, b"chart")
        with pytest.raises(ArtifactNotFound):
            store.artifacts.get(OTHER, ref.hash)
        store.artifacts.put(OTHER, b"chart")
        store.delete(KEY)

        assert store.artifacts.hashes(OTHER) == [ref.hash]
        assert store.artifacts.get(OTHER, ref.hash) == b"chart"

    def test_bytes_are_kept_for_no_session_that_is_not_there(self, store: Store) -> None:
        """They would belong to whatever session is given that id later."""
        with pytest.raises(SessionNotFound):
            store.artifacts.put(KEY, b"chart")
        begun(store)

        assert store.artifacts.hashes(KEY) == []

    def test_a_session_can_have_artifacts_from_its_first_moment_on(self, store: Store) -> None:
        store.create(KEY, [started()], artifacts=iter([b"chart", b"report", b"chart"]))
        hashes = store.artifacts.hashes(KEY)

        assert sorted(store.artifacts.get(KEY, hash) for hash in hashes) == [b"chart", b"report"]

    def test_a_session_that_cannot_begin_keeps_no_artifacts(self, store: Store) -> None:
        def unreadable() -> Iterator[bytes]:
            yield b"chart"
            raise ArtifactDamaged("the bytes to be copied are not what they were")

        with pytest.raises(InvalidEvent):
            store.create(KEY, [draft()], artifacts=[b"chart"])
        with pytest.raises(ArtifactDamaged):
            store.create(KEY, [started()], artifacts=unreadable())
        begun(store)
        with pytest.raises(SessionExists):
            store.create(KEY, [started()], artifacts=[b"chart"])

        assert store.artifacts.hashes(KEY) == []

    def test_bytes_that_were_never_kept_are_not_found(self, store: Store) -> None:
        begun(store)
        hash = f"sha256-{hashlib.sha256(b'never').hexdigest()}"
        for _ in range(2):
            with pytest.raises(ArtifactNotFound) as error:
                store.artifacts.get(KEY, hash)
            store.artifacts.put(KEY, b"something else")

        assert error.value.name == hash

    @pytest.mark.parametrize("hash", HOSTILE_HASHES)
    def test_a_name_that_is_no_hash_is_not_found(self, store: Store, hash: str) -> None:
        begun(store)
        store.artifacts.put(KEY, b"chart")
        with pytest.raises(ArtifactNotFound):
            store.artifacts.get(KEY, hash)

        assert len(store.artifacts.hashes(KEY)) == 1

    def test_damaged_bytes_are_an_error_and_are_left_as_they_are(self, store: Store, folder: Path) -> None:
        begun(store)
        ref = store.artifacts.put(KEY, b"a chart")
        if not self.damage_artifact(store, folder, KEY, ref.hash):
            pytest.skip("this store's artifacts cannot be changed behind its back")
        for _ in range(2):
            with pytest.raises(ArtifactDamaged):
                store.artifacts.get(KEY, ref.hash)

        assert store.artifacts.hashes(KEY) == [ref.hash]

    # Notes.

    def test_the_newest_note_of_a_name_is_in_force_whatever_the_clock_says(self, store: Store) -> None:
        store.notes.put("state:user", "ada", {"name": "Ada"}, id="n1", at=FIRST_AT)
        store.notes.put("state:user", "ada", {"name": "Ada L."}, id="n2", at=FIRST_AT - 60)

        assert store.notes.get("state:user", "ada") == {"name": "Ada L."}
        assert store.notes.all("state:user") == {"ada": {"name": "Ada L."}}

    def test_a_note_put_again_changes_nothing(self, store: Store) -> None:
        store.notes.put("settings", "days", {"value": 1}, id="n1", at=FIRST_AT)
        store.notes.put("settings", "days", {"value": 2}, id="n2", at=FIRST_AT)
        store.notes.put("settings", "days", {"value": 1}, id="n1", at=FIRST_AT + 1)
        store.notes.put("settings", "days", {"value": 3}, id="n1", at=FIRST_AT + 2)
        store.notes.put("settings", "hours", {"value": 3}, id="n2", at=FIRST_AT + 3)

        assert store.notes.all("settings") == {"days": {"value": 2}}

    def test_a_note_that_replaces_is_the_only_one_of_its_name(self, store: Store) -> None:
        """Ids of notes that went are free again: that tells that nothing is left of them."""
        store.notes.put("import", "a", {"line": 1}, id="n1", at=FIRST_AT)
        store.notes.put("import", "b", {"line": 5}, id="n2", at=FIRST_AT)
        store.notes.put("Import", "a", {"line": 6}, id="n3", at=FIRST_AT)
        store.notes.replace("import", "a", {"line": 2}, id="n4", at=FIRST_AT - 60)
        store.notes.replace("import", "a", {"line": 3}, id="n5", at=FIRST_AT)
        store.notes.replace("import", "a", {"line": 9}, id="n5", at=FIRST_AT)
        store.notes.replace("import", "a", {"line": 9}, id="n2", at=FIRST_AT)
        with pytest.raises(InvalidEvent):
            store.notes.replace("import", "a", {"line": float("nan")}, id="n6", at=FIRST_AT)
        before = store.notes.all("import")
        store.notes.put("import", "c", {"line": 7}, id="n1", at=FIRST_AT)

        assert before == {"a": {"line": 3}, "b": {"line": 5}}
        assert store.notes.all("import") == {**before, "c": {"line": 7}}
        assert store.notes.all("Import") == {"a": {"line": 6}}

    def test_notes_are_listed_in_order_of_name(self, store: Store) -> None:
        names = ["b", "a", "B", "a b", "\u00e9", "e\u0301", "\U0001f98a", "\uffff", "10", "9"]
        for number, name in enumerate(names):
            store.notes.put("purged", name, {"number": number}, id=f"n{number}", at=FIRST_AT)

        assert list(store.notes.all("purged")) == sorted(names)

    def test_topics_and_names_are_exact(self, store: Store) -> None:
        store.notes.put("import", "a.jsonl", {"line": 3}, id="n1", at=FIRST_AT)
        missing = [("Import", "a.jsonl"), ("import", "A.jsonl"), ("import", "a%"), ("import ", "a.jsonl"), ("", "")]

        assert [store.notes.get(topic, name) for topic, name in missing] == [None] * 5
        assert store.notes.all("impor") == {}

    @pytest.mark.parametrize("name", HOSTILE_NAMES)
    def test_a_note_with_a_strange_name_comes_back(self, store: Store, name: str) -> None:
        body = {text: [text, 2**70, None] for text in HOSTILE_TEXTS}
        store.notes.put(name, name, body, id=name, at=FIRST_AT)

        assert store.notes.get(name, name) == body

    def test_a_note_that_cannot_be_kept_is_refused(self, store: Store) -> None:
        with pytest.raises(InvalidEvent):
            store.notes.put("t", "n", {"value": float("nan")}, id="n1", at=FIRST_AT)
        for bad in ("", "\ud83d", "n\0", "n" * 10_000):
            for topic, name, id in ((bad, "n", "n1"), ("t", bad, "n1"), ("t", "n", bad)):
                with pytest.raises(InvalidName):
                    store.notes.put(topic, name, {}, id=id, at=FIRST_AT)
        store.notes.put("t", "n", {"value": 1}, id="n1", at=FIRST_AT)

        assert store.notes.all("t") == {"n": {"value": 1}}

    def test_nobody_can_change_a_kept_note_through_what_they_gave_or_got(self, store: Store) -> None:
        given = {"list": [1]}
        store.notes.put("t", "n", given, id="n1", at=FIRST_AT)
        got = store.notes.get("t", "n")
        for body in (given, got or {}, store.notes.all("t")["n"]):
            body["list"].append(2)

        assert store.notes.get("t", "n") == {"list": [1]}

    # The text index.

    def test_indexed_text_is_found_and_the_index_says_how_far_it_reaches(self, store: Store) -> None:
        begun(store, count=4)
        before = store.text.indexed_seq(KEY)
        store.text.add(KEY, [TextRow(2, "the deploy key"), TextRow(4, "connection reset")], up_to=4)

        assert before == 0
        assert store.text.indexed_seq(KEY) == 4
        assert _found(store, '"deploy"') == [2]
        assert _found(store, '"nothing"') == []

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ('"deploy" AND "key"', [2, 5]),
            ('"deploy" "key"', [2, 5]),
            ('"deploy key"', [2]),
            ('"deploy" NOT "key"', [3]),
            ('"reset" OR "deploy"', [2, 3, 4, 5]),
            ('("reset" OR "key") AND "deploy"', [2, 5]),
            ('"conn"*', [4]),
            ('"conn"', []),
            ('"deploys"', [2, 3, 5]),
            ('"DEPLOY"', [2, 3, 5]),
            ('"gruße"', [6]),
            ('"gru\u0308ße"', [6]),
            ('"grusse"', []),
            ('"de""ploy"', []),
            ('"日本"', [6]),
        ],
    )
    def test_expressions_find_what_they_say(self, store: Store, expression: str, expected: list[int]) -> None:
        begun(store, count=6)
        texts = ["the deploy key", "deploying", "connection reset", "key deployed", "grüße aus 日本"]
        store.text.add(KEY, [TextRow(seq, text) for seq, text in enumerate(texts, 2)], up_to=6)

        assert sorted(_found(store, expression)) == expected

    def test_the_best_match_comes_first_and_limits_hold(self, store: Store) -> None:
        begun(store, count=4)
        rows = [TextRow(2, "key " + "other words " * 50), TextRow(3, "key key key"), TextRow(4, "nothing of it")]
        store.text.add(KEY, rows, up_to=4)
        matches = store.text.match('"key"', where=ANY, limit=10)

        assert [match.seq for match in matches] == [3, 2]
        assert matches[0].score > matches[1].score
        assert [match.seq for match in store.text.match('"key"', where=ANY, limit=1)] == [3]
        assert [store.text.match('"key"', where=ANY, limit=limit) for limit in (0, -1)] == [[], []]

    def test_rows_that_are_indexed_already_are_ignored(self, store: Store) -> None:
        begun(store, count=4)
        store.text.add(KEY, [TextRow(2, "first")], up_to=3)
        store.text.add(KEY, [TextRow(2, "again"), TextRow(3, "again"), TextRow(4, "new")], up_to=4)
        store.text.add(KEY, [TextRow(4, "again")], up_to=4)
        store.text.add(KEY, [], up_to=2)

        assert sorted(_found(store, '"first" OR "new"')) == [2, 4]
        assert _found(store, '"again"') == []
        assert store.text.indexed_seq(KEY) == 4

    def test_events_without_text_count_as_indexed(self, store: Store) -> None:
        begun(store, count=3)
        store.text.add(KEY, [], up_to=3)

        assert store.text.indexed_seq(KEY) == 3
        assert _found(store, '"x"') == []

    def test_all_sessions_are_searched_or_those_named(self, store: Store) -> None:
        third = session_key("third")
        for key in (KEY, OTHER, third):
            begun(store, key, count=2)
            store.text.add(key, [TextRow(2, "key")], up_to=2)

        def found(*keys: str) -> object:
            named = {"first": KEY, "other": OTHER, "missing": session_key("missing"), "third": third}
            matches = store.text.match('"key"', keys=[named[name] for name in keys], where=ANY, limit=10)
            return {(match.key, match.seq) for match in matches}

        everywhere = store.text.match('"key"', where=ANY, limit=10)

        assert {(match.key, match.seq) for match in everywhere} == {(KEY, 2), (OTHER, 2), (third, 2)}
        assert found("other") == {(OTHER, 2)}
        assert found("third", "first") == {(KEY, 2), (third, 2)}
        assert found("missing", "first") == {(KEY, 2)}
        assert found("missing") == found() == set()

    def test_a_match_satisfies_every_filter(self, store: Store) -> None:
        """K14."""
        begun(store)
        append(
            store,
            draft(n=2, agent="user", turn="t1"),
            draft(n=3, agent="coordinator", turn="t1"),
            draft("note", n=4, agent="coordinator", turn="t2"),
            draft(n=5),
        )
        store.text.add(KEY, [TextRow(seq, "key") for seq in (2, 3, 4, 5)], up_to=5)

        def found(where: TextFilter) -> list[int]:
            return sorted(match.seq for match in store.text.match('"key"', where=where, limit=10))

        assert found(ANY) == [2, 3, 4, 5]
        assert found(TextFilter(agents=("coordinator",))) == [3, 4]
        assert found(TextFilter(agents=("coordinator", "user"), kinds=("message",))) == [2, 3]
        assert found(TextFilter(turns=("t1", "t2"))) == [2, 3, 4]
        assert found(TextFilter(agents=("Coordinator",))) == found(TextFilter(turns=("t",))) == []
        assert found(TextFilter(since=FIRST_AT + 3)) == [3, 4, 5]
        assert found(TextFilter(until=FIRST_AT + 3)) == [2]
        assert found(TextFilter(since=FIRST_AT + 3, until=FIRST_AT + 5, agents=("coordinator",))) == [3, 4]
        assert found(TextFilter(kinds=("note",), turns=("t1",))) == []

    def test_the_limit_counts_what_satisfies_the_filter(self, store: Store) -> None:
        begun(store)
        append(store, *(draft(n=n, agent="user" if n > 50 else "coordinator") for n in range(2, 60)))
        store.text.add(KEY, [TextRow(seq, "key") for seq in range(2, 60)], up_to=59)
        matches = store.text.match('"key"', where=TextFilter(agents=("user",)), limit=4)

        assert len(matches) == 4
        assert all(match.seq > 50 for match in matches)

    def test_a_dropped_index_finds_nothing_and_can_be_built_again(self, store: Store) -> None:
        for key in (KEY, OTHER):
            begun(store, key, count=2)
            store.text.add(key, [TextRow(2, "key")], up_to=2)
        store.text.drop(KEY)
        one = (store.text.indexed_seq(KEY), store.text.indexed_seq(OTHER), _found(store, '"key"'))
        store.text.drop()
        none = (store.text.indexed_seq(KEY), store.text.indexed_seq(OTHER), _found(store, '"key"'))
        store.text.add(KEY, [TextRow(2, "another")], up_to=2)

        assert one == (0, 2, [2])
        assert none == (0, 0, [])
        assert _found(store, '"another"') == [2]
        assert _found(store, '"key"') == []

    @pytest.mark.parametrize("expression", ["", '"', '"a" AND', "(", "a-b", "NOT", 'nothing:"a"', "*"])
    def test_a_malformed_expression_is_an_error_of_no_driver(self, store: Store, expression: str) -> None:
        begun(store, count=2)
        store.text.add(KEY, [TextRow(2, "key")], up_to=2)
        with pytest.raises(ValueError):
            store.text.match(expression, where=ANY, limit=1)

        assert _found(store, '"key"') == [2]


def _found(store: Store, expression: str) -> list[int]:
    return [match.seq for match in store.text.match(expression, where=ANY, limit=100)]
