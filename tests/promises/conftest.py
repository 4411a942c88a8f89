"""What the tests of the promises share: both embedded stores, and children to kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.children import Nursery
from tests.promises.places import Bundles, OneFile, Place


@pytest.fixture(params=[Bundles, OneFile], ids=["bundles", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place on disk for each of the embedded stores, in turn."""
    kind: type[Place] = request.param
    return kind(tmp_path / "store")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where children come from."""
    nursery = Nursery()
    yield nursery
    nursery.close()
