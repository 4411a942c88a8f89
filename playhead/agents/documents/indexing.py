"""Keeping the index of a folder in step: within the turn where little is new, as a job where much is."""

from __future__ import annotations

import asyncio
import contextlib

from playhead.agents.documents.folder import Documents, Status
from playhead.agents.jobs import BackgroundJob
from playhead.agents.protocol import Request
from playhead.agents.quoting import counted, one_line
from playhead.errors import PlayheadError

AT_ONCE_BYTES = 4_000_000
"""So much new text is read within the turn (about two seconds); more is read by a job."""

PATIENCE_S = 10.0
"""A turn waits so long for the job. Then it goes on with what can be searched so far."""

JOB_NAME = "index documents"
NAME_CHARS_MAX = 200


async def kept_in_step(
    documents: Documents,
    request: Request,
    *,
    agent: str,
    at_once_bytes: int = AT_ONCE_BYTES,
    patience_s: float = PATIENCE_S,
) -> Status:
    """Read what is new in the folder, and return how far it is indexed: not to its end where that takes long.

    Raises `InvalidName` where the folder cannot be read.
    """
    status = await asyncio.to_thread(documents.look)
    if not status.waiting_count:
        return status
    if status.waiting_bytes <= at_once_bytes:
        await _indexed(documents)
    else:
        job = await _job(documents, request, status, agent.partition("/")[0])
        # After that it goes on; where it has ended otherwise, the log says how.
        with contextlib.suppress(TimeoutError, PlayheadError):
            await asyncio.wait_for(job, patience_s)
    return await asyncio.to_thread(documents.status)


async def _indexed(documents: Documents) -> dict[str, int]:
    """Index all that waits, step by step: whoever cancels it waits for one step."""
    while (status := await asyncio.to_thread(documents.index)).waiting_count:
        pass
    return {"files": status.file_count}


async def _job(documents: Documents, request: Request, status: Status, agent: str) -> BackgroundJob:
    """Return the job that indexes the folder: one that runs in the session already, or a new one."""
    for job in request.jobs.running:
        if job.name == JOB_NAME:
            return job
    args = {"folder": str(documents.folder), "files": status.waiting_count}
    if documents.on_long is not None:
        files = counted(status.waiting_count, "file")
        documents.on_long(f"Reading {files} of {one_line(str(documents.folder), chars_max=NAME_CHARS_MAX)} first.")
    return await request.jobs.start(JOB_NAME, _indexed(documents), args=args, agent=agent)
