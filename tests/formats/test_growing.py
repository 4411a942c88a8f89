"""Files that grow: what was read is told from what came since, also where a file is replaced at the wrong moment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from playhead.errors import ImportFailed
from playhead.formats.codex import compressed
from playhead.formats.growing import Files, change_of
from playhead.formats.imported import SourcePosition


def lines(*numbers: int) -> str:
    return "".join(f'{{"n": {number}}}\n' for number in numbers)


def read(path: Path, known: SourcePosition | None = None, **options: Any) -> tuple[list[int], SourcePosition]:
    files = Files({str(path): known} if known else {}, is_record=lambda value: True, **options)
    return [record.value["n"] for record in files.records(path)], files.positions[str(path)]


def replaced(path: Path, text: str) -> None:
    """Put another file in the place of one, as a program does that writes beside and renames."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def test_what_came_since_is_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 2))
    first, position = read(path)
    unchanged = change_of(path, position)
    with path.open("a") as file:
        file.write(lines(3))
    grown = change_of(path, position)
    second, _ = read(path, position)

    assert (first, second) == ([1, 2], [3])
    assert (unchanged, grown) == ("none", "grown")


def test_a_file_that_is_replaced_while_it_is_read_is_read_again_the_next_time(tmp_path: Path) -> None:
    """The position is of the file that was read, not of the one that has its name by then."""
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 2))

    @contextmanager
    def opened(path: Path) -> Iterator[BinaryIO]:
        with path.open("rb") as file:
            replaced(path, lines(7, 8, 9, 10))
            yield file

    found, position = read(path, open=opened)

    assert found == [1, 2]
    assert position.size == len(lines(1, 2))
    assert change_of(path, position) == "other"


def test_a_file_that_is_replaced_before_it_is_read_on_is_refused_and_read_whole_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 2))
    _, position = read(path)
    replaced(path, lines(7, 8, 9))
    with pytest.raises(ImportFailed, match="was replaced"):
        read(path, position)

    assert change_of(path, position) == "other"
    assert read(path)[0] == [7, 8, 9]


def test_the_position_of_a_compressed_file_is_of_the_one_that_was_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="needs the zstandard package")
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(lines(1, 2).encode()))
    size = path.stat().st_size

    @contextmanager
    def opened(path: Path) -> Iterator[BinaryIO]:
        with compressed.opened(path) as stream:
            path.unlink()
            yield stream

    found, position = read(path, open=opened)

    assert (found, position.size) == ([1, 2], size)
