"""JSON Lines that are torn, changed, made up or of another version: nothing of them is written, and what is whole can
be salvaged."""

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from playhead import Sessions
from playhead.errors import ImportFailed, NewerFormat, PlayheadError, StoreDamaged
from playhead.formats.jsonl import Export, import_jsonl, lines, write_session
from playhead.formats.redaction import Redactor
from playhead.testing.replay import all_records
from tests.formats.exported_samples import UPLOAD, lines_of, opened, upload

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def target() -> Iterator[Sessions]:
    with opened("memory:") as sessions:
        yield sessions


@pytest.fixture(scope="module")
def whole() -> bytes:
    """Two sessions in one file."""
    with opened("memory:") as source:
        first = source.create("first", title="First")
        return lines_of(source, first, upload(source))


def _changed(data: bytes, number: int, change: Change) -> bytes:
    """Return the file with one line (from 1) changed."""
    found = data.splitlines(keepends=True)
    document = json.loads(found[number - 1])
    change(document)
    if "body" in document:
        document["body"] = document.pop("body")  # It is always last.
    found[number - 1] = json.dumps(document, separators=(",", ":")).encode() + b"\n"
    return b"".join(found)


def test_a_file_that_is_torn_anywhere_is_refused_and_nothing_is_written(target: Sessions, whole: bytes) -> None:
    """P7."""
    ends = [*range(0, len(whole) - 1, 211), len(whole) - 2]
    refused = []
    for end in ends:
        with pytest.raises(ImportFailed) as raised:
            import_jsonl(target, io.BytesIO(whole[:end]))
        refused.append(str(raised.value))
    first_end = len(b"".join(whole.splitlines(keepends=True)[:4]))
    later = [text for end, text in zip(ends, refused, strict=True) if end > first_end]

    assert target.list().items == []
    assert later
    assert [text for text in later if "1 session before that are whole" not in text] == []


def test_what_is_whole_before_the_tear_can_be_salvaged(target: Sessions, whole: bytes) -> None:
    rows = whole.splitlines(keepends=True)
    torn = b"".join(rows[:15]) + rows[15][:40]
    with pytest.raises(ImportFailed, match=f"session '{UPLOAD}' up to event 10; they can be salvaged"):
        import_jsonl(target, io.BytesIO(torn))
    first, cut = import_jsonl(target, io.BytesIO(torn), salvage=True)
    with opened("memory:") as source:
        kinds = [event.kind for event in upload(source).events(until=10)]

    assert (first.is_cut, cut.is_cut, cut.added_count) == (False, True, 10)
    assert target.verify(UPLOAD).ok
    assert [event.kind for event in target.get(UPLOAD).events()] == kinds


def test_a_salvaged_session_is_completed_by_the_whole_file(target: Sessions, whole: bytes) -> None:
    import_jsonl(target, io.BytesIO(whole[: len(whole) // 2]), salvage=True)
    import_jsonl(target, io.BytesIO(whole), on_conflict="merge")

    assert lines_of(target, target.get("first"), target.get(UPLOAD)) == whole


def test_a_compressed_file_that_is_torn_is_refused_or_salvaged_like_any_other(target: Sessions, whole: bytes) -> None:
    packed = gzip.compress(whole)
    with pytest.raises(ImportFailed, match="breaks off"):
        import_jsonl(target, io.BytesIO(packed[:-300]))
    import_jsonl(target, io.BytesIO(packed[:-300]), salvage=True)

    assert target.get("first").title == "First"


_CHANGES: dict[str, tuple[int, Change, str]] = {
    "another text": (8, lambda line: line["body"].update(x=1), "its hash does not follow"),
    "another time": (8, lambda line: line.update(at=line["at"] + 1e-6), "its hash does not follow"),
    "another agent": (8, lambda line: line.update(agent="eve"), "its hash does not follow"),
    "another hash": (8, lambda line: line.update(hash="0" * 64), "its hash does not follow"),
    "another parent": (8, lambda line: line.update(parent=2), "its parent is 2"),
    "another number": (8, lambda line: line.update(seq=9), "where 3 has to come"),
    "a kind that is none": (8, lambda line: line.update(kind="invented"), "cannot be its kind"),
    "no hash": (8, lambda line: line.pop("hash"), "event 3 has no hash"),
    "a hash that is none": (8, lambda line: line.update(hash="x" * 64), "is not 32 bytes in hex"),
    "a short salt": (8, lambda line: line.update(salt="00"), "is not 16 bytes in hex"),
    "no body": (8, lambda line: line.pop("body"), "cannot be its"),
    "a mistaken fact": (8, lambda line: line.update(fact=True), "fact"),
    "a text for a number": (8, lambda line: line.update(seq="4"), "is no line of a Playhead export"),
    "no type": (8, lambda line: line.pop("type"), "is no line of a Playhead export"),
    "another type": (8, lambda line: line.update(type="secret"), "is no line of a Playhead export"),
    "another count": (-1, lambda line: line.update(event_count=3), "does not end as"),
    "another end": (-1, lambda line: line.update(id="first"), "does not end as"),
    "fewer artifacts": (-1, lambda line: line.update(artifact_count=1), "2 whole artifacts of 1"),
    "other bytes": (-3, lambda line: line.update(data="AAAA" + line["data"][4:]), "are not those that its name is of"),
    "no base64": (-2, lambda line: line.update(data="!"), "are not base64"),
    "a gap in the bytes": (-2, lambda line: line.update(offset=1), "does not follow the one before it"),
    "a smaller size": (-2, lambda line: line.update(size=1), "has not the 1 bytes"),
    "a negative size": (-2, lambda line: line.update(size=-1), "bytes at most"),
    "an enormous size": (-2, lambda line: line.update(size=2**60), "bytes at most"),
    "a name that leaves the folder": (-2, lambda line: line.update(hash="../../etc/passwd"), "are not those that"),
    "another format": (1, lambda line: line.update(format="other"), "is no line of a Playhead export"),
    "version 0": (1, lambda line: line.update(version=0), "there is no version 0"),
    "an empty id": (1, lambda line: line.update(id=""), "session id must be"),
    "a NUL in the id": (1, lambda line: line.update(id="a\0b"), "holds a NUL"),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_line_that_was_changed_is_found_and_nothing_is_written(target: Sessions, whole: bytes, name: str) -> None:
    number, change, said = _CHANGES[name]
    count = len(whole.splitlines())
    damaged = _changed(whole, number if number > 0 else count + 1 + number, change)
    with pytest.raises(ImportFailed, match=re.escape(said)):
        import_jsonl(target, io.BytesIO(damaged))

    assert target.list().items == []


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([1, 2, 2, 3, 4], id="a line comes twice"),
        pytest.param([1, 3, 2, 4], id="two lines are exchanged"),
        pytest.param([1, 2, 4], id="a line is missing"),
        pytest.param([2, 3, 4], id="the first line is missing"),
        pytest.param([1, 1, 2, 3, 4], id="the first line comes twice"),
        pytest.param([1, 2, 3, 5, 6], id="the end is missing before another session"),
        pytest.param([1, 2, 3, 4, 4], id="the end comes twice"),
    ],
)
def test_lines_in_another_order_are_refused(target: Sessions, whole: bytes, order: list[int]) -> None:
    rows = whole.splitlines(keepends=True)
    with pytest.raises(ImportFailed):
        import_jsonl(target, io.BytesIO(b"".join(rows[number - 1] for number in order)))

    assert target.list().items == []


def test_an_event_after_the_artifacts_is_refused(target: Sessions, whole: bytes) -> None:
    rows = whole.splitlines(keepends=True)
    rows.insert(-1, rows[6])
    with pytest.raises(ImportFailed, match="an event comes after the artifacts"):
        import_jsonl(target, io.BytesIO(b"".join(rows)))

    assert target.list().items == []


def test_a_newer_version_is_refused_with_both_versions(target: Sessions, whole: bytes) -> None:
    newer = _changed(whole, 1, lambda line: (line.update(version=2), line.pop("event_count")))
    with pytest.raises(NewerFormat) as raised:
        import_jsonl(target, io.BytesIO(newer))

    assert (raised.value.found, raised.value.supported) == (2, 1)


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"{}", b"[1]", b"null", b"\x00" * 100, b'{"type":"user"}\n', b"\xff\xfe", b'{"a":' * 5000]
)
def test_what_is_no_export_is_refused(target: Sessions, data: bytes) -> None:
    with pytest.raises(ImportFailed):
        import_jsonl(target, io.BytesIO(data), salvage=True)

    assert target.list().items == []


def test_a_line_without_end_is_not_read_into_memory(
    target: Sessions, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.formats.jsonl import reading

    monkeypatch.setattr(reading, "LINE_BYTES_MAX", 4_000)
    with pytest.raises(ImportFailed, match="longer than 4000 bytes"):
        import_jsonl(target, io.BytesIO(whole + b"{" + b" " * 10_000))

    assert target.list().items == []


def test_empty_lines_are_passed_over_and_unknown_fields_too(target: Sessions, whole: bytes) -> None:
    spaced = whole.replace(b"\n", b"\r\n\n").replace(b'"type":"event",', b'"type":"event","colour":"blue",')
    taken = import_jsonl(target, io.BytesIO(spaced))

    assert [one.outcome for one in taken] == ["new", "new"]
    assert lines_of(target, target.get("first"), target.get(UPLOAD)) == whole


@settings(max_examples=150)
@given(data=st.data())
def test_no_change_of_bytes_is_ever_taken_in_as_something_else(whole: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    with opened("memory:") as target, opened("memory:") as right:
        import_jsonl(right, io.BytesIO(whole))
        try:
            import_jsonl(target, io.BytesIO(changed), on_conflict="skip")
        except PlayheadError:
            assert target.list().items == []
            return
        # What is taken in is what was there: the change was in a name, a title, or between the fields of a line.
        for row in target.list().items:
            record = all_records(target.store, row.key)[-1]
            assert record.hash in {all_records(right.store, one.key)[-1].hash for one in right.list().items}


def test_masked_lines_are_checked_too(target: Sessions) -> None:
    with opened("memory:") as source:
        data = lines_of(source, upload(source), redactor=Redactor())
    refused = []
    for change in (
        lambda line: line.update(parent=9),
        lambda line: line.update(kind="head_moved"),
        lambda line: line.update(body={}),
        lambda line: line.pop("body"),
        lambda line: line.update(seq=-4),
        lambda line: line.update(id="\udc00"),
    ):
        with pytest.raises(ImportFailed) as raised:
            import_jsonl(target, io.BytesIO(_changed(data, 5, change)))
        refused.append(str(raised.value))

    assert len(refused) == 6
    assert target.list().items == []


def test_a_damaged_session_is_not_given_out_as_if_it_were_whole(tmp_path: Path) -> None:
    with opened("memory:") as source:
        made = upload(source)
        records = source.store.records

        def damaged(*arguments: Any, **options: Any) -> Any:
            import msgspec

            page = records(*arguments, **options)
            return [msgspec.structs.replace(one, at=one.at + 1) if one.seq == 5 else one for one in page]

        source.store.records = damaged  # type: ignore[method-assign]  # The damage of a disk, seen from above the store.
        with pytest.raises(StoreDamaged, match="event 5"):
            write_session(source, made.key, io.BytesIO())
        masked = io.BytesIO()
        write_session(source, made.key, masked, redactor=Redactor())

    assert masked.getvalue().count(b"\n") == made.seq + 2


def test_a_line_that_could_not_be_read_back_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from playhead.formats.jsonl import writing

    monkeypatch.setattr(writing, "LINE_BYTES_MAX", 500)
    with opened("memory:") as source:
        made = source.create("s")
        made.append("note", {"name": "n", "text": "x" * 500})
        with pytest.raises(PlayheadError, match="event 2 takes"):
            write_session(source, made.key, io.BytesIO())

    assert lines.LINE_BYTES_MAX > 500


@pytest.mark.parametrize("share", [0.3, 0.55, 0.8, 0.97])
@pytest.mark.parametrize("is_torn", [True, False])
def test_what_is_whole_of_a_damaged_packed_export_comes_in(tmp_path: Path, share: float, is_torn: bool) -> None:
    with opened("memory:") as source, opened("memory:") as target:
        made = [upload(source, id=f"upload-{number:04}") for number in range(6)]
        for session in made:
            for number in range(40):
                session.append("note", {"name": "test", "text": f"{number} {os.urandom(3000).hex()}"})
        data = bytearray(gzip.compress(lines_of(source, *made)))
        place = int(len(data) * share)
        if is_torn:
            del data[place:]
        else:
            data[place : place + 40] = bytes(40)
        file = tmp_path / "export.jsonl.gz"
        file.write_bytes(data)
        with Export(file) as export:
            found = [(one.first_line.id, one.event_count) for one in export.sessions]
        taken = import_jsonl(target, file, salvage=True)

        assert export.damage is not None
        assert found
        assert [(one.key.id, one.event_count) for one in taken] == found
        assert [(one.key.id, target.store.tip(one.key).seq) for one in taken] == found
