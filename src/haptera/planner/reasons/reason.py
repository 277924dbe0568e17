"""The reason for a missing chain, in words for operators (semantics.md, No chain: the reason)."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from haptera.model.chain import Chain, Reason, ReasonKind
from haptera.planner.domain.bars import Bars
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.problem import subjects
from haptera.planner.domain.task import Task
from haptera.planner.reasons.achievers import listed, nothing_leads
from haptera.planner.reasons.excuses import Excuses
from haptera.planner.reasons.unknowable import unknowable
from haptera.planner.reasons.waiting import cheapest, others, waits_for
from haptera.planner.search.a_star import AStar, SearchResult, Unsolvable
from haptera.planner.search.factors import Factors
from haptera.planner.search.search_budget import SearchBudget


def reason(
    domain: Domain,
    start: int,
    goal: Mapping[str, str],
    factors: Factors,
    budget: SearchBudget,
) -> Reason:
    """The wall around the search that trusted memory, as far as the budget allows."""
    return (
        unknowable(domain, goal, budget)
        or _no_step(domain, start, goal)
        or _waits(domain, start, factors, budget)
        or _blocked(domain, start, goal, factors, budget)
    )


def gave_up(expanded: int) -> Reason:
    return Reason(ReasonKind.BUDGET, None, f"gave up after looking at {expanded} states")


def no_progress(free: Chain, barred: Bars) -> Reason:
    """All chains have barred parts, as this one does."""
    parts = {link.part.path: link.part for link in free.links}
    path = barred.first_of(parts) or next(iter(parts))
    text = f"every chain has a part that has just failed, such as {path}"
    return Reason(ReasonKind.NO_PROGRESS, subjects(parts[path])[0], text)


def _no_step(domain: Domain, start: int, goal: Mapping[str, str]) -> Reason | None:
    for name in sorted(goal):
        bit = domain.fields[name].holding((goal[name],))
        if not start & bit and (text := nothing_leads(domain, name, goal[name])):
            return Reason(ReasonKind.NO_STEP, name, text)
    return None


def _waits(domain: Domain, start: int, factors: Factors, budget: SearchBudget) -> Reason | None:
    values = waits_for(domain, start, factors, budget)
    if not values:
        return None
    return Reason(ReasonKind.WAITS, values[0][0], f"waits for {listed(values)}", waits_for=values)


def _blocked(
    domain: Domain, start: int, goal: Mapping[str, str], factors: Factors, budget: SearchBudget
) -> Reason:
    """What stands in the way of those parts of the goal that have no chain."""
    # Not all that was found walled in is kept, and there may be nothing left to search anew.
    found = ((one.task, one.search(start, budget)) for one in factors.parts)
    tasks = [task for task, some in found if not isinstance(some, SearchResult)]
    way = Excuses(domain, tasks, start, budget).smallest()
    missing = sorted(_missing(domain, one, start, budget) for one in tasks)
    to = f"no way to {' and '.join(missing)}"
    if way is None:
        why = "no order of parts leads there, from any state"
        if budget.is_spent:
            why = "the obstacles were not found within the budget"
        variable = min(name for one in tasks for name in one.goal)
        return Reason(ReasonKind.BLOCKED, variable, f"{to}: {why}")
    told = way.told(domain)
    several = "" if len(told) == 1 else f"{len(told)} obstacles: "
    hurdles = tuple(sorted(way.hurdles, key=lambda one: (one.variable, one.role)))
    names = sorted({one.variable for one in hurdles})
    wants = cheapest(domain, start, factors, others(domain, start, names, goal), budget)
    text = f"{to}: {several}{'; '.join(told)}"
    return Reason(ReasonKind.BLOCKED, names[0], text, hurdles=hurdles, wants=wants)


def _missing(domain: Domain, task: Task, start: int, budget: SearchBudget) -> str:
    """The values of a goal that are in no state within reach; or all, if each is in some."""
    found = AStar(task, start, budget=budget).best()
    seen = reduce(or_, found.reached) if isinstance(found, Unsolvable) else 0
    missing = [
        (name, value)
        for name, value in task.goal.items()
        if not seen & domain.fields[name].holding((value,))
    ]
    return listed(missing) if missing else f"{listed(task.goal.items())} at once"
