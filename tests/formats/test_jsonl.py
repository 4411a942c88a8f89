"""JSON Lines: what goes out comes in again, event for event with the same hashes, in every kind of store."""

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

import playhead
from playhead import Sessions
from playhead.errors import ImportFailed, SessionBusy
from playhead.formats.jsonl import Export, OnConflict, import_jsonl, is_export, write_session
from playhead.formats.jsonl.lines import CHUNK_BYTES
from playhead.formats.redaction import Redactor
from playhead.model.event import Draft
from playhead.model.ids import SessionKey, session_key
from playhead.stores.base import Record
from playhead.testing.drafts import HOSTILE_NAMES, HOSTILE_TEXTS
from playhead.testing.replay import all_records
from tests.formats.exported_samples import UPLOAD, lines_of, opened, upload
from tests.formats.jsonl_reader import read
from tests.strategies import json_objects, names


@pytest.fixture
def source() -> Iterator[Sessions]:
    with opened("memory:") as sessions:
        yield sessions


@pytest.fixture(params=["memory:", "sqlite:{}/sessions.db", "bundles:{}/sessions"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sessions]:
    with opened(request.param.format(tmp_path)) as sessions:
        yield sessions


def test_a_session_comes_back_with_equal_hashes_artifacts_branches_and_title(
    source: Sessions, target: Sessions
) -> None:
    """P7."""
    made = upload(source)
    (taken,) = import_jsonl(target, io.BytesIO(lines_of(source, made)))
    session = target.get(UPLOAD)
    (row,) = target.list().items

    assert (taken.outcome, taken.added_count, taken.artifact_count) == ("new", made.seq, 2)
    assert all_records(target.store, session.key) == all_records(source.store, made.key)
    assert target.verify(UPLOAD).ok
    assert session.artifact("times.png") == made.artifact("times.png")
    assert target.store.artifacts.hashes(session.key) == source.store.artifacts.hashes(made.key)
    assert session.branches() == made.branches()
    assert session.transcript() == made.transcript()
    assert row.summary == made.summary()


def test_an_imported_session_lists_and_resumes_without_reading_its_log(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    import_jsonl(target, io.BytesIO(lines_of(source, made)))
    (row,) = target.store.sessions()
    session = target.resume(UPLOAD)

    assert row.summary_seq == row.seq == made.seq
    assert session.head in target.store.snapshot_seqs(session.key)
    assert not session.resumed.sealed


def test_several_sessions_and_forks_go_into_one_file(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    fork = made.fork(title="Another way")
    data = lines_of(source, fork, made)
    taken = import_jsonl(target, io.BytesIO(data))

    assert [one.key for one in taken] == [fork.key, made.key]
    assert target.get(fork.id).summary().forked_from == fork.summary().forked_from
    assert json.loads(data.splitlines()[0])["forked_from"]["session"] == UPLOAD
    assert lines_of(target, target.get(fork.id), target.get(UPLOAD)) == data


def test_a_reader_written_from_the_page_reads_every_line(source: Sessions) -> None:
    made = upload(source)
    (found,) = read(io.BytesIO(lines_of(source, made)))
    records = all_records(source.store, made.key)

    assert [event["at"] for event in found["events"]] == [record.at for record in records]
    assert [event["body_text"] for event in found["events"]] == [record.body for record in records]
    assert [event["body"] for event in found["events"]] == [event.body for event in made.events()]
    assert found["session"]["title"] == "Flaky upload test"
    assert len(found["artifacts"]) == 2


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_text_comes_back_as_it_was(source: Sessions, text: str) -> None:
    with source.create("s", title=text or None) as session:
        session.append("note", {"name": "n", text: [text, {"body": f',"body":{text}}}'}]})
    with opened("memory:") as target:
        import_jsonl(target, io.BytesIO(lines_of(source, session)))

        assert all_records(target.store, session.key) == all_records(source.store, session.key)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_come_back_as_they_were(source: Sessions, target: Sessions, name: str) -> None:
    session = source.create(name, app=name, user=name)
    session.append("note", {"name": name}, id=name, agent=name, turn=name, scope=name)
    (taken,) = import_jsonl(target, io.BytesIO(lines_of(source, session)))

    assert taken.key == SessionKey(name, name, name)
    assert all_records(target.store, taken.key) == all_records(source.store, session.key)


@settings(max_examples=60)
@given(bodies=st.lists(json_objects, max_size=4), ids=st.lists(names, min_size=4, max_size=4, unique=True))
def test_whatever_a_session_may_hold_comes_back_equal(bodies: list[dict[str, object]], ids: list[str]) -> None:
    with opened("memory:") as source, opened("memory:") as target:
        session = source.create("s")
        for id, body in zip(ids, bodies, strict=False):
            session.append("note", {**body, "name": "n"}, id=id, agent=id, at=len(id) / 3)
        data = lines_of(source, session)
        import_jsonl(target, io.BytesIO(data))

        assert all_records(target.store, session.key) == all_records(source.store, session.key)
        assert [len(line) > 0 for line in data.split(b"\n")].count(False) == 1


def test_a_body_that_was_stored_in_several_lines_is_written_in_one(source: Sessions) -> None:
    from playhead.model.codec import FIRST_HASH, body_digest, chain_hash, draft_envelope

    body = '{\n  "app": "default",\r\n  "user": "default"\n}'
    digest = body_digest(b"s" * 16, body)
    envelope = draft_envelope(Draft("session_started", {}, "e", 0.5), seq=1, parent=0)
    hash = chain_hash(FIRST_HASH, envelope, digest)
    record = Record(1, 0, "e", 0.5, "session_started", None, None, None, body, b"s" * 16, None, hash, False)
    source.store.put_records(session_key("s"), [record], expected_seq=0)
    data = lines_of(source, source.get("s"))
    with opened("memory:") as target:
        import_jsonl(target, io.BytesIO(data))

        assert len(data.splitlines()) == 3
        assert all_records(target.store, session_key("s")) == [record]


def test_a_redacted_event_keeps_its_place_and_its_hash(source: Sessions, target: Sessions) -> None:
    from playhead.testing.records_suite import redacted

    made = upload(source)
    records = redacted(all_records(source.store, made.key), {4, 6, made.seq})
    source.store.put_records(session_key("copy"), records, expected_seq=0)
    import_jsonl(target, io.BytesIO(lines_of(source, source.get("copy"))))

    assert all_records(target.store, session_key("copy")) == records
    assert target.verify("copy").redacted_count == 3


def test_an_artifact_of_several_pieces_comes_back_whole(source: Sessions, target: Sessions) -> None:
    data = os.urandom(2 * CHUNK_BYTES + 5)
    with source.create("s") as session:
        session.save_artifact("core", data)
        session.save_artifact("even", data[:CHUNK_BYTES])
    lines = lines_of(source, session)
    import_jsonl(target, io.BytesIO(lines))

    assert target.get("s").artifact("core") == data
    assert target.get("s").artifact("even") == data[:CHUNK_BYTES]
    assert max(map(len, lines.splitlines())) < 2 * 1024 * 1024


def test_an_artifact_that_is_gone_is_told_and_does_not_stop_the_export(tmp_path: Path) -> None:
    with opened(f"bundles:{tmp_path}") as source:
        made = upload(source)
        kept, gone = source.store.artifacts.hashes(made.key)
        (tmp_path / f"{UPLOAD}.artifacts" / gone).unlink()
        out = io.BytesIO()
        written = write_session(source, made.key, out)

    with opened("memory:") as target:
        import_jsonl(target, out)

        assert written.lost_artifacts == (gone,)
        assert target.store.artifacts.hashes(made.key) == [kept]


def test_without_artifacts_the_events_are_the_same(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    out = io.BytesIO()
    write_session(source, made.key, out, artifacts=False)
    (taken,) = import_jsonl(target, out)

    assert taken.artifact_count == 0
    assert target.verify(UPLOAD).head_hash == source.verify(UPLOAD).head_hash


@pytest.mark.parametrize("on_conflict", ["skip", "merge"])
def test_taking_the_same_file_in_again_adds_nothing(
    source: Sessions, target: Sessions, on_conflict: OnConflict
) -> None:
    data = lines_of(source, upload(source))
    import_jsonl(target, io.BytesIO(data), on_conflict=on_conflict)
    before = all_records(target.store, session_key(UPLOAD))
    (again,) = import_jsonl(target, io.BytesIO(data), on_conflict=on_conflict)

    assert (again.outcome, again.added_count) == ("same" if on_conflict == "merge" else "skipped", 0)
    assert all_records(target.store, session_key(UPLOAD)) == before


def test_merging_adds_what_the_session_lacks_and_leaves_one_alone_that_goes_on_further(
    source: Sessions, target: Sessions
) -> None:
    made = upload(source)
    early = lines_of(source, made)
    import_jsonl(target, io.BytesIO(early))
    with made.turn("And now?") as turn:
        turn.say("It passes.")
    made.save_artifact("log.txt", b"passed")
    late = lines_of(source, made)
    (merged,) = import_jsonl(target, io.BytesIO(late), on_conflict="merge")
    (left,) = import_jsonl(target, io.BytesIO(early), on_conflict="merge")

    assert (merged.outcome, merged.added_count) == ("merged", 5)
    assert (left.outcome, left.added_count) == ("same", 0)
    assert lines_of(target, target.get(UPLOAD)) == late
    assert target.get(UPLOAD).transcript()[-2].text == "It passes."


def test_logs_that_part_are_not_merged_and_both_places_are_named(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    other = source.create("other")
    data = lines_of(source, other, made)
    import_jsonl(target, io.BytesIO(lines_of(source, made)))
    seq = target.get(UPLOAD).seq
    target.get(UPLOAD).append("note", {"name": "here"}, id="note-here")
    made.append("note", {"name": "there"}, id="note-there")
    with pytest.raises(ImportFailed) as raised:
        import_jsonl(target, io.BytesIO(data + lines_of(source, made)), on_conflict="merge")

    assert f"parts after event {seq}: event {seq + 1} is note 'note-here'" in str(raised.value)
    assert "note 'note-there'" in str(raised.value)
    assert [row.id for row in target.list().items] == [UPLOAD]


def test_renaming_gives_the_next_free_id_and_keeps_the_hashes(source: Sessions, target: Sessions) -> None:
    data = lines_of(source, upload(source))
    taken = [import_jsonl(target, io.BytesIO(data), on_conflict="rename")[0] for _ in range(3)]

    assert [one.key.id for one in taken] == [UPLOAD, f"{UPLOAD}-2", f"{UPLOAD}-3"]
    assert [one.outcome for one in taken] == ["new", "renamed", "renamed"]
    assert target.verify(f"{UPLOAD}-3").head_hash == source.verify(UPLOAD).head_hash


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    (told,) = import_jsonl(target, io.BytesIO(lines_of(source, made)), dry_run=True)

    assert (told.outcome, told.added_count) == ("new", made.seq)
    assert target.list().items == []


def test_a_session_that_somebody_is_in_a_turn_of_is_not_added_to(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    import_jsonl(target, io.BytesIO(lines_of(source, made)))
    made.append("note", {"name": "later"})
    late = lines_of(source, made)
    session = target.get(UPLOAD)
    lease = target.store.acquire(session.key, label="chat", at=0.0)
    with pytest.raises(SessionBusy):
        import_jsonl(target, io.BytesIO(late), on_conflict="merge")
    target.store.release(lease)

    assert target.get(UPLOAD).seq == made.seq - 1


def test_a_masked_export_comes_in_with_a_chain_of_its_own(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    redactor = Redactor(homes=["/home/ada"])
    data = lines_of(source, made, redactor=redactor)
    (taken,) = import_jsonl(target, io.BytesIO(data))
    (again,) = import_jsonl(target, io.BytesIO(data), on_conflict="merge")
    verified = target.verify(UPLOAD)

    assert b"/home/ada" not in data
    assert taken.is_masked
    assert (verified.ok, verified.event_count) == (True, made.seq)
    assert verified.head_hash != source.verify(UPLOAD).head_hash
    assert target.get(UPLOAD).summary().cwd == "~/upload"
    assert again.outcome == "same"
    assert json.loads(data.splitlines()[-1])["masked"] == {"home directory": 1}


def test_what_was_added_to_a_masked_export_is_merged_too(source: Sessions, target: Sessions) -> None:
    made = upload(source)
    import_jsonl(target, io.BytesIO(lines_of(source, made, redactor=Redactor())))
    made.append("note", {"name": "later"})
    (merged,) = import_jsonl(target, io.BytesIO(lines_of(source, made, redactor=Redactor())), on_conflict="merge")

    assert (merged.outcome, merged.added_count) == ("merged", 1)
    assert target.verify(UPLOAD).ok


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_a_file_is_told_by_what_is_in_it(source: Sessions, target: Sessions, tmp_path: Path, ending: str) -> None:
    data = lines_of(source, upload(source))
    path = tmp_path / f"sessions{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    other = tmp_path / "other.jsonl"
    other.write_text('{"type":"user","uuid":"0"}\n')

    assert is_export(path)
    assert not is_export(other)
    assert not is_export(tmp_path / "absent")
    assert not is_export(tmp_path)
    assert import_jsonl(target, path)[0].outcome == "new"


def test_a_pipe_is_read_like_a_file(source: Sessions, target: Sessions) -> None:
    data = lines_of(source, upload(source))
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        with os.fdopen(writing, "wb") as out:
            out.write(data)
        taken = import_jsonl(target, pipe)

    assert [one.outcome for one in taken] == ["new"]


def test_an_export_of_another_store_holds_the_log_as_it_stood_when_it_began(tmp_path: Path) -> None:
    with playhead.open(f"bundles:{tmp_path}") as source:
        made = upload(source)
        data = lines_of(source, made)
        with Export(io.BytesIO(data)) as export:
            (found,) = export.sessions
            records = list(export.records(found, salt=lambda: b""))

    assert msgspec.structs.asdict(records[-1])["hash"].hex() == found.first_line.hash
    assert export.damage is None


class Packed(io.BytesIO):
    """A packed file; counts how often it is read from its beginning."""

    def __init__(self, data: bytes) -> None:
        super().__init__(gzip.compress(data))
        self.count = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self.count += (offset, whence) == (0, os.SEEK_SET)
        return super().seek(offset, whence)


def test_a_packed_export_is_unpacked_as_often_however_many_sessions_it_has(target: Sessions, source: Sessions) -> None:
    counts: list[int] = []
    taken = []
    choices: list[OnConflict] = ["merge", "merge", "rename", "skip"]
    for count in (2, 12):
        made = [upload(source, id=f"upload-{count}-{number:04}") for number in range(count)]
        for session in made:
            session.save_artifact("bulk.bin", bytes(range(256)) * 2000)  # More than what is read at once.
        import_jsonl(target, io.BytesIO(lines_of(source, *made)))
        for session in made:
            session.send("ops", "There is more.", sender="coordinator")
        lines = lines_of(source, *made)
        for on_conflict in choices:
            file = Packed(lines)
            taken.append([one.outcome for one in import_jsonl(target, file, on_conflict=on_conflict)])
            counts.append(file.count)
    last = made[-1]

    assert counts[:4] == counts[4:]
    assert taken == [[outcome] * count for count in (2, 12) for outcome in ("merged", "same", "renamed", "skipped")]
    assert all_records(target.store, last.key) == all_records(source.store, last.key)
    assert target.get(last.id).artifact("times.png") == last.artifact("times.png")
