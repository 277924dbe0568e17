"""What failures in a row come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.model.policy import STEPPING, Policy

NUMBERS = st.integers(1, 10**7)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    low, high, rest = sorted((draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)))
    return Policy(draw(st.integers(1, 40)), low, high, rest)


@given(policies(), st.integers(1, 100), st.floats(0, 1))
def test_a_wait_is_never_none_and_never_longer_than_the_policy_says(
    policy: Policy, failures: int, draw: float
) -> None:
    wait_ms = policy.wait_ms(failures, draw)

    if failures >= policy.attempts:
        assert wait_ms == policy.cool_down_ms
    else:
        assert 1 <= wait_ms <= policy.backoff_ms_max


@given(policies(), st.integers(1, 100), st.floats(0, 1))
def test_the_longest_wait_doubles_until_it_is_as_long_as_it_may_be(
    policy: Policy, failures: int, draw: float
) -> None:
    ceiling_ms = min(policy.backoff_ms * 2 ** (failures - 1), policy.backoff_ms_max)
    if not policy.gives_up(failures):
        assert policy.wait_ms(failures, draw) <= ceiling_ms
        assert policy.wait_ms(failures, 1.0) == ceiling_ms


def test_it_is_given_up_after_so_many_attempts() -> None:
    assert [STEPPING.gives_up(failures) for failures in (5, 6, 7)] == [False, True, True]


@pytest.mark.parametrize(
    ("attempts", "backoff_ms", "backoff_ms_max", "cool_down_ms"),
    [(0, 1, 1, 1), (1, 0, 1, 1), (1, 2, 1, 2), (1, 2, 2, 1)],
)
def test_a_policy_that_cannot_be_is_refused(
    attempts: int, backoff_ms: int, backoff_ms_max: int, cool_down_ms: int
) -> None:
    with pytest.raises(HapteraError):
        Policy(attempts, backoff_ms, backoff_ms_max, cool_down_ms)
