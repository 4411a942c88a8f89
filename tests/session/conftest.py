"""Sessions on every embedded store, with a clock that a test can set."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playhead.session import Sessions
from playhead.stores.open import open_store

URLS = {"memory": "memory:", "sqlite": "sqlite:{0}/sessions.db", "bundles": "bundles:{0}/sessions"}


class Clock:
    """A clock that moves a millisecond with each look, and as far as a test says."""

    def __init__(self) -> None:
        self.now = 1_767_225_600.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=list(URLS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param].format(tmp_path)


@pytest.fixture(params=["sqlite", "bundles"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return URLS[request.param].format(tmp_path)


@pytest.fixture
def sessions(url: str, clock: Clock) -> Iterator[Sessions]:
    with Sessions(open_store(url), clock=clock) as opened:
        yield opened


@pytest.fixture
def reopen(durable_url: str, clock: Clock) -> Iterator[Callable[[], Sessions]]:
    """Open the same durable store as another process would: on its own files, with nothing shared in memory."""
    opened: list[Sessions] = []

    def again() -> Sessions:
        opened.append(Sessions(open_store(durable_url), clock=clock))
        return opened[-1]

    yield again
    for one in opened:
        one.close()
