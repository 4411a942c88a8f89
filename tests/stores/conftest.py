"""Lets pytest show what a failed assertion of the shipped suite compared."""

import pytest

pytest.register_assert_rewrite("playhead.testing")
