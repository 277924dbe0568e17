"""Rollout of a greedy policy: a plan soon, if not the cheapest, by planning anew at each state.

Bertsekas, Tsitsiklis, Wu, "Rollout Algorithms for Combinatorial Optimization",
Journal of Heuristics 3, 1997.
"""

from typing import Final

from haptera.planner.domain.task import Task
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable
from haptera.planner.search.ff_heuristic import FFHeuristic
from haptera.planner.search.greedy_best_first import GreedyBestFirst
from haptera.planner.search.search_budget import SearchBudget

# How much more the way ahead counts than the way come; the second where the first never arrives.
WEIGHTS: Final = (10, 3)


def rollout(
    task: Task,
    relaxation: FFHeuristic,
    start: int,
    budget: SearchBudget,
    *,
    barred: frozenset[str] = frozenset(),
) -> Found:
    """The first move of a plan, then the first of a new plan from there, and so on to the goal.

    So what is left of a walk is the walk from where it has come to: whoever plans there, and has
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
    walks = [Rollout(greedy, weight) for weight in WEIGHTS]
    rows, state = [], greedy.root
    while not greedy.met(state):
        arriving = next((one for one in walks if one.arrives(state)), None)
        if arriving is None:
            return OutOfBudget(greedy.expanded)
        first = arriving.firsts[state]
        assert first is not None
        rows.append(task.rows[first])
        state = greedy.after(state, first)
    moves, cost = tuple(row[-1] for row in rows), sum(row[3] for row in rows)
    return SearchResult(moves, cost, greedy.expanded, optimal=False)


class Rollout:
    """Where the first moves of plans lead from state to state.

    `firsts` are these moves by the states that were asked about, as numbers of rows; None where
    there is no plan.
    """

    def __init__(self, greedy: GreedyBestFirst, weight: int) -> None:
        self.firsts: dict[int, int | None] = {}
        self._greedy = greedy
        self._weight = weight
        self._lean: dict[int, list[int]] = {}
        self._arriving: set[int] = set()

    def arrives(self, state: int) -> bool:
        """Whether they lead to the goal, and in no circle."""
        walked = set[int]()
        while state not in self._arriving and not self._greedy.met(state):
            first = self._first(state)
            if first is None or state in walked:
                return False
            walked.add(state)
            state = self._greedy.after(state, first)
        self._arriving |= walked
        return True

    def _first(self, state: int) -> int | None:
        """The first move of a plan that needs all its moves."""
        if state not in self.firsts:
            plan = self._greedy.plan(state, self._weight)
            # What is left of a lean plan is lean.
            if plan is not None and plan != self._lean.get(state):
                plan = self._greedy.lean(state, plan)
            if plan is not None:
                self._lean[self._greedy.after(state, plan[0])] = plan[1:]
            self.firsts[state] = None if plan is None else plan[0]
        return self.firsts[state]
