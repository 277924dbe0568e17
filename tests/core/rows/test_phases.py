"""A step goes from phase to phase as one table has it, and in no other way."""

from itertools import product

import pytest

from haptera.core.state.entity.work import TRANSITIONS, EntityWork, Phase, StepRun
from haptera.model.entity import node_id
from haptera.model.intent import Intent
from tests.core.scenario import ON

EVER = (None, *Phase)


def work(phase: Phase | None) -> EntityWork:
    intent = Intent("a1-1", node_id("n01"), ON.module, ON.name, 1, "boot")
    return EntityWork(stepping=None if phase is None else StepRun(intent, ON, 0, 9, phase))


def go(before: Phase | None, after: Phase | None) -> None:
    one = work(before)
    if before is None and after is not None:
        begun = work(after).stepping
        assert begun is not None
        one.begin(begun)
    elif after is None:
        one.end()
    else:
        one.enter(after)
    assert one.stepping == work(after).stepping


@pytest.mark.parametrize(("before", "after"), [*product(EVER, EVER)])
def test_a_step_takes_no_way_but_those_of_the_table(
    before: Phase | None, after: Phase | None
) -> None:
    if (before, after) in TRANSITIONS:
        go(before, after)
    else:
        with pytest.raises(AssertionError):
            go(before, after)


def test_each_phase_is_come_to_and_left() -> None:
    assert {after for _, after in TRANSITIONS} == {before for before, _ in TRANSITIONS} == {*EVER}
