"""Reading a session as of one event: conversation, transcript, state, interrupts and artifacts as its path has them."""

from __future__ import annotations

from typing import Any

from playhead.errors import ArtifactNotFound
from playhead.features.live import events_at
from playhead.features.shared_state import shared_state
from playhead.model import path as paths
from playhead.model.event import Event
from playhead.model.ids import SessionKey
from playhead.model.path import Ranges
from playhead.stores.base import EVENTS_PAGE_MAX, Store
from playhead.views.conversation import Message, conversation
from playhead.views.facts import Facts, facts
from playhead.views.fold import Fold
from playhead.views.interrupts import Interrupt, interrupt
from playhead.views.state import State, state_from_positions
from playhead.views.transcript import Entry, transcript

DEFAULT_AGENT = "coordinator"


class View:
    """A session as of one event: what its path says there. Reading it writes nothing and takes no lease."""

    def __init__(self, store: Store, key: SessionKey, fold: Fold, until: int | None) -> None:
        self._store = store
        self.key = key
        self._at = fold
        self._until = until

    @property
    def _fold(self) -> Fold:
        return self._at

    @property
    def id(self) -> str:
        return self.key.id

    @property
    def head(self) -> int:
        """Seq of the event at which the path ends."""
        return self._fold.head

    @property
    def turn_count(self) -> int:
        return self._fold.turn_count

    @property
    def facts(self) -> Facts:
        """Title, labels, status, and what was redacted."""
        return facts(self._store.facts(self.key, until=self._until))

    @property
    def positions(self) -> Ranges:
        """Where the path lies in the log: inclusive `[first, last]` pairs of seqs, ascending. Reads nothing."""
        return self._fold.path

    def path(self) -> list[Event]:
        """Return the events from the first to the head. Reads the whole path."""
        return self._read(self._fold.path)

    def newest_events(self, count: int) -> list[Event]:
        """Return the last `count` events of the path, oldest first. Reads those and nothing else."""
        return self._read(paths.newest(self._fold.path, count))

    def conversation(self, agent: str = DEFAULT_AGENT, *, sealed: bool = True) -> list[Message]:
        """Return the messages that a model is sent, oldest first. Reads those and nothing else.

        agent: the main one (any name without `/`), or a sub-agent's run such as `coordinator/researcher:2`. With
        `sealed`, a call without a response gets one that says it was interrupted.
        """
        return conversation(self._read(self._fold.conversation(scope_of(agent))), sealed=sealed)

    def transcript(
        self, agent: str = DEFAULT_AGENT, *, last: int | None = None, before: int | None = None, system: bool = False
    ) -> list[Entry]:
        """Return what a person reads, oldest first: of the whole path, or of its `last` events before seq `before`."""
        ranges = self._fold.path
        if last is not None or before is not None:
            ranges = paths.newest(ranges, last if last is not None else paths.count(ranges), before=before)
        return transcript(self._read(ranges), scope=scope_of(agent), system=system)

    @property
    def state(self) -> State:
        """State per scope: `session` and `agent:NAME` of the path, `user` and `app` as they are in the store now."""
        fold = self._fold
        positions = fold.state_positions()
        seqs = sorted({seq for keys in positions.values() for seq in keys.values()})
        events = {event.seq: event for event in self._read(paths.of_seqs(seqs))}
        return state_from_positions(fold, events) | shared_state(self._store, self.key)

    @property
    def waiting(self) -> list[Interrupt]:
        """The interrupts that wait for an answer, oldest first."""
        seqs = sorted(self._fold.named("int").values())
        return [interrupt(event) for event in self._read(paths.of_seqs(seqs))]

    def artifacts(self) -> dict[str, dict[str, Any]]:
        """Return the newest version of every artifact on the path: name to the body of its event."""
        seqs = sorted(self._fold.named("art").values())
        return {event.body["name"]: event.body for event in self._read(paths.of_seqs(seqs))}

    def artifact(self, name: str) -> bytes:
        """Return the bytes of the newest version on the path. Raises `ArtifactNotFound` and `ArtifactDamaged`."""
        seq = self._fold.slots.get(f"art:{name}")
        if seq is None:
            raise ArtifactNotFound(self.id, name)
        return self._store.artifacts.get(self.key, self._read([[seq, seq]])[0].body["hash"])

    def channel(self, name: str, *, last: int = 100) -> list[Event]:
        """Return the last messages of a channel on the path, oldest first."""
        fold = self._fold
        found: list[Event] = []
        until = fold.head
        while len(found) < last and until > 0:
            page = self._store.events(self.key, until=until, kinds=["channel_message"], newest_first=True)
            found += [e for e in page if e.body.get("channel") == name and paths.lies_on(fold.path, e.seq)]
            until = page[-1].seq - 1 if len(page) == EVENTS_PAGE_MAX else 0
        return found[:last][::-1]

    def _read(self, positions: Ranges) -> list[Event]:
        return events_at(self._store, self.key, positions)


def scope_of(agent: str) -> str | None:
    """Return the scope of an agent's conversation: its label for a sub-agent's run, None (the main one) for others."""
    return agent if "/" in agent else None
