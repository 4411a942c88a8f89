"""Jobs that outlive the turn that began them: each change is one append, and an end tells the agent in the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.errors import StaleWriter
from playhead.features.live import FACT_RETRIES_MAX, Live
from playhead.model import path as paths
from playhead.model.event import Draft, Event

NOTICE = "job"
"""What the message that tells the agent of a job's end is marked with, as `injected`."""


def begin_job(live: Live, id: str, *, name: str, args: Any, kind: str, agent: str) -> Event:
    """Record that a job began, in the turn that is open. Until `end_job` no turn of this process closes it."""
    body = {"job": id, "kind": kind, "name": name, "status": "running"} | ({} if args is None else {"args": args})
    with live.lock:
        live.jobs.add(id)
        try:
            return _appended(live, lambda: [live.draft("job_changed", body, agent=agent, turn=live.fold.open_turn)])[0]
        except BaseException:
            live.jobs.discard(id)
            raise


def end_job(
    live: Live, begun: Event, status: str, *, result: Any = None, error: str | None = None, notice: str | None = None
) -> Event:
    """Record how a job ended, and give the agent `notice`. Durable on return; both are in the log, or neither is.

    The notice is left out where the path that the job began on was left. Raises `SessionBusy` while another process is
    in a turn; nothing was written then, and the job still counts as running.
    """
    fixed = {name: begun.body[name] for name in ("job", "kind", "name")}
    given = {"result": result, "error": error}
    body = fixed | {"status": status} | {name: value for name, value in given.items() if value is not None}

    def drafts() -> list[Draft]:
        ended = [live.draft("job_changed", body, agent=begun.agent, turn=begun.turn)]
        if notice is not None and paths.lies_on(live.fold.path, begun.seq):
            told = {"role": "user", "parts": [{"type": "text", "content": notice}], "injected": NOTICE}
            ended.append(live.draft("message", told, turn=live.fold.open_turn))
        return ended

    with live.lock:
        event = _appended(live, drafts)[0]
        live.jobs.discard(str(begun.body["job"]))
        return event


def _appended(live: Live, drafts: Callable[[], list[Draft]]) -> list[Event]:
    """Append what depends on nothing that others could have appended meanwhile, but on where the path stands."""
    for _ in range(FACT_RETRIES_MAX):
        try:
            return live.append(drafts())
        except StaleWriter:
            live.refresh()
    return live.append(drafts())
