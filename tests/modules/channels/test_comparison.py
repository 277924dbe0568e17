"""A trial's outputs beside its leader's: equal, different, or said by one of the two alone."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.kinds.group import OutputComparison, parse_compare
from haptera.model.errors import HapteraError
from haptera.modules.replica.channels.comparison import KEPT_MAX, TrialComparison, TrialDifference
from haptera.modules.replica.channels.outbox import RING_MAX, NumberedOutput, OutputPosition


def at(number: int, nth: int = 1) -> OutputPosition:
    return OutputPosition(0, 0, number, nth)


def output(number: int, data: bytes = b"x") -> NumberedOutput:
    return NumberedOutput(at(number), data)


def test_outputs_of_one_position_are_compared_whichever_comes_first() -> None:
    one = TrialComparison()
    one.said(output(1, b"a"))
    one.published(output(1, b"a"))
    one.published(output(2, b"b"))
    one.said(output(2, b"c"))

    assert (one.equal, one.different) == (1, 1)
    assert one.kept == [TrialDifference(at(2), b"c", b"b")]
    assert str(one) == "trial: 1 of 2 outputs differ, the first at 2.1"


def test_what_one_of_the_two_does_not_say_is_a_difference_once_the_next_is_known() -> None:
    one = TrialComparison()
    one.said(output(1))
    one.published(output(2))
    assert one.kept == [TrialDifference(at(1), b"x", None)]
    one.said(output(3))
    assert one.kept[1:] == [TrialDifference(at(2), None, b"x")]


def test_what_is_said_again_after_a_break_is_compared_once() -> None:
    one = TrialComparison()
    for _ in range(2):
        one.said(output(1))
        one.published(output(1))
        one.said(output(2))
    assert (one.equal, one.different) == (1, 0)
    one.begin(at(1))
    one.published(output(2))
    assert str(one) == "trial: 2 outputs are equal to the leader's"


def test_what_is_kept_is_bounded() -> None:
    one = TrialComparison()
    for number in range(1, 2 * RING_MAX):
        one.said(output(number, b"x" * 1_000))
        one.check()
    for number in range(1, 2 * RING_MAX):
        one.published(output(number))
        one.check()
    assert (one.equal, one.different) == (0, RING_MAX)
    assert len(one.kept) == KEPT_MAX


def an_order(number: int, nth: int, data: str) -> NumberedOutput:
    return NumberedOutput(at(number, nth), data.encode())


def test_outputs_of_one_message_are_found_by_a_declared_key_in_whatever_order() -> None:
    one = TrialComparison(parse_compare("by order, without at"))
    for nth, data in enumerate(['{"order": 1, "to": "a", "at": 7}', '{"order": 2, "to": "b"}'], 1):
        one.published(an_order(1, nth, data))
    for nth, data in enumerate(['{"to":"c", "order":2}', '{"at":9, "to":"a", "order":1}'], 1):
        one.said(an_order(1, nth, data))

    assert str(one) == "trial: 1 of 2 outputs differ, the first at 1.2"
    assert [(kept.trial, kept.leader) for kept in one.kept] == [
        (b'{"to":"c", "order":2}', b'{"order": 2, "to": "b"}')
    ]


def test_what_has_a_key_and_no_counterpart_differs_once_the_other_side_is_past_its_message() -> (
    None
):
    one = TrialComparison(parse_compare("by order"))
    one.said(an_order(1, 1, '{"order": 1}'))
    one.published(an_order(1, 1, '{"order": 2}'))
    assert one.different == 0
    one.published(an_order(2, 1, '{"order": 3}'))
    one.said(an_order(2, 1, '{"order": 3}'))

    assert (one.equal, one.different) == (1, 2)
    assert [(kept.trial, kept.leader) for kept in one.kept] == [
        (b'{"order": 1}', None),
        (None, b'{"order": 2}'),
    ]


def test_the_same_key_twice_is_compared_in_order_and_true_is_not_one() -> None:
    one = TrialComparison(parse_compare("by order"))
    for nth, value in enumerate(["1", "2"], 1):
        one.said(an_order(1, nth, f'{{"order": 1, "is": {value}}}'))
    for nth, value in enumerate(["true", "2"], 1):
        one.published(an_order(1, nth, f'{{"order": 1, "is": {value}}}'))

    assert (one.equal, one.different) == (1, 1)


@pytest.mark.parametrize("data", ["no JSON", "[1]", '{"order":', "[" * 100_000, '"\\ud800"'])
def test_what_is_no_object_is_compared_as_it_is(data: str) -> None:
    one = TrialComparison(parse_compare("by order, without at"))
    one.said(an_order(1, 1, data))
    one.published(an_order(1, 1, data))
    one.said(an_order(1, 2, data))
    one.published(an_order(1, 2, f"{data} "))

    assert (one.equal, one.different) == (1, 1)


def test_by_a_key_a_message_that_was_begun_before_is_not_compared() -> None:
    one = TrialComparison(parse_compare("by order"))
    one.said(an_order(1, 1, '{"order": 2}'))
    one.begin(at(1))
    one.published(an_order(1, 2, '{"order": 2}'))
    one.said(an_order(1, 2, '{"order": 1}'))
    one.said(an_order(2, 1, '{"order": 3}'))
    one.published(an_order(2, 1, '{"order": 3}'))

    assert (one.equal, one.different) == (1, 0)


@pytest.mark.parametrize("text", ["by", "order", "by a, by a", "by a, without a", "without", ""])
def test_how_to_compare_is_declared_whole(text: str) -> None:
    with pytest.raises(HapteraError, match=r"how to compare|twice"):
        parse_compare(text)


OUTPUTS = st.dictionaries(st.integers(1, 12), st.sampled_from([b"a", b"b"]))


@pytest.mark.parametrize("how", [OutputComparison(), OutputComparison(by=("order",))])
@given(trial=OUTPUTS, leader=OUTPUTS, order=st.randoms(use_true_random=False))
def test_whatever_the_order_each_position_that_both_have_passed_counts_once(
    how: OutputComparison, trial: dict[int, bytes], leader: dict[int, bytes], order
) -> None:
    one = TrialComparison(how)
    said, published = sorted(trial.items()), sorted(leader.items())
    while said or published:
        of_trial = bool(said) and (not published or order.random() < 0.5)
        source, tell = (said, one.said) if of_trial else (published, one.published)
        tell(output(*source.pop(0)))
        one.check()
    passed = min(max(trial, default=0), max(leader, default=0))
    both = [n for n in {*trial, *leader} if n <= passed]
    equal = sum(trial.get(n) == leader.get(n) for n in both)
    event(f"equal: {equal > 0}, different: {equal < len(both)}")
    assert (one.equal, one.different) == (equal, len(both) - equal)
