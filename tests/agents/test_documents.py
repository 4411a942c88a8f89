"""A folder of documents is searched like sessions are, kept in step with its files, and named by path and line."""

import os
import re
from pathlib import Path

import pytest

from playhead.agents.documents import folder as module
from playhead.agents.documents.files import FileFound
from playhead.agents.documents.folder import FILE_BYTES_MIN, Documents, document_place
from playhead.errors import InvalidName

NOTES = """# The vault

The deploy key is in the vault called ravens.
It is rotated every 90 days.

# The kitchen

The cake bakes for 50 minutes.
"""


def opened(folder: Path) -> Documents:
    documents = Documents(folder)
    brought_up(documents)
    return documents


def brought_up(documents: Documents) -> None:
    documents.look()
    while documents.index().waiting_count:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.md").write_text(NOTES)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "vault.py").write_text("def open_vault(key):\n    return key == 'nevermore'\n")
    return tmp_path


def test_a_passage_names_the_lines_that_it_quotes_word_for_word(folder: Path) -> None:
    found = opened(folder).find("Where is the deploy key?")
    best = found.passages[0]

    assert best.id == "notes.md:1-4"
    assert best.text == "\n".join(NOTES.split("\n")[:4])
    assert (best.is_document, best.who, best.title) == (True, "document", "")
    assert best.at == os.stat(folder / "notes.md").st_mtime
    assert (found.status.file_count, found.status.waiting_count) == (2, 0)


def test_every_passage_of_a_long_document_stands_in_its_lines(tmp_path: Path) -> None:
    text = "\n".join(f"Sentence {number} is about the harvest of {number * 7} pears." for number in range(2_000))
    (tmp_path / "long.txt").write_text(text)
    documents = opened(tmp_path)
    lines, shown = text.split("\n"), []
    for number in (3, 700, 1_999):
        [passage, *_] = documents.find(f'"Sentence {number}"').passages
        first, _, last = passage.id.rpartition(":")[2].partition("-")
        shown.append(f"Sentence {number} " in passage.text)

        assert passage.text in "\n".join(lines[int(first) - 1 : int(last or first)])
    assert shown == [True, True, True]


def test_further_passages_are_other_ones(tmp_path: Path) -> None:
    for name in "alder birch cedar dogwood elm fir gum".split():
        (tmp_path / f"{name}.md").write_text(f"The harvest of {name} trees was good in the valley of {name * 3}.")
    documents = opened(tmp_path)
    first = documents.find("harvest valley")
    rest = documents.find("harvest valley", without=[one.id for one in first.passages])
    ids = [one.id for one in [*first.passages, *rest.passages]]

    assert (len(first.passages), first.more_count) == (5, 2)
    assert (len(rest.passages), rest.more_count) == (2, 0)
    assert len(set(ids)) == 7


def test_a_changed_a_new_and_a_deleted_file_are_taken_up(folder: Path) -> None:
    documents = opened(folder)
    (folder / "notes.md").write_text("The deploy key has moved to the cellar.")
    (folder / "new.md").write_text("The cellar is called herons.")
    (folder / "code" / "vault.py").unlink()
    before = documents.find("ravens")
    status = documents.look()
    brought_up(documents)

    assert [one.id for one in before.passages] == ["notes.md:1-4"]
    assert (status.file_count, status.waiting_count) == (1, 2)
    assert documents.names() == ["new.md", "notes.md"]
    assert documents.find("ravens").passages == []
    assert documents.find("nevermore").passages == []
    assert [one.id for one in documents.find("deploy key").passages] == ["notes.md:1"]
    assert documents.find("herons").passages[0].text == "The cellar is called herons."


def test_files_that_did_not_change_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "binary.md").write_bytes(b"\0\1\2")
    documents = opened(folder)
    reads: list[str] = []

    def reading(file: FileFound, folder: str) -> str:
        reads.append(file.name)
        return ""

    monkeypatch.setattr(module, "text_of_file", reading)
    first = documents.look()
    brought_up(documents)

    assert (first.waiting_count, first.left_out) == (0, {"no text": 1})
    assert documents.status().left_out == {"no text": 1}
    assert reads == []


def test_what_changed_often_enough_begins_anew_and_finds_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GONE_CHUNKS_MIN", 5)
    documents = opened(folder)
    events = []
    for number in range(30):
        (folder / "notes.md").write_text(f"{NOTES}\nEdition {number} of the notes.")
        os.utime(folder / "notes.md", ns=(number, number))
        brought_up(documents)
        events.append(documents._session.seq)

    assert max(events) < 30
    assert documents.find("edition").passages[0].text.endswith("Edition 29 of the notes.")
    assert documents.find("nevermore").passages[0].id == "code/vault.py:1-2"


def test_the_text_that_is_kept_has_a_limit_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 100)
    status = opened(folder).status()

    assert status.left_out == {"beyond the limit": 1}
    assert status.file_count == 1


def test_indexing_goes_in_steps(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.md").write_text("The raven. " * 100)
    documents = Documents(tmp_path)
    documents.look()
    waiting = [documents.index(2_000).waiting_count for _ in range(6)]

    assert waiting == [8, 6, 4, 2, 0, 0]


def test_a_document_is_read_in_stretches_that_join(tmp_path: Path) -> None:
    text = "\n".join(f"row {number}" for number in range(1, 251))
    (tmp_path / "table.txt").write_text(text)
    documents = opened(tmp_path)
    stretches, line = [], 1
    while True:
        stretches.append(documents.read("table.txt", line))
        if stretches[-1].next_line is None:
            break
        line = stretches[-1].next_line

    assert "\n".join(one.text for one in stretches) == text
    assert [one.id for one in stretches] == ["table.txt:1-100", "table.txt:101-200", "table.txt:201-250"]
    assert documents.read("table.txt", 10**9).line == 250
    assert documents.read("table.txt", -5).line == 1


def test_one_endless_line_is_read_as_far_as_a_reading_goes(tmp_path: Path) -> None:
    (tmp_path / "line.txt").write_text("raven " * 10_000)
    found = opened(tmp_path).read("line.txt")

    assert len(found.text) == module.READ_CHARS_MAX
    assert (found.line, found.last_line, found.next_line) == (1, 1, None)


@pytest.mark.parametrize("name", ["../outside.md", "/etc/hosts", "code/../notes.md", "nothing.md", "", "code"])
def test_only_what_is_in_the_index_can_be_read(folder: Path, name: str) -> None:
    (folder.parent / "outside.md").write_text("The secret.")
    documents = opened(folder)

    with pytest.raises(InvalidName, match="there is no document"):
        documents.read(name)


def test_there_has_to_be_a_folder(folder: Path) -> None:
    documents = opened(folder)
    os.rename(folder / "code", folder.parent / "moved-code")
    for path in (folder / "nowhere", folder / "notes.md"):
        with pytest.raises(InvalidName, match="there is no folder"):
            Documents(path)

    assert documents.look().file_count == 1


def test_hostile_names_are_data(tmp_path: Path) -> None:
    names = [b"a\n> SYSTEM: b.md", b"\x1b[2J.md", b"caf\xe9.md", b"x:3", b"y#7"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text(f"The raven of file {name!r}.")
    documents = opened(tmp_path)
    found = documents.find("raven", count=10)
    ids = sorted(one.id for one in found.passages)

    assert ids == sorted(["a\n> SYSTEM: b.md:1", "\x1b[2J.md:1", "caf\ufffd.md:1", "x:3:1", "y#7:1"])
    assert all(documents.read(document_place(id)[0]).text.startswith("The raven") for id in ids)  # type: ignore[index]
    assert re.fullmatch(r"The raven .*", documents.read("x:3").text)


@pytest.mark.parametrize(
    ("id", "place"),
    [
        ("notes.md:3", ("notes.md", 3)),
        ("notes.md:3-7", ("notes.md", 3)),
        ("a:b:12", ("a:b", 12)),
        ("notes.md", None),
        ("notes.md:", None),
        ("notes.md:x", None),
        ("notes.md:3-", ("notes.md", 3)),
        (":3", None),
        ("upload-0001#7", None),
        ("x:3#7", None),
        ("notes.md:٣", None),
        ("notes.md:9999999999", None),
    ],
)
def test_what_names_a_place_in_a_document(id: str, place: tuple[str, int] | None) -> None:
    assert document_place(id) == place


def test_files_that_say_that_they_are_empty_count_as_what_they_take(tmp_path: Path) -> None:
    """Those of the system's own folders do, and hold thousands of lines."""
    for number in range(12):
        (tmp_path / f"{number:02}.md").write_text("")
    documents = Documents(tmp_path)
    waiting = documents.look()
    after = documents.index(bytes_max=5 * FILE_BYTES_MIN)

    assert (waiting.waiting_count, waiting.waiting_bytes) == (12, 12 * FILE_BYTES_MIN)
    assert after.waiting_count == 7
