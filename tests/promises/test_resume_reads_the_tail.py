"""Promise 4 (K8): a resume reads the tail. What it costs depends on the live conversation, not on the history."""

from __future__ import annotations

from collections import Counter
from typing import Any

import apsw
import pytest

from playhead.errors import SessionNotFound
from playhead.model.snapshot import CHAIN_MAX
from playhead.session import Session, Sessions
from playhead.stores.sqlite.connect import Database, Row
from playhead.views.conversation import conversation_of_path
from tests.promises.long_sessions import lengthen, turn
from tests.promises.places import Place, log_of

SHORT, LONG, LONGEST = 1_000, 10_000, 100_000

ROWS_MAX = 40
"""The live conversation of these sessions is 16 messages; the rest is the session's row, its end, and the lease."""

STEPS_PER_LINK = 40
"""Steps of SQLite's virtual machine for one link of a chain of snapshots; chains differ in length, within bounds."""


class Reading:
    """What was read: rows by query, and steps of SQLite's virtual machine (rows that were looked at in vain too)."""

    def __init__(self) -> None:
        self.rows = Counter[str]()
        self.steps = 0

    @property
    def links(self) -> int:
        return self.rows["snapshot_chain"]

    @property
    def other_rows(self) -> dict[str, int]:
        return {name: count for name, count in self.rows.items() if name != "snapshot_chain"}


@pytest.mark.parametrize("length", [LONG, pytest.param(LONGEST, marks=pytest.mark.slow)])
def test_a_resume_reads_the_same_rows_however_long_the_history(
    length: int, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = []
    for event_count in (SHORT, length):
        with place.open() as sessions:
            lengthen(_session(sessions), event_count)
        readings.append(_resumed(place, monkeypatch))
    short, long = readings

    assert long.other_rows == short.other_rows
    assert sum(short.other_rows.values()) <= ROWS_MAX
    assert long.links <= CHAIN_MAX
    assert abs(long.steps - short.steps) <= abs(long.links - short.links) * STEPS_PER_LINK


def test_a_resume_after_a_crash_reads_the_events_after_the_snapshot_and_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = []
    for event_count in (SHORT, LONG):
        with place.open() as sessions:
            session = _session(sessions)
            lengthen(session, event_count)
            cut_off = list(turn(100_000 + event_count))[:4]
            session.append_all(cut_off)
        readings.append(_resumed(place, monkeypatch))

    assert readings[0].rows["path_tail"] == readings[1].rows["path_tail"] == len(cut_off)
    assert readings[0].other_rows == readings[1].other_rows


def test_a_resume_reads_no_event_of_an_abandoned_branch(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.open() as sessions:
        session = _session(sessions)
        lengthen(session, SHORT)
        fork_point = session.head
    before = _resumed(place, monkeypatch)
    with place.open() as sessions:
        session = _session(sessions)
        lengthen(session, LONG)
        abandoned = (fork_point + 1, session.seq)
        session.rewind(to=fork_point)
        session.close()
    seqs: list[int] = []
    after = _resumed(place, monkeypatch, seqs=seqs)

    assert before.rows["events_range"] == after.rows["events_range"]
    assert [seq for seq in seqs if abandoned[0] <= seq <= abandoned[1]] == []
    assert after.links <= CHAIN_MAX


def _session(sessions: Sessions) -> Session:
    try:
        return sessions.get("s1")
    except SessionNotFound:
        return sessions.create("s1")


def _resumed(place: Place, monkeypatch: pytest.MonkeyPatch, *, seqs: list[int] | None = None) -> Reading:
    """Open the session anew, and return what resuming it and reading its conversation took (and the seqs of events)."""
    reading = Reading()
    query = Database.query

    def counted(database: Database, name: str, *more: Any, **named: Any) -> list[Row]:
        rows = query(database, name, *more, **named)
        reading.rows[name] += len(rows)
        if seqs is not None and name in ("path_tail", "events_range", "events"):
            seqs.extend(row[0] for row in rows)
        return rows

    def profiled(event: dict[str, Any]) -> None:
        reading.steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    with place.open() as sessions:
        connection = log_of(sessions.store, "s1").database.connection
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, profiled)
        monkeypatch.setattr(Database, "query", counted)
        try:
            session = sessions.resume("s1")
            conversation = session.conversation()
        finally:
            monkeypatch.setattr(Database, "query", query)
            connection.trace_v2(0, None)
        assert conversation == conversation_of_path(session.path())
    return reading
