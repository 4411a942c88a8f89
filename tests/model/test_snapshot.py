"""Snapshots: any chain gives back what was saved, stays short, and stays small however long a session grows."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from playhead.errors import NewerFormat
from playhead.model import snapshot as snapshots
from playhead.model.codec import decode_body, encode_body
from playhead.model.path import of_seqs
from playhead.model.snapshot import (
    CHAIN_MAX,
    RUN,
    SHRUNK_RANGES_MIN,
    SNAPSHOT_VERSION,
    Snapshot,
    delta,
    extended,
    full,
    is_usable,
    next_snapshot,
    restore,
)
from tests.strategies import texts

values = st.integers() | st.lists(st.integers(0, 9), max_size=3) | texts
ranges = st.lists(st.integers(1, 40), unique=True, max_size=12).map(of_seqs)
slots = st.dictionaries(st.sampled_from(["path", "conv:", "conv:a/b:1"]), ranges) | st.dictionaries(
    st.sampled_from(["turns", "int:ask-1", "chan:plans", "state:session\n\ud800"]), values, max_size=4
)
histories = st.lists(st.builds(dict.__or__, slots, slots), min_size=1, max_size=12)


def stored(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it comes back from disk."""
    return msgspec.convert(decode_body(encode_body(msgspec.structs.asdict(snapshot))), Snapshot)


def number_of(count: int) -> list[int]:
    """Return the numbers of the chain after so many snapshots."""
    chain: list[Snapshot] = []
    for seq in range(1, count + 1):
        chain = extended(chain, next_snapshot(chain, {"turns": seq}, seq=seq))
    return [snapshot.number for snapshot in chain]


@given(histories)
def test_a_chain_of_snapshots_gives_back_the_slots_that_were_saved(history: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "RUN", 2)
        patch.setattr(snapshots, "LEVELS", 3)
        chain: list[Snapshot] = []
        for seq, saved in enumerate(history, 1):
            expected = copy.deepcopy(saved)
            chain = extended(chain, stored(next_snapshot(chain, saved, seq=seq)))

            assert is_usable(chain)
            assert restore(chain) == expected


@given(slots, slots)
def test_a_delta_says_what_to_set_and_what_to_remove_and_no_more(old: dict[str, Any], new: dict[str, Any]) -> None:
    base = full(3, old)

    saved = delta(7, base, old, new)

    assert restore([base, saved]) == new
    assert saved.changed.keys() <= {slot for slot, value in new.items() if slot not in old or old[slot] != value}
    assert set(saved.dropped) == old.keys() - new.keys()
    assert (saved.seq, saved.base_seq, saved.number) == (7, 3, 1)


def test_growing_ranges_are_written_as_what_is_new_in_them() -> None:
    old = {"path": [[1, 4], [7, 9]], "conv:": [[2, 2]]}
    new = {"path": [[1, 4], [7, 12]], "conv:": [[2, 2], [8, 9]], "conv:a/b:1": [[10, 11]]}

    saved = delta(12, full(9, old), old, new)

    assert saved.changed == {"path": [1, [[7, 12]]], "conv:": [1, [[8, 9]]], "conv:a/b:1": [0, [[10, 11]]]}


def test_what_a_snapshot_holds_stays_as_it_is_while_the_fold_goes_on() -> None:
    slots: dict[str, Any] = {"path": [[1, 2]], "conv:": [[2, 2]]}
    complete = full(2, slots)
    chain = [complete]
    slots["path"].append([5, 5])
    following = next_snapshot(chain, slots, seq=5)
    slots["path"].append([9, 9])
    slots["conv:"].append([9, 9])

    restored = restore([complete, following])
    restored["path"].append([12, 12])

    assert restore([complete]) == {"path": [[1, 2]], "conv:": [[2, 2]]}
    assert restore([complete, following]) == {"path": [[1, 2], [5, 5]], "conv:": [[2, 2]]}


def test_snapshots_build_on_the_one_before_or_on_one_a_whole_run_before() -> None:
    assert number_of(1) == [0]
    assert number_of(3) == [0, 1, 2]
    assert number_of(RUN) == list(range(RUN))
    assert number_of(RUN + 1) == [0, RUN]
    assert number_of(RUN + 3) == [0, RUN, RUN + 1, RUN + 2]
    assert number_of(3 * RUN) == [0, RUN, 2 * RUN, *range(2 * RUN + 1, 3 * RUN)]
    assert number_of(RUN * RUN + 1) == [0, RUN * RUN]


def test_no_chain_is_longer_than_its_bound_and_after_it_comes_a_complete_one() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "RUN", 4)
        lengths = [len(number_of(count)) for count in range(1, 4**3 + 2)]
        after = number_of(4**3 + 1)

    assert max(lengths) == 3 * (4 - 1) + 1
    assert after == [0]
    assert CHAIN_MAX == 3 * (RUN - 1) + 1


def test_a_compaction_that_leaves_little_of_a_long_conversation_is_followed_by_a_complete_snapshot() -> None:
    chain: list[Snapshot] = []
    conversation: list[list[int]] = []
    growing: list[int] = []
    for seq in range(2, 2 * SHRUNK_RANGES_MIN, 2):
        conversation.append([seq, seq])
        chain = extended(chain, next_snapshot(chain, {"path": [[1, seq]], "conv:": conversation}, seq=seq))
        growing.append(chain[-1].base_seq)
    end = 2 * SHRUNK_RANGES_MIN

    half = next_snapshot(chain, {"path": [[1, end]], "conv:": conversation[SHRUNK_RANGES_MIN // 2 :]}, seq=end)
    rest = next_snapshot(chain, {"path": [[1, end]], "conv:": [[end, end]]}, seq=end)
    after = next_snapshot([rest], {"path": [[1, end + 1]], "conv:": [[end, end + 1]]}, seq=end + 1)

    assert growing.count(0) == 1
    assert half.base_seq > 0
    assert rest == full(end, {"path": [[1, end]], "conv:": [[end, end]]})
    assert after.base_seq == end


def test_after_a_compaction_of_much_a_complete_snapshot_comes_early() -> None:
    long: dict[str, Any] = {"path": [[1, 900]], "conv:": [[seq, seq] for seq in range(1, 900, 3)]}
    chain = [full(900, long)]
    grown = next_snapshot(chain, long | {"path": [[1, 905]]}, seq=905)
    chain = extended(chain, grown)

    shrunk = next_snapshot(chain, {"path": [[1, 910]], "conv:": [[906, 906]]}, seq=910)
    halved = next_snapshot(chain, {"path": [[1, 910]], "conv:": long["conv:"][150:]}, seq=910)

    assert (grown.base_seq, halved.base_seq) == (900, 905)
    assert shrunk == full(910, {"path": [[1, 910]], "conv:": [[906, 906]]})


def test_a_snapshot_at_a_seq_that_has_one_is_made_to_replace_it() -> None:
    chain = [full(3, {"turns": 1})]
    chain = extended(chain, next_snapshot(chain, {"turns": 2}, seq=8))

    again = next_snapshot(chain, {"turns": 3}, seq=8)
    first_again = next_snapshot(chain[:1], {"turns": 4}, seq=3)

    assert (again.seq, again.base_seq) == (8, 3)
    assert restore(extended(chain, again)) == {"turns": 3}
    assert first_again == full(3, {"turns": 4})


def test_a_chain_that_grew_in_another_way_is_continued_all_the_same() -> None:
    chain = [full(1, {"turns": 0})]
    for seq in range(2, 3 * RUN):
        chain.append(delta(seq, chain[-1], {"turns": seq - 2}, {"turns": seq - 1}))
    sparse = [chain[0], delta(50, chain[0], {"turns": 0}, {"turns": 49}, number=RUN - 1)]

    saved = next_snapshot(chain, {"turns": "new"}, seq=900)
    saved_after_sparse = next_snapshot(sparse, {"turns": "new"}, seq=900)

    assert restore(extended(chain, saved)) == {"turns": "new"}
    assert restore(extended(sparse, saved_after_sparse)) == {"turns": "new"}
    assert saved_after_sparse.base_seq == 1


@pytest.mark.parametrize(
    "chain",
    [
        [],
        [Snapshot(seq=9, base_seq=4, number=1, changed={})],
        [Snapshot(seq=4, base_seq=0, number=0, changed={}), Snapshot(seq=9, base_seq=5, number=1, changed={})],
        [Snapshot(seq=4, base_seq=0, number=0, changed={}), Snapshot(seq=9, base_seq=0, number=0, changed={})],
        [Snapshot(seq=4, base_seq=0, number=0, changed={}, version=SNAPSHOT_VERSION + 1)],
    ],
)
def test_a_chain_that_cannot_be_read_whole_is_left_aside(chain: list[Snapshot]) -> None:
    assert not is_usable(chain)
    assert next_snapshot(chain, {"turns": 1}, seq=20) == full(20, {"turns": 1})


def test_restoring_part_of_a_chain_is_refused_rather_than_wrong() -> None:
    first = full(4, {"turns": 1})
    third = Snapshot(seq=9, base_seq=7, number=2, changed={})

    with pytest.raises(ValueError, match="the snapshot at 9 builds on 7, but 4 comes before it"):
        restore([first, third])
    with pytest.raises(ValueError, match="the snapshot at 9 builds on 7, but 0 comes before it"):
        restore([third])
    assert restore([]) == {}


def test_a_snapshot_of_a_newer_version_is_refused_with_both_versions_named() -> None:
    newer = Snapshot(seq=4, base_seq=0, number=0, changed={}, version=SNAPSHOT_VERSION + 1)

    with pytest.raises(NewerFormat, match="snapshot at 4 has format version 2") as caught:
        restore([newer])

    assert (caught.value.found, caught.value.supported) == (SNAPSHOT_VERSION + 1, SNAPSHOT_VERSION)
