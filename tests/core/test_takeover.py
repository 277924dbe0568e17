"""A process that declares other parts serves once these are judged, a piece of it in each turn."""

from dataclasses import replace
from random import Random

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import SetDesired, Stored, StoredEntity
from haptera.model.effects import Start, Stop
from haptera.model.entity import EntityId
from haptera.model.events import Exited, Proposed, Ready, Ticked, Written
from haptera.model.parts import Change, Context, Manifest, Requirement, Step
from haptera.planner.domain.problem import Problem
from tests.core.scenario import SIDE, row_of, told
from tests.planner.shapes import Parts, in_chain, joint, problem
from tests.planner.tangle import at_parent, kind_of
from tests.planner.test_search_budget import steps

ROW = at_parent(problem(in_chain(20)))
OLD = Manifest("m", "1", Context.PARENT, ROW.looks, ROW.steps)
NEW = replace(OLD, version="2", steps=ROW.steps[:-1])
# What c5 is can be known only while c0 is on.
NEVER = Step(
    "m",
    "never",
    "k",
    (Change("c9", ("on",), "off"),),
    (Requirement("c5", ("on",)), Requirement("c0", ("off",))),
)
AMISS = replace(OLD, version="2", steps=(*ROW.steps, NEVER))
MODULE = EntityId("module", "m", None)
# Each piece of work takes less than one function to be called and to return; what is begun last in
# a turn may take as much as all before.
STEPS_A_TURN_MAX = 2 * TURN_WORK_MAX


def replacing(served: Problem = ROW) -> Engine:
    """A parent whose module serves, and is about to be replaced by its process 2."""
    entity = StoredEntity(EntityId("k", "e", None), {}, "site", {}, 1)
    manifest = Manifest("m", "1", Context.PARENT, served.looks, served.steps)
    catalog = Catalog({**KINDS, "k": kind_of("k", served)}, [manifest])
    engine = Engine(SIDE, catalog, Stored(7, 4, [entity], [], {}), 0, S)
    settle(engine)
    told(engine, S, Ready("m"))
    settle(engine)
    told(engine, S, Proposed(1, (SetDesired(MODULE, "settings", "{}", "user:x"),)))
    assert Start("m", 2, "{}") in told(engine, S, Written(1, 5))
    settle(engine)
    return engine


def settle(engine: Engine) -> list[int]:
    """Take all turns that follow at once; how many functions are called and return in each."""
    counts = []
    while engine.deadline() == S:
        counts.append(steps(lambda: told(engine, S, Ticked())))
    return counts


def judged(engine: Engine) -> tuple[int, list[object]]:
    """How many turns it takes until all parts are judged, and what comes of the last."""
    turns, effects = 0, list[object]()
    while engine.takeover.waits:
        assert engine.deadline() == S
        assert engine.hands.supervisor.process("m") == 1
        assert steps(lambda: effects.__setitem__(slice(None), told(engine, S, Ticked()))) < (
            STEPS_A_TURN_MAX
        )
        turns += 1
    return turns, effects


@pytest.mark.parametrize("served", [joint(2, 8, 60, Random(1)), joint(6, 2, 60, Random(1))])
def test_many_parts_that_change_much_take_no_turn_longer(served: Parts) -> None:
    whole = at_parent(problem(served))
    new = Manifest("m", "2", Context.PARENT, whole.looks, whole.steps[:-1])
    engine = replacing(whole)
    first = steps(lambda: told(engine, S, Ready("m", 2, "2", new)))
    counts = [first, *settle(engine)]
    assert engine.hands.supervisor.process("m") == 2
    assert max(counts) < STEPS_A_TURN_MAX
    assert not engine.rounds.decisions.backlog.waits


def test_other_parts_are_judged_in_several_turns_then_the_new_process_serves() -> None:
    engine = replacing()
    assert steps(lambda: told(engine, S, Ready("m", 2, "2", NEW))) < STEPS_A_TURN_MAX
    turns, _ = judged(engine)
    assert turns > 1
    assert engine.catalog.manifests["m"] == NEW
    assert engine.hands.supervisor.process("m") == 2


def test_parts_with_which_knowledge_cannot_hold_are_refused_after_as_many_turns() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "2", AMISS))
    turns, effects = judged(engine)
    assert turns > 1
    assert Stop("m", 2) in effects
    assert row_of(engine, MODULE).stance.why == (
        "declares a contradiction: m.never: no knowable state meets its conditions: it requires"
        " c0=off and starts from c9=on (remove or correct one of these conditions)"
    )
    assert (engine.catalog.manifests["m"], engine.hands.supervisor.process("m")) == (OLD, 1)


def test_a_process_that_dies_while_it_is_judged_is_not_taken_over() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "2", NEW))
    told(engine, S, Exited("m", "killed by SIGKILL", 2))
    judged(engine)
    assert (engine.catalog.manifests["m"], engine.hands.supervisor.process("m")) == (OLD, 1)


def test_the_same_parts_are_not_judged_again() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "1", replace(OLD)))
    assert not engine.takeover.waits
    assert engine.hands.supervisor.process("m") == 2
