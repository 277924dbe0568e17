"""The window against a plainer model: a set of all that was accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.wire.window import WINDOW_BITS, Window

JUMPS = st.one_of(st.integers(-8, 8), st.integers(-1100, 1100), st.sampled_from([-1024, -1023, 0]))


@given(st.lists(JUMPS, max_size=60))
def test_a_sequence_is_fresh_once_and_only_near_the_highest(jumps: list[int]) -> None:
    window = Window()
    accepted: set[int] = set()

    for jump in jumps:
        sequence = max(0, window.highest + jump)
        highest = max(accepted, default=0)
        fresh = sequence not in accepted and sequence > max(0, highest - WINDOW_BITS)
        assert window.is_fresh(sequence) == fresh
        if fresh:
            window.commit(sequence)
            accepted.add(sequence)
            assert window.highest == max(accepted)


def test_what_was_skipped_can_still_come_and_only_once() -> None:
    window = Window()
    for sequence in (1, 3, 1025):
        window.commit(sequence)

    assert [n for n in range(1030) if window.is_fresh(n)] == [
        2,
        *range(4, 1025),
        *range(1026, 1030),
    ]
    with pytest.raises(AssertionError):
        window.commit(3)
