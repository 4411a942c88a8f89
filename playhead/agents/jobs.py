"""Background jobs: work that an agent starts in a turn, that goes on after it, and whose end the agent is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import msgspec

from playhead.agents.failing import ending_no_program
from playhead.aio import AsyncSession, finished
from playhead.errors import (
    InvalidEvent,
    JobCancelled,
    LeaseLost,
    PlayheadError,
    SessionBusy,
    StaleWriter,
    StoreFull,
    StoreUnavailable,
    TooManyJobs,
)
from playhead.features.reading import DEFAULT_AGENT
from playhead.model.event import Event

JOBS_MAX = 32
"""Most jobs that run at a time in one session."""

NOTICE_CHARS_MAX = 8_000
"""So much of a job's result is told to the agent; the log has all of it."""

ERROR_CHARS_MAX = 2_000
BUSY_PAUSE_S = 0.25
"""So long a pause is made before an end that the session does not take for now is recorded again."""

STOP_S = 5.0
"""A job that was cancelled has so long to stop; after that it is recorded as cancelled, and its work is left alone."""

RECORD_S = 10.0
"""Once all is to end, the session has so long to take what is still to be recorded."""

PASSING = (SessionBusy, LeaseLost, StaleWriter, StoreFull, StoreUnavailable)
"""What an append may fail for now and not later: another process is in a turn, there is no room."""

OnJob = Callable[["BackgroundJob"], None]
"""Is told of a job that began or ended, on the event loop."""


class BackgroundJob:
    """One job. `await job` waits for its end and returns its result, or raises what it raised, or `JobCancelled`.

    status: `running` until its end is in the log, then `completed`, `failed` or `cancelled`; `interrupted` where its
    end could not be recorded, which is what the log will say. result: what it gave. error: of a failed or an
    interrupted one, a text.
    """

    def __init__(self, name: str, begun: Event, work: Coroutine[Any, Any, Any]) -> None:
        self.id = str(begun.body["job"])
        self.name = name
        self.begun = begun
        self.status = "running"
        self.result: Any = None
        self.error: str | None = None
        self._work = asyncio.ensure_future(_working(work))
        self._work.add_done_callback(lambda done: work.close())  # Cancelled at once, it never began.
        self._ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting_count = 0
        self._is_left = asyncio.Event()
        self._is_given_up = asyncio.Event()

    def cancel(self) -> None:
        """Ask it to stop. It ends as cancelled once it has."""
        self._work.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._end().__await__()

    async def _end(self) -> Any:
        self._waiting_count += 1
        try:
            # Whoever waits may be cancelled; the job is not.
            return await asyncio.shield(self._ended)
        finally:
            self._waiting_count -= 1


class Jobs:
    """The jobs of one open session, for the agents that answer in it. `start` is what an agent calls.

    A job's beginning and end are in the log. The end also tells the agent, as an injected message that is sent with the
    next turn (or the one that is going on), unless the agent itself waits for the job. For use on one event loop.
    """

    def __init__(self, session: AsyncSession, *, on_job: OnJob | None = None) -> None:
        self._session = session
        self._on_job = on_job
        self._running: dict[str, BackgroundJob] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._starting_count = 0

    async def start(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        *,
        args: Any = None,
        kind: str = "background",
        agent: str = DEFAULT_AGENT,
    ) -> BackgroundJob:
        """Record that a job began, then run it. Its result has to be what JSON can hold.

        args: what it works on, for the record. Raises `TooManyJobs`, and what the recording raises; the work has not
        begun then.
        """
        if len(self._running) + self._starting_count >= JOBS_MAX:
            work.close()
            raise TooManyJobs(self._session.id, running=len(self._running))
        self._starting_count += 1
        try:
            begun = await self._session.begin_job(name, args=args, kind=kind, agent=agent)
        except BaseException:
            work.close()
            raise
        finally:
            self._starting_count -= 1
        job = BackgroundJob(name, begun, work)
        self._running[job.id] = job
        self._watching[job.id] = asyncio.ensure_future(self._watch(job))
        self._tell(job)
        return job

    @property
    def running(self) -> list[BackgroundJob]:
        """The jobs that run, oldest first."""
        return list(self._running.values())

    async def close(self, *, patience_s: float = 0.0) -> None:
        """Wait so long for the jobs that run, then cancel what still does. All have ended on return, also where the
        task is cancelled: a job that does not stop within `STOP_S` is left alone, and what cannot be recorded within
        `RECORD_S` counts as interrupted."""
        watching = list(self._watching.values())
        if not watching:
            return
        try:
            if patience_s > 0:
                await asyncio.wait(watching, timeout=patience_s)
        finally:
            await finished(self._stop())

    async def _stop(self) -> None:
        jobs, watching = self.running, list(self._watching.values())
        if not jobs:
            return
        for job in jobs:
            job.cancel()
        await asyncio.wait([job._work for job in jobs], timeout=STOP_S)
        for job in jobs:
            job._is_left.set()
        await asyncio.wait(watching, timeout=RECORD_S)
        for job in jobs:
            job._is_given_up.set()
        await asyncio.wait(watching)

    async def _watch(self, job: BackgroundJob) -> None:
        """Wait for a job's end, whatever it is, and record it."""
        failure: Exception | None = None
        await _either(job._work, job._is_left)
        try:
            if not job._work.done():  # It was cancelled, did not stop, and is left alone.
                raise asyncio.CancelledError
            status, job.result = "completed", msgspec.to_builtins(job._work.result())
        except asyncio.CancelledError:
            status = "cancelled"
        except Exception as error:  # The agent's own code: whatever it raises is the job's failure, and told as that.
            failure, status, job.error = error, "failed", f"{type(error).__name__}: {error}"[:ERROR_CHARS_MAX]
        try:
            job.status = await self._recorded(job, status)
        except PlayheadError as error:
            failure, job.status, job.result = error, "interrupted", None
            job.error = f"its end cannot be recorded: {error}"
            await finished(self._session.abandon_job(job.begun))
        del self._running[job.id], self._watching[job.id]
        self._settle(job, failure)
        self._tell(job)

    async def _recorded(self, job: BackgroundJob, status: str) -> str:
        """Record how a job ended and tell the agent, unless it waits for the job itself. Returns the status it has.

        What passes is waited out, until the job is given up: its result is there, and nobody else has it. Raises what
        keeps the end from being recorded.
        """
        is_refused = False
        while True:
            notice = None if status == "cancelled" else _notice(job, status)
            ended = {"result": job.result, "error": job.error, "notice": notice}
            try:
                await finished(self._session.end_job(job.begun, status, **ended, is_awaited=bool(job._waiting_count)))
                return status
            except PASSING:
                if job._is_given_up.is_set():
                    raise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(job._is_given_up.wait(), BUSY_PAUSE_S)
            except InvalidEvent as error:  # The log cannot hold the result.
                if is_refused:
                    raise
                is_refused, status, job.result = True, "failed", None
                job.error = f"its result cannot be recorded: {error}"

    def _settle(self, job: BackgroundJob, failure: Exception | None) -> None:
        if job.status == "completed":
            job._ended.set_result(job.result)
        elif job.status == "cancelled":
            self._fail(job, JobCancelled(f"the job {job.name!r} was cancelled"))
        else:
            self._fail(job, failure or InvalidEvent(job.error or ""))

    def _fail(self, job: BackgroundJob, error: Exception) -> None:
        job._ended.set_exception(error)
        job._ended.exception()  # Nobody has to wait for a job, and how it ended is in the log.

    def _tell(self, job: BackgroundJob) -> None:
        if self._on_job is not None:
            self._on_job(job)


async def _working(work: Coroutine[Any, Any, Any]) -> Any:
    with ending_no_program():
        return await work


async def _either(work: asyncio.Future[Any], is_left: asyncio.Event) -> None:
    """Wait until the work is done, or is to be left alone."""
    leaving = asyncio.ensure_future(is_left.wait())
    try:
        await asyncio.wait([work, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()


def _notice(job: BackgroundJob, status: str) -> str:
    """Return what the agent is told of a job's end."""
    if status == "failed":
        return f"The job {job.name!r} ({job.id}) has failed: {job.error}"
    if job.result is None:
        return f"The job {job.name!r} ({job.id}) is done."
    text = job.result if isinstance(job.result, str) else msgspec.json.encode(job.result).decode()
    rest = len(text) - NOTICE_CHARS_MAX
    if rest > 0:
        text = f"{text[:NOTICE_CHARS_MAX]} … ({rest} characters more are in the log)"
    return f"The job {job.name!r} ({job.id}) is done. Its result:\n{text}"
