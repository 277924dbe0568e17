"""A lower bound of what a goal still costs: what each group of variables must do at the least."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as default
from functools import reduce
from math import prod
from operator import or_
from typing import Final

from haptera.core.allowance import Allowance
from haptera.core.distances import UNREACHED, distances
from haptera.core.openings import Row
from haptera.core.scope import Scope, joined
from haptera.core.word import Field, Move

# States of variables that are changed together, up to which they are looked at together.
BLOCK_STATES_MAX: Final = 512
# Things that must be so at some time for the goal to be met: so many are minded.
LANDMARKS_MAX: Final = 256
# Work, in moves tried: beginning with a row and a variable, minding a landmark in a state, looking
# what comes before one for a variable, trying a row in a block, following an edge of a block back.
BEGINNING: Final = 2
MINDING: Final = 10
LOOKING: Final = 10
TRYING: Final = 5
FOLLOWING: Final = 6


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Variables on their own, as though whatever moves ask of the others were so.

    Its states go wherever a row leads, for what the block pays of it, and are stripped for nothing.
    """

    fields: tuple[Field, ...]
    whole: int
    rows: tuple[tuple[Row, int], ...]
    strips: tuple[tuple[int, int], ...]
    before: dict[int, list[tuple[int, int]]] = default(default_factory=dict)
    onward: dict[int, tuple[tuple[int, int], ...]] = default(default_factory=dict)

    def explore(self, state: int, allowance: Allowance) -> bool:
        """Find out where each state within reach leads; whether the allowance was enough for it."""
        fresh, seen = [state], {state}
        while fresh and allowance.work > 0:
            state = fresh.pop()
            if state not in self.onward:
                allowance.spend(TRYING * len(self.rows))
            new = [after for after, _ in self._after(state) if after not in seen]
            seen.update(new)
            fresh += new
        return not fresh

    def link(self, state: int) -> None:
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

    def leading(self, state: int, good: int, bad: int) -> list[Row]:
        """The rows by which a variable can come to a good bit from a bad one, in time."""
        reached = {state}
        fresh = [state]
        while fresh:
            new = {after for after, _ in self._after(fresh.pop())} - reached
            reached |= new
            fresh += new
        bits = reduce(or_, reached)
        return [
            row
            for row, _ in self.rows
            if row[2] & good
            and bits & bad & ~row[0]
            and all(bits & field.whole & ~row[0] for field in self.fields)
        ]

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


@dataclass(frozen=True, slots=True, eq=False)
class Landmark:
    """Something that must be so at some time: that variables of a block have no bad bit.

    While one is set, what clears it is yet to come. `ahead` remembers, for states of the block,
    what that costs it at the least, and the bits of the landmarks that come before.
    """

    bit: int
    block: Block
    fields: tuple[Field, ...]
    bad: int
    whole: int
    costs: dict[int, float] = default(default_factory=dict)
    ahead: dict[int, tuple[float, int]] = default(default_factory=dict)

    def cost(self, state: int, allowance: Allowance) -> float:
        """What it costs the block at the least to get there from one of its states."""
        if state not in self.costs:
            if not self.block.explore(state, allowance):
                return 0
            self.block.link(state)
            self.costs.update(dict.fromkeys(self.block.before, UNREACHED))
            allowance.spend(self._spread())
        return self.costs[state]

    def _spread(self) -> int:
        """Work out the costs of all states within reach; gives the work that this took."""
        before = self.block.before
        costs = distances((state for state in before if not state & self.bad), before)
        self.costs.update(costs)
        return FOLLOWING * sum(len(before[state]) for state in costs)


class Estimate:
    """What the goal costs at the least from a state; UNREACHED where nothing leads to it.

    No cost counts in two blocks, so what they cost adds up; of one block the farthest landmark
    counts. A move never lowers it by more than its own cost. Whoever asks is charged for what has
    to be found out first; with an allowance that is spent the answer is less.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._grounds = {one.variable: one for one in scope.grounds}
        self._blocks: dict[Field, Block] = {}
        self._marks: dict[int, Landmark] = {}
        self._by_bit: dict[int, tuple[Landmark, int, int, dict[int, tuple[float, int]]]] = {}
        self.ends = 0

    def _begin(self, allowance: Allowance) -> bool:
        """Part the scope in blocks, if that can be afforded."""
        scope = self._scope
        if not allowance.covers(BEGINNING * len(scope.rows) * len(scope.fields)):
            return False
        self._blocks = {field: block for block in _blocks(scope) for field in block.fields}
        ends = [block.fields for block in dict.fromkeys(self._blocks.values())]
        ends += [(field,) for field in scope.fields]
        bads = ((fields, _whole(fields) & ~scope.allowed) for fields in ends)
        self.ends = reduce(or_, (self._mark(fields, bad) for fields, bad in bads if bad), 0)
        return True

    def __call__(self, state: int, allowance: Allowance) -> float:
        if not self._blocks and not self._begin(allowance):
            return 0
        farthest: dict[int, float] = {}
        by_bit = self._by_bit
        left = minded = self.ends if allowance.work > 0 else 0
        while left:
            bit = left & -left
            left ^= bit
            mark, bad, whole, ahead = by_bit[bit]
            if state & bad:
                here = state & whole
                cost, before = ahead.get(here) or self.ahead(mark, here, allowance)
                if cost > farthest.get(whole, 0):
                    farthest[whole] = cost
                before &= ~minded
                left |= before
                minded |= before
        allowance.work -= MINDING * minded.bit_count()
        return sum(farthest.values())

    def landmarks(self) -> Iterator[Landmark]:
        """Those that were met so far, the goal's own first."""
        return iter(self._marks.values())

    def ahead(self, mark: Landmark, state: int, allowance: Allowance) -> tuple[float, int]:
        """What a mark costs, and the bits of those before it; nothing if that is too much work."""
        if allowance.work <= 0:
            return 0, 0
        allowance.spend(LOOKING * len(self._scope.fields))
        cost, before = mark.cost(state, allowance), 0
        if allowance.work <= 0:
            return 0, 0
        if len(mark.fields) == 1:
            first = self._first(mark, state)
            before = reduce(or_, (self._mark((one,), bad) for one, bad in first), 0)
        ahead = mark.ahead[state] = cost, before
        return ahead

    def _mark(self, fields: tuple[Field, ...], bad: int) -> int:
        """The bit of a landmark; none where no more of them are minded."""
        if bad not in self._marks and len(self._marks) < LANDMARKS_MAX:
            block = self._blocks[fields[0]]
            mark = Landmark(1 << len(self._marks), block, fields, bad, block.whole)
            self._marks[bad] = mark
            self._by_bit[mark.bit] = mark, bad, mark.whole, mark.ahead
        return self._marks[bad].bit if bad in self._marks else 0

    def _first(self, mark: Landmark, state: int) -> Iterator[tuple[Field, int]]:
        """Bits of other variables that must be gone by the time that the mark is met.

        Either just before, for the moves that can meet it, or just after, for its value to stay
        known.
        """
        (field,) = mark.fields
        good = field.whole & ~mark.bad
        grounds = self._grounds.get(field.name)
        rows = mark.block.leading(state, good, mark.bad)
        if not rows or (grounds and grounds.loose and good & field.remembered):
            return  # Nothing can bring it about, or strip can.
        before = reduce(or_, (~forbidden for forbidden, *_ in rows))
        after = grounds.reading(good) if grounds and not good & ~field.known else -1
        for other in self._scope.fields:
            for reach in (before, after):
                if other is not field and (missing := other.whole & ~reach):
                    yield other, missing


def _whole(fields: tuple[Field, ...]) -> int:
    return reduce(or_, (field.whole for field in fields))


def _blocks(scope: Scope) -> Iterator[Block]:
    """Variables that are changed together; each alone where these have too many states."""
    spans = [field.whole for field in scope.fields]
    groups = joined(spans + [row[-1].touches for row in scope.rows])
    fields = {group: [field for field in scope.fields if field.whole & group] for group in groups}
    group_of = {field.lowest: group for group in groups for field in fields[group]}
    rows: dict[int, list[Row]] = {group: [] for group in groups}
    for row in scope.rows:
        touched = row[-1].touches & scope.within
        rows[group_of[touched & -touched]].append(row)
    strips = [(one.loose, one.width) for one in scope.grounds if one.loose]
    for group in groups:
        states = prod(2 * field.width + 1 for field in fields[group])
        together = states <= BLOCK_STATES_MAX
        paid: set[Move] = set()
        for some in [fields[group]] if together else [[field] for field in fields[group]]:
            yield _block(scope, tuple(some), rows[group], strips, paid)


def _block(
    scope: Scope,
    fields: tuple[Field, ...],
    rows: Iterable[Row],
    strips: Iterable[tuple[int, int]],
    paid: set[Move],
) -> Block:
    """What moves several blocks is paid by the first of them."""
    whole = reduce(or_, (field.span for field in fields)) & scope.within
    mine = [row for row in rows if row[-1].touches & whole]
    costs = [0 if row[-1] in paid else row[3] for row in mine]
    paid.update(row[-1] for row in mine)
    lost = tuple(one for one in strips if one[0] & whole)
    return Block(fields, whole, tuple(zip(mine, costs, strict=True)), lost)
