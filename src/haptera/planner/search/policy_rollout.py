"""Rollout of a greedy policy: a plan soon, if not the cheapest, by planning anew at each state.

Bertsekas, Tsitsiklis, Wu, "Rollout Algorithms for Combinatorial Optimization",
Journal of Heuristics 3, 1997.
"""

from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable
from haptera.planner.search.ff_heuristic import FFHeuristic
from haptera.planner.search.greedy_best_first import GreedyBestFirst
from haptera.planner.search.search_budget import SearchBudget


def rollout(
    task: Task,
    relaxation: FFHeuristic,
    start: int,
    budget: SearchBudget,
    *,
    barred: frozenset[str] = frozenset(),
) -> Found:
    """The first move of a plan, then the first of a new plan from there, and so on to the goal.

    So what is left of a walk is the walk from where it has come to: a planner there that has
    never heard of this walk, goes on with it. Else two plans could send each other in a circle.
    No barred part is the first.
    """
    greedy = GreedyBestFirst(task, relaxation, start, outlooks=budget.outlooks, barred=barred)
    found = _walked(task, greedy)
    budget.outlooks -= found.expanded
    return found


def _walked(task: Task, greedy: GreedyBestFirst) -> Found:
    if greedy.is_walled():
        return Unsolvable((greedy.root,), 1)
    rows: list[OperatorRow] = []
    rest: list[int] | None = None
    state, walked = greedy.root, set[int]()
    while not greedy.met(state):
        plan = None if state in walked else greedy.plan(state)
        if plan is None:  # There is none within the budget, or the walk goes in a circle.
            return OutOfBudget(greedy.expanded)
        if plan != rest:  # What is left of a lean plan is lean.
            plan = greedy.lean(state, plan)
        walked.add(state)
        rows.append(task.rows[plan[0]])
        state, rest = greedy.after(state, plan[0]), plan[1:]
    moves, cost = tuple(row[-1] for row in rows), sum(row[3] for row in rows)
    return SearchResult(moves, cost, greedy.expanded, optimal=False)
