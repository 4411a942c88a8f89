"""What a store promises: the log and its few companions, as protocols with the promises written down.

A store keeps; it decides nothing. Everything above it (turns, resume, search, retention) is built from these methods.
All methods block, may be called from any thread, and raise only errors of `playhead.errors`.

Promises that hold for every method that writes:
- It is one transaction: after an error nothing of it was written.
- When it returns, what it wrote survives the death of the process (`durability="process"`); with
  `durability="power"` an append that holds a `turn_ended` also survives a loss of power.
- Session keys are matched exactly, all three parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from playhead.model.event import Draft, Event
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.model.snapshot import Snapshot
from playhead.stores.listing import Listing

Durability = Literal["process", "power"]

EVENTS_PAGE_MAX = 1_000
"""Most events that one `events` call returns; callers page with `after`."""

ROWS_PAGE_MAX = 1_000
"""Most rows that one `sessions` call returns."""

LEASE_S = 30.0
"""Seconds after its last sign of life at which a lease of another host is free."""

RENEW_S = 10.0
"""A lease's sign of life is renewed by an append when the last one is older than this many seconds."""


class Tip(msgspec.Struct, frozen=True, gc=False):
    """Where a log ends. seq: its last event (also the session's revision). head: where the head stands. at: `at` of
    the last event. hash: chain hash of the last event."""

    seq: int
    head: int
    at: float
    hash: bytes


class Record(msgspec.Struct, frozen=True):
    """An event as it is stored, for verification and export. body is None where it was redacted; then `digest` stands
    for it.
    digest is None otherwise."""

    seq: int
    parent: int
    id: str
    at: float
    kind: str
    agent: str | None
    turn: str | None
    scope: str | None
    body: str | None
    salt: bytes | None
    digest: bytes | None
    hash: bytes
    is_fact: bool


class SessionRow(msgspec.Struct, frozen=True):
    """One session of a listing. seq and at: those of its last event. summary: the saved listing row (JSON text) and
    summary_seq the event up to which it holds, None and 0 where none was saved. problem: why the session cannot be
    read, or None; then the other fields say what is known. size_bytes: on disk, where the store can tell."""

    key: SessionKey
    seq: int
    at: float
    summary: str | None = None
    summary_seq: int = 0
    problem: str | None = None
    size_bytes: int | None = None


class TrashedRow(msgspec.Struct, frozen=True):
    """One session in the trash. trash_id: what it goes by there. key: its key when it was put there; at: when that was
    (UTC seconds). The rest is as in `SessionRow`."""

    trash_id: str
    key: SessionKey
    at: float
    seq: int
    summary: str | None = None
    problem: str | None = None
    size_bytes: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """The right to be the one who is in a turn. fence grows with every new holder and is checked by every append."""

    key: SessionKey
    fence: int
    holder: dict[str, Any]


class LeftStream(msgspec.Struct, frozen=True):
    """A message that was streaming when its writer stopped. id, header: as given to `Streams.begin`. chunks: (part
    type, text) in order."""

    id: str
    header: dict[str, Any]
    chunks: list[tuple[str, str]]


class TextRow(msgspec.Struct, frozen=True):
    """What the text index takes of one event: the analysed text, ready to be split at white space."""

    seq: int
    text: str


class TextMatch(msgspec.Struct, frozen=True):
    """One match of the text index. score: larger is better, comparable within one answer only."""

    key: SessionKey
    seq: int
    score: float


class TextFilter(msgspec.Struct, frozen=True):
    """What a match must also satisfy; None and empty mean any. since is inclusive, until exclusive (UTC seconds)."""

    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


class ArtifactRef(msgspec.Struct, frozen=True):
    """Bytes that a session keeps beside its log. hash: `sha256-` and 64 hex digits, which is also its name on disk."""

    hash: str
    size: int


class Streams(Protocol):
    """Crash-durable records of messages that are still being written. Not part of the log."""

    def begin(self, key: SessionKey, id: str, header: dict[str, Any]) -> None:
        """Open the record of message `id`. Several may be open in one session at a time."""

    def add(self, key: SessionKey, id: str, part: str, text: str) -> None:
        """Add a chunk of a part (`text`, `reasoning`). On return it survives the death of the process."""

    def end(self, key: SessionKey, id: str) -> None:
        """Drop the record; its message is in the log (or was given up). Unknown ids are ignored."""

    def left(self, key: SessionKey) -> list[LeftStream]:
        """Return the records that were begun and not ended, in order of beginning; a torn last chunk is dropped."""


class Artifacts(Protocol):
    """Binary outputs of a session, named by their content. Nothing here can leave the artifact folder."""

    def put(self, key: SessionKey, data: bytes) -> ArtifactRef:
        """Keep bytes, atomically. Keeping the same bytes again changes nothing."""

    def get(self, key: SessionKey, hash: str) -> bytes:
        """Return the bytes. Raises `ArtifactNotFound`, or `ArtifactDamaged` where they do not match their hash."""

    def hashes(self, key: SessionKey) -> list[str]:
        """Return the hashes of all kept bytes, sorted."""

    def total_bytes(self) -> int:
        """Return what the kept bytes of all sessions take on disk, without those in the trash; 0 in memory."""


class Notes(Protocol):
    """The store log: facts that belong to no session (shared state, import positions, settings, purged ids)."""

    def put(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        """Append a note. The one of (topic, name) that was put last is in force, whatever `at` says.

        The same id again changes nothing.
        """

    def replace(self, topic: str, name: str, body: dict[str, Any], *, id: str, at: float) -> None:
        """Put a note as `put` does, and remove all earlier ones of (topic, name) with it, in one transaction.

        For what can be found out again and of which only the newest is of use, such as how far a source was read: it
        takes no more room however often it is put. The ids of the notes that went are free again.
        """

    def get(self, topic: str, name: str) -> dict[str, Any] | None:
        """Return the body of the newest note, or None."""

    def all(self, topic: str) -> dict[str, dict[str, Any]]:
        """Return the newest body for every name of a topic, in order of name."""


class TextIndex(Protocol):
    """A full-text index over analysed text. A cache: it can be dropped and built again from the log."""

    def indexed_seq(self, key: SessionKey) -> int:
        """Return the seq up to which the session is indexed, 0 for not at all."""

    def add(self, key: SessionKey, rows: Sequence[TextRow], *, up_to: int) -> None:
        """Index rows after `indexed_seq` and move it to `up_to`, in one transaction; earlier rows are ignored."""

    def match(
        self, expression: str, *, keys: Sequence[SessionKey] | None = None, where: TextFilter, limit: int
    ) -> list[TextMatch]:
        """Return the best matches of an FTS5 expression, best first; over all sessions where `keys` is None."""

    def drop(self, key: SessionKey | None = None) -> None:
        """Forget the index of a session, or of all. Searching builds it again."""


class Store(Protocol):
    """A place where sessions live."""

    @property
    def url(self) -> str:
        """What opens this store again."""

    @property
    def durability(self) -> Durability:
        """What its appends survive."""

    @property
    def streams(self) -> Streams:
        """Records of messages that are still streaming."""

    @property
    def artifacts(self) -> Artifacts:
        """Binary outputs."""

    @property
    def notes(self) -> Notes:
        """The store log."""

    @property
    def text(self) -> TextIndex:
        """The full-text index."""

    @property
    def listing(self) -> Listing:
        """The rows of lists."""

    def create(self, key: SessionKey, drafts: Sequence[Draft], *, artifacts: Iterable[bytes] = ()) -> list[Event]:
        """Begin a session with its first events; the first is its `session_started`. Raises `SessionExists`.

        artifacts: bytes that it has from its first moment on; they are kept before the session is there.
        """

    def append(
        self, key: SessionKey, drafts: Sequence[Draft], *, expected_seq: int | None, fence: int | None = None
    ) -> list[Event]:
        """Append events and return them with seq and parent, in order.

        expected_seq: the seq that the log must end at, else `StaleWriter` is raised. None asks for no check and is only
        taken together with a fence. fence: the number of the lease the caller holds, else `LeaseLost` is raised; under
        a valid fence, facts that others appended meanwhile are no conflict, so `expected_seq` is not compared.
        Without a fence, events on the path (and `head_moved`) raise `SessionBusy` while somebody alive holds the lease;
        other facts are taken.

        When the ids of all drafts are in the log with the same kind and body, the stored events are returned and
        nothing is written, whatever `expected_seq` and the lease say: a retry is safe. Any other overlap raises
        `EventConflict`. `[]` is returned for no drafts.
        """

    def put_records(
        self, key: SessionKey, records: Iterable[Record], *, expected_seq: int, artifacts: Iterable[bytes] = ()
    ) -> Tip:
        """Write events byte for byte as another store had them, and return where the log ends then.

        expected_seq: 0 begins the session (`SessionExists` where it is there), else the seq at which the log must end
        (`StaleWriter`; `SessionBusy` while somebody alive holds the lease). records: in seq order, without a gap. They
        are taken a page at a time and proved, hash included; one that does not hold raises `InvalidEvent` with its
        seq, an id that is there already `EventConflict`. Whatever is raised, also by the iterable itself, no event was
        written. While it is read nobody waits: others write meanwhile, and the session may be taken by one of them.
        artifacts: bytes to keep beside the log; they are taken once all records have proved right, and are there before
        the events are.
        """

    def tip(self, key: SessionKey) -> Tip:
        """Return where the log ends. Raises `SessionNotFound`."""

    def events(
        self,
        key: SessionKey,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int = EVENTS_PAGE_MAX,
        kinds: Sequence[str] | None = None,
        newest_first: bool = False,
    ) -> list[Event]:
        """Return events with after < seq <= until, in seq order (or newest first), `limit` at most."""

    def events_at(self, key: SessionKey, positions: Ranges) -> list[Event]:
        """Return exactly the events at these positions, in their order. Reads no other event."""

    def tail(self, key: SessionKey, head: int) -> tuple[list[Snapshot], list[Event]]:
        """Return the newest snapshot on the path of `head` as its chain (complete one first, [] if there is none), and
        the events of the path after it, up to `head`. Reads no event of another branch.

        A snapshot that cannot be used (of a newer version, with a link of its chain missing, or with slots that are no
        fold's) is passed over. Raises `EventNotFound` where the log has no event on a path at `head`; head 0 gives
        nothing.
        """

    def facts(self, key: SessionKey, *, until: int | None = None) -> list[Event]:
        """Return the facts with seq <= until, oldest first, without reading other events."""

    def seq_of(self, key: SessionKey, ids: Iterable[str]) -> dict[str, int]:
        """Return the seq of each event id that is in the log; absent ids are left out."""

    def records(self, key: SessionKey, *, after: int = 0, limit: int = EVENTS_PAGE_MAX) -> list[Record]:
        """Return events as stored, in seq order."""

    def snapshot_seqs(self, key: SessionKey) -> list[int]:
        """Return the seqs at which a snapshot is kept, ascending."""

    def save_snapshot(self, key: SessionKey, snapshot: Snapshot) -> None:
        """Keep a snapshot, in place of one at the same seq. Raises `EventNotFound` unless it is an event on a path."""

    def save_summary(self, key: SessionKey, seq: int, summary: str) -> None:
        """Keep the listing row that holds up to `seq`; an older one than the kept one is ignored."""

    def sessions(
        self, *, app: str | None = None, user: str | None = None, after: SessionKey | None = None, limit: int = 100
    ) -> list[SessionRow]:
        """Return sessions in key order, those after `after`. One that cannot be read is a row with a `problem`."""

    def acquire(self, key: SessionKey, *, label: str = "", at: float) -> Lease:
        """Take the lease, or raise `SessionBusy` with the holder. A dead holder's lease is free at once on the same
        host, and `LEASE_S` after its last sign of life elsewhere."""

    def release(self, lease: Lease) -> None:
        """Give the lease back. One that was taken over meanwhile is left alone."""

    def holder(self, key: SessionKey) -> dict[str, Any] | None:
        """Return who is in a turn of the session, or None. A dead holder counts as none."""

    def delete(self, key: SessionKey) -> None:
        """Remove the session with its artifacts, streams and index, for good.

        Raises `SessionNotFound`, or `SessionBusy` while somebody alive is in a turn of it.
        """

    def trash(self, key: SessionKey, *, trash_id: str, at: float) -> None:
        """Put the session into the trash, with its artifacts and streams. Its id is free at once.

        It is in no list and no search then, and whoever has it open can append no more (`SessionNotFound`). Its text
        index is dropped. One that cannot be read goes as well, where a store keeps it in a file of its own.
        Raises `SessionNotFound`, `SessionBusy` while somebody alive is in a turn of it, and `InvalidName` for a trash
        id that is taken or is not 1 to 64 of `a` to `z` and digits.
        """

    def trashed(self, *, after: str | None = None, limit: int = 100) -> list[TrashedRow]:
        """Return what is in the trash in order of trash ids, those after `after`."""

    def trashed_row(self, trash_id: str) -> TrashedRow:
        """Return what `trashed` says of one, without looking at the others. Raises `TrashNotFound`."""

    def is_trashed(self, key: SessionKey) -> bool:
        """Return True where a session of this key lies in the trash, be there another one outside it or not.

        Asking again and again is cheap: what was looked at once is known.
        """

    def restore(self, trash_id: str, key: SessionKey) -> None:
        """Bring a session back under a key: that which it had, or another one.

        Raises `TrashNotFound`, and `SessionExists` where the key is taken; then it stays in the trash.
        """

    def purge(self, trash_id: str) -> None:
        """Remove a session of the trash for good, with all that belongs to it. Raises `TrashNotFound`."""

    def size_bytes(self) -> int:
        """Return the bytes that the store takes on disk, its trash included, 0 for a store in memory."""

    def close(self) -> None:
        """Close every file. Calling it twice is fine; any other call afterwards raises `StoreClosed`."""
