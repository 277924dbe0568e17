"""A plain search, and a sweep where that takes long: for parents, whose workers have numpy."""

from typing import Final

from haptera.planner.domain.task import Task
from haptera.planner.search.a_star import Found, OutOfBudget, search
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget

# With so few states a plain search is done as soon: a sweep begins with importing numpy.
PLAIN_STATES_MAX: Final = 2_000


def thorough(
    task: Task,
    start: int,
    bound: LandmarkHeuristic,
    budget: SearchBudget,
    *,
    barred: frozenset[str] = frozenset(),
) -> Found:
    """What `search` finds: a plain one first, then, where that is spent, all states at once."""
    given = min(budget.states, PLAIN_STATES_MAX)
    plain = SearchBudget(given, work=budget.work)
    tried = search(task, start, bound, plain, barred=barred)
    budget.spend(budget.work - plain.work)
    if not isinstance(tried, OutOfBudget) or budget.is_spent:
        budget.spend(0, given - plain.states)
        return tried
    from haptera.planner.fleet.sweep import Sweep  # numpy takes a tenth of a second to import

    return Sweep(task, start, bound, barred).best(budget)
