"""A turn of the engine plans only so much: whoever comes too late has his turn in the next ones."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import pytest

from haptera.core.decide.backlog import PLANNED
from haptera.core.decide.decision_loop import DECIDING
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.plans import ANSWERING
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import Desired, SetDesired, Stored, StoredEntity
from haptera.model.effects import Call, PlanReply
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Considered, Ready, Ticked
from haptera.planner.domain.domain import compile_class
from haptera.planner.planner import plan
from haptera.planner.search.factors import FACTORS_CACHED_MAX
from tests.core.scenario import ATTRIBUTES, BMC, SIDE, told
from tests.planner.tangle import COUNT, KIND, MANIFEST, TANGLE, goals

CROWD = 6
# Each plan of this class tells of all its variables, and no turn tells of more.
PLANS_A_TURN_MAX = TURN_WORK_MAX // (ANSWERING * COUNT)
FLEET = 500
ENTITIES = [EntityId("k", f"t{number}", None) for number in range(CROWD)]


def crowd(wanted: Iterable[Mapping[str, str]]) -> Engine:
    """Entities of one class, of which nothing is known yet, each with a goal of its own."""
    values = [{name: Desired(one, "site") for name, one in goal.items()} for goal in wanted]
    stored = [
        StoredEntity(EntityId("k", f"t{number}", None), {}, "site", desired, 1)
        for number, desired in enumerate(values)
    ]
    catalog = Catalog({**KINDS, "k": KIND}, [MANIFEST])
    return Engine(SIDE, catalog, Stored(1, 1, stored, [], {}), 0, S)


def planned(engine: Engine) -> int:
    """How many have a plan by now; of the others it is said that they are to have one."""
    rows = [row for row in engine.table if row.id in ENTITIES]
    assert {row.stance.why for row in rows if row.stance.plan is None} <= {PLANNED}
    return sum(row.stance.plan is not None for row in rows)


def test_many_plans_take_many_turns_one_right_after_the_other() -> None:
    engine = crowd(goals(CROWD))
    counts = [0, planned(engine)]
    while engine.deadline() == S:
        told(engine, S, Ticked())
        counts.append(planned(engine))
    news = [after - before for before, after in pairwise(counts)]
    assert max(news) <= PLANS_A_TURN_MAX
    assert sum(news) == CROWD


def test_more_goals_than_are_kept_ready_are_all_planned_for_at_last() -> None:
    engine = crowd(goals(FACTORS_CACHED_MAX + CROWD))
    turns = 0
    while engine.deadline() == S:
        told(engine, S, Ticked())
        turns += 1
    assert turns <= 3 * (FACTORS_CACHED_MAX + CROWD)
    assert all(row.stance.plan is not None for row in engine.table if row.id.kind == "k")


def test_what_was_put_off_is_planned_as_it_would_have_been_at_once() -> None:
    engine = crowd(goals(CROWD))
    while engine.deadline() == S:
        told(engine, S, Ticked())
    domain = compile_class(TANGLE)
    for row, goal in zip(map(engine.table.get, ENTITIES), goals(CROWD), strict=True):
        assert row is not None
        assert row.stance.plan == plan(domain, domain.start({}, {}), goal)


@pytest.mark.campaign
def test_a_preview_that_takes_many_turns_is_shown_after_the_last() -> None:
    engine = crowd([{}] * CROWD)
    changes = [
        SetDesired(entity, name, value, "site")
        for entity, goal in zip(ENTITIES, goals(CROWD), strict=True)
        for name, value in goal.items()
    ]
    turns, shown = 0, list[PlanReply]()
    told(engine, S, Considered(5, tuple(changes)))
    while not shown:
        assert engine.deadline() == S
        shown = [one for one in told(engine, S, Ticked()) if isinstance(one, PlanReply)]
        turns += 1
    (show,) = shown
    assert show.plan is not None
    assert turns > 1
    assert [len(group.chain) > 0 for group in show.plan.groups] == [True] * CROWD


def test_a_fleet_is_decided_on_in_many_turns_when_a_module_starts() -> None:
    nodes = [
        StoredEntity(node_id(f"n{number:03}"), ATTRIBUTES, "site", {}, 1) for number in range(FLEET)
    ]
    engine = Engine(SIDE, Catalog(KINDS, [BMC]), Stored(1, 1, nodes, [], {}), 0, S)
    turns = [told(engine, S, Ready("bmc"))]
    while engine.deadline() == S:
        turns.append(told(engine, S, Ticked()))
    counts = [sum(isinstance(one, Call) for one in effects) for effects in turns]
    assert max(counts) <= TURN_WORK_MAX // DECIDING + 1
    assert sum(counts) == FLEET
