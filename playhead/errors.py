"""Every deliberate error of Playhead, on one page.

All of them derive from `PlayheadError`. Each also derives from the built-in that a Python reader would expect, and
carries its facts as attributes, so that no caller has to parse a message. Where it matters the docstring says what is
true afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class PlayheadError(Exception):
    """Base of every error that Playhead raises on purpose."""


class InvalidEvent(PlayheadError, ValueError):
    """An event cannot be stored as it is: unknown kind, missing field, or a value that JSON cannot hold.

    Nothing was written.
    """


class InvalidName(PlayheadError, ValueError):
    """An id, a name or a URL breaks the rules for names. Nothing was written."""


class SessionNotFound(PlayheadError, LookupError):
    """No session has exactly this id. Ids are matched whole; prefixes are resolved by the command line alone."""

    def __init__(self, session: str, *, store: str = "") -> None:
        self.session = session
        self.store = store
        where = f" in {store}" if store else ""
        super().__init__(f"no session {session!r}{where}; list the sessions to see which there are")


class SessionExists(PlayheadError, ValueError):
    """A session with this id is already there. Nothing was written."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(f"session {session!r} exists already; resume it, or create one with another id")


class TrashNotFound(SessionNotFound):
    """No session in the trash goes by this trash id: it was restored, purged, or never there."""

    def __init__(self, trash_id: str, *, store: str = "") -> None:
        super().__init__(trash_id, store=store)
        where = f" of {store}" if store else ""
        self.args = (f"nothing in the trash{where} goes by {trash_id!r}; list the trash to see what is there",)


class EventNotFound(PlayheadError, LookupError):
    """The session's log holds no such event."""

    def __init__(self, session: str, event: object) -> None:
        self.session = session
        self.event = event
        super().__init__(f"session {session!r} has no event {event!r}")


class TurnNotFound(PlayheadError, LookupError):
    """The path has no turn with this number. Turns count from 1 along the current path."""

    def __init__(self, session: str, turn: int, *, turn_count: int) -> None:
        self.session = session
        self.turn = turn
        self.turn_count = turn_count
        super().__init__(f"session {session!r} has no turn {turn} on its path; turns run from 1 to {turn_count}")


class StaleWriter(PlayheadError, RuntimeError):
    """Somebody else appended since this writer last read the session. Nothing was written; re-read and retry."""

    def __init__(self, session: str, *, expected_seq: int, actual_seq: int) -> None:
        self.session = session
        self.expected_seq = expected_seq
        self.actual_seq = actual_seq
        super().__init__(
            f"session {session!r}: expected its log to end at {expected_seq}, it ends at {actual_seq}; "
            "re-read the session and retry"
        )


class LeaseLost(PlayheadError, RuntimeError):
    """The lease that this turn wrote under belongs to somebody else now. Nothing was written.

    Another process took the session over after this one's lease had run out; resume the session to go on.
    """

    def __init__(self, session: str, *, fence: int, current_fence: int) -> None:
        self.session = session
        self.fence = fence
        self.current_fence = current_fence
        super().__init__(
            f"session {session!r}: lease {fence} was taken over (lease {current_fence} is in force); resume it to go on"
        )


class SessionBusy(PlayheadError, RuntimeError):
    """Another holder is in a turn of this session. Nothing was written.

    `holder` says who: `host`, `pid`, `since` (UTC seconds) and, where the holder gave one, `label`.
    """

    def __init__(self, session: str, holder: Mapping[str, Any]) -> None:
        self.session = session
        self.holder = dict(holder)
        who = self.holder.get("label") or "another process"
        super().__init__(
            f"session {session!r} is busy: {who} (pid {self.holder.get('pid', '?')} on "
            f"{self.holder.get('host', '?')}) is in a turn; wait for it to end, or fork the session"
        )


class EventConflict(PlayheadError, ValueError):
    """An event id is already in the log with other content, or only part of a batch is there. Nothing was written."""

    def __init__(self, session: str, event_ids: Sequence[str], reason: str) -> None:
        self.session = session
        self.event_ids = tuple(event_ids)
        shown = ", ".join(self.event_ids[:3]) + (" …" if len(self.event_ids) > 3 else "")
        super().__init__(f"session {session!r}: event ids {shown} are already in the log: {reason}")


class NewerFormat(PlayheadError, RuntimeError):
    """A file or a record was written by a newer Playhead. It was left untouched; upgrade Playhead to open it."""

    def __init__(self, what: str, *, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"{what} has format version {found}; this Playhead reads up to version {supported}: upgrade it"
        )


class NotAStore(PlayheadError, ValueError):
    """The file is there, but it is not a Playhead database (or is damaged beyond its header). It was left untouched."""


class StoreExists(PlayheadError, FileExistsError):
    """Something is where a new store was to be. It was left as it is."""


class StoreDamaged(PlayheadError, RuntimeError):
    """The database reports damage. Nothing was written by this call; `playhead verify` says what can be read."""


class StoreFull(PlayheadError, OSError):
    """The disk (or the file's size limit) is full. The append was rolled back whole; free space and retry."""


class StoreClosed(PlayheadError, RuntimeError):
    """The store, session or turn was closed before this call."""


class StoreReadOnly(PlayheadError, PermissionError):
    """The place where the session lives cannot be written. Nothing was written."""


class StoreUnavailable(PlayheadError, OSError):
    """The database stayed locked, or an input or output error came from the system. Nothing was written; retry."""


class StoreLocked(StoreUnavailable):
    """Another process kept a file locked for longer than anybody waits. Nothing was written; retry."""


OF_THE_SYSTEM = (StoreFull, StoreReadOnly, StoreUnavailable)
"""What is no fault of what is stored: a full disk, a missing right, a lock, an input or output error."""


class ArtifactNotFound(PlayheadError, LookupError):
    """The session has no such artifact, or its bytes are gone from the artifact folder."""

    def __init__(self, session: str, name: str) -> None:
        self.session = session
        self.name = name
        super().__init__(f"session {session!r} has no artifact {name!r}")


class ArtifactDamaged(PlayheadError, RuntimeError):
    """The artifact's bytes do not match the hash in its name. They are kept as they are for inspection."""


class ImportFailed(PlayheadError, ValueError):
    """A source could not be read at all (not a session file, or no permission). Single bad records never raise this."""


class ExtraMissing(PlayheadError, ImportError):
    """An optional package that was asked for is not installed."""

    def __init__(self, package: str, *, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{package} is not installed; install it with: pip install 'playhead[{extra}]'")


class ModelFailed(PlayheadError, RuntimeError):
    """A model gave no answer, or broke it off. What had come of it is in the log, marked `interrupted`.

    status: the HTTP status of a refusal, None where there was no reply to speak of. broke_off: an answer had begun to
    come and was cut short.
    """

    def __init__(self, model: str, reason: str, *, status: int | None = None, broke_off: bool = False) -> None:
        self.model = model
        self.reason = reason
        self.status = status
        self.broke_off = broke_off
        super().__init__(f"model {model!r}: {reason}")


class InvalidTrigger(PlayheadError, ValueError):
    """A trigger cannot be what it is asked to be: a time that no calendar has, a schedule or path that cannot be read.

    Nothing was written.
    """


class JobCancelled(PlayheadError, RuntimeError):
    """The job that was waited for has been cancelled. That is in the log."""


class TooManyJobs(PlayheadError, RuntimeError):
    """So many jobs run in the session already that another would be one too many. Nothing was written."""

    def __init__(self, session: str, *, running: int) -> None:
        self.session = session
        self.running = running
        super().__init__(f"session {session!r}: {running} jobs run already; wait for one to end, or cancel one")
