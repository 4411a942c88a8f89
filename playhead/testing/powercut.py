"""Cut the power under SQLite after any disk operation, and rebuild what the disk may then hold.

The rules of the simulated disk:

- What was synced is there. Of everything since, each change may be there or not, whatever became of the others; a write
  may also be torn, in any of its 512-byte sectors. Bytes outside a write are never harmed (SQLite counts on that too:
  SQLITE_IOCAP_POWERSAFE_OVERWRITE), and a hole reads as zeros.
- Directories are simple: the first sync of a new file also syncs its folder (SQLite does so for a journal or WAL, and
  journalling file systems for a database), and so does a deletion for which SQLite asks it. What was created or deleted
  in that folder before is then durable as a name; contents are so by their own syncs alone.
- Only SQLite's files beneath the root are simulated: databases, journals and WALs. The `-shm` index is rebuilt after a
  crash. What a program writes, renames or deletes by itself is in no image, and a database that was replaced in that
  way is refused when it is opened again.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeVar

import apsw

if TYPE_CHECKING:
    from typing_extensions import Buffer

Promise = TypeVar("Promise")
Name = str | apsw.URIFilename | None
SECTOR_BYTES = 512
_NAMING = ("create", "delete")
_SIMULATED = (
    apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
)
# What becomes of the unsynced changes before a chosen one, of that one, and of those after it.
_CASES = ("lost lost lost", "lost kept lost", "kept lost kept", "kept torn kept", "kept torn lost", "kept any any")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing asked of the disk. `offset` is where a write begins, or the size that a truncate leaves."""

    kind: Literal["create", "write", "truncate", "sync", "delete"]
    path: str
    offset: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Image(Generic[Promise]):
    """The disk after a power cut: `directory` stands for the root, `promised` is all that had to survive, in order."""

    directory: Path
    operation_count: int
    promised: tuple[Promise, ...]


class PowerCut(apsw.VFS, Generic[Promise]):
    """Log what SQLite does beneath `root`: `with PowerCut[int](root) as cut: apsw.Connection(file, vfs=cut.name)`.

    Everything but the syncs, which are slow and prove nothing here, is passed on to the real disk. Any number of
    connections, threads and power cuts may be at work at once in one process. The log stays readable after the `with`
    block; it holds every byte written, so keep the work small.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(os.path.realpath(root))
        self.name = f"powercut-{id(self):x}"
        self.operations: list[Operation] = []
        self._promises: list[tuple[int, Promise]] = []
        self._found: dict[str, bytes] = {}
        self._inodes: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__(self.name, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def promise(self, value: Promise) -> None:
        """Record that from now on `value` has been promised: every image of a later cut lists it."""
        with self._lock:
            self._promises.append((len(self.operations), value))

    def images(self, count: int, *, seed: int, into: Path) -> Iterator[Image[Promise]]:
        """Yield `count` images, each in a folder of its own that is removed when the next one is asked for.

        Half of the cuts fall right after a promise, when it is most at risk, the others anywhere.
        """
        rng = random.Random(seed)
        moments = [operation_count for operation_count, _ in self._promises]
        for number in range(count):
            operation_count = rng.choice(moments) if moments and number % 2 else rng.randint(0, len(self.operations))
            image = self.image(operation_count, rng, into=into / f"cut-{number}-after-{operation_count}")
            yield image
            shutil.rmtree(image.directory)

    def image(self, operation_count: int, rng: random.Random, *, into: Path) -> Image[Promise]:
        """Write the disk, as it may be when the power fails after that many operations, to the new folder `into`."""
        into.mkdir(parents=True)
        for path, content in _disk_after(self._found, self.operations[:operation_count], rng).items():
            (into / path).parent.mkdir(parents=True, exist_ok=True)
            (into / path).write_bytes(content)
        return Image(into, operation_count, tuple(value for count, value in self._promises if count <= operation_count))

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:
        path = self._path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        if path is None or not flags[0] & _SIMULATED:
            return apsw.VFSFile("", name, flags)
        with self._lock:
            is_new = not os.path.exists(self.root / path)
            file = _LoggedFile(self, path, name, flags)
            inode = os.stat(self.root / path).st_ino
            if is_new:
                self.operations.append(Operation("create", path))
            elif path not in self._inodes:
                # Read through SQLite: closing a file that was opened beside it would drop SQLite's locks.
                self._found[path] = file.xRead(size, 0) if (size := file.xFileSize()) else b""
            elif self._inodes[path] != inode:
                raise RuntimeError(f"{path} was replaced outside SQLite, so its images would be wrong")
            self._inodes[path] = inode
            return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        path = self._path(filename)
        with self._lock:
            super().xDelete(filename, syncdir and path is None)
            if path is not None:
                self.operations.append(Operation("delete", path))
            if path is not None and syncdir:
                self.operations.append(Operation("sync", path))

    def _path(self, full_name: str | None) -> str | None:
        """Return a file's path beneath the root, or None if it has none and so is not simulated."""
        prefix = os.path.join(self.root, "")
        return full_name.removeprefix(prefix) if full_name and full_name.startswith(prefix) else None


class _LoggedFile(apsw.VFSFile):
    def __init__(self, cut: PowerCut[Promise], path: str, name: Name, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._cut = cut
        self._path = path

    def xWrite(self, data: Buffer, offset: int) -> None:
        with self._logging(Operation("write", self._path, offset, bytes(data))):
            super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        with self._logging(Operation("truncate", self._path, newsize)):
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        with self._logging(Operation("sync", self._path)):
            pass

    @contextmanager
    def _logging(self, operation: Operation) -> Iterator[None]:
        """Log an operation if it succeeds, alone: a sync covers exactly the writes that stand before it in the log."""
        with self._cut._lock:
            yield
            self._cut.operations.append(operation)


def _disk_after(found: dict[str, bytes], operations: Iterable[Operation], rng: random.Random) -> dict[str, bytearray]:
    files = {path: bytearray(content) for path, content in found.items()}
    unsynced: list[Operation] = []
    for operation in operations:
        if operation.kind == "sync":
            unsynced = _sync(files, unsynced, operation.path)
        else:
            unsynced.append(operation)
    _apply(files, _survivors(unsynced, rng))
    return files


def _sync(files: dict[str, bytearray], unsynced: list[Operation], path: str) -> list[Operation]:
    """Make one file durable, and the names in its folder if its own is new; return what is still unsynced."""
    names_too = any(change.path == path and change.kind in _NAMING for change in unsynced)
    synced, left = list[Operation](), list[Operation]()
    for change in unsynced:
        if change.path == path:
            synced.append(change)
        elif names_too and change.kind in _NAMING and os.path.dirname(change.path) == os.path.dirname(path):
            synced.append(change)  # and what was written under that name before belongs to a file that has none now
            left = [earlier for earlier in left if earlier.path != change.path]
        else:
            left.append(change)
    _apply(files, synced)
    return left


def _apply(files: dict[str, bytearray], changes: Iterable[Operation]) -> None:
    for change in changes:
        if change.kind == "create":
            files[change.path] = bytearray()
        elif change.kind == "delete":
            files.pop(change.path, None)
        elif (content := files.get(change.path)) is not None:
            content.extend(bytes(max(0, change.offset - len(content))))
            if change.kind == "truncate":
                del content[change.offset :]
            else:
                content[change.offset : change.offset + len(change.data)] = change.data


def _survivors(unsynced: Sequence[Operation], rng: random.Random) -> Iterator[Operation]:
    """Yield what reaches the disk of changes that were not synced, oldest first."""
    nameless: set[str] = set()  # files that were written but whose creation was lost: their bytes belong to no name
    for change, fate in zip(unsynced, _fates(len(unsynced), rng), strict=True):
        if change.kind == "create":
            nameless = nameless | {change.path} if fate == "lost" else nameless - {change.path}
        if fate == "lost" or (change.path in nameless and change.kind != "delete"):
            continue
        if fate == "torn" and change.kind == "write":
            yield from (sector for sector in _sectors(change) if rng.random() < 0.5)
        else:
            yield change


def _fates(count: int, rng: random.Random) -> Iterator[str]:
    """Yield "kept", "lost" or "torn" for each unsynced change, oldest first: a worst case, or by chance from one on."""
    chosen = rng.randrange(count) if count else 0
    before, at, after = rng.choice(_CASES).split()
    for index in range(count):
        fate = before if index < chosen else at if index == chosen else after
        yield rng.choice(("kept", "lost", "torn")) if fate == "any" else fate


def _sectors(write: Operation) -> Iterator[Operation]:
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield Operation("write", write.path, start, write.data[start - write.offset : stop - write.offset])
        start = stop
