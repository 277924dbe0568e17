"""A lower bound of what a goal still costs: what each group of variables must do at the least."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as default
from functools import reduce
from heapq import heappop, heappush
from math import prod
from operator import or_
from typing import Final

from haptera.core.scope import Row, Scope
from haptera.core.word import Field

# States of variables that are changed together, up to which they are looked at together.
BLOCK_STATES_MAX: Final = 512
# Things that must be so at some time for the goal to be met: so many are minded.
LANDMARKS_MAX: Final = 256

UNREACHED: Final = float("inf")


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Variables on their own, as though whatever moves ask of the others were so.

    Its states go wherever a row leads, at the row's cost, and are stripped for nothing.
    """

    whole: int
    rows: tuple[tuple[int, int, int, int], ...]
    strips: tuple[tuple[int, int], ...]
    before: dict[int, list[tuple[int, int]]] = default(default_factory=dict)

    def explore(self, state: int) -> None:
        """Note, for each state within reach, from which states it is come to at what cost."""
        self.before[state] = []
        fresh = [state]
        while fresh:
            state = fresh.pop()
            for after, cost in self._after(state):
                if after not in self.before:
                    self.before[after] = []
                    fresh.append(after)
                self.before[after].append((state, cost))

    def _after(self, state: int) -> Iterator[tuple[int, int]]:
        for forbidden, keep, put, cost in self.rows:
            if not state & forbidden:
                yield state & keep | put, cost
        for known, width in self.strips:
            if held := state & known:
                yield state ^ held | held << width, 0


@dataclass(frozen=True, slots=True, eq=False)
class Landmark:
    """Something that must be so at some time: that a block has no bit of `bad`.

    While it is not, what brings it about is yet to come, and before that what is needed `first`.
    """

    number: int
    block: Block
    bad: int
    first: list["Landmark"] = default(default_factory=list)
    costs: dict[int, float] = default(default_factory=dict)

    def cost(self, state: int) -> float:
        """What it costs the block at the least to get there."""
        state &= self.block.whole
        if state not in self.costs:
            if state not in self.block.before:
                self.block.explore(state)
            self._spread()
        return self.costs[state]

    def _spread(self) -> None:
        self.costs.update(dict.fromkeys(self.block.before, UNREACHED))
        queue = [(0, state) for state in self.block.before if not state & self.bad]
        while queue:
            cost, state = heappop(queue)
            if cost < self.costs[state]:
                self.costs[state] = cost
                for before, more in self.block.before[state]:
                    heappush(queue, (cost + more, before))


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What the goal costs at the least from a state; UNREACHED where nothing leads to it.

    No cost counts in two blocks, so what they cost adds up; of one block the farthest landmark
    counts. A move never lowers it by more than its own cost.
    """

    ends: tuple[Landmark, ...]

    def __call__(self, state: int) -> float:
        farthest: dict[int, float] = {}
        minded = 0
        marks = list(self.ends)
        for mark in marks:  # It grows on the way.
            if not state & mark.bad or minded >> mark.number & 1:
                continue
            minded |= 1 << mark.number
            whole, cost = mark.block.whole, mark.cost(state)
            if cost > farthest.get(whole, 0):
                farthest[whole] = cost
            marks += mark.first
        return sum(farthest.values())


def estimate_of(scope: Scope) -> Estimate:
    """The landmarks of a goal: its own values, what must be so with them, and before them."""
    blocks = {field.name: block for block, fields in _blocks(scope) for field in fields}
    marks: dict[int, Landmark] = {}
    for block in dict.fromkeys(blocks.values()):
        _mark(marks, block, block.whole & ~scope.allowed)
    fields = [(field, field.whole & ~scope.allowed) for field in scope.fields]
    ends = [(field, bad) for field, bad in fields if bad]
    for field, bad in ends:
        _mark(marks, blocks[field.name], bad)
    estimate = Estimate(tuple(marks.values()))
    for field, bad in ends:  # It grows on the way.
        for other, missing in _first(scope, field, bad):
            if missing not in marks and len(marks) < LANDMARKS_MAX:
                _mark(marks, blocks[other.name], missing)
                ends.append((other, missing))
            if missing in marks:
                marks[bad].first.append(marks[missing])
    return estimate


def _mark(marks: dict[int, Landmark], block: Block, bad: int) -> None:
    if bad and bad not in marks:
        marks[bad] = Landmark(len(marks), block, bad)


def _first(scope: Scope, field: Field, bad: int) -> Iterator[tuple[Field, int]]:
    """Of other fields, the bits that none has when this one loses its bad bits.

    They must be gone either just before, for the moves that do it, or just after, for its value
    to stay known.
    """
    good = field.whole & ~bad
    grounds = [one for one in scope.grounds if one.variable == field.name]
    if grounds and good & field.remembered:
        return  # Strip can bring it about.
    rows = [row for row in scope.rows if row[2] & good and bad & ~row[0]]
    before = reduce(or_, (~row[0] for row in rows), 0)
    after = grounds[0].reading(good) if grounds and not good & ~field.known else -1
    for other in scope.fields if rows else ():
        for reach in (before, after):
            if other is not field and (missing := other.whole & ~reach):
                yield other, missing


def _blocks(scope: Scope) -> Iterator[tuple[Block, list[Field]]]:
    """Variables that are changed together; each alone where these have too many states."""
    groups: list[list[Field]] = [[field] for field in scope.fields]
    for *_, move in scope.rows:
        touched = [group for group in groups if any(one.whole & move.touches for one in group)]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched]
            groups.append([field for group in touched for field in group])
    paid: set[Row] = set()
    for group in groups:
        states = prod((2 * field.width + 1) for field in group)
        for fields in [group] if states <= BLOCK_STATES_MAX else [[field] for field in group]:
            yield _block(scope, fields, paid), fields


def _block(scope: Scope, fields: Iterable[Field], paid: set[Row]) -> Block:
    """The block of these; what a row costs is paid by the first block that it changes."""
    fields = list(fields)
    whole = sum(field.span for field in fields) & scope.within
    rows = [row for row in scope.rows if row[-1].touches & whole]
    local = [(row[0] & whole, row[1], row[2] & whole, 0 if row in paid else row[3]) for row in rows]
    paid.update(rows)
    strips = [(one.known, one.width) for one in scope.grounds if one.known & whole]
    return Block(whole, tuple(dict.fromkeys(local)), tuple(strips))
