"""A job is closed for another process only where the process that runs it is gone, or can no longer record its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from playhead import Session
from playhead.session import open as open_sessions
from tests.conftest import PROJECT

WAIT_S = 60
RUNS_JOBS = """
import sys
from playhead.session import open as open_sessions

sessions = open_sessions(sys.argv[1])
session = sessions.create("here")
job = session.begin_job("index")
print("runs", flush=True)
sys.stdin.readline()
session.end_job(job, "completed", result=3, notice="The index has 3 files.")
"""

URLS = ["bundles:{}/sessions", "sqlite:{}/work.db"]


@contextmanager
def running_jobs(url: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process run a job in the session `here`, until it is sent a line."""
    command = [sys.executable, "-c", RUNS_JOBS, url]
    with subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "runs\n"
        try:
            yield process
        finally:
            process.kill()


def statuses(session: Session) -> list[str]:
    return [event.body["status"] for event in session.events(kinds=["job_changed"])]


def told(session: Session) -> list[str]:
    return [message.text for message in session.conversation() if message.injected]


def locks(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and {".jobs", "work.db.locks"} & {*path.parts}]


@pytest.mark.parametrize("url", URLS)
def test_a_job_goes_on_while_other_processes_resume_and_take_turns(tmp_path: Path, url: str) -> None:
    url = url.format(tmp_path)
    with running_jobs(url) as process, open_sessions(url) as sessions:
        session = sessions.resume("here")
        with session.turn("mine") as turn:
            turn.say("It runs elsewhere.")
        meanwhile, sealed = told(session), session.resumed.sealed.jobs
        process.communicate("end\n", timeout=WAIT_S)
        session.refresh()

        assert (meanwhile, sealed) == ([], ())
        assert statuses(session) == ["running", "completed"]
        assert told(session) == ["The index has 3 files."]
        assert session.verify().problems == ()
        assert locks(tmp_path) == []


@pytest.mark.parametrize("url", URLS)
def test_a_process_that_died_leaves_jobs_that_are_closed_and_told_when_the_session_is_resumed(
    tmp_path: Path, url: str
) -> None:
    """K11."""
    url = url.format(tmp_path)
    with running_jobs(url) as process:
        process.kill()
        process.wait(WAIT_S)
    left = locks(tmp_path)
    with open_sessions(url) as sessions:
        session = sessions.resume("here")

        assert len(left) == 1
        assert len(session.resumed.sealed.jobs) == 1
        assert statuses(session) == ["running", "interrupted"]
        assert "index" in told(session)[0]
        assert locks(tmp_path) == []


@pytest.mark.parametrize("url", [*URLS, "memory:"])
def test_another_object_of_the_same_process_leaves_a_job_running_too(tmp_path: Path, url: str) -> None:
    with open_sessions(url.format(tmp_path)) as sessions:
        session = sessions.create("here")
        begun = session.begin_job("index")
        other = sessions.resume("here")
        with other.turn("mine"):
            pass
        session.refresh()
        session.end_job(begun, "completed", notice="It is done.")

        assert other.resumed.sealed.jobs == ()
        assert statuses(session) == ["running", "completed"]
        assert told(session) == ["It is done."]


def test_a_job_of_a_store_that_was_closed_is_closed_by_whoever_comes_next(tmp_path: Path) -> None:
    url = f"bundles:{tmp_path}/sessions"
    with open_sessions(url) as sessions:
        session = sessions.create("here")
        session.begin_job("index")
    with open_sessions(url) as sessions:
        resumed = sessions.resume("here")

        assert len(resumed.resumed.sealed.jobs) == 1
        assert session.id == "here"  # The object lives; it can record nothing any more.


def test_a_fork_does_not_wait_for_the_jobs_of_its_parent(tmp_path: Path) -> None:
    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.create("here")
        begun = session.begin_job("index")
        session.fork(id="there")
        forked = sessions.resume("there")
        session.end_job(begun, "completed")

        assert statuses(forked) == ["running", "interrupted"]
        assert statuses(session) == ["running", "completed"]


@pytest.mark.parametrize(
    "owner",
    [{"id": "../../here.playhead"}, {"id": ""}, {"id": 7}, {}, "me", None, {"id": "0" * 32, "host": "elsewhere"}],
)
def test_an_owner_that_is_none_keeps_no_job_open(tmp_path: Path, owner: object) -> None:
    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.create("here")
        body = {"job": "job-1", "kind": "background", "name": "index", "status": "running", "owner": owner}
        session.append("job_changed", body)
        before = sorted(path.name for path in tmp_path.rglob("*"))
        resumed = sessions.resume("here")

        assert resumed.resumed.sealed.jobs == ("job-1",)
        assert [path.name for path in tmp_path.rglob("*") if path.name not in before] == []


def test_a_job_that_is_given_up_is_closed_by_the_next_turn(tmp_path: Path) -> None:
    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.create("here")
        begun = session.begin_job("index")
        session.abandon_job(begun)
        with session.turn("and now?"):
            pass

        assert statuses(session) == ["running", "interrupted"]
        assert "index" in told(session)[0]
        assert locks(tmp_path) == []


def test_who_has_a_result_is_told_again_only_where_the_job_was_taken_for_dead(tmp_path: Path) -> None:
    with open_sessions(f"bundles:{tmp_path}/sessions") as sessions:
        session = sessions.create("here")
        plain, closed = session.begin_job("plain"), session.begin_job("closed")
        body = {"job": closed.body["job"], "kind": "background", "status": "interrupted"}
        session.append("job_changed", body)  # As a process on another host does, which cannot ask about this one.
        for begun in (plain, closed):
            session.end_job(begun, "completed", notice=f"{begun.body['name']} is done.", is_awaited=True)

        assert told(session) == ["closed is done."]
