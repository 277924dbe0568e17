"""Timers against the plainest that there can be: a time for each key, asked one by one."""

from random import Random

import pytest

from haptera.core.state.timers import MOVED_MAX, Key, Timers

KEYS: list[Key] = [("a",), ("b",), ("c", 1), ("c", 2)]
DEEDS = ("set", "soonest", "postpone", "postpone", "drop", "due")
DEEDS_AT_ONCE = 10_000


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


@pytest.mark.parametrize("seed", range(10))
def test_each_key_is_due_once_at_the_time_that_it_has_by_then(seed: int) -> None:
    rng, now = Random(seed), 0
    timers, model = Timers(), dict[Key, int]()
    for _ in range(DEEDS_AT_ONCE):
        deed, key, at = rng.choice(DEEDS), rng.choice(KEYS), now + rng.randrange(20)
        if deed == "due":
            now += rng.randrange(10)
            due = {one: model.pop(one) for one in [*model] if model[one] <= now}
            told = [*timers.due(now)]
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
