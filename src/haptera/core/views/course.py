"""The course of an entity in its class, for drawings: its own plan, if it still holds."""

from collections.abc import Mapping

from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.row import EntityState
from haptera.core.state.start import start
from haptera.model.chain import Chain, NoChain
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.domain import Domain
from haptera.planner.explain.drawing import Course, is_of
from haptera.planner.plan_query import query_of


def course_of(
    row: EntityState, node: EntityState | None, catalog: Catalog
) -> tuple[Domain, Course]:
    """An entity's class, and how the entity stands in it: by its own plan, if it still holds."""
    domain = catalog.domain(row, node)
    goal = goal_of(row, domain)
    word = start(row, node, domain, goal)
    if not goal or _holds(row.stance.plan, domain, word, goal):
        return domain, Course(word, goal, row.stance.plan)
    query = query_of(domain, word, goal, NO_BARS)
    return domain, Course(word, goal, catalog.plans.plan(query, TurnAllowance()))


def _holds(
    plan: Chain | NoChain | None, domain: Domain, word: int, goal: Mapping[str, str]
) -> bool:
    """Whether a plan is one from here to this goal, by parts that there are."""
    if not isinstance(plan, Chain):
        return plan is not None
    ends = plan.states[0] == domain.known(word) and goal.items() <= plan.states[-1].items()
    return ends and all(any(is_of(move, link) for move in domain.moves) for link in plan.links)
