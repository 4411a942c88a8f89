"""The shared suite: every promise of `stores/base.py`, as tests that a store inherits.

    class TestMyStore(StoreSuite):
        def make_store(self, folder: Path) -> Store:
            return MyStore(folder / "sessions")

A store that does not outlive its close sets `is_durable = False`. Pytest shows what a failed assertion compared where
`pytest.register_assert_rewrite("playhead.testing")` runs first, in a `conftest.py`.
"""

from __future__ import annotations

from playhead.testing.companion_suite import CompanionSuite
from playhead.testing.listing_suite import ListingSuite
from playhead.testing.log_suite import LogSuite
from playhead.testing.records_suite import RecordsSuite
from playhead.testing.session_suite import SessionSuite
from playhead.testing.trash_suite import TrashSuite


class StoreSuite(LogSuite, RecordsSuite, SessionSuite, TrashSuite, ListingSuite, CompanionSuite):
    """All promises. `StoreHarness` says what a store brings."""
