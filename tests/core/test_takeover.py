"""A process that declares other parts serves once these are judged, a piece of it in each turn."""

from dataclasses import replace

from haptera.core.allowance import WORK_MAX
from haptera.core.catalog import Catalog
from haptera.core.engine import Engine
from haptera.core.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import SetDesired, Stored, StoredEntity
from haptera.model.effects import Start, Stop
from haptera.model.entity import EntityId
from haptera.model.events import Exited, Proposed, Ready, Ticked, Written
from haptera.model.parts import Change, Condition, Context, Manifest, Step
from tests.core.shapes import in_chain, problem
from tests.core.tangle import at_parent, kind_of
from tests.core.test_allowance import steps
from tests.core.test_engine import SIDE, told

ROW = at_parent(problem(in_chain(20)))
KIND = kind_of("k", ROW)
OLD = Manifest("m", "1", Context.PARENT, ROW.looks, ROW.steps)
NEW = replace(OLD, version="2", steps=ROW.steps[:-1])
# What c5 is can be known only while c0 is on.
NEVER = Step(
    "m",
    "never",
    "k",
    (Change("c9", ("on",), "off"),),
    (Condition("c5", ("on",)), Condition("c0", ("off",))),
)
AMISS = replace(OLD, version="2", steps=(*ROW.steps, NEVER))
MODULE = EntityId("module", "m", None)
# A turn may do what one question may cost, and some more to take the module over.
STEPS_A_TURN_MAX = 3 * WORK_MAX // 2


def replacing() -> Engine:
    """A parent whose module serves, and is about to be replaced by its process 2."""
    entity = StoredEntity(EntityId("k", "e", None), {}, "site", {}, 1)
    catalog = Catalog({**KINDS, "k": KIND}, [OLD])
    engine = Engine(SIDE, catalog, Stored(7, 4, [entity], [], {}), 0, S)
    told(engine, S, Ready("m"))
    told(engine, S, Proposed(1, (SetDesired(MODULE, "settings", "{}", "user:x"),)))
    assert Start("m", 2, "{}") in told(engine, S, Written(1, 5))
    return engine


def judged(engine: Engine) -> tuple[int, list[object]]:
    """How many turns it takes until all parts are judged, and what comes of the last."""
    turns, effects = 0, list[object]()
    while engine.takeover.waits:
        assert engine.deadline() == S
        assert engine.supervisor.process("m") == 1
        assert steps(lambda: effects.__setitem__(slice(None), told(engine, S, Ticked()))) < (
            STEPS_A_TURN_MAX
        )
        turns += 1
    return turns, effects


def test_other_parts_are_judged_in_several_turns_then_the_new_process_serves() -> None:
    engine = replacing()
    assert steps(lambda: told(engine, S, Ready("m", 2, "2", NEW))) < STEPS_A_TURN_MAX
    turns, _ = judged(engine)
    assert turns > 1
    assert engine.catalog.manifests["m"] == NEW
    assert engine.supervisor.process("m") == 2


def test_parts_with_which_knowledge_cannot_hold_are_refused_after_as_many_turns() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "2", AMISS))
    turns, effects = judged(engine)
    assert turns > 1
    assert Stop("m", 2) in effects
    row = engine.table.get(MODULE)
    assert row is not None
    assert row.why == (
        "declares what cannot be: m.never: no knowable state meets its conditions: it requires"
        " c0=off and starts from c9=on (drop or correct one of these conditions)"
    )
    assert (engine.catalog.manifests["m"], engine.supervisor.process("m")) == (OLD, 1)


def test_a_process_that_dies_while_it_is_judged_is_not_taken_over() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "2", NEW))
    told(engine, S, Exited("m", "killed by SIGKILL", 2))
    judged(engine)
    assert (engine.catalog.manifests["m"], engine.supervisor.process("m")) == (OLD, 1)


def test_the_same_parts_are_not_judged_again() -> None:
    engine = replacing()
    told(engine, S, Ready("m", 2, "1", replace(OLD)))
    assert not engine.takeover.waits
    assert engine.supervisor.process("m") == 2
