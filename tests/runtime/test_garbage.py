"""What is old is not looked at again and again, and yet no cycle is kept for ever."""

import gc
import weakref
from collections.abc import Mapping

from haptera.runtime.garbage import old_objects_frozen

OLD = 10_000
MUCH_OLD, SOON = 200_000, 40_000
OLDEST = 2
# Some room for what else the process does meanwhile.
FEW = 2_000
BLOCKS_MORE_MAX = 50_000
LISTS = 100
# Each list, and what is in it.
BLOCKS_A_KNOT = 2 * LISTS
KNOTS_MORE_MAX = BLOCKS_MORE_MAX // BLOCKS_A_KNOT


class Knot:
    """An object in a cycle with itself."""

    def __init__(self) -> None:
        self.itself = self
        self.weight = [[number] for number in range(LISTS)]


def test_a_collection_looks_only_at_what_came_since_the_last() -> None:
    with old_objects_frozen():
        old = [[number] for number in range(OLD)]
        gc.collect()
        assert len(gc.get_objects()) < FEW
        new = [[number] for number in range(OLD)]
        assert OLD <= len(gc.get_objects()) < OLD + FEW
        assert len(old) == len(new)


def test_what_a_process_made_before_anything_was_collected_counts_as_old() -> None:
    gc.disable()
    old = [[number] for number in range(OLD)]
    with old_objects_frozen():
        assert gc.isenabled()
        assert len(gc.get_objects()) < FEW
    assert len(old) == OLD


def test_however_much_is_old_the_next_collection_comes_soon() -> None:
    full = list[str]()

    def heard(phase: str, collection: Mapping[str, int]) -> None:
        if collection["generation"] == OLDEST:
            full.append(phase)

    old = [[number] for number in range(MUCH_OLD)]
    with old_objects_frozen():
        gc.callbacks.append(heard)
        new = [[number] for number in range(SOON)]
        gc.callbacks.remove(heard)
    assert full[:2] == ["start", "stop"]
    assert len(old) > 4 * len(new)  # Else Python itself would not have put it off.


def test_a_cycle_that_is_let_go_of_soon_is_collected() -> None:
    with old_objects_frozen():
        knot = weakref.ref(Knot())
        gc.collect()
        assert knot() is None


def test_old_cycles_are_freed_once_they_have_become_much_memory() -> None:
    knots = list[weakref.ref[Knot]]()
    left_max = 0
    with old_objects_frozen(BLOCKS_MORE_MAX):
        for _ in range(5 * KNOTS_MORE_MAX):
            knot = Knot()
            knots.append(weakref.ref(knot))
            gc.collect()
            del knot
            left_max = max(left_max, sum(one() is not None for one in knots))
    assert KNOTS_MORE_MAX // 2 < left_max < 2 * KNOTS_MORE_MAX


def test_afterwards_all_is_as_it_was() -> None:
    before = gc.get_threshold(), len(gc.callbacks)
    with old_objects_frozen():
        pass
    assert (gc.get_threshold(), len(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0
