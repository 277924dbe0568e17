"""The paper's mutation graph, built whole and done right: hashed states, stripped to a fixed point.

Three phases, as in the original: first all states that mutations lead to or come from, from the
root (all unknown) on; then, for each variable, what is common to all states in which it is
discovered; last, what that does not hold for is forgotten, and states that became equal are one.
Looks are mutations from the unknown; there is no memory. It speaks of problems without
attributes, borrowed variables and expectations.

A state is an integer: a field of bits for each variable, 0 its unknown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

from haptera.model.parts import ANY, Look, Part
from haptera.planner.domain.problem import Problem

Match = tuple[int, int]
# (mask and value to match, mutation, what is kept, what is set) of one mutation, one way.
Arc = tuple[int, int, "Mutation", int, int]


@dataclass(frozen=True)
class Mutation:
    """From one value to another of each changed variable, where other variables have one value."""

    part: str
    cost: int
    before: dict[str, str]
    after: dict[str, str]
    requires: dict[str, str]
    excludes: tuple[Match, ...]


@dataclass(frozen=True)
class Hop:
    """One edge of a path: the part, and the state that it leads to, known values only."""

    part: str
    state: dict[str, str]


class ExplicitGraph:
    """All knowable states and the mutations between them."""

    def __init__(self, problem: Problem) -> None:
        self._values = problem.variables
        self._shift: dict[str, int] = {}
        self._mask: dict[str, int] = {}
        lowest = 0
        for name, values in problem.variables.items():
            width = max(1, (len(values) - 1).bit_length())
            self._shift[name] = lowest
            self._mask[name] = (1 << width) - 1 << lowest
            lowest += width
        self._mutations = [one for part in problem.parts for one in self._mutations_of(part)]
        tails = self._connect()
        self._needs = {name: self._common(states) for name, states in tails.items()}
        self._forget()

    @property
    def states(self) -> list[dict[str, str]]:
        return [self._known(state) for state in self._out]

    @property
    def edges(self) -> int:
        return sum(map(len, self._out.values()))

    def path(self, observed: Mapping[str, str], goal: Mapping[str, str]) -> list[Hop] | None:
        """The cheapest way between the two, or None; ties go to what was found first."""
        start = self._strip(self._word(observed))
        wanted, mask = self._word(goal), self._span(goal)
        best = {start: 0}
        came: dict[int, tuple[int, Mutation]] = {}
        queue = [(0, 0, start)]
        while queue:
            cost, _, state = heappop(queue)
            if state & mask == wanted:
                return self._hops(came, state)
            if cost > best[state]:
                continue
            for mutation, after in self._out.get(state, ()):
                more = cost + mutation.cost
                if after not in best or more < best[after]:
                    best[after] = more
                    came[after] = (state, mutation)
                    heappush(queue, (more, len(best), after))
        return None

    def cost(self, observed: Mapping[str, str], goal: Mapping[str, str]) -> int | None:
        hops = self.path(observed, goal)
        costs = {one.part: one.cost for one in self._mutations}
        return None if hops is None else sum(costs[hop.part] for hop in hops)

    # Phase 1

    def _connect(self) -> dict[str, list[int]]:
        """Find all states, and for each variable those in which it is discovered."""
        forward = self._arcs("before", "after")
        backward = self._arcs("after", "before")
        tails: dict[str, list[int]] = {name: [] for name in self._values}
        seen, self._found = {0}, [0]
        for state in self._found:
            for after, mutation in self._leave(forward, state):
                for name, value in mutation.before.items():
                    if value == self._values[name][0]:
                        tails[name].append(state)
                if after not in seen:
                    seen.add(after)
                    self._found.append(after)
            for source, _ in self._leave(backward, state):
                if source not in seen:
                    seen.add(source)
                    self._found.append(source)
        return tails

    def _arcs(self, here: str, there: str) -> dict[int, dict[int, list[Arc]]]:
        """Mutations by the value of the first variable they change: field, value, arcs."""
        arcs: dict[int, dict[int, list[Arc]]] = {}
        for one in self._mutations:
            near, far = getattr(one, here), getattr(one, there)
            field = self._mask[next(iter(near))]
            value = self._word(near)
            match = self._span(near) | self._span(one.requires), value | self._word(one.requires)
            arc = (*match, one, ~self._span(near), self._word(far))
            arcs.setdefault(field, {}).setdefault(value & field, []).append(arc)
        return arcs

    @staticmethod
    def _leave(arcs: dict[int, dict[int, list[Arc]]], state: int) -> Iterator[tuple[int, Mutation]]:
        for field, by_value in arcs.items():
            for mask, value, mutation, keep, put in by_value.get(state & field, ()):
                if state & mask == value and not any(
                    state & at == excluded for at, excluded in mutation.excludes
                ):
                    yield state & keep | put, mutation

    # Phase 2

    def _common(self, states: list[int]) -> Match:
        """What all of these know, and know alike."""
        if not states:
            return 0, 0
        differs = 0
        for state in states:
            differs |= state ^ states[0]
        alike = sum(mask for mask in self._mask.values() if not differs & mask and states[0] & mask)
        return alike, states[0] & alike

    # Phase 3

    def _forget(self) -> None:
        """Strip all states; an edge that would gain what its mutation does not give is none."""
        forward = self._arcs("before", "after")
        self._checks = [
            (self._mask[name], *match) for name, match in self._needs.items() if match[0]
        ]
        stripped = dict.fromkeys(map(self._strip, self._found))
        self._out = {
            state: [
                (mutation, self._strip(after)) for after, mutation in self._leave(forward, state)
            ]
            for state in stripped
        }

    def _strip(self, state: int) -> int:
        while True:
            kept = state
            for field, mask, value in self._checks:
                if state & field and state & mask != value:
                    kept &= ~field
            if kept == state:
                return kept
            state = kept

    # Words

    def _mutations_of(self, part: Part) -> Iterator[Mutation]:
        """A mutation for each outcome, and for each way to have what is required."""
        excludes = tuple(
            (self._mask[one.name], self._word({one.name: value}))
            for one in part.excludes
            for value in one.values
        )
        ways = product(*(one.values for one in part.requires))
        for values in ways:
            requires = dict(zip((one.name for one in part.requires), values, strict=True))
            for before, after in self._changes(part):
                yield Mutation(part.name, part.cost, before, after, requires, excludes)

    def _changes(self, part: Part) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        if isinstance(part, Look):
            unknown = self._values[part.at][0]
            for outcome in part.outcomes:
                yield {part.at: unknown}, {part.at: outcome}
            return
        after = {one.variable: one.target for one in part.changes}
        sources = [
            [value for value in self._values[one.variable] if value != one.target]
            if one.sources == (ANY,)
            else one.sources
            for one in part.changes
        ]
        for values in product(*sources):
            yield dict(zip(after, values, strict=True)), after

    def _word(self, values: Mapping[str, str]) -> int:
        return sum(
            self._values[name].index(value) << self._shift[name] for name, value in values.items()
        )

    def _span(self, names: Iterable[str]) -> int:
        return sum(self._mask[name] for name in names)

    def _known(self, state: int) -> dict[str, str]:
        found = {
            name: values[(state & self._mask[name]) >> self._shift[name]]
            for name, values in self._values.items()
        }
        return {name: value for name, value in found.items() if value != self._values[name][0]}

    def _hops(self, came: dict[int, tuple[int, Mutation]], state: int) -> list[Hop]:
        hops = []
        while state in came:
            before, mutation = came[state]
            hops.append(Hop(mutation.part, self._known(state)))
            state = before
        return hops[::-1]
