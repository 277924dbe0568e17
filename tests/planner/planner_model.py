"""The planner's semantics in plain Python: states are dicts, every search looks at everything.

A state maps each variable to "x" (known), "x?" (remembered) or the unknown's own name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

from haptera.model.parts import Look, Part, Requirement, Step
from haptera.planner.domain.problem import Problem, subjects

State = dict[str, str]
Frozen = tuple[tuple[str, str], ...]
# A state, and the variables whose memory is doubted there.
Place = tuple[Frozen, frozenset[str]]
# Paths of steps, each with a state in which it failed.
Failures = frozenset[tuple[str, Frozen]]
# By which part one comes to which place; a look with what it expects.
Way = tuple[Part, str | None, Place]


@dataclass(frozen=True)
class Model:
    problem: Problem

    # Conditions

    def in_class(self, part: Part) -> bool:
        attributes = self.problem.attributes
        return all(
            attributes[one.name] in one.values for one in part.requires if one.name in attributes
        ) and not any(
            attributes[one.name] in one.values for one in part.excludes if one.name in attributes
        )

    @cached_property
    def looks(self) -> tuple[Look, ...]:
        return tuple(look for look in self.problem.looks if self.in_class(look))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for step in self.problem.steps if self.in_class(step))

    @cached_property
    def looks_at(self) -> dict[str, tuple[Look, ...]]:
        """Those of the class, for each variable that is looked at in any."""
        names = {look.at for look in self.problem.looks}
        return {name: tuple(look for look in self.looks if look.at == name) for name in names}

    def unknown(self, name: str) -> str:
        return self.problem.variables[name][0]

    def is_known(self, name: str, status: str) -> bool:
        return status != self.unknown(name) and not status.endswith("?")

    def required(self, state: State, conditions: Iterable[Requirement]) -> bool:
        return all(one.name not in state or state[one.name] in one.values for one in conditions)

    def excluded(self, state: State, conditions: Iterable[Requirement]) -> bool:
        for one in conditions:
            if one.name in state:
                status = state[one.name]
                if status.removesuffix("?") in one.values:
                    return True
                if self.unknown(one.name) in one.values and not self.is_known(one.name, status):
                    return True
        return False

    # Knowledge

    def knowable(self, state: State, name: str, value: str) -> bool:
        if name not in self.looks_at:
            return True
        looks = self.looks_at[name]
        yielding = [look for look in looks if value in look.outcomes]
        return any(self.required(state, look.requires) for look in yielding or looks)

    def strip(self, state: State) -> State:
        state = dict(state)
        while True:
            for name, status in state.items():
                if self.is_known(name, status) and not self.knowable(state, name, status):
                    state[name] = status + "?"
                    break
            else:
                return state

    def start(self, observed: Mapping[str, str], remembered: Mapping[str, str]) -> State:
        state = {name: self.unknown(name) for name in self.problem.variables}
        state |= {name: value + "?" for name, value in remembered.items()}
        state |= {name: value for name, value in observed.items() if value != self.unknown(name)}
        return self.strip(state)

    # Parts

    def expectations(self, state: State, look: Look, doubted: frozenset[str]) -> set[str]:
        """What a look may expect to find; empty where it may not be planned."""
        status = state[look.at]
        if self.is_known(look.at, status):
            return set()
        if not self.required(state, look.requires) or self.excluded(state, look.excludes):
            return set()
        memory = status.removesuffix("?")
        yielded = {outcome for one in self.looks_at[look.at] for outcome in one.outcomes}
        if status == self.unknown(look.at) or look.at in doubted or memory not in yielded:
            return set(look.outcomes)
        return {memory} & set(look.outcomes)

    def matches(self, name: str, status: str, sources: tuple[str, ...], target: str) -> bool:
        if sources == ("*",):
            return status != target
        if self.is_known(name, status):
            return status in sources
        return self.unknown(name) in sources

    def applicable(self, state: State, step: Step) -> bool:
        return (
            all(
                self.matches(one.variable, state[one.variable], one.sources, one.target)
                for one in step.changes
            )
            and self.required(state, step.requires)
            and not self.excluded(state, step.excludes)
        )

    def changed(self, state: State, step: Step) -> State:
        """The state with the changes made, not yet stripped."""
        return state | {
            one.variable: one.target + ("?" if one.expected else "") for one in step.changes
        }

    def after(self, place: Place) -> list[Way]:
        """All ways on from a place, found once."""
        if place not in self._ways:
            self._ways[place] = list(self._after(place))
        return self._ways[place]

    @cached_property
    def _ways(self) -> dict[Place, list[Way]]:
        return {}

    def _after(self, place: Place) -> Iterator[Way]:
        frozen, doubted = place
        state = dict(frozen)
        for look in self.looks:
            for outcome in sorted(self.expectations(state, look, doubted)):
                yield look, outcome, (freeze(state | {look.at: outcome}), doubted - {look.at})
        for step in self.steps:
            if self.applicable(state, step):
                names = {one.variable for one in step.changes}
                yield step, None, (freeze(self.strip(self.changed(state, step))), doubted - names)

    # Answers

    def for_goal(self, goal: Iterable[str]) -> "Model":
        """With only the parts that the goal depends on: none other goes first past a bar."""
        names = set(goal)
        parts: list[tuple[Part, set[str]]] = [(look, {look.at}) for look in self.looks]
        parts += [(step, {one.variable for one in step.changes}) for step in self.steps]
        for _ in self.problem.variables:
            for part, own in parts:
                if own & names:
                    named = {one.name for one in (*part.requires, *part.excludes)}
                    names |= own | named & set(self.problem.variables)
        kept = [part for part, own in parts if own & names]
        looks = tuple(part for part in self.problem.looks if part.at in names)
        steps = tuple(part for part in kept if isinstance(part, Step))
        return Model(replace(self.problem, looks=looks, steps=steps))

    def is_barred(self, part: Part, here: State, failed: Failures) -> bool:
        """Whether it was tried in vain where all that it names was as it is here."""
        names = {*subjects(part), *(one.name for one in (*part.requires, *part.excludes))}
        values = {name: status.removesuffix("?") for name, status in here.items() if name in names}
        return any(
            path == part.path and values.items() <= {
                (name, status.removesuffix("?")) for name, status in state
            }
            for path, state in failed
        )  # fmt: skip

    def costs(
        self, place: Place, barred: frozenset[str] = frozenset(), failed: Failures = frozenset()
    ) -> dict[Place, int]:
        """What each state within reach costs: relaxed until nothing changes."""
        costs = {place: 0}
        dirty = [place]
        while dirty:
            here = dirty.pop()
            for part, _, there in self.after(here):
                if here == place and part.path in barred:
                    continue
                if self.is_barred(part, dict(here[0]), failed):
                    continue
                cost = costs[here] + part.cost
                if there not in costs or cost < costs[there]:
                    costs[there] = cost
                    dirty.append(there)
        return costs

    def cheapest(
        self,
        state: State,
        goal: Mapping[str, str],
        *,
        doubted: Iterable[str] = (),
        barred: frozenset[str] = frozenset(),
        failed: Failures = frozenset(),
    ) -> int | None:
        """The least cost of a chain to the goal, None where there is no chain."""
        costs = self.costs((freeze(state), frozenset(doubted)), barred, failed)
        return min((cost for (at, _), cost in costs.items() if meets(dict(at), goal)), default=None)

    def remembered(self, state: State) -> set[str]:
        return {name for name, status in state.items() if status.endswith("?")}

    def answer(
        self,
        state: State,
        goal: Mapping[str, str],
        barred: frozenset[str] = frozenset(),
        failed: Failures = frozenset(),
    ) -> tuple[int | None, bool]:
        """The cost of the cheapest chain, and whether it doubts memory."""
        cost = self.cheapest(state, goal, barred=barred, failed=failed)
        if cost is not None:
            return cost, False
        doubted = self.remembered(state)
        cost = self.cheapest(state, goal, doubted=doubted, barred=barred, failed=failed)
        return cost, cost is not None

    def rest(
        self,
        state: State,
        goal: Mapping[str, str],
        barred: frozenset[str] = frozenset(),
        failed: Failures = frozenset(),
    ) -> dict[str, str]:
        """What is met of a goal that is out of reach, and one by one what can be had with that."""
        kept = {name: value for name, value in goal.items() if state[name] == value}
        for name in sorted(goal):
            more = {**kept, name: goal[name]}
            if self.for_goal(more).answer(state, more, barred, failed)[0] is not None:
                kept = more
        return kept

    def reason(self, state: State, goal: Mapping[str, str]) -> str:
        """Which kind of reason there is, where there is no chain."""
        if not any(meets(one, goal) for one in self.steady()):
            return "unknowable-goal"
        if any(state[name] != value and not self.led(name, value) for name, value in goal.items()):
            return "no-step"
        if self.waits(state, goal):
            return "waits"
        return "blocked"

    def steady(self) -> Iterator[State]:
        """All states, of known and unknown values, that strip leaves alone."""
        variables = self.problem.variables
        for values in product(*variables.values()):
            state = dict(zip(variables, values, strict=True))
            if self.strip(state) == state:
                yield state

    def led(self, name: str, value: str) -> bool:
        """Whether any look or step of the class leads to a value."""
        return any(look.at == name and value in look.outcomes for look in self.looks) or any(
            (one.variable, one.target, one.expected) == (name, value, False)
            for step in self.steps
            for one in step.changes
        )

    def waits(self, state: State, goal: Mapping[str, str]) -> list[dict[str, str]]:
        """The smallest sets of borrowed values with which there would be a chain."""
        served = {look.at for look in self.problem.looks}
        served |= {one.variable for step in self.problem.steps for one in step.changes}
        borrowed = sorted(set(self.problem.variables) - served)
        for count in range(1, len(borrowed) + 1):
            found = []
            for names in combinations(borrowed, count):
                for values in product(*(self.problem.variables[name][1:] for name in names)):
                    other = dict(zip(names, values, strict=True))
                    differs = all(state[name] != value for name, value in other.items())
                    changed = self.strip(state | other)
                    if differs and self.cheapest(changed, goal) is not None:
                        found.append(other)
            if found:
                return found
        return []


def freeze(state: State) -> Frozen:
    return tuple(sorted(state.items()))


def meets(state: State, goal: Mapping[str, str]) -> bool:
    return all(state[name] == value for name, value in goal.items())
