"""The policy cache: the next operator on the way to a goal, state by state."""

from collections.abc import Callable, Mapping
from typing import Final

from haptera.planner.domain.bitstate import Operator, strip
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task
from haptera.planner.search.a_star import Found, SearchResult, Unsolvable
from haptera.planner.search.full_policy import solve
from haptera.planner.search.serial_subgoals import End, Subgoal, next_row, subgoals_of

# States of one goal whose next moves are kept, over all its factors.
STATES_MAX: Final = 2_048
# Moves tried to work out a factor ahead, over all its states: some 5 ms.
WORK_MAX: Final = 10_000


class PolicyCache:
    """What comes next from the states of one factor, exactly as a search from each would say.

    What searches found is kept: what is left of a route is the route from where it has come to, so
    it tells of all states on it; and where there is none, there is none from any state come to.
    `ahead` tells of all states, where it is given; else `stages` are asked where no search was.
    """

    def __init__(
        self,
        task: Task,
        states_max: int,
        *,
        ahead: Mapping[int, OperatorRow | End] | None = None,
        stages: tuple[Subgoal, ...] = (),
    ) -> None:
        self._task = task
        self._states_max = states_max
        self.ahead = ahead
        self.stages = stages
        self._kept: dict[int, OperatorRow | End] = {}
        self._rows = {row[-1]: row for row in task.rows}

    def __len__(self) -> int:
        """How many states are kept."""
        return len(self._kept)

    def next(self, state: int) -> OperatorRow | End:
        """The first move of the route from a state of the task."""
        if state & self._task.wanted == self._task.wanted:
            return End.MET
        known = (self._kept if self.ahead is None else self.ahead).get(state)
        return next_row(self.stages, state) if known is None else known

    def route(self, start: int) -> SearchResult | Unsolvable | None:
        """What a search from here finds, where it is known without one."""
        return follow(self.next if self.ahead is None else self.ahead.get, start)

    def keep(self, start: int, found: Found) -> None:
        """Take over what a search from here, with no part barred, has found."""
        news: dict[int, OperatorRow | End] = {}
        if isinstance(found, Unsolvable):
            news = dict.fromkeys(found.reached, End.WALLED)
        elif isinstance(found, SearchResult):
            state = start
            for move in found.moves:
                row = news[state] = self._rows[move]
                state = strip(state & row[1] | row[2], row[4])
        if len(news) > self._states_max:
            news = {start: news[start]}
        if len(self._kept) + len(news) > self._states_max:
            self._kept.clear()
        self._kept |= news


def next_moves(task: Task, states_max: int) -> PolicyCache:
    """The tables of a factor: all states ahead where they are few, or stages as far as possible."""
    ahead = solve(task, min(states_max, WORK_MAX // max(1, len(task.rows))))
    stages = subgoals_of(task, states_max) if ahead is None else ()
    return PolicyCache(task, states_max, ahead=ahead, stages=stages)


def follow(
    next_row: Callable[[int], OperatorRow | End | None], start: int
) -> SearchResult | Unsolvable | None:
    """The route of one next move after the other; None where one is not known."""
    state, moves, cost = start, list[Operator](), 0
    while isinstance(row := next_row(state), tuple):
        _, keep, put, more, upsets, move = row
        state = strip(state & keep | put, upsets) if upsets else state & keep | put
        moves.append(move)
        cost += more
    if row is End.MET:
        return SearchResult(tuple(moves), cost, len(moves) + 1)
    return Unsolvable((start,), 1) if row is End.WALLED else None
