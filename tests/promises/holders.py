"""Processes that hold a session, or write to it, beside the test: what the tests of one writer start as children."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

import playhead
from playhead.errors import PlayheadError
from playhead.model.ids import session_key
from playhead.stores.sqlite import log
from tests.promises.line import Line


def hold(line: Line, *, url: str, id: str, host: str | None = None, lock: str | None = None) -> None:
    """Be in a turn of a session, and write to it whenever told: `"say"`, `"stream"`, `"end"`.

    host: pretend to run on another machine. Its locks do not reach this one, so the lock file's name goes away as well.
    """
    if host is not None:
        log._host = lambda: {"host": host}  # type: ignore[assignment]
    sessions = playhead.open(url)
    turn = sessions.get(id).turn("I was here first.", label="the first")
    if lock is not None:
        Path(lock).unlink()
    line.say("holding", turn.number)
    while (word := line.hear()) is not None:
        try:
            if word == "say":
                line.say("said", turn.say("Still here.").seq)
            elif word == "stream":
                turn.stream("still ")
                line.say("streamed")
            else:
                turn.end()
                line.say("ended")
        except PlayheadError as error:
            line.say("refused", type(error).__name__, str(error))
        if word == "end":
            return


def append_stale(line: Line, *, url: str, id: str) -> None:
    """Look at a session, wait for a word, and append as if nothing had happened since."""
    session = playhead.open(url).get(id)
    line.say("looked", session.seq)
    line.hear()
    try:
        line.say("appended", session.append("note", {"name": "stale"}).seq)
    except PlayheadError as error:
        line.say("refused", type(error).__name__, str(error))


def contend(line: Line, *, url: str, id: str, count: int) -> None:
    """Append so many notes against other processes: read again and retry wherever one came first."""
    session = playhead.open(url).get(id)
    line.say("ready")
    line.hear()
    done = refused = 0
    while done < count:
        try:
            line.say("appended", session.append("note", {"name": "test", "number": done}).id)
            done += 1
        except playhead.StaleWriter:
            refused += 1
            session.refresh()
    line.say("done", refused)


def rename(line: Line, *, url: str, id: str, title: str) -> None:
    """State facts about a session, whoever is in a turn of it."""
    session = playhead.open(url).get(id)
    session.rename(title)
    session.set_state({"seen": title}, scope="user")
    line.say("renamed", session.seq)


def take_turns(line: Line, *, url: str, id: str, count: int) -> None:
    """Take so many turns against other processes, waiting for none of them to be polite."""
    session = playhead.open(url).get(id)
    line.say("ready")
    line.hear()
    busy = 0
    for number in range(count):
        while True:
            try:
                turn = session.turn(f"Turn {number}")
                break
            except playhead.SessionBusy:
                busy += 1
                time.sleep(0.001)
        turn.say(f"Done {number}")
        turn.end()
    line.say("done", busy)


def hold_transaction(line: Line, *, file: str) -> None:
    """Keep a write transaction open on a database file until told to go on."""
    db = apsw.Connection(file)
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE sessions SET summary_seq = summary_seq")
    line.say("writing")
    line.hear()
    db.execute("ROLLBACK")
    line.say("rolled back")


def edit_lease(line: Line, *, file: str, holder: str | None, renewed_at: float) -> None:
    """Write into the lease of the only session of a file, as another machine would."""
    db = apsw.Connection(file)
    db.execute("UPDATE sessions SET holder = ?, renewed_at = ?, fence = fence + 1", (holder, renewed_at))
    line.say("edited")


def delete(line: Line, *, url: str, id: str, again: bool) -> None:
    """Delete a session, and begin another under its id."""
    sessions = playhead.open(url)
    sessions.delete(id)
    if again:
        session = sessions.create(id, title="Begun again")
        session.append("note", {"name": "new"})
    line.say("deleted", sessions.store.tip(session_key(id)).seq if again else 0)


def hold_and_fork(line: Line, *, url: str, id: str) -> None:
    """Be in a turn, and fork a child that outlives this process, as `multiprocessing` does."""
    sessions = playhead.open(url)
    turn = sessions.get(id).turn("I was here first.")
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, b"!")
        time.sleep(600)
        os._exit(0)
    os.read(ours, 1)  # Until the child runs Python, it has not let go of what it inherited.
    line.say("forked", child, turn.number)
    line.hear()
