"""What can be come to, worked out for all places at once, is what walking from each one finds."""

from hypothesis import given
from hypothesis import strategies as st

from haptera.planner.domain.bitsets import numbers, transposed
from haptera.planner.search.transitive_closure import Way, transitive_closure

COUNT = 8

sets = st.integers(0, (1 << COUNT) - 1)
ways = st.lists(st.tuples(sets, st.integers(0, COUNT - 1), st.just(1)), max_size=12)


def walked(ways: list[Way], place: int) -> set[int]:
    """All places that can be come to from one, by trying every way again and again."""
    found, before = {place}, set[int]()
    while found != before:
        before = set(found)
        found |= {target for sources, target, _ in ways if not before.isdisjoint(numbers(sources))}
    return found


@given(ways)
def test_what_can_be_come_to_from_each_place_is_what_walking_finds(ways: list[Way]) -> None:
    found = transitive_closure(ways, COUNT)
    assert [set(numbers(one)) for one in found] == [walked(ways, one) for one in range(COUNT)]


@given(st.lists(sets))
def test_words_by_columns_are_the_same_bits(words: list[int]) -> None:
    columns = transposed(words, COUNT)
    assert [
        {bit for bit, column in enumerate(columns) if column >> number & 1}
        for number in range(len(words))
    ] == [set(numbers(word)) for word in words]
