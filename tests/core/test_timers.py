"""Timers against the plainest that there can be: a time for each key, asked one by one."""

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.state.timers import MOVED_MAX, Key, Timers

TIMES = st.integers(0, 20)
NAMED = st.sampled_from([("a",), ("b",), ("c", 1)])
DEEDS = st.one_of(
    st.tuples(st.sampled_from(["set", "soonest", "postpone"]), NAMED, TIMES),
    st.tuples(st.just("drop"), NAMED, st.none()),
    st.tuples(st.just("due"), st.none(), TIMES),
)


def applied(model: dict[Key, int], deed: str, key: Key, at: int) -> None:
    """One deed, done to the plainest of timers."""
    match deed:
        case "drop":
            model.pop(key, None)
        case "set":
            model[key] = at
        case "soonest":
            model[key] = min(at, model.get(key, at))
        case "postpone" if key in model:
            model[key] = max(at, model[key])


@given(st.lists(DEEDS, max_size=40))
def test_each_key_is_due_once_at_the_time_that_it_has_by_then(
    deeds: list[tuple[str, Key, int]],
) -> None:
    timers, model = Timers(), dict[Key, int]()
    for deed, key, at in deeds:
        if deed == "due":
            due = {one: model.pop(one) for one in [*model] if model[one] <= at}
            told = [*timers.due(at)]
            assert sorted(told) == sorted(due)
            assert [due[one] for one in told] == sorted(due.values())
        else:
            getattr(timers, deed)(*((key,) if deed == "drop" else (key, at)))
            applied(model, deed, key, at)
        assert timers.next() == min(model.values(), default=None)


def test_very_many_that_were_postponed_are_moved_over_a_few_looks_and_come_once_each() -> None:
    timers, keys = Timers(), [(number,) for number in range(3 * MOVED_MAX)]
    for key in keys:
        timers.set(key, 1)
        timers.postpone(key, 5)
    told, looks = list[Key](), 0
    while (at := timers.next()) is not None:
        looks += 1
        told += timers.due(at)
    assert (sorted(told), 1 < looks <= 10) == (keys, True)
