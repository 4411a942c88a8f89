"""Ids of sessions from other programs: plain to type, the same at every import, and different for different sources."""

import re

import pytest

from playhead.formats.ids import session_id, stated_id

PLAIN = ["0b7c2f8e-5d1a-4c1e-9a43-1f2e3d4c5b6a", "c-1", "a.b_c", "7", "x" * 128]
OTHERS = [
    *("../../etc/passwd", "a/b", "a b", "a..b", ".hidden", "-rf", "$(id)", "a;b", "a'b", "x\x1b]0;t\x07", "\u202eevil"),
    *("größe", "セッション", " ", "x" * 129, "@last", "a\nb", "..", "~"),
]


@pytest.mark.parametrize("stated", PLAIN)
def test_a_plain_id_stays_as_it_is(stated: str) -> None:
    assert session_id("codex", stated) == f"codex.{stated}"
    assert stated_id(stated) == {}


@pytest.mark.parametrize("stated", OTHERS)
def test_any_other_id_becomes_one_that_every_shell_takes_for_a_word_and_is_kept_beside(stated: str) -> None:
    id = session_id("codex", stated)

    assert re.fullmatch(r"codex\.[A-Za-z0-9][A-Za-z0-9_-]{0,60}", id)
    assert session_id("codex", stated) == id
    assert stated_id(stated) == {"extra": {"import": {"id": stated}}}


def test_ids_that_look_alike_stay_apart() -> None:
    ids = {session_id("codex", stated) for stated in (*OTHERS, "a-b", "a  b", "a/ b")}

    assert len(ids) == len(OTHERS) + 3
