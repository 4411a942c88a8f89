"""A session of a store to the lines of an export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import msgspec

from playhead.errors import ArtifactDamaged, ArtifactNotFound, InvalidEvent, StoreDamaged
from playhead.formats.jsonl.lines import (
    CHUNK_BYTES,
    FORMAT,
    LINE_BYTES_MAX,
    VERSION,
    EndLine,
    SessionLine,
    artifact_line,
    event_line,
    event_text,
    line_text,
)
from playhead.formats.redaction import Redactor
from playhead.model.body import object_in, text_in
from playhead.model.codec import decode_body, encode_body
from playhead.model.ids import SessionKey
from playhead.session import Sessions
from playhead.stores.base import Record, Tip
from playhead.stores.records import EMPTY_TIP, Continuation
from playhead.views.facts import facts


class Written(msgspec.Struct, frozen=True):
    """What was written of a session. lost_artifacts: hashes of artifacts that the log names, or the store keeps, and
    whose bytes are missing or damaged, so that they could not be written."""

    key: SessionKey
    event_count: int
    artifact_count: int
    lost_artifacts: tuple[str, ...] = ()


def write_session(
    sessions: Sessions, key: SessionKey, out: BinaryIO, *, artifacts: bool = True, redactor: Redactor | None = None
) -> Written:
    """Write a session, as its log ends now, in lines that `import_jsonl` makes the same session of.

    With a `redactor` texts are masked, artifacts are left out (nothing can be looked for in them), and the hashes too.
    Holds a page of events, or one artifact, at a time. Raises `SessionNotFound`, and `StoreDamaged` where the chain
    does not hold: what would not go in again is not given out as if it would.
    """
    store = sessions.store
    tip = store.tip(key)
    out.write(line_text(_first_line(sessions, key, tip, redactor)))
    named: dict[str, None] = {}
    for record in _records(sessions, key, tip, is_checked=redactor is None):
        line, body = event_line(record), record.body
        if record.kind == "artifact_saved" and body:
            named.setdefault(text_in(decode_body(body), "hash") or "")
        if redactor is not None:
            line = msgspec.structs.replace(
                line,
                agent=redactor.optional(line.agent),
                scope=redactor.optional(line.scope),
                salt=None,
                hash=None,
            )
            body = body and encode_body(redactor.body(decode_body(body)))
        text = event_text(line, body)
        if len(text) > LINE_BYTES_MAX:
            raise InvalidEvent(
                f"session {key.id!r}: event {record.seq} takes {len(text)} bytes; a line may have {LINE_BYTES_MAX}"
            )
        out.write(text)
    hashes = list(dict.fromkeys([*store.artifacts.hashes(key), *named])) if artifacts and redactor is None else []
    lost = [hash for hash in hashes if not _write_artifact(sessions, key, hash, out)]
    counts = None if redactor is None else dict(sorted(redactor.counts.items()))
    artifact_count = len(hashes) - len(lost)
    end = EndLine(_masked_key(key, redactor).id, tip.seq, artifact_count, _hash(tip, redactor), counts)
    out.write(line_text(end))
    return Written(key, tip.seq, artifact_count, tuple(lost))


def _first_line(sessions: Sessions, key: SessionKey, tip: Tip, redactor: Redactor | None) -> SessionLine:
    named = _masked_key(key, redactor)
    started = sessions.store.events(key, limit=1)[0].body
    parent = {name: value for name, value in object_in(started, "forked_from").items() if isinstance(value, str | int)}
    title = facts(sessions.store.facts(key)).title
    if redactor is not None:
        title, parent = redactor.optional(title), redactor.value(parent)
    return SessionLine(
        format=FORMAT,
        version=VERSION,
        app=named.app,
        user=named.user,
        id=named.id,
        event_count=tip.seq,
        hash=_hash(tip, redactor),
        title=title and _readable(title),
        forked_from=_readable_fields(parent) or None,
        masked=redactor is not None,
    )


def _records(sessions: Sessions, key: SessionKey, tip: Tip, *, is_checked: bool) -> Iterator[Record]:
    """Yield the records up to the tip, each proved to follow from the one before where `is_checked` is set."""
    log = Continuation(EMPTY_TIP, is_on_path=lambda seq: False)
    after = 0
    while after < tip.seq:
        page = [record for record in sessions.store.records(key, after=after) if record.seq <= tip.seq]
        if not page:
            raise StoreDamaged(f"session {key.id!r}: its log ends at event {tip.seq}, but there is none after {after}")
        for record in page:
            if is_checked:
                try:
                    log.take(record)
                except InvalidEvent as error:
                    raise StoreDamaged(
                        f"session {key.id!r} is damaged, and JSON Lines of it would not be taken back: {error}; "
                        "Markdown and HTML show what can be read, and masking makes a new chain of it"
                    ) from error
            yield record
        after = page[-1].seq
    assert not is_checked or log.tip.hash == tip.hash, "the last record is the one that the tip is of"


def _write_artifact(sessions: Sessions, key: SessionKey, hash: str, out: BinaryIO) -> bool:
    """Write the lines of an artifact; return False, and write none, where the store cannot give it."""
    try:
        data = sessions.store.artifacts.get(key, hash)
    except (ArtifactDamaged, ArtifactNotFound):
        return False
    offset = 0
    while True:  # An empty artifact has one line as well.
        line = artifact_line(hash, data, offset)
        out.write(line_text(line))
        offset += len(data[offset : offset + CHUNK_BYTES])
        if offset >= len(data):
            return True


def _masked_key(key: SessionKey, redactor: Redactor | None) -> SessionKey:
    if redactor is None:
        return key
    return SessionKey(redactor.text(key.app), redactor.text(key.user), redactor.text(key.id))


def _hash(tip: Tip, redactor: Redactor | None) -> str | None:
    return tip.hash.hex() if redactor is None else None


def _readable(text: str) -> str:
    """Return text of the first line; half a surrogate pair in it, which only an event need carry, becomes `?`."""
    return text.encode("utf-8", "replace").decode()


def _readable_fields(fields: Mapping[str, str | int]) -> dict[str, str | int]:
    return {_readable(name): _readable(one) if isinstance(one, str) else one for name, one in fields.items()}
