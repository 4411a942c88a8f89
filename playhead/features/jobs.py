"""Jobs that outlive the turn that began them: each change is one append, and an end tells the agent in the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead.errors import StaleWriter
from playhead.features.live import FACT_RETRIES_MAX, Live
from playhead.features.owners import disown, owner_of
from playhead.model import path as paths
from playhead.model.event import Draft, Event

NOTICE = "job"
"""What the message that tells the agent of a job's end is marked with, as `injected`."""


def begin_job(live: Live, id: str, *, name: str, args: Any, kind: str, agent: str) -> Event:
    """Record that a job began, in the turn that is open. Until `end_job` or `abandon_job` nobody closes it while this
    process lives and has the store open: it says in the log who owns it."""
    with live.lock:
        live.jobs.add(id)
        try:
            fixed = {"job": id, "kind": kind, "name": name, "status": "running", "owner": owner_of(live).told()}
            body = fixed | ({} if args is None else {"args": args})
            return appended(live, lambda: [live.draft("job_changed", body, agent=agent, turn=live.fold.open_turn)])[0]
        except BaseException:
            _let_go(live, id)
            raise


def end_job(
    live: Live,
    begun: Event,
    status: str,
    *,
    result: Any = None,
    error: str | None = None,
    notice: str | None = None,
    is_awaited: bool = False,
) -> Event:
    """Record how a job ended, and give the agent `notice`. Durable on return; both are in the log, or neither is.

    The notice is left out where the path that the job began on was left, and where the result `is_awaited`, unless
    somebody took the job for dead meanwhile and told the agent so. Raises `SessionBusy` while another process is in a
    turn; nothing was written then, and the job still counts as running.
    """
    id = str(begun.body["job"])
    fixed = {name: begun.body[name] for name in ("job", "kind", "name")}
    given = {"result": result, "error": error}
    body = fixed | {"status": status} | {name: value for name, value in given.items() if value is not None}

    def drafts() -> list[Draft]:
        ended = [live.draft("job_changed", body, agent=begun.agent, turn=begun.turn)]
        is_wanted = not is_awaited or id not in live.fold.named("job")
        if notice is not None and is_wanted and paths.lies_on(live.fold.path, begun.seq):
            told = {"role": "user", "parts": [{"type": "text", "content": notice}], "injected": NOTICE}
            ended.append(live.draft("message", told, turn=live.fold.open_turn))
        return ended

    with live.lock:
        event = appended(live, drafts)[0]
        _let_go(live, id)
        return event


def abandon_job(live: Live, begun: Event) -> None:
    """Leave a job whose end cannot be recorded: the next turn or resume closes it as interrupted and tells the agent.
    Writes nothing."""
    with live.lock:
        _let_go(live, str(begun.body["job"]))


def _let_go(live: Live, id: str) -> None:
    live.jobs.discard(id)
    disown(live)


def appended(live: Live, drafts: Callable[[], list[Draft]]) -> list[Event]:
    """Append what depends on nothing that others could have appended meanwhile, but on where the path stands."""
    for _ in range(FACT_RETRIES_MAX):
        try:
            return live.append(drafts())
        except StaleWriter:
            live.refresh()
    return live.append(drafts())
