"""Projections of a task onto groups of variables: conditions on all others count as met.

Abstractions as in pattern databases: Culberson, Schaeffer, "Pattern Databases", Computational
Intelligence 14(3), 1998; Edelkamp, "Planning with Pattern Databases", ECP 2001.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property, reduce
from heapq import heappop, heappush
from math import prod
from operator import or_
from typing import Final, Protocol

from haptera.planner.domain.bitsets import numbers
from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task, joined
from haptera.planner.search.dijkstra import UNREACHED, distances
from haptera.planner.search.search_budget import SearchBudget
from haptera.planner.search.transitive_closure import Way, transitive_closure

# States of variables that are changed together, up to which they are looked at together.
BLOCK_STATES_MAX: Final = 512
# Work, in moves tried: trying a row in a block, following an edge of a block back, and, for one
# variable, finding out what a row leads to and what is within reach, once for all.
TRYING: Final = 5
FOLLOWING: Final = 6
REACHING: Final = 12

# A row, and what a block pays of it.
Paid = tuple[OperatorRow, int]


class Projection(Protocol):
    """Variables on their own: their states go wherever a row leads, for what the block pays of it.

    They are stripped for nothing.
    """

    @property
    def fields(self) -> tuple[Field, ...]: ...

    @property
    def whole(self) -> int:
        """The bits of its states."""
        ...

    def cost(self, state: int, bad: int, budget: SearchBudget) -> float:
        """What it costs at the least until no bad bit is set; 0 where that is not affordable."""
        ...

    def leading(self, state: int, bad: int) -> list[OperatorRow]:
        """The rows by which a variable can come to a good bit from a bad one, in time."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class JointProjection:
    """A few variables that are changed together, state by state."""

    fields: tuple[Field, ...]
    whole: int
    rows: tuple[Paid, ...]
    strips: tuple[tuple[int, int], ...]
    before: dict[int, list[tuple[int, int]]] = default(default_factory=dict)
    onward: dict[int, tuple[tuple[int, int], ...]] = default(default_factory=dict)
    known: dict[int, dict[int, float]] = default(default_factory=dict)
    reached: dict[int, int] = default(default_factory=dict)

    def cost(self, state: int, bad: int, budget: SearchBudget) -> float:
        costs = self.known.setdefault(bad, {})
        if state not in costs:
            if not self._explore(state, budget):
                return 0
            self._link(state)
            budget.spend(self._spread(bad, costs))
        return costs[state]

    def leading(self, state: int, bad: int) -> list[OperatorRow]:
        (field,) = (one for one in self.fields if one.whole & bad)
        good = field.whole & ~bad
        bits = self._reached(state)
        return [
            row
            for row, _ in self.rows
            if row[2] & good
            and bits & bad & ~row[0]
            and all(bits & one.whole & ~row[0] for one in self.fields)
        ]

    def _reached(self, state: int) -> int:
        """The bits that are set in any state within reach."""
        if state not in self.reached:
            reached = {state}
            fresh = [state]
            while fresh:
                new = {after for after, _ in self._after(fresh.pop())} - reached
                reached |= new
                fresh += new
            self.reached[state] = reduce(or_, reached)
        return self.reached[state]

    def _spread(self, bad: int, costs: dict[int, float]) -> int:
        """Work out the costs of all states within reach; gives the work that this took."""
        before = self.before
        found = distances((state for state in before if not state & bad), before)
        costs.update(dict.fromkeys(before, UNREACHED) | found)
        return FOLLOWING * sum(len(before[state]) for state in found)

    def _explore(self, state: int, budget: SearchBudget) -> bool:
        """Find out where each state within reach leads; whether the budget was enough for it."""
        fresh, seen = [state], {state}
        while fresh and budget.work > 0:
            state = fresh.pop()
            if state not in self.onward:
                budget.spend(TRYING * len(self.rows))
            new = [after for after, _ in self._after(state) if after not in seen]
            seen.update(new)
            fresh += new
        return not fresh

    def _link(self, state: int) -> None:
        """Note, for each state within reach, from which states it is come to at what cost."""
        fresh = [] if state in self.before else [state]
        self.before.setdefault(state, [])
        while fresh:
            state = fresh.pop()
            for after, cost in self._after(state):
                if after not in self.before:
                    self.before[after] = []
                    fresh.append(after)
                self.before[after].append((state, cost))

    def _after(self, state: int) -> tuple[tuple[int, int], ...]:
        """The states that come next, each at its least cost; worked out once."""
        if state not in self.onward:
            dearest_first = sorted(self._ways(state), key=lambda one: one[1], reverse=True)
            self.onward[state] = tuple(dict(dearest_first).items())
        return self.onward[state]

    def _ways(self, state: int) -> Iterator[tuple[int, int]]:
        for (forbidden, keep, put, *_), cost in self.rows:
            if not state & forbidden & self.whole:
                yield state & keep | put & self.whole, cost
        for known, width in self.strips:
            if held := state & known:
                yield state ^ held | held << width, 0


@dataclass(frozen=True, eq=False)
class SingleProjection:
    """One variable, whatever the number of its values: a set of its states is one word.

    Its states are numbered as its bits; those in which it was not touched, so that its memory may
    be doubted, come after these.
    """

    field: Field
    whole: int
    rows: tuple[Paid, ...]
    loose: int
    known: dict[int, list[float]] = default(default_factory=dict)
    into: dict[int, list[tuple[int, OperatorRow]]] = default(default_factory=dict)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.field,)

    def cost(self, state: int, bad: int, budget: SearchBudget) -> float:
        if bad not in self.known:
            price = FOLLOWING if self.known else FOLLOWING + REACHING
            if not budget.covers(price * (len(self.rows) + self._count)):
                return 0
            self.known[bad] = self._costs(self._numbered(bad))
        return self.known[bad][self._number(state)]

    def leading(self, state: int, bad: int) -> list[OperatorRow]:
        if bad not in self.into:
            self.into[bad] = list(self._into(bad))
        reached = self._reach[self._number(state)]
        return [row for sources, row in self.into[bad] if sources & reached]

    def _into(self, bad: int) -> Iterator[tuple[int, OperatorRow]]:
        """The rows that lead from bad bits to good ones, with the states that they lead from."""
        good, worse = self.field.whole & ~bad, self._numbered(bad)
        for (row, _), (sources, *_) in zip(self.rows, self._ways, strict=False):
            if row[2] & good and sources & worse:
                yield sources & worse, row

    def _costs(self, bad: int) -> list[float]:
        """What it costs from each state: whatever leads to the nearest first, and each way once."""
        leading: list[list[tuple[int, int]]] = [[] for _ in range(self._count)]
        for sources, target, cost in self._ways:
            leading[target].append((cost, sources))
        costs: list[float] = [UNREACHED] * self._count
        left = (1 << self._count) - 1
        new, at = left & ~bad, 0
        queue: list[tuple[int, int]] = []
        while left:
            left ^= new
            for place in numbers(new):
                costs[place] = at
                for cost, sources in leading[place]:
                    heappush(queue, (at + cost, sources))
            if not queue:
                break
            at, sources = heappop(queue)
            new = sources & left
        return costs

    @cached_property
    def _ways(self) -> list[Way]:
        """The rows by numbered states, in order, and what strip does."""
        field, lowest = self.field, self.field.lowest.bit_length()
        ways = []
        for (forbidden, _, put, *_), cost in self.rows:
            sources = self._numbered(field.whole & ~forbidden)
            if forbidden & self._doubt:
                sources &= -1 << self._standing
            ways.append((sources, (put & field.whole).bit_length() - lowest, cost))
        lost = numbers(self._numbered(self.loose))
        return ways + [(1 << one, one + field.width, 0) for one in lost]

    @cached_property
    def _reach(self) -> list[int]:
        return transitive_closure(self._ways, self._count)

    @cached_property
    def _standing(self) -> int:
        """In how many ways the variable can stand."""
        return 2 * self.field.width + 1

    @cached_property
    def _doubt(self) -> int:
        """The bit that is not set in a state where a memory may be doubted, if any may."""
        return self.whole & self.field.touched

    @cached_property
    def _count(self) -> int:
        """How many states there are."""
        return 2 * self._standing if self._doubt else self._standing

    def _number(self, state: int) -> int:
        number = (state & self.field.whole).bit_length() - self.field.lowest.bit_length()
        return number + self._standing if self._doubt & ~state else number

    def _numbered(self, bits: int) -> int:
        """The states in which one of these bits is set."""
        found = (bits & self.field.whole) >> self.field.lowest.bit_length() - 1
        return found | found << self._standing if self._doubt else found


def whole_of(fields: tuple[Field, ...]) -> int:
    return reduce(or_, (field.whole for field in fields))


def projections_of(task: Task) -> Iterator[Projection]:
    """Variables that are changed together; each alone where these have too many states."""
    spans = [field.whole for field in task.fields]
    groups = joined(spans + [row[-1].touches for row in task.rows])
    fields = {group: [field for field in task.fields if field.whole & group] for group in groups}
    group_of = {field.lowest: group for group in groups for field in fields[group]}
    rows: dict[int, list[OperatorRow]] = {group: [] for group in groups}
    for row in task.rows:
        touched = row[-1].touches & task.within
        rows[group_of[touched & -touched]].append(row)
    strips = [(one.loose, one.width) for one in task.grounds if one.loose]
    for group in groups:
        states = prod(2 * field.width + 1 for field in fields[group])
        together = states <= BLOCK_STATES_MAX
        paid: set[Operator] = set()
        for some in [fields[group]] if together else [[field] for field in fields[group]]:
            yield _block(task, tuple(some), rows[group], strips, paid)


def _block(
    task: Task,
    fields: tuple[Field, ...],
    rows: Iterable[OperatorRow],
    strips: Iterable[tuple[int, int]],
    paid: set[Operator],
) -> Projection:
    """What moves several blocks is paid by the first of them."""
    whole = reduce(or_, (field.span for field in fields)) & task.within
    mine = [row for row in rows if row[-1].touches & whole]
    costs = [0 if row[-1] in paid else row[3] for row in mine]
    paid.update(row[-1] for row in mine)
    lost = tuple(one for one in strips if one[0] & whole)
    paying = tuple(zip(mine, costs, strict=True))
    if len(fields) > 1:
        return JointProjection(fields, whole, paying, lost)
    return SingleProjection(fields[0], whole, paying, reduce(or_, (loose for loose, _ in lost), 0))
