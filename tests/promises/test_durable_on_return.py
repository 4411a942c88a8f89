"""K12, K13: what was acknowledged survives `kill -9` at any moment, nothing is half-written, nothing needs repair."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

import playhead
from playhead.model.ids import session_key
from tests.promises.children import Nursery
from tests.promises.places import Place
from tests.promises.recorder import acknowledged

LIVES = 5
"""So many recorders in a row work on one session, each killed."""

Said = list[list[Any]]


def test_what_was_acknowledged_survives_kill_9_at_random_moments(place: Place, nursery: Nursery) -> None:
    """S1."""
    problems, kills = _kill_at_random(place, nursery, sessions=2, seed=20)

    assert problems == []
    assert kills == 10


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(5))
def test_what_was_acknowledged_survives_a_thousand_kills(place: Place, nursery: Nursery, seed: int) -> None:
    problems, kills = _kill_at_random(place, nursery, sessions=20, seed=1_000 + seed)

    assert problems == []
    assert kills == 100


def _kill_at_random(place: Place, nursery: Nursery, *, sessions: int, seed: int) -> tuple[list[str], int]:
    """Kill `LIVES` recorders on each of so many sessions; return what was broken, with its seed, and the kills."""
    problems, kills = [], 0
    for number in range(sessions):
        id, said = f"session-{number}", Said()
        for life in range(LIVES):
            life_seed = seed * 10_000 + number * 100 + life
            said += _killed(nursery, place, id, life_seed)
            kills += 1
            problems += [f"seed {life_seed}: {problem}" for problem in _damage(place, id, said)]
    return problems, kills


def _killed(nursery: Nursery, place: Place, id: str, seed: int) -> Said:
    """Let a recorder work for a random while, kill it, and return all that it acknowledged."""
    rng = random.Random(seed)
    child = nursery.start("recorder:record", url=place.url, id=id, seed=seed)
    for _ in range(int(10 ** rng.uniform(0, 2.3))):
        if child.hear() is None:
            raise AssertionError(f"seed {seed}: the recorder died by itself; it said {child.said[-3:]}")
    # Not a wait for anything: it spreads the kill over what happens between two acknowledgements.
    time.sleep(rng.choice((0, rng.uniform(0, 0.003))))
    return child.kill()


def _damage(place: Place, id: str, said: Said) -> list[str]:
    """Return what does not hold for a session whose last recorder was just killed, as sentences."""
    with place.open() as sessions:
        holder = sessions.store.holder(session_key(id))
        open_calls = _open_calls(sessions.get(id))
        session = sessions.resume(id)
        with session.turn("Are you still there?") as turn:
            turn.say("Yes.")
        problems = [
            *_missing_events(session, said),
            *_missing_chunks(session, said),
            *_missing_state(session, said),
            *_missing_artifacts(session, said),
            *_left_open(session),
            *_unsound(sessions, [id, *(fork for (fork,) in acknowledged(said, "forked"))]),
        ]
        if holder is not None:
            problems.append(f"the lease was not free: {holder}")
        if set(session.resumed.sealed.calls) != open_calls:
            problems.append(f"calls {open_calls} were open, {session.resumed.sealed.calls} were closed")
        if session.conversation()[-1].text != "Yes.":
            problems.append("the turn after the kill is not at the end of the conversation")
    if (integrity := place.integrity(id)) != "ok":
        problems.append(f"integrity check: {integrity}")
    return problems


def _missing_events(session: playhead.Session, said: Said) -> list[str]:
    ids = {event.seq: event.id for event in _all_events(session)}
    return [
        f"event {seq} ({id}) was acknowledged; the log has {ids.get(seq)} there"
        for seq, id in acknowledged(said, "event")
        if ids.get(seq) != id
    ]


def _missing_chunks(session: playhead.Session, said: Said) -> list[str]:
    """Every acknowledged chunk is in one message, in order, from the first on; at most one more had arrived."""
    streams: dict[str, list[str]] = {}
    for stream, _, text in acknowledged(said, "chunk"):
        streams.setdefault(stream, []).append(text)
    whole = dict(acknowledged(said, "streamed"))
    texts = [_text(event) for event in _all_events(session) if event.kind == "message"]
    problems = []
    for stream, chunks in streams.items():
        found = [text for text in texts if text.startswith(f"<{stream}/0>")]
        acknowledged_text = "".join(chunks)
        if len(found) != 1 or not found[0].startswith(acknowledged_text):
            problems.append(f"stream {stream}: {acknowledged_text!r} was acknowledged, the log has {found}")
        elif stream in whole and found[0] != acknowledged_text:
            problems.append(f"stream {stream} was finished as {acknowledged_text!r}, the log has {found}")
        elif found[0].removeprefix(acknowledged_text).count("<") > 1:
            problems.append(f"stream {stream} has more than one chunk after {acknowledged_text!r}: {found}")
    return problems


def _missing_state(session: playhead.Session, said: Said) -> list[str]:
    state = session.state
    return [
        f"{scope} state {key!r} is {state.get(scope, {}).get(key)!r}, {value!r} was acknowledged"
        for scope, key, value in acknowledged(said, "state")
        if state.get(scope, {}).get(key) != value
    ]


def _missing_artifacts(session: playhead.Session, said: Said) -> list[str]:
    saved = {event.body["name"]: event.body["hash"] for event in _all_events(session) if event.kind == "artifact_saved"}
    problems = [
        f"artifact {name} is lost"
        for name, text in acknowledged(said, "artifact")
        if session._store.artifacts.get(session.key, saved[name]) != text.encode()
    ]
    return problems + [
        f"artifact {name} was recorded, but its bytes are not there"
        for name, hash in saved.items()
        if hash not in session._store.artifacts.hashes(session.key)
    ]


def _left_open(session: playhead.Session) -> list[str]:
    """After a resume no call is without a response, no job runs, no turn is open, and no stream is left."""
    fold = session._fold
    problems = [f"{name} {found} is still open" for name in ("call", "job") for found in fold.named(name)]
    if fold.open_turn is not None:
        problems.append(f"turn {fold.open_turn} is still open")
    if left := session._store.streams.left(session.key):
        problems.append(f"streams are left: {left}")
    for message in session.conversation():
        calls = Counter(part["id"] for part in message.parts if part["type"] == "tool_call")
        if any(count > 1 for count in calls.values()):
            problems.append(f"a call stands twice in {message}")
    return problems


def _unsound(sessions: playhead.Sessions, ids: Sequence[str]) -> list[str]:
    problems = [f"{id}: {problem}" for id in ids for problem in sessions.verify(id).problems]
    listed = sessions.list(limit=1_000).items
    problems += [f"the list says of {row.id}: {row.problem}" for row in listed if row.problem]
    if missing := set(ids) - {row.id for row in listed}:
        problems.append(f"the list lacks {missing}")
    found = sessions.search("upload OR reset OR connection")
    return problems + [f"the search says of {id}: {problem}" for id, problem in found.problems.items()]


def _open_calls(session: playhead.Session) -> set[str]:
    """Return the calls on the path that the log holds no response to."""
    calls: list[str] = []
    for event in session.path():
        for part in event.body.get("parts") or ():
            if part["type"] == "tool_call":
                calls.append(part["id"])
            elif part["type"] == "tool_call_response" and part["id"] in calls:
                calls.remove(part["id"])
    return set(calls)


def _all_events(session: playhead.Session) -> list[playhead.Event]:
    found: list[playhead.Event] = []
    while page := session.events(after=found[-1].seq if found else 0):
        found += page
    return found


def _text(event: playhead.Event) -> str:
    return "".join(part.get("content", "") for part in event.body["parts"] if part["type"] == "text")
