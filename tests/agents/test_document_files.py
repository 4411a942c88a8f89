"""A folder's text files are told by their content; links, pipes, binaries and huge files are left out and counted."""

import os
import time
from pathlib import Path

import pytest

from playhead.agents.documents import files as module
from playhead.agents.documents.files import (
    FILE_BYTES_MAX,
    HIDDEN,
    LARGE,
    LINE_CHARS_MAX,
    LINK,
    NO_TEXT,
    OVER,
    UNREADABLE,
    FileFound,
    NotText,
    chunks,
    files_of,
    html_text,
    left_out_told,
    text_of_file,
)


def found(folder: Path, name: str) -> FileFound:
    [file] = [file for file in files_of(str(folder)).files if file.name == name]
    return file


def read(folder: Path, name: str) -> str:
    return text_of_file(found(folder, name), str(folder))


def test_files_come_in_the_order_of_their_names_and_the_rest_is_counted(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("Outside.")
    folder = tmp_path / "docs"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "node_modules").mkdir()
    for name in ("b.md", "a.txt", "deep/er/c.py", ".secret", "node_modules/x.js"):
        (folder / name).write_text("Text.")
    (folder / "big.log").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    (folder / "escape.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    scan = files_of(str(folder))

    assert [file.name for file in scan.files] == ["a.txt", "b.md", "deep/er/c.py"]
    assert dict(scan.left_out) == {"hidden": 2, "too large": 1, "a link": 2, "no text": 1, "beyond the limit": 0}


def test_a_folder_that_is_gone_is_an_error_and_one_below_it_that_cannot_be_read_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Text.")
    (tmp_path / "shut").mkdir(mode=0o000)
    scan = files_of(str(tmp_path))
    (tmp_path / "shut").chmod(0o700)

    assert [file.name for file in scan.files] == ["a.md"]
    assert scan.left_out["not readable"] == (0 if os.geteuid() == 0 else 1)
    with pytest.raises(FileNotFoundError):
        files_of(str(tmp_path / "nowhere"))


def test_a_folder_has_limits_and_what_is_beyond_them_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one" / "two" / "three").mkdir(parents=True)
    for name in ("a.md", "one/b.md", "one/c.md", "one/two/d.md", "one/two/three/e.md", f"{'n' * 40}.md"):
        (tmp_path / name).write_text("Text.")
    limits = {"DEPTH_MAX": 2, "FILES_MAX": 3, "NAME_CHARS_MAX": 30, "ENTRIES_MAX": 5}
    scans = {}
    for limit, most in limits.items():
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, most)
            scans[limit] = files_of(str(tmp_path))
    counts = {limit: (len(scan.files), scan.left_out["beyond the limit"]) for limit, scan in scans.items()}

    assert counts == {"DEPTH_MAX": (5, 1), "FILES_MAX": (3, 3), "NAME_CHARS_MAX": (5, 1), "ENTRIES_MAX": (3, 1)}


def test_a_file_that_is_gone_or_grew_since_the_look_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FILE_BYTES_MAX", 10_000)
    for name in ("gone.md", "grown.md"):
        (tmp_path / name).write_text("Text.")
    gone, grown = found(tmp_path, "gone.md"), found(tmp_path, "grown.md")
    (tmp_path / "gone.md").unlink()
    (tmp_path / "grown.md").write_text("Text." * 10_000)

    with pytest.raises(NotText, match="not readable"):
        text_of_file(gone, str(tmp_path))
    with pytest.raises(NotText, match="too large"):
        text_of_file(grown, str(tmp_path))


def test_a_link_that_takes_a_files_place_after_the_look_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("The secret of the outside.")
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("Inside.")
    (folder / "sub" / "a.md").write_text("Inside.")
    file, below = found(folder, "a.md"), found(folder, "sub/a.md")
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(outside / "a.md")
    (folder / "sub" / "a.md").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)

    with pytest.raises(NotText, match="not readable"):
        text_of_file(file, str(folder))
    with pytest.raises(NotText, match="a link"):
        text_of_file(below, str(folder))


def test_a_pipe_that_takes_a_files_place_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Inside.")
    file = found(tmp_path, "a.md")
    (tmp_path / "a.md").unlink()
    os.mkfifo(tmp_path / "a.md")

    with pytest.raises(NotText, match="no text"):
        text_of_file(file, str(tmp_path))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Schlüssel\r\nzwei\rdrei".encode(), "Schlüssel\nzwei\ndrei"),
        ("\ufeffSchlüssel".encode(), "Schlüssel"),
        ("Schlüssel".encode("utf-16"), "Schlüssel"),
        ("Schlüssel".encode("latin-1"), "Schlüssel"),
        (b"", ""),
    ],
)
def test_text_is_read_in_the_encodings_that_people_use(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    assert read(tmp_path, "a.txt") == text


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0", b"PK\x03\x04\xff\xfe\xfa", b"text and \0 then"])
def test_what_is_no_text_is_left_out_whatever_its_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "notes.md").write_bytes(data)

    with pytest.raises(NotText, match="no text"):
        read(tmp_path, "notes.md")


def test_the_text_of_a_page_stands_in_the_lines_of_its_source() -> None:
    source = (
        "<html><head><style>\nbody { color: red }\n</style><title>Ravens</title>\n<SCRIPT>alert('</p>')\n</SCRIPT>\n"
        "<!-- hidden\n> still --><p class='a'>The&nbsp;key <b>is</b>\nhere &amp; 2 < 3.</p>"
    )

    assert html_text(source).split("\n") == ["", "", "Ravens", "", "", "", "The key is", "here & 2 < 3."]


@pytest.mark.parametrize("hostile", ["<a ", "<script>", "<!--", "<!", "</", "<", "&#x", "<style"])
def test_hostile_markup_takes_no_longer_than_its_length(hostile: str) -> None:
    began = time.monotonic()
    html_text(hostile * (1_000_000 // len(hostile)))

    assert time.monotonic() - began < 20


def test_chunks_hold_every_line_that_is_not_blank_and_name_where_they_begin() -> None:
    paragraphs = [f"Paragraph {number} " + "word " * 40 + "\nand its second line." for number in range(20)]
    text = "\n\n".join(["# Title", *paragraphs, "# Another", "x" * (2 * LINE_CHARS_MAX + 5)])
    lines = text.split("\n")
    found = list(chunks(text))

    assert "".join("".join(chunk.text.split()) for chunk in found) == "".join(text.split())
    assert all(lines[chunk.line - 1].startswith(chunk.text.split("\n")[0][:50]) for chunk in found[:-3])
    assert [len(chunk.text) for chunk in found[-3:]] == [LINE_CHARS_MAX, LINE_CHARS_MAX, 5]
    assert max(len(chunk.text) for chunk in found) == LINE_CHARS_MAX
    assert list(chunks("\n \n\n")) == []


def test_what_is_left_out_is_counted_in_words_and_the_limits_are_named() -> None:
    counts = {HIDDEN: 1, LINK: 4, NO_TEXT: 2, LARGE: 1, UNREADABLE: 1, OVER: 1_200, "of another version": 3}

    assert left_out_told(counts) == (
        "1 hidden entry, 4 links, 2 that are no text, 1 file over 2 MB, 1 that cannot be read, "
        "1,200 beyond the limits of 10,000 files and 32 MB of text"
    )
    assert left_out_told({NO_TEXT: 1, OVER: 0}) == "1 that is no text"
    assert left_out_told({}) == ""
